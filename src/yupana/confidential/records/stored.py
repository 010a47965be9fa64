"""Records that lie on a store: copied into the private scratch folder before they are read.

So all that reads, checks and counts records is the same, whatever they lie on, and so are findings and results. Records
are read several times, and only of a copy it is sure that what was checked is what is counted.
"""

import shutil
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from threading import Event
from typing import Final

from yupana.confidential.records.database import scratch_folder
from yupana.confidential.records.reader import SHARD
from yupana.errors import InputError, OutputError, YupanaError
from yupana.files.store import Store, StoredFile, StoreReader
from yupana.files.temporary import temporary_folder
from yupana.progress import Progress

_AT_ONCE: Final = 8
"""Files that are copied side by side, each with a few megabytes in memory."""


@dataclass(frozen=True, slots=True)
class StoredRecords:
    """Records on a store, and where they will lie.

    Attributes
    ----------
    folder : Path
        Of mode 0700, with every file of the store, empty until they are brought.
    bring : callable
        Copies the files; a second call does nothing.
    """

    folder: Path
    bring: Callable[[], None]


@contextmanager
def stored_records(store: Store, progress: Progress) -> Iterator[StoredRecords]:
    """List the files of a store, and give them a folder while they are read.

    Parameters
    ----------
    store : Store
    progress : callable
        Called with how many files were copied, and how many there are.

    Raises
    ------
    ConfigError, InputError, OutputError
        If the store cannot be read, or the disk of temporary files has too little space. What is raised within the
        context speaks of the store and not of the folder.
    """
    with scratch_folder() as folder:
        reader = store.connect()
        files = reader.files()
        if any(file.name.endswith(SHARD) for file in files):
            # Such a file says where else on this machine records lie.
            raise InputError(
                f"{store.url}: a name ends in {SHARD}, which is that of a file of ours; name another prefix"
            )
        needed, free = sum(file.size for file in files), shutil.disk_usage(folder).free
        if needed > free:
            raise _no_copy(f"the {needed:,} bytes of {store.url} do not fit into the {free:,} that are free in")
        brought = False

        def bring() -> None:
            nonlocal brought
            if not brought:
                _copy_all(reader, files, folder, progress)
            brought = True

        try:
            _lay_out(folder, files)
            yield StoredRecords(folder, bring)
        except YupanaError as error:
            raise error.reworded(lambda text: text.replace(str(folder), store.url)) from None


def _lay_out(folder: Path, files: tuple[StoredFile, ...]) -> None:
    """Make every file, empty: one that is there shows that it is, before it can be read."""
    try:
        for file in files:
            (folder / file.name).parent.mkdir(parents=True, exist_ok=True)
            (folder / file.name).touch()
    except OSError as error:
        raise _no_copy(f"{error.strerror} in") from None


def _copy_all(reader: StoreReader, files: tuple[StoredFile, ...], folder: Path, progress: Progress) -> None:
    stage, stop = "copying the records from the store", Event()
    progress(stage, 0, len(files))
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        copies = [pool.submit(_copy, reader, file, folder / file.name, stop) for file in files]
        try:
            for done, copy in enumerate(as_completed(copies), 1):
                copy.result()
                progress(stage, done, len(files))
        finally:
            stop.set()
            pool.shutdown(wait=False, cancel_futures=True)


def _copy(reader: StoreReader, file: StoredFile, path: Path, stop: Event) -> None:
    try:
        with path.open("wb") as copy:
            for chunk in reader.chunks(file):
                copy.write(chunk)
                if stop.is_set():
                    return
    except OSError as error:
        raise _no_copy(f"{error.strerror} in") from None


def _no_copy(why: str) -> OutputError:
    return OutputError(f"the records cannot be copied: {why} {temporary_folder()}; set TMPDIR to another place")
