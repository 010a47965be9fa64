"""Methods beside a release: what is known before holds in counted records, keys and swaps, files and refusals."""

import json
import stat
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.csv as pacsv
import pyarrow.parquet as pq
import pytest
from described_worlds import make_world, save

import yupana
from yupana.arrays import Ints
from yupana.cli.main import main
from yupana.confidential.described import side_by_side
from yupana.confidential.described.records import open_described
from yupana.confidential.described.side_by_side import cell_keys
from yupana.confidential.described.swapping import pair_up, swap
from yupana.confidential.described.tabulate import tabulate
from yupana.files.columns import BUREAU
from yupana.privacy.entropy import SeededEntropy
from yupana.products.described.product import TABLES
from yupana.products.disclosure_control.methods import Swapping
from yupana.products.disclosure_control.published import PublishedCounts, published_counts
from yupana.products.disclosure_control.results import SideBySide
from yupana.release.folder import read_manifest
from yupana.release.tables import read_table

VILLAGE: dict[str, Any] = {
    "name": "village",
    "title": "A village",
    "unit": "people",
    "files": {
        "homes": {
            "key": "id",
            "columns": {"block": {"codes": ["A1", "A2", "A3", "B1", "B2"], "fixed": True}},
        },
        "people": {
            "parent": {"file": "homes", "column": "home"},
            "columns": {"sex": {"codes": ["f", "m"]}, "age": {"whole": [0, 9]}},
        },
    },
    "recodes": {"ages": {"column": "people.age", "classes": {"young": "0-4", "old": "5-9"}}},
    "areas": {
        "village": {"code": "V"},
        "block": {"column": "homes.block"},
        "side": {"column": "homes.block", "first": 1},
        "school": {"column": "homes.block", "of": {"A1": "S", "A2": "S", "A3": [], "B1": "T", "B2": "T"}},
    },
    "groups": {"f": {"where": {"people.sex": "f"}}, "m": {"where": {"people.sex": "m"}}},
    "levels": {"side-by-sex": {"areas": "side", "groups": ["f", "m"]}},
    "tables": {
        "ages": {
            "counts": "people",
            "by": ["ages"],
            "margins": {"all": []},
            "budget": dict.fromkeys(["village", "block", "side", "school", "side-by-sex"], 1),
        },
        "homes": {"counts": "homes", "budget": {"block": 1, "side": 1}},
    },
}


def write_village(folder: Path, *, synthetic: bool = True) -> tuple[Path, Path]:
    rng = np.random.default_rng(1)
    data = folder / "data"
    data.mkdir()
    homes = [f"h{i},{rng.choice(['A1', 'A1', 'A2', 'A3', 'B1', 'B2'])}" for i in range(60)]
    people = [f"h{rng.integers(60)},{rng.choice(['f', 'm'])},{rng.choice(10)}" for _ in range(150)]
    (data / "homes.csv").write_text("\n".join(["id,block", *homes]) + "\n")
    (data / "people.csv").write_text("\n".join(["home,sex,age", *people]) + "\n")
    if synthetic:
        (data / "SYNTHETIC").touch()
    config = folder / "village.json"
    config.write_text(json.dumps(VILLAGE))
    return config, data


def counted(published: PublishedCounts, db: Any, description: Any) -> Ints:  # noqa: ANN401
    return published.row(tabulate(db, description, limited=False).by_level)


@pytest.mark.thorough
def test_sums_and_nested_counts_are_so_in_any_records(tmp_path: Path) -> None:
    seen = dict.fromkeys(["margins", "areas", "groups", "nested areas", "nested groups"], 0)
    for seed in range(6):
        folder = tmp_path / str(seed)
        folder.mkdir()
        config, data = save(make_world(seed), folder) if seed else write_village(folder)
        description = TABLES.read(config)
        published = published_counts(description)
        with open_described(description, data, None, BUREAU) as records:
            records.require_valid()
            truth = counted(published, records.db, description)
            keys = published.row(cell_keys(records.db, description, "secret"))
        assert not keys[truth == 0].any()
        assert (keys[truth == 1] != 0).all()
        for kind, relations in published.sums.items():
            assert np.array_equal(truth[relations.sums], relations.added(truth)), (seed, kind)
            assert np.array_equal(keys[relations.sums], relations.added(keys)), (seed, kind)
            seen[kind] += int((truth[relations.sums] > 0).sum())
        for kind, nested in published.nested.items():
            assert (nested.differences(truth) >= 0).all()
            # The same records have the same key, wherever they are counted.
            same = nested.differences(truth) == 0
            assert not nested.differences(keys)[same].any()
            seen[f"nested {kind}"] += int((nested.differences(truth) > 0).sum())
    assert all(seen.values()), seen


