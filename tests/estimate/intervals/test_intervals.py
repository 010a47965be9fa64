"""Intervals for derived cells: against brute-force covariances, and every refusal, through the command line."""

import json
import math
import shutil
from collections.abc import Callable, Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from dense_release import dense, read
from hypothesis import given, settings
from hypothesis import strategies as st
from opened_once import opened_once
from release_maker import FAMILIES, World, fill, geography, leaves, measured
from topdown_worlds import configuration, make_world, write_configuration, write_world

from yupana.cli.interval import _in_words
from yupana.cli.main import main
from yupana.errors import ConfigError
from yupana.estimate.intervals import query_intervals
from yupana.estimate.intervals.intervals import fieller
from yupana.estimate.intervals.query import Linear, Ratio, Selection, evaluate, parse
from yupana.release.folder import write_manifest
from yupana.release.tables import ReleaseTable, checksum, write_table

# --- the language ---------------------------------------------------------------------------------------------------

VALUES = {name: Fraction(n) for name, n in {"A": 7, "B": -3, "C": 11}.items()}


def select(selection: Selection) -> Linear:
    return Linear(Fraction(0), {selection.table: Fraction(1)})


def value(form: Linear | Ratio) -> Fraction:
    if isinstance(form, Ratio):
        return value(form.above) / value(form.below)
    return form.constant + sum((w * VALUES[str(cell)] for cell, w in form.weights.items()), Fraction(0))


Written = tuple[str, Callable[[], Fraction]]

LEAVES = st.one_of(
    st.integers(0, 20).map(lambda n: (str(n), lambda: Fraction(n))),
    st.sampled_from(sorted(VALUES)).map(lambda name: (f"{name}[x=1]", lambda: VALUES[name])),
)


def joined(parts: tuple[Written, str, Written]) -> Written:
    (one, first), operator, (other, second) = parts
    meaning: dict[str, Callable[[], Fraction]] = {
        "+": lambda: first() + second(),
        "-": lambda: first() - second(),
        "*": lambda: first() * second(),
        "/": lambda: first() / second(),
        "%": lambda: 100 * first() / second(),
    }
    return f"({one}) {operator}( {other})", meaning[operator]


EXPRESSIONS = st.recursive(
    LEAVES,
    lambda inner: st.one_of(
        st.tuples(inner, st.sampled_from("+-*/%"), inner).map(joined),
        inner.map(lambda one: (f"-({one[0]})", lambda: -one[1]())),
    ),
    max_leaves=8,
)


@given(EXPRESSIONS)
@settings(max_examples=100, deadline=None)
@pytest.mark.slow
def test_an_expression_is_worth_what_arithmetic_says(written: Written) -> None:
    text, meaning = written
    try:
        form = evaluate(parse(text), select)
    except ConfigError:
        return
    below = value(form.below) if isinstance(form, Ratio) else Fraction(1)
    if below:
        assert value(form) == meaning()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("A[x=1] - B[x=1] - C[x=1]", -1),
        ("A[x=1] - B[x=1] * 2", 13),
        ("2 * A[x=1] / 4 + 1.5", 5),
        ("A[x=1] / C[x=1] * 22", 14),
        ("A[x=1] % C[x=1] - B[x=1] % C[x=1]", Fraction(1000, 11)),
        ("1 - A[x=1]/C[x=1]", Fraction(4, 11)),
        ("--A[x=1]", 7),
        ("12/2/3*A[]", 14),
        ('sum(A[x=1]) + sum ( B[x^=1|2, y="a b"] )', 4),
    ],
)
def test_ranks_of_operators(text: str, expected: Fraction | int) -> None:
    assert value(evaluate(parse(text), select)) == expected


@given(st.text(alphabet='AB[]()=^|,"+-*/% 0129.sum', max_size=40))
@settings(max_examples=150, deadline=None)
@pytest.mark.slow
def test_any_text_is_read_or_refused(text: str) -> None:
    try:
        evaluate(parse(text), select)
    except ConfigError as error:
        told = str(error)
    else:
        return
    assert "query" in told


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "character 1"),
        ("A B", "an operator"),
        ("A[x=1", "expected ,"),
        ("A[x=]", "a value"),
        ("A[x=1, x=2]", "each column once"),
        ("A[x=1] B[x=1]", "an operator"),
        ("(A[x=1]", "expected )"),
        ("(" * 60 + "A[]" + ")" * 60, "parentheses"),
        ("A[x=1] * B[x=1]", "multiplies"),
        ("A[x=1] / B[x=1] + A[x=1]", "no exact interval"),
        ("A[x=1] / B[x=1] + A[x=1] / C[x=1]", "different denominators"),
        ("A[x=1] / (B[x=1] / C[x=1])", "divides ratios"),
        ("A[x=1] / (B[x=1] - B[x=1])", "divides by 0"),
    ],
)
def test_faulty_queries_are_named(text: str, words: str) -> None:
    with pytest.raises(ConfigError) as caught:
        evaluate(parse(text), select)
    assert words in str(caught.value)


