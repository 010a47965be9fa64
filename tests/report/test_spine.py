"""The report of a spine: self-contained, with the numbers of the spines it compares, and a map where one is given."""

import html
import re
from pathlib import Path
from statistics import mean

import pytest
from boundary_files import write_shapefile
from census_maker import seeded
from spine_maker import Block, random_blocks, write_reference

from yupana.cli.main import main
from yupana.geography.distance import distances
from yupana.geography.spine_files import ENTITIES, entities_of, read_spine
from yupana.geography.tree import partition
from yupana.report.numbers import rounded


def build(tmp_path: Path, blocks: list[Block], *options: str) -> Path:
    out = tmp_path / "spine"
    reference = write_reference(tmp_path / "grfc.txt", blocks)
    assert main(["spine", "build", str(reference), str(out), "--overwrite", *options]) == 0
    return out


def report(out: Path, *options: str) -> str:
    assert main(["spine", "report", str(out), *options]) == 0
    return (out / "report.html").read_text(encoding="utf-8")


def text_of(page: str) -> str:
    return html.unescape(re.sub(r"<[^>]+>", " ", page))


@pytest.mark.sampled(1)
@pytest.mark.parametrize("mechanism", ["zcdp", "pure"])
@pytest.mark.thorough
def test_the_report_compares_three_spines(tmp_path: Path, mechanism: str) -> None:
    levels = "US,State,County,Tract_Group,Tract,Block_Group,Block"
    blocks = random_blocks(seeded(2), blocks=30)
    out = build(tmp_path, blocks, "--kind", "optimized", "--levels", levels, "--mechanism", mechanism)
    page = report(out)
    assert "://" not in page
    assert "<script" not in page
    for title in ("Fan-outs", "Distances", "Variances", "The farthest areas"):
        assert f"<h2>{title}</h2>" in page
    assert "<h2>Map</h2>" not in page
    spine = read_spine(out, tuple(levels.split(",")))
    places = entities_of(out / ENTITIES, spine, live=False)["place"]
    far = distances(spine.tree, partition(places.index, len(places.labels))).tolist()
    assert rounded(mean(far)) in text_of(page)
    assert all(name in text_of(page) for name in ("conventional", "AIAN", "optimized"))
    # The report is part of the folder, which still holds together; and it can be made again.
    assert main(["check", str(out)]) == 0
    assert report(out) == page


@pytest.mark.sampled(1)
@pytest.mark.parametrize("kind", ["conventional", "aian"])
@pytest.mark.slow
def test_a_spine_of_tabulation_geography_has_a_report(tmp_path: Path, kind: str) -> None:
    assert "<h2>Distances</h2>" in report(build(tmp_path, random_blocks(seeded(4)), "--kind", kind))


@pytest.mark.thorough
def test_a_county_without_areas_has_a_report(tmp_path: Path) -> None:
    blocks = [Block("17", "031", "000100", "1", f"{1000 + i}", "9999", "99999", "99999") for i in range(3)]
    page = report(build(tmp_path, blocks, "--kind", "optimized"))
    assert "<h2>Fan-outs</h2>" in page
    assert "<h2>Distances</h2>" not in page


@pytest.mark.thorough
def test_a_report_elsewhere_leaves_the_folder_alone(tmp_path: Path) -> None:
    out = build(tmp_path, random_blocks(seeded(1)), "--kind", "aian")
    assert main(["spine", "report", str(out), "--to", str(tmp_path / "page.html")]) == 0
    assert (tmp_path / "page.html").exists()
    assert not (out / "report.html").exists()
    assert main(["spine", "report", str(out), "--to", str(tmp_path / "nowhere" / "page.html")]) == 2


@pytest.mark.slow
def test_a_map_is_drawn_where_boundaries_are_given(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    blocks = [
        Block("17", "031", "000100", "1", f"{1000 + i}", "9999", "10000", f"{100 + 100 * (i % 2):05}") for i in range(8)
    ]
    out = build(tmp_path, blocks, "--kind", "optimized")
    squares = {"1700100": (0.0, 0.0), "1700200": (2.0, 0.0), "1799998": (4.0, 0.0)}
    page = report(out, "--boundaries", str(write_shapefile(tmp_path / "map.zip", squares)))
    assert "<h2>Map</h2>" in page
    assert page.count("Tract 1700100 (1700100): ") == 2
    assert "1799998" not in page
    before = (out / "report.html").read_text()
    other = write_shapefile(tmp_path / "other.zip", {"0600100": (0.0, 0.0)})
    assert main(["spine", "report", str(out), "--boundaries", str(other)]) == 2
    assert "no area of this spine" in capsys.readouterr().err
    assert (out / "report.html").read_text() == before
