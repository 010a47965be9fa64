"""Areas told by files beside the reference file: the Bureau's, and any table."""

from pathlib import Path

import pytest

from yupana.errors import InputError
from yupana.geography.assignments import kinds_of, read_with_areas
from yupana.geography.blocks import Reference
from yupana.geography.published import PublishedBlocks, published_blocks, read_published, write_published

BLOCKS = ("4400100010011000", "4400100010011001", "4400100010022000", "4400300010011000")

REFERENCE = "TABBLKST|TABBLKCOU|TABTRACTCE|TABBLKGRPCE|TABBLK|AIANNHCE|COUSUBFP|PLACEFP|SDUNILEA\n" + "".join(
    f"{b[:2]}|{b[2:5]}|{b[5:11]}|{b[11]}|{b[12:]}|{aiannh}|{cousub}|{place}|{school}\n"
    for b, aiannh, cousub, place, school in zip(
        BLOCKS,
        ("9999", "0010", "0010", "9999"),
        ("11111", "11111", "22222", "11111"),
        ("99999", "33333", "33333", "33333"),
        ("00030", "00030", "99999", "00060"),
        strict=True,
    )
)


def _with(folder: Path, text: str, name: str = "districts.csv") -> Path:
    (folder / name).write_text(text, encoding="utf-8")
    return folder / name


def _read(folder: Path, *files: Path) -> Reference:
    return read_with_areas(_with(folder, REFERENCE, "geography.txt"), (), files, schools=False)[0]


def _published(folder: Path, *files: Path) -> PublishedBlocks:
    return published_blocks(_read(folder, *files), nation=True)


def _areas(published: PublishedBlocks) -> dict[str, list[str]]:
    """By kind the identifier of the area of each block, or an empty text."""
    found = {}
    for kind, column in published.kinds.items():
        found[kind] = [column.labels[i] if i >= 0 else "" for i in column.index.tolist()]
    return found


def test_the_reference_file_tells_places_subdivisions_tribal_areas_and_schools(tmp_path: Path) -> None:
    assert _areas(_published(tmp_path)) == {
        "place": ["", "4433333", "4433333", "4433333"],
        "county_subdivision": ["4400111111", "4400111111", "4400122222", "4400311111"],
        "aiannh": ["", "0010", "0010", ""],
        "school_unified": ["4400030", "4400030", "", "4400060"],
    }


def test_all_kinds_of_areas_have_the_identifiers_of_the_bureau(tmp_path: Path) -> None:
    blocks = _read(tmp_path).block[[2, 0]]
    areas = {kind.name: kind for kind in _published(tmp_path).areas(blocks)}
    found = {name: [label.decode() for label in kind.labels.tolist()] for name, kind in areas.items()}
    assert found["us"] == ["US"]
    assert found["state"] == ["44"]
    assert found["county"] == ["44001", "44003"]
    assert found["tract"] == ["44001000100", "44003000100"]
    assert found["block_group"] == ["440010001001", "440010001002", "440030001001"]
    assert found["block"] == list(BLOCKS)
    assert found["place_county"] == ["4433333001", "4433333003"]
    assert found["state_aiannh"] == ["440010"]
    assert areas["block"].index.tolist() == [2, 0]
    assert areas["place"].index.tolist() == [0, -1]
    assert areas["place_county"].index.tolist() == [0, -1]
    assert areas["state_aiannh"].index.tolist() == [0, -1]


def test_a_table_of_any_kinds_becomes_areas(tmp_path: Path) -> None:
    rows = zip(BLOCKS, ("A1", "A1", "", "é"), ("000101", "000101", "000102", "000101"), strict=True)
    text = "block,ward,VTD\n" + "".join(f"{block},{ward},{vtd}\n" for block, ward, vtd in rows)
    found = _areas(_published(tmp_path, _with(tmp_path, text)))
    assert found["ward"] == ["A1", "A1", "", "é"]
    assert found["voting_district"] == ["44001000101", "44001000101", "44001000102", "44003000101"]


def test_a_block_assignment_file_says_its_kind_in_its_name_and_blocks_have_15_digits(tmp_path: Path) -> None:
    text = "BLOCKID|DISTRICT\n" + "".join(f"{b[:11]}{b[12:]}|{cd}\n" for b, cd in zip(BLOCKS, "1221", strict=True))
    file = _with(tmp_path, text.replace("|1", "|01").replace("|2", "|02"), "BlockAssign_ST44_RI_CD118.txt")
    assert kinds_of(file) == ("congressional_district",)
    assert _areas(_published(tmp_path, file))["congressional_district"] == ["4401", "4402", "4402", "4401"]


def test_codes_may_be_whole_identifiers(tmp_path: Path) -> None:
    text = "block|SLDU\n" + "".join(f"{b}|44001\n" for b in BLOCKS)
    assert set(_areas(_published(tmp_path, _with(tmp_path, text)))["state_upper"]) == {"44001"}


