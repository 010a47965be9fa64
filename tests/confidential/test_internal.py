"""`--internal`: exact counts and errors of records that may be real, for the eyes of their owner alone."""

import json
import stat
from pathlib import Path

import pytest
from census_maker import random_census, seeded, write_csv
from real_records import PRODUCTS, Named, write_real_records
from topdown_worlds import make_world

from yupana.cli.main import main
from yupana.errors import OutputError
from yupana.explore.products import Pages
from yupana.release.folder import read_manifest
from yupana.release.tables import read_table


@pytest.fixture(scope="module")
def real(tmp_path_factory: pytest.TempPathFactory) -> Named:
    return write_real_records(tmp_path_factory.mktemp("real"))


def ask(real: Named, product: str, verb: str, out: Path, *options: str) -> int:
    config, data, *more = real[product]
    return main([product, verb, config, data, str(out), *more, *options])


@pytest.mark.sampled(4)
@pytest.mark.parametrize("verb", ["exact", "accuracy"])
@pytest.mark.parametrize("product", PRODUCTS)
@pytest.mark.slow
def test_the_truth_is_for_its_owner_and_says_so(
    real: Named, tmp_path: Path, product: str, verb: str, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out"
    assert ask(real, product, verb, out) == 2
    assert "--internal" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []

    assert ask(real, product, verb, out, "--internal") == 0
    assert "CONFIDENTIAL" in capsys.readouterr().out
    assert stat.S_IMODE(out.stat().st_mode) == 0o700
    modes = {stat.S_IMODE(path.stat().st_mode) for path in out.rglob("*") if path.is_file()}
    assert modes == {0o600}
    assert read_manifest(out, confidential=True)["status"] == "CONFIDENTIAL"
    assert main(["check", str(out)]) == 0
    assert "status: CONFIDENTIAL" in capsys.readouterr().out
    # An earlier one may be replaced as any output may.
    assert ask(real, product, verb, out, "--internal", "--overwrite") == 0


@pytest.mark.parametrize("product", PRODUCTS)
def test_internal_use_unlocks_no_seed(
    real: Named, tmp_path: Path, product: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert ask(real, product, "accuracy", tmp_path / "out", "--internal", "--seed", "1") == 2
    assert "seed" in capsys.readouterr().err
    assert ask(real, product, "run", tmp_path / "out", "--seed", "1") == 2
    for verb, option in (("exact", "--seed=1"), ("run", "--internal")):
        with pytest.raises(SystemExit, match="2"):
            ask(real, product, verb, tmp_path / "out", option)
    assert list(tmp_path.iterdir()) == []


def test_internal_use_unlocks_no_infinite_budget(
    real: Named, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config = json.loads(Path(real["phsafe"][0]).read_text(encoding="utf-8"))
    config["privacy_budget"]["PH7"]["state_*"] = float("inf")
    (tmp_path / "config.json").write_text(json.dumps(config), encoding="utf-8")
    spoiled = {"phsafe": [str(tmp_path / "config.json"), real["phsafe"][1]]}
    assert ask(spoiled, "phsafe", "run", tmp_path / "out") == 2
    assert ask(spoiled, "phsafe", "accuracy", tmp_path / "out", "--internal") == 2
    assert capsys.readouterr().err.count("a budget is infinite") == 2


PUBLISHING = {
    "phsafe": (
        ("phsafe", "estimate", "{out}", "{new}"),
        ("phsafe", "estimate", "{out}", "{new}", "--publish"),
        ("interval", "{out}", "--query", "PH7"),
        ("audit", "certificate", "{out}", "{new}"),
        ("audit", "epl", "{out}", "{out}"),
    ),
    "safetab-p": (
        ("postprocess", "coterminous", "{out}", "{blocks}", "{new}"),
        ("postprocess", "coterminous", "{out}/T01001.csv", "{blocks}", "{new}"),
        ("postprocess", "suppress", "{out}", "{policy}", "{new}"),
        ("audit", "certificate", "{out}", "{new}"),
    ),
    "safetab-h": (("audit", "certificate", "{out}", "{new}"),),
    "topdown": (("interval", "{out}", "--query", "total"), ("audit", "certificate", "{out}", "{new}")),
}


@pytest.mark.parametrize("product", PRODUCTS)
@pytest.mark.slow
def test_whatever_publishes_refuses_the_truth(
    real: Named, tmp_path: Path, product: str, capsys: pytest.CaptureFixture[str]
) -> None:
    out, policy = tmp_path / "out", tmp_path / "policy.toml"
    policy.write_text('[[rule]]\nrule = "negative"\ntables = ["T01001"]\nreason = "N"\n', encoding="utf-8")
    blocks = Path(real["safetab-p"][1]) / "GRF-C.txt"
    assert ask(real, product, "exact", out, "--internal") == 0
    for command in PUBLISHING[product]:
        capsys.readouterr()
        words = [word.format(out=out, new=tmp_path / "new", policy=policy, blocks=blocks) for word in command]
        assert main(words) == 2, command
        assert "is CONFIDENTIAL" in capsys.readouterr().err, command
        assert not (tmp_path / "new").exists()
    if product == "phsafe":
        with pytest.raises(OutputError, match="is CONFIDENTIAL"):
            Pages(counts=out)


@pytest.mark.slow
def test_exact_counts_of_topdown_are_the_records(real: Named, tmp_path: Path) -> None:
    assert ask(real, "topdown", "exact", tmp_path / "out", "--internal") == 0
    found = read_table(tmp_path / "out" / "counts" / "Block.csv")
    world = make_world(4, (3, 2))
    cells = [2 * int(a) + int(b) for a, b in zip(found["a0"], found["a1"], strict=True)]
    counts = dict(zip(zip(found["geounit"], cells, strict=True), map(int, found["count"]), strict=True))
    assert counts == world.counts


@pytest.mark.slow
def test_of_synthetic_records_the_truth_is_confidential_too_where_that_is_asked(real: Named, tmp_path: Path) -> None:
    write_csv(tmp_path / "census", random_census(seeded(12), ["06", "17"], 60))
    marked = {"phsafe": [real["phsafe"][0], str(tmp_path / "census")]}
    for number, (options, status) in enumerate(((("--internal",), "CONFIDENTIAL"), ((), "NOT FOR RELEASE"))):
        out = tmp_path / f"out{number}"
        assert ask(marked, "phsafe", "exact", out, *options) == 0
        assert read_manifest(out, confidential=True)["status"] == status
