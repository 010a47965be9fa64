"""Tables whose detail a noisy total decides: what is shown, what it costs, and that nothing else decides."""

import copy
import csv
import itertools
import json
import random
from collections import Counter
from collections.abc import Iterator, Mapping
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import yupana
from yupana.confidential.accuracy import WatchedLedger
from yupana.confidential.described.tabulate import measure_tables
from yupana.errors import ConfigError
from yupana.plan.ledger import Ledger
from yupana.privacy.entropy import SystemEntropy
from yupana.products.described.description import Description
from yupana.products.described.plan import families_of, groups_of
from yupana.products.described.product import TABLES, described
from yupana.products.tables import Choice
from yupana.release.tables import checksum

Person = tuple[str, str, int, str]


def document(**detail: object) -> dict[str, Any]:
    """People by sex and age, in regions and by overlapping kinds."""
    return {
        "name": "people",
        "unit": "people",
        "files": {
            "people": {
                "record": "person",
                "columns": {
                    "region": {"codes": ["a", "b", "c"]},
                    "sex": {"codes": ["1", "2"]},
                    "age": {"whole": [0, 7]},
                    "kind": {"codes": ["x", "y", "z"]},
                },
            }
        },
        "recodes": {
            "halves": {"column": "people.age", "classes": {"0-3": "0-3", "4-7": "4-7"}},
            "fine": {"column": "people.age", "classes": {"0-1": "0-1", "2-3": "2-3", "4-7": "4-7"}},
        },
        "areas": {"all": {"code": "all"}, "region": {"column": "people.region"}},
        "groups": {
            "x": {"where": {"people.kind": "x"}},
            "xy": {"where": {"people.kind": ["x", "y"]}},
            "z": {"where": {"people.kind": "z"}},
        },
        "levels": {"kinds": {"areas": "region", "groups": ["x", "xy", "z"]}},
        "tables": {
            "ages": {
                "counts": "people",
                "by": ["people.sex", "fine"],
                "margins": {"total": [], "by_half": ["sex", "halves"]},
                "budget": {"all": "1/10", "kinds": "1/2"},
                "detail": {
                    "share": "1/5",
                    "steps": [["total"], ["by_half", "total"], ["ages", "total"]],
                    "thresholds": {"all": [20, 40], "kinds": [10, 20]},
                    **detail,
                },
            }
        },
    }


def people(rng: random.Random, number: int) -> list[Person]:
    return [
        (rng.choice("aaab"), rng.choice("12"), rng.randrange(8), rng.choices("xyz", (5, 4, 1))[0])
        for _ in range(number)
    ]


def save(folder: Path, persons: list[Person]) -> Path:
    folder.mkdir()
    (folder / "SYNTHETIC").touch()
    rows = ["|".join(map(str, person)) for person in persons]
    (folder / "people.csv").write_text("\n".join(["region|sex|age|kind", *rows]) + "\n", encoding="utf-8")
    return folder


KINDS: Mapping[str, str] = {"x": "x", "xy": "xy", "z": "z"}
FINE = [("0-1", range(2)), ("2-3", range(2, 4)), ("4-7", range(4, 8))]
HALVES = [("0-3", range(4)), ("4-7", range(4, 8))]


def groups_at(level: str, persons: list[Person]) -> Iterator[tuple[tuple[str, str], list[Person]]]:
    """Every area and group of a level, with the persons in it."""
    if level == "all":
        yield ("all", "*"), persons
        return
    for area, (code, kinds) in itertools.product("abc", KINDS.items()):
        yield (area, code), [p for p in persons if p[0] == area and p[3] in kinds]


def cells_of(step: int, persons: list[Person]) -> dict[tuple[str, ...], int]:
    """What a step measures of a group, counted in plain Python."""
    if step == 0:
        return {("total",): len(persons)}
    classes = HALVES if step == 1 else FINE
    return {(sex, name): sum(p[1] == sex and p[2] in ages for p in persons) for sex in "12" for name, ages in classes}


