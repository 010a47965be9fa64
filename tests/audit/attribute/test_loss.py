"""Attribute privacy loss: the example of the slides, the product's own counts, and searches in plain loops."""

import json
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from itertools import combinations, product
from pathlib import Path

import pytest
from census_maker import Census as Records
from census_maker import Person as PersonRow
from census_maker import Place, Unit, write_csv
from hypothesis import given, settings
from hypothesis import strategies as st
from plans import plan_of, production_plan
from safetab_worlds import LEVELS as ITERATION_LEVELS
from safetab_worlds import random_world, seeded, write_parameters

import yupana
from yupana.audit.attribute.answers import INDIVIDUALS, PRINTED, SECRETS, planned, rule, rule_of_the_slides
from yupana.audit.attribute.bounds import cells_moved
from yupana.audit.attribute.households import Household, Individual, Person, faults_of, recoded, unit_record, without
from yupana.audit.attribute.loss import ATTRIBUTES, ENTRIES, Costs, attribute_loss, costs_of
from yupana.cli import audit_attribute
from yupana.cli.main import main
from yupana.confidential.described.phsafe import PhsafeCounter
from yupana.confidential.records.phsafe_records import open_census
from yupana.plan.measurement import Mechanism
from yupana.plan.plan import Plan
from yupana.products.phsafe.configuration import TAUS, budgets, production_config, read_config
from yupana.products.phsafe.product import PHSAFE
from yupana.products.phsafe.specification import LEVELS, S_DHC
from yupana.products.safetab.iterations import read_iterations
from yupana.products.safetab.regions import REGION_TYPES

COSTS = costs_of(production_plan(puerto_rico=False), TAUS)
SMALL = {"PH1_num": 3, "PH2": 3, "PH3": 2, "PH4": 3, "PH6": 2, "PH7": 3}
EVERYWHERE = dict.fromkeys(S_DHC.budgets, Fraction(1, 100))

RULE = {
    "Alice": "0.0547 0.5531 0.0000 0.0547 0.0547 0.0547 1.1358 1.1358",
    "Bob": "0.5034 0.5531 0.4387 0.5034 0.5034 0.5034 2.5100 2.5100",
    "Carol": "0.1245 0.1245 0.0271 0.1245 0.0000 0.0284 0.7699 0.7699",
    "Dave": "0.5034 0.5531 0.5878 0.5034 0.5034 0.6028 2.5100 2.5100",
    "Elise": "0.4039 2.1441 1.0978 0.4039 1.7781 2.5100 1.1358 1.1358",
}
EXACT = {
    # without the two secrets of a move; Elise's race is greater over all households than in the one supposed there
    "Alice": "0.00038 0.00501 0.00000 0.00038 0.00038 0.00038",
    "Bob": "0.00735 0.00735 0.00685 0.00735 0.00735 0.00735",
    "Carol": "0.00008 0.00422 0.00270 0.00008 0.00000 0.00270",
    "Dave": "0.00071 0.00497 0.02709 0.00071 0.00000 0.02709",
}


def small_costs(mechanism: Mechanism = Mechanism.ZCDP) -> Costs:
    return costs_of(plan_of(EVERYWHERE, SMALL, mechanism), SMALL)


@pytest.mark.parametrize("individual", INDIVIDUALS, ids=lambda i: i.name)
def test_the_rule_gives_what_the_budgets_of_2020_make_of_it(individual: Individual) -> None:
    for secret, expected in zip(SECRETS, RULE[individual.name].split(), strict=True):
        found = rule_of_the_slides(COSTS.plan, TAUS, individual, secret.attributes)
        assert float(found) == pytest.approx(float(expected), abs=6e-5), secret.name
        # The slides used other budgets (test_slides_budgets.py); these are within 0.31 of what they print.
        assert abs(float(found) - PRINTED[individual.name, secret.name]) < 0.31, secret.name


