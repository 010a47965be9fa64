"""What guards every run, whatever its product: docs/refusals.md lists it."""

import json
import shutil
import tempfile
from pathlib import Path
from typing import Any

import pytest
from real_records import PRODUCTS, Named, write_real_records
from safetab_worlds import NAMES

import yupana
from yupana.cli.main import main
from yupana.confidential.request import LedgerAccount, RunRequest
from yupana.confidential.run import run
from yupana.errors import ConfigError, InputError
from yupana.plan import ledger as door
from yupana.plan.plan import Plan
from yupana.products import PRODUCTS as PRODUCTS_BY_KEY
from yupana.products.phsafe.product import PhsafeProduct
from yupana.products.product import Checked
from yupana.release import folder as folders

CHEAP = [pytest.param("phsafe", marks=pytest.mark.thorough), "safetab-p", "topdown"]
"""Products, of which the one that draws most often is thorough; SafeTab-H runs as SafeTab-P does."""
RECORDS = {
    "phsafe": "persons.csv",
    "safetab-p": NAMES["persons"],
    "safetab-h": NAMES["households"],
    "topdown": "histogram.csv",
}
PUBLIC = {"safetab-p": NAMES["blocks"], "topdown": "geography.txt"}


@pytest.fixture(scope="module")
def real(tmp_path_factory: pytest.TempPathFactory) -> Named:
    return write_real_records(tmp_path_factory.mktemp("real"))


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """Where a run writes; beside it nothing may be left."""
    (tmp_path / "place").mkdir()
    return tmp_path / "place"


def go(real: Named, product: str, out: Path, *options: object, data: Path | None = None, verb: str = "run") -> int:
    config, records, *more = real[product]
    return main([product, verb, config, str(data or records), str(out), *more, *map(str, options)])


def account(place: Path) -> tuple[str, ...]:
    """The options of a ledger that lies beside the place."""
    return "--ledger", str(place.parent / "ledger.json"), "--dataset", "D"


def charges(place: Path) -> int:
    path = place.parent / "ledger.json"
    found = json.loads(path.read_text())["data"] if path.exists() else {}
    return sum(len(of_data["runs"]) for of_data in found.values())


def names(place: Path) -> set[str]:
    """What lies in the place, but for the noisy values of a run that was interrupted."""
    return {path.name for path in place.iterdir()} - {"out.checkpoint"}


@pytest.mark.parametrize("product", PRODUCTS)
def test_an_infinite_budget_is_refused(
    real: Named, place: Path, product: str, capsys: pytest.CaptureFixture[str]
) -> None:
    config, *more = real[product]
    spoiled = place.parent / "config"
    if product == "topdown":
        spoiled.write_text(json.dumps(json.loads(Path(config).read_text()) | {"rho": "inf"}))
    elif product == "phsafe":
        document = json.loads(Path(config).read_text())
        document["privacy_budget"]["PH7"]["state_*"] = float("inf")
        spoiled.write_text(json.dumps(document))
    else:
        shutil.copytree(config, spoiled)
        document = json.loads((spoiled / "config.json").read_text())
        kind = {"safetab-p": "privacy_budget_p_level", "safetab-h": "privacy_budget_h_t3"}[product]
        document |= {key: float("inf") for key in document if key.startswith(kind)}
        (spoiled / "config.json").write_text(json.dumps(document))
    assert go({product: [str(spoiled), *more]}, product, place / "out", *account(place)) == 2
    said = capsys.readouterr().err
    assert "SYNTHETIC" in said
    assert "a budget is infinite" in said
    assert (charges(place), names(place)) == (0, set())


