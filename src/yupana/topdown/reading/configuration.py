"""Read the configuration of a TopDown run: a file in TOML or JSON, or one that Yupana brings along. Public."""

from collections.abc import Mapping
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any, Final

from yupana.files.changes import UNCHANGED, Changes
from yupana.files.document import check_keys, is_text, located, read_budget, read_choice, refuse
from yupana.geography.hierarchy import Hierarchy
from yupana.plan.measurement import Mechanism
from yupana.privacy.exact import INFINITE, Budget
from yupana.release.recipe import read_configuration_in
from yupana.topdown.configuration import Configuration, Shared, unfit_for
from yupana.topdown.queries import TOTAL, Factor, query_named
from yupana.topdown.reading.queries import read_invariants, read_passes, read_queries, read_shares, renormalised
from yupana.topdown.reading.schema import read_constraints, read_recodes, read_schema
from yupana.topdown.reading.spine import read_areas, read_spine

BUILT_IN: Final = (
    "pl94-2020-us",
    "pl94-2020-pr",
    "h1-2020-us",
    "h1-2020-pr",
    "cook-2010",
    "pl94-2020-us-block-total",
    "cook-2010-block-total",
)
"""Configurations that Yupana brings along, by name."""

WHOLE: Final = ("pl94-2020-us-whole", "pl94-2020-pr-whole")
"""Documents of parts, each of which is a configuration."""

PRIVACY_UNITS: Final = ("person record", "housing unit")

_REQUIRED: Final = ("product", "schema", "shares", "queries")
_OPTIONAL: Final = (
    *(
        "privacy_unit",
        "mechanism",
        "rho",
        "epsilon",
        "invariants",
        "passes",
        "recodes",
        "constraints",
        "spine",
        "areas",
    ),
)
SMALLEST_BUDGET: Final = Fraction(1, 10**15)
"""Of a measurement: the noise of a smaller one would not fit 64 bits."""


def read_configuration(name: str | Path, changes: Changes = UNCHANGED, *, renormalise: bool = False) -> Configuration:
    """Read and check a configuration.

    Parameters
    ----------
    name : str or Path
        One of `BUILT_IN`, or a file: a configuration, or the manifest of a release.
    changes : Changes
        Made in it before it is checked.
    renormalise : bool
        Divide shares by their sum (`renormalised`); else a sum that is not 1 is refused.

    Raises
    ------
    ConfigError
        Naming the file, the key and what is wrong with it. All faults are named at once.
    """
    path = path_of(name)
    document, faults = read_configuration_in(path, "topdown", changes)
    configuration = parse_configuration(renormalised(document) if renormalise else document, path.parent, faults)
    if configuration is None or faults:
        raise refuse(path, faults)
    return configuration


def path_of(name: str | Path) -> Path:
    """Where a configuration lies, built-in or not.

    Raises
    ------
    ConfigError
        If there is none.
    """
    return located(name, "yupana.topdown", (*BUILT_IN, *WHOLE))


def parse_configuration(
    document: object, folder: Path, faults: list[str], areas: Hierarchy | None = None
) -> Configuration | None:
    """Read a document; None, with faults, where it is in doubt what it says.

    Parameters
    ----------
    document : object
        As `yupana.files.document.read_document` gives it.
    folder : Path
        Which names of files are relative to.
    faults : list of str
        Faults found are added.
    areas : Hierarchy, optional
        What the spine is, where the document does not say it.
    """
    if not isinstance(document, dict):
        faults.append("the top level must be a table with the keys " + ", ".join(_REQUIRED))
        return None
    check_keys("", document, _REQUIRED, faults, optional=_OPTIONAL)
    product = document.get("product", "")
    if "product" in document and not is_text(product):
        faults.append("product: must be a text")
    unit = read_choice("privacy_unit", document.get("privacy_unit", PRIVACY_UNITS[0]), PRIVACY_UNITS, faults)
    mechanism, budget = _budget(document, faults)
    # A key that is missing has been named; only what is there is read.
    schema = read_schema(document["schema"], faults) if "schema" in document else None
    levels, areas = (areas.levels, areas) if areas is not None else read_areas(document, folder, faults)
    shares = read_shares(document["shares"], levels, faults) if "shares" in document else None
    spine = read_spine(document.get("spine", {}), shares, mechanism, faults)
    # What is named by attributes and geolevels can be judged only where they are known.
    if schema is None or shares is None:
        return None
    recodes = read_recodes(document.get("recodes", {}), schema, faults)
    quarters, zeros = read_constraints(document.get("constraints", {}), schema, faults)
    named = partial(query_named, schema=schema, recodes=recodes)
    invariants = read_invariants(document.get("invariants", {}), named(TOTAL), tuple(shares), faults)
    if "queries" not in document:
        return None
    queries = read_queries(document["queries"], named, shares, faults)
    passes = read_passes(document.get("passes", {}), named, schema, queries, faults)
    _check_noise(budget, shares, queries, faults)
    if spine is None:
        return None
    if not faults:
        faults += unfit_for(spine.kind, queries)
    return Configuration(
        product, unit, mechanism, budget, invariants, schema, queries, passes, recodes, quarters, zeros, spine, areas
    )


