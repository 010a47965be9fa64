"""The report of a run: what its plan says and its tables show. It is as public as the release, and shows no truth."""

from collections.abc import Mapping, Sequence
from typing import Any

from yupana.files.new_file import NewFile
from yupana.plan.measurement import Mechanism
from yupana.plan.plan import DEFAULT_DELTA, Plan
from yupana.privacy.zcdp import epsilon_tight
from yupana.products.safetab.regions import LEVELS, Level
from yupana.report.html import bullets, paragraph, table
from yupana.report.numbers import loss, power_of_ten, rounded, whole
from yupana.report.page import Page, Section, render
from yupana.report.place import write_page


def write_release_report(place: NewFile, plan: Plan, manifest: Mapping[str, Any], sections: Sequence[Section]) -> None:
    """Write the page of a run."""
    tables = list(manifest["tables"].values())
    status = str(manifest["status"])
    page = Page(
        title=f"A release of {plan.product}",
        status=status,
        status_words="The guarantee covers this page: it shows what was published and planned, and no count without "
        "noise."
        if "reasons" not in manifest
        else f"{'; '.join(manifest['reasons'])}.",
        key_numbers=_key_numbers(plan, manifest),
        sections=(
            *sections,
            Section(
                "tables",
                "The tables",
                (
                    table(
                        {
                            "File": list(manifest["tables"]),
                            "Rows": [whole(described["rows"]) for described in tables],
                            "Columns": [", ".join(described["columns"]) for described in tables],
                        },
                        "What was published",
                    ),
                    paragraph("The guarantee takes as known to everybody:"),
                    bullets(*(item[0].upper() + item[1:] + "." for item in manifest["taken_as_public"])),
                ),
            ),
        ),
    )
    write_page(place, render(page))


def _key_numbers(plan: Plan, manifest: Mapping[str, Any]) -> dict[str, tuple[str, str]]:
    symbol = plan.mechanism.symbol
    own = plan.loss()
    numbers = {
        f"{symbol}, unbounded": (loss(plan.loss(lambda m: m.sensitivity.unbounded)), f"one {plan.privacy_unit} added"),
        f"{symbol}, bounded": (loss(plan.loss(lambda m: m.sensitivity.bounded)), f"one {plan.privacy_unit} changed"),
        "Rows": (whole(sum(t["rows"] for t in manifest["tables"].values())), f"in {len(manifest['tables'])} tables"),
    }
    if plan.mechanism is Mechanism.ZCDP and plan.is_finite:
        epsilon = rounded(epsilon_tight(own, DEFAULT_DELTA), 4)
        numbers[f"ε at δ = {power_of_ten(DEFAULT_DELTA)}"] = (epsilon, f"{plan.neighbours.value}, tight conversion")
    return numbers


def phsafe_sections(
    plan: Plan, production: Plan, tables: Mapping[str, Mapping[str, Sequence[str]]]
) -> tuple[Section, ...]:
    """Loss, budgets and margins of PHSafe, and margins as a share of the counts published."""
    from yupana.report.errors import CELLS, published_counts, relative_section  # noqa: PLC0415
    from yupana.report.plans import plan_sections  # noqa: PLC0415 (a report of another product needs none of it)

    if not plan.is_finite:
        return plan_sections(plan)
    first = plan.measurements[0].table
    counts = published_counts(tables)
    cell = next(iter(CELLS[first]))
    return (
        *plan_sections(plan),
        relative_section(plan, counts, first, cell, "this release, noise included"),
        differences_section(plan, production),
    )


def safetab_sections(
    plan: Plan, production: Plan, kinds: Mapping[str, str], kind_of: Mapping[str, str], beside: str = ""
) -> tuple[Section, ...]:
    """Budgets and margins of SafeTab by level, and relative errors by size of group."""
    from yupana.report.groups import sizes_section  # noqa: PLC0415
    from yupana.report.plans import level_sections  # noqa: PLC0415

    levels = {level.name: level for level in LEVELS}
    measured: dict[Level, Any] = {}
    for m in plan.measurements:
        if m.name in kind_of and (kind_of[m.name] != beside or levels[m.level] not in measured):
            measured[levels[m.level]] = m
    if not plan.is_finite:
        return ()
    return (
        *level_sections(plan, kinds, kind_of=kind_of, beside=beside),
        sizes_section(plan, measured),
        differences_section(plan, production),
    )


def differences_section(plan: Plan, production: Plan) -> Section:
    """What a plan changes against the run of 2020."""
    found = plan.differences(production)
    words = "Budgets, sensitivities and cells are those of the run of 2020."
    rows = [(d.measurement, d.value, d.here or "not measured", d.there or "not measured") for d in found]
    heads = ("Measurement", "Of it", "Here", "In 2020")
    columns: dict[str, Sequence[object]] = dict(zip(heads, zip(*rows, strict=True), strict=True)) if rows else {}
    content = table(columns, "What differs from the run of 2020") if rows else paragraph(words)
    return Section("against", "Against the run of 2020", (content,))
