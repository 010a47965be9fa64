"""The nine tables of synthetic censuses by a second plan: one SQL query for each table, as its definition reads.

The program counts classes of records first, maps them to cells after, and subtracts what truncation leaves out. Here a
query filters the persons of the table, ranks them by hash within their unit, keeps tau, joins unit and geography, and
groups: on the text of the files, with nothing of the program but the census it invented.
"""

import json
from dataclasses import dataclass
from pathlib import Path

import duckdb
import pytest

from yupana.cli.main import main
from yupana.products.phsafe.configuration import production_config
from yupana.synthetic.census import synthesize

KEY = "a key | of 2030"


@dataclass(frozen=True)
class Query:
    """A table: universe of persons (None: units are counted), of units, the cell, whose race and origin."""

    persons: str | None
    units: str
    cell: str
    race: tuple[str, str] | None


OF_UNIT, OF_PERSON = ("u.HHRACE", "u.HHSPAN"), ("p.CENRACE", "p.CENHISP")
AGE = "CASE WHEN p.QAGE < 18 THEN 2 ELSE 3 END"
OWN = "p.RELSHIP IN ('25', '26', '27')"
QUERIES = {
    "PH1_num": Query("RTYPE = '3'", "true", AGE, OF_UNIT),
    "PH1_denom": Query(None, "RTYPE = '2' AND HHT <> '0'", "1", OF_UNIT),
    "PH2": Query(
        "RTYPE = '3'",
        "true",
        """CASE WHEN u.HHT2 IN ('01', '02') AND u.CPLT = '1' THEN 3 WHEN u.HHT2 IN ('01', '02') AND u.CPLT = '2' THEN 4
        WHEN u.HHT2 IN ('03', '04') AND u.CPLT = '3' THEN 6 WHEN u.HHT2 IN ('03', '04') AND u.CPLT = '4' THEN 7
        WHEN u.HHT2 = '09' THEN 9 WHEN u.HHT2 IN ('10', '11', '12') THEN 10
        WHEN u.HHT2 = '05' THEN 12 WHEN u.HHT2 IN ('06', '07', '08') THEN 13 END""",
        None,
    ),
    "PH3": Query(
        "RTYPE = '3' AND QAGE < 18",
        "true",
        f"""CASE WHEN {OWN} THEN CASE u.HHT2 WHEN '01' THEN 4 WHEN '03' THEN 5 WHEN '10' THEN 6 WHEN '06' THEN 7 END
        WHEN p.RELSHIP = '30' THEN 9 WHEN p.RELSHIP IN ('28', '29', '31', '32', '33') THEN 10
        WHEN p.RELSHIP IN ('20', '21', '22', '23', '24', '34', '35', '36') THEN 2 END""",
        OF_PERSON,
    ),
    "PH4": Query("RELSHIP::int BETWEEN 20 AND 33 AND RELSHIP NOT IN ('22', '24')", "HHT <= '3'", AGE, OF_UNIT),
    "PH5_denom": Query(None, "HHT IN ('1', '2', '3')", "1", OF_UNIT),
    "PH6": Query(
        "QAGE < 18 AND RELSHIP IN ('25', '26', '27')",
        "true",
        """CASE u.HHT2 WHEN '01' THEN 3 WHEN '03' THEN 8 WHEN '10' THEN 13 WHEN '06' THEN 18 END
        + (p.QAGE >= 4)::int + (p.QAGE >= 6)::int + (p.QAGE >= 12)::int""",
        None,
    ),
    "PH7": Query(
        "RTYPE = '3'",
        "true",
        "CASE u.TEN WHEN '1' THEN 2 WHEN '2' THEN 3 WHEN '0' THEN NULL ELSE 4 END",
        OF_UNIT,
    ),
    "PH8_denom": Query(None, "RTYPE = '2' AND HHT <> '0'", "CASE WHEN u.TEN IN ('1', '2') THEN 2 ELSE 3 END", OF_UNIT),
}
ITERATIONS = """(VALUES ('*'), ('A'), ('B'), ('C'), ('D'), ('E'), ('F'), ('G'), ('H'), ('I')) AS i(code)"""
MIXED = {"PH1_num": 1, "PH2": 4, "PH3": 2, "PH4": 7, "PH6": 3, "PH7": 12}
ALIKE = {tau: dict.fromkeys(MIXED, tau) for tau in (1, 2, 3, 5)}

