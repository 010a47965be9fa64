"""Coterminous areas: the sets against sets of blocks, the numbers against dense least squares, the tables by rule."""

import json
import tempfile
from collections import defaultdict
from collections.abc import Mapping
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from read_tables import read_tables
from release_maker import FAMILIES, Cell, World, fill, geography, leaves, measured, read_rows, shown

from yupana.arrays import Floats
from yupana.cli.main import main
from yupana.estimate.coterminous_areas import coterminous_sets, read_blocks, read_live
from yupana.estimate.safetab_tables import TREES
from yupana.products.least_squares import Parents, estimate, non_negative, whole
from yupana.release.status import MEASURED
from yupana.release.tables import Format

SEEDS = st.integers(0, 2**32 - 1)
WHOLE_STATES = {"USA", "STATE", "PR-STATE"}
CODES = ("1001", "1002", "9001")

Members = frozenset[tuple[str, str]]
Tables = Mapping[str, Mapping[tuple[str, str, str, Cell], tuple[str, ...]]]


def sets_by_hand(world: World, *, live: bool) -> set[frozenset[tuple[str, str]]]:
    """Areas with equal sets of blocks: of all, or of those with housing units where there are any."""
    alike = defaultdict(set)
    for area, blocks in world.areas().items():
        with_units = frozenset(b for b in blocks if world.units.get(b, 0) > 0)
        alike[(True, with_units) if live and with_units else (False, blocks)].add(area)
    return {frozenset(areas) for areas in alike.values() if len(areas) > 1}


@pytest.mark.parametrize("examples", [20, pytest.param(50, marks=pytest.mark.thorough)])
@pytest.mark.thorough
def test_sets_are_the_areas_with_the_same_blocks(examples: int) -> None:
    settings(max_examples=examples)(given(seed=SEEDS, live=st.booleans())(_check_sets))()


def _check_sets(seed: int, *, live: bool) -> None:
    world = geography(np.random.default_rng(seed))
    with tempfile.TemporaryDirectory() as folder:
        blocks = read_blocks(world.write_reference(Path(folder) / "GRF-C.txt"))
        mask = read_live(world.write_units(Path(folder) / "housing-units.txt"), blocks) if live else None
        found = coterminous_sets(blocks, mask)
    as_pairs = [[(area.region_type, area.region_id) for area in members] for members in found]
    assert {frozenset(members) for members in as_pairs} == sets_by_hand(world, live=live)
    assert sum(map(len, as_pairs)) == len({area for members in as_pairs for area in members})


def _random_tree(rng: np.random.Generator) -> tuple[Parents, list[Floats], list[Floats]]:
    """A tree of a family down to some depth, measured at its last depth and at some others."""
    tree = TREES[rng.integers(3)]
    last = int(rng.choice(tree.basis))
    parents = tree.parents[:last]
    widths = [1, *(p.size for p in parents)]
    values = [rng.normal(20, 20, (3, n)) for n in widths]
    variances = [rng.choice([0.25, 1.0, 31.5, np.inf], (3, 1)) * np.ones((3, n)) for n in widths]
    variances[-1] = rng.uniform(0.1, 30, (3, widths[-1]))
    return parents, [np.where(np.isinf(s), 0, v) for v, s in zip(values, variances, strict=True)], variances


def _design(parents: Parents) -> NDArray[np.float64]:
    """Which leaves each node sums, all depths below each other."""
    parts = [np.eye(parents[-1].size if parents else 1)]
    for parent in reversed(parents):
        sums = np.zeros((parent.max() + 1, parts[0].shape[1]))
        for node, up in enumerate(parent):
            sums[up] += parts[0][node]
        parts.insert(0, sums)
    return np.concatenate(parts)