def read(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file, delimiter="|"))


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.slow
def test_without_noise_each_group_has_the_tables_of_its_size(tmp_path: Path, seed: int) -> None:
    rng = random.Random(seed)  # noqa: S311 (no noise)
    persons = people(rng, 60)
    yupana.exact("tables", document(coarsest=["z"]), save(tmp_path / "data", persons), tmp_path / "out")
    names = ("total", "by_half", "ages")
    due: dict[str, Counter[tuple[str, ...]]] = {name: Counter() for name in names}
    for level, thresholds in (("all", (20, 40)), ("kinds", (10, 20))):
        for (area, code), inside in groups_at(level, persons):
            step = 0 if code == "z" else sum(len(inside) >= t for t in thresholds)
            for table in {names[step], "total"}:
                for cell, count in cells_of(names.index(table), inside).items():
                    due[table][area, code, *cell, str(count)] += 1
    for name in names:
        columns = {"total": ["CELL"], "by_half": ["sex", "halves"], "ages": ["sex", "fine"]}[name]
        rows = read(tmp_path / "out" / f"{name}.csv")
        found = Counter(
            (row["REGION_ID"], row["ITERATION_CODE"], *(row[c] for c in columns), row["COUNT"]) for row in rows
        )
        assert found == due[name], name


@pytest.mark.slow
def test_a_released_group_stands_in_one_step_with_the_noise_of_the_plan(tmp_path: Path) -> None:
    rng = random.Random(1)  # noqa: S311 (no noise)
    data = save(tmp_path / "data", people(rng, 80))
    for out in ("one", "two"):
        yupana.run("tables", document(coarsest=["z"]), data, tmp_path / out, seed=3)
    assert (tmp_path / "one" / "total.csv").read_bytes() == (tmp_path / "two" / "total.csv").read_bytes()
    assert yupana.check(tmp_path / "one")
    plan = TABLES.plan(described(document(coarsest=["z"])))
    variances = {
        ("*", 1): plan["ages/all"].variance,
        ("z", 1): plan["coarsest of ages/kinds"].variance,
        ("x", 1): plan["ages/kinds"].variance,
        ("xy", 1): plan["ages/kinds"].variance,
    }
    sizes = {"total": 1, "by_half": 4, "ages": 6}
    own = Counter()
    step_of = {}
    for name in ("by_half", "ages"):
        for row in read(tmp_path / "one" / f"{name}.csv"):
            own[row["REGION_ID"], row["ITERATION_CODE"]] += 1
            step_of[row["REGION_ID"], row["ITERATION_CODE"]] = sizes[name]
    assert all(number in (4, 6) for number in own.values())
    totals = {(r["REGION_ID"], r["ITERATION_CODE"]): r for r in read(tmp_path / "one" / "total.csv")}
    assert len(totals) == 10
    for key, row in totals.items():
        assert float(row["VARIANCE"]) == pytest.approx(float(variances[key[1], 1] * step_of.get(key, 1)))
    assert set(step_of.values()) == {4, 6}


@pytest.mark.thorough
def test_a_changed_release_with_detail_is_found_out(tmp_path: Path) -> None:
    rng = random.Random(1)  # noqa: S311 (no noise)
    yupana.run("tables", document(), save(tmp_path / "data", people(rng, 80)), tmp_path / "out", seed=3)
    path = tmp_path / "out" / "total.csv"
    text = path.read_text(encoding="utf-8").splitlines()
    manifest = tmp_path / "out" / "manifest.json"
    kept = manifest.read_text(encoding="utf-8")

    def faults(lines: list[str]) -> str:
        path.write_text("\n".join(lines) + "\n", encoding="utf-8")
        changed = json.loads(kept)
        changed["tables"]["total.csv"] |= {"sha256": checksum(path), "rows": len(lines) - 1}
        manifest.write_text(json.dumps(changed), encoding="utf-8")
        return " ".join(TABLES.verify(tmp_path / "out", changed).wrong)

    assert faults(text) == ""
    small = next(line for line in text if line.startswith("c|"))
    assert "every group of the plan is there" in faults([line for line in text if line != small])
    assert "no group is there but those of the plan" in faults([*text, small.replace("c|", "q|", 1)])


