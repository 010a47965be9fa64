"""Runs of every product that are killed at every stage and go on: one kept draw of each measurement, one charge."""

import json
import os
import random
import shutil
import signal
import sys
from collections.abc import Callable, Iterator
from functools import partial
from itertools import cycle, pairwise
from pathlib import Path
from typing import Any, Final

import numpy as np
import pytest
from real_records import Named, write_real_records
from safetab_worlds import NAMES

import yupana
from yupana.cli.main import main
from yupana.confidential import resumption
from yupana.confidential import run as machine
from yupana.confidential.tabulate import count_groups
from yupana.files.draw_log import DrawLog, DrawnStretch
from yupana.plan import ledger as door
from yupana.products import PRODUCTS as PRODUCTS_BY_KEY
from yupana.release import folder as folders
from yupana.release.checkpoint import Checkpoint
from yupana.topdown.descent.checkpoint import BatchCheckpoint

AT_THE_DOOR: Final = ("phsafe", "safetab-p", "safetab-h", "tables")
PRODUCTS: Final = (*AT_THE_DOOR, "topdown")


def often(*quick: str, of: tuple[str, ...] = PRODUCTS) -> list[Any]:
    """Products of which some are tried every time, the rest with the thorough tests."""
    return [pytest.param(product, marks=() if product in quick else pytest.mark.thorough) for product in of]


DESCRIPTION: Final[dict[str, Any]] = {
    "name": "people",
    "unit": "people",
    "files": {
        "people": {
            "record": "person",
            "columns": {
                "region": {"codes": ["a", "b", "c"]},
                "sex": {"codes": ["1", "2"]},
                "kind": {"codes": ["x", "y"]},
            },
        }
    },
    "areas": {"all": {"code": "all"}, "region": {"column": "people.region"}},
    "groups": {"x": {"where": {"people.kind": "x"}}, "y": {"where": {"people.kind": "y"}}},
    "levels": {"kinds": {"areas": "region", "groups": ["x", "y"]}},
    "tables": {
        "sexes": {
            "counts": "people",
            "by": ["people.sex"],
            "margins": {"total": []},
            "budget": {"all": "1/10", "kinds": "1/2"},
            "detail": {
                "share": "1/5",
                "steps": [["total"], ["sexes", "total"]],
                "thresholds": {"all": [20], "kinds": [10]},
            },
        }
    },
}
"""A table whose detail a noisy total decides."""


@pytest.fixture(scope="module")
def real(tmp_path_factory: pytest.TempPathFactory) -> Named:
    """Records that may be real, so that no draw can be made again."""
    place = tmp_path_factory.mktemp("real")
    named = write_real_records(place)
    description, data = place / "people.json", place / "people"
    description.write_text(json.dumps(DESCRIPTION), encoding="utf-8")
    data.mkdir()
    rng = random.Random(1)  # noqa: S311 (no noise)
    rows = [f"{rng.choice('aab')}|{rng.choice('12')}|{rng.choice('xxy')}" for _ in range(60)]
    (data / "people.csv").write_text("\n".join(["region|sex|kind", *rows]) + "\n", encoding="utf-8")
    return {**named, "tables": [str(description), str(data)]}


@pytest.fixture
def place(tmp_path: Path) -> Path:
    (tmp_path / "place").mkdir()
    return tmp_path / "place"


def line(named: Named, product: str, place: Path, *options: str) -> list[str]:
    config, data, *more = named[product]
    account = ("--ledger", str(place.parent / "ledger.json"), "--dataset", "D")
    return [product, "run", config, data, str(place / "out"), *more, *account, *options]


def charges(place: Path) -> int:
    path = place.parent / "ledger.json"
    found = json.loads(path.read_text())["data"] if path.exists() else {}
    return sum(len(of_data["runs"]) for of_data in found.values())


def die(*_: object, **__: object) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def killed(arguments: list[str], patch: Callable[[], None]) -> bool:
    """Let a run be killed where a patch says; whether it was."""
    child = os.fork()
    if not child:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
        patch()
        main(arguments)
        os._exit(0)
    _, status = os.waitpid(child, 0)
    return os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL


