"""`yupana explore`: a page in the browser where budgets are chosen by looking."""

import argparse
from pathlib import Path

from yupana.cli.arguments import Commands
from yupana.errors import ConfigError, OutputError

_DEFAULT_PORT = 0


def add(commands: Commands) -> None:
    """Add the command."""
    parser = commands.add_parser(
        "explore",
        help="choose budgets by looking: a local page in the browser",
        description="Serves a page to this machine alone, and prints its address. It reads plans, never records. "
        "Ctrl-C ends it.",
    )
    parser.add_argument("--port", type=_port, default=_DEFAULT_PORT, metavar="N", help="0 takes any that is free (0)")
    parser.add_argument("--no-browser", action="store_true", help="only print the address")
    parser.add_argument(
        "--counts", type=Path, metavar="RELEASE", help="a release of phsafe whose counts errors are set against"
    )
    parser.add_argument(
        "--parameters", type=Path, metavar="FOLDER", help="the codes and iterations of SafeTab (the demonstration's)"
    )
    parser.add_argument(
        "--topdown", metavar="CONFIG", help="a configuration of TopDown to show too: a file, or a built-in name"
    )
    parser.add_argument(
        "--tables", metavar="DESCRIPTION", help="a description of tables to show too: a file, or a built-in name"
    )
    text = "the public files of codes and groups that --tables names (where it lies)"
    parser.add_argument("--codes", type=Path, metavar="FOLDER", help=text)
    parser.set_defaults(command=_explore)


def _port(text: str) -> int:
    if not text.isdecimal() or int(text) > 65_535:
        raise argparse.ArgumentTypeError(f"{text!r} is no port: a whole number from 0 to 65535")
    return int(text)


def _explore(options: argparse.Namespace) -> None:
    try:
        from yupana.explore.products import Pages
        from yupana.explore.server import serve
    except ModuleNotFoundError as error:
        if error.name is not None and error.name.startswith("yupana"):
            raise
        raise ConfigError(
            f"the explorer needs the package {error.name}; install it: pip install 'yupana[explore]'"
        ) from None
    products = Pages(options.counts, options.parameters, options.topdown, options.tables, options.codes)
    try:
        serve(products, options.port, browser=not options.no_browser)
    except OSError as error:
        raise OutputError(f"port {options.port} cannot be used: {error.strerror}; name another with --port") from None
    except KeyboardInterrupt:
        # How a page like this is left.
        return
