"""Summary files of P.L. 94-171 from releases: those of published counts are the published files again."""

import importlib.util
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
from places import ROOT, SHARED

import yupana
from yupana.errors import InputError, OutputError
from yupana.geography.header import HEADER
from yupana.products.topdown.pl.areas import PARTS, record_fields
from yupana.products.topdown.pl.release_files import summary_files
from yupana.products.topdown.pl.summary_file import (
    file_names,
    read_geographic_header,
    read_summary_file,
    write_summary_file,
)
from yupana.products.topdown.pl.summary_records import SummaryFile
from yupana.release.lines import texts
from yupana.release.release import ReleaseFolder

RHODE_ISLAND = SHARED / "data" / "ri_2018_e2e_pl_and_baf"
REST = "2018_2020Style.pl"

pytestmark = pytest.mark.skipif(not RHODE_ISLAND.is_dir(), reason="the public files are not here")


def program() -> ModuleType:
    spec = importlib.util.spec_from_file_location("rhode_island", ROOT / "examples" / "topdown_rhode_island.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[ReleaseFolder, ReleaseFolder]:
    folder = tmp_path_factory.mktemp("ri")
    assert program().convert_whole(RHODE_ISLAND, folder / "data") == 569
    return (
        yupana.exact("topdown", "pl94-2020-us", folder / "data" / "persons", folder / "persons"),
        yupana.exact("topdown", "h1-2020-us", folder / "data" / "units", folder / "units"),
    )


def within(file: SummaryFile) -> SummaryFile:
    """The records that hold only blocks of the file: state and county hold others, too."""
    return file.keep(np.isin(file.fields["SUMLEV"], [b"140", b"150", b"750"]))


@pytest.mark.thorough
def test_published_counts_with_their_names_are_the_published_files_again(
    made: tuple[ReleaseFolder, ReleaseFolder], tmp_path: Path
) -> None:
    names = read_geographic_header(RHODE_ISLAND / file_names("ri", REST)[0])
    (found,) = summary_files(*made, names)
    published = within(read_summary_file(RHODE_ISLAND))
    assert published.records == 604
    # The test of 2018 has 20 areas whose HU100 is not the total of their H1; a release has one number of units.
    apart = published.fields["HU100"].astype(np.int64) != published.counts["H1"][:, 0]
    assert apart.sum() == 20
    units = np.where(apart, published.counts["H1"][:, 0].astype("S"), published.fields["HU100"])
    expected = SummaryFile({**published.fields, "HU100": units}, published.counts)
    for name, file in (("found", within(found)), ("expected", expected)):
        (tmp_path / name).mkdir()
        write_summary_file(tmp_path / name, file, REST)
    for name in file_names("ri", REST):
        assert (tmp_path / "found" / name).read_bytes() == (tmp_path / "expected" / name).read_bytes()
    for name in file_names("ri", REST)[1:]:
        # Of the segments not a byte differs.
        lines = (tmp_path / "found" / name).read_bytes().splitlines()
        assert set(lines) < set((RHODE_ISLAND / name).read_bytes().splitlines())
        assert len(lines) == 604
    # Areas that the header lacks are numbered after its last record, 7295.
    others = found.keep(np.isin(found.fields["SUMLEV"], [b"060", b"155", b"160"]))
    assert others.fields["LOGRECNO"].tolist() == [b"7296", b"7297", b"7298"]
    assert others.fields["GEOID"].tolist() == [
        b"0600000US4400759000",
        b"1550000US4459000007",
        b"1600000US4459000",
    ]
    assert others.variable("P0010001").tolist() == [29225, 29225, 29225]


@pytest.mark.thorough
def test_without_names_a_header_says_what_codes_tell(made: tuple[ReleaseFolder, ReleaseFolder], tmp_path: Path) -> None:
    (found,) = summary_files(*made, None)
    assert write_summary_file(tmp_path, found) == list(file_names("ri", "2020.pl"))
    assert read_summary_file(tmp_path).records == found.records == 609
    assert found.fields["LOGRECNO"].tolist() == [b"%07d" % number for number in range(1, 610)]
    published = within(read_summary_file(RHODE_ISLAND))
    told = {name for name in HEADER if (within(found).fields[name] != b"").any()} - {"LOGRECNO", "POP100", "HU100"}
    for name in told:
        assert (within(found).fields[name] == published.fields[name]).all(), name
    assert {"GEOID", "TRACT", "BLKGRP", "BLOCK", "NAME", "REGION", "DIVISION"} < told


@pytest.mark.thorough
def test_every_level_is_cut_into_its_fields() -> None:
    codes = {b"155": b"445900000700"[:10], b"280": b"440123", b"500": b"4401", b"610": b"44001", b"700": b"44007442834"}
    fields = {level: record_fields(level, np.array([code])) for level, code in codes.items()}
    assert [fields[b"155"][name][0] for name in ("STATE", "PLACE", "COUNTY")] == [b"44", b"59000", b"007"]
    assert fields[b"280"]["AIANHH"][0] == b"0123"
    assert (fields[b"500"]["CD116"][0], fields[b"500"]["GEOID"][0]) == (b"01", b"5001600US4401")
    assert (fields[b"610"]["SLDU18"][0], fields[b"610"]["GEOVAR"][0]) == (b"001", b"U6")
    assert fields[b"700"]["VTD"][0] == b"442834"
    for level, names in PARTS.items():
        code = b"44" + b"1" * sum(HEADER[name] for name in names[1:])
        assert b"".join(record_fields(level, np.array([code]))[name][0] for name in names) == code
    with pytest.raises(InputError, match="state '03' has no abbreviation"):
        record_fields(b"040", np.array([b"03"]))


@pytest.mark.thorough
def test_what_does_not_belong_together_is_refused(made: tuple[ReleaseFolder, ReleaseFolder], tmp_path: Path) -> None:
    persons, units = made
    with pytest.raises(KeyError, match="H1"):
        list(summary_files(persons, persons, None))
    table = persons.folder / "tables" / "P1.csv"
    lines = table.read_text().splitlines(keepends=True)
    other = tmp_path / "other" / "tables"
    other.mkdir(parents=True)
    (other / "P1.csv").write_text("".join(lines[:-1]))
    shorter = ReleaseFolder(tmp_path / "other", persons.manifest, "", {"tables/P1.csv": other / "P1.csv"} | {
        f"tables/P{n}.csv": persons.folder / "tables" / f"P{n}.csv" for n in range(2, 6)
    })  # fmt: skip
    with pytest.raises(OutputError, match="P1 and P2 are of different areas"):
        list(summary_files(shorter, units, None))
    header = read_geographic_header(RHODE_ISLAND / file_names("ri", REST)[0])
    twice = {name: np.concatenate([values, values[5:6]]) for name, values in header.items()}
    with pytest.raises(InputError, match=r"area 44007000300 of summary level 140 twice, in lines 6 and 607"):
        list(summary_files(persons, units, twice))
    part = {**header, "GEOCOMP": texts(["01"] * len(header["GEOCOMP"]))}
    (found,) = summary_files(persons, units, part)
    assert found.fields["LOGRECNO"][0] == b"7296"


@pytest.mark.thorough
def test_files_are_written_of_both_releases_or_not_at_all(
    made: tuple[ReleaseFolder, ReleaseFolder], tmp_path: Path
) -> None:
    whole = made[0].folder.parent
    found = yupana.write_pl(whole, tmp_path / "out", names=RHODE_ISLAND)
    assert found.status == "NOT FOR RELEASE"
    assert not yupana.check(tmp_path / "out").wrong
    assert yupana.read_pl(tmp_path / "out").records == 609
    (tmp_path / "out" / "ri000032020.pl").write_text("")
    assert "ri000032020.pl was changed" in yupana.check(tmp_path / "out").wrong[0]
    half = tmp_path / "half"
    half.mkdir()
    (half / "persons").symlink_to(made[0].folder)
    with pytest.raises(OutputError, match=r"units is no release: .* units are made by a run of .* h1-2020-us"):
        yupana.write_pl(half, tmp_path / "none")
    with pytest.raises(OutputError, match="persons is one release by itself"):
        yupana.write_pl(half / "persons", tmp_path / "none")
    (half / "units").symlink_to(made[0].folder)
    with pytest.raises(OutputError, match="has no table H1"):
        yupana.write_pl(half, tmp_path / "none")
    assert not (tmp_path / "none").exists()


AREAS = ("VTD", "CD116", "SLDU18", "SLDL18", "SDELM", "SDSEC", "SDUNI")


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> tuple[ReleaseFolder, Path]:
    """Both parts in one release, with names and areas as the published header has them, and its files."""
    folder = tmp_path_factory.mktemp("whole")
    program().convert_whole(RHODE_ISLAND, folder / "data")
    header = read_geographic_header(RHODE_ISLAND / file_names("ri", REST)[0])
    blocks = np.flatnonzero(header["SUMLEV"] == b"750")
    columns = [header[name][blocks] for name in ("GEOCODE", *AREAS)]
    rows = [b"|".join(row) for row in zip(*columns, strict=True)]
    names = "|".join(["block", *(name.removesuffix("18") for name in AREAS)])
    (folder / "areas.csv").write_bytes(b"\n".join([names.encode(), *rows, b""]))
    geographic = RHODE_ISLAND / file_names("ri", REST)[0]
    made = yupana.run(
        "topdown",
        "pl94-2020-us-whole",
        folder / "data",
        folder / "out",
        seed=1,
        areas=folder / "areas.csv",
        names=geographic,
        pl=folder / "pl",
        microdata=False,
    )
    return made, folder


@pytest.mark.thorough
def test_a_release_of_both_has_its_files_written_with_it(whole: tuple[ReleaseFolder, Path], tmp_path: Path) -> None:
    made, folder = whole
    assert yupana.check(made).wrong == ()
    assert yupana.check(folder / "pl").wrong == ()
    assert yupana.open_release(folder / "pl").status == made.status == "NOT FOR RELEASE"
    yupana.write_pl(folder / "out", tmp_path / "again", names=RHODE_ISLAND / file_names("ri", REST)[0])
    for name in file_names("ri", "2020.pl"):
        assert (tmp_path / "again" / name).read_bytes() == (folder / "pl" / name).read_bytes()
    found = read_summary_file(folder / "pl")
    published = within(read_summary_file(RHODE_ISLAND))
    for name in set(HEADER) - {"POP100", "HU100"}:
        assert (within(found).fields[name] == published.fields[name]).all(), name
    # Noise, and so another release than the published one; blocks add up to their state.
    assert (within(found).fields["POP100"] != published.fields["POP100"]).any()
    levels = {level: found.keep(found.fields["SUMLEV"] == level) for level in (b"040", b"750")}
    for table in ("P1", "P2", "P3", "P4", "P5", "H1"):
        assert (levels[b"750"].counts[table].sum(axis=0) == levels[b"040"].counts[table][0]).all()


@pytest.mark.thorough
def test_the_files_of_two_states_are_read_as_they_were_written(tmp_path: Path) -> None:
    yupana.synthesize(tmp_path / "census", households=60, states=["06", "44"], seed=1)
    made = yupana.run("topdown", "pl94-2020-us-whole", tmp_path / "census", tmp_path / "out", pl=tmp_path / "pl")
    found = yupana.read_pl(tmp_path / "pl")
    assert repr(found).startswith("<P.L. 94-171 of CA, RI: ")
    assert repr(yupana.read_pl(yupana.open_release(tmp_path / "pl"))) == repr(found)
    told, states = made.parts["persons"]["tables/P1"].where({"SUMLEV": "040"}), found["P1"].where({"SUMLEV": "040"})
    assert [*map(int, told["P0010001"])] == states["P0010001"]
    assert told["GEOCODE"] == states["STATE"] == ["06", "44"]


@pytest.mark.thorough
def test_a_header_has_the_names_and_areas_of_the_release(whole: tuple[ReleaseFolder, Path]) -> None:
    made, _ = whole
    (found,) = summary_files(made.parts["persons"], made.parts["units"], None)
    published = within(read_summary_file(RHODE_ISLAND))
    here = within(found).fields
    told = {name for name in HEADER if (here[name] != b"").any()} - {"LOGRECNO", "POP100", "HU100"}
    for name in told:
        assert (here[name] == published.fields[name]).all(), name
    assert {"NAME", "AREALAND", "AREAWATR", "INTPTLAT", "INTPTLON", "COUSUB", "PLACE", "AIANHH", *AREAS} < told
    districts = found.keep(np.isin(found.fields["SUMLEV"], [b"700", b"610"])).fields
    assert (districts["VTD"] != b"").sum() == len(set(published.fields["VTD"][published.fields["SUMLEV"] == b"750"]))


@pytest.mark.thorough
def test_a_table_of_names_gives_what_it_has(whole: tuple[ReleaseFolder, Path], tmp_path: Path) -> None:
    _, folder = whole
    table = "kind,code,name,land,water,latitude,longitude\nplace,4459000,Cañon city,1e3,,41.5,-71.25\nstate,44,,,,,\n"
    (tmp_path / "names.csv").write_text(table)
    made = yupana.run(
        "topdown",
        "pl94-2020-us-whole",
        folder / "data",
        tmp_path / "out",
        names=tmp_path / "names.csv",
        pl=tmp_path / "pl",
        seed=1,
    )
    assert made.status == "NOT FOR RELEASE"
    found = read_summary_file(tmp_path / "pl")
    (place,) = np.flatnonzero(found.fields["SUMLEV"] == b"160").tolist()
    fields = ("NAME", "AREALAND", "AREAWATR", "INTPTLAT", "INTPTLON", "BASENAME")
    assert [found.fields[name][place] for name in fields] == [
        "Cañon city".encode("latin-1"),
        b"1000",
        b"",
        b"+41.5000000",
        b"-071.2500000",
        b"",
    ]
    for name, wrong in (("Łódź", "has a character that latin-1 has not"), ("x" * 126, "has more than 125 characters")):
        (tmp_path / "names.csv").write_text(f"kind,code,name\nplace,4459000,{name}\n")
        with pytest.raises(InputError, match=wrong):
            yupana.run(
                "topdown",
                "pl94-2020-us-whole",
                folder / "data",
                tmp_path / "wrong",
                names=tmp_path / "names.csv",
                pl=tmp_path / "wrong-pl",
            )
        assert not list(tmp_path.glob("wrong*"))


@pytest.mark.thorough
def test_files_are_refused_before_anything_is_drawn(tmp_path: Path) -> None:
    program().convert_whole(RHODE_ISLAND, tmp_path / "data")
    twice = (RHODE_ISLAND / file_names("ri", REST)[0]).read_bytes()
    (tmp_path / "twice.pl").write_bytes(twice + twice.splitlines(keepends=True)[-1])
    units = {"product": "x", "parts": {"homes": "h1-2020-us", "persons": "pl94-2020-us"}}
    for config, data, more, wrong in (
        ("pl94-2020-us", "data/persons", {}, "neither is left out or written as zero. This run has no part 'persons'"),
        ("h1-2020-us", "data/units", {}, "This run has no part 'persons'"),
        (units, "data", {}, "This run has no part 'units'"),
        ("pl94-2020-us-whole", "data", {"names": tmp_path / "twice.pl"}, "twice, in lines"),
        ("pl94-2020-us-whole", "data", {"pl": tmp_path / "out" / "pl"}, "name a folder of its own"),
        ("pl94-2020-us-whole", "data", {"pl": tmp_path / "data"}, "which is to be read"),
        ("pl94-2020-us-whole", "data", {"pl": tmp_path / "pl", "nmf": tmp_path / "pl"}, "name a folder of its own"),
    ):
        given = {"pl": tmp_path / "pl", **more}
        with pytest.raises(yupana.YupanaError, match=wrong):
            yupana.run("topdown", config, tmp_path / data, tmp_path / "out", **given)
        assert sorted(path.name for path in tmp_path.iterdir()) == ["data", "twice.pl"]
    with pytest.raises(yupana.ConfigError, match="phsafe takes no pl"):
        yupana.run("phsafe", "s-dhc-2020-us", tmp_path / "data", tmp_path / "out", pl=tmp_path / "pl")
