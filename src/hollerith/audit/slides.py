"""The example of the Census Bureau's slides on attribute privacy loss: five people, eight secrets, forty numbers."""

from collections.abc import Mapping
from typing import Final

from hollerith.audit.attribute import Secret
from hollerith.audit.families import Individual

INDIVIDUALS: Final = (
    Individual("Alice", age=20, relation=25, size=3, type=2),
    Individual("Bob", age=16, relation=25, size=3, type=1),
    Individual("Carol", age=20, relation=20, size=1, type=5),
    Individual("Dave", age=16, relation=20, size=3, type=1),
    Individual("Elise", age=60, relation=20, size=10, type=1),
)
"""Alice lives with a married couple (no own child under 18 is told of), Carol alone."""

SECRETS: Final = (
    Secret("Sex", frozenset({"Sex", "Relation"})),
    Secret("Age", frozenset({"Age", "Relation"})),
    Secret("Race-Ethnicity", frozenset({"Race", "Ethnicity"})),
    Secret("Same-Sex Relationship", frozenset({"Sex", "Relation"})),
    Secret("Unmarried Partner", frozenset({"Relation"})),
    Secret("Multi-racial Family", frozenset({"Race", "Ethnicity", "Relation"})),
    Secret("Over Rental Capacity", frozenset({"HouseholdID", "Tenure"})),
    Secret("Exact Household", frozenset({"HouseholdID"})),
)

_PRINTED: Final = {
    "Alice": "0.055 0.558 0 0.055 0.055 0.055 1.433 1.433",
    "Bob": "0.508 0.558 0.443 0.508 0.508 0.508 2.819 2.819",
    "Carol": "0.126 0.126 0.038 0.126 0 0.039 1.067 1.067",
    "Dave": "0.508 0.558 0.633 0.508 0.508 0.647 2.819 2.819",
    "Elise": "0.404 2.156 1.395 0.404 1.79 2.819 1.433 1.433",
}

PRINTED: Final[Mapping[tuple[str, str], float]] = {
    (name, secret.name): float(value)
    for name, row in _PRINTED.items()
    for secret, value in zip(SECRETS, row.split(), strict=True)
}
"""The results as printed, by individual and secret."""
