"""Records that lie on a store: copied into the private scratch folder before they are read.

So all that reads, checks and counts records is the same, whatever they lie on, and so are findings and results. Records
are read several times, and only of a copy it is sure that what was checked is what is counted.

On an engine the files that are cut into shards are left where they are. The folder then has their ends alone, which
tell what columns there are, and a mark that says where they lie; whoever reads a part brings it (`bring_part`).
"""

import hashlib
import json
import shutil
from collections.abc import Callable, Collection, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import AbstractContextManager, contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from threading import Event
from typing import Final

from yupana.confidential.records.database import is_scratch, scratch_folder
from yupana.confidential.records.sources import SHARD, require_folder
from yupana.errors import InputError, OutputError, speaking_of, system_fault
from yupana.files.store import FileEnds, Store, StoredFile, StoreReader
from yupana.files.temporary import temporary_folder
from yupana.progress import Progress, silent

_AT_ONCE: Final = 8
"""Files that are copied side by side, each with a few megabytes in memory."""

_MARK: Final = f".stored{SHARD}"


Bring = Callable[[Path, Collection[Path]], None]
"""Copies the files of a folder, but for the paths that are to be left; called again, what it has not copied yet."""


@dataclass(frozen=True, slots=True)
class LeftOnStore:
    """Files that were left on a store. It may be sent to a worker.

    Attributes
    ----------
    store : Store
    files : tuple of StoredFile
        All files of the store.
    versions : mapping of str to str
        Of the files that were left, by name.
    below : str
        The folder of the records within the store, and ``/``; empty if it is all of it.
    """

    store: Store
    files: tuple[StoredFile, ...]
    versions: tuple[tuple[str, str], ...]
    below: str = ""

    @property
    def of_name(self) -> dict[str, tuple[StoredFile, str]]:
        """What was left, with its version, by its name within the folder of the records."""
        files = {file.name: file for file in self.files}
        return {name.removeprefix(self.below): (files[name], version) for name, version in self.versions}

    @property
    def others(self) -> tuple[StoredFile, ...]:
        """What was not left."""
        left = dict(self.versions)
        return tuple(file for file in self.files if file.name not in left)


@contextmanager
def stored_records(store: Store, progress: Progress) -> Iterator[tuple[Path, Bring]]:
    """List the files of a store, and give them a folder while they are read, and what brings them there.

    The folder is of mode 0700, with every file of the store, empty until they are brought.

    Parameters
    ----------
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
        copied: set[str] = set()

        def bring(within: Path, left: Collection[Path]) -> None:
            here = [file for file in files if (folder / file.name).is_relative_to(within)]
            away = [file for file in here if any((folder / file.name).is_relative_to(path) for path in left)]
            new = [file for file in here if file not in away and file.name not in copied]
            _copy_all(reader, new, folder, progress)
            copied.update(file.name for file in new)
            _leave(reader, files, [file for file in away if file.name not in copied], folder)

        with speaking_of(store.url, folder):
            _lay_out(folder, files)
            yield folder, bring


def left_on_store(folder: Path) -> LeftOnStore | None:
    """What was left of a folder of records on a store, if it was."""
    for root in (folder, folder.parent):
        # In the folder of a user such a mark would name a store that nobody asked for.
        if is_scratch(root) and (mark := root / _MARK).is_file():
            told = json.loads(mark.read_text())
            files = tuple(StoredFile(**file) for file in told["files"])
            below = "" if root == folder else f"{folder.name}/"
            versions = tuple((name, version) for name, version in told["versions"] if name.startswith(below))
            return LeftOnStore(Store(**told["store"]), files, versions, below) if versions else None
    return None


def require_at_hand(folder: Path) -> None:
    """Refuse a folder of records that is none; copy what was left of it, for whoever reads it in one piece after all.

    Raises
    ------
    InputError, OutputError
    """
    require_folder(folder)
    if left := left_on_store(folder):
        root = folder.parent if left.below else folder
        brought = [file for file, _ in left.of_name.values()]
        _copy_all(left.store.connect(), brought, root, silent)
        _mark(root, left.store, left.files, {file.name: None for file in brought})


def bring_part(left: LeftOnStore, name: str, path: Path) -> str:
    """Copy one file that was left to a path, and return its SHA-256.

    Raises
    ------
    InputError, OutputError
        Also if it is no longer the file whose ends were read.
    """
    file, version = left.of_name[name]
    digest = hashlib.sha256()
    with _refused(), path.open("wb") as copy:
        for chunk in left.store.connect().chunks(file, version):
            copy.write(chunk)
            digest.update(chunk)
    return digest.hexdigest()


def folder_of_others(left: LeftOnStore) -> Path:
    """A folder with what was not left, for a worker on another machine; it has it for as long as it lives.

    Raises
    ------
    InputError, OutputError
    """
    if left not in _OTHERS:
        context = scratch_folder()
        folder = context.__enter__()
        _lay_out(folder, left.files)
        _copy_all(left.store.connect(), left.others, folder, silent)
        _OTHERS[left] = context, folder
    return _OTHERS[left][1] / left.below


_OTHERS: Final[dict[LeftOnStore, tuple[AbstractContextManager[Path], Path]]] = {}


def _lay_out(folder: Path, files: Collection[StoredFile]) -> None:
    """Make every file, empty: one that is there shows that it is, before it can be read."""
    with _refused():
        for file in files:
            (folder / file.name).parent.mkdir(parents=True, exist_ok=True)
            (folder / file.name).touch()


def _leave(reader: StoreReader, files: Collection[StoredFile], left: Collection[StoredFile], folder: Path) -> None:
    """Give files their ends, with nothing between, and say in the folder where they lie."""
    if not left:
        return
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        ends = list(pool.map(reader.ends, left))
    for file, of_file in zip(left, ends, strict=True):
        _write_ends(folder / file.name, file.size, of_file)
    _mark(folder, reader.store, files, {file.name: of.version for file, of in zip(left, ends, strict=True)})


def _mark(folder: Path, store: Store, files: Collection[StoredFile], versions: Mapping[str, str | None]) -> None:
    """Say in a folder which files were left on the store, with their versions; None for one that is there now."""
    mark = folder / _MARK
    before = json.loads(mark.read_text())["versions"] if mark.is_file() else []
    left = [(name, version) for name, version in {**dict(before), **versions}.items() if version is not None]
    told = {"store": asdict(store), "files": [asdict(file) for file in files], "versions": left}
    mark.write_text(json.dumps(told))


def _write_ends(path: Path, size: int, ends: FileEnds) -> None:
    """Write a file that has its size, and takes no more space than its ends."""
    with _refused(), path.open("wb") as file:
        file.write(ends.first)
        file.truncate(size)
        file.seek(size - len(ends.last))
        file.write(ends.last)


def _copy_all(reader: StoreReader, files: Collection[StoredFile], folder: Path, progress: Progress) -> None:
    if not files:
        return
    needed, free = sum(file.size for file in files), shutil.disk_usage(folder).free
    if needed > free:
        fits = f"the {needed:,} bytes of {reader.store.url} do not fit into the {free:,} that are free in"
        raise OutputError(f"the records cannot be copied: {fits} {temporary_folder()}; {_OTHER_PLACE}")
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
    with _refused(), path.open("wb") as copy:
        for chunk in reader.chunks(file):
            copy.write(chunk)
            if stop.is_set():
                return


_OTHER_PLACE: Final = "set TMPDIR to another place"


def _refused() -> AbstractContextManager[None]:
    """What the system refuses while records are copied."""
    return system_fault(OutputError, "the records cannot be copied", f" in {temporary_folder()}; {_OTHER_PLACE}")
