"""Shells complete commands, options, choices and files from the script that `yupana completion` prints."""

import shutil
import subprocess
from pathlib import Path

import pytest

from yupana.cli.main import main

ASK_BASH = """
source "$1"
shift
COMP_WORDS=("$@") COMP_CWORD=$(($# - 1)) COMPREPLY=()
ask=$(complete -p yupana | sed 's/.*-F \\([^ ]*\\).*/\\1/')
$ask yupana "${COMP_WORDS[COMP_CWORD]}" "${COMP_WORDS[COMP_CWORD - 1]}"
printf '%s\\n' "${COMPREPLY[@]}"
"""
ASK_FISH = 'source $argv[1]; complete -C "$argv[2..]"'

COMPLETED = [
    ("yupana ph", {"phsafe"}),
    ("yupana phsafe pl", {"plan"}),
    ("yupana phsafe plan --conf", {"--confidence"}),
    ("yupana phsafe plan --margins ", {"exact", "bureau"}),
    ("yupana phsafe plan con", {"config.json"}),
    ("yupana topdown run config.json cen", {"census"}),
    ("yupana spine build x out --kind opt", {"optimized"}),
    ("yupana completion ", {"bash", "zsh", "fish"}),
]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "config.json").touch()
    (tmp_path / "census").mkdir()
    monkeypatch.chdir(tmp_path)
    return tmp_path


def script(shell: str, folder: Path, capsys: pytest.CaptureFixture[str]) -> str:
    if shutil.which(shell) is None:
        pytest.skip(f"{shell} is not installed")
    assert main(["completion", shell]) == 0
    path = folder / f".yupana.{shell}"
    path.write_text(capsys.readouterr().out)
    return str(path)


def answered(*command: str) -> set[str]:
    ran = subprocess.run(command, capture_output=True, text=True, check=True)
    assert not ran.stderr
    return {line.partition("\t")[0].strip().rstrip("/") for line in ran.stdout.splitlines() if line.strip()}


@pytest.mark.parametrize(("line", "completed"), COMPLETED)
def test_bash_completes(line: str, completed: set[str], folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert answered("bash", "-c", ASK_BASH, "bash", script("bash", folder, capsys), *line.split(" ")) == completed


@pytest.mark.parametrize(("line", "completed"), COMPLETED)
def test_fish_completes(line: str, completed: set[str], folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert answered("fish", "-N", "-c", ASK_FISH, script("fish", folder, capsys), line) == completed


def test_zsh_finds_the_script(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    # Its completion needs a terminal; that the completion system takes the script for the command is seen without.
    Path(script("zsh", folder, capsys)).rename(folder / "_yupana")
    load = 'fpath=("$1" $fpath); autoload -Uz compinit; compinit -D -u; autoload +X _yupana; print ${_comps[yupana]}'
    assert answered("zsh", "-f", "-c", load, "zsh", str(folder)) == {"_yupana"}


def test_another_shell_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["completion", "fishy"])
    assert "did you mean fish?" in capsys.readouterr().err
