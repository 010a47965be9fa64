"""What a configuration of TopDown may hold: its keys and their values. What follows from several is checked elsewhere.

Public.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Final, TypeVar, get_args

from yupana.files.codes import PAIRS, Pairs
from yupana.files.declaration import (
    BUDGET,
    FLAG,
    NUMBER,
    SCALAR,
    TEXT,
    Expected,
    choice,
    declared,
    key,
    keyed,
    list_of,
    scalar,
    table_of,
    whole,
)
from yupana.files.document import Number
from yupana.geography.hierarchy import check_level_names
from yupana.geography.settings import (
    AREA_TYPES,
    AREAS,
    KINDS,
    LEVELS,
    PLACES,
    PRODUCTIONS,
    QUARTERS,
    SCHOOLS,
    Grouping,
    Kind,
)
from yupana.plan.measurement import Mechanism
from yupana.privacy.exact import Budget, read_exact
from yupana.topdown.queries import TOTAL

T = TypeVar("T")

PRIVACY_UNITS: Final = ("person record", "housing unit")
MOST_LEVELS: Final = 2**16
_CLASSES: Final = {name.lower(): name for name in (PLACES, AREAS, QUARTERS, SCHOOLS)}
_LONGEST: Final = 10**100
"""No share of use has more digits, and sums of shares must fit a double and a message."""


def _share(told: object) -> Fraction | None:
    if not isinstance(told, str):
        return None
    number = told.rstrip().removesuffix("%")
    share = read_exact(number)
    if not isinstance(share, Fraction) or not 0 <= share <= _LONGEST or share.denominator > _LONGEST:
        raise ValueError("must be 0 or more, and finite, and have at most 100 digits")
    return share / 100 if number != told.rstrip() else share


_PERCENT: Final = {"type": "string", "pattern": r"^\s*[+]?([0-9]+(\.[0-9]*)?|\.[0-9]+)%\s*$"}
SHARE: Final = scalar("a number, or a text such as 'p/q' or '12.5%'", _share, {"anyOf": [*NUMBER["anyOf"], _PERCENT]})


def _check_sum(place: str, shares: Mapping[str, Fraction], faults: list[str]) -> None:
    total = sum(shares.values(), Fraction(0))
    if total != 1:
        decimal = "" if total.denominator == 1 else f" (about {float(total):.10g})"
        advice = "; --renormalise divides them by their sum" if total else ""
        faults.append(f"{place}: the shares sum to {total}{decimal}, not to 1{advice}")


def _shares(*offered: str) -> Expected[dict[str, Fraction]]:
    """Shares that sum to 1; one that is refused is 0."""
    return table_of(SHARE, instead=Fraction(0), offered=offered).checked(_check_sum)


SHARES: Final = _shares(*LEVELS)


def _names(told: object) -> tuple[str, ...] | None:
    """A list of names, or a text as on the command line: names separated by commas, or none."""
    if isinstance(told, str) and not isinstance(told, Number):
        told = [] if told.strip() == "none" else [name.strip() for name in told.split(",")]
        if "" in told:
            raise ValueError("an empty name; name some, or none")
    return tuple(told) if isinstance(told, list) and all(TEXT.fits(name) for name in told) else None


def _check_names(place: str, names: tuple[str, ...], faults: list[str]) -> None:
    lower = [name.lower() for name in names]
    faults += [f"{place}: {name} is named twice" for i, name in enumerate(names) if name.lower() in lower[:i]]


def _check_types(place: str, names: tuple[str, ...], faults: list[str]) -> None:
    known = ", ".join(AREA_TYPES)
    faults += [f"{place}: {name!r} is no type of area; there are {known}" for name in names if name not in AREA_TYPES]


def _states(place: str, names: tuple[str, ...], faults: list[str]) -> tuple[int, ...]:
    wrong = [name for name in names if not (name.isascii() and name.isdecimal() and len(name) == 2)]
    faults += [f"{place}: {name!r} is no FIPS code of two digits" for name in wrong]
    return () if wrong else tuple(map(int, names))


_NAMES: Final = scalar(
    "a list of names", _names, {"anyOf": [{"type": "array", "items": {"type": "string"}}, {"type": "string"}]}
).checked(_check_names)
SPINE_LISTS: Final[Mapping[str, Expected[tuple[Any, ...]]]] = {
    "classes": _NAMES.made(lambda _, names, __: tuple(_CLASSES.get(name.lower(), name) for name in names)),
    "aian_areas": _NAMES.made(lambda _, names, __: tuple(map(str.lower, names))).checked(_check_types),
    "strong_mcd_states": _NAMES.made(_states),
}
"""The options of a spine that are lists of names."""

_COUNT: Final = whole(0, 999_999_999, "a whole number, zero or more")


@dataclass(frozen=True, kw_only=True)
class DeclaredSpine:
    """Options of `yupana spine build`."""

    production: str | None = key(choice(*PRODUCTIONS), default=None)
    kind: Kind | None = key(choice(*KINDS), default=None)
    fanout_cutoff: int | None = key(_COUNT, default=None)
    entity_threshold: int | None = key(_COUNT, default=None)
    bypass_cutoff: int | None = key(_COUNT, default=None)
    grouping: Grouping | None = key(choice(*get_args(Grouping)), default=None)
    classes: tuple[str, ...] | None = key(SPINE_LISTS["classes"], default=None)
    aian_areas: tuple[str, ...] | None = key(SPINE_LISTS["aian_areas"], f"of {', '.join(AREA_TYPES)}", default=None)
    strong_mcd_states: tuple[int, ...] | None = key(SPINE_LISTS["strong_mcd_states"], default=None)
    live: bool | None = key(FLAG, default=None)


_PASSES: Final = list_of(
    list_of(TEXT, "a list of queries"), 'a list of lists of queries, such as [["total"], ["detailed"]]'
)


@dataclass(frozen=True, kw_only=True)
class DeclaredRecode:
    """A grouping of an attribute's levels, each by its number from 0 or its label."""

    of: str = key(TEXT)
    groups: tuple[tuple[str, ...], ...] = key(
        list_of(list_of(SCALAR, "levels"), "a list of lists of levels, none empty")
    )


