"""TopDown strategies on the page."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

from yupana.errors import ConfigError
from yupana.explore.form import (
    Chosen,
    Form,
    Row,
    read_terms,
    require_some,
    terms_fields,
)
from yupana.explore.scenario import Fault, Filled, RefusedError, Typed
from yupana.privacy.exact import INFINITE, show_exact
from yupana.products.product import Product
from yupana.products.topdown.product import TOPDOWN
from yupana.report.page import Section
from yupana.report.topdown import (
    SampleBlocks,
    attributes_section,
    average_geounits,
    shares_section,
    spines_section,
)
from yupana.topdown.configuration import Configuration
from yupana.topdown.plan import SENSITIVITY


@dataclass(frozen=True)
class TopdownPage:
    """A strategy of TopDown: a configuration, whose budgets can be set.

    Attributes
    ----------
    key : str
    source : str
        The configuration: a built-in name, or a file.
    configuration : Configuration
    blocks : SampleBlocks
        To try spines on.
    title : str
        What is counted, or the name of its file.
    """

    key: str
    source: str
    configuration: Configuration
    blocks: SampleBlocks
    title: str
    product: Product[Configuration] = TOPDOWN
    filename: str = "topdown.json"

    @cached_property
    def form(self) -> Form:
        """A grid of queries by geolevel."""
        levels, system = self.configuration.levels, TOPDOWN.words.title
        queries = {q.name: q.size for level in levels for q, _ in self.configuration.queries[level]}
        return Form(
            title=self.title if self.title.startswith(system) else f"{system}, {self.title}",
            intro="How should the budget be shared out among geolevels and queries? Type the budget of a query, or the "
            "margin of error of its noisy answers; shares follow. Clear a box to leave a query out. You start from "
            f"{self.source}.",
            fields=terms_fields("90 by default"),
            rows=tuple(
                Row(name, name, f"{size:,} answer{'s' * (size > 1)} a geounit") for name, size in queries.items()
            ),
            columns={level: level.replace("_", " ") for level in levels},
            cells={
                (q.name, level): f"{level} {q.name}" for level in levels for q, _ in self.configuration.queries[level]
            },
            corner="Query",
            solving="the records of an average geounit of an invented state, and 51 times that state for the nation; "
            "finer queries are held to the same share of it",
            shares=True,
        )

    def start(self) -> Filled:
        """The configuration as it is."""
        return _settings(self.configuration)

    def production(self, filled: Filled) -> Filled:
        """The run of 2020 with the same unit and root, where it has the same queries; else the start."""
        del filled
        there = {name: Fraction(entry.budget) for name, entry in TOPDOWN.entries(self._production).items()}
        mine = self.start()
        if set(there) - set(mine.entries):
            return mine
        return mine.with_entries(
            {
                name: Typed(
                    on=bool(there.get(name)), by="budget", value=show_exact(there.get(name) or Fraction(1, 100))
                )
                for name in mine.entries
            }
        )

    @cached_property
    def _production(self) -> Configuration:
        return TOPDOWN.production(self.configuration)

    def choose(self, filled: Filled) -> Chosen:
        """Understand the form."""
        faults: list[Fault] = []
        terms = read_terms(filled.fields, faults, self.configuration.mechanism)
        budgets = {
            name: terms.budget(name, entry, SENSITIVITY.bounded, faults) if entry.on else Fraction(0)
            for name, entry in filled.entries.items()
        }
        require_some(filled, faults)
        if faults:
            raise RefusedError(faults)
        return terms.understood(TOPDOWN, TOPDOWN.with_budgets(self.configuration, budgets))

    def sections(self, filled: Filled, chosen: Chosen) -> Sequence[Section]:
        """Shares, losses by attribute, least-squares errors on three spines."""
        del filled
        other, name = self._production, "production of 2020"
        return (
            shares_section(chosen.config, chosen.plan),
            attributes_section(chosen.config, other, float(chosen.delta), name),
            spines_section(chosen.config, other, chosen.plan, self.blocks, name),
        )

    def sizes(self, chosen: Chosen) -> Mapping[str, Fraction]:
        """The records of an average geounit."""
        levels = average_geounits(self.configuration, self.blocks)
        return {m.name: levels[m.level] for m in chosen.plan.measurements}


def finite_configuration(source: str) -> Configuration:
    """Read a configuration that has noise.

    Raises
    ------
    ConfigError
        If it cannot be read, its budget is infinite, or it has areas of its own.
    """
    configuration = TOPDOWN.read(source)
    if configuration.areas is not None:
        raise ConfigError(
            f"config {source}: has areas of its own, and the explorer compares spines of the Census Bureau's blocks; "
            "yupana topdown plan shows its margins"
        )
    if configuration.budget == INFINITE:
        raise ConfigError(f"config {source}: its budget is infinite, and without noise there is nothing to explore")
    return configuration


def _settings(configuration: Configuration) -> Filled:
    return Filled(
        {"confidence": "90", "margins": "exact", "delta": "1e-10"},
        {
            name: Typed(on=entry.budget > 0, by="budget", value=show_exact(entry.budget or Fraction(1, 100)))
            for name, entry in TOPDOWN.entries(configuration).items()
        },
    )
