"""A description of tables on the page."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from pathlib import Path

from yupana.errors import ConfigError
from yupana.explore.form import OF_2020, Chosen, Form, ProductPage, Row, decimal, read_terms, require_some, terms_fields
from yupana.explore.scenario import Fault, Filled, RefusedError, Typed
from yupana.privacy.exact import INFINITE
from yupana.products.described.description import Description
from yupana.products.described.product import TABLES
from yupana.report.numbers import percent
from yupana.report.page import Section
from yupana.report.release import measured_sections

_OFF = Fraction(1, 100)
"""What the budget of a level is that has none, once it is switched on."""


@dataclass(frozen=True)
class DescribedPage(ProductPage):
    """A description: its budgets by table and level.

    Attributes
    ----------
    source : str
        What the description was read from, as its user calls it.
    description : Description
    """

    source: str
    description: Description
    key: str = TABLES.key
    product = TABLES
    filename: str = "description.json"

    @cached_property
    def form(self) -> Form:
        """Tables by levels; the definition of privacy is the description's."""
        tables, unit = self.description.tables, self.description.privacy_unit
        return Form(
            title=self.description.title,
            intro=f"How should the budget be shared out among tables and levels? What is protected is one {unit}. Type "
            "a budget, or the margin of error you want; each follows the other. Clear a box to leave a count out. You "
            f"start from {self.source}.",
            fields=terms_fields("90 by default"),
            rows=tuple(Row(of.name, of.name, of.title) for of in tables),
            columns={level.name: level.name for of in tables for level in of.levels},
            cells={(of.name, level.name): f"{of.name}/{level.name}" for of in tables for level in of.levels},
            corner="Table",
            solving="counts, of which a description knows none",
            compared="the start",
        )

    def start(self) -> Filled:
        """The description as it is."""
        return Filled(
            {
                "confidence": percent(float(self.description.confidence), 8).rstrip("%").strip(),
                "margins": OF_2020["margins"],
                "delta": OF_2020["delta"],
            },
            {
                name: Typed(on=bool(budget), by="budget", value=decimal(budget or _OFF))
                for name, budget in self.description.budgets.items()
            },
        )

    def choose(self, filled: Filled) -> Chosen:
        """Understand the form."""
        faults: list[Fault] = []
        terms = read_terms(filled.fields, faults, self.description.mechanism)
        budgets = {}
        for name, of in TABLES.entries(self.description).items():
            typed, budgets[name] = filled.entries[name], Fraction(0)
            if typed.on:
                found = terms.budget(name, typed, of.sensitivity, faults)
                # Of a table whose detail a total decides, the counts have a share of the budget.
                budgets[name] = found if typed.by == "budget" else found / of.share
        require_some(filled, faults)
        if faults:
            raise RefusedError(faults)
        return terms.understood(TABLES, TABLES.with_budgets(self.description, budgets))

    def sections(self, filled: Filled, chosen: Chosen) -> Sequence[Section]:
        """What every measurement spends and how wide its margin is."""
        del filled
        return measured_sections(chosen.plan)

    def sizes(self, chosen: Chosen) -> Mapping[str, Fraction]:
        """None: a description tells no counts."""
        del chosen
        return {}


def finite_description(source: str, codes: Path | None = None) -> Description:
    """Read a description that has noise; ``codes`` is the folder of the public files that it names.

    Raises
    ------
    ConfigError
        If it cannot be read, or a budget is infinite.
    """
    description = TABLES.read(source, codes=codes)
    if INFINITE in description.budgets.values():
        raise ConfigError(f"config {source}: a budget is infinite, and without noise there is nothing to explore")
    return description
