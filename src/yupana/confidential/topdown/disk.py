"""The room on the disk that full information takes while it runs: where it is not free, the run is refused."""

import shutil
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path
from typing import Final, NamedTuple

from yupana.errors import OutputError

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
