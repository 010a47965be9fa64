"""Budgets of a TopDown run from margins of error, or from a total: shares follow from them. Public."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from fractions import Fraction

from yupana.plan.budgets import Need
from yupana.privacy.exact import Budget
from yupana.topdown.configuration import Configuration, Passes
from yupana.topdown.plan import SENSITIVITY, measurement_name
from yupana.topdown.queries import Query


def entries(configuration: Configuration) -> dict[str, Budget]:
    """The budget of every query of every geolevel, such as ``State total``; zeros included."""
    return {
        measurement_name(level, query): configuration.budget * whole if (whole := of_level * share) else Fraction(0)
        for level, of_level in configuration.shares.items()
        for query, share in configuration.queries[level]
    }


def needs(margins: Mapping[str, Fraction]) -> Iterable[Need]:
    """What margins of error (or sizes) of noisy answers ask of the budgets."""
    return [Need(name, margin, SENSITIVITY.bounded) for name, margin in margins.items()]


def with_budgets(configuration: Configuration, budgets: Mapping[str, Fraction]) -> Configuration:
    """The configuration with these budgets, all finite and named as by `entries`.

    Their sum is the new budget, and shares of geolevels and queries are their parts. What has nothing leaves its
    estimation pass; what had nothing joins the last.
    """
    total = sum(budgets.values(), Fraction(0))
    shares, queries, passes = {}, {}, {}
    for level, old in configuration.queries.items():
        of_query = {query: budgets[measurement_name(level, query)] for query, _ in old}
        of_level = sum(of_query.values(), Fraction(0))
        shares[level] = of_level / total
        queries[level] = tuple((query, of_query[query] / of_level) for query, _ in old) if of_level else old
        measured = [query for query, share in queries[level] if share > 0]
        passes[level] = replace(configuration.passes[level], estimate=_estimate(configuration.passes[level], measured))
    spine = replace(configuration.spine, shares=tuple(shares[level] for level in configuration.levels))
    return replace(configuration, budget=total, queries=queries, passes=passes, spine=spine)


def _estimate(passes: Passes, measured: list[Query]) -> tuple[tuple[Query, ...], ...]:
    kept = [tuple(query for query in queries if query in measured) for queries in passes.estimate]
    new = tuple(query for query in measured if not any(query in queries for queries in kept))
    kept = [queries for queries in kept if queries]
    if not new:
        return tuple(kept)
    return (*kept[:-1], (*kept[-1], *new)) if kept else (new,)
