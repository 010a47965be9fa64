"""Every estimator of TopDown makes the same release on every engine, in batches so small that there are many."""

from pathlib import Path

import pytest
from sharded_worlds import made
from topdown_worlds import configuration, make_world, write_configuration, write_world

from yupana.asked import ask
from yupana.engine.engine import Engine
from yupana.topdown import descend

SHAPE = (3, 2, 2)


@pytest.mark.parametrize("estimator", ["topdown", "full-information", "posterior"])
@pytest.mark.parametrize("mechanism", ["zcdp", "pure"])
def test_an_estimator_makes_the_same_release(
    mechanism: str,
    estimator: str,
    session: tuple[str, Engine],
    engine: Engine,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    if (mechanism, estimator) == ("pure", "posterior"):
        pytest.skip("the posterior is refused under pure differential privacy")
    del session
    world = make_world(5, SHAPE, quarters=True)
    for there in world.facilities.values():
        there[SHAPE[0] :] = [0] * (8 - SHAPE[0])
    data = write_world(world, tmp_path / "data", quarters=True)
    document = configuration(SHAPE, rho="2", mechanism=mechanism)
    if mechanism == "pure":
        document["epsilon"] = document.pop("rho")
    case = ask("topdown", write_configuration(document, tmp_path / "config.json"))
    # What is drawn on demand is drawn by batch.
    monkeypatch.setattr(descend, "_VALUES_AT_ONCE", 60)
    monkeypatch.setattr(descend, "_UNITS_OF_A_RUN", 12)
    whole = made(case, data, tmp_path / "whole", None, None, estimator=estimator)
    assert made(case, data, tmp_path / "out", engine, None, estimator=estimator) == whole