def test_what_the_thresholds_see_is_the_noisy_total_alone() -> None:
    """The same noisy totals, whatever the counts: the same steps for every group."""
    config = described(document(coarsest=["z"], leave_out={"kinds": "0.9"}))
    plan, rng = TABLES.plan(config), np.random.default_rng(1)
    totals = {"totals of ages/all": np.array([30]), "totals of ages/kinds": np.array([5, 12, 25, 9, 10, 19, 20, 3])[:6]}
    shapes = []
    for high in (1, 1000):
        exact = {"ages/all": rng.integers(0, high, (1, 6)), "ages/kinds": rng.integers(0, high, (9, 6))}
        ledger = WatchedLedger(plan, {(name, 0): noisy for name, noisy in totals.items()})
        found = measure_tables(exact, config, ledger, SystemEntropy(), {}, leave_out=False)
        shapes.append([(g.choice, g.area.places.tolist(), g.iteration.places.tolist()) for g in found])
    assert shapes[0] == shapes[1]
    assert [choice for choice, *_ in shapes[0]] == [0, 1, 2, 0, 1, 2, 0]


@pytest.mark.slow
def test_totals_are_left_out_as_often_as_said() -> None:
    """Empty groups: of 40,000 as many as are said are left out, within six standard deviations (2e-9)."""
    told = document(leave_out={"region": "0.9"}, thresholds=[10**6, 10**7])
    told["areas"]["region"] = {"column": "people.region"}
    told["files"]["people"]["columns"]["region"] = {"codes": [f"{i:05}" for i in range(40_000)]}
    told["tables"]["ages"]["budget"] = {"region": "1/100"}
    config = described(told)
    plan = TABLES.plan(config)
    exact = {"ages/region": np.zeros((40_000, 6), dtype=np.int64)}
    groups = list(measure_tables(exact, config, Ledger(plan), SystemEntropy(), {}))
    law = plan["ages/region"].law
    chance = law.cdf(law.quantile(0.9))
    left = 40_000 - sum(len(g.counts) for g in groups)
    assert abs(left - 40_000 * chance) <= 6 * (40_000 * chance * (1 - chance)) ** 0.5
    assert all((g.counts > law.quantile(0.9)).all() for g in groups if g.choice == 0)


def vectors(
    config: Description, persons: list[Person], level_name: str, steps: Mapping[tuple[str, str], int]
) -> tuple[dict[Any, int], dict[Any, int]]:
    """The two vectors of theorem 4: counts by step, and with totals in place of the counts that are chosen."""
    (table,) = config.tables
    level = next(level for level in table.levels if level.name == level_name)
    coarsest = groups_of(table, level, coarsest=True)
    chosen, totals = {}, {}
    for key, inside in groups_at(level_name, persons):
        always = key[1] in coarsest
        chosen |= {(*key, *cell): n for cell, n in cells_of(0 if always else steps[key], inside).items()}
        totals |= {(*key, *cell): n for cell, n in cells_of(0, inside).items()}
    return chosen, totals


@pytest.mark.parametrize("mechanism", ["zcdp", "puredp"])
@pytest.mark.parametrize("coarsest", [[], ["z"], ["x", "z"]])
def test_no_neighbour_is_farther_than_derived_whatever_the_steps(mechanism: str, coarsest: list[str]) -> None:
    config = described({**document(coarsest=coarsest), "privacy_defn": mechanism})
    plan, rng = TABLES.plan(config), random.Random(7)  # noqa: S311 (no noise)
    every = list(itertools.product("ab", "12", (0, 2, 5), "xyz"))
    power = 2 if mechanism == "zcdp" else 1
    attained = Fraction(0)
    for _ in range(150):
        rest = people(rng, rng.randrange(6))
        one, other = rng.choice(every), rng.choice(every)
        steps = {key: rng.randrange(3) for level in ("all", "kinds") for key, _ in groups_at(level, [])}
        for level in ("all", "kinds"):
            proven = next(m.proven for m in plan.measurements if m.level == level)
            before = vectors(config, [*rest, one], level, steps)
            for after, most in ((rest, proven.unbounded), ([*rest, other], proven.bounded)):
                for a, b in zip(before, vectors(config, after, level, steps), strict=True):
                    moved = Fraction(sum(abs(a[key] - b[key]) ** power for key in a))
                    assert moved <= most
                    attained = max(attained, moved / most)
    assert attained == 1


