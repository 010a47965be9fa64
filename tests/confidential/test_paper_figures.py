"""Figures SA1 to SA4 of the paper: the authors' noise, their mechanisms, and the numbers printed."""

import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from places import SHARED
from scipy import optimize

from yupana.audit.empirical import kernel_density as published
from yupana.audit.empirical.kernel_density import generator_of_the_figures, noise, published_curve, reproduce
from yupana.audit.empirical.loss import LossRequest
from yupana.audit.empirical.series import checked
from yupana.cli.main import main
from yupana.confidential.paper_figures import (
    COLUMNS,
    FIGURES,
    WORDS,
    Districts,
    Drawn,
    draw_figure,
    made_up_districts,
    read_districts,
)
from yupana.errors import InputError
from yupana.report.empirical import epl_page

COOK = SHARED / "data" / "cook_il_2010_pl_blocks" / "cook_2010_pl_block.parquet"
PUBLISHED = LossRequest("published", replicates=5)


def epl(capsys: pytest.CaptureFixture[str], *arguments: object) -> tuple[int, str, str]:
    status = main(["audit", "epl", *map(str, arguments)])
    return status, *capsys.readouterr()


def small(districts: int = 60, seed: int = 1) -> Districts:
    """Two counties of districts with many people in two strata and few in four."""
    counts = np.random.default_rng(seed).poisson([300, 100, 1, 1, 0.1, 0], size=(districts, 6)).astype(np.int64)
    return Districts(counts, np.arange(districts) % 2, "made up")


def test_the_noise_is_that_of_the_authors() -> None:
    # Their notebooks show counts of the first and the last five districts, and the same with noise.
    exact = np.array([348, 227, 79, 121, 181, 1642, 1157, 1378, 145, 415])
    noisy = [356, 225, 56, 122, 185, 1651, 1153, 1375, 146, 401]
    generator = generator_of_the_figures()
    drawn = noise(generator, 0.25, 2663)
    assert (exact + np.r_[drawn[:5], drawn[-5:]]).tolist() == noisy
    # Of SA3 the first five and the last five strata, of which the first alone has people, 139.
    drawn = noise(generator, 0.75, 63_912)
    assert np.r_[drawn[:5], drawn[-5:]].tolist() == [139 - 139, 8, 0, -3, 2, 0, 0, -1, -1, 5]


def test_figure_sa2_has_the_two_numbers_printed() -> None:
    caption, text = draw_figure("SA2", small(), PUBLISHED)
    assert caption.finding.loss == pytest.approx(0.18231889317777084, abs=1e-12)
    assert text.finding.loss == pytest.approx(0.043, abs=5e-5)
    for drawn, step in ((caption, 0.125), (text, 0.025)):
        assert drawn.difference is not None
        assert abs(drawn.difference) < 0.005
        assert drawn.finding.known is not None
        assert drawn.finding.known.loss == pytest.approx(-np.log1p(-step))
        assert not any("law of the noise" in words for words in drawn.finding.warnings)


def test_figure_sa1_adds_the_noise_of_sa2_to_every_district() -> None:
    (drawn,) = draw_figure("SA1", made_up_districts(), PUBLISHED)
    caption, _ = draw_figure("SA2", small(), PUBLISHED)
    assert (drawn.finding.series.noisy - drawn.finding.series.exact == caption.finding.series.noisy).all()
    assert drawn.finding.loss == caption.finding.loss


def test_figure_sa3_minimises_the_squares_of_the_code() -> None:
    districts = small()
    code, text = draw_figure("SA3", districts, PUBLISHED)
    generator = generator_of_the_figures()
    totals = districts.counts.sum(axis=1) + noise(generator, 0.25, 60)
    strata = districts.counts + noise(generator, 0.75, 360).reshape(60, 6)
    for place in range(60):
        matrix = np.vstack([np.full(6, 0.25**0.5), np.eye(6) * 0.75**0.5])
        due, _ = optimize.nnls(matrix, np.array([0.25**0.5 * totals[place], *0.75**0.5 * strata[place]]))
        assert code.finding.series.noisy[place] == pytest.approx(due.sum(), abs=1e-6)
        assert text.finding.series.noisy[place] == np.maximum(strata[place], 0).sum()
    residuals = checked(code.finding.series.noisy - districts.counts.sum(axis=1))
    assert code.finding.loss == published_curve(residuals).largest


