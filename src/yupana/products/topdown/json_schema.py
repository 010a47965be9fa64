"""What a configuration of TopDown may hold, as JSON Schema."""

from typing import Any, Final

from yupana.geography.areas import AREA_TYPES
from yupana.geography.settings import KINDS, LEVELS, PRODUCTIONS
from yupana.products.json_schema import BUDGET, PAIRS, SHARE, Schema, root, said, table
from yupana.products.parts import PARTS
from yupana.topdown.reading.configuration import PRIVACY_UNITS

_WHOLE: Final[Schema] = {"type": "integer", "minimum": 0}
_NAMES: Final[Schema] = {"anyOf": [{"type": "array", "items": {"type": "string"}}, {"type": "string"}]}
_PASSES: Final[Schema] = {
    "type": "array",
    "minItems": 1,
    "items": {"type": "array", "items": {"type": "string"}, "minItems": 1},
}


def schema() -> Schema:
    """The schema of a configuration in TOML or JSON."""
    described = root(
        "TopDown",
        {
            "product": said("your name for what is made", {"type": "string", "pattern": r"\S"}),
            "privacy_unit": said("whose presence is protected", {"enum": list(PRIVACY_UNITS)}),
            "mechanism": said(
                "zcdp: discrete Gaussian noise, budget rho; pure: geometric noise, budget epsilon",
                {"enum": ["zcdp", "pure"]},
            ),
            "rho": said("the whole budget under zcdp; inf adds no noise, for synthetic data only", BUDGET),
            "epsilon": said("the whole budget under pure", BUDGET),
            "invariants": _by_geolevel(
                "geolevels whose totals are kept exactly, outside the guarantee", {"enum": [[], ["total"]]}
            ),
            "schema": said(
                "the attributes, each a number of levels or their labels",
                _named({"anyOf": [{**_WHOLE, "minimum": 1}, {"type": "array", "items": {"type": "string"}}]}),
            ),
            "shares": _by_geolevel("what part each geolevel has; they sum to 1", SHARE),
            "queries": _by_geolevel(
                "what is measured at a geolevel, and its part; they sum to 1. A query names the attributes it keeps "
                "(race*hispanic), or is total or detailed",
                _named(SHARE),
            ),
            "passes": _by_geolevel(
                "the order in which queries are estimated from, and rounded",
                table("of one geolevel", {"estimate": _PASSES, "round": _PASSES}, ("estimate", "round")),
            ),
            "recodes": said(
                "groupings of an attribute's levels, to be used in queries",
                _named(
                    table(
                        "a grouping",
                        {
                            "of": {"type": "string"},
                            "groups": {"type": "array", "items": {"type": "array", "minItems": 1}, "minItems": 1},
                        },
                    )
                ),
            ),
            "constraints": table(
                "what every count satisfies",
                {
                    "group_quarters": said("the first attribute, if its levels are types of quarters", _TEXT),
                    "structural_zeros": said(
                        "combinations of levels that nobody can have",
                        {"type": "array", "items": {"type": "object", "minProperties": 1}},
                    ),
                },
                ("group_quarters", "structural_zeros"),
            ),
            "spine": _spine(),
            "areas": table(
                "what the spine is, in place of the Census Bureau's blocks",
                {
                    "levels": said(
                        "geolevels from the root down, the last those of the blocks",
                        {"type": "array", "items": {"type": "string"}, "minItems": 1, "uniqueItems": True},
                    ),
                    "of": said("of each unit the one it lies in, or a public file that says so", PAIRS),
                },
            ),
        },
        (
            *("privacy_unit", "mechanism", "rho", "epsilon", "invariants", "passes", "recodes", "constraints"),
            *("spine", "areas"),
        ),
    )
    pure = {"properties": {"mechanism": {"const": "pure"}}, "required": ["mechanism"]}
    one = {
        "required": described["required"],
        "if": pure,
        "then": {"required": ["epsilon"]},
        "else": {"required": ["rho"]},
    }
    return {
        **described,
        "properties": {**described["properties"], PARTS: _parts()},
        "required": ["product"],
        "if": {"required": [PARTS]},
        "then": {"propertyNames": {"enum": ["product", PARTS]}},
        "else": one,
    }


def _parts() -> Schema:
    inline = {"$ref": "#", "not": {"required": [PARTS]}}
    of_each = {"anyOf": [_TEXT, inline]}
    return said(
        "in place of all else but product: configurations that make one release, each with a plan of its own; of each "
        "its built-in name, a file beside this one, or what such a file holds",
        {"type": "object", "propertyNames": {"pattern": "^[a-z][a-z0-9_]*$"}, "additionalProperties": of_each},
    )


_TEXT: Final[Schema] = {"type": "string"}


def _spine() -> Schema:
    options: dict[str, Any] = {
        "production": {"enum": list(PRODUCTIONS)},
        "kind": {"enum": list(KINDS)},
        "fanout_cutoff": _WHOLE,
        "entity_threshold": _WHOLE,
        "bypass_cutoff": _WHOLE,
        "grouping": {"enum": ["orig", "even"]},
        "classes": _NAMES,
        "aian_areas": said(f"of {', '.join(AREA_TYPES)}", _NAMES),
        "strong_mcd_states": _NAMES,
        "live": {"type": "boolean"},
    }
    options |= {key.replace("_", "-"): option for key, option in options.items()}
    return table("the options of `yupana spine build`", options, tuple(options))


def _named(schema: Schema) -> Schema:
    return {"type": "object", "additionalProperties": schema}


def _by_geolevel(description: str, schema: Schema) -> Schema:
    """By geolevels of the Census Bureau's blocks, which editors offer, or of areas."""
    return {**table(description, dict.fromkeys(LEVELS, schema), LEVELS), "additionalProperties": schema}
