"""The hypothesis-test audit of every system: too little noise is caught, sound releases pass, on neighbouring records.

All noise is seeded, so the verdict is the same every time; without seeds a sound release would be accused with
probability below 1e-6 per audit. What no such audit can catch, and the law tests beside this file do, is tested, too.
"""

from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from census_maker import Census, Person, Place, Unit, write_csv
from mechanism_audit import FEW, FORGOTTEN, RUNS, Audited, Floats, Release, audit, scaled
from safetab_worlds import Block, Total, World, an_iteration, random_world, seeded, write_data, write_parameters
from safetab_worlds import Household as HouseholdRecord
from safetab_worlds import Person as PersonRecord

from yupana.confidential.described.block_counts import DescribedCounts
from yupana.confidential.described.phsafe import PhsafeCounter, checked_census
from yupana.confidential.described.safetab import HouseholdsCounter, PersonsCounter, SafetabCounter
from yupana.plan.ledger import Ledger
from yupana.plan.measurement import Measurement, Mechanism, Sensitivity
from yupana.plan.plan import Neighbours, Plan
from yupana.privacy.entropy import SeededEntropy
from yupana.products.phsafe.configuration import PhsafeConfig
from yupana.products.phsafe.product import PHSAFE
from yupana.products.phsafe.specification import S_DHC
from yupana.products.safetab.product import HOUSEHOLDS, PERSONS, SafetabProduct
from yupana.products.tables import Groups
from yupana.progress import Stopwatch
from yupana.topdown import estimate_node

pytestmark = [pytest.mark.quality, pytest.mark.thorough]

# --- PHSafe ----------------------------------------------------------------------------------------------------------

TAU = 3
PH2_LEVELS = ("PH2/usa_*", "PH2/state_*")


def household(mafid: str, *, with_spouse: bool) -> tuple[Unit, list[Person]]:
    """A wife, four others and perhaps a husband: with him, all are counted in a household of another kind."""
    people = [Person("3", mafid, "40", "1", "01", relship) for relship in ("20", "30", "30", "31", "32")]
    if with_spouse:
        people.append(Person("3", mafid, "41", "1", "01", "21"))
    kind = ("1", "02", "1") if with_spouse else ("3", "08", "5")
    return Unit("2", mafid, str(len(people)), "2", "1", "01", "1", *kind), people


def phsafe_counts(folder: Path, config: PhsafeConfig, *, with_spouse: bool) -> DescribedCounts:
    census = Census([], [], [])
    for mafid, spouse in (("100000001", with_spouse), ("100000002", True), ("100000003", False)):
        unit, people = household(mafid, with_spouse=spouse)
        census.units.append(unit)
        census.persons += people
        census.geo.append(Place("2", mafid, "02", "001", "000100", "1000", "1", "4", "9", "99999", "9999"))
    write_csv(folder, census)
    with checked_census(config, folder) as opened:
        return PhsafeCounter(config).count(opened)


def phsafe_config() -> PhsafeConfig:
    budgets = {name: Fraction({"PH2": "0.5", "PH7": "0.01"}.get(name.partition("/")[0], "0")) for name in S_DHC.budgets}
    return PhsafeConfig.of(
        budgets, dict.fromkeys(("PH1_num", "PH2", "PH3", "PH4", "PH6", "PH7"), TAU), ("02",), Mechanism.ZCDP
    )


@pytest.fixture(scope="module")
def phsafe(tmp_path_factory: pytest.TempPathFactory) -> tuple[Release, Release]:
    folder = tmp_path_factory.mktemp("phsafe")
    exact = [phsafe_counts(folder / str(spouse), phsafe_config(), with_spouse=spouse) for spouse in (True, False)]
    ph2 = [np.concatenate([counts.by_level[name].ravel() for name in PH2_LEVELS[:1]]) for counts in exact]
    assert ((ph2[0] - ph2[1]) ** 2).sum() == 2 * TAU**2, "the neighbours are as far apart as they can be"

    def release_of(counts: DescribedCounts) -> Release:
        def release(plan: Plan, run: int) -> Floats:
            noisy = counts.measured(phsafe_config(), Ledger(plan), SeededEntropy(run))
            return np.concatenate([groups.counts.ravel() for groups in noisy]).astype(np.float64)

        return release

    return release_of(exact[0]), release_of(exact[1])


def test_sound_phsafe_passes(phsafe: tuple[Release, Release]) -> None:
    # With the tight bound, as the published one only adds noise.
    plan = PHSAFE.plan(phsafe_config(), accounting="tight")
    bound = audit(phsafe, plan, RUNS)
    lost = plan.loss(lambda m: m.proven.unbounded if m.table == "PH2" else Fraction(0))
    assert bound.rho < lost
    # The audit is no blunt one: it proves a good part of what is lost.
    assert bound.rho > 0.2 * lost