@pytest.mark.slow
def test_the_rule_without_exceptions_grows_with_the_attributes() -> None:
    for individual in INDIVIDUALS[::2]:
        for number in range(len(ATTRIBUTES)):
            for chosen in combinations(ATTRIBUTES, number):
                less = rule(COSTS.plan, TAUS, individual, chosen)
                assert less <= COSTS.plan.loss(lambda m: m.sensitivity.bounded)
                for more in set(ATTRIBUTES) - set(chosen):
                    assert less <= rule(COSTS.plan, TAUS, individual, (*chosen, more))


@pytest.mark.parametrize("name", EXACT)
def test_the_search_finds_the_suprema_of_small_households(name: str) -> None:
    individual = next(i for i in INDIVIDUALS if i.name == name)
    for secret, expected in zip(SECRETS, EXACT[name].split(), strict=False):
        found = attribute_loss(COSTS, individual, secret.attributes)
        assert float(found.value) == pytest.approx(float(expected), abs=6e-6), secret.name
        assert found.value <= rule(COSTS.plan, TAUS, individual, secret.attributes)


@pytest.mark.slow
def test_a_household_that_is_told_is_searched_as_it_is() -> None:
    # Ten people, six of them minors, four of age: the household that the reference values of Elise suppose.
    others = (
        Person(1, 58, 1, 1, 21),
        *[Person(1, 30, 1, 1, 25)] * 2,
        *[Person(2, 8, 1, 1, 25)] * 6,
    )
    elise = Individual("Elise", 60, 20, 10, 1, 2, 1, 1, None, others)
    for attributes, expected in (
        ({"Race", "Ethnicity"}, 0.13962),
        ({"Sex"}, 0.00785),
        ({"Age"}, 0.00844),
        ({"Relation"}, 0.0),
    ):
        assert float(attribute_loss(COSTS, elise, attributes).value) == pytest.approx(expected, abs=6e-6)
    # Of all households of the description some lose more, and none passes the rule.
    whole = attribute_loss(COSTS, INDIVIDUALS[4], {"Race", "Ethnicity"}).value
    assert 0.139625 < whole < rule(COSTS.plan, TAUS, INDIVIDUALS[4], {"Race", "Ethnicity"})


# --- households, as the product counts them -------------------------------------------------------------------------

RELATIONS = (21, 22, 25, 26, 27, 28, 29, 30, 31, 32, 33, 34, 35, 36)


@st.composite
def households(draw: st.DrawFn, most: int = 5) -> Household:
    """Households that can exist, of every kind."""

    def person(relation: int, least: int = 0) -> Person:
        return Person(
            draw(st.integers(1, 2)),
            draw(st.sampled_from([age for age in (0, 3, 4, 5, 11, 12, 15, 17, 18, 60) if age >= least])),
            draw(st.sampled_from((1, 2, 4, 7, 63))),
            draw(st.integers(1, 2)),
            relation,
        )

    people = [person(20, 15)]
    if draw(st.booleans()):
        people.append(person(draw(st.sampled_from((21, 22))), 15))
    more = draw(st.integers(0, most - len(people)))
    people += [person(draw(st.sampled_from(RELATIONS[2:]))) for _ in range(more)]
    people = list(recoded(people))
    assert not faults_of(people)
    return Household(tuple(draw(st.permutations(people))), draw(st.integers(1, 4)))


def rows_of(household: Household, mafid: int) -> tuple[Unit, list[PersonRow]]:
    unit = dict(unit_record(household.people, household.tenure))
    people = [
        PersonRow("3", str(mafid), str(p.age), str(p.ethnicity), f"{p.race:02}", str(p.relation))
        for p in household.people
    ]
    written = Unit(
        "2",
        str(mafid),
        str(len(people)),
        "0",
        str(unit["HHSPAN"]),
        f"{unit['HHRACE']:02}",
        str(unit["TEN"]),
        str(unit["HHT"]),
        f"{unit['HHT2']:02}",
        str(unit["CPLT"]),
    )
    return written, people


