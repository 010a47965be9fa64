"""The errors of one release: mean absolute ones by areas and query, and of totals by size."""

import os
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import duckdb
from worlds import PRODUCTION, Case, World

import yupana


@contextmanager
def truth(world: World, data: Path) -> Iterator[duckdb.DuckDBPyConnection]:
    """A database of the true counts of the last units, and of the areas these lie in."""
    with tempfile.TemporaryDirectory() as folder, duckdb.connect() as db:
        out = Path(folder) / "exact"
        yupana.exact("topdown", world.cases[PRODUCTION].configuration, data, out, spine="conventional")
        db.execute(
            "CREATE TABLE area AS FROM read_csv($1, all_varchar = true) AS on_spine "
            "JOIN read_csv($2, all_varchar = true) AS others USING (block)",
            [str(out / "spine" / "blocks.csv"), str(out / "areas" / "blocks.csv")],
        )
        db.execute(f"CREATE TABLE truth AS {_counts(world)}", [str(out / "counts" / "Block.csv")])
        db.execute(
            "CREATE TABLE people AS SELECT block, coalesce(sum(n), 0)::BIGINT AS people "
            "FROM area LEFT JOIN truth USING (block) GROUP BY block"
        )
        yield db


def _counts(world: World) -> str:
    return (
        f'SELECT geounit AS block, {", ".join(world.attributes)}, "count"::BIGINT AS n '
        "FROM read_csv($1, all_varchar = true)"
    )


def measure(case: Case, world: World, data: Path, db: duckdb.DuckDBPyConnection, seed: int) -> dict[str, Any]:
    """Make one release and compare it with the truth."""
    configuration: object = case.configuration
    if case.targets is not None:
        configuration = yupana.strategy(configuration, targets=case.targets).found
    with tempfile.TemporaryDirectory() as folder:
        out, began = Path(folder) / "out", time.perf_counter()
        yupana.run(
            "topdown",
            configuration,
            data,
            out,
            seed=seed,
            spine=case.spine,
            estimator=case.estimator,
            intervals="none",
            microdata=False,
        )
        seconds = time.perf_counter() - began
        db.execute(
            f"CREATE OR REPLACE TEMP TABLE error AS SELECT block, {', '.join(world.attributes)}, sum(n) AS n FROM "
            f"({_counts(world)} UNION ALL SELECT * REPLACE (-n AS n) FROM truth) GROUP BY ALL HAVING sum(n) <> 0",
            [str(out / "counts" / "Block.csv")],
        )
    figures = {"mae": dict(_mae(world, db)), "sizes": dict(_by_size(world, db))}
    return {**figures, "seconds": round(seconds, 1), "load": round(os.getloadavg()[0], 1)}


def _mae(world: World, db: duckdb.DuckDBPyConnection) -> Iterator[tuple[str, float]]:
    for kind in world.kinds:
        areas = db.execute(f"SELECT count(DISTINCT {kind}) FROM area").fetchall()[0][0]
        for query in world.queries:
            kept = [a for a in world.attributes if query == "detailed" or a in query.split("*")]
            answers = areas
            for attribute in kept:
                answers *= world.attributes[attribute]
            columns = ", ".join([f"area.{kind}", *kept])
            summed = f"SELECT {columns}, sum(n) AS n FROM error JOIN area USING (block) WHERE area.{kind} IS NOT NULL"
            wrong = db.execute(f"SELECT coalesce(sum(abs(n)), 0) FROM ({summed} GROUP BY ALL)").fetchall()[0][0]
            yield f"{kind} {query}", float(wrong) / answers


def _by_size(world: World, db: duckdb.DuckDBPyConnection) -> Iterator[tuple[str, dict[str, float]]]:
    for low, high in zip(world.sizes, (*world.sizes[1:], 2**62), strict=True):
        units, mae, bias = db.execute(
            "SELECT count(*), avg(abs(off)), avg(off) FROM (SELECT coalesce(sum(n), 0) AS off FROM people "
            "LEFT JOIN error USING (block) WHERE people >= $1 AND people < $2 GROUP BY block)",
            [low, high],
        ).fetchall()[0]
        if units:
            yield str(low), {"blocks": units, "mae": float(mae), "bias": float(bias)}
