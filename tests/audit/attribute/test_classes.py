"""Attribute loss by class of individual: the slides' conclusions, derived and not supposed."""

import json
from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import pytest

from yupana.audit.attribute.answers import (
    DIVISIONS,
    INDIVIDUALS,
    PRINTED,
    SECRETS,
    AttributeAnswer,
    comparisons,
    rule_of_the_slides,
    slides_plan,
)
from yupana.audit.attribute.loss import AttributeLoss
from yupana.cli.main import main
from yupana.products.phsafe.configuration import TAUS

NOTHING = AttributeLoss(Fraction(0), (), same_state=True, tried=0)


def answer(name: str, secret: str, printed: float | None, exact: Fraction = Fraction(0)) -> AttributeAnswer:
    individual = next(i for i in INDIVIDUALS if i.name == name)
    told = next(s for s in SECRETS if s.name == secret)
    rule = rule_of_the_slides(slides_plan(), TAUS, individual, told.attributes)
    return AttributeAnswer(individual, told, printed, rule, rule, replace(NOTHING, value=exact))


def example(printed: Mapping[tuple[str, str], float] = PRINTED) -> list[AttributeAnswer]:
    return [answer(*place, value) for place, value in printed.items()]


@pytest.mark.slow
def test_the_slides_conclude_what_their_numbers_say() -> None:
    found = {(c.division.name, c.column): c for c in comparisons(example())}
    for division in DIVISIONS:
        assert found[division.name, "printed"].holds
        assert found[division.name, "rule"].holds
    small, adults, others = (found[division.name, "printed"] for division in DIVISIONS)
    assert (small.members, small.others) == (("Alice", "Bob", "Carol", "Dave"), ("Elise",))
    assert (adults.members, adults.others) == (("Alice", "Carol", "Elise"), ("Bob", "Dave"))
    assert (others.members, others.others) == (("Alice", "Bob"), ("Carol", "Dave", "Elise"))
    assert [(c.less, c.pairs, c.half, c.twice) for c in (small, adults, others)] == [
        (6, 32, 20, 0),
        (5, 48, 26, 8),
        (6, 48, 18, 10),
    ]
    means = {secret: (float(mean), float(other)) for secret, mean, other in small.means}
    assert means["Sex"] == pytest.approx(((0.055 + 0.508 + 0.126 + 0.508) / 4, 0.404))


@pytest.mark.slow
def test_a_conclusion_that_the_numbers_do_not_bear_does_not_hold() -> None:
    # Householders and others change places: what was said of the ones is now false.
    swapped = {"Bob": "Dave", "Dave": "Bob", "Alice": "Elise", "Elise": "Alice"}
    turned = {(swapped.get(name, name), secret): value for (name, secret), value in PRINTED.items()}
    found = {(c.division.name, c.column): c for c in comparisons(example(turned))}
    assert not found["non-householders", "printed"].holds
    assert not found["small households", "printed"].holds
    assert found["small households", "rule"].holds


@pytest.mark.slow
def test_nobody_loses_less_where_all_lose_the_same() -> None:
    # Every exact loss of these answers is zero.
    exact = [c for c in comparisons(example()) if c.column == "exact"]
    assert [(c.less, c.half, c.twice, c.holds) for c in exact] == [(0, 0, 0, False)] * 3


def test_a_class_with_nobody_to_compare_is_left_out() -> None:
    alone = [answer("Carol", secret.name, None) for secret in SECRETS]
    assert list(comparisons(alone)) == []
    both = [*alone, *(answer("Dave", secret.name, None) for secret in SECRETS)]
    assert {(c.division.name, c.column) for c in comparisons(both)} == {("adults", "rule"), ("adults", "exact")}


# --- the command ----------------------------------------------------------------------------------------------------


@pytest.fixture
def unsearched(monkeypatch: pytest.MonkeyPatch) -> None:
    """The search takes minutes, and is tested elsewhere."""
    monkeypatch.setattr("yupana.audit.attribute.answers.attribute_loss", lambda *_: NOTHING)


@pytest.mark.usefixtures("unsearched")
def test_the_rows_tell_printed_minus_rule(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["audit", "attribute", "s-dhc-slides", "--example", "slides", "--json"]) == 0
    out, err = capsys.readouterr()
    rows = json.loads(out)
    assert {(row["individual"], row["secret"]): row["printed"] for row in rows} == dict(PRINTED)
    assert all(row["difference"] == pytest.approx(row["printed"] - row["rule"], abs=1e-12) for row in rows)
    assert max(abs(row["difference"]) for row in rows) < 4e-4
    assert "other budgets" not in err
    assert main(["audit", "attribute", "s-dhc-2020", "--example", "slides", "--json"]) == 0
    out, err = capsys.readouterr()
    rows = {(row["individual"], row["secret"]): row for row in json.loads(out)}
    assert rows["Bob", "Exact Household"]["difference"] == pytest.approx(2.819 - 2.510044, abs=1e-6)
    assert "other budgets" in err


@pytest.mark.usefixtures("unsearched")
def test_text_has_the_differences_and_the_conclusions(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["audit", "attribute", "s-dhc-2020", "--example", "slides"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert next(line for line in lines if line.startswith("Carol Race")).split()[2:] == [
        "0.038",
        "0.027107",
        "0.010893",
        "0.000000",
    ]
    assert any("small households beside households of 7 or more, printed: yes" in line for line in lines)
    assert "other budgets" in lines[-1]


@pytest.mark.usefixtures("unsearched")
def test_classes_have_an_output_of_their_own(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["audit", "attribute", "s-dhc-slides", "--example", "slides", "--classes", "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)
    assert [(row["class"], row["column"]) for row in rows] == [
        (division.name, column) for division in DIVISIONS for column in ("printed", "rule", "exact")
    ]
    assert [row["holds"] for row in rows] == [True, True, False] * 3
    assert len(rows[0]["means"]) == len(SECRETS)
    assert main(["audit", "attribute", "s-dhc-slides", "--classes"]) == 0
    assert "Elise" in capsys.readouterr().out
    path = tmp_path / "people.toml"
    path.write_text('[[individuals]]\nname = "X"\nage = 40\nrelation = "20"\nsize = "1"\nhousehold_type = "05"\n')
    assert main(["audit", "attribute", "s-dhc-slides", str(path), "--classes"]) == 2
    assert "nobody to compare" in capsys.readouterr().err
