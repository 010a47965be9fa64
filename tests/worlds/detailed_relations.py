"""SafeTab's data folders, opened."""

import re
from collections import Counter
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import pytest
from detailed_maker import (
    ADDRESS,
    CODES,
    ETHNICITY_CODES,
    RACES,
    STATES,
    sound_world,
    write_world,
)

from yupana.confidential.records.safetab_records import NOTES, Kind, open_detailed
from yupana.confidential.records.sources import OpenedRecords
from yupana.confidential.records.validation import Finding
from yupana.errors import InputError

KINDS: tuple[Kind, Kind] = ("person-records", "household-records")


CANARY = "9173"


def opened(folder: Path, kind: Kind) -> AbstractContextManager[OpenedRecords]:
    return open_detailed(folder, kind=kind, states=STATES, codes=CODES, ethnicity_codes=ETHNICITY_CODES)


def findings(folder: Path, kind: Kind) -> tuple[Finding, ...]:
    with opened(folder, kind) as data:
        for finding in data.findings:
            assert CANARY not in str(finding)
        if data.findings:
            with pytest.raises(InputError, match=re.escape(str(data.findings[0]))):
                data.require_valid()
        return tuple(data.findings)


def said(folder: Path, kind: Kind = "person-records") -> str:
    return "\n".join(map(str, findings(folder, kind)))


def notes_of(data: OpenedRecords) -> dict[str, int]:
    return {name: data.notes[name] for name in NOTES}


def relations(data: OpenedRecords, kind: Kind) -> tuple[Counter[Any], Counter[Any]]:
    extra = ("QAGE", "QSEX") if kind == "person-records" else ("HOUSEHOLD_TYPE", "TEN")
    chosen = ", ".join((*ADDRESS, *RACES, "QSPAN", *extra))
    states = ", ".join(map(str, STATES))
    records = data.db.execute(f"SELECT {chosen} FROM records WHERE TABBLKST IN ({states})").fetchall()
    blocks = data.db.execute(f"SELECT {', '.join(ADDRESS)}, PLACEFP, AIANNHCE, housing_units FROM blocks").fetchall()
    return Counter(records), Counter(blocks)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A sound folder of persons and households, to be spoiled."""
    for kind in KINDS:
        write_world(tmp_path, sound_world(kind))
    return tmp_path
