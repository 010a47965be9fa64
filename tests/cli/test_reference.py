"""The reference is made of the code: each option, key, column and code is in it, and `yupana docs` shows it."""

import argparse
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from typing import Any

import pytest
from places import ROOT

from yupana.cli.main import main, parser_of_all
from yupana.cli.parser import leaves, verbs_of
from yupana.cli.reference import GENERATED
from yupana.files.columns import BUREAU_FILES
from yupana.products import PRODUCTS


def test_every_option_of_every_command_is_in_the_page() -> None:
    page = GENERATED["options"]()
    for words, command in leaves(parser_of_all()):
        for action in command._actions:
            if not isinstance(action, argparse._HelpAction) and "--json" not in action.option_strings:
                assert all(f"`{flag}" in page for flag in action.option_strings), (words, action.option_strings)


def keys(schema: Mapping[str, Any]) -> Iterator[str]:
    for one in schema.get("anyOf", [schema]):
        for name, of in one.get("properties", {}).items():
            if of.get("description") != "of the other product; not read":
                yield name
                yield from keys(of)
        for inner in (one.get("additionalProperties"), one.get("items")):
            if isinstance(inner, dict):
                yield from keys(inner)


def test_every_key_of_every_configuration_is_in_the_page() -> None:
    page = GENERATED["reference"]()
    for name in PRODUCTS:
        told = page.partition(f"\n### {name}\n")[2].partition("\n##")[0]
        missing = [key for key in set(keys(PRODUCTS[name].schema())) if f"{key.replace('-s', '_s')}`" not in told]
        assert [key for key in missing if f"{key.replace('-', '_')}`" not in told] == [], name
    assert "* `confidence` (a number or a fraction `p/q`): of the margins of error" in page
    assert '* `neighbours` (`add-remove`, `replace`, default `"add-remove"`): what one unit\'s change is' in page


def test_every_column_and_code_is_in_the_page() -> None:
    page = GENERATED["reference"]()
    for file in BUREAU_FILES.values():
        assert all(column.about and f"| {column.name} | {column.rule} |" in page for column in file.columns), file.name
    for told in ("| OIDTB | 38 to 59 |", "| RELSHIP | 86 to 87 |", "| QGQTYP | 34 to 36 |"):
        assert told in page
    for told in ("`PH8_DENOM_DATA_CELL`", "`A` White alone", "`P0040073`", "`H0010003`: Vacant", "`T04002`: 3 tenures"):
        assert told in page


def test_docs_prints_pages_and_what_is_made_of_the_code(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["docs"]) == 0
    listed = capsys.readouterr().out
    assert {line.split()[0] for line in listed.splitlines()} == {one.stem for one in (ROOT / "docs").glob("*.md")}
    for name in ("docs/options.md", "options"):
        assert main(["docs", name]) == 0
        assert capsys.readouterr().out.endswith(f"\n{GENERATED['options']()}\n")
    assert main(["docs", "margin"]) == 2
    assert "did you mean margins?" in capsys.readouterr().err


@pytest.mark.thorough
def test_a_page_is_shown_where_letters_are_few() -> None:
    shown = [sys.executable, "-c", "from yupana.cli.start import entry; entry()", "docs", "tables"]
    done = subprocess.run(shown, capture_output=True, env=os.environ | {"PYTHONIOENCODING": "ascii"}, check=True)
    assert b"marks upper bounds with ?" in done.stdout


def test_every_group_of_commands_has_an_example_of_each_verb() -> None:
    for name, group in verbs_of(parser_of_all()).choices.items():
        told = group.format_help()
        for words, _ in leaves(group, name):
            assert f"  yupana {words}" in told, words
