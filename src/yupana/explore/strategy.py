"""What counts: weights of answers and levels, typed into the page, for which a product finds budgets."""

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from math import log
from typing import Any, Final

from yupana.explore.form import Chosen, ProductPage, choice
from yupana.explore.scenario import LONGEST, Fault, Filled, RefusedError
from yupana.privacy.exact import read_exact
from yupana.products.strategy import Joined
from yupana.report.page import Section

LOSSES: Final[Mapping[Joined, str]] = {
    "sum": "weighted sum of variances",
    "max": "largest weighted variance",
    "ratio": "largest, over what it is now",
}
KEPT: Final = "kept"
SHARES: Final = {KEPT: "stay as they are", "found": "are found, too, by weight"}

STOPS: Final = ("0", "1/1000", "1/300", "1/100", "1/30", "1/10", "1/3", "1", "3", "10", "30", "100", "300", "1000")
"""The weights at which a slider stops."""

_SMALLEST: Final = Fraction(1, 10**6)


@dataclass(frozen=True, slots=True)
class StrategyForm:
    """What can be weighed.

    Attributes
    ----------
    answers : mapping of key to note
    levels : mapping of key to label
    shares : mapping of key to words
        Those of `SHARES` that make sense.
    least : str
        What a query keeps at least where nothing is typed.
    start : mapping of key to text
        What the fields begin with: ``query.KEY`` and ``level.KEY`` are weights, ``loss``, ``shares`` and ``least`` say
        what is found, ``first``, ``first_level``, ``second`` and ``second_level`` which two answers are set against
        each other.
    """

    answers: Mapping[str, str]
    levels: Mapping[str, str]
    shares: Mapping[str, str]
    least: str
    start: Mapping[str, str]

    def as_json(self) -> dict[str, Any]:
        """As the page reads it."""
        return {
            "answers": dict(self.answers),
            "levels": dict(self.levels),
            "shares": dict(self.shares),
            "losses": dict(LOSSES),
            "least": self.least,
            "stops": list(STOPS),
            "start": dict(self.start),
            "places": places(self.start),
        }


@dataclass(frozen=True, slots=True)
class Weighed:
    """What counts, understood.

    Attributes
    ----------
    queries : mapping of key to Fraction
    levels : mapping of key to Fraction, or None
        None where levels keep their shares.
    loss : "sum", "max" or "ratio"
    least : Fraction or None
        None where nothing was typed.
    first, second : (level, answer)
        Two answers to be set against each other, of one level where levels keep their shares.
    """

    queries: Mapping[str, Fraction]
    levels: Mapping[str, Fraction] | None
    loss: Joined
    least: Fraction | None
    first: tuple[str, str]
    second: tuple[str, str]


@dataclass(frozen=True, slots=True)
class FoundStrategy:
    """What is found, as it is shown.

    Attributes
    ----------
    said : str
    found : tuple of Section
    trade_off : Section or Fault
        Of the two answers; or why there is none.
    """

    said: str
    found: tuple[Section, ...]
    trade_off: Section | Fault


class WeighingPage(ProductPage):
    """A product whose budgets can be found for what counts."""

    @property
    @abstractmethod
    def strategy_form(self) -> StrategyForm | None:
        """What can be weighed; None where there is nothing to find."""

    @abstractmethod
    def find(self, chosen: Chosen, weighed: Weighed) -> FoundStrategy:
        """Show what is found, or raise RefusedError."""

    @abstractmethod
    def take(self, filled: Filled, chosen: Chosen, weighed: Weighed) -> Filled:
        """The settings with what is found."""


def places(asked: Mapping[str, str]) -> dict[str, int]:
    """Where the slider of each weight that is one stands."""
    found = {}
    for key, text in asked.items():
        if key.startswith(_WEIGHTS) and (weight := _weight(text)) is not None:
            stops = [log(Fraction(stop)) for stop in STOPS[1:]]
            found[key] = 1 + min(range(len(stops)), key=lambda i: abs(stops[i] - log(weight))) if weight else 0
    return found


_WEIGHTS: Final = ("query.", "level.")


def _weight(text: str) -> Fraction | None:
    try:
        value = read_exact(text.strip() or "0")
    except ValueError:
        return None
    return value if isinstance(value, Fraction) and (value == 0 or _SMALLEST <= value <= 1 / _SMALLEST) else None


def read_weighed(form: StrategyForm, asked: object) -> Weighed:
    """Understand what was typed.

    Raises
    ------
    RefusedError
        With a fault by the field, ``strategy.`` before its key.
    """
    if not isinstance(asked, dict) or set(asked) != set(form.start):
        raise RefusedError([Fault("strategy", "the page is of another version; load it again")])
    texts = {key: text if isinstance(text, str) and len(text) <= LONGEST else "?" for key, text in asked.items()}
    faults: list[Fault] = []
    kept = choice("strategy.shares", texts["shares"], form.shares, faults) == KEPT
    queries = _weights(texts, "query.", "an answer", faults)
    levels = None if kept else _weights(texts, "level.", "a geolevel", faults)
    loss = next((key for key in LOSSES if key == texts["loss"]), None)
    least = None
    if texts["least"].strip() and (least := _weight(texts["least"])) is None:
        faults.append(Fault("strategy.least", "must be a share such as 0.02 or 1/50, or 0"))
    pair = []
    for which in ("first", "second"):
        at = "first_level" if kept else f"{which}_level"
        answer = choice(f"strategy.{which}", texts[which], form.answers, faults)
        pair.append((choice(f"strategy.{at}", texts[at], form.levels, faults), answer))
    if loss is None:
        faults.append(Fault("strategy.loss", f"must be one of {', '.join(LOSSES)}"))
    if faults or loss is None:
        raise RefusedError(faults)
    return Weighed(queries, levels, loss, least, *pair)


def _weights(texts: Mapping[str, str], of: str, one: str, faults: list[Fault]) -> dict[str, Fraction]:
    read = {key.removeprefix(of): _weight(text) for key, text in texts.items() if key.startswith(of)}
    faults += [
        Fault(f"strategy.{of}{key}", "must be a number from 0.000001 to 1000000, such as 3 or 1/2, or 0")
        for key, weight in read.items()
        if weight is None
    ]
    weights = {key: weight for key, weight in read.items() if weight}
    if not weights and None not in read.values():
        faults.append(Fault(f"strategy.{of.replace('.', '')}", f"every weight is 0; give {one} one"))
    return weights
