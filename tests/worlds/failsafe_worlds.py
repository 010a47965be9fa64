"""Worlds whose parents need the failsafe."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from topdown_worlds import LEVELS, WIDTHS, World, configuration, make_world

PASSES = {
    level: {"estimate": [["total"], ["a0", "detailed"]], "round": [["total", "a0"], ["detailed"]]} for level in LEVELS
}


MARGINS = {"total": "1/4", "a0": "1/4", "detailed": "1/2"}


@dataclass(frozen=True)
class Case:
    """A way to come to the failsafe, and whether its objective gets variables for the answers of each child.

    The seed makes the world and its noise; one is chosen by which some parent needs the failsafe.
    """

    shape: tuple[int, ...] = (8, 2)
    known: str = "Block"
    queries: dict[str, str] = field(default_factory=lambda: MARGINS)
    spine: str = "conventional"
    estimator: str = "topdown"
    passes: bool = False
    recode: bool = False
    split: bool = False
    mechanism: str = "zcdp"
    seed: int = 1


CASES = {
    "detailed alone": Case(queries={"detailed": "1"}),
    "pure": Case(mechanism="pure"),
    "no detail": Case((8, 3), queries={"total": "1/2", "a0": "1/4", "a1": "1/4"}),
    "few types": Case((4, 3), mechanism="pure", seed=4),
    "split": Case((8, 6), split=True),
    "split in two": Case((4, 20), queries={"a0": "1/4", "a1": "1/4", "detailed": "1/2"}, split=True),
    "split, three attributes": Case((4, 3, 7), split=True, mechanism="pure", seed=4),
    "split passes": Case((8, 6), passes=True, split=True),
    "passes": Case(passes=True),
    "recode": Case(queries={"few": "1/4", "detailed": "3/4"}, recode=True),
    "full information": Case(estimator="full-information"),
    "full information, split": Case((8, 6), estimator="full-information", split=True, mechanism="pure"),
    "full information, negative weights": Case(
        (4, 20), queries={"a0": "1/4", "a1": "1/4", "detailed": "1/2"}, estimator="full-information"
    ),
    "three attributes": Case((4, 2, 2), queries={"a0*a1": "1/4", "a1*a2": "1/4", "detailed": "1/2"}),
    "tracts": Case(known="Tract"),
    "sides of states": Case(known="State", spine="aian"),
    "optimized": Case(known="State", spine="optimized"),
    "optimized, full information": Case(known="State", spine="optimized", estimator="full-information"),
}


def world_of(case: Case, seed: int) -> World:
    """A world in which every unit with a known total has two of four types, and people in both."""
    rng = np.random.default_rng(seed)
    world = make_world(seed, case.shape, states=3)
    inner = int(np.prod(case.shape[1:]))
    units = sorted({block[: WIDTHS[case.known]] for block in world.blocks})
    world.counts.clear()
    for block in world.blocks:
        pair = ((0, 1), (2, 3))[units.index(block[: WIDTHS[case.known]]) % 2]
        world.facilities[block] = [int(group in pair) for group in range(8)]
        for group in pair:
            world.counts[block, group * inner + int(rng.integers(inner))] = int(rng.integers(1, 9))
    return world


def document_of(case: Case) -> dict[str, Any]:
    document = configuration(
        case.shape,
        mechanism=case.mechanism,
        invariants={case.known: ["total"]},
        constraints={"group_quarters": "a0"},
        queries=dict.fromkeys(LEVELS, case.queries),
    )
    del document["rho"]
    document |= {"rho": "1/60"} if case.mechanism == "zcdp" else {"epsilon": "1/6"}
    if case.passes:
        document["passes"] = PASSES
    if case.recode:
        size = case.shape[0]
        document["recodes"] = {"few": {"of": "a0", "groups": [[0], [*range(1, size // 2)], [*range(size // 2, size)]]}}
    return document
