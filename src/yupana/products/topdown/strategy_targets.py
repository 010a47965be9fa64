"""What a user cares for in the counts of TopDown, read from a file: queries, geolevels and their weights. Public."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

from yupana.errors import ConfigError
from yupana.files.document import check_keys, read_document, read_table, refuse
from yupana.plan.measurement import Mechanism
from yupana.privacy.exact import INFINITE
from yupana.products.strategy.targets import read_weights
from yupana.products.topdown.tables import tables_of
from yupana.topdown.configuration import Configuration
from yupana.topdown.queries import query_named


@dataclass(frozen=True, slots=True)
class StrategyTargets:
    """What a user cares for.

    Attributes
    ----------
    queries : mapping of str to Fraction
        The weight of the variance of each answer, by query or published table; not all 0.
    levels : mapping of str to Fraction, or None
        The weight of each geolevel, for which shares are then found; None keeps the shares of geolevels.
    children : mapping of str to Fraction, or None
        How many units of a geolevel lie in one of the geolevel above, for estimates that read the whole tree.
    """

    queries: Mapping[str, Fraction]
    levels: Mapping[str, Fraction] | None = None
    children: Mapping[str, Fraction] | None = None


def default_targets(config: Configuration) -> StrategyTargets:
    """All variables of the published tables alike, at the shares of geolevels that there are."""
    return StrategyTargets({table.name: Fraction(1) for table in tables_of(config.schema)})


def read_targets(path: Path, config: Configuration) -> StrategyTargets:
    """Read what a user cares for: a document in TOML or JSON with the tables queries, levels and children.

    Raises
    ------
    ConfigError
        Naming every fault.
    """
    document, faults = read_document(path)
    table = read_table("", document, faults) if not faults else {}
    check_keys("", table, (), faults, optional=("queries", "levels", "children"))
    queries = (
        read_weights("queries", table["queries"], faults) if "queries" in table else default_targets(config).queries
    )
    levels = read_weights("levels", table["levels"], faults) if "levels" in table else None
    children = read_weights("children", table["children"], faults) if "children" in table else None
    if faults:
        raise refuse(path, faults)
    return StrategyTargets(default_targets(config).queries if queries is None else queries, levels, children)


def levels_asked(config: Configuration, targets: StrategyTargets, least: Fraction) -> tuple[str, ...]:
    """The geolevels that have a share of the budget, once the question is one that can be answered.

    Raises
    ------
    ConfigError
        If what is asked for is unknown or has no weight, or the configuration has nothing to share out.
    """
    if config.mechanism is not Mechanism.ZCDP or config.budget == INFINITE:
        raise ConfigError("a strategy is found for a finite budget under zCDP, where variances are one over a budget")
    levels = tuple(level for level in config.levels if config.shares[level] > 0)
    faults = [*_unknown_queries(config, targets), *_wrong_geolevels(targets, levels)]
    if not any(targets.queries.values()):
        faults.append("targets: the weights of all queries are 0; give one of them a weight")
    if targets.levels is not None and not any(targets.levels.values()):
        faults.append("targets: the weights of all geolevels are 0; give one of them a weight")
    asked = {level: sum(query.keeps_or_sums for query, _ in config.queries[level]) for level in levels}
    faults += [f"{level}: has no query that keeps or sums whole attributes" for level in levels if not asked[level]]
    together = sum(asked.values()) if targets.levels is not None else max(asked.values())
    if not 0 <= least * together < 1:
        faults.append(f"least: {together} queries cannot have a share of {least} each; name less than 1/{together}")
    if faults:
        raise ConfigError("\n".join(faults))
    return levels


def _unknown_queries(config: Configuration, targets: StrategyTargets) -> list[str]:
    tables = [table.name for table in tables_of(config.schema)]
    faults = []
    for name in targets.queries:
        try:
            if name not in tables:
                query_named(name, config.schema, config.recodes)
        except ValueError as error:
            faults.append(f"targets: {error}; published tables are {', '.join(tables)}")
    return faults


def _wrong_geolevels(targets: StrategyTargets, levels: Sequence[str]) -> list[str]:
    faults = []
    for place, named in (("levels", targets.levels), ("children", targets.children)):
        known = levels if place == "levels" else levels[1:]
        faults += [
            f"targets: {place}.{level}: is no geolevel with a share of the budget; these are {', '.join(known)}"
            for level in named or ()
            if level not in known
        ]
    if targets.children is not None:
        faults += [f"targets: children.{level}: is missing" for level in levels[1:] if level not in targets.children]
        faults += [
            f"targets: children.{level}: must be 1 or more" for level, count in targets.children.items() if count < 1
        ]
    return faults
