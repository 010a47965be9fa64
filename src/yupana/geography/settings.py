"""What a spine is made with: every parameter of the spines paper and of the 2020 code, and the settings of 2020."""

from dataclasses import dataclass
from fractions import Fraction
from typing import Final, Literal, get_args

from yupana.geography.areas import PRODUCTION_AREAS, STRONG_MCD_STATES
from yupana.geography.levels import DEFAULT_LEVELS, equal_shares

Kind = Literal["conventional", "aian", "optimized"]
Mechanism = Literal["zcdp", "pure"]
Grouping = Literal["orig", "even"]

KINDS: Final[tuple[Kind, ...]] = get_args(Kind)
MECHANISMS: Final[tuple[Mechanism, ...]] = get_args(Mechanism)
GROUPINGS: Final[tuple[Grouping, ...]] = get_args(Grouping)

PLACES: Final = "pme"
AREAS: Final = "aian"
QUARTERS: Final = "gq"
SCHOOLS: Final = "school"


@dataclass(frozen=True, slots=True)
class Settings:
    """The parameters of a spine.

    Attributes
    ----------
    kind : "conventional", "aian" or "optimized"
    mechanism : "zcdp" or "pure"
        Decides which parents are bypassed.
    levels : tuple of str
        Geolevels from the root down.
    shares : tuple of Fraction
        The share of the budget each starts with; they sum to 1.
    fanout_cutoff : int
        F in the caps int(sqrt(n) + F) + 1 of an optimized block group's blocks and a tract group's tracts.
    entity_threshold : int
        Only entities farther than this are considered when tracts are grouped.
    bypass_cutoff : int
        A parent with several children is bypassed only if the unit above it then has at most so many.
    grouping : "orig" or "even"
        How what exceeds a cap is cut: full chunks, or chunks of nearly equal size.
    classes : tuple of str
        Which entities block groups do not cross: "pme", "aian", "gq", "school" or a column of the reference file.
    aian_areas : tuple of str
        Types of areas on the spine, keys of `AREA_TYPES`.
    strong_mcd_states : tuple of int
        FIPS codes of states where county subdivisions take the part of places.
    live : bool
        Only blocks with a housing unit or group quarters.
    unbypassed : tuple of str
        Geolevels whose units are never bypassed.
    """

    kind: Kind
    mechanism: Mechanism = "zcdp"
    levels: tuple[str, ...] = DEFAULT_LEVELS
    shares: tuple[Fraction, ...] = equal_shares(DEFAULT_LEVELS)
    fanout_cutoff: int = 12
    entity_threshold: int = 9
    bypass_cutoff: int = 150
    grouping: Grouping = "orig"
    classes: tuple[str, ...] = (PLACES, AREAS)
    aian_areas: tuple[str, ...] = PRODUCTION_AREAS
    strong_mcd_states: tuple[int, ...] = STRONG_MCD_STATES
    live: bool = False
    unbypassed: tuple[str, ...] = ()


PRODUCTIONS: Final = ("pl94-2020",)

_UNITED_STATES: Final = {"US": 104, "State": 1440, "County": 447, "Tract": 687, "Block_Group": 1256, "Block": 165}
_PUERTO_RICO: Final = {"State": 689, "County": 695, "Tract": 772, "Block_Group": 1778, "Block": 165}
_OF: Final = 4099


def production_settings(*, puerto_rico: bool) -> Settings:
    """Give the settings of PL 94-171, persons, in 2020: no tract groups, and only children are bypassed."""
    shares = _PUERTO_RICO if puerto_rico else _UNITED_STATES
    return Settings(
        "optimized",
        levels=tuple(shares),
        shares=tuple(Fraction(share, _OF) for share in shares.values()),
        classes=(PLACES, AREAS, QUARTERS),
    )
