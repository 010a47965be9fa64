"""`yupana PRODUCT init|schema|show`: a configuration to begin with, what one may hold, and the built-in ones."""

import argparse
import json
import tomllib
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from yupana.cli.arguments import Commands, print_json
from yupana.cli.parser import verbs_of
from yupana.cli.product import add_verb
from yupana.errors import ConfigError, OutputError, nearest


class _Brought(NamedTuple):
    """What Yupana brings along for a product."""

    names: Sequence[str]
    locate: Callable[[str], Path]
    schema: Callable[[], dict[str, Any]]
    write: Callable[[Path, str], None]


def add(commands: Commands) -> None:
    """Add the three verbs to every product."""
    for key, brought in _PRODUCTS.items():
        verbs = verbs_of(commands.choices[key])
        init = add_verb(
            verbs, "init", "write a configuration to begin with, every key explained", partial(_init, brought)
        )
        text = "a file that does not exist (.json is without comments); SafeTab: a folder; default: print it"
        init.add_argument("out", type=Path, nargs="?", metavar="OUT", help=text)
        init.add_argument("--like", metavar="NAME", help="a built-in configuration (that of the 2020 run, US)")
        add_verb(verbs, "schema", "print what a configuration may hold, as JSON Schema", partial(_schema, brought))
        show = add_verb(verbs, "show", "print a built-in configuration", partial(_show, brought))
        show.add_argument("name", nargs="?", metavar="NAME", help="(list the names)")


def _init(brought: Callable[[], _Brought], options: argparse.Namespace) -> None:
    of_product = brought()
    text = _text(of_product, options.like or of_product.names[0])
    if options.out is None:
        print(text, end="")
        return
    if options.out.exists() or options.out.is_symlink():
        raise OutputError(f"{options.out} exists; name a place that does not")
    of_product.write(options.out, text)
    print(f"{options.out}: written; change it, and see what it costs with plan")


def _schema(brought: Callable[[], _Brought], _: argparse.Namespace) -> None:
    print_json(brought().schema())


def _show(brought: Callable[[], _Brought], options: argparse.Namespace) -> None:
    of_product = brought()
    print(_text(of_product, options.name).rstrip() if options.name else "\n".join(of_product.names))


def _text(of_product: _Brought, name: str) -> str:
    if name not in of_product.names:
        known, meant = ", ".join(of_product.names), nearest(name, of_product.names)
        raise ConfigError(f"{name!r} is none of the built-in names {known}{meant}")
    return of_product.locate(name).read_text(encoding="utf-8")


def _write_file(out: Path, text: str) -> None:
    if out.suffix.lower() == ".json":
        text = json.dumps(tomllib.loads(text), indent=1) + "\n"
    out.write_text(text, encoding="utf-8")


def _write_folder(out: Path, text: str) -> None:
    """Beside the configuration, files of codes: made up by rule, to be replaced by the Census Bureau's."""
    from yupana.products.safetab.demonstration_parameters import write_parameters
    from yupana.products.safetab.parameters import CONFIG, CONFIG_WITH_COMMENTS

    write_parameters(out)
    (out / CONFIG).unlink()
    (out / CONFIG_WITH_COMMENTS).write_text(text, encoding="utf-8")


def _phsafe() -> _Brought:
    from yupana.products.phsafe.configuration import BUILT_IN, locate
    from yupana.products.phsafe.json_schema import schema

    return _Brought(BUILT_IN, locate, schema, _write_file)


def _safetab(of: str) -> _Brought:
    from yupana.products.safetab import json_schema
    from yupana.products.safetab.parameters import BUILT_IN, locate

    return _Brought(BUILT_IN, locate, getattr(json_schema, of), _write_folder)


def _topdown() -> _Brought:
    from yupana.products.topdown.json_schema import schema
    from yupana.topdown.reading.configuration import BUILT_IN, path_of

    return _Brought(BUILT_IN, path_of, schema, _write_file)


_PRODUCTS: dict[str, Callable[[], _Brought]] = {
    "phsafe": _phsafe,
    "safetab-p": partial(_safetab, "persons"),
    "safetab-h": partial(_safetab, "households"),
    "topdown": _topdown,
}
