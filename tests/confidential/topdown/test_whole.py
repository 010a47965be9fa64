"""Releases of several parts: two plans, two accounts and one folder, made together or not at all."""

import hashlib
import json
import os
import shutil
import signal
from pathlib import Path
from typing import Any

import pytest
from topdown_worlds import configuration, make_world, write_configuration, write_world

import yupana
from yupana.cli.main import main
from yupana.confidential.request import RunRequest
from yupana.confidential.run import run as run_alone
from yupana.confidential.topdown import counter as counter_module
from yupana.errors import ConfigError, OutputError
from yupana.plan.plan import read_plan
from yupana.privacy.entropy import SeededEntropy
from yupana.products.topdown.product import TOPDOWN
from yupana.release.checkpoint import Checkpoint
from yupana.release.release import part_names
from yupana.topdown.descent.checkpoint import BatchCheckpoint
from yupana.topdown.reading.configuration import read_configuration

PARTS = ("persons", "units")
LOSSES = {"persons": "1/2", "units": "1/3"}


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A small world of persons and one of housing units, and a document of both."""
    monkeypatch.chdir(tmp_path)
    return write_both(tmp_path)


def write_both(folder: Path) -> Path:
    write_world(make_world(6, (3, 2), states=1), folder / "data" / "persons")
    write_world(make_world(7, (2,), states=1), folder / "data" / "units")
    write_configuration(configuration((3, 2), rho="1/2"), folder / "persons.json")
    units = configuration((2,), rho="1/3", privacy_unit="housing unit", product="homes")
    write_configuration(units, folder / "units.json")
    document = {"product": "both", "parts": {"persons": "persons.json", "units": "units.json"}}
    write_configuration(document, folder / "both.json")
    return folder


@pytest.fixture(scope="module")
def once(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Both, with two releases of them: `out` with its measurements beside it, and `other`."""
    folder = write_both(tmp_path_factory.mktemp("once"))
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        assert run("--noisy-measurements", "noisy", "--seed", "3", "--no-microdata") == 0
        more = ("--set", "units.rho=1/5", "--estimator", "full-information")
        assert run("--seed", "3", *more, out="other") == 0
    return folder


