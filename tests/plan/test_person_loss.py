"""docs/person-loss.md by brute force: all small households, counted by every product, and every change of one person.

Each state holds one world, so that one run of a product without noise counts all of them. A world is two housing units
in two tracts of one county. Persons are of two kinds that differ in everything a product reads; the householder, and
with that the unit's record, may be any member. What a change costs is computed from the exact counts and the plans.
"""

import json
from collections import Counter
from collections.abc import Iterable, Iterator
from fractions import Fraction
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from census_maker import Census, Place, Unit, write_csv
from census_maker import Person as CensusPerson
from numpy.typing import NDArray
from phsafe_oracle import PERSON_TABLES, counts_of
from phsafe_oracle import Config as PhsafeConfig
from safetab_oracle import BASIS, T2, read_tables
from safetab_worlds import Block, Config, Household, Person, Total, World, an_iteration, write_data, write_parameters

from yupana.cli.main import main
from yupana.confidential.request import RunRequest
from yupana.confidential.topdown.world import open_world
from yupana.plan.measurement import Mechanism
from yupana.plan.plan import Plan
from yupana.products.census import STATES
from yupana.products.phsafe.configuration import read_config as read_phsafe
from yupana.products.phsafe.product import PHSAFE
from yupana.products.phsafe.specification import TABLES, cells_of
from yupana.products.safetab.configuration import read_config as read_safetab
from yupana.products.safetab.iterations import read_iterations
from yupana.products.safetab.product import HOUSEHOLDS as SAFETAB_H
from yupana.products.safetab.product import PERSONS as SAFETAB_P
from yupana.products.safetab.product import Parameters
from yupana.progress import Stopwatch
from yupana.topdown.plan import make_plan as plan_topdown
from yupana.topdown.plan import measurement_name
from yupana.topdown.reading.configuration import read_configuration

Members = tuple[str, ...]
"""The kinds of the members of a household, its householder first; empty for a vacant unit."""

HOUSEHOLDS: tuple[Members, ...] = tuple(kinds for size in range(3) for kinds in product("XY", repeat=size))
WORLDS = tuple(product(HOUSEHOLDS, repeat=2))
HOMES = dict(zip(WORLDS, STATES, strict=False))
TRACTS = ("000100", "000200")
BLOCKS = ("1000", "2000")
LEVELS = ("US", "State", "County", "Tract", "Block_Group", "Block")
DIGITS = dict(zip(LEVELS, (0, 2, 5, 11, 12, 16), strict=True))


class Kind(NamedTuple):
    race: str
    origin: str
    age: str
    sex: str
    tenure: str
    hht: str
    category: str
    codes: tuple[str, ...]


KINDS = {
    "X": Kind("01", "1", "40", "1", "1", "4", "4", ("1000", "1001", *["Null"] * 6, "5000")),
    "Y": Kind("02", "2", "10", "2", "3", "6", "5", ("2000", "2001", *["Null"] * 6, "6000")),
}

Change = tuple[tuple[Members, Members], tuple[Members, Members]]


def changes(kind: str) -> Iterator[Change]:
    """Pairs of worlds that differ by one person; whoever is householder, and the unit's record with it, is free."""

    def of(members: Members) -> Counter[str]:
        return Counter(members)

    for before, after in product(WORLDS, repeat=2):
        sizes = [len(new) - len(old) for old, new in zip(before, after, strict=True)]
        same = [of(old) == of(new) for old, new in zip(before, after, strict=True)]
        left, came = (of(before[0]) - of(after[0])).total(), (of(after[1]) - of(before[1])).total()
        holds = {
            # One joins a household that keeps all it had, or leaves one; that of the other unit is untouched.
            "unbounded": sizes[0] == 1 and not of(before[0]) - of(after[0]) and before[1] == after[1],
            "same_household": sizes == [0, 0] and before[1] == after[1] and (same[0] or left == 1),
            # One leaves the first and joins the second, as anybody.
            # All of a household of two come or go.
            "household": sizes == [2, 0] and before[1] == after[1],
            "bounded": sizes == [-1, 1]
            and not of(after[0]) - of(before[0])
            and not of(before[1]) - of(after[1])
            and (left, came) == (1, 1),
        }
        if holds[kind]:
            yield before, after