def at_call(owner: object, name: str, number: int = 1, *, after: bool = False) -> None:
    """Die at a call of a function, before or after it."""
    method, calls = getattr(owner, name), [0]

    def called(*given: Any, **named: Any) -> Any:  # noqa: ANN401
        calls[0] += 1
        if calls[0] == number and not after:
            die()
        answer = method(*given, **named)
        if calls[0] == number:
            die()
        return answer

    setattr(owner, name, called)


def in_a_draw(number: int, part: float) -> None:
    """Die at the n-th write of draws, when so much of it is on disk."""
    write, calls = DrawLog._write, [0]

    def half(self: DrawLog, start: int, content: bytes) -> None:
        calls[0] += 1
        if calls[0] == number:
            write(self, start, content[: int(len(content) * part)])
            die()
        write(self, start, content)

    DrawLog._write = half  # type: ignore[method-assign]


def in_a_table(number: int) -> None:
    """Die when the n-th file of the release is opened to be written."""
    seen = [0]

    def hook(event: str, given: tuple[Any, ...]) -> None:
        if event == "open" and isinstance(given[0], str | os.PathLike) and given[2] & (os.O_WRONLY | os.O_RDWR):
            seen[0] += "/out.partial/" in os.fspath(given[0])
            if seen[0] == number:
                die()

    sys.addaudithook(hook)


EARLY: Final[dict[str, Callable[[], None]]] = {
    "while the records are opened": lambda: at_call(machine, "require_none"),
    "when all is counted": lambda: at_call(machine, "_check_charges"),
    "before its name is noted": lambda: at_call(Checkpoint, "note"),
}
"""Nothing is charged or drawn by then, and nothing to go on with."""

STAGES: Final[dict[str, Callable[[], None]]] = {
    "before the charge": lambda: at_call(resumption, "charge_account"),
    "after the charge": lambda: at_call(resumption, "charge_account", after=True),
    "before the first draw": lambda: at_call(door, "add_noise"),
    "between two draws": lambda: at_call(door, "add_noise", 3),
    "in a draw": lambda: at_call(door, "add_noise", 2, after=True),
    "after all draws": lambda: at_call(machine, "Recipe"),
    "while the first table is written": lambda: in_a_table(1),
    "while tables are written": lambda: in_a_table(2),
    "while the manifest is written": lambda: at_call(machine, "write_manifest"),
    "before the release appears": lambda: at_call(folders, "_publish"),
}
WRITTEN: Final[dict[str, Callable[[], None]]] = {
    # A draw is written in three: room, the draw itself, its seal.
    "while room is taken": lambda: in_a_draw(1, 0.5),
    "while a draw is written": lambda: in_a_draw(5, 0.5),
    "before a draw is sealed": lambda: in_a_draw(5, 1),
    "after a draw is sealed": lambda: in_a_draw(6, 1),
    "when a draw is kept": lambda: at_call(DrawLog, "take", 3, after=True),
}


def kept(place: Path) -> dict[str, bytes]:
    """What a run keeps of its draws."""
    folder = place / "out.checkpoint"
    return {
        path.name: path.read_bytes() for path in folder.glob("*") if path.name == "draws" or "measured" in path.name
    }


def contents(release: Path) -> dict[str, bytes]:
    """The tables of a release, and all else but its moment."""
    found = {str(path.relative_to(release)): path.read_bytes() for path in release.rglob("*") if path.is_file()}
    manifest = json.loads(found.pop("manifest.json"))
    del manifest["created"]
    return {**found, "manifest": json.dumps(manifest).encode()}


def go_on(arguments: list[str], place: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, bytes]:
    """Go on with a run to its end; what it had kept by then."""
    remove, found = Checkpoint.remove, {}

    def keep(self: Checkpoint) -> None:
        found.update(kept(place))
        shutil.copytree(self.folder, place.parent / "kept", dirs_exist_ok=True)
        remove(self)

    with monkeypatch.context() as patch:
        patch.setattr(Checkpoint, "remove", keep)
        assert main([*arguments, "--resume"]) == 0
    return found


