"""What `audit epl` reads: files, releases with their truth, hierarchies of geounits; and how it answers."""

import json
from collections import Counter
from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from places import SHARED

from yupana.audit.empirical.series import counterpart, read_published_1940
from yupana.cli.main import main
from yupana.confidential.audit_counts import _law, by_geolevel, release_and_truth
from yupana.errors import InputError, OutputError
from yupana.privacy.entropy import SeededEntropy
from yupana.privacy.laws import DiscreteGaussian
from yupana.privacy.sampler import sample
from yupana.products.phsafe.configuration import production_config
from yupana.release.tables import checksum
from yupana.synthetic.census import synthesize

PUBLISHED = SHARED / "data" / "epl_1940_published_results"
needs_published = pytest.mark.skipif(not PUBLISHED.is_dir(), reason="the published results are not at hand")

Cells = dict[tuple[str, int, int], int]


def write_pair(path: Path, *, number: int = 400, separator: str = ",", more: Sequence[str] = ()) -> None:
    noise = sample(DiscreteGaussian(Fraction(30)), number, SeededEntropy(1))
    lines = [separator.join(("unit", "exact", "noisy"))]
    lines += [separator.join((f"u{i}", str(i), str(i + int(k)))) for i, k in enumerate(noise)]
    path.write_text("\n".join([*lines, *more]) + "\n")


def epl(capsys: pytest.CaptureFixture[str], *arguments: object) -> tuple[int, str, str]:
    capsys.readouterr()
    status = main(["audit", "epl", *map(str, arguments)])
    return status, *capsys.readouterr()


@pytest.mark.parametrize("separator", [",", "|"])
@pytest.mark.thorough
def test_two_columns_of_a_file(tmp_path: Path, capsys: pytest.CaptureFixture[str], separator: str) -> None:
    write_pair(tmp_path / "pair.csv", separator=separator)
    columns = ("--exact", "exact", "--noisy", "noisy")
    status, out, _ = epl(capsys, tmp_path / "pair.csv", *columns, "--json")
    (found,) = json.loads(out)["results"]
    assert status == 0
    assert found["estimate"]["lower"] < 9 / 30 < found["estimate"]["upper"]
    assert found["residuals"] == 400
    law = ("--mechanism", "discrete-gaussian", "--rho", "1/60")
    _, out, _ = epl(capsys, tmp_path / "pair.csv", *columns, *law, "--json")
    (found,) = json.loads(out)["results"]
    assert found["epl"] == found["known"]["epl"] == pytest.approx(17 / 60)
    _, out, _ = epl(capsys, tmp_path / "pair.csv", *columns, "--mode", "published", "--replicates", "5")
    assert "resampled counts" in out


@pytest.mark.parametrize(
    ("more", "arguments", "words"),
    [
        ((), ("--exact", "truth", "--noisy", "noisy"), "no column 'truth'; it has unit, exact, noisy"),
        (("x,5,",), ("--exact", "exact", "--noisy", "noisy"), "line 402, column noisy: not a finite number"),
        (("x,NaN,5",), ("--exact", "exact", "--noisy", "noisy"), "line 402, column exact: not a finite number"),
        (("x,one,5",), ("--exact", "exact", "--noisy", "noisy"), "line 402, column exact: not a finite number"),
        (("x,5",), ("--exact", "exact", "--noisy", "noisy"), "every line as many fields"),
        ((), ("--exact", "exact", "--noisy", "exact"), "all residuals are the same"),
        ((), ("--exact", "exact"), "--exact COLUMN and --noisy COLUMN"),
        ((), ("--exact", "exact", "--noisy", "noisy", "--bandwidth", "0"), "bandwidth must be"),
        ((), ("--exact", "exact", "--noisy", "noisy", "--bandwidth", "nan"), "bandwidth: must be a finite number"),
        ((), ("--exact", "exact", "--noisy", "noisy", "--range", "100"), "between 50 and 100"),
        ((), ("--exact", "exact", "--noisy", "noisy", "--mechanism", "geometric"), "--epsilon go together"),
        ((), ("--exact", "exact", "--noisy", "noisy", "--rho", "1"), "--rho go together"),
    ],
)
def test_a_bad_request_or_file_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], more: Sequence[str], arguments: Sequence[str], words: str
) -> None:
    write_pair(tmp_path / "pair.csv", more=more)
    status, _, err = epl(capsys, tmp_path / "pair.csv", *arguments)
    assert status == 2
    assert words in err


