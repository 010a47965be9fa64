"""What an engine does: it applies a function to pieces of work, and brings parcels together by shard.

Whatever a task raises on a worker comes back as data, so that no log or page of an engine can quote it. A traceback may
hold a value of a record. It is written to a private file of the worker, and nowhere else.
"""

import pickle
import socket
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Literal, Protocol, TypeAlias, get_args

from yupana.errors import ConfigError, EngineError, YupanaError
from yupana.files.temporary import keep_fault

_DONE: Final = b"\x00"
_FAILED: Final = b"\x01"


@dataclass(frozen=True, slots=True)
class _Failure:
    """Why a task has no result."""

    error: YupanaError | None  # what it raised, if its words are ours; they may count records, and hold no value of one
    kind: str = ""  # what else it raised
    host: str = ""  # the worker's machine
    details: str = ""  # where they are


def guarded(work: Callable[[], bytes]) -> bytes:
    """The result of some work, or why there is none: see `result_of`. It raises nothing."""
    try:
        return _DONE + work()
    except YupanaError as error:
        return _FAILED + pickle.dumps(_Failure(error))
    except BaseException as error:  # noqa: BLE001 (nothing may be told by whoever runs this)
        return _FAILED + pickle.dumps(_Failure(None, type(error).__name__, socket.gethostname(), keep_fault(error)))


def is_done(message: bytes) -> bool:
    """Whether `guarded` has a result."""
    return message[:1] == _DONE


def result_of(message: bytes) -> bytes:
    """What `guarded` gave back.

    Raises
    ------
    YupanaError
        What the task raised of this kind.
    EngineError
        If it failed otherwise.
    """
    if is_done(message):
        return message[1:]
    failure: _Failure = pickle.loads(message[1:])  # noqa: S301 (of a worker of ours)
    if failure.error is not None:
        raise failure.error
    raise EngineError(f"a task failed on {failure.host} ({failure.kind}). {failure.details}")


EngineKind: TypeAlias = Literal["local", "spark"]
ENGINES: Final[tuple[EngineKind, ...]] = get_args(EngineKind)

Task: TypeAlias = Callable[[bytes], bytes]
"""Makes a result of a piece of work, and of nothing else: it may be called more than once, anywhere."""

Cut: TypeAlias = Callable[[bytes], Iterator[tuple[int, bytes]]]
"""Cuts a piece of work into parcels, each for a shard; like a task it may be called more than once."""

Gather: TypeAlias = Callable[[int, Iterator[bytes]], bytes]
"""Makes a result of a shard's number and its parcels, those of one piece of work in their order."""

LEAST_MEMORY: Final = 300_000_000
"""Bytes that a run or a task takes: the interpreter and its libraries, and as much for the database."""

MOST_BYTES: Final = 1 << 26
"""A parcel should not be larger: whoever has more cuts it."""


@dataclass(frozen=True, slots=True)
class EngineTerms:
    """Where the work of a run is to be done.

    Raises
    ------
    ConfigError
        If something is said that the engine does not have.
    """

    kind: EngineKind = "local"
    master: str | None = None  # of Spark: as its own option `--master` has it; `local[*]` if nothing is said
    shards: int | None = None  # into how many shards records are cut; what is best for the engine if nothing is said
    settings: Mapping[str, str] = field(default_factory=dict)  # of Spark: more settings of the session

    def __post_init__(self) -> None:
        if self.kind not in ENGINES:
            raise ConfigError(f"engine: must be {' or '.join(ENGINES)}, and is {self.kind!r}")
        if self.shards is not None and not 1 <= self.shards <= _MOST_SHARDS:
            raise ConfigError(f"shards: must be 1 to {_MOST_SHARDS:,}")
        if self.kind == "local" and (self.master is not None or self.settings):
            option = "master" if self.master is not None else "spark_conf"
            raise ConfigError(f"{option}: is of the engine spark; ask for it, too")


_MOST_SHARDS: Final = 100_000


class Engine(Protocol):
    """Does work somewhere. What it is given and gives back are bytes, which mean nothing to it."""

    @property
    def slots(self) -> int:
        """How many tasks run at the same time."""
        ...

    def map(self, task: Task, work: Iterable[bytes]) -> Iterator[bytes]:
        """The result of each piece of work, once, in their order. More work may be taken than results were given.

        Raises
        ------
        YupanaError
            What a task raises of this kind.
        EngineError
            If a task fails otherwise, or the engine does.
        """
        ...

    def regroup(self, cut: Cut, work: Sequence[bytes], gather: Gather, shards: Sequence[int]) -> Iterator[bytes]:
        """Cut all work into parcels, bring those of a shard together, and give the result of each, in their order.

        A shard to which no parcel is addressed has a result, too.

        Raises
        ------
        YupanaError, EngineError
            As `map`.
        """
        ...
