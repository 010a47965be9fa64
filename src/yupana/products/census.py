"""What the configurations of several products say alike, and what their reports of accuracy do. Public."""

from fractions import Fraction
from typing import Final

import numpy as np

from yupana.arrays import Ints
from yupana.files.declaration import Expected, choice, list_of, scalar
from yupana.files.document import Number
from yupana.plan.measurement import Mechanism
from yupana.privacy.exact import Budget, show_exact

MECHANISMS: Final = {"zcdp": Mechanism.ZCDP, "puredp": Mechanism.PURE}
"""Mechanism by its name under "privacy_defn"."""

STATES: Final = tuple(f"{code:02}" for code in range(1, 57) if code not in {3, 7, 14, 43, 52})
"""FIPS codes of the fifty states and the District of Columbia."""

READER: Final = choice("csv", "cef").said("kept for the Census Bureau's files; the data folder decides")
MECHANISM: Final[Expected[Mechanism]] = (
    choice(*MECHANISMS)
    .made(lambda _, name, __: MECHANISMS[name])
    .said("zcdp: discrete Gaussian noise, budgets are rho; puredp: geometric noise, budgets are epsilon")
)


def states(*allowed: str) -> Expected[tuple[str, ...]]:
    """A list of distinct state codes among those allowed."""

    def take(code: object) -> str | None:
        if not isinstance(code, str) or isinstance(code, Number):
            return None
        if code not in allowed:
            raise ValueError(f"{code!r} is no state code")
        return code

    def check(place: str, codes: tuple[str, ...], faults: list[str]) -> None:
        faults += [f"{place}: {code!r} is given twice" for code in dict.fromkeys(codes) if codes.count(code) > 1]

    words = 'a state code; these are texts of two digits, such as "06"'
    code = scalar(words, take, {"type": "string", "enum": list(allowed)})
    return list_of(code, 'a list of state codes, such as ["06", "17"]', each=True).checked(check, uniqueItems=True)


def exact_number(budget: Budget) -> float | str:
    """A budget as a configuration writes it: a number where its decimal is exact, else ``p/q`` or ``Infinity``."""
    if not isinstance(budget, Fraction):
        return show_exact(budget)
    shortest = float(budget)
    return shortest if Fraction(repr(shortest)) == budget else show_exact(budget)


def observed_margin(errors: Ints, confidence: float) -> int:
    """The smallest whole number that so large a part of the errors do not pass: the definition of an exact margin."""
    return int(np.quantile(np.abs(errors), confidence, method="inverted_cdf"))
