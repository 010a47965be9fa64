"""Pieces of the JSON Schemas that say to editors what a configuration may hold."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from yupana.products.census import MECHANISMS

Schema = dict[str, Any]

_TEXT_OF_NUMBER: Final = r"^\s*([+]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]{1,3})?|[+]?[0-9]+/[0-9]+)\s*$"
NUMBER: Final[Schema] = {"anyOf": [{"type": "number", "minimum": 0}, {"type": "string", "pattern": _TEXT_OF_NUMBER}]}
"""An exact number that is not negative: a number, or a text such as ``"3/8"``."""

SHARE: Final[Schema] = {
    "anyOf": [*NUMBER["anyOf"], {"type": "string", "pattern": r"^\s*[+]?([0-9]+(\.[0-9]*)?|\.[0-9]+)%\s*$"}]
}
"""A part of a whole: an exact number that is not negative, or a text of percent such as ``"12.5%"``."""

BUDGET: Final[Schema] = {"anyOf": [*NUMBER["anyOf"], {"enum": ["Infinity", "inf", "Inf"]}]}
"""A budget: an exact number, or infinite."""


def table(description: str, properties: Mapping[str, Schema], optional: Sequence[str] = ()) -> Schema:
    """A table with these keys alone; all but the optional ones are required."""
    required = [key for key in properties if key not in optional]
    return {
        "description": description,
        "type": "object",
        "properties": dict(properties),
        **({"required": required} if required else {}),
        "additionalProperties": False,
    }


def root(title: str, properties: Mapping[str, Schema], optional: Sequence[str] = ()) -> Schema:
    """The schema of a whole configuration."""
    described = table(f"The configuration of {title}.", properties, optional)
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": title, **described}


def said(description: str, schema: Schema) -> Schema:
    """A schema with a description, which editors show."""
    return {"description": description, **schema}


def states(description: str, codes: Sequence[str]) -> Schema:
    """A list of distinct state codes."""
    items = {"type": "string", "enum": list(codes)}
    return said(description, {"type": "array", "items": items, "minItems": 1, "uniqueItems": True})


TEXT: Final[Schema] = {"type": "string", "minLength": 1}


def public_file(description: str, *columns: str) -> Schema:
    """A public file and those of its columns that are read; those of labels and parents may be left out."""
    optional = tuple(column for column in columns if column in {"label", "parent"})
    return table(description, {"file": TEXT, **dict.fromkeys(columns, TEXT)}, optional)


PAIRS: Final[Schema] = {
    "anyOf": [
        public_file("a public file of codes and areas", "code", "area"),
        {"type": "object", "additionalProperties": {"anyOf": [TEXT, {"type": "array", "items": TEXT}]}},
    ]
}
"""What each code lies in."""

READER: Final = said("kept for the Census Bureau's files; the data folder decides", {"enum": ["csv", "cef"]})
MECHANISM: Final = said(
    "zcdp: discrete Gaussian noise, budgets are rho; puredp: geometric noise, budgets are epsilon",
    {"enum": list(MECHANISMS)},
)
