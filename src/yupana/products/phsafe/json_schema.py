"""What a configuration of PHSafe may hold, as JSON Schema."""

from yupana.files.declaration import BUDGET, Schema
from yupana.products.census import STATES
from yupana.products.json_schema import MECHANISM, READER, root, said, states, table
from yupana.products.phsafe.configuration import LARGEST_TAU, RULES_OF_CONSISTENCY
from yupana.products.phsafe.specification import TABLES
from yupana.products.safetab.regions import PUERTO_RICO


def schema() -> Schema:
    """The schema of config.json or config.toml."""
    tau = {"type": "integer", "minimum": 1, "maximum": LARGEST_TAU}
    return root(
        "PHSafe (S-DHC)",
        {
            "privacy_budget": table(
                "what each table spends at each level; 0 measures nothing",
                {
                    t.name: table(f"{t.name} by level", {level.name: BUDGET.schema for level in t.levels})
                    for t in TABLES
                },
            ),
            "tau": table("how many persons of a household count at most", {t.name: tau for t in TABLES if t.limit}),
            "state_filter": states(
                f"the states of the run; {PUERTO_RICO}, Puerto Rico, is a run of its own", (*STATES, PUERTO_RICO)
            ),
            "reader": READER,
            "privacy_defn": MECHANISM,
            "truncation_key": said(
                "key of the hash that chooses whom truncation keeps; public, and chosen without looking",
                {"type": "string"},
            ),
            "consistency": table(
                "what becomes of units that break a rule (docs/phsafe.md)",
                {rule: {"enum": ["fail", "drop-and-count"]} for rule in RULES_OF_CONSISTENCY},
                RULES_OF_CONSISTENCY,
            ),
        },
        ("truncation_key", "consistency"),
    )
