"""A census that the tests of the interface give as files and as frames."""

from pathlib import Path

import polars as pl
import pytest
from census_maker import random_census, seeded, write_csv
from text_frames import texts


@pytest.fixture(scope="module")
def census(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("made") / "census"
    write_csv(folder, random_census(seeded(3), ("10", "44"), 200))
    return folder


@pytest.fixture(scope="module")
def frames(census: Path) -> dict[str, pl.DataFrame]:
    return texts(census, "persons", "units", "geo")
