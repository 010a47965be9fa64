"""Print the marginals of a synthetic census beside published figures: `python tools/marginals.py CENSUS`.

CENSUS is a folder that `yupana synth` wrote, as CSV or Parquet. It must hold the mark `SYNTHETIC`: marginals of real
records are confidential. Published figures are rounded national ones; a dash stands where none is quoted. A second
table tells how areas differ. `--picture FILE.svg` draws the first, for which the charts of reports must be installed.
"""

import argparse
import glob
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import duckdb

from yupana.report.charts import BLUE, ORANGE, VEGA_LITE, Mark, log_dots, renderer


class _Marginal(NamedTuple):
    """A table of shares: its title, where the published figures are from, the query, and its cells with figures.

    The query gives a cell's key and its number of records or people; the cells are (key, label, published percent).
    """

    title: str
    source: str
    query: str
    cells: tuple[tuple[str, str, float | None], ...]


_OCCUPIED = "from units where RTYPE = '2' and FINAL_POP > 0"
_CODES = " + ".join(f"(QRACE{number} <> 'Null')::integer" for number in range(1, 9))


_MARGINALS = (
    _Marginal(
        "Household size",
        "one person: 2020 Census, DHC; the others about as in the ACS of 2021; rounded",
        f"select least(FINAL_POP, 7), count(*) {_OCCUPIED} group by 1",
        (
            ("1", "1 person", 27.6),
            ("2", "2", 34),
            ("3", "3", 15),
            ("4", "4", 13),
            ("5", "5", 6),
            ("6", "6", 2),
            ("7", "7 and more", 1.5),
        ),
    ),
    _Marginal(
        "Household type",
        "2020 Census, DHC, rounded",
        "select case when CPLT in ('1', '2') then 'married' when CPLT in ('3', '4') then 'cohabiting' "
        f"when HHT2 in ('05', '06', '07', '08') then 'female' else 'male' end, count(*) {_OCCUPIED} group by 1",
        (
            ("married", "married couple", 46),
            ("cohabiting", "cohabiting couple", 7),
            ("female", "female householder, no partner", 28),
            ("male", "male householder, no partner", 19),
        ),
    ),
    _Marginal(
        "Tenure",
        "2020 Census, DHC, rounded",
        f"select case when TEN in ('1', '2') then 'owner' else 'renter' end, count(*) {_OCCUPIED} group by 1",
        (("owner", "owned", 63.1), ("renter", "rented, or without payment of rent", 36.9)),
    ),
    _Marginal(
        "Housing units",
        "2020 Census, PL 94-171, rounded",
        "select FINAL_POP > 0, count(*) from units where RTYPE = '2' group by 1",
        (("true", "occupied", 90.3), ("false", "vacant", 9.7)),
    ),
    _Marginal(
        "Age",
        "2020 Census, DHC, rounded",
        "select case when QAGE < 18 then '0' when QAGE < 25 then '18' when QAGE < 45 then '25' when QAGE < 65 "
        "then '45' when QAGE < 85 then '65' else '85' end, count(*) from persons group by 1",
        (
            ("0", "under 18", 22.1),
            ("18", "18 to 24", 9.4),
            ("25", "25 to 44", 26.6),
            ("45", "45 to 64", 25.1),
            ("65", "65 to 84", 14.9),
            ("85", "85 and over", 1.9),
        ),
    ),
    _Marginal(
        "Sex",
        "2020 Census, DHC, rounded",
        "select QSEX, count(*) from person_records group by 1",
        (("1", "male", 49.1), ("2", "female", 50.9)),
    ),
    _Marginal(
        "Race",
        "2020 Census, PL 94-171, rounded",
        "select case when CENRACE <= '06' then CENRACE else 'more' end, count(*) from persons group by 1",
        (
            ("01", "White alone", 61.6),
            ("02", "Black alone", 12.4),
            ("03", "American Indian and Alaska Native alone", 1.1),
            ("04", "Asian alone", 6.0),
            ("05", "Native Hawaiian and Other Pacific Islander alone", 0.2),
            ("06", "Some Other Race alone", 8.4),
            ("more", "two or more races", 10.2),
        ),
    ),
    _Marginal(
        "Hispanic origin",
        "2020 Census, PL 94-171, rounded",
        "select CENHISP, count(*) from persons group by 1",
        (("2", "Hispanic", 18.7), ("1", "not Hispanic", 81.3)),
    ),
    _Marginal(
        "Detailed race codes of a person",
        "the aim is assumed: no figure is published",
        f"select least({_CODES}, 4), count(*) from person_records group by 1",
        (("1", "1", None), ("2", "2", None), ("3", "3", None), ("4", "4 to 8", None)),
    ),
    _Marginal(
        "Where people live",
        "2020 Census, DHC, rounded",
        "select case RELSHIP when '37' then '37' when '38' then '38' else 'home' end, count(*) from persons group by 1",
        (
            ("home", "households", 97.5),
            ("37", "institutional group quarters", 1.1),
            ("38", "other group quarters", 1.4),
        ),
    ),
    _Marginal(
        "Households of a block with any",
        "assumed; 2020: 22 on average",
        "select case when n = 1 then '1' when n < 5 then '2' when n < 20 then '5' when n < 100 then '20' "
        "when n < 300 then '100' else '300' end, count(*) from (select count(*) n from household_records "
        "group by TABBLKST, TABBLKCOU, TABTRACTCE, TABBLK) group by 1",
        (
            ("1", "1 household", None),
            ("2", "2 to 4", None),
            ("5", "5 to 19", None),
            ("20", "20 to 99", None),
            ("100", "100 to 299", None),
            ("300", "300 and more", None),
        ),
    ),
)