# --- Fieller --------------------------------------------------------------------------------------------------------

NUMBERS = st.floats(-50, 50).map(lambda x: round(x, 3))


@given(NUMBERS, NUMBERS, st.floats(0.01, 9), st.floats(0.01, 9), st.floats(-0.95, 0.95), NUMBERS)
@settings(max_examples=150, deadline=None)
@pytest.mark.slow
def test_the_set_is_what_its_inequality_says(
    n: float, d: float, vn: float, vd: float, correlation: float, ratio: float
) -> None:
    c, z = correlation * math.sqrt(vn * vd), 1.645
    pieces = fieller(n, d, vn, vd, c, z)
    assert all(low <= high for low, high in pieces)
    left, right = (n - ratio * d) ** 2, z * z * (vn - 2 * ratio * c + ratio * ratio * vd)
    if abs(left - right) > 1e-9 * (left + right):
        assert any(low <= ratio <= high for low, high in pieces) == (left < right)
    if abs(d * d - z * z * vd) > 1e-9:
        bounded = len(pieces) == 1 and all(map(math.isfinite, pieces[0]))
        assert bounded == (d * d > z * z * vd)


def test_a_denominator_without_error_gives_the_normal_interval() -> None:
    ((low, high),) = fieller(10.0, 4.0, 9.0, 0.0, 0.0, 2.0)
    assert (low, high) == pytest.approx((1.0, 4.0))


# --- SafeTab --------------------------------------------------------------------------------------------------------


def ask(release: Path, capsys: pytest.CaptureFixture[str], *queries: str, more: tuple[str, ...] = ()) -> dict[str, Any]:
    arguments = ["interval", str(release), *(a for q in queries for a in ("--query", q)), *more, "--json"]
    status = main(arguments)
    said = capsys.readouterr()
    assert status == 0, said.err
    found: dict[str, Any] = json.loads(said.out)
    return found


def refused(release: Path, capsys: pytest.CaptureFixture[str], query: str, *more: str) -> str:
    assert main(["interval", str(release), "--query", query, *more]) == 2
    said = capsys.readouterr()
    assert said.out == ""
    return said.err


CELL_COLUMNS = {"T02": ("AGESTART", "AGEEND", "SEX"), "T03": ("T3_DATA_CELL",), "T04": ("T4_DATA_CELL",), "T01": ()}


def safetab(folder: Path, seed: int, fmt: Any = "csv") -> tuple[World, Path]:  # noqa: ANN401
    rng = np.random.default_rng(seed)
    world = geography(rng)
    fill(world, rng, lowest=-5, codes=["1001", "1002"], finer=0.7)
    for rows in world.tables.values():
        rows |= {key: (n, v or 3.0) for key, (n, v) in rows.items()}
    release = world.write(folder / "release", fmt)
    manifest = json.loads((release / "manifest.json").read_text())
    write_manifest(release, {**manifest, "product": "safetab-p", "plan": {"confidence": 0.95}})
    return world, release


