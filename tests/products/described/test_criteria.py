"""Acceptance criteria: what a plan promises of them, against enumeration and draws; and what is said wrongly."""

import json
from collections.abc import Sequence
from copy import deepcopy
from fractions import Fraction
from itertools import combinations_with_replacement, product
from math import ceil
from pathlib import Path
from typing import Any

import jsonschema
import numpy as np
import pytest

import yupana
from yupana.errors import ConfigError
from yupana.interface.configured import setup
from yupana.plan.plan import Plan
from yupana.privacy.entropy import SeededEntropy
from yupana.privacy.laws import Law
from yupana.privacy.sampler import sample
from yupana.products.described.criteria import Criterion, predict, rows_of
from yupana.products.described.description import Description
from yupana.products.described.product import TABLES

DOCUMENT: dict[str, Any] = {
    "name": "people",
    "unit": "persons",
    "files": {
        "persons": {
            "columns": {"side": {"codes": ["N", "S", "W"]}, "sex": {"codes": ["f", "m"]}, "age": {"whole": [0, 2]}},
        }
    },
    "areas": {"side": {"column": "persons.side"}, "land": {"code": "L"}},
    "groups": {"f": {"where": {"persons.sex": "f"}}},
    "levels": {"side-by-sex": {"areas": "side", "groups": ["*", "f"]}},
    "tables": {
        "sexes": {
            "counts": "persons",
            "by": ["persons.sex"],
            "margins": {"total": []},
            "budget": {"side": "1/2", "land": 0},
        },
        "ages": {
            "counts": "persons",
            "cells": {"0": {"persons.age": 0}, "1": {"persons.age": 1}, "2": {"persons.age": 2}},
            "sums": {"young": {"0": ["0"], "0 or 1": ["0", "1"], "1 or 2": ["1", "2"]}},
            "budget": {"side-by-sex": 1},
        },
    },
}  # fmt: skip
MEDIAN = {"table": "sexes", "level": "side", "error": "relative", "quantile": 0.5, "most": 0.5, "at_least": 3}


def asked(**criteria: object) -> tuple[Description, Plan]:
    case = setup("tables", DOCUMENT | {"criteria": criteria})
    return case.config, case.plan()


def predicted(**criterion: object) -> tuple[Criterion, Fraction, Law, int]:
    """The criterion, the least that is promised, the law of a cell and the most rows."""
    config, plan = asked(it=criterion)
    (of,) = config.criteria
    found = predict(config, plan, of)
    assert found.holds == (found.promised <= of.most)
    return of, found.promised, plan[measurement_of(config, of)].law, found.rows


def measurement_of(config: Description, of: Criterion) -> str:
    """The one measurement whose cells the rows of a criterion add up."""
    ((name, _),) = rows_of(config, of).parts
    return name


def chance(of: Criterion, law: Law, truths: Sequence[int], most: Fraction) -> float:
    """With which a criterion holds of rows with these true counts, of one cell each: by all noises there can be."""
    reach = 12
    pmf = {noise: law.pmf(noise) for noise in range(-reach, reach + 1)}
    assert sum(pmf.values()) == pytest.approx(1, abs=1e-9)
    # By row how likely each error is, so that noises of either sign are gone through once.
    errors = [
        {Fraction(e, t if of.relative else 1): pmf[e] * (2 if e else 1) for e in range(reach + 1)} for t in truths
    ]
    found, place = 0.0, ceil(of.quantile * len(truths)) - 1
    for some in product(*errors):
        if sorted(some)[place] <= most:
            found += float(np.prod([row[error] for row, error in zip(errors, some, strict=True)]))
    return found


@pytest.mark.parametrize("quantile", ["1", "1/2"])
@pytest.mark.parametrize("wanted", ["0.9", "0.6"])
def test_what_is_promised_holds_for_any_records_and_nothing_less_does(quantile: str, wanted: str) -> None:
    size = 4
    of, promised, law, rows = predicted(
        **MEDIAN | {"quantile": quantile, "chance": wanted, "at_least": size, "rows": {"sex": "f"}}
    )
    assert rows == 3
    worlds = [truths for n in (1, 2, 3) for truths in combinations_with_replacement((size, size + 1, 2 * size), n)]
    c = float(of.chance)
    assert all(chance(of, law, truths, promised) >= c for truths in worlds)
    one_less = promised - Fraction(1, size)
    assert one_less < 0 or any(chance(of, law, truths, one_less) < c for truths in worlds)


