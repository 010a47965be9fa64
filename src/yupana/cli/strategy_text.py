"""A strategy found, beside the one given, as lines for people."""

from collections.abc import Iterator

from yupana.products.topdown.strategy import Strategy
from yupana.topdown.configuration import Configuration


def strategy_text(strategy: Strategy) -> list[str]:
    """Lay out shares, variances and the bound."""
    return [*_shares(strategy), "", *_variances(strategy), "", *_loss(strategy)]


def _shares(strategy: Strategy) -> Iterator[str]:
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


def _variances(strategy: Strategy) -> Iterator[str]:
    width = max(len(f"{row.level} {row.target}") for row in strategy.rows)
    yield f"{'variance of an answer, mean':{max(width, 28)}} {'given':>12} {'found':>12} {'ratio':>8}"
    for row in strategy.rows:
        name = f"{row.level} {row.target}"
        yield f"{name:{max(width, 28)}} {row.given:12.2f} {row.found:12.2f} {row.ratio:8.3f}"


def _loss(strategy: Strategy) -> Iterator[str]:
    ratio = strategy.found_loss / strategy.given_loss
    yield f"loss: given {strategy.given_loss:.6g}, found {strategy.found_loss:.6g}, {ratio:.4f} of it"
    yield f"no shares of these queries have less than {strategy.bound:.6g} (gap {max(strategy.gap, 0.0):.1e})"
    untold = [level for level in strategy.found.without_detail() if level not in strategy.given.without_detail()]
    if untold:
        yield f"detailed is no longer measured at {', '.join(untold)}; counts from the root down will suffer (--least)"
    yield "variances are of unbiased estimates, before counts are made whole and non-negative (docs/strategies.md)"
