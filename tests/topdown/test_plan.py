"""Plans of TopDown: the numbers of the 2020 runs and their certificates, exact sums, and the command line."""

import json
import math
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from places import ROOT
from topdown_worlds import LEVELS, write_configuration

from yupana.cli.main import main
from yupana.plan.measurement import Mechanism
from yupana.plan.plan import Neighbours
from yupana.privacy.exact import INFINITE
from yupana.privacy.laws import TwoSidedGeometric, Zero
from yupana.topdown.plan import lost, make_plan, semantics_of
from yupana.topdown.reading.configuration import BUILT_IN, counterpart, production_configuration, read_configuration

RHO = Fraction(293764, 114921)
RHO_UNITS = Fraction(11417641, 152349649)

QUERIES = (
    *("total", "cenrace", "hispanic", "votingage", "hhinstlevels", "hhgq", "hispanic*cenrace", "votingage*cenrace"),
    *("votingage*hispanic", "votingage*hispanic*cenrace", "detailed"),
)
CELLS = (1, 63, 2, 2, 3, 8, 126, 126, 4, 252, 2016)

# The variances of the United States run, persons, as published.
VARIANCES = {
    "US": (1214.81, *(2429.62,) * 4, 485.92, 485.92, 2429.62, 142.92, 19.66),
    "State": (1.21, *(760.38,) * 5, 380.19, 380.19, 760.38, 134.18, 19.84),
    "County": (4.70, *(1469.73,) * 5, 524.9, 524.9, 1469.73, 145.52, 19.49),
    "Tract": (6.11, 1196.82, *(1914.91,) * 4, 4.95, 478.73, 1914.91, 142.9, 19.86),
    "Block_Group": (3.07, *(1744.4,) * 5, 4.96, 581.47, 1744.4, 218.05, 4.06),
    "Block": (7963.26, 4424.03, *(7963.26,) * 4, 1896.01, 1896.01, 7963.26, 560.79, 10.09),
}

BLOCK_TOTALS = {"cook-2010-block-total": "cook-2010", "pl94-2020-us-block-total": "pl94-2020-us"}
"""Built-in configurations with a direct block total, and those that they are made of."""

# Epsilons of the certificates, at delta 1e-10.
CERTIFICATES = {
    "pl94-2020-us": (
        {"hhgq": 7.24, "votingage": 7.57, "hispanic": 10.04, "cenrace": 10.08},
        {"Block_Group": 2.93, "Tract": 9.38, "County": 11.70, "State": 13.05, "US": 16.89},
    ),
    "pl94-2020-pr": (
        {"hhgq": 8.69, "votingage": 9.49, "hispanic": 11.65, "cenrace": 11.69},
        {"Block_Group": 2.93, "Tract": 11.18, "County": 13.51, "State": 15.41},
    ),
}


TOLD: dict[tuple[str, ...], str] = {}
"""What was told before of built-in configurations, by the arguments; they are the same every time."""


