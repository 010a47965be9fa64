"""What the configurations of several products say alike, and what their reports of accuracy do. Public."""

from fractions import Fraction
from typing import Any, Final

import numpy as np

from yupana.arrays import Ints
from yupana.files.document import Number
from yupana.plan.measurement import Mechanism
from yupana.privacy.exact import Budget, show_exact

MECHANISMS: Final = {"zcdp": Mechanism.ZCDP, "puredp": Mechanism.PURE}
"""Mechanism by its name under "privacy_defn"."""

STATES: Final = tuple(f"{code:02}" for code in range(1, 57) if code not in {3, 7, 14, 43, 52})
"""FIPS codes of the fifty states and the District of Columbia."""


def check_reader(document: dict[str, Any], faults: list[str]) -> None:
    """Check the key "reader"; the data folder's files decide, whatever it says."""
    if document.get("reader", "csv") not in ("csv", "cef"):
        faults.append("reader: must be 'csv' or 'cef'")


def read_mechanism(document: dict[str, Any], faults: list[str]) -> Mechanism | None:
    """The mechanism under "privacy_defn"."""
    definition = document.get("privacy_defn", "zcdp")
    mechanism = MECHANISMS.get(definition) if isinstance(definition, str) else None
    if mechanism is None:
        faults.append("privacy_defn: must be 'zcdp' or 'puredp'")
    return mechanism


def read_states(place: str, value: object, allowed: tuple[str, ...], faults: list[str]) -> tuple[str, ...]:
    """A list of distinct state codes among those allowed."""
    if not isinstance(value, list) or not value:
        faults.append(f'{place}: must be a list of state codes, such as ["06", "17"]')
        return ()
    states: list[str] = []
    for code in value:
        if not isinstance(code, str) or isinstance(code, Number):
            faults.append(f'{place}: codes are texts of two digits, such as "06"')
        elif code not in allowed:
            faults.append(f"{place}: {code!r} is no state code")
        elif code in states:
            faults.append(f"{place}: {code!r} is given twice")
        else:
            states.append(code)
    return tuple(states)


def exact_number(budget: Budget) -> float | str:
    """A budget as a configuration writes it: a number where its decimal is exact, else ``p/q`` or ``Infinity``."""
    if not isinstance(budget, Fraction):
        return show_exact(budget)
    shortest = float(budget)
    return shortest if Fraction(repr(shortest)) == budget else show_exact(budget)


def observed_margin(errors: Ints, confidence: float) -> int:
    """The smallest whole number that so large a part of the errors do not pass: the definition of an exact margin."""
    return int(np.quantile(np.abs(errors), confidence, method="inverted_cdf"))
