"""What keeps records from being read is told the same of shards and of one piece."""

from pathlib import Path

import pytest
from census_maker import seeded, write_csv
from crowded_census import crowded
from sharded_worlds import phsafe, refused

from yupana.engine.local import LocalEngine


@pytest.mark.sampled(3)
@pytest.mark.parametrize("file", ["persons", "units", "geo"])
@pytest.mark.parametrize("fault", ["gone", "empty", "header", "fields", "binary", "folder"])
@pytest.mark.slow
def test_files_that_are_none(file: str, fault: str, tmp_path: Path) -> None:
    write_csv(tmp_path / "data", crowded(1, 5))
    path = tmp_path / "data" / f"{file}.csv"
    text = path.read_text()
    path.unlink()
    if fault == "folder":
        path.mkdir()
    elif fault != "gone":
        head, rest = text.split("\n", 1)
        path.write_bytes(
            {
                "empty": b"",
                "header": f"{head.replace('MAFID', 'MAFIX')}\n{rest}".encode(),
                "fields": f"{text}1,2\n".encode(),
                "binary": b"\xff\x00" + text.encode(),
            }[fault]
        )
    case = phsafe(tmp_path, seeded(1))
    whole, parcels = refused(case, tmp_path / "data", None, None), tmp_path / "parcels"
    parcels.mkdir()
    found = refused(case, tmp_path / "data", LocalEngine(parcels), 3)
    # What cannot be read is told before anything else is looked at, which may then be nothing.
    assert found
    assert found <= whole
    assert any(file in line for line in found)