@pytest.mark.sampled(1)
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.slow
def test_a_household_adds_to_the_counts_what_the_product_counts(tmp_path: Path, seed: int) -> None:
    # Thresholds above every household: which persons truncation keeps goes by a hash, and here by the order.
    found: list[Household] = []

    @settings(max_examples=30, database=None, derandomize=True)
    @given(households(most=4 + seed))
    def gather(household: Household) -> None:
        found.append(household)

    gather()
    records = Records([], [], [])
    for number, household in enumerate(found):
        unit, people = rows_of(household, 100_000_001 + number)
        records.units.append(unit)
        records.persons += people
        records.geo.append(Place("2", unit.MAFID, "06", "001", "000100", "1000", "1", "4", "9", "99999", "9999"))
    write_csv(tmp_path / "census", records)
    taus = dict.fromkeys(SMALL, 20)
    document = {**production_config(), "tau": taus, "state_filter": ["06"]}
    (tmp_path / "config.json").write_text(json.dumps(document))
    config = read_config(tmp_path / "config.json")
    plan = PHSAFE.plan(config)
    with open_census(tmp_path / "census", states=frozenset({6}), policies={}) as census:
        census.require_valid()
        counts = PhsafeCounter(config).count(census).by_level
    costs = costs_of(plan, taus)
    ours = sum(costs.contribution(household) for household in found)
    for m in plan.measurements:
        expected = [
            ours[i] for i, (t, code, _) in enumerate(ENTRIES) if t == m.table and code in LEVELS[m.level].groups
        ]
        assert counts[m.name].ravel().tolist() == [int(value) for value in expected], m.name


def test_truncation_keeps_the_first_of_the_universe_of_each_table() -> None:
    costs = small_costs()
    child, head = Person(1, 5, 1, 1, 25), Person(1, 40, 1, 1, 20)

    def counted(table: str, *people: Person) -> int:
        whole = costs.contribution(Household(people, 1))
        return int(sum(whole[i] for i, (t, code, _) in enumerate(ENTRIES) if t == table and code == "*"))

    assert counted("PH1_num", head, child) == 2
    assert counted("PH1_num", head, *[child] * 5) == SMALL["PH1_num"]
    assert counted("PH3", head, *[child] * 5) == SMALL["PH3"]
    whole = costs.contribution(Household((child, child, child, head), 1))
    minors = next(i for i, entry in enumerate(ENTRIES) if entry == ("PH1_num", "*", 2))
    # Three children fill the table, and the householder who stands last is left out.
    assert whole[minors] == 3
    assert whole[minors + 1] == 0


# --- searches in plain loops ----------------------------------------------------------------------------------------


def by_search(costs: Costs, household: Household, place: int, attributes: set[str]) -> Fraction:
    """The largest loss where one person of a household changes, over every value that the file format knows."""
    person = household.people[place]
    values = product(
        (1, 2) if "Sex" in attributes else [person.sex],
        range(116) if "Age" in attributes else [person.age],
        (1, 2, 7, 33) if "Race" in attributes else [person.race],
        (1, 2) if "Ethnicity" in attributes else [person.ethnicity],
        range(20, 39) if "Relation" in attributes else [person.relation],
        range(1, 5) if "Tenure" in attributes else [household.tenure],
    )
    before = costs.contribution(household)
    best = Fraction(0)
    for sex, age, race, ethnicity, relation, tenure in values:
        people = list(household.people)
        people[place] = Person(sex, age, race, ethnicity, relation)
        people = list(recoded(people))
        if faults_of(people):
            continue
        after = costs.contribution(Household(tuple(people), tenure))
        loss = Fraction(0)
        for m in costs.plan.measurements:
            level = LEVELS[m.level]
            rows = [i for i, (t, code, _) in enumerate(ENTRIES) if t == m.table and code in level.groups]
            difference = [int(after[i] - before[i]) for i in rows]
            zcdp = m.mechanism is Mechanism.ZCDP
            distance = sum(d * d if zcdp else abs(d) for d in difference)
            loss += m.budget * distance / m.calibration
        best = max(best, loss)
    return best


def told(household: Household, place: int) -> Individual:
    p = household.people[place]
    others = (*household.people[:place], *household.people[place + 1 :])
    size, kind = len(household.people), dict(unit_record(household.people, household.tenure))["HHT2"]
    return Individual("R", p.age, p.relation, size, kind, p.sex, p.race, p.ethnicity, household.tenure, others)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("mechanism", list(Mechanism))
