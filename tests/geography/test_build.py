"""Spines from the command line against the rules of docs/spines.md, checked from the written files alone."""

import json
from collections import defaultdict
from fractions import Fraction
from itertools import pairwise
from math import isqrt
from pathlib import Path

import pytest
from census_maker import seeded
from spine_maker import Block, random_blocks, read_table, write_reference

from yupana.cli.main import main

LEVELS = ("US", "State", "County", "Tract", "Block_Group", "Block")
WITH_GROUPS = ("US", "State", "County", "Tract_Group", "Tract", "Block_Group", "Block")
STRONG = {"09", "23", "25", "26", "27", "33", "34", "36", "42", "44", "50", "55"}


def build(tmp_path: Path, blocks: list[Block], *options: str) -> Path:
    reference, out = write_reference(tmp_path / "grfc.txt", blocks), tmp_path / "spine"
    assert main(["spine", "build", str(reference), str(out), "--overwrite", *options]) == 0
    return out


def aian(block: Block) -> bool:
    code = int(block.aiannh)
    return code <= 7999 or 9000 <= code <= 9499


def entity(block: Block) -> tuple[str, str, str]:
    if block.state in STRONG and not aian(block):
        return ("mcd", block.county, block.cousub)
    return ("place", "", block.place)


def key(block: Block) -> tuple[object, ...]:
    return (entity(block), block.aiannh if aian(block) else "9999")


def check_hierarchy(out: Path, blocks: list[Block], levels: tuple[str, ...]) -> list[dict[str, str]]:
    """Every block once, levels nested, both files in agreement, shares along every path exactly 1."""
    rows, units = read_table(out / "blocks.csv"), read_table(out / "geounits.csv")
    assert list(rows[0]) == ["block", *levels]
    assert [row["block"] for row in rows] == sorted(block.geocode for block in blocks)
    assert all(row["Block"] == row["block"] for row in rows)
    named = {(unit["geolevel"], unit["geounit"]): unit for unit in units}
    assert len(named) == len(units)
    parents: defaultdict[tuple[str, str], set[str]] = defaultdict(set)
    children: defaultdict[tuple[str, str], set[str]] = defaultdict(set)
    for row in rows:
        for above, below in pairwise(levels):
            parents[below, row[below]].add(row[above])
            children[above, row[above]].add(row[below])
        assert sum(Fraction(named[level, row[level]]["share"]) for level in levels) == 1
    assert set(named) == set(parents) | {(levels[0], rows[0][levels[0]])}
    assert {row[levels[0]] for row in rows} == {rows[0][levels[0]]}
    for (level, name), unit in named.items():
        assert {unit["parent"]} == parents.get((level, name), {""})
        assert int(unit["children"]) == len(children[level, name])
        assert unit["bypassed"] in {"true", "false"}
        if unit["bypassed"] == "true":
            assert unit["share"] == "0"
    return rows


def together(rows: list[dict[str, str]], by: dict[str, object], level: str) -> bool:
    """Whether two blocks share a unit exactly if they share a key."""
    pairs = {(by[row["block"]], row[level]) for row in rows}
    return len(pairs) == len({a for a, _ in pairs}) == len({b for _, b in pairs})


@pytest.mark.parametrize("seed", range(6))
def test_the_conventional_spine_is_tabulation_geography(tmp_path: Path, seed: int) -> None:
    blocks = random_blocks(seeded(seed))
    out = build(tmp_path, blocks, "--kind", "conventional", "--levels", ",".join(WITH_GROUPS))
    rows = check_hierarchy(out, blocks, WITH_GROUPS)
    for level, digits in zip(WITH_GROUPS[1:], (2, 5, 9, 11, 12, 16), strict=True):
        assert all(row[level] == row["block"][:digits] for row in rows)
    units = read_table(out / "geounits.csv")
    assert {unit["share"] for unit in units} == {"1/7"}
    assert {unit["bypassed"] for unit in units} == {"false"}


@pytest.mark.parametrize("seed", range(6))
def test_the_aian_spine_cuts_every_unit_in_two_sides(tmp_path: Path, seed: int) -> None:
    blocks = random_blocks(seeded(seed))
    rows = check_hierarchy(build(tmp_path, blocks, "--kind", "aian"), blocks, LEVELS)
    for level, digits in zip(LEVELS[1:5], (2, 5, 11, 12), strict=True):
        sides = {b.geocode: (aian(b), b.geocode[:digits]) for b in blocks}
        assert together(rows, sides, level)
        assert all(row[level] == f"{sides[row['block']][0]:d}{row['block'][:digits]}" for row in rows)


