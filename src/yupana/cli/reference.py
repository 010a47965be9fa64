"""What the documentation says by the declarations of the code alone: options, keys, columns, tables and codes.

`yupana docs` and the site show it below the pages of these names.
"""

import json
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping
from itertools import groupby
from typing import Any, Final

from yupana.confidential.records.census_edited_file import OIDTB, PERSON_LAYOUT, UNIT_LAYOUT
from yupana.confidential.records.topdown_records import QUARTERS, QUARTERS_LAYOUT
from yupana.files.columns import BUREAU_FILES, HOUSING_UNITS, REFERENCE, RecordFile
from yupana.interface.commands import COMMANDS, VERBS, Argument, Command
from yupana.interface.options import CHANGES, OF_ACCOUNT, OF_EXECUTION, OPTIONS, Option, has
from yupana.products import PRODUCTS
from yupana.products.codebook import Label
from yupana.products.phsafe.product import PHSAFE
from yupana.products.product import Product
from yupana.products.safetab.product import HOUSEHOLDS, PERSONS
from yupana.products.topdown.product import TOPDOWN
from yupana.products.topdown.tables import BOUNDS

_ACCOUNT: Final = "\n## What a run is charged to\n\n`yupana.Account` has these fields.\n"
_EXECUTION: Final = (
    "\n## How work is done\n\n`yupana.Execution` has these fields. What is made does not depend on them.\n"
)
_COMMANDS: Final = (
    "\n## Commands\n\nOf what is described above, their names alone stand here; of options a product has those that it "
    "takes. Where Python has a function for a command, its keywords have the same names."
)
_COMMON: Final = "\n## What several commands have\n"
_SEVERAL: Final = 3
"""An option that so many commands have is described once."""
_ANY_PRODUCT: Final = {
    "source": "CONFIG",
    "reads": "a configuration",
    "names": "show lists them",
    "data": "the records that it describes",
}
"""What is said of whatever product is meant."""


def options() -> str:
    """Every option of every command, as Markdown."""
    commands = {f"PRODUCT {name}": verb for name, verb in VERBS.items()} | dict(COMMANDS)
    told = set(_table({**CHANGES, **OPTIONS, **OF_ACCOUNT, **OF_EXECUTION}, products=False))
    times = Counter(
        line for one in commands.values() for line in _table({**one.arguments, **one.options}, products=False)
    )
    common = {line for line, found in times.items() if found >= _SEVERAL}
    return "\n".join(
        [
            *_table({**CHANGES, **OPTIONS}, products=True),
            _ACCOUNT,
            *_table(OF_ACCOUNT, products=False),
            _EXECUTION,
            *_table(OF_EXECUTION, products=False),
            _COMMON,
            *sorted(common - told),
            _COMMANDS,
            *(line for words, command in commands.items() for line in _command(words, command, common | told)),
            "",
        ]
    )


def _command(words: str, command: Command, known: Collection[str]) -> Iterator[str]:
    """What a command is and takes; of what is told elsewhere the names alone."""
    places = [f"[{one.metavar}]" if one.many == "?" else one.metavar or name for name, one in command.arguments.items()]
    yield f"\n### {words}\n\n`yupana {' '.join([words, *places])}`: {command.about}.".format_map(_ANY_PRODUCT)
    if lines := list(_table({**command.arguments, **command.options}, products=False)):
        yield from ("", *(line for line in lines if line not in known))
    if names := [line[2:].partition(":")[0] for line in lines if line in known]:
        yield f"* {', '.join(names)}"


def _table(options: Mapping[str, Option], *, products: bool) -> Iterator[str]:
    for name, option in options.items():
        value = option.value.format_map(_ANY_PRODUCT)
        flag = value if isinstance(option, Argument) else f"{option.written(name)} {value}".strip()
        having = [key for key in PRODUCTS if has(PRODUCTS.listing(key), option)]
        of = _ANY_PRODUCT if isinstance(option, Argument) else PRODUCTS.listing(having[0])._asdict()
        remarks = [] if flag.split()[0].lower().lstrip("-").replace("-", "_") == name else [f"`{name}`"]
        if products and len(having) < len(PRODUCTS):
            remarks.append(f"of {', '.join(having)}")
        remark = f" ({'; '.join(remarks)})" if remarks else ""
        yield f"* `{flag}`{remark}: {option.help.format_map(of)}"


def reference() -> str:
    """Every key of configurations, column of record files, and table with its codes, as Markdown."""
    keys = (line for name in PRODUCTS for line in (f"\n### {name}\n", *_keys(PRODUCTS[name].schema())))
    columns = (line for file in (*BUREAU_FILES.values(), QUARTERS, REFERENCE, HOUSING_UNITS) for line in _columns(file))
    return "\n".join(
        [
            "## Keys",
            *keys,
            "\n## Columns",
            *columns,
            *_places(),
            "\n## Tables and codes\n\nA column is told at the first table that has it.",
            *_tables_and_codes(),
            "",
        ]
    )


