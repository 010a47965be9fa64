"""The tables of a description by the methods that offices use, beside its release: all compared with the truth."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

import duckdb
import numpy as np

from yupana.arrays import Flags, Ints
from yupana.audit.tradeoff import pure_guess, zcdp_guess
from yupana.confidential.accuracy import write_reasons, write_tables
from yupana.confidential.described.records import open_described
from yupana.confidential.described.swapping import swap, uniform
from yupana.confidential.described.tabulate import measure_tables, tabulate
from yupana.confidential.request import RunRequest, check_accuracy_allowed
from yupana.confidential.tabulate.linked_tables import (
    Chain,
    LinkedCounts,
    LinkedTable,
    Tally,
    joined,
    make_batches,
    numbers_of,
)
from yupana.errors import ConfigError
from yupana.files.database import named, quoted
from yupana.plan.ledger import Ledger
from yupana.plan.measurement import Mechanism
from yupana.plan.plan import Plan
from yupana.privacy.entropy import Entropy
from yupana.privacy.exact import INFINITE
from yupana.products.described.description import Description
from yupana.products.described.postprocess import postprocessed
from yupana.products.described.published import tables_by_size
from yupana.products.disclosure_control.differencing import (
    FEW,
    Relations,
    likeliest_count,
    likeliest_difference,
    possible,
)
from yupana.products.disclosure_control.methods import (
    RELEASE,
    CellKey,
    Method,
    RandomRounding,
    Shown,
    Suppression,
    Swapping,
)
from yupana.products.disclosure_control.published import PublishedCounts, published_counts
from yupana.products.disclosure_control.results import AdditivityRow, LearntRow, SideBySide, SizeErrors
from yupana.progress import Stopwatch
from yupana.release.folder import new_folder
from yupana.release.status import CONFIDENTIAL, NOT_FOR_RELEASE
from yupana.release.tables import describe_reports, table_of
from yupana.report.charts import renderer
from yupana.report.page import render
from yupana.report.side_by_side import comparison_page

REPORT = "report.html"


def write_side_by_side(
    description: Description, plan: Plan, methods: Sequence[Method], data: Path, out: Path, request: RunRequest
) -> SideBySide:
    """Compare methods with a release, and write what was found as tables and a report.

    Parameters
    ----------
    plan : Plan
        Of it.
    data : Path
        The folder of the records: synthetic, or for internal use any.
    out : Path
        A folder, which says NOT FOR RELEASE, or CONFIDENTIAL after internal use.

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
        described = write_tables(draft, tables)
        (draft / REPORT).write_text(render(comparison_page(found, description.title, status)), encoding="utf-8")
        told = {"tables": described, "reports": describe_reports(draft, [REPORT])}
        write_reasons(draft, f"{plan.product} side by side", _NO_RELEASE, told, request)
    clock.stop()
    return found


_NO_RELEASE = "it compares with true counts, and most of its methods are not differentially private"
_ERRORS = ("METHOD", "SIZE", "COUNTS", "SHOWN", "EXACT", "MEAN_ABSOLUTE_ERROR", "BIAS", "QUANTILE_90", "LARGEST")
_ADDITIVITY = ("METHOD", "KIND", "SUMS", "SHOWN", "EXACT", "MEAN_DIFFERENCE", "LARGEST")
_LEARNT = ("METHOD", "TARGET", "NUMBER", "FACE", "CERTAIN", "GUESS")


def _compare(
    description: Description, plan: Plan, methods: Sequence[Method], data: Path, request: RunRequest, clock: Stopwatch
) -> SideBySide:
    published = published_counts(description)
    clock.start("reading and checking the records")
    with open_described(description, data, request.memory, request.columns) as records:
        records.require_valid()
        clock.start("counting")
        exact = tabulate(records.db, description, limited=False).by_level
        limited = tabulate(records.db, description, limited=True).by_level
        truth = published.row(exact)
        shown: dict[Method, Shown] = {RELEASE: _released(published, description, plan, limited, request.entropy)}
        remarks: list[str] = []
        keys: Ints | None = None
        for method in methods:
            clock.start(method.name)
            entropy = request.entropy.branch(method.name)
            if isinstance(method, Swapping):
                shown[method], told = _swapped(records.db, description, published, method, entropy)
                remarks.append(told)
            elif isinstance(method, CellKey):
                if keys is None:
                    secret = request.entropy.branch("record keys").take(16).hex()
                    keys = published.row(cell_keys(records.db, description, secret))
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
    method: Swapping,
    entropy: Entropy,
) -> tuple[Shown, str]:
    """The counts of swapped records, which are put back."""
    db.begin()
    try:
        told = swap(db, description, method, entropy)
        counts = published.row(tabulate(db, description, limited=False).by_level)
    finally:
        db.rollback()
    words = f"{method.title}: {told.risky:,} of {told.records:,} records were risky, and {told.swapped:,} were swapped."
    return Shown.whole(counts), words


