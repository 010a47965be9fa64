"""An output folder that appears by rename when it is complete."""

import errno
import fcntl
import json
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from hollerith.errors import OutputError

MANIFEST: Final = "manifest.json"


@contextmanager
def new_folder(out: Path, *, overwrite: bool = False, noisy: bool = True) -> Iterator[Path]:
    """Fill ``OUT.partial``; on success it becomes ``OUT``, on any failure it is removed.

    Parameters
    ----------
    out : Path
        A folder that does not exist, or is empty, or, with ``overwrite``, holds an earlier output of this program.
    overwrite : bool
        Replace an earlier output. A folder without a manifest of ours is never replaced.
    noisy : bool
        Whether noisy values go into it, so that what a killed run left must not be made again unnoticed.

    Raises
    ------
    OutputError
        If ``out`` cannot be used, or writing fails. Checked before anything is computed.
    """
    out = out.resolve()
    replaced = _check_free(out, overwrite=overwrite)
    partial = out.with_name(out.name + ".partial")
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        _remove_interrupted(partial, overwrite=overwrite or not noisy)
        partial.mkdir()
        lock = _lock(partial)
    except OSError as error:
        raise OutputError(f"{out} cannot be written: {error.strerror}") from None
    try:
        yield partial
        _publish(partial, out, replaced=replaced)
    except OSError as error:
        shutil.rmtree(partial, ignore_errors=True)
        full = "; the disk is full" if error.errno in {errno.ENOSPC, errno.EDQUOT} else ""
        raise OutputError(f"{out} could not be written ({error.strerror}){full}; nothing was left there") from None
    except BaseException:
        shutil.rmtree(partial, ignore_errors=True)
        raise
    finally:
        os.close(lock)


def _lock(partial: Path) -> int:
    """Hold a partial folder as long as its run lives; the lock goes with the process, however it ends.

    Raises
    ------
    OutputError
        If another run holds it.
    """
    descriptor = os.open(partial, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(descriptor)
        raise OutputError(f"another run is writing {partial}; wait for it, or name another folder") from None
    return descriptor


def _check_free(out: Path, *, overwrite: bool) -> bool:
    """Whether an earlier output stands there and will be replaced."""
    try:
        str(out).encode()
    except UnicodeEncodeError:
        raise OutputError(f"the name of {out!a} is not UTF-8; name another folder") from None
    try:
        if not out.exists():
            return False
        if not out.is_dir():
            raise OutputError(f"{out} is a file; name a folder that does not exist or is empty")
        if os.path.ismount(out):
            raise OutputError(f"{out} is the root of a file system, which cannot be replaced; name a folder in it")
        if not any(out.iterdir()):
            return False
    except OSError as error:
        raise OutputError(f"{out} cannot be used: {error.strerror}") from None
    if not overwrite:
        raise OutputError(f"{out} is not empty; name another folder, or replace it with --overwrite")
    if "hollerith" not in read_manifest(out):
        raise OutputError(f"{out} holds no output of hollerith, so --overwrite leaves it alone; name another folder")
    return True


def _remove_interrupted(partial: Path, *, overwrite: bool) -> None:
    """Remove what a killed run left, unless noisy values are in it: those must not be drawn again unnoticed."""
    if not partial.exists():
        return
    os.close(_lock(partial))
    if any(partial.iterdir()) and not overwrite:
        raise OutputError(
            f"{partial} holds noisy values of an interrupted run. Whoever saw them and those of a new run learns more "
            "than the plan allows. If nobody did, remove the folder or pass --overwrite."
        )
    shutil.rmtree(partial)


def _publish(partial: Path, out: Path, *, replaced: bool) -> None:
    for file in partial.rglob("*"):
        if file.is_file():
            with file.open("rb") as opened:
                os.fsync(opened.fileno())
    old = out.with_name(out.name + ".replaced")
    if replaced:
        shutil.rmtree(old, ignore_errors=True)
        out.rename(old)
    elif out.exists():
        out.rmdir()
    partial.rename(out)
    if replaced:
        shutil.rmtree(old, ignore_errors=True)


def write_manifest(folder: Path, manifest: dict[str, Any]) -> None:
    """Write manifest.json."""
    (folder / MANIFEST).write_text(json.dumps(manifest, indent=1) + "\n", encoding="utf-8")


def read_manifest(folder: Path) -> dict[str, Any]:
    """Read manifest.json.

    Raises
    ------
    OutputError
        If there is none, or it is no manifest.
    """
    try:
        manifest = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise OutputError(f"{folder} is no release: it has no {MANIFEST}") from None
    except OSError as error:
        raise OutputError(f"{folder / MANIFEST} cannot be read: {error.strerror}") from None
    except ValueError:
        raise OutputError(f"{folder / MANIFEST} is not JSON") from None
    if not isinstance(manifest, dict):
        raise OutputError(f"{folder / MANIFEST} is not a manifest")
    return manifest