def test_blocks_beyond_the_reference_file_are_passed_over_and_counted(tmp_path: Path) -> None:
    text = "block|ward\n" + "".join(f"{b}|1\n" for b in (*BLOCKS, "4400300010011001"))
    file = _with(tmp_path, text)
    _, (told,) = read_with_areas(_with(tmp_path, REFERENCE, "geography.txt"), (), [file], schools=False)
    assert told.unknown == 1
    assert "1 of its blocks are not in the reference file" in told.remark
    assert "4400300010011001" in told.remark


@pytest.mark.parametrize("fmt", ["csv", "parquet"])
def test_what_is_written_is_read_back(fmt: str, tmp_path: Path) -> None:
    text = "block,ward\n" + "".join(f"{b},{w}\n" for b, w in zip(BLOCKS, ("99", "x|y", "", '"'), strict=True))
    published = _published(tmp_path, _with(tmp_path, text.replace('"', "q").replace("x|y", "x y")))
    out = tmp_path / "out"
    out.mkdir()
    rows = write_published(out, published, fmt)  # type: ignore[arg-type]
    assert list(rows.values()) == [4]
    back = read_published(out, nation=True)
    assert back.block.tolist() == published.block.tolist()
    assert _areas(back) == _areas(published)


BAD = {
    "a block is missing": ("block|ward\n" + "".join(f"{b}|1\n" for b in BLOCKS[1:]), "1 of 4 blocks"),
    "a block twice": ("block|ward\n" + "".join(f"{b}|1\n" for b in (*BLOCKS, BLOCKS[0])), "listed twice"),
    "no block": ("ward|x\n1|2\n", "no column block"),
    "nothing but blocks": ("block\n" + "".join(f"{b}\n" for b in BLOCKS), "no column but that of blocks"),
    "a code too short": ("block|VTD|SLDU\n" + "".join(f"{b}|1|A\n" for b in BLOCKS), "3 characters"),
    "a code of another county": ("block|COUSUB\n" + "".join(f"{b}|4400111111\n" for b in BLOCKS), "5 characters"),
    "another place": ("block|place\n" + "".join(f"{b}|33333\n" for b in BLOCKS), "1 blocks lie in another place"),
    "told by digits": ("block|county\n" + "".join(f"{b}|1\n" for b in BLOCKS), "is told by the digits"),
    "a name that is no file": ("block|a/b\n" + "".join(f"{b}|1\n" for b in BLOCKS), "cannot be called"),
    "two of one kind": ("block|VTD|vtdst\n" + "".join(f"{b}|1|1\n" for b in BLOCKS), "told by two columns"),
    "letters in a block": ("block|ward\n440010001001100x|1\n", "15 to 16 digits"),
    "another block group": ("block|ward\n4400100010021000|1\n", "disagrees"),
}


@pytest.mark.parametrize("what", BAD)
def test_a_faulty_file_is_refused(what: str, tmp_path: Path) -> None:
    text, said = BAD[what]
    with pytest.raises(InputError, match=said):
        _read(tmp_path, _with(tmp_path, text))


def test_a_kind_is_told_by_one_file(tmp_path: Path) -> None:
    text = "block|ward\n" + "".join(f"{b}|1\n" for b in BLOCKS)
    with pytest.raises(InputError, match="is told by one"):
        _read(tmp_path, _with(tmp_path, text, "one.csv"), _with(tmp_path, text, "two.csv"))


@pytest.mark.thorough
def test_a_table_of_areas_as_people_have_it(tmp_path: Path) -> None:
    header = "block;ward;SLDU;place;\n"
    rows = zip(
        BLOCKS, ("Sé", "Sé", "", "B"), ("1", "44002", "003", "3"), ("", "33333", "4433333", "33333"), strict=True
    )
    text = header + "".join(f"'{b};{ward};{sldu};{place};\n" for b, ward, sldu, place in rows)
    path = tmp_path / "areas.csv"
    path.write_bytes(text.encode("utf-16"))
    reference, told = read_with_areas(_with(tmp_path, REFERENCE, "geography.txt"), (), [path], schools=False)
    found = _areas(published_blocks(reference, nation=True))
    assert found["ward"] == ["Sé", "Sé", "", "B"]
    assert found["state_upper"] == ["44001", "44002", "44003", "44003"]
    said = "areas.csv, column SLDU: 2 codes had lost the leading zero, as in a spreadsheet, and got it back"
    assert [one.remark for one in told] == ["", f"{said}, first in line 2", ""]
    path.write_bytes(text.encode("latin-1"))
    with pytest.raises(InputError, match="line 2: not text in UTF-8; name the encoding"):
        _read(tmp_path, path)
    for encoding in ("latin-1", "cp1252"):
        files = _with(tmp_path, REFERENCE, "geography.txt"), (), [path]
        assert read_with_areas(*files, schools=False, encoding=encoding)[1] == told
    _with(tmp_path, "".join(f"{b}|1\n" for b in BLOCKS))
    with pytest.raises(InputError, match="line 1: holds codes; it must name the columns"):
        _read(tmp_path, tmp_path / "districts.csv")
    bare = _with(tmp_path, "".join(f"{b}|01\n" for b in BLOCKS), "BlockAssign_ST44_RI_CD118.txt")
    assert set(_areas(_published(tmp_path, bare))["congressional_district"]) == {"4401"}
