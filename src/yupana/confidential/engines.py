"""Open the engine that a run asks for."""

from collections.abc import Iterator
from contextlib import contextmanager

from yupana.confidential.records.database import scratch_folder
from yupana.engine.engine import Engine, EngineTerms
from yupana.engine.local import LocalEngine


@contextmanager
def open_engine(terms: EngineTerms) -> Iterator[Engine | None]:
    """The engine; None where records are counted in one piece by this process, which is quickest where they fit.

    Raises
    ------
    ConfigError, EngineError
        If it cannot be had.
    """
    if terms.kind == "spark":
        from yupana.engine.spark.session import open_spark  # noqa: PLC0415 (only who asks for it needs it)

        with open_spark(terms) as engine:
            yield engine
    elif terms.shards is None:
        yield None
    else:
        with scratch_folder() as folder:
            yield LocalEngine(folder)
