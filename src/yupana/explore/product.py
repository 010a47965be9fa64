"""What the page needs to know of a product, whichever it is."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, Protocol

from yupana.explore.scenario import Settings
from yupana.plan.budgets import Need
from yupana.plan.plan import Plan
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
    """Settings that have been understood.

    Attributes
    ----------
    plan : Plan
    config : object
        The product's own configuration, of which the plan was made.
    budgets : mapping of entry to Fraction
        Of the entries that are on.
    margins : mapping of entry to float
        Margin of error of a published count of each of them.
    sigmas : mapping of entry to float
        Its standard deviation.
    delta : Fraction
    """

    plan: Plan
    config: Any
    budgets: Mapping[str, Fraction]
    margins: Mapping[str, float]
    sigmas: Mapping[str, float]
    delta: Fraction


class Product(Protocol):
    """A product the explorer knows. Nothing here reads a record."""

    @property
    def key(self) -> str:
        """Its name in scenarios and addresses."""
        ...

    @property
    def form(self) -> Form:
        """What can be set."""
        ...

    def production(self, settings: Settings) -> Settings:
        """The settings of 2020, for the same area as some settings."""
        ...

    def start(self) -> Settings:
        """The settings the page opens with."""
        ...

    def choose(self, settings: Settings) -> Chosen:
        """Understand settings, or raise RefusedError with a fault by the field."""
        ...

    def sections(self, settings: Settings, chosen: Chosen) -> Sequence[Section]:
        """What to show of them."""
        ...

    def needs(self, chosen: Chosen, margins: Mapping[str, Fraction]) -> Iterable[Need]:
        """The counts that entries pay for, with these margins of error."""
        ...

    def pass_of(self, entry: str) -> str:
        """The pass an entry belongs to; passes protect different people."""
        ...

    def sizes(self, chosen: Chosen) -> Mapping[str, Fraction]:
        """How large a typical count of each entry is."""
        ...

    def export(self, settings: Settings, chosen: Chosen) -> tuple[str, str]:
        """Name and text of the product's own configuration."""
        ...
