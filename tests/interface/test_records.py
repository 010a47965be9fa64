"""Records given as frames: the same releases as of files, and refusals in the same words."""

import pickle
import shutil
import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from safetab_worlds import random_world, seeded, write_data, write_parameters
from text_frames import texts
from topdown_worlds import configuration, make_world, write_world

import yupana
from yupana.products.phsafe.configuration import production_config

STATES = ("10", "44")
FILES = ("persons", "units", "geo")


def phsafe() -> dict[str, Any]:
    """The plan of 2020 with few of its tables."""
    whole = production_config()
    budgets = {
        table: levels if table in {"PH1_num", "PH2"} else dict.fromkeys(levels, 0)
        for table, levels in whole["privacy_budget"].items()
    }
    return {**whole, "privacy_budget": budgets, "state_filter": list(STATES)}


def tables(release: yupana.Release) -> dict[str, bytes]:
    paths = [path for path in sorted(release.folder.rglob("*")) if path.is_file() and path.name != "manifest.json"]
    return {str(path.relative_to(release.folder)): path.read_bytes() for path in paths}


def told(release: yupana.Release) -> dict[str, Any]:
    return {key: value for key, value in release.manifest.items() if key not in {"created", "public_inputs"}}


def as_duckdb(frame: pl.DataFrame) -> duckdb.DuckDBPyRelation:
    database = duckdb.connect()
    database.register("given", frame)
    database.execute("CREATE TABLE kept AS FROM given")
    return database.sql("FROM kept")


LIBRARIES: dict[str, Callable[[pl.DataFrame], object]] = {
    "polars": lambda frame: frame,
    "pandas": pd.DataFrame.from_arrow,
    "pyarrow": pa.table,
    "duckdb": as_duckdb,
}


@pytest.mark.sampled(1)
@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.slow
def test_phsafe_makes_the_same_release_of_frames(
    library: str, census: Path, frames: dict[str, pl.DataFrame], tmp_path: Path
) -> None:
    of_files = yupana.run("phsafe", phsafe(), census, tmp_path / "files", seed=5)
    given: Any = {name: LIBRARIES[library](frame) for name, frame in frames.items()}
    of_frames = yupana.run("phsafe", phsafe(), given, tmp_path / "frames", seed=5, synthetic=True)
    assert tables(of_frames) == tables(of_files)
    assert told(of_frames) == told(of_files)


@pytest.mark.sampled(1)
@pytest.mark.parametrize("product", ["safetab-p", "safetab-h"])
@pytest.mark.slow
def test_safetab_makes_the_same_release_of_frames(product: str, tmp_path: Path) -> None:
    world = random_world(seeded(4), noise="some")
    parameters, data = write_parameters(tmp_path / "parameters", world), write_data(tmp_path / "data", world)
    of_files = yupana.run(product, parameters, data, tmp_path / "files", seed=5)
    given: Any = texts(data, *(path.stem for path in data.iterdir() if path.suffix))
    of_frames = yupana.run(product, parameters, given, tmp_path / "frames", seed=5, synthetic=True)
    assert tables(of_frames) == tables(of_files)


@pytest.mark.thorough
def test_topdown_makes_the_same_release_of_a_histogram(tmp_path: Path) -> None:
    data = write_world(make_world(2, (2, 3)), tmp_path / "data")
    document = configuration((2, 3), rho="1")
    of_files = yupana.run("topdown", document, data, tmp_path / "files", seed=5)
    given: Any = texts(data, "histogram", "geography")
    of_frames = yupana.run("topdown", document, given, tmp_path / "frames", seed=5, synthetic=True)
    assert tables(of_frames) == tables(of_files)


@pytest.mark.thorough
def test_topdown_makes_the_same_release_of_microdata(tmp_path: Path) -> None:
    folder = tmp_path / "census"
    yupana.synthesize(folder, 40, states=["44"], seed=1)
    of_files = yupana.exact("topdown", "pl94-2020-us", folder, tmp_path / "files")
    given: Any = {**texts(folder, *FILES, "group_quarters"), "geography": folder / "GRF-C.txt"}
    of_frames = yupana.exact("topdown", "pl94-2020-us", given, tmp_path / "frames", synthetic=True)
    assert tables(of_frames) == tables(of_files)


