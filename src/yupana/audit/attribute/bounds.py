"""The most that is lost where one record differs in some attributes only, whatever the record; not of PHSafe."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from yupana.audit.attribute.detailed import detailed_loss
from yupana.errors import ConfigError
from yupana.plan.measurement import Mechanism
from yupana.plan.plan import Plan
from yupana.privacy.exact import Budget
from yupana.products.described.attributes import column_losses
from yupana.products.phsafe.configuration import PhsafeConfig
from yupana.products.product import Product
from yupana.products.safetab.product import SafetabProduct
from yupana.topdown.any_spine import attribute_on_any_spine, move_on_any_spine
from yupana.topdown.configuration import Configuration


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
        names, codes = product.attributes, config.config.settings.max_race_codes
        for chosen in [*((name,) for name in names), ("Race", "Ethnicity"), names]:
            yield bound(detailed_loss(product, plan, config.iterations, codes, chosen), chosen)
    elif isinstance(config, Configuration):
        # Whichever geounits a spine bypasses: those of the geolevels' own shares can be passed.
        for axis, name in enumerate(config.schema.names):
            yield bound(attribute_on_any_spine(config, axis).loss, attributes=(name,))
        for depth in reversed(range(len(config.levels) - 1)):
            yield bound(move_on_any_spine(config, depth).loss, within=config.levels[depth])
    else:
        for column, loss in column_losses(config, plan):
            yield bound(loss, attributes=(column,))
