"""The form of a product on the page: its fields and grid, what is typed into them, and what it is understood as."""

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, Final

from yupana.explore.scenario import Fault, Filled, Typed
from yupana.plan.budgets import Entry, budget_for_margin
from yupana.plan.measurement import Accounting, Margins, Mechanism, margin_of, published_variance
from yupana.plan.plan import Plan
from yupana.privacy.exact import Budget, read_exact, show_exact
from yupana.products.census import MECHANISMS
from yupana.products.product import Product
from yupana.report.page import Section


@dataclass(frozen=True, slots=True)
class Field:
    """A setting with a label; a choice where it has choices, else a text. Those of a group are folded away together."""

    key: str
    label: str
    hint: str = ""
    choices: Mapping[str, str] = field(default_factory=dict)
    group: str = ""

    def as_json(self) -> dict[str, Any]:
        """As the page reads it."""
        return {"key": self.key, "label": self.label, "hint": self.hint, "choices": dict(self.choices)} | (
            {"group": self.group} if self.group else {}
        )


@dataclass(frozen=True, slots=True)
class Row:
    """A row of the grid of budgets, with the settings that belong to it."""

    key: str
    label: str
    note: str = ""
    fields: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Form:
    """What can be set: fields, and a grid of budgets.

    Attributes
    ----------
    title, intro : str
    fields : tuple of Field
        Those of rows included.
    rows : tuple of Row
    columns : mapping of key to label
    cells : mapping of (row, column) to entry
        Not every place of the grid has an entry.
    corner : str
        Heading of the rows.
    solving : str
        Which size the relative errors of "spend a total" refer to.
    shares : bool
        Whether columns can be given shares of the total.
    compared : str
        What a scenario is set beside if nothing else is asked, and can go back to.
    """

    title: str
    intro: str
    fields: tuple[Field, ...]
    rows: tuple[Row, ...]
    columns: Mapping[str, str]
    cells: Mapping[tuple[str, str], str]
    corner: str
    solving: str
    shares: bool = False
    compared: str = "production of 2020"

    def as_json(self) -> dict[str, Any]:
        """As the page reads it."""
        of_rows = {key for row in self.rows for key in row.fields}
        return {
            "title": self.title,
            "intro": self.intro,
            "fields": {f.key: f.as_json() for f in self.fields},
            "general": [f.key for f in self.fields if f.key not in of_rows and not f.group],
            "groups": {
                group: [f.key for f in self.fields if f.group == group]
                for group in dict.fromkeys(f.group for f in self.fields if f.group)
            },
            "corner": self.corner,
            "solving": self.solving,
            "shares": self.shares,
            "compared": self.compared,
            "columns": [{"key": key, "label": label} for key, label in self.columns.items()],
            "rows": [
                {
                    "key": row.key,
                    "label": row.label,
                    "note": row.note,
                    "fields": list(row.fields),
                    "cells": {column: self.cells.get((row.key, column)) for column in self.columns},
                }
                for row in self.rows
            ],
        }


@dataclass(frozen=True, slots=True)
class Chosen:
    """A form that has been understood.

    Attributes
    ----------
    plan : Plan
    config : object
        The product's own configuration, of which the plan was made.
    entries : mapping of name to Entry
        Those that are on.
    margins : mapping of name to float
        Margin of error of a published count of each of them.
    sigmas : mapping of name to float
        Its standard deviation.
    delta : Fraction
    accounting : "published" or "tight"
        Which sensitivities the noise is scaled to.
    """

    plan: Plan
    config: Any
    entries: Mapping[str, Entry]
    margins: Mapping[str, float]
    sigmas: Mapping[str, float]
    delta: Fraction
    accounting: Accounting = "published"

    @property
    def budgets(self) -> dict[str, Fraction]:
        """The budgets of the entries that are on."""
        return {name: Fraction(entry.budget) for name, entry in self.entries.items()}


