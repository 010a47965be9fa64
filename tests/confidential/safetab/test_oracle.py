"""Both SafeTab products, from files to tables, against a tabulator written from their specification."""

import dataclasses
import json
import shutil
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from random import Random
from typing import Any

import pytest
from safetab_oracle import (
    NATIONAL,
    age_and_sex,
    check_h,
    check_p,
    check_plan,
    counted,
    counted_by_combination,
    eligible,
    levels_of,
    pass_totals,
    stability,
    type_and_tenure,
)
from safetab_runs import PRODUCTION, PUBLIC, needs_public_files, publish, released, simulate_h, simulate_p
from safetab_worlds import (
    FORMS,
    NAMES,
    PR_TYPES,
    US_TYPES,
    World,
    random_world,
    read_world,
    seeded,
    write_data,
    write_parameters,
)

from yupana.cli.main import main

Tables = dict[str, dict[tuple[str, ...], Any]]


@dataclasses.dataclass(frozen=True)
class Oracle:
    """What the tabulator says of one product, and what differs in asking it.

    Attributes
    ----------
    product : str
    check : callable
        Compares what was published of a world with what must be.
    simulate : callable
        A release of a world, drawn by the tabulator.
    records, cell_of : callable
        Of a world what is counted, and of one of these its finest cell.
    unread : tuple of str
        Files that the product does not read.
    toy : mapping of file to number of rows
        The toy inputs of the Bureau.
    spent : mapping of pass to float
        The rho of 2020.
    too_many : int
        By how much a count is wrong beyond doubt.
    strange : callable
        Of a row's key another that no table has.
    """

    product: str
    check: Callable[..., None]
    simulate: Callable[[World, Random], Tables]
    records: Callable[[World], Sequence[Any]]
    cell_of: Callable[[Any], Any]
    unread: tuple[str, ...]
    toy: dict[str, int]
    spent: dict[str, float]
    too_many: int
    strange: Callable[[tuple[str, ...]], tuple[str, ...]]

    @property
    def inputs(self) -> Path:
        """The folder of the toy inputs."""
        return PUBLIC / "toy_inputs" / self.product.replace("-", "_")

    def one_world(self, seed: int, noise: str, folder: Path, form: str | None = None) -> None:
        random = seeded(seed)
        world = random_world(random, noise=noise)
        form = form or random.choice(sorted(FORMS))
        options = random.choice(((), ("--seed", str(seed))))
        self.check(world, publish(self.product, world, folder, *options, form=FORMS[form]))


PERSONS = Oracle(
    "safetab-p",
    check_p,
    simulate_p,
    lambda world: world.persons,
    age_and_sex,
    ("households", "totals"),
    {"person-records.txt": 10},
    {"us": 4.944, "pr": 2.643},
    400,
    lambda key: (*key[:2], "00", *key[3:]),
)
HOUSEHOLDS = Oracle(
    "safetab-h",
    check_h,
    simulate_h,
    lambda world: world.households,
    type_and_tenure,
    ("persons",),
    {"household-records.txt": 6, "pop-group-totals.txt": 602},
    {"us": 8.895302, "pr": 4.754134},
    100,
    lambda key: (*key[:3], "9"),
)


def thorough(seed: int) -> Any:  # noqa: ANN401
    """A world that is large."""
    return pytest.param(seed, marks=pytest.mark.thorough)


both = pytest.mark.parametrize("oracle", [PERSONS, HOUSEHOLDS], ids=lambda oracle: oracle.product)


def fuzz(worlds: int, seed: int = 0) -> None:
    """Try more worlds than the tests below (tests/README.md has the command)."""
    for number in range(seed, seed + worlds):
        for oracle in (PERSONS, HOUSEHOLDS):
            for noise in ("none", "some", "mixed"):
                with tempfile.TemporaryDirectory() as folder:
                    try:
                        oracle.one_world(number, noise, Path(folder))
                    except BaseException:
                        print(f"{oracle.product}: world {number}, noise {noise}")  # noqa: T201 (the shell asks)
                        raise


# --- the tabulator itself -------------------------------------------------------------------------------------------


@both
@pytest.mark.parametrize("seed", range(4))
def test_two_ways_of_counting_agree(oracle: Oracle, seed: int) -> None:
    world = random_world(seeded(seed))
    for region_type, level in levels_of(world):
        for_groups = counted(world, oracle.records(world), oracle.cell_of, region_type, level)
        by_record = {group: cells.total() for group, cells in for_groups.items()}
        assert by_record == counted_by_combination(world, oracle.records(world), region_type, level)


@both
@pytest.mark.parametrize(("seed", "definition"), [(0, "zcdp"), (1, "puredp")])
def test_the_checks_accept_a_simulated_release(oracle: Oracle, seed: int, definition: str) -> None:
    world = random_world(seeded(seed), noise="mixed")
    world.config.definition = definition
    oracle.check(world, oracle.simulate(world, seeded(seed)))


