"""Names of any script: what may be one, what is the same in Unicode, and what they name in a whole run."""

import csv
import json
import re
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from unicodedata import category, combining, decomposition, normalize

import duckdb
import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

import yupana
from yupana.cli.main import main
from yupana.errors import ConfigError, InputError, is_line
from yupana.files.database import write_query
from yupana.files.document import keys_of, read_document
from yupana.files.names import LONGEST, fault_of, file_of, folded, normal

SCRIPTS = (
    *("Región", "سن الشخص", "जनसंख्या", "人口", "Ελλάδα", "Größe", "שם מלא", "ශ්\u200dරී ලංකා", "خانه\u200cها", "Ấp"),
    *("Age.group", "group/sex", "Q1: sí", "Côte d'Ivoire", "¿Edad?", "a, b = c [%]", "2020", "🏠 home", "👩\u200d👧"),
)
ALPHABET = "aZ09_-. ,=[]%'()/:*+^@~#éÎßшسनाि्क्षค้ำ人口한글İıſ🏠\u0301\u0323\u200d\u200c"

names = st.text(ALPHABET, min_size=1, max_size=12).map(normal).filter(lambda one: not fault_of(one, parted=False))
parted = names.filter(lambda one: not fault_of(one))
codes = names.filter(lambda one: one != "*")  # of groups, where it is everyone


def described(file: str, column: str, recode: str, table: str, area: str, level: str, code: str) -> dict[str, object]:
    """A description in which everything has a name of its own."""
    return {
        "name": "names",
        "unit": file,
        "files": {file: {"columns": {column: {"codes": [code, "other"]}, f"{column} 2": {"whole": [0, 3]}}}},
        "recodes": {recode: {"column": f"{file}.{column} 2", "classes": {code: "0-1", "more": "2-3"}}},
        "areas": {area: {"code": "XX"}, f"{area} 2": {"column": f"{file}.{column}"}},
        "groups": {code: {"where": {recode: code}}},
        "levels": {level: {"areas": area, "groups": [code]}},
        "tables": {
            table: {
                "counts": file,
                "by": [f"{file}.{column}", recode],
                "margins": {f"{table} 2": [column]},
                "budget": dict.fromkeys((area, f"{area} 2", level), "1"),
            }
        },
    }


def write(folder: Path, file: str, columns: Mapping[str, list[object]], form: str) -> None:
    """Records as text or Parquet, and the mark of nobody's records."""
    folder.mkdir()
    (folder / "SYNTHETIC").touch()
    rows = [list(columns), *map(list, zip(*columns.values(), strict=True))]
    if form == "csv":
        with (folder / f"{file}.csv").open("w", encoding="utf-8", newline="") as to:
            csv.writer(to).writerows(rows)
        return
    with duckdb.connect() as db:
        kinds = ", ".join(
            f'"{name}" {"INTEGER" if isinstance(of[0], int) else "VARCHAR"}' for name, of in columns.items()
        )
        db.execute(f"CREATE TABLE rows ({kinds})")
        db.executemany(f"INSERT INTO rows VALUES ({', '.join('?' * len(columns))})", rows[1:])
        write_query(db, "FROM rows", folder / f"{file}.parquet")


def lived(folder: Path, given: Mapping[str, str], *, form: str = "csv", disk: str = "NFC") -> None:
    """A description, its plan, a run, the check, tables by name, an interval and a page of one set of names."""
    document = described(**given)
    code, file, column, table = (given[name] for name in ("code", "file", "column", "table"))
    yupana.plan("tables", document)
    records = {column: [code, "other", code], f"{column} 2": [0, 1, 3]}
    put = partial(normalize, disk)
    written = {put(name): [put(v) if isinstance(v, str) else v for v in of] for name, of in records.items()}
    write(folder / "data", put(file), written, form)
    release = yupana.run("tables", document, folder / "data", folder / "out", seed=1)
    assert yupana.check(folder / "out").wrong == ()
    assert release.tables == (table, f"{table} 2")
    assert {f"{file_of(name)}.csv" for name in release.tables} == set(release.manifest["tables"])
    shown, recode, area = release[normalize("NFD", table)], given["recode"], given["area"]
    assert shown.columns[3:5] == (column, recode)
    query = f'"{table}"[REGION_TYPE="{area}", ITERATION_CODE=*, "{column}"="{code}", "{recode}"=more]'
    (one,) = yupana.interval(release, normalize("NFD", query)).intervals
    keys = zip(*(shown[name] for name in ("REGION_TYPE", "ITERATION_CODE", column, recode, "COUNT")), strict=True)
    assert [row[-1] for row in keys if row[:4] == (area, "*", code, "more")] == [one.estimate]
    package = json.loads((folder / "out" / "datapackage.json").read_text(encoding="utf-8"))
    resources = [resource["name"] for resource in package["resources"]]
    assert len(set(resources)) == len(resources)
    assert all(re.fullmatch("[a-z0-9._-]+", name) for name in resources)
    page = yupana.report(release, folder / "page.html").read_text(encoding="utf-8")
    assert json.dumps(table, ensure_ascii=False).replace("<", "\\u003c") in page