class ProductPage(ABC):
    """A product on the page, with the counts its errors are set against. Nothing here reads a record.

    Attributes
    ----------
    key : str
        Its name in scenarios and addresses.
    product : Product
        What the page is of.
    filename : str
        What the file of a configuration is called.
    """

    key: str
    product: Product[Any]
    filename: str

    @property
    @abstractmethod
    def form(self) -> Form:
        """What can be set."""

    @abstractmethod
    def start(self) -> Filled:
        """The form the page opens with."""

    def production(self, filled: Filled) -> Filled:
        """That of 2020, for the same area; the start, where that is it or nothing was used."""
        del filled
        return self.start()

    @abstractmethod
    def choose(self, filled: Filled) -> Chosen:
        """Understand a form, or raise RefusedError with a fault by the field."""

    @abstractmethod
    def sections(self, filled: Filled, chosen: Chosen) -> Sequence[Section]:
        """What to show of it."""

    @abstractmethod
    def sizes(self, chosen: Chosen) -> Mapping[str, Fraction]:
        """How large a typical count of each entry is."""


_LEAST: Final = Fraction(1, 10**15)
"""Smaller budgets, and larger than its inverse, are refused by every configuration: the noise would not fit."""


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


def between(field: str, text: str, what: str, faults: list[Fault]) -> Fraction | None:
    """A number strictly between 0 and 1, and not so near to them that a double could not tell."""
    value = _exact_or(text, Fraction(-1))
    if isinstance(value, Fraction) and 0 < value < 1 and 0.0 < float(value) < 1.0:
        return value
    faults.append(Fault(field, f"{what} must be a number above 0 and below 1, such as 1e-10"))
    return None


def confidence_of(field: str, text: str, faults: list[Fault]) -> Fraction | None:
    """A confidence level in percent, as such."""
    value = _exact_or(text.strip().removesuffix("%"), Fraction(-1))
    if isinstance(value, Fraction) and 1 <= value <= Fraction("99.999999"):
        return value
    faults.append(Fault(field, "confidence must be a percentage from 1 to 99.999999"))
    return None


def _exact_or(text: str, other: Fraction) -> Budget:
    try:
        return read_exact(text)
    except ValueError:
        return other


def whole(field: str, text: str, what: str, low: int, high: int, faults: list[Fault]) -> int | None:
    """A whole number, ends included."""
    digits = text.strip()
    if digits.isascii() and digits.isdecimal() and len(digits) <= 9 and low <= int(digits) <= high:
        return int(digits)
    faults.append(Fault(field, f"{what} must be a whole number from {low} to {high:,}"))
    return None


def choice(field: str, text: str, choices: Mapping[str, str], faults: list[Fault]) -> str:
    """One of several keys."""
    if text not in choices:
        faults.append(Fault(field, f"must be one of {', '.join(choices)}"))
        return next(iter(choices))
    return text


def share(field: str, text: str, what: str, faults: list[Fault], *, zero: bool) -> Fraction | None:
    """A decimal below 1, and above 0 or, where ``zero``, at least 0. It must be one that a configuration can hold."""
    value = _exact_or(text, Fraction(-1))
    if not isinstance(value, Fraction) or not 0 <= value < 1 or (value == 0 and not zero):
        faults.append(Fault(field, f"{what} must be a number {'from' if zero else 'above'} 0 and below 1"))
        return None
    if Fraction(repr(float(value))) != value:
        faults.append(Fault(field, f"{what} must be a decimal of at most 15 digits"))
        return None
    return value


def require_some(filled: Filled, faults: list[Fault]) -> None:
    """Refuse a form of which nothing is switched on."""
    if not any(entry.on for entry in filled.entries.values()):
        faults.append(Fault("", "nothing is switched on, so nothing would be measured: tick a box of the grid"))


def decimal(budget: Budget) -> str:
    """A budget as the box of a form begins with it: six digits where these are exact."""
    text = f"{float(budget):.6f}"
    return text if Fraction(text) == budget else show_exact(budget)


_MARGINS: Final = {"exact": "whole, by the exact law", "bureau": "z times σ, as in 2020"}
_MECHANISMS: Final = {"zcdp": "zCDP, Gaussian noise", "puredp": "pure DP, geometric noise"}
_ACCOUNTING: Final[Mapping[str, Accounting]] = {"published": "published", "tight": "tight"}

