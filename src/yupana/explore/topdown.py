"""TopDown strategies on the page."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from pathlib import Path
from typing import Final

from yupana.errors import ConfigError
from yupana.explore.numbers import MARGINS, between, budget_of, confidence_of, margins_of
from yupana.explore.product import Chosen, Field, Form, Row
from yupana.explore.scenario import Entry, Fault, RefusedError, Settings
from yupana.explore.shelf import TITLES
from yupana.plan.budgets import Need
from yupana.privacy.exact import INFINITE, show_exact
from yupana.report.page import Section
from yupana.report.topdown import (
    SampleBlocks,
    attributes_section,
    average_geounits,
    shares_section,
    spines_section,
)
from yupana.topdown.configuration import Configuration
from yupana.topdown.plan import SENSITIVITY, make_plan
from yupana.topdown.production import production_configuration
from yupana.topdown.reading.configuration import read_configuration
from yupana.topdown.reading.document import configuration_document
from yupana.topdown.targets import entries, needs, with_budgets

_FIELDS: Final = (
    Field("confidence", "Confidence, percent", "90 by default"),
    Field("margins", "Margins of error", choices=MARGINS),
    Field("delta", "δ of the ε stated", "1e-10 in 2020"),
)


_TITLES: Final = {key: title if title.startswith("TopDown") else f"TopDown, {title}" for key, title in TITLES.items()}


@dataclass(frozen=True)
class TopDown:
    """A strategy of TopDown: a configuration, whose budgets can be set.

    Attributes
    ----------
    key : str
    source : str
        The configuration: a built-in name, or a file.
    configuration : Configuration
    blocks : SampleBlocks
        To try spines on.
    """

    key: str
    source: str
    configuration: Configuration
    blocks: SampleBlocks

    @cached_property
    def form(self) -> Form:
        """A grid of queries by geolevel."""
        levels = self.configuration.levels
        queries = {q.name: q.size for level in levels for q, _ in self.configuration.queries[level]}
        return Form(
            title=_TITLES.get(self.key, f"TopDown, {Path(self.source).stem}"),
            intro="How should the budget be shared out among geolevels and queries? Type the budget of a query, or the "
            "margin of error of its noisy answers; shares follow. Clear a box to leave a query out. You start from "
            f"{self.source}.",
            fields=_FIELDS,
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

    def start(self) -> Settings:
        """The configuration as it is."""
        return _settings(self.configuration)

    def production(self, settings: Settings) -> Settings:
        """The run of 2020 with the same unit and root, where it has the same queries; else the start."""
        del settings
        there = entries(self._production)
        mine = self.start()
        if set(there) - set(mine.entries):
            return mine
        return mine.with_entries(
            {
                name: Entry(
                    on=bool(there.get(name)), by="budget", value=show_exact(there.get(name) or Fraction(1, 100))
                )
                for name in mine.entries
            }
        )

    @cached_property
    def _production(self) -> Configuration:
        return production_configuration(self.configuration)

    def choose(self, settings: Settings) -> Chosen:
        """Understand settings."""
        faults: list[Fault] = []
        percent = confidence_of("confidence", settings.fields["confidence"], faults)
        delta = between("delta", settings.fields["delta"], "δ", faults)
        margins = margins_of("margins", settings.fields["margins"], faults)
        mechanism = self.configuration.mechanism
        budgets = dict.fromkeys(settings.entries, Fraction(0))
        for name, entry in settings.entries.items():
            if entry.on and percent is not None:
                sensitivity, confidence = SENSITIVITY.bounded, percent / 100
                budget = budget_of(name, entry, sensitivity, confidence, mechanism, margins, faults)
                budgets[name] = budget or Fraction(0)
        if not any(entry.on for entry in settings.entries.values()):
            faults.append(Fault("", "nothing is switched on, so nothing would be measured: tick a box of the grid"))
        if faults or percent is None or delta is None:
            raise RefusedError(faults)
        configuration = with_budgets(self.configuration, budgets)
        plan = make_plan(configuration, confidence=percent / 100, margins=margins)
        return Chosen(
            plan,
            configuration,
            {m.name: Fraction(m.budget) for m in plan.measurements},
            {m.name: plan.margin(m) for m in plan.measurements},
            {m.name: m.sigma for m in plan.measurements},
            delta,
        )

    def sections(self, settings: Settings, chosen: Chosen) -> Sequence[Section]:
        """Shares, losses by attribute, least-squares errors on three spines."""
        del settings
        other, name = self._production, "production of 2020"
        return (
            shares_section(chosen.config, chosen.plan),
            attributes_section(chosen.config, other, float(chosen.delta), name),
            spines_section(chosen.config, other, chosen.plan, self.blocks, name),
        )

    def needs(self, chosen: Chosen, margins: Mapping[str, Fraction]) -> Iterable[Need]:
        """The noisy answers that entries pay for."""
        del chosen
        return needs(margins)

    def pass_of(self, entry: str) -> str:
        """There is one pass."""
        del entry
        return ""

    def sizes(self, chosen: Chosen) -> Mapping[str, Fraction]:
        """The records of an average geounit."""
        levels = average_geounits(self.configuration, self.blocks)
        return {m.name: levels[m.level] for m in chosen.plan.measurements}

    def export(self, settings: Settings, chosen: Chosen) -> tuple[str, str]:
        """The configuration, as `yupana topdown` reads it."""
        del settings
        document = configuration_document(chosen.config)
        return "topdown.json", json.dumps(document, indent=1, ensure_ascii=False) + "\n"


def finite_configuration(source: str) -> Configuration:
    """Read a configuration that has noise.

    Raises
    ------
    ConfigError
        If it cannot be read, or its budget is infinite.
    """
    configuration = read_configuration(source)
    if configuration.budget == INFINITE:
        raise ConfigError(f"config {source}: its budget is infinite, and without noise there is nothing to explore")
    return configuration


def _settings(configuration: Configuration) -> Settings:
    return Settings(
        {"confidence": "90", "margins": "exact", "delta": "1e-10"},
        {
            name: Entry(on=budget > 0, by="budget", value=show_exact(budget or Fraction(1, 100)))
            for name, budget in entries(configuration).items()
        },
    )
