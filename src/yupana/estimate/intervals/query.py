"""The language of interval queries: cells of tables by their columns, and arithmetic on them. Public.

    expression = term { ("+" | "-") term }
    term       = factor { ("*" | "/" | "%") factor }
    factor     = "-" factor | number | "(" expression ")" | cell | "sum" "(" cell ")"
    cell       = TABLE [ "[" [ condition { "," condition } ] "]" ]
    condition  = COLUMN ("=" | "^=") value { "|" value }

``A % B`` is A in percent of B; ``^=`` is "begins with". Values are texts as the table writes them, in double quotes
where they hold one of ``, | ]`` or a space.
"""

import re
from dataclasses import dataclass
from fractions import Fraction
from typing import Final

from yupana.errors import ConfigError

_MOST_CHARACTERS: Final = 1_000_000
_MOST_NESTED: Final = 50

_NUMBER: Final = re.compile(r"[0-9]{1,30}(?:\.[0-9]{1,30})?", re.ASCII)
_TABLE: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*(?:/[A-Za-z0-9_.*]+|(?:[.*][A-Za-z_][A-Za-z0-9_]*)+)?", re.ASCII)
_COLUMN: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*", re.ASCII)
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
    """Rows of a table.

    Attributes
    ----------
    table : str
    conditions : tuple of Condition
        All hold.
    is_sum : bool
        Whether the rows are added up; otherwise there must be one.
    text : str
        The cell as it was written, for messages.
    """

    table: str
    conditions: tuple[Condition, ...]
    is_sum: bool
    text: str


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
        table = self._match(_TABLE)
        if not table:
            raise self._fault("a number, a parenthesis, or a table such as T01001[...]")
        conditions: list[Condition] = []
        if self._peek() != "[":
            return Selection(table.group(), (), is_sum, table.group())
        self.at += 1
        while self._peek() != "]":
            if conditions:
                self._expect(",")
            conditions.append(self._condition())
            if [c.column for c in conditions].count(conditions[-1].column) > 1:
                raise self._fault(f"each column once; {conditions[-1].column} is there twice (several values: A=1|2)")
        self.at += 1
        return Selection(table.group(), tuple(conditions), is_sum, self.text[start : self.at].strip())

    def _condition(self) -> Condition:
        column = self._match(_COLUMN)
        if not column:
            raise self._fault("a column and its value, such as REGION_ID=06")
        is_prefix = self._peek() == "^"
        self.at += is_prefix
        self._expect("=")
        values = [self._value()]
        while self._peek() == "|":
            self.at += 1
            values.append(self._value())
        return Condition(column.group(), tuple(dict.fromkeys(values)), is_prefix)

    def _value(self) -> str:
        if quoted := self._match(_QUOTED):
            return str(quoted.group(1))
        if bare := self._match(_BARE):
            return str(bare.group())
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

    def _expect(self, character: str) -> None:
        if self._peek() != character:
            raise self._fault(character)
        self.at += 1

    def _fault(self, expected: str) -> ConfigError:
        found = self.text[self.at : self.at + 20] or "the end"
        return ConfigError(f"query, character {self.at + 1}: expected {expected}; found {found!r}")