def test_all_rows_are_meant_where_there_is_no_size() -> None:
    women = {"table": "sexes", "level": "side", "rows": {"sex": "f"}, "error": "absolute", "quantile": "1/2", "most": 1}
    of, promised, law, rows = predicted(**women)
    assert rows == 3
    assert chance(of, law, (0, 0, 0), promised) >= 0.9 > chance(of, law, (0, 0, 0), promised - 1)
    assert predicted(**women, at_most=9)[1] > promised
    assert predicted(**women, at_most=9, fewest=3)[1] == promised


@pytest.mark.parametrize("privacy_defn", ["zcdp", "puredp"])
@pytest.mark.parametrize(("table", "cells"), [("total", 2), ("sexes", 1)])
def test_draws_agree_with_what_is_promised(privacy_defn: str, table: str, cells: int) -> None:
    document = deepcopy(DOCUMENT) | {"privacy_defn": privacy_defn}
    document["files"]["persons"]["columns"]["side"]["codes"] = [f"{i:03}" for i in range(200)]
    document["tables"]["sexes"]["budget"] = {"side": "1/200" if privacy_defn == "zcdp" else "1/10"}
    document["criteria"] = {
        "it": {"table": table, "level": "side", "error": "absolute", "quantile": "19/20", "most": 9}
    }
    case = setup("tables", document)
    found = predict(case.config, case.plan(), case.config.criteria[0])
    rows, trials = 200 * (2 if cells == 1 else 1), 2_000
    assert found.rows == rows
    law = case.plan()["sexes/side"].law
    noise = np.abs(sample(law, trials * rows * cells, SeededEntropy(8)).reshape(trials, rows, cells).sum(axis=2))
    largest = np.sort(noise, axis=1)[:, ceil(0.95 * rows) - 1]
    # Each a share of 2,000 draws, whose standard deviation is 0.007.
    assert (largest <= found.promised).mean() > 0.9 - 0.03
    assert (largest <= found.promised - 1).mean() < 0.9 + 0.03


def test_sums_that_share_cells_are_not_taken_to_be_independent() -> None:
    told = {"table": "young", "level": "side-by-sex", "error": "absolute", "quantile": 1, "most": 1}
    config, plan = asked(apart=told | {"rows": {"CELL": "0 or 1"}}, sharing=told)
    apart, sharing = (rows_of(config, of) for of in config.criteria)
    assert (apart.number, apart.independent) == (6, True)
    assert (sharing.number, sharing.independent) == (18, False)
    assert predict(config, plan, config.criteria[1]).noise > predict(config, plan, config.criteria[0]).noise


def test_rows_are_found_by_what_they_say() -> None:
    told = {"table": "ages", "level": "side-by-sex", "error": "absolute", "quantile": 1, "most": 1}
    config, _ = asked(it=told | {"rows": {"REGION_ID": ["N", "W"], "ITERATION_CODE": "f", "CELL": ["2"]}})
    rows = rows_of(config, config.criteria[0])
    # Sides by everyone and women: N *, N f, S *, S f, W *, W f.
    assert (rows.groups.tolist(), rows.parts) == ([1, 5], {("ages/side-by-sex", "ages"): ((2,),)})
    assert rows.all_shown


HERDS: dict[str, Any] = {
    "counts": "persons",
    "by": ["persons.age"],
    "margins": {"herds_total": []},
    "budget": {"side-by-sex": 1, "land": 1},
    "detail": {
        "share": "1/4",
        "steps": [["herds_total"], ["herds", "herds_total"]],
        "thresholds": [5],
        "coarsest": ["f"],
        "leave_out": {"land": "0.9"},
    },
}
TOTAL = {"table": "herds_total", "level": "side-by-sex", "error": "absolute", "quantile": "1/2", "most": 3}


def with_detail(**criteria: object) -> tuple[Description, Plan]:
    document = deepcopy(DOCUMENT)
    document["tables"]["herds"] = HERDS
    case = setup("tables", document | {"criteria": criteria})
    return case.config, case.plan()


