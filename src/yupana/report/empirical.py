"""Empirical privacy loss as a page: residuals against counts, their density, and EPL(x).

The page shows exact counts, or what follows from them: it is as confidential as they are.
"""

import itertools
import math
from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from yupana.arrays import Floats, Ints
from yupana.audit.empirical.kernel_density import DISTRICTS, PANELS, PublishedRow, log_density
from yupana.audit.empirical.loss import LossFinding, describe
from yupana.audit.empirical.series import PublishedLoss, Residuals
from yupana.privacy.laws import Law
from yupana.report.charts import (
    BLUE,
    GREY,
    ORANGE,
    Mark,
    curve_with_band,
    dots_about_diagonal,
    dots_about_zero,
    histogram_with_law,
)
from yupana.report.numbers import epl, whole
from yupana.report.page import Chart, Figure, render

_DOTS: Final = DISTRICTS
"""Of one series, at most: all that the paper draws."""

_DOTS_IN_ALL: Final = 12_000
_KEY_NUMBERS: Final = 9
_BINS: Final = 60


def epl_page(
    findings: Sequence[LossFinding],
    notes: Sequence[str] = (),
    beside: Sequence[PublishedLoss] = (),
    rows: Sequence[PublishedRow] = (),
    printed: Sequence[float | None] = (),
) -> str:
    """Lay out the page of an audit.

    Parameters
    ----------
    findings : sequence of LossFinding
        Each has its charts, however many there are.
    beside : sequence of PublishedLoss
        The results of 1940, for a release of TopDown.
    rows : sequence of PublishedRow
        Of Table SA1.
    printed : sequence of float or None
        What the paper gives for each finding, for its figures.

    Raises
    ------
    ConfigError
        If charts cannot be drawn.
    """
    told = [finding for finding in findings if finding.loss is not None]
    # Those with something to see: a law alone has no residuals.
    drawn = [finding for finding in told if finding.residuals is not None]
    dots = min(_DOTS, _DOTS_IN_ALL // max(1, len(drawn)))
    return render(
        "empirical.html",
        mode=findings[0].request.mode,
        key_numbers=[(f.series.name, epl(f.loss), _interval(f)) for f in told[:_KEY_NUMBERS]],
        notes=notes,
        warnings=_warnings(findings),
        summary=_summary(findings, printed),
        panels=PANELS,
        table_sa1=_table_sa1(rows) if rows else None,
        beside=_beside(beside) if beside else None,
        series=[_drawn(finding, finding.residuals, dots) for finding in drawn if finding.residuals is not None],
    )


def _interval(finding: LossFinding) -> str:
    estimate = finding.estimate
    if finding.known is not None:
        seen = f"; estimated {epl(estimate.loss)}" if estimate is not None else ""
        return f"by the law: {describe(finding.series.law)}{seen}"
    if estimate is not None:
        return f"{epl(estimate.lower)} to {epl(estimate.upper)} at {estimate.confidence:.0%} confidence"
    replicates = finding.replicates
    if replicates is not None:
        return f"{epl(replicates.lower)} to {epl(replicates.upper)} over {replicates.number} {replicates.what}"
    return ""


def _warnings(findings: Sequence[LossFinding]) -> list[tuple[str, str]]:
    """Each warning with the series it is about, the first four by name."""
    words: dict[str, list[str]] = {}
    for finding in findings:
        for warning in (*finding.warnings, *([finding.problem] if finding.problem else [])):
            words.setdefault(warning, []).append(finding.series.name)
    return [(f"{', '.join(names[:4])}{' …' * (len(names) > 4)}", warning) for warning, names in words.items()]


def _summary(findings: Sequence[LossFinding], printed: Sequence[float | None]) -> dict[str, list[str]]:
    return {
        "Counts": [f.series.name for f in findings],
        "Residuals": [whole(f.residuals.number) if f.residuals is not None else "–" for f in findings],
        "EPL": [epl(f.loss) for f in findings],
        **({"Printed": ["–" if value is None else f"{value:g}" for value in printed]} if printed else {}),
        "Interval": [_interval(f) or "–" for f in findings],
        "Bandwidth": [f"{f.request.factor:g} sd" for f in findings],
        "Range": [f"{f.estimate.low:.4g} to {f.estimate.high:.4g}" if f.estimate else "–" for f in findings],
        "Replicates": [
            f"{epl(r.mean)} ({epl(r.lower)} to {epl(r.upper)}), {r.number} × {r.what}" if r else "–"
            for r in (f.replicates for f in findings)
        ],
    }


def _table_sa1(rows: Sequence[PublishedRow]) -> dict[str, list[str]]:
    return {
        "Panel": [row.panel for row in rows],
        "Value": [f"{row.value:g}" for row in rows],
        "EPL mean": [f"{row.mean:.4f}" for row in rows],
        "2.5th percentile": [f"{row.lower:.4f}" for row in rows],
        "97.5th percentile": [f"{row.upper:.4f}" for row in rows],
    }


def _beside(rows: Sequence[PublishedLoss]) -> dict[str, list[str]]:
    epsilons = sorted({row.epsilon for row in rows})
    groups = dict.fromkeys((row.geolevel, row.query) for row in rows)
    losses = {(row.geolevel, row.query, row.epsilon): row.loss for row in rows}
    return {
        "Counts of 1940": [f"{geolevel} {query}" for geolevel, query in groups],
        **{f"ε {e:g}": [epl(losses.get((*group, e))) for group in groups] for e in epsilons},
    }


def _drawn(finding: LossFinding, residuals: Residuals, dots: int) -> dict[str, Any]:
    exact = finding.series.exact
    chosen = np.sort(np.random.default_rng(1).permutation(exact.size)[:dots])
    some = f", {whole(chosen.size)} of {whole(exact.size)} chosen at random" if exact.size > dots else ""
    name = finding.series.name
    return {
        "title": name[:1].upper() + name[1:],
        "some": some,
        # Without exact counts that differ there is nothing to draw the residuals against.
        "scatter": _scatter(finding, chosen, some) if np.ptp(exact) > 0 else None,
        "density": _density(finding, residuals),
        "curve": _curve(finding),
        "band": finding.curve is None,
    }


def _scatter(finding: LossFinding, chosen: Ints, some: str) -> Figure:
    exact, noisy = finding.series.exact, finding.series.noisy
    of_noisy, of_residuals = (
        [{"x": float(x), "y": round(float(y), 6)} for x, y in zip(exact[chosen], values, strict=True)]
        for values in (noisy[chosen], (noisy - exact)[chosen])
    )
    written = [f"{point['x']:g}" for point in of_noisy]
    return Figure(
        (
            Chart(
                f"Noisy against exact counts of {finding.series.name}{some}.",
                lambda width: dots_about_diagonal(of_noisy, width, x="exact count", y="noisy count"),
                {"Exact": written, "Noisy": [f"{p['y']:g}" for p in of_noisy]},
                title="(a) Noisy against exact counts",
            ),
            Chart(
                f"Residuals against exact counts of {finding.series.name}{some}.",
                lambda width: dots_about_zero(of_residuals, width, x="exact count", y="noisy − exact"),
                {"Exact": written, "Residual": [f"{p['y']:g}" for p in of_residuals]},
                title="(b) Residuals against exact counts",
            ),
        )
    )


def _density(finding: LossFinding, residuals: Residuals) -> Figure:
    low, high = residuals.percentile(0.5), residuals.percentile(99.5)
    width = max(1, math.ceil((high - low + 1) / _BINS))
    edges = np.arange(math.floor(low) - 0.5, high + width + 0.5, width)
    shares = np.histogram(residuals.values, edges, weights=residuals.times)[0] / residuals.number
    middles = (edges[:-1] + edges[1:]) / 2
    # The published curve is that of the kernel density, whatever the law.
    law = finding.series.law if finding.request.mode == "sound" else None
    expected = _expected(finding, residuals, edges, law)
    rows = [
        {"low": a, "high": b, "middle": m, "observed": o, "expected": e}
        for a, b, m, o, e in zip(
            edges[:-1].tolist(), edges[1:].tolist(), middles.tolist(), shares.tolist(), expected, strict=True
        )
    ]
    line = "probability by the law of the noise" if law is not None else "kernel density"
    chart = Chart(
        f"How often each residual occurs, and the {line}.",
        lambda pixels: histogram_with_law(rows, pixels, x="residual", y="share"),
        {
            "From": [f"{row['low']:g}" for row in rows],
            "To": [f"{row['high']:g}" for row in rows],
            "Observed": [f"{row['observed']:.5f}" for row in rows],
            line.capitalize(): [f"{row['expected']:.5f}" for row in rows],
        },
        title="Density of the residuals",
    )
    return Figure((chart,), legend=(Mark("observed", BLUE), Mark(line, ORANGE, "line")))


def _expected(finding: LossFinding, residuals: Residuals, edges: Floats, law: Law | None) -> list[float]:
    if law is not None:
        cumulated = [law.cdf(math.floor(edge)) for edge in edges.tolist()]
        return [after - before for before, after in itertools.pairwise(cumulated)]
    bandwidth = finding.curve.bandwidth if finding.curve else finding.request.factor * residuals.deviation
    middles = (edges[:-1] + edges[1:]) / 2
    densities = np.exp(log_density(residuals, middles, bandwidth)) * np.diff(edges)
    return [float(value) for value in densities]


def _curve(finding: LossFinding) -> Figure:
    estimate, curve = finding.estimate, finding.curve
    if curve is not None:
        loss, x, y, low, high = curve.largest, curve.points, curve.loss, curve.loss, curve.loss
    elif estimate is not None:
        loss = estimate.loss
        x, y, low, high = estimate.points, estimate.curve, estimate.curve_low, estimate.curve_high
    else:
        raise AssertionError("a finding with residuals has a curve")
    kept = np.linspace(0, x.size - 1, min(x.size, 300)).astype(int)
    limit = 3 * max(0.1, float(np.abs(y[np.isfinite(y)]).max(initial=0)))
    rows = [
        {"x": float(x[i]), "y": float(y[i]), "low": max(-limit, float(low[i])), "high": min(limit, float(high[i]))}
        for i in kept
        if math.isfinite(y[i])
    ]
    marks = [{"y": sign * loss, "colour": ORANGE} for sign in (-1, 1) if math.isfinite(loss)]
    if finding.known is not None:
        marks += [{"y": sign * finding.known.loss, "colour": GREY} for sign in (-1, 1)]
    legend = [Mark("EPL(x)", BLUE, "line"), Mark(f"EPL {epl(loss)}", ORANGE, "line")]
    if finding.known is not None:
        legend.append(Mark(f"by the law {epl(finding.known.loss)}", GREY, "line"))
    chart = Chart(
        f"EPL(x) of {finding.series.name}.",
        lambda width: curve_with_band(rows, marks, width, x="residual x", y="log p(x) − log p(x + 1)"),
        {
            "x": [f"{row['x']:g}" for row in rows],
            "EPL(x)": [f"{row['y']:.4f}" for row in rows],
            "Low": [f"{row['low']:.4f}" for row in rows],
            "High": [f"{row['high']:.4f}" for row in rows],
        },
        title="EPL(x)",
    )
    return Figure((chart,), legend=tuple(legend))