KEYS = ("file", "column", "recode", "table", "area", "level", "code")


@pytest.mark.sampled(1)
@pytest.mark.parametrize(("shift", "form", "disk"), [(2, "parquet", "NFD"), (8, "csv", "NFC")])
@pytest.mark.thorough
def test_names_of_any_script_run_through_all(tmp_path: Path, shift: int, form: str, disk: str) -> None:
    free = [SCRIPTS[(shift + place) % len(SCRIPTS)] for place in range(len(KEYS))]
    given = {
        key: re.sub("[./:]", "", name) if key in {"file", "table", "area", "level"} else name
        for key, name in zip(KEYS, free, strict=True)
    }
    lived(tmp_path, given, form=form, disk=disk)


@pytest.mark.thorough
@settings(max_examples=6, deadline=None)
@given(
    st.fixed_dictionaries(
        {key: codes if key == "code" else names if key in {"column", "recode"} else parted for key in KEYS}
    ),
    st.sampled_from(("csv", "parquet")),
    st.sampled_from(("NFC", "NFD")),
)
def test_any_allowed_names_run_through_all(given: dict[str, str], form: str, disk: str) -> None:
    assume(len({folded(name) for name in given.values()}) == len(KEYS))
    with TemporaryDirectory() as folder:
        lived(Path(folder), given, form=form, disk=disk)


# What is a name.


@pytest.mark.parametrize("name", SCRIPTS)
def test_scripts_are_names(name: str) -> None:
    assert not fault_of(normal(name), parted=False)
    assert is_line(name)


@pytest.mark.parametrize(
    ("name", "fault"),
    [
        ("", "has 0 characters, and a name has 1 to 200"),
        ("x" * 10_000, "has 10,000 characters, and a name has 1 to 200"),
        (" a", "begins or ends with a space; take it away"),
        ("a ", "begins or ends with a space; take it away"),
        ("a|b", "holds |; a name is without"),
        ('a"b', 'holds "; a name is without'),
        ("a\\b", "holds \\; a name is without"),
        ("a/b", "holds /; a name is without"),
        ("a.b", "holds .; a name is without"),
        ("a:b", "holds :; a name is without"),
        ("a\nb", "holds U+000A"),
        ("a\0b", "holds U+0000"),
        ("a\u202eb", "holds U+202E (RIGHT-TO-LEFT OVERRIDE)"),
        ("a\u200eb", "holds U+200E (LEFT-TO-RIGHT MARK)"),
        ("a\ufeffb", "holds U+FEFF (ZERO WIDTH NO-BREAK SPACE)"),
        ("a\u200db", "holds U+200D (ZERO WIDTH JOINER)"),
        ("a\u00a0b", "holds U+00A0 (NO-BREAK SPACE)"),
        ("a\u2028b", "holds U+2028 (LINE SEPARATOR)"),
        ("\ue000", "holds U+E000"),
        ("\ud800", "holds U+D800"),
        ("\u0378", "holds U+0378"),
        ("\u0301a", "begins with U+0301 (COMBINING ACUTE ACCENT), which belongs to a letter before it"),
        ("=1+1", "begins with =, which a name does not"),
        ("@a", "begins with @, which a name does not"),
        ("_a", "begins with _, which a name does not"),
    ],
)
def test_what_is_no_name_is_refused_wherever_one_stands(name: str, fault: str) -> None:
    assert fault_of(name).startswith(fault)
    good = dict(zip(KEYS, ("f", "c", "r", "t", "a", "l", "k"), strict=True))
    for key in ("file", "table", "area", "level", "column", "recode"):
        free = {"column", "recode"} & {key} and set(name) & set("./:")
        document = described(**good | {key: name})
        if free:
            yupana.plan("tables", document)
            continue
        with pytest.raises(ConfigError) as error:
            yupana.plan("tables", document)
        assert fault.split("; ", maxsplit=1)[0] in str(error.value), key
        assert len(str(error.value)) < 9_000


def test_a_fault_is_on_the_line_of_its_name(tmp_path: Path) -> None:
    (tmp_path / "a.toml").write_text('name = "x"\nunit = "f"\n[files.f.columns]\n"a|b" = { codes = ["1"] }\n')
    with pytest.raises(ConfigError, match=r"line 4: files.f.columns.a\|b: holds \|"):
        yupana.plan("tables", tmp_path / "a.toml")


