"""How a task runs on a worker: whatever it raises comes back as data, so that no log or page of an engine can quote it.

A traceback may hold a value of a record. It is written to a private file of the worker, and nowhere else.
"""

import pickle
import socket
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from yupana.errors import EngineError, YupanaError
from yupana.files.fault import keep_fault

_DONE: Final = b"\x00"
_FAILED: Final = b"\x01"


@dataclass(frozen=True, slots=True)
class Failure:
    """Why a task has no result.

    Attributes
    ----------
    error : YupanaError or None
        What it raised, if its words are ours; they may count records, and hold no value of one.
    kind : str
        What else it raised.
    host : str
        The worker's machine.
    details : str
        Where they are.
    """

    error: YupanaError | None
    kind: str = ""
    host: str = ""
    details: str = ""


def guarded(work: Callable[[], bytes]) -> bytes:
    """The result of some work, or why there is none: see `result_of`. It raises nothing."""
    try:
        return _DONE + work()
    except YupanaError as error:
        return _FAILED + pickle.dumps(Failure(error))
    except BaseException as error:  # noqa: BLE001 (nothing may be told by whoever runs this)
        return _FAILED + pickle.dumps(Failure(None, type(error).__name__, socket.gethostname(), keep_fault(error)))


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
    failure: Failure = pickle.loads(message[1:])  # noqa: S301 (of a worker of ours)
    if failure.error is not None:
        raise failure.error
    raise EngineError(f"a task failed on {failure.host} ({failure.kind}). {failure.details}")
