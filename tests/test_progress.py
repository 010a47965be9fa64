"""Progress of long work, as the functions of the Python interface tell it."""

import re
import sys
from types import SimpleNamespace

import pytest

from yupana.progress import Step, listening

STEPS = [Step("counting"), Step("County", 1, 2000), Step("County", 2000, 2000), Step("<writing>")]


def test_a_step_is_a_line() -> None:
    assert [str(step) for step in STEPS] == ["counting", "County: 1 of 2,000", "County: 2,000 of 2,000", "<writing>"]


def test_nobody_is_told_unless_asked(capfd: pytest.CaptureFixture[str]) -> None:
    with listening(False, "run") as tell:  # noqa: FBT003
        for step in STEPS:
            tell(step.stage, step.done, step.total)
    assert capfd.readouterr() == ("", "")


def test_a_callable_hears_every_step() -> None:
    heard: list[Step] = []
    with listening(heard.append, "run") as tell:
        for step in STEPS:
            tell(step.stage, step.done, step.total)
    assert heard == STEPS


def test_stages_are_lines_where_there_is_no_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    with listening(True, "run") as tell:  # noqa: FBT003
        for step in STEPS:
            tell(step.stage, step.done, step.total)
    seconds = re.compile(r" \(\d+\.\d s\)$", re.MULTILINE)
    told, number = seconds.subn("", capsys.readouterr().err)
    # The first of the parts is not told: it was done just now, as was the line before.
    assert (told, number) == ("run: counting\nrun: County: 2,000 of 2,000\nrun: <writing>\n", 3)


def test_a_terminal_shows_a_bar(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    with listening(True, "run") as tell:  # noqa: FBT003
        for step in STEPS:
            tell(step.stage, step.done, step.total)
    assert "run: done" in capsys.readouterr().err


def test_a_notebook_shows_a_bar(monkeypatch: pytest.MonkeyPatch) -> None:
    shown: list[str] = []
    display = SimpleNamespace(
        HTML=lambda text: text,
        display=lambda text, **_: shown.append(text) or SimpleNamespace(update=shown.append),
    )
    shell = SimpleNamespace(config={"IPKernelApp": {}})
    ipython = SimpleNamespace(get_ipython=lambda: shell, display=display)
    monkeypatch.setitem(sys.modules, "IPython", ipython)  # type: ignore[arg-type]
    with listening(True, "run") as tell:  # noqa: FBT003
        for step in STEPS:
            tell(step.stage, step.done, step.total)
    assert shown[0] == "run"
    assert '<progress max="2000" value="1"></progress> run: County: 1 of 2,000' in shown
    assert shown[-2:] == ["<progress></progress> run: &lt;writing&gt;", "run: done"]
