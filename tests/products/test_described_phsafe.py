"""The S-DHC of 2020 as a description: the same tables as PHSafe makes of the Bureau's files, byte by byte."""

from pathlib import Path

import pytest
from census_maker import random_census, seeded, write_csv

import yupana
from yupana.products.phsafe.configuration import production_config

STATES = ("10", "44")


@pytest.fixture(scope="module")
def census(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("made") / "census"
    write_csv(folder, random_census(seeded(8), STATES, 300))
    (folder / "SYNTHETIC").touch()
    return folder


def document() -> dict[str, object]:
    """The built-in, of two states: others would be rows of zeros, as PHSafe has none of a state without homes."""
    product = yupana.PRODUCTS["tables"]
    found = product.document(product.read("s-dhc-2020-us"))
    codes = found["files"]["geo"]["columns"]["TABBLKST"]["codes"]
    found["files"]["geo"]["columns"]["TABBLKST"]["codes"] = {state: codes[state] for state in STATES}
    # So low that many households of this census are above them.
    for table in found["tables"].values():
        if "limit" in table:
            table["limit"]["most"] = 2
            table["stated"] = {"unbounded": 36, "bounded": 72}
    return dict(found)


@pytest.mark.thorough
def test_the_tables_are_those_of_phsafe(census: Path, tmp_path: Path) -> None:
    # In whatever order they are asked for, states are in the order of their codes.
    config = {**production_config(), "state_filter": list(reversed(STATES))}
    config["tau"] = dict.fromkeys(config["tau"], 2)
    own = yupana.run("phsafe", config, census, tmp_path / "own", seed=11)
    described = yupana.run("tables", document(), census, tmp_path / "described", seed=11)
    assert set(own.tables) == set(described.tables)
    for table in own.tables:
        assert described.path(table).read_bytes() == own.path(table).read_bytes()
    assert yupana.check(described).wrong == ()


def test_what_it_loses_is_what_the_paper_promises_and_no_more_than_is_proven_by_hand() -> None:
    described, own = yupana.plan("tables", "s-dhc-2020-us"), yupana.plan("phsafe", "s-dhc-2020-us")
    for m in own.measurements:
        found = described[m.name]
        assert (found.calibration, found.budget, found.cells) == (m.calibration, m.budget, m.cells)
        assert found.sensitivity.unbounded == m.sensitivity.unbounded
        assert found.sensitivity.bounded == m.sensitivity.bounded
        assert found.proven.unbounded <= m.proven.unbounded
        assert found.proven.bounded <= m.proven.bounded
    assert described.loss() == own.loss()
