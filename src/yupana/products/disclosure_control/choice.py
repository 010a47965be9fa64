"""Read which methods are compared, and with which parameters: ``cell-key:D=5:V=3:js=2``."""

from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from typing import Any, Final

from yupana.errors import ConfigError, nearest
from yupana.privacy.exact import read_exact
from yupana.products.disclosure_control.cell_key import CellKey
from yupana.products.disclosure_control.method import Method
from yupana.products.disclosure_control.rounding import RandomRounding
from yupana.products.disclosure_control.suppression import Suppression
from yupana.products.disclosure_control.swapping import Swapping

DEFAULT: Final = ("cell-key", "rounding-3", "rounding-5", "swapping", "suppression")

_ROUNDING: Final = "rounding-"

Parameter = tuple[str, Callable[[Any], Any]]

_KINDS: Final[Mapping[str, tuple[Callable[..., Method], Mapping[str, Parameter]]]] = {
    "cell-key": (CellKey, {"D": ("largest", int), "V": ("variance", Fraction), "js": ("gap", int)}),
    "swapping": (Swapping, {"rate": ("rate", Fraction), "k": ("below", int)}),
    "suppression": (Suppression, {"below": ("below", int)}),
}


def read_methods(told: str | Sequence[str]) -> tuple[Method, ...]:
    """Read methods, as texts or one text with commas between them.

    Raises
    ------
    ConfigError
        Naming every fault: an unknown method or parameter, a value that is none, one method twice.
    """
    if not isinstance(told, str | Sequence):
        raise ConfigError(f"methods: must be texts such as {DEFAULT[0]!r}, and is of type {type(told).__name__}")
    texts = told.split(",") if isinstance(told, str) else told
    found: dict[str, Method] = {}
    faults = []
    for text in texts:
        try:
            method = _read(text.strip() if isinstance(text, str) else repr(text))
            if method.name in found:
                faults.append(f"{method.name}: is named twice")
            found[method.name] = method
        except ConfigError as error:
            faults.append(str(error))
    if not texts:
        faults.append(f"name one of {', '.join(DEFAULT)}")
    if faults:
        raise ConfigError("\n  ".join(["methods:", *faults]) if len(faults) > 1 else f"methods: {faults[0]}")
    return tuple(found.values())


def _read(text: str) -> Method:
    name, *pairs = text.split(":")
    if name.startswith(_ROUNDING) and not pairs:
        base = name.removeprefix(_ROUNDING)
        if not (base.isascii() and base.isdecimal() and len(base) < 5):
            raise ConfigError(f"{text}: must be {_ROUNDING} and a base, such as rounding-3")
        return RandomRounding(int(base))
    if name not in _KINDS:
        known = [*_KINDS, f"{_ROUNDING}N"]
        raise ConfigError(f"{text!r} is none of {', '.join(known)}{nearest(name, [*DEFAULT, *known])}")
    make, parameters = _KINDS[name]
    given = {}
    for pair in pairs:
        key, sign, value = pair.partition("=")
        if not sign or key not in parameters:
            raise ConfigError(f"{text}: {pair!r} is none of {', '.join(f'{known}=NUMBER' for known in parameters)}")
        field, kind = parameters[key]
        if field in given:
            raise ConfigError(f"{text}: {key} is given twice")
        given[field] = _number(text, key, value, kind)
    return make(**given)


def _number(text: str, key: str, value: str, kind: Callable[[Any], Any]) -> Fraction | int:
    try:
        number = read_exact(value)
    except ValueError as error:
        raise ConfigError(f"{text}: {key}: {error}") from None
    if not isinstance(number, Fraction) or (kind is int and number.denominator != 1):
        raise ConfigError(f"{text}: {key} must be a {'whole' if kind is int else 'finite'} number")
    return kind(number)  # type: ignore[no-any-return]
