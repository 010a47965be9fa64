"""Estimates from noisy measurement files that a run wrote are those of the run, byte by byte."""

import csv
import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from topdown_worlds import LEVELS, World, configuration, make_world, write_configuration, write_world

from yupana.cli.main import main

PERSONS = (8, 2, 3)
SAME = ("counts/Block.csv", "tabulation/block.csv", "tabulation/tract.csv", "tabulation/place.csv", "microdata.csv")


def run(place: Path, world: World, document: dict[str, Any], *options: str) -> None:
    """Make DATA, a release in OUT and its measurements in NMF."""
    if not (place / "data").exists():
        write_world(world, place / "data", quarters=True)
    config = write_configuration(document, place / "config.json")
    made = ["topdown", "run", str(config), str(place / "data"), str(place / "out"), "--seed", "3", *options]
    assert main([*made, "--nmf", str(place / "nmf"), "--overwrite"]) == 0


def estimate(place: Path, *options: str, out: str = "again") -> int:
    """Estimate from NMF."""
    geography = ["--geography", str(place / "data" / "geography.txt")]
    return main(["topdown", "estimate", str(place / "nmf"), str(place / out), *geography, *options])


def agree(place: Path, *more: str, out: str = "again") -> None:
    """Compare what was estimated with the release."""
    for name in (*SAME, *more):
        assert (place / out / name).read_bytes() == (place / "out" / name).read_bytes()
    assert main(["check", str(place / out)]) == 0


def shares_of(release: Path) -> list[list[str]]:
    """Of every geounit its geolevel, number of children, share and whether it was bypassed."""
    with (release / "spine" / "geounits.csv").open() as file:
        return [[row[0], *row[3:]] for row in list(csv.reader(file, delimiter="|"))[1:]]


def totals_of(world: World, path: Path) -> Path:
    """Write the totals of states."""
    found: dict[str, int] = {}
    for (state, _), count in world.totals(2).items():
        found[state] = found.get(state, 0) + count
    path.write_text("state,total\n" + "".join(f"{state},{total}\n" for state, total in found.items()))
    return path


def persons(**more: Any) -> dict[str, Any]:  # noqa: ANN401
    """A configuration of persons with a recode, group quarters and AIAN areas on an optimized spine."""
    queries = {"total": "1/4", "three*a2": "1/4", "detailed": "1/2"}
    rounded = [["total"], ["a0", "a0*a1", "detailed"]]
    of_level = {"estimate": [["total"], ["three*a2", "detailed"]], "round": rounded}
    return configuration(
        PERSONS,
        rho="2",
        recodes={"three": {"of": "a0", "groups": [[0], [1, 2, 3, 4], [5, 6, 7]]}},
        constraints={"group_quarters": "a0"},
        queries=dict.fromkeys(LEVELS, queries),
        passes=dict.fromkeys(LEVELS, of_level),
        invariants={"US": ["total"], "State": ["total"]},
        spine={"kind": "optimized"},
        **more,
    )


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, World]:
    """A run of persons, with its measurements."""
    place = tmp_path_factory.mktemp("persons")
    world = make_world(3, PERSONS, quarters=True)
    run(place, world, persons())
    return place, world


@pytest.mark.thorough
def test_the_release_is_a_function_of_its_measurements(made: tuple[Path, World]) -> None:
    place, world = made
    totals = totals_of(world, place / "totals.csv")
    assert estimate(place, "--totals", str(totals)) == 0
    agree(place)
    manifest = json.loads((place / "again" / "manifest.json").read_text())
    told = manifest["measurements"]
    # Every variance is one of the plan, and every path has the loss of the budget, whatever was bypassed.
    assert told["loss"]["exact"] is True
    assert told["loss"]["least"]["rho"] == told["loss"]["most"]["rho"] == "2"
    assert len(told["files"]) == len(list((place / "nmf").rglob("part-*.parquet")))
    assert set(manifest["public_inputs"]) == {"geography.txt", "totals.csv"}
    # It is the plan of the run, and the shares of the geounits are those of its spine, whatever they are called.
    run_of = json.loads((place / "out" / "manifest.json").read_text())
    plans = [told["plan"] for told in (manifest, run_of)]
    by_name = [{m["name"]: m for m in plan["measurements"]} for plan in plans]
    assert by_name[0] == by_name[1]
    assert plans[0]["totals"] == plans[1]["totals"]
    named = [{tuple(plan["measurements"][i]["name"] for i in path) for path in plan["paths"]} for plan in plans]
    assert named[0] == named[1]
    assert shares_of(place / "again") == shares_of(place / "out")
    assert any(bypassed == "true" for *_, bypassed in shares_of(place / "again"))
    assert manifest["status"] == "NOT FOR RELEASE"  # the noise was made from a seed