@pytest.mark.slow
def test_frames_are_real_records_unless_said_otherwise(frames: dict[str, pl.DataFrame], tmp_path: Path) -> None:
    words = "synthetic=True was not said, so the records may be real; refused because"
    with pytest.raises(yupana.ConfigError, match=words):
        yupana.run("phsafe", phsafe(), frames, tmp_path / "out", seed=5)
    with pytest.raises(yupana.ConfigError, match=words):
        yupana.exact("phsafe", phsafe(), frames, tmp_path / "out")
    with pytest.raises(yupana.ConfigError, match="synthetic=True was not said"):
        yupana.accuracy("phsafe", phsafe(), frames)
    assert not (tmp_path / "out").exists()
    assert yupana.run("phsafe", phsafe(), frames, tmp_path / "out").status == "noisy measurements under the plan"


@pytest.mark.slow
def test_broken_rules_of_frames_are_told_in_lines(frames: dict[str, pl.DataFrame], tmp_path: Path) -> None:
    given = {**frames, "persons": frames["persons"].with_columns(QAGE=pl.lit("117999"))}
    number = len(frames["persons"])
    words = rf"counts records\):\n  persons: domain: QAGE must be 0 to 115; {number:,} records; rows"
    with pytest.raises(yupana.InputError, match=words) as refused:
        yupana.run("phsafe", phsafe(), given, tmp_path / "out")
    assert "117999" not in str(refused.value)


BAD: dict[str, tuple[Callable[[pl.DataFrame], Any], str]] = {
    "missing": (lambda f: f.drop("TEN"), "units: columns_present: missing column TEN"),
    "doubled": (lambda f: pa.table(f).append_column("TEN", pa.array(f["TEN"].to_list())), "column TEN is there twice"),
    "real": (
        lambda f: f.with_columns(pl.col("TEN").cast(pl.Float64)),
        "column TEN has type DOUBLE; text or an integer",
    ),
    "dates": (lambda f: f.with_columns(TEN=pl.date(2020, 4, 1)), "column TEN has type DATE"),
    "no frame": (lambda f: f.rows(), r"data\['units'\] is a list, which has no __arrow_c_stream__"),
    "a value": (lambda f: f.with_columns(TEN=pl.lit("7")), "units: domain: TEN must be 0, 1, 2, 3, 4; 200 records"),
}


@pytest.mark.parametrize("what", BAD)
@pytest.mark.slow
def test_a_bad_frame_is_refused_by_its_name(what: str, frames: dict[str, pl.DataFrame], tmp_path: Path) -> None:
    change, words = BAD[what]
    given: Any = {**frames, "units": change(frames["units"])}
    with pytest.raises(yupana.InputError, match=words) as raised:
        yupana.run("phsafe", phsafe(), given, tmp_path / "out")
    assert not any(mafid in str(raised.value) for mafid in frames["units"]["MAFID"])
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
def test_findings_name_the_frames(frames: dict[str, pl.DataFrame]) -> None:
    found = yupana.validate(
        "phsafe", phsafe(), {**frames, "persons": frames["persons"].with_columns(QAGE=pl.lit("200"))}
    )
    assert [(one.file, one.count) for one in found if one.rule == "domain"] == [("persons", len(frames["persons"]))]


@pytest.mark.thorough
def test_a_listener_that_fails_ends_the_run_cleanly(frames: dict[str, pl.DataFrame], tmp_path: Path) -> None:
    def fails(step: yupana.Step) -> None:
        if step.stage == "writing the release":
            raise LookupError("enough")

    with pytest.raises(LookupError, match="enough"):
        yupana.run("phsafe", phsafe(), frames, tmp_path / "out", synthetic=True, progress=fails)
    # What was drawn is kept, and used when the run goes on.
    assert [path.name for path in tmp_path.iterdir()] == ["out.checkpoint"]
    with pytest.raises(yupana.ConfigError, match="--resume"):
        yupana.run("phsafe", phsafe(), frames, tmp_path / "out", synthetic=True)
    assert yupana.run("phsafe", phsafe(), frames, tmp_path / "out", synthetic=True, resume=True).wrong() == []


