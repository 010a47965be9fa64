"""The examples in every help text: commands that run as they stand, in their order, in an empty folder."""

import argparse
import functools
import shlex
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from yupana.cli.parser import leaves, verbs_of

_TOLD: Final = tomllib.loads((Path(__file__).parent / "examples.toml").read_text(encoding="utf-8"))

MADE_BY: Final[Mapping[str, str]] = _TOLD["made_by"]
"""What a folder or file that examples name is made by."""

EXAMPLES: Final[Mapping[str, Sequence[str]]] = {
    words: tuple(MADE_BY.get(line, line) for line in lines) for words, lines in _TOLD["examples"].items()
}
"""Of every command, by its words."""


def add_examples(parser: argparse.ArgumentParser) -> None:
    """Write the examples of every command below its help, and one of each verb below that of its group."""
    groups: dict[str, list[str]] = {}
    for words, command in leaves(parser):
        own = EXAMPLES.get(words, ())  # a test asks for them; a product that is being written has none
        _show(command, own)
        if " " in words:
            groups.setdefault(words.partition(" ")[0], []).extend(own[:1])
    for name, examples in groups.items():
        _show(verbs_of(parser).choices[name], examples)


def _show(parser: argparse.ArgumentParser, examples: Sequence[str]) -> None:
    if not examples:
        return
    shown = "\n".join(["examples, in an empty folder:", *(f"  {line}" for line in with_makers(examples))])
    parser.epilog = f"{parser.epilog}\n\n{shown}" if parser.epilog else shown


def with_makers(commands: Sequence[str]) -> list[str]:
    """Some commands, and before them those that make what they name."""
    return list(dict.fromkeys(line for command in commands for line in _needed(command)))


@functools.cache
def _needed(command: str) -> tuple[str, ...]:
    makers = (MADE_BY.get(word.partition("/")[0]) for word in shlex.split(command))
    return (*(line for maker in makers if maker not in (None, command) for line in _needed(maker)), command)
