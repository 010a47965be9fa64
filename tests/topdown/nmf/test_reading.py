"""Noisy measurement files made by hand, not by our writer: what is read of them, and which faults are refused."""

import copy
import csv
import json
import os
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from measurement_files import COUNTS, HAND_MADE, Parts, hand_made, write_parts

from yupana.cli.main import main
from yupana.errors import InputError
from yupana.products.topdown.product import TOPDOWN
from yupana.progress import Stopwatch, silent
from yupana.topdown.configuration import Configuration
from yupana.topdown.nmf.layout import find_files
from yupana.topdown.nmf.reading import FileMeasurements, read_measurements


def estimate(place: Path, *options: str) -> int:
    """Estimate OUT from the files in NMF."""
    config = place / "config.json"
    config.write_text(json.dumps(HAND_MADE))
    return main(["topdown", "estimate", str(place / "nmf"), str(place / "out"), "--config", str(config), *options])


def counts(place: Path) -> dict[str, list[int]]:
    """The counts of blocks of OUT, by the 16 digits."""
    found: dict[str, list[int]] = {code[-16:]: [0] * 8 for code in COUNTS}
    schema: Any = HAND_MADE["schema"]
    with (place / "out" / "counts" / "Block.csv").open() as file:
        for block, one, other, count in list(csv.reader(file, delimiter="|"))[1:]:
            found[block][schema["hhgq"].index(one) * 2 + schema["votingage"].index(other)] = int(count)
    return found


@pytest.mark.parametrize("estimator", ["topdown", "full-information"])
@pytest.mark.thorough
def test_measurements_without_error_give_the_counts(tmp_path: Path, estimator: str) -> None:
    write_parts(hand_made(), tmp_path / "nmf" / "US_hand_PROD")
    assert estimate(tmp_path, "--estimator", estimator) == 0
    assert main(["check", str(tmp_path / "out")]) == 0
    assert counts(tmp_path) == {code[-16:]: cells for code, cells in COUNTS.items()}
    manifest = json.loads((tmp_path / "out" / "manifest.json").read_text())
    assert manifest["status"] == "estimates from noisy measurements"
    loss = manifest["measurements"]["loss"]
    assert loss["exact"] is False  # no such variances are the configuration's
    assert manifest["configuration"]["invariants"] == {"US": ["total"]}


@pytest.mark.slow
def test_the_loss_is_the_sum_along_a_path_of_inverse_variances(tmp_path: Path) -> None:
    parts = hand_made()
    write_parts(parts, tmp_path / "nmf" / "US_hand_PROD")
    assert estimate(tmp_path) == 0
    spent: dict[str, float] = {}
    for (_, kind, _), rows in parts.items():
        for row in rows if kind == "DPQuery" else ():
            spent[row["geocode"]] = spent.get(row["geocode"], 0) + 1 / row["variance"]
    paths = [spent["0"] + sum(spent.get(code[:width], 0) for width in (3, 9, 13, 15, 31)) for code in COUNTS]
    loss = json.loads((tmp_path / "out" / "manifest.json").read_text())["measurements"]["loss"]
    assert loss["least"]["rho_float"] == pytest.approx(min(paths), rel=1e-6)
    assert loss["most"]["rho_float"] == pytest.approx(max(paths), rel=1e-6)


@pytest.mark.thorough
def test_constraints_hold_whatever_was_measured(tmp_path: Path) -> None:
    parts = hand_made()
    for (_, kind, _), rows in parts.items():
        for row in rows if kind == "DPQuery" else ():
            row["value"] = [value + 17 * (place % 3) - 9 for place, value in enumerate(row["value"])]
    write_parts(parts, tmp_path / "nmf" / "US_hand_PROD")
    assert estimate(tmp_path) == 0
    found = counts(tmp_path)
    assert sum(map(sum, found.values())) == sum(map(sum, COUNTS.values()))
    for code, cells in COUNTS.items():
        for group in range(4):
            here = sum(found[code[-16:]][2 * group : 2 * group + 2])
            if not any(cells[2 * group : 2 * group + 2]):
                assert here == 0
            elif group:
                assert here >= 1
        assert found[code[-16:]][6] == 0  # minors in nursing homes


