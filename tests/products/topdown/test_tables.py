"""Tables P1 to P5 and H1, and the records of P.L. 94-171, against published files and against plain Python."""

import importlib.util
from collections import Counter
from itertools import combinations
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
from counted_blocks import count_all
from hypothesis import given
from hypothesis import strategies as st
from places import ROOT, SHARED
from published_tables import cross_tables
from schemas import PL94, make_schema

from yupana.errors import InputError
from yupana.geography.blocks import read_reference
from yupana.geography.kinds import summary_levels
from yupana.geography.published import published_blocks
from yupana.products.topdown.codebook import variable_labels
from yupana.products.topdown.pl.summary_file import read_summary_file
from yupana.products.topdown.tables import PERSON_COLUMNS, UNIT_COLUMNS, race_variables, tables_of
from yupana.topdown.histogram import Histogram, count_entries, sum_to_areas
from yupana.topdown.text_rows import variables

DATA = SHARED / "data"
RHODE_ISLAND = DATA / "ri_2018_e2e_pl_and_baf"
ILLINOIS = DATA / "il_2020_2010_pl_tracts" / "il_2020_pl_tract.parquet"
COOK = DATA / "cook_il_2010_pl_blocks" / "cook_2010_pl_block.parquet"
H1 = make_schema(h1=2)
SIZES = {"P1": 71, "P2": 73, "P3": 71, "P4": 73, "P5": 10}


def test_other_schemas_have_a_table_of_the_total_and_every_level() -> None:
    schema = make_schema(a=3, b=2, c=4)
    (table,) = tables_of(schema)
    counts = np.random.default_rng(7).integers(0, 9, size=(5, *schema.shape))
    unit, cell = np.indices((5, schema.cells)).reshape(2, -1)
    found = variables(count_entries(unit, cell, counts.reshape(-1), 5), table.member, table.size)
    expected = [counts.sum(axis=(1, 2, 3)), *counts.sum(axis=(2, 3)).T, *counts.sum(axis=(1, 3)).T]
    assert (found == np.stack([*expected, *counts.sum(axis=(1, 2)).T], axis=1)).all()
    assert table.variables == tuple(f"T001{place:04}" for place in range(1, 11))
    assert variable_labels(table.name, schema)[4:6] == ("b: 0", "b: 1")


def example(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, ROOT / "examples" / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def lines_of_p1(cenrace: int) -> set[int]:
    """The lines of P1, from 1, in which a combination counts: each heading is counted off in turn."""
    line, code, found = 2, 0, {1}
    for number in range(1, 7):
        if number == 2:
            line += 1
            several = line
        if number > 1:
            line += 1
        head = line
        for _ in combinations("123456", number):
            line += 1
            if code == cenrace:
                found |= {line, head} if number == 1 else {line, head, several}
            code += 1
    assert (line, code) == (71, 63)
    return found


def oracle(hhgq: int, votingage: int, hispanic: int, cenrace: int) -> dict[str, set[int]]:
    """The lines of each table, from 1, in which a person counts."""
    races = lines_of_p1(cenrace)
    crossed = {1, 2} if hispanic else {1, 3} | {line + 2 for line in races if line > 1}
    quarters = {0: set[int](), **{g: {1, 2, g + 2} for g in range(1, 5)}, **{g: {1, 7, g + 3} for g in range(5, 8)}}
    adult = bool(votingage)
    return {"P1": races, "P2": crossed, "P3": races if adult else set(), "P4": crossed if adult else set()} | {
        "P5": quarters[hhgq]
    }


def test_every_cell_counts_in_the_lines_of_the_oracle() -> None:
    tables = {table.name: table for table in tables_of(PL94)}
    assert {name: table.size for name, table in tables.items()} == SIZES
    for cell in range(PL94.cells):
        expected = oracle(*map(int, np.unravel_index(cell, PL94.shape)))
        for name, table in tables.items():
            lines = [int(v) + 1 for v in table.member[cell] if v >= 0]
            assert len(lines) == len(set(lines))
            assert set(lines) == expected[name]


def test_names_of_variables() -> None:
    tables = {table.name: table.variables for table in (*tables_of(PL94), *tables_of(H1))}
    assert (tables["P1"][0], tables["P1"][-1]) == ("P0010001", "P0010071")
    assert (tables["P4"][-1], tables["P5"][-1], tables["H1"]) == (
        "P0040073",
        "P0050010",
        ("H0010001", "H0010002", "H0010003"),
    )


def test_units_are_counted_as_published() -> None:
    (table,) = tables_of(H1)
    counts = count_entries(np.array([0, 0, 2]), np.array([0, 1, 1]), np.array([3, 8, 5]), 3)
    # Total, occupied, vacant.
    assert variables(counts, table.member, table.size).tolist() == [[11, 8, 3], [0, 0, 0], [5, 5, 0]]


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, PL94.cells - 1), st.integers(1, 50)), max_size=30))
@pytest.mark.thorough
def test_tables_of_any_counts(entries: list[tuple[int, int, int]]) -> None:
    unit, cell, count = (
        (np.array(column, dtype=np.int64) for column in zip(*entries, strict=True))
        if entries
        else (np.zeros(0, dtype=np.int64),) * 3
    )
    counts = count_entries(unit, cell.astype(np.int32), count, 4)
    for table in tables_of(PL94):
        expected: Counter[tuple[int, int]] = Counter()
        for u, c, n in entries:
            for line in oracle(*map(int, np.unravel_index(c, PL94.shape)))[table.name]:
                expected[u, line - 1] += n
        found = np.concatenate(
            [variables(part, table.member, table.size) for part in (counts.part(0, 3), counts.part(3, 4))]
        )
        assert {(u, v): n for (u, v), n in np.ndenumerate(found) if n} == expected


