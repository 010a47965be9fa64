"""What one record can change: the bound from the code files against a search, and runs on neighbouring records."""

import json
from pathlib import Path

import pytest
from safetab_oracle import eligible, most_by_search
from safetab_runs import publish
from safetab_worlds import LEVELS, World, an_iteration, is_run, random_world, seeded, write_parameters

from yupana.cli.main import main
from yupana.products.safetab.iterations import read_iterations
from yupana.products.safetab.regions import REGION_TYPES


@pytest.mark.parametrize("seed", range(30))
def test_the_tight_bound_is_what_a_search_over_all_sets_of_codes_finds(tmp_path: Path, seed: int) -> None:
    world = random_world(seeded(seed), persons=1, households=1)
    found = read_iterations(write_parameters(tmp_path / "parameters", world))
    for region in REGION_TYPES:
        for level in LEVELS:
            here = eligible(world, region.name, level)
            ethnic = {i.code for i in here if i.alone is None}
            h_ethnic = any(iteration in ethnic for iteration, _ in world.mapping)
            for most in range(1, 9):
                world.config.max_race_codes = most
                expected = most_by_search(world, here) + h_ethnic
                assert found.eligible(level, region.granularity).stability(most) == expected, (region, level, most)


def one_alone_many_in_combination() -> World:
    """Four codes that share a group alone and have a group in combination each."""
    world = random_world(seeded(3), persons=20, households=20, noise="some")
    world.codes = ["1001", "1002", "1003", "1004", "2000"]
    world.iterations = [
        an_iteration("0001", 2, "alone"),
        *(an_iteration(f"001{n}", 2, "any") for n in range(4)),
        an_iteration("0030", 2, "ethnicity"),
    ]
    world.mapping = [("0001", f"100{n + 1}") for n in range(4)] + [(f"001{n}", f"100{n + 1}") for n in range(4)]
    world.mapping.append(("0030", "2000"))
    return world


@pytest.mark.parametrize(
    ("race_codes", "published", "tight"),
    [(1, 3, 3), (2, 4, 4), pytest.param(3, 5, 5, marks=pytest.mark.thorough), (4, 6, 6), (8, 9, 6)],
)
@pytest.mark.slow
def test_noise_follows_the_code_files_where_the_published_formula_is_no_bound(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], race_codes: int, published: int, tight: int
) -> None:
    # The formula says 1 * max(2, race codes) + 1: with 2 codes 3, where a record can be in 2 + 1 + 1 groups.
    world = one_alone_many_in_combination()
    world.config.max_race_codes = race_codes
    world.config.definition = "zcdp"
    world.config.budgets("1").runs = ("us", "pr")
    parameters = write_parameters(tmp_path / "parameters", world)
    for accounting, expected in (("published", published), ("tight", tight)):
        for product in ("safetab-p", "safetab-h"):
            assert main([product, "plan", str(parameters), "--json", "--sensitivity", accounting]) == 0
            plan = json.loads(capsys.readouterr().out)
            assert {m["l2_sensitivity_squared"] for m in plan["measurements"]} == {str(expected)}


@pytest.mark.parametrize("worlds", [3, pytest.param(6, marks=pytest.mark.thorough)])
@pytest.mark.slow
def test_a_record_changes_no_more_counts_of_a_level_than_the_bound(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], worlds: int
) -> None:
    most = 0
    for seed in range(40, 40 + worlds):
        folder = tmp_path / str(seed)
        world = random_world(seeded(seed), persons=12, households=3)
        world.config.budgets("Infinity").thresholds([10**9] * 3, 10**9)
        world.config.zero_suppression = None
        before = publish("safetab-p", world, folder / "before", verb="exact")["T01001"]
        world.persons.remove(next(person for person in world.persons if is_run(world.config, person.TABBLKST)))
        after = publish("safetab-p", world, folder / "after", verb="exact")["T01001"]
        assert before.keys() == after.keys()
        bounds = bounds_of(world, folder / "finite", capsys)
        levels = {i.code: i.level for i in world.iterations}
        changed: dict[str, list[int]] = {}
        for (region_type, region, iteration, *_), row in before.items():
            difference = row.count - after[region_type, region, iteration].count
            changed.setdefault(f"{region_type} {levels[iteration]}", []).append(difference)
        for level, differences in changed.items():
            assert set(differences) <= {0, 1}
            assert sum(differences) <= bounds[level], level
            most = max(most, sum(differences))
    assert most > 1, "no record of these worlds is in two groups of a level"


def bounds_of(world: World, folder: Path, capsys: pytest.CaptureFixture[str]) -> dict[str, int]:
    """The tight bound of every level, as a plan with finite budgets tells it."""
    world.config.budgets("1")
    capsys.readouterr()
    assert main(["safetab-p", "plan", str(write_parameters(folder, world)), "--json", "--sensitivity", "tight"]) == 0
    sensitivity = "l2_sensitivity_squared" if world.config.definition == "zcdp" else "l1_sensitivity"
    return {m["level"]: int(m[sensitivity]) for m in json.loads(capsys.readouterr().out)["measurements"]}
