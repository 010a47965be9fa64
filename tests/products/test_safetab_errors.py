"""Errors of SafeTab by size of group: shares do not depend on how often it was tried."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from yupana.products.described.criteria import MeasurementErrors
from yupana.products.safetab.errors import LEFT_OUT, SIZES, LevelErrors, summarize
from yupana.products.safetab.regions import LEVELS, Level
from yupana.products.safetab.specification import FAMILIES

BY_NAME = {level.name: level for level in LEVELS}


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
