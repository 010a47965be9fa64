"""`yupana check` on SafeTab: sound releases pass, those changed by someone who also mended the manifest do not."""

import json
import math
import shutil
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import pytest
from safetab_oracle import T1, T2, T3, T4
from safetab_runs import publish
from safetab_worlds import NAMES, World, random_world, seeded, write_data, write_parameters

from yupana.cli.main import main
from yupana.release.tables import checksum

Line = dict[str, str]
Tables = dict[str, list[Line]]
Change = Callable[[Tables], object]

MADE = {"safetab-p": "p", "safetab-h": "h"}
POLICY = """
[[rule]]
rule = "negative"
tables = ["T01001", "T02001", "T02002", "T02003", "T03001", "T03002", "T03003", "T03004", "T04001", "T04002"]
reason = "N"
"""


def _world() -> World:
    """Every table has rows, some counts are negative, and some areas are made of the same blocks."""
    world = random_world(seeded(3), persons=300, households=300)
    world.config.runs = ("us", "pr")
    world.config.budgets("20").thresholds((4, 8, 20), 4)
    world.config.allow_negative, world.config.zero_suppression = True, "0.5"
    world.config.definition = "zcdp"
    return world


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Releases p and h; made coterminous, pc and hc; suppressed, ps and hs; both, pcs and hcs."""
    folder, world = tmp_path_factory.mktemp("made"), _world()
    for product, name in MADE.items():
        publish(product, world, folder / product, "--seed", "1")
        (folder / product / "out").rename(folder / name)
        (folder / "policy.toml").write_text(POLICY)
        grfc = folder / product / "data" / NAMES["blocks"]
        for source, verb, file, out in (
            (name, "coterminous", grfc, f"{name}c"),
            (name, "suppress", folder / "policy.toml", f"{name}s"),
            (f"{name}c", "suppress", folder / "policy.toml", f"{name}cs"),
        ):
            assert main(["postprocess", verb, str(folder / source), str(file), str(folder / out)]) == 0
    return folder


def check(release: Path, capsys: pytest.CaptureFixture[str]) -> tuple[int, dict[str, Any]]:
    capsys.readouterr()
    status = main(["check", str(release), "--json"])
    return status, json.loads(capsys.readouterr().out)


def changed(release: Path, folder: Path, change: Change) -> Path:
    """A copy whose tables were changed, and whose manifest says so in checksums and numbers of rows."""
    shutil.copytree(release, folder)
    manifest = json.loads((folder / "manifest.json").read_text())
    tables: Tables = {}
    for name, described in manifest["tables"].items():
        header, *lines = (line.split("|") for line in (folder / name).read_text().splitlines())
        tables[described["table"]] = [dict(zip(header, line, strict=True)) for line in lines]
    change(tables)
    for name, described in manifest["tables"].items():
        lines = ["|".join(described["columns"]), *("|".join(row.values()) for row in tables[described["table"]])]
        text = "".join(f"{line}\n" for line in lines)
        assert text.splitlines()[0] == (folder / name).read_text().splitlines()[0]
        (folder / name).write_text(text)
        described |= {"sha256": checksum(folder / name), "rows": len(lines) - 1}
    (folder / "manifest.json").write_text(json.dumps(manifest))
    return folder


# --- what someone may change ---------------------------------------------------------------------------------------


def group(row: Line) -> tuple[str, ...]:
    return row["REGION_ID"], row["REGION_TYPE"], row["ITERATION_CODE"]


def every(rows: Iterable[Line], **cell: str) -> Iterator[Line]:
    """The rows of a cell whose number is not suppressed."""
    return (row for row in rows if row["COUNT"] != "X" and all(row[name] == cell[name] for name in cell))


def first(rows: Iterable[Line], **cell: str) -> Line:
    """The first of them."""
    return next(every(rows, **cell))


def whole(rows: list[Line], **cell: str) -> Line:
    """The first row of a cell in whose group nothing is suppressed."""
    holed = {group(row) for row in rows if row["COUNT"] == "X"}
    return first((row for row in rows if group(row) not in holed), **cell)


def total(tables: Tables, table: str) -> Line:
    """The row in T01001 of a group of another table, neither of them suppressed."""
    known = {group(row): row for row in tables[T1]}
    holed = {group(row) for rows in tables.values() for row in rows if row["COUNT"] == "X"}
    return next(known[group(row)] for row in tables[table] if group(row) not in holed)


def more(row: Line, by: int = 1) -> None:
    row["COUNT"] = str(int(row["COUNT"]) + by)


def spread(row: Line, times: float) -> None:
    """Another variance, with the margin of error it would have."""
    variance = float(row["VARIANCE"]) * times
    row |= {"VARIANCE": repr(variance), "MOE": repr(1.96 * math.sqrt(variance))}


def wider(row: Line) -> None:
    row["MOE"] = repr(float(row["MOE"]) + 1)


def double(rows: list[Line], row: Line) -> None:
    rows.insert(rows.index(row) + 1, dict(row))


def again(tables: Tables, group_of: str, into: str) -> None:
    """A group of one table gets a row in another, too."""
    known = {group(row) for row in tables[into]}
    row = next(row for row in tables[group_of] if group(row) not in known)
    like = first(tables[into])
    tables[into].append(like | dict(zip(("REGION_ID", "REGION_TYPE", "ITERATION_CODE"), group(row), strict=True)))


ALL_AGES, FOUR = {"AGESTART": "*", "SEX": "2"}, T2[0]
CHANGES: dict[str, tuple[str, str, Change]] = {
    # The product, what the check says, and the change.
    "count of an age": (
        "safetab-p",
        "T02001: marginals are the sums",
        lambda t: more(whole(t[FOUR], AGESTART="18", SEX="1")),
    ),
    "count of all ages": (
        "safetab-p",
        "T02003: marginals are the sums",
        lambda t: more(whole(t[T2[2]], **ALL_AGES), -1),
    ),
    "count of the total": ("safetab-p", "T02002: every group has its total", lambda t: more(total(t, T2[1]))),
    "row of a total": ("safetab-p", "T02002: every group has its total", lambda t: t[T1].remove(total(t, T2[1]))),
    "row of all ages": (
        "safetab-p",
        "T02001: marginals are the sums",
        lambda t: t[FOUR].remove(whole(t[FOUR], **ALL_AGES)),
    ),
    "row of an age": (
        "safetab-p",
        "T02002: every group has its total",
        lambda t: t[T2[1]].remove(first(t[T2[1]], AGESTART="25", SEX="2")),
    ),
    "total twice": ("safetab-p", "T01001: every group and cell stands once", lambda t: double(t[T1], first(t[T1]))),
    "age twice": (
        "safetab-p",
        "T02003: every group and cell stands once",
        lambda t: double(t[T2[2]], first(t[T2[2]], AGESTART="21")),
    ),
    "margin of a total": (
        "safetab-p",
        "T01001: margins of error are those of the noise",
        lambda t: wider(first(t[T1])),
    ),
    "margin of an age": (
        "safetab-p",
        "T02001: margins of error are those of the noise",
        lambda t: wider(first(t[FOUR], SEX="2")),
    ),
    "digits of an area": (
        "safetab-p",
        "T01001: areas and iterations are written as codes",
        lambda t: first(t[T1], REGION_TYPE="COUNTY").update(REGION_ID="1001"),
    ),
    "kind of an area": (
        "safetab-p",
        "T02002: areas and iterations are written as codes",
        lambda t: first(t[T2[1]]).update(REGION_TYPE="BLOCK"),
    ),
    "two tables of ages": (
        "safetab-p",
        "T02001 to T02003: a group is in one of them",
        lambda t: again(t, FOUR, T2[1]),
    ),
    "text for a number": (
        "safetab-p",
        "T01001: a value cannot be read",
        lambda t: first(t[T1]).update(COUNT="many"),
    ),
    "count of a type": (
        "safetab-h",
        "T03004: marginals are the sums",
        lambda t: more(whole(t[T3[3]], T3_DATA_CELL="4")),
    ),
    "count of a marginal": (
        "safetab-h",
        "T03003: marginals are the sums",
        lambda t: more(whole(t[T3[2]], T3_DATA_CELL="6")),
    ),
    "count of a tenure": ("safetab-h", "T04002: marginals", lambda t: more(whole(t[T4[1]], T4_DATA_CELL="2"), -1)),
    "row of a marginal": (
        "safetab-h",
        "T03002: marginals are the sums",
        lambda t: t[T3[1]].remove(first(t[T3[1]], T3_DATA_CELL="0")),
    ),
    "row of a tenure": (
        "safetab-h",
        "T04002: marginals are the sums",
        lambda t: t[T4[1]].remove(first(t[T4[1]], T4_DATA_CELL="3")),
    ),
    "total of households twice": (
        "safetab-h",
        "T03001: every group and cell stands once",
        lambda t: double(t[T3[0]], first(t[T3[0]])),
    ),
    "type twice": (
        "safetab-h",
        "T03004: every group and cell stands once",
        lambda t: double(t[T3[3]], first(t[T3[3]], T3_DATA_CELL="5")),
    ),
    "margin of a marginal": (
        "safetab-h",
        "T03002: margins of error",
        lambda t: wider(first(t[T3[1]], T3_DATA_CELL="0")),
    ),
    "two tables of tenure": (
        "safetab-h",
        "T04001 to T04002: a group is in one of them",
        lambda t: again(t, T4[1], T4[0]),
    ),
}
VARIANCES: dict[str, tuple[str, str, Callable[[Tables], Iterable[Line]]]] = {
    # One by one only where no areas were combined, where there is a range that holds all of them.
    "of a total": ("safetab-p", T1, lambda t: every(t[T1])),
    "of all ages": ("safetab-p", T2[0], lambda t: every(t[T2[0]], **ALL_AGES)),
    "of an age": ("safetab-p", T2[2], lambda t: every(t[T2[2]], AGESTART="10")),
    "of a type": ("safetab-h", T3[2], lambda t: every(t[T3[2]], T3_DATA_CELL="7")),
    "of a tenure": ("safetab-h", T4[1], lambda t: every(t[T4[1]], T4_DATA_CELL="0")),
}


@pytest.mark.sampled(1)
@pytest.mark.parametrize("steps", ["", "c", "s", "cs"])
@pytest.mark.parametrize("product", MADE)
@pytest.mark.slow
def test_a_sound_release_passes(product: str, steps: str, made: Path, capsys: pytest.CaptureFixture[str]) -> None:
    release = made / f"{MADE[product]}{steps}"
    status, answer = check(release, capsys)
    assert (status, answer["wrong"]) == (0, [])
    assert len(answer["unchecked"]) == len(steps)
    manifest = json.loads((release / "manifest.json").read_text())
    # Otherwise what follows would mean little.
    assert min(described["rows"] for described in manifest["tables"].values()) > 0
    for record in manifest.get("postprocessing", ()):
        if record["rule"] == "coterminous":
            assert record["groups"]["combined"] > 0
        else:
            assert sum(counts.get("N", 0) for counts in record["suppressed"].values()) > 0
    assert main(["check", str(release)]) == 0
    assert capsys.readouterr().out.count("not checked") == len(steps)


@pytest.mark.sampled(1)
@pytest.mark.parametrize("steps", ["", "cs"])
@pytest.mark.parametrize("what", CHANGES)
@pytest.mark.slow
def test_a_change_is_found(
    what: str, steps: str, made: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    product, words, change = CHANGES[what]
    status, answer = check(changed(made / f"{MADE[product]}{steps}", tmp_path / "changed", change), capsys)
    assert status == 2
    assert any(fault.startswith(words) for fault in answer["wrong"]), answer["wrong"]


@pytest.mark.sampled(1)
@pytest.mark.parametrize("steps", ["", "cs"])
@pytest.mark.parametrize("what", VARIANCES)
@pytest.mark.slow
def test_another_variance_is_found(
    what: str, steps: str, made: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    product, table, find = VARIANCES[what]
    combined = "c" in steps
    factors = (0.0, 1e-4, 1e4) if combined else (0.0, 0.999, 1.001)

    def change(tables: Tables) -> None:
        for row, times in zip(islice(find(tables), 3), factors, strict=True):
            spread(row, times)

    status, answer = check(changed(made / f"{MADE[product]}{steps}", tmp_path / "changed", change), capsys)
    words = "lie within what combining areas of the plan gives" if combined else "are those of the plan"
    assert status == 2
    assert answer["wrong"] == [f"{table}: variances {words}: 3 times not"]


HIDING: dict[str, Change] = {
    "a mark without a reason": lambda t: first(t[T1]).update(COUNT="X", VARIANCE="X", MOE="X"),
    "a reason without a mark": lambda t: first(t[T1]).update(REASON="N"),
    "half a mark": lambda t: first(t[T1]).update(COUNT="X", REASON="N"),
    "a mark removed": lambda t: next(row for row in t[T1] if row["REASON"]).update(COUNT="-5"),
}


@pytest.mark.parametrize("what", HIDING)
@pytest.mark.thorough
def test_marks_and_reasons_belong_together(
    what: str, made: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    status, answer = check(changed(made / "ps", tmp_path / "changed", HIDING[what]), capsys)
    assert status == 2
    assert [fault.partition(":")[0] for fault in answer["wrong"]] == [T1]
    assert "written as codes" in answer["wrong"][0]


@pytest.mark.slow
def test_a_mark_in_a_release_that_was_not_suppressed_is_found(
    made: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    release = changed(made / "p", tmp_path / "changed", lambda t: first(t[T1]).update(COUNT="X"))
    status, answer = check(release, capsys)
    assert status == 2
    assert any("T01001" in fault and "cannot be read" in fault for fault in answer["wrong"])


@pytest.mark.parametrize("key", ["rows", "columns", "sha256"])
def test_the_manifest_must_agree_with_the_files(
    key: str, made: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    release = Path(shutil.copytree(made / "pc", tmp_path / "changed"))
    manifest = json.loads((release / "manifest.json").read_text())
    described = manifest["tables"]["T02001.csv"]
    described[key] = {"rows": described["rows"] - 1, "columns": described["columns"][1:], "sha256": "0"}[key]
    (release / "manifest.json").write_text(json.dumps(manifest))
    status, answer = check(release, capsys)
    assert status == 2
    assert all("T02001.csv" in fault for fault in answer["wrong"])
    assert answer["wrong"][-1].startswith("T02001.csv")


@pytest.mark.thorough
def test_a_table_by_itself_is_checked_as_far_as_it_goes(
    made: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    grfc = made / "safetab-p" / "data" / NAMES["blocks"]
    shutil.copy(made / "p" / "T01001.csv", tmp_path)
    for source, out in ((made / "p" / "T01001.csv", "with"), (tmp_path / "T01001.csv", "without")):
        assert main(["postprocess", "coterminous", str(source), str(grfc), str(tmp_path / out)]) == 0
        status, answer = check(tmp_path / out, capsys)
        assert (status, answer["tables"], answer["wrong"]) == (0, 1, [])
        notes = " ".join(answer["unchecked"])
        assert ("no plan" in notes) == (out == "without")
        assert ("T02001, T02002, T02003" in notes) == (out == "with")
        worse = changed(tmp_path / out, tmp_path / f"{out} double", lambda t: double(t[T1], first(t[T1])))
        assert check(worse, capsys)[0] == 2


def test_tables_may_be_missing_only_after_postprocessing(
    made: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    release = Path(shutil.copytree(made / "p", tmp_path / "changed"))
    (release / "T02003.csv").unlink()
    manifest = json.loads((release / "manifest.json").read_text())
    del manifest["tables"]["T02003.csv"]
    (release / "manifest.json").write_text(json.dumps(manifest))
    assert check(release, capsys)[0] == 2


@pytest.mark.parametrize(
    ("seed", "fmt", "definition"),
    [(0, "csv", "puredp"), pytest.param(1, "parquet", "zcdp", marks=pytest.mark.thorough)],
)
@pytest.mark.thorough
def test_other_releases_pass_before_and_after(
    seed: int, fmt: str, definition: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    # Some levels have no noise, others no budget; clamped or not; with iterations known and not.
    world = random_world(seeded(seed), noise="mixed")
    world.config.definition = definition
    parameters, data = write_parameters(tmp_path / "parameters", world), write_data(tmp_path / "data", world)
    options = ["--format", fmt, "--seed", "2", "--confidence", "0.9"]
    for product in MADE:
        release = tmp_path / product
        assert main([product, "run", str(parameters), str(data), str(release), *options]) == 0
        assert check(release, capsys)[1]["wrong"] == []
        known = ["--parameters", str(parameters)] if product == "safetab-p" else []
        out = tmp_path / f"{product} combined"
        assert main(["postprocess", "coterminous", str(release), str(data / NAMES["blocks"]), str(out), *known]) == 0
        assert check(out, capsys)[1]["wrong"] == []