def test_few_residuals_and_missing_files_are_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_pair(tmp_path / "pair.csv", number=29)
    columns = ("--exact", "exact", "--noisy", "noisy")
    for arguments, words in (
        ((tmp_path / "pair.csv", *columns), "29 residuals are too few"),
        ((tmp_path / "none.csv", *columns), "does not exist"),
        ((tmp_path, *columns), "needs its truth"),
        ((), "needs one of"),
        (("--demonstration", "invariant"), "--data"),
        ((tmp_path / "pair.csv", *columns, "--reproduce", "SA1"), "needs one of"),
    ):
        status, _, err = epl(capsys, *arguments)
        assert (status, words in err) == (2, True), (arguments, err)


@pytest.mark.thorough
def test_a_mechanism_and_its_page(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("vl_convert")
    page = tmp_path / "page.html"
    law = ("--mechanism", "geometric", "--epsilon", "1/4", "--replicates", "3", "--seed", "1")
    status, out, _ = epl(capsys, *law, "--report", page)
    assert status == 0
    assert "by the law (two-sided geometric, scale 4)" in out
    text = page.read_text(encoding="utf-8")
    assert text.count("<svg") >= 4
    assert "://" not in text
    assert "CONFIDENTIAL" in text
    # Residuals against counts are drawn where there are counts.
    write_pair(tmp_path / "pair.csv")
    epl(capsys, tmp_path / "pair.csv", "--exact", "exact", "--noisy", "noisy", "--report", page)
    assert page.read_text(encoding="utf-8").count("<svg") > text.count("<svg")


# --- a release with its truth ----------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def phsafe(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("phsafe")
    synthesize(folder / "data", households=60, states=("02", "56"), seed=5)
    config = {**production_config(), "state_filter": ["02", "56"]}
    (folder / "config.json").write_text(json.dumps(config))
    for verb, more in (("run", ("--seed", "1")), ("exact", ())):
        assert main(["phsafe", verb, f"{folder}/config.json", f"{folder}/data", f"{folder}/{verb}", *more]) == 0
    return folder


@pytest.mark.slow
def test_a_release_is_paired_with_its_truth_and_the_law_of_its_plan(phsafe: Path) -> None:
    found = {series.name: series for series in release_and_truth(phsafe / "run", phsafe / "exact")}
    plan = json.loads((phsafe / "run" / "manifest.json").read_text())["plan"]
    laws = {(m["table"], round(m["sigma2_float"], 6)) for m in plan["measurements"]}
    seen = {(s.name.split()[0], round(float(s.law.variance), 6)) for s in found.values() if s.law is not None}
    assert seen == laws
    rows = [line.split("|") for line in (phsafe / "run" / "PH6.csv").read_text().splitlines()[1:]]
    true = [line.split("|") for line in (phsafe / "exact" / "PH6.csv").read_text().splitlines()[1:]]
    series = next(s for name, s in found.items() if name.startswith("PH6 STATE"))
    pairs = [(float(t[3]), float(r[3])) for r, t in zip(rows, true, strict=True) if r[1] == "STATE"]
    assert sorted(zip(series.exact, series.noisy, strict=True)) == sorted(pairs)
    # A sum of two cells has another law.
    assert all(s.law is None for s in found.values() if s.name.startswith("PH8_num"))


@pytest.mark.thorough
def test_the_command_tells_of_every_series(phsafe: Path, capsys: pytest.CaptureFixture[str]) -> None:
    status, out, _ = epl(capsys, phsafe / "run", phsafe / "exact", "--json")
    answer = json.loads(out)
    assert status == 0
    assert answer["confidential"] is True
    by_name = {result["name"]: result for result in answer["results"]}
    small = next(result for name, result in by_name.items() if name.startswith("PH2 USA"))
    assert "too few" in small["problem"]
    assert small["epl"] == small["known"]["epl"]


@pytest.mark.slow
def test_a_truth_that_lacks_rows_or_tables_does_not_match(phsafe: Path, tmp_path: Path) -> None:
    truth = tmp_path / "truth"
    truth.mkdir()
    for path in (phsafe / "exact").iterdir():
        (truth / path.name).write_bytes(path.read_bytes())
    lines = (truth / "PH6.csv").read_text().splitlines()
    (truth / "PH6.csv").write_text("\n".join(lines[:-1]) + "\n")
    with pytest.raises(OutputError, match=r"PH6\.csv was changed"):
        list(release_and_truth(phsafe / "run", truth))
    manifest = json.loads((truth / "manifest.json").read_text())
    manifest["tables"]["PH6.csv"] |= {"sha256": checksum(truth / "PH6.csv"), "rows": len(lines) - 2}
    (truth / "manifest.json").write_text(json.dumps(manifest))
    with pytest.raises(InputError, match=r"PH6: the truth has no count for .*do not match"):
        list(release_and_truth(phsafe / "run", truth))
    del manifest["tables"]["PH1_num.csv"]
    (truth / "PH1_num.csv").unlink()
    (truth / "manifest.json").write_text(json.dumps(manifest))
    with pytest.raises(OutputError, match="table PH1_num is missing"):
        list(release_and_truth(phsafe / "run", truth))


# --- hierarchies -----------------------------------------------------------------------------------------------------


def write_counts(folder: Path, geolevel: str, cells: Cells) -> None:
    (folder / "counts").mkdir(parents=True, exist_ok=True)
    lines = ["geounit|race|age|count", *("|".join(map(str, (*key, n))) for key, n in cells.items() if n)]
    (folder / "counts" / f"{geolevel}.csv").write_text("\n".join(lines) + "\n")


cells = st.dictionaries(
    st.tuples(st.sampled_from("abcde"), st.integers(0, 2), st.integers(0, 1)), st.integers(0, 9), max_size=20
)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=6)
@given(cells, cells)
@pytest.mark.thorough
def test_queries_of_a_geolevel_are_those_of_a_plain_count(tmp_path: Path, noisy: Cells, exact: Cells) -> None:
    for name, of in (("noisy", noisy), ("exact", exact)):
        write_counts(tmp_path / name, "Block", of)
    kept: dict[str, tuple[int, ...]] = {"total": (), "race": (1,), "age": (2,), "detailed": (1, 2), "age*race": (2, 1)}
    found = list(by_geolevel(tmp_path / "noisy", tmp_path / "exact", list(kept)))
    shown = {key for of in (noisy, exact) for key, n in of.items() if n}
    units = sorted({key[0] for key in shown})
    for series, places in zip(found, kept.values(), strict=True):
        sums: list[Counter[tuple[object, ...]]] = [Counter(), Counter()]
        for tally, of in zip(sums, (exact, noisy), strict=True):
            for key, n in of.items():
                tally[key[0], *(key[i] for i in places)] += n
        every = {tuple(key[i] for i in places) for key in shown}
        due = sorted((sums[0][unit, *cell], sums[1][unit, *cell]) for unit in units for cell in every)
        pairs = list(zip(series.exact.tolist(), series.noisy.tolist(), strict=True)) + [(0, 0)] * series.both_zero
        assert sorted(pairs) == due