def test_the_village_has_the_sums_and_pairs_that_its_description_tells(tmp_path: Path) -> None:
    description = TABLES.read(write_village(tmp_path)[0])
    published = published_counts(description)
    rows = 3
    assert {kind: len(of) for kind, of in published.sums.items()} == {
        # One margin of ages in the village, 5 blocks, 2 sides, 2 schools, and 2 sides by sex.
        "margins": 1 + 5 + 2 + 2 + 2 * 2,
        # Ages: village of blocks, of sides; 2 sides of blocks; side B is school T and the other way round; 2 schools of
        # blocks. Homes: 2 sides of blocks.
        "areas": rows * (1 + 1 + 2 + 2 + 2) + 2,
        "groups": rows * 2,
    }
    # Ages: blocks, sides and schools in the village; blocks in sides; blocks in schools; school S in side A.
    assert len(published.nested["areas"].outer) == rows * (5 + 2 + 2 + 5 + 4 + 1) + 5
    assert len(published.nested["groups"].outer) == rows * 2 * 2


@pytest.mark.slow
def test_record_keys_depend_on_records_and_secret_alone(tmp_path: Path) -> None:
    config, data = write_village(tmp_path)
    description = TABLES.read(config)
    published = published_counts(description)

    def keys(secret: str) -> Ints:
        with open_described(description, data, None, BUREAU) as records:
            return published.row(cell_keys(records.db, description, secret))

    before = keys("a")
    lines = (data / "people.csv").read_text().splitlines()
    (data / "people.csv").write_text("\n".join([lines[0], *reversed(lines[1:])]) + "\n")
    assert np.array_equal(keys("a"), before)
    assert not (keys("b") == before)[before != 0].any()
    # Two records alike have two keys.
    (data / "people.csv").write_text("\n".join([lines[0], lines[1]]) + "\n")
    one = int(keys("a").max())
    (data / "people.csv").write_text("\n".join([lines[0], lines[1], lines[1]]) + "\n")
    assert all((int(key) - 2 * one) % (1 << 64) for key in keys("a"))


@pytest.mark.parametrize("seed", range(20))
def test_partners_share_a_size_and_no_area(seed: int) -> None:
    rng = np.random.default_rng(seed)
    number = int(rng.integers(1, 200))
    areas, sizes = rng.integers(int(rng.integers(1, 6)), size=number), rng.integers(3, size=number)
    risky, rate = rng.random(number) < 0.1, Fraction(int(rng.integers(0, 11)), 10)
    partners = pair_up(areas, sizes, risky, rate, SeededEntropy(seed))
    moved = partners != np.arange(number)
    assert np.array_equal(partners[partners], np.arange(number))
    assert np.array_equal(sizes[partners], sizes)
    assert (areas[partners] != areas)[moved].all()
    # Whoever should be swapped and is not found no partner: all others of the size are in its area, or swapped.
    wanting = ~moved & (risky | (int(moved.sum()) < rate * number))
    for record in np.flatnonzero(wanting):
        free = ~moved & (sizes == sizes[record])
        assert (areas[free] == areas[record]).all()
    # No more pairs than were asked for.
    assert int(moved.sum()) <= max(2 * int(risky.sum()), 0) + rate * number + 1


@pytest.mark.parametrize("form", ["csv", "parquet"])
def test_a_swap_keeps_what_reads_no_area_and_the_records_of_every_area(tmp_path: Path, form: str) -> None:
    config, data = write_village(tmp_path)
    if form == "parquet":
        for name in ("homes", "people"):
            pq.write_table(pacsv.read_csv(data / f"{name}.csv"), data / f"{name}.parquet")
            (data / f"{name}.csv").unlink()
    description = TABLES.read(config)
    with open_described(description, data, None, BUREAU) as records:
        exact = tabulate(records.db, description, limited=False).by_level
        told = swap(records.db, description, Swapping(Fraction(1, 2)), SeededEntropy(1))
        swapped = tabulate(records.db, description, limited=False).by_level
    assert told.records == 60
    assert told.swapped >= 30
    for level in ("block", "side"):
        assert np.array_equal(swapped[f"homes/{level}"], exact[f"homes/{level}"])
        assert np.array_equal(swapped[f"ages/{level}"].sum(axis=1), exact[f"ages/{level}"].sum(axis=1))
    assert np.array_equal(swapped["ages/village"], exact["ages/village"])
    assert not np.array_equal(swapped["ages/block"], exact["ages/block"])


