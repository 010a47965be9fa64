"""A tour of the Python interface, written against docs/python.md alone: `python examples/python_tour.py FOLDER`.

Invented people are counted by PHSafe; every step prints what a notebook would show.
"""

import sys
from fractions import Fraction
from pathlib import Path
from typing import Any

import yupana

EVERYBODY = ("usa_*", "state_*")
BY_RACE = (*EVERYBODY, "usa_A-G", "usa_H,I", "state_A-G", "state_H,I")
LEVELS = {
    **dict.fromkeys(("PH1_num", "PH1_denom", "PH3", "PH4", "PH5_denom", "PH7", "PH8_denom"), BY_RACE),
    **dict.fromkeys(("PH2", "PH6"), EVERYBODY),
}
DOCUMENT: dict[str, Any] = {
    "privacy_budget": {table: dict.fromkeys(levels, Fraction(1, 50)) for table, levels in LEVELS.items()},
    "tau": {"PH1_num": 10, "PH2": 10, "PH3": 6, "PH4": 10, "PH6": 6, "PH7": 10},
    "state_filter": ["10", "44"],
    "reader": "csv",
    "privacy_defn": "zcdp",
}


def tour(folder: Path) -> None:
    """Make a census, a release of it, and what can be said of the release."""
    census = folder / "census"
    print(yupana.synthesize(census, 2000, states=DOCUMENT["state_filter"], seed=1))

    # What it would cost; no record is read for that.
    phsafe = yupana.setup("phsafe", DOCUMENT)
    print(phsafe.plan())

    # The least budget by which the persons of a state are told to within 50, with a confidence of 90 percent.
    phsafe = phsafe.solve(margins={"PH1_num/state_*": 50})
    plan = phsafe.plan()
    print(plan)
    for name, rho, margin in zip(*(plan.table()[column] for column in ("name", "rho_float", "moe")), strict=True):
        print(f"{name:20} rho {rho:.6f}, within {margin:,.0f}")

    print(phsafe.validate(census))
    release = phsafe.run(census, folder / "release", seed=7, execution=yupana.Execution(progress=True))
    print(release)
    print(release.check())
    print(release["PH1_num"])

    persons = "PH1_num[REGION_ID=44, ITERATION_CODE=*, PH1_NUM_DATA_CELL={}]"
    found = release.interval(persons.format(2), f"{persons.format(2)} % {persons.format(3)}", confidence="0.95")
    for row in found.table().rows():
        print(row)

    print(release.certificate().write(folder / "certificate"))
    print(release.report(folder / "report.html"))
    print(phsafe.accuracy(census, trials=3))


if __name__ == "__main__":
    tour(Path(sys.argv[1] if len(sys.argv) > 1 else "tour"))