def test_figure_sa4_has_a_penalty_for_each_county_and_no_invariant() -> None:
    districts = small(40)
    code, text, clipped = draw_figure("SA4", districts, PUBLISHED)
    strata = districts.counts + noise(generator_of_the_figures(), 0.25, 240).reshape(40, 6)
    for county in (0, 1):
        inside = districts.county == county
        total, measured = districts.counts[inside].sum(), strata[inside].ravel()
        matrix = np.vstack([np.full(measured.size, 10.0), np.eye(measured.size)])
        due, _ = optimize.nnls(matrix, np.array([10.0 * total, *measured]))
        fit, kept = (drawn.finding.series.noisy.reshape(40, 6)[inside].ravel() for drawn in (code, text))
        assert fit == pytest.approx(due, abs=1e-5)
        assert kept.sum() == pytest.approx(total)
        assert abs(fit.sum() - total) > 1e-3
    assert (clipped.finding.series.noisy == np.maximum(strata, 0).ravel()).all()


def test_made_up_districts_are_like_those_of_washington() -> None:
    found = made_up_districts()
    assert found.counts.shape == (2663, 24)
    assert len(np.unique(found.county)) == 39
    assert found.counts.sum() == pytest.approx(1_736_191, rel=0.05)
    assert np.count_nonzero(found.counts) == pytest.approx(9869, rel=0.02)
    sizes = found.counts.sum(axis=1)
    assert sizes.std() / sizes.mean() == pytest.approx(762.7 / 981.8, rel=0.1)
    assert not (made_up_districts(1).counts == found.counts).all()


def losses(figure: str, districts: Districts) -> list[float]:
    found: Sequence[Drawn] = draw_figure(figure, districts, PUBLISHED)
    return [round(drawn.finding.loss or np.nan, 3) for drawn in found]


@pytest.mark.slow
def test_the_losses_of_made_up_districts_are_those_of_the_page() -> None:
    # As docs/audits.md says, beside 0.54 and 2.3 as printed.
    assert losses("SA3", made_up_districts()) == [0.458, 19.768]
    assert losses("SA4", made_up_districts()) == [2.598, 2.598, 1.68]
    others = [losses(figure, made_up_districts(seed))[0] for seed in range(1, 13) for figure in ("SA3", "SA4")]
    squares, penalties = others[::2], others[1::2]
    assert min(squares) < 0.54 < max(squares)
    assert all(2.3 < loss < 2.8 for loss in penalties)


@pytest.mark.skipif(not COOK.is_file(), reason="the blocks of Cook County are not at hand")
@pytest.mark.slow
def test_the_losses_of_cook_county_are_those_of_the_page() -> None:
    districts = read_districts(COOK)
    assert losses("SA3", districts) == [0.28, 1.181]
    assert losses("SA4", districts) == [0.952, 0.952, 0.657]


# --- files of districts ---------------------------------------------------------------------------------------------


def write(path: Path, *rows: str) -> Path:
    path.write_text("\n".join([",".join(COLUMNS), *rows]) + "\n")
    return path


def test_enumeration_districts_are_read_in_the_order_of_the_authors(tmp_path: Path) -> None:
    rows = (
        "53,20,10,18,1,1,7",
        "53,10,20,17,1,1,5",
        "53,10,20,18,2,2,3",
        "53,10,10,17,1,1,1",
        "53,10,20,17,1,1,4",  # another type of group quarters: added
    )
    found = read_districts(write(tmp_path / "districts.csv", *rows))
    # By county and district; strata by age, race and ethnicity: (17, 1, 1) first, (18, 2, 2) last.
    assert found.county.tolist() == [10, 10, 20]
    assert found.counts.tolist() == [
        [1, 0, 0, 0, 0, 0, 0, 0],
        [9, 0, 0, 0, 0, 0, 0, 3],
        [0, 0, 0, 0, 7, 0, 0, 0],
    ]
    assert "3 districts of 2 counties" in found.words


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        (("53,10,10,17,1,1,1", "6,10,10,17,1,1,1"), "of one state"),
        ((), "of one state, and at least one"),
        (("53,10,10,17,1,1,1.5",), "line 2, column count: not a whole number"),
        (("53,10,10,17,1,1,-1",), "line 2, column count: not a whole number"),
        (("53,10,10,17,1,1,x",), "line 2, column count: not a finite number"),
    ],
)
def test_districts_that_cannot_be_are_refused(tmp_path: Path, rows: Sequence[str], words: str) -> None:
    with pytest.raises(InputError, match=words):
        read_districts(write(tmp_path / "districts.csv", *rows))


