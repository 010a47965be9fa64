"""What a run keeps beside its release until that stands, so that a killed run goes on with what it has drawn.

It holds noisy values, and checksums of the records, so it is for its owner alone.
"""

import glob
import json
import os
import re
import secrets
import shutil
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, NamedTuple, Self

from yupana.errors import OutputError, system_fault
from yupana.files.draw_log import DrawLog, damaged
from yupana.files.regular import read_json, read_regular, real, regular, replacing, sync
from yupana.files.temporary import try_lock
from yupana.interruption import whole

_ENDING: Final = ".checkpoint"
_STATE: Final = "run.json"
_DRAWS: Final = "draws"
_DRAWN: Final = "drawn"
_MEASURED: Final = re.compile(r"[0-9]{2}-[0-9]+\.measured")
SEAL: Final = 32
"""Bytes of SHA-256 that a file of draws begins with."""
_BEGUN: Final = "begun"
_REMOVED: Final = ".removed"
_OURS: Final = re.compile(r"(run|[0-9]{2}-[0-9]+)\.(json|counts|measured|partial)|draws(\.partial)?|drawn")


class Begun(NamedTuple):
    """What is known of a run beside what it was begun with."""

    name: str  # that no other run has. It is charged under this name, and so once.
    account: dict[str, str] | None = None  # what it is charged to, if to anything
    charged: bool = False  # whether it is known to have been


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """The folder of what one run has drawn, readable by its owner alone."""

    folder: Path

    @classmethod
    def beside(cls, out: Path) -> Self:
        """That of a run with this output folder, whatever it is called: what has two names must not be drawn twice."""
        home = real(out)
        return cls(home.parent / f"{home.name}{_ENDING}")

    def part(self, name: str) -> Self:
        """That of a part of a release of several, within this one; this one of a part without a name."""
        return type(self)(self.folder / name) if name else self

    @property
    def exists(self) -> bool:
        """Whether a run, or a part of one, has begun here."""
        return (self.folder / _STATE).exists()

    @property
    def is_begun(self) -> bool:
        """Whether a run has begun here, or a part of one within."""
        return self.exists or any(not path.match(f"*{_REMOVED}/*") for path in self.folder.glob(f"*/{_STATE}"))

    @contextmanager
    def held(self) -> Iterator[None]:
        """Keep other runs from a folder that is there; this goes with the process, however it ends.

        Raises
        ------
        OutputError
            If another run holds it.
        """
        with system_fault(OutputError, f"{self.folder} cannot be read"):
            descriptor = try_lock(self.folder, os.O_RDONLY | os.O_DIRECTORY)
        if descriptor is None:
            raise OutputError(f"another run is using {self.folder}; wait for it, or name another folder")
        try:
            yield
        finally:
            os.close(descriptor)

    @property
    def draws(self) -> Path:
        """The file of what passed the door (`DrawLog`)."""
        return self.folder / _DRAWS

    def begin(self, state: Mapping[str, Any], account: Mapping[str, str] | None = None) -> Begun:
        """Begin a run: what an earlier one left here is removed.

        Parameters
        ----------
        state : mapping
            What must be the same when the run is resumed; it can be written as JSON.
        account : mapping or None
            What the run will be charged to.

        Raises
        ------
        OutputError
            If the folder cannot be made, or holds what no run has left.
        """
        self.check_ours()
        begun = Begun(secrets.token_hex(16), None if account is None else dict(account))
        if os.path.lexists(self.folder):
            self.remove()
        try:
            with self._writing():
                self.folder.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
                self.folder.mkdir(mode=0o700)
                DrawLog.create(self.draws)
                (self.folder / _DRAWN).touch(mode=0o600)
            for new in (self.folder, *(one for one in (self.folder.parent,) if one.name.endswith(_ENDING))):
                with suppress(OSError):  # some file systems know no sync of a folder, and some folders cannot be read
                    sync(new.parent)
            self.note(state, begun)  # without its state a folder is none that a run goes on with, so that comes last
        except OutputError:
            self.remove()
            raise
        return begun

    def check_ours(self) -> None:
        """Refuse a folder that holds anything but what a run leaves: it would be removed.

        Raises
        ------
        OutputError
        """
        if not os.path.lexists(self.folder):
            return
        with system_fault(OutputError, f"{self.folder} cannot be used"):
            if _is_ours(self.folder):
                # Copied or restored, it may have become readable to others.
                self.folder.chmod(0o700)
                return
        raise OutputError(
            f"{self.folder}, where draws are kept, holds what no run has left there; "
            "move it, or name another output folder"
        )

    def note(self, state: Mapping[str, Any], begun: Begun) -> None:
        """Note what is known of a run; it is on disk when this returns.

        Raises
        ------
        OutputError
            If it cannot be written.
        """
        with self._writing(), replacing(self.folder / _STATE, self.folder / "run.partial", mode=0o600) as file:
            file.write(json.dumps({**state, _BEGUN: begun._asdict()}, indent=1).encode())

    def resume(self, state: Mapping[str, Any]) -> Begun:
        """Go on with a run that began with the same state.

        Raises
        ------
        OutputError
            If there is none, it cannot be read, or anything differs; named.
        """
        path = self.folder / _STATE
        try:
            before = read_json(path)
        except FileNotFoundError:
            raise OutputError(f"{self.folder}: there is no interrupted run to resume") from None
        except (OSError, ValueError):
            raise damaged(path) from None
        try:
            begun = Begun(**before[_BEGUN])
        except (KeyError, TypeError):
            raise damaged(path) from None
        kinds = zip(begun, (str, dict | None, bool), strict=True)
        if not all(isinstance(value, kind) for value, kind in kinds):
            raise damaged(path)
        now = json.loads(json.dumps(state))
        known = now.keys() | before.keys() - {_BEGUN}
        if changed := sorted(name for name in known if before.get(name) != now.get(name)):
            raise OutputError(
                f"{self.folder} was begun with other input; changed: {', '.join(changed)}. Put it back, or run anew "
                "with --overwrite if nobody has seen what is there"
            )
        self._check_drawn()
        return begun

    def told(self, name: str) -> Any:  # noqa: ANN401 (of JSON)
        """What the state of the run that began here says under a name; None if nothing."""
        with suppress(OSError, ValueError, AttributeError):
            return read_json(self.folder / _STATE).get(name)
        return None

    def list_drawn(self, name: str, seal: bytes) -> None:
        """Note that a file of draws is there, which begins with its seal; the note is on disk when this returns.

        Without the note a file that somebody removed would be drawn again, uncharged.

        Raises
        ------
        OutputError
            If it cannot be written.
        """
        with self._writing(), (self.folder / _DRAWN).open("ab", buffering=0) as file:
            file.write(f"{name} {seal.hex()}\n".encode())
            os.fsync(file.fileno())

    def _check_drawn(self) -> None:
        """Refuse to go on where a file of draws is gone, or is another one; list those that a death left unlisted."""
        path = self.folder / _DRAWN
        try:
            notes, end, torn = read_regular(path).rpartition(b"\n")
            listed = dict(note.split() for note in notes.decode().splitlines())
            if torn:  # by a death in the midst of a note
                os.truncate(path, len(notes) + len(end))
            seals = {name: bytes.fromhex(seal) for name, seal in listed.items()}
        except (OSError, ValueError):
            raise damaged(path) from None
        for name, seal in seals.items():
            if not _MEASURED.fullmatch(name):
                raise damaged(path)
            if self._seal(name) != seal:
                raise damaged(self.folder / name)
        for file in sorted(self.folder.iterdir()):
            if _MEASURED.fullmatch(file.name) and file.name not in seals:
                self.list_drawn(file.name, self._seal(file.name))

    def _seal(self, name: str) -> bytes:
        """What a file of draws begins with; nothing if it cannot be read."""
        try:
            with open(self.folder / name, "rb", opener=regular) as file:
                return file.read(SEAL)
        except OSError:
            return b""

    def remove(self) -> None:
        """Remove everything: the run is complete.

        The folder loses its name in one step, with all its parts, and then what is in it is removed. So nobody goes on
        with a part of what was kept.
        """
        gone = self.folder.with_name(f"{self.folder.name}.{secrets.token_hex(4)}{_REMOVED}")
        with whole():
            with suppress(OSError):  # it may not be there
                self.folder.rename(gone)
                sync(gone.parent)
            # What runs have left that were killed here goes, too.
            for left in self.folder.parent.glob(f"{glob.escape(self.folder.name)}.*{_REMOVED}"):
                with suppress(OSError):
                    if _is_ours(left):
                        shutil.rmtree(left, ignore_errors=True)

    def _writing(self) -> AbstractContextManager[None]:
        return system_fault(OutputError, f"{self.folder} cannot be written", "; nothing was released")


def is_interrupted(out: Path) -> bool:
    """Whether a run with this output folder, or a part of one, has left a checkpoint."""
    return Checkpoint.beside(out).is_begun


def _is_ours(folder: Path, *, within: bool = True) -> bool:
    """Whether a folder of this user's holds nothing but what runs leave, and folders of parts that do so."""
    if folder.is_symlink() or not folder.is_dir() or folder.stat().st_uid != os.geteuid():
        return False
    return all(_OURS.fullmatch(path.name) or (within and _is_ours(path, within=False)) for path in folder.iterdir())
