"""The records of a run, opened where they lie, and what all verbs ask of a run."""

from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from yupana.confidential.product_counter import Counter, counter_of
from yupana.confidential.records.data_frames import Data, as_folder
from yupana.confidential.records.foreign_files import as_parquet
from yupana.confidential.records.object_store import Bring, stored_records
from yupana.confidential.request import LedgerAccount, RunRequest, check_outside
from yupana.confidential.run import PartRun
from yupana.confidential.shards.count_in_shards import open_engine
from yupana.engine.engine import EngineTerms
from yupana.errors import ConfigError
from yupana.files.store import store_at
from yupana.interface.arguments import bytes_of, check_fields, exact_number, path_of
from yupana.interface.options import Account, Exact, Execution, Place, Stage, of_stage
from yupana.plan.account import OWN, Unit
from yupana.products.parts import ALONE, data_of
from yupana.progress import Progress, listening, silent

if TYPE_CHECKING:
    from yupana.interface.configured import Configured

_STAGE_OF: "Mapping[str, Stage]" = {"run": "run", "exact": "release"}
"""How far verbs go; all others read records and make no release."""


def counter(case: "Configured") -> Counter[Any, Any, Any, Any]:
    """What knows the record files of a configuration."""
    return counter_of(case.product.key, case.config, RunRequest(columns=case.options["columns"]))


def accounts(asked: "Configured", account: Account | None) -> dict[str, LedgerAccount | None]:
    """Where the loss of each part is added up: under ``DATASET/PART``, each with limits of its own.

    What one person or household loses adds over all releases, whatever their units, so that parts share its account.

    Raises
    ------
    ConfigError, BudgetError
        If what is given does not go together, or a limit is of no part.
    """
    if account is None:
        return dict.fromkeys(asked.cases)
    check_fields(account)
    limit = account.limit
    given = dict(limit) if isinstance(limit, Mapping) else {} if limit is None else {OWN: limit}
    if not asked.parts or account.unit in {"person", "household"}:
        return dict.fromkeys(asked.cases, _in_ledger(account, account.dataset, given))
    limits: dict[str, dict[str, Exact]] = {name: {} for name in asked.parts}
    for key, value in given.items():
        part, _, kind = key.partition(".")
        if part not in limits:
            example = ",".join(f"{name}=L" for name in limits)
            raise ConfigError(
                f"limit: {' and '.join(limits)} have a ledger each, and their losses are never added; give the "
                f"limit of each, such as {example} or {next(iter(limits))}.bounded=L"
            )
        limits[part][kind or OWN] = value
    return {name: _in_ledger(account, f"{account.dataset}/{name}", of_part) for name, of_part in limits.items()}


def _in_ledger(account: Account, dataset: str, limits: Mapping[str, Exact]) -> LedgerAccount:
    whose = Unit(account.unit, account.household_cap)
    whose.check_columns(limits)
    least = {kind: exact_number(f"limit {kind}", value) for kind, value in limits.items()}
    return LedgerAccount(path_of("ledger", account.ledger), dataset, least, whose)


@contextmanager
def opened(
    asked: "Configured", data: Data, out: Place | None, verb: str, execution: Execution, *, synthetic: bool
) -> Iterator[dict[str, PartRun[Any]]]:
    """What all verbs ask of a run, of each part: its records, and how it is made."""
    check_fields(execution)
    memory = bytes_of(execution.memory)
    cases = asked.cases
    files: dict[str, str] = {}
    for case in cases.values():
        files |= counter(case).frames
    if out is not None:
        check_outside(path_of("out", out), [Path(place) for place in places_of(data)])
    asked_of = [name for name in of_stage(_STAGE_OF.get(verb, "records")) if name in RunRequest.__slots__]
    with (
        listening(execution.progress, f"{asked.product.key} {verb}") as tell,
        _at_hand(data, files, memory, tell, synthetic=synthetic) as (folder, bring),
        open_engine(_engine_terms(execution)) as engine,
        ExitStack() as read,
    ):
        folders = data_of(folder, tuple(cases))
        for name, case in cases.items():
            forms, place = counter(case).forms, folders[name]
            folders[name] = read.enter_context(as_parquet(place, forms, memory, partial(bring, place, ())))
        yield {
            name: PartRun(
                case.product,
                case.config,
                folders[name],
                RunRequest(
                    **{option: case.options[option] for option in asked_of},
                    repeats=case.repeats,
                    memory=memory,
                    engine=engine,
                    shards=execution.shards,
                    announce=_told_by(name, tell),
                    progress=_told_by(name, tell),
                    bring=bring,
                ),
            )
            for name, case in cases.items()
        }


@contextmanager
def opened_alone(
    asked: "Configured", data: Data, out: Place | None, verb: str, execution: Execution, *, synthetic: bool
) -> Iterator[tuple[Path, RunRequest]]:
    """The folder of the records and the request of one configuration."""
    with opened(asked.alone(), data, out, verb, execution, synthetic=synthetic) as parts:
        yield parts[ALONE].data, parts[ALONE].request


def _engine_terms(execution: Execution) -> EngineTerms:
    """Where the work of a run is to be done."""
    given = dict(execution.spark_conf)
    if not all(isinstance(text, str) for text in (*given, *given.values())):
        raise ConfigError("spark_conf: must hold texts, such as {'spark.executor.memory': '4g'}")
    return EngineTerms(execution.engine, execution.master, execution.shards, given)


@contextmanager
def _at_hand(
    data: Data, files: Mapping[str, str], memory: int | None, tell: Progress, *, synthetic: bool
) -> Iterator[tuple[Path, Bring]]:
    """The folder of the records, and what brings them there if they lie on a store."""
    store = store_at(data) if isinstance(data, str | Path) else None
    if store is None:
        with as_folder(data, files=files, synthetic=synthetic, memory=memory) as folder:
            yield folder, silent
        return
    with (
        stored_records(store, tell) as (copies, bring),
        as_folder(copies, synthetic=synthetic) as folder,
    ):
        yield folder, bring


def in_place(text: str, folder: Path, data: Place) -> str:
    """Say of records where they lie what was said of the folder that they were read in."""
    return text.replace(str(folder), str(data))


def places_of(data: object) -> list[Place]:
    """Where records lie, as far as they lie anywhere."""
    given: list[object] = list(data.values()) if isinstance(data, Mapping) else [data]
    return [place for place in given if isinstance(place, str | Path)]


def _told_by(name: str, tell: Progress) -> Progress:
    """Tell steps under the name of a part, if it has one."""
    return tell if name == ALONE else lambda stage, done=0, total=0: tell(f"{name}: {stage}", done, total)
