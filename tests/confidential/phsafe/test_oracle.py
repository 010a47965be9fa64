"""PHSafe, from files to tables, against a tabulator written from its specification in plain loops."""

import json
import math
import shutil
from collections import defaultdict
from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal, localcontext
from fractions import Fraction
from functools import cache
from pathlib import Path
from typing import TypeAlias

import duckdb
import numpy as np
import pytest
from census_maker import (
    Census,
    Person,
    Unit,
    random_census,
    seeded,
    write_csv,
    write_parquet,
)
from phsafe_oracle import (
    CODES,
    PERSON_TABLES,
    SPECS,
    Config,
    Row,
    breaks_a_rule,
    by_unit,
    counts_of,
    derived,
    exact,
    published,
    random_config,
    row_of,
    tabulated,
)
from scipy.fft import next_fast_len

from yupana.cli.main import main

STATES = ("06", "11", "17", "48", "50", "56")
FORMS: dict[str, Callable[[Path, Census], None]] = {
    "comma": write_csv,
    "bar": lambda folder, census: write_csv(folder, census, separator="|"),
    "crlf and bom": lambda folder, census: write_csv(folder, census, end="\r\n", bom=True),
    "quoted": lambda folder, census: write_csv(folder, census, quoted=True),
    "quoted bar crlf": lambda folder, census: write_csv(folder, census, separator="|", end="\r\n", quoted=True),
    "parquet text": lambda folder, census: write_parquet(folder, census, "text"),
    "parquet bureau": lambda folder, census: write_parquet(folder, census, "bureau"),
    "parquet integer": lambda folder, census: write_parquet(folder, census, "integer"),
}


@pytest.mark.sampled(1)
@pytest.mark.parametrize(("seed", "form"), [case for case in enumerate(FORMS) if case[1] not in {"bar", "quoted"}])
@pytest.mark.slow
def test_every_cell_of_a_random_census(tmp_path: Path, seed: int, form: str) -> None:
    random = seeded(seed)
    census = random_census(random, random.sample(STATES, 3), random.choice((40, 300)))
    config = random_config(random, STATES)
    FORMS[form](tmp_path / "data", census)
    assert exact(config.write(tmp_path / "config.json"), tmp_path / "data", tmp_path / "out") == tabulated(
        census, config
    )


@pytest.mark.slow
def test_the_random_censuses_reach_every_cell_and_iteration() -> None:
    # Otherwise agreement above would mean little.
    reached: set[tuple[str, str, int]] = set()
    for seed in range(5):
        tables = tabulated(random_census(seeded(seed), STATES, 300), Config(STATES))
        reached |= {(table, row[2], row[3]) for table, rows in tables.items() for row, count in rows.items() if count}
    everything = {(table, row[2], row[3]) for table, rows in tables.items() for row in rows}
    assert len(everything) == 10 * (2 + 1 + 7 + 2 + 2 + 1 + 3 + 2 + 2) + 8 + 16
    assert reached == everything


def test_truncation_matters_to_the_random_censuses() -> None:
    census = random_census(seeded(1), STATES, 300)
    loose, tight, keyed = (
        tabulated(census, Config(STATES, dict.fromkeys(PERSON_TABLES, tau), key))
        for tau, key in ((99, ""), (2, ""), (2, "key"))
    )
    assert all(loose[table] != tight[table] for table in PERSON_TABLES)
    assert all(tight[table] != keyed[table] for table in ("PH1_num", "PH3", "PH4", "PH6"))


@pytest.fixture(scope="module")
def one_census() -> Census:
    return random_census(seeded(77), STATES[:4], 250)


@pytest.mark.slow
def test_the_order_of_rows_the_form_of_each_file_and_the_name_of_the_folder_do_not_matter(
    tmp_path: Path, one_census: Census
) -> None:
    # A name that, read as a pattern, would find the files of another census instead.
    name = "it's [d]a*?"
    write_csv(tmp_path / "it's data", random_census(seeded(3), STATES, 30))
    config, data = Config(STATES, dict.fromkeys(PERSON_TABLES, 1)), tmp_path / name
    write_csv(data, one_census.shuffled(seeded(5)), separator="|")
    write_parquet(tmp_path / "parquet", one_census.shuffled(seeded(6)), "integer")
    (data / "units.csv").unlink()
    (tmp_path / "parquet" / "units.parquet").rename(data / "units.parquet")
    assert exact(config.write(tmp_path / "config.json"), data, tmp_path / "out") == tabulated(one_census, config)


