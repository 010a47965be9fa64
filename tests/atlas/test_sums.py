"""Sums, differences, ratios and shares of chosen rows: those of the library, or why they have no interval."""

import json
import re
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from area_releases import make_release
from atlas_pages import opened
from chromium import at_rest

import yupana
from yupana.cli.main import main
from yupana.products.phsafe.configuration import production_config

OPERATIONS = {"Sum": "+", "Difference": "-", "Ratio": "/", "Share": "%"}


def answers(browser: Any, site: Path, rows: list[str]) -> dict[str, str]:  # noqa: ANN401
    """What the page says of chosen rows, by operation."""
    page = opened(browser, site.as_uri(), "".join(f"&row={row}" for row in rows))
    found = {}
    for operation in OPERATIONS:
        page.get_by_role("button", name=operation, exact=True).click()
        at_rest(page)
        found[operation] = page.locator(".answer p").inner_text().replace("\xa0", " ")
    page.context.close()
    return found


def numbers(answer: str) -> list[float]:
    """The estimate and the ends of an answer."""
    found = re.match(r"([\d,.-]+)(?: %)? +([\d,.-]+)(?: %)? – ([\d,.-]+)", answer)
    assert found, answer
    return [float(one.replace(",", "")) for one in found.groups()]


def due(found: Any, *names: str) -> list[float]:  # noqa: ANN401
    (row,) = pl.DataFrame(found).rows(named=True)
    return [float(row[name]) for name in names]


def counted(folder: Path, states: list[str]) -> Path:
    """A release of PHSafe, whose noise is small beside its counts."""
    config = production_config()
    config["state_filter"] = states
    for table, levels in config["privacy_budget"].items():
        told = 50.0 if table in {"PH1_num", "PH1_denom", "PH3", "PH4"} else 0.0
        levels.update({key: 0.0 if states == ["72"] and key.startswith("usa") else told for key in levels})
    (folder / "config.json").write_text(json.dumps(config))
    made = ["synth", str(folder / "census"), "--households", "300", "--seed", "5", "--states", ",".join(states)]
    assert main(made) == 0
    run = ["phsafe", "run", str(folder / "config.json"), str(folder / "census"), str(folder / "release")]
    assert main(run) == 0
    return folder / "release"


@pytest.fixture(scope="module")
def phsafe(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return counted(tmp_path_factory.mktemp("us"), ["06", "48"])


@pytest.fixture(scope="module")
def puerto_rico(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return counted(tmp_path_factory.mktemp("pr"), ["72"])


@pytest.mark.thorough
@pytest.mark.parametrize("state", ["06", "72"])
def test_rows_of_phsafe_have_the_intervals_of_the_library(
    phsafe: Path,
    puerto_rico: Path,
    state: str,
    tmp_path: Path,
    browser: Any,  # noqa: ANN401
) -> None:
    release = puerto_rico if state == "72" else phsafe
    site = yupana.atlas(release, tmp_path / "site")
    # PH5_num is a sum of cells of PH4, so that the covariance of these two is not 0.
    cells = [f"PH5_num[REGION_ID={state}, ITERATION_CODE=*, PH5_NUM_DATA_CELL=2]"]
    cells += [f"sum(PH5_num[REGION_ID={state}, ITERATION_CODE=*, PH5_NUM_DATA_CELL=3])"]
    found = answers(browser, site, [f"PH5_num|STATE:{state}|*|{cell}" for cell in (2, 3)])
    for operation, sign in OPERATIONS.items():
        asked = yupana.interval(release, f"{cells[0]} {sign} {cells[1]}")
        assert numbers(found[operation]) == pytest.approx(due(asked, "estimate", "lower", "upper"), abs=0.51), operation


@pytest.mark.thorough
def test_rows_of_estimates_have_the_intervals_of_what_was_measured(
    phsafe: Path,
    puerto_rico: Path,
    tmp_path: Path,
    browser: Any,  # noqa: ANN401
) -> None:
    made = tmp_path / "estimates"
    assert main(["phsafe", "estimate", str(phsafe), str(made), "--puerto-rico", str(puerto_rico)]) == 0
    site = yupana.atlas(made, tmp_path / "site")
    told = pl.DataFrame(yupana.open_release(made)["PH3"]).filter(pl.col("ITERATION_CODE") == "*")
    shown = {(state, cell): value for state, cell, value in told.select("REGION_ID", "DATA_CELL", "ESTIMATE").rows()}
    for states in (("06", "48"), ("06", "72")):
        # Line 3 adds up measured cells.
        found = answers(browser, site, [f"PH3|STATE:{states[0]}|*|3", f"PH3|STATE:{states[1]}|*|4"])
        names = {state: puerto_rico if state == "72" else phsafe for state in states}
        above = f"sum(PH3[REGION_ID={states[0]}, ITERATION_CODE=*, PH3_DATA_CELL=4|5|6|7])"
        if "72" not in names:
            below = f"PH3[REGION_ID={states[1]}, ITERATION_CODE=*, PH3_DATA_CELL=4]"
            for operation, sign in OPERATIONS.items():
                asked = yupana.interval(phsafe, f"{above} {sign} {below}")
                ends = numbers(found[operation])[1:]
                assert ends == pytest.approx(due(asked, "lower", "upper"), abs=0.51), operation
        estimate = float(shown[states[0], "3"]) + float(shown[states[1], "4"])
        assert numbers(found["Sum"])[0] == pytest.approx(estimate, abs=0.51)
        assert "The interval is that of the measurements" in found["Sum"]
    # A sum that is a line of the table is that line.
    found = answers(browser, site, [f"PH3|STATE:06|*|{line}" for line in (4, 5, 6, 7)])
    line = told.filter((pl.col("REGION_ID") == "06") & (pl.col("DATA_CELL") == "3")).select(
        "ESTIMATE", "LOWER", "UPPER"
    )
    assert numbers(found["Sum"]) == [float(one) for one in line.row(0)]
    # Of averages nothing tells how they would be added.
    found = answers(browser, site, ["PH1|STATE:06|*|2", "PH1|STATE:48|*|2"])
    assert "errors of these estimates depend on each other" in found["Sum"]


@pytest.mark.thorough
def test_rows_of_topdown_have_the_intervals_of_the_tables_and_name_what_gives_others(
    tmp_path: Path,
    browser: Any,  # noqa: ANN401
) -> None:
    make_release(tmp_path, (3, 2), intervals="least-squares")
    release = tmp_path / "out"
    site = yupana.atlas(release, tmp_path / "site")
    rows = [f"T1|county:01001||T001000{line}" for line in range(1, 7)]
    assert pl.DataFrame(yupana.open_release(release)["tables/T1"]).columns[2:] == [row[-8:] for row in rows]
    whole, *_, other = yupana.interval(release, "T1", area="county=01001")
    # The total is the sum of the levels of an attribute; less one of two levels it is the other.
    assert numbers(answers(browser, site, rows[1:4])["Sum"]) == [whole.published, whole.lower, whole.upper]
    found = answers(browser, site, [rows[0], rows[4]])
    assert numbers(found["Difference"]) == [other.published, other.lower, other.upper]
    for operation in ("Sum", "Ratio", "Share"):
        (query,) = re.findall(r'--area county=01001 --query "([^"]+)"', found[operation])
        with pytest.raises(yupana.ConfigError, match="No interval"):
            yupana.interval(release, query, area="county=01001")
        assert yupana.interval(release, query, area="county=01001", noisy=tmp_path / "noisy")[0].lower
