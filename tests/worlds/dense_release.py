"""The least squares of a written release of two attributes by one dense system over the cells of its blocks."""

import csv
from pathlib import Path

import numpy as np
from topdown_worlds import LEVELS


def read(path: Path) -> list[dict[str, str]]:
    with path.open() as file:
        return list(csv.DictReader(file, delimiter="|"))


def dense(
    out: Path, noisy: Path, shape: tuple[int, int], *, joint: bool = False
) -> tuple[dict[tuple[str, str], np.ndarray], np.ndarray, np.ndarray, list[str]]:
    """Estimate all block cells by one dense system: the blocks of each unit, estimates and covariance.

    With ``joint`` the totals of states are known whatever units of the spine hold their blocks.
    """
    blocks = read(out / "spine/blocks.csv")
    names = [row["block"] for row in blocks]
    inside = {}
    for row in blocks:
        for level in LEVELS:
            inside.setdefault((level, row[level]), np.zeros(len(names)))[names.index(row["block"])] = 1.0
    rows, values, weights = [], [], []
    for path in sorted(noisy.glob("*/*.csv")):
        for row in read(path):
            cells = np.ones(shape)
            for axis in range(2):
                if f"a{axis}" in row:
                    only = np.zeros(shape[axis])
                    only[int(row[f"a{axis}"])] = 1.0
                    cells = cells * (only[:, None] if axis == 0 else only)
            rows.append(np.kron(inside[path.parent.name, row["geounit"]], cells.reshape(-1)))
            values.append(float(row["value"]))
            weights.append(1 / float(row["variance"]))
    states = {
        unit: {n[:2] for n, i in zip(names, flags, strict=True) if i}
        for (level, unit), flags in inside.items()
        if level == "State"
    }
    whole = len({state for of_unit in states.values() for state in of_unit}) == len(states)
    exact, totals = [], []
    for state in sorted({name[:2] for name in names}) if joint else ():
        exact.append(np.kron([float(name.startswith(state)) for name in names], np.ones(shape[0] * shape[1])))
        totals.append(sum(int(r["count"]) for r in read(out / "tabulation/state.csv") if r["geounit"] == state))
    for level in () if joint else ("State",) if whole else ("US",):
        for unit in (unit for at, unit in inside if at == level):
            exact.append(np.kron(inside[level, unit], np.ones(shape[0] * shape[1])))
            totals.append(sum(int(row["count"]) for row in read(out / f"counts/{level}.csv") if row["geounit"] == unit))
    a, c, w = np.array(rows), np.array(exact), np.array(weights)
    normal = (a * w[:, None]).T @ a
    system = np.block([[normal, c.T], [c, np.zeros((len(c), len(c)))]])
    inverse = np.linalg.inv(system)
    solved = inverse @ np.concatenate([a.T @ (w * np.array(values)), totals])
    return inside, solved[: a.shape[1]], inverse[: a.shape[1], : a.shape[1]], names
