"""Spines of pieces against brute-force grouping of the written files: block group x place x AIAN area, whole."""

import json
import re
from collections import defaultdict
from fractions import Fraction
from math import isqrt
from pathlib import Path

import pytest
from census_maker import seeded
from hypothesis import given, settings
from hypothesis import strategies as st
from spine_maker import Block, random_blocks, read_table, write_reference

import yupana
from yupana.cli.main import main

STRONG = {"09", "23", "25", "26", "27", "33", "34", "36", "42", "44", "50", "55"}
LEVELS = ("US", "State", "County", "Tract", "Block_Group", "Block")


def build(tmp_path: Path, blocks: list[Block], *options: str) -> Path:
    reference, out = write_reference(tmp_path / "grfc.txt", blocks), tmp_path / "spine"
    assert main(["spine", "build", str(reference), str(out), "--overwrite", "--kind", "pieces", *options]) == 0
    return out


def on_spine(block: Block) -> bool:
    return int(block.aiannh) <= 7999 or 9000 <= int(block.aiannh) <= 9499


def piece(block: Block) -> tuple[object, ...]:
    """By the definition alone: which piece a block lies in."""
    area = block.aiannh if on_spine(block) else ""
    if block.state in STRONG and not area:
        governs = ("county subdivision", block.county, block.cousub)
    else:
        governs = ("place", block.state, block.place)
    return (block.geocode[:12], governs, area)


def grouped(blocks: list[Block]) -> set[frozenset[str]]:
    found: defaultdict[tuple[object, ...], set[str]] = defaultdict(set)
    for block in blocks:
        found[piece(block)].add(block.geocode)
    return set(map(frozenset, found.values()))


def written(out: Path, level: str) -> set[frozenset[str]]:
    found: defaultdict[str, set[str]] = defaultdict(set)
    for row in read_table(out / "blocks.csv"):
        found[row[level]].add(row["block"])
    return set(map(frozenset, found.values()))


@settings(max_examples=4, deadline=None)
@given(
    st.integers(0, 10**6),
    st.sampled_from([("17", "25"), ("72",), ("17", "40", "09")]),
    st.sampled_from(["zcdp", "pure"]),
    st.sampled_from(["County", "Tract_Group"]),
)
@pytest.mark.thorough
def test_pieces_are_block_group_by_place_by_area(
    tmp_path_factory: pytest.TempPathFactory, seed: int, states: tuple[str, ...], mechanism: str, above: str
) -> None:
    tmp_path = tmp_path_factory.mktemp("pieces")
    blocks = random_blocks(seeded(seed), states=states, blocks=40)
    levels = LEVELS if above == "County" else (*LEVELS[:3], "Tract_Group", *LEVELS[3:])
    # Under pure DP the theorem would make several units of one; with the cut-off 0 it cannot.
    out = build(tmp_path, blocks, "--mechanism", mechanism, "--bypass-cutoff", "0", "--levels", ",".join(levels))
    assert written(out, "Block_Group") == grouped(blocks)
    assert written(out, "Tract") == {
        frozenset(b.geocode for b in blocks if (b.geocode[:11], on_spine(b)) == key)
        for key in {(b.geocode[:11], on_spine(b)) for b in blocks}
    }
    assert main(["check", str(out)]) == 0
    shares = {(u["geolevel"], u["geounit"]): Fraction(u["share"]) for u in read_table(out / "geounits.csv")}
    for row in read_table(out / "blocks.csv"):
        assert sum(shares[level, row[level]] for level in levels) == 1


def test_an_only_child_gives_its_share_as_on_an_optimized_spine(tmp_path: Path) -> None:
    blocks = [Block("17", "031", "000100", "1", f"{1000 + i}", "9999", "99999", "00100") for i in range(3)]
    blocks += [Block("17", "031", "000200", "1", "1000", "9999", "99999", "00100")]
    units = read_table(build(tmp_path, blocks) / "geounits.csv")
    at = {unit["geounit"]: unit for unit in units if unit["geolevel"] in {"Tract", "Block_Group"}}
    assert at["017031000100"]["share"] == "1/3"
    assert at["0170310001000001"]["bypassed"] == "true"
    assert at["017031000200"]["share"] == "1/2"


def many() -> list[Block]:
    """One tract of 40 blocks in one block group and place, and 5 in another place."""
    of = [Block("17", "031", "000100", "1", f"{1000 + i}", "9999", "99999", "00100") for i in range(40)]
    return [*of, *(Block("17", "031", "000100", "2", f"{2000 + i}", "9999", "99999", "00200") for i in range(5))]


def test_pieces_are_whole_and_the_manifest_says_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = build(tmp_path, many())
    assert sorted(map(len, written(out, "Block_Group"))) == [5, 40]
    manifest = json.loads((out / "manifest.json").read_text())
    assert manifest["settings"]["kind"] == "pieces"
    assert manifest["settings"]["fanout_cutoff"] is None
    assert "remarks" not in manifest
    assert "remark" not in capsys.readouterr().err


