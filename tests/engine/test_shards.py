"""What is found and counted in shards is what is found and counted in one piece: for every product."""

import shutil
from collections.abc import Iterable
from itertools import cycle
from pathlib import Path
from typing import Any, TypeVar

import duckdb
import pytest
from cef_maker import write_cef
from census_maker import seeded, write_csv, write_parquet
from crowded_census import crowded
from edited_homes import edited
from linked_homes import homes
from open_engines import ENGINES
from record_folders import by_area
from safetab_worlds import random_world, write_data, write_parameters
from sharded_worlds import TOPDOWN, WORLDS, damaged, made, phsafe, refused
from topdown_worlds import configuration, make_world, write_configuration, write_world

from yupana.confidential.request import RunRequest
from yupana.confidential.run import validate
from yupana.confidential.shards import census_edited_file
from yupana.confidential.shards.cut_records import count_by_area
from yupana.confidential.tabulate import count_groups, group_counts
from yupana.engine.engine import Engine
from yupana.engine.local import LocalEngine, open_processes
from yupana.interface.configured import setup
from yupana.topdown.descent import descend

pytestmark = pytest.mark.thorough

SHARDS = (1, 3, 8)
"""One of them for each case: what is found in shards does not depend on how many there are."""

Case = TypeVar("Case")
OTHERS = cycle(name for name in ENGINES if name != "local")


def on_engines(cases: Iterable[Case]) -> list[tuple[str, Case]]:
    """Each case on one engine in turn, beside this process."""
    return [(next(OTHERS), case) for case in cases]


@pytest.mark.parametrize(("session", "product"), on_engines([*WORLDS, *TOPDOWN]), indirect=["session"], scope="module")
def test_releases_are_the_same_on_every_engine(
    product: str, session: tuple[str, Engine], engine: Engine, tmp_path: Path
) -> None:
    del session
    worlds = {**WORLDS, **TOPDOWN}
    number = SHARDS[list(worlds).index(product) % 3]
    case, data = worlds[product](tmp_path, seeded(number))
    whole = made(case, data, tmp_path / "whole", None, None)
    assert made(case, data, tmp_path / "here", LocalEngine(tmp_path), number) == whole
    assert made(case, data, tmp_path / "shards", engine, number) == whole


_SHAPE = (3, 2, 2)


ESTIMATORS = [
    "zcdp topdown",
    "zcdp full-information",
    "zcdp posterior",
    "pure topdown",
    "pure full-information",
]


