"""Counts of areas: against one dense system, against hand-made tables, and every refusal."""

import csv
import io
import json
import math
import shutil
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from statistics import NormalDist
from typing import Any

import numpy as np
import pytest
from area_releases import add_intervals, ends_of, make_release
from dense_release import dense, read
from topdown_worlds import World

import yupana
from yupana.cli.main import main
from yupana.estimate.intervals.intervals import fieller

SHAPE = (3, 2)
Z = NormalDist().inv_cdf(0.95)


class Made:
    """A release with what is known of it from its files alone."""

    def __init__(self, folder: Path, *options: str) -> None:
        self.world = make_release(folder, SHAPE, *options)
        self.out, self.noisy, self.folder = folder / "out", folder / "noisy", folder
        _, self.estimate, self.covariance, self.blocks = dense(self.out, self.noisy, SHAPE)
        self.counts = np.zeros((len(self.blocks), 6))
        for row in read(self.out / "counts/Block.csv"):
            self.counts[self.blocks.index(row["geounit"]), 2 * int(row["a0"]) + int(row["a1"])] = int(row["count"])
        self.wards = folder / "wards.csv"
        rows = (f"{block},{'ABC'[i % 3] if i % 4 else ''}" for i, block in enumerate(sorted(self.blocks)))
        self.wards.write_text("\n".join(["block,ward", *rows]) + "\n")

    def inside(self, area: str) -> np.ndarray:
        kind, _, code = area.partition("=")
        rows = {row["block"]: row for row in read(self.out / "areas/blocks.csv")}
        wards = {row["block"]: row["ward"] for row in csv.DictReader(self.wards.read_text().splitlines())}
        tests: dict[str, Callable[[str], bool]] = {
            "us": lambda _: True,
            "ward": lambda block: wards[block] == code,
            "place": lambda block: rows[block]["place"] == code,
            "aiannh": lambda block: rows[block]["aiannh"] == code,
            "state_aiannh": lambda block: block[:2] == code[:2] and rows[block]["aiannh"] == code[2:],
        }
        test = tests.get(kind, lambda block: block.startswith(code))
        return np.array([test(block) for block in self.blocks], dtype=float)


