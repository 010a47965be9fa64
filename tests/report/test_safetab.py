"""The report on SafeTab: who received what is counted right, and two losses are never one."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from yupana.plan.plan import Plan
from yupana.products.described.criteria import MeasurementErrors
from yupana.products.safetab.configuration import production_config
from yupana.products.safetab.demonstration_parameters import write_parameters
from yupana.products.safetab.errors import LEFT_OUT, SIZES, LevelErrors, summarize
from yupana.products.safetab.iterations import CharacteristicIterations, read_iterations
from yupana.products.safetab.product import HOUSEHOLDS, PERSONS, Parameters
from yupana.products.safetab.regions import LEVELS, Level
from yupana.products.safetab.specification import FAMILIES
from yupana.report.groups import AGES, Received, groups_by_table, loss_section, received_chart
from yupana.report.page import Page, render

BY_NAME = {level.name: level for level in LEVELS}


@pytest.fixture(scope="module")
def iterations(tmp_path_factory: pytest.TempPathFactory) -> CharacteristicIterations:
    folder: Path = tmp_path_factory.mktemp("report") / "parameters"
    write_parameters(folder)
    return read_iterations(folder)


def code_of(iterations: CharacteristicIterations, name: str) -> str:
    return next(i.code for i in iterations.iterations if i.name == name)


def columns(*groups: tuple[str, str, str]) -> dict[str, list[str]]:
    names = ("REGION_TYPE", "REGION_ID", "ITERATION_CODE")
    return {name: [group[k] for group in groups] for k, name in enumerate(names)}


def test_a_group_counts_once_in_its_finest_table(iterations: CharacteristicIterations) -> None:
    korean, east = (code_of(iterations, f"{name} alone") for name in ("Korean", "East Asian"))
    release = {
        "T01001": columns(("USA", "1", korean), ("STATE", "06", korean), ("STATE", "15", korean), ("USA", "1", east)),
        "T02001": columns(*[("STATE", "15", korean)] * 10),
        "T02002": columns(*[("USA", "1", korean)] * 20),
    }
    assert groups_by_table(release, list(release), iterations) == {
        BY_NAME["USA 1"]: {"T01001": 1},
        BY_NAME["USA 2"]: {"T02002": 1},
        BY_NAME["STATE 2"]: {"T01001": 1, "T02001": 1},
    }


def test_what_was_left_out_is_told() -> None:
    chart, _ = received_chart([Received(BY_NAME["TRACT 2"], 1000, {"T01001": 30, "T02003": 10})], AGES, "P")
    assert chart.data["Left out"] == ["960"]
    assert chart.data["Published"] == ["40"]
    assert chart.data["T01001, a total"] == ["30 (75.0%)"]
    assert chart.data["T02001, sex by 4 ages"] == ["0"]
    values = {row["series"]: row["value"] for row in chart.spec(820)["layer"][0]["data"]["values"]}
    assert values == {"a total": 0.75, "sex by 4 ages": 0, "sex by 9 ages": 0, "sex by 23 ages": 0.25}


def test_losses_stand_side_by_side(iterations: CharacteristicIterations) -> None:
    plans: list[Plan] = [
        PERSONS.plan(Parameters(production_config("safetab-p", ("us",)), iterations)),
        HOUSEHOLDS.plan(Parameters(production_config("safetab-h", ("us",)), iterations)),
    ]
    text = render(Page("title", "status", "", {}, (loss_section(*plans),)))
    for plan, unit in zip(plans, ("one person record", "one household record"), strict=True):
        assert unit in text
        assert f"{float(plan.loss()):.6f}" in text
    assert f"{float(sum(plan.loss() for plan in plans)):.6f}" not in text


def level_errors(level: Level, trials: int) -> LevelErrors:
    sizes, errors = np.array([5, 5, 50]), np.array([[1], [-3], [2]])
    groups = np.zeros(len(SIZES), dtype=np.int64)
    groups[[0, 1, 2]] = 7, 2, 1
    all_errors = np.tile(errors, (trials, 1))
    nothing = np.zeros_like(all_errors)
    unread: Any = None
    own = FAMILIES["safetab-p"][0].choices[0].own
    truth = np.tile(sizes, trials)[:, None]
    none = nothing[:, 0]
    table = MeasurementErrors(unread, own, none, none, none, truth, nothing, all_errors, truth[:, 0])
    return LevelErrors(level, detailed_only=False, expected_moe=2.5, groups=groups, tables=(table,), trials=trials)


@pytest.mark.parametrize("trials", [1, 4])
def test_shares_do_not_depend_on_trials(trials: int) -> None:
    found = {(row.table, row.size): row for row in summarize([level_errors(BY_NAME["COUNTY 2"], trials)], 0.5)}
    assert {key: row.share for key, row in found.items()} == {
        (LEFT_OUT, "[0, 1]"): 1,
        ("T01001", "(1, 10]"): 1,
        ("T01001", "(10, 100]"): 1,
    }
    assert found["T01001", "(1, 10]"].count == 2 * trials
    # Errors of 1 and 3: half of them do not pass 1, and half lie within the margin of 2.5.
    assert found["T01001", "(1, 10]"].experimental_moe == 1
    assert found["T01001", "(1, 10]"].coverage == 0.5
    assert found[LEFT_OUT, "[0, 1]"].experimental_moe is None


def test_a_size_of_which_some_are_left_out_has_two_rows() -> None:
    errors = level_errors(BY_NAME["COUNTY 2"], 1)
    more = errors.groups.copy()
    more[1] = 8
    shares = {row.table: row.share for row in summarize([replace(errors, groups=more)], 0.5) if row.size == "(1, 10]"}
    assert shares == {"T01001": 0.25, LEFT_OUT: 0.75}
