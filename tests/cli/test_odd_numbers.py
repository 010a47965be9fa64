"""Numbers, texts and streams that no one means are refused in words, with status 2, before anything is charged."""

import json
from fractions import Fraction
from pathlib import Path

import pytest
from topdown_worlds import configuration, write_configuration

from yupana.cli.main import main
from yupana.errors import ConfigError
from yupana.explore.scenario import RefusedError, read_scenario
from yupana.plan.measurement import Measurement, Mechanism, Sensitivity
from yupana.privacy.exact import read_exact
from yupana.products.phsafe.configuration import production_config


def status_of(*arguments: str) -> int:
    try:
        return main(arguments)
    except SystemExit as end:
        return int(end.code or 0)


@pytest.mark.parametrize(
    "arguments",
    [
        ["--rho", "1e999"],
        ["--rho", "1e-999"],
        ["--rho", "१/२"],
        ["--rho", "\uff11"],
        ["--epsilon", "1e999"],
        ["--epsilon", "1e-999"],
        ["--moe", "1e-300", "--sensitivity", "484"],
        ["--moe", "1e300", "--sensitivity", "484"],
        ["--moe", "1", "--sensitivity", "1e999"],
        ["--rho", "1", "--delta", "1e-999"],
        ["--rho", "1", "--delta", "0.99999999999999999999"],
        ["--rho", "1", "--sensitivity", "1", "--confidence", "0.999999999999999999999999"],
        ["--rho=--"],
    ],
)
def test_account_refuses_what_no_double_holds(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert status_of("account", *arguments) == 2
    assert "fault of the program" not in capsys.readouterr().err


@pytest.mark.sampled(1)
@pytest.mark.parametrize("value", ["1e30", "1e-30"])
@pytest.mark.parametrize("name", ["--rho", "--epsilon", "--moe"])
@pytest.mark.parametrize("delta", ["1e-300", "0.999"])
@pytest.mark.slow
def test_account_answers_at_its_limits(name: str, value: str, delta: str) -> None:
    for sensitivity in ("1e-30", "1e30"):
        more = ["--sensitivity", sensitivity, "--confidence", "0.999999999999999", "--delta", delta]
        assert status_of("account", name, value, *more) == 0


def test_an_option_without_a_value_is_told(tmp_path: Path) -> None:
    assert status_of("demo", str(tmp_path / "demo"), "--households=--") == 2
    assert status_of("synth", str(tmp_path / "synth"), "--households", "9" * 5000) == 2
    assert list(tmp_path.iterdir()) == []


def test_digits_are_those_of_ascii() -> None:
    for text in ("१/२", "\uff11", "1e\uff11", "١"):
        with pytest.raises(ValueError, match="not an exact number"):
            read_exact(text)


def test_noise_that_fits_no_64_bits_is_refused_before_the_charge(tmp_path: Path) -> None:
    assert main(["synth", str(tmp_path / "data"), "--households", "20", "--states", "44", "--seed", "1"]) == 0
    config = production_config()
    config["privacy_defn"] = "puredp"
    for levels in config["privacy_budget"].values():
        levels.update(dict.fromkeys(levels, "1e-15"))
    config["tau"] = dict.fromkeys(config["tau"], 99_999)
    (tmp_path / "config.json").write_text(json.dumps(config))
    ledger = ["--ledger", str(tmp_path / "ledger"), "--dataset", "d"]
    run = ["phsafe", "run", str(tmp_path / "config.json"), str(tmp_path / "data"), str(tmp_path / "out"), *ledger]
    assert main(run) == 2
    assert not (tmp_path / "ledger").exists()
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("mechanism", list(Mechanism))
def test_the_widest_noise_is_the_same_for_every_product(mechanism: Mechanism) -> None:
    one = Sensitivity(Fraction(1), Fraction(2))
    least = {Mechanism.ZCDP: Fraction(1, 10**30), Mechanism.PURE: Fraction(1, 10**16)}[mechanism]
    Measurement("m", "t", "l", 1, mechanism, Fraction(1), one, one, least)
    with pytest.raises(ConfigError, match="64 bits"):
        Measurement("m", "t", "l", 1, mechanism, Fraction(1), one, one, least * Fraction(99, 100))


def test_a_scenario_with_an_endless_number_is_refused() -> None:
    with pytest.raises(RefusedError, match="too long"):
        read_scenario('{"format": ' + "9" * 5000 + "}", (), lambda _: pytest.fail("no product was named"))


@pytest.mark.parametrize("share", ["1e999", "1e-999", "-1", "9" * 400, "Infinity", "1.5"])
def test_a_share_that_is_none_is_refused(share: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    document = configuration((2, 3), rho="2")
    document["shares"]["US"] = share
    assert main(["topdown", "plan", str(write_configuration(document, tmp_path / "t.json"))]) == 2
    assert "shares" in capsys.readouterr().err
