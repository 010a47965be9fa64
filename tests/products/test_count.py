"""One table of one record file: what is asked, what it costs, and what is counted."""

import csv
from collections import Counter
from fractions import Fraction
from pathlib import Path
from random import Random
from typing import Any

import polars as pl
import pyarrow as pa
import pytest

import yupana
from yupana.products.described.count import CountPlan

BY = "region,age:5:0-17,sex"
REGIONS = ["N", "S", "W"]
Row = tuple[str, str, int, int]
"""Of whom, region, age and sex."""


def rows() -> list[Row]:
    rng = Random(5)  # noqa: S311 (records of nobody)
    return [
        (f"p{rng.randrange(120)}", rng.choice(REGIONS[:2]), rng.randrange(18), rng.choice([1, 2])) for _ in range(300)
    ]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Records as CSV and Parquet, a public list of regions, and the mark that they are nobody's."""
    frame(rows()).write_csv(tmp_path / "people.csv")
    frame(rows()).write_parquet(tmp_path / "people.parquet")
    (tmp_path / "regions.csv").write_text("region,name\nN,North\nS,South\nW,West\nN,North again\n")
    (tmp_path / "SYNTHETIC").touch()
    return tmp_path


def frame(of: list[Row]) -> pl.DataFrame:
    return pl.DataFrame(of, schema=["person", "region", "age", "sex"], orient="row")


def asked(folder: Path, **more: Any) -> dict[str, Any]:  # noqa: ANN401 (any argument)
    return {"by": BY, "keys": folder / "regions.csv", "domains": {"sex": [1, 2]}, "epsilon": 1} | more


def table(path: Path) -> dict[tuple[str, ...], int]:
    with path.open() as file:
        found = csv.DictReader(file, delimiter="|")
        names = [name for name in found.fieldnames or () if name in {"region", "age", "sex", "CELL"}]
        return {tuple(row[name] for name in names): int(row["COUNT"]) for row in found}


def told(**of: Any) -> CountPlan:  # noqa: ANN401 (any argument)
    found = yupana.count(None, dry_run=True, **of)
    assert isinstance(found, CountPlan)
    return found


def refusal(data: Any = None, **of: Any) -> str:  # noqa: ANN401 (any argument)
    with pytest.raises(yupana.YupanaError) as caught:
        yupana.count(data, **of)
    return str(caught.value)


# What it costs.


def test_a_dry_run_reads_nothing_and_tells_cost_error_and_what_is_not_protected(folder: Path) -> None:
    plan = told(**asked(folder, unit="person", max_per_unit=3, totals=True))
    assert plan.cells == 3 * 4 * 2
    (measured,) = plan.plan.measurements
    assert (measured.budget, measured.calibration) == (1, 3)
    words = repr(plan)
    assert "region (3), age (4) and sex (2): 24 cells" in words
    assert "at most 3 records of it count" in words
    assert "epsilon 1; epsilon 2 where one is replaced by another" in words
    assert f"of one cell at most {plan.plan.margin(measured)} with a probability of 90%" in words
    assert f"of the total at most {plan.plan.margin(measured, 24)}" in words
    assert "a person with several values of person" in words
    assert "a ledger adds and limits them" in words
    assert words in plan._repr_html_()
    assert plan.as_json()["sizes"] == {"region": 3, "age": 4, "sex": 2}


def test_epsilon_at_delta_becomes_the_largest_rho_within_it() -> None:
    plan = told(by="age:1:0-9", epsilon="1/2", delta=1e-6).plan
    (measured,) = plan.measurements
    rho = yupana.rho_for_epsilon(0.5, 1e-6)
    assert isinstance(measured.budget, Fraction)
    assert 0 <= rho - measured.budget < 1e-10
    assert yupana.epsilon_tight(float(measured.budget), 1e-6) <= 0.5
    assert told(by="age:1:0-9", rho="1/3").plan.loss() == Fraction(1, 3)


