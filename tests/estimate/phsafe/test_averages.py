"""Averages of a release lie between what a household must have and the tau its persons were truncated at."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from census_maker import Census, Person, Place, Unit, write_csv

from yupana.cli.main import main
from yupana.estimate.phsafe import averages
from yupana.products.phsafe.configuration import production_config
from yupana.release.tables import read_table


def crowds(folder: Path, *, households: int, size: int) -> Path:
    """Families of one size: a householder, siblings of 40 years and nobody else."""
    census = Census([], [], [])
    for mafid in map(str, range(200_000_001, 200_000_001 + households)):
        census.units.append(Unit("2", mafid, str(size), "0", "1", "01", "1", "2", "11", "5"))
        census.geo.append(Place("2", mafid, "06", "001", "400100", "1000", "1", "4", "9", "99999", "9999"))
        census.persons += [Person("3", mafid, "40", "1", "01", "20" if n == 0 else "28") for n in range(size)]
    write_csv(folder, census)
    return folder


def estimated(place: Path, tau: int) -> tuple[dict[str, Any], dict[str, dict[str, list[str]]]]:
    """The manifest of estimates and their tables, from 400 households of 14 persons measured almost without noise."""
    data = crowds(place / "data", households=400, size=14)
    config = production_config()
    config["state_filter"] = ["06"]
    config["tau"] = dict.fromkeys(config["tau"], tau)
    for levels in config["privacy_budget"].values():
        levels.update(dict.fromkeys(levels, 1e5))
    (place / "config.json").write_text(json.dumps(config), encoding="utf-8")
    release, out = str(place / "release"), place / "out"
    assert main(["phsafe", "run", str(place / "config.json"), str(data), release]) == 0
    assert main(["phsafe", "estimate", release, str(out)]) == 0
    manifest = json.loads((out / "manifest.json").read_text(encoding="utf-8"))
    return manifest, {path.stem: read_table(path) for path in out.glob("PH?.csv")}


def line(table: dict[str, list[str]], cell: int) -> tuple[float, float, float]:
    """Estimate, lower and upper end of everyone in the state."""
    keys = zip(table["REGION_TYPE"], table["ITERATION_CODE"], table["DATA_CELL"], strict=True)
    row = list(keys).index(("STATE", "*", str(cell)))
    low, middle, high = (float(table[name][row]) for name in ("LOWER", "ESTIMATE", "UPPER"))
    return low, middle, high


@pytest.mark.sampled(1)
@pytest.mark.parametrize(("tau", "truth"), [(20, 14.0), (14, 14.0), (5, 5.0)])
@pytest.mark.thorough
def test_an_average_may_come_as_near_to_tau_as_the_persons_that_were_counted(
    tmp_path: Path, tau: int, truth: float
) -> None:
    _, tables = estimated(tmp_path, tau)
    for name, cell in (("PH1", 1), ("PH1", 3), ("PH5", 1), ("PH8", 1), ("PH8", 2)):
        low, middle, high = line(tables[name], cell)
        assert low <= middle <= high <= tau
        assert abs(middle - truth) < 0.02, (name, cell)


@pytest.mark.thorough
def test_an_average_that_tau_alone_decides_is_left_out(tmp_path: Path) -> None:
    manifest, tables = estimated(tmp_path, 2)
    assert set(manifest["sources"][0]["left_out"]) == {"PH5"}
    assert "tau 2 of PH4" in manifest["sources"][0]["left_out"]["PH5"]
    assert line(tables["PH1"], 1)[2] <= 2


def test_a_bound_far_away_changes_nothing() -> None:
    some = [np.array(values, dtype=float) for values in ([820.0, 30.0], [9.0, 90.0], [300.0, 12.0], [4.0, 40.0])]
    near, far = (averages.single(*some, (1.0, most), (0.05, 0.95)) for most in (40.0, 99_999.0))
    np.testing.assert_allclose(near.mean[0], far.mean[0], rtol=1e-7)
    np.testing.assert_allclose(near.quantiles[0], far.quantiles[0], rtol=1e-6)


@pytest.mark.thorough
def test_a_release_that_does_not_tell_its_tau_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    estimated(tmp_path, 3)
    manifest = json.loads((tmp_path / "release" / "manifest.json").read_text(encoding="utf-8"))
    del manifest["parameters"]["tau"]["PH4"]
    (tmp_path / "release" / "manifest.json").write_text(json.dumps(manifest), encoding="utf-8")
    assert main(["phsafe", "estimate", str(tmp_path / "release"), str(tmp_path / "again")]) == 2
    assert "parameters.tau.PH4 is missing" in capsys.readouterr().err