@given(SEEDS)
@pytest.mark.slow
def test_estimates_and_variances_are_those_of_dense_least_squares(seed: int) -> None:
    parents, values, variances = _random_tree(np.random.default_rng(seed))
    found = estimate(parents, values, variances)
    design = _design(parents)
    for tree in range(3):
        y = np.concatenate([v[tree] for v in values])
        s = np.concatenate([v[tree] for v in variances])
        seen = np.isfinite(s)
        scaled = design[seen] / np.sqrt(s[seen])[:, None]
        cells = np.linalg.lstsq(scaled, y[seen] / np.sqrt(s[seen]), rcond=None)[0]
        covariance = np.linalg.inv(scaled.T @ scaled)
        mine = np.concatenate([v[tree] for v in found.values])
        spread = np.concatenate([v[tree] for v in found.variances])
        assert np.allclose(mine, design @ cells, rtol=1e-8, atol=1e-8)
        assert np.allclose(spread, np.einsum("ij,jk,ik->i", design, covariance, design), rtol=1e-8)
        assert (spread <= s).all()


def test_a_measurement_without_noise_is_kept() -> None:
    parents = TREES[2].parents
    values = [np.array([[10.0]]), np.array([[1.0, 2.0, 3.0]])]
    exact_total = estimate(parents, values, [np.zeros((1, 1)), np.ones((1, 3))])
    assert exact_total.values[0] == 10
    assert exact_total.variances[0] == 0
    assert np.allclose(exact_total.values[1], [[7 / 3, 10 / 3, 13 / 3]])
    exact_cells = estimate(parents, values, [np.ones((1, 1)), np.zeros((1, 3))])
    assert exact_cells.values[0] == 6
    assert (exact_cells.variances[1] == 0).all()


@given(SEEDS)
def test_rounding_moves_nothing_by_one_and_all_adds_up(seed: int) -> None:
    parents, values, variances = _random_tree(np.random.default_rng(seed))
    found = estimate(parents, values, variances).values
    rounded = whole(parents, found)
    assert (np.abs(rounded[0] - found[0]) <= 0.5).all()
    for real, integer in zip(found, rounded, strict=True):
        assert (np.abs(integer - real) < 1 + 1e-9).all()
    for above, below, parent in zip(rounded, rounded[1:], parents, strict=False):
        for node in range(above.shape[1]):
            assert (below[:, parent == node].sum(axis=1) == above[:, node]).all()
    again = whole(parents, [r.astype(float) for r in rounded])
    assert all((a == b).all() for a, b in zip(again, rounded, strict=True))


@given(SEEDS)
@pytest.mark.slow
def test_estimates_without_negatives_are_the_nearest_that_add_up(seed: int) -> None:
    parents, values, variances = _random_tree(np.random.default_rng(seed))
    found = estimate(parents, values, variances)
    fitted = non_negative(parents, found)
    assert all((values >= 0).all() for values in fitted)
    assert (fitted[0] == np.maximum(found.values[0], 0)).all()
    for depth, parent in enumerate(parents, start=1):
        for node in range(int(parent.max()) + 1):
            own = parent == node
            sums = fitted[depth][:, own].sum(axis=1)
            assert np.allclose(sums, fitted[depth - 1][:, node], atol=1e-8)
            # Of the nearest point: what moved a positive child moved all by the same, and a zero child by no more.
            moved = (fitted[depth] - found.values[depth])[:, own] / found.below[depth][:, own]
            for tree in range(3):
                positive = fitted[depth][tree, own] > 1e-9
                if positive.any():
                    step = moved[tree][positive].max()
                    assert np.allclose(moved[tree][positive], step, atol=1e-7)
                    assert (moved[tree] >= step - 1e-7).all()


def run(*arguments: object) -> int:
    return main(["postprocess", "coterminous", *map(str, arguments)])


def _details(world: World, family: tuple[str, ...]) -> dict[tuple[str, str, str], str]:
    """The table of each population group."""
    found = {}
    for table in family:
        found |= {key[:3]: table for key in world.tables[table]}
    return found


