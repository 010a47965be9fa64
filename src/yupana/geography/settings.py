"""How a spine is to be built: geolevels, shares, kind, cut-offs, and the types of AIAN areas that are on it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from fractions import Fraction
from typing import Final, Literal, get_args

from yupana.errors import ConfigError
from yupana.privacy.exact import read_exact, show_exact

NO_AREA: Final = 9999
"""AIANNHCE of a block outside all areas."""

AREA_TYPES: Final = {
    "federal": (1, 4799),
    "joint-use": (4800, 4989),
    "hawaiian-home-land": (5000, 5499),
    "otsa": (5500, 5899),
    "joint-otsa": (5900, 5999),
    "anvsa": (6000, 7999),
    "tdsa": (8000, 8999),
    "state": (9000, 9499),
    "sdtsa": (9500, 9998),
}
"""AIANNHCE codes of each type, first and last: legal areas of federally recognized tribes, joint-use areas, Hawaiian
home lands, Oklahoma tribal statistical areas and their joint-use areas, Alaska Native village statistical areas,
tribal designated statistical areas, legal areas of state-recognized tribes, state designated tribal statistical areas.
"""

PRODUCTION_AREAS: Final = tuple(name for name in AREA_TYPES if name not in {"tdsa", "sdtsa"})
"""On the spine of 2020: all but the two types that no law defines."""

STRONG_MCD_STATES: Final = (9, 23, 25, 26, 27, 33, 34, 36, 42, 44, 50, 55)
"""CT, ME, MA, MI, MN, NH, NJ, NY, PA, RI, VT, WI: minor civil divisions serve as general-purpose governments."""


DIGITS: Final = {"US": 0, "State": 2, "County": 5, "Tract_Group": 9, "Tract": 11, "Block_Group": 12, "Block": 16}
"""The geolevels from the root down, and how many digits of the 16 of a block name a geounit of tabulation geography.
A tract group of tabulation geography is the tracts that share their basic number, the first four digits of six."""

LEVELS: Final = tuple(DIGITS)
ROOT: Final = "US"
DEFAULT_LEVELS: Final = tuple(level for level in LEVELS if level != "Tract_Group")

_OPTIONAL: Final = "Tract_Group"
_ROOTS: Final = (ROOT, "State", "County")


def read_levels(text: str) -> tuple[str, ...]:
    """Read a list of geolevels such as ``US,State,County,Tract,Block_Group,Block``.

    Raises
    ------
    ConfigError
        If a name is unknown or named twice, the order is not from the root down, or a level is missing.
    """
    return check_levels([_level(name, "--levels") for name in text.split(",")])


def check_levels(levels: Sequence[str]) -> tuple[str, ...]:
    """Return the geolevels as a tuple if a spine can have them.

    Raises
    ------
    ConfigError
        As `read_levels`.
    """
    for i, level in enumerate(levels):
        if level not in LEVELS:
            raise ConfigError(f"--levels: {level!r} is no geolevel; there are {', '.join(LEVELS)}")
        if level in levels[:i]:
            raise ConfigError(f"--levels: {level} is named twice")
    if list(levels) != sorted(levels, key=LEVELS.index):
        raise ConfigError(f"--levels: name the geolevels from the root down, in the order {', '.join(LEVELS)}")
    first = min((LEVELS.index(level) for level in levels if level in _ROOTS), default=0)
    missing = [level for level in LEVELS[first:] if level != _OPTIONAL and level not in levels]
    if missing:
        raise ConfigError(
            f"--levels: {', '.join(missing)} is missing; only Tract_Group may be left out, US for a file of one state, "
            "and US and State for a file of one county"
        )
    return tuple(levels)


def read_shares(text: str, levels: Sequence[str]) -> tuple[Fraction, ...]:
    """Read starting shares such as ``us=1/10,state=1/5,...``: one for every geolevel, zero or more, with sum 1.

    Raises
    ------
    ConfigError
        If that is not so.
    """
    shares: dict[str, Fraction] = {}
    for part in text.split(","):
        name, equals, number = part.partition("=")
        if not equals:
            raise ConfigError(f"--shares: {part!r} is not of the form level=p/q")
        level = _level(name, "--shares")
        if level in shares:
            raise ConfigError(f"--shares: {level} is named twice")
        try:
            share = read_exact(number)
        except ValueError as error:
            raise ConfigError(f"--shares: {level}={number.strip()}: {error}") from None
        if not isinstance(share, Fraction):
            raise ConfigError(f"--shares: the share of {level} is infinite; shares are finite and sum to 1")
        shares[level] = share
    return check_shares(shares, levels)


def check_shares(shares: Mapping[str, Fraction], levels: Sequence[str]) -> tuple[Fraction, ...]:
    """Return the shares in the order of the geolevels if a spine can start with them.

    Raises
    ------
    ConfigError
        As `read_shares`.
    """
    if strangers := [level for level in shares if level not in levels]:
        raise ConfigError(f"--shares: {', '.join(strangers)} is not among the levels of the spine, {', '.join(levels)}")
    if missing := [level for level in levels if level not in shares]:
        raise ConfigError(f"--shares: {', '.join(missing)} is missing; every geolevel of the spine needs a share")
    if negative := [level for level in levels if shares[level] < 0]:
        raise ConfigError(f"--shares: the share of {', '.join(negative)} is negative; shares are 0 or more")
    total = sum(shares.values(), Fraction(0))
    if total != 1:
        raise ConfigError(f"--shares: the shares sum to {show_exact(total)}, not to 1")
    return tuple(shares[level] for level in levels)


def equal_shares(levels: Sequence[str]) -> tuple[Fraction, ...]:
    """The same share for every geolevel."""
    return (Fraction(1, len(levels)),) * len(levels)


def _level(name: str, option: str) -> str:
    known = {_plain(level): level for level in LEVELS}
    level = known.get(_plain(name))
    if level is None:
        raise ConfigError(f"{option}: {name.strip()!r} is no geolevel; there are {', '.join(LEVELS)}")
    return level


def _plain(name: str) -> str:
    return name.strip().lower().replace("_", "").replace("-", "").replace(" ", "")


Kind = Literal["conventional", "aian", "optimized", "pieces"]
Mechanism = Literal["zcdp", "pure"]
Grouping = Literal["orig", "even"]

KINDS: Final[tuple[Kind, ...]] = get_args(Kind)
MECHANISMS: Final[tuple[Mechanism, ...]] = get_args(Mechanism)

PIECES: Final = "pieces"
REMADE: Final[tuple[Kind, ...]] = ("optimized", PIECES)
"""Kinds whose block groups are made of classes of blocks, and whose geounits are bypassed."""

_CUTOFF: Final = 12

GROUP_COLUMN: Final = "TABBLKGRPCE"
"""The column of a reference file that tells the block group of a block: as a class it makes pieces, too."""

PLACES: Final = "pme"
AREAS: Final = "aian"
DEFAULT_CLASSES: Final = (PLACES, AREAS)
QUARTERS: Final = "gq"
SCHOOLS: Final = "school"


@dataclass(frozen=True, slots=True)
class SpineSettings:
    """The parameters of a spine."""

    kind: Kind
    mechanism: Mechanism = "zcdp"  # decides which parents are bypassed
    levels: tuple[str, ...] = DEFAULT_LEVELS  # geolevels from the root down
    # the share of the budget each starts with; they sum to 1
    shares: tuple[Fraction, ...] = equal_shares(DEFAULT_LEVELS)
    # F in the caps int(sqrt(n) + F) + 1 of a block group's blocks and a tract group's tracts. If it is not given it is
    # 12, and pieces have no cap.
    fanout_cutoff: int | None = None
    entity_threshold: int = 9  # only entities farther than this are considered when tracts are grouped
    # a parent with several children is bypassed only if the unit above it then has at most so many
    bypass_cutoff: int = 150
    grouping: Grouping = "orig"  # how what exceeds a cap is cut: full chunks, or chunks of nearly equal size
    # which entities block groups that are made anew do not cross: "pme", "aian", "gq", "school" or a column of the
    # reference file. Pieces do not cross tabulation block groups either.
    classes: tuple[str, ...] = DEFAULT_CLASSES
    aian_areas: tuple[str, ...] = PRODUCTION_AREAS  # types of areas on the spine, keys of `AREA_TYPES`
    # FIPS codes of states where county subdivisions take the part of places
    strong_mcd_states: tuple[int, ...] = STRONG_MCD_STATES
    live: bool = False  # only blocks with a housing unit or group quarters
    unbypassed: tuple[str, ...] = ()  # geolevels whose units are never bypassed

    def __post_init__(self) -> None:
        if self.fanout_cutoff is None and self.kind != PIECES:
            object.__setattr__(self, "fanout_cutoff", _CUTOFF)

    def of_kind(self, kind: Kind) -> "SpineSettings":
        """The same of another kind, with the cut-off that it has if none is given."""
        return replace(self, kind=kind, fanout_cutoff=None)

    def as_json(self) -> dict[str, object]:
        """Settings as the manifest tells them: by the names of the options."""
        told = {of.name: getattr(self, of.name) for of in fields(self) if of.name != "unbypassed"}
        told |= {name: list(value) for name, value in told.items() if isinstance(value, tuple)}
        told["shares"] = {level: show_exact(share) for level, share in zip(self.levels, self.shares, strict=True)}
        return told | {"strong_mcd_states": [f"{state:02d}" for state in self.strong_mcd_states]}

    @property
    def may_cut_pieces(self) -> bool:
        """Whether block groups are made within those of tabulation geography, and a cap may cut them."""
        within = self.kind == PIECES or GROUP_COLUMN in map(str.upper, self.classes)
        return self.kind in REMADE and within and self.fanout_cutoff is not None

    @property
    def tract_cutoff(self) -> int:
        """F in the cap of a tract group's tracts."""
        return _CUTOFF if self.fanout_cutoff is None else self.fanout_cutoff


PRODUCTIONS: Final = ("pl94-2020",)

_UNITED_STATES: Final = {"US": 104, "State": 1440, "County": 447, "Tract": 687, "Block_Group": 1256, "Block": 165}
_PUERTO_RICO: Final = {"State": 689, "County": 695, "Tract": 772, "Block_Group": 1778, "Block": 165}
_OF: Final = 4099


def production_settings(*, puerto_rico: bool) -> SpineSettings:
    """Give the settings of PL 94-171, persons, in 2020: no tract groups, and only children are bypassed."""
    shares = _PUERTO_RICO if puerto_rico else _UNITED_STATES
    return SpineSettings(
        "optimized",
        levels=tuple(shares),
        shares=tuple(Fraction(share, _OF) for share in shares.values()),
        classes=(PLACES, AREAS, QUARTERS),
    )
