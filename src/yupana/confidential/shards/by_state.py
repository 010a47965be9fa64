"""Count the Census Edited File state by state, as its files lie: a shard has the files of some states.

A shard is not told of other states. So the driver sees to it that no unit and no block is in two of them; where one is,
or where a shard finds a rule broken, all files are counted as one shard, which tells what is wrong with them together.
"""

import pickle
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Final, TypeAlias, cast

import numpy as np
from numpy.typing import NDArray

from yupana.confidential.records.cef import (
    CONFIG,
    PERSON_LAYOUT,
    UNIT_LAYOUT,
    EditedNames,
    UnreadableBlocksError,
    block_keys,
    find_states,
    is_cef,
)
from yupana.confidential.records.database import is_scratch, scratch_folder
from yupana.confidential.records.findings import failing
from yupana.confidential.records.fixed_width import Layout, ShapeError, numbers, read_lines
from yupana.confidential.records.reader import SHARD
from yupana.confidential.shards.areas import KeysOfAreas, shared_out
from yupana.confidential.shards.folder import CountedShards, Shard, Stamp, Taker, Told, count_told, require_stamp
from yupana.engine.engine import Engine
from yupana.errors import YupanaError
from yupana.files.columns import GEO, MAFID, PERSONS, UNITS, RecordFile
from yupana.privacy.sealed import packed
from yupana.progress import Progress, told

EditedFiles: TypeAlias = Mapping[str, Mapping[str, tuple[Path, Stamp | None]]]
"""Where the files of some states lie, by kind and by what they are called."""
_Work: TypeAlias = tuple[EditedFiles, EditedNames, Mapping[str, Stamp | None]]
"""The files of a shard, how they are named, and public files beside them."""
_Keys: TypeAlias = tuple[list[NDArray[np.uint64]], list[NDArray[np.uint64]]]
"""Those of units, and of blocks."""


def lies_by_state(folder: Path, others: tuple[RecordFile, ...] = (PERSONS, UNITS, GEO)) -> bool:
    """Whether a folder holds the Census Edited File, and no others, where every worker can read it."""
    # What was copied from a store is in a folder of the driver alone.
    return is_cef(folder, others) and not (is_scratch(folder) or is_scratch(folder.parent))


def count_by_state(engine: Engine, most: int | None, shard: Shard, progress: Progress, taker: Taker) -> CountedShards:
    """Count the files of some states in each shard; in so many shards at most, by default one for each state."""
    names, files = find_states(shard.folder)
    # Where blocks are listed of states without records, one task tells of that.
    states = list(files["per"]) if files and files["grfc"].keys() == files["per"].keys() else []
    size = {state: sum(of[state].stat().st_size for of in files.values()) for state in states}
    theirs = {path for of in files.values() for path in of.values()} | {shard.folder / CONFIG}
    # A file that is called as one of ours, which says where else records lie, would be believed in a folder of ours.
    beside = {
        path.name: Stamp.of(path)
        for path in shard.folder.iterdir()
        if path.is_file() and path not in theirs and not path.name.endswith(SHARD)
    }
    by_state = [
        (files_of({kind: {state: of[state] for state in some} for kind, of in files.items()}), names, beside)
        for some in shared_out(size, min(most or len(states), len(states)))
    ]
    found = _counted(engine, shard, by_state, progress, taker) if len(by_state) > 1 else None
    if found is None:
        taker.forget()
        (result,) = engine.map(partial(_count_whole, shard), [b""])
        findings, counted = pickle.loads(result)  # noqa: S301 (of a worker of ours)
        found = [(findings, None if counted is None else taker.take(counted))]
    return CountedShards([], {}, found)


def _counted(
    engine: Engine, shard: Shard, by_state: Sequence[_Work], progress: Progress, taker: Taker
) -> list[Told] | None:
    """What each shard found and counted; None where that is not all that there is to find."""
    work = [*map(pickle.dumps, by_state)]
    counted = []
    with scratch_folder() as of_units, scratch_folder() as of_blocks:
        units, blocks = KeysOfAreas(of_units), KeysOfAreas(of_blocks)
        for result in told(engine.map(partial(_count_states, shard), work), "counting states", len(work), progress):
            keys, (findings, of_shard) = pickle.loads(result)  # noqa: S301 (of a worker of ours)
            if keys is None or failing(findings) or of_shard is None:
                return None
            units.add(keys[0])
            blocks.add(keys[1])
            counted.append((findings, taker.take(of_shard)))
        return counted if units.are_apart() and blocks.are_apart() else None


def files_of(paths: Mapping[str, Mapping[str, Path]]) -> EditedFiles:
    """Files by kind and state as tasks are told of them."""
    return {kind: {path.name: (path, Stamp.of(path)) for path in of.values()} for kind, of in paths.items()}


def link_files(folder: Path, names: EditedNames, files: EditedFiles) -> None:
    """Make a folder of the edited file that has these."""
    (folder / CONFIG).write_text(names.as_config())
    for kind, of_kind in files.items():
        (folder / kind).mkdir()
        for name, (path, _) in of_kind.items():
            (folder / kind / name).symlink_to(path)


@contextmanager
def require_stamps(files: EditedFiles) -> Iterator[None]:
    """Refuse files that are not those that the driver saw, before they are read and after.

    Raises
    ------
    InputError
        As `require_stamp` has it.
    """
    places = [place for of_kind in files.values() for place in of_kind.values()]
    for path, stamp in places:
        require_stamp(path, stamp)
    yield
    for path, stamp in places:
        require_stamp(path, stamp)


def _count_whole(task: Shard, _work: bytes) -> bytes:
    """What is found and counted of all files together."""
    with task.limits.kept():
        return packed(count_told(task, task.folder))


def _count_states(task: Shard, work: bytes) -> bytes:
    """The keys of some states, and what was found and counted of them; no keys if these cannot be read."""
    files, names, beside = cast("_Work", pickle.loads(work))  # noqa: S301 (of our driver)
    with scratch_folder() as folder, speaking_of(folder, task.folder), task.limits.kept(), require_stamps(files):
        for name, stamp in beside.items():
            require_stamp(task.folder / name, stamp)
            (folder / name).symlink_to(task.folder / name)
        link_files(folder, names, files)
        keys = _keys(task, files)
        found: Told = ((), None) if keys is None else count_told(task, folder)
    return packed((keys, found))


_SPREAD: Final = np.uint64(0x9E3779B97F4A7C15)
"""An odd number, so that no two ids become one; what is compared in ranges then lies in all of them."""
_IDS: Final = RecordFile("ids", "record", (MAFID,))
_ID_OF: Final = {
    kind: Layout(_IDS, layout.width, {MAFID.name: layout.fields[MAFID.name]})
    for kind, layout in (("per", PERSON_LAYOUT), ("unit", UNIT_LAYOUT))
}


def _keys(task: Shard, files: EditedFiles) -> _Keys | None:
    try:
        ids = [
            np.unique(numbers(lines, layout)[MAFID.name].astype(np.uint64) * _SPREAD)
            for kind, layout in _ID_OF.items()
            for path, _ in files[kind].values()
            for lines in read_lines(path, layout.width)
        ]
        with task.limits.database() as db:
            blocks = [block_keys(db, path) for path, _ in files["grfc"].values()]
    except (ShapeError, UnreadableBlocksError):
        return None
    return ids, blocks


@contextmanager
def speaking_of(ours: Path, theirs: Path) -> Iterator[None]:
    """Let errors speak of the folder of the records."""
    try:
        yield
    except YupanaError as error:
        raise error.reworded(lambda text: text.replace(str(ours), str(theirs))) from None
