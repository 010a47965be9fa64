"""Where the `yupana` command starts: quiet under Ctrl-C even while it is still importing."""

import io
import os
import signal
import sys


def _quiet(_signal: int, _frame: object) -> None:
    os.write(2, b"yupana: interrupted; nothing was released\n")
    os._exit(2)


for _number in (signal.SIGINT, signal.SIGTERM):
    signal.signal(_number, _quiet)

# A stream that is closed reads nothing and loses what is written. Otherwise a file of ours would take its number.
for _name, _flags in (("stdin", os.O_RDONLY), ("stdout", os.O_WRONLY), ("stderr", os.O_WRONLY)):
    if getattr(sys, _name) is None:
        _null = os.open(os.devnull, _flags)  # the lowest number that is free
        setattr(sys, _name, os.fdopen(_null, "r" if _flags == os.O_RDONLY else "w"))

# A letter that the terminal or file cannot take, as on Windows, is no reason to end.
for _stream in (sys.stdout, sys.stderr):
    if isinstance(_stream, io.TextIOWrapper):
        _stream.reconfigure(errors="replace")

# Work is spread over threads of our own; a library that starts more for each small matrix only makes them wait.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")


def entry() -> None:
    """Run the command line and exit with its status."""
    if sys.argv[1:] == ["--version"]:
        from yupana.version import __version__

        # As the parser would say it, which takes ten times as long to be made.
        print(f"yupana {__version__}")
        return
    from yupana.cli.main import main

    sys.exit(main(sys.argv[1:]))
