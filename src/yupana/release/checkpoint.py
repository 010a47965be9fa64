"""What a run keeps beside its release until that stands, so that a killed run goes on with what it has drawn.

It holds noisy values, and checksums of the records, so it is for its owner alone.
"""

import json
import os
import re
import secrets
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, NamedTuple, Self

from yupana.errors import OutputError
from yupana.files.draw_log import DrawLog, damaged
from yupana.files.regular import read_json, real, replacing

_ENDING: Final = ".checkpoint"
_STATE: Final = "run.json"
_DRAWS: Final = "draws"
_BEGUN: Final = "begun"
_OURS: Final = re.compile(r"(run|[0-9]{2}-[0-9]+)\.(json|counts|measured|partial)|draws(\.partial)?")


class Begun(NamedTuple):
    """What is known of a run beside what it was begun with.

    Attributes
    ----------
    name : str
        That no other run has. It is charged under this name, and so once.
    account : dict of str to str, or None
        What it is charged to, if to anything.
    charged : bool
        Whether it is known to have been.
    """

    name: str
    account: dict[str, str] | None = None
    charged: bool = False


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """The folder of what one run has drawn, readable by its owner alone."""

    folder: Path

    @classmethod
    def beside(cls, out: Path) -> Self:
        """That of a run with this output folder, whatever it is called: what has two names must not be drawn twice."""
        home = real(out)
        return cls(home.parent / f"{home.name}{_ENDING}")

    @property
    def exists(self) -> bool:
        """Whether a run has begun here."""
        return (self.folder / _STATE).exists()

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
        try:
            with self._writing():
                # Without its state a folder is none that a run goes on with, so that goes first and comes last.
                (self.folder / _STATE).unlink(missing_ok=True)
                shutil.rmtree(self.folder, ignore_errors=True)
                self.folder.mkdir(mode=0o700, parents=True)
                DrawLog.create(self.draws)
            self.note(state, begun)
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
        is_folder = self.folder.is_dir() and not self.folder.is_symlink()
        try:
            if is_folder and all(_OURS.fullmatch(path.name) for path in self.folder.iterdir()):
                return
        except OSError as error:
            raise OutputError(f"{self.folder} cannot be read: {error.strerror}") from None
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
        return begun

    def remove(self) -> None:
        """Remove everything: the run is complete."""
        shutil.rmtree(self.folder, ignore_errors=True)

    @contextmanager
    def _writing(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise OutputError(f"{self.folder} cannot be written: {error.strerror}; nothing was released") from None


def is_interrupted(out: Path) -> bool:
    """Whether a run with this output folder, or a part of one, has left a checkpoint."""
    home = real(out)
    beside = home.parent.iterdir() if home.parent.is_dir() else ()
    return any(
        path.name.startswith(f"{home.name}.") and path.name.endswith(_ENDING) and Checkpoint(path).exists
        for path in beside
    )
