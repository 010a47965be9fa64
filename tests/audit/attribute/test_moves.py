"""Attribute losses of moves in the example of the slides: a second and more each."""

import json

import pytest
from plans import production_plan

from yupana.audit.attribute.answers import INDIVIDUALS, SECRETS
from yupana.audit.attribute.loss import attribute_loss, costs_of
from yupana.cli.main import main
from yupana.products.phsafe.configuration import TAUS

pytestmark = pytest.mark.slow

FLOOR = {"Alice": 0.26142, "Bob": 0.26493, "Carol": 0.26218, "Dave": 0.27237, "Elise": 0.50591}
"""Lower bounds: an independent search in which a householder who moves stays one only in the old unit."""


@pytest.mark.thorough
def test_a_move_of_one_who_lives_alone_in_the_example_of_the_slides() -> None:
    carol = next(individual for individual in INDIVIDUALS if individual.name == "Carol")
    found = attribute_loss(costs_of(production_plan(puerto_rico=False), TAUS), carol, {"HouseholdID"})
    assert FLOOR["Carol"] <= found.value <= 1.953631
    assert len(found.changes) == 2


@pytest.mark.thorough
def test_the_example_of_the_slides(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["audit", "attribute", "s-dhc-2020", "--example", "slides", "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)
    assert len(rows) == 5 * len(SECRETS)
    found = {(row["individual"], row["secret"]): row for row in rows}
    for row in rows:
        assert row["exact"] <= min(row["rule"], 1.953631), (row["individual"], row["secret"])
    for name, least in FLOOR.items():
        exact, over = (found[name, secret]["exact"] for secret in ("Exact Household", "Over Rental Capacity"))
        assert least <= exact <= over
        # Somebody leaves one unit and joins another, and no other unit changes.
        assert len(found[name, "Exact Household"]["changes"]) == 2
