"""What the run machine asks of a product's confidential half: to open its records, to count them, to measure."""

import os
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from importlib import import_module
from itertools import zip_longest
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Final, Generic, Protocol, TypeVar, overload

from yupana.confidential.records.data_frames import FILES
from yupana.confidential.records.foreign_files import RecordForms
from yupana.confidential.records.sources import Source
from yupana.confidential.records.validation import Finding
from yupana.confidential.request import Layout, RunRequest
from yupana.errors import ConfigError
from yupana.files.arrow import ArrowTable
from yupana.files.columns import RecordFile
from yupana.plan.ledger import Ledger
from yupana.plan.plan import Plan
from yupana.privacy.sealed import Sealed
from yupana.progress import Stopwatch
from yupana.release.tables import ReleaseTable, checksum


class Opened(Protocol):
    """Records that were opened and checked."""

    @property
    def findings(self) -> Sequence[Finding]:
        """Rules that they break, and remarks."""
        ...


C = TypeVar("C")
"""A product's own configuration."""
R = TypeVar("R", bound=Opened)
"""Its records, opened."""
E = TypeVar("E")
"""Exact counts of all that its plan measures."""
M = TypeVar("M")
"""What passed the door: public."""


@dataclass(frozen=True, slots=True)
class Told:
    """What a run tells of itself beside its tables."""

    parameters: Mapping[str, Any]  # of the configuration and of public files, for the manifest
    taken_as_public: tuple[str, ...]  # what the guarantee does not protect
    log: Mapping[str, Any]  # what depends on the records without noise, for the confidential log
    options: Mapping[str, str] = field(default_factory=dict)  # options that only this product has
    others: Mapping[str, Any] = field(default_factory=dict)  # keys of the manifest that only this product has


@dataclass(frozen=True, slots=True, repr=False)
class Validation(Sealed, Sequence[Finding]):
    """What was found in records: a sequence of findings. Confidential: it counts them.

    Attributes
    ----------
    findings : tuple of Finding
        Rules broken, and remarks.
    remarks : tuple of str
        What could not be checked.
    left_out : tuple of mapping
        Which records are counted nowhere by the configuration alone, as a plan tells it. Public, unlike the rest.
    truncation : tuple
        For internal use, of PHSafe: what thresholds about the configured ones would leave out.
    """

    findings: tuple[Finding, ...]
    remarks: tuple[str, ...] = ()
    truncation: tuple[Any, ...] = ()
    left_out: tuple[Mapping[str, Any], ...] = ()

    if TYPE_CHECKING:  # `typing` keeps what it has seen overloaded to the end, and the database would complain of it

        @overload
        def __getitem__(self, place: int) -> Finding: ...
        @overload
        def __getitem__(self, place: slice) -> Sequence[Finding]: ...

    def __getitem__(self, place: int | slice) -> Finding | Sequence[Finding]:
        """A finding, or some."""
        return self.findings[place]

    def __len__(self) -> int:
        """How many there are."""
        return len(self.findings)

    def table(self) -> ArrowTable:
        """Tabulate them, with a row for each finding; confidential."""
        kinds = {"rule": "VARCHAR", "file": "VARCHAR", "text": "VARCHAR", "count": "BIGINT", "remark": "BOOLEAN"}
        return ArrowTable.of({name: (kind, [getattr(one, name) for one in self]) for name, kind in kinds.items()})


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Observed(Sealed):
    """How far noisy counts were from the truth; it tells the truth."""

    product: str  # as the plan calls it
    errors: Sequence[Any]  # what rows and reports are made of, in the product's own form
    rows: Sequence[Any]  # one for each line of the report
    tables: Sequence[ReleaseTable]  # the rows, and others that are finer, as they are written
    told: Mapping[str, Any] = field(default_factory=dict)  # more for the manifest


@dataclass(frozen=True, slots=True)
class MeasuredRun(Generic[R, E, M]):
    """A run whose counts have passed the door."""

    records: R  # they may be closed, unless the counter reads on
    exact: E
    measured: M
    plan: Plan


