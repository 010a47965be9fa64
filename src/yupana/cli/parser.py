"""The parser of the command line: what was meant is suggested, and a help text keeps the lines of its examples."""

import argparse
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final, NoReturn

from yupana.errors import nearest, visible

_BAD_REQUEST = 2

_MOST_LINES: Final = 5
"""Of a usage that is shown above an error."""


class Parser(argparse.ArgumentParser):
    """A parser that suggests the nearest command, verb, option or choice to one that there is not."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:  # noqa: ANN401 (argparse passes its own)
        super().__init__(*args, **{"formatter_class": _Formatter, **kwargs})
        self.register("type", Path, path)  # of every argument whose type is Path

    def parse_known_args(  # type: ignore[override]
        self, args: Sequence[str] | None = None, namespace: argparse.Namespace | None = None
    ) -> tuple[argparse.Namespace, list[str]]:
        """Parse, and refuse at once what no action takes: the verb at hand knows the options that were meant."""
        given = list(sys.argv[1:] if args is None else args)
        if verbs_of(self) is not None:
            self._check_first(given)
        found, left = super().parse_known_args(given, namespace)
        if left:
            self._refuse(left)
        return found, left

    def _check_first(self, given: list[str]) -> None:
        """Where a command or verb must stand: show the help if there is none, and refuse an unknown option."""
        if not given:
            self.print_help(sys.stderr)
            self.exit(_BAD_REQUEST)
        if given[0].startswith("--") and not any(known.startswith(given[0]) for known in self._option_string_actions):
            self._refuse(given[:1])

    def _refuse(self, words: list[str]) -> None:
        meant = nearest(words[0].partition("=")[0], self._option_string_actions)
        self.error(visible(f"unrecognized arguments: {' '.join(words)}{meant}"))

    def error(self, message: str) -> NoReturn:
        """Refuse; of a command with many options the usage is what must be given, so that the reason is not lost."""
        lines = self.format_usage().splitlines()
        needed = lines if len(lines) <= _MOST_LINES else [f"usage: {self.prog} [OPTIONS] {lines[-1].strip()}"]
        self.exit(_BAD_REQUEST, "\n".join([*needed, f"{self.prog}: error: {message}", ""]))

    def _check_value(self, action: argparse.Action, value: Any) -> None:  # noqa: ANN401 (argparse's)
        try:
            super()._check_value(action, value)
        except argparse.ArgumentError as error:
            known = [str(choice) for choice in action.choices or ()]
            if isinstance(action, argparse._SubParsersAction):  # noqa: SLF001 (argparse has no other way)
                known += self._option_string_actions
            raise argparse.ArgumentError(action, f"{error.message}{nearest(str(value), known)}") from None


def path(text: str) -> Path:
    """A path; an empty text, as of a variable that is not set, would be the current folder."""
    if not text:
        raise argparse.ArgumentTypeError("an empty text names no file or folder")
    return Path(text)


class _Formatter(argparse.HelpFormatter):
    """Fills paragraphs, and leaves lines that begin with spaces as they are."""

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        if "\n" not in text:
            return super()._fill_text(text, width, indent)
        return "\n".join(indent + line for line in text.splitlines())


def verbs_of(parser: argparse.ArgumentParser) -> Any:  # noqa: ANN401 (argparse keeps the type private)
    """What a parser chooses among, to which more may be added; None if it has arguments instead."""
    return next((action for action in parser._actions if isinstance(action, argparse._SubParsersAction)), None)  # noqa: SLF001 (argparse lists them nowhere else)


def leaves(parser: argparse.ArgumentParser, path: str = "") -> Iterator[tuple[str, argparse.ArgumentParser]]:
    """Every command that does something, by its words: ``phsafe plan``, ``check``."""
    verbs = verbs_of(parser)
    if verbs is None:
        yield path, parser
        return
    for name, verb in verbs.choices.items():
        yield from leaves(verb, f"{path} {name}".lstrip())
