"""Observed errors in words for the command line, one table for each kind of product."""

from collections.abc import Iterator, Sequence
from typing import Any


def cells_text(rows: Sequence[Any]) -> Iterator[str]:
    """Of PHSafe and of described tables: a line for each cell, whose names may be of any length."""
    heads = f"{'n':>8}{'expected':>10}{'noise':>10}{'within':>9}{'with truncation':>17}{'bias':>10}"
    names = [("table", "level", "iteration", "cell"), *((r.table, r.level, r.iteration, str(r.cell)) for r in rows)]
    widths = [max(map(len, column)) + 2 for column in zip(*names, strict=True)]
    starts = ["".join(map(str.ljust, some, widths)) for some in names]
    yield starts[0] + heads
    for start, row in zip(starts[1:], rows, strict=True):
        yield (
            f"{start}{row.count:8}{row.expected_moe:10.1f}{row.experimental_moe:10.1f}{row.coverage:9.2%}"
            f"{row.experimental_moe_with_truncation:17.1f}{row.bias_from_truncation:10.2f}"
        )


def groups_text(rows: Sequence[Any]) -> Iterator[str]:
    """Of SafeTab: a line for each size of a population group."""
    yield (
        f"{'table':10}{'level':14}{'size':>22}{'groups':>12}{'share':>9}{'n':>12}{'expected':>10}{'noise':>10}"
        f"{'within':>9}{'cap':>10}"
    )
    for row in rows:
        level = f"{row.region_type} {row.iteration_level}{'*' * row.detailed_only}"
        margins = (row.expected_moe, row.experimental_moe, row.race_cap_bias)
        expected, found, bias = ("-" if m is None else f"{m:.1f}" for m in margins)
        yield (
            f"{row.table:10}{level:14}{row.size:>22}{row.groups:12,}{row.share:9.2%}{row.count:12,}"
            f"{expected:>10}{found:>10}{'-' if row.coverage is None else f'{row.coverage:.2%}':>9}{bias:>10}"
        )
    yield "cap: how many records the limit on race codes adds to a group, on average"
    if any(row.detailed_only for row in rows):
        yield "* iterations of which only totals are made"


def counts_text(rows: Sequence[Any]) -> Iterator[str]:
    """Of TopDown: a line for each kind of areas and query."""
    yield "CONFIDENTIAL: these errors tell the truth about the records."
    yield f"{'areas':22} {'query':24} {'population':>16} {'number':>8} {'MAE':>10} {'RMSE':>10} {'bias':>10}"
    for row in rows:
        yield (
            f"{row.geolevel:22} {row.query:24} {row.population:>16} {row.areas:8,} {row.mae:10.3f} {row.rmse:10.3f} "
            f"{row.bias:+10.3f}"
        )