Cell = tuple[str, str, str, int]
"""REGION_TYPE, REGION_ID, iteration, cell."""


def in_iteration(race: str, origin: str) -> str:
    return f"""CASE i.code WHEN '*' THEN true WHEN 'H' THEN {origin} = '2'
        WHEN 'I' THEN {origin} = '1' AND {race} = '01'
        WHEN 'G' THEN {race} >= '07' ELSE {race} = lpad((ascii(i.code) - 64)::varchar, 2, '0') END"""


def count(db: duckdb.DuckDBPyConnection, query: Query, tau: int) -> dict[Cell, int]:
    """Non-zero counts of one table, each state's and the nation's."""
    placed = f"(SELECT * FROM units WHERE {query.units}) u JOIN geo g ON g.MAFID = u.MAFID AND g.RTYPE = '2'"
    if query.persons is None:
        records = placed
    else:
        records = f"""(
            SELECT * FROM numbered WHERE {query.persons}
            QUALIFY row_number() OVER (PARTITION BY MAFID ORDER BY sha256(
                concat_ws('|', '{KEY}', RTYPE, MAFID, QAGE, CENHISP, CENRACE, RELSHIP, copy))) <= {tau}
        ) p JOIN {placed} ON p.MAFID = u.MAFID"""
    chosen = in_iteration(*query.race) if query.race else "i.code = '*'"
    found = db.execute(f"""
        WITH cells AS (
            SELECT g.TABBLKST AS state, i.code AS iteration, {query.cell} AS cell
            FROM {records} JOIN {ITERATIONS} ON {chosen}
        )
        SELECT 'STATE', state, iteration, cell, count(*) FROM cells WHERE cell IS NOT NULL GROUP BY ALL
        UNION ALL
        SELECT 'USA', '1', iteration, cell, count(*) FROM cells WHERE cell IS NOT NULL GROUP BY ALL""").fetchall()
    return {(kind, state, code, int(cell)): int(number) for kind, state, code, cell, number in found}


def read_records(folder: Path) -> duckdb.DuckDBPyConnection:
    db = duckdb.connect()
    for name in ("persons", "units", "geo"):
        source = f"read_csv('{folder / name}.csv', delim = '|', all_varchar = true)"
        db.execute(f"CREATE TABLE {name} AS SELECT * FROM {source}")
    db.execute("""
        CREATE TABLE numbered AS SELECT * REPLACE (QAGE::int AS QAGE),
            row_number() OVER (PARTITION BY RTYPE, MAFID, QAGE, CENHISP, CENRACE, RELSHIP) AS copy FROM persons""")
    return db


def published(out: Path, table: str) -> dict[Cell, int]:
    db = duckdb.connect()
    source = f"read_csv('{out / table}.csv', delim = '|', all_varchar = true)"
    iteration = "ITERATION_CODE" if QUERIES[table].race else "'*'"
    rows = db.execute(f"SELECT REGION_TYPE, REGION_ID, {iteration}, COLUMNS('DATA_CELL'), COUNT FROM {source}")
    return {(kind, region, code, int(cell)): int(number) for kind, region, code, cell, number in rows.fetchall()}


@pytest.mark.sampled(3)
@pytest.mark.parametrize(("seed", "taus"), [(1, ALIKE[1]), (2, ALIKE[2]), (3, ALIKE[3]), (4, ALIKE[5]), (5, MIXED)])
@pytest.mark.slow
def test_both_plans_count_alike_at_unusual_taus(
    tmp_path: Path, seed: int, taus: dict[str, int], capsys: pytest.CaptureFixture[str]
) -> None:
    data, config, out = tmp_path / "data", tmp_path / "config.json", tmp_path / "out"
    synthesize(data, households=2500, states=("02", "06", "35", "48", "50"), seed=seed)
    config.write_text(json.dumps({**production_config(), "tau": taus, "truncation_key": KEY}))
    assert main(["phsafe", "exact", str(config), str(data), str(out)]) == 0
    db = read_records(data)
    for name, query in QUERIES.items():
        there = {cell: number for cell, number in published(out, name).items() if number}
        assert there == count(db, query, taus.get(name, 0)), name
    # A threshold that leaves nobody out would be no test.
    log = json.loads((tmp_path / "out.confidential.log").read_text())
    assert all(log["persons_left_out_by_truncation"][name] > 0 for name in taus)
    capsys.readouterr()