@pytest.mark.parametrize(("session", "made_by"), on_engines(ESTIMATORS), indirect=["session"], scope="module")
def test_an_estimator_makes_the_same_release(
    made_by: str,
    session: tuple[str, Engine],
    engine: Engine,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    del session
    mechanism, estimator = made_by.split()
    world = make_world(5, _SHAPE, quarters=True)
    for there in world.facilities.values():
        there[_SHAPE[0] :] = [0] * (8 - _SHAPE[0])
    data = write_world(world, tmp_path / "data", quarters=True)
    document = configuration(_SHAPE, rho="2", mechanism=mechanism)
    if mechanism == "pure":
        document["epsilon"] = document.pop("rho")
    case = setup("topdown", write_configuration(document, tmp_path / "config.json"))
    # What is drawn on demand is drawn by batch.
    monkeypatch.setattr(descend, "_VALUES_AT_ONCE", 60)
    monkeypatch.setattr(descend, "_UNITS_OF_A_RUN", 12)
    whole = made(case, data, tmp_path / "whole", None, None, estimator=estimator)
    for place, on in (("here", LocalEngine(tmp_path)), ("out", engine)):
        assert made(case, data, tmp_path / place, on, None, estimator=estimator) == whole


@pytest.mark.parametrize(("seed", "form"), list(enumerate(["csv", "text"] * 3)))
def test_the_same_is_found_in_a_census(seed: int, form: str, tmp_path: Path) -> None:
    random = seeded(seed)
    census = damaged(crowded(seed, random.choice([1, 5, 40]), breaks_rules=random.random() < 0.5), random)
    if form == "csv":
        write_csv(tmp_path / "data", census)
    else:
        write_parquet(tmp_path / "data", census, "text")
    case = phsafe(tmp_path, random, drops=random.random() < 0.3)
    whole = refused(case, tmp_path / "data", None, None)
    (tmp_path / "parcels").mkdir()
    assert refused(case, tmp_path / "data", LocalEngine(tmp_path / "parcels"), SHARDS[seed % 3]) == whole


@pytest.mark.parametrize("product", ["safetab-p", "safetab-h"])
@pytest.mark.parametrize("seed", range(3))
def test_the_same_is_found_in_detailed_records(seed: int, product: str, tmp_path: Path) -> None:
    random = seeded(seed)
    of = random_world(random, noise="some")
    for records in (of.persons, of.households):
        for _ in range(random.randint(0, 6)):
            place = random.randrange(len(records))
            column = random.choice(records[place]._fields)
            records[place] = records[place]._replace(**{column: random.choice(["", "x", "9999", "0", "Null"])})  # type: ignore[call-overload]
    parameters = write_parameters(tmp_path / "parameters", of)
    data, case = write_data(tmp_path / "data", of), setup(product, parameters)
    whole = refused(case, data, None, None)
    (tmp_path / "parcels").mkdir()
    assert refused(case, data, LocalEngine(tmp_path / "parcels"), SHARDS[seed]) == whole


@pytest.mark.parametrize("folders", [("", "", ""), ("people", "homes", "places")])
def test_the_edited_file_is_counted_state_by_state(
    folders: tuple[str, str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_cef(tmp_path / "data", crowded(2, 30), folders=folders)
    if folders[0]:
        keys = "".join(f"{kind}_dir = {name}\n" for kind, name in zip(("per", "unit", "grfc"), folders, strict=True))
        (tmp_path / "data" / "cef_config.ini").write_text(f"[paths]\n{keys}")
    case = phsafe(tmp_path, seeded(2))
    whole = made(case, tmp_path / "data", tmp_path / "whole", None, None)
    # A mark of ours in a folder of a user says nothing.
    (tmp_path / "data" / ".stored.shard").write_text("none")
    by_state = []

    def note(*asked: Any) -> Any:  # noqa: ANN401
        by_state.append(count_by_area(*asked))
        return by_state[-1]

    monkeypatch.setattr(census_edited_file, "count_by_area", note)
    for shards in (2, None):
        assert made(case, tmp_path / "data", tmp_path / "out", LocalEngine(tmp_path), shards) == whole
    assert len(by_state) == 2
    assert None not in by_state


EDITED = ("phsafe", "safetab-p", "safetab-h")


@pytest.mark.parametrize(("session", "product"), on_engines(EDITED), indirect=["session"], scope="module")
def test_the_edited_file_makes_the_same_release_on_every_engine(
    product: str, session: tuple[str, Engine], engine: Engine, tmp_path: Path
) -> None:
    del session
    if product == "phsafe":
        write_cef(tmp_path / "data", crowded(4, 40))
        case, data = phsafe(tmp_path, seeded(4)), tmp_path / "data"
    else:
        case, data = edited(product, tmp_path, seeded(21))
    whole = made(case, data, tmp_path / "whole", None, None)
    for place, on in (("here", LocalEngine(tmp_path)), ("out", engine)):
        assert made(case, data, tmp_path / place, on, None) == whole


SPOILED: dict[str, tuple[str, int, str]] = {
    "a line too short": ("CEF20_PER_{}.txt", 90, ""),
    "a value of none": ("CEF20_UNIT_{}.txt", 25, "9"),
    "a unit of another state": ("CEF20_UNIT_{}.txt", 1, "{unit}"),
    "a person of another state's unit": ("CEF20_PER_{}.txt", 1, "{unit}"),
    "a block of another state": ("CEF20_UNIT_{}.txt", 37, "{unit:0>22}"),
    "no such block": ("CEF20_UNIT_{}.txt", 37, "none"),
}


FAULTS = (*SPOILED, "a block that is there twice", "no header", "a file gone", "a file more", "no regular file")


@pytest.mark.parametrize("fault", FAULTS)
def test_what_is_wrong_with_an_edited_file_is_told_as_in_one_piece(fault: str, tmp_path: Path) -> None:
    """Also what only files of two states together show."""
    data = tmp_path / "data"
    write_cef(data, crowded(3, 30))
    one, other, *_ = sorted(path.stem[-2:] for path in data.glob("CEF20_UNIT_*"))
    unit = (data / f"CEF20_UNIT_{other}.txt").read_text()[1:10]
    if fault in SPOILED:
        name, start, text = SPOILED[fault]
        path, text = data / name.format(one), text.format(unit=unit)
        first, rest = path.read_text().split("\n", 1)
        end = start + len(text) if text else None
        path.write_text(f"{first[:start]}{text}{first[end:] if end else ''}\n{rest}")
    elif fault == "a file gone":
        (data / f"CEF20_PER_{one}.txt").unlink()
    elif fault == "no regular file":
        (data / f"CEF20_PER_{one}.txt").unlink()
        (data / f"CEF20_PER_{one}.txt").symlink_to("nowhere")
        (data / f"CEF20_UNIT_{other}.txt").unlink()
        (data / f"CEF20_UNIT_{other}.txt").mkdir()
    elif fault == "a file more":
        (data / "grfc_tab20_99.txt").write_text((data / f"grfc_tab20_{one}.txt").read_text())
    else:
        place = data / f"grfc_tab20_{one}.txt"
        header, line, *rest = place.read_text().splitlines()
        again = (data / f"grfc_tab20_{other}.txt").read_text().splitlines()[1]
        lines = [line, *rest] if fault == "no header" else [header, line, *rest, again]
        place.write_text("\n".join(lines) + "\n")
    case = phsafe(tmp_path, seeded(3))
    whole = refused(case, data, None, None)
    parcels = tmp_path / "parcels"
    parcels.mkdir()
    assert refused(case, data, LocalEngine(parcels), 2) == whole
    assert whole


def test_many_files_that_break_a_rule_are_told_as_in_one_piece(tmp_path: Path) -> None:
    """For the first twenty there is room, of all shards together."""
    write_csv(tmp_path / "census", crowded(3, 200))
    head, *lines = (tmp_path / "census" / "persons.csv").read_text().splitlines()
    shutil.copytree(tmp_path / "census", tmp_path / "data", ignore=shutil.ignore_patterns("persons*"))
    folder = tmp_path / "data" / "persons"
    folder.mkdir()
    age = head.split(",").index("QAGE")
    with duckdb.connect() as db:
        for part in range(30):
            rows = [line.split(",") for line in lines[part::30]]
            for row in rows[: part % 4]:
                row[age] = "900"
            values = ", ".join(str(tuple(row)) for row in rows)
            names = head
            target = folder / f"part-{part:02d}.parquet"
            db.execute(f"COPY (SELECT * FROM (VALUES {values}) t({names})) TO '{target}' (FORMAT parquet)")
    case = phsafe(tmp_path, seeded(1))
    whole = refused(case, tmp_path / "data", None, None)
    assert any("more files from persons/part-" in line for line in whole)
    (tmp_path / "parcels").mkdir()
    assert refused(case, tmp_path / "data", LocalEngine(tmp_path / "parcels"), 3) == whole


def test_a_key_that_is_there_twice_is_found_though_shards_are_cut_by_another(
    session: tuple[str, Engine], engine: Engine, tmp_path: Path
) -> None:
    del session
    case, data = homes(tmp_path, twice=(201, 250, 390))
    whole = refused(case, data, None, None)
    assert any("pid occurs twice; 6 records" in line for line in whole)
    assert refused(case, data, engine, 3) == whole


def test_criteria_are_tested_on_what_limits_leave_out_in_shards_too(tmp_path: Path) -> None:
    case, data = homes(tmp_path)
    whole = made(case, data, tmp_path / "whole", None, None)
    (tmp_path / "parcels").mkdir()
    assert made(case, data, tmp_path / "shards", LocalEngine(tmp_path / "parcels"), 3) == whole


def test_a_worker_in_another_folder_finds_records_by_a_relative_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_csv(tmp_path / "data", crowded(2, 30))
    case = phsafe(tmp_path, seeded(2))
    whole = made(case, tmp_path / "data", tmp_path / "whole", None, None)
    (tmp_path / "parcels").mkdir()
    with open_processes(tmp_path / "parcels", 2) as elsewhere:
        monkeypatch.chdir(tmp_path)
        assert made(case, Path("data"), tmp_path / "out", elsewhere, 3) == whole


@pytest.mark.parametrize("fault", ["value", "link", "twice", "none"])
def test_the_same_is_found_in_what_topdown_counts_by_a_description(fault: str, tmp_path: Path) -> None:
    case, data = TOPDOWN["described"](tmp_path, seeded(5))
    name, row = {
        "value": ("persons.csv", "3,SECRET"),
        "link": ("persons.csv", "SECRET,1"),
        "twice": ("homes.csv", "3,c1,o"),
        "none": ("homes.csv", ",c1,o"),
    }[fault]
    with (data / name).open("a") as file:
        file.write(row + "\n")
    whole = refused(case, data, None, None)
    assert whole
    assert "SECRET" not in str(whole)
    (tmp_path / "parcels").mkdir()
    assert refused(case, data, LocalEngine(tmp_path / "parcels"), 3) == whole


@pytest.mark.parametrize("product", [*WORLDS, "persons", "described"])
def test_progress_tells_how_many_shards_are_counted(product: str, tmp_path: Path) -> None:
    case, data = {**WORLDS, **TOPDOWN}[product](tmp_path, seeded(1))
    (tmp_path / "parcels").mkdir()
    seen: list[tuple[str, int, int]] = []
    request = RunRequest(engine=LocalEngine(tmp_path / "parcels"), shards=3, progress=lambda *step: seen.append(step))
    validate(case.product, case.config, data, request)
    assert [step for step in seen if step[0] == "counting shards"] == [
        ("counting shards", done, 3) for done in range(4)
    ]


def test_progress_tells_how_many_areas_are_counted(tmp_path: Path) -> None:
    write_parquet(tmp_path / "data", crowded(3, 40), "text")
    data = by_area(tmp_path / "data", tmp_path / "folders")
    (tmp_path / "parcels").mkdir()
    seen: list[tuple[str, int, int]] = []
    case = phsafe(tmp_path, seeded(3))
    request = RunRequest(engine=LocalEngine(tmp_path / "parcels"), progress=lambda *step: seen.append(step))
    validate(case.product, case.config, data, request)
    areas = len({path.parent.name for path in data.rglob("*=*/*")})
    assert seen == [("counting areas", done, areas) for done in range(areas + 1)]


@pytest.mark.parametrize("product", ["safetab-p", "safetab-h", "tables"])
@pytest.mark.parametrize("seed", range(2))
def test_a_release_of_a_seed_is_the_same_however_few_records_are_counted_at_a_time(
    product: str, seed: int, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Areas are drawn for in stretches that records decide nothing about, in memory and from disk."""
    case, data = WORLDS[product](tmp_path, seeded(seed))
    monkeypatch.setattr(group_counts, "_GROUPS_AT_ONCE", 5)
    whole = made(case, data, tmp_path / "whole", None, None)
    monkeypatch.setattr(count_groups, "_ROWS_AT_ONCE", 7)
    monkeypatch.setattr(count_groups, "_SHARE_OF_GATHERED", 10**12)
    assert made(case, data, tmp_path / "some", None, None) == whole
    (tmp_path / "shards").mkdir()
    assert made(case, data, tmp_path / "sharded", LocalEngine(tmp_path / "shards"), 3) == whole