def _keys(schema: Mapping[str, Any], place: str = "") -> Iterator[str]:
    """What a table may hold; keys that are told alike are told once."""
    for one in schema.get("anyOf", [schema]):
        found = one.get("properties", {})
        keys = {
            name: of
            for name, of in found.items()
            if name == name.replace("-", "_") or name.replace("-", "_") not in found
        }
        told = {name: _told(name, of, required=name in one.get("required", ())) for name, of in keys.items()}
        for (says, remarks, _), group in groupby(told, told.__getitem__):
            first, *others = group
            words = says if others else keys[first].get("description", "")
            if _UNREAD not in words:
                yield f"* `{'`, `'.join([place + first, *others])}`{remarks}{f': {words}' if words else ''}"
                yield from _keys(keys[first], f"{place}{first}.")
        of_any = one.get("additionalProperties")
        if isinstance(of_any, dict) and of_any not in keys.values():
            below = list(_keys(of_any, f"{place}NAME."))
            if below and of_any.get("description"):
                yield f"* `{place}NAME`: {of_any['description']}"
            yield from below
        if "items" in one:
            yield from _keys(one["items"], place)


def _told(name: str, schema: Mapping[str, Any], *, required: bool) -> tuple[str, str, str]:
    """What is said of a key without its own name, what it may be, and what is below it."""
    own = name.removeprefix("privacy_budget_")
    default = f"default `{json.dumps(schema['default'])}`" if "default" in schema else ""
    remarks = ", ".join(one for one in (_allowed(schema), "required" if required else default) if one)
    below = json.dumps({key: of for key, of in schema.items() if key not in {"description", "default"}})
    says = re.sub(rf"\b{re.escape(own)}\b", "each", schema.get("description", ""))
    return says, f" ({remarks})" if remarks else "", below


def _allowed(schema: Mapping[str, Any]) -> str:
    """What values a schema allows, in words."""
    if schema.get("pattern", "").endswith("[0-9]+)\\s*$"):
        return "a fraction `p/q`"
    if "anyOf" in schema:
        return " or ".join(dict.fromkeys(filter(None, map(_allowed, schema["anyOf"]))))
    if "enum" in schema:
        listed = [f"`{one}`" for one in schema["enum"]]
        return ", ".join(listed) if len(listed) <= _MOST_LISTED else f"{len(listed)} codes, such as {listed[0]}"
    if schema.get("type") == "array":
        of = _allowed(schema.get("items", {}))
        return f"a list of {of}" if of else "a list"
    if schema.get("type") == "integer":
        most = f" to {schema['maximum']}" if schema.get("maximum", _ENDLESS) < _ENDLESS else " or more"
        return f"a whole number, {schema.get('minimum', 0)}{most}"
    kinds = schema.get("type", ())
    return " or ".join(_KINDS[kind] for kind in ([kinds] if isinstance(kinds, str) else kinds))


_KINDS: Final = {"string": "a text", "number": "a number", "boolean": "true or false", "object": "a table"}
_UNREAD: Final = "not read"
_ENDS: Final = tuple(f"_{end}" for end in BOUNDS)
_MOST_LISTED: Final = 12
_ENDLESS: Final = 10**15


def _columns(file: RecordFile) -> Iterator[str]:
    yield f"\n### {file.name}\n\nA row is a {file.row}.\n\n| column | allowed | meaning |\n|---|---|---|"
    yield from (f"| {column.name} | {column.rule} | {column.about} |" for column in file.columns)


def _places() -> Iterator[str]:
    """Where a line of the Census Edited File holds each column."""
    units = {"OIDTB": OIDTB, **UNIT_LAYOUT.fields, **QUARTERS_LAYOUT.fields}
    for name, width, places in (("PER", PERSON_LAYOUT.width, PERSON_LAYOUT.fields), ("UNIT", UNIT_LAYOUT.width, units)):
        yield f"\n### CEF20_{name}\n\nA line has {width} characters.\n\n| column | characters |\n|---|---|"
        in_order = sorted((first, last, column) for column, (first, last) in places.items())
        yield from (f"| {column} | {first + 1} to {last} |" for first, last, column in in_order)


def _tables_and_codes() -> Iterator[str]:
    """Of the products whose tables and codes no office chooses."""
    persons = ["microdata", *(f"tables/P{number}" for number in range(1, 6))]
    yield from _tables(PHSAFE, {"s-dhc-2020-us": [table for of in PHSAFE.families for table in of.tables]})
    yield from _tables(TOPDOWN, {"pl94-2020-us": persons, "h1-2020-us": ["tables/H1"]})
    for product in (PERSONS, HOUSEHOLDS):
        yield f"\n### {product.key}\n"
        yield from (f"* `{name}`: {title}" for name, title in product.words.tables.items())


def _tables(product: Product[Any], of_configs: Mapping[str, list[str]]) -> Iterator[str]:
    shown: dict[str, Label] = {}
    for name, tables in of_configs.items():
        config = product.read(name)
        plan = product.plan(config)
        for table in tables:
            title, labels = product.described(config, plan, table)
            yield f"\n### {product.key} {table.removeprefix('tables/')}\n\n{title}.\n"
            for column, label in labels.items():
                codes = shown[column].values if column in shown else None
                if codes != label.values and not column.endswith(_ENDS):
                    listed = "; ".join(f"`{code}` {word}" for code, word in label.values.items())
                    yield f"* `{column}`: {label.title}{f'. {listed}' if listed else ''}"
            shown |= labels


GENERATED: Final[Mapping[str, Callable[[], str]]] = {"options": options, "reference": reference}
"""What is shown below a page, by its name."""
