"""What a run is asked to do, what forbids to release what it makes, and its confidential log."""

import json
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import Any, Final, Literal, get_args

from yupana.confidential.records.sources import SYNTHETIC_MARK, is_synthetic
from yupana.engine.engine import Engine
from yupana.errors import ConfigError, OutputError
from yupana.files.columns import BUREAU, ColumnMap
from yupana.files.regular import NewFile, read_regular, real
from yupana.interruption import is_published, whole
from yupana.plan.account import RECORD, Unit
from yupana.plan.measurement import Accounting, Margins
from yupana.plan.plan import NO_NOISE, Plan
from yupana.privacy.entropy import Entropy, SystemEntropy
from yupana.privacy.exact import Budget
from yupana.progress import Announce, Progress, silent
from yupana.release.recipe import Recipe
from yupana.release.status import INTERNAL
from yupana.release.tables import Format
from yupana.topdown import Estimator
from yupana.topdown.interval_terms import IntervalMethod

Layout = Literal["noisy_measurements", "nmf"]
LAYOUTS: Final[tuple[Layout, ...]] = get_args(Layout)
"""How all noisy measurements can be written, by the term of a request that names their folder."""


@dataclass(frozen=True, slots=True)
class LedgerAccount:
    """Where the loss of a run is added up with that of others on the same data."""

    path: Path
    data: str
    limits: Mapping[str, Budget]
    unit: Unit = RECORD


@dataclass(frozen=True, slots=True, kw_only=True)
class RunRequest:
    """How a run is made: all that is asked of it beside its product, configuration, records and output folder.

    Attributes
    ----------
    noisy_measurements, nmf : Path, optional
        A folder for all noisy measurements: a table for each query, or the Census Bureau's noisy measurement files.
    """

    # accounting, confidence, margins: of the plan (`Product.plan`); without a confidence it has the product's own
    accounting: Accounting = "published"
    confidence: Fraction | None = None
    margins: Margins = "exact"
    # `SystemEntropy`, unless a seed was asked for, which takes synthetic records
    entropy: Entropy = field(default_factory=SystemEntropy)
    format: Format = "csv"  # of the tables
    overwrite: bool = False  # replace an earlier release
    log: Path | None = None  # the confidential log, if it is not to lie beside the output folder
    account: LedgerAccount | None = None  # what the loss of the plan is charged to
    memory: int | None = None  # bytes to get along with (`private_database` tells the default)
    internal: bool = False  # tell the truth about records that may be real, for use in the house
    repeats: Recipe | None = None  # how the release was made that is made again
    announce: Announce = silent  # called with the name of each stage
    # called with a geolevel, how many of its geounits are done, and how many there are; of TopDown
    progress: Progress = silent
    columns: ColumnMap = BUREAU  # what files of persons, units, geo and records call their columns
    engine: Engine | None = None  # where records are counted in shards; in one piece by this process if there is none
    shards: int | None = None  # into how many they are cut; by their size if it is not said
    totals: Path | None = None  # T01001, if it does not lie with the records; of SafeTab-H
    estimator: Estimator = "topdown"  # of TopDown, as is all that follows
    # the folder of a spine that was built before; the configuration has its settings (`on_given`)
    spine: Path | None = None
    resume: bool = False  # go on with an interrupted run, with what it has drawn (`yupana.confidential.resumption`)
    noisy_measurements: Path | None = None
    areas: tuple[Path, ...] = ()  # tables of the areas that blocks lie in, beside the reference file
    names: Path | None = None  # what areas are called
    encoding: str | None = None  # of the text of both, if that is not UTF-8
    microdata: bool = True  # whether a record is written for each person or unit counted
    nmf: Path | None = None
    # how the intervals of published counts are found; by the size of the plan if it is not said
    intervals: IntervalMethod | None = None
    replicates: int | None = None  # of Monte Carlo; `REPLICATES` if it is not said
    pl: Path | None = None  # where files of P.L. 94-171 will be written of what is made.
    # called with a folder before its records are opened: copies those that lie on a store, but for given paths
    bring: Callable[[Path, Collection[Path]], None] = silent

    @property
    def layouts(self) -> dict[Layout, Path]:
        """Where all noisy measurements are to be written, by their layout."""
        return {layout: folder for layout in LAYOUTS if (folder := getattr(self, layout)) is not None}

    @property
    def beside(self) -> tuple[Path, ...]:
        """All folders that are written beside the release."""
        return (*self.layouts.values(), *(() if self.pl is None else (self.pl,)))


def reasons_against_release(plan: Plan, data: Path, request: RunRequest) -> list[str]:
    """Why the output may not be released; refused altogether on records that are not synthetic.

    Exact counts for internal use are the exception: they have a reason of their own, whatever the records are.

    Raises
    ------
    ConfigError
        If the records may be real, and the noise could be taken off or there is none.
    """
    reasons = _reasons(plan, request.entropy)
    if request.internal and reasons == [NO_NOISE]:
        return [INTERNAL]
    if reasons and not is_synthetic(data):
        raise _may_be_real(data, reasons)
    return reasons


