"""What a description of tables may hold, as JSON Schema."""

from yupana.products.json_schema import BUDGET, MECHANISM, NUMBER, PAIRS, TEXT, Schema, public_file, root, said, table

_TEXTS: Schema = {"type": "array", "items": TEXT, "minItems": 1}
_NAME: Schema = {"pattern": "^[A-Za-z][A-Za-z0-9_-]{0,62}$"}
_MARGIN: Schema = table("the margin of error of a cell that the least budget is found for", {"moe": NUMBER})
_VALUE: Schema = {"anyOf": [TEXT, {"type": "integer"}]}
_CONDITION: Schema = {
    "description": "for each column or recode a value, or several; whole numbers may be ranges such as '0-17'",
    "type": "object",
    "additionalProperties": {"anyOf": [_VALUE, {"type": "array", "items": _VALUE, "minItems": 1}]},
}

_TEXT_OR_MORE: Schema = {"anyOf": [_VALUE, {"type": "array", "items": _VALUE, "minItems": 1}]}
_ROWS: Schema = {
    "description": "by column of a file what its rows say there: a text, or several",
    "type": "object",
    "additionalProperties": _TEXT_OR_MORE,
}
_LABELS: Schema = {"type": "object", "additionalProperties": TEXT}
_CODES: Schema = {"anyOf": [_TEXTS, _LABELS, public_file("a public file with the codes", "code", "label", "parent")]}
_OF_LISTS: Schema = table("groups of lists, those whose rows say so", {"from": _TEXTS, "where": _ROWS}, ("where",))


def _each(description: str, schema: Schema) -> Schema:
    return {
        "description": description,
        "type": "object",
        "propertyNames": _NAME,
        "additionalProperties": schema,
    }


def _detail() -> Schema:
    numbers: Schema = {"type": "array", "items": {"type": "integer", "minimum": 0}, "minItems": 1}
    by_level: Schema = {"type": "object", "additionalProperties": numbers}
    chances: Schema = {"type": "object", "additionalProperties": NUMBER}
    return table(
        "how finely each group is counted, by a noisy total that is not published",
        {
            "steps": said("tables that show a group, the coarsest first", {"type": "array", "items": _TEXTS}),
            "thresholds": said("totals from which a group gets the next step", {"anyOf": [numbers, by_level]}),
            "share": said("of each budget, spent on the total", NUMBER),
            "published": said("whether totals of another release decide instead", {"type": "boolean"}),
            "coarsest": said(
                "groups that always get the first step", {"anyOf": [{"type": "array", "items": TEXT}, _OF_LISTS]}
            ),
            "leave_out": said("by level, the chance with which the count of an empty group is left out", chances),
        },
        ("share", "published", "coarsest", "leave_out"),
    )


def _criterion() -> Schema:
    whole: Schema = {"type": "integer", "minimum": 1}
    labels: Schema = {"type": "object", "additionalProperties": {"anyOf": [_VALUE, {"type": "array", "items": _VALUE}]}}
    return table(
        "errors of a table that shall be small",
        {
            "table": said("a table, or one of its margins or sums", TEXT),
            "level": said("one that the table has a budget for", TEXT),
            "rows": said("what rows say in some columns; all rows if it is not there", labels),
            "at_least": said("the smallest true count of a row", whole),
            "at_most": said("the largest true count of a row", {"type": "integer", "minimum": 0}),
            "fewest": said("how many rows of that size there are at least, as is known without looking", whole),
            "error": said("a share of the true count, or records", {"enum": ["relative", "absolute"]}),
            "quantile": said("which of the errors: 0.5 is the median, 1 the largest", NUMBER),
            "most": said("how large it may be", NUMBER),
            "chance": said("with which it shall hold; the confidence of the description if it is not there", NUMBER),
        },
        ("rows", "at_least", "at_most", "fewest", "chance"),
    )


