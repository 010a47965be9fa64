"""The S-DHC as specified: population groups, tables, their universes and basis cells (PHSafe, section 2).

Public: nothing here reads a record. Codes are those of the Census Edited File.
"""

from dataclasses import dataclass
from fractions import Fraction
from typing import Final, Literal

from yupana.plan.measurement import Accounting, Mechanism, Sensitivity
from yupana.plan.predicates import Where, where
from yupana.products.tables import Cell, Choice, Family, Table


@dataclass(frozen=True, slots=True)
class PhsafeLevel:
    """A population-group level: a geographic summary level by a level of race and ethnicity iterations."""

    key: str
    region_type: Literal["USA", "STATE"]
    iterations: tuple[str, ...]


_ITERATION_LEVELS: Final = {"A-G": tuple("ABCDEFG"), "H,I": ("H", "I"), "*": ("*",)}

LEVELS: Final = (
    *(PhsafeLevel(f"usa_{key}", "USA", codes) for key, codes in _ITERATION_LEVELS.items()),
    *(PhsafeLevel(f"state_{key}", "STATE", codes) for key, codes in _ITERATION_LEVELS.items()),
)

_ITERATIONS: Final = {
    "*": ("", ""),
    "A": ("01", ""),  # White alone
    "B": ("02", ""),  # Black or African American alone
    "C": ("03", ""),  # American Indian and Alaska Native alone
    "D": ("04", ""),  # Asian alone
    "E": ("05", ""),  # Native Hawaiian and Other Pacific Islander alone
    "F": ("06", ""),  # Some Other Race alone
    "G": (" ".join(f"{code:02}" for code in range(7, 64)), ""),  # two or more races
    "H": ("", "2"),  # Hispanic or Latino
    "I": ("01", "1"),  # White alone, not Hispanic or Latino
}
"""Race and ethnicity codes of each iteration; empty for any."""

ITERATIONS: Final = tuple(_ITERATIONS)


def iteration(code: str, race: str, ethnicity: str) -> Where:
    """Records of an iteration, by the columns that hold race and ethnicity."""
    races, ethnicities = _ITERATIONS[code]
    return where(**({race: races} if races else {}), **({ethnicity: ethnicities} if ethnicities else {}))


@dataclass(frozen=True, slots=True)
class MeasuredTable:
    """One of the nine tables that are measured.

    Attributes
    ----------
    name : str
    persons : Where or None
        Universe of persons, before truncation; None for a table of units.
    units : Where
        Universe of units the persons are joined with, or that are counted.
    cells : dict of int to Where
        Basis cells by their number; disjoint.
    iterated_by : "householder", "person" or None
        Whose race and ethnicity the iterations go by; None for a table without iterations.
    """

    name: str
    persons: Where | None
    units: Where
    cells: dict[int, Where]
    iterated_by: Literal["householder", "person"] | None

    @property
    def levels(self) -> tuple[PhsafeLevel, ...]:
        """The population-group levels the table is published for."""
        return tuple(level for level in LEVELS if self.iterated_by or level.iterations == ("*",))

    @property
    def iterations(self) -> tuple[str, ...]:
        """The iterations the table is published for."""
        return ITERATIONS if self.iterated_by else ("*",)

    def iteration(self, code: str) -> Where:
        """Records of an iteration in this table."""
        if self.iterated_by == "person":
            return iteration(code, "CENRACE", "CENHISP")
        return iteration(code, "HHRACE", "HHSPAN")

    def sensitivity(self, tau: int | None, mechanism: Mechanism, accounting: Accounting) -> Sensitivity:
        """How far the count vector of one level moves: squared L2 under zCDP, L1 under pure DP.

        ``published`` is the paper's: stability 2 tau + 2 of the truncated join (2 for units), its square under zCDP,
        and a factor 2 for an arbitrary change (PHSafe, lemma 6 and theorems 1 to 4). ``tight`` compares non-negative
        vectors of sum at most tau before and after, of one household, or of two for an arbitrary change
        (docs/phsafe-privacy.md).

        Parameters
        ----------
        tau : int or None
            Truncation threshold; None for a table of units.
        """
        if accounting == "published":
            stability = 2 if tau is None else 2 * tau + 2
            one = Fraction(stability**mechanism.power)
            return Sensitivity(unbounded=one, bounded=2 * one, same_household=2 * one)
        most = 1 if tau is None else tau
        one = Fraction(2 * most**mechanism.power)
        return Sensitivity(unbounded=one, bounded=2**mechanism.power * one, same_household=one)


_IN_HOUSEHOLDS = where(RTYPE="3")
_UNDER_18 = where(QAGE=range(18))
_ADULT = where(QAGE=range(18, 116))
_OWN_CHILD = where(RELSHIP="25 26 27")
_OCCUPIED = where(RTYPE="2", HHT=range(1, 8))
_ANY = where()

