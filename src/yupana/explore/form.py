"""The form of a configuration: its budgets by table and level, its options, and what is understood of both.

There is one form for all products. Budgets are those of `Product.entries`; what they pay for is read off the plan; and
options are what else the document of the configuration says that decides how much noise there is.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace
from fractions import Fraction
from functools import cached_property, lru_cache
from typing import Any, Final

from yupana.errors import ConfigError
from yupana.explore.options import Setting, faults_of, options_of, values_of
from yupana.explore.reference import KnownCounts
from yupana.explore.scenario import Fault, Filled, RefusedError, Typed
from yupana.files.document import Changes
from yupana.plan.budgets import Entry, budget_for_margin
from yupana.plan.measurement import Accounting, Margins, Measurement, Mechanism, margin_of, published_variance
from yupana.plan.plan import Plan
from yupana.privacy.exact import INFINITE, Budget, read_exact, show_exact
from yupana.products.product import Product
from yupana.report.numbers import percent

_LEAST: Final = Fraction(1, 10**15)
"""Smaller budgets, and larger than its inverse, are refused by every configuration: the noise would not fit."""

_OFF: Final = Fraction(1, 100)
"""What the budget of an entry is that has none, once it is switched on, where no other of its level has one."""

_KEPT: Final = 256
"""How many scenarios of all pages are remembered as they were understood."""


@dataclass(frozen=True, slots=True)
class Chosen:
    """A form that has been understood."""

    plan: Plan
    config: Any  # the product's own configuration, of which the plan was made
    entries: Mapping[str, Entry]  # by name: those that are on
    margins: Mapping[str, float]  # by name: margin of error of a published count of each of them
    sigmas: Mapping[str, float]  # by name: its standard deviation
    delta: Fraction
    accounting: Accounting  # which sensitivities the noise is scaled to
    household: int  # how many persons a household has whose loss is told
    reliable: Fraction  # the largest margin of a reliable count, as a share of it
    known: Mapping[str, KnownCounts]  # by name: public counts that the entries pay for, as far as there are any

    @property
    def budgets(self) -> dict[str, Fraction]:
        """The budgets of the entries that are on."""
        return {name: Fraction(entry.budget) for name, entry in self.entries.items()}


@dataclass(frozen=True, slots=True)
class Place:
    """What an entry pays for: a table (of TopDown a query) at a level, as the plan has them."""

    table: str
    level: str


_Configured = tuple[Any, Mapping[str, Entry], Mechanism, Mapping[str, KnownCounts]]
"""A configuration with options, before budgets are typed, its entries, its mechanism, and counts that are known."""


@dataclass(frozen=True, eq=False)
class BudgetPage:
    """A configuration on the page, with the counts its errors are set against. Nothing here reads a record."""

    key: str  # its name in scenarios and addresses
    title: str
    product: Product[Any]
    read: Callable[[Changes], Any]  # from changes to the configuration with them
    # from a configuration to public counts by entry (`yupana.explore.reference`)
    known: Callable[[Any], Mapping[str, KnownCounts]]
    source: Callable[[], str]  # whose counts these are, to finish a sentence; empty where there are none

    @cached_property
    def config(self) -> Any:  # noqa: ANN401 (the product's own)
        """The configuration as it is."""
        config = self.read(Changes())
        if any(entry.budget == INFINITE for entry in self.product.entries(config).values()):
            raise ConfigError(f"config {self.key}: a budget is infinite, and without noise there is nothing to explore")
        return config

    @cached_property
    def options(self) -> Mapping[str, Setting]:
        """What of its document can be set beside budgets, by its place."""
        return options_of(self.product, self.config, self.read)

    @cached_property
    def places(self) -> Mapping[str, Place]:
        """What each budget pays for, in the order of the plan."""
        entries = self.product.entries(self.config)
        all_on = self.product.with_budgets(self.config, {n: e.budget or _OFF for n, e in entries.items()})
        found: dict[str, Measurement] = {}
        for m in self.product.plan(all_on).measurements:
            name = self.product.entry_of(m)
            # Of an entry that pays for several, the first whose cells it is named for.
            if name not in found or found[name].budget != (entries[name].budget or _OFF) * entries[name].share:
                found[name] = m
        return {name: Place(found[name].table, found[name].level) for name in entries}

    @cached_property
    def accountings(self) -> tuple[Accounting, ...]:
        """Which sensitivities differ, the published first."""
        entries: list[Mapping[str, Entry]] = [self.product.entries(self.config, a) for a in ("published", "tight")]
        return ("published", "tight") if entries[0] != entries[1] else ("published",)

    def label_of_table(self, table: str) -> str:
        """What a table is called."""
        described = getattr(self.config, "tables", ())
        titles = {of.name: of.title for of in described if getattr(of, "title", "")}
        own = self.product.words
        first, _, last = table.partition("-")
        several = " to ".join(own.tables[of] for of in (first, last) if of in own.tables) if last else ""
        words = titles.get(table) or own.tables.get(table) or own.kinds.get(table) or several
        return f"{table}: {words}" if words and words != table else table

    def label_of_level(self, level: str) -> str:
        """What a level is called."""
        return self.product.words.levels.get(level, level.replace("_", " "))

    @cached_property
    def _terms(self) -> tuple[Setting, ...]:
        """What a plan is asked for beside its configuration, and what the page says of it."""
        choices = {"exact": "whole, by the exact law", "bureau": "z times σ, as in 2020"}
        found = [
            Setting("confidence", "Confidence of the margins, percent", _percent(self.product.plan(self.config))),
            Setting("margins", "Margins of error", "exact", choices=choices),
            Setting("delta", "δ of the ε stated", "1e-10"),
            Setting("household", "Persons of the household whose loss is told", "4"),
            Setting("reliable", "A count is unreliable whose margin is above this percentage of it", "50"),
        ]
        if len(self.accountings) > 1:
            words = {"published": "as published", "tight": "tight: the least proven"}
            found.append(Setting("accounting", "Sensitivities", "published", choices=words))
        return tuple(found)

    def as_json(self) -> dict[str, Any]:
        """The form, as the page reads it."""
        plan = self.product.plan(self.config)
        tables, levels = (
            dict.fromkeys(getattr(place, kind) for place in self.places.values()) for kind in ("table", "level")
        )
        return {
            "key": self.key,
            "title": self.config.title if self.product.key == "tables" else self.title,
            "product": self.product.key,
            "unit": plan.privacy_unit,
            "counts": self.source(),
            "fields": [option.as_json() for option in (*self._terms, *self.options.values())],
            "tables": {table: self.label_of_table(table) for table in tables},
            "levels": {level: self.label_of_level(level) for level in levels},
            "entries": [{"name": n, "table": p.table, "level": p.level} for n, p in self.places.items()],
            "settings": asdict(self.start),
            "production": None if self.production is None else asdict(self.production),
        }

    @cached_property
    def start(self) -> Filled:
        """The configuration as it is."""
        return self._filled(self.config)

    @cached_property
    def first(self) -> Chosen:
        """The same, understood."""
        return self.choose(self.start)

    @cached_property
    def production(self) -> Filled | None:
        """The run of 2020 in this form; None where there was none, or it had budgets that this form has not."""
        run = self.product.production(self.config)
        if run is None or not set(self.product.entries(run)) <= set(self.places):
            return None
        return self._filled(run)

    def _filled(self, config: Any) -> Filled:  # noqa: ANN401 (the product's own)
        entries, values = self.product.entries(config), values_of(self.product, config)
        budgets = {name: entries[name].budget if name in entries else Fraction(0) for name in self.places}
        spent = {
            level: min((Fraction(budgets[n]) for n, p in self.places.items() if p.level == level and budgets[n]),
                       default=_OFF)
            for level in {place.level for place in self.places.values()}
        }  # fmt: skip
        return Filled(
            {option.key: values.get(option.key, option.start) for option in (*self._terms, *self.options.values())},
            {
                name: Typed(on=budgets[name] > 0, by="budget", value=decimal(budgets[name] or spent[place.level]))
                for name, place in self.places.items()
            },
        )

    def choose(self, filled: Filled) -> Chosen:
        """Understand a form, or raise RefusedError with a fault by the field."""
        return _chosen(self, tuple(filled.fields.items()), tuple(filled.entries.items()))

    def understand(self, fields: Mapping[str, str], typed_entries: Mapping[str, Typed]) -> Chosen:
        """Understand it anew."""
        faults: list[Fault] = []
        confidence = _between("confidence", fields["confidence"], 1, Fraction("99.999999"), faults) / 100
        margins: Margins = "bureau" if fields["margins"] == "bureau" else "exact"
        accounting: Accounting = "tight" if fields.get("accounting") == "tight" else "published"
        faults += [
            Fault(term.key, f"must be one of {', '.join(term.choices)}")
            for term in self._terms
            if term.choices and fields[term.key] not in term.choices
        ]
        delta = _between("delta", fields["delta"], Fraction(1, 10**300), 1 - Fraction(1, 10**15), faults)
        household = _between("household", fields["household"], 1, 99, faults)
        if household.denominator > 1:
            faults.append(Fault("household", "must be a whole number"))
        reliable = _between("reliable", fields["reliable"], Fraction(1, 100), 1000, faults) / 100
        changed = {key: one.value(fields[key]) for key, one in self.options.items() if fields[key] != one.start}
        try:
            made = _configured(self, tuple(changed.items()), accounting)
        except ConfigError as error:
            faults += faults_of(error, self.options)
            made = _configured(self, (), accounting)
        configured, entries, mechanism, known = made
        budgets: dict[str, Budget] = dict.fromkeys(entries, Fraction(0))
        for name, typed in typed_entries.items():
            if typed.on and name in entries:
                entry, budgets[name] = entries[name], Fraction(0)
                found = _budget(name, typed, mechanism, entry, (confidence, margins), faults)
                budgets[name] = found if typed.by == "budget" else found / entry.share
        if not any(entry.on for entry in typed_entries.values()):
            faults.append(Fault("", "nothing is switched on, so nothing would be measured: tick a box"))
        if faults:
            raise RefusedError(faults)
        config = self.product.with_budgets(configured, budgets)
        try:
            plan = self.product.plan(config, accounting=accounting, confidence=confidence, margins=margins)
        except ConfigError as error:
            raise RefusedError(faults_of(error, self.options)) from None
        on = {name: replace(entries[name], budget=budgets[name]) for name in entries if budgets[name]}
        laws = {name: plan.mechanism.law(e.sensitivity, e.budget * e.share) for name, e in on.items()}
        return Chosen(
            plan, config, on,
            {name: margin_of(law, 1, plan.confidence, plan.margins) for name, law in laws.items()},
            {name: math.sqrt(published_variance(law)) for name, law in laws.items()},
            delta, accounting, int(household), reliable, known,
        )  # fmt: skip


@lru_cache(maxsize=_KEPT)
def _configured(page: BudgetPage, changed: tuple[tuple[str, str], ...], accounting: Accounting) -> _Configured:
    """The configuration of a page with some of its options."""
    config = page.read(Changes(changed)) if changed else page.config
    entries, plan = page.product.entries(config, accounting), page.product.plan(config)
    return config, entries, plan.mechanism, page.known(config)


@lru_cache(maxsize=_KEPT)
def _chosen(page: BudgetPage, fields: tuple[tuple[str, str], ...], entries: tuple[tuple[str, Typed], ...]) -> Chosen:
    return page.understand(dict(fields), dict(entries))


def _percent(plan: Plan) -> str:
    return percent(float(plan.confidence), 8).rstrip("%").rstrip("0").rstrip(".")


def _budget(
    name: str, typed: Typed, mechanism: Mechanism, entry: Entry, of: tuple[Fraction, Margins], faults: list[Fault]
) -> Fraction:
    """The budget of an entry, by itself or by its margin of error; 0 where there is a fault."""
    symbol = mechanism.symbol
    budget: Fraction | None = None
    if typed.by == "budget":
        budget = positive(name, typed.value, symbol, faults)
    elif (margin := positive(name, typed.value, "a margin of error", faults)) is not None:
        if not _LEAST <= margin <= 1 / _LEAST:
            faults.append(Fault(name, "no noise has this margin of error: it must be between 1e-15 and 1e15"))
        elif of[0]:
            budget = budget_for_margin(margin, entry.sensitivity, of[0], mechanism, of[1])
    if budget is not None and not _LEAST <= budget <= 1 / _LEAST:
        which = "this" if typed.by == "budget" else f"the {symbol} of this margin, {float(budget):.3g},"
        faults.append(Fault(name, f"{which} is out of reach: {symbol} must be between 1e-15 and 1e15"))
        budget = None
    return budget or Fraction(0)


def positive(field: str, text: str, what: str, faults: list[Fault]) -> Fraction | None:
    """A finite number above zero."""
    try:
        value = read_exact(text)
    except ValueError:
        faults.append(Fault(field, f"{what} must be a number such as 0.25, 1e-6 or 3/8"))
        return None
    if not isinstance(value, Fraction):
        faults.append(Fault(field, f"{what} must be finite: without noise nobody is protected"))
    elif value <= 0:
        faults.append(Fault(field, f"{what} must be above 0; to leave it out, switch it off"))
    else:
        return value
    return None


def _between(field: str, text: str, low: Fraction | int, high: Fraction | int, faults: list[Fault]) -> Fraction:
    """A number, ends included; 0 where there is a fault."""
    try:
        value = read_exact(text.strip().removesuffix("%"))
    except ValueError:
        value = Fraction(-1)
    if isinstance(value, Fraction) and low <= value <= high:
        return value
    faults.append(Fault(field, f"must be a number from {float(low):.8g} to {float(high):.8g}"))
    return Fraction(0)


def decimal(budget: Budget) -> str:
    """A budget as a field begins with it: six digits where these are exact."""
    text = f"{float(budget):.6f}"
    return text if Fraction(text) == budget else show_exact(budget)