@pytest.mark.parametrize("product", PRODUCTS)
def test_a_seed_is_refused(real: Named, place: Path, product: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert go(real, product, place / "out", "--seed", 1, *account(place)) == 2
    said = capsys.readouterr().err
    assert "SYNTHETIC" in said
    assert "whoever has the seed" in said
    assert (charges(place), names(place)) == (0, set())


@pytest.mark.parametrize("product", PRODUCTS)
@pytest.mark.slow
def test_a_run_is_charged_before_its_first_draw(
    real: Named, place: Path, product: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    charged: list[int] = []

    def no_noise(*_: object) -> None:
        charged.append(charges(place))
        raise InputError("no noise")

    monkeypatch.setattr(door, "add_noise", no_noise)
    assert go(real, product, place / "out", *account(place)) == 2
    assert charged[0] == 1
    # The charge stands, as noise may have been drawn; of the release nothing does.
    assert (charges(place), names(place)) == (1, set())


@pytest.mark.parametrize("product", PRODUCTS)
def test_records_that_break_a_rule_cost_nothing(real: Named, place: Path, product: str) -> None:
    data = Path(shutil.copytree(real[product][1], place.parent / "data"))
    with (data / RECORDS[product]).open("a", encoding="utf-8") as file:
        file.write("no|record\n")
    assert go(real, product, place / "out", *account(place), data=data) == 2
    assert (charges(place), names(place)) == (0, set())


@pytest.mark.parametrize("product", PUBLIC)
@pytest.mark.slow
def test_a_release_is_repeated_with_its_public_files_alone(
    real: Named, place: Path, product: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert go(real, product, place.parent / "first") == 0
    config, data, *more = real[product]
    codes = [] if product == "topdown" else ["--codes", config]
    changed = Path(shutil.copytree(data, place.parent / "data"))
    path = changed / PUBLIC[product]
    path.write_bytes(path.read_bytes().replace(b"\n", b"\r\n"))
    repeated = {product: [str(place.parent / "first" / "manifest.json"), str(changed), *more, *codes]}
    capsys.readouterr()
    assert go(repeated, product, place / "out", *account(place)) == 2
    assert f"{PUBLIC[product]} must have the SHA-256" in capsys.readouterr().err
    assert (charges(place), names(place)) == (0, set())


@pytest.mark.parametrize("product", PRODUCTS)
@pytest.mark.parametrize("verb", ["run", "exact"])
def test_nothing_of_ours_lies_where_the_release_will(
    real: Named, place: Path, product: str, verb: str, capsys: pytest.CaptureFixture[str]
) -> None:
    out = place / "out"
    internal = ("--internal",) if verb == "exact" else ()
    for below in ("out", "out.partial", "out.checkpoint"):
        assert go(real, product, out, "--log", place / below / "log", *internal, verb=verb) == 2
        assert "would lie in the release" in capsys.readouterr().err
    data = shutil.copytree(real[product][1], out / "data")
    (out / "manifest.json").write_text('{"yupana": "0"}')
    assert go(real, product, out, "--overwrite", *internal, verb=verb, data=data) == 2
    assert "which is to be read" in capsys.readouterr().err
    if verb == "run":
        ledger = ("--overwrite", "--ledger", out / "ledger.json", "--dataset", "D")
        assert go(real, product, out, *ledger) == 2
        assert "would lie in the output folder" in capsys.readouterr().err
    assert names(place) == {"out"}
    assert {path.name for path in out.iterdir()} == {"data", "manifest.json"}


@pytest.mark.parametrize("product", CHEAP)
@pytest.mark.slow
def test_a_log_stands_with_its_release_alone(
    real: Named, place: Path, product: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(folders, "_publish", full)
        assert go(real, product, place / "out") == 2
    assert names(place) == set()
    shutil.rmtree(place / "out.checkpoint", ignore_errors=True)
    assert go(real, product, place / "out") == 0
    assert names(place) == {"out", "out.confidential.log"}
    log = place / "out.confidential.log"
    assert log.stat().st_mode & 0o777 == 0o600
    assert "must not be published" in json.loads(log.read_text())["confidential"]
    # Checksums of the records would tell who is in them.
    assert RECORDS[product] in json.loads(log.read_text())["inputs"]
    assert RECORDS[product] not in (place / "out" / "manifest.json").read_text()


@pytest.mark.parametrize(
    ("product", "kept"), [("phsafe", "out.checkpoint"), ("safetab-p", "out.partial"), ("topdown", "out.checkpoint")]
)
@pytest.mark.slow
def test_noise_that_a_killed_run_left_is_not_drawn_again_unnoticed(
    real: Named, place: Path, product: str, kept: str, capsys: pytest.CaptureFixture[str]
) -> None:
    left = place / kept
    left.mkdir()
    # What a run has drawn lies in its checkpoint. A draft without one is of nobody knows which draws.
    (left / ("run.json" if kept == "out.checkpoint" else "T01001.csv")).write_text("{}")
    assert go(real, product, place / "out", *account(place)) == 2
    assert "learns more than the plan allows" in capsys.readouterr().err.replace("\n", " ")
    assert charges(place) == 0
    assert go(real, product, place / "out", *account(place), "--overwrite") == 0
    assert charges(place) == 1


@pytest.mark.parametrize("product", CHEAP)
@pytest.mark.slow
def test_an_earlier_release_is_replaced_when_asked_alone(
    real: Named, place: Path, product: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (place / "out").mkdir()
    (place / "out" / "mine").touch()
    for options in ((), ("--overwrite",)):
        assert go(real, product, place / "out", *account(place), *options) == 2
        assert str(place / "out") in capsys.readouterr().err
    assert (charges(place), names(place)) == (0, {"out"})
    (place / "out" / "mine").unlink()
    assert go(real, product, place / "out") == 0
    assert go(real, product, place / "out") == 2
    assert go(real, product, place / "out", "--overwrite") == 0


@pytest.mark.slow
def test_a_release_that_is_not_its_plans_never_appears(
    real: Named, place: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    margin = Plan.margin
    monkeypatch.setattr(Plan, "margin", lambda *arguments: margin(*arguments) + 1)
    # The words lie in a file of their own, as they may be confidential.
    monkeypatch.setattr(tempfile, "tempdir", str(place.parent))
    assert go(real, "phsafe", place / "out") == 1
    assert "fault of the program" in capsys.readouterr().err
    (fault,) = place.parent.glob("yupana-fault-*")
    assert "does not hold together" in fault.read_text()
    assert names(place) == set()


@pytest.mark.thorough
def test_a_disk_that_reads_otherwise_than_was_written_is_no_fault_of_the_program(
    real: Named, place: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    answers = iter([Checked(("PH2.csv is not readable",)), Checked()])
    monkeypatch.setattr(PhsafeProduct, "verify", lambda *_: next(answers))
    assert go(real, "phsafe", place / "out") == 2
    assert "the disk may be at fault; nothing was released" in capsys.readouterr().err
    assert names(place) == set()


TAKES = {
    "totals": (Path("T01001.csv"), {"safetab-h"}),
    "estimator": ("full-information", {"topdown"}),
    "spine": (Path("spine"), {"topdown"}),
    "noisy_measurements": (Path("noisy"), {"topdown"}),
    "nmf": (Path("nmf"), {"topdown"}),
}


@pytest.mark.parametrize("product", PRODUCTS)
def test_what_another_product_takes_is_refused(place: Path, product: str) -> None:
    for name, (value, takes) in TAKES.items():
        if product not in takes:
            asked: Any = {name: value}
            for make in (yupana.run, yupana.exact):
                with pytest.raises(ConfigError, match=f"{product} takes no {name}"):
                    make(product, next(iter(PRODUCTS_BY_KEY[product].built_in)), place, place / "out", **asked)
    assert names(place) == set()


@pytest.mark.parametrize("product", PRODUCTS)
def test_exact_counts_are_charged_to_no_ledger(place: Path, product: str) -> None:
    request = RunRequest(account=LedgerAccount(place / "ledger.json", "D", {}))
    with pytest.raises(ConfigError, match="leave the ledger out"):
        run(PRODUCTS_BY_KEY[product], None, place, place / "out", request, noisy=False)
    assert names(place) == set()