@pytest.mark.thorough
def test_a_row_group_at_a_time_gives_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_parts(hand_made(), tmp_path / "nmf" / "US_hand_PROD")
    monkeypatch.setattr("yupana.topdown.nmf.rows._VALUES_AT_ONCE", 1)
    assert estimate(tmp_path) == 0
    assert counts(tmp_path) == {code[-16:]: cells for code, cells in COUNTS.items()}


def bypass_blocks(parts: Parts, *, given: bool) -> None:
    """Take the measurements off the two blocks of the first block group, and give their share to it, or lose it."""
    group = next(iter(COUNTS))[:15]
    for (level, kind, _), rows in parts.items():
        if kind == "DPQuery" and level == "Block":
            rows[:] = [one for one in rows if not one["geocode"].startswith(group)]
        for one in rows if given and kind == "DPQuery" and level == "Block_Group" else ():
            if one["geocode"] == group:
                one["variance"] = 1 / (1 / one["variance"] + 1 / 2.5)


@pytest.mark.thorough
def test_siblings_that_gave_up_their_shares_together_need_no_measurement(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for given in (True, False):
        parts = hand_made()
        bypass_blocks(parts, given=given)
        write_parts(parts, tmp_path / str(given) / "nmf" / "US_hand_PROD")
    assert estimate(tmp_path / "True") == 0
    assert main(["check", str(tmp_path / "True" / "out")]) == 0
    # Bounds say which of the two blocks has the people of each kind.
    assert counts(tmp_path / "True") == {code[-16:]: cells for code, cells in COUNTS.items()}
    with (tmp_path / "True" / "out" / "spine" / "geounits.csv").open() as file:
        rows = list(csv.DictReader(file, delimiter="|"))
    gave_up = {row["geounit"] for row in rows if row["geolevel"] == "Block" and row["bypassed"] == "true"}
    assert gave_up >= {code[-16:] for code in list(COUNTS)[:2]}
    assert estimate(tmp_path / "False") == 2
    assert "no geounit above or below it has its share" in capsys.readouterr().err


@pytest.fixture
def crowded(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every block can have every group, and many people in each cell but that of minors in nursing homes."""
    for code in COUNTS:
        monkeypatch.setitem(COUNTS, code, [0 if place == 6 else 900 + 10 * place for place in range(8)])


@pytest.mark.thorough
@pytest.mark.usefixtures("crowded")
def test_the_sum_of_states_changes_none_of_them_where_no_cell_is_zero(tmp_path: Path) -> None:
    parts, rng = hand_made(), np.random.default_rng(4)
    for (level, kind, state), rows in parts.items():
        for one in rows if (level, kind) == ("State", "DPQuery") else ():
            one["value"] = [value + int(rng.integers(-40, 40)) for value in one["value"]]
            one["variance"] *= 3 if state == "State=150" else 1
    write_parts(parts, tmp_path / "nmf" / "US_hand_PROD")
    found: dict[str, dict[tuple[str, ...], int]] = {}
    for states in ("50", "050", "150"):
        assert estimate(tmp_path, "--states", states, "--overwrite") == 0
        with (tmp_path / "out" / "counts" / "State.csv").open() as file:
            found[states] = {tuple(row[:-1]): int(row[-1]) for row in list(csv.reader(file, delimiter="|"))[1:]}
    alone = found["050"] | found["150"]
    assert found["50"].keys() == alone.keys()
    # Each estimate is rounded, alone, as a sum and as a part of it.
    assert max(abs(found["50"][cell] - count) for cell, count in alone.items()) <= 2


@pytest.mark.usefixtures("crowded")
@pytest.mark.thorough
def test_states_that_cannot_stand_for_the_nation_are_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    parts = hand_made()
    next(rows for key, rows in parts.items() if key == ("State", "DPQuery", "State=150"))[0]["variance"] *= 2
    dataset = write_parts(parts, tmp_path / "nmf" / "US_hand_PROD")
    assert estimate(tmp_path, "--states", "50") == 2
    assert "geocode 150 are in other proportions than those of 050" in capsys.readouterr().err
    shutil.rmtree(dataset / "State.parquet" / "DPQuery" / "State=150")
    assert estimate(tmp_path, "--states", "50") == 2
    assert "geocode 150 has no measurement" in capsys.readouterr().err
    (tmp_path / "totals.csv").write_text("state,total\n50,7\n")
    assert estimate(tmp_path, "--states", "050", "--totals", str(tmp_path / "totals.csv")) == 2
    assert "both sides of state 50" in capsys.readouterr().err


@pytest.mark.thorough
def test_states_with_other_groups_cannot_stand_for_the_nation(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_parts(hand_made(), tmp_path / "nmf" / "US_hand_PROD")
    assert estimate(tmp_path, "--states", "50") == 2
    assert "geocodes 150 and 050 cannot have the same groups" in capsys.readouterr().err
    assert estimate(tmp_path, "--states", "50", "--estimator", "full-information") == 0


Fault = Callable[[Parts], object]


def rows_of(parts: Parts, level: str, kind: str) -> list[dict[str, Any]]:
    """The rows of the nation, or of the first state."""
    return next(rows for (at, of, state), rows in parts.items() if (at, of) == (level, kind) and "150" not in state)


def row(parts: Parts, level: str, kind: str, name: str) -> dict[str, Any]:
    """The first row of a name."""
    return next(row for row in rows_of(parts, level, kind) if row["query_name"] == name)


def change(level: str, kind: str, name: str, **values: Any) -> Fault:  # noqa: ANN401
    """A fault in one row."""
    return lambda parts: row(parts, level, kind, name).update(values)


def change_all(level: str, kind: str, name: str, **values: Any) -> Fault:  # noqa: ANN401
    """A fault in all rows of a name."""

    def fault(parts: Parts) -> None:
        for (at, of, _), rows in parts.items():
            for one in rows if (at, of) == (level, kind) else ():
                if one["query_name"] == name:
                    one.update(values)

    return fault


def without(level: str, kind: str, state: str) -> Fault:
    """A partition that is missing."""
    return lambda parts: parts.pop((level, kind, state))


def recoded(old: str, new: str, *levels: str, end: str = "") -> Fault:
    """Geocodes that begin and end otherwise."""

    def fault(parts: Parts) -> None:
        for (level, _, _), rows in parts.items():
            for one in rows if level in levels else ():
                if one["geocode"].startswith(old):
                    one["geocode"] = new + one["geocode"].removeprefix(old) + end

    return fault


def twice(level: str, kind: str) -> Fault:
    """A row that is there twice."""
    return lambda parts: rows_of(parts, level, kind).append(copy.deepcopy(rows_of(parts, level, kind)[0]))


def dropped(level: str, kind: str, name: str) -> Fault:
    """A row that is missing."""
    return lambda parts: rows_of(parts, level, kind).remove(row(parts, level, kind, name))


def dropped_all(level: str, kind: str, name: str) -> Fault:
    """A name that is missing."""

    def fault(parts: Parts) -> None:
        for (at, of, _), rows in parts.items():
            if (at, of) == (level, kind):
                rows[:] = [one for one in rows if one["query_name"] != name]

    return fault


LOWER, UPPER = "hhgq_total_lb_con", "hhgq_total_ub_con"
COUNTIES = ("County", "Tract", "Block_Group", "Block")
FAULTS: dict[str, tuple[Fault, str]] = {
    "blocks": (without("Block", "Constraint", "State=150"), "a partition is missing"),
    "answers": (without("Block", "DPQuery", "State=050"), "has siblings and no measurement"),
    "axis": (change_all("County", "DPQuery", "hhgq_dpq", hhgq="relgq"), "a query of another schema"),
    "name": (change_all("County", "DPQuery", "hhgq_dpq", query_name="votingage_dpq"), "another query"),
    "unknown": (
        change_all(
            "County", "DPQuery", "hhgq_dpq", query_name="votingage_dpq", hhgq="*", votingage="detailed",
            query_shape=[1, 2], value=[1, 2],
        ),
        "is no query that the configuration measures there",
    ),
    "lost query": (dropped_all("County", "DPQuery", "hhgq_dpq"), "measures hhgq there, and the files do not"),
    "shape": (change_all("County", "DPQuery", "total_dpq", query_shape=[2, 1]), "its axes have [1, 1] answers"),
    "few numbers": (change("County", "DPQuery", "detailed_dpq", value=[1, 2]), "2 numbers"),
    "a list without end": (change("County", "DPQuery", "total_dpq", value=[0] * 10**6), "a row has at most 8"),
    "a shape without end": (change("County", "DPQuery", "total_dpq", query_shape=[1] * 10**5), "a row has at most 2"),
    "no numbers": (change("County", "DPQuery", "detailed_dpq", value=[None] * 8), "missing"),
    "half numbers": (change("County", "DPQuery", "total_dpq", value=[1.5]), "must be lists of whole numbers"),
    "huge numbers": (change("State", "DPQuery", "total_dpq", value=[1 << 31]), "no count of people"),
    "zero": (change("Block", "DPQuery", "total_dpq", variance=0.0), "must be a positive number"),
    "negative": (change("Block", "DPQuery", "total_dpq", variance=-1.0), "must be a positive number"),
    "no number": (change("Block", "DPQuery", "total_dpq", variance=float("nan")), "must be a positive number"),
    "answer twice": (twice("Block", "DPQuery"), "twice"),
    "constraint twice": (twice("Block", "Constraint"), "twice"),
    "lost answer": (dropped("Block", "DPQuery", "hhgq_dpq"), "lacks some of the queries"),
    "lost constraint": (dropped("Tract", "Constraint", LOWER), "missing of"),
    "unlisted": (change("Block", "DPQuery", "total_dpq", geocode="0501000110001019999100010011001"), "do not list it"),
    "mixed": (recoded("050100031", "05010003", "County"), "must have as many each"),
    "narrow": (recoded("", "", "County", end="0000"), "too narrow for children"),
    "wide": (recoded("", "", "Block_Group", end="0"), "too narrow for children"),
    "short blocks": (recoded("", "", "Block", end="0"), "must have 31"),
    "orphans": (recoded("0501000310001", "0501000319999", "Tract"), "a partition is missing"),
    "partition": (recoded("05010001", "04910001", "Block"), "lies in another partition"),
    "county": (recoded("050100031", "050100071", *COUNTIES), "another county"),
    "total": (change("US", "Constraint", "total_con", value=[-1]), "the total is negative"),
    "total and bounds": (change("US", "Constraint", "total_con", value=[1]), "outside the sums of its bounds"),
    "bounds": (change("Block", "Constraint", LOWER, value=[0, 5, 0, 0]), "the lower bound is above the upper"),
    "bounds above": (change("Tract", "Constraint", UPPER, value=[0, 0, 0, 0]), "the lower bound is above the upper"),
    "facilities": (change("County", "Constraint", LOWER, value=[0, 0, 1, 0]), "other numbers of facilities"),
    "levels": (change_all("Block", "Constraint", UPPER, hhgq="gqlevels"), "no constraint that can be kept"),
    "zeros": (change_all("Block", "Constraint", "nurse_nva_0_con", value=[1]), "no constraint that can be kept"),
}  # fmt: skip


@dataclass(frozen=True)
class Sound:
    """Files without a fault, and what they are read with."""

    dataset: Path
    parts: Parts
    config: Configuration

    def read(self, root: Path) -> FileMeasurements:
        """Read a folder as an estimate does."""
        clock = Stopwatch(lambda *_: None)
        return read_measurements(find_files(root, None), self.config, "topdown", None, clock, silent)


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Sound:
    """One for all faults."""
    place = tmp_path_factory.mktemp("sound")
    (place / "config.json").write_text(json.dumps(HAND_MADE))
    parts = hand_made()
    return Sound(write_parts(parts, place / "US_hand_PROD"), parts, TOPDOWN.read(place / "config.json"))


@pytest.mark.sampled(1)
@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.slow
def test_faults_are_refused(tmp_path: Path, sound: Sound, fault: str) -> None:
    make, words = FAULTS[fault]
    parts = copy.deepcopy(sound.parts)
    make(parts)
    dataset = tmp_path / "US_hand_PROD"
    # What the fault leaves alone is linked.
    for key, rows in sound.parts.items():
        if parts.get(key) == rows:
            there = Path(f"{key[0]}.parquet") / key[1] / key[2]
            (dataset / there).mkdir(parents=True, exist_ok=True)
            for file in (sound.dataset / there).iterdir():
                (dataset / there / file.name).symlink_to(file)
    write_parts({key: rows for key, rows in parts.items() if rows != sound.parts[key]}, dataset)
    with pytest.raises(InputError) as refused:
        sound.read(tmp_path)
    assert words in str(refused.value)


@pytest.mark.slow
def test_nothing_is_published_of_files_with_a_fault(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    parts = hand_made()
    twice("Block", "Constraint")(parts)
    write_parts(parts, tmp_path / "nmf" / "US_hand_PROD")
    assert estimate(tmp_path) == 2
    assert "twice" in capsys.readouterr().err
    assert sorted(path.name for path in tmp_path.iterdir()) == ["config.json", "nmf"]


@pytest.mark.parametrize(("step", "least"), [(1607, 1), pytest.param(401, 3, marks=pytest.mark.thorough)])
@pytest.mark.thorough
def test_a_file_that_is_broken_somewhere_is_refused_or_read(
    tmp_path: Path, sound: Sound, step: int, least: int
) -> None:
    dataset = write_parts(sound.parts, tmp_path / "nmf" / "US_hand_PROD")
    refused = 0
    for kind in ("DPQuery", "Constraint"):
        one = next((dataset / "Block.parquet" / kind / "State=050").iterdir())
        content = one.read_bytes()
        for at in range(0, len(content), step):
            one.write_bytes(content[:at] + bytes([content[at] ^ 0x55]) + content[at + 1 :])
            try:
                sound.read(tmp_path)
            except InputError:
                refused += 1
        one.unlink()
        os.mkfifo(one)
        with pytest.raises(InputError, match="a pipe"):
            sound.read(tmp_path)
        one.unlink()
        one.write_bytes(content)
    assert refused >= least


@pytest.mark.thorough
def test_files_that_are_none_are_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    dataset = write_parts(hand_made(), tmp_path / "nmf" / "US_hand_PROD")
    one = next((dataset / "Block.parquet" / "DPQuery" / "State=050").iterdir())
    content = one.read_bytes()
    for broken in (b"no Parquet", content[:-40], content[: len(content) // 2]):
        one.write_bytes(broken)
        assert estimate(tmp_path) == 2
        assert f"{one} is not readable as Parquet" in capsys.readouterr().err
    one.write_bytes(content)
    for options, words in (
        (["--dataset", "US_Person_PL_PROD"], "holds no dataset 'US_Person_PL_PROD'"),
        (["--states", "44"], "no partition of 44"),
        (["--states", "Vermont"], "is no state"),
        (["--totals", str(tmp_path / "none.csv")], "none.csv"),
    ):
        assert estimate(tmp_path, *options) == 2
        assert words in capsys.readouterr().err
    (tmp_path / "totals.csv").write_text("state,total\n50,7\n")
    assert estimate(tmp_path, "--totals", str(tmp_path / "totals.csv")) == 2
    assert "contradicts the totals of US" in capsys.readouterr().err
    (dataset / "Prim.parquet").mkdir()
    assert estimate(tmp_path) == 2
    assert "the DHC" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()
