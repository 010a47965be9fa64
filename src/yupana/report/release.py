"""The report of a run: what its plan says and its tables show. It is as public as the release, and shows no truth."""

from collections.abc import Mapping, Sequence
from typing import Any

from yupana.files.regular import NewFile
from yupana.plan.measurement import Measurement, margin_words
from yupana.plan.plan import DEFAULT_DELTA, Plan
from yupana.products.parts import not_added
from yupana.products.phsafe.product import PHSAFE
from yupana.products.safetab.regions import BY_NAME, Level
from yupana.products.safetab.specification import DETAILED_ONLY
from yupana.release.recipe import DESCRIBED_TABLES, leaves_out_small
from yupana.report.errors import CELLS, Columns, published_counts, relative_section
from yupana.report.groups import sizes_section
from yupana.report.numbers import loss, rounded, whole
from yupana.report.page import Section, read_page, render, sections, write_page
from yupana.report.plans import criteria_sections, level_sections, plan_sections


def write_release_report(
    place: NewFile, plan: Plan, production: Plan | None, manifest: Mapping[str, Any], tables: Mapping[str, Columns]
) -> None:
    """Write the page of a release.

    Parameters
    ----------
    place : NewFile
        As `yupana.report.page.claim_page` gave it.
    plan, production : Plan
        Of the release, and of the run of 2020; None where there was none.
    manifest : mapping
    tables : mapping of table to columns
        As published; only those of PHSafe are looked at.
    """
    if manifest.get("system") == DESCRIBED_TABLES:
        of_product = measured_sections(plan)
    else:
        of_product = _phsafe(plan, tables) if plan.product == PHSAFE.key else _safetab(plan) or measured_sections(plan)
    described = manifest["tables"]
    differences = [] if production is None else plan.differences(production)
    page = read_page(
        "release.html",
        plan=plan,
        manifest=manifest,
        left_out=leaves_out_small(manifest),
        symbol=plan.mechanism.symbol,
        unbounded=plan.loss(lambda m: m.sensitivity.unbounded),
        bounded=plan.loss(lambda m: m.sensitivity.bounded),
        rows=sum(table["rows"] for table in described.values()),
        delta=DEFAULT_DELTA,
        epsilon=plan.mechanism.epsilon(plan.loss(), DEFAULT_DELTA)
        if plan.mechanism.budget_name == "rho" and plan.is_finite
        else None,
        of_product=(*of_product, *criteria_sections({"": manifest.get("criteria", {})})),
        compared=plan.is_finite and production is not None,
        differences={
            "Measurement": [d.measurement for d in differences],
            "Of it": [d.value for d in differences],
            "Here": [d.here or "not measured" for d in differences],
            "In 2020": [d.there or "not measured" for d in differences],
        },
        files={
            "File": list(described),
            "Rows": [whole(table["rows"]) for table in described.values()],
            "Columns": [", ".join(table["columns"]) for table in described.values()],
        },
    )
    write_page(place, render(page))


def write_parts_report(
    place: NewFile, manifest: Mapping[str, Any], plans: Mapping[str, Plan], pages: Mapping[str, str]
) -> None:
    """Write the page of a release of parts: what each costs, and where its page is.

    Parameters
    ----------
    place : NewFile
        As `yupana.report.page.claim_page` gave it.
    manifest : mapping
    plans, pages : mapping
        Of each part its plan, and the name of its page in the same folder.
    """
    described = manifest["tables"]
    page = read_page(
        "parts.html",
        manifest=manifest,
        plans=plans,
        pages=pages,
        not_added=not_added(plans.values()),
        parts={
            "Part": list(plans),
            "Configuration": [plan.product for plan in plans.values()],
            "One": [plan.privacy_unit for plan in plans.values()],
            "Neighbours": [plan.neighbours.value for plan in plans.values()],
            "Loss": [f"{plan.mechanism.symbol} = {loss(plan.loss())}" for plan in plans.values()],
        },
        files={
            "File": list(described),
            "Rows": [whole(table["rows"]) for table in described.values()],
        },
    )
    write_page(place, render(page))


def _phsafe(plan: Plan, tables: Mapping[str, Columns]) -> Sequence[Section]:
    """Loss, budgets and margins, and margins as a share of the counts published."""
    if not plan.is_finite:
        return plan_sections(plan)
    first = plan.measurements[0].table
    cell = next(iter(CELLS[first]))
    relative = relative_section(plan, published_counts(tables), first, cell, "this release, noise included")
    return *plan_sections(plan), relative


def measured_sections(plan: Plan) -> Sequence[Section]:
    """What every measurement spends and how wide its margin is, for plans without pictures of their own."""
    # Those of TopDown are spread over a spine: too many to list.
    if not plan.is_finite or plan.paths:
        return ()
    shown = {
        "Table": [m.table for m in plan.measurements],
        "Level": [m.level for m in plan.measurements],
        "Cells": [whole(m.cells) for m in plan.measurements],
        plan.mechanism.symbol: [loss(m.budget) for m in plan.measurements],
        "Sensitivity": [loss(m.calibration) for m in plan.measurements],
        "σ": [rounded(m.sigma, 4) for m in plan.measurements],
        "Margin of error": [rounded(plan.margin(m), 4) for m in plan.measurements],
    }
    return sections(
        "plan_measured.html", plan=plan, shown=shown, margin_words=margin_words(plan.margins, plan.confidence)
    )


def _safetab(plan: Plan) -> Sequence[Section]:
    """Budgets and margins by level, and relative errors by size of group; nothing of TopDown, whose cells have none."""
    if not plan.is_finite or not plan.product.startswith("safetab"):
        return ()
    measured: dict[Level, Measurement] = {}
    for m in plan.measurements:
        if not m.name.startswith(DETAILED_ONLY) or BY_NAME[m.level] not in measured:
            measured[BY_NAME[m.level]] = m
    return *level_sections(plan), sizes_section(plan, measured)