@cache
def changes_of(kind: str) -> tuple[Change, ...]:
    return tuple(changes(kind))


KIND_NAMES = ("unbounded", "same_household", "bounded")


# --- the worlds as files --------------------------------------------------------------------------------------------


def write_census(folder: Path) -> Path:
    census = Census([], [], [])
    for world, state in HOMES.items():
        for place, members in enumerate(world):
            mafid = f"1{state}00000{place}"
            census.geo.append(
                Place(
                    "2", mafid, state, "001", TRACTS[place], BLOCKS[place], BLOCKS[place][0], "1", "1", "99999", "9999"
                )
            )
            if not members:
                census.units.append(Unit("2", mafid, "0", "0", "0", "00", "0", "0", "00", "0"))
                continue
            head = KINDS[members[0]]
            # A type of household without couples and own children, whoever lives in it.
            unit = ("2", mafid, str(len(members)), "0", head.origin, head.race, head.tenure, head.hht, "09", "5")
            census.units.append(Unit(*unit))
            census.persons += [
                CensusPerson("3", mafid, KINDS[m].age, KINDS[m].origin, KINDS[m].race, "34" if number else "20")
                for number, m in enumerate(members)
            ]
    write_csv(folder, census)
    header = "TABBLKST|TABBLKCOU|TABTRACTCE|TABBLKGRPCE|TABBLK|AIANNHCE|COUSUBFP|PLACEFP"
    lines = [
        f"{state}|001|{tract}|{block[0]}|{block}|9999|00100|99999"
        for state in HOMES.values()
        for tract, block in zip(TRACTS, BLOCKS, strict=True)
    ]
    (folder / "geography.txt").write_text("\n".join([header, *lines]) + "\n")
    return folder


@cache
def detailed(mechanism: Mechanism) -> World:
    """The worlds as SafeTab's records; a person is in four groups of a level, which is as many as there can be."""
    codes = ["1000", "1001", "2000", "2001", "5000", "6000"]
    iterations = [
        an_iteration("0001", 2, "alone"),
        an_iteration("0002", 2, "alone"),
        *(an_iteration(f"001{n}", 2, "any") for n in range(4)),
        an_iteration("0030", 2, "ethnicity"),
        an_iteration("0040", 2, "ethnicity"),
    ]
    mapping = [("0001", "1000"), ("0001", "1001"), ("0002", "2000"), ("0002", "2001")]
    mapping += [(f"001{n}", code) for n, code in enumerate(codes[:4])] + [("0030", "5000"), ("0040", "6000")]
    states = tuple(HOMES.values())
    config = Config(runs=("us",), states=states, max_race_codes=2).budgets("1/3").thresholds([0, 0, 0], 0)
    config.definition = "zcdp" if mechanism is Mechanism.ZCDP else "puredp"
    places = {(s, p): (s, "001", TRACTS[p], BLOCKS[p]) for s in states for p in (0, 1)}
    blocks = [Block(*place, "99999", "9999") for place in places.values()]
    world = World(codes, iterations, mapping, blocks, [], [], [], None, config)
    for (here, state), p in product(HOMES.items(), (0, 1)):
        for number, m in enumerate(here[p]):
            kind, place = KINDS[m], places[state, p]
            world.persons.append(
                Person(kind.age, kind.sex, str(number == 0), *place, kind.race, *kind.codes)  # type: ignore[call-arg]
            )
            if number == 0:
                household = (*place, kind.race, *kind.codes, kind.category, kind.tenure)
                world.households.append(Household(*household))  # type: ignore[call-arg]
    regions = {"STATE": 2, "COUNTY": 5, "TRACT": 11}
    areas = {("".join(place)[:digits], kind) for place in places.values() for kind, digits in regions.items()}
    # What SafeTab-P published is the same for all: neighbours of SafeTab-H are compared given its totals.
    world.totals = [Total(area, kind, i.code, "1000") for area, kind in sorted(areas) for i in iterations]
    return world


