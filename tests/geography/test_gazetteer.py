"""Names of areas: from a table, and from a geographic header."""

from pathlib import Path

import pytest

from yupana.errors import InputError
from yupana.geography.gazetteer import NAME_COLUMNS, AreaName, read_names, write_names

RHODE_ISLAND = Path("../shared/data/ri_2018_e2e_pl_and_baf/rigeo2018_2020Style.pl")


def _header(sumlev: str, geoid: str, name: str) -> str:
    fields = [""] * 97
    fields[2], fields[8], fields[84], fields[85], fields[87] = sumlev, geoid, "10", "0", name
    fields[92], fields[93] = "+41.8", "-071.5"
    return "|".join(fields)


def test_a_geographic_header_names_areas_by_their_identifiers(tmp_path: Path) -> None:
    path = tmp_path / "rigeo2020.pl"
    lines = [
        _header("040", "0400000US44", "Rhode Island"),
        _header("750", "7500000US440010301001000", "Block 1000"),
        _header("700", "7000000US44001440101", "Añadido"),
        _header("067", "0670000US44001000000000", "a part that is not published"),
    ]
    path.write_bytes("\n".join(lines).encode("latin-1"))
    assert read_names(path) == {
        ("state", "44"): AreaName("Rhode Island", "10", "0", "+41.8", "-071.5"),
        ("block", "4400103010011000"): AreaName("Block 1000", "10", "0", "+41.8", "-071.5"),
        ("voting_district", "44001440101"): AreaName("Añadido", "10", "0", "+41.8", "-071.5"),
    }


@pytest.mark.skipif(not RHODE_ISLAND.exists(), reason="public data are not there")
def test_the_header_of_rhode_island_is_read() -> None:
    names = read_names(RHODE_ISLAND)
    assert len(names) == 606
    assert names["county", "44007"].name == "Providence County"


def test_a_table_names_areas_and_is_written_back(tmp_path: Path) -> None:
    path = tmp_path / "names.csv"
    path.write_text('Kind,code,NAME,land\nplace,4459000,"Providence, city",5\nward,1,First,\n', encoding="utf-8")
    names = read_names(path)
    assert names["place", "4459000"] == AreaName("Providence, city", "5")
    (tmp_path / "areas").mkdir()
    rows = write_names(tmp_path, names, {"place": ["4459000", "4460000"], "ward": ["1"]})
    assert rows == {"areas/names.csv": 2}
    assert read_names(tmp_path / "areas" / "names.csv") == names


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("kind|code\nplace|1\n", "no column name"),
        ("kind|code|name\n", "names no area"),
        ("kind|code|name\nplace|1|a\nplace|1|b\n", "line 3: place 1 is there twice"),
        ("kind|code|name|land\nplace|1|a|x\n", "column land: not a number"),
        ("kind|code|name|latitude\nplace|1|a|91\n", "from -90 to 90"),
        ("kind|code|name\nplace|1\n", "2 fields"),
        ("kind|code|name|land\nplace|1|a|nan\n", "column land: not a number"),
        (_header("040", "0400000US44", "a") + "\n1|2\n", "line 2: 2 fields"),
    ],
)
def test_a_faulty_file_of_names_is_refused(text: str, said: str, tmp_path: Path) -> None:
    path = tmp_path / "names.csv"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(InputError, match=said):
        read_names(path)


def test_no_file_and_no_text_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot be read"):
        read_names(tmp_path / "none")
    (tmp_path / "bytes").write_bytes(b"kind|code|name\n\xff\xfe|1|2\n")
    with pytest.raises(InputError, match="UTF-8"):
        read_names(tmp_path / "bytes")


def test_columns_are_those_of_the_documentation() -> None:
    assert NAME_COLUMNS == ("kind", "code", "name", "land", "water", "latitude", "longitude")


def test_a_table_of_names_as_people_have_it(tmp_path: Path) -> None:
    path, notes = tmp_path / "names.csv", list[str]()
    path.write_bytes("county;0500000US06001;Alameda\nplace;'0600562;Piñon\nplace;653000;Oakland\n".encode("cp1252"))
    assert read_names(path, "cp1252", notes) == {
        ("county", "06001"): AreaName("Alameda"),
        ("place", "0600562"): AreaName("Piñon"),
        ("place", "0653000"): AreaName("Oakland"),
    }
    assert notes == ["names.csv: 1 codes got back the leading zero that they had lost, first in line 3"]
    with pytest.raises(InputError, match="line 2: not text in UTF-8"):
        read_names(path)
    path.write_text("kind,code,name\nplace,1,a\nplace,Total,b\n")
    assert len(read_names(path)) == 2