@pytest.mark.skipif(not RHODE_ISLAND.is_dir(), reason="the public files are not here")
def test_published_tables_of_rhode_island_come_out_as_they_were(tmp_path: Path) -> None:
    program = example("topdown_rhode_island")
    published = read_summary_file(RHODE_ISLAND)
    listed = list(zip(*(published.fields[name].astype(str) for name in ("SUMLEV", "GEOCODE")), strict=True))
    assert program.convert(RHODE_ISLAND, tmp_path / "data") == 569
    reference = read_reference(tmp_path / "data" / "geography.txt")
    schema = make_schema(hispanic=2, cenrace=63, votingage=2)
    counts = count_all(tmp_path / "data", schema, reference.block)
    # Types of group quarters are published apart from race: with all in households, P1 to P4 are whole.
    hispanic, cenrace, votingage = np.unravel_index(counts.cells, schema.shape)
    cells = np.ravel_multi_index((np.zeros_like(hispanic), votingage, hispanic, cenrace), PL94.shape)
    order = np.lexsort((cells, counts.owners()))
    whole = Histogram(counts.starts, cells[order].astype(np.int32), counts.counts[order])
    tables = {table.name: table for table in tables_of(PL94)}
    levels = {level: name for name, level in summary_levels().items()}
    areas = published_blocks(reference, nation=True).areas(reference.block)
    kinds, sums = {kind.name: kind for kind in areas}, sum_to_areas(whole, areas)
    compared = Counter[str]()
    for name in ("P1", "P2", "P3", "P4"):
        for level in ("140", "150", "750"):
            kind = kinds[levels[level]]
            found = variables(sums[kind.name], tables[name].member, tables[name].size)
            geocodes = [
                code if level != "750" else code[:11] + code[12:] for code in map(bytes.decode, kind.labels.tolist())
            ]
            rows = dict(zip(geocodes, found.tolist(), strict=True))
            for (summary_level, geocode), values in zip(listed, published.counts[name].tolist(), strict=True):
                if summary_level == level:
                    assert rows[geocode] == values
                    compared[level] += 1
    assert compared == {"140": 4 * 7, "150": 4 * 28, "750": 4 * 569}


@pytest.mark.skipif(not RHODE_ISLAND.is_dir(), reason="the public files are not here")
def test_published_group_quarters_of_rhode_island_come_out_as_they_were() -> None:
    published = read_summary_file(RHODE_ISLAND)
    p5 = published.counts["P5"][published.fields["SUMLEV"] == b"750"]
    types = {1: 3, 2: 4, 3: 5, 4: 6, 5: 8, 6: 9, 7: 10}
    entries = [(row, hhgq, int(p5[row, line - 1])) for row in range(len(p5)) for hhgq, line in types.items()]
    unit, hhgq, count = (np.array(column) for column in zip(*entries, strict=True))
    cells = np.ravel_multi_index((hhgq, 0, 1, 5), PL94.shape)  # type: ignore[arg-type]
    counts = count_entries(unit, cells.astype(np.int32), count, len(p5))
    table = next(table for table in tables_of(PL94) if table.name == "P5")
    assert p5.sum() > 900
    assert np.array_equal(variables(counts, table.member, table.size), p5)


@pytest.mark.thorough
def test_examples_hold_the_published_totals(tmp_path: Path) -> None:
    cases = [
        ("topdown_cook", COOK, 76_751, 5_194_675, make_schema(hispanic=2, race=11, votingage=2), 3_962_395, 1_244_762),
        ("topdown_illinois", ILLINOIS, 3_265, 12_812_508, make_schema(hispanic=2, cenrace=63, votingage=2), None, None),
    ]
    for name, source, blocks, people, schema, adults, hispanics in cases:
        if not source.is_file():
            pytest.skip("the public files are not here")
        assert example(name).convert(source, tmp_path / name) == blocks
        reference = read_reference(tmp_path / name / "geography.txt")
        counts = count_all(tmp_path / name, schema, reference.block)
        hispanic, _, votingage = np.unravel_index(counts.cells, schema.shape)
        assert counts.counts.sum() == people
        assert adults in {None, counts.counts[votingage == 1].sum()}
        assert hispanics in {None, counts.counts[hispanic == 1].sum()}
        assert (tmp_path / name / "SYNTHETIC").is_file()
        with pytest.raises(InputError, match="not an empty folder"):
            example(name).convert(source, tmp_path / name)


def test_tables_of_different_populations_are_refused() -> None:
    one = np.ones((1, 3), dtype=np.int64)
    assert cross_tables(3 * one, 2 * one, 2 * one, one).sum() == 9
    with pytest.raises(InputError, match="contradict"):
        cross_tables(one, 2 * one, one, one)


def test_layouts_name_the_columns_of_the_specification() -> None:
    head = "SCHEMA_TYPE_CODE|SCHEMA_BUILD_ID|TABBLKST|TABBLKCOU|TABTRACTCE|TABBLKGRPCE|TABBLK"
    assert "|".join(PERSON_COLUMNS) == f"{head}|EPNUM|RTYPE|GQTYPE_PL|VOTING_AGE|CENHISP|CENRACE"
    assert "|".join(UNIT_COLUMNS) == f"{head}|RTYPE|HH_STATUS"
    assert race_variables().shape == (63, 4)
