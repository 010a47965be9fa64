"""How `yupana audit epl` tells what it found."""

from collections.abc import Iterator, Sequence

from yupana.audit.empirical.loss import LossFinding, describe
from yupana.audit.empirical.series import PublishedLoss, counterpart
from yupana.report.numbers import epl


def epl_text(findings: Sequence[LossFinding], notes: Sequence[str], beside: Sequence[PublishedLoss]) -> Iterator[str]:
    """Lines of text: each series, what to know of all, and the results of 1940."""
    width = max(len(finding.series.name) for finding in findings)
    for finding in findings:
        yield f"{finding.series.name:{width}}  EPL {epl(finding.loss):>8}  {_how(finding)}"
        if finding.replicates is not None:
            r = finding.replicates
            yield f"{'':{width}}  mean {epl(r.mean)} [{epl(r.lower)}, {epl(r.upper)}], {r.number} x {r.what}"
        for warning in (*finding.warnings, *([finding.problem] if finding.problem else [])):
            yield f"{'':{width}}  warning: {warning}"
        yield from _of_1940(finding, findings, beside)
    yield from notes


def _how(finding: LossFinding) -> str:
    estimate, parts = finding.estimate, []
    if finding.known is not None:
        parts.append(f"by the law ({describe(finding.series.law)})")
    if estimate is not None:
        ends = f"[{epl(estimate.lower)}, {epl(estimate.upper)}] at {estimate.confidence:.0%}"
        first = f"estimated {epl(estimate.loss)} {ends}" if finding.known is not None else ends
        by = "neighbouring counts" if estimate.method == "neighbours" else f"bandwidth {estimate.bandwidth:.3g}"
        parts.append(f"{first}, {by}, range {estimate.low:.4g} to {estimate.high:.4g}")
    if finding.curve is not None:
        parts.append(f"as published, bandwidth {finding.curve.bandwidth:.3g}")
    if finding.residuals is not None:
        parts.append(f"{finding.residuals.number:,} residuals")
    return "; ".join(parts)


def _of_1940(finding: LossFinding, findings: Sequence[LossFinding], beside: Sequence[PublishedLoss]) -> Iterator[str]:
    geolevel, _, query = finding.series.name.partition(" ")
    other = counterpart(geolevel, [f.series.name.partition(" ")[0] for f in findings])
    rows = [row for row in beside if (row.geolevel, row.query) == (other, query)]
    if rows:
        yield "    1940, as published, by epsilon: " + ", ".join(f"{row.epsilon:g}: {row.loss:g}" for row in rows)
