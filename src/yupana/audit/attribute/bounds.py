"""The most that is lost where one record differs in some attributes only, whatever the record; not of PHSafe.

What a record of SafeTab does to the counts of a level is known: one in each of its groups, in the cell it is in. So no
search is needed, only the most groups that a record can leave and enter (docs/attribute-loss.md).
"""

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations
from typing import Any, Final

import numpy as np

from yupana.errors import ConfigError
from yupana.plan.measurement import Measurement, Mechanism
from yupana.plan.plan import Plan
from yupana.privacy.exact import Budget, show_exact
from yupana.products.described.plan import column_losses
from yupana.products.phsafe.configuration import PhsafeConfig
from yupana.products.product import Product
from yupana.products.safetab.iterations import CharacteristicIterations, Eligible
from yupana.products.safetab.product import SafetabProduct
from yupana.products.safetab.regions import BY_NAME
from yupana.topdown.configuration import Configuration
from yupana.topdown.plan import attribute_on_any_spine, move_on_any_spine


def _detailed_loss(
    product: SafetabProduct,
    plan: Plan,
    iterations: CharacteristicIterations,
    race_codes: int,
    attributes: Collection[str],
) -> Budget:
    """The most that a plan of SafeTab loses where any record changes in some of `product.attributes`, in any way."""
    chosen = frozenset(attributes)

    def distance(m: Measurement) -> Fraction:
        level = BY_NAME[m.level]
        eligible = iterations.eligible(level.iteration_level, level.region.granularity)
        moves = not chosen.isdisjoint(product.of_cells.get(m.table, ()))
        moves = moves or ("Place" in chosen and level.region.base != "nation")
        return Fraction(
            cells_moved(eligible, race_codes, race="Race" in chosen, ethnicity="Ethnicity" in chosen, moves=moves)
        )

    return plan.loss(distance)


def cells_moved(eligible: Eligible, race_codes: int, *, race: bool, ethnicity: bool, moves: bool) -> int:
    """Most cells of a level that change by one when one record changes.

    Parameters
    ----------
    race, ethnicity : bool
        Whether the record's race codes, and its ethnicity code, may change.
    moves : bool
        Whether it moves to another cell, or another area, in all groups it stays in.
    """
    groups = len(np.unique(eligible.ethnic[eligible.ethnic >= 0]))
    of_ethnicity = min(groups, 1) * 2 if moves else min(groups, 2) if ethnicity else 0
    most = eligible.stability(race_codes) - min(groups, 1)
    if moves:
        return 2 * most + of_ethnicity
    return (_most_apart(eligible, race_codes) if race else 0) + of_ethnicity


def _most_apart(eligible: Eligible, race_codes: int) -> int:
    """Most race groups that are of one of two sets of race codes and not of both.

    A set of codes is in the iterations in combination of its codes, and in an iteration alone if all are in it. Two
    sets are farthest apart without common groups, so they share out the iterations in combination.
    """
    pairs = np.unique(np.stack([eligible.alone, eligible.in_combination], axis=1), axis=0).tolist()
    combined = {c for _, c in pairs if c >= 0}
    within: dict[int, set[int]] = {a: {c for b, c in pairs if b == a and c >= 0} for a, _ in pairs if a >= 0}
    apart = [min(2 * race_codes, len(combined))]
    apart += [1 + _shared_out(own, combined, race_codes) for own in within.values()]
    apart += [2 + _shared_out(*two, race_codes) for two in combinations(within.values(), 2)]
    return max(apart)


def _shared_out(one: set[int], other: set[int], most: int) -> int:
    """Most elements of two choices of at most ``most`` elements each, one from each set, without a common one."""
    both = len(one & other)
    first, second = min(most, len(one) - both), min(most, len(other) - both)
    return first + second + min(both, 2 * most - first - second)


@dataclass(frozen=True, slots=True)
class AttributeBound:
    """What neighbours lose at most that differ in one record, and there in some attributes or in its block only.

    Attributes
    ----------
    product, privacy_unit : str
    attributes : tuple of str
        In which the record may differ in any way; () where it is moved. Of a description one column, ``file.column``:
        of the unit's record, or of all records of a file below it.
    within : str
        The geolevel of TopDown that the record's new block is in the same unit of; "" where it is not moved.
    mechanism : Mechanism
    loss : Fraction or infinite
        rho, or epsilon under pure differential privacy.
    """

    product: str
    privacy_unit: str
    attributes: tuple[str, ...]
    within: str
    mechanism: Mechanism
    loss: Budget


COLUMNS: Final[Mapping[str, tuple[str, Callable[[AttributeBound], object]]]] = {
    "product": ("VARCHAR", lambda bound: bound.product),
    "privacy_unit": ("VARCHAR", lambda bound: bound.privacy_unit),
    "attributes": ("VARCHAR", lambda bound: ", ".join(bound.attributes) or None),
    "within": ("VARCHAR", lambda bound: bound.within or None),
    "mechanism": ("VARCHAR", lambda bound: bound.mechanism.value),
    "loss": ("DOUBLE", lambda bound: float(bound.loss)),
    "loss_exact": ("VARCHAR", lambda bound: show_exact(bound.loss)),
}
"""Bounds as a table."""


def bounds(product: Product[Any], config: Any, plan: Plan) -> Iterator[AttributeBound]:  # noqa: ANN401 (the product's own)
    """Bound what each attribute costs alone, some together, and moves: docs/attribute-loss.md, docs/topdown-privacy.md.

    Raises
    ------
    ConfigError
        If the product counts households whose losses depend on their members: `attribute_loss` searches those.
    """

    def bound(loss: Budget, attributes: tuple[str, ...] = (), within: str = "") -> AttributeBound:
        return AttributeBound(plan.product, plan.privacy_unit, attributes, within, plan.mechanism, loss)

    if isinstance(config, PhsafeConfig):
        raise ConfigError(f"{product.key}: what an attribute costs depends on the household; ask attribute_loss")
    if isinstance(product, SafetabProduct):
        names, codes = product.attributes, config.config.max_race_codes
        for chosen in [*((name,) for name in names), ("Race", "Ethnicity"), names]:
            yield bound(_detailed_loss(product, plan, config.iterations, codes, chosen), chosen)
    elif isinstance(config, Configuration):
        # Whichever geounits a spine bypasses: those of the geolevels' own shares can be passed.
        for axis, name in enumerate(config.schema.names):
            yield bound(attribute_on_any_spine(config, axis).loss, attributes=(name,))
        for depth in reversed(range(len(config.levels) - 1)):
            yield bound(move_on_any_spine(config, depth).loss, within=config.levels[depth])
    else:
        for column, loss in column_losses(config, plan):
            yield bound(loss, attributes=(column,))
