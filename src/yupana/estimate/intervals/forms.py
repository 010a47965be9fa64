"""Linear forms in measured cells, and ratios of two: all that a query may come to. Public."""

from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass
from fractions import Fraction

from yupana.errors import ConfigError
from yupana.estimate.intervals.query import Chain, Expression, Selection

Cell = Hashable
"""What names a cell whose answer is estimated: equal names are one cell."""


@dataclass(frozen=True, slots=True)
class Linear:
    """A constant and a weighted sum of cells, each cell once and no weight 0."""

    constant: Fraction
    weights: Mapping[Cell, Fraction]

    @property
    def is_constant(self) -> bool:
        """Whether no cell is in it."""
        return not self.weights

    def times(self, factor: Fraction) -> "Linear":
        """Multiply by a number."""
        weights = {cell: weight * factor for cell, weight in self.weights.items()} if factor else {}
        return Linear(self.constant * factor, weights)

    def multiple_of(self, other: "Linear") -> Fraction | None:
        """The number that ``other`` is to be multiplied by to give this form, if there is one; ``other`` is not 0."""
        if other.is_constant:
            return self.constant / other.constant if self.is_constant else None
        cell, weight = next(iter(other.weights.items()))
        factor = self.weights.get(cell, Fraction(0)) / weight
        return factor if self == other.times(factor) else None


def sum_of(one: Linear, other: Linear, factor: Fraction = Fraction(1)) -> Linear:
    """Add a form and ``factor`` times another; what cancels is gone."""
    weights = dict(one.weights)
    for cell, weight in other.weights.items():
        weights[cell] = weights.get(cell, Fraction(0)) + factor * weight
    return Linear(one.constant + factor * other.constant, {cell: w for cell, w in weights.items() if w})


@dataclass(frozen=True, slots=True)
class Ratio:
    """One linear form over another, which is not constant."""

    above: Linear
    below: Linear


Form = Linear | Ratio

Select = Callable[[Selection], Linear]
"""Finds the rows of a selection and writes their sum in measured cells."""


def evaluate(expression: Expression, select: Select) -> Form:
    """Write an expression as a linear form or a ratio of two.

    Raises
    ------
    ConfigError
        If it is neither: a product of cells, or ratios of different denominators added up.
    """
    if isinstance(expression, Fraction):
        return Linear(expression, {})
    if isinstance(expression, Selection):
        return select(expression)
    return _chain(expression, select)


def _chain(chain: Chain, select: Select) -> Form:
    found = evaluate(chain.first, select)
    if chain.rest[0][0] in "+-" and isinstance(found, Linear):
        return _sum(found, chain, select)
    for operator, operand in chain.rest:
        other = evaluate(operand, select)
        if operator in "+-":
            found = _add(found, other, Fraction(1 if operator == "+" else -1))
        elif operator == "*":
            found = _multiply(found, other)
        else:
            found = _divide(found, other)
            found = _multiply(found, Linear(Fraction(100), {})) if operator == "%" else found
    return found


def _sum(first: Linear, chain: Chain, select: Select) -> Form:
    """Add up a chain without copying what there is at every term."""
    constant, weights = first.constant, dict(first.weights)
    ratio: Form | None = None
    for operator, operand in chain.rest:
        sign = Fraction(1 if operator == "+" else -1)
        other = evaluate(operand, select)
        if isinstance(other, Ratio):
            ratio = _add(ratio or Linear(Fraction(0), {}), other, sign)
            continue
        constant += sign * other.constant
        for cell, weight in other.weights.items():
            weights[cell] = weights.get(cell, Fraction(0)) + sign * weight
    linear = Linear(constant, {cell: weight for cell, weight in weights.items() if weight})
    return linear if ratio is None else _add(linear, ratio, Fraction(1))


def _add(one: Form, other: Form, factor: Fraction) -> Form:
    if isinstance(one, Linear) and isinstance(other, Linear):
        return sum_of(one, other, factor)
    below = one.below if isinstance(one, Ratio) else other.below if isinstance(other, Ratio) else None
    if below is None:
        raise TypeError("one of the forms is a ratio")
    return Ratio(sum_of(_over(one, below), _over(other, below), factor), below)


def _over(form: Form, below: Linear) -> Linear:
    """What stands above ``below`` in a form brought to that denominator."""
    if isinstance(form, Linear):
        if form.is_constant:
            return below.times(form.constant)
        raise ConfigError(
            "a query adds a cell to a ratio; no exact interval is known for that. Ask for them by themselves"
        )
    factor = form.below.multiple_of(below)
    if factor is None:
        raise ConfigError(
            "a query adds ratios of different denominators; no exact interval is known for that. Ask for them one by "
            "one, or bring them to one denominator"
        )
    return form.above.times(1 / factor)


def _multiply(one: Form, other: Form) -> Form:
    if isinstance(one, Linear) and one.is_constant:
        one, other = other, one
    if not (isinstance(other, Linear) and other.is_constant):
        raise ConfigError("a query multiplies cells with each other; only numbers may multiply a cell or a ratio")
    if isinstance(one, Ratio):
        return Ratio(one.above.times(other.constant), one.below)
    return one.times(other.constant)


def _divide(one: Form, other: Form) -> Form:
    if isinstance(one, Ratio) and isinstance(other, Linear) and other.is_constant and other.constant:
        return Ratio(one.above.times(1 / other.constant), one.below)
    if isinstance(one, Ratio) or isinstance(other, Ratio):
        raise ConfigError("a query divides ratios; write it as one numerator over one denominator, (A) / (B)")
    if other.is_constant:
        if not other.constant:
            raise ConfigError("a query divides by 0: the cells of the denominator cancel, or it is the number 0")
        return one.times(1 / other.constant)
    return Ratio(one, other)