@pytest.mark.sampled(1)
@pytest.mark.parametrize("seed", range(4))
@pytest.mark.slow
def test_safetab_rows_against_the_algebra_of_covariances(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], seed: int
) -> None:
    world, release = safetab(tmp_path, seed, "parquet" if seed % 2 else "csv")
    # By brute force: a row is the vector of the measured cells of its group that it counts.
    rows = {(name, key): found for name, table in world.tables.items() for key, found in table.items()}
    variance: dict[Any, float] = {}
    parts: dict[Any, list[Any]] = {}
    for name, key in rows:
        family = next(family for family in FAMILIES if name in family)
        group = key[:3]
        finest = [t for t in family if any(k[:3] == group for k in world.tables[t])][-1]
        inside = [c for c in measured(finest) if leaves(family, c) <= leaves(family, key[3])]
        parts[name, key] = [(finest, group, cell) for cell in inside]
        variance |= {(finest, group, c): world.tables[finest][(*group, c)][1] for c in inside}
    rng = np.random.default_rng(seed)
    names = list(rows)
    queries, expected = [], []
    for _ in range(10):
        near = names[int(rng.integers(len(names)))]
        same = [name for name in names if name[1][:3] == near[1][:3]]
        picked = [near, *(same[int(i)] for i in rng.integers(len(same), size=2)), names[int(rng.integers(len(names)))]]
        weights = [int(w) for w in rng.choice([-2, -1, 1, 3], size=4)]
        text = "0"
        total: dict[Any, float] = {}
        for (name, (kind, region, code, cell)), weight in zip(picked, weights, strict=True):
            by = zip(
                ("REGION_TYPE", "REGION_ID", "ITERATION_CODE", *CELL_COLUMNS[name[:3]]),
                (kind, region, code, *cell),
                strict=True,
            )
            text += f" + {weight} * {name}[{', '.join(f'{c}={v}' for c, v in by)}]".replace("+ -", "- ")
            for part in parts[name, (kind, region, code, cell)]:
                total[part] = total.get(part, 0.0) + weight
        queries.append(text)
        counts = sum(w * rows[row][0] for row, w in zip(picked, weights, strict=True))
        expected.append((counts, sum(w * w * variance[part] for part, w in total.items())))
    for found, (count, squares) in zip(ask(release, capsys, *queries)["intervals"], expected, strict=True):
        assert found["estimate"] == count
        assert found["variance"] == pytest.approx(squares)
        assert found["upper"] == pytest.approx(count + 1.96 * math.sqrt(squares))