@pytest.mark.sampled(1)
@pytest.mark.parametrize("seed", range(2))
@pytest.mark.slow
def test_units_that_break_rules_are_dropped_with_their_persons(tmp_path: Path, seed: int) -> None:
    census = random_census(seeded(seed), STATES, 200, breaks_rules=True)
    config = Config(STATES, drops=True)
    living = by_unit(census)
    kind = {place.MAFID: place.RTYPE for place in census.geo}
    broken = [u.MAFID for u in census.units if breaks_a_rule(u, living[u.MAFID], kind[u.MAFID])]
    assert len(broken) > 10
    write_csv(tmp_path / "data", census)
    counts = exact(config.write(tmp_path / "config.json"), tmp_path / "data", tmp_path / "out")
    assert counts == tabulated(census, config)
    log = json.loads((tmp_path / "out.confidential.log").read_text())
    assert log["dropped_units"] == len(broken)
    assert log["dropped_persons"] == sum(len(living[mafid]) for mafid in broken)


@pytest.mark.thorough
def test_a_dropped_unit_leaves_its_state_published(tmp_path: Path) -> None:
    census = random_census(seeded(8), ["17"], 60)
    unit = next(unit for unit in census.units if unit.TEN != "0")
    census.units[census.units.index(unit)] = unit._replace(FINAL_POP="99999")
    place = next(place for place in census.geo if place.MAFID == unit.MAFID)
    census.geo[census.geo.index(place)] = place._replace(TABBLKST="06", RTYPE="2")
    write_csv(tmp_path / "data", census)
    config = Config(STATES, drops=True)
    counts = exact(config.write(tmp_path / "config.json"), tmp_path / "data", tmp_path / "out")
    assert counts == tabulated(census, config)
    assert {row[1] for row in counts["PH2"]} == {"1", "06", "17"}
    assert not any(count for row, count in counts["PH1_num"].items() if row[1] == "06")


@pytest.mark.thorough
def test_a_state_of_group_quarters_alone_has_no_rows(tmp_path: Path) -> None:
    census = random_census(seeded(9), ["17"], 60)
    census.geo = [place._replace(TABBLKST="50" if place.RTYPE == "4" else "17") for place in census.geo]
    write_csv(tmp_path / "data", census)
    config = Config(STATES)
    counts = exact(config.write(tmp_path / "config.json"), tmp_path / "data", tmp_path / "out")
    assert counts == tabulated(census, config)
    assert {row[1] for row in counts["PH1_denom"]} == {"1", "17"}


@pytest.mark.thorough
def test_puerto_rico_with_the_budgets_of_2020(tmp_path: Path) -> None:
    census = random_census(seeded(10), ["72"], 200)
    config = Config(("72",), TAUS_2020, budgets=BUDGETS_2020 | {(t, f"usa_{g}"): "0.0" for t in SPECS for g in CODES})
    write_csv(tmp_path / "data", census)
    counts = exact(config.write(tmp_path / "config.json"), tmp_path / "data", tmp_path / "out")
    assert counts == tabulated(census, config)
    assert {table: len(rows) for table, rows in counts.items()} == ROWS_PER_REGION
    assert {row[:2] for rows in counts.values() for row in rows} == {("STATE", "72")}


@pytest.mark.slow
def test_everyone_in_a_household_is_in_every_table_of_everyone() -> None:
    # The rules leave no combination of codes that a table has no cell for.
    for seed in range(5):
        tables = tabulated(random_census(seeded(seed), STATES, 300), Config(STATES, dict.fromkeys(PERSON_TABLES, 999)))
        sizes = {
            name: sum(count for row, count in tables[name].items() if row[0] == "USA" and row[2] == "*")
            for name in tables
        }
        assert sizes["PH1_num"] == sizes["PH2"] == sizes["PH7"] > 0
        assert sizes["PH1_denom"] == sizes["PH8_denom"] > 0