def test_a_bare_key_of_another_script_is_explained(tmp_path: Path) -> None:
    for line in ('région = "x"', "[areas.région]", "Age group = 1", "x = { é = 1 }"):
        (tmp_path / "a.toml").write_text(f"{line}\n", encoding="utf-8")
        with pytest.raises(ConfigError, match="stands in quotes"):
            read_document(tmp_path / "a.toml")


def decomposed(text: str) -> str:
    """Canonical decomposition and order by hand, from the tables of characters alone."""
    found: list[str] = []
    rest = list(text)
    while rest:
        one = rest.pop(0)
        parts = decomposition(one)
        place = ord(one) - 0xAC00
        if 0 <= place < 11172:
            tail = [0x11A7 + place % 28] if place % 28 else []
            found += map(chr, (0x1100 + place // 588, 0x1161 + place % 588 // 28, *tail))
        elif parts and not parts.startswith("<"):
            rest[:0] = [chr(int(part, 16)) for part in parts.split()]
        else:
            found.append(one)
    for at in range(len(found)):
        while at and combining(found[at - 1]) > combining(found[at]) > 0:
            found[at - 1], found[at] = found[at], found[at - 1]
            at -= 1  # noqa: PLW2901 (an insertion sort)
    return "".join(found)


@settings(max_examples=100, deadline=None)
@given(st.text("aé\u0301\u0323\u0307\u0328ộ\u1ea1한가\u1100\u1161\u11a8नक़\u093cÅ\u212bs\u017f", max_size=6))
@example("\u212b")
@pytest.mark.thorough
def test_two_texts_have_one_normal_form_if_they_decompose_alike(text: str) -> None:
    assert decomposed(normal(text)) == decomposed(text)
    assert normal(decomposed(text)) == normal(text)
    assert duckdb.execute("SELECT nfc_normalize(?)", [text]).fetchall() == [(normal(text),)]


def test_two_spellings_of_a_key_are_one_key_given_twice(tmp_path: Path) -> None:
    for text, ending in (('[areas]\n"é" = 1\n"e\\u0301" = 2', "toml"), ('{"areas": {"é": 1, "e\\u0301": 2}}', "json")):
        (tmp_path / f"a.{ending}").write_text(text, encoding="utf-8")
        document, faults = read_document(tmp_path / f"a.{ending}")
        assert faults == ["areas: key 'é' is given twice, in two spellings of one text"]
        assert list(document["areas"]) == ["é"]  # type: ignore[index,call-overload]


@pytest.mark.parametrize(
    ("place", "keys"),
    [
        ("a.b", ["a", "b"]),
        ('a."b.c".d', ["a", "b.c", "d"]),
        ("e\u0301", ["é"]),
        ("a..b", ["a", ""]),
        ('a"b', ["a", ""]),
    ],
)
def test_keys_of_a_place(place: str, keys: list[str]) -> None:
    assert keys_of(place) == keys


def test_a_name_with_dots_is_set_in_quotes() -> None:
    good = dict(zip(KEYS, ("f", "Age.group", "r", "t t", "a", "l", "k"), strict=True))
    changes = {'files.f.columns."Age.group".codes': ["k", "other", "third"], "tables.t t.budget.a": "2"}
    plan = yupana.plan("tables", described(**good), set=changes)
    assert {m.name: (m.cells, m.budget) for m in plan.measurements}["t t/a"] == (6, 2)


# Files of tables.


@settings(max_examples=100, deadline=None)
@given(st.text(min_size=1, max_size=LONGEST).map(normal).filter(lambda one: not fault_of(one)))
@pytest.mark.thorough
def test_the_file_of_a_table_is_one_that_disks_hold(table: str) -> None:
    made = file_of(table)
    assert made == normal(made)
    assert 0 < len(made.encode()) <= 150
    assert all(one in "-_" or category(one) == "Nd" or category(one)[0] in "LM" for one in made)
    assert made.isascii() or made != "CON"


@given(st.from_regex("[A-Za-z][A-Za-z0-9_-]{0,62}", fullmatch=True))
def test_names_of_words_are_files_as_they_are(table: str) -> None:
    assert file_of(table) == table
    assert file_of(f"measured/{table}") == f"measured/{table}"


def test_files_by_the_stated_rule() -> None:
    assert file_of("Población por sexo (2024)") == "Población_por_sexo_2024_"
    assert file_of("人口") == "人口"
    assert file_of("خانه\u200cها") == "خانهها"
    assert re.fullmatch("人{46}-[0-9a-f]{10}", file_of("人" * 200))


@pytest.mark.parametrize(("one", "other"), [("Age (0)", "Age 0"), ("Été", "été"), ("🏠", "🚗"), ("a", "A")])
def test_tables_of_one_file_are_refused(one: str, other: str) -> None:
    document = described(**dict(zip(KEYS, ("f", "c", "r", one, "a", "l", "k"), strict=True)))
    told = document["tables"][one]  # type: ignore[index]
    document["tables"] = {one: told, other: {**told, "margins": {}}}
    if file_of(one).lower() == file_of(other).lower():
        with pytest.raises(ConfigError) as error:
            yupana.plan("tables", document)
        assert f"{one} and {other} would have files of one name" in str(error.value)


def test_tables_are_not_called_as_plans_call_totals() -> None:
    with pytest.raises(ConfigError, match="totals of x begins as plans call totals"):
        yupana.plan("tables", described("f", "c", "r", "totals of x", "a", "l", "k"))


# Records.


def test_columns_files_and_frames_that_are_one_name_are_refused(tmp_path: Path) -> None:
    document = described("Île", "é", "r", "t", "a", "l", "k")
    write(tmp_path / "data", "Île", {"é": ["k"], "e\u0301": ["k"], "é 2": [1]}, "csv")
    with pytest.raises(InputError, match="column é is there twice"):
        yupana.run("tables", document, tmp_path / "data", tmp_path / "out", seed=1)
    (tmp_path / "data" / normalize("NFD", "Île.csv")).write_text("é,é 2\n")
    with pytest.raises(InputError, match="two spellings of one name in Unicode"):
        yupana.run("tables", document, tmp_path / "data", tmp_path / "out", seed=1)
    frame = duckdb.sql('SELECT \'k\' AS "é", 1 AS "é 2"').arrow()
    with pytest.raises(InputError, match="there twice, in two spellings"):
        yupana.run("tables", document, {"Île": frame, "I\u0302le": frame}, tmp_path / "out", synthetic=True, seed=1)


def test_a_public_file_is_found_in_either_normal_form(tmp_path: Path) -> None:
    (tmp_path / normalize("NFD", "été.csv")).write_text(normalize("NFD", "clé\né\nother\n"), encoding="utf-8")
    document = described("f", "c", "r", "t", "a", "l", "é")
    document["files"]["f"]["columns"]["c"] = {"codes": {"file": "été.csv", "code": "clé"}}  # type: ignore[index]
    (tmp_path / "a.json").write_text(json.dumps(document), encoding="utf-8")
    assert {m.cells for m in yupana.plan("tables", tmp_path / "a.json").measurements} == {4}


@pytest.mark.thorough
def test_a_map_names_columns_as_their_file_does(tmp_path: Path) -> None:
    written = "¿Cuál es su región? (marque una|solo) " + "x" * 300
    write(tmp_path / "data", "f", {written: ["k", "k"], "n": [0, 3]}, "parquet")
    (tmp_path / "map.json").write_text(json.dumps({"f": {"c": normalize("NFD", written), "c 2": "n"}}))
    document = described("f", "c", "r", "t", "a", "l", "k")
    out = tmp_path / "out"
    yupana.run("tables", document, tmp_path / "data", out, columns=tmp_path / "map.json", seed=1)
    assert yupana.check(out).wrong == ()


@pytest.mark.thorough
def test_count_takes_names_in_any_normal_form(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "SYNTHETIC").touch()
    records = normalize("NFD", '"Região, UF",idade\n"a, b",5\nç,7\n')
    (tmp_path / "people.csv").write_text(records, encoding="utf-8")
    (tmp_path / "keys.csv").write_text('"Região, UF"\n"a, b"\nç\n', encoding="utf-8")
    by = ["--by", normalize("NFD", '"Região, UF",idade:10:0-99'), "--keys", str(tmp_path / "keys.csv")]
    out = tmp_path / "out"
    assert main(["count", str(tmp_path / "people.csv"), *by, "--epsilon", "1", "--totals", "--out", str(out)]) == 0
    assert {"by_Região, UF", "by_idade", "counts", "total"} == set(yupana.open_release(out))
    assert yupana.check(out).wrong == ()
    domain = normalize("NFD", '"Região, UF"=a,ç')
    assert (
        main(
            [
                "count",
                str(tmp_path / "people.csv"),
                "--by",
                '"Região, UF"',
                "--domain",
                domain,
                "--epsilon",
                "1",
                "--dry-run",
            ]
        )
        == 0
    )
    assert "records by Região, UF (2)" in capsys.readouterr().out


def test_count_makes_tables_of_columns_whose_names_no_table_has() -> None:
    domains = {"Age.group": ["1"], "Age/group": ["1"], "Age (group)": ["1"]}
    asked = yupana.count(None, [*domains], domains=domains, epsilon=1, totals=True, dry_run=True)
    assert list(asked.question.document({})["tables"]["counts"]["margins"]) == [
        "by_Age group", "by_Age group_2", "by_Age (group)", "total",
    ]  # fmt: skip
