"""What a configuration of TopDown may hold, as JSON Schema."""

from yupana.files.declaration import Schema, schema_of
from yupana.products.parts import PARTS, PARTS_SCHEMA
from yupana.topdown.reading.declaration import DOCUMENT


def schema() -> Schema:
    """The schema of a configuration in TOML or JSON, or of one of parts."""
    found = schema_of("TopDown", DOCUMENT)
    one = {
        "required": found["required"],
        "if": {"properties": {"mechanism": {"const": "pure"}}, "required": ["mechanism"]},
        "then": {"required": ["epsilon"]},
        "else": {"required": ["rho"]},
    }
    return {
        **found,
        "properties": {**found["properties"], PARTS: PARTS_SCHEMA},
        "required": ["product"],
        "if": {"required": [PARTS]},
        "then": {"propertyNames": {"enum": ["product", PARTS]}},
        "else": one,
    }
