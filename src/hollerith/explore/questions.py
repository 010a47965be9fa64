"""Solve for it: the questions of the page, answered by `hollerith.plan.targets`."""

from collections.abc import Mapping
from fractions import Fraction

from hollerith.explore.numbers import positive
from hollerith.explore.product import Chosen, Product
from hollerith.explore.scenario import Fault, RefusedError, Settings
from hollerith.explore.view import solved
from hollerith.plan.targets import equal_errors, least_budgets


def least(product: Product, settings: Settings, chosen: Chosen, targets: Mapping[str, str]) -> Settings:
    """The least total that meets margins of error by column of the grid; what has none keeps its budget."""
    faults: list[Fault] = []
    read = {c: positive(f"target.{c}", text, "a margin of error", faults) for c, text in targets.items() if text}
    wanted = {
        entry: margin
        for (_, column), entry in product.form.cells.items()
        if entry in chosen.budgets and (margin := read.get(column)) is not None
    }
    if not faults and not wanted:
        faults.append(Fault("targets", "type a margin of error for at least one level that is switched on"))
    _refuse_unreachable(wanted, faults)
    if faults:
        raise RefusedError(faults)
    needs = [need for entry, margin in wanted.items() for need in product.need(chosen, entry, margin)]
    return solved(settings, least_budgets(needs, chosen.plan.confidence, chosen.plan.mechanism))


def equal(
    product: Product, settings: Settings, chosen: Chosen, total: str, weights: Mapping[str, str]
) -> tuple[Settings, float]:
    """The budgets of a total whose relative errors are equal, or in the proportion of weights by column."""
    faults: list[Fault] = []
    spend = positive("total", total, "the total", faults)
    read = {c: positive(f"weight.{c}", text, "a weight", faults) for c, text in weights.items() if text}
    if spend is not None and not Fraction(1, 10**9) <= spend <= 10**9:
        faults.append(Fault("total", "the total must be between 1e-9 and 1e9"))
    if any(w is not None and not Fraction(1, 10**6) <= w <= 10**6 for w in read.values()):
        faults.append(Fault("total", "weights must be between 1e-6 and 1e6"))
    sizes = product.sizes(chosen)
    column_of = {entry: column for (_, column), entry in product.form.cells.items()}
    chosen_sizes = {
        entry: sizes[entry] / (read.get(column_of[entry]) or 1) for entry in chosen.budgets if entry in sizes
    }
    if len(chosen_sizes) < len(chosen.budgets):
        unknown = next(entry for entry in chosen.budgets if entry not in sizes)
        faults.append(Fault("total", f"no count is known to set the error of {unknown} against; switch it off"))
    if faults or spend is None:
        raise RefusedError(faults)
    needs = [need for entry, size in chosen_sizes.items() for need in product.need(chosen, entry, size)]
    answer = equal_errors(needs, spend, chosen.plan.confidence, chosen.plan.mechanism)
    return solved(settings, answer.budgets), answer.error


def _refuse_unreachable(wanted: Mapping[str, Fraction], faults: list[Fault]) -> None:
    if any(not Fraction(1, 10**6) <= margin <= 10**12 for margin in wanted.values()):
        faults.append(Fault("targets", "no useful noise has such a margin of error: it must be between 1e-6 and 1e12"))
