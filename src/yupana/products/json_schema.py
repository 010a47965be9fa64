"""Pieces of the JSON Schemas that say to editors what a configuration may hold."""

from collections.abc import Mapping, Sequence
from typing import Final

from yupana.files.declaration import Schema
from yupana.products.census import MECHANISMS


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


READER: Final = said("kept for the Census Bureau's files; the data folder decides", {"enum": ["csv", "cef"]})
MECHANISM: Final = said(
    "zcdp: discrete Gaussian noise, budgets are rho; puredp: geometric noise, budgets are epsilon",
    {"enum": list(MECHANISMS)},
)