@pytest.mark.parametrize("fmt", ["csv", pytest.param("parquet", marks=pytest.mark.thorough)])
@pytest.mark.thorough
def test_what_is_made_of_files_is_a_whole_release(made: tuple[Path, World], tmp_path: Path, fmt: str) -> None:
    place, world = made
    areas, names = tmp_path / "areas.csv", tmp_path / "names.csv"
    areas.write_text("block,zone\n" + "".join(f"{block},{block[-1]}\n" for block in world.blocks))
    names.write_text("kind,code,name\nzone,0,The first\n")
    options = [
        "--areas",
        str(areas),
        "--names",
        str(names),
        "--confidence",
        "0.8",
        "--no-microdata",
    ]
    assert estimate(place, *options, "--intervals", "none", "--format", fmt, out=f"whole {fmt}") == 0
    release = place / f"whole {fmt}"
    assert not (release / "microdata.csv").exists()
    assert (release / "tabulation" / f"zone.{fmt}").exists()
    assert "The first" in (release / "areas" / "names.csv").read_text()
    manifest = json.loads((release / "manifest.json").read_text())
    assert manifest["plan"]["confidence"] == 0.8
    assert set(manifest["public_inputs"]) == {"geography.txt", "areas/areas.csv", "areas/names.csv"}
    assert main(["check", str(release)]) == 0
    assert main(["audit", "certificate", str(release), str(tmp_path / "certificate")]) == 0
    certificate = json.loads((tmp_path / "certificate" / "certificate.json").read_text())
    assert certificate["guarantee"][0]["promised"]["rho"] == "2"
    assert main(["report", str(release), str(tmp_path / "page.html")]) == 0
    assert '"madeOf":"US_example"' in (tmp_path / "page.html").read_text()


