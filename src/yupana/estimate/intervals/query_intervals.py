"""Intervals for cells of any release, by the product that its manifest names. Public; docs/intervals.md."""

from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path
from statistics import NormalDist
from typing import Final

import duckdb

from yupana.errors import ConfigError, OutputError
from yupana.estimate.intervals.intervals import IntervalEvidence, interval
from yupana.estimate.intervals.marginal import MarginalIntervals
from yupana.estimate.intervals.noisy_tables import NoisyTables
from yupana.estimate.intervals.tree import open_tree
from yupana.estimate.results import Intervals
from yupana.estimate.topdown_release import must_be_of_topdown
from yupana.files.database import open_database
from yupana.plan.measurement import z_value
from yupana.products import PRODUCTS
from yupana.products.gate import open_release
from yupana.products.topdown.verify import SYSTEM
from yupana.release.release import ReleaseFolder
from yupana.topdown.tree.intervals import INTERVALS

_WITHOUT_PLAN: Final = Fraction(95, 100)
"""Of single tables, which are of SafeTab."""


def intervals(
    release: Path, queries: Sequence[str], *, confidence: Fraction | None = None, noisy: Path | None = None
) -> Intervals:
    """Intervals for sums, differences, ratios and percentages of cells of a release.

    Parameters
    ----------
    release : Path
        Of PHSafe, SafeTab-P, SafeTab-H or TopDown; only the files that are asked for are read and checked.
    queries : sequence of str
        In the language of docs/intervals.md.
    confidence : Fraction, optional
        That of the release's margins of error if not given: 0.9 of PHSafe and TopDown, 0.95 of SafeTab.
    noisy : Path, optional
        The noisy measurements of a TopDown release.

    Raises
    ------
    ConfigError
        If a query is faulty, names what is not there, or no exact interval is known for it.
    InputError, OutputError
        If the release or the measurements are not what their manifests say.
    """
    opened = open_release(release)
    with open_database() as db:
        evidence = _evidence(db, opened, noisy)
        level = confidence or opened.confidence or _WITHOUT_PLAN
        is_tree = opened.product == SYSTEM
        # Margins of error of tables have z as the Bureau rounds it; the intervals of TopDown have it exactly.
        z = NormalDist().inv_cdf(float((1 + level) / 2)) if is_tree else z_value(level)
        found = tuple(interval(query, evidence, z) for query in queries)
        notes = evidence.notes
    # The status needs not follow from the plan: whether there was noise is asked of every cell that is used.
    return Intervals(opened.name, str(opened.manifest.get("status")), level, found, notes)


def _evidence(db: duckdb.DuckDBPyConnection, release: ReleaseFolder, noisy: Path | None) -> IntervalEvidence:
    product = PRODUCTS.of(release.manifest)
    if "system" in release.manifest and (product is None or product.key == SYSTEM):
        return _of_topdown(db, release, noisy)
    if product is None:
        raise OutputError(f"{release.folder} is of {release.name!r}, which has no noisy cells to give intervals of")
    if noisy is not None:
        raise ConfigError("--noisy-measurements is for releases of TopDown; the tables of others are noisy themselves")
    return NoisyTables(db, release)


def _of_topdown(db: duckdb.DuckDBPyConnection, release: ReleaseFolder, noisy: Path | None) -> IntervalEvidence:
    if noisy is not None:
        return open_tree(release, noisy)
    must_be_of_topdown(release)
    if any(name.startswith(f"{INTERVALS}/") for name in release.files.values()):
        return MarginalIntervals(db, release)
    raise OutputError(
        f"{release.folder} holds counts without known variances. Give the noisy measurements of its run with "
        "--noisy-measurements DIR; if none were written, only a new run can: topdown run --noisy-measurements DIR, or "
        "--estimator full-information for intervals of single answers. Its tables may have intervals of areas by code "
        "or name: --area KIND=WHICH"
    )
