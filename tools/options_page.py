"""Writes docs/options.md from the declarations in `yupana.interface.options`: `python tools/options_page.py`."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from yupana.interface.options import CHANGES, OF_ACCOUNT, OF_EXECUTION, OPTIONS, Option, choices, has
from yupana.products import PRODUCTS

PAGE: Final = Path(__file__).parent.parent / "docs" / "options.md"

_HEAD: Final = """\
# Options

This page is written by `tools/options_page.py` from the declarations in `src/yupana/interface/options.py`.

## What is made

`yupana.setup` takes these options. A configuration may hold them in its table `options`, and `set` may change them
there, as `--set options.margins=bureau`. The manifest of a release tells those that were in force. What is given on the
command line or to `setup` comes first, then what `set` says, then the configuration or the manifest.
"""


def page() -> str:
    """The page as Markdown."""
    account = "\n## What a run is charged to\n\n`yupana.Account` has these fields.\n"
    execution = "\n## How work is done\n\n`yupana.Execution` has these fields. What is made does not depend on them.\n"
    return "\n".join(
        [
            _HEAD,
            *_table({**CHANGES, **OPTIONS}, products=True),
            account,
            *_table(OF_ACCOUNT, products=False),
            execution,
            *_table(OF_EXECUTION, products=False),
            "",
        ]
    )


def _table(declared: Mapping[str, tuple[Any, Option]], *, products: bool) -> Iterator[str]:
    yield f"| Python | command line | {'products | ' if products else ''}what it decides |"
    yield f"|---|---|{'---|' if products else ''}---|"
    for name, (kind, option) in declared.items():
        flag = f"--{(option.flag or name).replace('_', '-')}"
        value = "\\|".join(choices(kind)) if option.kind == "choice" else (option.metavar or "").replace("|", "\\|")
        having = [key for key in PRODUCTS if has(PRODUCTS.listing(key), option)]
        of = "all" if len(having) == len(PRODUCTS) else ", ".join(having)
        words = option.help.format_map(PRODUCTS.listing(having[0])._asdict())
        yield f"| `{name}` | `{f'{flag} {value}'.strip()}` | {f'{of} | ' if products else ''}{words} |"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