def check_set(
    world: World, family: tuple[str, ...], members: Members, code: str, after: Tables, *, negatives: bool
) -> str:
    """Check one set and iteration against the rule, by dense least squares; return what became of it."""
    tables = _details(world, family)
    kinds = {(kind, iteration) for kind, _, iteration in tables}
    may = [area for area in members if (area[0], code) in kinds]
    has = [area for area in may if (*area, code) in tables]
    before = {t: {k: v for k, v in world.tables[t].items() if k[:2] in members and k[2] == code} for t in family}
    now = {t: {k: v for k, v in after[t].items() if k[:2] in members and k[2] == code} for t in family}
    if len(may) < 2 or not has:
        assert {t: {k: v[0] for k, v in rows.items()} for t, rows in now.items()} == {
            t: {k: str(v[0]) for k, v in rows.items()} for t, rows in before.items()
        }
        return "left"
    finest = max((tables[(*area, code)] for area in has), key=family.index)
    if len(has) < len(may) and finest == family[0] and not any(kind in WHOLE_STATES for kind, _ in has):
        assert not any(now.values())
        return "dropped"
    cells = measured(finest)
    design, y, s = [], [], []
    for area in has:
        own = tables[(*area, code)]
        for cell in measured(own):
            count, variance = world.tables[own][(*area, code, cell)]
            design.append([leaves(family, c) <= leaves(family, cell) for c in cells])
            y.append(count)
            s.append(variance)
    rows = [key for t in family for key in now[t]]
    assert {(k[:2], k[3]) for k in rows} == {(area, cell) for area in may for _, cell in shown(finest)}
    known = 0.0 in s
    # Where a variance is 0 it is the limit of small ones.
    root = np.sqrt(np.maximum(s, 1e-6))
    scaled = np.array(design, dtype=float) / root[:, None]
    fitted = np.linalg.lstsq(scaled, np.array(y) / root, rcond=None)[0]
    covariance = np.linalg.inv(scaled.T @ scaled)
    for table, cell in shown(finest):
        numbers = {now[table][(*area, code, cell)] for area in may}
        assert len(numbers) == 1, "areas of a set differ"
        (count, variance, margin) = next(iter(numbers))
        inside = np.array([leaves(family, c) <= leaves(family, cell) for c in cells], dtype=float)
        assert np.isclose(
            float(variance), inside @ covariance @ inside, rtol=1e-3 if known else 1e-9, atol=1e-3 * known
        )
        assert np.isclose(float(margin), 1.96 * np.sqrt(float(variance)), rtol=1e-9)
        if negatives:
            assert abs(int(count) - inside @ fitted) < 1 + (0.01 if known else 1e-6)
        if not negatives:
            assert int(count) >= 0
        for area in may:
            old = before[table].get((*area, code, cell))
            assert old is None or float(variance) <= old[1] * (1 + 1e-12)
    _check_sums(family, finest, now, (*may[0], code), cells)
    return "combined"


def _check_sums(family: tuple[str, ...], finest: str, now: Tables, group: tuple[str, ...], cells: list[Cell]) -> None:
    for table, cell in shown(finest):
        parts = [c for c in cells if leaves(family, c) <= leaves(family, cell)]
        assert int(now[table][(*group, cell)][0]) == sum(int(now[finest][(*group, c)][0]) for c in parts)


@pytest.mark.parametrize("examples", [2, pytest.param(4, marks=pytest.mark.thorough)])
@pytest.mark.thorough
def test_a_release_follows_the_rule(examples: int) -> None:
    made = given(
        seed=SEEDS, live=st.booleans(), lowest=st.sampled_from([-15, 0]), fmt=st.sampled_from(["csv", "parquet"])
    )
    settings(max_examples=examples)(made(_check_release))()


