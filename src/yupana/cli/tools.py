"""`synth`, `demo`, `explore` and `completion`: what needs no records and no release."""

import argparse
import shlex
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import yupana
from yupana.cli.options import given, tell
from yupana.cli.parser import leaves
from yupana.errors import ConfigError, OutputError, nearest, system_fault

_NAMED_LIKE_FILES = ("CONFIG", "PARAMETERS", "KIND|FOLDER", "DATA")
"""Arguments that are names or files, or URLs."""


def synth(options: argparse.Namespace) -> None:
    """Write a synthetic census."""
    from dataclasses import asdict

    made = yupana.synthesize(**given(options), progress=True)
    text = (
        f"{options.out}: {made.persons:,} persons in {made.households:,} households and {made.group_quarters:,} "
        f"group quarters; {made.vacant:,} housing units are vacant. Nobody in it exists."
    )
    tell(options, asdict(made), [text])


def demo(options: argparse.Namespace) -> None:
    """Make a census, its releases and their atlas."""
    from yupana.confidential.synthetic_demo import RELEASES, demonstrate
    from yupana.progress import listening

    with listening(progress=True, title="demo") as tell:
        page, made = demonstrate(options.out, options.households, tell, overwrite=bool(options.overwrite))
    name = shlex.quote(str(options.out))
    print(
        f"{options.out}: {made.persons:,} invented people, {len(RELEASES)} releases and an atlas of them.\n"
        f"Open:  {page}\n"
        f"Check: yupana check {name}/phsafe\n"
        "Next:  yupana phsafe init config.toml (a configuration of your own); yupana explore (choose budgets)"
    )
    if options.open:
        import webbrowser

        if not webbrowser.open(page.as_uri()):
            print("No browser could be started; open the page yourself.", file=sys.stderr)


def explore(options: argparse.Namespace) -> None:
    """Serve the page for choosing budgets."""
    try:
        from yupana.explore.products import Pages
        from yupana.explore.server import serve
    except ModuleNotFoundError as error:
        if error.name is not None and error.name.startswith("yupana"):
            raise
        raise ConfigError(
            f"the explorer needs the package {error.name}; install Yupana's extra explore (docs/README.md)"
        ) from None
    products = Pages(options.counts, options.parameters, options.topdown, options.tables, options.codes)
    with serving(options.port):
        serve(products, options.port, browser=options.browser)


@contextmanager
def serving(port: int) -> Iterator[None]:
    """Serve a page until Ctrl-C, which is how a page like this is left."""
    told = f"port {port} cannot be used"
    with suppress(KeyboardInterrupt), system_fault(OutputError, told, "; name another with --port"):
        yield


def docs(options: argparse.Namespace) -> None:
    """Print a page of the documentation with what is made of the code, or the titles of all."""
    from yupana.cli.reference import GENERATED

    package = Path(yupana.__file__).parent
    installed = package / "docs"
    folder = installed if installed.is_dir() else package.parents[1] / "docs"
    pages = {path.stem: path for path in sorted(folder.glob("*.md"))}
    if options.page is None:
        for name, path in pages.items():
            print(f"{name:26}{path.read_text(encoding='utf-8').partition(chr(10))[0].removeprefix('# ')}")
        return
    name = options.page.removeprefix("docs/").removesuffix(".md")
    if name not in pages:
        raise ConfigError(f"{name!r} is no page; `yupana docs` lists them{nearest(name, pages)}")
    made = GENERATED.get(name)
    print(pages[name].read_text(encoding="utf-8"), *(["", made()] if made else []), sep="\n")


def completion(options: argparse.Namespace) -> None:
    """Print the script that completes commands."""
    import shtab

    from yupana.cli.main import parser_of_all

    parser = parser_of_all()
    for _, verb in leaves(parser):
        for action in verb._actions:  # noqa: SLF001 (argparse lists its arguments nowhere else)
            if action.type is Path or action.metavar in _NAMED_LIKE_FILES:
                action.complete = shtab.FILE  # type: ignore[attr-defined]
    print(shtab.complete(parser, options.shell))
