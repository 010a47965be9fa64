"""Records are cut into shards in little memory."""

from pathlib import Path

import pytest

from yupana.confidential.records.database import private_database, threads_at_most
from yupana.confidential.shards import cut_records


@pytest.mark.thorough
def test_records_are_cut_in_less_memory_than_the_database_would_hold_of_them(tmp_path: Path) -> None:
    columns = ", ".join(f"hash(i + {column})::VARCHAR || 'and more' AS column_{column}" for column in range(12))
    rows = f"SELECT {columns}, i % 8 AS {cut_records._SHARD} FROM range(1000000) AS t(i)"
    with threads_at_most(1), private_database() as db:
        db.execute("SET memory_limit = '74MB'")
        cut_records._write_apart(db, rows, tmp_path / "cut", 8)
        of_shard = (
            f"SELECT {cut_records._SHARD}, count(*) FROM read_parquet('{tmp_path}/cut/*/*') GROUP BY 1 ORDER BY 1"
        )
        assert db.execute(of_shard).fetchall() == [(shard, 125_000) for shard in range(8)]