@pytest.mark.thorough
def test_of_two_runs_into_one_folder_one_is_refused(frames: dict[str, pl.DataFrame], tmp_path: Path) -> None:
    met, ended = threading.Barrier(2), list[object]()

    def waits(step: yupana.Step) -> None:
        if step.stage == "counting":
            met.wait(60)

    def run(listener: Callable[[yupana.Step], None] | None = None) -> None:
        try:
            ended.append(
                yupana.run("phsafe", phsafe(), frames, tmp_path / "out", synthetic=True, progress=listener or False)
            )
        except yupana.YupanaError as error:
            ended.append(error)

    first = threading.Thread(target=run, args=(waits,))
    first.start()
    met.wait(60)
    run()
    first.join()
    refused = [end for end in ended if isinstance(end, yupana.OutputError)]
    assert len(refused) == 1
    assert str(refused[0]).startswith("another run is writing") or "is not empty" in str(refused[0])
    assert yupana.open_release(tmp_path / "out").wrong() == []


@pytest.mark.slow
def test_a_table_is_not_pickled_and_says_that_its_file_is_gone(frames: dict[str, pl.DataFrame], tmp_path: Path) -> None:
    table = yupana.run("phsafe", phsafe(), frames, tmp_path / "out")["PH1_num"]
    with pytest.raises(TypeError, match="cannot be pickled"):
        pickle.dumps(table)
    shutil.rmtree(tmp_path / "out")
    with pytest.raises(yupana.InputError, match="no longer there"):
        pl.DataFrame(table)
    with pytest.raises(yupana.InputError, match="no longer there"):
        len(table)
    assert "no longer there" in repr(table)


@pytest.mark.slow
def test_a_run_is_charged_and_refused_beyond_its_limit(frames: dict[str, pl.DataFrame], tmp_path: Path) -> None:
    charged: dict[str, Any] = {"ledger": tmp_path / "ledger", "dataset": "made up", "limit": "3/10", "synthetic": True}
    yupana.run("phsafe", phsafe(), frames, tmp_path / "first", **charged)
    with pytest.raises(yupana.BudgetError):
        yupana.run("phsafe", phsafe(), frames, tmp_path / "second", **charged)
    assert not (tmp_path / "second").exists()


@pytest.mark.thorough
def test_a_manifest_repeats_its_release(census: Path, tmp_path: Path) -> None:
    first = yupana.run("phsafe", phsafe(), census, tmp_path / "first", seed=5, margins="bureau", format="parquet")
    again = yupana.run("phsafe", first.folder / "manifest.json", census, tmp_path / "again", seed=5)
    assert tables(again) == tables(first)
    assert again.plan == replace(first.measured, margins="bureau")


@pytest.mark.thorough
def test_columns_of_other_names_are_read_by_a_map(
    census: Path, frames: dict[str, pl.DataFrame], tmp_path: Path
) -> None:
    theirs = frames | {"persons": frames["persons"].rename({"RELSHIP": "rolle"})}
    names = {"persons": {"RELSHIP": "rolle"}}
    (tmp_path / "map.toml").write_text('[persons]\nRELSHIP = "rolle"\n')
    ours = tables(yupana.exact("phsafe", phsafe(), frames, tmp_path / "ours", synthetic=True))
    for number, columns in enumerate((names, tmp_path / "map.toml")):
        out = tmp_path / str(number)
        assert tables(yupana.exact("phsafe", phsafe(), theirs, out, synthetic=True, columns=columns)) == ours
    with pytest.raises(yupana.ConfigError, match=r"columns: persons: 'RELSHP' is no column.*RELSHIP"):
        yupana.validate("phsafe", phsafe(), census, columns={"persons": {"RELSHP": "rolle"}})