@pytest.fixture(scope="module", params=["conventional", pytest.param("optimized", marks=pytest.mark.thorough)])
def made(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Made:
    return Made(tmp_path_factory.mktemp("areas"), "--spine", request.param)


@pytest.fixture(scope="module")
def one(tmp_path_factory: pytest.TempPathFactory) -> Made:
    return Made(tmp_path_factory.mktemp("one"))


@pytest.fixture(scope="module")
def world(one: Made) -> World:
    return one.world


AREAS = ["us=US", "county=01001", "place=0100001", "place=0200002", "aiannh=0100", "state_aiannh=020100", "ward=B"]
COUNTS = {
    "total": [1, 1, 1, 1, 1, 1],
    "a1[a1=1]": [0, 1, 0, 1, 0, 1],
    "sum(a0[a0=1|2])": [0, 0, 1, 1, 1, 1],
    "detailed[a0=2, a1=0]": [0, 0, 0, 0, 1, 0],
}
FORMS = {"total - 2 * a1[a1=1] + 7": ([1, -1, 1, -1, 1, -1], 7)}
RATIOS = {
    "a1[a1=1] % total": ([0, 100, 0, 100, 0, 100], [1] * 6),
    "a0[a0=0] / a1[a1=0]": ([1, 1, 0, 0, 0, 0], [1, 0] * 3),
}


@pytest.mark.slow
def test_counts_and_intervals_are_those_of_one_dense_system(made: Made) -> None:
    questions = [(area, query) for area in AREAS for query in (*COUNTS, *FORMS, *RATIOS)]
    found = yupana.intervals(made.out, questions, areas=made.wards, noisy=made.noisy)
    assert [(one.area.text, one.query) for one in found] == questions
    for one in found:
        inside = made.inside(one.area.text)

        def moments(*cells: list[int], inside: np.ndarray = inside) -> tuple[np.ndarray, np.ndarray]:
            rows = np.array([np.kron(inside, weights) for weights in cells])
            return rows @ made.estimate, rows @ made.covariance @ rows.T

        def published(cells: list[int], inside: np.ndarray = inside) -> float:
            return float(inside @ made.counts @ cells)

        if one.query in RATIOS:
            above, below = RATIOS[one.query]
            value, covariance = moments(above, below)
            expected = fieller(*value, covariance[0, 0], covariance[1, 1], covariance[0, 1], Z)
            assert len(one.interval.pieces) == len(expected)
            np.testing.assert_allclose(one.interval.pieces, expected, rtol=1e-4, atol=1e-4)
            if published(below):
                assert one.published == pytest.approx(published(above) / published(below))
            else:
                assert one.published is None
            continue
        weights, constant = (COUNTS[one.query], 0) if one.query in COUNTS else FORMS[one.query]
        (value,), ((variance,),) = moments(weights)
        assert one.published == published(weights) + constant
        assert one.interval.estimate == pytest.approx(value + constant, abs=1e-5)
        assert one.interval.variance == pytest.approx(variance, rel=1e-6, abs=1e-5)
        reach = Z * math.sqrt(max(variance, 0.0))
        lower, upper = value + constant - reach, value + constant + reach
        if one.query in COUNTS and variance > 1e-3:
            lower, upper = max(0.0, math.ceil(lower)), max(0.0, math.floor(upper))
        assert (one.lower, one.upper) == pytest.approx((lower, upper), abs=1e-4)
        half = (one.upper - one.lower) / 2
        assert one.moe == pytest.approx(math.ceil(half) if isinstance(one.moe, int) else half)
        assert one.holds_published == (one.lower <= one.published <= one.upper)


@pytest.mark.thorough
def test_a_batch_says_what_single_questions_say(one: Made, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    questions = [("place=Oak Park", "total"), ("county=01001", "a1[a1=1] % total"), ("block=" + one.blocks[0], "total")]
    path, out = tmp_path / "questions.csv", tmp_path / "answers.csv"
    with path.open("w") as file:
        csv.writer(file).writerows([["id", "query", "area"], *([i, q, a] for i, (a, q) in enumerate(questions))])
    noisy = ["--noisy-measurements", str(one.noisy)]
    capsys.readouterr()
    assert main(["interval", str(one.out), "--queries", str(path), *noisy]) == 0
    printed = capsys.readouterr().out
    assert main(["interval", str(one.out), "--queries", str(path), "--out", str(out), *noisy]) == 0
    assert "3 answers" in capsys.readouterr().out
    assert out.read_text() == printed
    rows = list(csv.DictReader(io.StringIO(printed), delimiter="|"))
    assert [row["id"] for row in rows] == ["0", "1", "2"]
    for row, (area, query) in zip(rows, questions, strict=True):
        (alone,) = yupana.interval(one.out, query, area=area, noisy=one.noisy)
        assert (row["kind"], row["code"], row["name"]) == (alone.area.kind, alone.area.code, alone.area.name)
        assert float(row["published"]) == alone.published
        assert float(row["lower"]) == pytest.approx(alone.lower)
        assert float(row["moe"]) == pytest.approx(alone.moe)
        assert float(row["confidence"]) == 0.9
    # It may be replaced, as it is one of its kind; anything else may not.
    assert main(["interval", str(one.out), "--queries", str(path), "--out", str(out), *noisy]) == 0
    assert main(["interval", str(one.out), "--queries", str(path), "--out", str(path), *noisy]) == 2
    assert yupana.intervals(one.out, path, noisy=one.noisy).as_csv() == printed
    table = yupana.intervals(one.out, path, noisy=one.noisy).table()
    assert table["code"] == [row["code"] for row in rows]
    assert main(["interval", str(one.out), "--area", "place=Oak Park", "--query", "total", "--json", *noisy]) == 0
    capsys.readouterr()


@pytest.mark.slow
def test_an_area_goes_by_its_code_or_name(one: Made) -> None:
    listed = yupana.areas(one.out)
    for text, code in (
        ("place=0100002", "0100002"),
        ("place=100002", "0100002"),
        ("place=Oak Park village", "0100002"),
        ("place=OAK PARK VILLAGE", "0100002"),
        ("place= oak  park ", "0100002"),
        ("PLACE=Kansas City", "0200002"),
        ("160=Kansas City", "0200002"),
        ("county=01001", "01001"),
        ("county=1001", "01001"),
        ("county=Adams County", "01001"),
        ("county=ADAMS COUNTY", "02001"),
        ("aiannh=100", "0100"),
        ("aiannh=Two Rivers", "0100"),
        ("state=1", "01"),
        ("state aiannh=10100", "010100"),
        ("us=US", "US"),
        ("tract=1.01", "01001000001"),
    ):
        assert listed.find(text).code == code, text
    assert listed.find("place=Oak Park") == yupana.NamedArea("place", "0100002", "Oak Park village")
    for text, words in (
        (
            "place=Springfield",
            "2 areas are 'place=Springfield': 0100001 (Springfield city), 0200001 (Springfield city)",
        ),
        ("place=2", "2 areas are 'place=2': 0100002 (Oak Park village), 0200002 (Kansas City city)"),
        ("county=adams", "2 areas are 'county=adams'"),
        ("state_aiannh=100", "2 areas are 'state_aiannh=100': 010100, 020100"),
        ("place=Oak Prak", "no place is 'Oak Prak'"),
        ("place=Oak Prak", "did you mean Oak Park?"),
        ("place=99999", "no place is '99999'"),
        ("plaice=1", "did you mean place"),
        ("vtd=1", "does not tell which voting_district"),
        ("place", "names no area"),
        ("place=", "names no area"),
        ("=x", "names no area"),
        ("place=" + 600 * "x", "an area of 606 characters"),
    ):
        with pytest.raises(yupana.ConfigError) as error:
            listed.find(text)
        assert words in str(error.value), text


@pytest.mark.slow
def test_an_area_in_two_states_is_counted_whole_and_its_parts_are_told(one: Made) -> None:
    (whole,) = found = yupana.interval(one.out, "total", area="aiannh=Two Rivers", noisy=one.noisy)
    parts = yupana.interval(one.out, "total", area=["state_aiannh=010100", "state_aiannh=020100"], noisy=one.noisy)
    assert whole.published == sum(part.published or 0 for part in parts)
    assert any("lies in 2 states" in note and "state_aiannh=010100" in note for note in found.notes)
    assert not any("lies in" in note for note in parts.notes)


@pytest.mark.slow
def test_tables_with_intervals_suffice(one: Made, tmp_path: Path) -> None:
    release = tmp_path / "release"
    shutil.copytree(one.out, release)
    add_intervals(release)
    for row in read(one.out / "tabulation/place.csv")[:5]:
        query = f"detailed[a0={row['a0']}, a1={row['a1']}]"
        (found,) = told = yupana.interval(release, query, area=f"place={row['geounit']}")
        assert found.published == int(row["count"])
        assert (found.lower, found.upper, found.moe) == ends_of(int(row["count"]))
        assert told.confidence == Fraction(9, 10)
        assert "Monte Carlo of 25 replicates" in found.method
        # Written in another way it is the same cell.
        same = f"a0*a1[a0={row['a0']}, a1={row['a1']}] + total - total"
        assert yupana.interval(release, same, area=f"place={row['geounit']}")[0].upper == found.upper
    for query in ("total", "a1[a1=0]", "T0010001"):
        (found,) = yupana.interval(release, query, area="place=Oak Park")
        assert (found.lower, found.upper, found.moe) == ends_of(found.published)
    there = {(row["geounit"], row["a0"], row["a1"]) for row in read(one.out / "tabulation/block.csv")}
    zero = next(block for block in one.blocks if (block, "0", "0") not in there)
    for area, query, more, words in (
        (
            "place=Oak Park",
            "total + a0[a0=0]",
            {},
            "several, whose errors depend on each other; give the noisy measurements",
        ),
        ("place=Oak Park", "detailed[a0=0, a1=0] % total", {}, "several, whose errors"),
        ("place=Oak Park", "detailed[a0=0, a1=0]", {"confidence": "0.95"}, "OUT --confidence 95% makes others"),
        (f"block={zero}", "detailed[a0=0, a1=0]", {}, "leave out counts of 0"),
        ("ward=A", "detailed[a0=0, a1=0]", {"areas": one.wards}, "does not tabulate ward"),
    ):
        with pytest.raises(yupana.ConfigError) as error:
            yupana.interval(release, query, area=area, **more)
        assert words in str(error.value)
        assert "published" in str(error.value)
    with pytest.raises(yupana.ConfigError, match="yupana topdown intervals"):
        yupana.interval(one.out, "total", area="place=Oak Park")
    broken = json.loads((release / "manifest.json").read_text())
    broken["parameters"]["intervals"]["confidence"] = "7"
    (release / "manifest.json").write_text(json.dumps(broken))
    with pytest.raises(yupana.OutputError, match="confidence"):
        yupana.interval(release, "total", area="place=Oak Park")


@pytest.mark.slow
def test_the_tables_of_a_release_say_what_its_measurements_say(tmp_path: Path) -> None:
    make_release(tmp_path, SHAPE, intervals="least-squares")
    out, noisy, compared = tmp_path / "out", tmp_path / "noisy", 0
    rows = read(out / "tabulation/county.csv")
    asked = [(f"county={row['geounit']}", f"detailed[a0={row['a0']}, a1={row['a1']}]") for row in rows]
    # One more is no count of the tables.
    by_noise = yupana.intervals(out, [(area, f"{query} + 1") for area, query in asked], noisy=noisy)
    for row, table, noise in zip(rows, yupana.intervals(out, asked), by_noise, strict=True):
        assert table.method == "least squares, in tabulation/county"
        assert (table.lower, table.upper, table.moe) == tuple(int(row[end]) for end in ("LOWER", "UPPER", "MOE"))
        assert noise.lower is not None
        assert noise.upper is not None
        if noise.upper - 1 > 0:
            assert table.lower == max(0, math.ceil(noise.lower - 1))
            assert table.upper == math.floor(noise.upper - 1)
            compared += 1
    assert compared > 3
    (wider,) = yupana.intervals(out, asked[-1:], noisy=noisy, confidence="0.99")
    assert wider.method == "covariance of least squares on the tree"
    assert (wider.upper or 0) > int(rows[-1]["UPPER"])


@pytest.mark.slow
def test_variables_of_tables_are_read_by_name(tmp_path: Path) -> None:
    make_release(tmp_path, (2,), attributes="h1")
    release = tmp_path / "out"
    add_intervals(release)
    rows = {(row["SUMLEV"], row["GEOCODE"]): row for row in read(release / "tables/H1.csv")}
    listed = yupana.areas(release)
    block = listed.table("block")["code"][0]
    for area, at in (
        ("place=Oak Park", ("160", "0100002")),
        ("county=Adams County", ("050", "01001")),
        (f"block={block}", ("750", block[:11] + block[12:])),
    ):
        found = yupana.interval(release, "H1", "total", "h1[h1=1]", area=area)
        variables = ["H0010001", "H0010002", "H0010003"]
        assert [one.query for one in found] == [*variables, "total", "h1[h1=1]"]
        expected = [int(rows[at][name]) for name in variables]
        assert [one.published for one in found] == [*expected, expected[0], expected[1]]
        assert [(one.lower, one.upper, one.moe) for one in found.intervals[:3]] == [
            ends_of(count) for count in expected
        ]
        assert found[3].upper == found[0].upper
        assert listed.rows("tables/H1", area)["H0010001"] == [expected[0]]
    assert listed.rows("tabulation/place", "place=Oak Park")["geounit"][0] == "0100002"
    with pytest.raises(yupana.ConfigError, match="no table of county"):
        listed.rows("tabulation/place", "county=01001")
    assert "H1" in listed.queries
    assert listed.kinds["state"] == 2


BAD_FILES: dict[str, tuple[str, str]] = {
    "no rows": ("area,query\n", "no rows"),
    "empty": ("", "line 1: it needs one column area"),
    "no column": ("area,q\nplace=1,total\n", "line 1: it needs one column query"),
    "a comma too many": ("area,query\nplace=Oak Park,total\nplace=Oak Park,a0*a1[a0=0, a1=0]\n", "line 3: 3 fields"),
    "an empty field": ("area,query\nplace=Oak Park,total\n,total\n", "line 3, column area: empty"),
    "an unknown area": ("area,query\nplace=Oak Park,total\nplace=X,total\n", "line 3: no place is 'X'"),
    "an unknown query": ("area,query\nplace=Oak Park,sex\n", "line 2: query 'sex': sex is nothing that is counted"),
    "a quote that does not end": ('area,query\nplace=Oak Park,"total\n', "not readable as a table of text"),
    "two columns": ("area,area,query\na,b,c\n", "it needs one column area"),
}


@pytest.mark.parametrize("what", BAD_FILES)
def test_a_faulty_file_of_questions_is_refused(what: str, one: Made, tmp_path: Path) -> None:
    text, words = BAD_FILES[what]
    path = tmp_path / "questions.csv"
    path.write_text(text)
    with pytest.raises(yupana.YupanaError) as error:
        yupana.intervals(one.out, path, noisy=one.noisy)
    assert words in str(error.value)


@pytest.mark.slow
def test_files_of_areas_of_another_vintage_are_counted_and_named(one: Made, tmp_path: Path) -> None:
    lines = one.wards.read_text().splitlines()
    path = tmp_path / "wards.csv"
    path.write_text("\n".join(lines[:-2]) + "\n")
    with pytest.raises(yupana.InputError, match=f"2 of {len(one.blocks)} blocks of the release are missing"):
        yupana.areas(one.out, files=path)
    path.write_text("\n".join([*lines, "0900100010011001,A"]) + "\n")
    found = yupana.interval(one.out, "total", area="ward=A", areas=path, noisy=one.noisy)
    assert any("1 of its blocks are not in the release" in note and "0900100010011001" in note for note in found.notes)
    exact = yupana.interval(one.out, "total", area="ward=a", areas=one.wards, noisy=one.noisy)
    assert exact[0].as_json() == found[0].as_json()


REFUSED: dict[str, tuple[list[str], str]] = {
    "an area alone": (["--area", "place=Oak Park"], "--area needs a query"),
    "nothing": ([], "needs --query Q, --queries FILE or --list"),
    "a list and a query": (["--list", "--query", "total"], "leave out what asks"),
    "files for nothing": (["--areas", "x", "--query", "total"], "--areas is for"),
    "out for cells": (["--out", "x", "--query", "total"], "--out takes"),
    "a batch and an area": (["--queries", "x", "--area", "place=1"], "--queries asks what its file holds"),
    "an unknown kind": (["--list", "town"], "no kind of areas 'town'"),
    "a plain query": (
        ["--area", "place=Oak Park", "--query", "County/total[geounit=01001]"],
        "nothing that is counted",
    ),
    "no cell": (["--area", "place=Oak Park", "--query", "total - total"], "no cell is left"),
    "no file": (["--queries", "nowhere.csv"], "nowhere.csv cannot be read"),
    "out and json": (["--area", "place=1", "--query", "total", "--out", "x", "--json"], "choose one"),
}


@pytest.mark.parametrize("what", REFUSED)
def test_what_cannot_be_asked_is_refused(what: str, one: Made, capsys: pytest.CaptureFixture[str]) -> None:
    arguments, words = REFUSED[what]
    capsys.readouterr()
    assert main(["interval", str(one.out), *arguments]) == 2
    said = capsys.readouterr()
    assert words in said.err
    assert said.out == ""


@pytest.mark.slow
def test_what_can_be_asked_is_listed(one: Made, capsys: pytest.CaptureFixture[str]) -> None:
    def said(*arguments: str) -> str:
        capsys.readouterr()
        assert main(["interval", str(one.out), *arguments]) == 0
        return capsys.readouterr().out

    assert "place=0100002  Oak Park village\n" in said("--list", "place")
    everything = said("--list", "--areas", str(one.wards))
    assert "ward" in everything
    assert "a1[a1=...]: 0, 1" in everything
    told: Any = json.loads(said("--list", "--json"))
    assert told["areas"]["state"] == 2
    assert json.loads(said("--list", "ward", "--areas", str(one.wards), "--json"))[0] == {
        "kind": "ward",
        "code": "A",
        "name": "",
    }
    assert yupana.areas(one.out).table("place")["name"][1] == "Oak Park village"


def test_other_releases_have_no_areas(tmp_path: Path, one: Made) -> None:
    with pytest.raises(yupana.OutputError, match="name the release"):
        yupana.areas(one.noisy)
    with pytest.raises(yupana.ConfigError, match="pairs"):
        yupana.intervals(one.out, ["total"])  # type: ignore[list-item]
    with pytest.raises(yupana.ConfigError, match="there are none"):
        yupana.intervals(one.out, [])
    with pytest.raises(yupana.OutputError):
        yupana.areas(tmp_path)
