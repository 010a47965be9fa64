"""The commands together, and what happens to errors."""

import argparse
import contextlib
import functools
import os
import signal
import sys
import traceback
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from yupana import interruption
from yupana.cli import configuration, product, release, spine, tools
from yupana.cli.account import account
from yupana.cli.audit_attribute import attribute
from yupana.cli.audit_epl import epl
from yupana.cli.count import count
from yupana.cli.examples import add_examples
from yupana.cli.interval import interval
from yupana.cli.options import add_command, add_product
from yupana.cli.parser import Parser
from yupana.errors import YupanaError, visible
from yupana.files.temporary import keep_fault
from yupana.products import PRODUCTS
from yupana.version import __version__

_BAD_REQUEST = 2
_FAULT = 1

_DO_OF_PRODUCTS: Mapping[str, Callable[[str, argparse.Namespace], None]] = {
    **product.DO,
    "init": configuration.init,
    "schema": configuration.schema,
    "show": configuration.show,
}
"""What does each of `VERBS`."""

_DO = {
    "synth": tools.synth,
    "phsafe estimate": release.estimate,
    "topdown estimate": release.estimate_measurements,
    "topdown intervals": release.intervals,
    "topdown pl": release.pl,
    "count": count,
    "postprocess coterminous": release.coterminous,
    "postprocess suppress": release.suppress,
    "spine build": spine.build,
    "spine distance": spine.distance,
    "spine report": spine.report,
    "interval": interval,
    "districts": release.districts,
    "account": account,
    "audit epl": epl,
    "audit attribute": attribute,
    "audit certificate": release.certificate,
    "explore": tools.explore,
    "check": release.check,
    "sign": release.sign,
    "report": release.report,
    "atlas": release.atlas,
    "export": release.export,
    "demo": tools.demo,
    "docs": tools.docs,
    "completion": tools.completion,
}
"""What does each of `COMMANDS`."""


def main(arguments: Sequence[str]) -> int:
    """Run one command; return its exit status."""
    interruption.begin()
    signal.signal(signal.SIGINT, interruption.stop)
    signal.signal(signal.SIGTERM, interruption.stop)
    try:
        parser = parser_of_all()
        for argument in arguments:
            # The parser would take the value for the end of options.
            if argument.startswith("--") and argument.endswith("=--"):
                parser.error(f"argument {argument.removesuffix('=--')}: '--' is no value")
        options = parser.parse_args(arguments)
        options.command(options)
        sys.stdout.flush()
    except (KeyboardInterrupt, Exception) as error:  # noqa: BLE001 (told by `_end`)
        return _told(error)
    return 0


def _told(error: BaseException) -> int:
    """Tell why a command ended, whatever signals come meanwhile."""
    while True:
        with contextlib.suppress(KeyboardInterrupt):
            interruption.end()
            return _end(error)


def _end(error: BaseException) -> int:
    """Tell why a command ended; an error of a library may quote records, so only its place is told."""
    if isinstance(error, YupanaError):
        return _fail(str(error), _BAD_REQUEST)
    if isinstance(error, KeyboardInterrupt):
        return _fail(interruption.words(), _BAD_REQUEST)
    if isinstance(error, OSError):
        return _fail_system(error)
    if isinstance(error, MemoryError):
        return _fail("memory ran out; give the run more, or ask for less at once", _BAD_REQUEST)
    if interruption.is_stopped():
        # A library has words of its own for a signal within it.
        return _fail(interruption.words(), _BAD_REQUEST)
    return _fail(_fault(error), _FAULT)


@functools.cache
def parser_of_all() -> argparse.ArgumentParser:
    """The parser of every command, made once by a process."""
    parser = Parser(
        prog="yupana",
        description="Disclosure avoidance for censuses: confidential records in, protected tables out.",
        epilog="To begin: `yupana demo demo --open`. `yupana COMMAND --help` ends in examples. Where a text names a "
        "page, such as docs/tables.md, `yupana docs tables` prints it.",
    )
    parser.add_argument("--version", action="version", version=f"yupana {__version__}")
    commands = parser.add_subparsers(metavar="COMMAND", required=True)
    for key in PRODUCTS:
        add_product(commands, key, _DO_OF_PRODUCTS)
    for words, do in _DO.items():
        add_command(commands, words, do)
    add_examples(parser)
    return parser


def _fail(message: str, status: int) -> int:
    with contextlib.suppress(OSError):
        print(f"yupana: {visible(message)}", file=sys.stderr, flush=True)
    return status


def _fail_system(error: OSError) -> int:
    """Tell what the operating system refused; where no file has a name, it is stdout: no reader, or a full disk."""
    if error.filename is not None:
        return _fail(f"{error.filename}: {error.strerror}", _BAD_REQUEST)
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return (
        0
        if isinstance(error, BrokenPipeError)
        else _fail(f"the answer cannot be written: {error.strerror}{interruption.stands()}", _BAD_REQUEST)
    )


def _fault(error: BaseException) -> str:
    """Describe a fault by its place. The traceback goes to a private file: its last line may quote a record."""
    frame = traceback.extract_tb(error.__traceback__)[-1]
    return (
        f"a fault of the program: {type(error).__name__} at {Path(frame.filename).name}:{frame.lineno}. "
        f"Please report it. {keep_fault(error)}"
    )