# --- the command ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("figure", "printed"), [("SA2", [0.18, 0.043]), ("SA3", [0.54, None]), ("SA4", [2.3, None, None])]
)
def test_a_figure_by_one_command(
    capsys: pytest.CaptureFixture[str], figure: str, printed: Sequence[float | None]
) -> None:
    status, out, err = epl(capsys, "--reproduce", figure, "--replicates", 3, "--json")
    rows = json.loads(out)
    assert status == 0
    assert [row["printed"] for row in rows] == printed
    assert {row["figure"] for row in rows} == {figure}
    assert rows[0]["difference"] == pytest.approx(rows[0]["printed"] - rows[0]["epl"])
    assert ("made-up districts" in err) == ("--data FILE" in err) == (figure != "SA2")
    _, out, _ = epl(capsys, "--reproduce", figure, "--replicates", 3)
    assert f"printed {printed[0]}" in out


def test_a_figure_of_a_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    generator = np.random.default_rng(1)
    rows = [
        f"53,{district % 3},{district},{age},1,1,{generator.poisson(200)}" for district in range(60) for age in (17, 18)
    ]
    path = write(tmp_path / "districts.csv", *rows)
    status, out, err = epl(capsys, "--reproduce", "SA4", "--data", path, "--replicates", 3, "--json")
    assert status == 0
    assert json.loads(out)[0]["result"]["residuals"] == 120
    assert "60 districts of 3 counties of districts.csv" in err
    assert "made-up" not in err
    status, _, err = epl(capsys, "--reproduce", "SA2", "--data", path)
    assert (status, "noise alone" in err) == (2, True)


@pytest.mark.slow
def test_figure_sa1_is_drawn_with_its_table(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("vl_convert")
    monkeypatch.setattr(published, "reproduce", lambda: reproduce("c", 3))
    page = tmp_path / "page.html"
    status, out, err = epl(capsys, "--reproduce", "SA1", "--report", page, "--json")
    assert (status, {tuple(row) for row in json.loads(out)}) == (0, {("panel", "value", "mean", "lower", "upper")})
    assert "made-up districts" in err
    text = page.read_text(encoding="utf-8")
    for words in ("Table SA1", "(a) Noisy against exact counts", "(b) Residuals against exact counts", "EPL(x)"):
        assert words in text
    # All districts are drawn.
    assert "chosen at random" not in text
    assert "://" not in text


@pytest.mark.slow
def test_a_page_draws_every_series() -> None:
    pytest.importorskip("vl_convert")
    many = [drawn.finding for _ in range(4) for drawn in draw_figure("SA2", small(), PUBLISHED)]
    text = epl_page(many)
    assert all(f'id="series{i + 1}"' in text for i in range(len(many)))


def test_a_column_is_given_noise(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "counts.csv"
    path.write_text("unit,people\n" + "".join(f"{i},{i % 50}\n" for i in range(400)))
    law = ("--mechanism", "geometric", "--epsilon", "1/2", "--seed", 1)
    status, out, _ = epl(capsys, "--data", path, "--exact", "people", *law, "--json")
    (found,) = json.loads(out)["results"]
    assert (status, found["name"], found["residuals"]) == (0, "counts.csv, people with noise", 400)
    assert found["epl"] == found["known"]["epl"] == 0.5
    assert not any("law of the noise" in words for words in found["warnings"])
    _, again, _ = epl(capsys, "--data", path, "--exact", "people", *law, "--json")
    assert again == out
    for arguments, words in (
        (("--data", path, *law), "needs --exact COLUMN"),
        (("--data", path, "--exact", "unit", "--noisy", "people", *law), "needs --exact COLUMN"),
        (("--data", path, "--exact", "people"), "needs one of"),
        ((path, "--exact", "unit", "--noisy", "people", "--data", path), "--data goes with"),
        (("--exact", "people", *law), "--exact names a column"),
        (("--reproduce", "SA3", "--bandwidth", "1", *law), "leave --mechanism, --bandwidth out"),
        (("--mechanism", "geometric", "--epsilon", "1e-25"), "--epsilon must lie between"),
        (("--mechanism", "discrete-gaussian", "--rho", "1000"), "--rho must lie between"),
    ):
        status, _, err = epl(capsys, *arguments)
        assert (status, words in err) == (2, True), err
    path.write_text("unit,people\nx,1.5\n")
    status, _, err = epl(capsys, "--data", path, "--exact", "people", *law)
    assert (status, "line 2, column people: not a whole number" in err) == (2, True)
    assert "1.5" not in err


def test_too_many_strata_are_refused(tmp_path: Path) -> None:
    rows = [f"53,{i},{i},{i},{i},1,1" for i in range(300)]
    with pytest.raises(InputError, match="more than 20,000,000 counts"):
        read_districts(write(tmp_path / "districts.csv", *rows))


def test_every_figure_has_its_words() -> None:
    assert set(WORDS) == set(FIGURES)
