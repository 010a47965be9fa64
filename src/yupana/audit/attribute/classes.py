"""The slides' conclusions: do classes of individuals lose much less than others? Compared, not supposed."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import product
from typing import Any, Final

from yupana.audit.attribute.answers import AttributeAnswer
from yupana.audit.attribute.households import ADULT, Individual

LARGE: Final = 7
"""Persons of a large household, at least: the last size that tables of households tell apart."""


@dataclass(frozen=True, slots=True)
class Division:
    """Two classes of individuals, of which the slides say that the first often loses significantly less."""

    name: str
    others: str
    belongs: Callable[[Individual], bool]


DIVISIONS: Final = (
    Division("small households", f"households of {LARGE} or more", lambda i: i.size < LARGE),
    Division("adults", "minors", lambda i: i.age >= ADULT),
    Division("non-householders", "householders", lambda i: not i.is_householder),
)

COLUMNS: Final[dict[str, Callable[[AttributeAnswer], Fraction | None]]] = {
    "printed": lambda answer: None if answer.printed is None else Fraction(str(answer.printed)),
    "rule": lambda answer: answer.rule if isinstance(answer.rule, Fraction) else None,
    "exact": lambda answer: answer.exact.value,
}
"""The losses of an answer."""


@dataclass(frozen=True, slots=True)
class ClassComparison:
    """The losses of one class beside those of the others, in one column.

    A pair is a member of the class, one of the others, and a secret. What is significant is a factor of two.

    Attributes
    ----------
    division : Division
    column : str
        Of `COLUMNS`.
    members, others : tuple of str
        The individuals on either side, by name.
    means : tuple of (secret, mean, mean of the others)
    pairs : int
    half : int
        Pairs in which the member loses less, and at most half as much.
    twice : int
        Pairs in which the member loses more, and at least twice as much.
    """

    division: Division
    column: str
    members: tuple[str, ...]
    others: tuple[str, ...]
    means: tuple[tuple[str, Fraction, Fraction], ...]
    pairs: int
    half: int
    twice: int

    @property
    def less(self) -> int:
        """Secrets for which the class loses less on average."""
        return sum(mean < other for _, mean, other in self.means)

    @property
    def holds(self) -> bool:
        """Whether the class loses less for most secrets, and more often significantly less than significantly more."""
        return 2 * self.less > len(self.means) and self.half > self.twice

    def as_json(self) -> dict[str, Any]:
        """Describe the comparison, with what follows."""
        return {
            "class": self.division.name,
            "others": self.division.others,
            "column": self.column,
            "individuals": list(self.members),
            "other_individuals": list(self.others),
            "means": [
                {"secret": secret, "mean": float(mean), "mean_of_others": float(other)}
                for secret, mean, other in self.means
            ],
            "secrets_with_less": self.less,
            "pairs": self.pairs,
            "pairs_with_at_most_half": self.half,
            "pairs_with_at_least_twice": self.twice,
            "holds": self.holds,
        }


def comparisons(answers: Sequence[AttributeAnswer]) -> Iterator[ClassComparison]:
    """Compare both sides of every division, column by column; divisions with an empty side are left out."""
    for division in DIVISIONS:
        for column, value in COLUMNS.items():
            losses = {(a.individual.name, a.secret.name): loss for a in answers if (loss := value(a)) is not None}
            secrets = list(dict.fromkeys(secret for _, secret in losses))
            known = {a.individual.name: division.belongs(a.individual) for a in answers}
            members, others = (
                tuple(name for name, inside in known.items() if inside is side) for side in (True, False)
            )
            if losses and members and others:
                yield _compare(division, column, members, others, secrets, losses)


def _compare(
    division: Division,
    column: str,
    members: tuple[str, ...],
    others: tuple[str, ...],
    secrets: Sequence[str],
    losses: dict[tuple[str, str], Fraction],
) -> ClassComparison:

    def mean(side: tuple[str, ...], secret: str) -> Fraction:
        return sum((losses[name, secret] for name in side), Fraction(0)) / len(side)

    means = tuple((secret, mean(members, secret), mean(others, secret)) for secret in secrets)
    pairs = [(losses[a, s], losses[b, s]) for a, b, s in product(members, others, secrets)]
    return ClassComparison(
        division,
        column,
        members,
        others,
        means,
        len(pairs),
        sum(a < b and 2 * a <= b for a, b in pairs),
        sum(a > b and a >= 2 * b for a, b in pairs),
    )