@dataclass(frozen=True)
class Counter(ABC, Generic[C, R, E, M]):
    """How one product gets from records to what is released. `yupana.confidential.run` calls it, step by step."""

    config: C
    request: RunRequest = field(default_factory=RunRequest)

    stages: ClassVar[tuple[str, str, str]] = ("", "", "")
    """What counting, measuring and checking are announced as; what is empty is part of the stage before."""

    draws_at_the_door: ClassVar[bool] = True
    """Whether each draw is kept as it passes the door; False where the counter keeps what it draws itself."""

    reads_on: ClassVar[bool] = False
    """Whether what was opened is read until the release is written; else it is closed before."""

    @property
    def is_checked(self) -> bool:
        """Whether the tables are read again and compared with the plan before they are released."""
        return True

    @property
    def frames(self) -> Mapping[str, str]:
        """The record files that may be given as frames, and how the name of each ends when it is written."""
        return FILES

    @property
    def forms(self) -> RecordForms:
        """The record files that may be there in other forms than CSV and Parquet."""
        return RecordForms()

    @abstractmethod
    def open(
        self, data: Path, clock: Stopwatch, *, out: Path | None = None, kept: Path | None = None, to_count: bool = True
    ) -> AbstractContextManager[R]:
        """Open and check records.

        Parameters
        ----------
        out : Path, optional
            Where a release of them will stand, if one is made.
        kept : Path, optional
            The folder where its draws are kept then.
        to_count : bool
            Whether they will be counted; for validation they may lack what lies beside them.

        Raises
        ------
        InputError
            If there are none, or they cannot be read. Broken rules are findings.
        """

    def doubts(self, records: R) -> list[str]:  # noqa: ARG002
        """Why what is made of valid records may not be released, although its own noise is sound.

        Raises
        ------
        InputError
            If the records are not synthetic, and there is a doubt.
        """
        return []

    def public_inputs(self, records: R) -> dict[str, str]:  # noqa: ARG002
        """SHA-256 of the public files of a run by name."""
        return {}

    @property
    def cut_files(self) -> Sequence[RecordFile]:
        """Records that an engine cuts into shards, so that they need not be at hand."""
        return ()

    def look(self, records: R) -> Validation:
        """What validation tells.

        Raises
        ------
        InputError
            If valid records do not go with what lies beside them.
        """
        return Validation(tuple(records.findings))

    @abstractmethod
    def count(self, records: R, *, bounded: bool = True, keep: bool = False) -> E:
        """Count what a plan measures in valid records.

        Parameters
        ----------
        bounded : bool
            Count what one person or household may contribute at most; False counts all of it, to tell what the bound
            leaves out or adds.
        keep : bool
            Whether the counts will be measured more than once.
        """

    def planned(self, records: R, plan: Plan) -> Plan:  # noqa: ARG002
        """The plan as it is measured, where that depends on public files."""
        return plan

    @abstractmethod
    def inputs(self, records: R) -> dict[str, str]:
        """SHA-256 of every input file, by its path within the data folder; confidential."""

    def terms(self, records: R) -> dict[str, Any]:  # noqa: ARG002
        """What beside configuration, options and inputs must be the same where a run goes on, by its name; as JSON."""
        return {}

    def check_measurable(self, records: R) -> None:
        """Refuse what could not be made of what is measured, before it is charged.

        Raises
        ------
        ConfigError
        """

    @abstractmethod
    def measure(self, exact: E, ledger: Ledger, clock: Stopwatch) -> M:
        """Pass every count through the door."""

    def exact(self, exact: E, ledger: Ledger, clock: Stopwatch) -> M:
        """What a release without noise is made of; the plan of the ledger has none."""
        return self.measure(exact, ledger, clock)

    @abstractmethod
    def tell(self, run: MeasuredRun[R, E, M]) -> Told:
        """What the run tells of itself, asked after everything was measured and before the records are closed."""

    @abstractmethod
    def write(self, folder: Path, run: MeasuredRun[R, E, M]) -> dict[str, dict[str, Any]]:
        """Write the tables, and return what the manifest says of them."""

    @abstractmethod
    def observe(self, plan: Plan, data: Path, trials: int) -> Observed:
        """Measure records so many times and compare with the truth. Whether that is allowed was asked before.

        Raises
        ------
        InputError
            If the records break a rule.
        """

    def write_noisy(
        self, folder: Path, layout: Layout, run: MeasuredRun[R, E, M], manifest: Mapping[str, Any], clock: Stopwatch
    ) -> None:
        """Write all noisy measurements in a layout, with a manifest; only some products can."""
        del folder, layout, manifest, clock
        raise ConfigError(f"{run.plan.product} keeps no noisy measurements")


def input_checksums(folder: Path, sources: Mapping[str, Source]) -> dict[str, str]:
    """SHA-256 of every input file, by its path within the data folder; for the confidential log."""
    return {
        os.path.relpath(path, folder): digest or checksum(path)
        for source in sources.values()
        for path, digest in zip_longest((*source.paths, *source.beside), source.digests)
    }


_PLACES: Final = {
    "phsafe": ("described.phsafe", "PhsafeCounter"),
    "safetab-p": ("described.safetab", "PersonsCounter"),
    "safetab-h": ("described.safetab", "HouseholdsCounter"),
    "topdown": ("topdown.counter", "TopdownCounter"),
    "tables": ("described.counter", "DescribedCounter"),
}


def counter_of(key: str, config: object, request: RunRequest) -> Counter[Any, Any, Any, Any]:
    """The counter of a product, imported when it is asked for."""
    module, name = _PLACES[key]
    found: Counter[Any, Any, Any, Any] = getattr(import_module(f"yupana.confidential.{module}"), name)(config, request)
    return found