@pytest.mark.parametrize("attributes", [{"Age"}, {"Sex", "Relation"}, {"Race", "Ethnicity"}, {"Tenure", "Sex"}])
@pytest.mark.slow
def test_in_a_small_household_the_search_finds_what_trying_every_value_finds(
    mechanism: Mechanism, attributes: set[str]
) -> None:
    taus = dict.fromkeys(SMALL, 5)
    costs = costs_of(plan_of(EVERYWHERE, taus, mechanism), taus)

    @settings(max_examples=6, database=None, derandomize=True, deadline=None)
    @given(households(most=4), st.integers(0, 3))
    def check(household: Household, number: int) -> None:
        place = number % len(household.people)
        assert attribute_loss(costs, told(household, place), attributes).value == by_search(
            costs, household, place, attributes
        )

    check()


@settings(max_examples=12, database=None, deadline=None)
@given(households(most=4), st.integers(0, 3), st.sets(st.sampled_from(ATTRIBUTES)), st.sampled_from(ATTRIBUTES))
@pytest.mark.slow
def test_no_loss_passes_that_of_an_arbitrary_change_and_more_attributes_lose_no_less(
    household: Household, number: int, some: set[str], one: str
) -> None:
    costs = small_costs()
    some -= {"HouseholdID"}
    individual = told(household, number % len(household.people))
    less = attribute_loss(costs, individual, some).value
    more = attribute_loss(costs, individual, some | ({one} - {"HouseholdID"})).value
    assert less <= more <= costs.plan.loss(lambda m: m.proven.same_household or m.calibration)


@pytest.mark.sampled(1)
@pytest.mark.parametrize("mechanism", list(Mechanism))
@pytest.mark.slow
def test_a_move_costs_more_than_staying_and_less_than_an_arbitrary_change(mechanism: Mechanism) -> None:
    costs = small_costs(mechanism)
    dave = replace(INDIVIDUALS[3], race=1, ethnicity=1, sex=1)
    losses = [
        attribute_loss(costs, dave, attributes)
        for attributes in ({"Race", "Ethnicity"}, {"HouseholdID"}, {"HouseholdID", "Race", "Ethnicity"})
    ]
    values = [loss.value for loss in losses]
    assert values[0] < values[2]
    assert values[1] <= values[2] <= costs.plan.loss(lambda m: m.proven.bounded)
    # The households told attain the loss told.
    one, two = (costs.contribution(c.after) - costs.contribution(c.before) for c in losses[1].changes)
    assert losses[1].value == (costs.exact(one + two, 0 * one) if losses[1].same_state else costs.exact(one, two))


def test_when_the_householder_leaves_every_member_of_age_may_follow() -> None:
    head, spouse = Person(1, 40, 1, 1, 20), Person(2, 39, 2, 1, 21)
    child, lodger = Person(1, 5, 1, 1, 25), Person(1, 30, 1, 1, 34)
    after = list(without((head, spouse, child, lodger), 0))
    assert after == [
        (spouse._replace(relation=20), child, lodger),
        (spouse._replace(relation=34), child._replace(relation=34), lodger._replace(relation=20)),
    ]
    assert list(without((head,), 0)) == [()]
    assert list(without((head, child), 0)) == []
    assert list(without((head, child), 1)) == [(head,)]


# --- refusals -------------------------------------------------------------------------------------------------------

GOOD = """
[[individuals]]
name = "Eve"
age = 40
sex = "female"
relation = "spouse"
race = "04"
ethnicity = "1"
members = [{sex = "male", age = 41, race = "01", ethnicity = "1", relation = "householder"}]

[[secrets]]
name = "age"
attributes = ["Age"]
"""