def schema() -> Schema:
    """The schema of a description."""
    whole: Schema = {"type": "array", "items": {"type": "integer", "minimum": 0}, "minItems": 2, "maxItems": 2}
    column = table(
        "a column that tables may read: codes, or a range of whole numbers",
        {
            "codes": said("all values there are: a list, a table of codes and labels, or a file", _CODES),
            "whole": said("the least and the largest value", whole),
            "missing": said("the text of a record without a value, which may then lack one", TEXT),
            "fixed": said("whether no change of a unit below changes it", {"type": "boolean"}),
            "occurring": said("whether the codes are those that occur, declared to be public", {"type": "boolean"}),
        },
        ("codes", "whole", "missing", "fixed", "occurring"),
    )
    file = table(
        "a record file, by its name without ending",
        {
            "record": said("what one record is called", TEXT),
            "key": said("the column that tells its records apart", TEXT),
            "parent": table("the record that each belongs to", {"file": TEXT, "column": TEXT}),
            "hashed": said("all columns, in the order in which the hash of a limit reads them", _TEXTS),
            "columns": {"type": "object", "additionalProperties": column},
            "responses": _each("questions that one record may answer with several codes", _response()),
        },
        ("record", "key", "parent", "hashed", "responses"),
    )
    areas = table(
        "a kind of areas: every code of a column, its first characters, or what lies in it; without a column, one area",
        {
            "column": TEXT,
            "from": said("a kind of areas before it, that these areas are made of", TEXT),
            "first": {"type": "integer", "minimum": 1},
            "of": said("of each code the areas it lies in; they may overlap", PAIRS),
            "code": said("of the one area there is", TEXT),
            "labels": _LABELS,
            "blocks": said("columns of the file of blocks, whose digits are the code of an area", _TEXTS),
            "nowhere": said("by such a column the value of blocks that are in no area of the kind", _LABELS),
        },
        ("column", "from", "first", "of", "code", "labels", "blocks", "nowhere"),
    )
    parts: Schema = {"anyOf": [_TEXTS, _CONDITION]}
    sums: Schema = {"type": "object", "additionalProperties": {"type": "object", "additionalProperties": parts}}
    hierarchy = table(
        "kinds of areas, each made of those of the next",
        {
            "column": said("a column of codes: the units of the last kind", TEXT),
            "levels": said("names of the kinds, from the one area that holds everything down", _TEXTS),
            "of": said("of each unit the one it lies in, or a public file that says so", PAIRS),
        },
    )
    ids = table("a column whose values tell units apart", {"file": TEXT, "column": TEXT, "record": TEXT}, ("record",))
    unit: Schema = {"anyOf": [TEXT, ids]}
    described = table(
        "a table that is measured",
        {
            "title": TEXT,
            "counts": said("the file whose records are counted", TEXT),
            "where": _CONDITION,
            "limit": table(
                "how many records count at most of each record of a file above",
                {"per": TEXT, "most": {"type": "integer", "minimum": 1}},
            ),
            "by": said("columns and recodes whose classes make the cells", _TEXTS),
            "margins": said(
                "tables that keep some of these columns", {"type": "object", "additionalProperties": {"type": "array"}}
            ),
            "cells": said("cells by label", {"type": "object", "additionalProperties": _CONDITION}),
            "sums": said("tables whose rows add up cells", sums),
            "groups": said(
                "groups with conditions of their own", {"type": "object", "additionalProperties": _CONDITION}
            ),
            "headings": said(
                "by table, the columns that name its cells; none of a table of one row",
                {"type": "object", "additionalProperties": {"anyOf": [TEXT, {"type": "array", "items": TEXT}]}},
            ),
            "detail": _detail(),
            "overlapping": said("whether cells may overlap", {"type": "boolean"}),
            "budget": said("by level", {"type": "object", "additionalProperties": {"anyOf": [BUDGET, _MARGIN]}}),
            "stated": table("larger sensitivities than derived", {"unbounded": NUMBER, "bounded": NUMBER}),
        },
        (
            *("title", "where", "limit", "by", "margins", "cells", "sums", "groups", "headings", "detail"),
            *("overlapping", "stated"),
        ),
    )
    total = table("the total", {"by": {"type": "array", "maxItems": 0}})
    topdown = table(
        "how yupana topdown makes the tables consistent",
        {
            "spine": said("kinds of areas from the one of everything down to the blocks", _TEXTS),
            "cells": said("the table whose cells all counts are given by", TEXT),
            "invariants": {"type": "object", "additionalProperties": total},
            "structural_zeros": {"type": "array", "items": {"type": "object", "additionalProperties": TEXT}},
        },
        ("invariants", "structural_zeros"),
    )
    return root(
        "tables of a description",
        {
            "name": said("what manifests call it", {"type": "string", **_NAME}),
            "title": TEXT,
            "unit": said("the file whose records are protected, each with all below it, or a column of ids", unit),
            "privacy_defn": MECHANISM,
            "neighbours": said("what one unit's change is", {"enum": ["add-remove", "replace"]}),
            "confidence": said("of the margins of error", NUMBER),
            "truncation_key": said("key of the hash that orders records before a limit", {"type": "string"}),
            "noise_distribution": said("whether tables have the column NOISE_DISTRIBUTION", {"type": "boolean"}),
            "files": _each("record files", file),
            "recodes": _each(
                "classes of the values of a column",
                table(
                    "",
                    {
                        "column": TEXT,
                        "classes": {"type": "object"},
                        "incomplete": said("whether values may be in no class, and so in no cell", {"type": "boolean"}),
                    },
                    optional=("incomplete",),
                ),
            ),
            "blocks": _blocks(),
            "group_lists": _each("groups by responses, of public files", _group_list()),
            "hierarchies": _each("kinds of areas by tables of units and parents", hierarchy),
            "areas": _each("kinds of areas", areas),
            "groups": {
                "description": "population groups, which may overlap",
                "type": "object",
                "additionalProperties": _group(),
            },
            "levels": {
                "description": "areas by groups; every kind of areas is a level of its name, too",
                "type": "object",
                "additionalProperties": table(
                    "a level", {"areas": TEXT, "groups": {"anyOf": [_TEXTS, _OF_LISTS]}}, ("groups",)
                ),
            },
            "tables": _each("tables", described),
            "criteria": _each("how accurate tables shall be", _criterion()),
            "postprocess": _postprocess(),
            "topdown": topdown,
        },
        (
            *("title", "privacy_defn", "neighbours", "confidence", "truncation_key", "recodes", "groups", "levels"),
            "noise_distribution",
            *("criteria", "postprocess", "hierarchies", "areas", "topdown", "blocks", "group_lists"),
        ),
    )


