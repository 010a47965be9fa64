"""The commands together, and what happens to errors."""

import argparse
import os
import signal
import sys
import tempfile
import traceback
from collections.abc import Sequence
from pathlib import Path
from types import FrameType

import hollerith
from hollerith.cli import (
    account,
    audit,
    check,
    demo,
    explore,
    interval,
    phsafe,
    postprocess,
    safetab,
    spine,
    synth,
    topdown,
)
from hollerith.errors import HollerithError

_BAD_REQUEST = 2
_FAULT = 1


def main(arguments: Sequence[str]) -> int:
    """Run one command; return its exit status."""
    signal.signal(signal.SIGINT, _stop)
    signal.signal(signal.SIGTERM, _stop)
    options = _parser().parse_args(arguments)
    try:
        options.command(options)
        sys.stdout.flush()
    except HollerithError as error:
        return _fail(str(error), _BAD_REQUEST)
    except KeyboardInterrupt:
        return _fail("interrupted; nothing was released", _BAD_REQUEST)
    except OSError as error:
        return _fail_system(error)
    except Exception as error:  # noqa: BLE001 (an error of ours may quote records, so only its place is told)
        return _fail(_fault(error), _FAULT)
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="hollerith",
        description="Disclosure avoidance for censuses: confidential records in, protected tables out.",
    )
    parser.add_argument("--version", action="version", version=f"hollerith {hollerith.__version__}")
    commands = parser.add_subparsers(metavar="COMMAND", required=True)
    for module in (synth, phsafe, postprocess, safetab, spine, topdown, interval, account, audit, explore, check, demo):
        module.add(commands)
    return parser


def _fail(message: str, status: int) -> int:
    print(f"hollerith: {message}", file=sys.stderr)
    return status


def _fail_system(error: OSError) -> int:
    """Tell what the operating system refused; where no file has a name, it is stdout: no reader, or a full disk."""
    if error.filename is not None:
        return _fail(f"{error.filename}: {error.strerror}", _BAD_REQUEST)
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return (
        0
        if isinstance(error, BrokenPipeError)
        else _fail(f"the answer cannot be written: {error.strerror}", _BAD_REQUEST)
    )


def _fault(error: Exception) -> str:
    """Describe a fault by its place. The traceback goes to a private file: its last line may quote a record."""
    descriptor, name = tempfile.mkstemp(prefix="hollerith-fault-", suffix=".confidential.log")
    with os.fdopen(descriptor, "w") as file:
        traceback.print_exception(error, file=file)
    frame = traceback.extract_tb(error.__traceback__)[-1]
    return (
        f"a fault of the program: {type(error).__name__} at {Path(frame.filename).name}:{frame.lineno}. "
        f"Please report it. Details are in {name}, which may hold confidential values."
    )


def _stop(_signal: int, _frame: FrameType | None) -> None:
    raise KeyboardInterrupt
