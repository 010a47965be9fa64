"""An output folder that appears by rename when it is complete."""

import contextlib
import ctypes
import errno
import json
import os
import shutil
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from yupana.errors import OutputError, system_fault
from yupana.files.regular import FOLDER, NOTHING, kind_of, read_regular, real, replacing, sync, unique_keys
from yupana.files.temporary import try_lock
from yupana.interruption import publish, unpublish, whole
from yupana.release.manifest import MANIFEST, check_shape
from yupana.release.status import CONFIDENTIAL

__all__ = ["MANIFEST", "check_out", "new_folder", "read_manifest", "write_manifest"]


@contextmanager
def new_folder(
    out: Path, *, overwrite: bool | None = None, noisy: bool = True, private: bool = False
) -> Iterator[Path]:
    """Fill ``OUT.partial``; on success it becomes ``OUT``, on any failure it is removed.

    Parameters
    ----------
    out : Path
        A folder that does not exist, or is empty, or, with ``overwrite``, holds an earlier output of this program.
    overwrite : bool, optional
        Replace an earlier output. A folder without a manifest of ours is never replaced. None: nobody is asked.
    noisy : bool
        Whether noisy values go into it, so that what a killed run left must not be made again unnoticed.
    private : bool
        Let nobody but the owner read it: mode 0700, and 0600 of its files.

    Raises
    ------
    OutputError
        If ``out`` cannot be used, or writing fails. Checked before anything is computed.
    """
    replaced = check_out(out, overwrite=overwrite)
    out = real(out)
    partial = out.with_name(out.name + ".partial")
    stands = False
    lock: int | None = None
    unpublish(out)
    try:
        try:
            out.parent.mkdir(parents=True, exist_ok=True)
            _remove_interrupted(partial, overwrite=bool(overwrite) or not noisy)
            # A signal waits until the folder is known to be this run's.
            with whole():
                lock = _made(partial, 0o700 if private else 0o777)
        except OSError as error:
            raise OutputError(f"{out} cannot be written: {error.strerror or error}") from None
        yield partial
        for path in partial.rglob("*") if private else ():
            path.chmod(0o700 if path.is_dir() else 0o600)
        with whole():
            _publish(partial, out, replaced=replaced)
            stands = True
            publish(out)
    except OSError as error:
        if lock is not None:
            _remove(partial)
        if error.filename is not None and not Path(os.fsdecode(error.filename)).is_relative_to(partial):
            # Something else that the run needs, such as its input.
            raise
        full = "; the disk is full" if error.errno in {errno.ENOSPC, errno.EDQUOT} else ""
        reason = error.strerror or "the system does not say why"
        raise OutputError(f"{out} could not be written ({reason}){full}; nothing was left there") from None
    except BaseException:
        if lock is not None and not stands:
            _remove(partial)
        raise
    finally:
        if lock is not None:
            os.close(lock)


def _made(partial: Path, mode: int) -> int:
    """Make a partial folder and hold it; nothing is left where that fails."""
    partial.mkdir(mode=mode)
    try:
        return _lock(partial)
    except BaseException:
        with contextlib.suppress(OSError):
            partial.rmdir()
        raise


def _remove(partial: Path) -> None:
    with whole():
        shutil.rmtree(partial, ignore_errors=True)


def _lock(partial: Path) -> int:
    """Hold a partial folder as long as its run lives; the lock goes with the process, however it ends."""
    descriptor = try_lock(partial, os.O_RDONLY | os.O_DIRECTORY)
    if descriptor is None:
        raise OutputError(f"another run is writing {partial}; wait for it, or name another folder")
    return descriptor


def check_out(out: Path, reads: Iterable[Path] = (), *, overwrite: bool | None = None) -> bool:
    """Refuse a place where `new_folder` could make nothing, before any work; nothing is changed.

    Parameters
    ----------
    reads : iterable of Path
        What is read for it, and so must not be replaced by it.
    overwrite : bool, optional
        As of `new_folder`.

    Returns
    -------
    bool
        Whether an earlier output stands there and will be replaced.

    Raises
    ------
    OutputError
        If it is the current folder or one around it, is no folder that may be filled or replaced, or cannot be made.
    """
    try:
        str(out).encode()
    except UnicodeEncodeError:
        raise OutputError(f"the name of {out!a} is not UTF-8; name another folder") from None
    with system_fault(OutputError, f"{out} cannot be used", "; name another folder"):
        return _check_place(real(out), reads, overwrite=overwrite)


def _check_place(out: Path, reads: Iterable[Path], *, overwrite: bool | None) -> bool:
    here = Path.cwd()
    if out == here or out in here.parents:
        around = "is the current folder" if out == here else "holds the current folder"
        raise OutputError(f"{out} {around}, which is not replaced; name a new folder in it, or elsewhere")
    if out.is_symlink():
        raise OutputError(f"{out} is a link to itself; name a folder that does not exist or is empty")
    if (kind := kind_of(out)) not in {NOTHING, FOLDER}:
        raise OutputError(f"{out} is {kind}; name a folder that does not exist or is empty")
    if os.path.ismount(out):
        raise OutputError(f"{out} is the root of a file system, which cannot be replaced; name a folder in it")
    kind_of(out.with_name(f"{out.name}.partial"))  # a name that is too long is refused by the system
    home = next(folder for folder in out.parents if kind_of(folder) != NOTHING)
    if (found := kind_of(home)) != FOLDER:
        raise OutputError(f"{out} cannot be made, for {home} is {found}; name a folder elsewhere")
    if not os.access(home, os.W_OK | os.X_OK):
        raise OutputError(f"{out} cannot be made, for {home} is not writable; name a folder elsewhere")
    return kind == FOLDER and any(out.iterdir()) and _check_content(out, reads, overwrite=overwrite)


