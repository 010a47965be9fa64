"""Commands are made of their declarations, and the functions of Python are told and checked by the same."""

from pathlib import Path
from typing import Any

import pytest

import yupana
from yupana.cli.main import parser_of_all
from yupana.cli.parser import leaves
from yupana.interface.commands import COMMANDS, EstimateOptions
from yupana.interface.options import OPTIONS, declared

LEAVES = dict(leaves(parser_of_all()))


@pytest.mark.parametrize("words", COMMANDS)
def test_a_command_takes_what_is_declared_and_no_more(words: str) -> None:
    taken = {action.dest for action in LEAVES[words]._actions} - {"help", "json"}
    assert taken == {*COMMANDS[words].arguments, *COMMANDS[words].options}


@pytest.mark.parametrize("words", COMMANDS)
def test_no_command_gives_a_default_to_what_a_configuration_may_say(words: str) -> None:
    shared = [name for name, option in COMMANDS[words].options.items() if option is OPTIONS.get(name)]
    assert {LEAVES[words].get_default(name) for name in shared} <= {None}


def test_an_option_that_there_is_not_is_named(tmp_path: Path) -> None:
    wrong: dict[str, Any] = {"metod": "exact"}
    with pytest.raises(yupana.ConfigError, match="metod: there is no such option; did you mean method"):
        yupana.estimate(tmp_path, tmp_path / "out", **wrong)


def test_the_help_of_a_function_tells_its_options() -> None:
    told = yupana.estimate.__doc__ or ""
    assert "{options}" not in told
    for name, option in declared(EstimateOptions).items():
        assert f"        ``{name}``: {option.help}\n" in told