def cell_keys(db: duckdb.DuckDBPyConnection, description: Description, secret: str) -> Mapping[str, Ints]:
    """Add up the keys of the records of every cell, modulo 2^64.

    The key of a record is a hash of all its fields and a secret, so that the same records have the same sum wherever
    they are counted. Of records alike in all fields each has a key of its own. No limit holds.

    Returns
    -------
    mapping of ``table/level`` to int64 array, shape (areas by groups of the level, cells)
        The sums as bits.
    """
    keyed = {named(file.schema.relation) for file in description.record_files if file.key}

    def add_up(
        db: duckdb.DuckDBPyConnection, chain: Chain, tables: Sequence[LinkedTable], key: str
    ) -> dict[str, LinkedCounts]:
        del key
        batches = make_batches(chain, tables)
        fields = ", ".join(chain[0].header)
        alike = "" if chain[0].relation in keyed else f", row_number() OVER (PARTITION BY {fields})"
        hashed = f"hash({quoted(secret)}, {fields}{alike}) AS the_key"
        rows = joined(chain, [file.header for file in chain])
        found: dict[str, LinkedCounts] = {}
        for batch, number in zip(batches, numbers_of(batches), strict=True):
            query = (
                f"SELECT number::BIGINT, (sum(the_key) % {1 << 64})::UBIGINT "
                f"FROM (SELECT {number.rpartition(' AS ')[0]} AS number, {hashed} FROM {rows}) GROUP BY 1"
            )
            numbers, keys = (np.asarray(column) for column in db.execute(query).fetchnumpy().values())
            # As bits: sums of whole numbers in arrays are modulo 2^64, too.
            tally = Tally(numbers.astype(np.int64), keys.astype(np.uint64).view(np.int64))
            found |= {table.name: batch.counts(table, tally, 0) for table in batch.tables}
        return found

    return tabulate(db, description, limited=False, count=add_up).by_level


SIZES: Final = (
    ("0", 0),
    ("1 to 4", 1),
    ("5 to 9", 5),
    ("10 to 99", 10),
    ("100 to 999", 100),
    ("1,000 to 9,999", 1000),
    ("10,000 and more", 10_000),
)
"""Of true counts: what a size is called, and the least of it."""


def errors_by_size(method: Method, shown: Shown, truth: Ints) -> Iterator[SizeErrors]:
    """How far published counts are from true ones, for each size that occurs."""
    of = np.searchsorted([least for _, least in SIZES], truth, side="right") - 1
    for number, (size, _) in enumerate(SIZES):
        here = of == number
        if not here.any():
            continue
        errors = (shown.values - truth)[here & shown.flags]
        off = np.abs(errors)
        told = (
            (float((off == 0).mean()), float(off.mean()), float(errors.mean()), float(_quantile(off)), float(off.max()))
            if off.size
            else (None,) * 5
        )
        yield SizeErrors(method.name, size, int(here.sum()), off.size, *told)


def _quantile(off: Ints) -> int:
    """The least of the errors that nine in ten do not pass."""
    return int(np.sort(off)[-(-9 * off.size // 10) - 1])


def additivity(method: Method, shown: Shown, truth: Ints, published: PublishedCounts) -> Iterator[AdditivityRow]:
    """How far published sums are from the sums of their parts, for each kind; sums of no record are left out."""
    for kind, relations in published.sums.items():
        some = truth[relations.sums] > 0
        if not some.any():
            continue
        whole = some & shown.flags[relations.sums] & (relations.added((~shown.flags).astype(np.int64)) == 0)
        off = np.abs(shown.values[relations.sums] - relations.added(shown.values))[whole]
        told = (float((off == 0).mean()), float(off.mean()), float(off.max())) if off.size else (None,) * 3
        yield AdditivityRow(method.name, kind, int(some.sum()), off.size, *told)


def learnt(method: Method, shown: Shown, truth: Ints, published: PublishedCounts) -> Iterator[LearntRow]:
    """What is learnt of small differences between nested counts, and of small counts."""
    (low, high), bounds = possible(
        method, shown, Relations.joined([*published.sums.values()]), [*published.nested.values()]
    )
    said: list[int | None] = [
        value if flag else None for value, flag in zip(shown.values.tolist(), shown.flags.tolist(), strict=True)
    ]
    for (target, of), (least, most) in zip(published.nested.items(), bounds, strict=True):
        true = of.differences(truth)
        small = _small(true)
        pairs = zip(
            of.outer[small].tolist(), of.inner[small].tolist(), least[small].tolist(), most[small].tolist(), strict=True
        )
        guess = [likeliest_difference(method, said[outer], said[inner], a, b) for outer, inner, a, b in pairs]
        readable = (shown.flags[of.outer] & shown.flags[of.inner])[small]
        face = readable & (of.differences(shown.values) == true)[small]
        yield _learnt(method, target, true[small], face, (least == most)[small], guess)
    small = _small(truth)
    single = zip(small.tolist(), low[small].tolist(), high[small].tolist(), strict=True)
    guess = [likeliest_count(method, said[place], a, b) for place, a, b in single]
    face = (shown.flags & (shown.values == truth))[small]
    yield _learnt(method, "counts", truth[small], face, (low == high)[small], guess)


def _small(values: Ints) -> Ints:
    return np.flatnonzero((values > 0) & (values <= FEW))


def _learnt(method: Method, target: str, true: Ints, face: Flags, certain: Flags, guess: list[int]) -> LearntRow:
    if not len(true):
        return LearntRow(method.name, target, 0, None, None, None)
    right = np.array(guess) == true
    return LearntRow(method.name, target, len(true), float(face.mean()), float(certain.mean()), float(right.mean()))
