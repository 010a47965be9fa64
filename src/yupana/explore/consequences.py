"""What options do beside noise: whom truncation leaves out, which table a group gets, what a spine buys.

Each is a small table of text; a product without such options has none.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from statistics import NormalDist
from typing import Any, Final

import numpy as np

from yupana.arrays import Floats, Ints
from yupana.errors import ConfigError
from yupana.explore.form import Chosen
from yupana.explore.reference import Sizes, blocks, invented_groups, invented_phsafe, sizes_of
from yupana.explore.spines import spine_errors
from yupana.plan.measurement import z_value
from yupana.privacy.laws import DiscreteGaussian, TwoSidedGeometric
from yupana.products.phsafe.product import PHSAFE
from yupana.products.safetab.product import HOUSEHOLDS, PERSONS
from yupana.products.safetab.regions import BY_NAME
from yupana.products.safetab.specification import STAGE_1
from yupana.report.numbers import percent, rounded, whole

_Columns = tuple[str, str, dict[str, list[str]]]
Noise = DiscreteGaussian | TwoSidedGeometric


def consequences(product: str, chosen: Chosen) -> list[dict[str, Any]]:
    """Those of a scenario: texts in columns by their heads, the first of which names the rows, a title and a note."""
    found = _OF[product](chosen) if product in _OF else ()
    return [{"title": title, "note": note, "columns": columns} for title, note, columns in found]


def expected_tables(sizes: Sizes, thresholds: Sequence[int], law: Noise | None) -> list[float]:
    """How many groups are expected in each of the tables that thresholds divide them into, the coarsest first.

    Parameters
    ----------
    thresholds : sequence of int
        Totals from which a group gets the next finer table.
    law : Law or None
        Of the noise of the totals that decide; None where totals decide as they are.
    """
    size, groups = np.array([*sizes, (0, 0)], dtype=np.int64).T
    reached = [float(groups @ _survival(law, threshold - size)) for threshold in thresholds]
    at_least = [float(groups.sum()), *reached]
    return [here - there for here, there in zip(at_least, [*reached, 0.0], strict=True)]


_SUMMED: Final = 2_000.0
"""Up to this standard deviation chances are summed; beyond, the normal with continuity correction is within 1e-8."""


def _survival(law: Noise | None, at: Ints) -> Floats:
    """The chance that noise is at least so much, for each of some numbers."""
    if law is None:
        return (at <= 0).astype(np.float64)
    sigma = max(1.0, law.variance**0.5)
    reach = int(10 * sigma) + 20
    if sigma > _SUMMED:
        normal = NormalDist(0, sigma)
        distinct, place = np.unique(np.clip(at, -reach, reach), return_inverse=True)
        return np.array([1 - normal.cdf(k - 0.5) for k in distinct.tolist()])[place]
    k = np.arange(-reach, reach + 1)
    exponent = float(law.exponent)
    weights = np.exp(-exponent * (k * k if law.curvature == 2 else np.abs(k)))
    from_here = np.cumsum(weights[::-1])[::-1] / weights.sum()
    found: Floats = np.append(from_here, 0.0)[np.clip(at + reach, 0, 2 * reach + 1)]
    return found


def left_out(households: Mapping[int, int], tau: int) -> tuple[int, int, int]:
    """Persons left out by a threshold, all persons, and the households that lose somebody."""
    lost = sum((persons - tau) * number for persons, number in households.items() if persons > tau)
    people = sum(persons * number for persons, number in households.items())
    return lost, people, sum(number for persons, number in households.items() if persons > tau)


def _truncation(chosen: Chosen) -> Iterator[_Columns]:
    """Whom the thresholds of PHSafe leave out."""
    invented = invented_phsafe()
    households = {
        table: {int(persons): number for persons, number in sizes.items()}
        for table, sizes in invented["households_by_persons"].items()
    }
    rows = {table: left_out(households[table], tau) for table, tau in chosen.config.taus.items() if table in households}
    yield (
        "Left out by truncation",
        f"Persons beyond τ of a household, among {invented['source']}; how many households are crowded is assumed.",
        {
            "Table": [*rows],
            "τ": [str(chosen.config.taus[table]) for table in rows],
            "Persons left out": [whole(lost) for lost, _, _ in rows.values()],
            "Of all": [percent(lost / people, 3) if people else "–" for lost, people, _ in rows.values()],
            "Households": [whole(number) for *_, number in rows.values()],
        },
    )


def _tables(chosen: Chosen) -> Iterator[_Columns]:
    """Which table the groups of SafeTab get: by a noisy total of persons, whose noise is that of stage 1."""
    config = chosen.config.config
    stage_1 = {m.level: m.law for m in chosen.plan.measurements if m.name.startswith(STAGE_1)}
    rows: dict[str, list[float]] = {}
    for entry, thresholds in config.thresholds.items():
        if entry not in chosen.entries:
            continue
        of_level = sizes_of(config.product, BY_NAME[entry.rpartition("/")[2]], "persons")
        law = stage_1.get(entry)
        if of_level:
            noise = law if isinstance(law, DiscreteGaussian | TwoSidedGeometric) else None
            rows[entry] = expected_tables(of_level, thresholds, noise)
    most = max(map(len, rows.values()), default=0)
    yield (
        "Which table groups get",
        f"Expected numbers of population groups of {invented_groups()['source']}: from a total alone to the finest "
        "table. A group gets the next table from a threshold on.",
        {
            "Groups of": [_level(entry) for entry in rows],
            **{
                f"Table {i + 1}": [whole(found[i]) if i < len(found) else "" for found in rows.values()]
                for i in range(most)
            },
        },
    )


def _level(entry: str) -> str:
    table, _, level = entry.rpartition("/")
    words = PERSONS.words.levels.get(level, level)
    return f"{table}, {words}" if table else words


def _spine(chosen: Chosen) -> Iterator[_Columns]:
    """Least-squares margins on the spine of a configuration of TopDown."""
    config, z = chosen.config, z_value(chosen.plan.confidence)
    if config.areas is not None:
        return
    try:
        errors = spine_errors(config, config.spine.kind, blocks())
    except ConfigError:
        return
    margins = {level.replace("_", " "): (sigma, sigma) for level, sigma in errors.units.items()}
    margins |= {kind.replace("_", " "): pair for kind, pair in errors.entities.items()}

    def shown(sigma: float) -> str:
        exact = sigma < 1e-3
        return "exact" if exact else f"± {rounded(z * sigma, 4)}" if sigma < float("inf") else "unknown"

    yield (
        "Estimates of totals, all queries together",
        f"Margins of ordinary least squares on the spine chosen, over {blocks().source}; where block totals are exact, "
        "of a detailed cell.",
        {
            "Areas": [*margins],
            "Typical": [shown(half) for half, _ in margins.values()],
            "Nine in ten": [shown(most) for _, most in margins.values()],
        },
    )


_OF: Final[Mapping[str, Callable[[Chosen], Iterator[_Columns]]]] = {
    PHSAFE.key: _truncation,
    PERSONS.key: _tables,
    HOUSEHOLDS.key: _tables,
    "topdown": _spine,
}
