"""From a release to published tables: every refusal, the Bureau's columns, rounding, identities, and the page."""

import csv
import json
import math
import shutil
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from probabilities import pmf_array
from read_tables import read_tables
from scipy import special

from yupana.cli.main import main
from yupana.estimate.phsafe.combine import JointFit, chi_square_bound, combine, families, fit, project
from yupana.estimate.phsafe.estimate import EstimatedCounts, Measured, TableEstimate, estimate_tables, read_measured
from yupana.privacy.laws import DiscreteGaussian, Law, TwoSidedGeometric
from yupana.products.census import STATES
from yupana.products.phsafe.configuration import production_config
from yupana.products.phsafe.shells import ITERATION_LABELS, SHELLS, nation_name
from yupana.products.phsafe.specification import STATE_NAMES, Group
from yupana.release.tables import checksum, read_table

STATES_HERE = ["06", "56"]
COUNT_COLUMNS = ["GEOID", "REGION_TYPE", "ITERATION_CODE", "DATA_CELL", "COUNT_NOISY", "VARIANCE", "MOE_NOISY"]
COUNT_COLUMNS += ["PRED", "PRED_LO", "PRED_HI"]
NUM = ["COUNT_NOISY_NUM", "VARIANCE_NUM", "MOE_NOISY_NUM"]
DENOM = ["COUNT_NOISY_DENOM", "VARIANCE_DENOM", "MOE_NOISY_DENOM"]
ENDS = ["RATIO_PRED_LO", "RATIO_PRED_HI"]
RATIO_COLUMNS = [*COUNT_COLUMNS[:4], *NUM, *DENOM, "RATIO_NOISY", "RATIO_PRED", "PRED_NUM", "PRED_DENOM", *ENDS]
PH8_COLUMNS = [*COUNT_COLUMNS[:4], *DENOM, *NUM, "RATIO_NOISY", "RATIO_PRED", *ENDS]


def make_release(
    folder: Path, states: list[str], *, seed: str | None, change: Callable[[dict[str, Any]], None] | None = None
) -> Path:
    config = production_config()
    config["state_filter"] = states
    if change:
        change(config)
    if states == ["72"]:
        for levels in config["privacy_budget"].values():
            levels.update({key: 0.0 for key in levels if key.startswith("usa")})
    (folder / "config.json").write_text(json.dumps(config), encoding="utf-8")
    made = ["synth", str(folder / "census"), "--households", "300", "--seed", "5", "--states", ",".join(states)]
    assert main(made) == 0
    run = ["phsafe", "run", str(folder / "config.json"), str(folder / "census"), str(folder / "release")]
    assert main([*run, *(["--seed", seed] if seed else [])]) == 0
    return folder / "release"