def _check_release(seed: int, *, live: bool, lowest: int, fmt: Format) -> None:
    rng = np.random.default_rng(seed)
    world = geography(rng)
    fill(world, rng, lowest=lowest, codes=CODES, finer=0.4)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        release = world.write(folder / "release", fmt)
        grfc = world.write_reference(folder / "GRF-C.txt")
        options = ["--housing-units", world.write_units(folder / "housing-units.txt")] if live else []
        assert run(release, grfc, folder / "out", *options) == 0
        manifest, _, wrong = read_tables(folder / "out")
        assert not wrong
        assert manifest["status"] == MEASURED
        sets = sets_by_hand(world, live=live)
        assert manifest["postprocessing"][0]["sets"] == len(sets)
        in_sets = {area for members in sets for area in members}
        for family in FAMILIES:
            after = {table: read_rows(folder / "out" / f"{table}.{fmt}") for table in family}
            negatives = any(count < 0 for t in family for count, _ in world.tables[t].values())
            for members, code in [(members, code) for members in sets for code in CODES]:
                check_set(world, family, members, code, after, negatives=negatives)
            for table in family:
                others = {k: v[0] for k, v in after[table].items() if k[:2] not in in_sets}
                assert others == {k: str(v[0]) for k, v in world.tables[table].items() if k[:2] not in in_sets}
        assert run(folder / "out", grfc, folder / "again", *options) == 0
        for path in (folder / "out").glob("T0*"):
            assert list(read_rows(path).items()) == list(read_rows(folder / "again" / path.name).items())


@settings(max_examples=2)
@given(SEEDS)
@pytest.mark.thorough
def test_totals_alone_are_averaged_by_inverse_variance(seed: int) -> None:
    rng = np.random.default_rng(seed)
    world = geography(rng)
    fill(world, rng, lowest=-15, codes=CODES, finer=0.0)
    world.tables = {"T01001": world.tables["T01001"]}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        release = world.write(folder / "release")
        grfc = world.write_reference(folder / "GRF-C.txt")
        (folder / "T01001.csv").write_bytes((release / "T01001.csv").read_bytes())
        for source, out in ((release, "a"), (release / "T01001.csv", "b"), (folder / "T01001.csv", "c")):
            assert run(source, grfc, folder / out) == 0
        tables = [(folder / out / "T01001.csv").read_bytes() for out in "abc"]
        assert tables[0] == tables[1] == tables[2]
        after = {"T01001": read_rows(folder / "a" / "T01001.csv")}
    negatives = any(count < 0 for count, _ in world.tables["T01001"].values())
    for members, code in [(m, code) for m in sets_by_hand(world, live=False) for code in CODES]:
        check_set(world, ("T01001",), members, code, after, negatives=negatives)


TRACT = [("44", "001", "000001", "0001", "99999", "9999"), ("44", "003", "000001", "0001", "99999", "9999")]
"""Two counties of one tract each, which make the nation and the state together."""


def _counties(tmp_path: Path, counts: dict[tuple[str, str, str], int]) -> Path:
    world = World(TRACT, {"440010000010001": 1})
    world.tables = {"T01001": {(*group, ()): (count, 4.0) for group, count in counts.items()}}
    world.write_reference(tmp_path / "GRF-C.txt")
    world.write_units(tmp_path / "housing-units.txt")
    return world.write(tmp_path / "release")


def _parameters(folder: Path) -> Path:
    folder.mkdir()
    (folder / "race-characteristic-iterations.txt").write_text(
        "ITERATION_CODE|ITERATION_NAME|LEVEL|ALONE|DETAILED_ONLY|COARSE_ONLY\n"
        "1001|A alone|2|True|False|False\n1002|B alone|2|True|True|False\n1003|C alone|1|True|False|False\n"
    )
    (folder / "ethnicity-characteristic-iterations.txt").write_text(
        "ITERATION_CODE|ITERATION_NAME|LEVEL|DETAILED_ONLY|COARSE_ONLY\n"
    )
    (folder / "race-and-ethnicity-codes.txt").write_text("RACE_ETH_CODE|RACE_ETH_NAME\n1000|A\n1100|B\n")
    (folder / "race-and-ethnicity-code-to-iteration.txt").write_text(
        "ITERATION_CODE|RACE_ETH_CODE\n1001|1000\n1002|1100\n1003|1100\n"
    )
    return folder


def test_a_group_suppressed_in_one_area_is_suppressed_in_all(tmp_path: Path) -> None:
    county, tract = ("COUNTY", "44001"), ("TRACT", "44003000001")
    release = _counties(tmp_path, {(*county, "1001"): 30, (*tract, "1001"): 25})
    assert run(release, tmp_path / "GRF-C.txt", tmp_path / "out") == 0
    assert read_rows(tmp_path / "out" / "T01001.csv") == {}


