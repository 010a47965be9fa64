"""Detail that totals of another release decide: which groups are measured how finely, and which totals are taken."""

import csv
import json
import random
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

import yupana
from yupana.errors import YupanaError
from yupana.products.described import published
from yupana.products.described.description import Description
from yupana.release.tables import checksum

Person = tuple[str, str, str]


def document(**detail: object) -> dict[str, Any]:
    """People by sex, in regions and by overlapping kinds; with ``detail``, totals alone without."""
    table: dict[str, Any] = {"counts": "people", "budget": {"kinds": "4"}}
    if detail:
        table |= {"by": ["people.sex"], "margins": {"all": []}, "detail": detail}
    else:
        table["cells"] = {"total": {}}
    return {
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
        "areas": {"region": {"column": "people.region"}},
        "groups": {"x": {"where": {"people.kind": "x"}}, "xy": {"where": {"people.kind": ["x", "y"]}}},
        "levels": {"kinds": {"areas": "region", "groups": ["x", "xy"]}},
        "tables": {"sexes" if detail else "totals": table},
    }


BY_SIZE = document(published=True, steps=[["all"], ["sexes", "all"]], thresholds=[20])


@pytest.fixture
def people() -> list[Person]:
    rng = random.Random(5)  # noqa: S311 (no noise)
    return [(rng.choices("abc", (6, 3, 1))[0], rng.choice("12"), rng.choice("xy")) for _ in range(90)]


def save(folder: Path, persons: list[Person], *, synthetic: bool) -> Path:
    folder.mkdir()
    if synthetic:
        (folder / "SYNTHETIC").touch()
    lines = ["region|sex|kind", *("|".join(person) for person in persons)]
    (folder / "people.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return folder


def read(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file, delimiter="|"))


def write(path: Path, rows: list[dict[str, str]]) -> None:
    lines = ["|".join(rows[0]), *("|".join(row.values()) for row in rows)]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


@pytest.fixture
def real(tmp_path: Path, people: list[Person]) -> Path:
    """Records that may be real."""
    return save(tmp_path / "real", people, synthetic=False)


@pytest.fixture
def totals(tmp_path: Path, real: Path) -> Path:
    """A released table of totals."""
    yupana.run("tables", document(), real, tmp_path / "released")
    return tmp_path / "released" / "totals.csv"


def test_published_totals_decide_what_is_measured(tmp_path: Path, people: list[Person]) -> None:
    data = save(tmp_path / "data", people, synthetic=True)
    sizes = {("a", "x"): "19", ("a", "xy"): "20", ("b", "x"): "X", ("b", "xy"): "-3", ("c", "xy"): "1000"}
    rows = [
        {"REGION_ID": area, "REGION_TYPE": "region", "ITERATION_CODE": code, "COUNT": size}
        for (area, code), size in {**sizes, ("q", "x"): "7"}.items()
    ]
    (tmp_path / "published").mkdir()
    write(tmp_path / "published" / "sizes.csv", rows)
    out = tmp_path / "out"
    yupana.exact("tables", BY_SIZE, data, out, totals=tmp_path / "published" / "sizes.csv")
    due: dict[str, Counter[tuple[str, ...]]] = {"all": Counter(), "sexes": Counter()}
    for (area, code), size in sizes.items():
        if size != "X":
            inside = [p for p in people if p[0] == area and p[2] in code]
            due["all"][area, code, "total", str(len(inside))] += 1
            if int(size) >= 20:
                due["sexes"].update((area, code, sex, str(sum(p[1] == sex for p in inside))) for sex in "12")
    for name, column in (("all", "CELL"), ("sexes", "sex")):
        found = Counter((r["REGION_ID"], r["ITERATION_CODE"], r[column], r["COUNT"]) for r in read(out / f"{name}.csv"))
        assert found == due[name]
    manifest = json.loads((out / "manifest.json").read_text(encoding="utf-8"))
    assert any("there is no manifest.json beside it" in reason for reason in manifest["reasons"])
    assert manifest["public_inputs"] == {"sizes.csv": checksum(tmp_path / "published" / "sizes.csv")}


@pytest.mark.thorough
def test_totals_of_a_release_are_taken_and_named(tmp_path: Path, real: Path, totals: Path) -> None:
    out = tmp_path / "out"
    release = yupana.run("tables", BY_SIZE, real, out, totals=totals)
    assert yupana.check(out)
    assert release.manifest["status"] == "noisy measurements under the plan"
    told = release.manifest["parameters"]["totals"]
    assert (told["file"], told["totals"]["rho"]) == ("totals.csv", "4")
    assert any("another release has published" in line for line in release.manifest["taken_as_public"])
    # All of the budget is spent on the cells.
    assert release.manifest["plan"]["totals"]["rho"] == "4"
    assert [m["name"] for m in release.manifest["plan"]["measurements"]] == ["sexes/kinds"]


