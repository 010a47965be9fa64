"""A process that has imported everything and forks for each command, so that killing one costs a moment only.

Reads a job a line from stdin, as JSON, and answers each with a line. A command can be sent signals, or be refused by
the system, at the n-th time that it opens, makes, renames or removes something in the folder it is watched in.
"""

import json
import os
import signal
import sys
import threading
import time
from typing import Any, Final

import duckdb  # noqa: F401 (imported once, here)

import yupana.cli.main
import yupana.confidential.described.phsafe
import yupana.confidential.described.safetab
import yupana.confidential.topdown.counter
import yupana.estimate.coterminous
import yupana.report.final_tables

_EVENTS: Final = {"open", "os.rename", "os.remove", "os.mkdir", "os.rmdir", "os.link", "shutil.rmtree"}
_LONGEST: Final = 120.0


def _watch(job: dict[str, Any], counter: int) -> None:
    """Count what happens in the watched folder, and strike at the n-th."""
    watched, at, seen = job["watched"], job["at"], 0

    def hook(event: str, arguments: tuple[Any, ...]) -> None:
        nonlocal seen
        if event not in _EVENTS or not isinstance(arguments[0], str | os.PathLike):
            return
        if not os.fspath(arguments[0]).startswith(watched):
            return
        seen += 1
        os.pwrite(counter, seen.to_bytes(8, "little"), 0)
        for place, number in zip(at, job["signals"], strict=False):
            if seen == place:
                os.kill(os.getpid(), number)
        if at and seen == at[0] and job["refusal"]:
            raise OSError(job["refusal"], os.strerror(job["refusal"]), os.fspath(arguments[0]))

    sys.addaudithook(hook)


def _child(job: dict[str, Any], counter: int) -> None:
    told = os.open(job["told"], os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    os.dup2(told, 1)
    os.dup2(told, 2)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.environ["TMPDIR"] = job["scratch"]
    begun = None if job["after"] is None else threading.Event()
    if begun is not None:
        # A process that is asked to wait by its parent may be killed anywhere.
        parent = os.getpid()

        def strike() -> None:
            begun.wait()  # or the strike meets the start of this thread, which is none of the command's
            time.sleep(job["after"])
            for number in job["signals"]:
                os.kill(parent, number)
                time.sleep(0.002)

        threading.Thread(target=strike, daemon=True).start()
    _watch(job if job["after"] is None else {**job, "at": []}, counter)
    if begun is not None:
        begun.set()
    try:
        status = yupana.cli.main.main(job["arguments"])
    except SystemExit as end:
        status = int(end.code or 0)
    sys.stdout.flush()
    os._exit(status)


def _serve(job: dict[str, Any]) -> dict[str, Any]:
    counter = os.memfd_create("counter")
    began = time.monotonic()
    child = os.fork()
    if child == 0:
        _child(job, counter)
    while (ended := os.waitpid(child, os.WNOHANG))[0] == 0:
        if time.monotonic() - began > _LONGEST:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
            return {"status": None, "events": 0, "seconds": _LONGEST}
        time.sleep(0.002)
    events = int.from_bytes(os.pread(counter, 8, 0), "little")
    os.close(counter)
    return {"status": os.waitstatus_to_exitcode(ended[1]), "events": events, "seconds": time.monotonic() - began}


if __name__ == "__main__":
    for line in sys.stdin:
        print(json.dumps(_serve(json.loads(line))), flush=True)
