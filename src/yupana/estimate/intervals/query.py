"""The language of interval queries: cells of tables by their columns, and arithmetic on them. Public.

    expression = term { ("+" | "-") term }
    term       = factor { ("*" | "/" | "%") factor }
    factor     = "-" factor | number | "(" expression ")" | cell | "sum" "(" cell ")"
    cell       = TABLE [ "[" [ condition { "," condition } ] "]" ]
    condition  = COLUMN ("=" | "^=") value { "|" value }

``A % B`` is A in percent of B; ``^=`` is "begins with". TABLE and COLUMN are words of letters, digits and ``_``, or
stand in double quotes. Values are texts as the table writes them, in double quotes where they hold one of ``, | ]`` or
a space. Texts are compared in normal form C. All that a query may come to is a linear form in measured cells, or a
ratio of two.
"""

import re
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Final

from yupana.errors import ConfigError
from yupana.files.names import normal

_MOST_CHARACTERS: Final = 1_000_000
_MOST_NESTED: Final = 50
_SHOWN: Final = 200

_NUMBER: Final = re.compile(r"[0-9]{1,30}(?:\.[0-9]{1,30})?", re.ASCII)
_LETTER: Final = r"(?:[A-Za-z_]|[^\x00-\x7f])"
_WORD: Final = rf"{_LETTER}(?:[0-9]|{_LETTER})*"
_TABLE: Final = re.compile(rf"{_WORD}(?:/[A-Za-z0-9_.*]+|(?:[.*]{_WORD})+)?", re.ASCII)
_COLUMN: Final = re.compile(_WORD, re.ASCII)
_BARE: Final = re.compile(r'[^\s,|\]\["=()]+')
_QUOTED: Final = re.compile(r'"([^"]*)"')
_SUM: Final = re.compile(r"sum\s*\(")
_SPACE: Final = re.compile(r"\s*")


@dataclass(frozen=True, slots=True)
class Condition:
    """What a column must hold: one of the values, or with ``is_prefix`` something that begins with one of them."""

    column: str
    values: tuple[str, ...]
    is_prefix: bool


@dataclass(frozen=True, slots=True)
class Selection:
    """Rows of a table."""

    table: str
    conditions: tuple[Condition, ...]  # all hold
    is_sum: bool  # whether the rows are added up; otherwise there must be one
    text: str  # the cell as it was written, for messages


@dataclass(frozen=True, slots=True)
class Chain:
    """Operands of one rank, from left to right: the first, then each with the operator before it."""

    first: "Expression"
    rest: tuple[tuple[str, "Expression"], ...]


Expression = Fraction | Selection | Chain


def parse(text: str) -> Expression:
    """Read a query.

    Raises
    ------
    ConfigError
        Naming the place and what was expected there.
    """
    if len(text) > _MOST_CHARACTERS:
        raise ConfigError(f"a query has {len(text):,} characters; at most {_MOST_CHARACTERS:,} are possible")
    reader = _Reader(text)
    found = reader.expression(0)
    reader.end()
    return found


def shown(query: str) -> str:
    """A query as messages quote it: of a long one the beginning."""
    return query if len(query) <= _SHOWN else query[:_SHOWN] + "..."


