"""What the command line says to names that there are not, and to nothing at all."""

import pytest

from yupana.cli.main import main
from yupana.errors import nearest


def refusal(words: str, capsys: pytest.CaptureFixture[str]) -> str:
    try:
        status: object = main(words.split())
    except SystemExit as ended:
        status = ended.code
    told = capsys.readouterr()
    assert (status, told.out) == (2, "")
    return told.err


@pytest.mark.parametrize(
    ("words", "meant"),
    [
        ("versoin", "--version"),
        ("chek release", "check"),
        ("phsfae plan", "phsafe"),
        ("phsafe pln config.json", "plan"),
        ("spine biuld grfc out", "build"),
        ("--versoin", "--version"),
        ("phsafe --hlp", "--help"),
        ("phsafe plan config.json --jsn", "--json"),
        ("phsafe run config.json data out --overwrit3", "--overwrite"),
        ("phsafe plan config.json --confidance=0.9", "--confidence"),
        ("phsafe plan config.json --margins exat", "exact"),
        ("topdown plan pl94-2020", "pl94-2020-us"),
        ("topdown plan cook-2001", "cook-2010"),
    ],
)
def test_the_name_that_was_meant_is_suggested(words: str, meant: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert refusal(words, capsys).endswith(f"; did you mean {meant}?\n")


@pytest.mark.parametrize("words", ["qqqq", "phsafe qqqq", "phsafe plan config.json --qqqq", "topdown plan qqqq"])
def test_nothing_is_suggested_where_nothing_is_near(words: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert "did you mean" not in refusal(words, capsys)


def test_an_unknown_option_is_refused_by_the_verb_that_knows_its_own(capsys: pytest.CaptureFixture[str]) -> None:
    assert refusal("phsafe plan config.json --jsn", capsys).startswith("usage: yupana phsafe plan ")


def test_a_long_usage_does_not_hide_the_reason(capsys: pytest.CaptureFixture[str]) -> None:
    told = refusal("phsafe run config.json data", capsys)
    assert told.splitlines() == [
        "usage: yupana phsafe run [OPTIONS] CONFIG DATA OUT",
        "yupana phsafe run: error: the following arguments are required: OUT",
    ]


@pytest.mark.parametrize("words", ["", "phsafe", "audit"])
def test_a_command_without_its_verb_shows_what_there_is(words: str, capsys: pytest.CaptureFixture[str]) -> None:
    told = refusal(words, capsys)
    assert told.startswith(f"usage: yupana {words}".rstrip())
    assert "options:" in told


def test_case_hides_no_name() -> None:
    assert nearest("TOTAL", ["total"]) == "; did you mean total?"
    assert nearest("total", []) == ""


@pytest.mark.parametrize("words", ["0.95", "95", "95%", "95.0", "19/20"])
def test_a_confidence_level_is_a_share_or_a_percentage(words: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["account", "--moe", "50", "--sensitivity", "484", "--confidence", words]) == 0
    assert "at 0.95 confidence" in capsys.readouterr().out


@pytest.mark.parametrize("words", ["1", "100", "0", "-5", "950", "inf", "100%", "0%", "ninety"])
def test_what_is_no_confidence_level_is_told_how_to_write_one(words: str, capsys: pytest.CaptureFixture[str]) -> None:
    told = refusal(f"account --moe 50 --sensitivity 484 --confidence={words}", capsys)
    assert "argument --confidence: " in told
    assert words in told


def test_a_confidence_level_of_1_may_be_meant_as_either(capsys: pytest.CaptureFixture[str]) -> None:
    told = refusal("account --moe 50 --sensitivity 484 --confidence 1", capsys)
    assert "1 is no confidence level; write 0.95, 95 or 95%" in told


def test_a_delta_is_no_percentage_without_its_sign(capsys: pytest.CaptureFixture[str]) -> None:
    assert "strictly between 0 and 1" in refusal("account --rho 1 --delta 5", capsys)
