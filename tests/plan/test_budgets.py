"""Solving for budgets: optimal against a linear program, the published tables of 2020, and questions that are none."""

import json
import math
from collections.abc import Mapping
from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from plans import production_plan
from scipy.optimize import linprog

from yupana.cli.main import main
from yupana.errors import ConfigError
from yupana.plan.budgets import (
    Entry,
    Question,
    budget_for_margin,
    equal_errors,
    least,
    least_error,
    read_question,
    solve,
)
from yupana.plan.measurement import Margins, Measurement, Mechanism, Sensitivity, margin_of
from yupana.plan.plan import compose
from yupana.privacy.exact import INFINITE
from yupana.privacy.laws import TwoSidedGeometric
from yupana.products.phsafe.configuration import production_config, read_config
from yupana.products.phsafe.product import PHSAFE
from yupana.products.safetab.configuration import production_config as production_of_safetab
from yupana.products.safetab.configuration import read_config as read_safetab
from yupana.products.safetab.demonstration_parameters import write_parameters
from yupana.products.safetab.iterations import read_iterations
from yupana.products.safetab.product import HOUSEHOLDS, Parameters
from yupana.topdown.plan import make_plan as make_topdown_plan
from yupana.topdown.reading.configuration import read_configuration

NINETY, NINETY_FIVE = Fraction(9, 10), Fraction(95, 100)
SIZES = st.fractions(Fraction(1, 100), 10**6, max_denominator=1000)
SHARES = st.fractions(Fraction(1, 20), 1, max_denominator=20)
NEEDS = st.dictionaries(
    st.sampled_from(["a", "b", "c", "d"]),
    st.tuples(st.builds(Entry, st.just(Fraction(0)), st.fractions(1, 500, max_denominator=4), SHARES), SIZES),
    min_size=1,
)
"""Entries, each with a margin or a size."""

Needs = dict[str, tuple[Entry, Fraction]]
MECHANISMS = st.sampled_from(Mechanism)


def split(needs: Needs) -> tuple[dict[str, Entry], dict[str, Fraction]]:
    return {name: entry for name, (entry, _) in needs.items()}, {name: size for name, (_, size) in needs.items()}


def cell(entry: Entry, budget: Fraction, mechanism: Mechanism) -> Measurement:
    sensitivity = Sensitivity(entry.sensitivity, entry.sensitivity)
    return Measurement("m", "t", "l", 1, mechanism, entry.sensitivity, sensitivity, sensitivity, budget * entry.share)


def error_of(found: Mapping[str, Fraction], needs: Needs, mechanism: Mechanism) -> float:
    """The relative error of the first entry."""
    name, (entry, size) = next(iter(needs.items()))
    return cell(entry, found[name], mechanism).sigma / float(size)


def margin(entry: Entry, budget: Fraction, mechanism: Mechanism, margins: Margins) -> float:
    """The margin that a plan gives the count."""
    return margin_of(cell(entry, budget, mechanism).law, 1, NINETY, margins)


@settings(max_examples=20)
@given(NEEDS, MECHANISMS, st.sampled_from(["exact", "bureau"]))
def test_least_budgets_meet_every_margin_and_none_could_be_smaller(
    needs: Needs, mechanism: Mechanism, margins: Margins
) -> None:
    entries, wanted = split(needs)
    found = least(entries, wanted, NINETY, mechanism, margins)
    assert set(found) == set(needs)
    # Whole margins meet theirs to the last digit, those of the Bureau are doubles.
    slack = 0 if margins == "exact" else 1e-12
    for name, (entry, most) in needs.items():
        assert margin(entry, found[name], mechanism, margins) <= float(most) * (1 + slack)
        smaller = found[name] * (1 - Fraction(1, 10**9))
        assert margin(entry, smaller, mechanism, margins) > float(most) * (1 + slack)


def test_where_next_to_no_noise_is_left_there_is_no_error_in_floating_point() -> None:
    entries, sizes = {"a": Entry(Fraction(0), Fraction(1))}, {"a": Fraction(1)}
    assert least_error(entries, sizes, 1e6, Mechanism.PURE) is None
    assert least_error(entries, sizes, 1e-120, Mechanism.PURE) is None


