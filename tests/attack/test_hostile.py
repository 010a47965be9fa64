"""Releases whose names of files point elsewhere: no command that reads one follows them, out of it or into the net."""

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from copy import deepcopy
from pathlib import Path
from typing import Any, Final

import pytest
from attack_lies import READERS
from attack_mutations import Place, altered, places, written

CANARY: Final = "97531864"
"""What is written in the bait and nowhere else."""

_ANSWER: Final = """
import contextlib, io, json, sys
from yupana.cli.main import main
for arguments in json.load(open(sys.argv[1])):
    told = io.StringIO()
    with contextlib.redirect_stdout(told), contextlib.redirect_stderr(told):
        status = main(arguments)
    print(json.dumps([status, told.getvalue()]))
"""
_MOST: Final = 2
"""Places of one document that are tried, evenly spread."""

_IS_FILE: Final = re.compile(r"[\w./-]+\.(csv|parquet|json|html|txt|zip|md)")


def _names(document: Any) -> list[Place]:  # noqa: ANN401 (a document)
    """Where a document names files, as values or as keys."""

    def value(place: Place) -> Any:  # noqa: ANN401 (a document)
        found = document
        for step in place:
            found = found[step]
        return found

    found = [
        place
        for place in places(document)
        if place
        and (
            (isinstance(text := value(place), str) and _IS_FILE.fullmatch(text))
            or (isinstance(place[-1], str) and _IS_FILE.fullmatch(place[-1]))
            or place[0] in {"tables", "reports", "inputs", "resources"}
        )
    ]
    return found[:: max(len(found) // _MOST, 1)]


def _baited(release: Path, bait: Path, place: Path) -> Iterator[Path]:
    """Copies of a release, each with another name of a file, or a link in place of a file."""
    targets = (str(bait), os.path.relpath(bait, release), "http://127.0.0.1:9/bait.csv", "s3://bait/bait.csv", "*.csv")
    documents = [path for name in ("manifest.json", "datapackage.json") if (path := release / name).exists()]
    number = 0
    for path in documents:
        document = json.loads(path.read_bytes())
        for at in _names(document):
            target = targets[number % len(targets)]
            number += 1
            copy = place / f"r{number}"
            shutil.copytree(release, copy)
            is_key = isinstance(at[-1], str) and (_IS_FILE.fullmatch(at[-1]) or number % 2)
            spoiled = _with_key(document, at, target) if is_key else altered(document, at, "another value", target)
            (copy / path.name).write_bytes(written(spoiled))
            yield copy
    for path in sorted(release.rglob("*.csv"))[:1]:
        number += 1
        copy = place / f"r{number}"
        shutil.copytree(release, copy)
        (copy / path.relative_to(release)).unlink()
        (copy / path.relative_to(release)).symlink_to(bait.with_name("linked.csv"))
        yield copy


def _with_key(document: Any, at: Place, key: str) -> Any:  # noqa: ANN401 (a document)
    copy = deepcopy(document)
    within = copy
    for step in at[:-1]:
        within = within[step]
    within[key] = within.pop(at[-1])
    return copy


_LEAVES: Final = re.compile(
    r"""\b(?:connect|sendto|bind)\(.*AF_INET"""
    r"""|\bexecve\(.*\) = 0"""
    r"""|\bopenat\([^"]*"[^"]*/bait\.csv".* = \d+"""
)
_MAKES: Final = re.compile(
    r"""\b(?:openat\([^"]*"([^"]+)".*O_CREAT.* = \d+|(?:mkdir|rename|unlink|link)(?:at)?\(.*?"([^"]+)".* = 0)"""
)


@pytest.mark.skipif(shutil.which("strace") is None, reason="strace is not installed")
@pytest.mark.thorough
@pytest.mark.parametrize("release", READERS)
def test_no_reader_follows_a_name_out_of_a_release(world: Path, tmp_path: Path, release: str) -> None:
    bait = tmp_path / "bait.csv"
    bait.write_text(f"A|B|COUNT\n{CANARY}|{CANARY}|{CANARY}\n")
    shutil.copy(bait, tmp_path / "linked.csv")
    made = tmp_path / "o"
    made.mkdir()
    readers = [reader for reader in READERS[release] if "{r}" in reader]
    jobs = [
        [part.format(r=copy, w=world, o=made / str(number)) for part in reader.split()]
        for number, copy in enumerate(_baited(world / release, bait, tmp_path))
        for reader in (readers[number % len(readers)],)
    ]
    for number in range(len(jobs)):
        (made / str(number)).mkdir()
    (tmp_path / "jobs.json").write_text(json.dumps(jobs))
    told, calls = _traced(tmp_path, _ANSWER, str(tmp_path / "jobs.json"))
    answers = [json.loads(line) for line in told.splitlines()]
    assert len(answers) == len(jobs) > 0
    wrong = [
        f"{' '.join(job)}: {status}: {told[-300:]}"
        for job, (status, told) in zip(jobs, answers, strict=True)
        if status not in {0, 2} or CANARY in told or "Traceback" in told
    ]
    wrong += [str(path) for path in made.rglob("*") if path.is_file() and CANARY.encode() in path.read_bytes()]
    assert not [*wrong, *_followed(calls, tmp_path)]


@pytest.mark.skipif(shutil.which("strace") is None, reason="strace is not installed")
@pytest.mark.slow
def test_a_reader_that_follows_is_found(tmp_path: Path) -> None:
    """The judge itself."""
    for name in ("o", "bait.csv"):
        (tmp_path / name).write_text("")
    follows = {
        "open(sys.argv[1] + '/bait.csv')": "bait.csv",
        "socket.create_connection(('127.0.0.1', 9))": "AF_INET",
        "os.system('true')": "execve",
        "os.mkdir(sys.argv[1] + '/../made')": "made",
        "open(sys.argv[1] + '/o')": "",
    }
    for call, found in follows.items():
        lines = f"import contextlib, os, socket, sys\nwith contextlib.suppress(OSError): {call}"
        wrong = _followed(_traced(tmp_path, lines, str(tmp_path))[1], tmp_path)
        assert bool(wrong) == bool(found), call
        assert all(found in line for line in wrong)


def _traced(place: Path, program: str, argument: str) -> tuple[str, list[str]]:
    """What a program writes, and its calls of the system on files and the net after it began."""
    log = place / "log"
    traced = ["strace", "-f", "-qq", "-e", "trace=%file,%network", "-o", str(log), sys.executable, "-c"]
    done = subprocess.run([*traced, program, argument], capture_output=True, text=True, check=True)
    return done.stdout, log.read_text(errors="replace").splitlines()[1:]


def _followed(calls: list[str], place: Path) -> list[str]:
    """The calls that leave a release: that use the net, run a program, open the bait or write anywhere else."""
    homes = (str(place / "o"), str(place / "scratch"), "/dev/null", f"{tempfile.gettempdir()}/yupana-")
    made = {line: found[1] or found[2] for line in calls if (found := _MAKES.search(line))}
    left = [
        line for line, path in made.items() if path.startswith("/") and not os.path.normpath(path).startswith(homes)
    ]
    return [line for line in calls if _LEAVES.search(line)] + [line for line in left if "__pycache__" not in line]
