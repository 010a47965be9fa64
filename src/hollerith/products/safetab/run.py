"""Opening the records of a SafeTab product as its settings ask. Confidential."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from hollerith.populations.iterations import CharacteristicIterations
from hollerith.products.safetab.settings import Settings
from hollerith.records.detailed import DetailedRecords, Kind, open_detailed


@contextmanager
def checked_records(
    data: Path, kind: Kind, settings: Settings, iterations: CharacteristicIterations, memory: int | None
) -> Iterator[DetailedRecords]:
    """Open and check the records of the states of all passes, in ``memory`` bytes."""
    codes, ethnic = frozenset(iterations.codes), iterations.ethnicity_codes
    with open_detailed(
        data, kind, states=settings.states, codes=codes, ethnicity_codes=ethnic, memory=memory
    ) as records:
        yield records
