"""District plans as people have them: dialects, unassigned blocks, crosswalks, and blocks of another vintage."""

from pathlib import Path

import numpy as np
import pytest

from yupana.arrays import Ints
from yupana.errors import InputError
from yupana.geography.district_plan import DistrictPlan, PlanOptions, read_plan
from yupana.geography.spine import Geolevel, Spine
from yupana.geography.tree import Tree
from yupana.geography.vintages import vintage_of

BLOCKS = ("060014001001000", "060014001001001", "060014001002000", "060014001002001")
CONNECTICUT = ("090010101011000", "090010101011001", "090030101021000", "090030101021001")
REGIONS = ("091100101011000", "091100101011001", "091400101021000", "091400101021001")


def whole(block: str) -> str:
    return block[:12][:11] + block[11] + block[11:]


def spine(*blocks: str) -> Spine:
    codes = np.array([int(whole(block)) for block in blocks])
    return Spine(Tree((), ()), (Geolevel.whole("Block", 16, codes),))


def nothing() -> Ints:
    return np.zeros(0, dtype=np.int64)


def plan(path: Path, text: str, blocks: tuple[str, ...] = BLOCKS, **options: str | Path) -> DistrictPlan:
    path.write_text(text, encoding="utf-8")
    read = PlanOptions(**options)  # type: ignore[arg-type]
    return read_plan(path, spine(*blocks), nothing, read, lambda some: 10.0 * some.sum())


def rows(blocks: tuple[str, ...], districts: str, before: str = "") -> str:
    return before + "".join(f"{block},{district}\n" for block, district in zip(blocks, districts, strict=True))


def districts(found: DistrictPlan) -> list[str]:
    named = [*found.districts, "apart"]
    return [named[number] for number in found.members.entity.tolist()]


def refusal(path: Path, text: str, blocks: tuple[str, ...] = BLOCKS, **options: str | Path) -> str:
    with pytest.raises(InputError) as raised:
        plan(path, text, blocks, **options)
    return str(raised.value)


def test_a_plan_needs_no_header_and_columns_may_have_any_name(tmp_path: Path) -> None:
    path = tmp_path / "plan.csv"
    found = plan(path, rows(BLOCKS, "1122"))
    assert (found.districts, districts(found), found.notes) == (("1", "2"), ["1", "1", "2", "2"], ())
    for text in (
        "".join(f"{d}\t1000000US{b}\n" for b, d in zip(BLOCKS, "1122", strict=True)),
        rows(BLOCKS, "1122", "SCTBKEY,whatever\n").replace(",", ";"),
        "".join(f"{whole(b)}|{d}.0\n" for b, d in zip(BLOCKS, "1122", strict=True)),
        ",GEOID20,District\n" + "".join(f"{i},{b},{d}\n" for i, (b, d) in enumerate(zip(BLOCKS, "1122", strict=True))),
    ):
        found = plan(path, text)
        assert (found.districts, districts(found)) == (("1", "2"), ["1", "1", "2", "2"])


def test_a_lost_zero_is_restored_and_said(tmp_path: Path) -> None:
    path = tmp_path / "plan.csv"
    for codes in (BLOCKS, tuple(map(whole, BLOCKS))):
        found = plan(path, rows(tuple(str(int(code)) for code in codes), "1122", "BLOCKID,DISTRICT\n"))
        assert districts(found) == ["1", "1", "2", "2"]
        assert found.notes == (
            "plan.csv, column BLOCKID: 4 codes had lost the leading zero, as in a spreadsheet, and got it back, first "
            "in line 2",
        )
    mixed = (BLOCKS[0], str(int(BLOCKS[1])), whole(BLOCKS[2]), str(int(whole(BLOCKS[3]))))
    assert "2 codes had lost the leading zero" in plan(path, rows(mixed, "1122")).notes[0]
    assert "1 code had lost" in plan(path, rows((*BLOCKS[:3], f"{int(BLOCKS[3])}.0"), "1122")).notes[0]


def test_what_is_no_code_is_named(tmp_path: Path) -> None:
    path = tmp_path / "plan.csv"
    text = refusal(path, rows(("6.00140010E+13", *BLOCKS[1:]), "1122", "BLOCKID,DISTRICT\n"))
    assert "line 2, column BLOCKID: '6.00140010E+13' is a number that a spreadsheet rounded" in text
    assert "rounded" in refusal(
        path, rows(("6,0014E+13", *BLOCKS[1:]), "1122").replace(",1\n", ";1\n").replace(",2\n", ";2\n")
    )
    assert "line 6 seems to be a row of totals; remove it" in refusal(
        path, rows((*BLOCKS, "Total"), "11224", "BLOCKID,DISTRICT\n")
    )
    assert "line 5 seems to be a row of totals" in refusal(path, rows((*BLOCKS, ""), "11224"))
    assert "line 2, column block: the value is not a code of 15 to 16 digits" in refusal(
        path, rows(("Total", *BLOCKS), "41122", "block,district\n")
    )
    assert "listed twice: 06001400100" in refusal(path, rows((*BLOCKS, BLOCKS[0]), "11221"))
    assert "listed twice, in two districts: 06001400100" in refusal(path, rows((*BLOCKS, BLOCKS[0]), "11222"))


