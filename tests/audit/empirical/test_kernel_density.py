"""The published empirical privacy loss: the figures of the paper, and what its arguments would do."""

import json
import re
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from places import SHARED
from scipy import stats

from yupana.audit.empirical import kernel_density as published
from yupana.audit.empirical.kernel_density import draw, honour, log_density, published_curve, reproduce
from yupana.audit.empirical.series import Residuals, checked
from yupana.cli.main import main
from yupana.errors import InputError

PAPER = SHARED / "papers" / "empirical-privacy-loss.txt"

# As printed: value, mean, 2.5th and 97.5th percentile.
PRINTED_B = """
0.001 0.2385 0.1872 0.3257
0.005 0.2327 0.1853 0.3130
0.01 0.2396 0.1837 0.3410
0.05 0.2364 0.1911 0.3246
0.1 0.2410 0.1858 0.3195
0.5 0.2366 0.1842 0.3146
1 0.2431 0.1946 0.3251
5 0.2429 0.1853 0.3493
"""
PRINTED_C = """
75 0.2385 0.1872 0.3257
85 0.2327 0.1853 0.3130
95 0.2396 0.1837 0.3410
99 0.2364 0.1911 0.3246
99.9 0.2410 0.1858 0.3195
"""


def printed(text: str) -> list[list[float]]:
    return [[float(number) for number in line.split()] for line in text.strip().splitlines()]


@pytest.mark.parametrize(("panel", "text"), [("b", PRINTED_B), ("c", PRINTED_C)])
@pytest.mark.slow
def test_panels_b_and_c_come_out_to_four_decimals(panel: str, text: str) -> None:
    rows = [row.as_json() for row in reproduce(panel)]
    assert [[row[key] for key in ("value", "mean", "lower", "upper")] for row in rows] == printed(text)
    assert {row["panel"] for row in rows} == {panel}


@pytest.mark.slow
def test_b_and_c_are_the_same_runs_and_the_last_of_b_is_one_of_a() -> None:
    b, c = ([row.mean for row in reproduce(panel, 3)] for panel in "bc")
    assert c == b[: len(c)]
    assert [row.mean for row in reproduce("a", 3) if row.value == 0.25] == b[-1:]


@pytest.mark.slow
def test_arguments_that_are_honoured_change_everything() -> None:
    means = {(row.panel, row.value): row.mean for row in honour(60)}
    found = [means["b", width] for width in (0.005, 0.01, 0.05, 0.1, 0.5, 1.0)]
    assert found == pytest.approx([0.411, 0.411, 0.362, 0.236, 0.135, 0.086], abs=6e-4)
    assert means["b", 5.0] == pytest.approx(0.0057, abs=6e-5)
    found = [means["c", percentile] for percentile in (75, 85, 95, 99, 99.9)]
    assert found == pytest.approx([0.165, 0.190, 0.236, 0.387, 1.881], abs=6e-4)


@pytest.mark.parametrize(("epsilon", "loss"), [(0.25, 0.1823188931777710), (0.05, 0.0430)])
def test_the_two_losses_of_the_text_come_from_two_runs(epsilon: float, loss: float) -> None:
    # The captions say epsilon 0.25 and 0.18, the text 0.05 and 0.043.
    found = published_curve(draw(np.random.RandomState(12345), epsilon)).largest
    assert found == pytest.approx(loss, abs=1e-10 if epsilon == 0.25 else 5e-5)


whole = st.lists(st.integers(-40, 40), min_size=30, max_size=80).filter(lambda values: len(set(values)) > 1)
fractional = st.lists(st.floats(-40, 40), min_size=30, max_size=80).filter(lambda values: np.ptp(values) > 0.1)


@given(whole | fractional, st.floats(0.05, 3), st.lists(st.floats(-60, 60), min_size=1, max_size=9))
@pytest.mark.thorough
def test_density_is_that_of_scipy(values: Sequence[float], factor: float, points: Sequence[float]) -> None:
    residuals = checked(np.array(values, dtype=float))
    rounded = np.round(np.array(values, dtype=float), 9)
    peer = stats.gaussian_kde(rounded, bw_method=factor)
    ours = log_density(residuals, np.array(points), factor * residuals.deviation)
    theirs = peer.logpdf(points)
    assert residuals.deviation == pytest.approx(rounded.std(ddof=1))
    seen = theirs > -600
    assert ours[seen] == pytest.approx(theirs[seen], rel=1e-7, abs=1e-7)


def test_a_convolution_gives_the_same_density(monkeypatch: pytest.MonkeyPatch) -> None:
    values = np.random.default_rng(1).geometric(0.01, 3000) - np.random.default_rng(2).geometric(0.01, 3000)
    residuals, points = checked(values.astype(float)), np.arange(-200.3, 200)
    direct = log_density(residuals, points, 14.0)
    monkeypatch.setattr("yupana.audit.empirical.kernel_density._MANY", 0)
    assert np.abs(log_density(residuals, points, 14.0) - direct).max() < 1e-9
    assert (log_density(residuals, points, 14.0) != direct).any(), "it was not convolved"


@given(whole | fractional, st.floats(0, 100))
@pytest.mark.slow
def test_percentiles_are_those_of_numpy(values: Sequence[float], level: float) -> None:
    rounded = np.round(np.array(values, dtype=float), 9)
    assert checked(rounded).percentile(level) == pytest.approx(np.percentile(rounded, level), abs=1e-6)


def test_a_range_of_one_step_has_no_published_loss() -> None:
    with pytest.raises(InputError, match="too narrow"):
        published_curve(Residuals(np.array([-1.0, 0.0, 1.0]), np.array([1.0, 98.0, 1.0])))


def test_a_range_of_millions_is_refused() -> None:
    with pytest.raises(InputError, match="beyond 1,000,000"):
        published_curve(Residuals(np.array([-1e9, 0.0, 1e9]), np.array([30.0, 40.0, 30.0])))


@pytest.mark.skipif(not PAPER.is_file(), reason="the paper is not at hand")
def test_the_rows_printed_here_are_those_of_the_paper() -> None:
    table = re.findall(r"^([\d.]+)\t([\d.]+)\t([\d.]+)\t([\d.]+)\s*$", PAPER.read_text(encoding="utf-8"), re.MULTILINE)
    assert [[float(number) for number in row] for row in table[13:]] == printed(PRINTED_B) + printed(PRINTED_C)


@pytest.mark.thorough
def test_rows_of_the_command_are_rows_of_the_table(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(published, "reproduce", lambda: reproduce("c"))
    assert main(["audit", "epl", "--reproduce", "SA1", "--json"]) == 0
    out, err = capsys.readouterr()
    rows = json.loads(out)
    assert rows[0] == {"panel": "c", "value": 75.0, "mean": 0.2385, "lower": 0.1872, "upper": 0.3257}
    assert "no sensitivity analysis" in err
