"""Strike a command at a moment, and judge what it leaves behind and how the next one copes."""

import errno
import io
import json
import random
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout
from dataclasses import dataclass, field
from pathlib import Path
from signal import SIGINT, SIGKILL, SIGTERM
from typing import Any, Final

from yupana.cli.main import main

ZYGOTE: Final = Path(__file__).with_name("attack_zygote.py")


@dataclass(frozen=True, slots=True)
class Struck:
    """A command that is struck.

    Attributes
    ----------
    command : str
        With ``{w}`` for the world and ``{o}`` for where its output goes.
    charges : bool
        Whether it draws noise on a ledger, and can go on with ``--resume``.
    is_file : bool
        Whether it makes a file, or a folder without a manifest, which it writes the same every time and replaces never.
    """

    command: str
    charges: bool = False
    is_file: bool = False

    @property
    def name(self) -> str:
        """For a folder and a test."""
        return "-".join(part for part in self.command.split() if "{" not in part and not part.startswith("--"))


_LEDGER: Final = "--ledger {o}/ledger.json --dataset D"
STRUCK: Final = (
    Struck(f"phsafe run {{w}}/config.json {{w}}/d {{o}}/out {_LEDGER}", charges=True),
    Struck(f"phsafe run {{w}}/config.json {{w}}/d {{o}}/out --format parquet {_LEDGER}", charges=True),
    Struck(f"safetab-p run {{w}}/p {{w}}/d {{o}}/out {_LEDGER}", charges=True),
    Struck(f"safetab-h run {{w}}/p {{w}}/d {{o}}/out --totals {{w}}/relp/T01001.csv {_LEDGER}", charges=True),
    Struck(f"topdown run {{w}}/t.json {{w}}/t {{o}}/out {_LEDGER}", charges=True),
    Struck("phsafe estimate {w}/rel {o}/out"),
    Struck("export {w}/rel {o}/out --to workbook"),
    Struck("export {w}/rel {o}/out --to sdmx"),
    Struck("postprocess coterminous {w}/relp {w}/d/GRF-C.txt {o}/out"),
    Struck("spine build {w}/d/GRF-C.txt {o}/out --kind conventional"),
    Struck("audit certificate {w}/rel {o}/out"),
    Struck(f"tables run {{w}}/homes.toml {{w}}/h {{o}}/out {_LEDGER}", charges=True),
    *(
        Struck(f"tables run {{w}}/{form} {{o}}/out {_LEDGER}", charges=True)
        for form in ("foreign.toml {w}/sav", "fixed.toml {w}/csdb")
    ),
    Struck(f"topdown run {{w}}/t.json {{w}}/t {{o}}/out --estimator full-information {_LEDGER}", charges=True),
    Struck("topdown intervals {w}/relt {o}/out --noisy-measurements {w}/relm"),
    Struck("topdown exact {w}/t.json {w}/t {o}/out"),
    Struck("phsafe accuracy {w}/config.json {w}/d {o}/out --trials 1"),
    Struck("postprocess suppress {w}/relp {w}/policy.toml {o}/out"),
    Struck("synth {o}/out --households 40 --states 44 --seed 1", is_file=True),
    *(Struck(f"{product} init {{o}}/out", is_file=True) for product in ("safetab-p", "tables")),
    Struck("phsafe init {o}/out.json", is_file=True),
    Struck("tables init {o}/out --from {w}/dict/json.dcf", is_file=True),
    Struck("topdown strategy {w}/t.json --out {o}/out", is_file=True),
    Struck("report {w}/rel {o}/out.html", is_file=True),
    Struck("atlas {w}/rel --to {o}/out"),
    Struck("report {w}/relt {o}/out.html", is_file=True),
)


@dataclass(slots=True)
class Moment:
    """When and with what a command is struck; by default it is not.

    Attributes
    ----------
    signals : list of int
    at : list of int
        At which of its events, one for each signal.
    after : float or None
        Or after how many seconds.
    refusal : int
        Or the number of the error that the event at ``at[0]`` ends with.
    """

    signals: list[int] = field(default_factory=list)
    at: list[int] = field(default_factory=list)
    after: float | None = None
    refusal: int = 0


_SIGNALS: Final = ([SIGKILL], [SIGTERM], [SIGINT], [SIGTERM, SIGTERM], [SIGINT, SIGTERM], [])
_ERRORS: Final = (errno.ENOSPC, errno.EIO, errno.EROFS, errno.EMFILE, errno.EACCES)


