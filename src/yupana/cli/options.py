"""The arguments of the command line, made of the declarations in `yupana.interface.options`."""

import argparse
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

from yupana.cli.arguments import confidence_level, count, limits, seed, setting, size
from yupana.interface.options import OPTIONS, STAGES, Option, Stage, choices, has
from yupana.products import Listing


class _Settings(argparse.Action):
    """Collects KEY=VALUE."""

    def __call__(self, _parser: object, options: argparse.Namespace, pair: Any, _option: object = None) -> None:  # noqa: ANN401
        """Add one."""
        setattr(options, self.dest, {**(getattr(options, self.dest) or {}), pair[0]: pair[1]})


_KINDS: Mapping[str, dict[str, Any]] = {
    "path": {"type": Path},
    "paths": {"type": Path, "action": "append"},
    "columns": {"type": Path},
    "spine": {},
    "level": {"type": confidence_level},
    "whole": {"type": count},
    "seed": {"type": seed},
    "size": {"type": size},
    "text": {},
    "limits": {"type": limits},
    "settings": {"type": setting, "action": _Settings},
    "changes": {"type": setting, "action": "append", "default": []},
    "domains": {"action": "append", "default": []},
}
"""How argparse reads the kinds of options; choices and switches aside."""


def add_declared(
    parser: argparse.ArgumentParser,
    declared: Mapping[str, tuple[Any, Option]],
    listing: Listing | None = None,
    without: Collection[str] = (),
) -> None:
    """Add arguments as they are declared, but for some."""
    for name, (kind, option) in declared.items():
        if name not in without:
            _add(parser, name, kind, option, {} if listing is None else listing._asdict())


def add_options(parser: argparse.ArgumentParser, listing: Listing, stage: Stage) -> None:
    """Add the options of a product that verbs of a stage read."""
    last = STAGES.index(stage)
    read = {name: one for name, one in OPTIONS.items() if STAGES.index(one[1].stage) <= last and has(listing, one[1])}
    add_declared(parser, read, listing)


def _add(
    parser: argparse.ArgumentParser,
    name: str,
    kind: Any,  # noqa: ANN401 (a type)
    option: Option,
    words: Mapping[str, object],
) -> None:
    flag = f"--{(option.flag or name).replace('_', '-')}"
    text = option.help.format_map(words)
    if option.kind == "switch":
        action = "store_false" if option.default is True else "store_true"
        parser.add_argument(flag, dest=name, action=action, default=None, help=text)
    elif option.kind == "choice":
        parser.add_argument(flag, dest=name, choices=choices(kind), help=text)
    else:
        parser.add_argument(flag, dest=name, metavar=option.metavar, help=text, **_KINDS[option.kind])
