"""Writes docs/options.md from the declarations in `yupana.interface`: `python tools/options_page.py`."""

from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import Final

from yupana.interface.commands import COMMANDS, OF_CONFIGURATIONS, OF_PLAN, OF_STRATEGY, Argument, Command
from yupana.interface.configured import Configured
from yupana.interface.options import CHANGES, OF_ACCOUNT, OF_EXECUTION, OPTIONS, Option, declared, has
from yupana.products import PRODUCTS

PAGE: Final = Path(__file__).parent.parent / "docs" / "options.md"

_HEAD: Final = """\
# Options

*Reference. For everyone who runs a command: every option of Python and of the command line.*

This page is written by `tools/options_page.py` from the declarations in `src/yupana/interface/options.py` and
`src/yupana/interface/commands.py`.

## What is made

A line has what the command line takes. In brackets are the name in Python, where it is not the same with `_` for `-`,
and the products that have it, where not all have.

`yupana.setup` takes these options. A configuration may hold them in its table `options`, and `set` may change them
there, as `--set options.margins=bureau`. The manifest of a release tells those that were in force. What is given on the
command line or to `setup` comes first, then what `set` says, then the configuration or the manifest.
"""


_ACCOUNT: Final = "\n## What a run is charged to\n\n`yupana.Account` has these fields.\n"
_EXECUTION: Final = (
    "\n## How work is done\n\n`yupana.Execution` has these fields. What is made does not depend on them.\n"
)
_VERBS: Final = "\n## Verbs of products\n\nBeside the options above, these verbs take some of their own."
_COMMANDS: Final = "\n## All other commands\n\nWhere Python has a function for it, its keywords have the same names."
_COMMON: Final = "\n## What several commands have\n\nBelow their names alone stand with the commands.\n"
_SEVERAL: Final = 3
"""An option that so many commands have is described once."""


def page() -> str:
    """The page as Markdown."""
    verbs = {
        "plan": OF_PLAN,
        "strategy": OF_STRATEGY,
        **{name: declared(getattr(Configured, name)) for name in ("validate", "run", "exact", "accuracy", "compare")},
    }
    commands = {f"PRODUCT {name}": one for name, one in OF_CONFIGURATIONS.items()} | dict(COMMANDS)
    own = [*verbs.values(), *({**command.arguments, **command.options} for command in commands.values())]
    times = Counter(line for options in own for line in _table(options, products=False))
    common = {line for line, found in times.items() if found >= _SEVERAL}
    return "\n".join(
        [
            _HEAD,
            *_table({**CHANGES, **OPTIONS}, products=True),
            _ACCOUNT,
            *_table(OF_ACCOUNT, products=False),
            _EXECUTION,
            *_table(OF_EXECUTION, products=False),
            _COMMON,
            *sorted(common),
            _VERBS,
            *(line for name, own in verbs.items() for line in (f"\n### {name}\n", *_short(own, common))),
            _COMMANDS,
            *(line for words, command in commands.items() for line in _command(words, command, common)),
            "",
        ]
    )


def _short(options: Mapping[str, Option], common: Collection[str]) -> Iterator[str]:
    lines = list(_table(options, products=False))
    yield from (line for line in lines if line not in common)
    if known := [line[2:].partition(":")[0] for line in lines if line in common]:
        yield f"* {', '.join(known)}"


def _command(words: str, command: Command, common: Collection[str]) -> Iterator[str]:
    places = [f"[{one.metavar}]" if one.many == "?" else one.metavar or name for name, one in command.arguments.items()]
    yield f"\n### {words}\n\n`yupana {' '.join([words, *places])}`: {command.about}."
    if shown := {**command.arguments, **command.options}:
        yield from ("", *_short(shown, common))


def _table(options: Mapping[str, Option], *, products: bool) -> Iterator[str]:
    for name, option in options.items():
        value = "|".join(option.choices) or option.metavar or ""
        flag = value if isinstance(option, Argument) else f"{option.written(name)} {value}".strip()
        having = [key for key in PRODUCTS if has(PRODUCTS.listing(key), option)]
        words = option.help.format_map(PRODUCTS.listing(having[0])._asdict())
        remarks = [] if flag.split()[0].lower().lstrip("-").replace("-", "_") == name else [f"`{name}`"]
        if products and len(having) < len(PRODUCTS):
            remarks.append(f"of {', '.join(having)}")
        remark = f" ({'; '.join(remarks)})" if remarks else ""
        yield f"* `{flag}`{remark}: {words}"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