@settings(max_examples=25)
@given(NEEDS, SIZES)
def test_equal_errors_are_those_of_the_linear_program(needs: Needs, total: Fraction) -> None:
    """With u = 1 / r^2 the largest error r is least where u is largest: rho_i >= c_i u and their sum <= total."""
    entries, sizes = split(needs)
    found = equal_errors(entries, sizes, total, Mechanism.ZCDP)
    least_of_all = error_of(found, needs, Mechanism.ZCDP)
    assert sum(found.values()) == total
    assert least_error(entries, sizes, float(total), Mechanism.ZCDP) == pytest.approx(least_of_all, rel=1e-9)
    names = sorted(found)
    rows, bounds = [], []
    scale = float(total)
    for name, (entry, size) in needs.items():
        # rho >= u d / (2 size^2 share); all in units of the total, u in units of the answer's.
        c = float(entry.sensitivity / (2 * size**2 * entry.share))
        row = [0.0] * (len(names) + 1)
        row[names.index(name)], row[-1] = -1.0, c / least_of_all**2 / scale
        rows.append(row)
        bounds.append(0.0)
    rows.append([1.0] * len(names) + [0.0])
    bounds.append(1.0)
    best = linprog([0.0] * len(names) + [-1.0], A_ub=rows, b_ub=bounds, bounds=[(0, None)] * (len(names) + 1))
    assert best.status == 0
    assert -best.fun == pytest.approx(1, rel=1e-6)  # the optimum's u is ours
    for name, (entry, size) in needs.items():
        error = cell(entry, found[name], Mechanism.ZCDP).sigma / float(size)
        assert error == pytest.approx(least_of_all, rel=1e-9)


@settings(max_examples=25)
@given(st.lists(SIZES, min_size=1, max_size=4), st.fractions(Fraction(1, 1000), 100, max_denominator=1000))
def test_equal_errors_under_pure_dp_spend_the_total_and_are_equal(sizes: list[Fraction], total: Fraction) -> None:
    needs = {str(i): (Entry(Fraction(0), Fraction(6)), size) for i, size in enumerate(sizes)}
    found = equal_errors(*split(needs), total, Mechanism.PURE)
    least_of_all = error_of(found, needs, Mechanism.PURE)
    assert float(sum(found.values())) == pytest.approx(float(total), rel=1e-8)
    assert least_error(*split(needs), float(total), Mechanism.PURE) == pytest.approx(least_of_all, rel=1e-8)
    assert sum(found.values()) <= total
    for name, (entry, size) in needs.items():
        error = cell(entry, found[name], Mechanism.PURE).sigma / float(size)
        assert error == pytest.approx(least_of_all, rel=1e-8)


def test_a_margin_must_be_positive_and_a_total_be_spent_on_something() -> None:
    with pytest.raises(ValueError, match="positive"):
        budget_for_margin(Fraction(0), Fraction(4), NINETY, Mechanism.ZCDP)
    with pytest.raises(ValueError, match="above zero"):
        equal_errors({}, {}, Fraction(1), Mechanism.ZCDP)


def test_the_formula_is_the_corollary_of_the_paper() -> None:
    assert budget_for_margin(Fraction(500), Fraction(484), NINETY, Mechanism.ZCDP, "bureau") == (
        Fraction("1.645") ** 2 * 484 / (2 * 500**2)
    )


def test_sums_of_margins_round_trip_through_the_geometric_law() -> None:
    epsilon = budget_for_margin(Fraction(50), Fraction(22), NINETY, Mechanism.PURE, "bureau")
    a = float(epsilon) / 22
    assert 1.645 * math.sqrt(2 * math.exp(-a)) / (1 - math.exp(-a)) == pytest.approx(50, rel=1e-12)


@pytest.mark.parametrize("margins", ["exact", "bureau"])
def test_why_there_is_no_budget(margins: Margins) -> None:
    for margin in (Fraction(0), Fraction(-2)):
        with pytest.raises(ValueError, match=r"^a margin of error must be positive$"):
            budget_for_margin(margin, Fraction(4), NINETY, Mechanism.ZCDP, margins)
    budget_for_margin(Fraction(1, 2), Fraction(4), NINETY, Mechanism.ZCDP, margins)
    for sizes, total in ({}, Fraction(1)), ({"a": Fraction(1)}, Fraction(0)):
        with pytest.raises(ValueError, match=r"^a total above zero and counts to spend it on are needed$"):
            equal_errors({"a": Entry(Fraction(0), Fraction(1))}, sizes, total, Mechanism.ZCDP)


