"""Intervals of what a run publishes: by default, by either method, afterwards, and what of them is refused."""

import json
import math
import shutil
import weakref
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from dense_release import dense, read
from topdown_worlds import configuration, make_world, write_configuration, write_world

import yupana
from yupana.cli.main import main
from yupana.confidential.topdown import counter as run_module
from yupana.confidential.topdown import resources
from yupana.estimate.topdown_intervals import IntervalRequest, publish_intervals
from yupana.privacy.entropy import SeededEntropy
from yupana.products.topdown.agreement import verify_release
from yupana.progress import Stopwatch, silent
from yupana.topdown import interval_terms
from yupana.topdown.interval_terms import MOST_ANSWERS, default_method
from yupana.topdown.queries import Attribute, Schema
from yupana.topdown.tree import intervals as tree_intervals
from yupana.topdown.tree.full_information import EstimatesOnDisk

SHAPE = (3, 2)
LEVELS = ("US", "State", "County", "Tract", "Block_Group", "Block")
ENDS = ["LOWER", "UPPER", "MOE"]


def begin(folder: Path, *, seed: int = 6, quarters: bool = False, rho: str = "1/2", **more: object) -> list[str]:
    """A small world and its configuration; the arguments they make."""
    shape = (8, 2) if quarters else SHAPE
    write_world(make_world(seed, shape, quarters=quarters), folder / "data", quarters=quarters)
    document = configuration(shape, rho=rho, **more)
    return [str(write_configuration(document, folder / "config.json")), str(folder / "data")]


def go(arguments: list[str], out: Path, *options: str) -> Path:
    assert main(["topdown", "run", *arguments, str(out), "--seed", "5", *options]) == 0
    return out


def told(out: Path) -> dict[str, object]:
    found: dict[str, object] = json.loads((out / "manifest.json").read_text())["parameters"]["intervals"]
    return found


def rows(path: Path) -> list[list[int]]:
    return [[int(row[name]) for name in ("count", *ENDS)] for row in read(path)]


def check_bounds(found: list[list[int]]) -> None:
    for _, lower, upper, margin in found:
        assert 0 <= lower <= upper
        assert margin == math.ceil((upper - lower) / 2)