def test_a_level_with_detail_costs_its_budget() -> None:
    """The parts of a level compose to it, and the totals of a plan to the sum of the budgets."""
    for coarsest in ([], ["z"], ["x", "xy", "z"]):
        plan = TABLES.plan(described(document(coarsest=coarsest)))
        assert plan.loss() == Fraction(1, 10) + Fraction(1, 2)
        kinds = [m for m in plan.measurements if m.level == "kinds"]
        assert plan.loss_of(kinds) == Fraction(1, 2)
        assert len(kinds) == {0: 2, 1: 3, 3: 1}[len(coarsest)]


@pytest.mark.slow
def test_the_certificate_of_adaptive_tables_states_no_curve_of_one_shift(tmp_path: Path) -> None:
    rng = random.Random(1)  # noqa: S311 (no noise)
    data = save(tmp_path / "data", people(rng, 30))
    adaptive = document()
    adaptive["tables"]["ages"]["budget"] = {"all": "1/1000"}
    adaptive["tables"]["ages"]["detail"]["thresholds"] = [20, 40]
    plain = copy.deepcopy(adaptive)
    del plain["tables"]["ages"]["detail"]
    kinds = {}
    for name, told in (("adaptive", adaptive), ("plain", plain)):
        yupana.run("tables", told, data, tmp_path / name, seed=1)
        kinds[name] = yupana.certificate(tmp_path / name)["attacker"]["kind"]
    assert kinds == {"adaptive": "zcdp", "plain": "gaussian"}


def test_coarse_cells_are_sums_of_fine_ones() -> None:
    (family,) = families_of(described(document()).tables[0])
    rng = np.random.default_rng(1)
    fine = rng.integers(0, 9, family.choices[-1].measured)

    def rows(choice: Choice, table: str) -> dict[tuple[Any, ...], int]:
        measured = np.bincount(choice.finest, weights=fine).astype(int)
        return {cell.labels: int(measured[list(cell.parts)].sum()) for cell in choice[table].cells}

    for choice in family.choices:
        assert rows(choice, "total") == rows(family.choices[-1], "total")
    assert rows(family.choices[1], "by_half") == {
        (sex, half): sum(int(fine[3 * s + f]) for f in ages)
        for s, sex in enumerate("12")
        for half, ages in (("0-3", (0, 1)), ("4-7", (2,)))
    }


FAULTS: list[tuple[dict[str, Any], str]] = [
    ({"share": 1}, "detail.share: must be a number above 0 and below 1"),
    ({"share": 0}, "detail.share: must be a number above 0"),
    ({"steps": [["total"]]}, "detail.steps: must be a list of at least two lists"),
    ({"steps": [["total"], ["agez"]]}, "'agez' is none of ages, total, by_half"),
    ({"steps": [["total"], ["ages"]], "thresholds": [1]}, "detail.steps: by_half is shown in no step"),
    ({"steps": [["total"], ["ages"], ["by_half"]]}, "the last must show every cell of the table by itself"),
    ({"steps": [["by_half", "ages"], ["total"], ["ages"]]}, "of ages is no sum of measured cells"),
    ({"thresholds": [5]}, "must be 2 ascending whole numbers"),
    ({"thresholds": [5, 5]}, "must be 2 ascending whole numbers"),
    ({"thresholds": [5, -6]}, "must be a list of ascending whole numbers"),
    ({"thresholds": {"all": [1, 2]}}, "detail.thresholds: no list for level kinds"),
    ({"thresholds": {"all": [1, 2], "kinds": [1, 2], "regio": [1, 2]}}, "'regio' is no level of the table"),
    ({"coarsest": ["q"]}, "detail.coarsest: must be a list of groups"),
    ({"leave_out": {"regio": "0.9"}}, "detail.leave_out: 'regio' is no level of the table"),
    ({"leave_out": {"kinds": 2}}, "detail.leave_out.kinds: must be a number above 0 and below 1"),
    (
        {"steps": [["by_half", "total"], ["ages"]], "thresholds": [4], "leave_out": {"all": 0.5}},
        "first step of one cell",
    ),
]