def test_geounits_of_the_spine_without_people_are_counted(tmp_path: Path) -> None:
    for name in ("noisy", "exact"):
        write_counts(tmp_path / name, "Block", {("a", 0, 0): 3, ("b", 1, 0): 2})
    (tmp_path / "noisy" / "spine").mkdir()
    rows = ["geolevel|geounit", "Block|a", "Block|b", "Block|c", "County|x"]
    (tmp_path / "noisy" / "spine" / "geounits.csv").write_text("\n".join(rows) + "\n")
    (total,) = by_geolevel(tmp_path / "noisy", tmp_path / "exact", ["total"])
    assert total.both_zero == 1


def test_hierarchies_that_do_not_match_are_named(tmp_path: Path) -> None:
    noisy, exact = tmp_path / "noisy", tmp_path / "exact"
    write_counts(noisy, "Block", {("a", 0, 0): 3})
    for make, query, words in (
        (lambda: None, None, "no such file, so the counts of Block cannot be matched"),
        (lambda: write_counts(exact, "Block", {("a", 0, 0): 2}), "sex", "no attribute 'sex'; it has race, age"),
        (
            lambda: (exact / "counts" / "Block.csv").write_text("geounit|race|count\n"),
            None,
            "does not have the columns",
        ),
        (lambda: (exact / "counts" / "Block.csv").write_text("unit|count\n"), None, "columns must be geounit"),
        (
            lambda: (exact / "counts" / "Block.csv").write_text("geounit|race|age|count\na|0|0|1.5\n"),
            None,
            "line 2, column count: not a whole number",
        ),
    ):
        make()
        with pytest.raises(InputError) as error:
            list(by_geolevel(noisy, exact, None if query is None else [query]))
        assert words in str(error.value)
    with pytest.raises(InputError, match="holds no counts by geolevel"):
        list(by_geolevel(tmp_path, exact))