OF_2020: Final = {"margins": "exact", "delta": "1e-10", "mechanism": "zcdp", "accounting": "published"}
"""What the fields of `terms_fields` begin with, but for the confidence."""


def terms_fields(confidence: str, published: str = "") -> tuple[Field, ...]:
    """The fields that `read_terms` reads; ``published`` says what sensitivities are as the originals have them.

    Without it a form has one mechanism and one sensitivity.
    """
    fields = (
        Field("confidence", "Confidence, percent", confidence),
        Field("margins", "Margins of error", choices=_MARGINS),
        Field("delta", "δ of the ε stated", "1e-10 in 2020"),
    )
    if not published:
        return fields
    accounting = {"published": published, "tight": "tight: least proven"}
    return (
        *fields,
        Field("mechanism", "Definition of privacy", choices=_MECHANISMS),
        Field("accounting", "Sensitivities", choices=accounting),
    )


@dataclass(frozen=True, slots=True)
class PlanTerms:
    """By what the budgets of a form are read, and its plan is made. The confidence is None where it has a fault."""

    mechanism: Mechanism
    accounting: Accounting
    margins: Margins
    confidence: Fraction | None
    delta: Fraction

    def budget(self, name: str, entry: Typed, sensitivity: Fraction, faults: list[Fault]) -> Fraction:
        """The budget of an entry, by itself or by its margin of error; 0 where there is a fault."""
        symbol = self.mechanism.symbol
        budget: Fraction | None = None
        if entry.by == "budget":
            budget = positive(name, entry.value, symbol, faults)
        elif (margin := positive(name, entry.value, "a margin of error", faults)) is not None:
            if not _LEAST <= margin <= 1 / _LEAST:
                faults.append(Fault(name, "no noise has this margin of error: it must be between 1e-15 and 1e15"))
            elif self.confidence is not None:
                budget = budget_for_margin(margin, sensitivity, self.confidence, self.mechanism, self.margins)
        if budget is not None and not _LEAST <= budget <= 1 / _LEAST:
            which = "this" if entry.by == "budget" else f"the {symbol} of this margin, {float(budget):.3g},"
            faults.append(Fault(name, f"{which} is out of reach: {symbol} must be between 1e-15 and 1e15"))
            budget = None
        return budget or Fraction(0)

    def understood(self, product: Product[Any], config: object) -> Chosen:
        """What the page shows of a configuration, whose form has no fault."""
        plan = product.plan(config, accounting=self.accounting, confidence=self.confidence, margins=self.margins)
        entries = product.entries(config, self.accounting)
        on = {name: entry for name, entry in entries.items() if entry.budget > 0}
        laws = {name: plan.mechanism.law(e.sensitivity, e.budget * e.share) for name, e in on.items()}
        return Chosen(
            plan,
            config,
            on,
            {name: margin_of(law, 1, plan.confidence, plan.margins) for name, law in laws.items()},
            {name: math.sqrt(published_variance(law)) for name, law in laws.items()},
            self.delta,
            self.accounting,
        )


def read_terms(fields: Mapping[str, str], faults: list[Fault], mechanism: Mechanism | None = None) -> PlanTerms:
    """Read the fields of `terms_fields`: all of them, or those of a form with one ``mechanism``."""
    percent = confidence_of("confidence", fields["confidence"], faults)
    delta = between("delta", fields["delta"], "δ", faults)
    margins: Margins = "bureau" if choice("margins", fields["margins"], _MARGINS, faults) == "bureau" else "exact"
    accounting: Accounting = "published"
    if mechanism is None:
        mechanism = MECHANISMS[choice("mechanism", fields["mechanism"], _MECHANISMS, faults)]
        accounting = _ACCOUNTING[choice("accounting", fields["accounting"], _ACCOUNTING, faults)]
    confidence = None if percent is None else percent / 100
    return PlanTerms(mechanism, accounting, margins, confidence, delta or Fraction(OF_2020["delta"]))