@pytest.fixture(scope="module")
def release(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_release(tmp_path_factory.mktemp("us"), STATES_HERE, seed=None)


@pytest.fixture(scope="module")
def seeded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Of few tables."""

    def change(config: dict[str, Any]) -> None:
        for table, levels in config["privacy_budget"].items():
            if table not in {"PH1_num", "PH1_denom", "PH3"}:
                levels.update(dict.fromkeys(levels, 0))

    return make_release(tmp_path_factory.mktemp("seeded"), ["72"], seed="3", change=change)


@pytest.fixture(scope="module")
def of_seeded(seeded: Path) -> Path:
    folder = seeded.parent / "out"
    assert main(["phsafe", "estimate", str(seeded), str(folder)]) == 0
    return folder


@pytest.fixture(scope="module")
def puerto_rico(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_release(tmp_path_factory.mktemp("pr"), ["72"], seed=None)


@pytest.fixture(scope="module")
def measured(release: Path) -> Measured:
    return read_measured(release)


@pytest.fixture(scope="module")
def few(measured: Measured) -> Measured:
    """An average, and counts with and without iterations."""
    return replace(measured, counts={name: measured.counts[name] for name in ("PH1_num", "PH1_denom", "PH4", "PH6")})


@pytest.fixture(scope="module")
def exact(few: Measured) -> tuple[TableEstimate, ...]:
    return estimate_tables(few, few, Fraction(9, 10), "exact")[0]


@pytest.fixture(scope="module")
def without_noise(release: Path) -> Path:
    """Exact counts of the records of the release."""
    folder = release.parent
    arguments = [str(folder / name) for name in ("config.json", "census", "exact")]
    assert main(["phsafe", "exact", *arguments]) == 0
    return folder / "exact"


@pytest.fixture(scope="module")
def out(release: Path, puerto_rico: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("made") / "out"
    assert main(["phsafe", "estimate", str(release), str(folder), "--puerto-rico", str(puerto_rico), "--publish"]) == 0
    return folder


@pytest.mark.thorough
def test_a_folder_of_estimates_holds_together(out: Path, capsys: pytest.CaptureFixture[str]) -> None:
    manifest, tables, wrong = read_tables(out)
    assert not wrong
    assert manifest["status"] == "estimates from noisy measurements"
    assert main(["check", str(out)]) == 0
    assert "agree with the manifest" in capsys.readouterr().out
    files = {f"PH{k}_{name}_trunc_normal" for k in range(1, 9) for name in ("nation", "state", "PR_state")}
    assert set(tables) == files | {f"PH{k}" for k in range(1, 9)} | {"estimates"}
    for name, columns in tables.items():
        if name.endswith("_trunc_normal"):
            expected = PH8_COLUMNS if name[2] == "8" else RATIO_COLUMNS if name[2] in "15" else COUNT_COLUMNS
            assert list(columns) == expected
            assert {len(code) for code in columns["GEOID"]} == {2}


@pytest.mark.slow
def test_the_bureaus_order_of_cells(out: Path) -> None:
    counts = read_table(out / "PH2_nation_trunc_normal.csv")["DATA_CELL"]
    assert counts == ["1", "2", "5", "8", "11", "3", "4", "6", "7", "9", "10", "12", "13"]
    assert read_table(out / "PH1_nation_trunc_normal.csv")["DATA_CELL"][:3] == ["2", "3", "1"]


def test_every_published_number_lies_in_its_interval_and_has_labels(out: Path) -> None:
    for shell in SHELLS:
        columns = read_table(out / f"{shell.name}.csv")
        numbers = [np.array(columns[name], dtype=float) for name in ("LOWER", "ESTIMATE", "UPPER")]
        assert (numbers[0] >= 0).all()
        assert (numbers[0] <= numbers[1]).all()
        # The mean of a skewed posterior may lie above its interval's end only at other confidences.
        assert (numbers[1] <= numbers[2]).all()
        assert set(columns["AREA"]) == {"The states of this release", "California", "Wyoming", "Puerto Rico"}
        assert all(columns["LABEL"])
        if shell.ratio is not None:
            assert all(len(text.split(".")[1]) == 2 for text in columns["ESTIMATE"])
            total = np.array(columns["DATA_CELL"]) == "1"
            assert (numbers[1][total] >= shell.ratio.least).all()
            assert (numbers[2] <= 10).all()
        if "ITERATION_CODE" in columns:
            assert set(columns["ITERATION_CODE"]) == set(ITERATION_LABELS)


def test_published_counts_add_up(out: Path) -> None:
    columns = read_table(out / "PH6.csv")
    rows = {
        (a, int(c)): int(e) for a, c, e in zip(columns["AREA"], columns["DATA_CELL"], columns["ESTIMATE"], strict=True)
    }
    shell = next(shell for shell in SHELLS if shell.name == "PH6")
    for area in set(columns["AREA"]):
        for stub in shell.stubs:
            assert rows[area, stub.cell] == sum(rows[area, part] for part in stub.parts)


def test_the_page_loads_nothing_and_shows_every_number(out: Path) -> None:
    page = (out / "index.html").read_text(encoding="utf-8")
    assert "http://" not in page
    assert "https://" not in page
    data = json.loads(page.split('id="data">')[1].split("</script>")[0].replace("<\\/", "</"))
    assert [table["name"] for table in data["tables"]] == [shell.name for shell in SHELLS]
    table = data["tables"][6]
    columns = read_table(out / "PH7.csv")
    shown = [int(columns["ESTIMATE"][place]) for place in range(4)]
    assert table["rows"]["U1/*"][0] == shown


@pytest.mark.thorough
def test_parquet_holds_the_same(seeded: Path, of_seeded: Path, tmp_path: Path) -> None:
    other = tmp_path / "parquet"
    assert main(["phsafe", "estimate", str(seeded), str(other), "--format", "parquet"]) == 0
    assert not read_tables(other)[2]
    for name in ("PH3", "PH1_PR_state_trunc_normal"):
        one = read_table(of_seeded / f"{name}.csv")
        two = read_table(other / f"{name}.parquet")
        for column, values in two.items():
            if column.startswith("RATIO"):
                assert np.array(one[column], float) == pytest.approx(np.array(values, float), nan_ok=True)
            elif column not in {"ESTIMATE", "LOWER", "UPPER"}:
                assert one[column] == values


@pytest.mark.thorough
def test_the_original_rounds_as_the_bureau_did(few: Measured, exact: tuple[TableEstimate, ...]) -> None:
    original = estimate_tables(few, few, Fraction(9, 10), "original")[0]
    for one, other in zip(exact, original, strict=True):
        if one.shell.ratio is not None:
            assert np.array_equal(one.estimate, other.estimate)
            continue
        place = {stub.cell: at for at, stub in enumerate(one.shell.stubs)}
        for at, stub in enumerate(one.shell.stubs):
            if stub.parts == (stub.cell,):
                assert np.array_equal(other.estimate[:, at], np.rint(one.estimate[:, at]))
            summed = sum(other.estimate[:, place[part]] for part in stub.parts)
            assert np.array_equal(other.estimate[:, at], summed)
        assert np.array_equal(other.lower, np.floor(one.lower))
        assert np.array_equal(other.upper, np.ceil(one.upper))


def test_basis_cells_are_truncated_normals(measured: Measured, exact: tuple[TableEstimate, ...]) -> None:
    table = next(each for each in exact if each.shell.name == "PH4")
    z, v = measured.counts["PH4"], np.diagonal(measured.covariances["PH4"], axis1=1, axis2=2)
    ratio = -z / np.sqrt(v)
    kept = np.abs(ratio) < 5
    mean = z + np.sqrt(v / (2 * np.pi)) * np.exp(-(ratio**2) / 2) / special.ndtr(-ratio)
    assert table.estimate[:, 1:][kept] == pytest.approx(mean[kept], rel=1e-9)
    assert isinstance(table.made_of, EstimatedCounts)
    assert table.made_of.noisy[:, 0] == pytest.approx(z.sum(axis=1))
    assert table.made_of.variance[:, 0] == pytest.approx(v.sum(axis=1))


@pytest.mark.thorough
def test_intervals_follow_the_confidence(few: Measured, exact: tuple[TableEstimate, ...]) -> None:
    wide = estimate_tables(few, few, Fraction(99, 100), "exact")[0]
    for one, other in zip(exact, wide, strict=True):
        assert (other.lower < one.lower).all()
        assert (other.upper > one.upper).all()


# Identities.


@pytest.mark.thorough
def test_identities_hold_for_exact_counts(release: Path, without_noise: Path) -> None:
    tables = {path.stem: read_table(path) for path in without_noise.glob("*.csv")}
    measured = read_measured(release)
    counts = {}
    for name, groups in measured.groups.items():
        columns = tables[name]
        iterations = columns.get("ITERATION_CODE", ["*"] * len(columns["COUNT"]))
        rows: dict[Group, list[int]] = {}
        keys = zip(columns["REGION_TYPE"], columns["REGION_ID"], iterations, columns["COUNT"], strict=True)
        for kind, region, code, count in keys:
            rows.setdefault(Group(kind, region, code), []).append(int(count))
        counts[name] = np.array([rows[group] for group in groups], dtype=float)
    found = families(measured)[0]
    assert {family.tables for family in found} >= {("PH1_num", "PH7", "PH2"), ("PH1_denom", "PH8_denom"), ("PH3",)}
    number = 0
    for family in found:
        row = family.row(counts)
        for identity in family.identities:
            assert sum(weight * row[place] for place, weight in identity.items()) == 0
            number += 1
    # Of every table: iterations by cells for the nation, areas by cells for the races; and shared universes.
    areas = 1 + len(STATES_HERE)
    iterated = 2 + 1 + 7 + 2 + 1 + 3 + 2
    shared = 2 * areas * 10 + areas
    assert number == iterated * (10 + areas) + (8 + 16) + shared


def test_joint_estimates_satisfy_the_identities_and_gain(measured: Measured) -> None:
    joint, note = combine(measured)
    assert note["identities"] > 0
    assert "unused" not in note
    for family in families(measured)[0]:
        row = family.row(joint.counts)
        for identity in family.identities:
            assert sum(weight * row[place] for place, weight in identity.items()) == pytest.approx(0, abs=1e-6)
    for name, before in measured.covariances.items():
        after = np.diagonal(joint.covariances[name], axis1=1, axis2=2)
        assert (after <= np.diagonal(before, axis1=1, axis2=2) * (1 + 1e-9)).all()
        assert (after < 0.999 * np.diagonal(before, axis1=1, axis2=2)).any()


@pytest.mark.slow
def test_persons_truncated_differently_are_not_linked(measured: Measured) -> None:
    parameters = {**measured.manifest["parameters"], "tau": {**measured.manifest["parameters"]["tau"], "PH7": 9}}
    manifest = {**measured.manifest, "parameters": parameters}
    other = Measured(manifest, measured.groups, measured.counts, measured.covariances)
    note = combine(other)[1]
    assert note["identities"] < combine(measured)[1]["identities"]
    assert "PH7 9" in note["unused"][0]


def leave_out(rows: list[list[str]]) -> None:
    # As if 20,000 persons of Wyoming were of no household type: 40 standard deviations.
    region, count = rows[0].index("REGION_ID"), rows[0].index("COUNT")
    for place in ("1", "56"):
        row = next(row for row in rows if row[region] == place)
        row[count] = str(int(row[count]) - 20_000)


@pytest.mark.thorough
def test_measurements_that_contradict_each_other_are_not_combined(
    release: Path, measured: Measured, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "release"
    shutil.copytree(release, folder)
    rewrite(folder, "PH2", leave_out)
    needles = ("PH7 and PH2 count the same in state 56, iteration *", "Chi-square", "1 in 1,000,000")
    refuse(folder, tmp_path, capsys, needles, ("--combine", "joint"))
    fits_well(combine(measured)[1]["fit"])


def fits_well(fits: list[dict[str, Any]]) -> None:
    assert fits[0]["tables"] == ["PH1_num", "PH7", "PH2"]
    assert all(0.5 < each["chi_square"] / each["degrees"] < 2 for each in fits if each["degrees"] > 100)


@pytest.mark.thorough
def test_measurements_that_contradict_each_other_are_estimated_alone(release: Path, tmp_path: Path) -> None:
    folder = tmp_path / "release"
    shutil.copytree(release, folder)
    rewrite(folder, "PH2", leave_out)
    assert main(["phsafe", "estimate", str(folder), str(tmp_path / "alone")]) == 0
    assert main(["phsafe", "estimate", str(release), str(tmp_path / "joint"), "--combine", "joint"]) == 0
    manifest = json.loads((tmp_path / "joint" / "manifest.json").read_text(encoding="utf-8"))
    fits_well(manifest["sources"][0]["combined"]["fit"])


def test_a_small_hole_in_one_area_is_found_among_many_identities(measured: Measured) -> None:
    # Too small for chi-square on hundreds of identities, too large for the one that it breaks.
    counts = {name: each.copy() for name, each in measured.counts.items()}
    for name, each in families(measured)[0][0].places.items():
        counts[name] = np.zeros(each.shape)
    here, nation = (measured.groups["PH2"].index(Group(*key, "*")) for key in (("STATE", "56"), ("USA", "1")))
    other = measured.covariances["PH7"][measured.groups["PH7"].index(Group("STATE", "56", "*"))]
    hole = 9 * math.sqrt(measured.covariances["PH2"][here].trace() + other.trace())
    counts["PH2"][[here, nation], 0] -= hole
    found = fit_of(measured, counts)
    assert not found.fits
    assert found.chi_square < found.largest


def fit_of(measured: Measured, counts: dict[str, np.ndarray]) -> JointFit:
    (family, *_), _ = families(measured)
    variances = {name: np.diagonal(each, axis1=1, axis2=2) for name, each in measured.covariances.items()}
    row, spread = family.row(counts), family.row(variances)
    found = project(row, spread, family.identities)
    return fit(row, spread, family.identities, found, geometric=False, chance=1e-6)


@pytest.mark.parametrize(
    "law",
    [
        DiscreteGaussian(Fraction(1, 4)),
        DiscreteGaussian(Fraction(9)),
        TwoSidedGeometric(Fraction(1, 2)),
        TwoSidedGeometric(Fraction(3)),
    ],
)
def test_a_miss_is_never_less_probable_than_its_bound(law: Law) -> None:
    # Exact probabilities of sums of five draws, one of them taken away, by convolution.
    reach = 60
    one = pmf_array(law, reach)
    total = one
    for _ in range(4):
        total = np.convolve(total, one)
    miss = np.abs(np.arange(-5 * reach, 5 * reach + 1))
    variance = law.sigma2 if isinstance(law, DiscreteGaussian) else law.variance
    identity = {0: -1.0, **dict.fromkeys(range(1, 5), 1.0)}
    variances = np.full(5, float(variance))
    geometric = isinstance(law, TwoSidedGeometric)
    for least in range(1, 5 * reach, 7):
        exact = float(total[miss >= least].sum())
        values = np.array([-float(least), 0, 0, 0, 0])
        found = project(values, variances, [identity])
        bound = math.exp(fit(values, variances, [identity], found, geometric=geometric, chance=1e-6).logarithm)
        assert exact <= bound + 1e-14
        # The bound is of use: it falls as the probability does.
        assert bound < 0.05 or exact > 1e-4


def test_chi_square_of_discrete_noise_stays_below_its_bound() -> None:
    # Exact: the law of the squared norm of two discrete Gaussians of parameter 1/2, in standard deviations.
    one = pmf_array(DiscreteGaussian(Fraction(1, 2)), 40)
    squares = np.add.outer(np.arange(-40, 41) ** 2, np.arange(-40, 41) ** 2) * 2
    law = np.multiply.outer(one, one)
    for chance in (0.1, 1e-3, 1e-6, 1e-9):
        assert law[squares > chi_square_bound(2, chance)].sum() <= chance


def test_projection_against_dense_algebra() -> None:
    rng = np.random.default_rng(3)
    values, variances = rng.normal(size=7) * 100, rng.uniform(1, 50, 7)
    identities = [{0: 1.0, 1: 1.0, 2: -1.0}, {3: 1.0, 4: 1.0, 5: -1.0}, {0: 1.0, 3: 1.0, 6: -1.0}]
    identities.append({place: identities[0].get(place, 0) + identities[1].get(place, 0) for place in range(6)})
    found = project(values, variances, identities)
    b = np.zeros((3, 7))
    for row, identity in enumerate(identities[:3]):
        b[row, list(identity)] = list(identity.values())
    v = np.diag(variances)
    gain = v @ b.T @ np.linalg.inv(b @ v @ b.T)
    assert found.values == pytest.approx(values - gain @ (b @ values))
    assert found.misfit == pytest.approx((b @ values) @ np.linalg.solve(b @ v @ b.T, b @ values))
    expected = v - gain @ b @ v
    places = np.array([[0, 1, 2, 3, 4, 5, 6]])
    assert found.covariances(places)[0] == pytest.approx(expected, abs=1e-9)


def test_states_and_races_have_names() -> None:
    assert set(STATE_NAMES) == {*STATES, "72"}
    assert len(set(STATE_NAMES.values())) == 52


def test_only_all_states_are_called_the_united_states() -> None:
    assert nation_name(STATES) == "United States"
    for state in STATES:
        assert nation_name(set(STATES) - {state}) == "The states of this release"


@pytest.mark.slow
def test_a_plan_that_leaves_out_levels_and_tables(tmp_path: Path) -> None:
    def change(config: dict[str, Any]) -> None:
        config["privacy_defn"] = "puredp"
        budgets = config["privacy_budget"]
        for table in ("PH1_denom", "PH3", "PH5_denom", "PH6"):
            budgets[table] = dict.fromkeys(budgets[table], 0)
        budgets["PH8_denom"]["usa_*"] = 0
        budgets["PH7"]["state_A-G"] = 0

    release = make_release(tmp_path, ["56"], seed=None, change=change)
    out = tmp_path / "out"
    assert main(["phsafe", "estimate", str(release), str(out), "--combine", "joint"]) == 0
    manifest, tables, wrong = read_tables(out)
    assert not wrong
    (source,) = manifest["sources"]
    missing = {"PH1": "PH1_denom", "PH3": "PH3", "PH5": "PH5_denom", "PH6": "PH6"}
    assert source["left_out"] == {name: f"the release has no measurements of {of}" for name, of in missing.items()}
    assert "approximate" in source["noise"]
    assert not missing.keys() & tables.keys()
    levels = set(zip(tables["PH8"]["REGION_TYPE"], tables["PH8"]["ITERATION_CODE"], strict=True))
    assert ("USA", "*") not in levels
    assert ("STATE", "A") not in levels
    assert ("USA", "A") in levels


# Refusals.


Spoil = Callable[[Path], None]


def rewrite(folder: Path, name: str, change: Callable[[list[list[str]]], None]) -> None:
    """Change a table and its checksum, as a careful forger would."""
    path = folder / f"{name}.csv"
    with path.open(newline="", encoding="utf-8") as file:
        rows = list(csv.reader(file, delimiter="|"))
    change(rows)
    path.write_text("".join("|".join(row) + "\n" for row in rows), encoding="utf-8")
    manifest = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))
    entry = manifest["tables"][path.name]
    entry.update(sha256=checksum(path), columns=rows[0], rows=len(rows) - 1)
    (folder / "manifest.json").write_text(json.dumps(manifest), encoding="utf-8")


def set_variance(text: str) -> Spoil:
    def change(rows: list[list[str]]) -> None:
        rows[1][rows[0].index("VARIANCE")] = text

    return lambda folder: rewrite(folder, "PH3", change)


def change_bytes(folder: Path) -> None:
    path = folder / "PH4.csv"
    path.write_text(path.read_text(encoding="utf-8").replace("|1", "|2", 1), encoding="utf-8")


def rename_column(folder: Path) -> None:
    rewrite(folder, "PH7", lambda rows: rows[0].__setitem__(0, "PLACE"))


def drop_row(folder: Path) -> None:
    rewrite(folder, "PH2", lambda rows: rows.pop())


def drop_from_manifest(folder: Path) -> None:
    (folder / "PH7.csv").unlink()
    manifest = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))
    del manifest["tables"]["PH7.csv"]
    (folder / "manifest.json").write_text(json.dumps(manifest), encoding="utf-8")


def drop_plan(folder: Path) -> None:
    manifest = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))
    del manifest["plan"]
    (folder / "manifest.json").write_text(json.dumps(manifest), encoding="utf-8")


@pytest.mark.sampled(1)
@pytest.mark.parametrize(
    ("spoil", "needles"),
    [
        (change_bytes, ("PH4.csv", "checksum")),
        (lambda folder: (folder / "PH1_num.csv").unlink(), ("PH1_num.csv is missing",)),
        (drop_from_manifest, ("table PH7 is missing",)),
        (rename_column, ("PH7.csv", "columns")),
        (set_variance("nan"), ("PH3", "variances are those of the plan")),
        (drop_row, ("PH2", "marginals are the sums of their cells")),
        (drop_plan, ("plan is missing",)),
        (lambda folder: (folder / "manifest.json").unlink(), ("manifest.json",)),
    ],
)
@pytest.mark.slow
def test_what_is_no_sound_release(
    release: Path, tmp_path: Path, spoil: Spoil, needles: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "release"
    shutil.copytree(release, folder)
    spoil(folder)
    refuse(folder, tmp_path, capsys, needles)


def refuse(
    folder: Path,
    place: Path,
    capsys: pytest.CaptureFixture[str],
    needles: tuple[str, ...],
    options: tuple[str, ...] = (),
) -> None:
    capsys.readouterr()
    assert main(["phsafe", "estimate", str(folder), str(place / "out"), *options]) == 2
    said = capsys.readouterr().err
    for needle in needles:
        assert needle in said
    assert "fault of the program" not in said
    assert not (place / "out").exists()
    assert not (place / "out.partial").exists()


@pytest.mark.slow
def test_counts_without_noise(without_noise: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    refuse(without_noise, tmp_path, capsys, ("VARIANCE must be above 0", "table PH1_num, line 2"))


@pytest.mark.slow
def test_a_seeded_release_is_marked_or_refused(
    seeded: Path, of_seeded: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    refuse(seeded, tmp_path, capsys, ("NOT FOR RELEASE", "seed"), ("--publish",))
    manifest = json.loads((of_seeded / "manifest.json").read_text(encoding="utf-8"))
    assert manifest["status"] == "NOT FOR RELEASE"
    assert "seed" in manifest["reasons"][0]
    assert "NOT FOR RELEASE" in (of_seeded / "index.html").read_text(encoding="utf-8")


@pytest.mark.thorough
def test_requests_that_contradict_themselves(
    release: Path, puerto_rico: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    refuse(release, tmp_path, capsys, ("--combine joint",), ("--combine", "joint", "--method", "original"))
    refuse(release, tmp_path, capsys, ("Puerto Rico",), ("--puerto-rico", str(release)))
    refuse(puerto_rico, tmp_path, capsys, ("Puerto Rico",), ("--puerto-rico", str(release)))
    refuse(tmp_path / "nowhere", tmp_path, capsys, ("nowhere",))
    before = sorted(path.name for path in release.iterdir())
    assert main(["phsafe", "estimate", str(release), str(release), "--overwrite"]) == 2
    assert sorted(path.name for path in release.iterdir()) == before


def test_estimates_of_estimates(out: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    refuse(out, tmp_path, capsys, ("phsafe estimates",))
