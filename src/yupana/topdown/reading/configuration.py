"""Configurations of TopDown, read from TOML or JSON or brought along, and written back as a document. Public."""

from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any, Final

from yupana.files.codes import pairs_of
from yupana.files.document import UNCHANGED, Changes, located, refuse
from yupana.geography.hierarchy import Hierarchy, hierarchy_of
from yupana.geography.settings import AREAS, PLACES, QUARTERS, SpineSettings
from yupana.plan.measurement import Mechanism
from yupana.privacy.exact import INFINITE, Budget, show_exact
from yupana.release.recipe import read_configuration_in
from yupana.topdown.configuration import Configuration, Shared, unfit_for
from yupana.topdown.queries import TOTAL, Factor, Query, query_named
from yupana.topdown.reading.declaration import DOCUMENT, DeclaredConfiguration, DeclaredSpine
from yupana.topdown.reading.tables import (
    in_order,
    read_invariants,
    read_passes,
    read_queries,
    read_recodes,
    read_schema,
    read_zeros,
    renormalised,
)

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
    told = DOCUMENT.read("", document, faults)
    if told is None:
        return None
    mechanism, budget = _budget(told, faults)
    schema = None if told.schema is None else read_schema("schema", told.schema, faults)
    levels, areas = (areas.levels, areas) if areas is not None else _areas(told, folder, faults)
    shares = None if told.shares is None else in_order(told.shares, levels, faults)
    # What is named by attributes and geolevels can be judged only where they are known.
    if schema is None or shares is None:
        return None
    recodes = read_recodes(told.recodes, schema, faults)
    zeros = read_zeros(told.constraints, schema, faults)
    named = partial(query_named, schema=schema, recodes=recodes)
    invariants = read_invariants(told.invariants, named(TOTAL), tuple(shares), faults)
    if told.queries is None:
        return None
    queries = read_queries(told.queries, named, shares, faults)
    passes = read_passes(told.passes, named, schema, queries, faults)
    _check_noise(budget, shares, queries, faults)
    spine = _spine(told.spine or DeclaredSpine(), shares, mechanism)
    if not faults:
        faults += unfit_for(spine.kind, queries)
    return (
        None
        if faults
        else Configuration(
            str(told.product),
            told.privacy_unit,
            mechanism,
            budget,
            invariants,
            schema,
            queries,
            passes,
            recodes,
            told.constraints.group_quarters,
            zeros,
            spine,
            areas,
        )
    )


def _areas(
    told: DeclaredConfiguration, folder: Path, faults: list[str]
) -> tuple[tuple[str, ...] | None, Hierarchy | None]:
    """The geolevels and the hierarchy of the table "areas"; None of either that is not there or in doubt."""
    if told.areas is None:
        return None, None
    if told.spine is not None:
        faults.append("spine: is built of the Census Bureau's blocks, and areas says what the spine is; leave one out")
    if told.constraints.group_quarters is not None:
        faults.append("constraints.group_quarters: reads facilities of the Census Bureau's blocks; areas have none")
    levels, pairs = told.areas.levels, told.areas.of
    if levels is None or pairs is None or any(fault.startswith("areas.levels") for fault in faults):
        return levels, None
    before = len(faults)
    found = pairs_of("areas.of", pairs, folder, faults)
    return levels, None if len(faults) > before else hierarchy_of("areas.of", levels, found, faults)


def _budget(told: DeclaredConfiguration, faults: list[str]) -> tuple[Mechanism, Budget]:
    mechanism = Mechanism(told.mechanism)
    key = mechanism.budget_name
    budgets = {"rho": told.rho, "epsilon": told.epsilon}
    budget = budgets.pop(key)
    faults += [
        f"{other}: has no meaning under mechanism {mechanism.value!r}; give {key}"
        for other, given in budgets.items()
        if given is not None
    ]
    if budget is None and not any(fault.startswith(f"{key}:") for fault in faults):
        faults.append(f"key {key!r} is missing")
    if budget == 0:
        faults.append(f"{key}: is 0, so nothing would be measured")
    return mechanism, INFINITE if budget is None else budget


def _spine(told: DeclaredSpine, shares: Mapping[str, Fraction], mechanism: Mechanism) -> SpineSettings:
    """The settings of a spine; the mechanism of the budget decides what is bypassed."""
    changes = {name: option for name, option in vars(told).items() if option is not None}
    if changes.pop("production", None):
        changes = {"kind": "optimized", "classes": (PLACES, AREAS, QUARTERS)} | changes
    settings = SpineSettings(
        changes.pop("kind", "conventional"), mechanism.value, tuple(shares), tuple(shares.values())
    )
    return replace(settings, **changes)


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


def configuration_document(configuration: Configuration) -> dict[str, Any]:
    """The configuration as JSON, every number exact and every default told."""
    return {
        "product": configuration.product,
        "privacy_unit": configuration.privacy_unit,
        "mechanism": configuration.mechanism.value,
        configuration.mechanism.budget_name: show_exact(configuration.budget),
        "invariants": {level: [q.name for q in queries] for level, queries in configuration.invariants.items()},
        "schema": {attribute.name: list(attribute.labels) for attribute in configuration.schema.attributes},
        "shares": {level: str(share) for level, share in configuration.shares.items()},
        "queries": {
            level: {query.name: str(share) for query, share in of_level}
            for level, of_level in configuration.queries.items()
            if of_level
        },
        "passes": {
            level: {
                **({"estimate": _names(passes.estimate)} if passes.estimate else {}),
                "round": _names(passes.round),
            }
            for level, passes in configuration.passes.items()
        },
        "recodes": {
            recode.name: {
                "of": recode.attribute,
                "groups": [
                    [level for level, group in enumerate(recode.factor) if group == number]
                    for number in range(max(recode.factor) + 1)
                ],
            }
            for recode in configuration.recodes.values()
        },
        "constraints": {
            **({"group_quarters": configuration.group_quarters} if configuration.group_quarters else {}),
            "structural_zeros": [
                {
                    attribute.name: level
                    for attribute, level in zip(configuration.schema.attributes, levels, strict=True)
                    if level is not None
                }
                for levels in configuration.structural_zeros
            ],
        },
        **_spine_document(configuration),
    }


def _spine_document(configuration: Configuration) -> dict[str, Any]:
    """The areas of the configuration, or how the spine is built."""
    spine, areas = configuration.spine, configuration.areas
    if areas is not None:
        return {"areas": {"levels": list(areas.levels), "of": areas.pairs}}
    left = {"mechanism", "levels", "shares", *(["fanout_cutoff"] if spine.fanout_cutoff is None else [])}
    return {"spine": {name: value for name, value in spine.as_json().items() if name not in left}}


def _names(passes: tuple[tuple[Query, ...], ...]) -> list[list[str]]:
    return [[query.name for query in queries] for queries in passes]