@pytest.mark.parametrize("marker", ["", "ZZ", "zzz", "Unassigned", "NA", "nan"])
def test_unassigned_blocks_are_refused_or_kept_apart(marker: str, tmp_path: Path) -> None:
    path = tmp_path / "plan.csv"
    text = rows(BLOCKS[:2], "12") + f"{BLOCKS[2]},{marker}\n{BLOCKS[3]},1\n"
    said = refusal(path, text)
    assert f"1 block is in no district{f' ({marker})' if marker else ''}: {whole(BLOCKS[2])}" in said
    assert "say --unassigned CODE to keep them apart" in said
    found = plan(path, text, unassigned=marker or "ZZ")
    assert (found.districts, found.apart, districts(found)) == (("1", "2"), 1, ["1", "2", "apart", "1"])
    if marker:
        assert "or write Q in their place" in refusal(path, text, unassigned="Q")
    assert "one district alone, 1" in refusal(path, text.replace(",2\n", f",{marker}\n"), unassigned=marker or "ZZ")


def test_a_district_of_any_name_is_kept_apart_if_asked(tmp_path: Path) -> None:
    found = plan(tmp_path / "plan.csv", rows(BLOCKS, "0120"), unassigned="0")
    assert (found.districts, found.apart) == (("1", "2"), 2)
    assert plan(tmp_path / "plan.csv", rows(BLOCKS, "0120")).districts == ("0", "1", "2")


def test_codes_of_another_vintage_are_recognised(tmp_path: Path) -> None:
    path = tmp_path / "plan.csv"
    said = refusal(path, rows(REGIONS, "1122"), CONNECTICUT)
    assert "4 blocks are not in the release" in said
    assert "4 of them are codes of the planning regions of Connecticut, its counties from 2022 on; --crosswalk" in said
    assert "codes of the counties of Connecticut until 2021" in refusal(path, rows(CONNECTICUT, "1122"), REGIONS)
    assert "they lie in other states, such as 09" in refusal(path, rows((*BLOCKS, REGIONS[0]), "11222"))
    assert "their counties are known" in refusal(path, rows((*BLOCKS, "060014001002009"), "11222"))
    assert "in other counties" in refusal(path, rows((*BLOCKS, "060034001002009"), "11222"))
    assert vintage_of(nothing(), nothing()) == ""


def test_a_crosswalk_translates_blocks(tmp_path: Path) -> None:
    path, cross = tmp_path / "plan.csv", tmp_path / "crosswalk.csv"
    pairs = list(zip(REGIONS, CONNECTICUT, strict=True))
    cross.write_text("".join(f"{a};{b}\n" for a, b in pairs))
    found = plan(path, rows(REGIONS, "1122"), CONNECTICUT, crosswalk=cross)
    assert districts(found) == ["1", "1", "2", "2"]
    assert found.notes == ("crosswalk.csv: 4 of 4 blocks of the plan were translated",)
    # Columns have names, in any order, and rows of elsewhere; leading zeros were lost in both files.
    elsewhere = "060014001002009,x,060014001002001\n"
    cross.write_text("to,name,from\n" + "".join(f"{int(b)},x,{int(a)}\n" for a, b in pairs) + elsewhere)
    lost = tuple(str(int(block)) for block in REGIONS)
    assert districts(plan(path, rows(lost, "1122"), CONNECTICUT, crosswalk=cross)) == ["1", "1", "2", "2"]
    # Columns of other names are taken by what they hold, in the order in which the release has the last.
    cross.write_text("block_2020,tract,block_2022\n" + "".join(f"{int(b)},9001,{int(a)}\n" for a, b in pairs))
    found = plan(path, rows(REGIONS, "1122"), CONNECTICUT, crosswalk=cross)
    assert districts(found) == ["1", "1", "2", "2"]
    assert found.notes[-1].endswith("4 of 4 blocks of the plan were translated, from block_2022 to block_2020")
    # Several blocks may become one, if they have one district.
    cross.write_text("from,to\n" + "".join(f"{a},{b}\n" for a, b in [*pairs, ("091100101011002", CONNECTICUT[1])]))
    joined = (*REGIONS, "091100101011002")
    assert districts(plan(path, rows(joined, "11221"), CONNECTICUT, crosswalk=cross)) == ["1", "1", "2", "2"]
    said = refusal(path, rows(joined, "11222"), CONNECTICUT, crosswalk=cross)
    assert f"1 block is listed twice, in two districts: {whole(CONNECTICUT[1])}" in said


@pytest.mark.slow
def test_a_crosswalk_that_loses_something_is_refused(tmp_path: Path) -> None:
    path, cross = tmp_path / "plan.csv", tmp_path / "crosswalk.csv"
    pairs = list(zip(REGIONS, CONNECTICUT, strict=True))

    def said(of: list[tuple[str, str]], header: str = "from,to\n", districts: str = "1122") -> str:
        cross.write_text(header + "".join(f"{a},{b}\n" for a, b in of))
        return refusal(path, rows(REGIONS, districts), CONNECTICUT, crosswalk=cross)

    assert f"1 block is neither in it nor in the release: {whole(REGIONS[0])}" in said(pairs[1:])
    assert f"1 block is in several blocks of the release by it: {whole(REGIONS[0])}" in said(
        [*pairs, (REGIONS[0], CONNECTICUT[1])]
    )
    astray = said([*pairs[1:], (REGIONS[0], "090010101019000")])
    assert "1 block is led to what is no block of the release" in astray
    left = said([*pairs[:3], (REGIONS[3], CONNECTICUT[2])])
    assert f"1 block is left out, where the release has 10: {whole(CONNECTICUT[3])}" in left
    assert "that of the plan's blocks from" in said([], "a,b,c\n1,2,3\n")
    assert "not a code of 15 to 16 digits" in said([("09110", "09001")])
    assert "neither in it" in said([(b, a) for a, b in pairs])