def test_a_part_over_its_whole(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Fieller with the covariance of the part's own cells: those of the rest are independent of it."""
    world, release = safetab(tmp_path, 1)
    key = next(k for k in world.tables["T04002"] if k[3] == ("0",))
    where = f"REGION_TYPE={key[0]}, REGION_ID={key[1]}, ITERATION_CODE={key[2]}"
    query = f"T04002[{where}, T4_DATA_CELL=1] % T04002[{where}, T4_DATA_CELL=0]"
    (found,) = ask(release, capsys, query)["intervals"]
    n, v = world.tables["T04002"][(*key[:3], ("1",))]
    d, _ = world.tables["T04002"][key]
    pieces = fieller(100.0 * n, d, 1e4 * v, 3 * v, 100 * v, 1.96)
    assert found["estimate"] == pytest.approx(100 * n / d)
    ends = [end for piece in found["set"] for end in piece if end is not None]
    assert ends == pytest.approx([end for piece in pieces for end in piece if math.isfinite(end)])
    assert found["variance"] is None


@pytest.mark.slow
def test_refusals_of_tables(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    _, release = safetab(tmp_path, 3)
    assert "no table T99" in refused(release, capsys, "T99[A=1]")
    assert "no column SEX to choose by" in refused(release, capsys, "T01001[SEX=1]")
    assert "no column COUNT" in refused(release, capsys, "T01001[COUNT=1]")
    assert "ITERATION_CODE holds 1001, 1002" in refused(release, capsys, "T01001[ITERATION_CODE=9999]")
    assert "they differ in" in refused(release, capsys, "T01001[ITERATION_CODE=1001]")
    assert "has ITERATION_CODE '7'" in refused(release, capsys, "sum(T01001[ITERATION_CODE=1001|7])")
    assert "is for releases of TopDown" in refused(
        release, capsys, "sum(T01001[])", "--noisy-measurements", str(tmp_path)
    )
    assert "cancel" in refused(release, capsys, "sum(T01001[]) - sum(T01001[])")
    assert "does not exist" in refused(tmp_path / "nowhere", capsys, "A[]")
    (release / "T01001.csv").write_text((release / "T01001.csv").read_text() + "\n")
    assert "changed after it was written" in refused(release, capsys, "sum(T01001[])")
    manifest = json.loads((release / "manifest.json").read_text())
    write_manifest(release, {**manifest, "product": "spine"})
    assert "'spine'" in refused(release, capsys, "A[]")


# --- PHSafe and single tables ---------------------------------------------------------------------------------------


def publish(folder: Path, tables: dict[str, list[tuple[Any, ...]]], **manifest: Any) -> Path:  # noqa: ANN401
    folder.mkdir()
    listed = {}
    for name, rows in tables.items():
        header = ("REGION_ID", "REGION_TYPE", "ITERATION_CODE", f"{name.upper()}_DATA_CELL", "COUNT", "VARIANCE")
        columns = {c: [row[i] for row in rows] for i, c in enumerate(header)}
        path = write_table(folder, ReleaseTable(name, columns), "csv")
        listed[path.name] = {"table": name, "sha256": checksum(path), "rows": len(rows), "columns": list(columns)}
    write_manifest(
        folder,
        {"yupana": "0", "product": "phsafe", "plan": {"confidence": 0.9}, "tables": listed, **manifest},
    )
    return folder


def phsafe(folder: Path, variance: Any = 4.0, count: Any = 30, **manifest: Any) -> Path:  # noqa: ANN401
    key = ("1", "USA", "*")
    tables = {
        "PH7": [(*key, 2, count, variance), (*key, 3, 20, 4.0), (*key, 4, 50, 4.0)],
        "PH8_num": [(*key, 2, 50, 8.0), (*key, 3, 50, 4.0)],
        "PH8_denom": [(*key, 2, 25, 1.0), (*key, 3, 40, 1.0)],
    }
    return publish(folder / "release", tables, **manifest)


def test_derived_tables_of_phsafe_are_not_independent_of_their_source(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    release = phsafe(tmp_path)
    found = ask(
        release,
        capsys,
        "PH8_num[PH8_NUM_DATA_CELL=2]",
        "PH8_num[PH8_NUM_DATA_CELL=2] - PH7[PH7_DATA_CELL=3]",
        "PH8_num[PH8_NUM_DATA_CELL=2] + PH7[PH7_DATA_CELL=3]",
        "PH8_num[PH8_NUM_DATA_CELL=2] / PH8_denom[PH8_DENOM_DATA_CELL=2]",
        "PH7[PH7_DATA_CELL=4] / PH8_num[PH8_NUM_DATA_CELL=3]",
    )
    assert found["confidence"] == 0.9
    first, less, more, average, same = found["intervals"]
    assert (first["variance"], less["variance"], more["variance"]) == (8.0, 4.0, 4.0 + 16.0)
    assert (first["lower"], first["upper"]) == pytest.approx((50 - 1.645 * 8**0.5, 50 + 1.645 * 8**0.5))
    ((low, high),) = fieller(50.0, 25.0, 8.0, 1.0, 0.0, 1.645)
    assert (average["lower"], average["upper"]) == pytest.approx((low, high))
    assert (same["estimate"], same["lower"], same["upper"]) == (1.0, 1.0, 1.0)


def test_unbounded_sets_are_said_to_be(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    release = phsafe(tmp_path)
    query = "PH7[PH7_DATA_CELL=4] / (PH8_denom[PH8_DENOM_DATA_CELL=2] - 24)"
    (found,) = ask(release, capsys, query)["intervals"]
    assert (found["bounded"], found["lower"], found["upper"], len(found["set"])) == (False, None, None, 2)
    assert found["set"][0][0] is None
    assert main(["interval", str(release), "--query", query]) == 0
    assert "unbounded" in capsys.readouterr().out
    (found,) = ask(release, capsys, query.replace("24", "25"))["intervals"]
    assert found["estimate"] is None


def test_a_query_is_told_in_words() -> None:
    fields = [{"name": "AREA", "categories": [{"value": "06", "label": "California"}]}, {"name": "AGE"}]
    book = {"resources": [{"path": "PH.csv", "title": "People", "schema": {"fields": fields}}]}
    asked = parse("PH[AREA=06|07, AGE=2] / sum(PH[AREA^=0]) - none[AREA=06]")
    assert list(_in_words(asked, book)) == ["People; California or 07", "People"]


@pytest.mark.parametrize(
    ("variance", "count", "words"),
    [(0.0, 1, "VARIANCE is 0"), (-1.0, 1, "a positive one"), ("X", "X", "suppressed"), (1.0, "1.5", "whole number")],
)
def test_numbers_that_are_none(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    variance: float | str,
    count: int | str,
    words: str,
) -> None:
    release = phsafe(tmp_path, variance, count)
    assert words in refused(release, capsys, "PH8_num[PH8_NUM_DATA_CELL=2]")


def test_combined_areas_answer_for_single_rows_only(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    release = phsafe(tmp_path, postprocessing=[{"rule": "coterminous"}])
    (found,) = ask(release, capsys, "2 * PH8_num[PH8_NUM_DATA_CELL=2]")["intervals"]
    assert found["variance"] == 32.0
    assert "combined coterminous areas" in refused(release, capsys, "sum(PH7[])")


# --- TopDown --------------------------------------------------------------------------------------------------------

SHAPE = (3, 2)


@pytest.fixture(scope="module", params=["conventional", pytest.param("optimized", marks=pytest.mark.thorough)])
def runs(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    folder = tmp_path_factory.mktemp("topdown")
    write_world(make_world(4, SHAPE, states=1), folder / "data")
    config = write_configuration(configuration(SHAPE, rho="1/2"), folder / "config.json")
    arguments = [str(config), str(folder / "data"), str(folder / "out"), "--seed", "5", "--spine", request.param]
    more = ["--estimator", "full-information", "--noisy-measurements", str(folder / "noisy")]
    assert main(["topdown", "run", *arguments, *more]) == 0
    return folder / "out", folder / "noisy"


@pytest.fixture(scope="module", autouse=True)
def _measurements_are_opened_once() -> Iterator[None]:
    """What is refused of a question is refused with the same measurements open."""
    with opened_once(query_intervals):
        yield


@pytest.mark.slow
def test_single_answers_are_the_intervals_of_the_release(
    runs: tuple[Path, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    out, noisy = runs
    capsys.readouterr()
    queries, expected = [], []
    for path in sorted(out.glob("intervals/*/*.csv")):
        for row in read(path)[:6]:
            where = ", ".join(f"{c}={v}" for c, v in row.items() if c == "geounit" or c.startswith("a"))
            queries.append(f"{path.parent.name}/{path.stem}[{where}]")
            expected.append(row)
    for more in ((), ("--noisy-measurements", str(noisy))):
        for found, row in zip(ask(out, capsys, *queries, more=more)["intervals"], expected, strict=True):
            assert found["estimate"] == pytest.approx(float(row["estimate"]), abs=1e-4)
            assert found["variance"] == pytest.approx(float(row["variance"]), abs=1e-9)
            if found["variance"]:
                assert max(math.ceil(found["lower"] - 1e-3), 0) <= int(row["lower"])
                assert max(math.floor(found["upper"] + 1e-3), 0) >= int(row["upper"])


@pytest.mark.slow
def test_sums_and_ratios_on_the_tree_against_one_dense_system(
    runs: tuple[Path, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    out, noisy = runs
    capsys.readouterr()
    inside, estimate, covariance, names = dense(out, noisy, SHAPE)
    units = [at for at in inside if at[0] != "US"]
    rng = np.random.default_rng(1)
    queries, rows = [], []

    def term(level: str, unit: str) -> tuple[str, np.ndarray]:
        kind = int(rng.integers(4))
        first, second = (int(rng.integers(size)) for size in SHAPE)
        cells = np.zeros(SHAPE)
        if kind == 0:
            cells += 1
            return f"{level}/total[geounit={unit}]", np.kron(inside[level, unit], cells.reshape(-1))
        if kind == 1:
            cells[first] = 1
            return f"{level}/a0[geounit={unit}, a0={first}]", np.kron(inside[level, unit], cells.reshape(-1))
        if kind == 2:
            cells[:, second] = 1
            return f"{level}/a1[geounit={unit}, a1={second}]", np.kron(inside[level, unit], cells.reshape(-1))
        cells[first, second] = 1
        return f"{level}/a1.a0[geounit={unit}, a0={first}, a1={second}]", np.kron(
            inside[level, unit], cells.reshape(-1)
        )

    for _ in range(25):
        text, row = "0", np.zeros(len(estimate))
        for _ in range(int(rng.integers(1, 6))):
            written, vector = term(*units[int(rng.integers(len(units)))])
            weight = int(rng.integers(1, 4))
            text, row = f"{text} - {weight} * {written}", row - weight * vector
        queries.append(text)
        rows.append(row)
    county = np.array([name.startswith("01001") for name in names], dtype=float)
    queries.append("sum(Block/a0[geounit^=01001, a0=1|2])")
    rows.append(np.kron(county, [0, 0, 1, 1, 1, 1]))
    more = ("--noisy-measurements", str(noisy))
    for found, row in zip(ask(out, capsys, *queries, more=more)["intervals"], rows, strict=True):
        assert found["estimate"] == pytest.approx(row @ estimate, abs=1e-6)
        assert found["variance"] == pytest.approx(row @ covariance @ row, rel=1e-7, abs=1e-7)
    ratios = [f"({queries[i]}) / ({queries[i + 1]})" for i in range(0, 24, 2)]
    for i, found in zip(range(0, 24, 2), ask(out, capsys, *ratios, more=more)["intervals"], strict=True):
        both = np.array(rows[i : i + 2])
        (n, d), ((vn, c), (_, vd)) = both @ estimate, both @ covariance @ both.T
        pieces = fieller(n, d, vn, vd, c, 1.6448536269514722)
        if vn > 1e-6 and vd > 1e-6:
            ends = [end for piece in found["set"] for end in piece if end is not None]
            assert ends == pytest.approx([e for piece in pieces for e in piece if math.isfinite(e)], rel=1e-4)


@pytest.mark.slow
def test_what_is_known_has_no_variance(runs: tuple[Path, Path], capsys: pytest.CaptureFixture[str]) -> None:
    out, noisy = runs
    capsys.readouterr()
    more = ("--noisy-measurements", str(noisy))
    total = sum(int(row["count"]) for row in read(out / "counts/US.csv"))
    found = ask(out, capsys, "sum(Block/total[])", "sum(Tract/a0[a0=1]) - US/a0[geounit=US, a0=1]", more=more)
    assert [(one["estimate"], one["variance"]) for one in found["intervals"]] == [(total, 0.0), (0.0, 0.0)]
    assert "known to be 0" in refused(out, capsys, "1 / (sum(Tract/a0[]) - US/total[])", *more)


@pytest.mark.slow
def test_refusals_of_topdown(runs: tuple[Path, Path], capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    out, noisy = runs
    capsys.readouterr()
    more = ("--noisy-measurements", str(noisy))
    assert "no geolevel Town" in refused(out, capsys, "Town/total[]", *more)
    assert "attributes are a0, a1" in refused(out, capsys, "County/race[]", *more)
    assert "no column race" in refused(out, capsys, "County/total[race=1]", *more)
    assert "'zz' is none of" in refused(out, capsys, "County/total[geounit=zz]", *more)
    assert "they differ in geounit" in refused(out, capsys, "County/total[]", *more)
    assert "needs the noisy measurements" in refused(out, capsys, "sum(County/total[])")
    assert "no intervals of County/a1" in refused(out, capsys, "County/a1[a1=1]")
    unit = read(out / "intervals/Tract/a0.csv")[0]["geounit"]
    pair = f"Tract/a0[geounit={unit}, a0=1] / Tract/total[geounit={unit}]"
    assert "depend on each other" in refused(out, capsys, pair)
    assert "name the release" in refused(noisy, capsys, "County/total[]")
    assert "does not hold noisy measurements" in refused(out, capsys, "A/total[]", "--noisy-measurements", str(out))
    other = tmp_path / "other"
    other.mkdir()
    manifest = json.loads((noisy / "manifest.json").read_text())
    write_manifest(other, {**manifest, "created": "then"})
    assert "another run" in refused(out, capsys, "A/total[]", "--noisy-measurements", str(other))
    write_manifest(other, manifest)
    assert "is missing" in refused(out, capsys, "US/total[]", "--noisy-measurements", str(other))
    shutil.copytree(noisy, other, dirs_exist_ok=True)
    without_noise = other / "US" / "total.csv"
    without_noise.write_text("geounit|value|variance\nUS|480|0.0\n")
    assert "was changed" in refused(out, capsys, "US/total[]", "--noisy-measurements", str(other))
    manifest["tables"]["US/total.csv"]["sha256"] = checksum(without_noise)
    write_manifest(other, manifest)
    assert "there was no noise" in refused(out, capsys, "US/total[]", "--noisy-measurements", str(other))
    without_noise.write_text("geounit|value|variance\nUS|480|1.0\nUS|481|1.0\n")
    manifest["tables"]["US/total.csv"] |= {"sha256": checksum(without_noise), "rows": 2}
    write_manifest(other, manifest)
    assert "each answer of a geounit once" in refused(out, capsys, "US/total[]", "--noisy-measurements", str(other))
    manifest = json.loads((out / "manifest.json").read_text())
    manifest["tables"] = {name: entry for name, entry in manifest["tables"].items() if "intervals/" not in name}
    write_manifest(other, manifest)
    assert "without known variances" in refused(other, capsys, "US/total[]")