def test_values_take_the_place_of_the_configurations() -> None:
    whole = phsafe()
    changed = yupana.plan("phsafe", {**whole, "tau": {**whole["tau"], "PH2": 7}})
    assert yupana.plan("phsafe", whole, set={"tau.PH2": 7}) == changed
    read = yupana.PRODUCTS["phsafe"].read("s-dhc-2020-us")
    assert yupana.plan("phsafe", read, set={"tau.PH2": 7}) == yupana.plan(
        "phsafe", "s-dhc-2020-us", set=[("tau.PH2", 7)]
    )
    with pytest.raises(yupana.ConfigError, match="tau"):
        yupana.plan("phsafe", whole, set={"tau.PH2": 0})
    assert yupana.plan("topdown", "pl94-2020-us", renormalise=True) == yupana.plan("topdown", "pl94-2020-us")


@pytest.mark.parametrize(
    ("product", "asked", "words"),
    [
        ("phsafe", {"codes": "here"}, "phsafe takes no codes"),
        ("phsafe", {"renormalise": True}, "phsafe takes no renormalise"),
        ("safetab-p", {"spine": "aian"}, "safetab-p takes no spine"),
        ("topdown", {"spine": "nowhere"}, "nowhere does not exist; as spine name one of conventional"),
        ("topdown", {"margins": "wide"}, "margins: must be 'exact' or 'bureau'"),
        ("phsafe", {"set": 5}, "set: give a mapping"),
        ("phsafe", {"set": {7: 5}}, "set: 7 is no key"),
        ("phsafe", {"set": {"tau.": 5}}, "set: 'tau.' is no key"),
        (
            "phsafe",
            {"set": {"tau.PH2": object()}},
            r"tau\.PH2: cannot be written as JSON.*object",
        ),
        ("phsafe", {"set": {"nothing": 5}}, "nothing"),
    ],
)
def test_what_a_product_does_not_take_is_refused(product: str, asked: dict[str, Any], words: str) -> None:
    config = {"phsafe": "s-dhc-2020-us", "safetab-p": "nowhere", "topdown": "pl94-2020-us"}[product]
    with pytest.raises(yupana.ConfigError, match=words):
        yupana.plan(product, config, **asked)


@pytest.mark.thorough
def test_a_report_is_written_with_the_release(census: Path, tmp_path: Path) -> None:
    release = yupana.run("phsafe", phsafe(), census, tmp_path / "out", report=tmp_path / "page.html")
    assert (tmp_path / "page.html").read_text() == yupana.report(release, tmp_path / "again.html").read_text()
    with pytest.raises(yupana.OutputError):
        yupana.run("phsafe", phsafe(), census, tmp_path / "other", report=census / "page.html")
    assert not (tmp_path / "other").exists()


@pytest.mark.thorough
def test_what_was_observed_is_a_table_and_a_folder(frames: dict[str, pl.DataFrame], tmp_path: Path) -> None:
    seen = yupana.accuracy("phsafe", phsafe(), frames, tmp_path / "out", trials=2, synthetic=True, seed=1)
    written = yupana.open_release(tmp_path / "out")
    assert list(written["accuracy"].rows()) == list(seen.rows())
    assert len(seen) == len(seen.observed.rows) == pl.DataFrame(seen).height
    with pytest.raises(yupana.OutputError):
        yupana.accuracy("phsafe", phsafe(), frames, tmp_path / "out", synthetic=True)


@pytest.mark.thorough
def test_codes_are_shown_with_their_meaning(frames: dict[str, pl.DataFrame], tmp_path: Path) -> None:
    release = yupana.exact("phsafe", phsafe(), frames, tmp_path / "out", synthetic=True)
    plain, labelled = release["PH1_num"], release.labelled("PH1_num")
    assert set(plain.columns) < set(labelled.columns)
    codebook = release.codebook
    assert codebook is not None
    (fields,) = (r["schema"]["fields"] for r in codebook["resources"] if r["path"] == "PH1_num.csv")
    for field in fields:
        assert labelled[field["name"]] == plain[field["name"]]
        if "categories" in field:
            meaning = {str(one["value"]): one["label"] for one in field["categories"]}
            told = [meaning.get(str(code)) for code in plain[field["name"]]]
            assert labelled[f"{field['name']}_LABEL"] == told
            assert any(told)
    (release.folder / "datapackage.json").write_text("{}")
    with pytest.raises(yupana.OutputError, match=r"datapackage\.json was changed"):
        yupana.open_release(release.folder).labelled("PH1_num")