# --- exact counts and losses ----------------------------------------------------------------------------------------


class Counted(NamedTuple):
    """What a product counts, and its plans with either accounting."""

    plan: Plan
    tight: Plan
    names: list[str]
    """The measurement of each count."""
    counts: NDArray[np.int64]
    """By count and world."""

    def moved(self, kind: str) -> NDArray[np.int64]:
        """How far every count moves, squared under zCDP, by change and count."""
        number = {world: i for i, world in enumerate(HOMES)}
        before, after = (np.array([number[pair[end]] for pair in changes_of(kind)]) for end in (0, 1))
        moved = (self.counts[:, after] - self.counts[:, before]).T
        return moved**2 if self.plan.mechanism is Mechanism.ZCDP else np.abs(moved)

    def costs(self, plan: Plan, kind: str) -> NDArray[np.float64]:
        """What each change costs, from the exact counts."""
        losses = {name: float(plan[name].loss(Fraction(1))) for name in set(self.names)}
        return np.asarray(self.moved(kind) @ np.array([losses[name] for name in self.names]))

    def figure(self, plan: Plan, kind: str) -> float:
        """What the plan says of one person, for the measurements that were counted."""
        made = [plan[name] for name in set(self.names)]
        return float(plan.loss_of(made, lambda m: getattr(m.person, kind)))

    def farthest(self, measurement: str, kind: str) -> int:
        """How far at most one measurement moves."""
        mine = np.array([name == measurement for name in self.names])
        return int(self.moved(kind)[:, mine].sum(axis=1).max())


def counted(plan: Plan, tight: Plan, rows: Iterable[tuple[str, str, tuple[Any, ...], int]]) -> Counted:
    """Gather measurement, state, place in the state and count; what is not there is zero."""
    found: dict[tuple[str, tuple[Any, ...]], dict[str, int]] = {}
    for measurement, state, place, count in rows:
        of_place = found.setdefault((measurement, place), {})
        assert state not in of_place
        of_place[state] = count
    values = np.array([[of_place.get(state, 0) for state in HOMES.values()] for of_place in found.values()])
    return Counted(plan, tight, [measurement for measurement, _ in found], values)


def count_phsafe(folder: Path, data: Path, mechanism: Mechanism) -> Counted:
    definition = "zcdp" if mechanism is Mechanism.ZCDP else "puredp"
    taus = dict.fromkeys(PERSON_TABLES, 2)
    config = PhsafeConfig(tuple(HOMES.values()), taus, definition=definition)
    for table, level in product(["PH1_num"], ["usa_*", "state_*"]):
        config.budgets[table, level] = "2/7"
    path = config.write(folder / "phsafe.json")
    out = folder / "phsafe"
    assert main(["phsafe", "exact", str(path), str(data), str(out)]) == 0
    # The other rows are sums of these, or repeat what was measured for another table.
    basis = {table.name: cells_of(table) for table in TABLES}
    published = {table: rows for table, rows in counts_of(out).items() if table in basis}

    def rows() -> Iterator[tuple[str, str, tuple[Any, ...], int]]:
        for table, of_table in published.items():
            for (region_type, state, iteration, cell), count in of_table.items():
                group = "*" if iteration == "*" else "A-G" if iteration in "ABCDEFG" else "H,I"
                if region_type == "STATE" and cell in basis[table]:
                    yield f"{table}/state_{group}", state, (iteration, cell), count
                    # With one world in the nation, its counts would be those of the state.
                    yield f"{table}/usa_{group}", state, (iteration, cell), count

    read = read_phsafe(path)
    return counted(PHSAFE.plan(read), PHSAFE.plan(read, accounting="tight"), rows())