def test_a_group_of_a_state_is_shown_in_all(tmp_path: Path) -> None:
    # Nation and state are made of the same blocks, too; another county shows the iteration.
    release = _counties(
        tmp_path, {("STATE", "44", "1001"): 30, ("USA", "1", "1001"): 40, ("COUNTY", "44001", "1001"): 25}
    )
    assert run(release, tmp_path / "GRF-C.txt", tmp_path / "out", "--parameters", _parameters(tmp_path / "p")) == 0
    rows = read_rows(tmp_path / "out" / "T01001.csv")
    assert {key[:2]: value[0] for key, value in rows.items()} == {
        ("USA", "1"): "35",
        ("STATE", "44"): "35",
        ("COUNTY", "44001"): "25",
    }


def test_parameters_say_what_an_area_may_show(tmp_path: Path) -> None:
    county, tract = ("COUNTY", "44001"), ("TRACT", "44001000001")
    # 1002 is for states only, and 1003 of a level that tracts do not have.
    counts = {(*county, "1001"): 30, (*tract, "1001"): 0, (*county, "1002"): 31, (*county, "1003"): 32}
    release = _counties(tmp_path, counts)
    assert run(release, tmp_path / "GRF-C.txt", tmp_path / "out", "--parameters", _parameters(tmp_path / "p")) == 0
    rows = read_rows(tmp_path / "out" / "T01001.csv")
    assert {key[:3]: value[0] for key, value in rows.items()} == {
        (*county, "1001"): "15",
        (*tract, "1001"): "15",
        (*county, "1002"): "31",
        (*county, "1003"): "32",
    }


def test_states_outside_the_release_do_not_count(tmp_path: Path) -> None:
    world = World([*TRACT, ("11", "001", "000001", "0001", "99999", "9999")], {})
    world.tables = {"T01001": {("USA", "1", "1001", ()): (10, 1.0), ("STATE", "44", "1001", ()): (20, 1.0)}}
    release = world.write(tmp_path / "release")
    assert run(release, world.write_reference(tmp_path / "GRF-C.txt"), tmp_path / "out") == 0
    assert {value[0] for value in read_rows(tmp_path / "out" / "T01001.csv").values()} == {"15"}


def test_housing_units_leave_areas_of_water_out(tmp_path: Path) -> None:
    release = _counties(tmp_path, {("STATE", "44", "1001"): 30, ("COUNTY", "44001", "1001"): 40})
    options = ("--housing-units", tmp_path / "housing-units.txt")
    assert run(release, tmp_path / "GRF-C.txt", tmp_path / "out", *options) == 0
    assert {value[0] for value in read_rows(tmp_path / "out" / "T01001.csv").values()} == {"35"}


def _spoil(path: Path, old: str, new: str) -> None:
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new, 1))


BAD_REFERENCES = {
    "line 2": ("|44|001", "|4|001"),
    "no column PLACEFP": ("PLACEFP", "PLACE"),
    "more than once": ("|44|003|", "|44|001|"),
}