def check_accuracy_allowed(plan: Plan, data: Path, request: RunRequest, verb: str = "accuracy") -> None:
    """Refuse to compare noisy counts with the truth of records that may be real, but for internal use.

    Raises
    ------
    ConfigError
        If the records may be real and this is not for internal use, or if a seed or an infinite budget would be used
        on them, which internal use does not unlock.
    """
    if is_synthetic(data):
        return
    if not request.internal:
        raise ConfigError(
            f"{verb} compares with the truth; {data} holds no file named {SYNTHETIC_MARK}, so its records may be "
            "real; for use in the house pass --internal, and keep what it tells confidential"
        )
    if reasons := _reasons(plan, request.entropy):
        raise _may_be_real(data, reasons)


_SEEDED: Final = "the noise was made from a seed, and whoever has the seed can take it off"


def _reasons(plan: Plan, entropy: Entropy) -> list[str]:
    return [*plan.against_release, *([] if entropy.for_release else [_SEEDED])]


def _may_be_real(data: Path, reasons: list[str]) -> ConfigError:
    advice = "; exact --internal makes such counts for use in the house" if reasons == [NO_NOISE] else ""
    if reasons == [_SEEDED]:
        advice = "; leave out the seed"
    return ConfigError(
        f"{data} holds no file named {SYNTHETIC_MARK}, so its records may be real; "
        f"refused because {' and '.join(reasons)}{advice}"
    )


@contextmanager
def confidential_log(
    data: Iterable[Path], out: Path, request: RunRequest
) -> Iterator[Callable[[Mapping[str, Any]], None]]:
    """Claim the place of the confidential log before the work; it appears there if the release does.

    A run enters this context before that of its output folder, so that a release that fails to appear leaves no log.

    Raises
    ------
    OutputError
        If the log, the ledger or the records lie in the release, or the log would replace a file that is no log of
        ours, or cannot be written.
    """
    out = out.absolute()
    path = (request.log or Path(f"{out}.confidential.log")).absolute()
    new = log_file(path, out)
    if request.account is not None and _in_output(request.account.path, out):
        raise OutputError(
            f"the ledger {request.account.path} would lie in the output folder and go with what is replaced there; "
            "move it to another place"
        )
    check_outside(out, data)
    if request.account is not None and real(path) == real(request.account.path):
        raise OutputError(f"the log {path} would replace the ledger; name another place")
    # The folder of OUT is made with OUT.
    if request.log is not None or path.parent.is_dir():
        new.check()
    begun = False

    def write(log: Mapping[str, Any]) -> None:
        nonlocal begun
        begun = True
        new.write(json.dumps({**_LOG_HEAD, **log}, indent=1) + "\n")

    try:
        yield write
    finally:
        with whole():
            if begun and is_published(real(out)):
                new.keep()
            elif begun:
                new.discard()


def log_file(path: Path, out: Path) -> NewFile:
    """The confidential log as a file to be written; an earlier log may be replaced.

    Raises
    ------
    OutputError
        If it would lie in the release.
    """
    if _in_output(path, out):
        raise OutputError(f"the log {path} would lie in the release, but it is confidential; name another place")
    return NewFile(path.absolute(), "the log", _is_log, once=True)


def check_apart(out: Path, folders: Sequence[Path]) -> None:
    """Refuse folders beside a release that lie in it, or in each other.

    Raises
    ------
    OutputError
    """
    for place, folder in enumerate(folders):
        for other in (out, *folders[:place], *folders[place + 1 :]):
            if _in_output(folder, other):
                raise OutputError(f"{folder} would lie in {other}; name a folder of its own")


def check_outside(out: Path, given: Iterable[Path]) -> None:
    """Refuse files and folders to be read that lie in the output folder.

    Raises
    ------
    OutputError
    """
    for path in given:
        if _in_output(path, out):
            raise OutputError(f"{path} lies in {out} and would go with what is replaced there; name another folder")


def _in_output(path: Path, out: Path) -> bool:
    """Whether a path lies in an output folder, or in one that is renamed to it or removed on the way."""
    home = real(out)
    return any(
        one.parent == home.parent
        and one.name.startswith(home.name)
        and _BESIDE.fullmatch(one.name.removeprefix(home.name))
        for one in (real(path), *real(path).parents)
    )


_BESIDE: Final = re.compile(r"|\.partial|\.checkpoint(\.[0-9a-f]{8}\.removed)?")
"""How the names of an output folder, of its draft, and of what a run has drawn go on."""


_LOG_HEAD: Final = {"confidential": "This file depends on the records without noise. It must not be published."}


_LOG_START: Final = json.dumps(_LOG_HEAD, indent=1).removesuffix("\n}").encode()


def _is_log(path: Path) -> bool:
    try:
        return read_regular(path).startswith(_LOG_START)
    except OSError:
        return False
