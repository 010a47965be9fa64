"""`yupana PRODUCT init|schema|show`: a configuration to begin with, what one may hold, and the built-in ones."""

import argparse
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yupana
from yupana.errors import ConfigError, OutputError, nearest
from yupana.files.document import write_document
from yupana.interface.options import schema as options_schema
from yupana.products import PRODUCTS

if TYPE_CHECKING:
    from yupana.products.product import Product


def init(key: str, options: argparse.Namespace) -> None:
    """Write a configuration to begin with."""
    product, dictionary = PRODUCTS[key], getattr(options, "dictionary", None)
    if dictionary is not None and options.like:
        raise ConfigError("--from and --like each say what to begin with; leave one out")
    text = "" if dictionary else _text(product, options.like or next(iter(product.built_in)))
    if options.out is None:
        print(yupana.draft(dictionary) if dictionary else text, end="")
        return
    if options.out.exists() or options.out.is_symlink():
        raise OutputError(f"{options.out} exists; name a place that does not")
    if dictionary:
        yupana.draft(dictionary, options.out)
    else:
        (_write_folder if "parameters" in PRODUCTS.listing(key).takes else write_document)(options.out, text)
    print(f"{options.out}: written; change it, and see what it costs with plan")


def schema(key: str, _: argparse.Namespace) -> None:
    """Print what a configuration may hold."""
    found = PRODUCTS[key].schema()
    of_options = {"options": options_schema(PRODUCTS.listing(key))}
    print(json.dumps({**found, "properties": {**found.get("properties", {}), **of_options}}, indent=1))


def show(key: str, options: argparse.Namespace) -> None:
    """Print a built-in configuration, or the names of all."""
    product = PRODUCTS[key]
    print(_text(product, options.name).rstrip() if options.name else "\n".join(product.built_in))


def _text(product: "Product[Any]", name: str) -> str:
    if name not in product.built_in:
        known, meant = ", ".join(product.built_in), nearest(name, product.built_in)
        raise ConfigError(f"{name!r} is none of the built-in names {known}{meant}")
    return product.locate(name).read_text(encoding="utf-8")


def _write_folder(out: Path, text: str) -> None:
    """Beside the configuration, files of codes: made up by rule, to be replaced by the Census Bureau's."""
    from yupana.products.safetab.demonstration_parameters import write_parameters
    from yupana.products.safetab.iterations import CONFIG, CONFIG_WITH_COMMENTS
    from yupana.release.folder import new_folder

    with new_folder(out, noisy=False) as draft:
        made = draft / "made"
        write_parameters(made)
        (made / CONFIG).unlink()
        for path in made.iterdir():
            path.rename(draft / path.name)
        made.rmdir()
        (draft / CONFIG_WITH_COMMENTS).write_text(text, encoding="utf-8")
