"""Record files of a description whose columns have other names."""

from pathlib import Path

import pytest

import yupana

DESCRIPTION = {
    "name": "herds",
    "unit": "animals",
    "files": {
        "farms": {"key": "id", "columns": {"kind": {"codes": ["a", "b"]}}},
        "animals": {"parent": {"file": "farms", "column": "farm"}, "columns": {"age": {"whole": [0, 9]}}},
    },
    "areas": {"all": {}},
    "tables": {
        "ages": {
            "counts": "animals",
            "by": ["animals.age", "farms.kind"],
            "limit": {"per": "farms", "most": 3},
            "budget": {"all": "1"},
        }
    },
}
NAMES = {"farms": {"id": "farm_number", "kind": "id"}, "animals": {"age": "farm", "farm": "of"}}


def write(folder: Path, names: dict[str, dict[str, str]], *, kind: str = "a", farm: str = "x") -> Path:
    folder.mkdir()
    (folder / "SYNTHETIC").touch()
    farms, animals = names.get("farms", {}), names.get("animals", {})
    rows = [f"{farms.get('id', 'id')}|{farms.get('kind', 'kind')}", f"x|{kind}", "y|b"]
    (folder / "farms.csv").write_text("\n".join(rows) + "\n", encoding="utf-8")
    rows = [f"{animals.get('farm', 'farm')}|{animals.get('age', 'age')}"]
    rows += [f"{of}|{age}" for age in range(9) for of in (farm, "y")]
    (folder / "animals.csv").write_text("\n".join(rows) + "\n", encoding="utf-8")
    return folder


@pytest.mark.thorough
def test_names_of_columns_change_no_count_and_are_kept(tmp_path: Path) -> None:
    plain = yupana.run("tables", DESCRIPTION, write(tmp_path / "a", {}), tmp_path / "one", seed=1)
    data = write(tmp_path / "b", NAMES)
    named = yupana.run("tables", DESCRIPTION, data, tmp_path / "two", seed=1, columns=NAMES)
    again = yupana.run("tables", tmp_path / "two" / "manifest.json", data, tmp_path / "three", seed=1)
    assert plain.columns("ages") == named.columns("ages") == again.columns("ages")
    assert not yupana.check(named.folder).wrong
    assert "farm_number" in named.manifest["options"]["columns"]


def test_faults_are_told_by_the_names_of_the_files(tmp_path: Path) -> None:
    wrong = write(tmp_path / "a", NAMES, kind="c", farm="z")
    (found,) = {tuple(map(str, yupana.validate("tables", DESCRIPTION, wrong, columns=NAMES)))}
    assert any("id must be a, b" in told for told in found)
    assert any("of is no farm_number of farms" in told for told in found)
    with pytest.raises(yupana.InputError, match="kind"):
        yupana.run("tables", DESCRIPTION, wrong, tmp_path / "out")


@pytest.mark.parametrize(
    ("names", "words"),
    [
        ({"persons": {"QAGE": "age"}}, "'persons' is no record file; there are farms, animals"),
        ({"animals": {"agee": "a"}}, "'agee' is no column; there are farm, age; did you mean age"),
        ({"animals": {"age": "farm"}}, "would be both"),
    ],
)
def test_a_map_must_be_of_the_description(tmp_path: Path, names: dict[str, dict[str, str]], words: str) -> None:
    with pytest.raises(yupana.ConfigError, match=words):
        yupana.run("tables", DESCRIPTION, write(tmp_path / "a", {}), tmp_path / "out", columns=names)
