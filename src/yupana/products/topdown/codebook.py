"""What the files of a TopDown release, their columns and codes are called. Public."""

from collections.abc import Mapping
from itertools import combinations
from typing import Final

from yupana.geography.kinds import summary_levels
from yupana.products.codebook import Described, Label
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

_RACES: Final = (
    "White",
    "Black or African American",
    "American Indian and Alaska Native",
    "Asian",
    "Native Hawaiian and Other Pacific Islander",
    "Some Other Race",
)
_COMBINATIONS: Final = [", ".join(found) for number in range(1, 7) for found in combinations(_RACES, number)]
_INSTITUTIONAL: Final = (
    "Correctional facilities for adults",
    "Juvenile facilities",
    "Nursing facilities",
    "Other institutional facilities",
)
_NONINSTITUTIONAL: Final = (
    "College or university student housing",
    "Military quarters",
    "Other noninstitutional facilities",
)
_QUARTERS: Final = (*_INSTITUTIONAL, *_NONINSTITUTIONAL)

_TITLES: Final = {
    "P1": "Race",
    "P2": "Hispanic or Latino, and not Hispanic or Latino by race",
    "P3": "Race for the population 18 years and over",
    "P4": "Hispanic or Latino, and not Hispanic or Latino by race, for the population 18 years and over",
    "P5": "Group quarters population by major group quarters type",
    "H1": "Occupancy status of housing units",
    TOTALS: "The total, and every level of every attribute",
}

UNIVERSES: Final = {
    "tables/P1": "Total population",
    "tables/P2": "Total population",
    "tables/P3": "Total population 18 years and over",
    "tables/P4": "Total population 18 years and over",
    "tables/P5": "Population in group quarters",
    "tables/H1": "Housing units",
}
"""What the tables of the redistricting data count, by the beginning of their paths."""

_ATTRIBUTES: Final = {
    "hhgq": "Household or type of group quarters",
    "votingage": "Age",
    "hispanic": "Hispanic origin",
    "cenrace": "Race",
    "h1": "Occupancy",
}
_SHORT: Final = ("White", "Black", "AIAN", "Asian", "NHPI", "Other")
_LEVELS: Final = {
    "household": "In a household",
    "correctional": _QUARTERS[0],
    "juvenile": _QUARTERS[1],
    "nursing": _QUARTERS[2],
    "other institutional": _QUARTERS[3],
    "college": _QUARTERS[4],
    "military": _QUARTERS[5],
    "other noninstitutional": _QUARTERS[6],
    "under 18": "Under 18 years",
    "18 and over": "18 years and over",
    "not Hispanic": "Not Hispanic or Latino",
    "Hispanic": "Hispanic or Latino",
    "vacant": "Vacant",
    "occupied": "Occupied",
    **{
        "+".join(found): name if len(found) > 1 else f"{name} alone"
        for found, name in zip(
            (found for number in range(1, 7) for found in combinations(_SHORT, number)), _COMBINATIONS, strict=True
        )
    },
}
"""What the levels of the built-in schemas are called."""

_FOLDERS: Final = {
    "spine": "Geography of the spine",
    "counts": "Counts of the units of a geolevel of the spine, zeros left out",
    "tabulation": "Counts of a kind of published area, zeros left out",
    "areas": "Published areas",
    "intervals": "Estimates and intervals of a query in a geolevel",
}

_RECORDS: Final = {
    "SCHEMA_TYPE_CODE": Label("Kind of file", values={"MPD": "persons", "MUD": "housing units and group quarters"}),
    "SCHEMA_BUILD_ID": Label("Version of the form of the file"),
    "TABBLKST": Label("State", "FIPS code."),
    "TABBLKCOU": Label("County", "FIPS code within the state."),
    "TABTRACTCE": Label("Tract", "Code within the county."),
    "TABBLKGRPCE": Label("Block group", "Code within the tract."),
    "TABBLK": Label("Block", "Code within the tract."),
    "EPNUM": Label("Number of the record in the file"),
    "RTYPE": Label(
        "Kind of record",
        values={
            "2": "housing unit",
            "3": "person in a household",
            "4": "group quarters",
            "5": "person in group quarters",
        },
    ),
    "HH_STATUS": Label("Occupancy", values={"0": "group quarters", "1": "occupied", "2": "vacant"}),
    "GQTYPE_PL": Label(
        "Group quarters type",
        values={"0": "Not in group quarters", **{str(code): name for code, name in enumerate(_QUARTERS, 1)}},
    ),
    "VOTING_AGE": Label("Voting age", values={"1": "under 18 years", "2": "18 years and over"}),
    "CENHISP": Label("Hispanic origin", values={"1": "not Hispanic or Latino", "2": "Hispanic or Latino"}),
    "CENRACE": Label("Race", values={f"{code:02}": name for code, name in enumerate(_COMBINATIONS, 1)}),
}

_OTHERS: Final = {
    "block": Label("Block", "16 digits: state, county, tract, block group, block."),
    "geounit": Label("Code of the area"),
    "geolevel": Label("Geolevel of the spine"),
    "parent": Label("Code of the geounit that it is a part of", "Empty for the root."),
    "children": Label("How many geounits it is divided into", type="integer"),
    "share": Label("Share of the budget along a path", "A fraction, such as 1/8."),
    "bypassed": Label("Whether it is bypassed", type="boolean"),
    "housing_units": Label("Housing units", type="integer"),
    **{f"gq{kind}": Label(f"Group quarters: {name}", type="integer") for kind, name in enumerate(_QUARTERS, 1)},
    "count": Label("Count", "Non-negative and consistent; without noise if the release has none.", "integer"),
    "estimate": Label("Estimate", "Of the measurements, before non-negativity and rounding.", "number"),
    "variance": Label("Variance of the estimate", type="number"),
    "lower": Label("Lower end of the interval", type="number"),
    "upper": Label("Upper end of the interval", type="number"),
    "LOWER": Label("Lower end of the interval of the count", type="integer"),
    "UPPER": Label("Upper end of the interval of the count", type="integer"),
    "MOE": Label("Margin of error", "Half the width of the interval, rounded up.", "integer"),
    "SUMLEV": Label(
        "Summary level", values={code: name.replace("_", " ") for name, code in summary_levels().items()}
    ),
    "GEOCODE": Label("Code of the area", "FIPS or ANSI codes one after the other; 15 digits of a block."),
}  # fmt: skip


_END: Final = dict(zip(BOUNDS, ("lower end", "upper end", "margin of error"), strict=True))


class _Columns(dict[str, Label]):
    """Columns by name; one that the configuration alone names, such as a recoded attribute, is called by its name."""

    def __missing__(self, name: str) -> Label:
        return Label(name)


def described(config: Configuration, table: str) -> Described:
    """What a file of a release, named by its path without the ending, and its columns are called."""
    folder, _, name = table.partition("/")
    columns = _Columns({**_OTHERS, **_RECORDS})
    if folder not in {"spine", "intervals"}:
        known = _ATTRIBUTES if counts_persons(config.schema) or counts_units(config.schema) else {}
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
    return f"{_FOLDERS[folder]}: {name}", columns


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
            ("Institutionalized population", _INSTITUTIONAL),
            ("Noninstitutionalized population", _NONINSTITUTIONAL),
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