@pytest.mark.thorough
def test_a_census_without_persons(tmp_path: Path) -> None:
    census = random_census(seeded(2), ["06", "17"], 50)
    vacant = {unit.MAFID for unit in census.units if unit.RTYPE == "2" and unit.FINAL_POP == "0"}
    census = Census([], [u for u in census.units if u.MAFID in vacant], [g for g in census.geo if g.MAFID in vacant])
    write_csv(tmp_path / "data", census)
    config = Config()
    counts = exact(config.write(tmp_path / "config.json"), tmp_path / "data", tmp_path / "out")
    assert counts == tabulated(census, config)
    assert counts.keys() == {*SPECS, "PH5_num", "PH8_num"}


@pytest.mark.thorough
def test_a_household_above_every_threshold_is_counted_by_hash(tmp_path: Path) -> None:
    # 400 records, many of them identical, in one household: numbers of three digits among identical records.
    random = seeded(4)
    census = random_census(random, ["06"], 1)
    mafid = census.units[0].MAFID
    people = [
        Person("3", mafid, random.choice(("7", "70")), "1", "01", random.choice(("30", "36"))) for _ in range(400)
    ]
    census.persons = [Person("3", mafid, "50", "2", "62", "20"), *people]
    census.units = [Unit("2", mafid, "401", "97", "2", "62", "4", "3", "07", "5")]
    census.geo = [census.geo[0]._replace(RTYPE="2")]
    config = Config(taus=dict(zip(PERSON_TABLES, (101, 57, 33, 12, 1, 250), strict=True)), key="0")
    write_csv(tmp_path / "data", census)
    counts = exact(config.write(tmp_path / "config.json"), tmp_path / "data", tmp_path / "out")
    assert counts == tabulated(census, config)
    assert sum(counts["PH7"]["USA", "1", "*", cell] for cell in (2, 3, 4)) == 250


# --- noise, and what is said of it ---------------------------------------------------------------------------------

TAUS_2020 = {"PH1_num": 10, "PH2": 10, "PH3": 6, "PH4": 10, "PH6": 6, "PH7": 10}
_OF_TABLES = {
    ("PH1_num", "PH4", "PH7", "PH2"): ("0.002619", "0.141622", "0.016371"),
    ("PH3", "PH6"): ("0.001061", "0.662976", "0.006630"),
    ("PH1_denom", "PH5_denom", "PH8_denom"): ("0.000022", "0.001170", "0.000135"),
}
BUDGETS_2020 = {
    (table, level): budget
    for tables, (nation, races, rest) in _OF_TABLES.items()
    for table in tables
    for level, budget in {
        **dict.fromkeys(("usa_A-G", "usa_H,I", "usa_*"), nation),
        "state_A-G": races,
        "state_H,I": rest,
        "state_*": rest,
    }.items()
}
ROWS_PER_REGION = {
    "PH1_num": 20, "PH1_denom": 10, "PH2": 8, "PH3": 70, "PH4": 20, "PH5_num": 20, "PH5_denom": 10, "PH6": 16,
    "PH7": 30, "PH8_num": 20, "PH8_denom": 20,
}  # fmt: skip


def run(config: Path, data: Path, out: Path, *options: str) -> dict[str, list[dict[str, str]]]:
    assert main(["phsafe", "run", str(config), str(data), str(out), *options]) == 0
    return published(out)


def expected_noise(config: Config, table: str, row: dict[str, str], *, tight: bool) -> tuple[int, Fraction]:
    """How many cells a row adds up, and sigma squared (the scale under pure DP) of each."""
    source = {"PH5_num": "PH4", "PH8_num": "PH7"}.get(table, table)
    code = row.get("ITERATION_CODE", "*")
    level = f"{row['REGION_TYPE'].lower()}_{next(group for group, codes in CODES.items() if code in codes)}"
    budget = Fraction(config.budget(source, level))
    tau = config.taus.get(source)
    summed = 2 if table == "PH8_num" and row["PH8_NUM_DATA_CELL"] == "2" else 1
    if config.definition == "zcdp":
        squared = (2 if tight else 4) if tau is None else (2 * tau**2 if tight else (2 * tau + 2) ** 2)
        return summed, squared / (2 * budget)
    distance = 2 if tau is None else (2 * tau if tight else 2 * tau + 2)
    return summed, distance / budget


