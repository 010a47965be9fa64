"""The paper's demonstrations: exact solutions against general solvers, and what they show."""

from pathlib import Path

import duckdb
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from places import SHARED
from scipy import optimize

from yupana.audit.empirical.loss import LossRequest, examine
from yupana.audit.empirical.series import composition, invariant, least_absolute, least_squares
from yupana.confidential.audit_counts import read_strata
from yupana.errors import InputError
from yupana.privacy.entropy import SeededEntropy

COOK = SHARED / "data" / "cook_il_2010_pl_blocks" / "cook_2010_pl_block.parquet"

strata = st.lists(st.integers(-30, 60), min_size=1, max_size=9)


@given(st.integers(-60, 200), strata, st.sampled_from([0.1, 1 / 3, 1.0, 7.0, 100.0]))
@pytest.mark.slow
def test_least_squares_is_the_optimum_that_a_general_solver_finds(total: int, row: list[int], weight: float) -> None:
    found = least_squares(np.array([float(total)]), np.array([row], dtype=float), weight)[0]
    matrix = np.vstack([np.full(len(row), weight**0.5), np.eye(len(row))])
    due, _ = optimize.nnls(matrix, np.array([weight**0.5 * total, *row]))
    assert found == pytest.approx(due, abs=1e-6)


@given(st.integers(1, 200), strata)
def test_an_invariant_is_kept_by_the_nearest_point(total: int, row: list[int]) -> None:
    target = np.array(row, dtype=float)
    found = least_squares(np.array([float(total)]), target[None, :], np.inf)[0]
    assert found.sum() == pytest.approx(total)
    assert (found >= 0).all()
    # Karush, Kuhn and Tucker: one multiplier where a stratum is positive, no smaller where it is zero.
    multiplier = (target - found)[found > 0]
    assert np.ptp(multiplier) < 1e-9
    assert ((target - found)[found == 0] <= multiplier[0] + 1e-9).all()


def test_an_invariant_total_of_zero_leaves_nothing() -> None:
    assert least_squares(np.zeros(1), np.array([[3.0, -1.0]]), np.inf).tolist() == [[0, 0]]


@given(st.integers(-20, 90), st.lists(st.integers(-20, 30), min_size=1, max_size=5))
@pytest.mark.slow
def test_least_absolute_deviations_cost_what_a_linear_program_costs(total: int, row: list[int]) -> None:
    n = len(row)
    # Variables: strata, the deviation of the total, those of the strata.
    signs = [(1, -1), (-1, 1)]
    rows, ends = [], []
    for one, other in signs:
        rows.append([one] * n + [-1] + [0] * n)
        ends.append(one * total)
        for i in range(n):
            line = [0.0] * (2 * n + 1)
            line[i], line[n + 1 + i] = one, -1
            rows.append(line)
            ends.append(one * row[i])
        assert other == -one
    cost = [0.0] * n + [0.25] + [0.75] * n
    due = optimize.linprog(cost, np.array(rows, dtype=float), np.array(ends, dtype=float), method="highs").fun
    x = least_absolute(np.array([row], dtype=float))[0]
    assert 0.25 * abs(x.sum() - total) + 0.75 * np.abs(x - row).sum() == pytest.approx(due)


def county(units: int, seed: int = 1) -> np.ndarray:
    """Two strata with many people and many with few or none, as in a district of a state."""
    generator = np.random.default_rng(seed)
    sizes = np.r_[np.full(2, 400.0), np.full(6, 0.5)]
    return generator.poisson(sizes, size=(units, 8)).astype(np.int64)


@pytest.mark.thorough
def test_consistent_totals_lose_far_less_than_composition_allows() -> None:
    alone, squares, absolute = (
        examine(series, LossRequest()) for series in composition({"District": county(4000)}, SeededEntropy(1))
    )
    assert alone.loss == pytest.approx(0.125)
    for finding in (squares, absolute):
        assert finding.estimate is not None
        assert finding.estimate.upper < 0.5


