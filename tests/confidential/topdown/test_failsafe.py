"""The failsafe as `topdown run` comes to it: which parents need it, and what it changes, against an integer program."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from failsafe_worlds import CASES, Case, document_of, world_of
from scipy.optimize import Bounds, LinearConstraint, milp
from topdown_worlds import write_configuration, write_world

from yupana.cli.main import main
from yupana.topdown.descent import descend
from yupana.topdown.descent.divide import Divided, Siblings, Terms, divide_failsafe
from yupana.topdown.node import general
from yupana.topdown.rounding.program import Limit, sum_by


def least_departure(family: Siblings) -> int | None:
    """The least sum over cells of |parent - sum of children| that integer counts permit; None if there are none.

    With the parent's total kept. None of the program's own code is used.
    """
    k, m = family.children, len(family.parent)
    x = k * m
    # Counts, then by cell how far the children exceed the parent and fall short of it.
    rows, low, high = [], [], []

    def add(row: np.ndarray, least: float, most: float) -> None:
        rows.append(row)
        low.append(least)
        high.append(most)

    for cell in range(m):
        row = np.zeros(x + 2 * m)
        row[[child * m + cell for child in range(k)]] = 1
        row[x + cell], row[x + m + cell] = -1, 1
        add(row, family.parent[cell], family.parent[cell])
    everyone = np.zeros(x + 2 * m)
    everyone[:x] = 1
    add(everyone, family.parent.sum(), family.parent.sum())
    sets = [((child,), total) for child, total in enumerate([] if family.totals is None else family.totals)]
    for members, total in (*sets, *family.joint):
        row = np.zeros(x + 2 * m)
        for child in members:
            row[child * m : (child + 1) * m] = 1
        add(row, total, total)
    for limit in family.limits:
        for child, group in np.ndindex(limit.lower.shape):
            row = np.zeros(x + 2 * m)
            row[child * m + np.flatnonzero(limit.labels == group)] = 1
            add(row, limit.lower[child, group], limit.upper[child, group])
    found = milp(
        np.concatenate([np.zeros(x), np.ones(2 * m)]),
        integrality=np.ones(x + 2 * m),
        bounds=Bounds(0, np.inf),
        constraints=LinearConstraint(np.array(rows), np.array(low, dtype=float), np.array(high, dtype=float)),
    )
    return None if found.status == 2 else round(found.fun)


def check(family: Siblings, divided: Divided, *, failing: bool) -> None:
    """What the failsafe promises, or that it was not needed."""
    counts = divided.counts
    assert (counts >= 0).all()
    away = int(np.abs(family.parent - counts.sum(axis=0)).sum())
    least = least_departure(family)
    assert least is not None
    assert (least > 0) == failing
    assert divided.missed == (least if failing else None)
    assert away <= (least + 1 if failing else 0)
    assert counts.sum() == family.parent.sum()
    if family.totals is not None:
        assert (counts.sum(axis=1) == family.totals).all()
    for members, total in family.joint:
        assert counts[list(members)].sum() == total
    for limit in family.limits:
        for group in range(limit.lower.shape[1]):
            persons = counts[:, limit.labels == group].sum(axis=1)
            assert (persons >= limit.lower[:, group]).all()
            assert (persons <= limit.upper[:, group]).all()


@pytest.fixture
def watched(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """Check every parent that a run divides; counts failsafes, and those of each form of the objective."""
    seen: dict[str, Any] = {"parents": 0, "failsafe": [], "split": 0, "dense": 0}

    def watch(divide: Callable[..., Divided], *, failing: bool) -> Callable[..., Divided]:
        def checked(family: Siblings, passes: Any) -> Divided:  # noqa: ANN401
            divided = divide(family, passes)
            check(family, divided, failing=failing)
            seen["parents"] += 1
            seen["failsafe"] += [divided.missed] if failing else []
            return divided

        return checked

    objective = general.objective_of

    def formed(arranged: Any) -> Any:  # noqa: ANN401
        goal = objective(arranged)
        seen["split" if goal.extra else "dense"] += 1
        return goal

    monkeypatch.setattr(descend, "divide", watch(descend.divide, failing=False))
    monkeypatch.setattr(descend, "divide_failsafe", watch(descend.divide_failsafe, failing=True))
    monkeypatch.setattr(general, "objective_of", formed)
    return seen


def run(tmp_path: Path, case: Case, seed: int) -> Path:
    data = write_world(world_of(case, seed), tmp_path / "data", quarters=True)
    config = write_configuration(document_of(case), tmp_path / "config.json")
    out = tmp_path / "out"
    arguments = [str(config), str(data), str(out), "--spine", case.spine, "--estimator", case.estimator]
    assert main(["topdown", "run", *arguments, "--seed", str(seed), "--intervals", "none"]) == 0
    return out


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", CASES)
@pytest.mark.slow
def test_the_failsafe_departs_from_the_parent_as_little_as_can_be(
    tmp_path: Path, watched: dict[str, Any], name: str
) -> None:
    out = run(tmp_path, CASES[name], CASES[name].seed)
    assert main(["check", str(out)]) == 0
    listed = [one["v"] for one in json.loads((out / "manifest.json").read_text())["failsafe"]]
    assert sorted(listed) == sorted(watched["failsafe"])
    assert len(listed) >= 1
    assert watched["parents"] > len(listed)
    assert bool(watched["split"]) == CASES[name].split


@pytest.mark.parametrize("seed", [0, 12, 22, 37])
def test_what_a_pass_holds_makes_no_room_for_later_ones(seed: int) -> None:
    random = np.random.default_rng(seed)
    k, sizes = int(random.integers(2, 5)), (int(random.integers(2, 5)), int(random.integers(1, 4)))
    outer, inner = (labels.reshape(-1).astype(np.int32) for labels in np.indices(sizes))
    each = np.arange(len(outer), dtype=np.int32)
    true = random.integers(0, 5, (k, len(outer))) * (random.random((k, len(outer))) < 0.5)
    persons = true.reshape(k, *sizes).sum(axis=2)
    family = Siblings(
        random.permutation(true.sum(axis=0)),
        k,
        ((np.zeros_like(outer), outer), (None,)),
        (Limit(outer, (persons > 0).astype(np.int64), np.where(persons > 0, 99_999, 0)),),
        true.sum(axis=1),
        (),
    )
    terms = [
        Terms(
            (labels,), (sum_by(true, labels) + random.normal(0, 9, (k, int(labels.max()) + 1)),), np.ones((k, 1)), held
        )
        for labels, held in ((outer, (outer,)), (inner, (inner,)), (each, ()))
    ]
    assert least_departure(family)
    check(family, divide_failsafe(family, [lambda one=one: one for one in terms]), failing=True)
