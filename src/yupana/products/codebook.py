"""The codebook of a release: what its tables, columns and codes are called, for machines and for readers."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from types import MappingProxyType
from typing import Any, Literal

from yupana.files.delimited import PARQUET
from yupana.plan.measurement import margin_words
from yupana.plan.plan import Plan
from yupana.products.tables import Family
from yupana.release.codebook import REASON, of_tables, resource_name, slug

Value = str | int


@dataclass(frozen=True, slots=True)
class Label:
    """What a column is called and holds."""

    title: str
    description: str = ""
    type: Literal["string", "integer", "number", "boolean"] = "string"  # as a Table Schema names it; codes are strings
    # what its codes are called; empty where they are not listed
    values: Mapping[Value, str] = field(default_factory=dict)


Described = tuple[str, Mapping[str, Label]]
"""The title of a table, and its columns by name."""


def data_package(
    title: str,
    product: str,
    files: Mapping[str, Sequence[str]],
    described: Callable[[str], Described],
    universes: Mapping[str, str] = MappingProxyType({}),
) -> dict[str, Any]:
    """The codebook of a release, as a Data Package (version 2, whose dialects version 1 reads).

    Nothing in it depends on a record or on a count, noisy or not: it follows from the plan, the configuration with
    the code lists it names, the words of the product, and the names of files and columns.

    Parameters
    ----------
    title, product : str
        What the product is called, and what its manifest calls it.
    files : mapping of str to sequence of str
        The columns of each table, by its path within the release.
    described : callable
        What a table and its columns are called, by its path without the ending.
    universes : mapping of str to str
        What tables count, by the beginning of their paths.

    Raises
    ------
    KeyError
        If a column is not described.
    """
    resources = []
    for path, columns in files.items():
        table = PurePosixPath(path).with_suffix("").as_posix()
        name, labels = described(table)
        own = {column: labels[column] for column in columns if column != REASON}
        universe = next((of for start, of in universes.items() if table.startswith(start)), "")
        resources.append(_resource(path, name, own) | ({"universe": universe} if universe else {}))
    package = {
        "$schema": "https://datapackage.org/profiles/2.0/datapackage.json",
        "profile": "tabular-data-package",
        "name": slug(product),
        "title": title,
        "description": "Codebook of a release of Yupana; manifest.json says how the release was made.",
        "resources": resources,
    }
    return of_tables(package, {path: (path, columns) for path, columns in files.items()})


def numbers(plan: Plan) -> dict[str, Label]:
    """The columns of noisy numbers and their noise."""
    return {
        "COUNT": Label("Count", "As published; its noise is told beside it.", "integer"),
        "NOISE_DISTRIBUTION": Label("Distribution of the noise", "Of each measured count that is added up."),
        "VARIANCE": Label("Variance of the noise", type="number"),
        "MOE": Label("Margin of error", f"{margin_words(plan.margins, plan.confidence)}.", "number"),
    }


def cell_labels(
    families: Sequence[Family], table: str, titles: Mapping[str, str], name: Callable[[str, Value], str]
) -> dict[str, Label]:
    """The columns that tell the cells of a table apart; ``name`` is asked for each label of a column."""
    shown = next(f.having(table)[0][table] for f in families if table in f.tables)
    found = {}
    for place, column in enumerate(shown.columns):
        labels = dict.fromkeys(cell.labels[place] for cell in shown.cells)
        kind: Literal["integer", "string"] = "integer" if all(isinstance(label, int) for label in labels) else "string"
        values = {label: name(column, label) for label in labels}
        found[column] = Label(titles.get(column, "Cell"), type=kind, values=values)
    return found


def _resource(path: str, title: str, labels: Mapping[str, Label]) -> dict[str, Any]:
    is_parquet = path.endswith(PARQUET)
    form: dict[str, Any] = (
        {"format": "parquet", "mediatype": "application/vnd.apache.parquet"}
        if is_parquet
        else {
            "format": "csv",
            "mediatype": "text/csv",
            "encoding": "utf-8",
            "dialect": {"delimiter": "|", "header": True},
        }
    )
    return {
        "name": resource_name(path),
        "type": "table",
        "profile": "tabular-data-resource",
        "title": title,
        "path": path,
        **form,
        "schema": {"fields": [_field(column, label) for column, label in labels.items()]},
    }


def _field(column: str, label: Label) -> dict[str, Any]:
    categories = [{"value": value, "label": name} for value, name in label.values.items()]
    return {
        "name": column,
        "type": label.type,
        "title": label.title,
        **({"description": label.description} if label.description else {}),
        **({"categories": categories} if categories else {}),
    }