def plan_json(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict[str, Any]:
    if arguments not in TOLD:
        assert main(["topdown", "plan", *arguments, "--json"]) == 0
        told = capsys.readouterr().out
        if arguments[0] in BUILT_IN:
            TOLD[arguments] = told
    else:
        told = TOLD[arguments]
    answer: dict[str, Any] = json.loads(told)
    return answer


def test_the_us_run_has_the_published_variances() -> None:
    plan = make_plan(read_configuration("pl94-2020-us"))
    for level, variances in VARIANCES.items():
        measurements = [m for m in plan.measurements if m.level == level]
        names = QUERIES[-len(variances) :]
        assert [m.table for m in measurements] == list(names)
        assert [m.cells for m in measurements] == list(CELLS[-len(variances) :])
        assert [m.name for m in measurements] == [f"{level} {name}" for name in names]
        assert [round(float(m.variance), 2) for m in measurements] == list(variances)


def test_variance_is_one_over_the_rho_of_the_query() -> None:
    plan = make_plan(read_configuration("pl94-2020-us"))
    tract = plan["Tract hispanic*cenrace"]
    assert tract.variance == 1 / (RHO * Fraction(687, 4099) * Fraction(1933, 4102))
    assert (tract.calibration, tract.sensitivity.bounded, tract.sensitivity.unbounded) == (2, 2, 1)
    assert plan.neighbours is Neighbours.BOUNDED


@pytest.mark.sampled(1)
@pytest.mark.parametrize(
    ("name", "rho", "certified"),
    [
        ("pl94-2020-us", RHO, Fraction(17849145, 1041158)),
        ("pl94-2020-pr", RHO, Fraction(17849145, 1041158)),
        ("h1-2020-us", RHO_UNITS, Fraction(1455307, 588081)),
        ("h1-2020-pr", RHO_UNITS, Fraction(1455307, 588081)),
    ],
)
@pytest.mark.slow
def test_totals_are_those_of_the_certificates(
    name: str, rho: Fraction, certified: Fraction, capsys: pytest.CaptureFixture[str]
) -> None:
    assert make_plan(read_configuration(name)).loss() == rho
    totals = plan_json(capsys, name)["totals"]
    assert (totals["rho"], totals["bounded_rho"]) == (str(rho), str(rho))
    # Invariants fix how many records there are.
    assert totals["unbounded_rho"] is totals["unbounded_rho_float"] is totals["unbounded_epsilon"] is None
    assert totals["proven"]["unbounded_rho"] is None
    # The certificates state a fraction from above.
    assert totals["epsilon"] == pytest.approx(float(certified), abs=2e-6)
    assert totals["delta"] == 1e-10


@pytest.mark.parametrize("name", CERTIFICATES)
@pytest.mark.slow
def test_losses_of_attributes_and_places_are_those_of_the_certificates(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    attributes, geolevels = CERTIFICATES[name]
    semantics = plan_json(capsys, name)["semantics"]
    assert {key: round(loss["epsilon"], 2) for key, loss in semantics["attributes"].items()} == attributes
    assert {key: round(loss["epsilon"], 2) for key, loss in semantics["geolevels"].items()} == {
        f"Block in {level}": epsilon for level, epsilon in geolevels.items()
    }


def test_losses_of_attributes_and_places_are_exact_sums(capsys: pytest.CaptureFixture[str]) -> None:
    semantics = plan_json(capsys, "pl94-2020-us")["semantics"]
    block_group, block = Fraction(1256, 4099), Fraction(165, 4099)
    assert semantics["geolevels"]["Block in Tract"]["rho"] == str(RHO * (block_group + block))
    # Of hhgq: the recode, the attribute itself and the detailed query, geolevel by geolevel.
    votes = {"US": 26 + 26 + 3213, "State": 6 + 6 + 230, "County": 10 + 10 + 754, "Block": 5 + 5 + 3945}
    shares = {"US": Fraction(104, 4099), "State": Fraction(1440, 4099), "County": Fraction(447, 4099), "Block": block}
    rho = sum(RHO * shares[level] * Fraction(votes[level], 4097) for level in shares)
    rho += RHO * Fraction(687, 4099) * Fraction(5 + 5 + 482, 4102)
    rho += RHO * block_group * Fraction(3 + 3 + 1288, 4099)
    assert semantics["attributes"]["hhgq"]["rho"] == str(rho)


@pytest.mark.parametrize("name", BUILT_IN)
def test_what_a_change_of_one_attribute_costs_is_what_the_queries_see(name: str) -> None:
    # By brute force: a query costs its rho if some change of the attribute alone moves the record to another answer.
    configuration = read_configuration(name)
    losses = semantics_of(configuration)["attributes"]
    plan = make_plan(configuration)
    for axis, attribute in enumerate(configuration.schema.names):
        expected = Fraction(0)
        for level in configuration.levels:
            for query, _ in configuration.queries[level]:
                answers = np.moveaxis(query.answers().reshape(configuration.schema.shape), axis, 0)
                seen = bool((answers != answers[:1]).any())
                expected += plan[f"{level} {query.name}"].budget if seen else 0
        assert lost(losses[attribute]) == expected


@pytest.mark.slow
def test_epsilons_are_at_the_delta_asked_for(capsys: pytest.CaptureFixture[str]) -> None:
    usual, other = (plan_json(capsys, "h1-2020-us", *delta) for delta in ((), ("--delta", "1e-6")))
    assert other["totals"]["epsilon"] < usual["totals"]["epsilon"]
    # H1 has one attribute, which every query tells apart.
    assert other["semantics"]["attributes"]["h1"]["epsilon"] == other["totals"]["epsilon"]


@pytest.mark.slow
def test_what_is_kept_exactly_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    assert plan_json(capsys, "pl94-2020-us")["invariants"] == {"US": ["total"], "State": ["total"]}
    answer = plan_json(capsys, "h1-2020-us")
    assert answer["invariants"] == {"Block": ["total"]}
    assert answer["privacy_unit"] == "housing unit"
    assert main(["topdown", "plan", "h1-2020-us"]) == 0
    assert "kept exactly, outside the guarantee: the totals of Block" in capsys.readouterr().out


def test_cook_has_the_noise_of_production() -> None:
    here, there = (make_plan(read_configuration(name)) for name in ("cook-2010", "pl94-2020-us"))
    names = {"race": "cenrace", "hispanic*race": "hispanic*cenrace", "votingage*race": "votingage*cenrace"}
    for m in here.measurements:
        same = there[f"{m.level} {names.get(m.table, m.table)}"].budget
        if m.table == "detailed":  # the two finest queries are one where there are no group quarters
            same += there[f"{m.level} votingage*hispanic*cenrace"].budget
        assert m.budget == same
    assert float(here.loss()) == pytest.approx(1.377, abs=5e-4)


@pytest.mark.parametrize(
    "name", [name if name == "h1-2020-us" else pytest.param(name, marks=pytest.mark.thorough) for name in BUILT_IN[:4]]
)
@pytest.mark.thorough
def test_the_plan_of_production_differs_from_itself_in_nothing(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert plan_json(capsys, name, "--diff", "production")["differences"] == []


@pytest.mark.thorough
def test_differences_from_production_are_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    built_in = ROOT / "src" / "yupana" / "topdown" / "builtin" / "pl94-2020-pr.toml"
    path = tmp_path / "mine.toml"
    path.write_text(built_in.read_text().replace('"5/4097"', '"4/4097"', 1).replace('"9/4097"', '"10/4097"'))
    differences = plan_json(capsys, str(path), "--diff", "production")["differences"]
    assert [d["measurement"] for d in differences] == ["Block total", "Block cenrace"]
    assert main(["topdown", "plan", str(path), "--diff", "production"]) == 0
    assert "Block cenrace" in capsys.readouterr().out


def test_production_is_that_of_the_same_privacy_unit_and_root() -> None:
    compared = {name: production_configuration(read_configuration(name)).product for name in BUILT_IN}
    others = dict.fromkeys(("cook-2010", *BLOCK_TOTALS), "pl94-2020-us")
    assert compared == {name: name for name in BUILT_IN[:4]} | others


@pytest.mark.parametrize(("name", "before"), BLOCK_TOTALS.items())
def test_a_direct_block_total_takes_nothing_from_any_geolevel(name: str, before: str) -> None:
    here, there = read_configuration(name), read_configuration(before)
    assert here.budget == there.budget
    assert here.levels == there.levels
    plans = [make_plan(configuration) for configuration in (here, there)]
    for level in here.levels:
        of_level = [sum(m.budget for m in plan.measurements if m.level == level) for plan in plans]
        assert of_level[0] == of_level[1] == there.budget * there.shares[level]
        if level != "Block":
            assert here.queries[level] == there.queries[level]
            assert here.passes[level] == there.passes[level]
    race = "race" if name.startswith("cook") else "cenrace"
    shares = {query.name: share for query, share in here.queries["Block"]}
    assert shares == {"total": Fraction(24, 100), f"hispanic*{race}": Fraction(1, 100), "detailed": Fraction(75, 100)}
    assert here.passes["Block"].round == there.passes["Block"].round
    assert (here.schema, here.invariants, here.structural_zeros) == (
        there.schema,
        there.invariants,
        there.structural_zeros,
    )
    assert (here.spine.kind, here.spine.fanout_cutoff, here.spine.classes) == ("pieces", None, ("pme", "aian"))
    assert here.spine.live is there.spine.live


@pytest.mark.parametrize(
    ("name", "before"),
    [
        ("cook-2010-block-total", "cook-2010"),
        pytest.param("pl94-2020-us-block-total", "pl94-2020-us", marks=pytest.mark.thorough),
    ],
)
@pytest.mark.slow
def test_losses_stand_beside_those_of_production(name: str, before: str, capsys: pytest.CaptureFixture[str]) -> None:
    here, there = plan_json(capsys, name), plan_json(capsys, before)
    assert "semantics_of_production" not in there
    assert here["semantics_of_production"] == {"product": before, **there["semantics"]}
    # A move within a block group, as any other, loses what it lost; single attributes lose less.
    for where, loss in here["semantics"]["geolevels"].items():
        before_it = there["semantics"]["geolevels"][where]
        assert (loss["rho"], loss["epsilon"]) == (before_it["rho"], before_it["epsilon"])
        # The exact law is that of other noise.
        assert loss["epsilon_exact"] == pytest.approx(before_it["epsilon_exact"], rel=1e-4)
    for attribute, loss in here["semantics"]["attributes"].items():
        assert loss["epsilon"] < there["semantics"]["attributes"][attribute]["epsilon"]
    assert main(["topdown", "plan", name]) == 0
    lines = capsys.readouterr().out.splitlines()
    (head,) = [line for line in lines if line.startswith("epsilon where one person record changes less:")]
    assert head.split()[-8:] == ["here", "exact", "any", "spine", before, "exact", "any", "spine"]
    (row,) = [line for line in lines if "in the same Block_Group" in line]
    epsilons = row.split()
    assert epsilons[7] == epsilons[10] == f"{here['semantics']['geolevels']['Block in Block_Group']['epsilon']:.6f}"


@pytest.mark.slow
def test_the_moved_budget_costs_moves_within_a_block_group(capsys: pytest.CaptureFixture[str]) -> None:
    answer = plan_json(capsys, str(ROOT / "examples" / "moved_budget.toml"))
    here, there = answer["semantics"], answer["semantics_of_production"]
    assert there["product"] == "cook-2010"
    assert answer["totals"]["rho"] == str(read_configuration("cook-2010").budget)
    assert here["geolevels"]["Block in Block_Group"]["epsilon"] == pytest.approx(5.25, abs=5e-3)
    assert there["geolevels"]["Block in Block_Group"]["epsilon"] == pytest.approx(2.92, abs=5e-3)
    assert Fraction(here["geolevels"]["Block in Block_Group"]["rho"]) == pytest.approx(0.307, abs=5e-4)


def test_there_is_no_production_of_other_schemas_levels_and_areas(tmp_path: Path) -> None:
    assert counterpart(read_configuration(example(tmp_path))) is None
    for name in BUILT_IN:
        found = counterpart(read_configuration(name))
        assert (None if found is None else found.product) == BLOCK_TOTALS.get(name)


def example(folder: Path, **changes: object) -> Path:
    document = {
        "product": "example",
        "rho": "2",
        "schema": {"sex": 2, "age": 3},
        "shares": {"County": "1/4", "Tract": 0, "Block": "3/4"},
        "queries": {
            "County": {"sex": 1, "total": 0},
            "Tract": {"detailed": 1},
            "Block": {"age": "1/3", "detailed": "2/3"},
        },
    }
    path = folder / "config.json"
    path.write_text(json.dumps(document | changes))
    return path


def test_what_has_no_share_is_not_measured(tmp_path: Path) -> None:
    plan = make_plan(read_configuration(example(tmp_path)))
    assert [(m.name, m.budget) for m in plan.measurements] == [
        ("County sex", Fraction(1, 2)),
        ("Block age", Fraction(1, 2)),
        ("Block detailed", 1),
    ]
    semantics = semantics_of(read_configuration(example(tmp_path)))
    for told, expected in ((semantics["attributes"], {"sex", "age"}), (semantics["geolevels"], {"Tract", "County"})):
        assert {name: lost(of) for name, of in told.items()} == dict.fromkeys(expected, Fraction(3, 2))


def test_under_pure_differential_privacy_losses_are_epsilons(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = example(tmp_path)
    path.write_text(path.read_text().replace('"rho"', '"mechanism": "pure", "epsilon"'))
    plan = make_plan(read_configuration(path))
    assert plan.mechanism is Mechanism.PURE
    assert plan["Block detailed"].law == TwoSidedGeometric(Fraction(2))
    assert plan.loss() == 2
    answer = plan_json(capsys, str(path))
    assert answer["totals"]["bounded_epsilon"] == "2"
    assert answer["semantics"]["geolevels"]["Block in Tract"] == {
        "rho": None,
        "rho_float": None,
        "epsilon": "3/2",
        "epsilon_float": 1.5,
        "epsilon_exact": 1.5,
        "any_spine": {
            "rho": None,
            "rho_float": None,
            "epsilon": "3/2",
            "epsilon_float": 1.5,
            "epsilon_exact": 1.5,
        },
    }


def test_an_infinite_budget_is_planned_without_noise(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = example(tmp_path, rho="inf")
    plan = make_plan(read_configuration(path))
    assert plan.against_release
    assert all(m.budget == INFINITE and m.law == Zero() for m in plan.measurements)
    semantics = plan_json(capsys, str(path))["semantics"]
    none = {"rho_float": None, "epsilon": None, "epsilon_exact": None}
    assert semantics["attributes"]["age"] == {"rho": "Infinity", **none, "any_spine": {"rho": "Infinity", **none}}


@pytest.mark.thorough
def test_margins_are_at_the_confidence_asked_for(capsys: pytest.CaptureFixture[str]) -> None:
    ninety, ninety_five = (
        plan_json(capsys, "h1-2020-us", "--margins", "bureau", *c) for c in ((), ("--confidence", "95%"))
    )
    first = ninety["measurements"][0]
    assert first["moe"] == pytest.approx(1.645 * first["sigma"])
    assert ninety_five["measurements"][0]["moe"] == pytest.approx(1.96 * first["sigma"])
    exact = plan_json(capsys, "h1-2020-us")
    assert [m["moe"] for m in exact["measurements"]] == [math.ceil(m["moe"] - 0.5) for m in ninety["measurements"]]


@settings(max_examples=50)
@given(
    rho=st.fractions(Fraction(1, 1000), 100, max_denominator=1000),
    levels=st.lists(st.integers(1, 50), min_size=3, max_size=3),
    queries=st.lists(st.integers(1, 50), min_size=2, max_size=2),
)
@pytest.mark.slow
def test_the_loss_of_a_plan_is_its_budget(
    tmp_path_factory: pytest.TempPathFactory, rho: Fraction, levels: list[int], queries: list[int]
) -> None:
    shares = {name: f"{n}/{sum(levels)}" for name, n in zip(("County", "Tract", "Block"), levels, strict=True)}
    of_level = {name: f"{n}/{sum(queries)}" for name, n in zip(("age", "detailed"), queries, strict=True)}
    path = example(
        tmp_path_factory.mktemp("plan"), rho=str(rho), shares=shares, queries=dict.fromkeys(shares, of_level)
    )
    configuration = read_configuration(path)
    assert make_plan(configuration).loss() == rho
    semantics = semantics_of(configuration)
    assert lost(semantics["attributes"]["age"]) == rho
    assert lost(semantics["attributes"]["sex"]) == rho * Fraction(queries[1], sum(queries))
    assert lost(semantics["geolevels"]["County"]) == rho * Fraction(levels[1] + levels[2], sum(levels))


@pytest.mark.parametrize(("mechanism", "two_records"), [("zcdp", 4), ("pure", 2)])
@pytest.mark.parametrize(
    ("schema", "unit", "invariants", "expected"),
    [
        ({"race": 3}, "person record", {}, (Fraction(1, 2), 1, 1)),
        ({"race": 3}, "person record", {"State": ["total"]}, (None, 1, 1)),
        # The roles of others change with the householder.
        ({"race": 3, "RELSHIP": 4}, "person record", {}, (None, None, None)),
        ({"h1": ["vacant", "occupied"]}, "housing unit", {"Block": ["total"]}, (1, 0, 2)),
        ({"h1": 2}, "housing unit", {}, (1, 0, 2)),
        # Who lives there decides more than whether anybody does.
        ({"h1": ["owner", "renter"]}, "housing unit", {}, (1, 1, "two")),
        ({"tenure": 3}, "housing unit", {"Block": ["total"]}, (1, 1, "two")),
    ],
)
def test_what_one_person_costs_follows_from_what_a_record_is(
    tmp_path: Path,
    schema: dict[str, Any],
    unit: str,
    invariants: dict[str, Any],
    expected: tuple[Any, ...],
    mechanism: str,
    two_records: int,
) -> None:
    document = {
        "product": "example",
        "privacy_unit": unit,
        "mechanism": mechanism,
        "rho" if mechanism == "zcdp" else "epsilon": "3/7",
        "invariants": invariants,
        "schema": schema,
        "shares": dict.fromkeys(LEVELS, "1/6"),
        "queries": {key: {"total": "1/4", "detailed": "3/4"} for key in LEVELS},
    }
    plan = make_plan(read_configuration(write_configuration(document, tmp_path / "config.json")))
    factors = [two_records if factor == "two" else factor for factor in expected]
    assert plan.loss() == Fraction(3, 7)
    assert list(plan.person_losses().values()) == [f if f is None else f * Fraction(3, 7) for f in factors]