@dataclass(slots=True)
class _Reader:
    text: str
    at: int = 0

    def expression(self, depth: int) -> Expression:
        return self._chain(depth, "+-")

    def end(self) -> None:
        if self._peek():
            raise self._fault("an operator + - * / %, or the end")

    def _chain(self, depth: int, operators: str) -> Expression:
        first = self._operand(depth, operators)
        rest = []
        while (operator := self._peek()) and operator in operators:
            self.at += 1
            rest.append((operator, self._operand(depth, operators)))
        return Chain(first, tuple(rest)) if rest else first

    def _operand(self, depth: int, operators: str) -> Expression:
        return self._chain(depth, "*/%") if operators == "+-" else self._factor(depth)

    def _factor(self, depth: int) -> Expression:
        if depth > _MOST_NESTED:
            raise self._fault(f"at most {_MOST_NESTED} parentheses within each other")
        negative = False
        while self._peek() == "-":
            self.at += 1
            negative = not negative
        found = self._positive(depth)
        return Chain(Fraction(-1), (("*", found),)) if negative else found

    def _positive(self, depth: int) -> Expression:
        if self._peek() == "(":
            self.at += 1
            inner = self.expression(depth + 1)
            self._expect(")")
            return inner
        if number := self._match(_NUMBER):
            return Fraction(number.group())
        if self._match(_SUM):
            selection = self._selection(is_sum=True)
            self._expect(")")
            return selection
        return self._selection(is_sum=False)

    def _selection(self, *, is_sum: bool) -> Selection:
        self._skip()
        start = self.at
        table = self._name(_TABLE)
        if not table:
            raise self._fault("a number, a parenthesis, or a table such as T01001[...]")
        conditions: list[Condition] = []
        if self._peek() != "[":
            return Selection(table, (), is_sum, self.text[start : self.at].strip())
        self.at += 1
        while self._peek() != "]":
            if conditions:
                self._expect(",", ", or ]")
            conditions.append(self._condition())
            if [c.column for c in conditions].count(conditions[-1].column) > 1:
                raise self._fault(f"each column once; {conditions[-1].column} is there twice (several values: A=1|2)")
        self.at += 1
        return Selection(table, tuple(conditions), is_sum, self.text[start : self.at].strip())

    def _condition(self) -> Condition:
        column = self._name(_COLUMN)
        if not column:
            raise self._fault("a column and its value, such as REGION_ID=06")
        is_prefix = self._peek() == "^"
        self.at += is_prefix
        self._expect("=")
        values = [self._value()]
        while self._peek() == "|":
            self.at += 1
            values.append(self._value())
        return Condition(column, tuple(dict.fromkeys(values)), is_prefix)

    def _name(self, bare: re.Pattern[str]) -> str:
        """A word, or what stands in quotes; empty if neither is there."""
        if quoted := self._match(_QUOTED):
            return normal(quoted.group(1))
        return normal(word.group()) if (word := self._match(bare)) else ""

    def _value(self) -> str:
        if found := self._match(_QUOTED):
            return normal(found.group(1))
        if found := self._match(_BARE):
            return normal(found.group())
        raise self._fault("a value; in double quotes if it holds a space or one of , | ] [ = ( )")

    def _peek(self) -> str:
        self._skip()
        return self.text[self.at : self.at + 1]

    def _skip(self) -> None:
        space = _SPACE.match(self.text, self.at)
        self.at = space.end() if space else self.at

    def _match(self, pattern: re.Pattern[str]) -> re.Match[str] | None:
        self._skip()
        found = pattern.match(self.text, self.at)
        if found:
            self.at = found.end()
        return found

    def _expect(self, character: str, expected: str = "") -> None:
        if self._peek() != character:
            raise self._fault(expected or character)
        self.at += 1

    def _fault(self, expected: str) -> ConfigError:
        rest = self.text[self.at : self.at + 20]
        found = repr(rest) if rest else "the end"
        return ConfigError(f"query, character {self.at + 1}: expected {expected}; found {found}")


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
    if chain.rest[0][0] in "+-":
        return _sum(chain, select)
    found = evaluate(chain.first, select)
    for operator, operand in chain.rest:
        other = evaluate(operand, select)
        found = _multiply(found, other) if operator == "*" else _divide(found, other)
        found = _multiply(found, Linear(Fraction(100), {})) if operator == "%" else found
    return found


def _sum(chain: Chain, select: Select) -> Form:
    """Add up a chain without copying what there is at every term."""
    constant, weights = Fraction(0), dict[Cell, Fraction]()
    ratio: Form | None = None
    for operator, operand in (("+", chain.first), *chain.rest):
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
