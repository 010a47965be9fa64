"""SafeTab's part of the demonstration: persons, then households, then a report. Confidential by its place.

It shows the truth beside the noise, so it takes a census that was made for it and never another.
"""

from pathlib import Path
from typing import Final

from yupana.confidential.request import Request
from yupana.confidential.safetab.accuracy_households import trials as trials_h
from yupana.confidential.safetab.accuracy_persons import trials as trials_p
from yupana.confidential.safetab.households import TAKEN_AS_PUBLIC as PUBLIC_H
from yupana.confidential.safetab.households import run as run_h
from yupana.confidential.safetab.persons import TAKEN_AS_PUBLIC as PUBLIC_P
from yupana.confidential.safetab.persons import run as run_p
from yupana.privacy.entropy import SystemEntropy
from yupana.products.safetab.demonstration_parameters import write_parameters
from yupana.products.safetab.errors import summarize
from yupana.products.safetab.households.configuration import read_config as read_config_h
from yupana.products.safetab.households.plan import make_plan as make_plan_h
from yupana.products.safetab.parameters import CONFIG, read_iterations
from yupana.products.safetab.persons.configuration import read_config as read_config_p
from yupana.products.safetab.persons.plan import make_plan as make_plan_p
from yupana.products.safetab.provenance import PUBLISHED
from yupana.products.safetab.specification import TOTALS
from yupana.progress import Stopwatch
from yupana.release.check import check_files
from yupana.release.status import NOT_FOR_RELEASE
from yupana.report.demonstration import SafetabDemonstration, safetab_page
from yupana.report.page import render

REPORT: Final = "safetab.html"
STAGES: Final = 16
"""How many stages are announced."""

_MOST_TRIALS: Final = 20
"""A trial has tens of thousands of groups, so that a few tell enough."""


def demonstrate_safetab(
    folder: Path, *, persons: int, households: int, trials: int, out: Path, clock: Stopwatch
) -> None:
    """Make parameters, both releases and a report beside the folder ``census`` of a demonstration.

    Parameters
    ----------
    folder : Path
        Of the demonstration, while it is being made.
    persons, households : int
        In the census.
    trials : int
        How often the census is measured to observe the errors; twenty times at most.
    out : Path
        Where the folder will stand, as its user wrote it.
    clock : Stopwatch
    """
    census, parameters = folder / "census", folder / "parameters"
    write_parameters(parameters)
    iterations = read_iterations(parameters)
    config_p, config_h = read_config_p(parameters / CONFIG), read_config_h(parameters / CONFIG)
    plan_p, plan_h = make_plan_p(config_p, iterations), make_plan_h(config_h, iterations)
    entropy, trials = SystemEntropy(), min(trials, _MOST_TRIALS)

    def request(name: str) -> Request:
        return Request(census, folder / name, log=folder / f"{name}.confidential.log")

    run_p(config_p, iterations, plan_p, request("safetab-p"), entropy, clock.within("safetab-p"))
    exact = plan_p.without_noise()
    run_p(config_p, iterations, exact, request("safetab-p-exact"), entropy, clock.within("safetab-p exact"))
    totals = folder / "safetab-p" / f"{TOTALS}.csv"
    run_h(config_h, iterations, plan_h, totals, request("safetab-h"), entropy, clock.within("safetab-h"))
    errors_p = trials_p(config_p, iterations, plan_p, census, trials, entropy, clock.within("safetab-p accuracy"))
    errors_h = trials_h(
        config_h, iterations, plan_h, totals, census, trials, entropy, clock.within("safetab-h accuracy")
    )
    seconds = {stage: took for stage, took in clock.stop().items() if stage.startswith("safetab")}
    clock.start("drawing the report on SafeTab")
    page = safetab_page(
        SafetabDemonstration(
            iterations=iterations,
            persons_plan=plan_p,
            households_plan=plan_h,
            persons=persons,
            households=households,
            trials=trials,
            persons_release=_tables(folder / "safetab-p"),
            households_release=_tables(folder / "safetab-h"),
            truth=_tables(folder / "safetab-p-exact")[TOTALS],
            persons_errors=errors_p,
            households_errors=errors_h,
            persons_observed=summarize(errors_p, float(plan_p.confidence)),
            households_observed=summarize(errors_h, float(plan_h.confidence)),
            taken_as_public=tuple(dict.fromkeys((*PUBLIC_P, *PUBLIC_H, PUBLISHED))),
            seconds=seconds,
            status=NOT_FOR_RELEASE,
            out=out,
        )
    )
    (folder / REPORT).write_text(render(page), encoding="utf-8")


def _tables(release: Path) -> dict[str, dict[str, list[str]]]:
    """Read the tables of a release that has just been made."""
    _, tables, wrong = check_files(release)
    if wrong:
        raise RuntimeError(f"the release does not hold together: {'; '.join(wrong)}")
    return tables