def _blocks() -> Schema:
    digits: Schema = {"type": "object", "additionalProperties": {"type": "integer", "minimum": 1, "maximum": 18}}
    return table(
        "a public file of blocks beside the records",
        {
            "file": said("its name without ending", TEXT),
            "key": said("the columns that name a block, in order, with their digits; records have them, too", digits),
            "columns": said("others that areas are made of, with their digits", digits),
            "only": said("values of the first column of the key; blocks and records of others are left out", _ROWS),
            "housing_units": said(
                "a public file of how many housing units stand in each block; areas without one are left out",
                table("its name, and its columns", {"file": TEXT, "block": TEXT, "number": TEXT}),
            ),
        },
        ("columns", "only", "housing_units"),
    )


def _response() -> Schema:
    return table(
        "a question that one record may answer with several codes, each in a column",
        {
            "columns": said("as the file calls them", {**_TEXTS, "maxItems": 8}),
            "codes": said("all answers there are: a list, a table of codes and labels, or a file", _CODES),
            "missing": said("the code for none", TEXT),
            "most": said("how many of the columns count, the first ones", {"type": "integer", "minimum": 1}),
        },
        ("missing", "most"),
    )


def _group() -> Schema:
    by_response = {
        "label": TEXT,
        "response": said("a response, as FILE.NAME", TEXT),
        "codes": said("of the records in the group", {"type": "array", "items": TEXT}),
        "alone": said("whether all codes of a record must be among these, not any", {"type": "boolean"}),
    }
    return {
        "anyOf": [
            table("a group by columns", {"label": TEXT, "where": _CONDITION}, ("label",)),
            table("a group by a response", by_response, ("label", "alone")),
        ]
    }


def _group_list() -> Schema:
    return table(
        "groups by a response: one for each row of a file",
        {
            "response": said("a response, as FILE.NAME", TEXT),
            "file": TEXT,
            "code": said("the column of groups", TEXT),
            "label": said("the column of what they are called", TEXT),
            "members": public_file("a public file of groups and their codes", "group", "code"),
            "alone": said("the rows of groups of whose records all codes are members", _ROWS),
        },
        ("label", "alone"),
    )


def _postprocess() -> Schema:
    flags = {
        "non_negative": "whether counts below 0 become 0",
        "consistent": "whether areas show the sums of those in them",
        "coterminous": "whether areas that hold the same show the same",
    }
    parts = {name: said(text, {"type": "boolean"}) for name, text in flags.items()}
    below = said("counts below it are X", {"type": "integer", "minimum": 1})
    return table("what is done to noisy counts", {**parts, "suppress_below": below}, (*flags, "suppress_below"))
