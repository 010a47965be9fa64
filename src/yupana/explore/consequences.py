"""What options do beside noise: whom truncation leaves out, which table a group gets, what a spine buys.

Each is a small table of text; a product without such options has none.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from yupana.errors import ConfigError
from yupana.explore.form import Chosen
from yupana.explore.reference import blocks, invented_groups, invented_phsafe
from yupana.plan.measurement import z_value
from yupana.privacy.laws import DiscreteGaussian, TwoSidedGeometric
from yupana.products.phsafe.product import PHSAFE
from yupana.products.safetab.product import HOUSEHOLDS, PERSONS
from yupana.products.safetab.regions import BY_NAME
from yupana.products.safetab.specification import DETAILED_ONLY, STAGE_1
from yupana.report.errors import left_out
from yupana.report.groups import expected_tables, us_level
from yupana.report.numbers import percent, rounded, whole
from yupana.report.topdown import spine_errors


@dataclass(frozen=True, slots=True)
class Consequence:
    """A table of text with a title and a note: columns by their heads, the first names the rows."""

    title: str
    note: str
    columns: Mapping[str, Sequence[str]]

    def as_json(self) -> dict[str, Any]:
        """As the page reads it."""
        return {"title": self.title, "note": self.note, "columns": {head: [*of] for head, of in self.columns.items()}}


def consequences(product: str, chosen: Chosen) -> list[Consequence]:
    """Those of a scenario."""
    return [*_OF.get(product, _none)(chosen)]


def _none(_: Chosen) -> Iterator[Consequence]:
    yield from ()


def _truncation(chosen: Chosen) -> Iterator[Consequence]:
    """Whom the thresholds of PHSafe leave out."""
    invented = invented_phsafe()
    households = {
        table: {int(persons): number for persons, number in sizes.items()}
        for table, sizes in invented["households_by_persons"].items()
    }
    rows = {table: left_out(households[table], tau) for table, tau in chosen.config.taus.items() if table in households}
    yield Consequence(
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


def _tables(chosen: Chosen) -> Iterator[Consequence]:
    """Which table the groups of SafeTab get: by a noisy total of persons, whose noise is that of stage 1."""
    config, sizes = chosen.config.config, invented_groups()["persons"]
    stage_1 = {m.level: m.law for m in chosen.plan.measurements if m.name.startswith(STAGE_1)}
    rows: dict[str, list[float]] = {}
    for entry, thresholds in config.thresholds.items():
        if entry not in chosen.entries:
            continue
        name = us_level(BY_NAME[entry.rpartition("/")[2]])
        of_level = [*sizes.get(name, ())]
        if config.product != PERSONS.key:
            of_level += sizes.get(f"{name} {DETAILED_ONLY}", ())
        law = stage_1.get(entry)
        if of_level:
            noise = law if isinstance(law, DiscreteGaussian | TwoSidedGeometric) else None
            rows[entry] = expected_tables(of_level, thresholds, noise)
    most = max(map(len, rows.values()), default=0)
    yield Consequence(
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


def _spine(chosen: Chosen) -> Iterator[Consequence]:
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

    yield Consequence(
        "Estimates of totals, all queries together",
        f"Margins of ordinary least squares on the spine chosen, over {blocks().source}; where block totals are exact, "
        "of a detailed cell.",
        {
            "Areas": [*margins],
            "Typical": [shown(half) for half, _ in margins.values()],
            "Nine in ten": [shown(most) for _, most in margins.values()],
        },
    )


_OF: Final[Mapping[str, Callable[[Chosen], Iterator[Consequence]]]] = {
    PHSAFE.key: _truncation,
    PERSONS.key: _tables,
    HOUSEHOLDS.key: _tables,
    "topdown": _spine,
}
