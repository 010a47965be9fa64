"""Invent the persons of Elbonia: DATA for examples/country.toml.

python examples/country.py DATA
"""

import csv
import random
import sys
from pathlib import Path

PERSONS = 4_000


def main(data: Path) -> None:
    """Write persons.csv, and mark the folder as synthetic."""
    with Path(__file__).with_suffix(".csv").open(encoding="utf-8") as file:
        units = list(csv.DictReader(file, delimiter="|"))
    holding = {unit["WITHIN"] for unit in units}
    communes = [unit["CODE"] for unit in units if unit["CODE"] not in holding]
    chance = random.Random(2026)  # noqa: S311 (invented people)
    data.mkdir(parents=True)
    with (data / "persons.csv").open("w", encoding="utf-8", newline="") as file:
        rows = csv.writer(file, lineterminator="\n")
        rows.writerow(["commune", "sex", "age", "language"])
        for _ in range(PERSONS):
            age = int(chance.triangular(0, 105, 35))
            languages = ["el", "north"] if age < 15 else ["el", "north", "other"]
            rows.writerow([chance.choice(communes), chance.choice("fm"), age, chance.choice(languages)])
    (data / "SYNTHETIC").touch()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