def check_chunks(members: list[list[str]], n: int, cutoff: int, grouping: str) -> None:
    """The groups of one class of one tract: consecutive blocks in chunks."""
    cap = isqrt(n) + cutoff + 1
    members.sort()
    blocks = [block for group in members for block in group]
    assert blocks == sorted(blocks)
    sizes = [len(group) for group in members]
    total = sum(sizes)
    if grouping == "orig" or total <= cap or total % cap in {0, 1}:
        assert sizes == [cap] * (total // cap) + [total % cap] * (total % cap > 0)
    else:
        number = -(-total // cap)
        assert sizes == sorted([total // number] * (number - total % number) + [total // number + 1] * (total % number))


@pytest.mark.parametrize("seed", range(12))
def test_the_optimized_spine_follows_its_rules(tmp_path: Path, seed: int) -> None:
    rng = seeded(seed)
    blocks = random_blocks(rng, blocks=40)
    cutoff, grouping = rng.choice([0, 1, 3]), rng.choice(["orig", "even"])
    levels = rng.choice([LEVELS, WITH_GROUPS])
    out = build(
        tmp_path,
        blocks,
        *("--kind", "optimized", "--levels", ",".join(levels), "--entity-threshold", "2"),
        *("--fanout-cutoff", str(cutoff), "--grouping", grouping),
    )
    rows = check_hierarchy(out, blocks, levels)
    # Only zCDP's only children are bypassed, so the units of each geolevel are as they were.
    for level, digits in (("State", 2), ("County", 5), ("Tract", 11)):
        assert together(rows, {b.geocode: (aian(b), b.geocode[:digits]) for b in blocks}, level)
    key_of = {block.geocode: key(block) for block in blocks}
    groups: defaultdict[str, list[str]] = defaultdict(list)
    tract_of = {row["Block_Group"]: row["Tract"] for row in rows}
    sizes: defaultdict[str, int] = defaultdict(int)
    for row in rows:
        groups[row["Block_Group"]].append(row["block"])
        sizes[row["Tract"]] += 1
    classes: defaultdict[tuple[str, object], list[list[str]]] = defaultdict(list)
    for group, members in groups.items():
        assert len({key_of[block] for block in members}) == 1
        classes[tract_of[group], key_of[members[0]]].append(members)
    for (tract, _), found in classes.items():
        check_chunks(found, sizes[tract], cutoff, grouping)
    if "Tract_Group" in levels:
        tracts = {(row["County"], row["Tract_Group"], row["Tract"]) for row in rows}
        for county in {county for county, _, _ in tracts}:
            names = [group for of, group, _ in tracts if of == county]
            assert max(names.count(group) for group in names) <= isqrt(len(names)) + cutoff + 1
    check_only_children(out, levels)


def check_only_children(out: Path, levels: tuple[str, ...]) -> None:
    """Every only child, and nothing else, has given its share to its parent."""
    units = read_table(out / "geounits.csv")
    named = {(unit["geolevel"], unit["geounit"]): unit for unit in units}
    for unit in units:
        at = levels.index(unit["geolevel"])
        only = at > 0 and named[levels[at - 1], unit["parent"]]["children"] == "1"
        assert (unit["bypassed"] == "true") is only
        share, below = Fraction(0 if only else 1, len(levels)), unit
        while not only and below["children"] == "1":
            level = levels[levels.index(below["geolevel"]) + 1]
            below = next(u for u in units if u["geolevel"] == level and u["parent"] == below["geounit"])
            share += Fraction(1, len(levels))
        assert Fraction(unit["share"]) == share


def test_cutoffs_of_any_size_and_columns_that_only_sound_like_a_geocode(tmp_path: Path) -> None:
    blocks = random_blocks(seeded(8))
    reference = write_reference(tmp_path / "grfc.txt", blocks)
    header, *lines = reference.read_text().splitlines()
    reference.write_text("\n".join([f"{header}|BLOCK", *(f"{line}|1000" for line in lines)]) + "\n")
    cutoffs = [text for name in ("fanout", "bypass") for text in (f"--{name}-cutoff", "9" * 30)]
    options = ("--kind", "optimized", "--levels", ",".join(WITH_GROUPS), "--mechanism", "pure")
    out = tmp_path / "out"
    assert main(["spine", "build", str(reference), str(out), *options, *cutoffs, "--entity-threshold", "9" * 30]) == 0
    check_hierarchy(out, blocks, WITH_GROUPS)


def test_a_small_spine_under_zcdp(tmp_path: Path) -> None:
    # Three tracts of 6, 3 and 1 blocks, two classes in turn: the shares of single paths move up.
    found = []
    for tract, number in (("000100", 6), ("000200", 3), ("000300", 1)):
        places = ["00001", "99999"] * 3
        found += [Block("17", "031", tract, "1", f"{1000 + i}", "9999", "99999", places[i]) for i in range(number)]
    shares = "us=1/10,state=1/10,county=1/5,tract=1/5,block_group=1/5,block=1/5"
    out = build(tmp_path, found, "--kind", "optimized", "--fanout-cutoff", "0", "--shares", shares)
    units = read_table(out / "geounits.csv")
    by_tract = {
        unit["geounit"][-6:]: [(u["children"], u["share"]) for u in units if u["parent"] == unit["geounit"]]
        for unit in units
        if unit["geolevel"] == "Tract"
    }
    assert [u["share"] for u in units if u["geolevel"] == "Tract"] == ["1/5", "1/5", "3/5"]
    assert sorted(by_tract["000100"]) == [("3", "1/5"), ("3", "1/5")]
    assert sorted(by_tract["000200"]) == [("1", "2/5"), ("2", "1/5")]
    assert by_tract["000300"] == [("1", "0")]
    assert [u["share"] for u in units if u["geolevel"] in LEVELS[:3]] == ["2/5", "0", "0"]


def test_pure_dp_bypasses_by_the_theorem_with_unique_names(tmp_path: Path) -> None:
    blocks = random_blocks(seeded(3), blocks=30)
    out = build(tmp_path, blocks, "--kind", "optimized", "--mechanism", "pure", "--levels", ",".join(WITH_GROUPS))
    rows = check_hierarchy(out, blocks, WITH_GROUPS)
    units = read_table(out / "geounits.csv")
    named = {(unit["geolevel"], unit["geounit"]): unit for unit in units}
    # What was not bypassed below the county does not satisfy the theorem, unless its own share had moved up.
    kept = [unit for unit in units if unit["children"] != "1" and unit["bypassed"] == "false"]
    for unit in kept:
        if unit["geolevel"] in {"Tract_Group", "Tract", "Block_Group"}:
            level = WITH_GROUPS[WITH_GROUPS.index(unit["geolevel"]) + 1]
            shares = [Fraction(u["share"]) for u in units if u["geolevel"] == level and u["parent"] == unit["geounit"]]
            assert 2 * min(shares) < (len(shares) - 1) * Fraction(unit["share"])
    assert any("-" in unit["geounit"] for unit in units)
    assert len({row["County"] for row in rows}) == len({(aian(b), b.geocode[:5]) for b in blocks})
    assert all(named["Block", row["block"]]["children"] == "0" for row in rows)


def attributes(path: Path, rows: dict[str, tuple[int, ...]]) -> Path:
    header = "block|housing_units|" + "|".join(f"gq{kind}" for kind in range(1, 8))
    lines = [f"{block}|{'|'.join(map(str, counts))}" for block, counts in rows.items()]
    path.write_text("\n".join([header, *lines]) + "\n")
    return path


@pytest.fixture
def county() -> list[Block]:
    return [
        Block("17", "031", f"000{1 + i // 20}00", "1", f"{1000 + i % 20}", "9999", "10000", "99999") for i in range(60)
    ]


def test_live_blocks_and_group_quarters_come_from_public_lists(tmp_path: Path, county: list[Block]) -> None:
    counts = {
        block.geocode: (i % 3, *([1] if i % 5 == 0 else [0]), 0, 0, 0, *([2] if i % 7 == 0 else [0]), 0, 0)
        for i, block in enumerate(county)
    }
    listed = attributes(tmp_path / "blocks.txt", counts)
    live = [block for block in county if any(counts[block.geocode])]
    out = build(tmp_path, county, "--kind", "optimized", "--classes", "pme,aian,gq", "--blocks", str(listed), "--live")
    rows = check_hierarchy(out, live, LEVELS)
    quarters = {block: tuple(count > 0 for count in counts[block][1:]) for block in counts}
    for group in {row["Block_Group"] for row in rows}:
        assert len({quarters[row["block"]] for row in rows if row["Block_Group"] == group}) == 1
    # Without --live all blocks are on the spine.
    check_hierarchy(build(tmp_path, county, "--kind", "aian", "--blocks", str(listed)), county, LEVELS)


def test_school_districts_and_columns_of_the_user_split_block_groups(tmp_path: Path, county: list[Block]) -> None:
    reference = write_reference(tmp_path / "grfc.txt", county)
    header, *lines = reference.read_text().splitlines()
    more = [
        f"{line}|{'00100' if i % 2 else '99999'}|99999|99999|{'a' if i % 3 else ''}" for i, line in enumerate(lines)
    ]
    reference.write_text("\n".join([f"{header}|SDUNILEA|SDSECLEA|SDELMLEA|WARD", *more]) + "\n")
    out = tmp_path / "out"
    assert main(["spine", "build", str(reference), str(out), "--kind", "optimized", "--classes", "school,ward"]) == 0
    rows = {row["block"]: row["Block_Group"] for row in read_table(out / "blocks.csv")}
    classes = {block.geocode: (block.tract, i % 2, i % 3 > 0) for i, block in enumerate(county)}
    assert len(set(rows.values())) == len(set(classes.values())) == len({(rows[b], c) for b, c in classes.items()})


def test_production_settings(tmp_path: Path, county: list[Block], capsys: pytest.CaptureFixture[str]) -> None:
    listed = attributes(tmp_path / "blocks.txt", {block.geocode: (1, *[0] * 7) for block in county})
    reference = write_reference(tmp_path / "grfc.txt", county)
    arguments = ["spine", "build", str(reference), str(tmp_path / "out"), "--production", "pl94-2020", "--json"]
    assert main(arguments) == 2
    assert "--blocks" in capsys.readouterr().err
    assert main([*arguments, "--blocks", str(listed)]) == 0
    settings = json.loads(capsys.readouterr().out)["settings"]
    assert settings["kind"] == "optimized"
    assert settings["classes"] == ["pme", "aian", "gq"]
    shares = {"US": 104, "State": 1440, "County": 447, "Tract": 687, "Block_Group": 1256, "Block": 165}
    assert {level: Fraction(share) for level, share in settings["shares"].items()} == {
        level: Fraction(share, 4099) for level, share in shares.items()
    }
    assert (settings["fanout_cutoff"], settings["entity_threshold"], settings["bypass_cutoff"]) == (12, 9, 150)
    assert settings["mechanism"] == "zcdp"
    assert "tdsa" not in settings["aian_areas"]
    assert len(settings["aian_areas"]) == 7


def test_puerto_rico_has_no_nation_above(
    tmp_path: Path, county: list[Block], capsys: pytest.CaptureFixture[str]
) -> None:
    island = [block._replace(state="72") for block in county]
    listed = attributes(tmp_path / "blocks.txt", {block.geocode: (1, *[0] * 7) for block in island})
    out = build(tmp_path, island, "--production", "pl94-2020", "--blocks", str(listed))
    check_hierarchy(out, island, LEVELS[1:])
    assert main(["spine", "build", str(tmp_path / "grfc.txt"), str(tmp_path / "two"), "--kind", "aian"]) == 0
    capsys.readouterr()


def distances(out: Path, entities: Path, capsys: pytest.CaptureFixture[str], *options: str) -> list[dict[str, str]]:
    capsys.readouterr()
    assert main(["spine", "distance", str(out), str(entities), "--json", *options]) == 0
    found: list[dict[str, str]] = json.loads(capsys.readouterr().out)
    return found


def osed(rows: list[dict[str, str]], held: set[str], levels: tuple[str, ...]) -> int:
    """Algorithm 1 by recursion over the written hierarchy."""

    def up(below: list[dict[str, str]], depth: int) -> tuple[int, int]:
        if depth == len(levels):
            return (1, 0) if below[0]["block"] in held else (0, 1)
        parts: defaultdict[str, list[dict[str, str]]] = defaultdict(list)
        for row in below:
            parts[row[levels[depth]]].append(row)
        pairs = [up(part, depth + 1) for part in parts.values()]
        x, y = sum(c for c, _ in pairs), sum(c for _, c in pairs)
        return min(x, y + 1), min(y, x + 1)

    return up(rows, 1)[0]


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("root", ["nation", "county"])
def test_distances_of_a_file_of_entities(
    tmp_path: Path, seed: int, root: str, capsys: pytest.CaptureFixture[str]
) -> None:
    rng = seeded(seed)
    blocks = random_blocks(rng)
    kind = rng.choice(["conventional", "aian", "optimized"])
    levels = WITH_GROUPS
    out = build(
        tmp_path, blocks, "--kind", kind, "--levels", ",".join(levels), "--mechanism", rng.choice(["zcdp", "pure"])
    )
    held: defaultdict[tuple[str, str], set[str]] = defaultdict(set)
    lines = ["block,area,zone"]
    for block in blocks:
        area, zone = rng.choice(["", "999", "1", "2"]), rng.choice(["north", "south", "9"])
        lines.append(f"{block.geocode},{area},{zone}")
        for column, value in (("area", area), ("zone", zone)):
            if value.strip("9"):
                held[column, value].add(block.geocode)
    entities = tmp_path / "entities.csv"
    entities.write_text("\n".join(lines) + "\n")
    rows = read_table(out / "blocks.csv")
    found = distances(out, entities, capsys, "--root", root)
    if root == "nation":
        expected = [{"column": c, "entity": e, "osed": osed(rows, held[c, e], levels)} for c, e in sorted(held)]
        assert found == expected
        return
    by_county = {row["block"]: row["County"] for row in rows}
    expected = [
        {
            "column": c,
            "entity": e,
            "county": county,
            "osed": osed([row for row in rows if row["County"] == county], held[c, e], levels[2:]),
        }
        for c, e in sorted(held)
        for county in sorted({by_county[block] for block in held[c, e]})
    ]
    assert found == expected


def test_the_folder_holds_its_own_entities(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    blocks = random_blocks(seeded(5))
    out = build(tmp_path, blocks, "--kind", "optimized")
    found = distances(out, out / "entities.csv", capsys)
    assert {row["column"] for row in found} >= {"place", "county_subdivision"}
    assert {row["entity"] for row in found if row["column"] == "place"} == {
        b.state + b.place for b in blocks if b.place != "99999"
    }


@pytest.mark.slow
def test_places_that_count_and_group_quarters_are_among_the_entities(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rng = seeded(8)
    blocks = random_blocks(rng)
    kinds = {block.geocode: [int(rng.random() < 0.3) for _ in range(7)] for block in blocks}
    lines = ["|".join(["block", "housing_units", *(f"gq{j}" for j in range(1, 8))])]
    lines += ["|".join([code, "1", *map(str, there)]) for code, there in kinds.items()]
    (tmp_path / "blocks.csv").write_text("\n".join(lines) + "\n")
    listed = ["--blocks", str(tmp_path / "blocks.csv")]
    out = build(tmp_path, blocks, "--kind", "optimized", "--classes", "pme,aian,gq", *listed)
    found = distances(out, out / "entities.csv", capsys)
    quarters = {
        f"{code[:11]}{sum(2**j for j, one in enumerate(there) if one):03}"
        for code, there in kinds.items()
        if any(there)
    }
    counting = {
        b.state + (b.county + b.cousub if entity(b)[0] == "mcd" else b.place) for b in blocks if entity(b)[2] != "99999"
    }
    assert {row["entity"] for row in found if row["column"] == "gq"} == quarters
    assert {row["entity"] for row in found if row["column"] == "pme"} == counting
    without = build(tmp_path, blocks, "--kind", "optimized", "--classes", "aian", *listed)
    assert {row["column"] for row in distances(without, without / "entities.csv", capsys)} <= {
        "place",
        "county_subdivision",
        "aiannh",
    }


def test_every_geounit_is_one_geounit_away(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = build(tmp_path, random_blocks(seeded(6)), "--kind", "optimized", "--levels", ",".join(WITH_GROUPS))
    found = distances(out, out / "blocks.csv", capsys)
    assert {(row["column"], row["osed"]) for row in found} == {(level, 1) for level in WITH_GROUPS}


@pytest.mark.parametrize("separator", ["|", ","])
def test_both_separators_and_any_order_of_columns_are_read(tmp_path: Path, county: list[Block], separator: str) -> None:
    reference = write_reference(tmp_path / "grfc.txt", county, separator)
    lines = [separator.join(reversed(line.split(separator))) for line in reference.read_text().splitlines()]
    reference.write_bytes(b"\xef\xbb\xbf" + "\r\n".join(lines).encode() + b"\r\n")
    assert main(["spine", "build", str(reference), str(tmp_path / "out"), "--kind", "aian"]) == 0
    check_hierarchy(tmp_path / "out", county, LEVELS)