def test_the_risky_are_those_of_small_cells(tmp_path: Path) -> None:
    # Homes of one person each: one area has a single old person, who is risky there, and all others are many.
    data = tmp_path / "data"
    data.mkdir()
    block = ["A1"] * 20 + ["B1"] * 20
    ages = [0] * 39 + [9]
    (data / "homes.csv").write_text("\n".join(["id,block", *(f"h{i},{b}" for i, b in enumerate(block))]) + "\n")
    (data / "people.csv").write_text("\n".join(["home,sex,age", *(f"h{i},f,{a}" for i, a in enumerate(ages))]) + "\n")
    config = tmp_path / "village.json"
    config.write_text(json.dumps(VILLAGE))
    description = TABLES.read(config)
    with open_described(description, data, None, BUREAU) as records:
        told = swap(records.db, description, Swapping(Fraction(0), 3), SeededEntropy(1))
        moved = records.db.execute(
            """SELECT record FROM records_homes WHERE "homes.block" = 0 AND record > 20 ORDER BY 1"""
        ).fetchall()
    assert (told.risky, told.swapped) == (1, 2)
    assert moved == [(40,)]


@pytest.mark.thorough
def test_what_is_compared_is_written_and_is_no_release(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    config, data = write_village(tmp_path)
    out = tmp_path / "out"
    assert main(["tables", "compare", str(config), str(data), str(out), "--seed", "1"]) == 0
    told = capsys.readouterr().out
    assert "None of the methods but the release is differentially private." in told
    manifest = read_manifest(out)
    assert manifest["status"] == "NOT FOR RELEASE"
    assert main(["check", str(out)]) == 0
    names = [
        "release",
        "cell-key:D=5:V=3:js=2",
        "rounding-3",
        "rounding-5",
        "swapping:rate=1/20:k=3",
        "suppression:below=3",
    ]
    for table in ("errors", "additivity", "differencing"):
        assert list(dict.fromkeys(read_table(out / f"{table}.csv")["METHOD"])) == names
    page = (out / "report.html").read_text()
    assert "only the release of the description is differentially private" in page
    assert "NOT FOR RELEASE" in page
    again = tmp_path / "again"
    yupana.compare("tables", config, data, again, seed=1)
    for name in ("errors.csv", "additivity.csv", "differencing.csv"):
        assert (again / name).read_bytes() == (out / name).read_bytes()


@pytest.mark.thorough
def test_columns_may_be_called_otherwise(tmp_path: Path) -> None:
    config, data = write_village(tmp_path)
    (tmp_path / "other").mkdir()
    for path in data.iterdir():
        text = path.read_text(encoding="utf-8")
        (tmp_path / "other" / path.name).write_text(text.replace("block", "the block", 1), encoding="utf-8")
    (tmp_path / "map.toml").write_text('[homes]\nblock = "the block"\n', encoding="utf-8")
    ask = ["--methods", "cell-key,swapping", "--seed", "1"]
    renamed = ["--columns", str(tmp_path / "map.toml")]
    assert main(["tables", "compare", str(config), str(data), str(tmp_path / "one"), *ask]) == 0
    assert main(["tables", "compare", str(config), str(tmp_path / "other"), str(tmp_path / "two"), *ask, *renamed]) == 0
    for name in ("errors.csv", "additivity.csv", "differencing.csv"):
        assert (tmp_path / "one" / name).read_bytes() == (tmp_path / "two" / name).read_bytes()


def found(tmp_path: Path, methods: str) -> SideBySide:
    config, data = write_village(tmp_path)
    return yupana.compare("tables", config, data, tmp_path / "out", methods=methods, seed=1)


@pytest.mark.thorough
def test_swapped_records_are_put_back(tmp_path: Path) -> None:
    folders = [tmp_path / "one", tmp_path / "other"]
    for folder in folders:
        folder.mkdir()
    with_swaps = found(folders[0], "swapping:rate=1,cell-key,swapping:rate=0.5")
    without = found(folders[1], "cell-key")
    key = without.methods[1].name
    for rows in ("errors", "additivity", "learnt"):
        of = [[row for row in getattr(one, rows) if row.method == key] for one in (with_swaps, without)]
        assert of[0] == of[1]


@pytest.mark.slow
def test_suppression_without_secondary_suppression_tells_what_it_leaves_out(tmp_path: Path) -> None:
    one = found(tmp_path, "suppression:below=8")
    (counts,) = [row for row in one.learnt if row.target == "counts" and row.method == "suppression:below=8"]
    assert counts.number
    assert counts.face is not None
    assert counts.certain is not None
    assert counts.certain > counts.face
    assert all(row.certain == 0 for row in one.learnt if row.method == "release" and row.number)


@pytest.mark.slow
def test_real_records_are_compared_for_their_owner_alone(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    config, data = write_village(tmp_path, synthetic=False)
    out = tmp_path / "out"
    ask = ["tables", "compare", str(config), str(data), str(out)]
    assert main(ask) == 2
    assert "--internal" in capsys.readouterr().err
    assert main([*ask, "--internal", "--seed", "1"]) == 2
    assert "seed" in capsys.readouterr().err
    assert not out.exists()
    assert main([*ask, "--internal"]) == 0
    assert "CONFIDENTIAL" in capsys.readouterr().out
    assert stat.S_IMODE(out.stat().st_mode) == 0o700
    assert {stat.S_IMODE(path.stat().st_mode) for path in out.iterdir()} == {0o600}
    assert read_manifest(out, confidential=True)["status"] == "CONFIDENTIAL"
    assert "CONFIDENTIAL" in (out / "report.html").read_text()


def test_what_cannot_be_compared_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    config, data = write_village(tmp_path)
    ask = ["tables", "compare", str(config), str(data)]
    assert main([*ask, str(tmp_path / "out"), "--methods", "cell-kye"]) == 2
    assert "did you mean cell-key" in capsys.readouterr().err
    assert main([*ask, str(data.parent), "--overwrite"]) == 2
    assert "which is to be read" in capsys.readouterr().err
    with pytest.raises(yupana.ConfigError, match="phsafe takes no compare"):
        yupana.compare("phsafe", "s-dhc-2020-us", data, tmp_path / "out")
    (data / "people.csv").write_text("home,sex,age\nh1,x,3\n")
    assert main([*ask, str(tmp_path / "out")]) == 2
    assert "must be f, m" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


DETAILED = {
    **VILLAGE,
    "tables": {
        **VILLAGE["tables"],
        "ages": {
            **VILLAGE["tables"]["ages"],
            "detail": {
                "share": "1/10",
                "steps": [["all"], ["ages", "all"]],
                "thresholds": [20],
                "leave_out": {"block": "0.99"},
            },
        },
    },
}


PROCESSED = {
    **VILLAGE,
    "postprocess": {"coterminous": True, "non_negative": True, "suppress_below": 15},
}


@pytest.mark.parametrize("document", [VILLAGE, DETAILED, PROCESSED], ids=["whole", "detail", "processed"])
@pytest.mark.thorough
def test_the_release_beside_the_methods_is_what_a_run_releases(tmp_path: Path, document: dict[str, Any]) -> None:
    _, data = write_village(tmp_path)
    yupana.run("tables", document, data, tmp_path / "out", seed=3)
    (tmp_path / "village.json").write_text(json.dumps(document))
    description = TABLES.read(tmp_path / "village.json")
    published = published_counts(description)
    with open_described(description, data, None, BUREAU) as records:
        exact = tabulate(records.db, description, limited=True).by_level
    shown = side_by_side._released(published, description, TABLES.plan(description), exact, SeededEntropy(3))
    released = {}
    for name in ("ages", "all", "homes"):
        columns = read_table(tmp_path / "out" / f"{name}.csv")
        for row in zip(*columns.values(), strict=True):
            told = dict(zip(columns, row, strict=True))
            cell = told.get("ages", "")
            if told["COUNT"] != "X":
                released[name, told["REGION_ID"], told.get("ITERATION_CODE", "*"), cell] = int(told["COUNT"])
    ours = {}
    places = iter(range(len(shown.values)))
    for of in published.levels:
        rows = [("ages", "young"), ("ages", "old"), ("all", "")] if of.table.name == "ages" else [("homes", "")]
        for area in description.areas[of.level.areas].codes:
            for group in of.level.groups:
                for (table, cell), place in zip(rows, places, strict=False):
                    if shown.flags[place]:
                        ours[table, area, group, cell] = int(shown.values[place])
    assert ours == released
    assert (len(ours) < len(shown.values)) == (document is not VILLAGE)
    found = yupana.compare("tables", document, data, tmp_path / "compared", seed=3)
    assert sum(row.shown for row in found.errors if row.method == "release") == len(ours)
