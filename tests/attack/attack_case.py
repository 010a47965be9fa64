"""One case: a file is spoiled, a command runs in this process, and what it did is judged."""

import contextlib
import io
import os
import random
import shutil
import signal
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from attack_mutations import CANARIES, CONTENT, KIND
from attack_table import Attacked

import yupana
from yupana.cli.main import main
from yupana.errors import YupanaError
from yupana.explore.products import Pages

LIMIT: Final = 60
"""Seconds after which a command is taken to hang."""

MOST: Final = 2**30
"""Bytes of memory that a command may take beyond what this process has."""


def _pages(counts: str, parameters: str, topdown: str, tables: str) -> None:
    Pages(Path(counts), Path(parameters), topdown, tables)


CALLS: Final[dict[str, Callable[..., object]]] = {
    "read_pl": yupana.read_pl,
    "write_pl": yupana.write_pl,
    "pages": _pages,
}
"""What is attacked beside the command line, by the first word of a command."""


class HangError(BaseException):
    """A command that does not end."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a command did."""

    status: int
    told: str
    memory: int = 0


def _late(_signal: int, _frame: object) -> None:
    raise HangError


def _call(name: str, *arguments: str) -> int:
    try:
        CALLS[name](*arguments)
    except YupanaError as error:
        print(error)
        return 2
    except Exception as error:  # noqa: BLE001 (a finding)
        print(f"{type(error).__name__}: {error}")
        return 1
    return 0


def run(arguments: list[str]) -> Outcome:
    """Run a command in this process."""
    told = io.StringIO()
    _most_memory()
    before = _most_memory()
    # What prints to the file descriptors themselves is not of the command line.
    signal.signal(signal.SIGALRM, _late)
    signal.alarm(LIMIT)
    try:
        with contextlib.redirect_stdout(told), contextlib.redirect_stderr(told):
            status = _call(*arguments) if arguments[0] in CALLS else main(arguments)
    except SystemExit as end:
        status = int(end.code or 0)
    except HangError:
        return Outcome(-1, f"{told.getvalue()}\nit hangs")
    finally:
        signal.alarm(0)
    return Outcome(status, told.getvalue(), _most_memory() - before)


def _most_memory() -> int:
    """The most memory that this process had since it was last asked, in bytes; 0 where the system does not tell."""
    try:
        told = Path("/proc/self/status").read_text()
        Path("/proc/self/clear_refs").write_text("5")
    except OSError:
        return 0
    return 1024 * int(told.partition("VmHWM:")[2].split()[0])


@contextlib.contextmanager
def spoiled(path: Path, rng: random.Random) -> Iterator[str]:
    """Spoil a file, tell how, and put it back."""
    kept, mode = path.read_bytes(), path.stat().st_mode
    try:
        if rng.random() < 0.12:
            kind = rng.choice(KIND)
            path.unlink()
            kind(path)
            yield kind.__name__
        else:
            way = rng.choice(CONTENT)
            path.write_bytes(way(kept, rng))
            yield way.__name__
    finally:
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        elif os.path.lexists(path):
            path.unlink()
        path.write_bytes(kept)
        path.chmod(mode)


def targets(world: Path, attacked: Attacked) -> list[Path]:
    """The files that a command reads."""
    found = {path for pattern in attacked.inputs for path in world.glob(pattern) if path.is_file()}
    return sorted(found)


def secrets_of(world: Path) -> tuple[str, ...]:
    """What is written in records and nowhere else: the numbers of housing units."""
    lines = (world / "d" / "units.csv").read_text().splitlines()[1:]
    return (*CANARIES, *{line.split("|")[1] for line in lines} - _IN_RULES)


_IN_RULES: Final = {"100000001", "899999999"}
"""The ends of the domain of MAFID, which messages name."""


def judge(attacked: Attacked, outcome: Outcome, out: Path, secrets: tuple[str, ...]) -> list[str]:
    """What a command did that none may do."""
    there = sorted(path.name for path in out.iterdir())
    left = [name for name in there if name != "ledger.json.lock"]
    refused, done = outcome.status == 2, outcome.status == 0
    told = outcome.told
    rules = (
        (not refused and not done, f"it ended with {outcome.status}"),
        ("Traceback" in told, "it printed a traceback"),
        ("Warning:" in told, "it printed a warning of a library"),
        ("\x1b" in told or "\x07" in told, "it told the terminal what that would obey"),
        (outcome.memory > MOST, f"it took {outcome.memory / 2**30:.1f} GB of memory"),
        (refused and not told.strip(), "it refused without a word"),
        (attacked.confidential and any(secret in told for secret in secrets), "it showed a value of a record"),
        (refused and bool(left), f"it refused and left {', '.join(left)}"),
        (done and any(name.endswith((".partial", ".new")) for name in there), f"it left {', '.join(there)}"),
    )
    wrong = [words for is_wrong, words in rules if is_wrong]
    if outcome.status == 0 and " run " in attacked.command and (out / "out").exists():
        checked = run(["check", str(out / "out")])
        if checked.status != 0:
            wrong.append(f"it released what check refuses: {checked.told[-300:]}")
    return wrong


def attack(world: Path, attacked: Attacked, seed: str, place: Path) -> str | None:
    """Try one case; tell what went wrong, and how to see it again."""
    rng = random.Random(seed)  # noqa: S311 (an attack that can be repeated)
    path = rng.choice(targets(world, attacked))
    out = place / "o"
    out.mkdir()
    try:
        with spoiled(path, rng) as how:
            arguments = [part.format(w=world, o=out) for part in attacked.command.split()]
            outcome = run(arguments)
        # What was put into a document of the user's own is no record, and messages quote it.
        written = CANARIES if path.suffix in {".toml", ".json"} else ()
        wrong = judge(attacked, outcome, out, tuple(set(secrets_of(world)) - {*written}))
    finally:
        shutil.rmtree(out)
    if not wrong:
        return None
    tail = " / ".join(outcome.told.strip().splitlines()[-3:])[-400:]
    return f"{seed}: {how} of {path.relative_to(world)}: {attacked.command}\n    {'; '.join(wrong)}\n    {tail}"