def count_safetab(folder: Path, letter: str, mechanism: Mechanism) -> Counted:
    name, world = f"safetab-{letter}", detailed(mechanism)
    parameters = write_parameters(folder / f"{name}-parameters", world)
    data = write_data(folder / f"{name}-data", world)
    assert main([name, "exact", str(parameters), str(data), str(folder / name)]) == 0
    tables = read_tables(folder / name, name)

    def rows() -> Iterator[tuple[str, str, tuple[Any, ...], int]]:
        for table, of_table in tables.items():
            for (region_type, region, iteration, *cell), row in of_table.items():
                if region_type not in {"STATE", "COUNTY", "TRACT"}:
                    continue
                place = (region[2:], iteration, *cell)
                if table == "T01001":
                    yield f"stage 1/{region_type} 2", region[:2], place, row.count
                elif table in T2:
                    assert table == "T02003"
                    if "*" not in cell:
                        yield f"stage 2/{region_type} 2", region[:2], place, row.count
                elif cell[0] in set(BASIS[table].values()):
                    yield f"{table[:3]}/{region_type} 2", region[:2], place, row.count

    iterations = read_iterations(parameters)
    product = SAFETAB_P if letter == "p" else SAFETAB_H
    config = Parameters(read_safetab(product.key, parameters / "config.json"), iterations)
    plans = [product.plan(config, accounting=a) for a in ("published", "tight")]
    return counted(plans[0], plans[1], rows())


def count_topdown(folder: Path, data: Path, mechanism: Mechanism, *, units: bool) -> Counted:
    budget = {"rho": "5/7"} if mechanism is Mechanism.ZCDP else {"epsilon": "5/7"}
    schema: dict[str, Any] = {"h1": ["vacant", "occupied"]} if units else {"votingage": 2, "hispanic": 2, "cenrace": 63}
    queries = {"detailed": "1"} if units else {"total": "1/4", "hispanic": "1/4", "detailed": "1/2"}
    document = {
        "product": "units" if units else "persons",
        "privacy_unit": "housing unit" if units else "person record",
        "mechanism": mechanism.value,
        **budget,
        "schema": schema,
        "shares": dict(zip(LEVELS, ("1/20", "3/20", "1/10", "1/5", "3/10", "1/5"), strict=True)),
        "queries": dict.fromkeys(LEVELS, queries),
        "spine": {"kind": "conventional"},
        **({"invariants": {"Block": ["total"]}} if units else {}),
    }
    path = folder / f"topdown-{units}.json"
    path.write_text(json.dumps(document))
    configuration = read_configuration(path)
    world = open_world(configuration, data, RunRequest(), Stopwatch(lambda _: None))

    def rows() -> Iterator[tuple[str, str, tuple[Any, ...], int]]:
        for depth, level in enumerate(LEVELS):
            # Of the nation take each state's part, as if it were alone in it.
            digits, counts = max(DIGITS[level], 2), world.exact.levels[max(depth, 1)]
            exact = counts.part(0, counts.units)
            labels = world.spine.levels[max(depth, 1)].labels(0, exact.units)
            for query, _ in configuration.measured(level):
                answers: dict[tuple[str, int], int] = dict.fromkeys(product(labels, range(query.size)), 0)
                of_cell = query.answers()
                for unit, cell, count in zip(exact.owners(), exact.cells, exact.counts, strict=True):
                    answers[labels[unit], int(of_cell[cell])] += int(count)
                for (label, answer), count in answers.items():
                    assert len(label) == digits
                    yield measurement_name(level, query), label[:2], (label[2:], answer), count

    plan = plan_topdown(configuration)
    return counted(plan, plan, rows())


@pytest.fixture(
    scope="module",
    params=[Mechanism.ZCDP, pytest.param(Mechanism.PURE, marks=pytest.mark.thorough)],
    ids=["zcdp", "pure"],
)
def products(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Counted]:
    folder: Path = tmp_path_factory.mktemp("worlds")
    data = write_census(folder / "census")
    mechanism: Mechanism = request.param
    return {
        "phsafe": count_phsafe(folder, data, mechanism),
        "safetab-p": count_safetab(folder, "p", mechanism),
        "safetab-h": count_safetab(folder, "h", mechanism),
        "persons": count_topdown(folder, data, mechanism, units=False),
        "units": count_topdown(folder, data, mechanism, units=True),
    }


