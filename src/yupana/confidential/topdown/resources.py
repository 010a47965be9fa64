"""How much memory and disk a run of TopDown needs: where it is not there, the run is refused."""

import shutil
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final, NamedTuple

from yupana.confidential.records.database import default_memory
from yupana.errors import ConfigError, OutputError
from yupana.topdown import Estimator
from yupana.topdown.tree.intervals import held_kinds

_ITSELF: Final = 400_000_000
"""Interpreter, libraries, compiled loops, and what is counted, drawn or solved at a time."""

_A_BLOCK: Final = 150
"""Bytes that a block of the reference file takes: where it lies, its share, its facilities and bounds."""

_ITS_RECORDS: Final = 250
"""Bytes of the records of a block that the database must be able to hold; the others wait on the scratch disk."""

_DATABASE: Final = 100_000_000
"""What it needs for itself."""

A_WORKER: Final = 350_000_000
"""What a process takes that solves batches."""

_ENOUGH: Final = 6_000_000_000
"""More does not make a run quicker."""

_ALL_CELLS: Final = 600_000
"""For each cell of the schema, what least squares of some thousand units take at a time."""


_A_SUM: Final = 16
"""Bytes of a sum of an area that least squares holds, and of what it is made of."""

_AN_INTERVAL_OF_A_BLOCK: Final = 700
_OF_ITS_CELLS: Final = 25
_CELLS_OF_A_BLOCK: Final = 100
"""Bytes that intervals take for each block, and for each of its cells; of larger schemas few cells hold somebody."""


_BEFORE_REPLICATES: Final = 450_000_000
_BESIDE_REPLICATES: Final = 3
_A_COUNT: Final = 32
_COUNTS_OF_A_BLOCK: Final = 24
"""Bytes before there is a replicate; how many beside them take as much, such as published counts; and of each, bytes
of a count of a block that is not zero, with those of all areas above it, and how many a block has, if cells suffice."""


def memory_for_intervals(areas: Mapping[str, int], cells: int) -> int:
    """Bytes that a run takes that finds intervals by least squares.

    Measured on Cook County and a state at 2,016 cells, and on 1.1 and 8.8 million blocks at 2.

    Parameters
    ----------
    areas : mapping of str to int
        How many areas each kind has, with the blocks.
    cells : int
        Of the schema.
    """
    held = sum(areas[kind] * cells for kind in held_kinds(areas, cells))
    of_a_block = _AN_INTERVAL_OF_A_BLOCK + _OF_ITS_CELLS * min(cells, _CELLS_OF_A_BLOCK)
    return _ITSELF + _A_SUM * held + of_a_block * max(areas.values())


def memory_for_replicates(blocks: int, cells: int, replicates: int) -> int:
    """Bytes that a run takes that finds intervals by Monte Carlo.

    Measured with 3, 9 and 5 replicates on 25,000 and 129,000 blocks at 2,016 cells, and 2 percent off at most.

    Parameters
    ----------
    blocks : int
        That are not empty.
    cells : int
        Of the schema.
    """
    of_a_block = _A_COUNT * min(cells, _COUNTS_OF_A_BLOCK)
    return _BEFORE_REPLICATES + (_BESIDE_REPLICATES + replicates) * of_a_block * blocks


@dataclass(frozen=True, slots=True)
class MemoryNeeds:
    """What a run holds beside the database, and what it needs at least, in bytes. Public.

    They were measured on synthetic censuses of up to 41 million persons (benchmarks/README.md). Intervals
    are not in this.
    """

    held: int  # while records are read
    least: int  # at any time

    @classmethod
    def of(cls, listed: int, cells: int, estimator: Estimator) -> "MemoryNeeds":
        """Those of a run.

        Parameters
        ----------
        listed : int
            Blocks of the reference file.
        cells : int
            Of the schema.
        estimator : "topdown", "full-information" or "posterior"
        """
        held = _ITSELF + _A_BLOCK * listed
        least = held + max(_DATABASE, _ITS_RECORDS * listed)
        if estimator != "topdown":
            least = max(least, held + _ALL_CELLS * cells)
        return cls(held, least)

    def check(self, memory: int | None) -> None:
        """Refuse less memory than suffices, before a record is read.

        Raises
        ------
        ConfigError
        """
        if memory is not None and memory < self.least:
            raise ConfigError(
                f"--memory: {memory // 10**6:,} MB are too little for this run, which needs "
                f"{-(-self.least // 10**6):,} MB: {_ITSELF // 10**6:,} for itself and the rest for its blocks"
            )

    def for_database(self, memory: int | None) -> int:
        """What of it the database may take."""
        return max(memory or min(default_memory(), _ENOUGH), self.least) - self.held


_AN_ANSWER: Final = 1
"""Bytes of a noisy answer that is kept until the release stands; a few answers take two."""

_A_CELL: Final = 8
"""Bytes of a cell of a geounit above the blocks, of which least squares notes what is known."""


class DiskNeed(NamedTuple):
    """Bytes that go to a folder, which need not be there yet, and how to have others there."""

    folder: Path
    size: int
    instead: str


def needs_of_full_information(answers: int, units: int, cells: int, kept: Path, scratch: Path) -> tuple[DiskNeed, ...]:
    """What full information takes on the disk before anything is written, beside what is counted there already.

    Parameters
    ----------
    answers : int
        How many noisy answers are drawn.
    units : int
        How many geounits there are above the blocks.
    cells : int
        Of the schema.
    kept : Path
        Where draws are kept. What is there is drawn already, or removed before anything is drawn.
    scratch : Path
        Where what is known of geounits lies.
    """
    there = sum(path.stat().st_size for path in kept.rglob("*") if path.is_file())
    return (
        DiskNeed(kept, max(0, _AN_ANSWER * answers - there), "free some, or write to another disk"),
        DiskNeed(scratch, _A_CELL * units * cells, "free some, or set TMPDIR to another"),
    )


def require_disk(needs: Iterable[DiskNeed]) -> None:
    """Refuse what does not fit onto the disks where it goes: what goes to one disk is added up.

    Raises
    ------
    OutputError
        With what is needed and what is free.
    """
    of_disk: dict[int, list[tuple[Path, DiskNeed]]] = defaultdict(list)
    for need in needs:
        there = next(folder for folder in (need.folder.absolute(), *need.folder.absolute().parents) if folder.exists())
        of_disk[there.stat().st_dev].append((there, need))
    for together in of_disk.values():
        needed, free = sum(need.size for _, need in together), shutil.disk_usage(together[0][0]).free
        if needed > free:
            folders = " and ".join(dict.fromkeys(str(there) for there, _ in together))
            instead = "; ".join(dict.fromkeys(need.instead for _, need in together))
            raise OutputError(
                f"full information keeps {_gigabytes(needed)} in {folders} while it runs, beside the release, but "
                f"{_gigabytes(free)} are free there; {instead}"
            )


def _gigabytes(size: int) -> str:
    return f"{size / 1e9:,.1f} GB"
