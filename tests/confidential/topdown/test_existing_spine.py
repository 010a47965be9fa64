"""Runs on a spine that was built before: the same release as on one that the run builds, and what is refused."""

import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from topdown_worlds import LEVELS, configuration, make_world, write_configuration, write_world

from yupana.cli.main import main
from yupana.confidential.topdown import counter as run_module
from yupana.errors import InputError
from yupana.geography.spine_files import read_given
from yupana.release.tables import checksum

GROUPED = ("US", "State", "County", "Tract_Group", "Tract", "Block_Group", "Block")
SHARES = ("1/20", "3/20", "1/10", "1/10", "1/10", "3/10", "1/5")


def document(levels: tuple[str, ...] = GROUPED, **more: Any) -> dict[str, Any]:  # noqa: ANN401
    made = configuration(
        (3, 2),
        rho="1/2",
        shares=dict(zip(levels, SHARES, strict=True) if levels == GROUPED else [(level, "1/6") for level in levels]),
        queries={level: {"total": "1/4", "a0": "1/4", "detailed": "1/2"} for level in levels},
        spine={"kind": "optimized", "fanout_cutoff": 1},
    )
    return {**made, **more}


@pytest.fixture(scope="module")
def first(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """DATA, CONFIG and a spine built of them."""
    folder = tmp_path_factory.mktemp("first")
    write_world(make_world(5, (3, 2), quarters=True), folder / "data", quarters=True)
    write_configuration(document(), folder / "config.json")
    assert build(folder, "--shares", shares(GROUPED)) == 0
    return folder


@pytest.fixture
def place(first: Path, tmp_path: Path) -> Path:
    """A copy of them, to be changed."""
    return shutil.copytree(first, tmp_path / "place")


def shares(levels: tuple[str, ...]) -> str:
    return ",".join(f"{level}={share}" for level, share in zip(levels, SHARES, strict=True))


def build(place: Path, *options: str, levels: tuple[str, ...] = GROUPED, kind: str = "optimized") -> int:
    geography = str(place / "data/geography.txt")
    made = ["--kind", kind, "--fanout-cutoff", "1", "--levels", ",".join(levels), "--overwrite"]
    return main(["spine", "build", geography, str(place / "spine"), *made, *options])


def run(place: Path, spine: str, *options: str, out: str = "out") -> int:
    files = [str(place / name) for name in ("config.json", "data", out)]
    return main(["topdown", "run", *files, "--seed", "5", "--intervals", "none", "--spine", spine, *options])


def released(out: Path) -> tuple[dict[str, bytes], dict[str, Any]]:
    files = {path.relative_to(out).as_posix(): path.read_bytes() for path in out.rglob("*") if path.is_file()}
    return files, json.loads(files.pop("manifest.json"))


def refused(place: Path, capsys: pytest.CaptureFixture[str], *options: str) -> str:
    ledger = ["--ledger", str(place / "ledger.json"), "--dataset", "D"]
    assert run(place, str(place / "spine"), *ledger, *options) == 2
    assert not (place / "out").exists()
    assert not (place / "ledger.json").exists()
    return capsys.readouterr().err


@pytest.mark.sampled(1)
@pytest.mark.parametrize("mechanism", ["zcdp", "pure"])
@pytest.mark.slow
def test_a_spine_built_before_is_the_one_that_the_run_builds(place: Path, mechanism: str) -> None:
    if mechanism == "pure":
        made = {key: value for key, value in document().items() if key != "rho"}
        write_configuration({**made, "mechanism": "pure", "epsilon": "1/2"}, place / "config.json")
        assert build(place, "--shares", shares(GROUPED), "--mechanism", "pure") == 0
    assert run(place, "optimized", out="own") == 0
    assert run(place, str(place / "spine")) == 0
    (own, told), (given, of_given) = released(place / "own"), released(place / "out")
    assert sorted(own) == sorted(given)
    for name in ("blocks.csv", "geounits.csv"):
        assert (place / "spine" / name).read_bytes() == given[f"spine/{name}"] == own[f"spine/{name}"]
    names = ("blocks.csv", "geounits.csv", "manifest.json")
    files = {f"spine/{name}": checksum(place / "spine" / name) for name in names}
    assert of_given["public_inputs"] == told["public_inputs"] | files
    assert told["parameters"] == of_given["parameters"]
    assert "the spine and its shares, from a folder" in of_given["taken_as_public"]
    assert told["plan"]["totals"] == of_given["plan"]["totals"]
    assert measured(told) == measured(of_given)
    assert main(["check", str(place / "out")]) == 0


@pytest.mark.sampled(1)
@pytest.mark.parametrize("estimator", ["topdown", "full-information"])
@pytest.mark.parametrize("mechanism", ["zcdp", "pure"])
@pytest.mark.slow
def test_exact_counts_lie_on_the_spine_of_the_release(place: Path, mechanism: str, estimator: str) -> None:
    made = {"mechanism": mechanism, "epsilon" if mechanism == "pure" else "rho": "1/2"}
    before = document()
    del before["rho"]
    # Two geolevels that ask alike, and others that do not.
    queries = {**before["queries"], "Block": {"total": "1/2", "detailed": "1/2"}}
    write_configuration({**before, **made, "queries": queries}, place / "config.json")
    assert run(place, "optimized", "--estimator", estimator) == 0
    old = [str(place / name) for name in ("out/manifest.json", "data", "truth")]
    assert main(["topdown", "exact", *old]) == 0
    found, release = released(place / "truth")[0], released(place / "out")[0]
    for name in ("spine/blocks.csv", "spine/geounits.csv"):
        assert found[name] == release[name]
    if estimator == "topdown":
        assert build(place, "--shares", shares(GROUPED), "--mechanism", mechanism) == 0
        data = [str(place / name) for name in ("config.json", "data", "given")]
        assert main(["topdown", "exact", *data, "--spine", str(place / "spine")]) == 0


def measured(manifest: dict[str, Any]) -> dict[str, str]:
    return {m["name"]: m["rho"] if "rho" in m else m["epsilon"] for m in manifest["plan"]["measurements"]}


@pytest.mark.thorough
def test_the_shares_are_those_of_the_spine(place: Path) -> None:
    assert build(place) == 0  # the same share for every geolevel
    assert run(place, str(place / "spine")) == 0
    manifest = released(place / "out")[1]
    assert manifest["plan"]["totals"]["rho"] == "1/2"
    own = {name: budget for name, budget in measured(manifest).items() if " at share " not in name}
    assert {budget for name, budget in own.items() if name.endswith(" total")} == {"1/56"}


@pytest.mark.thorough
def test_an_accuracy_report_can_be_made_on_it(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    files = [str(place / name) for name in ("config.json", "data")]
    assert main(["topdown", "accuracy", *files, "--trials", "1", "--spine", str(place / "spine"), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["trials"] == 1


def change(path: Path, edit: Callable[[list[str]], list[str]], *, told: bool = True) -> None:
    """Change the lines of a file of a spine; if `told`, so does its checksum in the manifest."""
    path.write_text("\n".join(edit(path.read_text().splitlines())) + "\n")
    if told:
        manifest = json.loads((path.parent / "manifest.json").read_text())
        manifest["tables"][path.name]["sha256"] = checksum(path)
        (path.parent / "manifest.json").write_text(json.dumps(manifest))


def columns(lines: list[str], level: str, column: int, value: Callable[[str], str]) -> list[str]:
    """Another value in the first row of a geolevel."""
    at = next(i for i, line in enumerate(lines) if line.startswith(f"{level}|"))
    fields = lines[at].split("|")
    fields[column] = value(fields[column])
    return [*lines[:at], "|".join(fields), *lines[at + 1 :]]


@pytest.mark.slow
def test_a_file_that_was_changed_is_refused(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    change(place / "spine/geounits.csv", lambda lines: [*lines, ""], told=False)
    assert "geounits.csv was changed after it was written" in refused(place, capsys)


@pytest.mark.parametrize("name", ["blocks.csv", "geounits.csv"])
@pytest.mark.slow
def test_a_file_without_a_checksum_is_refused(place: Path, name: str, capsys: pytest.CaptureFixture[str]) -> None:
    manifest = json.loads((place / "spine/manifest.json").read_text())
    del manifest["tables"][name]
    (place / "spine/manifest.json").write_text(json.dumps(manifest))
    assert f"{name} is not in the manifest" in refused(place, capsys)


@pytest.mark.parametrize(
    ("edit", "message"),
    [
        (lambda lines: columns(lines, "Block", 4, lambda _: "1/100000000000000"), "shares from the root to the blocks"),
        (lambda lines: columns(lines, "Block", 4, lambda _: "-1/6"), "is no share; shares are fractions, 0 or more"),
        (lambda lines: columns(lines, "Block", 4, lambda _: "1e999999999"), "is no share"),
        (lambda lines: columns(lines, "County", 2, lambda _: "102"), "column parent: blocks.csv puts this geounit"),
        (lambda lines: columns(lines, "County", 3, lambda n: str(int(n) + 1)), "gives this geounit of County another"),
        (lambda lines: columns(lines, "County", 5, lambda _: "maybe"), "neither true nor false"),
        (lambda lines: columns(lines, "State", 5, lambda _: "true"), "a geounit of State gave up its share and has"),
        (lambda lines: columns(lines, "County", 1, lambda n: n + "9"), "the geounits of County are not those of"),
        (lambda lines: [*lines, "Street|1|2|0|0|false"], "there are geolevels that blocks.csv does not have"),
        (lambda lines: lines[:-1], "the geounits of Block are not those of blocks.csv"),
    ],
)
@pytest.mark.thorough
def test_units_that_do_not_fit_are_refused(place: Path, edit: Callable[[list[str]], list[str]], message: str) -> None:
    change(place / "spine/geounits.csv", edit)
    with pytest.raises(InputError, match=message):
        read_given(place / "spine")


def test_units_that_do_not_nest_are_refused(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def edit(lines: list[str]) -> list[str]:
        # The last block keeps its block group and gets the tract of the first.
        first, last = lines[1].split("|"), lines[-1].split("|")
        return [*lines[:-1], "|".join([*last[:5], first[5], *last[6:]])]

    change(place / "spine/blocks.csv", edit)
    assert "a geounit is missing or lies in two units of the level above" in refused(place, capsys)


def test_another_mechanism_or_other_geolevels_are_refused(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert build(place, "--mechanism", "pure") == 0
    assert "the spine was built for mechanism 'pure', and the configuration has 'zcdp'" in refused(place, capsys)
    assert build(place, levels=LEVELS) == 0
    assert "and the configuration US, State, County, Tract_Group, Tract" in refused(place, capsys)


@pytest.mark.thorough
def test_other_blocks_are_refused(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    listed = str(place / "data/group_quarters.csv")
    assert build(place, "--blocks", listed, "--live") == 0
    message = refused(place, capsys)
    assert "blocks of the run are not on the spine, such as " in message
    assert "spine.live is false in the configuration" in message
    write_configuration(document(spine={"kind": "conventional", "live": True}), place / "config.json")
    lines = (place / "data/group_quarters.csv").read_text().splitlines()
    empty = sum(not any(map(int, line.split("|")[1:])) for line in lines[1:])
    assert empty
    assert build(place) == 0
    assert f"{empty:,} blocks of the spine are not those of the run, such as " in refused(place, capsys)


@pytest.mark.thorough
def test_shares_that_measure_nothing_or_too_little_are_refused(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    made = document(shares=dict(zip(GROUPED, ("1/4", "1/4", "1/4", "0", "1/8", "1/16", "1/16"), strict=True)))
    made["spine"] = {"kind": "conventional"}
    del made["queries"]["Tract_Group"]
    write_configuration(made, place / "config.json")
    assert build(place, kind="conventional") == 0
    assert "its geounits of Tract_Group have shares, and queries.Tract_Group measures nothing" in refused(place, capsys)
    write_configuration(document(rho="1e-11"), place / "config.json")
    assert (
        build(place, "--shares", "us=1/10000,state=9999/10000,county=0,tractgroup=0,tract=0,blockgroup=0,block=0") == 0
    )
    assert "a geounit of US has the share 1/10000, which gives a query less than 1e-15" in refused(place, capsys)


@pytest.mark.thorough
def test_shares_may_be_any_that_sum_to_one_along_every_path(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert build(place, kind="conventional") == 0

    def moved(lines: list[str]) -> list[str]:
        # One state gives all of its share to its counties.
        rows = [line.split("|") for line in lines]
        for row in rows:
            if row[:2] == ["State", "01"]:
                row[4] = "0"
            if row[0] == "County" and row[2] == "01":
                row[4] = "2/7"
        return ["|".join(row) for row in rows]

    change(place / "spine/geounits.csv", moved)
    assert run(place, str(place / "spine")) == 0
    manifest = released(place / "out")[1]
    assert manifest["plan"]["totals"]["rho"] == manifest["ledger"]["spent"] == "1/2"
    assert measured(manifest)["County total at share 2/7"] == "1/28"
    shutil.rmtree(place / "out")
    write_configuration(document(rho="inf"), place / "config.json")
    capsys.readouterr()
    files = [str(place / name) for name in ("config.json", "data", "out")]
    assert main(["topdown", "run", *files, "--spine", str(place / "spine")]) == 2
    assert "a geounit of State that has siblings has no share" in capsys.readouterr().err


@pytest.mark.slow
def test_the_ledger_is_charged_with_all_that_is_measured(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    made = document(shares=dict(zip(GROUPED, ("1/4", "1/4", "1/4", "0", "1/8", "1/16", "1/16"), strict=True)))
    made["spine"] = {"kind": "conventional"}
    del made["queries"]["Tract_Group"]
    write_configuration(made, place / "config.json")
    assert build(place, kind="conventional") == 0

    def moved(lines: list[str]) -> list[str]:
        # No tract group has a share, though the geolevel began with one.
        shares = {"Tract_Group": "0", "Tract": "2/7"}
        return ["|".join([*row[:4], shares.get(row[0], row[4]), row[5]]) for row in (line.split("|") for line in lines)]

    change(place / "spine/geounits.csv", moved)
    assert "its geounits of Tract_Group have shares" in refused(place, capsys)


@pytest.mark.thorough
def test_full_information_refuses_shares_that_went_to_other_queries(
    place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    estimator = ("--estimator", "full-information")
    assert run(place, str(place / "spine"), *estimator, out="alike") == 0
    made = document()
    made["queries"]["Block"] = {"detailed": "1"}
    write_configuration(made, place / "config.json")
    capsys.readouterr()
    assert "units of Block gave their shares to Block_Group, which asks other queries" in refused(
        place, capsys, *estimator
    )


def test_what_is_no_spine_is_refused(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(place, "optimised") == 2
    assert "optimised does not exist; as spine name one of conventional, aian," in capsys.readouterr().err
    assert run(place, str(place / "data")) == 2
    assert "has no manifest.json" in capsys.readouterr().err
    manifest = json.loads((place / "spine/manifest.json").read_text())
    for key, value in (("kind", "straight"), ("shares", {"US": "1e999999999"}), ("mechanism", "gauss")):
        changed = {**manifest, "settings": {**manifest["settings"], key: value}}
        (place / "spine/manifest.json").write_text(json.dumps(changed))
        assert "does not hold the settings of a spine" in refused(place, capsys)


@pytest.mark.thorough
def test_another_tool_may_write_units_in_any_order_but_calls_them_by_digits(
    place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    change(place / "spine/geounits.csv", lambda lines: [lines[0], *reversed(lines[1:])])
    change(place / "spine/blocks.csv", lambda lines: [lines[0], *reversed(lines[1:])])
    assert run(place, str(place / "spine"), out="turned") == 0
    assert main(["check", str(place / "turned")]) == 0
    for name in ("blocks.csv", "geounits.csv"):
        change(place / "spine" / name, lambda lines: [line.replace("|001", "|A001") for line in lines])
    assert "call geounits by digits, as many for every unit of a geolevel" in refused(place, capsys)


@pytest.mark.thorough
def test_a_run_is_resumed_on_the_same_spine_alone(
    place: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copytree(place / "spine", place / "copy")

    def killed(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(run_module, "write_outputs", killed)
        assert run(place, str(place / "spine")) == 2
    capsys.readouterr()
    assert run(place, "optimized", "--resume") == 2
    assert "changed: " in capsys.readouterr().err
    change(place / "copy/geounits.csv", lambda lines: [lines[0], *reversed(lines[1:])])
    assert run(place, str(place / "copy"), "--resume") == 2
    assert re.search(r"changed: .*\bspine\. ", capsys.readouterr().err)
    assert run(place, str(place / "spine"), "--resume") == 0


@pytest.mark.sampled(1)
@pytest.mark.parametrize(
    ("kind", "middle"),
    [("conventional", ("Tract",)), ("optimized", ("Tract_Group", "Tract"))],
)
@pytest.mark.slow
def test_a_county_alone_may_be_the_root(tmp_path: Path, kind: str, middle: tuple[str, ...]) -> None:
    world = make_world(9, (3, 2), states=1)
    world.blocks = [block for block in world.blocks if block[2:5] == "001"]
    world.areas = [("9999", cousub, place) for _, cousub, place in world.areas[: len(world.blocks)]]
    world.counts = {key: count for key, count in world.counts.items() if key[0] in world.blocks}
    write_world(world, tmp_path / "data")
    levels = ("County", *middle, "Block_Group", "Block")
    made = configuration(
        (3, 2),
        rho="1/2",
        invariants={"County": ["total"]},
        shares=dict.fromkeys(levels, f"1/{len(levels)}"),
        queries={level: {"total": "1/4", "detailed": "3/4"} for level in levels},
    )
    write_configuration(made, tmp_path / "config.json")
    assert build(tmp_path, levels=levels, kind=kind) == 0
    assert main(["check", str(tmp_path / "spine")]) == 0
    assert run(tmp_path, str(tmp_path / "spine")) == 0
    lines = (tmp_path / "out/counts/County.csv").read_text().splitlines()[1:]
    assert sum(int(line.split("|")[-1]) for line in lines) == sum(world.counts.values())