def test_the_worlds_fit_into_the_states() -> None:
    assert len(HOMES) == len(WORLDS) == 49
    assert [len(changes_of(kind)) for kind in KIND_NAMES] == [56, 133, 64]


@pytest.mark.parametrize("kind", KIND_NAMES)
def test_no_change_of_one_person_costs_more_than_the_figure(products: dict[str, Counted], kind: str) -> None:
    for accounting in ("plan", "tight"):
        plans = {name: getattr(found, accounting) for name, found in products.items()}
        costs = {name: found.costs(plans[name], kind) for name, found in products.items()}
        figures = {name: found.figure(plans[name], kind) for name, found in products.items()}
        for name, cost in costs.items():
            assert cost.max() <= figures[name] * (1 + 1e-9), name
        joint = np.sum(list(costs.values()), axis=0)
        assert joint.max() <= sum(figures.values()) * (1 + 1e-9)
        # One change is dear in several products at once.
        assert joint.max() > 1.1 * max(cost.max() for cost in costs.values())


@pytest.mark.parametrize("kind", KIND_NAMES)
def test_who_sees_both_safetabs_learns_more_of_a_person_than_either_promises(
    products: dict[str, Counted], kind: str
) -> None:
    persons, households = products["safetab-p"], products["safetab-h"]
    both = persons.costs(persons.tight, kind) + households.costs(households.tight, kind)
    assert both.max() > persons.figure(persons.tight, kind)
    # What the two plans promise to their own records: one record each.
    assert both.max() > persons.figure(persons.tight, "unbounded") + float(
        households.tight.loss_of([households.tight[n] for n in set(households.names)])
    )


def test_the_figures_are_attained_where_they_can_be(products: dict[str, Counted]) -> None:
    zcdp = products["phsafe"].plan.mechanism is Mechanism.ZCDP
    s = 4
    attained = {
        ("safetab-p", "stage 1/STATE 2"): (s, 2 * s, 2 * s),
        # A household's record is replaced, then two are, in the same groups.
        ("safetab-h", "T03/STATE 2"): (2 * s, 2 * s, 8 * s if zcdp else 4 * s),
        ("safetab-h", "T04/COUNTY 2"): (2 * s, 2 * s, 8 * s if zcdp else 4 * s),
        # In different tracts each record is replaced on its own.
        ("safetab-h", "T03/TRACT 2"): (2 * s, 2 * s, 4 * s),
        ("persons", "State detailed"): (1, 2, 2),
        # Where both units lie, one that is vacated and one that is filled cancel; elsewhere each is a change of two.
        ("units", "Block detailed"): (2, 0, 4),
        ("units", "County detailed"): (2, 0, 2),
    }
    for (name, measurement), expected in attained.items():
        found = tuple(products[name].farthest(measurement, kind) for kind in KIND_NAMES)
        assert found == expected, (name, measurement)


def test_two_whole_households_change_in_phsafe_when_one_person_moves(products: dict[str, Counted]) -> None:
    # Who stays is counted elsewhere under another householder: of three persons all move, 3 squared from and to.
    phsafe = products["phsafe"]
    found = [phsafe.farthest("PH7/state_A-G", kind) for kind in KIND_NAMES]
    assert found == ([5, 8, 18] if phsafe.plan.mechanism is Mechanism.ZCDP else [3, 4, 6])


def test_two_persons_of_a_household_cost_at_most_four_times_or_twice_one(products: dict[str, Counted]) -> None:
    factor = 4 if products["phsafe"].plan.mechanism is Mechanism.ZCDP else 2
    ratios = {}
    for name, found in products.items():
        figure = found.figure(found.tight, "unbounded")
        assert found.costs(found.tight, "household").max() <= factor * figure * (1 + 1e-9), name
        ratios[name] = found.costs(found.tight, "household").max() / figure
    # Two alike count in the same cells.
    assert (ratios["safetab-p"], ratios["persons"]) == pytest.approx((factor, factor))
