"""A strategy found, beside the one given, as lines for people."""

from collections.abc import Iterator
from typing import Any

from yupana.products.product import Product
from yupana.products.strategy import Strategy
from yupana.topdown.configuration import Configuration


def strategy_text(strategy: Strategy[Configuration]) -> list[str]:
    """Lay out shares of TopDown, variances and the bound."""
    lines = [*_shares(strategy), "", *_variances(strategy), "", *_loss(strategy, "shares of these queries")]
    given, found = strategy.given.budget, strategy.found.budget
    if found != given:
        lines.append(f"rho: given {float(given):.9g}; the margins asked for need {float(found):.9g}")
    untold = [level for level in strategy.found.without_detail() if level not in strategy.given.without_detail()]
    if untold:
        lines.append(
            f"detailed is no longer measured at {', '.join(untold)}; counts from the root down will suffer (--least)"
        )
    told = "variances are of unbiased estimates, before counts are made whole and non-negative (docs/strategies.md)"
    return [*lines, told]


def budgets_text(product: Product[Any], strategy: Strategy[Any]) -> list[str]:
    """Lay out budgets, variances and the bound."""
    given, found = (product.entries(config) for config in (strategy.given, strategy.found))
    width = max(map(len, given)) + 2
    lines = [f"{'budget':{width}} {'given':>14} {'found':>14}"]
    lines += [
        f"{name:{width}} {float(of.budget):14.9f} {float(found[name].budget):14.9f}" for name, of in given.items()
    ]
    told = "variances are of counts as they are measured and added up (docs/strategies.md)"
    return [*lines, "", *_variances(strategy), "", *_loss(strategy, "budgets of this loss"), told]


def _shares(strategy: Strategy[Configuration]) -> Iterator[str]:
    queries = [query.name for of_level in strategy.given.queries.values() for query, _ in of_level]
    width = max(map(len, [*queries, *strategy.given.levels])) + 2
    yield f"{'share':{width}} {'given':>10} {'found':>10}"
    for level in strategy.given.levels:
        yield f"{level:{width}} {_level(strategy.given, level):10.4%} {_level(strategy.found, level):10.4%}"
        of_found = {query.factors: float(share) for query, share in strategy.found.queries[level]}
        for query, share in strategy.given.queries[level]:
            yield f"  {query.name:{width - 2}} {float(share):10.4%} {of_found[query.factors]:10.4%}"


def _level(config: Configuration, level: str) -> float:
    return float(config.shares[level])


def _variances(strategy: Strategy[Any]) -> Iterator[str]:
    width = max(len(f"{row.level} {row.target}") for row in strategy.rows)
    yield f"{'variance of an answer, mean':{max(width, 28)}} {'given':>12} {'found':>12} {'ratio':>8}"
    for row in strategy.rows:
        name = f"{row.level} {row.target}"
        yield f"{name:{max(width, 28)}} {row.given:12.2f} {row.found:12.2f} {row.ratio:8.3f}"


def _loss(strategy: Strategy[Any], of: str) -> Iterator[str]:
    ratio = strategy.found_loss / strategy.given_loss
    yield f"loss: given {strategy.given_loss:.6g}, found {strategy.found_loss:.6g}, {ratio:.4f} of it"
    yield f"no {of} have less than {strategy.bound:.6g} (gap {max(strategy.gap, 0.0):.1e})"