@pytest.mark.parametrize(("detail", "said"), FAULTS, ids=[said for _, said in FAULTS])
def test_a_fault_of_detail_is_named(detail: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigError) as caught:
        yupana.plan("tables", document(**detail))
    assert said in str(caught.value)


def test_coarser_classes_are_made_of_finer_ones() -> None:
    told = document()
    told["recodes"]["halves"]["classes"] = {"0-2": "0-2", "3-7": "3-7"}
    with pytest.raises(ConfigError, match="'2-3' is a class of fine that lies in no one class"):
        yupana.plan("tables", told)
    told = document()
    told["recodes"]["fine"]["classes"].pop("2-3")
    told["recodes"]["fine"]["incomplete"] = True
    with pytest.raises(ConfigError, match="'0-3' is a class with values that are in none of fine"):
        yupana.plan("tables", told)


def test_rows_of_sums_may_be_conditions() -> None:
    told = document()
    table = told["tables"]["ages"]
    del table["by"], table["margins"], table["detail"]
    table["cells"] = {
        f"{sex} {name}": {"people.sex": sex, "people.age": f"{ages[0]}-{ages[-1]}"}
        for sex in "12"
        for name, ages in FINE
    }
    table["headings"] = {"by_half": ["AGE", "SEX"]}
    table["sums"] = {"by_half": {"*|1": {"people.sex": "1"}, "0-3|1": {"people.sex": "1", "people.age": "0-3"}}}
    (described_table,) = described(told).tables
    (sums,) = described_table.sums
    assert (sums.columns, sums.rows) == (("AGE", "SEX"), ((("*", "1"), (0, 1, 2)), (("0-3", "1"), (0, 1))))
    table["sums"]["by_half"]["0-2|1"] = {"people.sex": "1", "people.age": "0-2"}
    with pytest.raises(ConfigError, match="must hold some cells of the table, each whole or not at all"):
        yupana.plan("tables", told)
    table["sums"] = {"by_half": {"1": {"people.sex": "1"}}}
    with pytest.raises(ConfigError, match="must have 2 labels"):
        yupana.plan("tables", told)


def test_rows_of_sums_may_be_conditions_on_cells_that_columns_make() -> None:
    told = document()
    table = told["tables"]["ages"]
    del table["margins"], table["detail"]
    table["headings"] = {"by_sex": ["AGE", "SEX"], "all": []}
    table["sums"] = {"by_sex": {"*|2": {"people.sex": "2"}}, "all": {"everyone": {}}}
    told["noise_distribution"] = False
    (described_table,) = described(told).tables
    by_sex, everyone = described_table.sums
    half = len(FINE)
    assert (by_sex.columns, by_sex.rows) == (("AGE", "SEX"), ((("*", "2"), tuple(range(half, 2 * half))),))
    assert (everyone.columns, everyone.rows) == ((), (((), tuple(range(2 * half))),))
    (family,) = families_of(described_table)
    assert family.tables["all"] == ("REGION_ID", "REGION_TYPE", "ITERATION_CODE", "COUNT", "VARIANCE", "MOE")
    table["headings"]["ages"] = "AGE"
    with pytest.raises(ConfigError, match="'ages' is no sum of the table, whose own columns are those of by"):
        yupana.plan("tables", told)


def test_exact_configuration_keeps_detail() -> None:
    config = described(document())
    assert config.without_noise().tables[0].detail == config.tables[0].detail


