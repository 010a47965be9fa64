"""What the page says of a strategy that was found."""

from dataclasses import replace

import pytest

import yupana
from yupana.report.topdown import loss_in_words


@pytest.mark.parametrize(
    ("gap", "told"), [(0.2681, "27%"), (0.0501, "5.1%"), (0.00012, "0.012%"), (3e-7, "0.0001%"), (-1e-7, "0.0001%")]
)
def test_how_near_the_best_is_never_told_too_well(gap: float, told: str) -> None:
    found = yupana.strategy("cook-2010")
    said = loss_in_words(replace(found, bound=found.found_loss / (1 + gap)), "sum")
    assert said.endswith(f"by more than {told}.")
    assert f"{100 * found.found_loss / found.given_loss:.2f}%" in said


def test_an_answer_that_nothing_told_and_cells_that_nothing_tells_are_named() -> None:
    found = yupana.strategy("cook-2010")
    assert "nothing tells one of the answers" in loss_in_words(replace(found, given_loss=float("inf")), "max")
    bare = yupana.strategy("cook-2010", targets={"queries": {"total": 1}}, least=0)
    assert "no longer measured at Tract, Block Group, Block" in loss_in_words(bare, "sum")
