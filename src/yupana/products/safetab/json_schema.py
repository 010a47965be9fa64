"""What a configuration of SafeTab-P or SafeTab-H may hold, as JSON Schema. One file may hold the keys of both."""

from yupana.files.declaration import BUDGET, Schema
from yupana.products.census import STATES
from yupana.products.json_schema import MECHANISM, READER, root, said, states, table
from yupana.products.safetab.configuration import KEYS_H, KEYS_P, OPTIONAL_P
from yupana.products.safetab.iterations import MOST_RACE_CODES
from yupana.products.safetab.regions import LEVELS

_FLAG: Schema = {"type": "boolean"}
_SHARE: Schema = {"anyOf": [{"type": "number", "minimum": 0, "exclusiveMaximum": 1}, {"type": "string"}]}


def persons() -> Schema:
    """The schema of SafeTab-P's keys; SafeTab-H's are allowed."""
    return _root("SafeTab-P (Detailed DHC-A)", OPTIONAL_P, KEYS_H)


def households() -> Schema:
    """The schema of SafeTab-H's keys; SafeTab-P's are allowed."""
    return _root("SafeTab-H (Detailed DHC-B)", (), (*KEYS_P, *OPTIONAL_P))


def _root(title: str, optional: tuple[str, ...], others: tuple[str, ...]) -> Schema:
    budgets = {
        key: said(f"the budget of {key.removeprefix('privacy_budget_')}; 0 measures nothing", BUDGET.schema)
        for key in (*KEYS_P, *KEYS_H)
        if "_level_" in key
    }
    properties: dict[str, Schema] = {
        "max_race_codes": said(
            "how many race codes of a record count",
            {"type": "integer", "minimum": 1, "maximum": MOST_RACE_CODES},
        ),
        "allow_negative_counts": said("whether noisy counts below zero stay as they are", _FLAG),
        "run_us": said("whether the states are tabulated", _FLAG),
        "run_pr": said("whether Puerto Rico is", _FLAG),
        "reader": READER,
        "state_filter_us": states("the states of the US pass", STATES),
        "privacy_defn": MECHANISM,
        **budgets,
        "privacy_budget_p_stage_1_fraction": said("the share that chooses the table of each group", _SHARE),
        "thresholds_p": _thresholds("noisy totals from which a group has 4, 9 and 23 ages", 3),
        "zero_suppression_chance": said("the chance that the total of an empty group is left out", _SHARE),
        "thresholds_h_t3": _thresholds("totals from which a group has the next larger table of T03", 3),
        "thresholds_h_t4": _thresholds("totals from which a group has the larger table of T04", 1),
    }
    not_read = {key: {"description": "of the other product; not read"} for key in others}
    return root(title, {**properties, **not_read}, (*optional, *others))


def _thresholds(description: str, least: int) -> Schema:
    numbers: Schema = {"type": "array", "items": {"type": "number"}, "minItems": least}
    keys = tuple(level.threshold_key for level in LEVELS)
    return table(description, dict.fromkeys(keys, numbers), keys)
