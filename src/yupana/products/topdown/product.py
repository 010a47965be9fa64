"""TopDown as a product: consistent counts for a hierarchy of geounits, and what a manifest says of them. Public."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any, Final, Unpack

import duckdb

from yupana.errors import ConfigError, OutputError
from yupana.files.database import STOPS, open_database
from yupana.files.declaration import schema_of
from yupana.files.document import UNCHANGED, Changes, refuse
from yupana.geography.blocks import FACILITIES
from yupana.geography.spine_files import GEOUNITS
from yupana.plan.budgets import Entry
from yupana.plan.measurement import Accounting, Measurement, PlanTerms
from yupana.plan.plan import Plan
from yupana.privacy.exact import INFINITE, Budget, read_exact
from yupana.products.codebook import Described
from yupana.products.described.product import TABLES
from yupana.products.parts import PARTS, PARTS_SCHEMA
from yupana.products.product import Checked, Product, Stated, Words
from yupana.products.topdown.codebook import UNIVERSES, described
from yupana.products.topdown.described import DescribedConfiguration, described_document, is_description, read_described
from yupana.products.topdown.verify import MEASUREMENTS, NOISY, SYSTEM, verify_noisy
from yupana.release.manifest import MANIFEST
from yupana.release.recipe import OPTIONS, PUBLIC_INPUTS, read_configuration_in
from yupana.release.tables import table_rows
from yupana.topdown.configuration import OF_AREAS, Configuration
from yupana.topdown.plan import (
    SENSITIVITY,
    epsilon_on_any_spine,
    make_measurement,
    make_plan,
    measurement_name,
    measurement_with,
    semantics_as_json,
    with_budgets,
)
from yupana.topdown.queries import Attribute, Schema
from yupana.topdown.reading.configuration import (
    configuration_document,
    counterpart,
    path_of,
    production_configuration,
    read_configuration,
)
from yupana.topdown.reading.declaration import DOCUMENT

GEOCODES: Final = "geocodes of the files"
"""The spine of a release that was made of noisy measurement files."""

SOURCE: Final = "source_manifest_sha256"
"""Where intervals tell the release that they were added to."""

UNUSUAL_BLOCKS: Final = (
    "the posterior draws blocks to what is common around them; where half of a block is unlike its block group, "
    "Hispanic by race was off by 25 percent more than without it (Cook County, 2010; docs/topdown-posterior.md)"
)
"""What is remarked of every release of which blocks were drawn from a posterior."""

_OF_FILES: Final = "areas/"
_GIVEN_SPINE: Final = "the spine and its shares, from a folder"
_TOTALS: Final = "totals of states (--totals)"


def parameters(
    config: Configuration,
    *,
    spine: str,
    estimator: str,
    intervals: Mapping[str, Any],
    areas: Mapping[str, Any],
    remarks: Sequence[str],
) -> dict[str, Any]:
    """What a manifest says for readers of the tables.

    Parameters
    ----------
    spine : str
        Of which kind.
    intervals : mapping
        `IntervalTerms.as_json`.
    areas : mapping of kind to mapping
        Of areas that were given beside the reference file, their "file" and how many "areas" there are.
    """
    return {
        "schema": {a.name: list(a.labels) for a in config.schema.attributes},
        "invariants": {level: [q.name for q in queries] for level, queries in config.invariants.items()},
        "geolevels": list(config.levels),
        "spine": spine,
        "estimator": estimator,
        "intervals": dict(intervals),
        "areas": dict(areas),
        **({"remarks": list(remarks)} if remarks else {}),
    }


def taken_as_public(
    config: Configuration, *, given: bool = False, facilities: bool = False, files: bool = False, totals: bool = False
) -> list[str]:
    """What the guarantee of a run does not protect, or that of noisy measurement files, as far as these tell.

    Parameters
    ----------
    given : bool
        Whether the spine came from a folder.
    facilities : bool
        Whether a list of housing units and facilities of the blocks is known.
    files : bool
        Whether what is known came with noisy measurement files.
    totals : bool
        Whether totals of states were given.
    """
    units = "housing units and group-quarters facilities of every block"
    return [
        *_public_areas(config),
        *([_GIVEN_SPINE] if given else []),
        *([f"{units} (group_quarters.csv)"] if facilities else []),
        *([units] if files and config.group_quarters else []),
        *(f"invariant: total of every {level}" for level in config.invariants),
        *([f"structural zeros of the {'files' if files else 'configuration'}"] if config.structural_zeros else []),
        *([_TOTALS] if totals else []),
    ]


def _stated(release: Path, manifest: Mapping[str, Any], config: Configuration, plan: Plan) -> Stated:
    """Make a manifest of a run, or of what was made of noisy measurement files, anew; see `Product.stated`."""
    told, files = manifest["parameters"], manifest.get(MEASUREMENTS)
    exact = files is None or files["loss"]["exact"] is True
    # The spine of noisy measurements lies in their release; there the shares are those that budgets tell.
    is_noisy = manifest["system"] == NOISY
    measured = _told(plan, config, shares=is_noisy) if is_noisy or not exact else _of_spine(release, config)
    loss = config.budget
    if files is not None:
        loss = read_exact(files["loss"]["most"][config.mechanism.budget_name])
    wrong = [] if plan.loss() == loss else [f"the loss of the plan is not {'the budget' if exact else 'that of files'}"]
    public = manifest[PUBLIC_INPUTS]
    if files is None:
        facilities = FACILITIES in public or any(
            Path(name).stem == Path(FACILITIES).stem for name in manifest["tables"]
        )
        given = any(name.startswith("spine/") for name in public)
        # Of noisy measurements no file beside them tells.
        facilities |= is_noisy and any("facilities of every block" in text for text in manifest["taken_as_public"])
        taken = taken_as_public(config, given=given, facilities=facilities)
    else:
        # Which of the public files had totals is not told.
        totals = _TOTALS in manifest["taken_as_public"] and any(not name.startswith(_OF_FILES) for name in public)
        taken = taken_as_public(config, files=True, totals=totals)
    options, remarks = manifest[OPTIONS], list(told.get("remarks", ()))
    if options["estimator"] == "posterior" and "posterior" in manifest and UNUSUAL_BLOCKS not in remarks:
        wrong.append("the remark on the blocks of a posterior is missing")
    due = parameters(
        config,
        spine=config.spine_kind if files is None else GEOCODES,
        estimator=options["estimator"],
        intervals=_intervals(options, told["intervals"]),
        areas=told["areas"],
        remarks=remarks,
    )
    unchecked = () if exact else ("the budgets: the configuration has no such variances as the files",)
    # Without noise nothing is charged where the counts themselves are written.
    free = frozenset(m.name for m in plan.measurements) if config.budget == INFINITE else frozenset[str]()
    keys = {"system": NOISY if is_noisy else SYSTEM, "parameters": due, "taken_as_public": taken}
    return Stated(_along(plan, config, measured), keys, free, wrong=tuple(wrong), unchecked=unchecked)


def _intervals(options: Mapping[str, str], told: Mapping[str, Any]) -> dict[str, Any]:
    """The terms of intervals by the options that asked for them; they may have been added later, by others."""
    method = options.get("intervals", "none")
    if method == "none":
        return {"method": method}
    confidence = Fraction(told["confidence"])
    if not 0 < confidence < 1:
        raise ValueError("parameters.intervals.confidence does not lie strictly between 0 and 1")
    return {
        "method": method,
        **({"replicates": int(options["replicates"])} if "replicates" in options else {}),
        "confidence": str(confidence),
        **({SOURCE: str(told[SOURCE])} if SOURCE in told else {}),
    }


def _along(plan: Plan, config: Configuration, measured: Sequence[Measurement]) -> Plan:
    """A plan of some measurements, in the order and along the paths of another that has the same."""
    by_name = {m.name: m for m in measured}
    ordered = [by_name.pop(m.name) for m in plan.measurements if m.name in by_name]
    # Which shares follow one another is told by the plan's paths; along each of them the loss is that of the budget.
    paths = plan.paths if len(ordered) == len(plan.measurements) and not by_name else ()
    made = make_plan(config, confidence=plan.confidence, margins=plan.margins)
    return replace(made, measurements=(*ordered, *by_name.values()), paths=paths)


def _told(plan: Plan, config: Configuration, *, shares: bool = False) -> list[Measurement]:
    """The measurements of a plan as those of the configuration's queries, with the budgets, or the shares, it tells."""
    known = {(level, query.name): (query, part) for level in config.levels for query, part in config.measured(level)}
    found = []
    for m in plan.measurements:
        query, part = known.get((m.level, m.table), (None, Fraction(0)))
        if query is None:
            continue
        if not shares or config.budget == INFINITE:
            found.append(measurement_with(config, m.level, query, m.name, m.budget))
        elif isinstance(m.budget, Fraction):
            found.append(make_measurement(config, m.level, query, m.budget / (Fraction(config.budget) * part), part))
    return found