def _moment(rng: random.Random, events: int, seconds: float) -> Moment:
    signals = list(map(int, rng.choice(_SIGNALS)))
    if signals and rng.random() < 0.3:
        return Moment(signals, after=rng.uniform(0, seconds))
    first = rng.randrange(1, events + 1)
    if rng.random() < 0.4:
        # Publishing is among the last steps, and the one that must be whole.
        first = rng.randrange(max(1, events - 8), events + 1)
    at = [first + 2 * n for n in range(max(1, len(signals)))]
    return Moment(signals, at, refusal=0 if signals else rng.choice(_ERRORS))


_NOISY: Final = (".csv", ".parquet", ".counts", ".measured")
_NO_DRAWS: Final = 96
"""Bytes of a file of draws that holds none."""


class Zygote:
    """The process that forks."""

    def __init__(self, place: Path) -> None:
        self.place = place
        self.process = subprocess.Popen(
            [sys.executable, str(ZYGOTE)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def run(self, arguments: list[str], watched: Path, moment: Moment) -> dict[str, Any]:
        """Run a command; its status, its events, its seconds, and what it told."""
        told = self.place / "told"
        job = {
            "arguments": arguments,
            "watched": str(watched),
            "told": str(told),
            "scratch": str(self.place / "scratch"),
            "signals": moment.signals,
            "at": moment.at,
            "after": moment.after,
            "refusal": moment.refusal,
        }
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(json.dumps(job) + "\n")
        self.process.stdin.flush()
        answer = dict(json.loads(self.process.stdout.readline()))
        return {**answer, "told": told.read_text(errors="replace")}

    def close(self) -> None:
        """End it."""
        self.process.communicate()


@contextmanager
def zygote(place: Path) -> Iterator[Zygote]:
    """Start the process that forks."""
    (place / "scratch").mkdir(exist_ok=True)
    started = Zygote(place)
    try:
        yield started
    finally:
        started.close()


def charges(out: Path) -> int:
    """How many runs the ledger of a case holds."""
    ledger = out / "ledger.json"
    return len(json.loads(ledger.read_text())["data"]["D"]["runs"]) if ledger.exists() else 0


def has_noise(out: Path) -> bool:
    """Whether a run left noisy values under another name than OUT."""
    draws = out / "out.checkpoint" / "draws"
    return (draws.exists() and draws.stat().st_size > _NO_DRAWS) or any(
        path.suffix in _NOISY for name in ("out.partial", "out.checkpoint") for path in (out / name).rglob("*.*")
    )


class Target:
    """A command that was run once without a strike."""

    def __init__(self, own: Zygote, struck: Struck, world: Path, place: Path) -> None:
        self.own, self.struck, self.world, self.place = own, struck, world, place
        self.out = place / "o"
        self.out.mkdir(parents=True)
        arguments = [part.format(w=world, o=self.out) for part in struck.command.split()]
        clean = own.run(arguments, self.out, Moment())
        if clean["status"] != 0:
            raise RuntimeError(clean["told"])
        if struck.is_file:
            shutil.copytree(self.out, place / "old")
        else:
            (self.out / "out").rename(place / "old")
        self.events, self.seconds = int(clean["events"]), float(clean["seconds"])

    def strike(self, rng: random.Random) -> list[str]:
        """Strike at a random moment, over nothing or over an earlier output."""
        if self.struck.is_file:
            moment = _moment(rng, self.events, self.seconds)
            return _strike_file(self.own, self.struck, moment, self.world, self.out, self.place / "old")
        old = self.place / "old" if rng.random() < 0.5 else None
        return _strike(self.own, self.struck, _moment(rng, self.events, self.seconds), self.world, self.out, old=old)


def _strike(own: Zygote, struck: Struck, moment: Moment, world: Path, out: Path, *, old: Path | None) -> list[str]:
    """Strike a command once, and let the next one clear up; tell what is wrong."""
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir()
    arguments = [part.format(w=world, o=out) for part in struck.command.split()]
    if old is not None:
        shutil.copytree(old, out / "out")
        arguments.append("--overwrite")
    done = own.run(arguments, out, moment)
    wrong = _after(struck, done, out, old)
    wrong += _again(own, struck, arguments, out)
    if wrong:
        wrong.append(f"  {moment}, status {done['status']}: {done['told'].strip()[-300:]!r}")
    return wrong


def _files(folder: Path) -> dict[str, bytes]:
    """All files of a folder by their paths in it; a new file that is written has another name every time."""
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def _strike_file(own: Zygote, struck: Struck, moment: Moment, world: Path, out: Path, whole: Path) -> list[str]:
    """Strike a command that makes a file: it is there whole or not at all, and the next run makes it."""
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir()
    arguments = [part.format(w=world, o=out) for part in struck.command.split()]
    done = own.run(arguments, out, moment)
    due, found = _files(whole), _files(out)
    made = {name: content for name, content in found.items() if name in due}
    status, told = done["status"], done["told"]
    wrong = {
        "it hangs": status is None,
        "a fault of the program": status == 1 or "Traceback" in told,
        "half a file is there": bool(made) and made != due,
        f"it left {sorted(found.keys() - due.keys())}": status == 2 and bool(found.keys() - due.keys()),
        "it ended well without its file": status == 0 and made != due,
    }
    failures = [words for words, holds in wrong.items() if holds]
    if not made:
        again = own.run(arguments, out, Moment())
        if again["status"] != 0 or {name: of for name, of in _files(out).items() if name in due} != due:
            failures.append(f"the next run fails: {again['told'].strip()[-300:]}")
    return failures and [*failures, f"  {moment}, status {status}: {told.strip()[-300:]!r}"]


def _manifest(folder: Path) -> bytes | None:
    path = folder / "manifest.json"
    return path.read_bytes() if path.exists() else None


def _after(struck: Struck, done: dict[str, Any], out: Path, old: Path | None) -> list[str]:
    """What may be there after a strike."""
    status, told = done["status"], done["told"]
    before = None if old is None else _manifest(old)
    now = _manifest(out / "out")
    is_new = now is not None and now != before
    kept = {"ledger.json", "ledger.json.lock", "out"} | ({"out.checkpoint"} if struck.charges else set())
    # The log of a release that stands is kept where it was written, and named, if it cannot be given its own name.
    told_of = is_new and "out.confidential.log.partial, for " in told
    logs = {"out.confidential.log"} | ({"out.confidential.log.partial"} if told_of else set())
    left = sorted({path.name for path in out.iterdir()} - kept - (logs if is_new else set()))
    charged = charges(out) > 0
    found = {
        "it hangs": status is None,
        "a fault of the program": status == 1 or "Traceback" in told,
        "OUT is there without a manifest": (out / "out").exists() and now is None,
        "the release that was to be replaced is gone": old is not None and now is None,
        "check refuses what stands in OUT": now is not None and _checked(out / "out") != 0,
        "it ended well without a release": status == 0 and now is None,
        "it said that nothing was released, but it was": status == 2 and "nothing was" in told and is_new,
        "a confidential log is there without its release": (out / "out.confidential.log").exists() and not is_new,
        "noise on disk was not charged": struck.charges and has_noise(out) and not charged,
        "it released without a charge": struck.charges and is_new and not charged,
        f"it left {', '.join(left)}": status == 2 and bool(left),
    }
    return [words for words, holds in found.items() if holds]


def _checked(release: Path) -> int:
    with redirect_stdout(io.StringIO()):
        return main(["check", str(release)])


def _again(own: Zygote, struck: Struck, arguments: list[str], out: Path) -> list[str]:
    """How the next run of the same command copes."""
    wrong = []
    stands = (out / "out").exists()
    if struck.charges and has_noise(out) and not stands:
        plain = own.run([a for a in arguments if a != "--overwrite"], out, Moment())
        if plain["status"] != 2:
            wrong.append("noise on disk was drawn again without --overwrite")
    spent = charges(out)
    resuming = struck.charges and (out / "out.checkpoint" / "run.json").exists()
    more = ["--resume"] if resuming else []
    done = own.run([*arguments, *more, *([] if "--overwrite" in arguments else ["--overwrite"])], out, Moment())
    if done["status"] != 0:
        wrong.append(f"the next run fails: {done['told'].strip()[-300:]}")
        return wrong
    if resuming and charges(out) != max(spent, 1):
        wrong.append(f"a run that went on was charged {charges(out) - spent} times more")
    kept = {"ledger.json", "ledger.json.lock", "out", "out.confidential.log"}
    if left := sorted({path.name for path in out.iterdir()} - kept):
        wrong.append(f"the next run leaves {', '.join(left)}")
    scratch = list((own.place / "scratch").glob("yupana-scratch-*/*"))
    if scratch and "run" in arguments:
        wrong.append("the scratch folder of the killed run is still there")
    return wrong