def test_rows_with_detail_have_the_noise_of_the_step_that_has_most() -> None:
    told = {"f": {"ITERATION_CODE": "f"}, "all": {"ITERATION_CODE": "*"}, "both": {}}
    config, plan = with_detail(
        **{name: TOTAL | {"rows": rows} for name, rows in told.items()},
        cells=TOTAL | {"table": "herds"},
        later=TOTAL | {"table": "herds", "level": "land"},
    )
    women, every, both, cells, later = config.criteria
    assert rows_of(config, women).parts == {("coarsest of herds/side-by-sex", "herds_total"): ((0,),)}
    of_every = {
        ("herds/side-by-sex", "herds_total"): ((0,),),
        ("herds/side-by-sex", "herds"): ((0, 1, 2),),
    }
    assert rows_of(config, every).parts == of_every
    assert rows_of(config, both).parts == of_every | rows_of(config, women).parts
    assert rows_of(config, cells).parts == {("herds/side-by-sex", "herds"): ((0,), (1,), (2,))}
    # Women are never shown by age.
    assert rows_of(config, cells).groups.tolist() == [0, 2, 4]
    noise = {of.name: predict(config, plan, of).noise for of in config.criteria}
    assert noise["f"] < noise["all"]
    assert noise["all"] <= noise["both"]
    assert not any(rows_of(config, of).all_shown for of in config.criteria)
    assert predict(config, plan, later).rows == 3


@pytest.mark.parametrize("total", [0, 4, 5, 9, 200])
def test_what_is_promised_of_rows_with_detail_holds_whatever_is_shown(total: int) -> None:
    """Draws of both stages: of all outcomes, and of those with each number of rows shown."""
    config, plan = with_detail(it=TOTAL | {"rows": {"ITERATION_CODE": "*"}}, cells=TOTAL | {"table": "herds"})
    trials, sides = 20_000, 3
    draw = SeededEntropy(total)
    first = total + sample(plan["totals of herds/side-by-sex"].law, trials * sides, draw).reshape(trials, sides)
    cells = np.abs(sample(plan["herds/side-by-sex"].law, trials * sides * 3, draw).reshape(trials, sides, 3))
    signed = sample(plan["herds/side-by-sex"].law, trials * sides * 3, draw).reshape(trials, sides, 3)
    fine = first >= 5
    of_total = np.abs(np.where(fine, signed.sum(axis=2), signed[:, :, 0]))
    medians = np.sort(of_total, axis=1)[:, 1]
    found = {of.name: predict(config, plan, of) for of in config.criteria}
    assert (medians <= found["it"].promised).mean() > 0.9 - 0.015
    for shown in range(1, sides + 1):
        some = fine.sum(axis=1) == shown
        if some.sum() > 2_000:
            of_cells = np.sort(cells[some][fine[some]].reshape(-1, 3 * shown), axis=1)
            assert (of_cells[:, ceil(3 * shown / 2) - 1] <= found["cells"].promised).mean() > 0.9 - 0.03


def test_what_is_left_out_by_its_own_noise_and_what_is_never_shown_have_no_criteria() -> None:
    for told, text in (
        (TOTAL | {"level": "land"}, "it.level: counts of the first step are left out at land by their own noise"),
        (TOTAL | {"table": "herds", "rows": {"ITERATION_CODE": "f"}}, "it.rows: herds shows none of these groups"),
    ):
        with pytest.raises(ConfigError) as error:
            with_detail(it=told)
        assert text in str(error.value)
        assert len(str(error.value).splitlines()) == 2


def test_a_plan_tells_its_criteria() -> None:
    case = setup("tables", DOCUMENT | {"criteria": {"it": MEDIAN}})
    told = TABLES.promises(case.config, case.plan(), 1e-10)["criteria"]["it"]
    assert told["says"] == (
        "the median relative error of sexes by side where the true count is at least 3 is at most 50%, "
        "with a chance of 90%"
    )
    assert told["predicted"] == {"rows": 6, "noise": 2, "promised": "2/3", "promised_float": 2 / 3, "holds": False}


def test_more_budget_or_larger_counts_promise_more() -> None:
    _, promised, _, _ = predicted(**MEDIAN)
    _, of_larger, _, _ = predicted(**MEDIAN | {"at_least": 300})
    assert of_larger == promised / 100
    generous = deepcopy(DOCUMENT) | {"criteria": {"it": MEDIAN}}
    generous["tables"]["sexes"]["budget"] = {"side": "Infinity"}
    case = setup("tables", generous)
    assert predict(case.config, case.plan(), case.config.criteria[0]).promised == 0