@pytest.fixture(scope="module")
def once(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two releases of one world with their measurements: `out` has intervals, and `bare` none."""
    folder = tmp_path_factory.mktemp("once")
    arguments = begin(folder)
    go(arguments, folder / "out", "--noisy-measurements", str(folder / "other"), "--spine", "aian")
    without = ("--intervals", "none", "--noisy-measurements", str(folder / "noisy"), "--spine", "aian")
    go(arguments, folder / "bare", *without)
    return folder


@pytest.fixture
def made(once: Path, tmp_path: Path) -> Path:
    """A copy of these."""
    return Path(shutil.copytree(once, tmp_path / "once"))


@pytest.mark.thorough
def test_every_tabulated_count_has_an_interval_by_default(once: Path) -> None:
    out = once / "out"
    assert told(out) == {"method": "least-squares", "confidence": "9/10"}
    kinds = sorted(path.name for path in (out / "tabulation").iterdir())
    assert len(kinds) == 11
    for name in kinds:
        found = rows(out / "tabulation" / name)
        assert found
        check_bounds(found)
    assert all("LOWER" not in row for row in read(out / "counts" / "Tract.csv"))
    plain = once / "bare"
    assert told(plain) == {"method": "none"}
    assert list(read(plain / "tabulation/county.csv")[0]) == ["geounit", "a0", "a1", "count"]
    assert main(["check", str(out)]) == 0 == main(["check", str(plain)])


@pytest.mark.sampled(1)
@pytest.mark.parametrize("estimator", ["topdown", "full-information"])
@pytest.mark.parametrize(("kind", "seed"), [("conventional", 1), ("conventional", 2), ("aian", 3), ("aian", 6)])
@pytest.mark.slow
def test_least_squares_intervals_are_those_of_one_dense_system(
    tmp_path: Path, kind: str, seed: int, estimator: str
) -> None:
    """Of every cell of every county and place: the least-squares estimate less and plus z standard deviations.

    On the AIAN spine the total of a state is that of two units together.
    """
    noisy = tmp_path / "noisy"
    arguments = begin(tmp_path, seed=seed)
    out = go(
        arguments, tmp_path / "out", "--noisy-measurements", str(noisy), "--estimator", estimator, "--spine",
        kind, "--confidence", "4/5",
    )  # fmt: skip
    _, estimate, covariance, names = dense(out, noisy, SHAPE, joint=True)
    areas = {row["block"]: row["place"] for row in read(out / "areas/blocks.csv")}
    z, compared = 1.2815515655446004, 0
    for name_of_kind, of in (("county", {name: name[:5] for name in names}), ("place", areas)):
        for row in read(out / f"tabulation/{name_of_kind}.csv"):
            cells = np.zeros((len(names), *SHAPE))
            cells[[of[name] == row["geounit"] for name in names], int(row["a0"]), int(row["a1"])] = 1.0
            weight = cells.reshape(-1)
            middle, deviation = weight @ estimate, np.sqrt(max(weight @ covariance @ weight, 0.0))
            ends = np.ceil(middle - z * deviation - 1e-6), np.floor(middle + z * deviation + 1e-6)
            nearest = max(round(middle), 0)
            lower, upper = (nearest, nearest) if ends[0] > ends[1] else (max(int(end), 0) for end in ends)
            assert (int(row["LOWER"]), int(row["UPPER"])) == (lower, upper)
            compared += 1
    assert compared > 20


@pytest.mark.thorough
def test_intervals_of_full_information_are_the_same_in_parts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    arguments = begin(tmp_path)
    asked = ("--estimator", "full-information", "--spine", "optimized")
    whole = go(arguments, tmp_path / "whole", *asked)
    monkeypatch.setattr(tree_intervals, "_VALUES_AT_ONCE", 1)
    parts = go(arguments, tmp_path / "parts", *asked)
    files = [path.relative_to(whole) for path in sorted((whole / "intervals").rglob("*.csv"))]
    assert len(files) > 4
    for file in files:
        one, other = (
            np.loadtxt(out / file, delimiter="|", skiprows=1, dtype=np.str_, ndmin=2) for out in (whole, parts)
        )
        np.testing.assert_array_equal(one[:, :-4], other[:, :-4])
        # Parts of sums are added up in another order, and written with four decimals.
        np.testing.assert_allclose(one[:, -4:].astype(float), other[:, -4:].astype(float), rtol=1e-9, atol=1.01e-4)


@pytest.mark.thorough
def test_intervals_of_full_information_are_left_out_on_request(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    arguments = begin(tmp_path)
    asked = ("--estimator", "full-information", "--spine", "optimized")
    monkeypatch.setattr(interval_terms, "MOST_ANSWERS", 10)
    for method in ("", "none", "least-squares"):
        out = go(arguments, tmp_path / f"large-{method}", *asked, *(("--intervals", method) if method else ()))
        assert (out / "intervals").exists() == (method == "least-squares")
        assert main(["check", str(out)]) == 0


@pytest.mark.parametrize("told", [True, False])
@pytest.mark.slow
def test_estimates_on_disk_are_gone_before_a_release_is_written_that_does_not_tell_them(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    told: bool,  # noqa: FBT001
) -> None:
    """They and the release of a large country may not fit on one disk."""
    made, alive = list[weakref.ref[EstimatesOnDisk]](), list[int]()
    begun, write = EstimatesOnDisk.__init__, run_module.write_outputs

    def note(self: EstimatesOnDisk, *arguments: int) -> None:
        made.append(weakref.ref(self))
        begun(self, *arguments)

    def count(*arguments: Any, **options: Any) -> dict[str, int]:  # noqa: ANN401
        alive.append(sum(one() is not None for one in made))
        return write(*arguments, **options)

    monkeypatch.setattr(EstimatesOnDisk, "__init__", note)
    monkeypatch.setattr(run_module, "write_outputs", count)
    if not told:
        monkeypatch.setattr(interval_terms, "MOST_ANSWERS", 10)
    out = go(begin(tmp_path), tmp_path / "out", "--estimator", "full-information", "--intervals", "none")
    assert (out / "intervals").exists() == told
    assert made
    assert [number > 0 for number in alive] == [told]


@pytest.mark.slow
def test_replicates_are_named_and_a_seed_repeats_them(tmp_path: Path) -> None:
    arguments = begin(tmp_path)
    asked = ("--intervals", "monte-carlo", "--replicates", "3", "--confidence", "0.8")
    out = go(arguments, tmp_path / "out", *asked)
    assert told(out) == {"method": "monte-carlo", "confidence": "4/5", "replicates": 3}
    check_bounds(rows(out / "tabulation/block.csv"))
    again = go([str(out / "manifest.json"), arguments[1]], tmp_path / "again")
    for path in (out / "tabulation").iterdir():
        assert path.read_bytes() == (again / "tabulation" / path.name).read_bytes()
    assert main(["check", str(again)]) == 0


@pytest.mark.sampled(1)
@pytest.mark.parametrize("method", ["least-squares", "monte-carlo"])
@pytest.mark.slow
def test_without_noise_intervals_are_the_counts(tmp_path: Path, method: str) -> None:
    out = go(begin(tmp_path, rho="inf"), tmp_path / "out", "--intervals", method)
    assert all(row == [row[0]] * 3 + [0] for row in rows(out / "tabulation/tract.csv"))


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--intervals", "monte-carlo", "--replicates", "1"], "2 replicates or more"),
        (["--replicates", "30"], "only intervals by Monte Carlo have replicates"),
        (["--intervals", "least-squares", "--replicates", "30"], "only intervals by Monte Carlo have replicates"),
    ],
)
def test_replicates_that_mean_nothing_are_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], options: list[str], said: str
) -> None:
    assert main(["topdown", "run", *begin(tmp_path), str(tmp_path / "out"), *options]) == 2
    assert said in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_other_products_have_no_intervals(tmp_path: Path) -> None:
    with pytest.raises(yupana.ConfigError, match="phsafe takes no intervals"):
        yupana.run("phsafe", "s-dhc-2020-us", tmp_path, tmp_path / "out", intervals="none")
    with pytest.raises(yupana.ConfigError, match="intervals: must be"):
        yupana.run("topdown", "cook-2010", tmp_path, tmp_path / "out", intervals="gaussian")  # type: ignore[arg-type]


@pytest.mark.thorough
def test_above_a_size_they_are_made_on_demand(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert (default_method(MOST_ANSWERS), default_method(MOST_ANSWERS + 1)) == ("least-squares", "none")
    monkeypatch.setattr(interval_terms, "MOST_ANSWERS", 1)
    out = go(begin(tmp_path), tmp_path / "out")
    (remark,) = json.loads((out / "manifest.json").read_text())["parameters"]["remarks"]
    assert "yupana topdown intervals RELEASE OUT" in remark
    assert told(out) == {"method": "none"}
    made = yupana.topdown_intervals(out, tmp_path / "made", replicates=2)
    assert "remarks" not in made.manifest["parameters"]
    assert main(["check", str(tmp_path / "made")]) == 0


@pytest.mark.thorough
def test_a_run_goes_on_with_less_memory_or_more_than_it_began_with(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever's run died for want of memory names other memory; what is drawn does not follow from that."""
    monkeypatch.setattr(resources, "_AN_INTERVAL_OF_A_BLOCK", 10**9)
    arguments = begin(tmp_path)
    for before, after in (([], ["--memory", "1GB"]), (["--memory", "1GB"], [])):
        out = tmp_path / f"out{len(before)}"
        with monkeypatch.context() as patch:
            patch.setattr(run_module, "write_outputs", lambda *_, **__: 1 / 0)
            assert main(["topdown", "run", *arguments, str(out), "--seed", "5", *before]) == 1
        go(arguments, out, "--resume", *after)
        assert told(out)["method"] == "none"
        assert yupana.check(out).wrong == ()


@pytest.mark.thorough
def test_without_the_memory_for_them_they_are_made_on_demand_or_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(resources, "_AN_INTERVAL_OF_A_BLOCK", 10**9)
    arguments = begin(tmp_path)
    out = go(arguments, tmp_path / "out", "--memory", "1GB")
    (remark,) = json.loads((out / "manifest.json").read_text())["parameters"]["remarks"]
    assert "with 1,000 MB they are made on demand" in remark
    assert told(out) == {"method": "none"}
    # Where no memory is named, what is published does not hang on the machine.
    assert told(go(arguments, tmp_path / "any"))["method"] == "least-squares"
    capsys.readouterr()
    named = [*arguments, str(tmp_path / "named"), "--memory", "1GB", "--intervals"]
    assert main(["topdown", "run", *named, "least-squares"]) == 2
    assert "too little for intervals by least squares" in capsys.readouterr().err
    go(arguments, tmp_path / "few", "--memory", "1GB", "--intervals", "monte-carlo", "--replicates", "2")
    capsys.readouterr()
    assert main(["topdown", "run", *named, "monte-carlo", "--replicates", "300000"]) == 2
    assert "too little for intervals by Monte Carlo" in capsys.readouterr().err
    assert not list(tmp_path.glob("named*"))


@pytest.mark.thorough
def test_measurements_afterwards_give_the_intervals_of_the_run(once: Path, tmp_path: Path) -> None:
    check_afterwards(once / "out", once / "bare", tmp_path / "made", "--noisy-measurements", str(once / "noisy"))


@pytest.mark.thorough
def test_measurement_files_afterwards_give_the_intervals_of_the_run(tmp_path: Path) -> None:
    arguments, noisy, other = begin(tmp_path), str(tmp_path / "noisy"), str(tmp_path / "other")
    out = go(arguments, tmp_path / "out", "--nmf", other, "--spine", "aian")
    bare = go(arguments, tmp_path / "bare", "--intervals", "none", "--nmf", noisy, "--spine", "aian")
    check_afterwards(out, bare, tmp_path / "made", "--nmf", noisy)


def check_afterwards(out: Path, bare: Path, made: Path, option: str, noisy: str) -> None:
    assert main(["topdown", "intervals", str(bare), str(made), option, noisy]) == 0
    for path in (out / "tabulation").iterdir():
        assert path.read_bytes() == (made / "tabulation" / path.name).read_bytes()
    assert told(made)["method"] == "least-squares"
    assert main(["check", str(made)]) == 0
    # The measurements are still those of the release.
    query = ["interval", str(made), "--noisy-measurements", noisy]
    assert main([*query, "--query", "US/total[geounit=US]"]) == 0


@pytest.mark.sampled(1)
@pytest.mark.parametrize("quarters", [False, True])
@pytest.mark.slow
def test_replicates_afterwards_need_the_release_alone(tmp_path: Path, quarters: bool) -> None:  # noqa: FBT001
    more = {"constraints": {"group_quarters": "a0"}} if quarters else {}
    arguments = begin(tmp_path, quarters=quarters, **more)
    out = go(arguments, tmp_path / "out", "--intervals", "none")
    assert (out / "spine/group_quarters.csv").exists() == quarters
    shutil.rmtree(arguments[1])
    made = tmp_path / "made"
    assert main(["topdown", "intervals", str(out), str(made), "--replicates", "4", "--confidence", "95%"]) == 0
    assert told(made).items() >= {"method": "monte-carlo", "confidence": "19/20", "replicates": 4}.items()
    check_bounds(rows(made / "tabulation/block_group.csv"))
    for path in (*(out / "counts").iterdir(), out / "microdata.csv"):
        assert path.read_bytes() == (made / path.relative_to(out)).read_bytes()
    assert main(["check", str(made)]) == 0


@pytest.mark.thorough
def test_what_does_not_belong_together_is_refused(
    made: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out, noisy, other = made / "bare", made / "noisy", made / "other"

    def refused(*options: str) -> str:
        capsys.readouterr()
        assert main(["topdown", "intervals", str(out), str(tmp_path / "made"), *options]) == 2
        assert not (tmp_path / "made").exists()
        return capsys.readouterr().err

    assert "another run" in refused("--noisy-measurements", str(other))
    assert "takes the noisy measurements" in refused("--method", "least-squares")
    assert "takes the release alone" in refused("--method", "monte-carlo", "--noisy-measurements", str(noisy))
    assert "give one of them" in refused("--nmf", str(noisy), "--noisy-measurements", str(noisy))
    assert "2 replicates or more" in refused("--replicates", "1")
    with (noisy / "State/total.csv").open("a") as file:
        file.write("01|3|1.0\n")
    assert "was changed" in refused("--noisy-measurements", str(noisy))
    with (out / "counts/State.csv").open("a") as file:
        file.write("99|0|0|3\n")
    assert "counts/State.csv was changed" in refused()


def _swap(cells: list[str]) -> None:
    cells[-3], cells[-2] = str(int(cells[-2]) + 1), cells[-3]


def _negative(cells: list[str]) -> None:
    cells[-3] = "-1"


def _margin(cells: list[str]) -> None:
    cells[-1] = str(int(cells[-1]) + 1)


@pytest.mark.thorough
def test_bounds_that_cannot_be_are_found(made: Path) -> None:
    out = made / "out"
    schema = Schema(tuple(Attribute(f"a{i}", tuple(map(str, range(size)))) for i, size in enumerate(SHAPE)))
    assert verify_release(out, schema, LEVELS, intervals=True) == []
    path = out / "tabulation/tract.csv"
    lines = path.read_text().splitlines()
    for fault in (_swap, _negative, _margin):
        cells = lines[-1].split("|")
        fault(cells)
        path.write_text("\n".join([*lines[:-1], "|".join(cells)]) + "\n")
        (wrong,) = verify_release(out, schema, LEVELS, intervals=True)
        assert wrong.startswith("tabulation/tract has intervals")


@pytest.mark.thorough
def test_a_run_that_was_to_have_others_is_not_resumed(
    once: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """What is drawn differs: everything for least squares, else what the estimate asks for."""
    arguments = [str(once / "config.json"), str(once / "data"), str(tmp_path / "out"), "--seed", "5", "--spine", "aian"]
    with monkeypatch.context() as patch:
        patch.setattr(run_module, "write_outputs", lambda *_, **__: (_ for _ in ()).throw(KeyboardInterrupt))
        assert main(["topdown", "run", *arguments]) == 2
    capsys.readouterr()
    assert main(["topdown", "run", *arguments, "--resume", "--intervals", "none"]) == 2
    assert "changed: noisy measurements" in capsys.readouterr().err
    assert main(["topdown", "run", *arguments, "--resume"]) == 0
    for path in (once / "out/tabulation").iterdir():
        assert path.read_bytes() == (tmp_path / "out/tabulation" / path.name).read_bytes()


@pytest.mark.sampled(1)
@pytest.mark.parametrize("estimator", ["topdown", "full-information"])
@pytest.mark.parametrize("quarters", [False, True])
@pytest.mark.slow
def test_replicates_of_a_run_are_a_function_of_the_release_and_of_coins(
    tmp_path: Path, estimator: str, *, quarters: bool
) -> None:
    """Made again where the records are gone, of the same coins, the intervals are the same to the byte."""
    more = {"constraints": {"group_quarters": "a0"}} if quarters else {}
    arguments = begin(tmp_path, quarters=quarters, **more)
    options = ("--intervals", "monte-carlo", "--replicates", "3", "--estimator", estimator)
    out = go(arguments, tmp_path / "out", *options)
    shutil.rmtree(arguments[1])
    coins = SeededEntropy(5).branch("replicates")
    asked = IntervalRequest(release=out, out=tmp_path / "made", replicates=3, entropy=coins)
    publish_intervals(asked, Stopwatch(silent), silent)
    compared = [path.relative_to(out) for path in out.rglob("*.csv")]
    assert all((out / name).read_bytes() == (tmp_path / "made" / name).read_bytes() for name in compared)