def drawn(content: bytes, *, ended: bool = True) -> Iterator[tuple[DrawnStretch, np.ndarray]]:
    """Read a file of draws as its page says it is (docs/interrupted-runs.md); of a killed run room may follow."""
    start = 64
    while content[start : start + 32] != bytes(32):
        start += 32
        length, width = np.frombuffer(content, "<u2", 2, start).tolist()
        first, groups, values = np.frombuffer(content, "<i8", 3, start + 8).tolist()
        name = content[start + 32 : start + 32 + length].decode()
        numbers = np.frombuffer(content, f"<i{width}", values, start + 32 + length)
        yield DrawnStretch(name, first, groups, values), numbers
        start += -(-(32 + length + width * values) // 32) * 32
    assert len(content) == start + 32 or not ended


@pytest.mark.sampled(1)
@pytest.mark.slow
@pytest.mark.parametrize(("product", "stage"), list(zip(("tables", "phsafe", "topdown"), EARLY, strict=True)))
def test_a_run_killed_before_it_begins_is_begun_anew(real: Named, place: Path, product: str, stage: str) -> None:
    arguments = line(real, product, place)
    assert killed(arguments, EARLY[stage])
    assert charges(place) == 0
    assert main([*arguments, "--resume"]) == 2
    assert main(arguments) == 0
    assert charges(place) == 1
    assert yupana.check(place / "out").wrong == ()
    assert {path.name for path in place.iterdir()} == {"out", "out.confidential.log"}


@pytest.mark.slow
def test_a_run_goes_on_with_its_draws_in_other_batches(
    real: Named, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As it does when it is given less memory, or shards."""
    arguments = line(real, "safetab-h", place)
    assert killed(arguments, lambda: at_call(door, "add_noise", 3))
    before = dict(drawn(kept(place)["draws"], ended=False))
    assert before
    monkeypatch.setattr(count_groups, "_ROWS_AT_ONCE", 1)
    found = dict(drawn(go_on([*arguments, "--shards", "3"], place, monkeypatch)["draws"]))
    for stretch, numbers in before.items():
        assert np.array_equal(found[stretch], numbers)
    assert charges(place) == 1
    assert yupana.check(place / "out").wrong == ()


QUICK: Final = [*((product, "between two draws") for product in PRODUCTS), ("safetab-p", "while a draw is written")]
"""What is tried every time; the rest with the slow tests."""

KILLED: Final = dict.fromkeys(
    [
        *QUICK,
        *zip(cycle(AT_THE_DOOR), [*STAGES, *WRITTEN], strict=False),
        *(("topdown", stage) for stage in STAGES),
        *((product, "while it is checked") for product in ("phsafe", "tables", "topdown")),
    ]
)
"""Every stage of TopDown, and of the products that share all that keeps a run, each stage of one of them."""


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    ("product", "stage"),
    [pytest.param(*case, marks=() if case in QUICK else pytest.mark.slow) for case in KILLED],
)
@pytest.mark.slow
def test_a_killed_run_goes_on_with_its_draws(
    real: Named, place: Path, monkeypatch: pytest.MonkeyPatch, product: str, stage: str
) -> None:
    arguments = line(real, product, place)
    checked = {"while it is checked": lambda: at_call(type(PRODUCTS_BY_KEY[product]), "verify")}
    assert killed(arguments, {**STAGES, **WRITTEN, **checked}[stage])
    before = kept(place)
    # It neither draws beside what is there, nor is charged again.
    assert main(arguments) == 2
    assert kept(place) == before
    after = go_on(arguments, place, monkeypatch)
    assert charges(place) == 1
    assert yupana.check(place / "out").wrong == ()
    assert {path.name for path in place.iterdir()} == {"out", "out.confidential.log"}
    # What was kept is kept, to the last byte that is sealed.
    if product == "topdown":
        assert before.items() <= after.items() | {("draws", before["draws"])}
    else:
        earlier = [*drawn(sealed(before["draws"]))]
        stretches = [*drawn(after["draws"])]
        assert [s for s, _ in stretches[: len(earlier)]] == [s for s, _ in earlier]
        assert all((a == b).all() for (_, a), (_, b) in zip(earlier, stretches, strict=False))
        assert len({(s.measurement, s.first) for s, _ in stretches}) == len(stretches)
        planned = json.loads((place / "out" / "manifest.json").read_text())["ledger"]["charged"]
        assert {s.measurement for s, _ in stretches} <= set(planned)
    # The release is a function of what was kept: made again of it, without any noise at hand, it is the same.
    first = contents(place / "out")
    shutil.rmtree(place / "out")
    shutil.copytree(place.parent / "kept", place / "out.checkpoint")
    with monkeypatch.context() as patch:
        patch.setattr(door, "add_noise", no_noise)
        assert main([*arguments, "--resume"]) == 0
    assert contents(place / "out") == first
    assert charges(place) == 1


@pytest.mark.thorough
@pytest.mark.skipif(shutil.which("java") is None, reason="Java is not installed")
def test_a_killed_driver_of_spark_goes_on(real: Named, place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """On Spark or on none; each session is in a process of its own."""
    arguments = line(real, "topdown", place)
    spark = (*arguments, "--engine", "spark", "--master", "local[2]")
    assert killed([*spark], STAGES["between two draws"])
    assert charges(place) == 1
    remove = Checkpoint.remove

    def keep(self: Checkpoint) -> None:
        shutil.copytree(self.folder, place.parent / "kept", dirs_exist_ok=True)
        remove(self)

    assert not killed([*spark, "--resume"], lambda: setattr(Checkpoint, "remove", keep))
    first = contents(place / "out")
    assert charges(place) == 1
    shutil.rmtree(place / "out")
    shutil.copytree(place.parent / "kept", place / "out.checkpoint")
    monkeypatch.setattr(door, "add_noise", no_noise)
    assert main([*arguments, "--resume"]) == 0
    assert contents(place / "out") == first
    assert charges(place) == 1


def no_noise(counts: np.ndarray, *_: object) -> np.ndarray:
    assert not len(counts), "drawn again"
    return counts


def sealed(content: bytes) -> bytes:
    """A file of draws without what a killed run left unsealed at its end."""
    start = 64
    while content[start : start + 32] != bytes(32):
        length, width = np.frombuffer(content, "<u2", 2, start + 32).tolist()
        values = int(np.frombuffer(content, "<i8", 1, start + 56)[0])
        start += 32 + -(-(32 + length + width * values) // 32) * 32
    return content[: start + 32]


@pytest.mark.slow
@pytest.mark.parametrize("product", often("tables", of=("tables", "topdown")))
def test_a_release_that_stands_is_not_made_again(
    real: Named, place: Path, product: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Killed when the release had appeared: the draws are there, and make the same release if that is asked for."""
    arguments = line(real, product, place)
    assert killed(arguments, lambda: at_call(Checkpoint, "remove"))
    first = contents(place / "out")
    for more in ((), ("--resume",)):
        assert main([*arguments, *more]) == 2
        assert "is not empty" in capsys.readouterr().err
    go_on([*arguments, "--overwrite"], place, monkeypatch)
    assert contents(place / "out") == first
    assert charges(place) == 1


def at_unlink(number: int) -> None:
    """Die at the n-th removal of a file of what was kept, once the release stands."""
    remove = Checkpoint.remove

    def dying(self: Checkpoint) -> None:
        at_call(os, "unlink", number)
        remove(self)

    Checkpoint.remove = dying  # type: ignore[method-assign]


@pytest.mark.parametrize("product", often("tables", of=("tables", "topdown")))
@pytest.mark.slow
def test_what_is_being_removed_is_not_gone_on_with(
    real: Named, place: Path, product: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """What is left of it when a run is killed then would be drawn again in part, and not charged again."""
    arguments = line(real, product, place)
    for number in (1, 2, 3):
        assert killed([*arguments, "--overwrite"], partial(at_unlink, number))
        first, charged = contents(place / "out"), charges(place)
        assert main([*arguments, "--overwrite", "--resume"]) == 2
        assert "there is no interrupted run to resume" in capsys.readouterr().err
        assert contents(place / "out") == first
        assert charges(place) == charged == number
    assert list(place.glob("out.checkpoint.*.removed"))
    assert main([*arguments, "--overwrite"]) == 0
    assert {path.name for path in place.iterdir()} == {"out", "out.confidential.log"}


@pytest.mark.slow
def test_draws_that_a_death_left_unlisted_are_listed_when_the_run_goes_on(
    real: Named, place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = line(real, "topdown", place)
    assert killed(arguments, lambda: at_call(BatchCheckpoint, "list_drawn", 2))
    unlisted = max((place / "out.checkpoint").glob("*.measured"))
    assert unlisted.name not in (place / "out.checkpoint" / "drawn").read_text()
    assert killed([*arguments, "--resume"], STAGES["after all draws"])
    content = unlisted.read_bytes()
    unlisted.unlink()
    assert main([*arguments, "--resume"]) == 2
    assert f"{unlisted} is damaged" in capsys.readouterr().err.replace("\n", " ")
    unlisted.write_bytes(content)
    assert main([*arguments, "--resume"]) == 0


@pytest.mark.slow
def test_draws_of_a_batch_that_are_gone_are_not_drawn_again(
    real: Named, place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = line(real, "topdown", place)
    assert killed(arguments, STAGES["after all draws"])
    files = sorted((place / "out.checkpoint").glob("*.measured"))
    assert len(files) > 1
    for file, other in list(pairwise(files))[:2]:
        content = file.read_bytes()
        for damage in (None, other.read_bytes()):  # what is whole, and of another batch, is not what was drawn
            file.unlink() if damage is None else file.write_bytes(damage)
            assert main([*arguments, "--resume"]) == 2
            assert f"{file} is damaged" in capsys.readouterr().err.replace("\n", " ")
            file.write_bytes(content)
    listed = place / "out.checkpoint" / "drawn"
    notes = listed.read_bytes()
    listed.unlink()
    assert main([*arguments, "--resume"]) == 2
    # A run that died in the midst of a note had the draws on disk.
    listed.write_bytes(notes[:-20])
    assert main([*arguments, "--resume"]) == 0
    assert charges(place) == 1


@pytest.mark.parametrize("product", ["tables", "topdown"])
@pytest.mark.slow
def test_a_copy_of_what_was_kept_is_no_other_run(
    real: Named, place: Path, product: str, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = begun(real, product, place)
    shutil.copytree(place / "out.checkpoint", place / "other.checkpoint")
    (place / "other.checkpoint").chmod(0o755)
    other = [str(place / "other") if word == str(place / "out") else word for word in arguments]
    assert main([*other, "--resume"]) == 2
    assert "changed: output folder" in capsys.readouterr().err.replace("\n", " ")
    assert (place / "other.checkpoint").stat().st_mode & 0o777 == 0o700
    with Checkpoint.beside(place / "out").held():
        assert main([*arguments, "--resume"]) == 2
    assert "another run is using" in capsys.readouterr().err
    assert main([*arguments, "--resume"]) == 0


@pytest.mark.sampled(1)
@pytest.mark.slow
@pytest.mark.parametrize("product", often("safetab-h", "tables", "topdown"))
def test_a_run_killed_again_and_again_ends(real: Named, place: Path, product: str) -> None:
    arguments = line(real, product, place)
    assert killed(arguments, lambda: at_call(resumption, "charge_account", after=True))
    deaths = 0
    # Of TopDown a batch is several draws.
    moment = (BatchCheckpoint, "save_draws", 2) if product == "topdown" else (door, "add_noise", 3)
    while killed([*arguments, "--resume"], lambda: at_call(*moment)):
        deaths += 1
        assert charges(place) == 1
    assert deaths
    assert (place / "out").exists()
    assert charges(place) == 1
    assert yupana.check(place / "out").wrong == ()


def begun(named: Named, product: str, place: Path, *options: str) -> list[str]:
    """Leave a run killed between two draws, without a ledger; its arguments."""
    arguments = line(named, product, place)
    at = arguments.index("--ledger")
    arguments[at : at + 4] = options
    assert killed(arguments, lambda: at_call(door, "add_noise", 3))
    return arguments


RECORDS: Final = {
    "phsafe": "persons.csv",
    "safetab-p": NAMES["persons"],
    "safetab-h": NAMES["households"],
    "tables": "people.csv",
    "topdown": "histogram.csv",
}


@pytest.mark.sampled(2)
@pytest.mark.parametrize("product", often("phsafe", "tables", "topdown"))
@pytest.mark.slow
def test_what_has_changed_is_named(
    real: Named, place: Path, product: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    config, data, *more = real[product]
    copied = Path(shutil.copytree(data, place.parent / "data"))
    named = {product: [config, str(copied), *more]}
    arguments = [*begun(named, product, place), "--resume"]
    before = kept(place)

    def refused(*names: str, arguments: list[str] = arguments) -> None:
        capsys.readouterr()
        assert main(arguments) == 2
        said = capsys.readouterr().err.replace("\n", " ")
        assert "was begun with other input" in said
        assert all(name in said for name in names), said
        assert kept(place) == before
        assert not (place / "out").exists()

    records = next(copied.glob(f"*{RECORDS[product]}"))
    content = records.read_bytes()
    records.write_bytes(content.rstrip(b"\n") + b"\n\n" if content.endswith(b"\n") else content + b"\n")
    if records.read_bytes() != content and product != "topdown":
        refused(records.name)
    records.write_bytes(content)
    names, options = ("confidence", "margins", "format"), ["--confidence", "0.77", "--margins", "bureau"]
    if product == "phsafe":
        names, options = (
            (*names, "sensitivity", "configuration"),
            [*options, "--sensitivity", "tight", "--set", "tau.PH2=9"],
        )
    refused(*names, arguments=[*arguments, *options, "--format", "parquet"])
    with monkeypatch.context() as patch:
        patch.setattr(machine, "__version__", "0.0.0")
        refused("version")
    assert main(arguments) == 0


@pytest.mark.parametrize("product", often("tables", of=("safetab-p", "tables")))
@pytest.mark.slow
def test_kept_draws_that_are_damaged_are_refused(
    real: Named, place: Path, product: str, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = [*begun(real, product, place), "--resume"]
    draws = place / "out.checkpoint" / "draws"
    # Without the room that the third draw had taken.
    content = sealed(draws.read_bytes())
    (*_, (last, _)) = drawn(content)
    for damage in (
        content[:-9],
        content[:70],
        b"",
        content[:100] + bytes([content[100] ^ 1]) + content[101:],
        content.replace(last.measurement.encode(), last.measurement[::-1].encode()),
        None,
    ):
        draws.unlink() if damage is None else draws.write_bytes(damage)
        capsys.readouterr()
        assert main(arguments) == 2
        said = capsys.readouterr().err.replace("\n", " ")
        assert f"{draws} is damaged, so the run cannot be resumed" in said
        assert not (place / "out").exists()
    draws.write_bytes(content)
    assert main(arguments) == 0


@pytest.mark.parametrize("product", often("tables", of=("safetab-p", "tables")))
@pytest.mark.slow
def test_a_seeded_run_that_goes_on_makes_what_it_would_have_made(
    real: Named, place: Path, product: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The stream of the seed goes on from where it was; another seed is refused."""
    config, data, *more = real[product]
    copied = Path(shutil.copytree(data, place.parent / "data"))
    (copied / "SYNTHETIC").touch()
    whole = place / "whole"
    assert main([product, "run", config, str(copied), str(whole), *more, "--seed", "7"]) == 0
    arguments = begun({product: [config, str(copied), *more]}, product, place, "--seed", "7")
    other = ["8" if word == "7" else word for word in arguments]
    capsys.readouterr()
    assert main([*other, "--resume"]) == 2
    assert "changed: seed" in capsys.readouterr().err
    go_on(arguments, place, monkeypatch)
    assert contents(place / "out") == contents(whole)


@pytest.mark.slow
def test_a_run_in_python_goes_on(real: Named, place: Path) -> None:
    config, data = real["tables"]
    begun(real, "tables", place)
    with pytest.raises(yupana.ConfigError, match="Go on with --resume"):
        yupana.run("tables", config, data, place / "out")
    assert yupana.run("tables", config, data, place / "out", resume=True).manifest["product"] == "people"
    with pytest.raises(yupana.OutputError, match="there is no interrupted run to resume"):
        yupana.run("tables", config, data, place / "other", resume=True)


@pytest.mark.slow
def test_a_count_goes_on(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (place / "people.csv").write_text("sex,age\n1,3\n2,4\n2,0\n", encoding="utf-8")
    asked = ["count", str(place / "people.csv"), "--by", "age:2:0-9", "--epsilon", "1", "--out", str(place / "out")]
    assert killed(asked, lambda: at_call(folders, "_publish"))
    assert main(asked) == 2
    assert "Go on with --resume" in capsys.readouterr().err
    assert main([*asked, "--resume"]) == 0
    assert yupana.check(place / "out").wrong == ()


@pytest.mark.parametrize("product", ["tables", "topdown"])
@pytest.mark.slow
def test_a_run_that_is_interrupted_says_so(
    real: Named, place: Path, product: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = line(real, product, place)

    def stop(*_: object) -> None:
        raise KeyboardInterrupt

    told = f"{product} run: what was drawn is kept beside {place / 'out'}; go on with --resume"
    for owner, name, says in ((machine, "require_none", False), (door, "add_noise", True)):
        with monkeypatch.context() as patch:
            patch.setattr(owner, name, stop)
            assert main(arguments) == 2
        assert (told in capsys.readouterr().err) == says
    assert {path.name for path in place.iterdir()} == {"out.checkpoint"}
    assert (place / "out.checkpoint").stat().st_mode & 0o777 == 0o700


@pytest.mark.slow
def test_a_charge_that_is_refused_begins_nothing(
    real: Named, place: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Another run was charged in the moment between the check and the charge."""
    arguments = line(real, "tables", place, "--limit", "1/1000")
    monkeypatch.setattr(resumption, "check_account", lambda *_, **__: None)
    assert main(arguments) == 2
    assert "past its limit" in capsys.readouterr().err
    assert not list(place.iterdir())
    arguments = begun(real, "tables", place)
    before = (place / "out.checkpoint" / "run.json").read_bytes()
    assert main([*line(real, "tables", place, "--limit", "1/1000"), "--resume"]) == 2
    assert (place / "out.checkpoint" / "run.json").read_bytes() == before
    assert main([*arguments, "--resume"]) == 0


@pytest.mark.parametrize("product", often("tables", of=("safetab-p", "tables")))
@pytest.mark.slow
def test_a_run_may_go_on_in_shards(real: Named, place: Path, product: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Shards have the same stretches, so what was drawn in one piece is used, and the release is the same."""
    arguments = begun(real, product, place)
    before = {stretch.measurement: found for stretch, found in drawn(sealed(kept(place)["draws"]))}
    after = go_on([*arguments, "--engine", "local", "--shards", "3"], place, monkeypatch)
    found = list(drawn(after["draws"]))
    assert len({(stretch.measurement, stretch.first) for stretch, _ in found}) == len(found)
    assert all((numbers == before[stretch.measurement]).all() for stretch, numbers in found[: len(before)])
    assert yupana.check(place / "out").wrong == ()
    in_shards = contents(place / "out")
    shutil.rmtree(place / "out")
    shutil.copytree(place.parent / "kept", place / "out.checkpoint")
    assert main([*arguments, "--resume"]) == 0
    assert contents(place / "out") == in_shards
