"""The options of a spine in a configuration: those of ``spine build``, but for geolevels and shares. Public."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any, Final

from yupana.files.codes import read_pairs
from yupana.files.document import Number, check_keys, read_table
from yupana.geography.areas import AREA_TYPES
from yupana.geography.hierarchy import Hierarchy, check_level_names, hierarchy_of
from yupana.geography.settings import AREAS, KINDS, PLACES, PRODUCTIONS, QUARTERS, SCHOOLS, SpineSettings
from yupana.plan.measurement import Mechanism

_CLASSES: Final = (PLACES, AREAS, QUARTERS, SCHOOLS)


def read_spine(
    value: object, shares: Mapping[str, Fraction] | None, mechanism: Mechanism, faults: list[str]
) -> SpineSettings | None:
    """Read the table "spine"; None if it has a fault, or there are no geolevels.

    Parameters
    ----------
    value : object
        As read: keys are the options' names, with ``_`` or ``-``.
    shares : mapping of geolevel to Fraction, or None
        From the root down.
    mechanism : Mechanism
        Of the budget, which decides what is bypassed.
    faults : list of str
        Faults found are added.
    """
    if not isinstance(value, dict):
        faults.append("spine: must be a table of the options of `spine build`")
        return None
    options = {key.replace("-", "_"): option for key, option in value.items()}
    before = len(faults)
    check_keys("spine", options, (), faults, optional=("production", *_READERS))
    changes: dict[str, Any] = {}
    if "production" in options:
        if options["production"] not in PRODUCTIONS:
            faults.append(f"spine.production: must be {' or '.join(map(repr, PRODUCTIONS))}")
        changes |= {"kind": "optimized", "classes": (PLACES, AREAS, QUARTERS)}
    for key, option in options.items():
        if key in _READERS:
            changes[key] = _READERS[key](f"spine.{key}", option, faults)
    if shares is None or len(faults) > before:
        return None
    kind = changes.pop("kind", "conventional")
    settings = SpineSettings(kind, mechanism.value, tuple(shares), tuple(shares.values()))
    return replace(settings, **changes)


def _choice(*choices: str) -> Callable[[str, object, list[str]], str]:
    def read(place: str, value: object, faults: list[str]) -> str:
        if value in choices:
            return str(value)
        faults.append(f"{place}: must be {' or '.join(map(repr, choices))}")
        return choices[0]

    return read


def _whole(place: str, value: object, faults: list[str]) -> int:
    if isinstance(value, Number) and value.isdecimal() and len(value) <= 9:
        return int(value)
    faults.append(f"{place}: must be a whole number, zero or more")
    return 0


def _flag(place: str, value: object, faults: list[str]) -> bool:
    if not isinstance(value, bool):
        faults.append(f"{place}: must be true or false")
    return value is True


def _names(place: str, value: object, faults: list[str]) -> tuple[str, ...]:
    """A list of names, or a text as on the command line: names separated by commas, or none."""
    if isinstance(value, str) and not isinstance(value, Number):
        value = [] if value.strip() == "none" else [name.strip() for name in value.split(",")]
    if not isinstance(value, list) or not all(isinstance(n, str) and n and not isinstance(n, Number) for n in value):
        faults.append(f"{place}: must be a list of names")
        return ()
    lower = [name.lower() for name in value]
    faults += [f"{place}: {name} is named twice" for i, name in enumerate(value) if name.lower() in lower[:i]]
    return tuple(value)


def _classes(place: str, value: object, faults: list[str]) -> tuple[str, ...]:
    known = {name.lower(): name for name in _CLASSES}
    return tuple(known.get(name.lower(), name) for name in _names(place, value, faults))


def _areas(place: str, value: object, faults: list[str]) -> tuple[str, ...]:
    areas = tuple(name.lower() for name in _names(place, value, faults))
    known = ", ".join(AREA_TYPES)
    faults += [f"{place}: {n!r} is no type of area; there are {known}" for n in areas if n not in AREA_TYPES]
    return areas


def _states(place: str, value: object, faults: list[str]) -> tuple[int, ...]:
    states = _names(place, value, faults)
    wrong = [name for name in states if not (name.isascii() and name.isdecimal() and len(name) == 2)]
    faults += [f"{place}: {name!r} is no FIPS code of two digits" for name in wrong]
    return () if wrong else tuple(map(int, states))


_READERS: Final[Mapping[str, Callable[[str, object, list[str]], object]]] = {
    "kind": _choice(*KINDS),
    "fanout_cutoff": _whole,
    "entity_threshold": _whole,
    "bypass_cutoff": _whole,
    "grouping": _choice("orig", "even"),
    "classes": _classes,
    "aian_areas": _areas,
    "strong_mcd_states": _states,
    "live": _flag,
}


def read_areas(
    document: dict[str, Any], folder: Path, faults: list[str]
) -> tuple[tuple[str, ...] | None, Hierarchy | None]:
    """The geolevels and the hierarchy of the table "areas"; None of either that is not there or in doubt.

    Parameters
    ----------
    document : dict
        The configuration, for what cannot stand beside areas.
    folder : Path
        Which a file of units is relative to.
    faults : list of str
        Faults found are added.
    """
    if "areas" not in document:
        return None, None
    if "spine" in document:
        faults.append("spine: is built of the Census Bureau's blocks, and areas says what the spine is; leave one out")
    constraints = document.get("constraints")
    if isinstance(constraints, dict) and "group_quarters" in constraints:
        faults.append("constraints.group_quarters: reads facilities of the Census Bureau's blocks; areas have none")
    table = read_table("areas", document["areas"], faults)
    check_keys("areas", table, ("levels", "of"), faults)
    if not {"levels", "of"} <= table.keys():
        return None, None
    before = len(faults)
    levels = table["levels"]
    if not isinstance(levels, list) or not levels:
        faults.append("areas.levels: must be a list of geolevels from the root down, the last those of the blocks")
        return None, None
    check_level_names("areas.levels", levels, faults)
    if len(faults) > before:
        return None, None
    pairs = read_pairs("areas.of", table["of"], folder, faults)
    if len(faults) > before:
        return tuple(levels), None
    return tuple(levels), hierarchy_of("areas.of", levels, pairs, faults)
