"""What single attributes and moves within a geounit cost, by the exact law of the loss (docs/exact-accounting.md)."""

from typing import Any

from yupana.plan.exact_loss import exact_of_part
from yupana.plan.measurement import Mechanism
from yupana.plan.plan import DEFAULT_DELTA
from yupana.topdown.any_spine import LossOnAnySpine, attribute_on_any_spine, move_on_any_spine
from yupana.topdown.configuration import Configuration
from yupana.topdown.plan import loss_as_json, make_plan, measurement_name, semantics_of


def semantics_as_json(configuration: Configuration, delta: float = DEFAULT_DELTA) -> dict[str, Any]:
    """Describe `semantics_of` with the exact epsilon of each loss beside its conversion.

    Either change moves two answers of each measurement that can tell by one: two answers of one geounit where an
    attribute changes, one answer of each of two geounits where a record moves. As there, geounits are taken to have the
    share that their geolevel starts with. Under ``any_spine`` is what is lost whichever geounits are bypassed.
    """
    told = semantics_of(configuration).as_json(configuration.mechanism, delta)
    plan = make_plan(configuration)
    levels = [level for level in configuration.levels if configuration.shares[level] > 0]
    measured = {
        plan[measurement_name(level, query)]: (level, query)
        for level in levels
        for query, _ in configuration.measured(level)
    }

    pure = configuration.mechanism is Mechanism.PURE

    def exact(chosen: tuple[Any, ...], anywhere: LossOnAnySpine) -> dict[str, Any]:
        on_any = loss_as_json(anywhere.loss, configuration.mechanism, delta)
        on_any["epsilon_exact"] = on_any["epsilon_float"] if pure else anywhere.epsilon(delta)
        return {"epsilon_exact": exact_of_part(plan, chosen, delta), "any_spine": on_any}

    for axis, name in enumerate(configuration.schema.names):
        told["attributes"][name] |= exact(
            tuple(m for m, (_, query) in measured.items() if query.shape[axis] > 1),
            attribute_on_any_spine(configuration, axis),
        )
    for depth, level in enumerate(configuration.levels[:-1]):
        below = configuration.levels[depth + 1 :]
        told["geolevels"][f"Block in {level}"] |= exact(
            tuple(m for m, (of, _) in measured.items() if of in below),
            move_on_any_spine(configuration, depth),
        )
    return told