def _budget(document: dict[str, Any], faults: list[str]) -> tuple[Mechanism, Budget]:
    names = tuple(mechanism.value for mechanism in Mechanism)
    mechanism = Mechanism(read_choice("mechanism", document.get("mechanism", "zcdp"), names, faults))
    key = mechanism.budget_name
    (other,) = {m.budget_name for m in Mechanism} - {key}
    if other in document:
        faults.append(f"{other}: has no meaning under mechanism {mechanism.value!r}; give {key}")
    if key not in document:
        faults.append(f"key {key!r} is missing")
        return mechanism, INFINITE
    before = len(faults)
    budget = read_budget(key, document[key], faults)
    if budget == 0 and len(faults) == before:
        faults.append(f"{key}: is 0, so nothing would be measured")
    return mechanism, budget


def _check_noise(
    budget: Budget, shares: Mapping[str, Fraction], queries: Mapping[str, tuple[Shared, ...]], faults: list[str]
) -> None:
    """Name the measurements whose noise would not fit 64 bits."""
    if isinstance(budget, Fraction):
        faults += [
            f"queries.{level}.{query.name}: has a budget below 1e-15; give it more, or a share of 0"
            for level, of_level in queries.items()
            for query, share in of_level
            if 0 < budget * shares[level] * share < SMALLEST_BUDGET
        ]


def production_configuration(configuration: Configuration) -> Configuration:
    """The run of 2020 with the same privacy unit: that of Puerto Rico for a spine whose root is the state."""
    product = "h1-2020" if configuration.privacy_unit == "housing unit" else "pl94-2020"
    return read_configuration(f"{product}-{'pr' if configuration.levels[0] == 'State' else 'us'}")


_COUNTERPARTS: Final = {
    ("person record", "US"): "pl94-2020-us",
    ("person record", "State"): "pl94-2020-pr",
    ("person record", "County"): "cook-2010",
    ("housing unit", "US"): "h1-2020-us",
    ("housing unit", "State"): "h1-2020-pr",
}


def counterpart(configuration: Configuration) -> Configuration | None:
    """The built-in configuration that asks production's queries of the same records, if this one spends otherwise.

    Of the same schema, geolevels and mechanism, so that losses can stand side by side; None where there is none.
    """
    name = _COUNTERPARTS.get((configuration.privacy_unit, configuration.levels[0]))
    if name is None or configuration.areas is not None:
        return None
    found = read_configuration(name)
    is_alike = (found.schema, found.levels, found.mechanism) == (
        configuration.schema,
        configuration.levels,
        configuration.mechanism,
    )
    return found if is_alike and _spending(found) != _spending(configuration) else None


def _spending(
    configuration: Configuration,
) -> tuple[Budget, Mapping[str, Fraction], dict[str, dict[tuple[Factor, ...], Fraction]]]:
    measured = {level: {q.factors: part for q, part in configuration.measured(level)} for level in configuration.levels}
    return configuration.budget, configuration.shares, measured