def _check_zero(place: str, zero: Mapping[str, str], faults: list[str]) -> None:
    if not zero:
        faults.append(f"{place}: names no attribute, so every cell would be zero")


@dataclass(frozen=True, kw_only=True)
class DeclaredConstraints:
    """What every count satisfies."""

    group_quarters: str | None = key(TEXT, "the first attribute, if its levels are types of quarters", default=None)
    structural_zeros: tuple[dict[str, str], ...] = key(
        list_of(
            table_of(SCALAR).checked(_check_zero, minProperties=1),
            "a list of tables such as { sex = 0 }",
            each=True,
            least=0,
        ),
        "combinations of levels that nobody can have",
        default=(),
    )


@dataclass(frozen=True, kw_only=True)
class DeclaredAreas:
    """What the spine is, in place of the Census Bureau's blocks."""

    levels: tuple[str, ...] | None = key(
        list_of(TEXT, "a list of geolevels from the root down, the last those of the blocks").checked(
            check_level_names, uniqueItems=True
        ),
        "geolevels from the root down, the last those of the blocks",
    )
    of: Pairs | None = key(PAIRS, "of each unit the one it lies in, or a public file that says so")


def _by_geolevel(kind: Expected[T]) -> Expected[dict[str, T]]:
    return table_of(kind, offered=LEVELS)


_LABELS: Final = list_of(TEXT, "a list of labels, which are texts that are not empty")
_INVARIANT: Final = list_of(choice(TOTAL), f'["{TOTAL}"]; no other query can be kept exactly', least=0, most=1)


@dataclass(frozen=True, kw_only=True)
class DeclaredConfiguration:
    """The configuration of TopDown; a required key that is missing or refused is None."""

    product: str | None = key(TEXT, "your name for what is made")
    privacy_unit: str = key(choice(*PRIVACY_UNITS), "whose presence is protected", default=PRIVACY_UNITS[0])
    mechanism: str = key(
        choice(*(mechanism.value for mechanism in Mechanism)),
        "zcdp: discrete Gaussian noise, budget rho; pure: geometric noise, budget epsilon",
        default=Mechanism.ZCDP.value,
    )
    rho: Budget | None = key(
        BUDGET, "the whole budget under zcdp; inf adds no noise, for synthetic data only", default=None
    )
    epsilon: Budget | None = key(BUDGET, "the whole budget under pure", default=None)
    invariants: dict[str, tuple[str, ...]] = key(
        _by_geolevel(_INVARIANT), "geolevels whose totals are kept exactly, outside the guarantee", default={}
    )
    schema: dict[str, int | tuple[str, ...]] | None = key(
        table_of(whole(1, MOST_LEVELS, f"a number of levels from 1 to {MOST_LEVELS:,}") | _LABELS),
        "the attributes, each a number of levels or their labels",
    )
    shares: dict[str, Fraction] | None = key(SHARES, "what part each geolevel has; they sum to 1")
    queries: dict[str, dict[str, Fraction]] | None = key(
        _by_geolevel(_shares()),
        "what is measured at a geolevel, and its part; they sum to 1. A query names the attributes it keeps "
        "(race*hispanic), or is total or detailed",
    )
    passes: dict[str, dict[str, tuple[tuple[str, ...], ...]]] = key(
        _by_geolevel(keyed({"estimate": _PASSES, "round": _PASSES}, optional=("estimate", "round"))),
        "the order in which queries are estimated from, and rounded",
        default={},
    )
    recodes: dict[str, DeclaredRecode] = key(
        table_of(declared(DeclaredRecode)), "groupings of an attribute's levels, to be used in queries", default={}
    )
    constraints: DeclaredConstraints = key(declared(DeclaredConstraints), default=DeclaredConstraints())
    spine: DeclaredSpine | None = key(declared(DeclaredSpine, dashes=True), default=None)
    areas: DeclaredAreas | None = key(declared(DeclaredAreas, partial=True), default=None)


DOCUMENT: Final = declared(DeclaredConfiguration, partial=True)
"""A whole configuration."""