def test_budgets_that_leave_nothing_to_measure_promise_nothing() -> None:
    case = setup("tables", DOCUMENT | {"criteria": {"it": MEDIAN}})
    config = case.config.with_budgets({"sexes/side": Fraction(0)})
    with pytest.raises(ConfigError, match=r"criteria\.it: sexes/side has no budget, so nothing"):
        predict(config, TABLES.plan(config), config.criteria[0])


WRONG: dict[str, tuple[dict[str, Any], list[str]]] = {
    "nothing": ({}, [f"key {key!r} is missing" for key in ("table", "level", "error", "quantile", "most")]),
    "key": (MEDIAN | {"mots": 1}, ["key 'mots' is unknown"]),
    "table": (MEDIAN | {"table": "sexs"}, [".table: 'sexs' is no table that is measured; did you mean sexes?"]),
    "list": (MEDIAN | {"table": ["sexes"]}, [".table: must be a text of one line"]),
    "level": (MEDIAN | {"level": "county"}, [".level: 'county' is no level with a budget above 0; sexes has side"]),
    "unmeasured": (MEDIAN | {"level": "land"}, [".level: 'land' is no level with a budget above 0; sexes has side"]),
    "column": (MEDIAN | {"rows": {"age": "1"}}, [".rows: 'age' is none of the columns sex, REGION_ID, ITERATION_CODE"]),
    "label": (MEDIAN | {"rows": {"sex": ["m", "x"]}}, [".rows.sex: 'x' is said by no row"]),
    "no-label": (MEDIAN | {"rows": {"sex": []}}, [".rows.sex: must be a list of texts or numbers"]),
    "no-rows": (MEDIAN | {"rows": 3}, [".rows: must be a table"]),
    "quantile": (MEDIAN | {"quantile": 0, "most": -1}, [".quantile: must be a number above 0", ".most: must be"]),
    "large": (MEDIAN | {"quantile": 2, "most": 2, "chance": 1}, [".quantile: must be at most 1", ".most", ".chance"]),
    "unbounded": ({k: v for k, v in MEDIAN.items() if k != "at_least"}, [".at_least: is missing"]),
    "zero": (MEDIAN | {"at_least": 0}, [".at_least: must be a whole number from 1"]),
    "sizes": (MEDIAN | {"at_most": 2}, [".at_most: must be no smaller than at_least"]),
    "fewest": (MEDIAN | {"fewest": 7}, [".fewest: there are 6 such rows"]),
    "every": (
        {"table": "sexes", "level": "side", "error": "absolute", "quantile": 1, "most": 1, "fewest": 2},
        [".fewest: goes with at_least or at_most"],
    ),
    "error": (MEDIAN | {"error": "root"}, [".error: must be 'relative' or 'absolute'"]),
}  # fmt: skip


def test_every_fault_is_named_at_once() -> None:
    with pytest.raises(ConfigError) as error:
        asked(**{name: told for name, (told, _) in WRONG.items()}, right=MEDIAN, **{"a|b": MEDIAN})
    lines = str(error.value).splitlines()[1:]
    for name, (_, due) in WRONG.items():
        found = [line for line in lines if line.strip().startswith(f"criteria.{name}")]
        assert len(found) == len(due), found
        assert all(text in line for text, line in zip(due, found, strict=True)), found
    assert not [line for line in lines if "criteria.right" in line]
    assert [line for line in lines if "criteria.a|b: holds |" in line]


def test_faults_stand_on_their_lines(tmp_path: Path) -> None:
    text = (Path(__file__).parents[3] / "examples" / "oregon.toml").read_text(encoding="utf-8")
    assert "[criteria." in text
    (tmp_path / "oregon.toml").write_text(text + '\n[criteria.odd]\ntable = "types"\nmost = 0\n', encoding="utf-8")
    line = text.count("\n") + 4
    with pytest.raises(ConfigError, match=rf"line {line}: criteria.odd.most: must be a number above 0"):
        yupana.plan("tables", tmp_path / "oregon.toml")


def test_criteria_come_back_from_their_document_and_have_a_schema() -> None:
    case = setup(
        "tables", DOCUMENT | {"criteria": {"it": MEDIAN | {"rows": {"sex": "f"}, "at_most": 9, "chance": "1/3"}}}
    )
    told = TABLES.document(case.config)
    jsonschema.validate(json.loads(json.dumps(told)), TABLES.schema())
    assert setup("tables", told).config == case.config
