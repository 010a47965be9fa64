"""What a comparison of methods found, in words for the command line."""

from collections.abc import Iterator

from yupana.products.disclosure_control.differencing import FEW
from yupana.products.disclosure_control.results import SideBySide


def comparison_text(found: SideBySide) -> Iterator[str]:
    """A line for each method and size of the true count, kind of sums, and target of an attacker."""
    width = max(len(method.name) for method in found.methods) + 2
    heads = f"{'counts':>10}{'shown':>10}{'exact':>8}{'error':>9}{'bias':>9}{'90%':>6}"
    yield f"{'method':{width}}{'true count':>17}{heads}"
    for e in found.errors:
        error, bias = (
            f"{value:9.2f}" if value is not None else f"{'-':>9}" for value in (e.mean_absolute_error, e.bias)
        )
        most = f"{'-':>6}" if e.quantile_90 is None else f"{e.quantile_90:6.0f}"
        yield f"{e.method:{width}}{e.size:>17}{e.counts:10,}{e.shown:10,}{_share(e.exact)}{error}{bias}{most}"
    yield f"{'method':{width}}{'sums of':>17}{'number':>10}{'shown':>10}{'add up':>8}{'off by':>9}"
    for a in found.additivity:
        off = f"{'-':>9}" if a.mean_difference is None else f"{a.mean_difference:9.2f}"
        yield f"{a.method:{width}}{a.kind:>17}{a.sums:10,}{a.shown:10,}{_share(a.exact)}{off}"
    heads = f"{'number':>10}{'read off':>10}{'guessed':>9}{'certain':>9}"
    yield f"{'method':{width}}{f'1 to {FEW} of':>17}{heads}"
    for row in found.learnt:
        shares = f"{_share(row.face):>10}{_share(row.guess):>9}{_share(row.certain):>9}"
        yield f"{row.method:{width}}{row.target:>17}{row.number:10,}{shares}"
    yield from found.remarks
    yield "None of the methods but the release is differentially private."


def _share(value: float | None) -> str:
    return f"{'-':>8}" if value is None else f"{value:8.1%}"
