"""Which tables of totals SafeTab-H takes as published, and what it says of those that it takes."""

import json
import math
import shutil
from collections.abc import Callable
from contextlib import suppress
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from safetab_worlds import (
    FORMS,
    NAMES,
    Block,
    Config,
    Household,
    Person,
    World,
    an_iteration,
    block_id,
    write_blocks,
    write_data,
    write_parameters,
)

from yupana.cli.main import main
from yupana.errors import OutputError
from yupana.products.safetab.configuration import read_config
from yupana.products.safetab.iterations import read_iterations
from yupana.products.safetab.totals import DECLARED, DOUBTFUL, PUBLISHED, provenance
from yupana.release.tables import checksum

Change = Callable[[dict[str, Any]], object]

POLICY = '[[rule]]\nrule = "negative"\ntables = ["T01001"]\nreason = "N"\n'
HERE = Block("01", "001", "000100", "1000", "12345", "0001")
THERE = Block("01", "003", "000200", "2000", "54321", "9999")


def a_world() -> World:
    iterations = [an_iteration("0011", 1, "alone"), an_iteration("0022", 2, "any"), an_iteration("0033", 2, "any")]
    mapping = [("0011", "1000"), ("0022", "1000"), ("0033", "1001")]
    config = Config(runs=("us",), states=("01",)).budgets("0.5").thresholds((5, 10, 20), 5)
    world = World(["1000", "1001", "9950"], iterations, mapping, [HERE, THERE], [], [], [], None, config)
    races = ("1000", "1001", *["Null"] * 6)
    for block in world.blocks:
        world.persons += [Person("42", "1", "True", *block[:4], "01", *races, "9950")] * 8  # type: ignore[call-arg]
        world.households += [Household(*block[:4], "01", *races, "9950", "1", "4")] * 3  # type: ignore[call-arg]
    return world


