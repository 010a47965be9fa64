"""Options: given to `setup`, set, in a configuration, and of a release; on the command line the same."""

import json
from fractions import Fraction
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st

import yupana
from yupana.cli.main import main
from yupana.interface.options import OPTIONS, STAGES, Stage, has
from yupana.products import PRODUCTS
from yupana.products.phsafe.configuration import production_config


def document(**options: object) -> dict[str, Any]:
    return {**production_config(), **({"options": options} if options else {})}


def test_what_is_given_comes_before_what_is_set_and_that_before_the_configuration(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(json.dumps(document(margins="bureau", confidence="0.99", format="parquet")))
    for config in (tmp_path / "config.json", document(margins="bureau", confidence="0.99", format="parquet")):
        asked = yupana.setup("phsafe", config, set={"options.confidence": "0.8"}, format="csv")
        assert (asked.options["margins"], asked.options["confidence"], asked.options["format"]) == (
            "bureau",
            Fraction(4, 5),
            "csv",
        )
        assert asked.plan() == yupana.plan("phsafe", document(), margins="bureau", confidence="0.8")


@given(data=st.data())
@pytest.mark.thorough
def test_a_choice_is_the_same_wherever_it_stands(data: st.DataObject) -> None:
    product = data.draw(st.sampled_from(["phsafe", "topdown"]))
    config: Any = "cook-2010" if product == "topdown" else document()
    chosen = {
        name: data.draw(st.sampled_from(option.choices))
        for name, option in OPTIONS.items()
        if option.kind == "choice" and has(PRODUCTS.listing(product), option) and data.draw(st.booleans())
    }
    plain = yupana.setup(product, config, **chosen)  # type: ignore[arg-type]
    told = {f"options.{OPTIONS[name].flag or name}": value for name, value in chosen.items()}
    assert yupana.setup(product, config, set=told) == plain


def test_an_option_of_a_verb_is_meant_by_what_is_near() -> None:
    with pytest.raises(yupana.ConfigError, match=r"^sed: there is no such option; did you mean seed\?$"):
        yupana.run("phsafe", "s-dhc-2020-us", "census", "out", sed=3)
    with pytest.raises(yupana.ConfigError, match=r"^seed: there is no such option$"):
        yupana.plan("phsafe", "s-dhc-2020-us", seed=3)


@pytest.mark.parametrize(
    ("options", "wrong"),
    [
        ({"margin": "exact"}, "options.margin: there is no such option; did you mean margins?"),
        ({"margins": "exat"}, "options.margins: must be 'exact' or 'bureau'; did you mean exact?"),
        ({"sensitivity": 3}, "options.sensitivity: must be 'published' or 'tight'"),
        ({"confidence": "2"}, "options.confidence: 2 does not lie strictly between 0 and 1"),
        ({"estimator": "posterior"}, "phsafe takes no estimator"),
        ({"report": [1]}, "options.report: must be a path, and is of type list"),
    ],
)
def test_what_is_wrong_with_an_option_is_told_by_its_place(options: dict[str, Any], wrong: str, tmp_path: Path) -> None:
    path = tmp_path / "config.json"
    path.write_text(json.dumps(document(**options)))
    for config, place in ((document(**options), ""), (path, f"{path}: ")):
        with pytest.raises(yupana.ConfigError) as refused:
            yupana.setup("phsafe", config)
        assert str(refused.value) in {wrong, place + wrong}


def test_options_are_set_one_by_one() -> None:
    with pytest.raises(yupana.ConfigError, match=r"^options: set one of them, such as options\.margins=bureau"):
        yupana.setup("phsafe", document(), set={"options": {"margins": "bureau"}})


def test_a_path_in_a_configuration_is_from_where_it_lies(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(json.dumps(document(report="page.html")))
    assert yupana.setup("phsafe", tmp_path / "config.json").options["report"] == tmp_path / "page.html"


@pytest.mark.parametrize("product", PRODUCTS)
def test_the_schema_has_the_options_of_the_product(product: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([product, "schema"]) == 0
    schema = json.loads(capsys.readouterr().out)["properties"]["options"]
    jsonschema.Draft202012Validator.check_schema(schema)
    listing = PRODUCTS.listing(product)
    names = {option.flag if option.kind == "choice" and option.flag else name for name, option in OPTIONS.items()}
    assert set(schema["properties"]) == {
        option.flag if option.kind == "choice" and option.flag else name
        for name, option in OPTIONS.items()
        if has(listing, option)
    }
    assert set(schema["properties"]) <= names


@pytest.mark.parametrize(
    ("verb", "stage"), [("plan", "plan"), ("validate", "records"), ("exact", "release"), ("run", "run")]
)
@pytest.mark.parametrize("product", PRODUCTS)
def test_a_verb_offers_the_options_that_it_reads(
    product: str,
    verb: str,
    stage: Stage,
    capsys: pytest.CaptureFixture[str],
) -> None:
    with pytest.raises(SystemExit):
        main([product, verb, "--help"])
    words = capsys.readouterr().out.split()
    for name, option in OPTIONS.items():
        due = STAGES.index(option.stage) <= STAGES.index(stage) and has(PRODUCTS.listing(product), option)
        assert (f"--{(option.flag or name).replace('_', '-')}" in words) == due


def test_a_configured_product_is_not_configured_again() -> None:
    asked = yupana.setup("phsafe", document())
    assert yupana.setup("phsafe", asked) is asked
    with pytest.raises(yupana.ConfigError, match="margins: the product is configured; set it up anew"):
        yupana.setup("phsafe", asked, margins="bureau")
