"""What a TopDown run is made with: schema, budget and its shares, queries, passes and constraints. Public."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import pairwise
from typing import Final

import numpy as np
from numpy.typing import NDArray

from yupana.errors import ConfigError
from yupana.geography.hierarchy import Hierarchy
from yupana.geography.settings import DEFAULT_CLASSES, PIECES, REMADE, Kind, SpineSettings
from yupana.plan.budgets import budgets_as_html
from yupana.plan.measurement import Mechanism
from yupana.privacy.exact import INFINITE, Budget, show_exact
from yupana.topdown import Estimator
from yupana.topdown.queries import Query, Recode, Schema


@dataclass(frozen=True, slots=True)
class Passes:
    """In which order the answers of a geolevel are estimated and rounded.

    The queries of a pass are held at the answers it gave while the later passes are made.
    """

    # every measured query of the geolevel, each in one pass; empty where nothing is measured
    estimate: tuple[tuple[Query, ...], ...]
    # any queries, measured or not, none twice; the last pass holds the detailed query
    round: tuple[tuple[Query, ...], ...]


OF_AREAS: Final = "areas"
"""The kind of a spine that a configuration gives as a table of units and parents."""

Shared = tuple[Query, Fraction]
"""A query with its share of the budget of a geolevel."""


@dataclass(frozen=True, slots=True)
class Configuration:
    """A validated configuration.

    Within a geolevel a query is one object, called as under "queries" there, or else as the passes first call it.
    """

    product: str
    privacy_unit: str  # "person record" or "housing unit": what a record of the histogram is
    mechanism: Mechanism
    budget: Budget  # rho under zCDP, epsilon under pure DP, against neighbours that change one record (bounded)
    # by geolevel: the queries, totals only, whose answers are kept exactly; geolevels without any are left out
    invariants: Mapping[str, tuple[Query, ...]]
    schema: Schema
    # by geolevel: every geolevel, with the share of its budget each query has. Shares sum to 1, those of 0 included; a
    # geolevel without a share of its own may have no queries.
    queries: Mapping[str, tuple[Shared, ...]]
    passes: Mapping[str, Passes]  # by geolevel: every geolevel
    recodes: Mapping[str, Recode]  # by name
    # the attribute, the first, whose level 0 is households and whose level g is group quarters of major type g
    group_quarters: str | None
    # combinations that no record can have: a level for each attribute, None for all of them
    structural_zeros: tuple[tuple[int | None, ...], ...]
    spine: SpineSettings  # how the spine is built; its levels are the geolevels and its shares those of the budget
    areas: Hierarchy | None = None  # what the spine is, where it is not built of the Census Bureau's blocks

    def __repr__(self) -> str:
        queries = sum(len(of) for of in self.queries.values())
        told = f"{self.mechanism.value}, {show_exact(self.budget)} in all, {len(self.levels)} geolevels"
        return f"<configuration of topdown, {self.product}: {told}, {queries} queries>"

    def _repr_html_(self) -> str:
        shares = {f"share of {level}": share for level, share in self.shares.items()}
        return budgets_as_html(repr(self)[1:-1], {"in all": self.budget} | shares)

    @property
    def levels(self) -> tuple[str, ...]:
        """Geolevels from the root down."""
        return self.spine.levels

    @property
    def of_persons(self) -> bool:
        """Whether a record is one person's own, but for attributes that are known to tell of others."""
        return self.privacy_unit == "person record"

    @property
    def spine_kind(self) -> str:
        """What the spine is: areas of the configuration, or how it is built of blocks."""
        return self.spine.kind if self.areas is None else OF_AREAS

    @property
    def shares(self) -> Mapping[str, Fraction]:
        """The share of the budget each geolevel starts with, in the order of `levels`; they sum to 1."""
        return dict(zip(self.spine.levels, self.spine.shares, strict=True))

    def measured(self, level: str) -> tuple[Shared, ...]:
        """The queries of a geolevel that have a share of its budget, with that share."""
        return tuple((query, share) for query, share in self.queries[level] if share > 0)

    def without_noise(self) -> "Configuration":
        """The same with an infinite budget."""
        return replace(self, budget=INFINITE)

    def spine_for(self, estimator: Estimator) -> SpineSettings:
        """How the spine is built for an estimator.

        Full information reads the answers of an only child, which the estimator "topdown" does not. So there units are
        bypassed only where the geolevel below asks the same queries in the same proportions, and no variance is raised
        (docs/spines-proofs.md, section 2); elsewhere every unit keeps its share.
        """
        if estimator == "topdown":
            return self.spine
        return replace(self.spine, unbypassed=tuple(a for a, b in pairwise(self.levels) if not self.asks_alike(a, b)))

    def asks_alike(self, one: str, other: str) -> bool:
        """Whether two geolevels are measured with the same queries in the same proportions."""
        asked = [{query.factors: share for query, share in self.measured(level)} for level in (one, other)]
        return asked[0] == asked[1]

    def impossible(self) -> NDArray[np.bool_]:
        """Which cells are structural zeros, of shape (cells,)."""
        cells = np.zeros(self.schema.shape, dtype=np.bool_)
        for levels in self.structural_zeros:
            cells[tuple(slice(None) if level is None else level for level in levels)] = True
        return cells.reshape(-1)

    def without_detail(self) -> tuple[str, ...]:
        """Geolevels that measure no detailed query: even without noise their counts would not be the input's."""
        return tuple(
            level
            for level in self.levels
            if not (self.shares[level] > 0 and any(q.size == self.schema.cells for q, _ in self.measured(level)))
        )

    def on_spine(self, kind: Kind) -> "Configuration":
        """The same on a spine of another kind.

        Pieces are those of block groups, places and AIAN areas, whole: classes and a cut-off that a configuration has
        for a spine of another kind do not cut them.

        Raises
        ------
        ConfigError
            If its geolevels or queries do not allow it.
        """
        if self.areas is not None:
            raise ConfigError(
                f"--spine {kind}: is made of the Census Bureau's blocks, and [areas] of the configuration says what "
                "the spine is"
            )
        if faults := unfit_for(kind, self.queries):
            raise ConfigError("\n".join(faults))
        spine = replace(self.spine, kind=kind)
        if kind == PIECES != self.spine.kind:
            spine = replace(self.spine.of_kind(kind), classes=DEFAULT_CLASSES)
        return replace(self, spine=spine)


def unfit_for(kind: Kind, queries: Mapping[str, tuple[Shared, ...]]) -> list[str]:
    """Say why geolevels with these queries cannot be those of a spine of a kind; empty if they can."""
    if kind not in REMADE:
        return []
    called = "a spine of pieces" if kind == PIECES else "an optimized spine"
    missing = [level for level in ("County", "Tract", "Block_Group") if level not in queries]
    return [
        *([f"shares: {', '.join(missing)} is missing; {called} needs it"] if missing else []),
        *(
            f"queries.{level}: is missing; on {called} a geounit may be given the share of its child"
            for level, of_level in queries.items()
            if not of_level
        ),
    ]
