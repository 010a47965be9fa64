"""Every example of every help text runs as it stands, in an empty folder."""

import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from yupana.cli.examples import EXAMPLES, MADE_BY, with_makers
from yupana.cli.main import main, parser_of_all
from yupana.cli.parser import leaves

pytestmark = pytest.mark.thorough

_SERVES = "yupana explore"
"""Runs until it is stopped; tests/explore asks it."""


def test_every_command_has_examples_in_its_help() -> None:
    commands = dict(leaves(parser_of_all()))
    assert set(commands) == set(EXAMPLES)
    for words, command in commands.items():
        told = command.format_help()
        for example in with_makers(EXAMPLES[words]):
            assert f"\n  {example}\n" in told, words


def test_what_an_example_names_is_made_before_it() -> None:
    made = [MADE_BY[name] for name in ("config.toml", "census", "release")]
    assert with_makers(["yupana check release"]) == [*made, "yupana check release"]


@pytest.mark.slow
def test_every_example_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    for command in with_makers([example for of_command in EXAMPLES.values() for example in of_command]):
        words = shlex.split(command)
        if command == _SERVES:
            continue
        if words[0] == "yupana" and not {">", "&&"} & set(words):
            assert main(words[1:]) == 0, f"{command}: {capsys.readouterr().err}"
        else:
            subprocess.run(command, shell=True, check=True)  # noqa: S602 (as it is typed)
    assert all((tmp_path / name).exists() for name in MADE_BY)