@both
@pytest.mark.slow
def test_the_checks_refuse_a_release_that_is_wrong(oracle: Oracle) -> None:
    world = random_world(seeded(0), noise="some")
    world.config.budgets("25")
    sound = oracle.simulate(world, seeded(1))
    oracle.check(world, sound)
    for name in sound:
        key, row = next(iter(sound[name].items()))
        for wrong in (
            dataclasses.replace(row, count=row.count + oracle.too_many),
            dataclasses.replace(row, variance=row.variance * 1.000001),
            dataclasses.replace(row, moe=row.moe * 1.000001),
        ):
            with pytest.raises(AssertionError):
                oracle.check(world, sound | {name: sound[name] | {key: wrong}})
        for strange in (("1", *key[1:]), (key[0], "0", *key[2:]), oracle.strange(key)):
            with pytest.raises(AssertionError):
                oracle.check(world, sound | {name: sound[name] | {strange: row}})


@both
@needs_public_files
@pytest.mark.slow
def test_production_has_the_iterations_and_the_stability_that_are_known(oracle: Oracle) -> None:
    world = read_world(PRODUCTION[oracle.product], Path("none"))
    for region_type in (*US_TYPES, *PR_TYPES):
        national = region_type in NATIONAL
        assert len(eligible(world, region_type, 1)) == (52 if national else 48)
        assert len(eligible(world, region_type, 2)) == (2944 if national else 2150)
        assert {stability(world, region_type, level) for level in (1, 2)} == {9}
    assert {run: float(loss) for run, loss in pass_totals(world, oracle.product).items()} == oracle.spent


# --- tables without noise ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("seed", "form"), list(enumerate(FORMS)))
@pytest.mark.slow
def test_every_cell_of_a_random_world(tmp_path: Path, seed: int, form: str) -> None:
    (PERSONS, HOUSEHOLDS)[seed % 2].one_world(seed, "none", tmp_path, form)


@both
@pytest.mark.slow
def test_exact_is_a_run_without_noise(oracle: Oracle, tmp_path: Path) -> None:
    world = random_world(seeded(100), noise="some")
    oracle.check(world, publish(oracle.product, world, tmp_path, verb="exact"), exact=True)


@pytest.mark.sampled(1)
@both
@needs_public_files
@pytest.mark.parametrize("definition", ["zcdp", "puredp"])
@pytest.mark.slow
def test_the_toy_inputs_of_the_bureau(oracle: Oracle, tmp_path: Path, definition: str) -> None:
    product, parameters = oracle.product, oracle.inputs / f"input_dir_{definition}"
    data = tmp_path / "data"
    data.mkdir()
    (data / "SYNTHETIC").touch()
    for name in ("GRF-C.txt", *oracle.toy):
        shutil.copy(oracle.inputs / name, data)
    world = read_world(parameters, data)
    assert (len(oracle.records(world)), *([len(world.totals)] if world.totals else [])) == (*oracle.toy.values(),)
    oracle.check(world, released(product, parameters, data, tmp_path / "noisy", "--seed", "7"))
    assert main([product, "validate", str(parameters), str(data)]) == 0


# --- tables with noise ------------------------------------------------------------------------------------------------


@pytest.mark.sampled(1)
@both
@pytest.mark.parametrize("seed", [thorough(seed) if seed in {200, 201, 204} else seed for seed in range(200, 206)])
@pytest.mark.slow
def test_a_noisy_release_has_the_groups_tables_and_variances_of_its_plan(
    oracle: Oracle, tmp_path: Path, seed: int
) -> None:
    oracle.one_world(seed, "some", tmp_path)


@both
@pytest.mark.slow
def test_levels_with_and_without_noise_in_one_run(oracle: Oracle, tmp_path: Path) -> None:
    oracle.one_world(302, "mixed", tmp_path)


# --- plans ------------------------------------------------------------------------------------------------------------


@both
@pytest.mark.parametrize("seed", [401, 402, thorough(403), thorough(404)])
@pytest.mark.thorough
def test_the_plan_of_a_random_world(
    oracle: Oracle, tmp_path: Path, capsys: pytest.CaptureFixture[str], seed: int
) -> None:
    world = random_world(seeded(seed), noise="some")
    parameters = write_parameters(tmp_path / "parameters", world)
    assert main([oracle.product, "plan", str(parameters), "--json"]) == 0
    check_plan(world, oracle.product, json.loads(capsys.readouterr().out))


@both
@needs_public_files
@pytest.mark.parametrize("definition", ["zcdp", "puredp"])
def test_the_plan_of_the_toy_inputs(oracle: Oracle, capsys: pytest.CaptureFixture[str], definition: str) -> None:
    parameters = oracle.inputs / f"input_dir_{definition}"
    assert main([oracle.product, "plan", str(parameters), "--json"]) == 0
    check_plan(read_world(parameters, Path("none")), oracle.product, json.loads(capsys.readouterr().out))


@both
@pytest.mark.slow
def test_valid_inputs_are_valid(oracle: Oracle, tmp_path: Path) -> None:
    world = random_world(seeded(500))
    parameters, data = write_parameters(tmp_path / "p", world), write_data(tmp_path / "d", world)
    for name in oracle.unread:
        (data / NAMES[name]).unlink()
    assert main([oracle.product, "validate", str(parameters), str(data)]) == 0
