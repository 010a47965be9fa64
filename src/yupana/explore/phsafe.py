"""PHSafe on the page."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Final

from yupana.explore.form import (
    OF_2020,
    Chosen,
    Field,
    Form,
    ProductPage,
    Row,
    choice,
    decimal,
    read_terms,
    require_some,
    terms_fields,
    whole,
)
from yupana.explore.reference import PhsafeReference
from yupana.explore.scenario import Fault, Filled, RefusedError, Typed
from yupana.privacy.exact import Budget
from yupana.products.census import STATES
from yupana.products.phsafe.configuration import LARGEST_TAU, TAUS, PhsafeConfig, budgets, sensitivity_of
from yupana.products.phsafe.product import PHSAFE
from yupana.products.phsafe.specification import TABLES
from yupana.products.product import Product
from yupana.products.safetab.iterations import CONFIG
from yupana.products.safetab.regions import PUERTO_RICO
from yupana.report.errors import CELLS, cost_section, relative_section, typical_sizes
from yupana.report.page import Section
from yupana.report.plans import plan_sections

AREAS: Final = {"us": "States, DC and nation", "pr": "Puerto Rico"}
_SHOWN: Final = {f"{name} {cell}": f"{name}: {words}" for name, cells in CELLS.items() for cell, words in cells.items()}

_FORM: Final = Form(
    title=PHSAFE.words.title,
    intro="How much noise should the tables on households carry? Type a budget ρ, or the margin of error you want; "
    "each follows the other. Clear a box to leave a count out. You start from the production settings of 2020.",
    fields=(
        Field("area", "Area", "the run, and what it is compared with", choices=AREAS),
        *terms_fields("90 in 2020", "as published: 2τ + 2"),
        Field("shown", "Show relative errors of", choices=_SHOWN),
        *(Field(f"tau.{name}", "τ", "most persons counted per household") for name in TAUS),
    ),
    rows=tuple(Row(t.name, t.name, PHSAFE.words.tables[t.name], (f"tau.{t.name}",) if t.limit else ()) for t in TABLES),
    columns=PHSAFE.words.levels,
    cells={(t.name, level.name): f"{t.name}/{level.name}" for t in TABLES for level in t.levels},
    corner="Table",
    solving="the median count of each table and level among the counts shown below",
)


@dataclass(frozen=True, slots=True)
class PhsafePage(ProductPage):
    """PHSafe, with the counts its errors are set against."""

    reference: PhsafeReference
    key: str = PHSAFE.key
    product: Product[PhsafeConfig] = PHSAFE
    form: Form = _FORM
    filename: str = CONFIG

    def start(self) -> Filled:
        """The run of 2020 for the United States."""
        return _production(puerto_rico=False)

    def production(self, filled: Filled) -> Filled:
        """The run of 2020 for the area chosen."""
        return _production(puerto_rico=filled.fields["area"] == "pr")

    def choose(self, filled: Filled) -> Chosen:
        """Understand the form."""
        faults: list[Fault] = []
        fields = filled.fields
        area = choice("area", fields["area"], AREAS, faults)
        terms = read_terms(fields, faults)
        choice("shown", fields["shown"], _SHOWN, faults)
        taus = {n: whole(f"tau.{n}", fields[f"tau.{n}"], "τ", 1, LARGEST_TAU, faults) for n in TAUS}
        known = {name: tau for name, tau in taus.items() if tau is not None}
        found: dict[str, Budget] = {}
        for of in TABLES:
            for level in of.levels:
                name = f"{of.name}/{level.name}"
                found[name] = Fraction(0)
                if filled.entries[name].on and (of.name in known or of.name not in taus):
                    sensitivity = sensitivity_of(known.get(of.name), terms.mechanism, terms.accounting).unbounded
                    found[name] = terms.budget(name, filled.entries[name], sensitivity, faults)
        require_some(filled, faults)
        if faults:
            raise RefusedError(faults)
        states = (PUERTO_RICO,) if area == "pr" else STATES
        return terms.understood(PHSAFE, PhsafeConfig.of(found, known, states, terms.mechanism))

    def sections(self, filled: Filled, chosen: Chosen) -> Sequence[Section]:
        """Loss, budgets, margins, relative errors, and what truncation costs."""
        name, cell = filled.fields["shown"].split()
        reference = self.reference
        known = set(chosen.config.states) & {code for of in reference.counts[name][int(cell)].values() for code in of}
        counts = reference.counts if known else None
        return (
            *plan_sections(chosen.plan),
            relative_section(chosen.plan, counts, name, int(cell), reference.source),
            cost_section(chosen.config.taus, reference.households, reference.households_source),
        )

    def sizes(self, chosen: Chosen) -> Mapping[str, Fraction]:
        """The median count of each table and level."""
        del chosen
        return {f"{t}/{level}": Fraction(size) for (t, level), size in typical_sizes(self.reference.counts).items()}


def _production(*, puerto_rico: bool) -> Filled:
    rho = budgets(puerto_rico=puerto_rico)
    return Filled(
        {
            "area": "pr" if puerto_rico else "us",
            "confidence": "90",
            **OF_2020,
            "shown": "PH1_num 2",
            **{f"tau.{name}": str(tau) for name, tau in TAUS.items()},
        },
        {
            # What is off keeps the budget it had with everybody, ready to be switched on.
            name: Typed(on=budget > 0, by="budget", value=decimal(budget or budgets(puerto_rico=False)[name]))
            for name, budget in rho.items()
        },
    )