@pytest.mark.parametrize("words", BAD_REFERENCES)
def test_a_broken_reference_file_is_refused(words: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    release = _counties(tmp_path, {("COUNTY", "44001", "1001"): 30})
    _spoil(tmp_path / "GRF-C.txt", *BAD_REFERENCES[words])
    assert run(release, tmp_path / "GRF-C.txt", tmp_path / "out") == 2
    assert words in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


BAD_TABLES = {
    "suppressed count": ("|30|4|", "|X|X|"),
    "columns": ("VARIANCE|MOE", "MOE|VARIANCE"),
    "lacks a cell or has one twice": ("|30|4|3.92\n", "|30|4|3.92\n44001|COUNTY|1001|30|4|3.92\n"),
}


@pytest.mark.parametrize("words", BAD_TABLES)
def test_a_broken_table_is_refused(words: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    release = _counties(tmp_path, {("COUNTY", "44001", "1001"): 30})
    (release / "manifest.json").unlink()
    _spoil(release / "T01001.csv", *BAD_TABLES[words])
    assert run(release / "T01001.csv", tmp_path / "GRF-C.txt", tmp_path / "out") == 2
    assert words in capsys.readouterr().err


def test_a_changed_release_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    release = _counties(tmp_path, {("COUNTY", "44001", "1001"): 30})
    _spoil(release / "T01001.csv", "|30|", "|31|")
    assert run(release, tmp_path / "GRF-C.txt", tmp_path / "out") == 2
    assert "changed after it was written" in capsys.readouterr().err


@pytest.mark.slow
def test_other_requests_that_cannot_be_served(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    release = _counties(tmp_path, {("COUNTY", "44001", "1001"): 30, ("TRACT", "44001000001", "1001"): 40})
    grfc, units = tmp_path / "GRF-C.txt", tmp_path / "housing-units.txt"
    assert run(release, grfc, tmp_path / "out") == 0
    requests = {
        "does not exist": (tmp_path / "nowhere", grfc),
        "cannot be read": (release, tmp_path / "nowhere"),
        "for other areas": (tmp_path / "out", grfc, "--housing-units", units),
        "no column HOUSING_UNITS": (release, grfc, "--housing-units", grfc),
        "is no table of SafeTab": (grfc, grfc),
        "race-characteristic-iterations.txt": (release, grfc, "--parameters", tmp_path),
    }
    for words, (source, reference, *options) in requests.items():
        capsys.readouterr()
        assert run(source, reference, tmp_path / "new", *options) == 2
        assert words in capsys.readouterr().err
        assert not (tmp_path / "new").exists()
    assert run(release, grfc, release, "--overwrite") == 2
    units.write_text("block|housing_units\n440010000010001|0\n")
    assert run(release, grfc, tmp_path / "new", "--housing-units", units) == 2


def test_a_marginal_that_is_no_sum_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    world = World(TRACT, {})
    rows = {("COUNTY", "44001", "1001", (cell,)): (2, 1.0) for cell in "0123"}
    world.tables = {"T04001": {}, "T04002": rows}
    assert run(world.write(tmp_path / "release"), world.write_reference(tmp_path / "g.txt"), tmp_path / "out") == 2
    assert "not the sum of its cells" in capsys.readouterr().err


def test_groups_that_lack_cells_are_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    # What one group lacks the next one has, so that together they look like a whole group.
    world = World(TRACT, {})
    cells = [("1001", "0"), ("1001", "1"), ("1002", "2"), ("1002", "3")]
    world.tables = {"T04001": {}, "T04002": {("COUNTY", "44001", code, (cell,)): (0, 1.0) for code, cell in cells}}
    assert run(world.write(tmp_path / "release"), world.write_reference(tmp_path / "g.txt"), tmp_path / "out") == 2
    assert "lacks a cell or has one twice" in capsys.readouterr().err


def test_combining_twice_without_a_manifest_keeps_the_counts(tmp_path: Path) -> None:
    release = _counties(tmp_path, {("COUNTY", "44001", "1001"): 30, ("TRACT", "44001000001", "1001"): 41})
    assert run(release, tmp_path / "GRF-C.txt", tmp_path / "out") == 0
    (tmp_path / "out" / "manifest.json").unlink()
    assert run(tmp_path / "out" / "T01001.csv", tmp_path / "GRF-C.txt", tmp_path / "again") == 0
    once, again = (read_rows(tmp_path / out / "T01001.csv") for out in ("out", "again"))
    assert {key: row[0] for key, row in once.items()} == {key: row[0] for key, row in again.items()}


def test_the_manifest_tells_what_was_done(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    counts = {("COUNTY", "44001", "1001"): 30, ("TRACT", "44001000001", "1001"): 40, ("COUNTY", "44003", "1001"): 30}
    release = _counties(tmp_path, counts)
    assert run(release, tmp_path / "GRF-C.txt", tmp_path / "out", "--json") == 0
    record = json.loads(capsys.readouterr().out)["postprocessing"][0]
    assert record["sets"] == len(list(combinations("abc", 2)))
    assert record["groups"] == {"combined": 2, "added": 0, "dropped": 1}