def test_budgets_by_the_margins_of_the_bureau() -> None:
    sigma = Fraction(50) / Fraction(1.96)
    epsilon = budget_for_margin(Fraction(50), Fraction(22), NINETY_FIVE, Mechanism.PURE, "bureau")
    law = TwoSidedGeometric(22 / epsilon)
    assert 1 - 1e-12 < law.variance / sigma**2 <= 1
    zcdp = budget_for_margin(Fraction(50), Fraction(22), NINETY_FIVE, Mechanism.ZCDP, "bureau")
    assert zcdp == Fraction("1.96") ** 2 * 22 / (2 * 50**2)


@pytest.mark.parametrize("mechanism", list(Mechanism))
def test_margins_are_exact_unless_said_otherwise(mechanism: Mechanism) -> None:
    asked = Fraction(7), Fraction(9), NINETY, mechanism
    exact = budget_for_margin(*asked)
    assert exact == budget_for_margin(*asked, "exact") != budget_for_margin(*asked, "bureau")
    entry = Entry(Fraction(0), Fraction(9))
    assert margin(entry, exact, mechanism, "exact") == 7
    assert margin(entry, exact * Fraction(99, 100), mechanism, "exact") == 8


def test_an_entry_pays_for_its_cells_by_their_share() -> None:
    entries = {"a": Entry(Fraction(0), Fraction(4), Fraction(1, 10)), "b": Entry(Fraction(3), Fraction(4))}
    margins_of = dict.fromkeys(entries, Fraction(10))
    for mechanism in Mechanism:
        for margins, other in ("exact", "bureau"), ("bureau", "exact"):
            one = budget_for_margin(Fraction(10), Fraction(4), NINETY, mechanism, margins)
            assert least(entries, margins_of, NINETY, mechanism, margins) == {"a": 10 * one, "b": one}
            assert one != budget_for_margin(Fraction(10), Fraction(4), NINETY, mechanism, other)
        exact = least(entries, margins_of, NINETY, mechanism, "exact")
        assert least(entries, margins_of, NINETY, mechanism) == exact
    assert least(entries, {}, NINETY, Mechanism.ZCDP) == {}


def test_equal_errors_under_zcdp_in_closed_form() -> None:
    """rho is d / (2 share (size r)^2): with sizes 10 and 20 as four to one."""
    entries = {"a": Entry(Fraction(0), Fraction(6)), "b": Entry(Fraction(0), Fraction(3), Fraction(1, 2))}
    found = equal_errors(entries, {"a": Fraction(10), "b": Fraction(20)}, Fraction(5), Mechanism.ZCDP)
    assert found == {"a": Fraction(4), "b": Fraction(1)}


@pytest.mark.parametrize("size", [Fraction(1, 1000), Fraction(1), Fraction(30)])
@pytest.mark.parametrize("total", [Fraction(1, 100), Fraction(1), Fraction(40)])
def test_equal_errors_under_pure_dp_spend_nearly_all(size: Fraction, total: Fraction) -> None:
    found = equal_errors({"a": Entry(Fraction(0), Fraction(6))}, {"a": size}, total, Mechanism.PURE)
    assert 1 - 1e-10 < found["a"] / total <= 1
    half = {name: Entry(Fraction(0), Fraction(6)) for name in "ab"}
    both = equal_errors(half, dict.fromkeys(half, size), total, Mechanism.PURE)
    assert both["a"] == both["b"] == pytest.approx(float(total) / 2, rel=1e-10)


TABLE_10 = {"usa": 500, "state_*": 200, "state_H,I": 200, "state_A-G": 68}
"""MOE targets of PHSafe, table 10, by level; PH3 by race is an exception, of 20."""


def phsafe_targets() -> dict[str, int]:
    return {
        f"{table}/{level}": 20 if (table, level) == ("PH3", "state_A-G") else TABLE_10.get(level, 500)
        for table, levels in production_config()["privacy_budget"].items()
        for level in levels
    }