TABLES: Final = (
    MeasuredTable("PH1_num", _IN_HOUSEHOLDS, _ANY, {2: _UNDER_18, 3: _ADULT}, "householder"),
    MeasuredTable("PH1_denom", None, _OCCUPIED, {1: _ANY}, "householder"),
    MeasuredTable(
        "PH2",
        _IN_HOUSEHOLDS,
        _ANY,
        {
            3: where(HHT2="01 02", CPLT="1"),  # opposite-sex married couple
            4: where(HHT2="01 02", CPLT="2"),  # same-sex married couple
            6: where(HHT2="03 04", CPLT="3"),  # opposite-sex cohabiting couple
            7: where(HHT2="03 04", CPLT="4"),  # same-sex cohabiting couple
            9: where(HHT2="09"),  # male householder living alone
            10: where(HHT2="10 11 12"),  # male householder living with others
            12: where(HHT2="05"),  # female householder living alone
            13: where(HHT2="06 07 08"),  # female householder living with others
        },
        None,
    ),
    MeasuredTable(
        "PH3",
        _IN_HOUSEHOLDS & _UNDER_18,
        _ANY,
        {
            2: where(RELSHIP="20 21 22 23 24 34 35 36"),  # householder, spouse, unmarried partner or nonrelative
            4: _OWN_CHILD & where(HHT2="01"),  # own child in a married couple family
            5: _OWN_CHILD & where(HHT2="03"),  # ... in a cohabiting couple family
            6: _OWN_CHILD & where(HHT2="10"),  # ... of a male householder without spouse or partner
            7: _OWN_CHILD & where(HHT2="06"),  # ... of a female householder without spouse or partner
            9: where(RELSHIP="30"),  # grandchild
            10: where(RELSHIP="28 29 31 32 33"),  # other relatives
        },
        "person",
    ),
    MeasuredTable(
        "PH4",
        where(RELSHIP="20 21 23 25 26 27 28 29 30 31 32 33"),
        where(HHT=range(4)),
        {2: _UNDER_18, 3: _ADULT},
        "householder",
    ),
    MeasuredTable("PH5_denom", None, where(HHT="1 2 3"), {1: _ANY}, "householder"),
    MeasuredTable(
        "PH6",
        _UNDER_18 & _OWN_CHILD,
        _ANY,
        {
            first + offset: where(HHT2=family, QAGE=ages)
            for first, family in ((3, "01"), (8, "03"), (13, "10"), (18, "06"))  # married, cohabiting, male, female
            for offset, ages in enumerate((range(4), range(4, 6), range(6, 12), range(12, 18)))
        },
        None,
    ),
    MeasuredTable(
        "PH7",
        _IN_HOUSEHOLDS,
        _ANY,
        {2: where(TEN="1"), 3: where(TEN="2"), 4: where(TEN="3 4")},  # mortgage, free and clear, renter
        "householder",
    ),
    MeasuredTable("PH8_denom", None, _OCCUPIED, {2: where(TEN="1 2"), 3: where(TEN="3 4")}, "householder"),
)


_SUMS: Final[dict[str, dict[str, dict[int, tuple[int, ...]]]]] = {
    "PH4": {"PH5_num": {2: (2,), 3: (3,)}},
    "PH7": {"PH8_num": {2: (2, 3), 3: (4,)}},
}
"""By measured table, the tables made from its noisy cells, which cost nothing: what their cells add up."""


def cell_column(table: str) -> str:
    """Name of the column that numbers a table's cells, such as PH1_NUM_DATA_CELL."""
    return f"{table.upper()}_DATA_CELL"


def _family(of: MeasuredTable) -> Family:
    number = {cell: place for place, cell in enumerate(of.cells)}
    alone: dict[int, tuple[int, ...]] = {cell: (cell,) for cell in of.cells}
    published = {of.name: alone, **_SUMS.get(of.name, {})}
    tables = (
        Table(
            name,
            (cell_column(name),),
            tuple(Cell((cell,), tuple(number[part] for part in parts)) for cell, parts in cells.items()),
        )
        for name, cells in published.items()
    )
    keys = ("REGION_ID", "REGION_TYPE", *(["ITERATION_CODE"] if of.iterated_by else []))
    return Family(of.name, keys, (Choice(tuple(number.values()), tuple(tables)),), _NUMBERS)


_NUMBERS: Final = ("COUNT", "NOISE_DISTRIBUTION", "VARIANCE", "MOE")
FAMILIES: Final = tuple(_family(table) for table in TABLES)
DERIVED: Final = tuple(name for family in FAMILIES for name in family.tables if name != family.name)
"""Tables that are made of the measured cells of another."""


def table(name: str) -> MeasuredTable:
    """Find a measured table by name, or raise KeyError."""
    return _BY_NAME[name]


_BY_NAME: Final = {table.name: table for table in TABLES}
