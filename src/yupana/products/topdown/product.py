"""TopDown as a product: consistent counts of persons or housing units for a hierarchy of geounits."""

from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any, Final

from yupana.errors import ConfigError, OutputError
from yupana.files.declaration import schema_of
from yupana.files.document import UNCHANGED, Changes, refuse
from yupana.plan.budgets import Entry
from yupana.plan.measurement import Accounting, Margins
from yupana.plan.plan import Plan
from yupana.privacy.exact import INFINITE, Budget
from yupana.products.codebook import Described
from yupana.products.described.product import TABLES
from yupana.products.parts import PARTS, PARTS_SCHEMA
from yupana.products.product import BuiltIn, Checked, Product, Stated, Words
from yupana.products.topdown.codebook import described
from yupana.products.topdown.described import (
    DescribedConfiguration,
    described_document,
    is_description,
    read_described,
)
from yupana.products.topdown.manifest import stated
from yupana.products.topdown.verify import NOISY, SYSTEM, verify_noisy, verify_release
from yupana.release.manifest import MANIFEST
from yupana.release.recipe import read_configuration_in
from yupana.topdown.any_spine import epsilon_on_any_spine, semantics_as_json
from yupana.topdown.configuration import OF_AREAS, Configuration
from yupana.topdown.plan import DEFAULT_CONFIDENCE, SENSITIVITY, make_plan, measurement_name, with_budgets
from yupana.topdown.queries import Attribute, Schema
from yupana.topdown.reading.configuration import counterpart, path_of, production_configuration, read_configuration
from yupana.topdown.reading.declaration import DOCUMENT
from yupana.topdown.reading.document import configuration_document


