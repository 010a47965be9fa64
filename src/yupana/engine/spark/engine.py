"""The engine of a cluster: Apache Spark moves parcels and starts tasks.

Spark sees bytes, and nothing of what they mean. No SQL of ours runs in it, and no text of an error of ours passes it.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Any, Final

from yupana.engine.engine import Cut, Gather, Task, result_of
from yupana.engine.spark.master import in_our_words, why_it_gave_up
from yupana.engine.spark.worker import RESULT_NAMES, apply, batch_of, cut_up, describe_worker, gather_up
from yupana.errors import EngineError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_RESULTS: Final = "number bigint, result binary"
_PARCELS: Final = "shard bigint, number bigint, parcel binary"
_WAVES: Final = 4


@dataclass(frozen=True, slots=True)
class SparkEngine:
    """Does work on the workers of a Spark session.

    Attributes
    ----------
    session : pyspark.sql.SparkSession
    slots : int
    sorts : bool
        Whether what was sorted comes sorted: not all that speak Spark Connect do that, and then a slot holds at once
        all parcels that it brings together.
    """

    session: "SparkSession"
    slots: int
    sorts: bool

    def map(self, task: Task, work: Iterable[bytes]) -> Iterator[bytes]:
        """See `Engine`. While one wave of work is done, the next is taken."""
        pending = iter(work)
        take = _WAVES * self.slots
        with ThreadPoolExecutor(1) as waiting:
            wave = list(islice(pending, take))
            while wave:
                running = waiting.submit(self._do, partial(apply, task, describe_worker()), wave)
                try:
                    following = list(islice(pending, take))
                    results = running.result()
                except BaseException:
                    self._cancel()  # nobody waits for them
                    raise
                yield from results
                wave = following

    def regroup(self, cut: Cut, work: Sequence[bytes], gather: Gather, shards: Sequence[int]) -> Iterator[bytes]:
        """See `Engine`. One shuffle brings the parcels of a shard together; each shard knows how many it must get."""
        cutting = partial(cut_up, cut, describe_worker(), tuple(shards))
        gathering = partial(gather_up, gather, describe_worker(), len(work), self.sorts)
        parts = max(1, min(len(shards), _WAVES * self.slots))

        def plan() -> "DataFrame":
            cut_up = self._frame(work).mapInArrow(cutting, _PARCELS)
            together = cut_up.repartition(parts, "shard").sortWithinPartitions("shard", "number")
            return together.mapInArrow(gathering, _RESULTS)

        yield from self._collect(plan, shards)

    def _do(self, function: Callable[..., Any], work: Sequence[bytes]) -> list[bytes]:
        """Results of a function of Arrow batches, which come back in any order."""
        return self._collect(lambda: self._frame(work).mapInArrow(function, _RESULTS), range(len(work)))

    def _cancel(self) -> None:
        """End the tasks under way."""
        with suppress(Exception):
            (self.session.sparkContext.cancelAllJobs if self.sorts else self.session.interruptAll)()

    def _frame(self, work: Sequence[bytes]) -> "DataFrame":
        """The work, each piece in a partition of its own."""
        return self._table(RESULT_NAMES, list(enumerate(work))).repartition(max(1, len(work)))

    def _table(self, names: tuple[str, ...], rows: Sequence[tuple[int | bytes, ...]]) -> "DataFrame":
        import pyarrow as pa  # noqa: PLC0415

        return self.session.createDataFrame(pa.Table.from_batches([batch_of(names, row) for row in rows]))

    def _collect(self, plan: Callable[[], "DataFrame"], numbers: Sequence[int]) -> list[bytes]:
        """Results by their numbers, of a frame that is told to the session, too, where it may fail."""
        with in_our_words(why_it_gave_up):
            found = [(int(row[0]), bytes(row[1])) for row in plan().collect()]
        if sorted(number for number, _ in found) != sorted(numbers):
            raise EngineError("Spark lost results, or has some twice; nothing can be made of what is left")
        of_number = dict(found)
        return [result_of(of_number[number]) for number in numbers]