def _open(folder: Path) -> duckdb.DuckDBPyConnection:
    """Name the files of records as views; text columns stay text."""
    connection = duckdb.connect()
    files = ("persons.csv", "units.csv", "geo.csv", "person-records.txt", "household-records.txt")
    for name, ending in (file.split(".") for file in files):
        view = name.replace("-", "_")
        parquet = folder / f"{name}.parquet"
        if parquet.exists():
            rows = connection.read_parquet(glob.escape(str(parquet)))
        else:
            rows = connection.read_csv(
                glob.escape(str(folder / f"{name}.{ending}")), sep="|", header=True, all_varchar=True
            )
            numbers = [column for column in ("QAGE", "FINAL_POP") if column in rows.columns]
            changed = ", ".join(f"{column}::integer as {column}" for column in numbers)
            rows = rows.project(f"* replace ({changed})") if numbers else rows
        rows.create_view(view)
    return connection


def _shares(connection: duckdb.DuckDBPyConnection, marginal: _Marginal) -> tuple[int, list[float]]:
    """How many there are, and the percentage of each cell."""
    counts = {str(key).lower(): int(number) for key, number in connection.sql(marginal.query).fetchall()}
    total = sum(counts.values())
    return total, [100 * counts.get(key, 0) / total for key, _, _ in marginal.cells]


def _rows(connection: duckdb.DuckDBPyConnection) -> Iterator[str]:
    for marginal in _MARGINALS:
        total, shares = _shares(connection, marginal)
        yield f"| **{marginal.title}** ({marginal.source}) | {total:,} | |"
        for share, (_, label, published) in zip(shares, marginal.cells, strict=True):
            yield f"| {label} | {share:.2f} | {'-' if published is None else f'{published:g}'} |"


_TRACT = "from household_records group by TABBLKST, TABBLKCOU, TABTRACTCE having count(*) >= 200"
_PLACE = (
    "from geo join units using (MAFID) where geo.RTYPE = '2' and PLACEFP <> '99999' "
    "group by TABBLKST, PLACEFP having count(*) >= 200"
)
_AREAS = (
    ("Tracts: householders who own", f"select avg((TEN in ('1', '2'))::int) share {_TRACT}"),
    ("Tracts: householders who are Black alone", f"select avg((HHRACE = '02')::int) share {_TRACT}"),
    ("Tracts: householders who are Hispanic", f"select avg((QSPAN <> '9950')::int) share {_TRACT}"),
    ("Places: housing units that are vacant", f"select avg((FINAL_POP = 0)::int) share {_PLACE}"),
)


def _areas(connection: duckdb.DuckDBPyConnection) -> Iterator[str]:
    """How the shares of areas of 200 households (housing units) and more are spread."""
    for title, query in _AREAS:
        found = connection.sql(f"select count(*), unnest(quantile_cont(100 * share, [.1, .5, .9])) from ({query})")
        number, shares = 0, []
        for count, share in found.fetchall():
            number = int(count)
            shares.append(f"{share:.1f}")
        yield f"| {title} | {number:,} | {' | '.join(shares)} |"


def _draw(connection: duckdb.DuckDBPyConnection, path: Path) -> None:
    series = (Mark("synthetic", BLUE, "circle"), Mark("published", ORANGE, "diamond"))
    rows = []
    for marginal in _MARGINALS:
        _, shares = _shares(connection, marginal)
        for share, (_, label, published) in zip(shares, marginal.cells, strict=True):
            if published is not None:
                category = f"{marginal.title}: {label}"
                rows.append({"category": category, "series": "synthetic", "value": share})
                rows.append({"category": category, "series": "published", "value": published})
    chart = log_dots(rows, series, 760, axis="percent, logarithmic; circle: synthetic, diamond: published")
    # Text is drawn in the colour of the page, which an image of its own does not have.
    chart["background"] = "white"
    path.write_text(renderer().vegalite_to_svg(chart, vl_version=VEGA_LITE), encoding="utf-8")


def main() -> None:
    """Print one Markdown table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("census", type=Path, metavar="CENSUS", help="a folder that `yupana synth` wrote")
    parser.add_argument("--picture", type=Path, metavar="FILE.svg", help="draw the marginals, too")
    options = parser.parse_args()
    folder: Path = options.census
    if not (folder / "SYNTHETIC").is_file():
        sys.exit(f"{folder} holds no file named SYNTHETIC; marginals of real records are confidential")
    print("| | synthetic, percent | published, percent |")
    print("|---|---:|---:|")
    connection = _open(folder)
    for row in _rows(connection):
        print(row)
    print("\n| percent | areas | lowest tenth | middle | highest tenth |")
    print("|---|---:|---:|---:|---:|")
    for row in _areas(connection):
        print(row)
    if options.picture:
        _draw(connection, options.picture)


if __name__ == "__main__":
    main()
