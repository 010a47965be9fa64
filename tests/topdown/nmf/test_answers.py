"""Files of answers: a row for each unit and answer, however many are laid out at a time."""

from pathlib import Path

import numpy as np
import pytest

from yupana.topdown.nmf import writing
from yupana.topdown.nmf.writing import AnswerFile, write_answers

UNITS, KEPT = [f"0500000US{number:05d}" for number in range(23)], {"sex": ["m", "f", "m"], "age": ["0", "0", "1"]}
PIECES = [np.arange(0, 9), np.arange(9, 10), np.arange(10, 23)]


def numbers_of(units: np.ndarray) -> dict[str, np.ndarray]:
    return {"estimate": np.add.outer(units, np.array([0.0, 0.25, 0.5])), "variance": units[:, None] * 2}


def expected() -> str:
    rows = [
        f"{UNITS[unit]}|{KEPT['sex'][answer]}|{KEPT['age'][answer]}|{unit + answer / 4}|{unit * 2}"
        for unit in range(len(UNITS))
        for answer in range(3)
    ]
    return "\n".join(["geounit|sex|age|estimate|variance", *rows]) + "\n"


@pytest.mark.parametrize("at_once", [1, 3, 7, 12, 1 << 19])
def test_rows_come_in_order_however_many_are_laid_out_at_a_time(
    at_once: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writing, "_ROWS_AT_ONCE", at_once)
    path = tmp_path / "level" / "answers.csv"
    rows = write_answers(path, UNITS, KEPT, (AnswerFile(units, numbers_of(units)) for units in PIECES))
    assert rows == 69
    assert path.read_text() == expected()
    assert [file.name for file in path.parent.iterdir()] == ["answers.csv"]