def test_codes_that_would_be_looked_up_are_said_and_not_looked_up() -> None:
    plan = told(by="region,sex", domains={"sex": {"1": "male", "2": "female"}}, keys_public=True, rho=1)
    assert (plan.cells, plan.sizes["region"]) == (None, None)
    assert "the values of region that occur, which you declare to be public" in repr(plan)
    assert "every value of region that occurs, even if in one record" in repr(plan)


def test_the_last_class_may_be_shorter() -> None:
    assert told(by="age:5:0-11", epsilon=1).question.by[0].classes == ["0-4", "5-9", "10-11"]
    assert told(by="age:5:3-8", epsilon=1).question.by[0].classes == ["3-7", "8"]


# What is counted.


@pytest.mark.thorough
def test_csv_parquet_and_frames_give_the_same_release(folder: Path) -> None:
    made = {}
    whole: pa.Table = frame(rows()).to_arrow()
    given: dict[str, tuple[Any, bool]] = {
        "csv": (folder / "people.csv", False),
        "parquet": (str(folder / "people.parquet"), False),
        "polars": (frame(rows()), True),
        "stream": (whole.to_reader(), True),
    }
    for name, (data, synthetic) in given.items():
        release = yupana.count(
            data, **asked(folder, unit="person", totals=True), out=folder / f"{name} out", seed=4, synthetic=synthetic
        )
        assert isinstance(release, yupana.Release)
        made[name] = {path.name: path.read_bytes() for path in release.folder.glob("*.csv")}
        assert not yupana.check(release).wrong
    assert made["csv"].keys() == {"counts.csv", "by_region.csv", "by_age.csv", "by_sex.csv", "total.csv"}
    assert made["csv"] == made["parquet"] == made["polars"] == made["stream"]


@pytest.mark.parametrize("most", [2])
@pytest.mark.thorough
def test_ids_that_are_numbers_in_one_file_and_texts_in_another_keep_the_same_records(folder: Path, most: int) -> None:
    some = frame(rows()).with_columns(person=pl.col("person").str.slice(1).cast(pl.Int32))
    some.write_csv(folder / "numbers.csv")
    made = {}
    for name, data in {"texts": folder / "numbers.csv", "numbers": some}.items():
        of = asked(folder, unit="person", max_per_unit=most, seed=2, out=folder / name)
        release = yupana.count(data, synthetic=not isinstance(data, Path), **of)
        assert isinstance(release, yupana.Release)
        made[name] = (release.folder / "counts.csv").read_bytes()
    assert made["texts"] == made["numbers"]


