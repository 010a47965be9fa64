"""What a user cares for in the counts of TopDown, read from a file: queries, geolevels and their weights. Public."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Final

from yupana.errors import ConfigError
from yupana.files.declaration import declared, exact, key, keyed, read_as, table_of
from yupana.plan.measurement import Mechanism, z_value
from yupana.privacy.exact import INFINITE
from yupana.products.strategy.targets import WEIGHTS
from yupana.products.topdown.tables import tables_of
from yupana.topdown.configuration import Configuration
from yupana.topdown.queries import query_named

CONFIDENCE: Final = Fraction(9, 10)
"""Of the margins of error in a file of targets."""


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
    margins : mapping of geolevel to mapping of str to Fraction, or None
        In place of weights, the largest margin of error of each answer of a query or published table there.
    """

    queries: Mapping[str, Fraction]
    levels: Mapping[str, Fraction] | None = None
    children: Mapping[str, Fraction] | None = None
    margins: Mapping[str, Mapping[str, Fraction]] | None = None

    @property
    def free(self) -> bool:
        """Whether shares of geolevels are found, too."""
        return self.levels is not None or self.margins is not None

    def weights(self, levels: Sequence[str]) -> dict[tuple[int, str], float]:
        """The weight of the variance of an answer, by the number of its geolevel and query or table; not 0.

        A variance with the weight (z / margin)^2 is at most 1 exactly if it meets its margin.
        """
        if self.margins is not None:
            z = z_value(CONFIDENCE)
            return {
                (number, name): (z / float(margin)) ** 2
                for number, level in enumerate(levels)
                for name, margin in self.margins.get(level, {}).items()
            }
        by_level = {
            level: Fraction(1) if self.levels is None else self.levels.get(level, Fraction(0)) for level in levels
        }
        return {
            (number, name): float(by_level[level] * weight)
            for number, level in enumerate(levels)
            for name, weight in self.queries.items()
            if by_level[level] * weight
        }


_KEYS: Final = ("queries", "levels", "children")
_MARGIN: Final = exact(lambda margin: margin > 0, "must be more than 0")
_WEIGHTS: Final = keyed(dict.fromkeys(_KEYS, WEIGHTS), optional=_KEYS)


@dataclass(frozen=True, slots=True)
class DeclaredLimits:
    """A document of largest margins of error."""

    margins: Mapping[str, Mapping[str, Fraction]] = key(table_of(table_of(_MARGIN)))
    children: Mapping[str, Fraction] | None = key(WEIGHTS, default=None)


_TARGETS: Final = declared(DeclaredLimits, when=lambda told: "margins" in told) | _WEIGHTS


def default_targets(config: Configuration) -> StrategyTargets:
    """All variables of the published tables alike, at the shares of geolevels that there are."""
    return StrategyTargets({table.name: Fraction(1) for table in tables_of(config.schema)})


def read_targets(path: Path, config: Configuration) -> StrategyTargets:
    """Read what a user cares for: a document in TOML or JSON.

    Raises
    ------
    ConfigError
        Naming every fault.
    """
    told = read_as(path, _TARGETS)
    if isinstance(told, DeclaredLimits):
        return StrategyTargets({}, children=told.children, margins=told.margins)
    queries = told.get("queries", default_targets(config).queries)
    return StrategyTargets(queries, told.get("levels"), told.get("children"))


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
    if targets.margins is not None and not any(targets.margins.values()):
        faults.append("targets: no margin is asked for")
    elif targets.margins is None and not any(targets.queries.values()):
        faults.append("targets: the weights of all queries are 0; give one of them a weight")
    if targets.levels is not None and not any(targets.levels.values()):
        faults.append("targets: the weights of all geolevels are 0; give one of them a weight")
    asked = {level: sum(query.keeps_or_sums for query, _ in config.queries[level]) for level in levels}
    faults += [f"{level}: has no query that keeps or sums whole attributes" for level in levels if not asked[level]]
    together = sum(asked.values()) if targets.free else max(asked.values())
    if not 0 <= least * together < 1:
        faults.append(f"least: {together} queries cannot have a share of {least} each; name less than 1/{together}")
    if faults:
        raise ConfigError("\n".join(faults))
    return levels


def _unknown_queries(config: Configuration, targets: StrategyTargets) -> list[str]:
    tables = [table.name for table in tables_of(config.schema)]
    faults = []
    asked = [targets.queries] if targets.margins is None else targets.margins.values()
    for name in dict.fromkeys(name for names in asked for name in names):
        try:
            if name not in tables:
                query_named(name, config.schema, config.recodes)
        except ValueError as error:
            faults.append(f"targets: {error}; published tables are {', '.join(tables)}")
    return faults


def _wrong_geolevels(targets: StrategyTargets, levels: Sequence[str]) -> list[str]:
    faults = []
    for place, named in (("levels", targets.levels), ("margins", targets.margins), ("children", targets.children)):
        known = levels[1:] if place == "children" else levels
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
