"""What a manifest is: the shape of its keys, checked in one place for all who read one. Public; docs/manifest.md."""

from collections.abc import Callable, Mapping
from pathlib import Path, PurePosixPath
from typing import Any, Final

from yupana.errors import OutputError, is_line
from yupana.files.declaration import FLAG, UNREAD, Expected, keyed, list_of, scalar, table_of
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
    wrong: list[str] = []
    _MANIFEST.read("", manifest, wrong)
    if wrong:
        more = [f"and {len(wrong) - _MOST_TOLD} more"] if len(wrong) > _MOST_TOLD else []
        lines = [f"{path} is not a manifest that yupana wrote:", *wrong[:_MOST_TOLD], *more]
        raise OutputError("\n  ".join(lines))
    return manifest


def _is_file_name(told: object) -> bool:
    """Whether a value is a path within the folder, as a manifest writes it."""
    if not isinstance(told, str) or not told or not is_line(told):
        return False
    path = PurePosixPath(told)
    return not (
        path.is_absolute()
        or path.as_posix() != told
        or {"..", "."} & set(path.parts)
        or told in {MANIFEST, *SIGNATURES}
        or max(len(part.encode()) for part in path.parts) > _LONGEST_NAME
        or len(told.encode()) > _LONGEST_NAME * 4
    )


def _one(words: str, fits: Callable[[object], bool]) -> Expected[Any]:
    return scalar(words, lambda told: told if fits(told) else None, {})


# What a terminal would obey is no text; neither is half of a character.
_TEXT: Final = _one("a text of one line", lambda told: isinstance(told, str) and is_line(told))
_NATURAL: Final = _one("a whole number, 0 or more", lambda told: type(told) is int and told >= 0)
_WHOLE: Final = _one("a whole number, 0 or more", lambda told: type(told) is int and 0 <= told < 1 << 63)
_NUMBER: Final = _one("a number", lambda told: type(told) in {int, float})
_FILE_NAME: Final = _one("the path of a file within the folder", _is_file_name)
_FOLDER_NAME: Final = _one("the name of a folder", lambda told: _is_file_name(told) and "/" not in str(told))


def _or_null(kind: Expected[Any]) -> Expected[Any]:
    null: Expected[Any] = Expected("null", {}, lambda _, __, ___: None, lambda told: told is None)
    return null | kind


def _list(item: Expected[Any]) -> Expected[Any]:
    return list_of(item, "a list", each=True, least=0)


def _table(item: Expected[Any], name: Expected[str] = _TEXT) -> Expected[Any]:
    return table_of(item, "an object", name=name)


def _object(required: Mapping[str, Expected[Any]], optional: Mapping[str, Expected[Any]]) -> Expected[Any]:
    """An object with keys of a known kind, and any others."""
    return keyed({**required, **optional}, optional=optional, words="an object", others=True)


_UNLISTED: Final = _object({}, {"confidence": _NUMBER, "mechanism": _TEXT})
"""A plan that lists no measurements: only the kinds of its values are checked, and whoever needs them refuses it."""


def _read_plan(place: str, value: object, faults: list[str]) -> None:
    if isinstance(value, dict) and "measurements" not in value:
        _UNLISTED.read(place, value, faults)
        return
    try:
        read_plan(value)
    except ValueError as error:
        faults.append(f"{place}: is no plan: {error}")


_PLAN: Final[Expected[Any]] = Expected("a plan", {}, _read_plan, lambda _: True)

_TEXTS: Final = _list(_TEXT)
_FILES: Final = _table(_TEXT, _FILE_NAME)
_DESCRIBED: Final = _object({"sha256": _TEXT}, {"table": _TEXT, "rows": _WHOLE, "columns": _TEXTS})
_PARAMETERS: Final = _object(
    {},
    {
        "states": _TEXTS,
        "state_filter": _TEXTS,
        "passes": _TEXTS,
        "tau": _table(_WHOLE),
        "schema": _table(_TEXTS),
        "invariants": _table(_TEXTS),
        "geolevels": _TEXTS,
        "spine": _TEXT,
        "estimator": _TEXT,
        "intervals": _object({"method": _TEXT}, {"confidence": _TEXT, "replicates": _NATURAL}),
        "zero_suppression_chance": _TEXT,
    },
)
_POSTPROCESSED: Final = _object({"rule": _TEXT}, {"source_manifest_sha256": _TEXT, "public_inputs": _FILES})
_SETTINGS: Final = _object(
    {},
    {
        **dict.fromkeys(("kind", "mechanism", "grouping"), _TEXT),
        "fanout_cutoff": _or_null(_NATURAL),
        **dict.fromkeys(("entity_threshold", "bypass_cutoff"), _NATURAL),
        **dict.fromkeys(("levels", "classes", "aian_areas", "strong_mcd_states"), _TEXTS),
        "shares": _table(_TEXT),
        "live": FLAG,
    },
)
_SOURCE: Final = _object({"manifest_sha256": _TEXT, "plan": _PLAN, "states": _TEXTS}, {"created": _TEXT})

_PART: Final = _object({"manifest_sha256": _TEXT}, {"plan": _PLAN})

_NODE: Final = _object({"geolevel": _TEXT, "geounit": _TEXT, "v": _NUMBER}, {})
_SOLVERS: Final = _table(_table(_WHOLE))
_TEST: Final = _object(
    {"rows": _WHOLE, "trials": _WHOLE, "holds": _or_null(FLAG), "value": _or_null(_NUMBER)},
    {},
)

_LEFT_OUT: Final = _object({**dict.fromkeys(("table", "of", "values", "because"), _TEXT), "levels": _TEXTS}, {})

_CRITERION: Final = _object(
    {
        **dict.fromkeys(("says", "error"), _TEXT),
        "predicted": _object({"holds": FLAG, "promised": _TEXT, "promised_float": _NUMBER}, {}),
    },
    {"tested": _TEST},
)

_MANIFEST: Final = _object(
    {"yupana": _TEXT},
    {
        **dict.fromkeys(("product", "status", "system", "created", "confidence", "method", "combination"), _TEXT),
        **dict.fromkeys(("reasons", "remarks", "taken_as_public"), _TEXTS),
        "tables": _table(_DESCRIBED, _FILE_NAME),
        "reports": _table(_DESCRIBED, _FILE_NAME),
        "plan": _PLAN,
        "tested_plan": _PLAN,
        "criteria": _table(_CRITERION),
        "parameters": _PARAMETERS,
        "configuration": _table(UNREAD),
        "options": _table(_TEXT),
        "public_inputs": _FILES,
        "versions": _table(_TEXT),
        "postprocessing": _list(_POSTPROCESSED),
        "sources": _list(_SOURCE),
        "parts": _table(_PART, _FOLDER_NAME),
        "settings": _SETTINGS,
        "left_out": _list(_LEFT_OUT),
        "failsafe": _list(_NODE),
        "solvers": _SOLVERS,
        "posterior": _table(UNREAD),
        "ledger": _object({"charged": _TEXTS, "spent": _TEXT}, {}),
        "geolevels": _table(_object({"units": _WHOLE, "bypassed": _WHOLE}, {})),
    },
)
