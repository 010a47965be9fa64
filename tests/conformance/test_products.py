"""What every product must do, whichever it is: each test runs for all of `PRODUCTS`."""

import ast
import json
import subprocess
import sys
from collections import defaultdict
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from pathlib import Path
from typing import Any

import pytest

import yupana
from yupana.errors import ConfigError
from yupana.plan.plan import Plan
from yupana.products import PRODUCTS
from yupana.products.product import Product
from yupana.products.safetab.demonstration_parameters import write_parameters


@dataclass
class Case:
    """A product with a configuration, and the place a document of it is read from."""

    product: Product[Any]
    source: Path | str
    place: Path

    @cached_property
    def config(self) -> object:
        return self.product.read(self.source)

    def again(self, document: dict[str, Any]) -> object:
        """A document read back."""
        kept = self.place.read_text()
        self.place.write_text(json.dumps(document))
        try:
            return self.product.read(self.place)
        finally:
            self.place.write_text(kept)


@pytest.fixture(params=[*PRODUCTS], scope="module")
def case(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Case:
    product = PRODUCTS[request.param]
    folder = tmp_path_factory.mktemp("conformance") / "parameters"
    write_parameters(folder)
    place = folder / "config.json"
    # Those of SafeTab come without the files of codes, and descriptions of them, too, but for the first.
    if product.built_in and "parameters" not in PRODUCTS.listing(request.param).takes:
        # Of TopDown the smallest of 2020.
        return Case(product, "h1-2020-us" if product.key == "topdown" else next(iter(product.built_in)), place)
    return Case(product, place, place)


def spent(case: Case, config: object) -> Fraction:
    """The sum of the entries of a configuration; of passes over disjoint people the largest."""
    totals: dict[str, Fraction] = defaultdict(Fraction)
    for entry in case.product.entries(config).values():
        totals[entry.population] += Fraction(entry.budget)
    return max(totals.values())


def alike(product: Product[Any], one: object, other: object) -> bool:
    """Whether two configurations say the same and plan the same."""
    return product.document(one) == product.document(other) and product.plan(one) == product.plan(other)


def test_a_product_is_listed_under_its_key_and_has_a_title(case: Case) -> None:
    key = case.product.key
    assert PRODUCTS[key] is case.product
    assert case.product.words.title
    listing = PRODUCTS.listing(key)
    assert listing.about
    assert Fraction(listing.confidence) == case.product.confidence


@pytest.mark.slow
def test_a_plan_costs_the_sum_of_its_entries(case: Case) -> None:
    assert case.product.plan(case.config).loss() == spent(case, case.config)


def test_a_document_reads_back_as_the_same_configuration(case: Case) -> None:
    config = case.config
    assert alike(case.product, case.again(case.product.document(config)), config)


def test_entries_put_back_change_nothing_and_others_change_the_loss(case: Case) -> None:
    product, config = case.product, case.config
    budgets = {name: entry.budget for name, entry in product.entries(config).items()}
    same = product.with_budgets(config, budgets)
    assert product.plan(same) == product.plan(config)
    twice = product.with_budgets(config, {name: 2 * budget for name, budget in budgets.items()})
    assert product.plan(twice).loss() == 2 * product.plan(config).loss()
    assert alike(product, case.again(product.document(twice)), twice)


def test_an_entry_tells_what_its_noise_is_scaled_to(case: Case) -> None:
    """The noise of the cells that an entry pays for has its sensitivity over its share of the budget."""
    product, config = case.product, case.config
    scales = {m.calibration / Fraction(m.budget) for m in product.plan(config).measurements}
    for entry in product.entries(config).values():
        if entry.budget > 0:
            assert entry.sensitivity / (Fraction(entry.budget) * entry.share) in scales


def test_tight_sensitivities_are_no_larger(case: Case) -> None:
    tight = case.product.entries(case.config, "tight")
    for name, entry in case.product.entries(case.config, "published").items():
        assert tight[name].sensitivity <= entry.sensitivity


def test_the_run_of_2020_is_its_own_production(case: Case) -> None:
    product = case.product
    production = product.production(case.config)
    if production is None:
        assert product.key == "tables"  # nothing of a description was used in 2020
        return
    assert alike(product, product.production(production), production)
    plan = product.plan(production)
    assert isinstance(plan, Plan)
    assert not plan.against_release


@pytest.mark.slow
def test_a_plan_names_its_margins_as_asked(case: Case) -> None:
    product, config = case.product, case.config
    assert product.plan(config).confidence == product.confidence
    asked = product.plan(config, confidence=Fraction(99, 100), margins="bureau")
    assert (asked.confidence, asked.margins) == (Fraction(99, 100), "bureau")


def test_words_name_what_is_in_the_plan(case: Case) -> None:
    words = case.product.words
    for m in case.product.plan(case.config).measurements:
        assert not words.levels or m.level in words.levels
        assert not words.kinds or m.name.partition("/")[0] in words.kinds


@pytest.mark.thorough
def test_promises_are_json(case: Case) -> None:
    assert json.dumps(case.product.promises(case.config, case.product.plan(case.config), 1e-10))


def test_what_is_public_is_told_in_words(case: Case) -> None:
    assert case.product.taken_as_public(case.config)


def test_a_configuration_that_is_none_is_refused_by_name(case: Case, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="nowhere"):
        case.product.read(tmp_path / "nowhere" / "config.json")


def test_a_list_of_products_costs_no_import() -> None:
    script = (
        "import sys; from yupana.products import PRODUCTS; [PRODUCTS.listing(key) for key in PRODUCTS]; "
        "print([m for m in sys.modules if m.startswith('yupana.products.') or m == 'numpy'])"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


@pytest.mark.thorough
def test_no_product_is_known_by_its_name_elsewhere() -> None:
    """What asks a product, finds it in `PRODUCTS` or imports it. TopDown's key is its algorithm's folder, too."""
    source = Path(yupana.__file__).parent
    # "tables" is a word of every manifest, too.
    keys = {key for key in PRODUCTS if not (source / key).is_dir()} - {"tables"}
    known = {
        f"{path.relative_to(source)}:{node.lineno}"
        for path in source.rglob("*.py")
        if path.relative_to(source).parts[0] not in {"products", "confidential"} and path.name != "demo.py"
        if any(key in (text := path.read_text(encoding="utf-8")) for key in keys)
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Constant) and node.value in keys
    }
    assert known == set()
