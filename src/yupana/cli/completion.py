"""`yupana completion bash|zsh|fish`: the script that lets a shell complete commands, options and files."""

import argparse
from pathlib import Path

from yupana.cli.arguments import Commands
from yupana.cli.parser import leaves

_NAMED_LIKE_FILES = ("CONFIG", "PARAMETERS", "KIND|FOLDER", "DATA")
"""Arguments that are names or files, or URLs."""


def add(commands: Commands) -> None:
    """Add the command."""
    parser = commands.add_parser(
        "completion",
        help="print the script that completes commands, options and files in a shell",
        description="Print a script that completes commands, options and files. bash: save it as "
        "~/.local/share/bash-completion/completions/yupana; zsh: as _yupana in a folder of $fpath; "
        "fish: as ~/.config/fish/completions/yupana.fish.",
    )
    parser.add_argument("shell", choices=("bash", "zsh", "fish"))
    parser.set_defaults(command=_completion)


def _completion(options: argparse.Namespace) -> None:
    import shtab

    from yupana.cli.main import parser_of_all

    parser = parser_of_all()
    for _, verb in leaves(parser):
        for action in verb._actions:  # noqa: SLF001 (argparse lists its arguments nowhere else)
            if action.type is Path or action.metavar in _NAMED_LIKE_FILES:
                action.complete = shtab.FILE  # type: ignore[attr-defined]
    print(shtab.complete(parser, options.shell))