def test_an_invariant_raises_the_loss_above_that_of_the_noise() -> None:
    alone, clipped, kept = (
        examine(series, LossRequest()) for series in invariant({"District": county(2000)}, SeededEntropy(1))
    )
    assert alone.loss == pytest.approx(0.125)
    for finding in (clipped, kept):
        assert finding.estimate is not None
        assert finding.estimate.lower > 0.25
    published = examine(kept.series, LossRequest("published", replicates=3)).loss
    assert published is not None
    assert published > 0.25


def write_blocks(path: Path, *, broken: str = "") -> None:
    names = ["state", "county", "tract", "BLKGRP"]
    names += [
        f"P{table:03}{n:03}" for table, first in ((1, 3), (2, 5), (3, 3), (4, 5)) for n in range(first, first + 7)
    ]
    rows = []
    for block in range(6):
        state = "18" if broken == "county" and block == 5 else "17"
        of_age = [block + race for race in range(7)]
        whole = [2 * n + 3 for n in of_age]
        others = [n // 2 for n in of_age]
        all_others = [n + 2 for n in others]
        if broken == "parts" and block == 3:
            of_age[2] = 1000
        rows.append([state, "031", f"{block // 3:06}", str(block // 2), *whole, *all_others, *of_age, *others])
    lines = [",".join(names), *(",".join(map(str, row)) for row in rows)]
    path.write_text("\n".join(lines) + "\n")
    if broken == "column":
        path.write_text(path.read_text().replace("P004011", "P004099"))


def test_strata_of_blocks_are_summed_by_geounit(tmp_path: Path) -> None:
    write_blocks(tmp_path / "blocks.csv")
    found = read_strata(tmp_path / "blocks.csv")
    assert {name: counts.shape for name, counts in found.items()} == {
        "Tract": (2, 28),
        "Block_Group": (4, 28),
        "Block": (6, 28),
    }
    # Block 2, race 3: 5 of voting age (2 not Hispanic), 13 in all (4 not Hispanic).
    strata = found["Block"][2].reshape(2, 2, 7)
    assert strata[:, :, 3].tolist() == [[13 - 4 - 3, 4 - 2], [3, 2]]
    assert (found["Tract"].sum(axis=0) == found["Block"].sum(axis=0)).all()
    assert (found["Tract"][0] == found["Block"][:3].sum(axis=0)).all()


@pytest.mark.parametrize(
    ("broken", "words"),
    [("county", "one county"), ("parts", "row 4: a part of P1 to P4 is larger"), ("column", "no column 'P004011'")],
)
def test_blocks_that_contradict_themselves_are_refused(tmp_path: Path, broken: str, words: str) -> None:
    write_blocks(tmp_path / "blocks.csv", broken=broken)
    with pytest.raises(InputError, match=words):
        read_strata(tmp_path / "blocks.csv")


@pytest.mark.skipif(not COOK.is_file(), reason="the blocks of Cook County are not at hand")
@pytest.mark.thorough
def test_cook_county_has_the_people_the_census_bureau_published() -> None:
    found = read_strata(COOK)
    assert {name: len(counts) for name, counts in found.items()} == {"Tract": 1319, "Block_Group": 3993, "Block": 99042}
    assert {int(counts.sum()) for counts in found.values()} == {5_194_675}
    of_age, hispanic = (
        found["Tract"].reshape(-1, 2, 2, 7)[:, 1].sum(),
        found["Tract"].reshape(-1, 2, 2, 7)[:, :, 0].sum(),
    )
    assert (of_age, hispanic) == (3_962_395, 1_244_762)


def test_parquet_is_read_as_csv_is(tmp_path: Path) -> None:
    write_blocks(tmp_path / "blocks.csv")
    with duckdb.connect() as db:
        db.execute(f"COPY (FROM read_csv('{tmp_path}/blocks.csv')) TO '{tmp_path}/blocks.parquet' (FORMAT parquet)")
    one, other = (read_strata(tmp_path / f"blocks.{form}") for form in ("csv", "parquet"))
    assert all((one[name] == other[name]).all() for name in one)


def test_the_noise_is_that_of_the_shares() -> None:
    alone, *_ = composition({"x": county(40)}, SeededEntropy(1))
    assert alone.law is not None
    assert alone.law.variance == pytest.approx(2 * np.exp(-1 / 8) / (1 - np.exp(-1 / 8)) ** 2)
