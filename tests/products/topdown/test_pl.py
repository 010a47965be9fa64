"""The summary files of P.L. 94-171: read as they are, written as they were, and refused with file and line."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from places import SHARED
from summary_files import random_summary_file

import yupana
from yupana.errors import InputError
from yupana.files.database import open_database, source_of
from yupana.geography.header import HEADER
from yupana.products.topdown.pl.summary_file import (
    SEGMENTS,
    file_names,
    read_geographic_header,
    read_summary_file,
    segment_variables,
    write_summary_file,
)
from yupana.products.topdown.pl.summary_records import SummaryFile

RHODE_ISLAND = SHARED / "data" / "ri_2018_e2e_pl_and_baf"
ILLINOIS = SHARED / "data" / "il_2020_2010_pl_tracts"
REST = "2018_2020Style.pl"
GEO, ONE, TWO, THREE = file_names("ri", "2020.pl")


def same(one: SummaryFile, other: SummaryFile) -> bool:
    return (
        all((one.fields[name] == other.fields[name]).all() for name in HEADER)
        and all((one.counts[table] == other.counts[table]).all() for segment in SEGMENTS for table in segment)
        and one.ends == other.ends
    )


@pytest.mark.skipif(not RHODE_ISLAND.is_dir(), reason="the public files are not here")
def test_the_files_of_rhode_island_come_out_byte_for_byte(tmp_path: Path) -> None:
    found = read_summary_file(RHODE_ISLAND)
    assert found.records == 606
    assert (found.variable("P0010001") == found.fields["POP100"].astype(np.int64)).all()
    names = write_summary_file(tmp_path, found, REST)
    assert names == list(file_names("ri", REST))
    for name in names:
        assert (tmp_path / name).read_bytes() == (RHODE_ISLAND / name).read_bytes()


@pytest.mark.skipif(not ILLINOIS.is_dir(), reason="the public files are not here")
@pytest.mark.parametrize("kind", ["tract", "county"])
def test_the_layout_is_that_of_the_files_of_2020(kind: str) -> None:
    """They were joined by others, who left CIFSN out; no field is longer than the layout says."""
    source = source_of(ILLINOIS / f"il_2020_pl_{kind}.parquet")
    with open_database() as db:
        names = [row[0] for row in db.execute(f"DESCRIBE SELECT * FROM {source}").fetchall()]
        expected = [name for name in HEADER if name != "CIFSN"]
        assert names == expected + [name for segment in range(3) for name in segment_variables(segment)]
        longest = db.execute(f"SELECT {', '.join(f'max(length({name}))' for name in expected)} FROM {source}")
        for name, length in zip(expected, longest.fetchall()[0], strict=True):
            assert (length or 0) <= HEADER[name], name
    assert len(HEADER) == 97


@given(st.integers(1, 30), st.integers(0, 2**32), st.sampled_from([b"\n", b"\r\n"]))
@pytest.mark.thorough
def test_what_is_written_is_read(tmp_path_factory: pytest.TempPathFactory, records: int, seed: int, end: bytes) -> None:
    file, folder = random_summary_file(records, seed, end=end), tmp_path_factory.mktemp("pl")
    assert write_summary_file(folder, file) == [GEO, ONE, TWO, THREE]
    # Another reader: lines and fields of text.
    for name, width in ((GEO, 97), (ONE, 149), (TWO, 152), (THREE, 15)):
        text = (folder / name).read_bytes().decode("latin-1")
        assert text.endswith(end.decode())
        lines = [line.split("|") for line in text.split(end.decode())[:-1]]
        assert {len(line) for line in lines} == {width}
        assert [line[7 if name == GEO else 4].encode() for line in lines] == file.fields["LOGRECNO"].tolist()
        if name == THREE:
            assert [list(map(int, line[5:])) for line in lines] == file.counts["P5"].tolist()
        if name == GEO:
            assert [line[87] for line in lines] == np.char.decode(file.fields["NAME"], "latin-1").tolist()
    assert same(read_summary_file(folder), file)
    assert (read_geographic_header(folder / GEO)["GEOID"] == file.fields["GEOID"]).all()
    # Segments may be in another order.
    two = (folder / TWO).read_bytes().splitlines(keepends=True)
    (folder / TWO).write_bytes(b"".join(reversed(two)))
    assert same(read_summary_file(folder / GEO), file)


Damage = Callable[[list[bytes]], list[bytes]]


def field(line: int, place: int, value: bytes) -> Damage:
    def damage(lines: list[bytes]) -> list[bytes]:
        fields = lines[line].split(b"|")
        fields[place] = value + (b"\n" if place == len(fields) - 1 else b"")
        return [*lines[:line], b"|".join(fields), *lines[line + 1 :]]

    return damage


DAMAGES: dict[str, tuple[str, Damage, str]] = {
    "cut short": (ONE, lambda lines: [*lines[:-1], lines[-1][:40]], f"{ONE}, line 5: the file is cut short"),
    "a line is gone": (TWO, lambda lines: lines[:-1], f"{GEO}, line 5: record '5' is not in {TWO}"),
    "lines are gone": (THREE, lambda lines: lines[3:], f"{GEO}, line 1: record '1' is not in {THREE}, nor 2 more"),
    "a line of the header": (GEO, lambda lines: lines[1:], f"{ONE}, line 1: record '1' is not in {GEO}"),
    "twice": (GEO, lambda lines: [*lines, lines[1]], f"{GEO}, line 6: record '2' is there twice; first in line 2"),
    "twice in a segment": (TWO, lambda lines: [*lines, lines[1]], f"{TWO}, line 6: record '2' is there twice"),
    "too few": (ONE, lambda lines: [lines[0], b"PLST|RI\n", *lines[2:]], f"{ONE}, line 2: 2 fields, where 149 belong"),
    "too many": (GEO, lambda lines: [b"|" + lines[0], *lines[1:]], f"{GEO}, line 1: 98 fields, where 97 belong"),
    "compensated": (
        THREE,
        lambda lines: [lines[0].replace(b"|", b"", 1), b"|" + lines[1], *lines[2:]],
        f"{THREE}, line 1: 14 fields, where 15 belong",
    ),
    "empty line": (THREE, lambda lines: [*lines, b"\n"], f"{THREE}, line 6: 1 fields"),
    "no number": (ONE, field(2, 7, b"1x"), f"{ONE}, line 3: P0010003 is not a whole number"),
    "negative": (TWO, field(4, 151, b"-1"), f"{TWO}, line 5: H0010003 is not a whole number"),
    "no count": (THREE, field(1, 5, b""), f"{THREE}, line 2: P0050001 is not a whole number"),
    "too large": (THREE, field(1, 5, b"1234567890"), f"{THREE}, line 2: P0050001 is not a whole number"),
    "long field": (GEO, field(3, 12, b"044"), f"{GEO}, line 4: STATE has 3 characters, and at most 2"),
    "other segment": (ONE, field(0, 3, b"02"), f"{ONE}, line 1: CIFSN is '02', and 01 in this file"),
    "other state": (TWO, field(3, 1, b"MA"), f"{TWO}, line 4: STUSAB is 'MA', and 'RI' in line 4 of {GEO}"),
    "other file": (THREE, field(3, 0, b"x"), f"{THREE}, line 4: FILEID is 'x', and 'PLST' in line 4 of {GEO}"),
    "other people": (GEO, field(4, 90, b"77"), f"{GEO}, line 5: POP100 is not P0010001"),
    "other adults": (TWO, field(4, 5, b"101"), f"{GEO}, line 5: P0030001 of segment 2 is more than P0010001"),
    "other quarters": (THREE, field(0, 5, b"101"), f"{GEO}, line 1: P0050001 of segment 3 is more than P0010001"),
    "line ends": (GEO, lambda lines: [lines[0][:-1] + b"\r\n", *lines[1:]], f"{GEO}, line 2: the line ends otherwise"),
    "NUL": (GEO, field(2, 87, b"a\0b"), f"{GEO}, line 3: not text"),
    "empty": (ONE, lambda _: [], f"{ONE} is empty"),
}


@pytest.mark.parametrize("what", DAMAGES)
def test_damaged_files_are_refused_with_file_and_line(what: str, tmp_path: Path) -> None:
    header = {name: np.full(5, b"") for name in HEADER}
    header |= {"FILEID": np.full(5, b"PLST"), "STUSAB": np.full(5, b"RI"), "CIFSN": np.full(5, b"00")}
    header |= {"LOGRECNO": np.array([b"1", b"2", b"3", b"4", b"5"]), "POP100": np.full(5, b"100")}
    tables = {
        table: np.full((5, size), 100, dtype=np.int32)
        for table, size in {"P1": 71, "P2": 73, "P3": 71, "P4": 73, "H1": 3, "P5": 10}.items()
    }
    write_summary_file(tmp_path, SummaryFile(header, tables))
    read_summary_file(tmp_path)
    name, damage, told = DAMAGES[what]
    path = tmp_path / name
    path.write_bytes(b"".join(damage(path.read_bytes().splitlines(keepends=True))))
    with pytest.raises(InputError) as refused:
        read_summary_file(tmp_path)
    assert told in str(refused.value)
    assert "\n" not in str(refused.value)


@pytest.mark.thorough
def test_states_are_read_as_tables_one_after_another(tmp_path: Path) -> None:
    states = {name: random_summary_file(4, seed, state=name.encode()) for seed, name in enumerate(("MA", "RI"))}
    for file in states.values():
        write_summary_file(tmp_path, file)
    found = yupana.read_pl(tmp_path)
    assert repr(found) == "<P.L. 94-171 of MA, RI: 8 areas; tables header, P1, P2, P3, P4, H1, P5>"
    assert list(found) == ["header", "P1", "P2", "P3", "P4", "H1", "P5"]
    for name in list(found):
        assert "\n" not in repr(found[name])
        assert len(repr(found[name])) < 400
    for name in HEADER:
        here = [text.decode("latin-1") or None for file in states.values() for text in file.fields[name].tolist()]
        if name not in {"AREALAND", "AREAWATR", "POP100", "HU100", "INTPTLAT", "INTPTLON"}:
            assert found.header[name] == here
    assert found.header["POP100"] == found["P1"]["P0010001"] == found.variable("P0010001").tolist()
    for name, values in found.counts.items():
        assert found[name][f"{name[0]}00{name[1]}0001"] == values[:, 0].tolist()
    frame = pl.DataFrame(found)
    assert frame.shape == (8, 97 + sum(values.shape[1] for values in found.counts.values()))
    assert frame["STUSAB"].to_list() == ["MA"] * 4 + ["RI"] * 4
    assert pd.DataFrame.from_arrow(found["H1"])["H0010003"].tolist() == found.variable("H0010003").tolist()
    assert "<table>" in found._repr_html_()
    one = yupana.read_pl([tmp_path / "rigeo2020.pl", str(tmp_path / "mageo2020.pl")])
    assert one.fields["STUSAB"].tolist() == [b"RI"] * 4 + [b"MA"] * 4
    with pytest.raises(KeyError, match="there is no table 'P9'; there are header, P1"):
        found["P9"]
    with pytest.raises(InputError, match="of the same state, 'RI'; name one"):
        yupana.read_pl([tmp_path, tmp_path / "rigeo2020.pl"])
    (tmp_path / "vt000012020.pl").write_text("x\n")
    with pytest.raises(InputError, match=r"vt000012020.pl has no geographic header beside it"):
        yupana.read_pl(tmp_path)
    (tmp_path / "vt000012020.pl").rename(tmp_path / "vtgeo2018.pl")
    with pytest.raises(InputError, match=r"mageo2020.pl and vtgeo2018.pl are of different runs; name one"):
        yupana.read_pl(tmp_path)


def test_names_are_text_in_either_encoding_of_the_bureau(tmp_path: Path) -> None:
    file = random_summary_file(3, 1)
    names = np.array(["Cañon".encode("latin-1"), "Mayagüez".encode(), b""])
    write_summary_file(tmp_path, SummaryFile({**file.fields, "NAME": names}, file.counts))
    assert yupana.read_pl(tmp_path).header["NAME"] == ["Cañon", "Mayagüez", None]


def test_a_folder_must_hold_one_geographic_header(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="there is none"):
        read_summary_file(tmp_path)
    for name in ("rigeo2020.pl", "magEo2020.pl", "magEo.txt"):
        (tmp_path / name).write_text("x\n")
    with pytest.raises(InputError, match="line 1: 1 fields, where 97 belong"):
        read_summary_file(tmp_path)
    (tmp_path / "magEo2020.pl").rename(tmp_path / "mageo2020.pl")
    with pytest.raises(InputError, match=r"mageo2020.pl, rigeo2020.pl; name one"):
        read_summary_file(tmp_path)
    with pytest.raises(InputError, match="is no geographic header"):
        read_summary_file(tmp_path / "ri000012020.pl")
    with pytest.raises(InputError, match="is not there"):
        read_summary_file(tmp_path / "vtgeo2020.pl")
