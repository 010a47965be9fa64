"""How far noisy counts are from the truth, whatever the product; refused of records that may be real."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from yupana.arrays import Ints
from yupana.confidential.product_counter import C, E, Observed, counter_of
from yupana.confidential.request import RunRequest, check_accuracy_allowed
from yupana.confidential.run import product_plan
from yupana.files.arrow import ArrowTable
from yupana.plan.ledger import Ledger, Meter
from yupana.plan.measurement import Measurement
from yupana.plan.plan import Plan
from yupana.privacy.entropy import Entropy
from yupana.products.product import Product
from yupana.products.tables import Groups
from yupana.release.folder import new_folder, write_manifest
from yupana.release.recipe import ACCURACY
from yupana.release.release import typed_columns
from yupana.release.status import CONFIDENTIAL, INTERNAL, NOT_FOR_RELEASE, WITH_TRUTH
from yupana.release.tables import ReleaseTable, describe_tables, write_table
from yupana.version import __version__


def accuracy(
    product: Product[C], config: C, data: Path, request: RunRequest | None = None, *, trials: int = 1
) -> Observed:
    """Count records once, measure them ``trials`` times, and compare: how accurate a configuration is.

    Parameters
    ----------
    product, config, request
        As of `yupana.confidential.run.run`.
    data : Path
        The folder of the records: synthetic, or for internal use any.
    trials : int
        Noise is drawn anew in each.

    Raises
    ------
    ConfigError
        If `check_accuracy_allowed` refuses: errors tell the truth, and repeated runs spend the budget each time.
    InputError
        If the records break a rule.
    """
    request = request or RunRequest()
    counter, plan = counter_of(product.key, config, request), product_plan(product, config, request)
    check_accuracy_allowed(plan, data, request)
    return counter.observe(plan, data, trials)


def write_accuracy(observed: Observed, out: Path, request: RunRequest) -> None:
    """Write what was observed and a manifest, which says NOT FOR RELEASE, or CONFIDENTIAL after internal use.

    Raises
    ------
    OutputError
        If ``out`` cannot be used.
    """
    with new_folder(out, overwrite=request.overwrite, private=request.internal) as draft:
        told = {**observed.told, "tables": write_tables(draft, observed.tables)}
        write_reasons(draft, f"{observed.product}{ACCURACY}", WITH_TRUTH, told, request)


def write_tables(draft: Path, tables: Sequence[ReleaseTable]) -> dict[str, Any]:
    """Write tables as text, and return what a manifest says of them."""
    paths = {table.name: write_table(draft, table, "csv") for table in tables}
    return describe_tables(draft, paths, tables)


def write_reasons(draft: Path, product: str, reason: str, told: Mapping[str, Any], request: RunRequest) -> None:
    """Write the manifest of what compares with the truth, and why it is no release."""
    status = CONFIDENTIAL if request.internal else NOT_FOR_RELEASE
    reasons = [reason, *([INTERNAL] if request.internal else [])]
    head = {"yupana": __version__, "product": product, "status": status, "reasons": reasons}
    write_manifest(draft, {**head, **told})


class Accuracy(ArrowTable):
    """What was observed, as a table; it tells the truth. ``observed`` has the rows as objects, and finer tables."""

    __slots__ = ("observed",)
    observed: Observed

    @classmethod
    def told(cls, observed: Observed) -> "Accuracy":
        """Make the table of what was observed."""
        table = cls.of(typed_columns(observed.tables[0]))
        table.observed = observed
        return table

    def _repr_html_(self) -> str:
        return f"<p>Confidential: it tells the truth about records.</p>{super()._repr_html_()}"


class Seen(NamedTuple):
    """Some population groups as they are published, and what is true of them in the same cells."""

    noisy: Groups  # what a release would show
    # the same groups and those that are left out after they were measured; of each record counts what a run counts
    truth: Groups
    whole: Groups  # the groups of `truth`; all of every record counts

    @property
    def shown(self) -> Ints:
        """Places of the groups of ``noisy`` among those of ``truth``."""
        true, shown = _keys(self.truth), _keys(self.noisy)
        places = np.searchsorted(true, shown)
        if not np.array_equal(true[places], shown):
            raise RuntimeError("the truth is of other groups than what was measured")
        return places


def _keys(groups: Groups) -> Ints:
    """One number for each group, ascending as areas and iterations do."""
    return groups.area.places.astype(np.int64) * len(groups.iteration.values) + groups.iteration.places


Measure = Callable[[E, Ledger], Iterable[Groups]]
"""Passes exact counts through the door of a ledger."""


def observe_at_the_door(
    exact: E, whole: E, plan: Plan, measure: Measure[E], uncut: Measure[E], choosing: Iterable[str]
) -> Iterator[Seen]:
    """Measure exact counts once, and let the truth out through the same door, group by group beside the noise.

    Parameters
    ----------
    exact, whole
        Exact counts of what a run counts of each record, and of all of it.
    measure, uncut : callable
        As a run measures, and the same without leaving out or cutting off anything after the door.
    choosing : iterable of str
        Names of the measurements that are not published, but decide in which cells a group is measured. The truth is
        told in the cells that the noise has chosen.
    """
    noted: Noted = {}
    # In step: what the truth replays has been drawn by then.
    for seen in zip(
        measure(exact, WatchedLedger(plan, noted, frozenset(choosing))),
        uncut(exact, WatchedLedger(plan, noted)),
        uncut(whole, WatchedLedger(plan, noted)),
        strict=True,
    ):
        yield Seen(*seen)


def sources_of_trials(entropy: Entropy, trials: int) -> Iterator[Entropy]:
    """The noise of each trial: the first has that of a release of the same seed, each other its own."""
    for trial in range(trials):
        yield entropy.branch(f"trial {trial}") if trial else entropy


Noted = dict[tuple[str, int], NDArray[np.int64]]
"""Noisy counts of a piece, by its measurement and the number of its first group."""


@dataclass(slots=True)
class WatchedLedger(Ledger):
    """Notes what was drawn of some measurements; or draws nothing, and lets out the truth and what was noted."""

    noted: Noted
    names: frozenset[str] | None = None  # of what is noted; None where nothing is drawn

    def open(self, measurement: Measurement, groups: int) -> Meter:
        """A meter that notes what it draws, or draws nothing."""
        self.charge(measurement)
        return _WatchedMeter(measurement, groups, self.noted, self.names, serial=len(self.charged))


@dataclass(slots=True)
class _WatchedMeter(Meter):
    noted: Noted
    names: frozenset[str] | None

    def measure(
        self, first: int, cells: NDArray[np.int64], counts: NDArray[np.int64], entropy: Entropy
    ) -> NDArray[np.int64]:
        piece = self.measurement.name, first
        if self.names is None:
            return self.noted.get(piece, counts)
        noisy = Meter.measure(self, first, cells, counts, entropy)
        if self.measurement.name in self.names:
            self.noted[piece] = noisy
        return noisy