@pytest.mark.parametrize("most", [2, 50])
@pytest.mark.thorough
def test_counts_are_those_of_a_plain_program(folder: Path, most: int) -> None:
    release = yupana.count(
        folder / "people.csv",
        **asked(folder, unit="person", max_per_unit=most, epsilon=1000, totals=True),
        out=folder / "out",
    )
    assert isinstance(release, yupana.Release)
    found = table(release.folder / "counts.csv")
    assert len(found) == 24
    whole = Counter((region, ("0-4", "5-9", "10-14", "15-17")[age // 5], str(sex)) for _, region, age, sex in rows())
    of_each = Counter(person for person, *_ in rows())
    assert sum(found.values()) == sum(min(number, most) for number in of_each.values())
    assert all(found[cell] <= whole[cell] for cell in found)
    if most == 50:
        assert found == {cell: whole[cell] for cell in found}
    totals = table(release.folder / "by_region.csv")
    assert totals == {(of,): sum(n for (region, *_), n in found.items() if region == of) for of in REGIONS}
    assert table(release.folder / "total.csv") == {("total",): sum(found.values())}


@pytest.mark.slow
def test_codes_that_occur_are_looked_up_and_the_manifest_says_so(folder: Path) -> None:
    release = yupana.count(
        frame(rows()).lazy().collect(), "region,sex", folder / "out", keys_public=True, epsilon=1000, synthetic=True
    )
    assert isinstance(release, yupana.Release)
    assert set(table(release.folder / "counts.csv")) == {(region, sex) for region in "NS" for sex in "12"}
    public = release.manifest["taken_as_public"]
    assert "the values of region that occur in the records, as the user declares" in public
    assert "the values of sex that occur in the records, as the user declares" in public


@pytest.mark.slow
def test_a_stream_that_can_be_read_once_is_enough_to_look_up_and_count(folder: Path) -> None:
    stream = frame(rows()).to_arrow().to_reader()
    release = yupana.count(stream, "region", folder / "out", keys_public=True, unit="person", epsilon=1)
    assert isinstance(release, yupana.Release)
    assert release.manifest["status"] == "noisy measurements under the plan"


@pytest.mark.slow
def test_a_ledger_limits_what_is_spent(folder: Path) -> None:
    ledger = {"ledger": folder / "ledger.json", "dataset": "people", "limit": "3/2"}
    yupana.count(folder / "people.csv", **asked(folder), out=folder / "one", **ledger)
    with pytest.raises(yupana.BudgetError):
        yupana.count(folder / "people.csv", **asked(folder), out=folder / "two", **ledger)
    assert not (folder / "two").exists()


@pytest.mark.slow
def test_the_release_can_be_made_again_from_its_manifest(folder: Path) -> None:
    yupana.count(folder / "people.csv", **asked(folder), out=folder / "one", seed=3)
    manifest = folder / "one" / "manifest.json"
    again = yupana.run("tables", manifest, {"records": frame(rows())}, folder / "two", seed=3, synthetic=True)
    assert (again.folder / "counts.csv").read_bytes() == (folder / "one" / "counts.csv").read_bytes()


# What is refused.


def test_every_fault_of_what_is_asked_is_named_at_once(tmp_path: Path) -> None:
    (tmp_path / "keys.csv").write_text("other\n1\n")
    words = refusal(
        by="region,age:5,sex,SEX,=b,x:0:1-2,y:1:5-2,z:a,COUNT,w:1:0-9999999,_s,u:5:0-9:,v:5:0-9:7,t:5:0-9:1-2",
        unit="sex",
        max_per_unit=0,
        keys=[tmp_path / "keys.csv", tmp_path / "missing.csv", 3],
        domains={"age": ["1"], "region": 5},
        epsilon=0,
        out=tmp_path / "out",
    )
    for text in (
        "by: age:5 has a width without bounds",
        "by: SEX stands twice",
        "by: '=b' begins with =, which a name does not",
        "by: x:0:1-2 has classes of width 0",
        "by: y:1:5-2 has its bounds reversed; write y:1:2-5",
        "by: z:a must be z:WIDTH:LOW-HIGH",
        "by: u:5:0-9: names no text for what is missing",
        "by: v:5:0-9:7 names no text for what is missing",
        "by: t:5:0-9:1-2 names no text for what is missing: no number from 0 to 9, range, | or quote",
        "by: COUNT has a meaning of its own",
        "by: w:1:0-9999999 has more than 1,000,000 values",
        "by: '_s' begins with _, which a name does not",
        "unit: sex is in by, too",
        "max_per_unit: must be a whole number above 0",
        "keys.csv has no column region or sex",
        "missing.csv cannot be read: No such file or directory",
        "keys: must be a file or a list of files, and one is of type int",
        "domains: age is no column of codes in by",
        "domains: region: must be a list of codes",
        "epsilon: must be a number above 0",
    ):
        assert text in words, text


def test_keys_are_read_as_people_have_them(tmp_path: Path) -> None:
    path = tmp_path / "keys.csv"
    for text, found in (
        ("region;name\r\n'1;a\r\n 2 ;b\r\n;\r\n", ["1", "2"]),
        ("1\n2\n", ["1", "2"]),
        ("1E05\nx, y\n", ["1E05", "x, y"]),
    ):
        path.write_text(text, encoding="utf-16")
        assert told(by="region", keys=path, epsilon=1).question.codes == {"region": found}
    for text, said in (
        ("rgion\n1\n", "keys.csv has no column region; it has rgion"),
        ("region,n\n1,5\nTotal,5\n", "keys.csv, line 3 seems to be a row of totals; remove it"),
        ("region,n\n1,5\n3.6E+14,5\n", "keys.csv, line 3, column region: '3.6E+14' is a number that a spreadsheet"),
        ("region,n\n1\n", "keys.csv, line 2: 1 field, but the header names 2 columns"),
        ("region,n\n1,2\n,3\n2,4\n", "keys.csv, line 3, column region: is empty or no code"),
    ):
        path.write_text(text)
        assert said in refusal(by="region", keys=path, epsilon=1, out=tmp_path / "out")
    # The encoding of the records is that of keys, too, unless these are text in UTF-8.
    for encoding in ("utf-8", "latin-1"):
        path.write_text("region\nPará\n", encoding=encoding)
        assert told(by="region", keys=path, epsilon=1, encoding="latin-1").question.codes == {"region": ["Pará"]}
    assert "keys.csv, line 2: not text in UTF-8; name the encoding" in refusal(by="region", keys=path, epsilon=1)


@pytest.mark.parametrize(
    ("of", "text"),
    [
        ({"by": ""}, "by: '' has 0 characters, and a name has 1 to 200"),
        ({"by": []}, "by: must be columns"),
        ({"by": 3}, "by: must be columns"),
        ({}, "region has no list of codes. A code that occurs tells of a record"),
        ({"domains": {"region": []}}, "domains: region: a code is a line of text"),
        ({"domains": {"region": ["1", "1"]}}, "domains: region: a code stands twice"),
        ({"domains": {"region": ["a|b"]}}, "domains: region: a code is a line of text without |"),
        ({"domains": ["1"]}, "domains: must be codes by column"),
        ({"by": "age:1:0-9", "keys_public": True}, "keys_public: every column has its codes already"),
        ({"by": "age:1:0-9", "max_per_unit": 2}, "max_per_unit: needs a unit"),
        ({"by": "age:1:0-9", "max_per_unit": "2"}, "max_per_unit: must be a whole number"),
        ({"by": "age:1:0-9", "unit": "person|id"}, "unit: must be the name of a column, and holds |"),
        ({"by": "age:1:0-9", "unit": "records"}, "unit: a column named records cannot be the unit"),
        ({"by": "a:1:0-999,b:1:0-999"}, "makes 1,000,000 cells, and at most 20,000 are allowed"),
        ({"by": "age:1:0-9", "epsilon": None}, "epsilon: give either epsilon or rho"),
        ({"by": "age:1:0-9", "rho": 1}, "epsilon: give either epsilon or rho"),
        ({"by": "age:1:0-9", "epsilon": None, "rho": 1, "delta": 1e-6}, "delta: goes with epsilon"),
        ({"by": "age:1:0-9", "epsilon": -1}, "epsilon: must be a number above 0"),
        ({"by": "age:1:0-9", "epsilon": "one"}, "epsilon: must be a number above 0"),
        ({"by": "age:1:0-9", "epsilon": "inf"}, "epsilon: must be a number above 0"),
        ({"by": "age:1:0-9", "epsilon": True}, "epsilon: must be a number above 0"),
        ({"by": "age:1:0-9", "delta": 0}, "delta: must"),
        ({"by": "age:1:0-9", "delta": 1}, "delta: must lie strictly between 0 and 1"),
        ({"by": "age:1:0-9"}, "out: name the folder of the release"),
        ({"by": "age:1:0-9", "out": "out"}, "data: give a file or a frame"),
    ],
)
def test_what_is_asked_wrongly_is_refused(of: dict[str, Any], text: str) -> None:
    assert text in refusal(**({"by": "region", "epsilon": 1} | of))


def test_codes_are_given_once(folder: Path) -> None:
    words = refusal(
        folder / "people.csv", **asked(folder, domains={"sex": [1, 2], "region": REGIONS}), out=folder / "out"
    )
    assert "regions.csv has codes of region, which has codes already" in words


@pytest.mark.parametrize("name", ["people.csv", "people.parquet"])
def test_records_are_refused_without_a_value_of_theirs(folder: Path, name: str) -> None:
    words = refusal(folder / name, **asked(folder, by="region,age:5:0-9,sex"), out=folder / "out")
    number = sum(age > 9 for *_, age, _ in rows())
    assert f"{name}: domain: age must be 0 to 9; {number} records" in words
    words = refusal(folder / name, **asked(folder, unit="persons"), out=folder / "out")
    assert f"{name}: columns_present: missing column persons" in words
    assert "did you mean person?" in words
    assert "p17" not in words
    assert not (folder / "out").exists()


def test_columns_that_are_missing_are_told_before_codes_are_looked_up(folder: Path) -> None:
    words = refusal(folder / "people.csv", by="regoin,sx", keys_public=True, epsilon=1, out=folder / "out")
    assert "missing column regoin, sx in the header" in words
    words = refusal(frame(rows()), by="regoin,sex", keys_public=True, epsilon=1, out=folder / "out")
    assert "records: columns_present: missing column regoin in the header" in words


def test_records_without_a_value_are_no_code(folder: Path) -> None:
    some = frame(rows()).with_columns(region=pl.when(pl.col("age") > 16).then(None).otherwise(pl.col("region")))
    words = refusal(some, by="region", keys_public=True, epsilon=1, out=folder / "out")
    assert "records: domain: region must be N, S;" in words
    none = frame(rows()).with_columns(region=pl.lit(None, pl.String))
    words = refusal(none, by="region", keys_public=True, epsilon=1, out=folder / "out")
    assert "keys_public: region has no value at all" in words


def test_codes_that_occur_and_make_too_many_cells_are_refused_before_anything_is_spent(tmp_path: Path) -> None:
    some = pl.DataFrame(
        {"a": [f"{number}" for number in range(201)], "b": [f"{number % 100}" for number in range(201)]}
    )
    paths = {"out": tmp_path / "out", "ledger": tmp_path / "ledger"}
    words = refusal(some, by="a,b", keys_public=True, epsilon=1, synthetic=True, **paths)
    assert "by: makes 20,100 cells, and at most 20,000 are allowed; take wider classes or fewer columns" in words
    assert not any(path.exists() for path in paths.values())


@pytest.mark.slow
def test_a_file_must_be_one_and_a_seed_needs_synthetic_records(folder: Path) -> None:
    out = folder / "out"
    (folder / "people.dat").write_text("sex\n1\n")
    assert "must end in .csv, .txt" in refusal(folder / "people.dat", **asked(folder), out=out)
    assert "gone.csv does not exist" in refusal(folder / "gone.csv", **asked(folder), out=out)
    assert "which is to be read" in refusal(folder / "people.csv", **asked(folder), out=folder)
    assert "which has no __arrow_c_stream__" in refusal(["p17"], **asked(folder), out=out)
    assert "p17" not in refusal(["p17"], **asked(folder), out=out)
    assert "synthetic=True was not said" in refusal(frame(rows()), **asked(folder), out=out, seed=1)
    (folder / "SYNTHETIC").unlink()
    words = refusal(folder / "people.csv", **asked(folder), out=out, seed=1)
    assert f"no file named SYNTHETIC lies beside {folder / 'people.csv'}" in words
    words = refusal(folder / "people.csv", **asked(folder), out=out, synthetic=True)
    assert "a file says so by a file named SYNTHETIC beside it" in words
    assert isinstance(yupana.count(folder / "people.csv", **asked(folder), out=out), yupana.Release)


@pytest.mark.thorough
def test_whole_numbers_may_be_missing(folder: Path) -> None:
    records = [(age if age != 3 else None, sex) for _, _, age, sex in rows()]
    pl.DataFrame(records, schema=["age", "sex"], orient="row").write_csv(folder / "some.csv")
    question = {"by": "age:9:0-17:not said,sex", "domains": {"sex": [1, 2]}, "totals": True}
    assert "age (3) and sex (2): 6 cells" in repr(told(**question, epsilon=1))
    yupana.count(folder / "some.csv", **question, rho=10**5, seed=1, out=folder / "out")
    classes = ["not said" if age is None else "0-8" if age < 9 else "9-17" for age, _ in records]
    due = Counter(zip(classes, (str(sex) for _, sex in records), strict=True))
    assert table(folder / "out" / "counts.csv") == dict(due)
    assert "age must be 0 to 17; " in refusal(folder / "some.csv", by="age:9:0-17", epsilon=1, out=folder / "none")