@pytest.mark.parametrize(
    "options",
    [
        ("--kind", "pieces"),
        ("--kind", "optimized", "--classes", "pme,aian,TABBLKGRPCE"),
        ("--kind", "pieces", "--live"),
    ],
)
def test_a_cut_off_that_cuts_pieces_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], options: tuple[str, ...]
) -> None:
    if "--live" in options:
        listed = tmp_path / "blocks.txt"
        rows = [f"{block.geocode}|1|0|0|0|0|0|0|0" for block in many()]
        header = "block|housing_units|" + "|".join(f"gq{kind}" for kind in range(1, 8))
        listed.write_text("\n".join([header, *rows]) + "\n")
        options = (*options, "--blocks", str(listed))
    cap = isqrt(45) + 12 + 1
    out = build(tmp_path, many(), *options, "--fanout-cutoff", "12")
    assert sorted(map(len, written(out, "Block_Group"))) == sorted([5, cap, cap, 40 - 2 * cap])
    (remark,) = json.loads((out / "manifest.json").read_text())["remarks"]
    assert "12 cuts 1 of 2 pieces" in remark
    assert remark in capsys.readouterr().err
    # The greatest cut-off that still cuts, and the least that does not.
    for cutoff, cuts in ((32, True), (33, False)):
        out = build(tmp_path, many(), *options, "--fanout-cutoff", str(cutoff))
        assert (isqrt(45) + cutoff + 1 < 40) is cuts
        assert ("remarks" in json.loads((out / "manifest.json").read_text())) is cuts


def test_other_classes_cut_pieces_further(tmp_path: Path) -> None:
    reference = write_reference(tmp_path / "grfc.txt", many())
    wards = tmp_path / "wards.csv"
    wards.write_text("block,ward\n" + "".join(f"{b.geocode},{i % 2}\n" for i, b in enumerate(many())))
    out = tmp_path / "out"
    arguments = ["spine", "build", str(reference), str(out), "--kind", "pieces", "--areas", str(wards)]
    assert main([*arguments, "--classes", "pme,aian,ward"]) == 0
    assert sorted(map(len, written(out, "Block_Group"))) == [2, 3, 20, 20]
    assert main([*arguments, "--classes", "none", "--overwrite"]) == 0
    assert sorted(map(len, written(out, "Block_Group"))) == [5, 40]


@pytest.mark.parametrize("seed", range(4))
def test_the_settings_of_2020_beside_the_kind(tmp_path: Path, seed: int) -> None:
    blocks = [block._replace(aiannh="9999") for block in random_blocks(seeded(seed), states=("72",))]
    listed = tmp_path / "blocks.txt"
    header = "block|housing_units|" + "|".join(f"gq{kind}" for kind in range(1, 8))
    listed.write_text("\n".join([header, *(f"{b.geocode}|1|0|0|0|0|0|0|0" for b in blocks)]) + "\n")
    out = build(tmp_path, blocks, "--production", "pl94-2020", "--blocks", str(listed))
    assert written(out, "Block_Group") == grouped(blocks)
    assert json.loads((out / "manifest.json").read_text())["settings"]["levels"][0] == "State"


@pytest.mark.thorough
@pytest.mark.parametrize("seed", [5, 6])
def test_every_kind_stands_in_the_report_of_each(tmp_path: Path, seed: int) -> None:
    blocks = random_blocks(seeded(seed), blocks=40)
    kinds = ("conventional", "aian", "optimized", "pieces")
    folders = {kind: tmp_path / kind for kind in kinds}
    shown = {}
    for kind, folder in folders.items():
        build(tmp_path, blocks, "--kind", kind).rename(folder)
        page = yupana.report(folder, tmp_path / f"{kind}.html").read_text()
        (table,) = [text for text in re.findall(r"<table.*?</table>", page, re.DOTALL) if "Distances by kind" in text]
        cells = [re.findall(r"<td[^>]*>(.*?)</td>|<th scope=.row.[^>]*>(.*?)</th>", row) for row in table.split("<tr")]
        shown[kind] = {tuple(a or b for a, b in row) for row in cells if row}
    assert len({frozenset(rows) for rows in shown.values()}) == 1
    mean = {(row[0], row[1]): float(row[3]) for row in shown["pieces"]}
    # Block groups are units of the conventional spine.
    assert {kind for _, kind in mean} == {"conventional", "AIAN", "optimized", "pieces"}
    assert mean["block groups", "conventional"] == 1
    assert mean["block groups", "pieces"] <= mean["block groups", "optimized"]
    for kind, folder in folders.items():
        found = yupana.spine_distances(folder, folder / "entities.csv")
        far = [osed for column, _, _, osed in found.rows() if column == "place"]
        assert mean["places", "AIAN" if kind == "aian" else kind] == pytest.approx(sum(far) / len(far), rel=0.01)