class Place:
    """Parameters, the same records as real ones and as synthetic ones, and releases of SafeTab-P."""

    def __init__(self, root: Path, world: World) -> None:
        self.root = root
        self.parameters = write_parameters(root / "parameters", world)
        self.real = write_data(root / "real", world, synthetic=False)
        self.synthetic = write_data(root / "synthetic", world)
        for data in (self.real, self.synthetic):
            (data / NAMES["totals"]).unlink()

    def make(self, verb: str, out: str, *options: str, data: Path | None = None) -> Path:
        folder = self.root / out
        arguments = [str(self.parameters), str(data or self.synthetic), str(folder), *options]
        assert main(["safetab-p", verb, *arguments]) == 0
        return folder

    def h(self, totals: Path | None, data: Path, *options: str, parameters: Path | None = None) -> int:
        named = [] if totals is None else ["--totals", str(totals)]
        arguments = [str(parameters or self.parameters), str(data), str(self.root / "h"), "--overwrite"]
        return main(["safetab-h", "run", *arguments, *named, *options])

    @property
    def manifest(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads((self.root / "h" / "manifest.json").read_text())
        return found


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Place:
    """One place for the module, which no test changes but for the folder h."""
    place = Place(tmp_path_factory.mktemp("totals"), a_world())
    place.make("run", "p", data=place.real)
    place.make("exact", "exact")
    place.make("run", "seeded", "--seed", "5")
    (place.root / "policy.toml").write_text(POLICY)
    for verb, file, out in (
        ("coterminous", place.real / NAMES["blocks"], "combined"),
        ("suppress", place.root / "policy.toml", "suppressed"),
    ):
        assert main(["postprocess", verb, str(place.root / "p"), str(file), str(place.root / out)]) == 0
    return place


def changed(release: Path, folder: Path, change: Change) -> Path:
    """A copy of a release with another manifest."""
    shutil.copytree(release, folder)
    manifest = json.loads((folder / "manifest.json").read_text())
    change(manifest)
    (folder / "manifest.json").write_text(json.dumps(manifest))
    return folder / "T01001.csv"


def rewritten(release: Path, folder: Path, column: str, value: str) -> Path:
    """A copy whose T01001 has another value in a column, and whose manifest has the checksum of that."""
    shutil.copytree(release, folder)
    path = folder / "T01001.csv"
    header, *rows = (line.split("|") for line in path.read_text().splitlines())
    for row in rows:
        row[header.index(column)] = value
    path.write_text("".join("|".join(row) + "\n" for row in (header, *rows)))
    manifest = json.loads((folder / "manifest.json").read_text())
    manifest["tables"]["T01001.csv"]["sha256"] = checksum(path)
    (folder / "manifest.json").write_text(json.dumps(manifest))
    return path


def refused(place: Place, totals: Path | None, capsys: pytest.CaptureFixture[str], *needles: str) -> None:
    """Real records are not tabulated by such totals, and the message says why."""
    capsys.readouterr()
    shutil.rmtree(place.root / "h", ignore_errors=True)
    assert place.h(totals, place.real) == 2
    said = capsys.readouterr().err
    for needle in needles:
        assert needle in said, said
    assert not (place.root / "h").exists()


@pytest.mark.thorough
def test_synthetic_records_are_tabulated_and_marked(made: Place, tmp_path: Path) -> None:
    shutil.copy(made.root / "p" / "T01001.csv", tmp_path)
    for totals, why in (
        (made.root / "exact" / "T01001.csv", "a budget is infinite"),
        (made.root / "seeded" / "T01001.csv", "made from a seed"),
        (rewritten(made.root / "p", tmp_path / "p", "VARIANCE", "0"), "variances"),
        (tmp_path / "T01001.csv", "no manifest.json"),
    ):
        assert made.h(totals, made.synthetic) == 0
        manifest = made.manifest
        assert manifest["status"] == "NOT FOR RELEASE"
        assert any(why in reason for reason in manifest["reasons"]), manifest["reasons"]
        assert manifest["taken_as_public"][-1] == DOUBTFUL


@pytest.mark.parametrize("release", ["p", "combined"])
@pytest.mark.thorough
def test_published_totals_are_taken_and_bound_to_the_release(made: Place, release: str) -> None:
    totals = made.root / release / "T01001.csv"
    assert made.h(totals, made.real) == 0
    manifest = made.manifest
    assert manifest["status"] == "noisy measurements under the plan"
    assert manifest["taken_as_public"][-1] == PUBLISHED
    described = manifest["parameters"]["totals"]
    assert described["sha256"] == checksum(totals)
    assert described["manifest_sha256"] == checksum(totals.parent / "manifest.json")
    assert (described["product"], described["status"]) == ("safetab-p", "noisy measurements under the plan")
    assert described["totals"] == json.loads((totals.parent / "manifest.json").read_text())["plan"]["totals"]
    assert described["postprocessing"] == ([] if release == "p" else ["coterminous"])
    assert described["left_out"] == {}
    assert main(["check", str(made.root / "h")]) == 0


@pytest.mark.slow
def test_suppressed_totals_have_no_size_and_are_left_out(made: Place) -> None:
    totals = made.root / "suppressed" / "T01001.csv"
    suppressed = totals.read_text().count("|X|X|X|N")
    assert suppressed
    assert made.h(totals, made.real) == 0
    assert made.manifest["parameters"]["totals"]["left_out"] == {"suppressed": suppressed}


@pytest.mark.thorough
def test_totals_in_parquet(made: Place) -> None:
    totals = made.make("run", "parquet", "--format", "parquet", data=made.real) / "T01001.parquet"
    assert made.h(totals, made.real) == 0
    assert made.manifest["taken_as_public"][-1] == PUBLISHED


@pytest.mark.parametrize(("release", "why"), [("exact", "a budget is infinite"), ("seeded", "made from a seed")])
def test_totals_that_are_not_for_release(
    made: Place, capsys: pytest.CaptureFixture[str], release: str, why: str
) -> None:
    refused(made, made.root / release / "T01001.csv", capsys, "NOT FOR RELEASE", why)


def _released(manifest: dict[str, Any]) -> None:
    manifest["status"] = "noisy measurements under the plan"
    del manifest["reasons"]


def test_a_status_that_is_at_odds_with_the_plan(
    made: Place, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    totals = changed(made.root / "exact", tmp_path / "p", _released)
    refused(made, totals, capsys, "a budget is infinite")


def test_a_status_that_is_at_odds_with_its_reasons(
    made: Place, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    totals = changed(made.root / "seeded", tmp_path / "p", lambda m: m.update(status="noisy measurements"))
    refused(made, totals, capsys, "made from a seed")


def test_a_plan_at_odds_with_the_variances(made: Place, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    finite = json.loads((made.root / "p" / "manifest.json").read_text())
    totals = changed(made.root / "exact", tmp_path / "p", lambda m: m.update(plan=finite["plan"], ledger=finite["ledger"], status=finite["status"], reasons=[]))  # fmt: skip # noqa: E501
    refused(made, totals, capsys, "in the plan, and by the configuration Infinity")


@pytest.mark.parametrize("value", ["0", "1e9"])
def test_variances_that_are_not_those_of_the_plan(
    made: Place, tmp_path: Path, capsys: pytest.CaptureFixture[str], value: str
) -> None:
    refused(made, rewritten(made.root / "p", tmp_path / "p", "VARIANCE", value), capsys, "variances")


def test_a_variance_in_the_plan_that_is_not_that_of_its_budget(
    made: Place, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def change(manifest: dict[str, Any]) -> None:
        manifest["plan"]["measurements"][0]["sigma2"] = "0"

    refused(made, changed(made.root / "p", tmp_path / "p", change), capsys, "does not follow from its budget")


def test_a_loss_that_is_not_that_of_the_measurements(
    made: Place, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    totals = changed(made.root / "p", tmp_path / "p", lambda m: m["plan"]["totals"].update(rho="1/100"))
    refused(made, totals, capsys, "loss")


def test_a_noise_below_what_the_codes_need(made: Place, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    # Budget, calibration and variance agree with each other; but a record counts in more groups than they say.
    def change(manifest: dict[str, Any]) -> None:
        for m in manifest["plan"]["measurements"]:
            sigma2 = Fraction(m["sigma2"]) / Fraction(m["l2_sensitivity_squared"])
            m |= {"sigma2": str(sigma2), "sigma2_float": float(sigma2), "sigma": math.sqrt(sigma2)}
            m["l2_sensitivity_squared"] = "1"

    refused(made, changed(made.root / "p", tmp_path / "p", change), capsys, "sensitivity of stage 1/USA 2 is 1 in")


def test_a_table_changed_after_it_was_written(made: Place, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    shutil.copytree(made.root / "p", tmp_path / "p")
    totals = tmp_path / "p" / "T01001.csv"
    shutil.copy(made.root / "exact" / "T01001.csv", totals)
    refused(made, totals, capsys, "checksum")


def test_totals_without_a_manifest(made: Place, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    shutil.copy(made.root / "p" / "T01001.csv", tmp_path)
    refused(made, tmp_path / "T01001.csv", capsys, "manifest.json")


def test_a_release_of_another_product(made: Place, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    totals = changed(made.root / "p", tmp_path / "p", lambda m: m.update(product="safetab-h"))
    refused(made, totals, capsys, "does not hold together")


@pytest.mark.parametrize(
    "change",
    [
        lambda m: m.pop("plan"),
        lambda m: m.update(plan=[]),
        lambda m: m["plan"].update(measurements=[]),
        lambda m: m["plan"]["measurements"][0].update(rho="-1"),
        lambda m: m["plan"]["measurements"][0].update(level="COUNTY 7"),
        lambda m: m["plan"]["measurements"][0].update(composition=3),
        lambda m: m.update(parameters=None),
        lambda m: m.update(tables=[]),
        lambda m: m.update(postprocessing=3),
        lambda m: m.update(ledger=None),
        lambda m: m.update(status=["noisy measurements under the plan"]),
    ],
)
def test_a_manifest_that_is_broken(made: Place, tmp_path: Path, change: Change) -> None:
    config = read_config("safetab-h", made.parameters / NAMES["config"])
    iterations = read_iterations(made.parameters)
    assert provenance(made.root / "p" / "T01001.csv", config, iterations).taken_as_public == PUBLISHED
    totals = changed(made.root / "p", tmp_path / "p", change)
    with suppress(OutputError):  # where the shape of the manifest is wrong already
        found = provenance(totals, config, iterations)
        assert found.doubts
        assert found.taken_as_public != PUBLISHED


@pytest.mark.sampled(1)
@pytest.mark.parametrize(("definition", "accounting"), [("zcdp", "tight"), ("puredp", "published")])
@pytest.mark.slow
def test_every_kind_of_plan_vouches(tmp_path: Path, definition: str, accounting: str) -> None:
    world = a_world()
    world.config.definition, world.config.zero_suppression = definition, "0.5"
    world.config.p["TRACT", 1] = "1/3"
    place = Place(tmp_path, world)
    totals = place.make("run", "p", "--sensitivity", accounting, "--confidence", "0.9", data=place.real) / "T01001.csv"
    assert place.h(totals, place.real) == 0
    assert place.manifest["taken_as_public"][-1] == PUBLISHED


def test_confidential_totals_are_never_taken(made: Place, tmp_path: Path) -> None:
    totals = changed(made.root / "exact", tmp_path / "p", lambda m: m.update(status="CONFIDENTIAL"))
    declared = tmp_path / "p" / "pop-group-totals.txt"
    declared.write_text("REGION_ID|REGION_TYPE|ITERATION_CODE|COUNT\n01|STATE|0011|8\n")
    for data in (made.real, made.synthetic):
        assert made.h(totals, data) == 2
        assert made.h(declared, data) == 2


# --- of the same population groups ------------------------------------------------------------------------------------


def configured(made: Place, folder: Path, **changes: object) -> Path:
    shutil.copytree(made.parameters, folder)
    document = json.loads((folder / NAMES["config"]).read_text()) | changes
    (folder / NAMES["config"]).write_text(json.dumps(document))
    return folder


@pytest.mark.parametrize(
    ("changes", "needle"),
    [
        ({"max_race_codes": 3}, "max_race_codes"),
        ({"state_filter_us": ["01", "02"]}, "state_filter_us"),
        ({"run_pr": True}, "run_pr"),
    ],
)
def test_totals_of_another_configuration(
    made: Place, tmp_path: Path, capsys: pytest.CaptureFixture[str], changes: dict[str, object], needle: str
) -> None:
    other = configured(made, tmp_path / "parameters", **changes)
    totals = made.root / "p" / "T01001.csv"
    assert made.h(totals, made.real, parameters=other) == 2
    assert needle in capsys.readouterr().err


@pytest.mark.thorough
def test_totals_of_other_iterations(made: Place, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    other = configured(made, tmp_path / "parameters")
    path = other / NAMES["map"]
    path.write_text(path.read_text().replace("0033|1001", "0033|9950"))
    totals = made.root / "p" / "T01001.csv"
    assert made.h(totals, made.real, parameters=other) == 2
    assert "iterations" in capsys.readouterr().err
    # How the files are written does not matter, nor what the iterations are called.
    path = configured(made, tmp_path / "same") / NAMES["race"]
    path.write_text(path.read_text().replace("not specified", "specified").replace("\n", "\r\n"))
    assert made.h(totals, made.real, parameters=path.parent) == 0


def without_the_first_county(data: Path, folder: Path) -> Path:
    """The same records without those of one county, whose blocks the geography lacks, too."""
    shutil.copytree(data, folder)
    write_blocks(folder / NAMES["blocks"], [THERE], FORMS["plain"])
    path = folder / NAMES["households"]
    header, *rows = path.read_text().splitlines()
    path.write_text("\n".join([header, *(row for row in rows if row.split("|")[1] == THERE.TABBLKCOU), ""]))
    return folder


@pytest.mark.sampled(1)
@pytest.mark.parametrize("units", ["", f"block|housing_units\n{block_id(THERE)}|9\n"])
@pytest.mark.slow
def test_areas_that_the_geography_does_not_have(
    made: Place, tmp_path: Path, capsys: pytest.CaptureFixture[str], units: str
) -> None:
    totals = made.root / "p" / "T01001.csv"
    for source in (made.real, made.synthetic):
        data = without_the_first_county(source, tmp_path / source.name)
        if units:
            (data / NAMES["housing"]).write_text(units)
    ledger = tmp_path / "ledger.json"
    assert made.h(totals, tmp_path / "real", "--ledger", str(ledger), "--dataset", "X") == 2
    assert "county" in capsys.readouterr().err
    assert not ledger.exists()
    assert made.h(totals, tmp_path / "synthetic") == 0
    manifest = made.manifest
    assert manifest["status"] == "NOT FOR RELEASE"
    gone = {(row[0], row[1]) for row in rows_of(totals) if row[1] != "USA" and row[0].startswith("01001")}
    published = {(row[0], row[1]) for name in manifest["tables"] for row in rows_of(made.root / "h" / name)}
    assert gone
    assert not gone & published
    unknown = [r for r in rows_of(totals) if r[0].startswith(("01001", "0112345")) or r[1] == "AIANNH"]
    assert manifest["parameters"]["totals"]["left_out"] == {"of areas that GRF-C does not have": len(unknown)}


def rows_of(path: Path) -> list[list[str]]:
    return [line.split("|") for line in path.read_text().splitlines()[1:]]


@pytest.mark.slow
def test_totals_of_another_place_altogether(made: Place, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    header = "REGION_ID|REGION_TYPE|ITERATION_CODE|COUNT\n"
    for source in (made.real, made.synthetic):
        data = shutil.copytree(source, tmp_path / source.name)
        (data / NAMES["totals"]).write_text(header + "01777|COUNTY|0022|60\n01779|COUNTY|0022|60\n")
        assert made.h(None, data) == 2
        assert "none of its rows" in capsys.readouterr().err


@pytest.mark.thorough
def test_areas_without_housing_units_are_counted(made: Place, tmp_path: Path) -> None:
    data = without_the_first_county(made.real, tmp_path / "data")
    write_blocks(data / NAMES["blocks"], [HERE, THERE], FORMS["plain"])
    (data / NAMES["housing"]).write_text(f"block|housing_units\n{block_id(HERE)}|0\n{block_id(THERE)}|9\n")
    totals = made.root / "p" / "T01001.csv"
    assert made.h(totals, data) == 0
    gone = [r for r in rows_of(totals) if r[0].startswith(("01001", "0112345")) or r[1] == "AIANNH"]
    found = made.manifest["parameters"]["totals"]["left_out"]
    assert found == {"of areas without housing units": len(gone)}
    log = json.loads((made.root / "h.confidential.log").read_text())
    assert log["totals_left_out"] == found


# --- the form of the originals ----------------------------------------------------------------------------------------


@pytest.mark.slow
def test_the_originals_form_is_a_declaration(made: Place, tmp_path: Path) -> None:
    data = shutil.copytree(made.real, tmp_path / "data")
    path = data / NAMES["totals"]
    path.write_text("REGION_ID|REGION_TYPE|ITERATION_CODE|COUNT\n01|STATE|0022|60\n")
    assert made.h(None, data) == 0
    manifest = made.manifest
    assert manifest["taken_as_public"][-1] == DECLARED
    assert manifest["parameters"]["totals"]["sha256"] == checksum(path)
    assert "STATE 1" in manifest["parameters"]["totals"]["levels_without_groups"]


@pytest.mark.slow
def test_a_release_by_another_name_is_no_declaration(
    made: Place, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data = shutil.copytree(made.real, tmp_path / "data")
    shutil.copy(made.root / "exact" / "T01001.csv", data / NAMES["totals"])
    assert made.h(None, data) == 2
    assert "manifest.json" in capsys.readouterr().err
    header = "REGION_ID|REGION_TYPE|ITERATION_CODE|COUNT\n"
    (tmp_path / "T01001.csv").write_text(header + "01|STATE|0022|60\n")
    assert made.h(tmp_path / "T01001.csv", made.real) == 2
    assert made.h(tmp_path / "T01001.csv", made.synthetic) == 0
    assert made.manifest["taken_as_public"][-1] == DOUBTFUL
