"""The tables of SafeTab: those of the built-in descriptions of the Detailed DHC."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, Final, Literal

from yupana.files.document import located, read_document, refuse
from yupana.products.described.description import DescribedTable, Description
from yupana.products.described.plan import families_of
from yupana.products.described.reading.description import parse
from yupana.products.tables import Family

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
class HouseholdQuestion:
    """What the records of households are asked.

    Attributes
    ----------
    key : "t3" or "t4"
        As the keys of a configuration write it.
    name : str
        Of its measurements.
    tables : tuple of str
        By statistics level, from 0.
    """

    key: Literal["t3", "t4"]
    name: str
    tables: tuple[str, ...]


HOUSEHOLD_TYPE: Final = HouseholdQuestion("t3", "T03", ("T03001", "T03002", "T03003", "T03004"))
TENURE: Final = HouseholdQuestion("t4", "T04", ("T04001", "T04002"))
QUESTIONS: Final = (HOUSEHOLD_TYPE, TENURE)

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