@pytest.mark.parametrize(
    ("change", "saying"),
    [
        (("age = 40", "age = 14"), "at least 15 years old"),
        (('relation = "householder"', 'relation = "parent"'), "exactly one householder"),
        (('relation = "spouse"', 'relation = "37"'), "group quarters"),
        (('race = "04"\n', ""), "race is needed where members are given"),
        (("age = 40", 'age = 40\nsize = "3"'), "size follows from members"),
        (('sex = "female"', 'sex = "F"'), "individuals[0].sex: must be male or female"),
        (('["Age"]', '["Income"]'), "secrets[0].attributes: must be a list of some of Sex"),
        (('name = "age"', 'name = "age"\nweight = 3'), "'weight' is unknown"),
        (("[[secrets]]", "[secrets]"), "secrets: must be a list"),
    ],
)
def test_a_file_that_asks_the_impossible_is_refused_with_the_reason(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], change: tuple[str, str], saying: str
) -> None:
    path = tmp_path / "people.toml"
    path.write_text(GOOD)
    assert main(["audit", "attribute", "s-dhc-2020", str(path), "--json"]) == 0
    (row,) = json.loads(capsys.readouterr().out)
    assert (row["individual"], row["secret"], row["printed"]) == ("Eve", "age", None)
    assert 0 < row["exact"] < row["rule"]
    assert change[0] in GOOD
    path.write_text(GOOD.replace(*change))
    assert main(["audit", "attribute", "s-dhc-2020", str(path)]) == 2
    assert saying in capsys.readouterr().err


@pytest.mark.parametrize(
    ("lines", "saying"),
    [
        ('age = 20\nrelation = "25"\nsize = "1"\nhousehold_type = "09"', "lives alone is the householder"),
        ('age = 12\nrelation = "20"\nsize = "2"\nhousehold_type = "11"', "a householder is at least 15"),
        ('age = 9\nrelation = "25"\nsize = "3"\nhousehold_type = "02"', "an own child under 18"),
        ('age = 40\nrelation = "20"\nsize = "1"\nhousehold_type = "01"', "lives alone is in a household"),
        ('age = 40\nrelation = "20"\nsize = "2"\nhousehold_type = "01"', "needs at least 3 members"),
        ('age = 40\nrelation = "34"\nsize = "3"\nhousehold_type = "01"', "besides one of RELSHIP 34"),
        ('age = 40\nsex = "male"\nrelation = "20"\nsize = "2"\nhousehold_type = "08"', "female householder"),
        ('age = 40\nrelation = "spouse"\nsize = "2"\nhousehold_type = "04"', "HHT2 01 or 02"),
        ('age = 40\nrelation = "25"\nsize = "2"\nhousehold_type = "08"', "nobody is related"),
    ],
)
def test_a_household_that_cannot_exist_is_refused_with_the_reason(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], lines: str, saying: str
) -> None:
    path = tmp_path / "people.toml"
    path.write_text(f'[[individuals]]\nname = "X"\n{lines}\n')
    assert main(["audit", "attribute", "s-dhc-2020", str(path)]) == 2
    assert saying in capsys.readouterr().err