@pytest.mark.slow
def test_totals_that_may_not_be_public_are_refused_of_real_records(
    tmp_path: Path, people: list[Person], real: Path, totals: Path
) -> None:
    def refused(path: Path, said: str) -> None:
        with pytest.raises(YupanaError, match=said):
            yupana.run("tables", BY_SIZE, real, tmp_path / "out", totals=path)
        assert not (tmp_path / "out").exists()

    alone = tmp_path / "alone.csv"
    alone.write_bytes(totals.read_bytes())
    refused(alone, "there is no manifest.json beside it")
    synthetic = save(tmp_path / "synthetic", people, synthetic=True)
    yupana.run("tables", document(), synthetic, tmp_path / "seeded", seed=1)
    refused(tmp_path / "seeded" / "totals.csv", "does not call it released")
    yupana.exact("tables", document(), synthetic, tmp_path / "exact")
    refused(tmp_path / "exact" / "totals.csv", "does not call it released")
    yupana.exact("tables", document(), real, tmp_path / "internal", internal=True)
    refused(tmp_path / "internal" / "totals.csv", "CONFIDENTIAL")
    rows = read(totals)
    rows[0]["COUNT"] = str(int(rows[0]["COUNT"]) + 1)
    write(totals, rows)
    refused(totals, "was changed after it was written")
    # A manifest that was changed, too, must still agree with its own plan.
    rows[0]["VARIANCE"] = "0.5"
    write(totals, rows)
    manifest = json.loads((totals.parent / "manifest.json").read_text(encoding="utf-8"))
    manifest["tables"]["totals.csv"]["sha256"] = checksum(totals)
    (totals.parent / "manifest.json").write_text(json.dumps(manifest), encoding="utf-8")
    refused(totals, "does not hold together")


BAD = {
    "no count": ([{"REGION_ID": "a", "REGION_TYPE": "region", "ITERATION_CODE": "x"}], "column COUNT is missing"),
    "no code": ([{"REGION_ID": "a", "REGION_TYPE": "region", "COUNT": "1"}], "column ITERATION_CODE is missing"),
    "twice": (
        [{"REGION_ID": "a", "REGION_TYPE": "region", "ITERATION_CODE": "x", "COUNT": str(n)} for n in (1, 2)],
        "a group stands in more than one row",
    ),
    "no number": (
        [{"REGION_ID": "a", "REGION_TYPE": "region", "ITERATION_CODE": "x", "COUNT": "many"}],
        "COUNT must be a whole number",
    ),
    "of other areas": (
        [{"REGION_ID": "a", "REGION_TYPE": "county", "ITERATION_CODE": "x", "COUNT": "1"}],
        "lists no group of level kinds",
    ),
}


@pytest.mark.parametrize("bad", BAD)
def test_what_is_no_table_of_totals_is_refused(tmp_path: Path, people: list[Person], bad: str) -> None:
    rows, said = BAD[bad]
    data = save(tmp_path / "data", people, synthetic=True)
    write(tmp_path / "totals.csv", rows)
    with pytest.raises(YupanaError, match=said):
        yupana.run("tables", BY_SIZE, data, tmp_path / "out", totals=tmp_path / "totals.csv")


def test_totals_are_wanted_exactly_where_they_decide(tmp_path: Path, real: Path, totals: Path) -> None:
    with pytest.raises(YupanaError, match="the detail of sexes needs published totals; name a table with --totals"):
        yupana.run("tables", BY_SIZE, real, tmp_path / "out")
    with pytest.raises(YupanaError, match="is a folder; name the table in it that has the totals"):
        yupana.run("tables", BY_SIZE, real, tmp_path / "out", totals=totals.parent)
    with pytest.raises(YupanaError, match="no detail of people is decided by published totals"):
        yupana.run("tables", document(), real, tmp_path / "out", totals=totals)
    with pytest.raises(YupanaError, match="or published = true for totals of another release"):
        yupana.plan("tables", document(steps=[["all"], ["sexes"]], thresholds=[20]))
    with pytest.raises(YupanaError, match="or published = true for totals of another release"):
        yupana.plan("tables", document(share=0.1, published=True, steps=[["all"], ["sexes"]], thresholds=[20]))
    with pytest.raises(YupanaError, match="coarsest goes with share alone"):
        yupana.plan("tables", document(published=True, coarsest=["x"], steps=[["all"], ["sexes"]], thresholds=[20]))
    assert not yupana.validate("tables", BY_SIZE, real)


@pytest.mark.slow
def test_totals_that_change_while_they_are_read_are_refused(
    tmp_path: Path, real: Path, totals: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read_as_they_were = published._read

    def change(description: Description, path: Path) -> dict[str, published.PublishedGroups]:
        found = read_as_they_were(description, path)
        path.write_text(path.read_text(encoding="utf-8") + "\n", encoding="utf-8")
        return found

    monkeypatch.setattr(published, "_read", change)
    with pytest.raises(YupanaError, match="was changed while it was read"):
        yupana.run("tables", BY_SIZE, real, tmp_path / "out", totals=totals)
    assert not (tmp_path / "out").exists()


def test_totals_that_would_be_replaced_are_refused(real: Path, totals: Path) -> None:
    kept = totals.read_bytes()
    with pytest.raises(YupanaError, match="would go with what is replaced there"):
        yupana.run("tables", BY_SIZE, real, totals.parent, totals=totals, overwrite=True)
    assert totals.read_bytes() == kept
