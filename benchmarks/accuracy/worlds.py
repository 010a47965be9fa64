"""What is measured: worlds of records, and in each of them ways to spend one loss and to estimate."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

HERE: Final = Path(__file__).parent
EXAMPLES: Final = HERE.parents[1] / "examples"

PRODUCTION: Final = "production"
"""The case that all others of a world are compared with."""

Target = tuple[str, str]
"""A kind of areas and a query."""


@dataclass(frozen=True)
class Case:
    """A way to spend the loss and to estimate, and what its ratios may be at most.

    Attributes
    ----------
    configuration, spine, estimator
        As of `yupana.run`.
    targets : mapping, optional
        The configuration's shares are those that `yupana.strategy` finds for these.
    bars : mapping of (kind, query) to float
    bias : mapping of smallest population to float
        Of the totals of the last units of a size class, the mean error that is farthest from 0 and allowed.
    """

    configuration: str
    spine: str
    estimator: str
    targets: Mapping[str, Any] | None = None
    bars: Mapping[Target, float] = field(default_factory=dict)
    bias: Mapping[int, float] = field(default_factory=dict)


@dataclass(frozen=True)
class World:
    """Records whose truth may be told, and the cases that are run on them.

    Attributes
    ----------
    name : str
        The folder of its data.
    title : str
    attributes : mapping of str to int
        How many levels each has, in the schema's order.
    queries : mapping of str to str
        What a query is called, by its name.
    kinds : mapping of str to str
        What areas are called, by the name of their column; the last units of the spine are the first.
    sizes : tuple of int
        The smallest true population of each size class of the last units.
    shown : tuple of Target
        What the one table has.
    cases : mapping of str to Case
        The first is `PRODUCTION`.
    """

    name: str
    title: str
    attributes: Mapping[str, int]
    queries: Mapping[str, str]
    kinds: Mapping[str, str]
    sizes: tuple[int, ...]
    shown: tuple[Target, ...]
    cases: Mapping[str, Case]


_BIAS: Final = {1: 1.5, 250: -5.0}
_COOK_QUERIES: Final = {
    "total": "total",
    "votingage": "voting age",
    "hispanic": "Hispanic",
    "race": "race",
    "hispanic*race": "Hispanic by race",
    "detailed": "detailed",
}
_KINDS: Final = {"block": "block", "block_group": "block group", "tract": "tract", "place": "place"}
_SHOWN: Final = (
    ("block", "total"),
    ("block", "votingage"),
    ("block", "hispanic"),
    ("block", "detailed"),
    ("block_group", "total"),
    ("block_group", "detailed"),
    ("tract", "total"),
    ("tract", "votingage"),
    ("place", "total"),
    ("place", "detailed"),
)

COOK: Final = World(
    "cook",
    "Cook County, Illinois, 2010: 76,751 blocks, 44 cells",
    {"hispanic": 2, "race": 11, "votingage": 2},
    _COOK_QUERIES,
    {**_KINDS, "county_subdivision": "county subdivision"},
    (0, 1, 10, 50, 100, 250),
    _SHOWN,
    {
        PRODUCTION: Case("cook-2010", "conventional", "topdown"),
        "full information": Case("cook-2010", "conventional", "full-information"),
        "optimized": Case("cook-2010", "optimized", "topdown"),
        "optimized, full information": Case("cook-2010", "optimized", "full-information"),
        "pieces": Case("cook-2010", "pieces", "topdown"),
        "pieces, full information": Case(
            "cook-2010",
            "pieces",
            "full-information",
            bars={
                ("place", "total"): 0.13,
                ("block_group", "total"): 1.00,
                ("block_group", "detailed"): 0.92,
                ("tract", "total"): 0.80,
                ("tract", "votingage"): 0.78,
            },
        ),
        "block total, full information": Case(
            "cook-2010-block-total",
            "pieces",
            "full-information",
            bars={
                ("block", "total"): 0.80,
                ("block", "hispanic"): 0.93,
                ("block", "votingage"): 0.94,
                ("block", "race"): 0.99,
                ("block", "detailed"): 1.03,
            },
        ),
        "posterior": Case(
            "cook-2010",
            "conventional",
            "posterior",
            bars={
                ("block", "total"): 0.90,
                ("block", "votingage"): 0.87,
                ("block", "hispanic"): 0.94,
                ("block", "race"): 0.99,
                ("block", "detailed"): 0.95,
                ("place", "race"): 1.08,
            },
            bias=_BIAS,
        ),
        "block total, posterior": Case(
            "cook-2010-block-total",
            "pieces",
            "posterior",
            bars={("block", query): 0.70 if query == "total" else 1.00 for query in _COOK_QUERIES},
            bias=_BIAS,
        ),
        "moved budget, full information": Case(
            str(EXAMPLES / "moved_budget.toml"), "pieces", "full-information", bars={("block", "total"): 0.42}
        ),
        "found shares, full information": Case(
            "cook-2010", "pieces", "full-information", {"queries": {"T1": 1, "hispanic*race": 1, "detailed": 1}}
        ),
    },
)

ILLINOIS: Final = World(
    "illinois",
    "Illinois, 2020: 3,265 tracts, 252 cells",
    {"hispanic": 2, "cenrace": 63, "votingage": 2},
    {
        "total": "total",
        "votingage": "voting age",
        "hispanic": "Hispanic",
        "cenrace": "race",
        "hispanic*cenrace": "Hispanic by race",
        "detailed": "detailed",
    },
    {"tract": "tract", "county": "county"},
    (0, 2000, 3000, 4000, 5000, 6000),
    (
        ("tract", "total"),
        ("tract", "votingage"),
        ("tract", "hispanic"),
        ("tract", "cenrace"),
        ("tract", "detailed"),
        ("county", "total"),
        ("county", "votingage"),
        ("county", "detailed"),
    ),
    {
        PRODUCTION: Case(str(HERE / "illinois.toml"), "conventional", "topdown"),
        "full information": Case(str(HERE / "illinois.toml"), "conventional", "full-information"),
        "found shares": Case(
            str(HERE / "illinois.toml"),
            "conventional",
            "topdown",
            {"queries": {"T1": 1, "hispanic*cenrace": 1, "detailed": 1}},
        ),
        "found shares, full information": Case(
            str(HERE / "illinois.toml"),
            "conventional",
            "full-information",
            {"queries": {"T1": 1, "hispanic*cenrace": 1, "detailed": 1}},
        ),
    },
)

STATE: Final = World(
    "state",
    "A synthetic state of 393,207 persons: 7,821 blocks, 2,016 cells",
    {"hhgq": 8, "votingage": 2, "hispanic": 2, "cenrace": 63},
    {
        "total": "total",
        "votingage": "voting age",
        "hispanic": "Hispanic",
        "cenrace": "race",
        "hhgq": "group quarters",
        "hispanic*cenrace": "Hispanic by race",
        "detailed": "detailed",
    },
    _KINDS,
    (0, 1, 10, 50, 100, 250),
    _SHOWN,
    {
        PRODUCTION: Case("pl94-2020-us", "conventional", "topdown"),
        "full information": Case("pl94-2020-us", "conventional", "full-information"),
        "optimized": Case("pl94-2020-us", "optimized", "topdown"),
        "optimized, full information": Case("pl94-2020-us", "optimized", "full-information"),
        "pieces": Case("pl94-2020-us", "pieces", "topdown"),
        "pieces, full information": Case("pl94-2020-us", "pieces", "full-information"),
        "block total, full information": Case("pl94-2020-us-block-total", "pieces", "full-information"),
        "posterior": Case("pl94-2020-us", "conventional", "posterior"),
        "block total, posterior": Case("pl94-2020-us-block-total", "pieces", "posterior"),
        "found shares, full information": Case(
            "pl94-2020-us",
            "pieces",
            "full-information",
            {"queries": {**{f"P{table}": 1 for table in range(1, 6)}, "hispanic*cenrace": 1, "detailed": 1}},
        ),
    },
)

WORLDS: Final = {world.name: world for world in (COOK, ILLINOIS, STATE)}