@pytest.mark.parametrize(
    ("accounting", "scale", "names"),
    [
        pytest.param("tight", Fraction(1, 3), (), id="a third of the variance on a tight plan"),
        pytest.param("tight", FORGOTTEN, PH2_LEVELS[1:], id="noise forgotten on one level, tight"),
        pytest.param("published", FORGOTTEN, PH2_LEVELS[:1], id="noise forgotten on one level, published"),
    ],
)
def test_phsafe_with_too_little_noise_is_caught(
    phsafe: tuple[Release, Release], accounting: str, scale: Fraction, names: tuple[str, ...]
) -> None:
    plan = PHSAFE.plan(phsafe_config(), accounting=accounting)
    runs = FEW if scale == FORGOTTEN else RUNS
    assert audit(phsafe, scaled(plan, scale, *names), runs).rho > plan.loss()


def test_half_the_variance_on_a_published_plan_is_left_to_the_law_test(phsafe: tuple[Release, Release]) -> None:
    # The published sensitivity is (2 tau + 2)^2 where 2 tau^2 is all a person can do: half the noise keeps the promise.
    plan = PHSAFE.plan(phsafe_config())
    broken = scaled(plan, Fraction(1, 2))
    assert broken.loss(lambda m: m.proven.unbounded) < plan.loss()
    assert audit(phsafe, broken, FEW).rho < plan.loss()


# --- SafeTab ---------------------------------------------------------------------------------------------------------

CODES = ("1001", "1002", "1003", "1004")
RACES = (*CODES, "Null", "Null", "Null", "Null")
HERE = ("01", "001", "000100", "1000")


def small_world() -> World:
    """Four codes that share a group alone and have a group in combination each; one record with all of them."""
    world = random_world(seeded(3), persons=1, households=1, noise="some")
    world.codes = [*CODES, "2000"]
    world.iterations = [
        an_iteration("0001", 2, "alone"),
        *(an_iteration(f"001{n}", 2, "any") for n in range(4)),
        an_iteration("0030", 2, "ethnicity"),
    ]
    world.mapping = [("0001", code) for code in CODES] + [(f"001{n}", code) for n, code in enumerate(CODES)]
    world.mapping.append(("0030", "2000"))
    world.blocks = [Block(*HERE, "99999", "9999")]
    world.housing_units, world.totals = None, []
    world.persons, world.households = [], []
    config = world.config
    config.runs, config.states, config.definition = ("us",), ("01",), "zcdp"
    config.max_race_codes, config.fraction, config.zero_suppression, config.allow_negative = 4, "0.1", None, True
    config.budgets("0").thresholds(TOTALS_ALONE, 5)
    for region_type in ("STATE", "COUNTY"):
        config.p[region_type, 2] = "0.5"
        for family in (3, 4):
            config.h[family, region_type, 2] = "0.25"
    return world


def write(folder: Path, world: World) -> tuple[Path, Path]:
    return write_parameters(folder / "parameters", world), write_data(folder / "data", world)


def counted(
    kind: type[SafetabCounter], product: SafetabProduct, parameters: Path, data: Path
) -> tuple[Plan, Callable[[Plan, int], Iterator[Groups]]]:
    """A plan, and what measures the records by any plan."""
    config = product.read(parameters)
    plan = product.plan(config, accounting="tight")
    counter = kind(config)
    with counter.open(data, Stopwatch(lambda _: None)) as records:
        exact = counter.count(records, keep=True)
    return plan, lambda plan, run: counter.groups(exact, Ledger(plan), SeededEntropy(run))


def safetab_p(folder: Path, thresholds: Sequence[int]) -> tuple[Plan, tuple[Release, Release]]:
    """Five persons of all groups, or four; a low threshold lets the first stage be seen, a high one the totals."""

    def of(number: int) -> tuple[Plan, Release]:
        world = small_world()
        world.config.thresholds(thresholds, thresholds[0])
        world.persons = [PersonRecord("30", "1", "False", *HERE, "01", *RACES, "2000")] * number
        parameters, data = write(folder / str(number), world)
        plan, measure = counted(PersonsCounter, PERSONS, parameters, data)

        def release(plan: Plan, run: int) -> Floats:
            measured = measure(plan, run)
            # Of each group its total, and which table it got.
            groups = {
                (noisy.measurement.level, int(area), int(iteration)): (int(cells.sum()), noisy.choice)
                for noisy in measured
                for area, iteration, cells in zip(noisy.area.places, noisy.iteration.places, noisy.counts, strict=True)
            }
            return np.array([value for key in sorted(groups) for value in groups[key]], dtype=np.float64)

        return plan, release

    (plan, here), (_, there) = of(5), of(4)
    return plan, (here, there)


