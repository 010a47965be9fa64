"""What a manifest is: the shape of its keys, checked in one place for all who read one. Public; docs/manifest.md."""

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path, PurePosixPath
from typing import Any, Final

from yupana.errors import OutputError, is_line
from yupana.files.document import is_deeper
from yupana.plan.plan import read_plan

MANIFEST: Final = "manifest.json"
"""The name of the file."""

STATEMENT: Final = "signed.txt"
SIGNATURE: Final = f"{STATEMENT}.sig"
OF_MANIFEST: Final = f"{MANIFEST}.sig"
"""What signs a release (docs/signing.md), and so is in no manifest: a statement, its signature, one of the manifest."""

SIGNATURES: Final = frozenset({STATEMENT, SIGNATURE, OF_MANIFEST})

_LONGEST_NAME: Final = 255
"""Bytes in the name of a file."""

_MOST_TOLD: Final = 10

Check = Callable[[str, object], Iterator[str]]
"""Names what is wrong with a value at a place."""


def check_shape(path: Path, manifest: object) -> dict[str, Any]:
    """Return a manifest that was read, so that whoever reads on finds what docs/manifest.md says, and nothing else.

    Parameters
    ----------
    path : Path
        For messages.
    manifest : object
        As JSON has it.

    Raises
    ------
    OutputError
        If it is no manifest of ours; up to ten faults are named.
    """
    if not isinstance(manifest, dict) or "yupana" not in manifest:
        raise OutputError(f"{path} is not the manifest of a release of yupana")
    if is_deeper(manifest):
        raise OutputError(f"{path} is not a manifest: nested too deeply")
    if wrong := list(_MANIFEST("", manifest)):
        more = [f"and {len(wrong) - _MOST_TOLD} more"] if len(wrong) > _MOST_TOLD else []
        lines = [f"{path} is not a manifest that yupana wrote:", *wrong[:_MOST_TOLD], *more]
        raise OutputError("\n  ".join(lines))
    return manifest


def _at(place: str, key: str) -> str:
    return f"{place}.{key}" if place else key


def _must_be(words: str, fits: Callable[[object], bool]) -> Check:
    """A check of one value, and in words what it must be."""

    def check(place: str, value: object) -> Iterator[str]:
        if not fits(value):
            yield f"{place} must be {words}"

    return check


def _or_null(check: Check, place: str, value: object) -> Iterator[str]:
    """A check that null passes, too."""
    if value is not None:
        yield from check(place, value)


# What a terminal would obey is no text; neither is half of a character.
_TEXT: Final = _must_be("a text of one line", lambda value: isinstance(value, str) and is_line(value))
_NATURAL: Final = _must_be("a whole number, 0 or more", lambda value: type(value) is int and value >= 0)
_WHOLE: Final = _must_be("a whole number, 0 or more", lambda value: type(value) is int and 0 <= value < 1 << 63)
_NUMBER: Final = _must_be("a number", lambda value: type(value) in {int, float})
_FLAG: Final = _must_be("true or false", lambda value: isinstance(value, bool))


def _anything(_place: str, _value: object) -> Iterator[str]:
    yield from ()


def _list(item: Check, place: str, value: object) -> Iterator[str]:
    if not isinstance(value, list):
        yield f"{place} must be a list"
        return
    for number, one in enumerate(value):
        yield from item(f"{place}[{number}]", one)


def _table(item: Check, place: str, value: object, *, names: Check = _TEXT) -> Iterator[str]:
    """An object whose keys are names."""
    if not isinstance(value, dict):
        yield f"{place} must be an object"
        return
    for key, one in value.items():
        if any(names(place, key)):
            yield f"{place} has the key {key!a}, which is no {'name of a file' if names is _file_name else 'name'}"
        else:
            yield from item(_at(place, key), one)


def _object(required: Mapping[str, Check], optional: Mapping[str, Check], place: str, value: object) -> Iterator[str]:
    """An object with keys of a known kind, and any others."""
    if not isinstance(value, dict):
        yield f"{place or 'the manifest'} must be an object"
        return
    yield from (f"{_at(place, key)} is missing" for key in required if key not in value)
    for key, check in {**required, **optional}.items():
        if key in value:
            yield from check(_at(place, key), value[key])


def _file_name(place: str, value: object) -> Iterator[str]:
    """A path within the folder, as a manifest writes it."""
    wrong = f"{place} must be the path of a file within the folder"
    if not isinstance(value, str) or not value or not is_line(value):
        yield wrong
        return
    path = PurePosixPath(value)
    if (
        path.is_absolute()
        or path.as_posix() != value
        or {"..", "."} & set(path.parts)
        or value in {MANIFEST, *SIGNATURES}
        or max(len(part.encode()) for part in path.parts) > _LONGEST_NAME
        or len(value.encode()) > _LONGEST_NAME * 4
    ):
        yield wrong


