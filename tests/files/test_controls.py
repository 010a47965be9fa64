"""What a terminal would obey is refused in public tables, and made visible in messages."""

from pathlib import Path

import pytest

from yupana.cli.main import main
from yupana.errors import InputError, visible
from yupana.files.code_tables import open_delimited, read_rows
from yupana.geography.gazetteer import read_names

CONTROLS = {
    "ESC": "\x1b[2J",
    "OSC": "\x1b]0;title\x07",
    "BEL": "\x07",
    "C1": "\x9b2J",
    "turned": "\u202etxt",
    "DEL": "\x7f",
}


def test_messages_show_what_a_terminal_would_obey() -> None:
    for text in CONTROLS.values():
        assert visible(f"a{text}b").isascii()
    assert (
        visible("a\n\tb \u00e9 \u65e5\u672c \u06cc\u200c\u0647\u0627")
        == "a\n\tb \u00e9 \u65e5\u672c \u06cc\u200c\u0647\u0627"
    )


@pytest.mark.parametrize("words", ["check", "interval --query x", "phsafe plan", "account --rho 1 --delta 1e-6"])
@pytest.mark.parametrize("control", CONTROLS)
def test_the_command_line_repeats_no_control(
    words: str, control: str, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    try:
        status = main([*words.split(), str(tmp_path / f"a{CONTROLS[control]}b")])
    except SystemExit as ended:
        status = ended.code
    assert status == 2
    told = capsys.readouterr()
    assert "b" in told.err
    assert visible(told.out + told.err) == told.out + told.err


@pytest.mark.parametrize("control", CONTROLS)
def test_public_tables_with_controls_are_refused_by_line_and_column(control: str, tmp_path: Path) -> None:
    path = tmp_path / "names.csv"
    path.write_text(f"kind,code,name\ncounty,06001,Alameda\ncounty,06003,Alp{CONTROLS[control]}ine\n", encoding="utf-8")
    with pytest.raises(InputError, match="line 3, column name: holds a control character"):
        read_names(path)
    with (
        open_delimited(path, ("name",), others=True) as file,
        pytest.raises(InputError, match="line 3, column name: holds a control character"),
    ):
        file.texts("name")
    faults: list[str] = []
    rows = read_rows("areas", path, ("code", "name"), faults)
    assert len(rows) == 1
    assert "line 3, column name: holds a control character" in faults[0]