def test_areas_need_the_reference_file_that_they_go_with(
    made: tuple[Path, World], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    place, _ = made
    (tmp_path / "areas.csv").write_text("block,zone\n")
    options = [str(place / "nmf"), str(tmp_path / "out"), "--areas", str(tmp_path / "areas.csv")]
    assert main(["topdown", "estimate", *options]) == 2
    assert "give that by --geography" in capsys.readouterr().err


@pytest.mark.parametrize("name", ["by files", pytest.param("out", marks=pytest.mark.thorough)])
@pytest.mark.thorough
def test_intervals_and_districts_take_the_files_as_they_take_the_measurements_of_the_run(
    made: tuple[Path, World], tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    place, world = made
    totals = totals_of(world, tmp_path / "totals.csv")
    # The same seed draws the same, whichever layout it is written in.
    data = [str(place / "config.json"), str(place / "data"), str(tmp_path / "out"), "--seed", "3"]
    assert main(["topdown", "run", *data, "--noisy-measurements", str(tmp_path / "texts")]) == 0
    assert estimate(place, "--totals", str(totals), "--overwrite", out="by files") == 0
    blocks = sorted(world.blocks)
    plan = tmp_path / "plan.csv"
    plan.write_text("block,district\n" + "".join(f"{block},{i % 3}\n" for i, block in enumerate(blocks)))
    found = []
    capsys.readouterr()
    for release, noisy in ((tmp_path / "out", tmp_path / "texts"), (place / name, place / "nmf")):
        given = [str(release), "--noisy-measurements", str(noisy), "--json"]
        queries = ["sum(Block/a0*a2[a0=1])", "US/total", "sum(Tract/a1[a1=0]) % sum(Tract/total)"]
        assert main(["interval", *given, *(word for query in queries for word in ("--query", query))]) == 0
        assert main(["districts", given[0], str(plan), *given[1:]]) == 0
        told = json.loads("[" + capsys.readouterr().out.replace("\n}\n{", "\n},{") + "]")
        found.append([{key: value for key, value in one.items() if key not in {"release", "notes"}} for one in told])
    assert found[0] == found[1]
    other = json.loads((place / "by files" / "manifest.json").read_text())
    other["measurements"]["files"]["US.parquet/DPQuery/part-00000.parquet"] = "0" * 64
    (place / "by files" / "manifest.json").write_text(json.dumps(other))
    given = ["--noisy-measurements", str(place / "nmf"), "--query", "US/total"]
    assert main(["interval", str(place / "by files"), *given]) == 2
    assert "were changed, such as US.parquet" in capsys.readouterr().err


@pytest.fixture(scope="module")
def noisy(made: tuple[Path, World]) -> Path:
    """A release of the measurements alone, without the totals of states."""
    assert estimate(made[0], out="noisy") == 0
    return made[0] / "noisy"


@pytest.mark.thorough
def test_a_plan_that_the_files_do_not_tell_is_found(noisy: Path, tmp_path: Path) -> None:
    shutil.copytree(noisy, tmp_path / "changed")
    path = tmp_path / "changed" / "manifest.json"
    manifest = json.loads(path.read_text())
    manifest["measurements"]["loss"]["most"]["rho"] = "1"
    path.write_text(json.dumps(manifest))
    assert main(["check", str(tmp_path / "changed")]) == 2


@pytest.mark.slow
def test_without_totals_states_are_noisy_and_the_nation_exact(made: tuple[Path, World], noisy: Path) -> None:
    place, world = made
    assert main(["check", str(noisy)]) == 0
    with (noisy / "counts" / "State.csv").open() as file:
        rows = list(csv.reader(file, delimiter="|"))[1:]
    assert sum(int(row[-1]) for row in rows) == sum(world.counts.values())
    assert (noisy / "counts" / "State.csv").read_bytes() != (place / "out" / "counts" / "State.csv").read_bytes()


@pytest.mark.thorough
def test_full_information_and_its_intervals_are_those_of_the_run(tmp_path: Path, made: tuple[Path, World]) -> None:
    _, world = made
    run(tmp_path, world, persons(), "--estimator", "full-information")
    totals = totals_of(world, tmp_path / "totals.csv")
    assert estimate(tmp_path, "--totals", str(totals), "--estimator", "full-information") == 0
    agree(tmp_path)
    for path in sorted((tmp_path / "out" / "intervals").rglob("*.csv")):
        again = tmp_path / "again" / path.relative_to(tmp_path / "out")
        # Geounits have the names of their spine here, and their geocodes there.
        lines = (file.read_text(encoding="utf-8").splitlines() for file in (path, again))
        numbers = [[row[1:] for row in csv.reader(of_file, delimiter="|")] for of_file in lines]
        assert numbers[0] == numbers[1]


@pytest.mark.thorough
def test_a_geolevel_that_was_bypassed_as_a_whole_is_estimated_as_in_the_run(tmp_path: Path) -> None:
    """No file tells its queries: the configuration does, as it told them to the run."""
    shape = (8, 2, 2)
    world = make_world(30, shape, quarters=True)
    passes = {"estimate": [["total"], ["detailed"]], "round": [["detailed"]]}
    queries = {"total": "1/4", "detailed": "3/4"}
    document = configuration(
        shape,
        rho="2",
        constraints={"group_quarters": "a0"},
        queries=dict.fromkeys(LEVELS, queries),
        passes=dict.fromkeys(LEVELS, passes),
        spine={"kind": "optimized"},
    )
    run(tmp_path, world, document, "--estimator", "full-information")
    assert not (tmp_path / "nmf" / "US_example" / "County.parquet" / "DPQuery").exists()
    totals = totals_of(world, tmp_path / "totals.csv")
    assert estimate(tmp_path, "--totals", str(totals), "--estimator", "full-information") == 0
    agree(tmp_path, "counts/US.csv")
    ends = (tmp_path / "out", tmp_path / "again")
    files = [sorted(path.relative_to(out).as_posix() for path in (out / "intervals").rglob("*.csv")) for out in ends]
    assert files[0] == files[1]
    assert "County/detailed.csv" in " ".join(files[0])


@pytest.mark.thorough
def test_housing_units_keep_the_total_of_every_block(tmp_path: Path) -> None:
    world = make_world(5, (2,), states=1)
    document = configuration(
        (2,),
        rho="1",
        privacy_unit="housing unit",
        invariants={"Block": ["total"]},
        queries={level: {"detailed": "1"} for level in LEVELS},
        spine={"kind": "optimized", "classes": ["pme", "aian"]},
    )
    run(tmp_path, world, document)
    assert estimate(tmp_path) == 0
    agree(tmp_path)


@pytest.mark.thorough
def test_puerto_rico_begins_with_the_state(tmp_path: Path) -> None:
    world = make_world(6, PERSONS, quarters=True, states=1)
    moved = {block: "72" + block[2:] for block in world.blocks}
    world.blocks = list(moved.values())
    world.areas = [("9999", *area[1:]) for area in world.areas]
    world.counts = {(moved[block], cell): count for (block, cell), count in world.counts.items()}
    world.facilities = {moved[block]: there for block, there in world.facilities.items()}
    levels = LEVELS[1:]
    queries = {"total": "1/2", "detailed": "1/2"}
    document = persons() | {
        "shares": dict.fromkeys(levels, "1/5"),
        "queries": dict.fromkeys(levels, queries),
        "invariants": {"State": ["total"]},
        "passes": {},
    }
    run(tmp_path, world, document)
    assert (tmp_path / "nmf" / "PR_example" / "State.parquet" / "DPQuery" / "State=072").is_dir()
    assert not (tmp_path / "nmf" / "PR_example" / "US.parquet").exists()
    assert estimate(tmp_path) == 0
    agree(tmp_path)


@pytest.mark.thorough
def test_one_side_of_a_state_is_estimated_from_the_top(
    tmp_path: Path, made: tuple[Path, World], capsys: pytest.CaptureFixture[str]
) -> None:
    place, _ = made
    assert main(["topdown", "estimate", str(place / "nmf"), str(tmp_path / "out"), "--states", "02"]) == 2
    assert "cannot have the same groups" in capsys.readouterr().err
    assert main(["topdown", "estimate", str(place / "nmf"), str(tmp_path / "out"), "--states", "002"]) == 0
    assert main(["check", str(tmp_path / "out")]) == 0


@pytest.mark.thorough
def test_one_state_of_several(tmp_path: Path, made: tuple[Path, World]) -> None:
    place, world = made
    totals = totals_of(world, tmp_path / "totals.csv")
    options = ["--states", "02", "--totals", str(totals), "--estimator", "full-information"]
    geography = ["--geography", str(place / "data" / "geography.txt")]
    assert main(["topdown", "estimate", str(place / "nmf"), str(tmp_path / "out"), *options, *geography]) == 0
    assert main(["check", str(tmp_path / "out")]) == 0
    with (tmp_path / "out" / "tabulation" / "state.csv").open() as file:
        rows = list(csv.DictReader(file, delimiter="|"))
    assert {row["geounit"] for row in rows} == {"02"}
    expected = sum(count for (state, _), count in world.totals(2).items() if state == "02")
    assert sum(int(row["count"]) for row in rows) == expected
    manifest = json.loads((tmp_path / "out" / "manifest.json").read_text())
    # What was measured of the nation is not of this state.
    assert manifest["measurements"]["loss"]["most"]["rho_float"] < 2


def list_what_is_left(files: Path) -> None:
    manifest = json.loads((files / "manifest.json").read_text())
    manifest["tables"] = {name: told for name, told in manifest["tables"].items() if (files / name).exists()}
    (files / "manifest.json").write_text(json.dumps(manifest))
    for path in sorted(files.rglob("*"), reverse=True):
        if path.is_dir() and not any(path.iterdir()):
            path.rmdir()


@pytest.mark.sampled(1)
@pytest.mark.parametrize(
    ("level", "kind", "words"),
    [
        ("County", "Constraint", "a partition is missing"),
        ("Block", "Constraint", "a partition is missing"),
        ("Block", "DPQuery", "has siblings and no measurement"),
    ],
)
@pytest.mark.slow
def test_a_missing_partition_is_refused(
    tmp_path: Path,
    made: tuple[Path, World],
    capsys: pytest.CaptureFixture[str],
    level: str,
    kind: str,
    words: str,
) -> None:
    place, _ = made
    shutil.copytree(place / "nmf", tmp_path / "nmf")
    shutil.rmtree(tmp_path / "nmf" / f"US_example/{level}.parquet/{kind}/State=002")
    list_what_is_left(tmp_path / "nmf")
    assert main(["topdown", "estimate", str(tmp_path / "nmf"), str(tmp_path / "out")]) == 2
    assert words in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


@pytest.mark.thorough
def test_a_missing_state_is_refused(
    tmp_path: Path, made: tuple[Path, World], capsys: pytest.CaptureFixture[str]
) -> None:
    """The nation has more facilities than what is left."""
    place, _ = made
    shutil.copytree(place / "nmf", tmp_path / "nmf")
    for path in list((tmp_path / "nmf").rglob("State=?02")):
        shutil.rmtree(path)
    list_what_is_left(tmp_path / "nmf")
    assert main(["topdown", "estimate", str(tmp_path / "nmf"), str(tmp_path / "out")]) == 2
    assert "other numbers of facilities than State" in capsys.readouterr().err