def test_a_truth_on_another_spine_is_refused(tmp_path: Path) -> None:
    for name, geounit in (("noisy", "a"), ("exact", "b")):
        write_counts(tmp_path / name, "Block", {(geounit, 0, 0): 3})
        (tmp_path / name / "spine").mkdir()
        (tmp_path / name / "spine" / "geounits.csv").write_text(f"geolevel|geounit\nBlock|{geounit}\n")
    with pytest.raises(InputError, match="is another spine than"):
        list(by_geolevel(tmp_path / "noisy", tmp_path / "exact"))


@needs_published
@pytest.mark.slow
def test_the_published_losses_are_read_and_stand_beside_ours(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = {(row.geolevel, row.query, row.epsilon): row.loss for row in read_published_1940(PUBLISHED)}
    assert len(rows) == 40
    assert rows["enum_dist", "detailed", 0.25] == 0.139
    assert rows["county", "total", 8.0] == 0.318
    generator = np.random.default_rng(1)
    for name in ("noisy", "exact"):
        shift = generator.integers(-5, 6, 200) * (name == "noisy")
        counts = {(f"u{i}", i % 3, 0): 50 + int(k) for i, k in enumerate(shift)}
        for geolevel in ("State", "County", "Tract", "Block"):
            write_counts(tmp_path / name, geolevel, counts)
    _, out, _ = epl(capsys, tmp_path / "noisy", tmp_path / "exact", "--beside", PUBLISHED, "--query", "total")
    lines = out.splitlines()
    place = next(i for i, line in enumerate(lines) if line.startswith("Block total"))
    assert any("0.25: 0.017" in line for line in lines[place : place + 4])
    assert not any("1940" in line for line in lines if line.startswith("Tract"))


def test_results_that_are_none_are_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="not readable as the published results"):
        read_published_1940(tmp_path)
    (tmp_path / "results_dp_epl.json").write_text("{}")
    with pytest.raises(InputError, match="holds no published losses"):
        read_published_1940(tmp_path)


def test_our_lowest_geolevel_compares_with_enumeration_districts() -> None:
    ours = ("US", "State", "County", "Tract", "Block_Group", "Block")
    assert [counterpart(name, ours) for name in ours] == [None, "state", "county", None, None, "enum_dist"]
    assert counterpart("Tract", ours[:4]) == "enum_dist"


def test_laws_are_found_by_the_tables_that_a_plan_names() -> None:
    laws = {("T01001-T02003", 4.0): DiscreteGaussian(Fraction(4)), ("T03", 9.0): DiscreteGaussian(Fraction(9))}
    found = {table: (_law(laws, table, 4.0), _law(laws, table, 9.0)) for table in ("T01001", "T02002", "T03001")}
    four, nine = laws.values()
    assert found == {"T01001": (four, None), "T02002": (four, None), "T03001": (None, nine)}
    assert _law(laws, "T04001", 4.0) is None
    assert _law(laws, "T01001", 5.0) is None