def test_counts_without_noise_have_no_attribute_loss(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    document = production_config()
    document["privacy_budget"]["PH2"]["usa_*"] = "Infinity"
    (tmp_path / "config.json").write_text(json.dumps(document))
    assert main(["audit", "attribute", str(tmp_path / "config.json")]) == 2
    assert "every loss is infinite" in capsys.readouterr().err


# --- the other products ---------------------------------------------------------------------------------------------


@pytest.mark.sampled(2)
@pytest.mark.parametrize("seed", range(6))
def test_no_pair_of_records_moves_more_cells_of_detailed_groups_than_told(tmp_path: Path, seed: int) -> None:
    found = read_iterations(
        write_parameters(tmp_path / "parameters", random_world(seeded(seed), persons=1, households=1))
    )
    reached = 0
    for region in REGION_TYPES[1:3]:
        for level in ITERATION_LEVELS:
            here = found.eligible(level, region.granularity)
            for race, ethnicity, moves in product((False, True), repeat=3):
                told_most = cells_moved(here, 2, race=race, ethnicity=ethnicity, moves=moves)
                assert told_most <= 2 * here.stability(2)
                tried = max(moved(one, two, moves=moves) for one, two in pairs(here, race=race, ethnicity=ethnicity))
                assert tried <= told_most
                reached += tried == told_most > 0
    assert reached


def groups(here: object, codes: tuple[int, ...], ethnic: int) -> set[tuple[str, int]]:
    alone = {int(here.alone[c]) for c in codes}  # type: ignore[attr-defined]
    combined = {("any", int(here.in_combination[c])) for c in codes}  # type: ignore[attr-defined]
    found = combined | {("ethnic", int(here.ethnic[ethnic]))}  # type: ignore[attr-defined]
    found |= {("alone", next(iter(alone)))} if len(alone) == 1 else set()
    return {group for group in found if group[1] >= 0}


def pairs(here: object, *, race: bool, ethnicity: bool) -> Iterator[tuple[set, set]]:
    places = range(len(here.alone))  # type: ignore[attr-defined]
    # Codes that are in the same iterations are one.
    kinds = list({tuple(int(a[c]) for a in (here.alone, here.in_combination, here.ethnic)): c for c in places}.values())  # type: ignore[attr-defined]
    sets = ([(c,) for c in kinds] + list(combinations(kinds, 2)))[:24]
    ethnics = kinds[:8]
    for one, e in product(sets, ethnics):
        for two in sets if race else [one]:
            for f in ethnics if ethnicity else [e]:
                yield groups(here, one, e), groups(here, two, f)


def moved(one: set, two: set, *, moves: bool) -> int:
    return len(one) + len(two) if moves else len(one ^ two)


@pytest.mark.slow
def test_detailed_products_and_topdown_answer_for_any_record(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    world = random_world(seeded(3), persons=1, households=1)
    world.config.definition = "zcdp"
    world.config.budgets("1").runs = ("us", "pr")
    parameters = write_parameters(tmp_path / "parameters", world)
    assert main(["audit", "attribute", str(parameters), "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)
    for name in {row["product"] for row in rows}:
        assert main([name, "plan", str(parameters), "--json"]) == 0
        totals = json.loads(capsys.readouterr().out)["totals"]
        losses = {tuple(row["attributes"]): Fraction(row["loss"]) for row in rows if row["product"] == name}
        assert all(a <= b for x, a in losses.items() for y, b in losses.items() if set(x) <= set(y))
        assert max(losses.values()) <= Fraction(totals["bounded_rho"])
    assert main(["audit", "attribute", "pl94-2020-us", "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)
    assert main(["topdown", "plan", "pl94-2020-us", "--json"]) == 0
    semantics = json.loads(capsys.readouterr().out)["semantics"]
    assert {row["attribute"]: row["rho"] for row in rows if "attribute" in row} == {
        name: loss["any_spine"]["rho"] for name, loss in semantics["attributes"].items()
    }
    assert [row["geolevel"] for row in rows if "geolevel" in row] == list(semantics["geolevels"])
    assert main(["audit", "attribute", "pl94-2020-us", "--example", "slides"]) == 2


def test_the_plan_of_2020_stands_under_its_name() -> None:
    assert isinstance(COSTS.plan, Plan)
    assert COSTS.plan.loss() == sum(budgets(puerto_rico=False).values())


def test_a_built_in_configuration_is_known_by_its_name() -> None:
    named = planned("s-dhc-2020")
    assert named is not None
    assert yupana.plan("phsafe", "s-dhc-2020-us").differences(named[1]) == []
    assert dict(PHSAFE.read("s-dhc-2020-us").taus) == dict(named[0])
    assert audit_attribute._asker(Path("s-dhc-2020-pr"), "s-dhc-2020-pr") is audit_attribute._phsafe


@pytest.mark.slow
def test_bounds_from_python_are_those_of_the_command_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["audit", "attribute", "pl94-2020-us", "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)
    bounds = yupana.attribute_bounds("topdown", "pl94-2020-us")
    assert [(row.get("attribute"), row.get("geolevel"), row["rho"]) for row in rows] == [
        (*((None, f"Block in {b.within}") if b.within else (b.attributes[0], None)), str(b.loss)) for b in bounds
    ]
    moved = {bound.within: bound.loss for bound in bounds if bound.within}
    assert list(moved.values()) == sorted(moved.values())
    with pytest.raises(yupana.ConfigError, match="attribute_loss"):
        yupana.attribute_bounds("phsafe", "s-dhc-2020-us")
