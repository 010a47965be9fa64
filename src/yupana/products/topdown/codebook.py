"""What the files of a TopDown release, their columns and codes are called. Public."""

import tomllib
from collections.abc import Mapping, Sequence
from importlib.resources import files
from itertools import combinations
from typing import Final

from yupana.geography.kinds import summary_levels
from yupana.products.codebook import Described, Label, Value
from yupana.products.topdown.described import DescribedConfiguration
from yupana.products.topdown.tables import (
    BOUNDS,
    INTERVALS_OF,
    MICRODATA,
    TABLES,
    TOTALS,
    counts_persons,
    counts_units,
    race_variables,
    tables_of,
)
from yupana.topdown.configuration import Configuration
from yupana.topdown.queries import Schema

_TOLD: Final = tomllib.loads(files(__package__).joinpath("codebook.toml").read_text("utf-8"))
_TITLES: Final[Mapping[str, str]] = {**_TOLD["titles"], TOTALS: "The total, and every level of every attribute"}
UNIVERSES: Final[Mapping[str, str]] = _TOLD["universes"]
"""What the tables of the redistricting data count, by the beginning of their paths."""


def _combined(races: Sequence[str], sign: str) -> list[str]:
    """All combinations of races, in the order of CENRACE."""
    return [sign.join(found) for number in range(1, 7) for found in combinations(races, number)]


_COMBINATIONS: Final = _combined(_TOLD["races"], ", ")
_QUARTERS: Final[Mapping[str, str]] = _TOLD["institutional"] | _TOLD["noninstitutional"]
_LEVELS: Final[Mapping[str, str]] = {
    **_TOLD["levels"],
    **_QUARTERS,
    **dict(zip(_combined(_TOLD["short_races"], "+"), _COMBINATIONS, strict=True)),
    **{short: f"{race} alone" for short, race in zip(_TOLD["short_races"], _TOLD["races"], strict=True)},
}
"""What the levels of the built-in schemas are called."""

_CODES: Final[Mapping[str, Mapping[Value, str]]] = {
    "GQTYPE_PL": {"0": "Not in group quarters", **{str(code): of for code, of in enumerate(_QUARTERS.values(), 1)}},
    "CENRACE": {f"{code:02}": name for code, name in enumerate(_COMBINATIONS, 1)},
    "SUMLEV": {code: name.replace("_", " ") for name, code in summary_levels().items()},
}
_COLUMNS: Final = {
    **{name: Label(**{"values": _CODES.get(name, {})} | told) for name, told in _TOLD["columns"].items()},
    **{f"gq{kind}": Label(f"Group quarters: {of}", type="integer") for kind, of in enumerate(_QUARTERS.values(), 1)},
}
_END: Final = dict(zip(BOUNDS, ("lower end", "upper end", "margin of error"), strict=True))


class _Columns(dict[str, Label]):
    """Columns by name; one that the configuration alone names, such as a recoded attribute, is called by its name."""

    def __missing__(self, name: str) -> Label:
        return Label(name)


def described(config: Configuration, table: str) -> Described:
    """What a file of a release, named by its path without the ending, and its columns are called."""
    folder, _, name = table.partition("/")
    columns = _Columns(_COLUMNS)
    if folder not in {"spine", "intervals"}:
        known = _TOLD["attributes"] if counts_persons(config.schema) or counts_units(config.schema) else {}
        for i, a in enumerate(config.schema.attributes):
            columns[a.name] = Label(known.get(a.name, a.name), values=_called(config, i))
    if config.areas is not None:
        columns["block"] = Label("Block", "A code of the areas that the configuration gives.")
    if folder == TABLES:
        of, intervals, _ = name.partition(INTERVALS_OF)
        found = next(t for t in tables_of(config.schema) if t.name == of)
        for variable, line in zip(found.variables, variable_labels(of, config.schema), strict=True):
            columns[variable] = Label(line, type="integer")
            columns |= {f"{variable}_{end}": Label(f"{line}: {_END[end]}", type="integer") for end in BOUNDS}
        return f"{_TITLES[of]}: intervals" if intervals else _TITLES[of], columns
    if table == MICRODATA.removesuffix(".csv"):
        of = "person" if counts_persons(config.schema) else "unit that is counted"
        return f"One record for each {of}", columns
    if folder == "spine" and name == "group_quarters":
        return "Housing units and group quarters of each block, which bound the counts", columns
    if folder == "spine":
        columns |= {level: Label(f"Geounit of {level} that the block lies in") for level in config.shares}
    return f"{_TOLD['folders'][folder]}: {name}", columns


def _called(config: Configuration, number: int) -> Mapping[str | int, str]:
    """What the levels of an attribute are called: as the schema says, or the description of their codes."""
    labels = config.schema.attributes[number].labels
    if isinstance(config, DescribedConfiguration):
        column = config.description.columns[config.attributes[number].name]
        if column.column.words == labels:
            return {label: column.labels.get(code, label) for code, label in enumerate(labels)}
    known = _LEVELS if counts_persons(config.schema) or counts_units(config.schema) else {}
    return {label: known.get(label, label) for label in labels}


def variable_labels(table: str, schema: Schema) -> tuple[str, ...]:
    """The lines of a published table of a schema, in order of its variables."""
    if table == TOTALS:
        return "Total", *(f"{one.name}: {label}" for one in schema.attributes for label in one.labels)
    if table == "H1":
        return "Total", "Occupied", "Vacant"
    if table == "P5":
        parts = (
            ("Institutionalized population", _TOLD["institutional"].values()),
            ("Noninstitutionalized population", _TOLD["noninstitutional"].values()),
        )
        return "Total", *(line for head, kinds in parts for line in (head, *(f"{head}: {kind}" for kind in kinds)))
    lines = _race_lines()
    races = tuple(lines[place] for place in sorted(lines))
    if table in {"P1", "P3"}:
        return races
    other = "Not Hispanic or Latino"
    return "Total", "Hispanic or Latino", other, *(f"{other}: {line}" for line in races[1:])


def _race_lines() -> Mapping[int, str]:
    lines = {0: "Total"}
    for (_, above, head, own), name in zip(race_variables().tolist(), _COMBINATIONS, strict=True):
        number = name.count(", ") + 1
        if number == 1:
            lines |= {above: "Population of one race", own: f"{name} alone"}
        else:
            lines |= {above: "Population of two or more races", head: f"Population of {number} races", own: name}
    return lines
