"""What users give, in whatever form they have it, read for the Python interface and the command line."""

import functools
import getpass
import inspect
import json
import math
import os
import tempfile
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from types import NoneType, UnionType
from typing import TYPE_CHECKING, Annotated, Any, Literal, ParamSpec, TypeVar, Union, get_args, get_origin

from yupana.engine.engine import LEAST_MEMORY
from yupana.errors import ConfigError, nearest
from yupana.files.document import Changes, keys_of
from yupana.files.store import scheme_of
from yupana.interface.options import Exact, Place, Places, Values, declared
from yupana.privacy.exact import Budget, read_exact

if TYPE_CHECKING:
    from yupana.privacy.entropy import Entropy
    from yupana.release.release import ReleaseFolder

_P = ParamSpec("_P")
_R = TypeVar("_R")
_T = TypeVar("_T")


def checked(function: Callable[_P, _R]) -> Callable[_P, _R]:
    """Refuse arguments that are not of the types which a function names: switches, choices and plain numbers.

    A text such as "no" would turn a switch on, and a misspelt choice would be another one. What is declared of its
    keywords is told where its docstring says ``{options}``.

    Raises
    ------
    ConfigError
        If an argument is of another type, or none of the choices.
    """
    signature = inspect.signature(function)
    several = {inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD}
    of = {name: one.annotation for name, one in signature.parameters.items() if one.kind not in several}

    @functools.wraps(function)
    def call(*args: _P.args, **named: _P.kwargs) -> _R:
        for name, value in signature.bind(*args, **named).arguments.items():
            if name in of:
                _check(name, value, of[name])
        return function(*args, **named)

    if function.__doc__ and "{options}" in function.__doc__:
        (taken,) = get_args(signature.parameters["options"].annotation)
        told = (f"``{name}``: {option.help}" for name, option in declared(taken).items())
        call.__doc__ = function.__doc__.replace("{options}", "\n        ".join(told))
    return call


def check_fields(value: Any) -> None:  # noqa: ANN401 (a dataclass of options)
    """Refuse a field that is not of its type, as `checked` does.

    Raises
    ------
    ConfigError
    """
    for name, hint in type(value).__annotations__.items():
        _check(name, getattr(value, name), hint)


def _check(name: str, value: object, annotation: object) -> None:
    if get_origin(annotation) is Annotated:
        annotation = get_args(annotation)[0]
    # A choice or nothing is a union of typing's own, before Python 3.14.
    kinds = get_args(annotation) if get_origin(annotation) in {Union, UnionType} else (annotation,)
    if (value is None and NoneType in kinds) or annotation is inspect.Parameter.empty:
        return
    (kind, *others) = [kind for kind in kinds if kind is not NoneType]
    if others:
        return
    if kind in {bool, int, str, float}:
        typed(name, value, kind)
    if get_origin(kind) is Literal:
        one_of(name, value, get_args(kind))


def one_of(name: str, value: object, choices: Sequence[str]) -> Any:  # noqa: ANN401 (a choice)
    """A choice, or a refusal of what is none.

    Raises
    ------
    ConfigError
    """
    if not isinstance(value, str) or value not in choices:
        known = nearest(value, choices) if isinstance(value, str) else ""
        raise ConfigError(f"{name}: must be {' or '.join(map(repr, choices))}{known}")
    return value


def typed(name: str, value: object, kind: type) -> Any:  # noqa: ANN401 (of the type)
    """A value of a plain type, or a refusal of another.

    Raises
    ------
    ConfigError
    """
    fits = isinstance(value, int | float if kind is float else kind) and isinstance(value, bool) is (kind is bool)
    if fits and (not isinstance(value, float) or abs(value) < math.inf):
        return value
    what = {bool: "True or False", int: "a whole number", str: "a text", float: "a finite number"}[kind]
    told = f", and is of type {type(value).__name__}" if kind in {int, str} else ""
    raise ConfigError(f"{name}: must be {what}{told}")


def path_of(name: str, place: object) -> Path:
    """A path as users give it, absolute or from where they are.

    Raises
    ------
    ConfigError
        If it is of another type, no path of any system, or a URL.
    """
    if not isinstance(place, str | Path):
        raise ConfigError(f"{name}: must be a path, and is of type {type(place).__name__}")
    if not str(place):
        raise ConfigError(f"{name}: an empty text names no place")
    if "\0" in str(place):
        raise ConfigError(f"{name}: no path has a character of number 0")
    if scheme := scheme_of(place):
        raise ConfigError(f"{name}: {scheme}://... is no path of this machine; only DATA may lie on a store")
    return Path(place)


def folder_of(release: "ReleaseFolder | Place", name: str = "release") -> Path:
    """Where a release lies."""
    from yupana.release.release import ReleaseFolder

    return release.folder if isinstance(release, ReleaseFolder) else path_of(name, release)


def ask_passphrase(question: str) -> str:
    """What a user types on the terminal, where it is not shown.

    Raises
    ------
    ConfigError
        If there is no terminal.
    """
    try:
        os.close(os.open("/dev/tty", os.O_RDWR | os.O_NOCTTY))
        return getpass.getpass(question)
    except (OSError, EOFError):
        raise ConfigError(
            "key: has a passphrase, and there is no terminal to ask for it; let ssh-keygen sign (docs/signing.md)"
        ) from None


