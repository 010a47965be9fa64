"""Manifests say how a release was made, and whether it may be published; who edits one is found out where possible."""

import json
import math
import os
import shutil
from collections.abc import Callable, Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any, Literal

import pytest
from manifest_releases import Releases, call, make_releases, phsafe_config
from safetab_worlds import NAMES

from yupana.plan.measurement import Measurement, Mechanism, Sensitivity
from yupana.plan.plan import Neighbours, Plan
from yupana.privacy.exact import INFINITE, Budget
from yupana.release.status import INTERNAL
from yupana.release.tables import ReleaseTable, checksum, read_table, write_table
from yupana.topdown.reading.configuration import BUILT_IN, configuration_document, read_configuration

Manifest = dict[str, Any]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Releases:
    return make_releases(tmp_path_factory.mktemp("made"))


@pytest.fixture
def copy(made: Releases, tmp_path: Path) -> Callable[[str], Path]:
    return lambda name: Path(shutil.copytree(made / name, tmp_path / name))


def read(release: Path) -> Manifest:
    return dict(json.loads((release / "manifest.json").read_text(encoding="utf-8")))


def edit(release: Path, **changes: object) -> Path:
    (release / "manifest.json").write_text(json.dumps(read(release) | changes), encoding="utf-8")
    return release


def refused(capsys: pytest.CaptureFixture[str], *arguments: object) -> str:
    capsys.readouterr()
    assert call(*arguments) == 2
    return capsys.readouterr().err


# --- repeated from the manifest ---------------------------------------------------------------------------------------


def files(folder: Path) -> Iterator[tuple[str, bytes]]:
    for path in sorted(folder.rglob("*")):
        if path.is_file() and path.name != "manifest.json":
            yield path.relative_to(folder).as_posix(), path.read_bytes()


def repeat(made: Releases, out: Path, name: str) -> None:
    """Make a release again from its manifest, public files and data."""
    manifest = made / f"{name}/manifest.json"
    if name in {"phsafe", "exact"}:
        verb, seed = ("run", ("--seed", 3)) if name == "phsafe" else ("exact", ())
        assert call("phsafe", verb, manifest, made / "census", out, *seed) == 0
    elif name == "topdown":
        noisy = ("--noisy-measurements", out.with_name("noisy"))
        assert call("topdown", "run", manifest, made / "world", out, "--seed", 3, *noisy) == 0
    else:
        codes = ("--codes", made / "safetab/parameters")
        assert call(name, "run", manifest, made / "safetab/data", out, "--seed", 3, *codes) == 0


@pytest.mark.parametrize("name", ["phsafe", "exact", "safetab-p", "topdown"])
@pytest.mark.slow
def test_a_release_repeated_from_its_manifest_is_the_same_to_the_byte(
    made: Releases, tmp_path: Path, name: str
) -> None:
    repeat(made, tmp_path / "out", name)
    assert dict(files(tmp_path / "out")) == dict(files(made / name))
    old, new = read(made / name), read(tmp_path / "out")
    assert {key: new[key] for key in new if key != "created"} == {key: old[key] for key in old if key != "created"}


@pytest.mark.slow
def test_the_whole_configuration_is_told(made: Releases) -> None:
    told = read(made / "phsafe")
    assert told["configuration"]["truncation_key"] == "k"
    assert told["configuration"]["consistency"] == {"couple": "drop-and-count"}
    assert told["configuration"]["privacy_budget"]["PH2"]["usa_*"] == 0.5
    assert told["options"] == {"confidence": "19/20", "margins": "exact", "sensitivity": "tight", "format": "csv"}
    # No file of records has a checksum in public.
    assert told["public_inputs"] == {}
    told = read(made / "safetab-p")
    assert told["configuration"]["privacy_budget_p_stage_1_fraction"] == "1/3"
    assert {"thresholds_p", "max_race_codes", "allow_negative_counts", "zero_suppression_chance"} <= set(
        told["configuration"]
    )
    parameters, data = made / "safetab/parameters", made / "safetab/data"
    names = {path.name for path in parameters.iterdir()} - {"config.json"} | {NAMES["blocks"]}
    assert names <= set(told["public_inputs"])
    assert not {"person-records.txt", "household-records.txt"} & set(told["public_inputs"])
    for name, digest in told["public_inputs"].items():
        assert digest == checksum((parameters if (parameters / name).exists() else data) / name)
    assert set(read(made / "topdown")["public_inputs"]) == {"geography.txt"}
    assert read(made / "topdown")["configuration"]["spine"]["kind"] == "optimized"