def _folder_name(place: str, value: object) -> Iterator[str]:
    """A folder beside the manifest."""
    yield from _file_name(place, value)
    if "/" in str(value):
        yield f"{place} must be the name of a folder"


def _plan(place: str, value: object) -> Iterator[str]:
    """A plan; of one that lists no measurements only the kinds of its values, and whoever needs them refuses it."""
    if isinstance(value, dict) and "measurements" not in value:
        yield from _object({}, {"confidence": _NUMBER, "mechanism": _TEXT}, place, value)
        return
    try:
        read_plan(value)
    except ValueError as error:
        yield f"{place} is no plan: {error}"


_TEXTS: Final = partial(_list, _TEXT)
_FILES: Final[Check] = partial(_table, _TEXT, names=_file_name)
_DESCRIBED: Final = partial(_object, {"sha256": _TEXT}, {"table": _TEXT, "rows": _WHOLE, "columns": _TEXTS})
_PARAMETERS: Final = partial(
    _object,
    {},
    {
        "states": _TEXTS,
        "state_filter": _TEXTS,
        "passes": _TEXTS,
        "tau": partial(_table, _WHOLE),
        "schema": partial(_table, _TEXTS),
        "invariants": partial(_table, _TEXTS),
        "geolevels": _TEXTS,
        "spine": _TEXT,
        "estimator": _TEXT,
        "intervals": partial(_object, {"method": _TEXT}, {"confidence": _TEXT, "replicates": _NATURAL}),
        "zero_suppression_chance": _TEXT,
    },
)
_POSTPROCESSED: Final = partial(_object, {"rule": _TEXT}, {"source_manifest_sha256": _TEXT, "public_inputs": _FILES})
_SETTINGS: Final = partial(
    _object,
    {},
    {
        **dict.fromkeys(("kind", "mechanism", "grouping"), _TEXT),
        "fanout_cutoff": partial(_or_null, _NATURAL),
        **dict.fromkeys(("entity_threshold", "bypass_cutoff"), _NATURAL),
        **dict.fromkeys(("levels", "classes", "aian_areas", "strong_mcd_states"), _TEXTS),
        "shares": partial(_table, _TEXT),
        "live": _FLAG,
    },
)
_SOURCE: Final = partial(_object, {"manifest_sha256": _TEXT, "plan": _plan, "states": _TEXTS}, {"created": _TEXT})

_PART: Final = partial(_object, {"manifest_sha256": _TEXT}, {"plan": _plan})

_NODE: Final = partial(_object, {"geolevel": _TEXT, "geounit": _TEXT, "v": _NUMBER}, {})
_SOLVERS: Final = partial(_table, partial(_table, _WHOLE))
_TEST: Final = partial(
    _object,
    {"rows": _WHOLE, "trials": _WHOLE, "holds": partial(_or_null, _FLAG), "value": partial(_or_null, _NUMBER)},
    {},
)

_LEFT_OUT: Final = partial(
    _object, {**dict.fromkeys(("table", "of", "values", "because"), _TEXT), "levels": _TEXTS}, {}
)

_CRITERION: Final = partial(
    _object,
    {
        **dict.fromkeys(("says", "error"), _TEXT),
        "predicted": partial(_object, {"holds": _FLAG, "promised": _TEXT, "promised_float": _NUMBER}, {}),
    },
    {"tested": _TEST},
)

_MANIFEST: Final = partial(
    _object,
    {"yupana": _TEXT},
    {
        **dict.fromkeys(("product", "status", "system", "created", "confidence", "method", "combination"), _TEXT),
        **dict.fromkeys(("reasons", "remarks", "taken_as_public"), _TEXTS),
        "tables": partial(_table, _DESCRIBED, names=_file_name),
        "reports": partial(_table, _DESCRIBED, names=_file_name),
        "plan": _plan,
        "tested_plan": _plan,
        "criteria": partial(_table, _CRITERION),
        "parameters": _PARAMETERS,
        "configuration": partial(_table, _anything),
        "options": partial(_table, _TEXT),
        "public_inputs": _FILES,
        "versions": partial(_table, _TEXT),
        "postprocessing": partial(_list, _POSTPROCESSED),
        "sources": partial(_list, _SOURCE),
        "parts": partial(_table, _PART, names=_folder_name),
        "settings": _SETTINGS,
        "left_out": partial(_list, _LEFT_OUT),
        "failsafe": partial(_list, _NODE),
        "solvers": _SOLVERS,
        "posterior": partial(_table, _anything),
        "ledger": partial(_object, {"charged": _TEXTS, "spent": _TEXT}, {}),
        "geolevels": partial(_table, partial(_object, {"units": _WHOLE, "bypassed": _WHOLE}, {})),
    },
)