@pytest.fixture
def made(once: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of these releases."""
    monkeypatch.chdir(shutil.copytree(once, tmp_path / "made"))
    return Path.cwd()


def run(*options: str, out: str = "out") -> int:
    return main(["topdown", "run", "both.json", "data", out, *options])


def files(folder: Path) -> dict[str, str]:
    """What a folder holds but for its manifest, which has the time."""
    return {
        path.relative_to(folder).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in folder.rglob("*")
        if path.is_file() and path.name != "manifest.json"
    }


def charges(ledger: str = "ledger.json") -> dict[str, list[str]]:
    told = json.loads(Path(ledger).read_text())["data"] if Path(ledger).exists() else {}
    return {name: [one["losses"]["own"] for one in account["runs"]] for name, account in told.items()}


@pytest.mark.thorough
def test_each_part_is_what_its_configuration_makes_alone(made: Path) -> None:
    whole = yupana.open_release("out")
    assert tuple(whole.parts) == PARTS == part_names(whole.manifest)
    assert repr(whole).startswith("<release of both: NOT FOR RELEASE;")
    for name in PARTS:
        config, data = read_configuration(f"{name}.json"), made / "data" / name
        # The noise of one part is independent of that of another.
        request = RunRequest(entropy=SeededEntropy(3).branch(name), microdata=False)
        run_alone(TOPDOWN, config, data, made / "alone" / name, request)
        alone = yupana.open_release(made / "alone" / name)
        assert files(alone.folder) == files(made / "out" / name) == files(whole.parts[name].folder)
        assert whole.parts[name].plan == alone.plan
        for table in alone:
            assert whole.path(f"{name}/{table}").read_bytes() == alone.path(table).read_bytes()
    assert len(whole) == sum(map(len, whole.parts.values()))
    # Two plans and no sum of them.
    assert "plan" not in whole.manifest
    assert {name: str(part.plan.loss()) for name, part in whole.parts.items() if part.plan} == LOSSES
    assert yupana.check("out").wrong == ()
    assert sorted(path.name for path in made.glob("out*")) == ["out", "out.confidential.log"]
    log = json.loads((made / "out.confidential.log").read_text())
    for name in PARTS:
        assert sorted(log["parts"][name]) == ["inputs", "records", "seconds"]


@pytest.mark.thorough
def test_a_release_is_repeated_from_its_manifest(made: Path) -> None:
    again = yupana.run("topdown", "other/manifest.json", "data", "again", seed=3)
    assert files(made / "other") == files(again.folder)
    assert [str(part.plan.loss()) for part in again.parts.values() if part.plan] == ["1/2", "1/5"]
    (made / "data" / "units" / "geography.txt").write_text(
        (made / "data" / "units" / "geography.txt").read_text().replace("9999", "0100")
    )
    with pytest.raises(yupana.InputError, match=r"other public files"):
        yupana.run("topdown", "other/manifest.json", "data", "third", seed=3)
    assert not list(made.glob("third*"))


@pytest.mark.usefixtures("here")
@pytest.mark.slow
def test_plans_are_told_apart_and_never_added(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["topdown", "plan", "both.json", "--json", "--confidence", "0.95"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert set(told) == {"product", "parts"}
    assert {name: part["confidence"] for name, part in told["parts"].items()} == dict.fromkeys(PARTS, 0.95)
    assert {name: str(read_plan(part).loss()) for name, part in told["parts"].items()} == LOSSES
    assert main(["topdown", "plan", "both.json", "--set", "persons.rho=1/8"]) == 0
    text = capsys.readouterr().out
    assert "persons:\n" in text
    assert "units:\n" in text
    assert text.splitlines()[-1] == (
        "their losses are not added, for they are promises to different units: a person record and a housing unit"
    )
    assert "0.125000" in text
    configurations = yupana.setup("topdown", "both.json", set={"persons.rho": "1/8"}).parts
    assert {name: str(one.plan().loss()) for name, one in configurations.items()} == {
        "persons": "1/8",
        "units": "1/3",
    }
    assert not yupana.setup("topdown", "persons.json").parts
    with pytest.raises(ConfigError, match=r"is a document of parts, each with a plan of its own"):
        yupana.plan("topdown", "both.json")


@pytest.mark.parametrize("name", ["pl94-2020-us-whole", "pl94-2020-pr-whole"])
def test_the_built_in_documents_are_the_plans_of_2020(name: str) -> None:
    state = name.removesuffix("-whole").removeprefix("pl94-2020-")
    found = yupana.setup("topdown", name).parts
    for part, source in (("persons", f"pl94-2020-{state}"), ("units", f"h1-2020-{state}")):
        assert found[part].plan() == yupana.plan("topdown", source)
    assert len({one.plan().privacy_unit for one in found.values()}) == 2


INLINE = configuration((2,), rho="1/3", privacy_unit="housing unit")


@pytest.mark.parametrize(
    ("document", "wrong"),
    [
        ({"parts": {"persons": "persons.json", "units": "units.json"}}, "key 'product' is missing"),
        ({"product": "x", "parts": {"persons": "persons.json"}}, "parts: must be a table of 2 configurations or more"),
        ({"product": "x", "parts": ["persons.json", "units.json"]}, "parts: must be a table"),
        ({"product": "x", "rho": "1", "parts": {"a": "persons.json", "b": "units.json"}}, "key 'rho' is unknown"),
        (
            {"product": "x", "parts": {"../a": "persons.json", "b": "units.json"}},
            r"\.\./a: must be a name: small letters",
        ),
        ({"product": "x", "parts": {"a": 3, "b": "units.json"}}, "parts.a: must be a built-in name, a file or a table"),
        ({"product": "x", "parts": {"a": "both.json", "b": "units.json"}}, "part a: .* is a document of parts"),
        ({"product": "x", "parts": {"a": "nowhere.json", "b": "units.json"}}, "part a: .*no such file"),
        ({"product": "x", "parts": {"a": {**INLINE, "rho": "x"}, "b": "persons.json"}}, r"part a: (.|\n)*rho"),
        (
            {"product": "x", "parts": {"a": "persons.json", "b": "pl94-2020-us"}},
            "parts a and b protect the same unit, a person record",
        ),
    ],
)
def test_rubbish_is_named(here: Path, document: dict[str, Any], wrong: str) -> None:
    write_configuration(document, here / "wrong.json")
    for config in ("wrong.json", document):
        with pytest.raises(ConfigError, match=wrong):
            yupana.setup("topdown", config)
    assert main(["topdown", "run", "wrong.json", "data", "out"]) == 2
    assert not list(here.glob("out*"))


@pytest.mark.thorough
def test_a_part_may_stand_in_the_document(here: Path) -> None:
    document = {"product": "x", "parts": {"persons": "persons.json", "units": INLINE}}
    write_configuration(document, here / "inline.json")
    for config in ("inline.json", document):
        found = yupana.setup("topdown", config, set={"units.shares.US": "1/6", "units.rho": "1/7"}).parts
        assert {name: str(one.config.budget) for name, one in found.items()} == {"persons": "1/2", "units": "1/7"}
    made = yupana.exact("topdown", "inline.json", "data", "out")
    assert made.manifest["status"] == "NOT FOR RELEASE"
    assert yupana.check(made).wrong == ()


@pytest.mark.parametrize(
    ("options", "wrong"),
    [
        (["--set", "rho=1"], "begin the key with that which is changed, persons. or units."),
        (["--set", "unit.rho=1"], "did you mean units?"),
        (["--ledger", "ledger.json", "--dataset", "D", "--limit", "1"], "such as persons=L,units=L"),
        (["--ledger", "ledger.json", "--dataset", "D", "--limit", "homes=1"], "such as persons=L,units=L"),
        (["--ledger", "ledger.json", "--dataset", "D", "--limit", "units.foo=1"], "no loss 'foo' to limit"),
        (["--limit", "units=1"], "a limit, a unit and a household cap need a ledger"),
        (["--pl", "pl"], "no part 'persons' with the schema of P.L. 94-171"),
        (["--resume"], "there is no interrupted run to resume"),
        (["--nmf", "out/nmf"], "name a folder of its own"),
        (["--log", "out.checkpoint/units/log"], "would lie in the release"),
        (["--ledger", "out.checkpoint/units/ledger", "--dataset", "D"], "would lie in the output folder"),
    ],
)
def test_what_makes_no_sense_is_refused_before_anything_is_drawn(
    here: Path, capsys: pytest.CaptureFixture[str], options: list[str], wrong: str
) -> None:
    assert run(*options) == 2
    assert wrong in capsys.readouterr().err
    assert sorted(path.name for path in here.iterdir()) == ["both.json", "data", "persons.json", "units.json"]


def test_targets_are_of_one_plan(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (here / "targets.json").write_text("{}")
    assert main(["topdown", "plan", "both.json", "--targets", "targets.json"]) == 2
    assert "--targets: they are of one plan" in capsys.readouterr().err


@pytest.mark.slow
def test_a_fault_of_the_second_part_is_found_before_the_first_is_charged(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    table = here / "data" / "units" / "histogram.csv"
    sound = table.read_text()
    table.write_text(sound + sound.splitlines()[-1] + "\n")
    account = ("--ledger", "ledger.json", "--dataset", "D")
    assert run(*account) == 2
    assert "histogram.csv" in capsys.readouterr().err
    assert charges() == {}
    assert not list(here.glob("out*"))
    table.write_text(sound)
    # So is a loss past the limit of the second.
    assert run(*account, "--limit", "persons=1,units=1/4") == 2
    assert "'D/units' to 0.333333, past its limit of 1/4" in capsys.readouterr().err
    assert charges() == {}
    assert not list(here.glob("out*"))
    assert run(*account, "--limit", "persons=1/2,units.bounded=1/3") == 0
    assert charges() == {"D/persons": ["1/2"], "D/units": ["1/3"]}
    told = json.loads(Path("ledger.json").read_text())["data"]
    assert told["D/persons"]["privacy_unit"] == "person record"
    assert told["D/units"]["privacy_unit"] == "housing unit"
    assert [told[name]["limits"] for name in told] == [{"own": "1/2"}, {"bounded": "1/3"}]
    assert run(*account, out="more") == 2
    assert charges() == {"D/persons": ["1/2"], "D/units": ["1/3"]}


@pytest.mark.usefixtures("here")
@pytest.mark.slow
def test_what_one_person_loses_is_added_in_one_account(capsys: pytest.CaptureFixture[str]) -> None:
    account = ("--ledger", "ledger.json", "--dataset", "D", "--unit", "person", "--limit")
    configurations = yupana.setup("topdown", "both.json").parts.values()
    losses = [one.plan().person_losses()["bounded"] for one in configurations]
    assert None not in losses
    total = sum(losses)  # type: ignore[arg-type]
    assert run(*account, f"bounded={total * 999 / 1000}") == 2
    assert "past its limit" in capsys.readouterr().err
    assert not Path("ledger.json").exists()
    assert run(*account, f"bounded={total}") == 0
    (told,) = json.loads(Path("ledger.json").read_text())["data"].values()
    assert len(told["runs"]) == 2
    assert told["spent"]["bounded"] == str(total)


def killed(monkeypatch: pytest.MonkeyPatch, where: str, part: str, *options: str) -> None:
    """Let a run die by a signal where a part calls a method of its checkpoint."""
    child = os.fork()
    if not child:
        owner = Checkpoint if hasattr(Checkpoint, where) else BatchCheckpoint
        method = getattr(owner, where)

        def die(self: Checkpoint, *more: Any, **named: Any) -> Any:  # noqa: ANN401
            if self.folder.name == part:
                os.kill(os.getpid(), signal.SIGKILL)
            return method(self, *more, **named)

        monkeypatch.setattr(owner, where, die)
        run(*options)
        os._exit(0)
    _, status = os.waitpid(child, 0)
    assert os.WTERMSIG(status) == signal.SIGKILL


def drawn(folder: Path) -> dict[str, str]:
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in folder.glob("*.measured")}


@pytest.mark.parametrize("where", ["save_draws", "load_draws"])
@pytest.mark.slow
def test_a_run_killed_between_parts_goes_on_without_a_second_draw(
    here: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], where: str
) -> None:
    account = ("--ledger", "ledger.json", "--dataset", "D")
    killed(monkeypatch, where, "units", *account)
    assert not (here / "out").exists()
    assert charges() == {"D/persons": ["1/2"], "D/units": ["1/3"]}
    before = drawn(here / "out.checkpoint" / "persons")
    assert len(before) == 6
    # Measurements are loaded when all of a part have been drawn.
    begun = drawn(here / "out.checkpoint" / "units")
    assert bool(begun) == (where == "load_draws")
    assert run(*account) == 2
    assert "holds noisy counts of an interrupted run" in capsys.readouterr().err
    again: list[str] = []
    draw, remove = BatchCheckpoint.save_draws, Checkpoint.remove
    after: dict[str, str] = {}

    def note(self: BatchCheckpoint, *more: Any) -> Any:  # noqa: ANN401
        again.append(self.folder.name)
        return draw(self, *more)

    def keep(self: Checkpoint) -> None:
        after.update(drawn(self.folder / "persons"))
        remove(self)

    monkeypatch.setattr(BatchCheckpoint, "save_draws", note)
    monkeypatch.setattr(Checkpoint, "remove", keep)
    assert run(*account, "--resume") == 0
    assert set(again) == (set() if begun else {"units"})
    assert after == before
    assert charges() == {"D/persons": ["1/2"], "D/units": ["1/3"]}
    assert yupana.check("out").wrong == ()
    assert sorted(path.name for path in here.glob("out*")) == ["out", "out.confidential.log"]


@pytest.mark.sampled(1)
@pytest.mark.parametrize("where", ["begin", "note"])
@pytest.mark.slow
def test_a_part_that_was_not_begun_begins_when_the_run_goes_on(
    here: Path, monkeypatch: pytest.MonkeyPatch, where: str
) -> None:
    """It has no folder, or one without a mark."""
    account = ("--ledger", "ledger.json", "--dataset", "D")
    killed(monkeypatch, where, "units", *account)
    assert (here / "out.checkpoint" / "persons").is_dir()
    assert (here / "out.checkpoint" / "units").exists() == (where == "note")
    assert charges() == {"D/persons": ["1/2"]}
    assert run(*account, "--resume") == 0
    assert charges() == {"D/persons": ["1/2"], "D/units": ["1/3"]}


@pytest.mark.sampled(1)
@pytest.mark.parametrize("number", [1, 3, 9, 15])
@pytest.mark.slow
def test_parts_whose_draws_are_being_removed_are_not_gone_on_with(
    here: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], number: int
) -> None:
    """Killed at the n-th file: what is left of one part, or of both, has no name by then that a run goes on with."""
    account = ("--ledger", "ledger.json", "--dataset", "D")
    remove, unlink, removed = Checkpoint.remove, os.unlink, [0]

    def die(*given: Any, **named: Any) -> None:  # noqa: ANN401
        removed[0] += 1
        if removed[0] == number:
            os.kill(os.getpid(), signal.SIGKILL)
        unlink(*given, **named)

    def removing(self: Checkpoint) -> None:
        os.unlink = die
        remove(self)

    child = os.fork()
    if not child:
        monkeypatch.setattr(Checkpoint, "remove", removing)
        run(*account)
        os._exit(0)
    _, status = os.waitpid(child, 0)
    assert os.WTERMSIG(status) == signal.SIGKILL
    assert list(here.glob("out.checkpoint.*.removed/*"))
    assert run(*account, "--resume", "--overwrite") == 2
    assert "there is no interrupted run to resume" in capsys.readouterr().err
    assert yupana.check("out").wrong == ()
    assert charges() == {"D/persons": ["1/2"], "D/units": ["1/3"]}


@pytest.mark.thorough
def test_a_part_that_fails_leaves_the_first_to_be_gone_on_with(
    here: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    write = counter_module.write_outputs

    def fail(folder: Path, *more: Any, **named: Any) -> Any:  # noqa: ANN401
        if folder.name == "units":
            raise OutputError("the disk is full")
        return write(folder, *more, **named)

    monkeypatch.setattr(counter_module, "write_outputs", fail)
    assert run() == 2
    assert "the disk is full" in capsys.readouterr().err
    assert sorted(path.name for path in here.glob("out*")) == ["out.checkpoint"]
    monkeypatch.setattr(counter_module, "write_outputs", write)
    monkeypatch.setattr(BatchCheckpoint, "save_draws", None)
    assert run("--resume") == 0
    assert yupana.check("out").wrong == ()


@pytest.mark.thorough
def test_all_measurements_of_each_part_lie_in_its_folder(made: Path) -> None:
    hold_two("out", "noisy")
    assert (made / "other" / "persons" / "microdata.csv").exists()
    assert not (made / "out" / "persons" / "microdata.csv").exists()
    for name in PARTS:
        found = yupana.interval(f"out/{name}", "State/total[geounit=01]", noisy=f"noisy/{name}")
        assert found is not None


@pytest.mark.thorough
def test_measurement_files_of_each_part_lie_in_its_folder(here: Path) -> None:
    assert run("--seed", "1", "--nmf", "nmf", "--format", "parquet") == 0
    hold_two("out", "nmf")
    assert (here / "out" / "units" / "counts" / "State.parquet").exists()


def hold_two(*folders: str) -> None:
    """Each of these, the release first, is sound and has both parts."""
    assert yupana.check(folders[0]).wrong == ()
    for folder in folders:
        assert yupana.open_release(folder).wrong() == []
        assert tuple(yupana.open_release(folder).parts) == PARTS


@pytest.mark.usefixtures("made")
@pytest.mark.thorough
def test_what_works_on_one_release_says_which_to_name(capsys: pytest.CaptureFixture[str]) -> None:
    wanted = "out holds several releases, each with a plan of its own; name out/persons or out/units"
    for line in (
        ["interval", "out", "--query", "total"],
        ["districts", "out", "plan.csv", "--noisy-measurements", "out"],
        ["topdown", "run", "out", "data", "more"],
    ):
        assert main(line) == 2
        told = capsys.readouterr().err
        assert wanted in told or "is a folder" in told, line
    assert main(["report", "out/units", "units.html"]) == 0
    assert main(["report", "out", "page.html"]) == 0


@pytest.mark.thorough
def test_all_parts_are_certified_together(here: Path) -> None:
    assert run("--seed", "1") == 0
    assert main(["audit", "certificate", "out", "certificate"]) == 0
    assert json.loads((here / "certificate" / "certificate.json").read_text())


@pytest.mark.usefixtures("made")
@pytest.mark.thorough
def test_a_check_sees_parts_that_were_exchanged() -> None:
    manifest = json.loads(Path("out/manifest.json").read_text())
    assert yupana.check("out").wrong == ()
    Path("out/persons").rename("persons-before")
    Path("other/persons").rename("out/persons")
    assert any("persons" in fault for fault in yupana.check("out").wrong)
    with pytest.raises(OutputError, match=r"is another release than the manifest of .* names"):
        _ = yupana.open_release("out").parts
    Path("out/persons").rename("other/persons")
    Path("persons-before").rename("out/persons")
    wrong = {**manifest, "parts": {**manifest["parts"], "persons": manifest["parts"]["units"]}}
    Path("out/manifest.json").write_text(json.dumps(wrong))
    assert yupana.check("out").wrong
    Path("out/manifest.json").write_text(json.dumps({**manifest, "parts": {"../x": manifest["parts"]["units"]}}))
    with pytest.raises(OutputError, match="is not a manifest that yupana wrote"):
        yupana.check("out")


@pytest.mark.usefixtures("here")
@pytest.mark.thorough
def test_a_status_follows_from_the_parts() -> None:
    made = yupana.exact("topdown", "both.json", "data", "out")
    assert made.status == "NOT FOR RELEASE"
    manifest = json.loads(Path("out/manifest.json").read_text())
    manifest.pop("reasons")
    Path("out/manifest.json").write_text(json.dumps({**manifest, "status": "noisy measurements under the plan"}))
    assert any("the status is" in fault for fault in yupana.check("out").wrong)


@pytest.mark.slow
def test_records_that_may_be_real_stay_in_the_house(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (here / "data" / "units" / "SYNTHETIC").unlink()
    line = ["topdown", "exact", "both.json", "data", "out"]
    assert main(line) == 2
    assert "may be real" in capsys.readouterr().err
    assert main([*line, "--internal"]) == 0
    assert yupana.open_release("out").status == "CONFIDENTIAL"
    assert all(path.stat().st_mode & 0o077 == 0 for path in (here / "out").rglob("*"))
    assert run("--seed", "1", out="more") == 2


@pytest.mark.usefixtures("here")
@pytest.mark.thorough
def test_other_verbs_ask_each_part(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["topdown", "validate", "both.json", "data", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert {name: part["valid"] for name, part in told["parts"].items()} == {"persons": True, "units": True}
    assert main(["topdown", "accuracy", "both.json", "data", "accuracy", "--seed", "2"]) == 0
    capsys.readouterr()
    for name in PARTS:
        assert yupana.check(f"accuracy/{name}").wrong == ()
    assert main(["topdown", "init", "mine.toml", "--like", "pl94-2020-us-whole"]) == 0
    assert set(yupana.setup("topdown", "mine.toml").parts) == set(PARTS)
    assert main(["topdown", "show", "pl94-2020-pr-whole"]) == 0
    assert "[parts]" in capsys.readouterr().out
