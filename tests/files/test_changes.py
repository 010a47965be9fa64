"""Values given with `--set` take the place of the configuration's, and are checked by its reader."""

from fractions import Fraction
from pathlib import Path

import pytest

from yupana.cli.main import main
from yupana.errors import ConfigError
from yupana.files.document import Changes, Number
from yupana.products import PRODUCTS
from yupana.products.phsafe.product import PHSAFE
from yupana.products.safetab.demonstration_parameters import write_parameters
from yupana.products.safetab.product import PERSONS
from yupana.products.topdown.product import TOPDOWN


def changed(*pairs: tuple[str, str]) -> Changes:
    return Changes(pairs)


def test_values_are_read_as_the_document_is() -> None:
    faults: list[str] = []
    pairs = (("a.b", "0.10"), ("a.c", "1/2"), ("d", "true"), ("e", '["44", 1]'), ("f.g.h", "two words"), ("i", '"3"'))
    found = changed(*pairs).applied({"a": {"b": Number("1"), "z": "kept"}, "d": False}, faults)
    assert found == {
        "a": {"b": "0.10", "z": "kept", "c": "1/2"},
        "d": True,
        "e": ["44", "1"],
        "f": {"g": {"h": "two words"}},
        "i": "3",
    }
    assert isinstance(found, dict)
    assert [isinstance(value, Number) for value in (*found["a"].values(), found["i"])] == [True, False, False, False]
    assert not faults


def test_the_document_itself_is_left_as_it_was() -> None:
    document = {"a": {"b": "old"}}
    changed(("a.b", "new")).applied(document, [])
    assert document == {"a": {"b": "old"}}


def test_each_product_reads_the_changed_document(tmp_path: Path) -> None:
    assert TOPDOWN.read("pl94-2020-us", changed(("rho", "1/3"))).budget == Fraction(1, 3)
    config = PHSAFE.read("s-dhc-2020-us", changed(("tau.PH2", "10"), ("privacy_budget.PH3.state_A-G", "0.1")))
    assert config.taus["PH2"] == 10
    assert config.budgets["PH3/state_A-G"] == Fraction(1, 10)
    write_parameters(tmp_path / "parameters")
    assert PERSONS.read(tmp_path / "parameters", changed(("max_race_codes", "4"))).config.max_race_codes == 4


@pytest.mark.parametrize(
    ("source", "pair", "told"),
    [
        ("pl94-2020-us", ("queries.Conty.total", "1"), "'Conty' has no share; .*did you mean County"),
        ("pl94-2020-us", ("queries.County.hispanc", "0"), "'hispanc' is unknown; .*did you mean hispanic"),
        ("pl94-2020-us", ("rho", "-1"), "rho: must not be negative"),
        ("pl94-2020-us", ("rho", "much"), "rho: "),
        ("pl94-2020-us", ("rho.total", "1"), "rho.total: 'rho' is no table of keys and values"),
        ("pl94-2020-us", ("queries.County", "1"), "queries.County: must be a table"),
        ("pl94-2020-us", ("shares.State", "1/2"), "shares: the shares sum to"),
        ("s-dhc-2020-us", ("tau.PH22", "10"), "tau: key 'PH22' is unknown; .*did you mean PH2"),
        ("s-dhc-2020-us", ("tau.PH2", "2.5"), "tau.PH2: must be a whole number above 0"),
        ("s-dhc-2020-us", ("stat_filter", "x"), "key 'stat_filter' is unknown; .*did you mean state_filter"),
        ("s-dhc-2020-us", ("consistency.couple", "ignore"), "consistency.couple: must be 'fail' or 'drop-and-count'"),
        ("s-dhc-2020-us", ("consistency", '{"couple": "fail", "couple": "fail"}'), "key 'couple' is given twice"),
    ],
)
def test_what_cannot_be_is_refused_by_the_reader_in_its_words(source: str, pair: tuple[str, str], told: str) -> None:
    product = next(PRODUCTS[key] for key in PRODUCTS if source in PRODUCTS[key].built_in)
    with pytest.raises(ConfigError, match=rf"{source}.* cannot be used:\n(  .*\n)*  .*{told}"):
        product.read(source, changed(pair))


def test_a_key_that_is_set_twice_is_refused() -> None:
    with pytest.raises(ConfigError, match="rho: is set twice"):
        TOPDOWN.read("pl94-2020-us", changed(("rho", "1"), ("rho", "2")))


@pytest.mark.parametrize("text", ["rho", "=1", "queries..total=1"])
def test_an_argument_that_is_no_pair_is_refused(text: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["topdown", "plan", "pl94-2020-us", "--set", text])
    assert "is no KEY=VALUE, such as" in capsys.readouterr().err


@pytest.mark.thorough
def test_the_command_line_plans_what_was_set(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["topdown", "plan", "cook-2010", "--set", "rho=1/3", "--json"]) == 0
    assert '"1/3"' in capsys.readouterr().out