def expected_variance(config: Config, table: str, row: dict[str, str], *, tight: bool) -> Fraction | Decimal:
    summed, noise = expected_noise(config, table, row, tight=tight)
    if config.definition == "zcdp":
        return summed * noise
    with localcontext() as context:
        context.prec = 60
        ratio = (-Decimal(noise.denominator) / noise.numerator).exp()
        return summed * 2 * ratio / (1 - ratio) ** 2


@cache
def expected_margin(definition: str, summed: int, noise: Fraction, level: float) -> int:
    """The smallest m with P(|sum of draws| <= m) >= level, by adding up probabilities."""
    # Beyond 12 sigma, or 40 scales, there is less than 1e-17 of the law. Its values go round a circle.
    reach = math.ceil(12 * math.sqrt(noise) if definition == "zcdp" else 40 * noise)
    length = next_fast_len(2 * reach + 1)
    k = np.minimum(np.arange(length), np.arange(length)[::-1] + 1)
    law = np.exp(-(k**2) / (2 * float(noise))) if definition == "zcdp" else np.exp(-k / float(noise))
    sums = np.fft.irfft(np.fft.rfft(law / law.sum()) ** summed, length)
    coverage = sums[0] + 2 * np.concatenate([[0.0], np.cumsum(sums[1 : reach + 1])])
    return int(np.searchsorted(coverage, level))


Release: TypeAlias = tuple[Config, Path, dict[str, list[dict[str, str]]]]


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory, one_census: Census) -> Path:
    folder = tmp_path_factory.mktemp("census") / "data"
    write_csv(folder, one_census)
    return folder


@pytest.fixture(scope="module")
def of_2020(data: Path) -> Release:
    """The plan of 2020, the first seed."""
    config = Config(STATES, TAUS_2020, budgets=BUDGETS_2020)
    out = data.parent / "of_2020"
    return config, out, run(config.write(data.parent / "config.json"), data, out, "--seed", "1")


@pytest.fixture(scope="module")
def pure(data: Path) -> Release:
    budgets = BUDGETS_2020 | {("PH7", "state_*"): "3/7", ("PH1_denom", "usa_*"): "2.75"}
    config = Config(STATES, TAUS_2020, definition="puredp", budgets=budgets)
    out = data.parent / "pure"
    return config, out, run(config.write(data.parent / "pure.json"), data, out, "--seed", "1")


@pytest.mark.slow
def test_variance_and_margin_are_those_of_the_formulas(tmp_path: Path, data: Path, pure: Release) -> None:
    config, _, tables = pure
    assert_formulas(config, tables, tight=False)
    config = replace(config, definition="zcdp")
    options = ("--sensitivity", "tight", "--seed", "1")
    tables = run(config.write(tmp_path / "config.json"), data, tmp_path / "out", *options)
    assert_formulas(config, tables, tight=True)


def assert_formulas(config: Config, tables: dict[str, list[dict[str, str]]], *, tight: bool) -> None:
    definition = config.definition
    for table, rows in tables.items():
        for row in rows:
            variance = float(expected_variance(config, table, row, tight=tight))
            noise_of_row = expected_noise(config, table, row, tight=tight)
            assert float(row["VARIANCE"]) == pytest.approx(variance, rel=0 if definition == "zcdp" else 1e-9, abs=0)
            assert row["MOE"] == str(expected_margin(definition, *noise_of_row, 0.9))
            noise = {"zcdp": "Discrete Gaussian", "puredp": "Two-Sided Geometric"}[definition]
            assert row["NOISE_DISTRIBUTION"] == noise


