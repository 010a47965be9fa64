"""Records given as frames of any library, and what is said of those that cannot be read."""

import os
from collections.abc import Iterator
from pathlib import Path

import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from yupana.confidential.records.data_frames import Data, as_folder, in_words
from yupana.confidential.records.database import scratch_folder
from yupana.confidential.records.sources import SYNTHETIC_MARK, find_source
from yupana.errors import ConfigError, InputError
from yupana.files.columns import PERSONS

SECRET = "0123456789-value"  # noqa: S105 (stands for what a record holds)
ROWS = {"RTYPE": ["3", "5"], "MAFID": [100_000_001, 100_000_002], "CENRACE": ["01", "63"]}


def relation() -> duckdb.DuckDBPyRelation:
    database = duckdb.connect()
    database.execute(
        "CREATE TABLE t AS SELECT unnest(?::VARCHAR[]) AS RTYPE, unnest(?::BIGINT[]) AS MAFID, "
        "unnest(?::VARCHAR[]) AS CENRACE",
        list(ROWS.values()),
    )
    return database.sql("FROM t")


FRAMES = {
    "polars": lambda: pl.DataFrame(ROWS),
    "categorical": lambda: pl.DataFrame(ROWS).with_columns(pl.col("RTYPE").cast(pl.Categorical)),
    "pandas": lambda: pd.DataFrame(ROWS),
    "pyarrow": lambda: pa.table(ROWS),
    "batches that are read once": lambda: pa.RecordBatchReader.from_batches(
        pa.table(ROWS).schema, pa.table(ROWS).to_batches()
    ),
    "duckdb": relation,
}


@pytest.mark.parametrize("made", FRAMES)
def test_frames_of_every_library_become_the_file_they_stand_for(made: str) -> None:
    with as_folder({"persons": FRAMES[made]()}) as folder:
        assert folder.stat().st_mode & 0o777 == 0o700
        source, findings = find_source(folder, PERSONS)
        assert source is not None
        assert findings == []
        found = pl.read_parquet(source.paths[0])
        assert found.rows() == list(zip(*ROWS.values(), strict=True))
        assert found.columns == list(ROWS)
        assert not (folder / SYNTHETIC_MARK).exists()
    assert not folder.exists()


def test_other_files_of_a_folder_are_text_or_stay_where_they_are(tmp_path: Path) -> None:
    (tmp_path / "blocks.txt").write_text("block|housing_units\n")
    data: Data = {
        "GRF-C": pl.DataFrame({"TABBLKST": ["01"], "AIANNHCE": pl.Series([None], dtype=pl.String)}),
        "housing-units": tmp_path / "blocks.txt",
    }
    with as_folder(data, synthetic=True) as folder:
        assert (folder / "GRF-C.txt").read_text() == "TABBLKST|AIANNHCE\n01|\n"
        assert (folder / "housing-units.txt").read_text() == "block|housing_units\n"
        assert (folder / SYNTHETIC_MARK).is_file()


def test_a_folder_is_taken_as_it_is(tmp_path: Path) -> None:
    with as_folder(str(tmp_path)) as folder:
        assert folder == tmp_path
    with pytest.raises(InputError, match="synthetic=True is for frames"), as_folder(tmp_path, synthetic=True):
        pass
    (tmp_path / SYNTHETIC_MARK).touch()
    with as_folder(tmp_path, synthetic=True) as folder:
        assert folder == tmp_path


def failing_batches() -> pa.RecordBatchReader:
    def batches() -> Iterator[pa.RecordBatch]:
        yield from pa.table(ROWS).to_batches()
        raise ValueError(SECRET)

    return pa.RecordBatchReader.from_batches(pa.table(ROWS).schema, batches())


class Failing:
    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        raise ValueError(SECRET)


class NoCapsule:
    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        return SECRET


DOUBLED = pa.table([pa.array([SECRET]), pa.array([SECRET])], names=["MAFID", "MAFID"])
BAD = {
    "a name of no file": (
        {"person": pl.DataFrame(ROWS)},
        "'person' is the name of no record file; did you mean 'persons'",
    ),
    "a name like none": ({"xyz": pl.DataFrame(ROWS)}, "there are persons, units, geo"),
    "a list": ({"persons": [SECRET]}, r"data\['persons'\] is a list, which has no __arrow_c_stream__"),
    "nothing": ({"persons": None}, "is a NoneType"),
    "a class": ({"persons": pl.DataFrame}, "has no __arrow_c_stream__"),
    "a frame in place of a mapping": (pl.DataFrame(ROWS), "data is a DataFrame; give a folder, or frames by name"),
    "a column twice": ({"persons": DOUBLED}, r"data\['persons'\]: column MAFID is there twice"),
    "no columns": ({"persons": pl.DataFrame()}, "no columns"),
    "a stream that fails": ({"persons": Failing()}, r"could not be read \(ValueError\)"),
    "a stream that fails later": ({"persons": failing_batches()}, "could not be read"),
    "no stream": ({"persons": NoCapsule()}, "could not be read"),
    "a file that is not there": ({"persons": Path("/nowhere/persons.csv")}, "does not exist"),
}


@pytest.mark.parametrize("what", BAD)
def test_bad_frames_are_refused_without_a_value(what: str) -> None:
    data, words = BAD[what]
    with pytest.raises(InputError, match=words) as raised, as_folder(data):  # type: ignore[arg-type]
        pass
    assert SECRET not in str(raised.value)
    assert not getattr(raised.value, "__notes__", [])


def test_nothing_is_left_after_a_failure() -> None:
    with scratch_folder() as scratch:
        before = set(scratch.parent.iterdir())
    with pytest.raises(InputError), as_folder({"persons": pl.DataFrame(ROWS), "units": Failing()}):
        pass
    ours = {path for path in scratch.parent.iterdir() if path.name.startswith(f"{os.getpid()}-")}
    assert ours <= before


def test_errors_speak_of_the_frames(tmp_path: Path) -> None:
    mark = f"{tmp_path} holds no file named {SYNTHETIC_MARK}, so its records may be real"
    told = in_words(
        f"{tmp_path}/persons.parquet has no x; {mark}; in {tmp_path}", tmp_path, {"persons": 0}, {"persons": "parquet"}
    )
    assert told == "persons has no x; synthetic=True was not said, so the records may be real; in the data"
    with pytest.raises(ConfigError, match=r"^persons$"), as_folder({"persons": pl.DataFrame(ROWS)}) as folder:
        raise ConfigError(f"{folder}/persons.parquet")
