"""Answers of queries on disk: a row for each geounit and answer, with numbers beside them. Public."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from yupana.files.arrow_stream import Column, TextColumn
from yupana.files.database import open_database
from yupana.geography.spine import Spine
from yupana.release.lines import texts
from yupana.release.tables import write_parts
from yupana.topdown.evidence import StoredMeasurements
from yupana.topdown.queries import DETAILED, TOTAL, Query, Recode, Schema

_ROWS_AT_ONCE: Final = 1 << 19
"""Rows that the database lays out at a time, some 300 bytes each."""


@dataclass(frozen=True, slots=True, eq=False)
class AnswerFile:
    """Numbers about the answers of consecutive geounits.

    Attributes
    ----------
    units : ndarray of int64, shape (units,)
        Positions of the geounits in their geolevel.
    numbers : mapping of str to ndarray, each of shape (units, size) or (units, 1)
        By the name of the column.
    """

    units: NDArray[np.int64]
    numbers: Mapping[str, NDArray[np.number[Any]]]


def kept_columns(query: Query, schema: Schema, recodes: Mapping[str, Recode]) -> dict[str, list[str]]:
    """The columns that tell answers of a query apart: by attribute or recode kept, the label of each answer.

    A recode's groups are numbered from 0. Answers are in C order of the attributes.
    """
    if query.name == TOTAL:
        return {}
    parts = set(schema.names if query.name == DETAILED else query.name.split("*"))
    places = np.unravel_index(np.arange(query.size), query.shape)
    columns: dict[str, list[str]] = {}
    for attribute, place, size in zip(schema.attributes, places, query.shape, strict=True):
        if attribute.name in parts:
            columns[attribute.name] = [attribute.labels[i] for i in place.tolist()]
        for recode in recodes.values():
            if recode.attribute == attribute.name and recode.name in parts:
                columns[recode.name] = [str(i) for i in place.tolist() if i < size]
    return columns


def write_answers(
    path: Path, geounits: Sequence[str], kept: Mapping[str, Sequence[str]], pieces: Iterable[AnswerFile]
) -> int:
    """Write ``geounit``, what the query keeps, and the numbers; return the rows.

    Parameters
    ----------
    path : Path
    geounits : sequence of str
        Identifiers of the geolevel.
    kept : mapping of str to sequence of str
        `kept_columns` of the query.
    pieces : iterable of AnswerFile

    Raises
    ------
    OSError
        If the file cannot be written.
    """
    rows = 0
    units = texts(geounits)
    labels = {name: texts(of) for name, of in kept.items()}
    size = max([1, *map(len, kept.values())])
    at_once = max(1, _ROWS_AT_ONCE // size)

    def parts() -> Iterator[dict[str, Column]]:
        nonlocal rows
        for piece in pieces:
            for first in range(0, max(len(piece.units), 1), at_once):
                here = slice(first, first + at_once)
                unit, answer = np.repeat(piece.units[here], size), np.tile(np.arange(size), len(piece.units[here]))
                columns: dict[str, Column] = {"geounit": TextColumn(units, unit)}
                columns |= {name: TextColumn(of, answer) for name, of in labels.items()}
                for name, numbers in piece.numbers.items():
                    columns[name] = np.broadcast_to(numbers[here], (len(unit) // size, size)).reshape(-1)
                rows += len(unit)
                yield columns

    with open_database() as db:
        write_parts(db, path, parts())
    return rows


def write_noisy(
    folder: Path, spine: Spine, schema: Schema, recodes: Mapping[str, Recode], stored: StoredMeasurements
) -> dict[str, int]:
    """Write all measurements with their variances; geounits without a share have no rows.

    Returns
    -------
    dict of str to int
        Rows, by the file's path within the folder.
    """
    rows: dict[str, int] = {}
    for number, level in enumerate(spine.levels):
        labels = level.labels()
        for q, query in enumerate(stored.spending.levels[number].queries):
            path = folder / level.name / f"{query.name.replace('*', '.')}.csv"
            pieces = _pieces(stored, number, q)
            rows[path.relative_to(folder).as_posix()] = write_answers(
                path, labels, kept_columns(query, schema, recodes), pieces
            )
    return rows


def _pieces(stored: StoredMeasurements, level: int, q: int) -> Iterator[AnswerFile]:
    spent = stored.spending.levels[level]
    for first, last, answers in stored.pieces(level, 0, len(spent.share_of)):
        share = spent.share_of[first:last]
        measured = np.flatnonzero(np.isfinite(spent.variances[share, q]))
        numbers = {
            "value": answers[q][measured].astype(np.int64),
            "variance": spent.variances[share[measured], q][:, None],
        }
        yield AnswerFile(measured + first, numbers)
