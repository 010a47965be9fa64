"""Noisy measurements as files: ``<geolevel>/<query>.csv``. Public."""

from collections.abc import Iterator, Mapping
from pathlib import Path

import numpy as np

from yupana.geography.spine import Spine
from yupana.topdown.answers_file import AnswerFile, kept_columns, write_answers
from yupana.topdown.evidence import StoredMeasurements
from yupana.topdown.queries import Recode, Schema


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