@pytest.mark.thorough
def test_margins_of_the_bureau_are_z_sigma_and_named_in_the_manifest(
    tmp_path: Path, data: Path, of_2020: Release
) -> None:
    config, exact_margins, tables = of_2020
    path, bureau = config.write(tmp_path / "config.json"), tmp_path / "bureau"
    of_bureau = run(path, data, bureau, "--margins", "bureau", "--seed", "2")
    for margins, out, of in (("bureau", bureau, of_bureau), ("exact", exact_margins, tables)):
        z_sigma = [
            float(row["MOE"]) == pytest.approx(1.645 * math.sqrt(float(row["VARIANCE"])), rel=1e-12)
            for rows in of.values()
            for row in rows
        ]
        assert all(z_sigma) if margins == "bureau" else not any(z_sigma)
        assert json.loads((out / "manifest.json").read_text())["plan"]["margins"] == margins
        assert main(["check", str(out)]) == 0
    # Another seed makes other counts.
    assert counts_of(bureau) != counts_of(exact_margins)
    # Without the key nobody knows what a margin is.
    path = bureau / "manifest.json"
    manifest = json.loads(path.read_text())
    del manifest["plan"]["margins"]
    path.write_text(json.dumps(manifest))
    assert main(["check", str(bureau)]) == 2
    path = shutil.copytree(exact_margins, tmp_path / "exact") / "manifest.json"
    path.write_text(path.read_text().replace('"margins": "exact"', '"margins": "bureau"'))
    assert main(["check", str(tmp_path / "exact")]) == 2


@pytest.mark.thorough
def test_known_variances_of_the_2020_run(of_2020: Release) -> None:
    _, _, tables = of_2020
    found = {
        (table, row["REGION_TYPE"], row.get("ITERATION_CODE", "*")): round(float(row["VARIANCE"]), 6)
        for table, rows in tables.items()
        for row in rows
        if table != "PH8_num"
    }
    assert found["PH1_num", "USA", "A"] == 92401.680031
    assert found["PH4", "STATE", "H"] == 14782.236882
    assert found["PH5_num", "STATE", "G"] == 1708.774061
    assert found["PH3", "STATE", "B"] == 147.818322
    assert found["PH6", "USA", "*"] == 92365.692743
    assert found["PH1_denom", "USA", "*"] == 90909.090909
    assert found["PH8_denom", "STATE", "I"] == 14814.814815


@pytest.mark.thorough
def test_columns_and_numbers_of_rows(of_2020: Release) -> None:
    _, out, tables = of_2020
    assert {table: len(rows) for table, rows in tables.items()} == {t: 5 * rows for t, rows in ROWS_PER_REGION.items()}
    for table in tables:
        iteration = [] if table in {"PH2", "PH6"} else ["ITERATION_CODE"]
        header = ["REGION_ID", "REGION_TYPE", *iteration, f"{table.upper()}_DATA_CELL", "COUNT", "NOISE_DISTRIBUTION"]
        assert (out / f"{table}.csv").read_text().splitlines()[0] == "|".join([*header, "VARIANCE", "MOE"])
    assert {path.name for path in out.iterdir()} == {
        *(f"{table}.csv" for table in tables),
        "manifest.json",
        "datapackage.json",
        "codebook.md",
    }


@pytest.mark.slow
def test_parquet_tables_of_the_same_seed_hold_what_csv_tables_hold(
    tmp_path: Path, data: Path, of_2020: Release
) -> None:
    config, _, tables = of_2020
    path = config.write(tmp_path / "config.json")
    assert run(path, data, tmp_path / "parquet", "--seed", "1", "--format", "parquet") == {}
    with duckdb.connect() as db:
        for table, rows in tables.items():
            found = db.execute("FROM read_parquet(?)", [str(tmp_path / "parquet" / f"{table}.parquet")]).fetchall()
            expected = [tuple(row.values()) for row in rows]
            numbers = [(*row[:-2], float(row[-2]), float(row[-1])) for row in expected]
            assert [(*map(str, row[:-2]), row[-2], row[-1]) for row in found] == numbers


def noise_of(noisy: dict[str, dict[Row, int]], truth: dict[str, dict[Row, int]]) -> dict[str, dict[Row, int]]:
    assert noisy.keys() == truth.keys()
    return {t: {row: noisy[t][row] - count for row, count in rows.items()} for t, rows in truth.items()}


