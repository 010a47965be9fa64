"""The tables of SafeTab, as the built-in descriptions of the Detailed DHC have them, and the check of a release."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any, Final

from yupana.files.document import located, read_document, refuse
from yupana.products.described.description import DescribedTable, Description
from yupana.products.described.plan import families_of
from yupana.products.described.reading.description import parse
from yupana.products.safetab.regions import REGION_TYPES, US, Level
from yupana.products.tables import Family
from yupana.products.verify import Codes, verify_noise, verify_tables

KEYS: Final = ("REGION_ID", "REGION_TYPE", "ITERATION_CODE")
"""The columns that name a population group."""

TOTALS: Final = "T01001"

AGE_TABLES: Final[Mapping[str, int]] = {"T02001": 4, "T02002": 9, "T02003": 23}
"""The tables of sex by age, each with its number of ages: statistics levels 1, 2 and 3. Level 0 is a total alone."""

STAGE_1: Final = "stage 1"
STAGE_2: Final = "stage 2"
DETAILED_ONLY: Final = "detailed-only"
"""What plans call the totals of persons that choose tables, the cells of these, and groups of which there are totals
alone: measured apart, so with noise of their own."""


@dataclass(frozen=True, slots=True)
class DetailedQuestion:
    """What a product asks of its records: each group has the answers in one of several tables."""

    key: str  # as the keys of a configuration write it
    name: str  # of its measurements
    tables: tuple[str, ...]  # by statistics level, from 0
    thresholds: str  # what its thresholds are, in words

    def entry(self, level: Level) -> str:
        """The name of the budget of a level: ``T03/COUNTY 2``; of persons, who are asked one question, ``COUNTY 2``."""
        return level.name if self is AGES else f"{self.name}/{level.name}"

    def budget_key(self, level: Level) -> str:
        """The key of a configuration that says the budget of a level."""
        return f"privacy_budget_{self.key}_{level.budget_key}"


AGES: Final = DetailedQuestion(
    "p", STAGE_2, (TOTALS, *AGE_TABLES), "noisy totals from which a group has 4, 9 and 23 ages"
)
HOUSEHOLD_TYPE: Final = DetailedQuestion(
    "h_t3",
    "T03",
    ("T03001", "T03002", "T03003", "T03004"),
    "totals from which a group has the next larger table of T03",
)
TENURE: Final = DetailedQuestion(
    "h_t4", "T04", ("T04001", "T04002"), "totals from which a group has the larger table of T04"
)
QUESTIONS: Final = {"safetab-p": (AGES,), "safetab-h": (HOUSEHOLD_TYPE, TENURE)}
"""What the records of each product are asked."""

_DESCRIPTIONS: Final = {"safetab-p": "ddhc-a-2020-us", "safetab-h": "ddhc-b-2020-us"}


@cache
def described_2020(product: str) -> Description:
    """The built-in description of a product with two groups in place of those that files of codes tell."""
    path = located(_DESCRIPTIONS[product], "yupana.products.described", [*_DESCRIPTIONS.values()])
    document, faults = read_document(path)
    assert isinstance(document, dict)  # noqa: S101 (it is ours)
    (file,) = document["files"]
    for response in document["files"][file]["responses"].values():
        response["codes"] = {"1000": "one"}
    del document["group_lists"]
    of_race: dict[str, Any] = {"response": f"{file}.race", "codes": ["1000"]}
    document |= {"groups": {"1": of_race, "2": of_race}, "levels": {"one": {"areas": "USA", "groups": ["1", "2"]}}}
    for table in document["tables"].values():
        detail = table["detail"]
        table["budget"] = {"one": table["budget"]["USA-1"]}
        detail["thresholds"] = next(iter(detail["thresholds"].values()))
        if "share" in detail:
            detail |= {"coarsest": ["2"], "leave_out": {}}
    found = parse(document, path.parent, faults)
    if found is None:
        raise refuse(path, faults)
    return replace(found, tables=tuple(map(_named, found.tables)))


def _named(table: DescribedTable) -> DescribedTable:
    """A table with the Bureau's names of its measurements."""
    if table.detail is None or table.detail.published:
        return table
    return replace(table, name=STAGE_2, detail=replace(table.detail, called=(STAGE_1, DETAILED_ONLY)))


PUBLISHED_AS: Final = {STAGE_2: "T01001-T02003", DETAILED_ONLY: TOTALS}
"""What plans call the tables that measurements are made for, where these have names of their own."""

FAMILIES: Final[Mapping[str, tuple[Family, ...]]] = {
    product: tuple(
        replace(family, name=PUBLISHED_AS.get(family.name, family.name))
        for table in described_2020(product).tables
        for family in families_of(table)
    )
    for product in _DESCRIPTIONS
}
"""What each product publishes."""


_AREAS: Final = " OR ".join(
    f"(REGION_TYPE = '{r.name}' AND regexp_full_match(REGION_ID, '[0-9]{{{r.width}}}'))" for r in REGION_TYPES
)
CODES: Final = Codes(
    written=lambda _: f"({_AREAS}) AND regexp_full_match(ITERATION_CODE, '[0-9]{{4}}')",
    region_type=lambda level: level.rsplit(" ", 1)[0],
    # One of each summary level.
    most_combined=sum(region.run == US for region in REGION_TYPES),
)


def verify_release(folder: Path, manifest: Mapping[str, Any]) -> tuple[list[str], list[str]]:
    """Compare the tables of a release, or single ones that were postprocessed, with their plan; see `verify_tables`."""
    return verify_tables(folder, manifest, _families(manifest), CODES)


def noise_faults(folder: Path, manifest: Mapping[str, Any], table: str) -> list[str]:
    """What is wrong with the noise of one table; see `verify_noise`."""
    return verify_noise(folder / table, manifest, _families(manifest), CODES, table)


def _families(manifest: Mapping[str, Any]) -> Sequence[Family]:
    """What the product publishes; of tables without a manifest, what both publish."""
    return FAMILIES.get(manifest["product"]) or [family for families in FAMILIES.values() for family in families]
