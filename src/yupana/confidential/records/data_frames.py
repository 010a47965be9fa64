"""Records that are given as frames: each is written into the private scratch folder as the file it stands for.

So all that reads, checks and counts records is the same for both, and so are the results.
"""

import difflib
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Final, TypeVar

from yupana.confidential.records.database import private_database, scratch_folder
from yupana.confidential.records.sources import SYNTHETIC_MARK, is_synthetic, require_folder
from yupana.errors import InputError, reworded
from yupana.files.arrow import ArrowStream
from yupana.files.arrow_stream import NO_TYPE, stream_columns
from yupana.files.database import named, quoted
from yupana.files.names import normal
from yupana.files.regular import FILE, must_be
from yupana.files.store import scheme_of

T = TypeVar("T")

Data = str | Path | Mapping[str, "ArrowStream | str | Path"]
"""A folder of record files, or each of them by its name without ending: a frame, or where the file lies."""

FILES: Final = {
    **dict.fromkeys(("persons", "units", "geo", "person-records", "household-records", "histogram"), "parquet"),
    **dict.fromkeys(("GRF-C", "housing-units", "pop-group-totals", "geography"), "txt"),
    "group_quarters": "csv",
    "quarters": "parquet",
}
"""The files that a data folder may hold, and how the name of each ends when it is written from a frame."""


@contextmanager
def as_folder(
    data: Data, *, files: Mapping[str, str] = FILES, synthetic: bool = False, memory: int | None = None
) -> Iterator[Path]:
    """Give records a folder while they are read.

    Parameters
    ----------
    data : str, Path or mapping
        A folder, which is taken as it is, or frames and files by name. A frame is anything with the Arrow C stream
        interface and is read once. Its copy lies in a folder of mode 0700 in that of temporary files, as does what the
        database spills, and is gone when the context is left.
    files : mapping of str to str
        The record files there may be, and how the name of each ends when it is written from a frame.
    synthetic : bool
        Whether the records are nobody's. A folder says so itself, by a file named SYNTHETIC.
    memory : int, optional
        Bytes to get along with.

    Raises
    ------
    InputError
        If a name is of no file, or what it stands for is no frame, or has a column twice, or cannot be read. What is
        raised within the context speaks of the frames by their names.
    """
    if isinstance(data, str | Path):
        require_folder(Path(data))
        if synthetic and not is_synthetic(Path(data)):
            raise InputError(f"{data}: synthetic=True is for frames; a folder says so by a file named {SYNTHETIC_MARK}")
        yield Path(data)
        return
    if not isinstance(data, Mapping):
        raise InputError(f"data is {_a(data)}; give a folder, or frames by name such as {{'persons': frame, ...}}")
    data = _by_name(data)
    frames = {name: given for name, given in data.items() if not isinstance(given, str | Path)}
    with scratch_folder() as folder:
        for name, given in data.items():
            _check_name(name, files)
            if isinstance(given, str | Path):
                _link(folder, name, Path(given))
        _write(folder, frames, files, memory)
        if synthetic:
            (folder / SYNTHETIC_MARK).touch()
        with reworded(lambda text: in_words(text, folder, frames, files)):
            yield folder


def _write(folder: Path, frames: Mapping[str, object], files: Mapping[str, str], memory: int | None) -> None:
    if not frames:
        return
    with private_database(memory) as database:
        for name, frame in frames.items():
            stream, untyped = _stream(name, frame)
            database.register("frame", stream)
            as_text = ", ".join(f"NULL::VARCHAR AS {named(column)}" for column in untyped)
            select = f"SELECT * REPLACE ({as_text}) FROM frame" if untyped else "FROM frame"
            kind = "FORMAT parquet" if files[name] == "parquet" else "FORMAT csv, DELIMITER '|', HEADER"
            database.execute(f"COPY ({select}) TO {quoted(str(folder / _file(name, files)))} ({kind})")
            database.unregister("frame")


def in_words(text: str, folder: Path, frames: Mapping[str, object], files: Mapping[str, str]) -> str:
    """Say of frames what was said of the files they were written to; ``files`` are those of `as_folder`."""
    mark = f"{folder} holds no file named {SYNTHETIC_MARK}, so its records"
    text = text.replace(mark, "synthetic=True was not said, so the records")
    for name in files:
        missing = f"{folder / _file(name, files)} cannot be read: No such file or directory"
        text = text.replace(missing, f"data: there is no {name!r}")
    for name in frames:
        path = _file(name, files)
        text = text.replace(f"{folder / path}", name).replace(path, name)
    return text.replace(str(folder), "the data")


def _file(name: str, files: Mapping[str, str]) -> str:
    return f"{name}.{files[name]}"


def _by_name(data: Mapping[str, T]) -> dict[str, T]:
    found: dict[str, T] = {}
    for name, given in data.items():
        own = normal(name) if isinstance(name, str) else name
        if own in found:
            raise InputError(f"data: {own!r} is there twice, in two spellings of one text")
        found[own] = given
    return found


def _check_name(name: object, files: Mapping[str, str]) -> None:
    if name in files:
        return
    near = difflib.get_close_matches(str(name), files, 1)
    advice = f"did you mean {near[0]!r}?" if near else f"there are {', '.join(files)}"
    raise InputError(f"data: {name!r} is the name of no record file; {advice}")


def _link(folder: Path, name: str, path: Path) -> None:
    if scheme := scheme_of(path):
        raise InputError(
            f"data[{name!r}] is {scheme}://...; only all files together may lie on a store: data='s3://...'"
        )
    if not path.is_dir():  # of Parquet in parts
        must_be(FILE, path, f"name the file of data[{name!r}]")
    (folder / f"{name}{path.suffix}").symlink_to(path.absolute())


def _stream(name: str, frame: object) -> tuple[object, list[str]]:
    """The stream of a frame, and its columns that hold nothing at all and so have no type.

    What a library says of a failure may quote records, so its words are left out.
    """
    if not isinstance(frame, ArrowStream) or isinstance(frame, type):
        raise InputError(
            f"data[{name!r}] is {_a(frame)}, which has no __arrow_c_stream__; give a frame of Polars, pandas, pyarrow "
            "or DuckDB, or a path"
        )
    failure = ""
    try:
        capsule = frame.__arrow_c_stream__()
        columns = stream_columns(capsule)
    except Exception as error:  # noqa: BLE001 (whatever a library raises)
        failure = type(error).__name__
    if failure:  # raised here, so that it does not hold the library's
        raise InputError(f"data[{name!r}]: the frame could not be read ({failure})")
    if twice := [column for column, times in Counter(column for column, _ in columns).items() if times > 1]:
        raise InputError(f"data[{name!r}]: column {', '.join(twice)} is there twice")
    if not columns:
        raise InputError(f"data[{name!r}]: the frame has no columns")
    return capsule, [column for column, kind in columns if kind == NO_TYPE]


def _a(value: object) -> str:
    """The type of a value, and nothing of the value itself."""
    kind = type(value).__name__
    return f"{'an' if kind[0] in 'aeiouAEIOU' else 'a'} {kind}"