def safetab_h(folder: Path) -> tuple[Plan, tuple[Release, Release]]:
    """Five households of all groups, or four, in the same tables."""

    def of(number: int) -> tuple[Plan, Release]:
        world = small_world()
        world.households = [HouseholdRecord(*HERE, "01", *RACES, "2000", "1", "1")] * number
        areas = {"STATE": "01", "COUNTY": "01001"}
        world.totals = [Total(area, kind, i.code, "40") for kind, area in areas.items() for i in world.iterations]
        plan, measure = counted(HouseholdsCounter, HOUSEHOLDS, *write(folder / str(number), world))

        def release(plan: Plan, run: int) -> Floats:
            return np.concatenate([noisy.counts.ravel() for noisy in measure(plan, run)]).astype(np.float64)

        return plan, release

    (plan, here), (_, there) = of(5), of(4)
    return plan, (here, there)


TOTALS_ALONE = (1000, 2000, 3000)
HALF_REACH_A_TABLE = (5, 50, 100)


@pytest.fixture(scope="module", params=["safetab-p", "safetab-h"])
def safetab(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Audited:
    folder = tmp_path_factory.mktemp(request.param)
    return safetab_p(folder, TOTALS_ALONE) if request.param == "safetab-p" else safetab_h(folder)


def test_sound_safetab_passes(safetab: Audited) -> None:
    plan, pair = safetab
    # The audit is no blunt one: it proves a good part of what is lost.
    assert 0.2 * plan.loss() < audit(pair, plan, RUNS).rho < plan.loss()


def test_a_third_of_the_variance_of_safetab_is_caught(safetab: Audited) -> None:
    plan, pair = safetab
    assert audit(pair, scaled(plan, Fraction(1, 3))).rho > plan.loss()


def test_noise_of_safetab_forgotten_on_one_level_is_caught(safetab: Audited) -> None:
    plan, pair = safetab
    level = [m.name for m in plan.measurements if m.level == "COUNTY 2"][-1]
    assert audit(pair, scaled(plan, FORGOTTEN, level), FEW).rho > plan.loss()


def test_noise_forgotten_in_the_first_stage_is_caught(tmp_path: Path) -> None:
    plan, pair = safetab_p(tmp_path, HALF_REACH_A_TABLE)
    assert audit(pair, plan, FEW).rho < plan.loss()
    assert audit(pair, scaled(plan, FORGOTTEN, "stage 1/COUNTY 2"), FEW).rho > plan.loss()


# --- TopDown: one node, measured and estimated -----------------------------------------------------------------------

QUERIES = ((0, 0), (1, 0), (1, 1))
"""The total, the first attribute, and the detailed query of two by two cells."""


def node_plan() -> Plan:
    """What the children of a node are measured by: moving a person from one child to another moves two answers by 1."""
    far = Sensitivity(unbounded=Fraction(1), bounded=Fraction(2))
    measurements = tuple(
        Measurement(f"Block/{name}", name, "Block", cells, Mechanism.ZCDP, Fraction(2), far, far, Fraction(rho))
        for name, cells, rho in (("total", 1, "0.3"), ("a", 2, "0.2"), ("detailed", 4, "0.5"))
    )
    plan = Plan("topdown", "person", Neighbours.BOUNDED, "tight", Fraction(9, 10), Mechanism.ZCDP, measurements)
    assert plan.loss() == 1
    return plan


def node(*, moved: bool) -> Release:
    """The estimates of three children whose parent is known exactly: post-processing of what was measured of each."""
    children = np.array([[30, 25, 40, 35], [20, 45, 30, 25], [50, 20, 25, 30]], dtype=np.int64)
    parent = children.sum(axis=0).astype(float)
    if moved:
        children[0, 1] -= 1
        children[1, 1] += 1
    exact = [children.sum(axis=1, keepdims=True), children.reshape(3, 2, 2).sum(axis=2), children]

    def release(plan: Plan, run: int) -> Floats:
        entropy, ledger = SeededEntropy(run), Ledger(plan)
        noisy = [ledger.measure(m, counts, entropy) for m, counts in zip(plan.measurements, exact, strict=True)]
        variances = np.tile([max(float(m.variance), 1e-6) for m in node_plan().measurements], (3, 1))
        found = estimate_node(parent, (2, 2), QUERIES, np.concatenate(noisy, axis=1), variances)
        return found.counts.ravel()

    return release


@pytest.mark.parametrize(
    ("scale", "names", "caught"),
    [
        pytest.param(Fraction(1), (), False, id="sound"),
        pytest.param(Fraction(1, 3), (), True, id="a third of the variance"),
        pytest.param(FORGOTTEN, ("Block/detailed",), True, id="noise forgotten in a query"),
    ],
)
def test_a_node_of_topdown(scale: Fraction, names: tuple[str, ...], *, caught: bool) -> None:
    plan = node_plan()
    bound = audit((node(moved=False), node(moved=True)), scaled(plan, scale, *names))
    assert (bound.rho > plan.loss()) == caught
    assert bound.rho > 0.3, "the audit is no blunt one"
