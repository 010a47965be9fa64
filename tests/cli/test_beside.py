"""`topdown accuracy --beside`: the errors of several configurations on the same records and seed."""

import json
from pathlib import Path
from types import SimpleNamespace

import pytest

import yupana
from yupana.cli.main import main
from yupana.cli.product_text import counts_text


@pytest.mark.thorough
def test_configurations_are_compared_side_by_side(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    census = tmp_path / "census"
    yupana.synthesize(census, 40, states=["44"], seed=1)
    other = tmp_path / "conventional.json"
    document = yupana.PRODUCTS["topdown"].document(yupana.setup("topdown", "h1-2020-us").config)
    other.write_text(json.dumps(document | {"rho": "1/3", "options": {"spine": "conventional"}}))
    asked = ["topdown", "accuracy", "h1-2020-us", str(census), "--seed", "1"]
    assert main([*asked, "--beside", str(other), "--json"]) == 0
    told = json.loads(capsys.readouterr().out)["configurations"]
    assert [one["config"] for one in told] == ["h1-2020-us", str(other)]
    for one in told:
        assert main(["topdown", "accuracy", one["config"], str(census), "--seed", "1", "--json"]) == 0
        assert json.loads(capsys.readouterr().out)["rows"] == one["rows"]
    assert main([*asked, "--beside", str(other)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[1:3] == ["MAE 1: h1-2020-us", f"MAE 2: {other}"]
    errors = [f"{one['rows'][0]['mae']:.3f}" for one in told]
    assert lines[4].split()[-2:] == errors
    # A spine of another kind has geounits that the first has not.
    assert any(line.split()[-2] == "-" for line in lines[4:]) or any(line.split()[-1] == "-" for line in lines[4:])


@pytest.mark.parametrize(
    ("config", "more", "told"),
    [
        ("h1-2020-us", ["out", "--beside", "h1-2020-us"], "leave out OUT"),
        ("h1-2020-us", ["--beside", "pl94-2020-us-whole"], "not of parts"),
        ("pl94-2020-us-whole", ["--beside", "h1-2020-us"], "not of parts"),
        ("h1-2020-us", ["--beside", "nothing"], "no such file"),
    ],
)
def test_what_cannot_be_compared_is_refused_before_any_record_is_read(
    config: str, more: list[str], told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["topdown", "accuracy", config, "nowhere", *more]) == 2
    assert told in capsys.readouterr().err


def test_a_size_that_all_areas_have_is_told_once() -> None:
    def row(geolevel: str, population: str) -> SimpleNamespace:
        return SimpleNamespace(
            geolevel=geolevel, query="total", population=population, areas=1, mae=1.5, rmse=2.0, bias=0.5
        )

    rows = [row("state", "all"), row("state", "10-99"), row("block", "all"), row("block", "0"), row("block", "1-9")]
    told = list(counts_text(rows))[2:]
    assert [tuple(line.split()[index] for index in (0, 2)) for line in told] == [
        ("state", "all"),
        ("block", "all"),
        ("block", "0"),
        ("block", "1-9"),
    ]
