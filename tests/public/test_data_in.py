"""Records given as frames: the same releases as of files, and refusals in the same words."""

import pickle
import re
import shutil
import threading
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, cast

import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from census_maker import random_census, write_csv
from census_maker import seeded as census_seed
from safetab_worlds import random_world, seeded, write_data, write_parameters
from topdown_worlds import configuration, make_world, write_world

import yupana
from yupana.products.phsafe.configuration import production_config

STATES = ("10", "44")
FILES = ("persons", "units", "geo")


@pytest.fixture(scope="module")
def census(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("made") / "census"
    write_csv(folder, random_census(census_seed(3), STATES, 200))
    return folder


@pytest.fixture(scope="module")
def frames(census: Path) -> dict[str, pl.DataFrame]:
    return texts(census, *FILES)


def phsafe() -> dict[str, Any]:
    return {**production_config(), "state_filter": list(STATES)}


def texts(folder: Path, *names: str) -> dict[str, pl.DataFrame]:
    found = {}
    for name in names:
        (path,) = folder.glob(f"{name}.*")
        separator = "|" if "|" in path.read_text().partition("\n")[0] else ","
        found[name] = pl.read_csv(path, separator=separator, infer_schema=False)
    return found


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


@pytest.mark.parametrize("library", LIBRARIES)
def test_phsafe_makes_the_same_release_of_frames(
    library: str, census: Path, frames: dict[str, pl.DataFrame], tmp_path: Path
) -> None:
    of_files = yupana.run("phsafe", phsafe(), census, tmp_path / "files", seed=5)
    given: Any = {name: LIBRARIES[library](frame) for name, frame in frames.items()}
    of_frames = yupana.run("phsafe", phsafe(), given, tmp_path / "frames", seed=5, synthetic=True)
    assert tables(of_frames) == tables(of_files)
    assert told(of_frames) == told(of_files)


@pytest.mark.parametrize("product", ["safetab-p", "safetab-h"])
def test_safetab_makes_the_same_release_of_frames(product: str, tmp_path: Path) -> None:
    world = random_world(seeded(4), noise="some")
    parameters, data = write_parameters(tmp_path / "parameters", world), write_data(tmp_path / "data", world)
    of_files = yupana.run(product, parameters, data, tmp_path / "files", seed=5)
    given: Any = texts(data, *(path.stem for path in data.iterdir() if path.suffix))
    of_frames = yupana.run(product, parameters, given, tmp_path / "frames", seed=5, synthetic=True)
    assert tables(of_frames) == tables(of_files)


def test_topdown_makes_the_same_release_of_a_histogram(tmp_path: Path) -> None:
    data = write_world(make_world(2, (2, 3)), tmp_path / "data")
    document = configuration((2, 3), rho="1")
    of_files = yupana.run("topdown", document, data, tmp_path / "files", seed=5)
    given: Any = texts(data, "histogram", "geography")
    of_frames = yupana.run("topdown", document, given, tmp_path / "frames", seed=5, synthetic=True)
    assert tables(of_frames) == tables(of_files)


def test_topdown_makes_the_same_release_of_microdata(tmp_path: Path) -> None:
    folder = tmp_path / "census"
    yupana.synthesize(folder, 40, states=["44"], seed=1)
    of_files = yupana.exact("topdown", "pl94-2020-us", folder, tmp_path / "files")
    given: Any = {**texts(folder, *FILES, "group_quarters"), "geography": folder / "GRF-C.txt"}
    of_frames = yupana.exact("topdown", "pl94-2020-us", given, tmp_path / "frames", synthetic=True)
    assert tables(of_frames) == tables(of_files)


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
def test_a_bad_frame_is_refused_by_its_name(what: str, frames: dict[str, pl.DataFrame], tmp_path: Path) -> None:
    change, words = BAD[what]
    given: Any = {**frames, "units": change(frames["units"])}
    with pytest.raises(yupana.InputError, match=words) as raised:
        yupana.run("phsafe", phsafe(), given, tmp_path / "out")
    assert not any(mafid in str(raised.value) for mafid in frames["units"]["MAFID"])
    assert list(tmp_path.iterdir()) == []


def test_findings_name_the_frames(frames: dict[str, pl.DataFrame]) -> None:
    found = yupana.validate(
        "phsafe", phsafe(), {**frames, "persons": frames["persons"].with_columns(QAGE=pl.lit("200"))}
    )
    assert [(one.file, one.count) for one in found if one.rule == "domain"] == [("persons", len(frames["persons"]))]


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


def test_what_is_asked_for_and_does_not_exist_is_named(frames: dict[str, pl.DataFrame], tmp_path: Path) -> None:
    with pytest.raises(yupana.ConfigError, match="there is no product 'phsaef'; did you mean phsafe"):
        yupana.run("phsaef", phsafe(), frames, tmp_path / "out")
    with pytest.raises(yupana.ConfigError, match="phsafe takes no spine"):
        yupana.run("phsafe", phsafe(), frames, tmp_path / "out", spine="optimized")
    with pytest.raises(yupana.ConfigError, match="a ledger needs both"):
        yupana.run("phsafe", phsafe(), frames, tmp_path / "out", dataset="2030")
    with pytest.raises(yupana.ConfigError, match="margins: must be 'exact' or 'bureau'"):
        yupana.plan("phsafe", phsafe(), margins="wide")  # type: ignore[arg-type]
    with pytest.raises(yupana.ConfigError, match="does not lie strictly between 0 and 1"):
        yupana.plan("phsafe", phsafe(), confidence=95)
    with pytest.raises(yupana.ConfigError, match=r"^config cannot be used:\n  key 'privacy_budget' is missing"):
        yupana.plan("phsafe", {"tau": {}})
    with pytest.raises(yupana.ConfigError, match="config is a list; give"):
        yupana.plan("phsafe", [])
    with pytest.raises(yupana.ConfigError, match="is no entry of this configuration; did you mean"):
        yupana.solve("phsafe", phsafe(), margins={"PH1_num/state": 10})
    with pytest.raises(yupana.OutputError, match="name the folder of a release"):
        yupana.open_release(tmp_path / "nothing")


STRANGE: tuple[Any, ...] = (5, 1.5, float("nan"), True, b"x", [1], {}, object(), "a\0b")
"""What is no path, whatever it is given for."""

REFUSED: dict[str, tuple[Any, ...]] = {
    "log": STRANGE,
    "report": STRANGE,
    "ledger": STRANGE,
    "memory": (0, -1, 1.5, float("nan"), float("inf"), True, "4GB", b"x", [1], object(), 10**30, 299_999_999),
    "dataset": (5, 1.5, b"x", [1], {}, object()),
    "unit": (5, b"x", "persons", object()),
    "household_cap": (1.5, "6", True, [1]),
}


@pytest.mark.parametrize("name", REFUSED)
def test_an_option_of_another_type_is_refused_by_its_name(name: str, census: Path, tmp_path: Path) -> None:
    common: dict[str, Any] = {"synthetic": True}
    if name in ("ledger", "dataset", "unit", "household_cap"):
        common |= {"ledger": tmp_path / "ledger.json", "dataset": "2030", "limit": 100}
    for value in REFUSED[name]:
        with pytest.raises(yupana.ConfigError, match=f"^{name}: "):
            yupana.run("phsafe", phsafe(), census, tmp_path / "out", **{**common, name: value})
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("value", STRANGE, ids=lambda value: type(value).__name__)
def test_a_folder_of_another_type_is_refused_by_its_name(value: Any, census: Path, tmp_path: Path) -> None:  # noqa: ANN401
    calls: dict[str, Callable[[], object]] = {
        "folder": lambda: yupana.open_release(value),
        "release": lambda: yupana.check(value),
        "out": lambda: yupana.run("phsafe", phsafe(), census, value),
        "targets": lambda: yupana.solve("phsafe", phsafe(), targets=value),
        "spine": lambda: yupana.plan("topdown", "pl94-2020-us", spine=value),
        "codes": lambda: yupana.plan("safetab-p", "ddhc-2020-us", codes=value),
        "individuals": lambda: yupana.attribute_loss("s-dhc-2020-us", value),
        "reference": lambda: yupana.build_spine(value, tmp_path / "spine"),
    }
    for name, call in calls.items():
        with pytest.raises(yupana.ConfigError, match=f"^{name}: "):
            call()
    assert list(tmp_path.iterdir()) == []


def _refusals(census: Path, out: Path) -> dict[str, Callable[[], object]]:
    """Calls that are refused, by how the refusal begins."""
    release = out / "release"
    run, solve, wrong = partial(yupana.run, "phsafe", phsafe()), partial(yupana.solve, "phsafe", phsafe()), cast(Any, 5)
    yupana.run("phsafe", phsafe(), census, release)
    no = cast(Any, "no")
    return {
        "synthetic: must be True or False": lambda: run(census, out / "o", synthetic=no),
        "overwrite: must be True or False": lambda: run(census, release, overwrite=no),
        "internal: must be True or False": lambda: yupana.exact("phsafe", phsafe(), census, out / "o", internal=no),
        "method: must be 'exact' or 'original'; did you": lambda: yupana.estimate(release, out / "o", method="orignal"),  # type: ignore[arg-type]
        "intervals: must be 'none' or": lambda: yupana.plan("topdown", "cook-2010", intervals="leastsquares"),
        "mode: must be": lambda: yupana.empirical_loss(release, release, mode="publised"),  # type: ignore[arg-type]
        "confidence: 95 does not lie": lambda: yupana.empirical_loss(release, release, confidence=95),
        "replicates: must be a whole number, zero": lambda: yupana.empirical_loss(release, release, replicates=-5),
        "product: must be a key": lambda: yupana.plan(wrong, phsafe()),
        "there is no product 'phsave'": lambda: yupana.PRODUCTS["phsave"],
        "targets cannot be used:\n  margins: names no entry": lambda: solve(margins={}),
        "targets cannot be used:\n  total: must be": lambda: solve(total=10**400, sizes={"PH2/usa_*": 3}),
        "targets cannot be used:\n  decimals: must be": lambda: solve(margins={"PH2/usa_*": 9}, decimals=10**9),
        "queries: must be texts": lambda: yupana.interval(release, wrong),
        "households: must be a whole number": lambda: yupana.synthesize(out / "o", cast(Any, "5")),
        "states: must be a sequence": lambda: yupana.synthesize(out / "o", 5, states=cast(Any, "06")),
        "settings: must be a kind": lambda: yupana.build_spine("GRF-C.txt", out / "o", wrong),
        "root: must be 'nation' or 'county'": lambda: yupana.spine_distances("x", "y", root=cast(Any, "earth")),
        "household_cap: must be a whole number": lambda: yupana.certificate(release, household_cap=cast(Any, "6")),
    }


def test_switches_choices_and_numbers_of_another_type_are_refused(census: Path, tmp_path: Path) -> None:
    """A text such as "no" would turn a switch on."""
    for words, call in _refusals(census, tmp_path).items():
        with pytest.raises(yupana.ConfigError, match=f"^{re.escape(words)}"):
            call()
    assert {path.name for path in tmp_path.iterdir()} == {"release", "release.confidential.log"}


def test_a_table_whose_file_is_gone_says_so(frames: dict[str, pl.DataFrame], tmp_path: Path) -> None:
    table = yupana.run("phsafe", phsafe(), frames, tmp_path / "out")["PH1_num"]
    shutil.rmtree(tmp_path / "out")
    with pytest.raises(yupana.InputError, match="no longer there"):
        pl.DataFrame(table)
    with pytest.raises(yupana.InputError, match="no longer there"):
        len(table)
    assert "no longer there" in repr(table)


def test_a_run_is_charged_and_refused_beyond_its_limit(frames: dict[str, pl.DataFrame], tmp_path: Path) -> None:
    charged: dict[str, Any] = {"ledger": tmp_path / "ledger", "dataset": "made up", "limit": "3/2", "synthetic": True}
    yupana.run("phsafe", phsafe(), frames, tmp_path / "first", **charged)
    with pytest.raises(yupana.BudgetError):
        yupana.run("phsafe", phsafe(), frames, tmp_path / "second", **charged)
    assert not (tmp_path / "second").exists()


def test_a_manifest_repeats_its_release(census: Path, tmp_path: Path) -> None:
    first = yupana.run("phsafe", phsafe(), census, tmp_path / "first", seed=5, margins="bureau", format="parquet")
    again = yupana.run("phsafe", first.folder / "manifest.json", census, tmp_path / "again", seed=5)
    assert tables(again) == tables(first)
    assert again.plan == replace(first.measured, margins="bureau")


def test_tables_are_not_pickled(frames: dict[str, pl.DataFrame], tmp_path: Path) -> None:
    release = yupana.run("phsafe", phsafe(), frames, tmp_path / "out")
    with pytest.raises(TypeError, match="cannot be pickled"):
        pickle.dumps(release["PH1_num"])


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


def test_a_report_is_written_with_the_release(census: Path, tmp_path: Path) -> None:
    release = yupana.run("phsafe", phsafe(), census, tmp_path / "out", report=tmp_path / "page.html")
    assert (tmp_path / "page.html").read_text() == yupana.report(release, tmp_path / "again.html").read_text()
    with pytest.raises(yupana.OutputError):
        yupana.run("phsafe", phsafe(), census, tmp_path / "other", report=census / "page.html")
    assert not (tmp_path / "other").exists()


def test_what_was_observed_is_a_table_and_a_folder(frames: dict[str, pl.DataFrame], tmp_path: Path) -> None:
    seen = yupana.accuracy("phsafe", phsafe(), frames, tmp_path / "out", trials=2, synthetic=True, seed=1)
    written = yupana.open_release(tmp_path / "out")
    assert list(written["accuracy"].rows()) == list(seen.rows())
    assert len(seen) == len(seen.observed.rows) == pl.DataFrame(seen).height
    with pytest.raises(yupana.OutputError):
        yupana.accuracy("phsafe", phsafe(), frames, tmp_path / "out", synthetic=True)


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