def _check_content(out: Path, reads: Iterable[Path], *, overwrite: bool | None) -> bool:
    if read := next((path for path in reads if out in (real(path), *real(path).parents)), None):
        raise OutputError(f"{out} holds {read}, which is to be read; name another folder")
    if not overwrite:
        instead = "" if overwrite is None else ", or replace it with --overwrite"
        raise OutputError(f"{out} is not empty; name another folder{instead}")
    manifest = _read_json(out) if (out / MANIFEST).exists() else None
    if not isinstance(manifest, dict) or "yupana" not in manifest:
        raise OutputError(f"{out} holds no output of yupana, so --overwrite leaves it alone; name another folder")
    return True


def _remove_interrupted(partial: Path, *, overwrite: bool) -> None:
    """Remove what a killed run left, unless noisy values are in it: those must not be drawn again unnoticed."""
    if not os.path.lexists(partial):
        return
    if partial.is_symlink() or not partial.is_dir():
        raise OutputError(f"{partial}, where the work is done, is no folder; remove it, or name another folder")
    lock = _lock(partial)
    try:
        if any(partial.iterdir()) and not overwrite:
            raise OutputError(
                f"{partial} holds noisy values of an interrupted run. Whoever saw them and those of a new run learns "
                "more than the plan allows. If nobody did, remove the folder or pass --overwrite."
            )
        shutil.rmtree(partial)
    finally:
        os.close(lock)


def _publish(partial: Path, out: Path, *, replaced: bool) -> None:
    """Put a folder into its place in one step, with everything in it on disk before."""
    for path in (*partial.rglob("*"), partial):
        sync(path)
    if replaced and check_out(out, overwrite=True):
        _exchange(partial, out)
    else:
        partial.rename(out)
    with contextlib.suppress(OSError):
        # Some file systems know no sync of a folder; the release stands all the same.
        sync(out.parent)
    if replaced:
        shutil.rmtree(partial, ignore_errors=True)


def _exchange(partial: Path, out: Path) -> None:
    """Let two folders change places, so that at every moment one of the two stands under each name."""
    rename = getattr(ctypes.CDLL(None, use_errno=True), "renameat2", None)
    here = ctypes.c_int(_AT_FDCWD)
    names = (here, os.fsencode(partial), here, os.fsencode(out))
    if rename is not None and rename(*names, ctypes.c_uint(_RENAME_EXCHANGE)) == 0:
        return
    # A file system without this step: a kill between the next two leaves the old release under another name.
    old = Path(tempfile.mkdtemp(prefix=f"{out.name}.replaced-", dir=out.parent))
    out.rename(old)
    try:
        partial.rename(out)
    except OSError:
        old.rename(out)
        raise
    old.rename(partial)


_AT_FDCWD: Final = -100
_RENAME_EXCHANGE: Final = 2


def write_manifest(folder: Path, manifest: dict[str, Any]) -> None:
    """Write manifest.json, whole or not at all."""
    text = json.dumps(manifest, indent=1, allow_nan=False) + "\n"
    with replacing(folder / MANIFEST, folder / f"{MANIFEST}.partial") as file:
        file.write(text.encode())


def read_manifest(folder: Path, *, confidential: bool = False) -> dict[str, Any]:
    """Read manifest.json; its shape is checked (`check_shape`).

    Parameters
    ----------
    confidential : bool
        Whether what it describes may tell the truth about records; only what publishes nothing says so.

    Raises
    ------
    OutputError
        If there is none, or it is no manifest of ours, or nothing may be made of what it describes.
    """
    manifest = check_shape(folder / MANIFEST, _read_json(folder))
    if manifest.get("status") == CONFIDENTIAL and not confidential:
        raise OutputError(
            f"{folder} is {CONFIDENTIAL}: it was made with --internal and tells the truth about the records, so that "
            "nothing is made from it; name a release with noise"
        )
    return manifest


def _read_json(folder: Path) -> object:
    path = folder / MANIFEST
    try:
        return json.loads(
            read_regular(path).decode("utf-8"), object_pairs_hook=unique_keys, parse_constant=_no_constant
        )
    except FileNotFoundError:
        raise OutputError(f"{folder} is no release: it has no {MANIFEST}") from None
    except OSError as error:
        raise OutputError(f"{path} cannot be read: {error.strerror}") from None
    except RecursionError:
        raise OutputError(f"{path} is not a manifest: nested too deeply") from None
    except ValueError:
        raise OutputError(f"{path} is not JSON") from None


def _no_constant(name: str) -> None:
    raise ValueError(f"{name} is not JSON")