@pytest.mark.parametrize(("release", "fourth_moment"), [("of_2020", 3), ("pure", 6)])
@pytest.mark.slow
def test_noise_has_the_variance_it_says(
    one_census: Census, release: str, fourth_moment: int, request: pytest.FixtureRequest
) -> None:
    config, out, tables = request.getfixturevalue(release)
    noise = noise_of(counts_of(out), tabulated(one_census, config))
    by_level: defaultdict[tuple[str, str, str], list[float]] = defaultdict(list)
    for table in SPECS:
        for row in tables[table]:
            z = noise[table][row_of(table, row)] / math.sqrt(float(row["VARIANCE"]))
            by_level[table, row["REGION_TYPE"], ""].append(z)
            by_level["", row["REGION_TYPE"], row.get("ITERATION_CODE", "*")].append(z)
            by_level["", "", ""].append(z)
    assert len(by_level["", "", ""]) == 5 * 204
    for level, drawn in by_level.items():
        n = len(drawn)
        assert abs(sum(drawn)) < 4.5 * math.sqrt(n), level
        squares = sum(z * z for z in drawn)
        # A sum of n squares has variance n (kurtosis - 1); its upper tail is longer than a normal law's.
        assert abs(squares - n) < 5 * math.sqrt((fourth_moment - 1) * n) + 10, level


@pytest.mark.thorough
def test_derived_tables_repeat_the_noisy_counts_of_their_sources(of_2020: Release) -> None:
    noisy = counts_of(of_2020[1])
    assert derived(noisy) == {table: noisy[table] for table in ("PH5_num", "PH8_num")}


@pytest.mark.slow
def test_no_draw_is_used_twice(tmp_path: Path, one_census: Census, data: Path) -> None:
    config = Config(STATES, TAUS_2020, budgets=dict.fromkeys(BUDGETS_2020, "1e-9"))
    run(config.write(tmp_path / "config.json"), data, tmp_path / "out", "--seed", "6")
    noise = noise_of(counts_of(tmp_path / "out"), tabulated(one_census, config))
    drawn = [value for table in SPECS for value in noise[table].values()]
    # Sigmas of 45,000 and more: among 920 draws two are equal now and then, in absolute value, too, but not often.
    assert len({abs(value) for value in drawn}) > len(drawn) - 30


@pytest.mark.slow
def test_no_seed_repeats_nothing(tmp_path: Path, data: Path, of_2020: Release) -> None:
    budgets = dict.fromkeys(BUDGETS_2020, "0") | {("PH6", "usa_*"): "0.000001", ("PH6", "state_*"): "0.000001"}
    config = Config(STATES, TAUS_2020, budgets=budgets).write(tmp_path / "config.json")
    first, second = (run(config, data, tmp_path / name) for name in ("a", "b"))
    assert first != second
    for out, status in ((of_2020[1], "NOT FOR RELEASE"), (tmp_path / "a", "noisy measurements under the plan")):
        assert json.loads((out / "manifest.json").read_text())["status"] == status


@pytest.mark.parametrize("verb", [("exact",), ("run", "--seed", "1"), ("accuracy",)])
def test_without_the_mark_nothing_exact_or_seeded_is_made(
    tmp_path: Path, one_census: Census, capsys: pytest.CaptureFixture[str], verb: tuple[str, ...]
) -> None:
    config = Config(STATES).write(tmp_path / "config.json")
    write_csv(tmp_path / "data", one_census)
    (tmp_path / "data" / "SYNTHETIC").unlink()
    before = sorted(tmp_path.iterdir())
    assert main(["phsafe", verb[0], str(config), str(tmp_path / "data"), str(tmp_path / "out"), *verb[1:]]) == 2
    assert "SYNTHETIC" in capsys.readouterr().err
    assert sorted(tmp_path.iterdir()) == before


@pytest.mark.slow
def test_an_infinite_budget_means_no_noise(tmp_path: Path, one_census: Census) -> None:
    config = Config(STATES, budgets={("PH2", "state_*"): "Infinity"})
    write_csv(tmp_path / "data", one_census)
    tables = run(config.write(tmp_path / "config.json"), tmp_path / "data", tmp_path / "out")
    truth = tabulated(one_census, config)["PH2"]
    for row in tables["PH2"]:
        if row["REGION_TYPE"] == "STATE":
            assert int(row["COUNT"]) == truth[row_of("PH2", row)]
            assert float(row["VARIANCE"]) == 0
    assert json.loads((tmp_path / "out" / "manifest.json").read_text())["status"] == "NOT FOR RELEASE"