def test_exact_counts_say_that_their_budgets_were_infinite(made: Releases) -> None:
    budgets = read(made / "exact")["configuration"]["privacy_budget"]
    assert budgets["PH2"]["usa_*"] == "Infinity"
    assert budgets["PH3"]["usa_*"] == 0.0


@pytest.mark.parametrize("name", BUILT_IN)
def test_configurations_of_topdown_are_read_back_from_their_documents(name: str, tmp_path: Path) -> None:
    found = read_configuration(name)
    path = tmp_path / "config.json"
    path.write_text(json.dumps(configuration_document(found)))
    assert read_configuration(path) == found


@pytest.mark.slow
def test_other_public_files_are_refused(made: Releases, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    codes = Path(shutil.copytree(made / "safetab/parameters", tmp_path / "codes"))
    with (codes / "race-and-ethnicity-codes.txt").open("a") as file:
        file.write("\n")
    arguments = (made / "safetab-p/manifest.json", made / "safetab/data", tmp_path / "out", "--codes", codes)
    error = refused(capsys, "safetab-p", "run", *arguments)
    assert "race-and-ethnicity-codes.txt must have the SHA-256" in error
    world = Path(shutil.copytree(made / "world", tmp_path / "world"))
    (world / "group_quarters.csv").write_text(
        "block|housing_units|"
        + "|".join(f"gq{n}" for n in range(1, 8))
        + "\n"
        + "".join(
            f"{line.split('|')[0]}|1|0|0|0|0|0|0|0\n"
            for line in dict.fromkeys((world / "histogram.csv").read_text().splitlines()[1:2])
        )
    )
    error = refused(capsys, "topdown", "run", made / "topdown/manifest.json", world, tmp_path / "out")
    assert "group_quarters.csv was not read" in error or "group_quarters.csv" in error


def test_a_manifest_of_another_product_is_no_configuration(made: Releases, capsys: pytest.CaptureFixture[str]) -> None:
    assert "manifest of an output of 'safetab-p'" in refused(capsys, "phsafe", "plan", made / "safetab-p/manifest.json")
    assert "'phsafe estimates'" in refused(capsys, "phsafe", "plan", made / "estimates/manifest.json")
    assert "of 'spine'" in refused(capsys, "topdown", "plan", made / "spine/manifest.json")


# --- check compares ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["phsafe", "exact", "estimates", "safetab-p", "safetab-h", "coterminous", "topdown"])
def test_what_was_made_passes(made: Releases, name: str) -> None:
    assert call("check", made / name) == 0


@pytest.mark.slow
def test_public_files_are_compared_where_they_are_named(
    made: Releases, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    both = Path(shutil.copytree(made / "safetab/parameters", tmp_path / "both"))
    shutil.copy(made / "safetab/data" / NAMES["blocks"], both)
    # A run reads its codes and its blocks from two folders; either may be named.
    for folder in (both, made / "safetab/parameters", made / "safetab/data"):
        assert call("check", made / "safetab-p", "--inputs", folder) == 0
    assert call("check", made / "safetab-h", "--inputs", both) == 0
    assert call("check", made / "topdown", "--inputs", made / "world") == 0
    with (both / NAMES["blocks"]).open("a") as file:
        file.write("\n")
    assert "is not the public file" in refused(capsys, "check", made / "safetab-p", "--inputs", both)
    assert "holds none" in refused(capsys, "check", made / "topdown", "--inputs", both)


CHANGES: list[tuple[str, Callable[[Manifest], object], str]] = [
    ("phsafe", lambda c: c["privacy_budget"]["PH2"].update({"usa_*": 0.25}), "budget of PH2/usa_*"),
    ("phsafe", lambda c: c["tau"].update(PH2=c["tau"]["PH2"] + 1), "parameters.tau"),
    ("phsafe", lambda c: c.update(privacy_defn="puredp"), "mechanism"),
    ("phsafe", lambda c: c.pop("tau"), "'tau' is missing"),
    ("safetab-p", lambda c: c.update(privacy_budget_p_stage_1_fraction=0.5), "budget of stage 1/"),
    ("safetab-p", lambda c: c.update(zero_suppression_chance=0.25), "zero_suppression_chance"),
    ("safetab-h", lambda c: c.update({key: 1 for key in c if key.startswith("privacy_budget_h_t3")}), "of T03/"),
    ("topdown", lambda c: c.update(rho="1/4"), "budget of"),
    ("topdown", lambda c: c.update(spine={**c["spine"], "kind": "conventional"}), "parameters.spine"),
]


@pytest.mark.parametrize(("name", "change", "words"), CHANGES)
def test_a_configuration_that_does_not_make_the_plan_is_found(
    name: str,
    change: Callable[[Manifest], object],
    words: str,
    copy: Callable[[str], Path],
    capsys: pytest.CaptureFixture[str],
) -> None:
    release = copy(name)
    configuration = read(release)["configuration"]
    change(configuration)
    assert words in refused(capsys, "check", edit(release, configuration=configuration))


# --- the status -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("status", ["noisy measurements under the plan", "fine", None])
def test_an_exact_release_is_not_publishable_whatever_its_status(
    status: str | None, copy: Callable[[str], Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    release = copy("exact")
    told = read(release)
    del told["reasons"]
    told |= {"status": status} if status else {}
    if status is None:
        del told["status"]
    (release / "manifest.json").write_text(json.dumps(told))
    words = "status" if status is None else "a budget is infinite"
    assert words in refused(capsys, "check", release)
    assert words in refused(capsys, "audit", "certificate", release, tmp_path / "out")
    assert call("phsafe", "estimate", release, tmp_path / "out") == 2
    assert not (tmp_path / "out").exists()


def test_a_status_better_than_the_reasons_is_refused(
    copy: Callable[[str], Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A seeded release whose reasons were left in; that they were taken out, too, nobody can tell."""
    release = edit(copy("phsafe"), status="noisy measurements under the plan")
    assert "made from a seed" in refused(capsys, "check", release)
    assert "made from a seed" in refused(capsys, "phsafe", "estimate", release, tmp_path / "out")
    release = edit(copy("safetab-p"), status="noisy measurements under the plan")
    grfc, policy = tmp_path / "x", tmp_path / "y"
    assert "made from a seed" in refused(capsys, "postprocess", "coterminous", release, grfc, tmp_path / "out")
    policy.write_text('[[rule]]\nrule = "negative"\ntables = ["T01001"]\nreason = "N"\n')
    assert "made from a seed" in refused(capsys, "postprocess", "suppress", release, policy, tmp_path / "out")


def test_nothing_is_made_of_what_is_confidential(
    copy: Callable[[str], Path], made: Releases, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    exact, totals = (edit(copy(name), status="CONFIDENTIAL", reasons=[INTERNAL]) for name in ("exact", "safetab-p"))
    out = tmp_path / "out"
    assert call("check", exact) == 0
    for arguments in (
        ("phsafe", "estimate", exact, out),
        ("audit", "certificate", exact, out),
        ("interval", exact, "--query", "PH2[REGION_ID=1]"),
        ("postprocess", "coterminous", totals, made / "safetab/data" / NAMES["blocks"], out),
        ("postprocess", "suppress", totals, made / "policy.toml", out),
    ):
        assert "is CONFIDENTIAL" in refused(capsys, *arguments)


@pytest.mark.parametrize(("name", "of"), [("phsafe", "promised"), ("safetab-h", "promised"), ("topdown", "person")])
@pytest.mark.slow
def test_a_loss_that_does_not_follow_from_the_plan_is_not_certified(
    copy: Callable[[str], Path], tmp_path: Path, name: str, of: str, capsys: pytest.CaptureFixture[str]
) -> None:
    release = copy(name)
    assert call("audit", "certificate", release, tmp_path / "sound") == 0
    plan = read(release)["plan"]
    symbol = "epsilon" if plan["totals"]["rho"] is None else "rho"
    kind = "bounded" if of == "person" or plan["neighbours"] == "unbounded" else "unbounded"
    (plan["totals"]["person"] if of == "person" else plan["totals"])[f"{kind}_{symbol}"] = "1/100"
    edit(release, plan=plan)
    assert "totals" in refused(capsys, "audit", "certificate", release, tmp_path / "out")
    assert "totals" in refused(capsys, "check", release)


def test_estimates_are_not_published_of_what_is_not_for_release(
    made: Releases, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    error = refused(capsys, "phsafe", "estimate", made / "phsafe", tmp_path / "out", "--publish")
    assert "made from a seed" in error
    assert read(made / "estimates")["status"] == "NOT FOR RELEASE"
    assert read(made / "coterminous")["status"] == "NOT FOR RELEASE"


def test_what_was_postprocessed_says_of_what(made: Releases) -> None:
    (record,) = read(made / "coterminous")["postprocessing"]
    assert record["source_manifest_sha256"] == checksum(made / "safetab-p/manifest.json")
    assert record["public_inputs"] == {NAMES["blocks"]: checksum(made / "safetab/data" / NAMES["blocks"])}
    (source,) = read(made / "estimates")["sources"]
    assert source["manifest_sha256"] == checksum(made / "phsafe/manifest.json")


# --- noise that is none -----------------------------------------------------------------------------------------------


def plan(mechanism: Mechanism, *budgets: Budget, sensitivity: int = 4) -> Plan:
    moved = Fraction(sensitivity)
    sensitivities = Sensitivity(moved, moved)
    return Plan(
        *("phsafe", "person record", Neighbours.UNBOUNDED, "published", Fraction(9, 10), mechanism),
        tuple(
            Measurement(f"m{n}", "PH2", "usa_*", 1, mechanism, moved, sensitivities, sensitivities, budget)
            for n, budget in enumerate(budgets)
        ),
    )


@pytest.mark.parametrize(
    ("budgets", "words"),
    [
        ((Fraction(1),), None),
        ((Fraction(50),), None),
        ((INFINITE, Fraction(1)), "infinite"),
        # sigma2 = 4 / (2 rho): noise is zero but for 2 exp(-rho / 4), which is 1e-6 at rho 58.
        ((Fraction(58),), None),
        ((Fraction(59),), "one count in a million"),
        ((Fraction(1), Fraction(10**15)), "one count in a million"),
        ((Fraction(50), Fraction(50)), None),
        ((Fraction(50), Fraction(51)), "above 100"),
    ],
)
def test_budgets_so_large_that_noise_is_none(budgets: tuple[Budget, ...], words: str | None) -> None:
    found = plan(Mechanism.ZCDP, *budgets).against_release
    assert [words in reason for reason in found] == [True] if words else not found


def test_pure_budgets_so_large_that_noise_is_none() -> None:
    """Noise at scale b = 4 / epsilon is not zero with probability 2 / (e^(1/b) + 1): 1e-6 at epsilon 58."""
    assert not plan(Mechanism.PURE, Fraction(58)).against_release
    assert plan(Mechanism.PURE, Fraction(59)).against_release


@pytest.mark.parametrize("budget", [1000000000000000, 1000])
@pytest.mark.slow
def test_counts_as_good_as_exact_are_not_released(
    made: Releases, tmp_path: Path, capsys: pytest.CaptureFixture[str], budget: int
) -> None:
    config = tmp_path / "config.json"
    config.write_text(json.dumps(phsafe_config("PH8_denom", budget=budget)))
    real = Path(shutil.copytree(made / "census", tmp_path / "real"))
    (real / "SYNTHETIC").unlink()
    assert "refused because" in refused(capsys, "phsafe", "run", config, real, tmp_path / "out")
    assert call("phsafe", "run", config, made / "census", tmp_path / "out") == 0
    told = read(tmp_path / "out")
    assert told["status"] == "NOT FOR RELEASE"
    assert "one count in a million" in told["reasons"][0]
    del told["reasons"]
    (tmp_path / "out/manifest.json").write_text(json.dumps(told | {"status": "noisy measurements under the plan"}))
    assert "one count in a million" in refused(capsys, "check", tmp_path / "out")


# --- nothing beside the manifest --------------------------------------------------------------------------------------


@pytest.mark.slow
def test_reports_have_checksums(copy: Callable[[str], Path], capsys: pytest.CaptureFixture[str]) -> None:
    estimates = copy("estimates")
    with (estimates / "index.html").open("a") as file:
        file.write("x")
    assert "index.html was changed" in refused(capsys, "check", estimates)
    spine = copy("spine")
    assert call("spine", "report", spine) == 0
    assert call("check", spine) == 0
    (spine / "report.html").write_text("confidential")
    assert "report.html was changed" in refused(capsys, "check", spine)


@pytest.mark.parametrize("name", ["phsafe", "estimates", "safetab-p", "topdown", "spine"])
def test_a_changed_file_is_told_once(
    name: str, copy: Callable[[str], Path], capsys: pytest.CaptureFixture[str]
) -> None:
    release = copy(name)
    file = next(iter(read(release)["tables"]))
    (release / file).write_bytes((release / file).read_bytes() + b"\n")
    assert refused(capsys, "check", release).count(f"{file} was changed") == 1


def test_a_manifest_whitelists_no_file(
    made: Releases, copy: Callable[[str], Path], capsys: pytest.CaptureFixture[str]
) -> None:
    release = copy("phsafe")
    shutil.copy(made / "census/persons.csv", release / "report.html")
    assert "reports: must be an object" in refused(capsys, "check", edit(release, reports=["report.html"]))
    assert "key 'sha256' is missing" in refused(capsys, "check", edit(release, reports={"report.html": {}}))


@pytest.mark.parametrize(
    ("place", "target"), [("etc", "/etc"), ("PH2.csv", "/etc/hostname"), ("PH2.csv", "itself"), ("PH2.csv", "nowhere")]
)
def test_links_are_no_part_of_a_release(
    place: str, target: str, copy: Callable[[str], Path], capsys: pytest.CaptureFixture[str]
) -> None:
    release = copy("phsafe")
    (release / place).unlink(missing_ok=True)
    (release / place).symlink_to(release / place if target == "itself" else target)
    assert place in refused(capsys, "check", release)
    if place == "PH2.csv":
        for arguments in (
            ("interval", release, "--query", "PH2[REGION_ID=1]"),
            ("phsafe", "estimate", release, release.with_name("out")),
            ("audit", "certificate", release, release.with_name("out")),
        ):
            assert place in refused(capsys, *arguments)


def test_empty_folders_and_odd_files_are_no_part_of_a_release(
    copy: Callable[[str], Path], capsys: pytest.CaptureFixture[str]
) -> None:
    release = copy("phsafe")
    (release / "notes").mkdir()
    os.mkfifo(release / "queue")
    (release / "\x1b[31m").write_text("")
    error = refused(capsys, "check", release)
    assert "notes is an empty folder" in error
    assert "queue is not in the manifest" in error
    assert "\x1b" not in error
    (release / "PH2.csv").unlink()
    os.mkfifo(release / "PH2.csv")
    assert "PH2.csv is missing" in refused(capsys, "check", release)


@pytest.mark.parametrize("fmt", ["csv", "parquet"])
def test_a_table_is_read_back_as_it_was_written(fmt: Literal["csv", "parquet"], tmp_path: Path) -> None:
    """Also where a ratio has no value, as that of two counts that are 0."""
    table = ReleaseTable("t", {"A": ["x", "y"], "N": [1, -2], "RATIO": [0.1, math.nan]})
    path = write_table(tmp_path, table, fmt)
    assert read_table(path) == {"A": ["x", "y"], "N": ["1", "-2"], "RATIO": ["0.1", "nan"]}
