"""The eight published tables of the S-DHC: titles, universes, stubs, and the names of areas and iterations. Public.

Stubs are those of PHSafe, tables 1 to 8, but for three, which follow what the cells count: PH2 speaks of a cohabiting
couple household where the paper writes family, PH6 of a married couple family where it writes household, and of 12 to
17 years where it writes "12 and 17 years". Estimates from the measurements have columns of their own.
"""

import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from importlib.resources import files
from typing import Any, Final

from yupana.products.census import STATES
from yupana.products.codebook import Described, Label, Value
from yupana.products.phsafe.specification import S_DHC, STATE_NAMES, TABLES, cells_of, table


@dataclass(frozen=True, slots=True)
class _Stub:
    """A line of a table."""

    cell: int  # its number
    label: str
    depth: int  # how far it is indented
    parts: tuple[int, ...]  # the measured cells it adds up; of an average, those of the numerator


@dataclass(frozen=True, slots=True)
class ShellRatio:
    """What makes a table one of averages."""

    denominator: str  # the measured table that is divided by
    # below which no whole average lies: a household has a person, a family two. None is above the tau of the
    # numerator's table, which a release tells.
    least: float
    shared: bool  # whether all lines have one denominator, so that the averages add up; otherwise each line has its own


@dataclass(frozen=True, slots=True)
class Shell:
    """A published table."""

    name: str
    title: str
    universe: str
    source: str  # the measured table that is counted; of averages, the numerator
    stubs: tuple[_Stub, ...]
    ratio: ShellRatio | None = None  # none for a table of counts


_Line = tuple[int, int, str]
"""Cell, depth and label."""


def _stubs(source: str, lines: Sequence[_Line]) -> tuple[_Stub, ...]:
    """Lines whose parts are the measured cells among the deeper lines that follow, or the cell itself."""
    measured = set(cells_of(table(source)))
    stubs = []
    for place, (cell, depth, label) in enumerate(lines):
        below: list[int] = []
        for other, deeper, _ in lines[place + 1 :]:
            if deeper <= depth:
                break
            below += [other] if other in measured else []
        stubs.append(_Stub(cell, label, depth, (cell,) if cell in measured else tuple(below)))
    return tuple(stubs)


def _read(
    name: str,
    title: str,
    universe: str,
    source: str,
    lines: Sequence[_Line],
    ratio: Mapping[str, Any] | None = None,
    parts: Sequence[Sequence[int]] = (),
) -> Shell:
    """A published table as the file of tables says it."""
    stubs = _stubs(source, lines)
    if parts:
        stubs = tuple(replace(stub, parts=tuple(of)) for stub, of in zip(stubs, parts, strict=True))
    return Shell(name, title, universe, source, stubs, None if ratio is None else ShellRatio(**ratio))


_FILE: Final = tomllib.loads(files(__package__).joinpath("final-tables.toml").read_text("utf-8"))
SHELLS: Final = tuple(_read(**told) for told in _FILE["tables"])

ITERATED: Final = frozenset(shell.name for shell in SHELLS if table(shell.source).has_groups)
"""The tables that are published by race and ethnicity."""

WHOSE: Final = {t.name: ("person" if t.groups else "householder") if t.has_groups else None for t in TABLES}
"""Whose race and ethnicity a measured table goes by: the householder's, the person's, or nobody's."""

ITERATION_LABELS: Final = {"*": "Everyone", **S_DHC.group_labels}


def line_labels(shell: Shell) -> dict[int, str]:
    """The label of each line by its cell, after those of the lines it is indented under but for the total."""
    labels, above = {}, list[str]()
    for stub in shell.stubs:
        above[stub.depth :] = [stub.label]
        labels[stub.cell] = ": ".join(above[1:] or above)
    return labels


def nation_name(states: Iterable[str]) -> str:
    """What the sum over the states of a release is called: the nation only if all its states are there."""
    return "United States" if set(STATES) <= set(states) else "The states of this release"


def area_name(region_type: str, region_id: str, nation: str) -> str:
    """The name of an area, ``nation`` being that of the sum over states; a code that is no state's is its own name."""
    return nation if region_type == "USA" else STATE_NAMES.get(region_id, region_id)


def describe_estimates(table: str, states: Iterable[str], confidence: Fraction) -> Described:
    """The title of a table of estimates, and its columns.

    Parameters
    ----------
    table : str
        A final table such as ``PH1``, a file of the Bureau's such as ``PH1_state_trunc_normal``, or ``estimates``.
    states : iterable of str
        FIPS codes of those estimated.
    confidence : Fraction
        Of the intervals.
    """
    states = tuple(states)
    nation, percent = nation_name(states), f"{float(100 * confidence):g} %"
    columns = {
        name: Label(**{part: text.replace("{percent}", percent) for part, text in told.items()})
        for name, told in _FILE["columns"].items()
    }
    values: dict[str, Mapping[Value, str]] = {
        "REGION_ID": {"1": nation, **{state: area_name("STATE", state, nation) for state in states}},
        "REGION_TYPE": {"USA": nation, "STATE": "State"},
        "ITERATION_CODE": dict(ITERATION_LABELS.items()),
        "MEASURE": {"count": "A count", "average": "An average: a ratio of counts"},
    }
    columns |= {name: replace(columns[name], values=of) for name, of in values.items()}
    if table == "estimates":
        columns["DATA_CELL"] = Label("Line", "Of the table that TABLE names, counted from 1.", "integer")
        return "Every estimate, unrounded", columns
    name, _, kind = table.partition("_")
    shell = next(shell for shell in SHELLS if shell.name == name)
    lines: dict[Value, str] = dict(line_labels(shell).items())
    columns["DATA_CELL"] = Label("Line", "Of the table, counted from 1.", "integer", lines)
    return shell.title + (", with the columns of the Census Bureau's files" if kind else ""), columns