def phsafe_config(folder: Path) -> Path:
    path = folder / "config.json"
    path.write_text(json.dumps(production_config()))
    return path


def asked(folder: Path, **question: object) -> str:
    path = folder / "targets.json"
    path.write_text(json.dumps(question))
    return str(path)


def test_table_10_of_phsafe_comes_out_of_its_moe_targets(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    config, targets = phsafe_config(tmp_path), asked(tmp_path, margins=phsafe_targets(), decimals=6)
    # Budgets of the configuration do not matter where every entry has a target.
    document = production_config()
    document["privacy_budget"] = {t: dict.fromkeys(levels, 1.5) for t, levels in document["privacy_budget"].items()}
    config.write_text(json.dumps(document))
    assert (
        main(
            [
                "phsafe",
                "plan",
                str(config),
                "--targets",
                targets,
                "--diff",
                "production",
                "--json",
                "--margins",
                "bureau",
            ]
        )
        == 0
    )
    answered = json.loads(capsys.readouterr().out)
    assert answered["differences"] == []
    assert answered["totals"]["rho"] == "1257281/1000000"
    published = {m.name: m.budget for m in production_plan(puerto_rico=False).measurements}
    assert {m["name"]: Fraction(m["rho"]) for m in answered["measurements"]} == published
    # The configuration that is told along is read back as the same plan.
    config.write_text(json.dumps(answered["configuration"]))
    assert PHSAFE.plan(read_config(config)) == production_plan(puerto_rico=False)


TABLE_9 = {"USA 2": 3, "STATE 2": 3, "COUNTY 2": 11, "TRACT 2": 11, "PLACE 2": 11, "AIANNH 2": 11} | {
    f"{region} 1": 50 for region in ("USA", "STATE", "COUNTY", "TRACT", "PLACE")
}
"""MOE targets of SafeTab-H, table 9."""


def test_table_9_of_safetab_h_comes_out_of_its_moe_targets(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "parameters"
    write_parameters(folder)
    margins = {f"{family}/{level}": moe for level, moe in TABLE_9.items() for family in ("T03", "T04")}
    targets = asked(tmp_path, margins=margins, decimals=6)
    assert (
        main(
            [
                "safetab-h",
                "plan",
                str(folder),
                "--targets",
                targets,
                "--json",
                "--diff",
                "production",
                "--margins",
                "bureau",
            ]
        )
        == 0
    )
    answered = json.loads(capsys.readouterr().out)
    assert answered["differences"] == []
    found = {m["name"]: Fraction(m["rho"]) for m in answered["measurements"]}
    assert found["T03/USA 2"] == Fraction("1.9208")
    assert found["T04/PLACE 2"] == Fraction("0.142869")
    assert found["T03/TRACT 1"] == Fraction("0.006915")
    published = HOUSEHOLDS.plan(Parameters(production_of_safetab("safetab-h", ("us",)), read_iterations(folder)))
    assert compose(published.measurements) == sum(found.values())
    (folder / "config.json").write_text(json.dumps(answered["configuration"]))
    assert read_safetab("safetab-h", folder / "config.json").budgets


def test_a_level_of_safetab_p_pays_for_both_stages(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "parameters"
    write_parameters(folder)
    targets = asked(tmp_path, margins={"COUNTY 2": 11, "USA 2": 3})
    assert main(["safetab-p", "plan", str(folder), "--targets", targets, "--json"]) == 0
    answered = json.loads(capsys.readouterr().out)
    moe = {m["name"]: m["moe"] for m in answered["measurements"]}
    assert moe["stage 2/COUNTY 2"] == 11
    assert moe["stage 2/USA 2"] == 3
    assert moe["detailed-only/USA 2"] <= 3
    (folder / "config.json").write_text(json.dumps(answered["configuration"]))
    budgets = read_safetab("safetab-p", folder / "config.json").budgets
    # Stage 1 takes a tenth.
    cells = budget_for_margin(Fraction(11), Fraction(9), NINETY_FIVE, Mechanism.ZCDP)
    assert budgets["COUNTY 2"] == cells / Fraction("0.9")


def test_a_strategy_of_topdown_gets_new_shares(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    targets = asked(tmp_path, margins={"County detailed": 2, "Block detailed": 10})
    assert main(["topdown", "plan", "cook-2010", "--targets", targets, "--json"]) == 0
    answered = json.loads(capsys.readouterr().out)
    moe = {m["name"]: m["moe"] for m in answered["measurements"]}
    assert moe["County detailed"] == 2
    assert moe["Block detailed"] == 10
    old = make_topdown_plan(read_configuration("cook-2010"))
    kept = {m.name: m.budget for m in old.measurements if m.name not in ("County detailed", "Block detailed")}
    assert {m["name"]: Fraction(m["rho"]) for m in answered["measurements"] if m["name"] in kept} == kept
    path = tmp_path / "topdown.json"
    path.write_text(json.dumps(answered["configuration"]))
    again = make_topdown_plan(read_configuration(path))
    assert {m.name: str(m.budget) for m in again.measurements} == {
        m["name"]: m["rho"] for m in answered["measurements"]
    }


def test_a_total_is_spent_and_what_has_no_size_keeps_its_budget(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config = phsafe_config(tmp_path)
    sizes = {"PH2/usa_*": 1_000_000, "PH2/state_*": 20_000}
    targets = asked(tmp_path, total="2.5", sizes=sizes, weights={"PH2/state_*": 2})
    assert main(["phsafe", "plan", str(config), "--targets", targets, "--json"]) == 0
    answered = json.loads(capsys.readouterr().out)
    assert answered["totals"]["rho"] == "5/2"
    sigma = {m["name"]: m["sigma"] for m in answered["measurements"]}
    assert sigma["PH2/usa_*"] / 1_000_000 == pytest.approx(2 * sigma["PH2/state_*"] / 20_000, rel=1e-12)
    assert {m["name"]: m["rho_float"] for m in answered["measurements"]}["PH7/usa_*"] == 0.002619


def test_passes_spend_the_total_each() -> None:
    names = ["us a", "us b", "pr a"]
    entries = {name: Entry(Fraction(1), Fraction(9), population=name[:2]) for name in names}
    question = Question(total=Fraction(3), sizes=dict.fromkeys(names, Fraction(10)))
    found = solve(question, entries, NINETY, Mechanism.ZCDP)
    assert found == {"us a": Fraction(3, 2), "us b": Fraction(3, 2), "pr a": Fraction(3)}
    # What a pass keeps is taken off its own total alone.
    question = Question(total=Fraction(3), sizes={"us a": Fraction(10), "pr a": Fraction(10)})
    found = solve(question, entries, NINETY, Mechanism.ZCDP)
    assert found == {"us a": Fraction(2), "us b": Fraction(1), "pr a": Fraction(3)}


def test_a_total_that_is_kept_already_leaves_nothing() -> None:
    question = Question(total=Fraction(1), sizes={"a": Fraction(10)})
    for kept, told in ((Fraction(1), "keep 1, which"), (INFINITE, "keep an infinite budget, which")):
        entries = {"a": Entry(Fraction(1), Fraction(9)), "b": Entry(kept, Fraction(9))}
        with pytest.raises(ConfigError, match=told):
            solve(question, entries, NINETY, Mechanism.ZCDP)


def test_rounding_keeps_a_total_and_never_leaves_a_count_out() -> None:
    three = {name: Entry(Fraction(1), Fraction(4)) for name in "abc"}
    question = Question(total=Fraction(1), sizes=dict.fromkeys(three, Fraction(10)), decimals=2)
    assert solve(question, three, NINETY, Mechanism.ZCDP) == dict.fromkeys(three, Fraction("0.33"))
    large = Question(margins={"a": Fraction(10**6)}, decimals=6)
    for margins in ("exact", "bureau"):
        found = solve(large, three, NINETY, Mechanism.ZCDP, margins)  # type: ignore[arg-type]
        assert found == {"a": Fraction(1, 10**6), "b": Fraction(1), "c": Fraction(1)}


def test_rounding_up_keeps_a_margin_that_is_exact() -> None:
    one = {"a": Entry(Fraction(1), Fraction(484))}
    for moe in (1, 2, 3, 5, 10, 22, 50, 79):
        for mechanism in Mechanism:
            exact, rounded = (
                solve(Question(margins={"a": Fraction(moe)}, decimals=d), one, NINETY, mechanism)["a"]
                for d in (None, 4)
            )
            assert Fraction(exact) <= Fraction(rounded) < Fraction(exact) + Fraction(1, 10**4)
            assert margin(one["a"], Fraction(rounded), mechanism, "exact") <= moe


def test_exact_margins_of_safetab_h_hold_where_those_of_the_bureau_fall_short(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """At 99 percent under pure DP z sigma of 11 covers 97.8 percent."""
    folder = tmp_path / "parameters"
    write_parameters(folder)
    document = json.loads((folder / "config.json").read_text()) | {"privacy_defn": "puredp"}
    (folder / "config.json").write_text(json.dumps(document))
    targets = asked(tmp_path, margins={"T03/COUNTY 2": 11})
    chances = {}
    for margins in ("bureau", "exact"):
        arguments = ["--targets", targets, "--confidence", "0.99", "--json", "--margins", margins]
        assert main(["safetab-h", "plan", str(folder), *arguments]) == 0
        answered = json.loads(capsys.readouterr().out)
        m = next(m for m in answered["measurements"] if m["name"] == "T03/COUNTY 2")
        a = float(Fraction(m["epsilon"]) / Fraction(m["l1_sensitivity"]))
        chances[margins] = 1 - 2 * math.exp(-12 * a) / (1 + math.exp(-a))
        assert m["moe"] == pytest.approx(11, rel=1e-12)
    assert chances["bureau"] == pytest.approx(0.9777, abs=1e-4)
    assert chances["exact"] == pytest.approx(0.99, abs=1e-9)
    assert chances["exact"] >= 0.99 - 1e-15


@pytest.mark.parametrize(
    ("question", "told"),
    [
        ({}, "must be a table of margins, decimals, or a table of total, sizes, weights, decimals"),
        ({"margins": {"PH2/usa_*": 5}, "total": 1}, "key 'total' is unknown; known are margins, decimals"),
        ({"margins": {}}, "names no entry"),
        ({"margins": {"PH2/usa": 5}}, "PH2/usa"),
        ({"margins": {"PH2/usa_*": 0}}, "margins.PH2/usa_*: must be a number between"),
        ({"margins": {"PH2/usa_*": -3}}, "margins.PH2/usa_*"),
        ({"margins": {"PH2/usa_*": "many"}}, "not an exact number"),
        ({"margins": {"PH2/usa_*": True}}, "margins.PH2/usa_*"),
        ({"margins": {"PH2/usa_*": "Infinity"}}, "margins.PH2/usa_*"),
        ({"margins": [1]}, "must be an object"),
        ({"margins": {"PH2/usa_*": 5}, "decimals": 0}, "decimals"),
        ({"margins": {"PH2/usa_*": 5}, "digits": 6}, "'digits' is unknown"),
        ({"total": 1}, "'sizes' is missing"),
        ({"total": 0, "sizes": {"PH2/usa_*": 5}}, "total: must be"),
        ({"total": "0.5", "sizes": {"PH2/usa_*": 5}}, "leaves nothing"),
        ({"total": 3, "sizes": {"PH2/usa_*": 5}, "weights": {"PH2/state_*": 2}}, "has no size"),
        ({"total": "1.2382911", "sizes": {"PH2/usa_*": 5, "PH2/state_*": 1e6}, "decimals": 1}, "rounded down to 0"),
    ],
)
def test_a_question_that_is_none_is_refused_by_its_key(
    question: object, told: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config = phsafe_config(tmp_path)
    path = tmp_path / "targets.json"
    path.write_text(json.dumps(question))
    assert main(["phsafe", "plan", str(config), "--targets", str(path)]) == 2
    assert told in capsys.readouterr().err


def test_a_file_of_targets_must_be_one(tmp_path: Path) -> None:
    path = tmp_path / "targets.json"
    with pytest.raises(ConfigError, match="no such file"):
        read_question(path, {})
    path.write_text("{")
    with pytest.raises(ConfigError, match="not JSON"):
        read_question(path, {})