class TopdownProduct(Product[Configuration]):
    """Counts with noise, consistent from the root to the blocks. Persons and units are configurations of it."""

    key: Final = SYSTEM
    words: Final = Words(title="TopDown")
    confidence: Final = DEFAULT_CONFIDENCE
    families: Final = ()
    built_in: Final[Mapping[str, BuiltIn]] = {
        "pl94-2020-us": BuiltIn("TopDown, persons", "topdown"),
        "pl94-2020-pr": BuiltIn("Puerto Rico, persons", "topdown-pr"),
        "h1-2020-us": BuiltIn("TopDown, housing units", "topdown-h1"),
        "h1-2020-pr": BuiltIn("Puerto Rico, housing units", "topdown-h1-pr"),
        "cook-2010": BuiltIn("one county of 2010"),
        "pl94-2020-us-block-total": BuiltIn("TopDown, persons, block totals"),
        "cook-2010-block-total": BuiltIn("one county of 2010, block totals"),
        "pl94-2020-us-whole": BuiltIn("persons and housing units, each a configuration by itself"),
        "pl94-2020-pr-whole": BuiltIn("Puerto Rico, persons and housing units"),
    }

    def locate(self, source: Path | str) -> Path:
        """Where a configuration lies, built-in or not."""
        return path_of(source)

    def read(self, source: Path | str, changes: Changes = UNCHANGED, *, renormalise: bool = False) -> Configuration:
        """Read a configuration in TOML or JSON, built-in or not, a description, or the manifest of a release."""
        path = path_of(source)
        document, faults = read_configuration_in(path, SYSTEM, changes)
        if isinstance(document, dict) and PARTS in document:
            raise ConfigError(
                f"config {source}: is a document of parts, each with a plan of its own; name the configuration of one "
                "of them (yupana.parts reads them all)"
            )
        if not is_description(document):
            return read_configuration(source, changes, renormalise=renormalise)
        found = None if faults or not isinstance(document, dict) else read_described(document, path.parent, faults)
        if found is None or faults:
            raise refuse(path, faults)
        return found

    def schema(self) -> dict[str, Any]:
        """Of a configuration in TOML or JSON, or of one of parts."""
        found = schema_of("TopDown", DOCUMENT)
        one = {
            "required": found["required"],
            "if": {"properties": {"mechanism": {"const": "pure"}}, "required": ["mechanism"]},
            "then": {"required": ["epsilon"]},
            "else": {"required": ["rho"]},
        }
        return {
            **found,
            "properties": {**found["properties"], PARTS: PARTS_SCHEMA},
            "required": ["product"],
            "if": {"required": [PARTS]},
            "then": {"propertyNames": {"enum": ["product", PARTS]}},
            "else": one,
        }

    def document(self, config: Configuration) -> dict[str, Any]:
        """The configuration with every default told, or the description with the budgets that there are."""
        if isinstance(config, DescribedConfiguration):
            return described_document(config)
        return configuration_document(config)

    def production(self, config: Configuration) -> Configuration:
        """The run of 2020 with the same privacy unit: of Puerto Rico where the root is the state."""
        return production_configuration(config)

    def plan(
        self,
        config: Configuration,
        *,
        accounting: Accounting = "published",
        confidence: Fraction | None = None,
        margins: Margins = "exact",
    ) -> Plan:
        """One measurement per geolevel and query with a share; published sensitivities are the least proven."""
        del accounting
        own = config.description.confidence if isinstance(config, DescribedConfiguration) else self.confidence
        return make_plan(config, confidence=confidence or own, margins=margins)

    def entries(self, config: Configuration, accounting: Accounting = "published") -> Mapping[str, Entry]:
        """The budget of every query of every geolevel, such as ``State total``."""
        del accounting
        return {
            # An infinite budget leaves what has no share at zero.
            measurement_name(level, query): Entry(
                config.budget * whole if (whole := of_level * share) else Fraction(0), SENSITIVITY.bounded
            )
            for level, of_level in config.shares.items()
            for query, share in config.queries[level]
        }

    def with_budgets(self, config: Configuration, budgets: Mapping[str, Budget]) -> Configuration:
        """The configuration whose shares follow from all these budgets.

        Raises
        ------
        ConfigError
            If one is infinite.
        """
        if INFINITE in budgets.values():
            raise ConfigError("--targets: the configuration's budget is infinite; there is nothing to solve")
        return with_budgets(config, {name: Fraction(budget) for name, budget in budgets.items()})

    def moved_by_attribute(self, plan: Plan, parameters: Mapping[str, Any]) -> Mapping[str, Mapping[str, Fraction]]:
        """Two answers of the queries that can tell values of the attribute apart."""
        schema = parameters.get("schema", {})
        return {
            name: {m.name: SENSITIVITY.bounded for m in plan.measurements if _asks(m.table, name, schema)}
            for name in schema
        }

    def is_adaptive(self, plan: Plan) -> bool:
        """No: what is measured is known beforehand."""
        del plan
        return False

    def epsilon_exact(
        self, config: Configuration, plan: Plan, delta: float, factor: Fraction = Fraction(1)
    ) -> float | None:
        """Whichever geounits the spine bypasses."""
        del plan
        return epsilon_on_any_spine(replace(config, budget=config.budget * factor), delta)

    def promises(self, config: Configuration, plan: Plan, delta: float) -> dict[str, Any]:
        """Which totals are kept exactly, and what single attributes and moves within a geounit cost.

        Beside it, where production asked other queries of the same records, what they cost there.
        """
        del plan
        beside = counterpart(config)
        return {
            "invariants": {level: [query.name for query in queries] for level, queries in config.invariants.items()},
            "semantics": semantics_as_json(config, delta),
            "any_spine": {"delta": delta, "epsilon_exact": epsilon_on_any_spine(config, delta)},
            **(
                {}
                if beside is None
                else {"semantics_of_production": {"product": beside.product, **semantics_as_json(beside, delta)}}
            ),
        }

    def taken_as_public(self, config: Configuration) -> tuple[str, ...]:
        """Blocks, invariants and structural zeros; what the data add is told by the run, which reads them."""
        return (
            *public_areas(config),
            *(f"invariant: total of every {level}" for level in config.invariants),
            *(["structural zeros of the configuration"] if config.structural_zeros else []),
        )

    def stated(self, release: Path, manifest: Mapping[str, Any], plan: Plan, inputs: Path | None) -> Stated:
        """All but the areas that were given beside, and remarks on the geography."""
        del inputs
        config = self.read(release / MANIFEST)
        found = stated(release, manifest, config, plan, public_areas(config))
        return replace(found, described=partial(described, config))

    def described(self, config: Configuration, plan: Plan, table: str) -> Described:
        """Titles of the redistricting data, and labels of the schema."""
        del plan
        return described(config, table)

    def verify(self, release: Path, manifest: Mapping[str, Any]) -> Checked:
        """Compare the counts with each other, and with schema and geolevels.

        Raises
        ------
        OutputError
            If the release was made by another system.
        """
        against = "the manifest and each other"
        if manifest.get("system") not in {SYSTEM, NOISY}:
            raise OutputError(f"{release} was made by an unknown system, {manifest.get('system')!r}")
        if manifest["system"] == NOISY:
            return Checked(tuple(verify_noisy(release, manifest)), against="the manifest and its plan")
        try:
            attributes = manifest["parameters"]["schema"].items()
            schema = Schema(tuple(Attribute(name, tuple(labels)) for name, labels in attributes))
            told = manifest["parameters"]
            has_intervals = told.get("intervals", {}).get("method", "none") != "none"
            any_codes = told["spine"] == OF_AREAS
            wrong = verify_release(release, schema, told["geolevels"], any_codes=any_codes, intervals=has_intervals)
        except (KeyError, ValueError, IndexError):
            wrong = ["the manifest does not hold the schema and geolevels of TopDown"]
        return Checked(tuple(wrong), against=against)


def public_areas(config: Configuration) -> tuple[str, ...]:
    """What the guarantee takes as public of areas, and of columns that are described, in words."""
    if isinstance(config, DescribedConfiguration):
        return TABLES.taken_as_public(config.description)
    if config.areas is None:
        return ("the reference file: blocks and the areas they lie in",)
    return ("the areas of the configuration: blocks and what they lie in",)


def _asks(query: str, attribute: str, schema: Mapping[str, Any]) -> bool:
    """Whether a query of TopDown can tell values of an attribute apart; a recode is taken to be of any attribute."""
    names = [name.strip() for name in query.split("*")]
    return "detailed" in names or attribute in names or any(n not in schema and n != "total" for n in names)


TOPDOWN: Final = TopdownProduct()