@pytest.mark.thorough
def test_groups_of_levels_that_leave_none_out_are_all_there(tmp_path: Path) -> None:
    """Rows that are cut out of a level that leaves no group out are missed, though another level leaves some out."""
    rng = random.Random(1)  # noqa: S311 (no noise)
    told, out = document(leave_out={"kinds": "0.9"}), tmp_path / "out"
    yupana.run("tables", told, save(tmp_path / "data", people(rng, 80)), out, seed=3)
    assert yupana.check(out)
    manifest = json.loads((out / "manifest.json").read_text(encoding="utf-8"))
    for path in out.glob("*.csv"):
        lines = [line for line in path.read_text(encoding="utf-8").splitlines() if not line.startswith("all|")]
        path.write_text("\n".join(lines) + "\n", encoding="utf-8")
        manifest["tables"][path.name] |= {"sha256": checksum(path), "rows": len(lines) - 1}
    (out / "manifest.json").write_text(json.dumps(manifest), encoding="utf-8")
    assert "every group of the plan is there: 1 times not" in " ".join(TABLES.verify(out, manifest).wrong)


@pytest.mark.parametrize(
    ("privacy_defn", "neighbours", "fmt"),
    [
        ("puredp", "add-remove", "parquet"),
        pytest.param("zcdp", "replace", "csv", marks=pytest.mark.thorough),
        pytest.param("puredp", "replace", "csv", marks=pytest.mark.thorough),
    ],
)
@pytest.mark.slow
def test_detail_goes_with_mechanisms_neighbours_forms_limits_and_what_is_done_to_counts(
    tmp_path: Path, privacy_defn: str, neighbours: str, fmt: str
) -> None:
    """Ids as units, at most two records each, empty regions; what is left out, raised to 0 and suppressed."""
    rng = random.Random(2)  # noqa: S311 (no noise)
    told = document(coarsest=["z"], leave_out={"kinds": "0.9"})
    told |= {"privacy_defn": privacy_defn, "neighbours": neighbours, "unit": {"file": "people", "column": "id"}}
    told["tables"]["ages"]["limit"] = {"per": "id", "most": 2}
    told["postprocess"] = {"non_negative": True, "suppress_below": 3}
    data = save(tmp_path / "data", people(rng, 100))
    path = data / "people.csv"
    head, *lines = path.read_text(encoding="utf-8").splitlines()
    rows = [f"{head}|id", *(f"{line}|{place // 3}" for place, line in enumerate(lines))]
    path.write_text("\n".join(rows) + "\n", encoding="utf-8")
    out = tmp_path / "out"
    release = yupana.run("tables", told, data, out, seed=1, format=fmt)
    assert yupana.check(out)
    assert yupana.run("tables", out / "manifest.json", data, tmp_path / "again", seed=1, format=fmt)
    for name in release:
        file = f"{name}.{fmt}"
        assert (out / file).read_bytes() == (tmp_path / "again" / file).read_bytes()
    kind = yupana.certificate(out)["attacker"]["kind"]
    assert kind == ("zcdp" if privacy_defn == "zcdp" else "pure")
    plan = TABLES.plan(described(told))
    # All that is published at a level has the noise of its budget, under the neighbours that it is said for.
    assert plan.loss() == Fraction(6, 10)
    assert all(m.calibration == getattr(m.proven, plan.neighbours.value) for m in plan.measurements)


@pytest.mark.parametrize("detail", [{}, {"coarsest": ["z"]}])
@pytest.mark.slow
def test_records_of_nobody_are_published_too(tmp_path: Path, detail: dict[str, Any]) -> None:
    """Without any record every area and group has its coarsest step, and nothing else."""
    yupana.exact("tables", document(**detail), save(tmp_path / "data", []), tmp_path / "out")
    totals = read(tmp_path / "out" / "total.csv")
    assert [row["COUNT"] for row in totals] == ["0"] * 10
    assert not read(tmp_path / "out" / "ages.csv")
    assert yupana.check(tmp_path / "out")
