"""The codebook of a release describes every file, column and code of it, and nothing that depends on its records."""

import json
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from schemas import PL94

import yupana
from yupana.cli.main import main
from yupana.errors import OutputError
from yupana.products.gate import open_release
from yupana.products.phsafe.configuration import production_config
from yupana.products.phsafe.shells import SHELLS, line_labels
from yupana.products.safetab.demonstration_parameters import write_parameters
from yupana.products.topdown.codebook import described, variable_labels
from yupana.products.topdown.tables import race_variables
from yupana.release.codebook import DATA_PACKAGE, READABLE
from yupana.release.release import ReleaseFolder
from yupana.release.tables import checksum, read_table
from yupana.topdown.reading.configuration import read_configuration

CASES = (
    ("phsafe", "config.json", "csv"),
    ("phsafe", "config.json", "parquet"),
    ("safetab-p", "parameters", "csv"),
    ("safetab-h", "parameters", "parquet"),
    ("topdown", "pl94-2020-us", "csv"),
    ("topdown", "h1-2020-us", "csv"),
)


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("codebook")
    for seed in ("1", "2"):
        out = str(folder / f"census-{seed}")
        assert main(["synth", out, "--households", "60", "--states", "44", "--seed", seed]) == 0
    (folder / "config.json").write_text(json.dumps({**production_config(), "state_filter": ["10", "44"]}))
    write_parameters(folder / "parameters")
    return folder


def release(place: Path, product: str, config: str, fmt: str, census: str = "1", verb: str = "exact") -> Path:
    out = place / f"{product}-{config}-{fmt}-{census}-{verb}"
    if not out.is_dir():
        source = str(place / config) if (place / config).exists() else config
        data = str(place / f"census-{census}")
        more = []
        if product == "safetab-h":
            totals = release(place, "safetab-p", config, "csv", census, verb) / "T01001.csv"
            more = ["--totals", str(totals)]
        seed = ["--seed", "1"] if verb == "run" else []
        assert main([product, verb, source, data, str(out), "--format", fmt, *seed, *more]) == 0
    return out


def holds(field: Mapping[str, Any], value: str) -> bool:
    """Whether a value that was written is one that a field may have."""
    if field["type"] == "integer" and value:
        int(value)
    if field["type"] == "number":
        float(value)
    if field["type"] == "boolean" and value not in {"true", "false"}:
        return False
    codes = {str(category["value"]) for category in field.get("categories", ())}
    return not codes or value in codes


@pytest.mark.sampled(1)
@pytest.mark.parametrize(("product", "config", "fmt"), CASES)
@pytest.mark.slow
def test_every_file_column_and_code_is_described(place: Path, product: str, config: str, fmt: str) -> None:
    out = release(place, product, config, fmt)
    manifest = json.loads((out / "manifest.json").read_text())
    package = json.loads((out / DATA_PACKAGE).read_text())
    words = (out / READABLE).read_text()
    resources = {resource["path"]: resource for resource in package["resources"]}
    assert list(resources) == list(manifest["tables"])
    assert len({resource["name"] for resource in resources.values()}) == len(resources)
    for path, resource in resources.items():
        assert resource["title"]
        assert f"### `{path}`" in words
        assert resource["format"] == Path(path).suffix[1:]
        fields = resource["schema"]["fields"]
        columns = read_table(out / path)
        assert [field["name"] for field in fields] == list(columns)
        for field in fields:
            assert field["title"]
            assert all(category["label"] for category in field.get("categories", ()))
            wrong = {value for value in columns[field["name"]] if not holds(field, value)}
            assert not wrong, (path, field["name"])


@pytest.mark.parametrize(
    ("product", "config"),
    [
        ("phsafe", "config.json"),
        ("safetab-p", "parameters"),
        pytest.param("topdown", "h1-2020-us", marks=pytest.mark.thorough),
    ],
)
@pytest.mark.thorough
def test_two_censuses_have_one_codebook(place: Path, product: str, config: str) -> None:
    one, other = (release(place, product, config, "csv", census) for census in "12")
    assert (one / "manifest.json").read_bytes() != (other / "manifest.json").read_bytes()
    for name in (DATA_PACKAGE, READABLE):
        assert (one / name).read_bytes() == (other / name).read_bytes()


