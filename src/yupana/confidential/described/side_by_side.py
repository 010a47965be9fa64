"""The tables of a description by the methods that offices use, beside its release: all compared with the truth."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import duckdb

from yupana.arrays import Ints
from yupana.audit.tradeoff import pure_guess, zcdp_guess
from yupana.confidential.described.comparison import additivity, errors_by_size, learnt
from yupana.confidential.described.measure import measure_tables
from yupana.confidential.described.record_keys import cell_keys
from yupana.confidential.described.records import open_described
from yupana.confidential.described.swapping import swap
from yupana.confidential.described.tabulate import tabulate
from yupana.confidential.request import RunRequest, check_accuracy_allowed
from yupana.errors import ConfigError
from yupana.plan.ledger import Ledger
from yupana.plan.measurement import Mechanism
from yupana.plan.plan import Plan
from yupana.privacy.entropy import Entropy
from yupana.privacy.exact import INFINITE
from yupana.products.described.description import DescribedLevel, Description
from yupana.products.described.postprocess import postprocessed
from yupana.products.described.published import tables_by_size
from yupana.products.disclosure_control.cell_key import CellKey
from yupana.products.disclosure_control.method import Method, Shown
from yupana.products.disclosure_control.published import PublishedCounts, published_counts
from yupana.products.disclosure_control.results import RELEASE, SideBySide
from yupana.products.disclosure_control.rounding import RandomRounding
from yupana.products.disclosure_control.suppression import Suppression
from yupana.products.disclosure_control.swapping import Swapping
from yupana.products.disclosure_control.uniform import uniform
from yupana.progress import Stopwatch
from yupana.release.folder import new_folder, write_manifest
from yupana.release.status import CONFIDENTIAL, INTERNAL, NOT_FOR_RELEASE
from yupana.release.tables import describe_reports, describe_tables, table_of, write_table
from yupana.report.charts import renderer
from yupana.report.page import render
from yupana.report.side_by_side import comparison_page
from yupana.version import __version__

REPORT = "report.html"


def write_side_by_side(
    description: Description, plan: Plan, methods: Sequence[Method], data: Path, out: Path, request: RunRequest
) -> SideBySide:
    """Compare methods with a release, and write what was found as tables and a report.

    Parameters
    ----------
    description : Description
    plan : Plan
        Of it.
    methods : sequence of Method
    data : Path
        The folder of the records: synthetic, or for internal use any.
    out : Path
        A folder, which says NOT FOR RELEASE, or CONFIDENTIAL after internal use.
    request : RunRequest

    Raises
    ------
    ConfigError
        If `check_accuracy_allowed` refuses, published totals decide the detail of a table, or charts cannot be drawn
        because the extra ``report`` is not installed.
    InputError, OutputError
        If the records break a rule, or ``out`` cannot be used.
    """
    check_accuracy_allowed(plan, data, request, "compare")
    if by_size := [table.name for table in tables_by_size(description)]:
        raise ConfigError(f"compare takes no published totals, which the detail of {', '.join(by_size)} needs")
    if description.blocks:
        raise ConfigError("compare takes no description with a file of blocks; describe areas by codes of a column")
    renderer()
    clock = Stopwatch(request.announce)
    status = CONFIDENTIAL if request.internal else NOT_FOR_RELEASE
    with new_folder(out, overwrite=request.overwrite, noisy=False, private=request.internal) as draft:
        found = _compare(description, plan, methods, data, request, clock)
        clock.start("writing the comparison")
        tables = [
            table_of("errors", found.errors, _ERRORS),
            table_of("additivity", found.additivity, _ADDITIVITY),
            table_of("differencing", found.learnt, _LEARNT),
        ]
        paths = {table.name: write_table(draft, table, "csv") for table in tables}
        (draft / REPORT).write_text(render(comparison_page(found, description.title, status)), encoding="utf-8")
        write_manifest(
            draft,
            {
                "yupana": __version__,
                "product": f"{plan.product} side by side",
                "status": status,
                "reasons": [
                    "it compares with true counts, and most of its methods are not differentially private",
                    *([INTERNAL] if request.internal else []),
                ],
                "tables": describe_tables(paths, tables),
                "reports": describe_reports(draft, [REPORT]),
            },
        )
    clock.stop()
    return found


_ERRORS = ("METHOD", "SIZE", "COUNTS", "SHOWN", "EXACT", "MEAN_ABSOLUTE_ERROR", "BIAS", "QUANTILE_90", "LARGEST")
_ADDITIVITY = ("METHOD", "KIND", "SUMS", "SHOWN", "EXACT", "MEAN_DIFFERENCE", "LARGEST")
_LEARNT = ("METHOD", "TARGET", "NUMBER", "FACE", "CERTAIN", "GUESS")


def _compare(
    description: Description, plan: Plan, methods: Sequence[Method], data: Path, request: RunRequest, clock: Stopwatch
) -> SideBySide:
    published = published_counts(description)
    wanted: dict[str, list[DescribedLevel]] = {}
    for of in published.levels:
        wanted.setdefault(of.table.name, []).append(of.level)
    clock.start("reading and checking the records")
    with open_described(description, data, request.memory, request.columns) as records:
        records.require_valid()
        clock.start("counting")
        exact = tabulate(records.db, description, wanted, limited=False).by_level
        limited = tabulate(records.db, description, wanted, limited=True).by_level
        truth = published.row(exact)
        shown: dict[Method, Shown] = {RELEASE: _released(published, description, plan, limited, request.entropy)}
        remarks: list[str] = []
        keys: Ints | None = None
        for method in methods:
            clock.start(method.name)
            entropy = request.entropy.branch(method.name)
            if isinstance(method, Swapping):
                shown[method], told = _swapped(records.db, description, published, wanted, method, entropy)
                remarks.append(told)
            elif isinstance(method, CellKey):
                if keys is None:
                    secret = request.entropy.branch("record keys").take(16).hex()
                    keys = published.row(cell_keys(records.db, description, wanted, secret))
                shown[method] = method.publish(truth, keys)
            elif isinstance(method, RandomRounding):
                draws = uniform(method.base, len(truth), entropy)
                shown[method] = method.publish(truth, draws)
            elif isinstance(method, Suppression):
                shown[method] = method.publish(truth)
    clock.start("comparing")
    return SideBySide(
        plan.product,
        tuple(shown),
        [row for method, of in shown.items() for row in errors_by_size(method, of, truth)],
        [row for method, of in shown.items() for row in additivity(method, of, truth, published)],
        [row for method, of in shown.items() for row in learnt(method, of, truth, published)],
        remarks,
        _best_guess(plan),
    )


def _best_guess(plan: Plan) -> float | None:
    """A bound for any attacker by the loss alone; None of a plan without noise."""
    loss = plan.loss(lambda m: m.proven.unbounded)
    if not plan.is_finite or loss == INFINITE:
        return None
    return pure_guess(float(loss)) if plan.mechanism is Mechanism.PURE else zcdp_guess(loss)


def _released(
    published: PublishedCounts, description: Description, plan: Plan, exact: Mapping[str, Ints], entropy: Entropy
) -> Shown:
    """What a release would show: its counts pass the door, and what the description says is done to them."""
    groups, asked = list(measure_tables(exact, description, Ledger(plan), entropy, {})), description.postprocess
    shown = published.shown(postprocessed(description, plan, groups) if asked else groups)
    return Shown(shown.values, shown.flags & (shown.values >= asked.suppress_below)) if asked.suppress_below else shown


def _swapped(
    db: duckdb.DuckDBPyConnection,
    description: Description,
    published: PublishedCounts,
    wanted: Mapping[str, Sequence[DescribedLevel]],
    method: Swapping,
    entropy: Entropy,
) -> tuple[Shown, str]:
    """The counts of swapped records, which are put back."""
    db.begin()
    try:
        told = swap(db, description, wanted, method, entropy)
        counts = published.row(tabulate(db, description, wanted, limited=False).by_level)
    finally:
        db.rollback()
    words = f"{method.title}: {told.risky:,} of {told.records:,} records were risky, and {told.swapped:,} were swapped."
    return Shown.whole(counts), words