def _of_spine(release: Path, config: Configuration) -> list[Measurement]:
    """The measurements of every share that a geounit of a geolevel has."""
    try:
        with open_database() as db:
            query = f"SELECT DISTINCT geolevel, share FROM {table_rows(release / 'spine' / GEOUNITS)} ORDER BY ALL"
            shares = {(str(level), read_exact(str(share))) for level, share in db.execute(query).fetchall()}
    except STOPS:
        raise
    except (OSError, duckdb.Error, ValueError):
        raise ValueError(f"spine/{GEOUNITS} does not hold the shares of the geounits") from None
    return [
        make_measurement(config, level, query, share, part)
        for level, share in shares
        if level in config.levels and isinstance(share, Fraction) and share > 0
        for query, part in config.measured(level)
    ]


class TopdownProduct(Product[Configuration]):
    """Counts with noise, consistent from the root to the blocks. Persons and units are configurations of it."""

    key: Final = SYSTEM
    words: Final = Words(title="TopDown", universes=UNIVERSES)
    families: Final = ()

    def locate(self, source: Path | str) -> Path:
        """Where a configuration lies, built-in or not."""
        return path_of(source)

    def read(self, source: Path | str, changes: Changes = UNCHANGED, *, renormalise: bool = False) -> Configuration:
        """Read a configuration in TOML or JSON, built-in or not, a description, or the manifest of a release."""
        path = path_of(source)
        document, faults = read_configuration_in(path, SYSTEM, changes)
        if isinstance(document, dict) and PARTS in document:
            raise ConfigError(
                f"{source}: is a document of parts, each with a plan of its own; name the configuration of one "
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

    def plan(self, config: Configuration, **terms: Unpack[PlanTerms]) -> Plan:
        """One measurement per geolevel and query with a share; published sensitivities are the least proven."""
        own = config.description.confidence if isinstance(config, DescribedConfiguration) else self.confidence
        return make_plan(config, confidence=terms.get("confidence") or own, margins=terms.get("margins", "exact"))

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
        return tuple(taken_as_public(config))

    def stated(self, release: Path, manifest: Mapping[str, Any], plan: Plan, inputs: Path | None) -> Stated:
        """All but the areas that were given beside, and remarks on the geography."""
        del inputs
        config = self.read(release / MANIFEST)
        found = _stated(release, manifest, config, plan)
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
        from yupana.products.topdown.agreement import verify_release  # noqa: PLC0415 (compiled)

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


def _public_areas(config: Configuration) -> tuple[str, ...]:
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