@pytest.mark.slow
def test_check_finds_a_changed_and_a_missing_codebook(
    place: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    whole = release(place, "phsafe", "config.json", "csv")
    assert main(["check", str(whole)]) == 0
    for changed, missing in ((DATA_PACKAGE, READABLE), (READABLE, DATA_PACKAGE)):
        out = Path(shutil.copytree(whole, tmp_path / changed))
        (out / changed).write_bytes((out / changed).read_bytes() + b" ")
        (out / missing).unlink()
        capsys.readouterr()
        assert main(["check", str(out)]) == 2
        told = "".join(capsys.readouterr())
        assert f"{changed} was changed" in told
        assert f"{missing} is missing" in told


@pytest.mark.thorough
def test_a_release_without_a_codebook_is_sound(place: Path, tmp_path: Path) -> None:
    """As those made before there was one."""
    out = Path(shutil.copytree(release(place, "phsafe", "config.json", "csv"), tmp_path / "out"))
    manifest = json.loads((out / "manifest.json").read_text())
    for name in manifest.pop("reports"):
        (out / name).unlink()
    (out / "manifest.json").write_text(json.dumps(manifest))
    assert main(["check", str(out)]) == 0


def test_lines_of_the_redistricting_tables() -> None:
    assert {name: len(variable_labels(name, PL94)) for name in ("P1", "P2", "P3", "P4", "P5", "H1")} == {
        "P1": 71, "P2": 73, "P3": 71, "P4": 73, "P5": 10, "H1": 3,
    }  # fmt: skip
    races = variable_labels("P1", PL94)
    assert races[2] == "White alone"
    assert races[9:11] == ("Population of 2 races", "White, Black or African American")
    assert [races[line] for line in race_variables()[-1][[0, 1, 2]]] == [
        "Total", "Population of two or more races", "Population of 6 races",
    ]  # fmt: skip
    assert variable_labels("P2", PL94)[4] == "Not Hispanic or Latino: White alone"
    assert variable_labels("P5", PL94)[6] == "Noninstitutionalized population"


def test_lines_are_named_after_those_above() -> None:
    ph2 = line_labels(next(shell for shell in SHELLS if shell.name == "PH2"))
    assert ph2[1] == "Total"
    assert ph2[4] == "In married couple household: Same-sex married couple"
    assert ph2[5] == "In cohabiting couple household"


def test_a_recoded_column_is_called_by_its_name() -> None:
    title, columns = described(read_configuration("pl94-2020-us"), "intervals/State/total")
    assert title == "Estimates and intervals of a query in a geolevel: State/total"
    assert columns["majority"].title == "majority"


@pytest.mark.parametrize(
    ("product", "fmt"), [("safetab-p", "csv"), pytest.param("safetab-h", "parquet", marks=pytest.mark.thorough)]
)
@pytest.mark.thorough
def test_what_is_derived_keeps_the_codebook_of_its_tables(place: Path, tmp_path: Path, product: str, fmt: str) -> None:
    source = open_release(release(place, product, "parameters", fmt, verb="run"))
    table = source.tables[0]
    policy = f'[[rule]]\nrule = "negative"\ntables = ["{table}"]\nreason = "N"\n'
    (tmp_path / "policy.toml").write_text(policy)
    whole, single = tmp_path / "whole", tmp_path / "single"
    assert main(["postprocess", "suppress", str(source.folder), str(tmp_path / "policy.toml"), str(whole)]) == 0
    derived = open_release(whole)
    assert source.codebook is not None
    assert derived.codebook is not None
    assert [one["path"] for one in derived.codebook["resources"]] == list(derived.manifest["tables"])
    for before, after in zip(source.codebook["resources"], derived.codebook["resources"], strict=True):
        fields = after["schema"]["fields"]
        assert tuple(field["name"] for field in fields) == derived[table_of(derived, after)].columns
        assert fields[: len(before["schema"]["fields"])] == before["schema"]["fields"]
        assert after["schema"]["missingValues"] == ["", "X"]
    assert "REASON" in (whole / READABLE).read_text()
    assert main(["check", str(whole)]) == 0
    assert main(["postprocess", "suppress", str(source.path(table)), str(tmp_path / "policy.toml"), str(single)]) == 0
    assert main(["check", str(single)]) == 0


def table_of(opened: ReleaseFolder, resource: Mapping[str, Any]) -> str:
    return next(table for table, path in opened.files.items() if path == resource["path"])


@pytest.mark.parametrize("fmt", ["csv", pytest.param("parquet", marks=pytest.mark.thorough)])
@pytest.mark.thorough
def test_estimates_have_a_codebook_of_every_column_and_code(place: Path, tmp_path: Path, fmt: str) -> None:
    source = release(place, "phsafe", "config.json", "csv", verb="run")
    assert main(["phsafe", "estimate", str(source), str(tmp_path / "out"), "--format", fmt]) == 0
    made = open_release(tmp_path / "out")
    assert made.codebook is not None
    assert [resource["path"] for resource in made.codebook["resources"]] == list(made.manifest["tables"])
    for resource in made.codebook["resources"]:
        columns = read_table(made.folder / resource["path"])
        fields = {field["name"]: field for field in resource["schema"]["fields"]}
        assert list(fields) == list(columns)
        for name, field in fields.items():
            assert all(holds(field, value) for value in columns[name]), (resource["path"], name)
    # What a code means is what the table says beside it.
    labelled = made.labelled("PH1")
    assert labelled["AREA"] == labelled["REGION_ID_LABEL"]
    assert labelled["ITERATION"] == labelled["ITERATION_CODE_LABEL"]
    assert all(told.endswith(label) for told, label in zip(labelled["DATA_CELL_LABEL"], labelled["LABEL"], strict=True))
    assert main(["check", str(made.folder)]) == 0


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "{}",
        '{"title": "t", "resources": 5}',
        '{"title": "t", "resources": [{"path": "T01001.csv"}]}',
        "[" * 9999,
    ],
)
def test_what_is_no_codebook_is_refused(place: Path, tmp_path: Path, text: str) -> None:
    made = tmp_path / "made"
    shutil.copytree(release(place, "safetab-p", "parameters", "csv"), made)
    manifest = json.loads((made / "manifest.json").read_text())
    (made / DATA_PACKAGE).write_text(text)
    manifest["reports"][DATA_PACKAGE]["sha256"] = checksum(made / DATA_PACKAGE)
    (made / "manifest.json").write_text(json.dumps(manifest))
    with pytest.raises(OutputError, match="no codebook that yupana wrote"):
        open_release(made).labelled("T01001")


@pytest.mark.thorough
def test_a_code_of_two_kinds_of_areas_has_the_name_of_neither(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "people.csv").write_text("PROVINCE,SEX\n1,m\n2,f\n", encoding="utf-8")
    (tmp_path / "data" / "SYNTHETIC").touch()
    columns = {"PROVINCE": {"codes": {"1": "North", "2": "South"}}, "SEX": {"codes": ["m", "f"]}}
    description = {
        "name": "names",
        "unit": "people",
        "files": {"people": {"columns": columns}},
        "areas": {"country": {"code": "1"}, "province": {"column": "people.PROVINCE"}},
        "tables": {"t": {"counts": "people", "by": ["people.SEX"], "budget": {"country": "1", "province": "1"}}},
    }
    release = yupana.run("tables", description, tmp_path / "data", tmp_path / "out", seed=1)
    labelled = pl.DataFrame(release.labelled("t"))
    assert set(labelled["REGION_ID_LABEL"]) == {"1", "South"}