def out_of(out: object, *reads: Place, overwrite: bool | None = None, name: str = "out") -> Path:
    """The absolute path of an output folder, refused before any work if none can be made there.

    Parameters
    ----------
    out
        As `path_of` reads it.
    *reads : path
        What is read for it.
    overwrite : bool, optional
        As of `yupana.release.folder.check_out`.
    name : str
        Of the argument.

    Raises
    ------
    ConfigError
        As of `path_of`.
    OutputError
        If no folder can be made there.
    """
    from yupana.release.folder import check_out

    path = path_of(name, out)
    check_out(path, map(Path, reads), overwrite=overwrite)
    return path.absolute()


def paths_of(name: str, places: Places | None) -> tuple[Path, ...]:
    """One path or several.

    Raises
    ------
    ConfigError
        If something else is given.
    """
    if places is None:
        return ()
    several = [places] if isinstance(places, str | Path) else places
    if not isinstance(several, Sequence):
        raise ConfigError(f"{name}: must be a path or several, and is of type {type(places).__name__}")
    return tuple(path_of(name, place) for place in several)


def bytes_of(memory: int | None) -> int | None:
    """How much memory may be used, in bytes; None where nothing is said.

    Raises
    ------
    ConfigError
        If it is no whole number of a size that machines have, or less than `LEAST_MEMORY`.
    """
    if memory is None:
        return None
    if not 0 < typed("memory", memory, int) < 1 << 60:
        raise ConfigError("memory: must be a number of bytes that a machine has, such as 4_000_000_000")
    if memory < LEAST_MEMORY:
        raise ConfigError(f"memory: {memory:,} bytes are too little: at least {LEAST_MEMORY:,} are needed")
    return memory


def entropy(seed: int | None) -> "Entropy":
    """The operating system's randomness, or that of a seed.

    Raises
    ------
    ConfigError
        If the seed is no whole number, zero or more.
    """
    from yupana.privacy.entropy import SeededEntropy, SystemEntropy

    if seed is None:
        return SystemEntropy()
    if isinstance(seed, bool) or not isinstance(seed, int) or seed < 0:
        raise ConfigError("seed: must be a whole number, zero or more")
    return SeededEntropy(seed)


def exact_number(name: str, value: Exact) -> Budget:
    """A number as it is written.

    Raises
    ------
    ConfigError
        If it is none.
    """
    try:
        return read_exact(str(value))
    except ValueError as error:
        raise ConfigError(f"{name}: {error}") from None


def confidence_of(value: Exact, name: str = "confidence") -> Fraction:
    """A confidence level.

    Raises
    ------
    ConfigError
        If it does not lie between 0 and 1, or doubles do not tell it from these.
    """
    found = exact_number(name, value)
    if not isinstance(found, Fraction) or not Fraction(1, 10**15) <= found <= 1 - Fraction(1, 10**15):
        raise ConfigError(f"{name}: {value} does not lie strictly between 0 and 1")
    return found


def changes_of(values: Values | Changes | None) -> Changes:
    """What is to change in a configuration before it is checked.

    Raises
    ------
    ConfigError
        If it is no mapping of keys.
    """
    if isinstance(values, Changes):
        return values
    try:
        named = [(key, value) for key, value in (values.items() if isinstance(values, Mapping) else values or ())]
        wrong = [key for key, _ in named if not isinstance(key, str) or not all(keys_of(key))]
    except (TypeError, ValueError):
        raise ConfigError('set: give a mapping, such as {"tau.PH2": 10}') from None
    if wrong:
        raise ConfigError(f"set: {wrong[0]!r} is no key, such as 'tau.PH2'")
    return Changes(tuple((key, value if isinstance(value, str) else as_json(key, value)) for key, value in named))


def as_json(name: str, value: object) -> str:
    """A document as JSON, its exact numbers as texts."""
    try:
        return json.dumps(value, default=_written)
    except (TypeError, ValueError, RecursionError) as error:
        raise ConfigError(f"{name}: cannot be written as JSON: {error}") from None


def _written(value: object) -> object:
    """A value of a document that JSON has no form for."""
    if isinstance(value, Fraction | Decimal | Path):
        return str(value)
    if isinstance(value, Mapping):
        return dict(value)
    raise TypeError(f"it holds a value of type {type(value).__name__}")


def from_file(name: str, document: Mapping[str, object], read: Callable[[Path], _T]) -> _T:
    """What a file of a document is read as, whose faults are then told without the file."""
    with tempfile.TemporaryDirectory(prefix="yupana-") as scratch:
        path = Path(scratch) / "document.json"
        path.write_text(as_json(f"{name}: the document", document), encoding="utf-8")
        try:
            return read(path)
        except ConfigError as error:
            raise ConfigError(str(error).replace(f"{path}", name)) from None


def targets_of(targets: Place | Mapping[str, object], read: Callable[[Path], _T]) -> _T:
    """What a strategy or budgets are found for: what is read of a file, or of the same document."""
    if isinstance(targets, Mapping):
        return from_file("targets", targets, read)
    return read(path_of("targets", targets))
