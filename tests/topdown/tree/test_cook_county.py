"""Intervals of the least squares over the real blocks of Cook County, Illinois, with variances as in production.

Noise is seeded. A count's interval misses it with chance 0.1, and intervals of neighbours hang together, so that the
tolerance of 0.01 on each of 18 shares is no multiple of a standard error known beforehand: it is the goal of accuracy.
"""

from collections import defaultdict
from fractions import Fraction
from statistics import NormalDist

import duckdb
import numpy as np
import pytest
from places import SHARED

from yupana.arrays import Ints
from yupana.geography.tree import Tree, nest, partition
from yupana.privacy.entropy import SeededEntropy
from yupana.privacy.laws import DiscreteGaussian
from yupana.privacy.sampler import add_noise
from yupana.topdown.queries import Query, margin
from yupana.topdown.tree.basis import Basis
from yupana.topdown.tree.least_squares import (
    TreeAnswers,
    TreeEstimate,
    combined,
    down,
    intervals,
    own,
    precisions_of_sums,
    summed,
)

SOURCE = SHARED / "data" / "cook_il_2010_pl_blocks" / "cook_2010_pl_block.parquet"
SHAPE = (2, 2, 11)  # voting age, Hispanic, race
QUERIES = {
    name: margin(name, SHAPE, kept)
    for name, kept in {
        "total": (0, 0, 0),
        "votingage": (1, 0, 0),
        "hispanic": (0, 1, 0),
        "race": (0, 0, 1),
        "hispanic*race": (0, 1, 1),
        "detailed": (1, 1, 1),
    }.items()
}
RHO = Fraction(293764, 114921)
SHARES = {
    "County": ("447/4099", {"detailed": "855/4097", "hispanic*race": "28/4097", "race": "10/4097"}),
    "Tract": ("687/4099", {"total": "1567/4102", "detailed": "549/4102", "hispanic*race": "1933/4102"}),
    "Block_Group": ("1256/4099", {"total": "1705/4099", "detailed": "1312/4099", "hispanic*race": "1055/4099"}),
    "Block": ("165/4099", {"total": "5/4097", "detailed": "4016/4097", "hispanic*race": "21/4097"}),
}
REPLICATES = 2

pytestmark = [
    pytest.mark.thorough,
    pytest.mark.skipif(not SOURCE.exists(), reason="the blocks of Cook County are not beside the checkout"),
]


def races(table: str, at: tuple[int, ...]) -> str:
    return ", ".join(f"{table}{line:03}" for line in at)


def read() -> tuple[Tree, Ints, Ints]:
    """The tree of blocks with people or housing, their counts of shape (blocks, 44), and the number of their place."""
    alone, among = (3, 4, 5, 6, 7, 8, 10, 26, 47, 63, 70), (5, 6, 7, 8, 9, 10, 12, 28, 49, 65, 72)
    columns = ", ".join(
        [races("P001", alone), races("P002", among), races("P003", alone), races("P004", among), "tract, BLKGRP, PLACE"]
    )
    rows = duckdb.sql(
        f"SELECT {columns} FROM '{SOURCE}' WHERE H001001 + P001001 > 0 ORDER BY tract, BLKGRP, block"
    ).fetchnumpy()
    table = np.stack([np.asarray(values) for values in list(rows.values())[:44]], axis=1).astype(np.int64)
    everyone, others, adults, other_adults = np.split(table, 4, axis=1)
    minors = [others - other_adults, (everyone - others) - (adults - other_adults)]
    counts = np.concatenate([*minors, other_adults, adults - other_adults], axis=1)
    tract, group, place = (
        np.unique(rows[name].astype(str), return_inverse=True)[1] for name in ("tract", "BLKGRP", "PLACE")
    )
    keys = (np.zeros(len(tract), np.int64), tract, group, np.arange(len(tract)))
    return nest(tuple(SHARES), keys)[0], counts, place


def answers(counts: Ints, query: Query) -> Ints:
    out = np.zeros((len(counts), query.size), dtype=np.int64)
    np.add.at(out.T, query.answers(), counts.T)
    return out


def climb(tree: Tree, truth: list[Ints], entropy: SeededEntropy) -> list[TreeEstimate]:
    """Measure all levels and estimate them upward."""
    basis, upward = Basis(SHAPE), list[TreeEstimate]()
    for level in (3, 2, 1, 0):
        share, queries = SHARES[tree.names[level]]
        measured = []
        for name, part in queries.items():
            variance = 1 / (RHO * Fraction(share) * Fraction(part))
            exact = answers(truth[level], QUERIES[name])
            noisy = add_noise(exact.ravel(), DiscreteGaussian(variance), entropy).reshape(exact.shape)
            measured.append(TreeAnswers(QUERIES[name], noisy, np.full(len(exact), 1 / float(variance))))
        if level == 0:
            measured.append(TreeAnswers(QUERIES["total"], answers(truth[0], QUERIES["total"]), np.array([np.inf])))
        estimate = own(basis, tree.units(level), measured)
        if upward:
            estimate = combined(basis, estimate, summed(upward[0], tree.parents[level + 1], tree.units(level)))
        upward.insert(0, estimate)
    return upward


@pytest.mark.thorough
def test_intervals_cover_real_counts() -> None:
    tree, counts, place = read()
    assert [tree.units(level) for level in range(4)] == [1, 1315, 3985, 76751]
    assert counts.sum() == 5_194_675
    assert counts.min() == 0
    basis, entropy = Basis(SHAPE), SeededEntropy(44)
    truth = [np.zeros((tree.units(level), 44), dtype=np.int64) for level in range(4)]
    for level in range(4):
        np.add.at(truth[level], tree.ancestors(level), counts)
    members = partition(place.astype(np.int32), int(place.max()) + 1)
    places = np.zeros((members.number, 44), dtype=np.int64)
    np.add.at(places, place, counts)
    normal: defaultdict[tuple[str, str], list[float]] = defaultdict(list)
    whole: defaultdict[tuple[str, str], list[float]] = defaultdict(list)

    def look(level: str, estimate: TreeEstimate, true: Ints) -> None:
        for name, query in QUERIES.items():
            found, exact = intervals(basis, estimate, query), answers(true, query)
            errors = np.abs(found.estimate - exact) / np.sqrt(found.variance)
            normal[level, name].append(float((errors <= NormalDist().inv_cdf(0.95)).mean()))
            whole[level, name].append(float(((found.lower <= exact) & (exact <= found.upper)).mean()))

    for _ in range(REPLICATES):
        upward = climb(tree, truth, entropy)
        estimate = upward[0]
        for level in (1, 2, 3):
            estimate = down(basis, upward[level], tree.parents[level], estimate)
            look(tree.names[level], estimate, truth[level])
        precision = precisions_of_sums(tree, [each.precision for each in upward], upward[0].precision, members)
        sums = np.zeros((members.number, 44))
        np.add.at(sums, place, estimate.coordinates)
        look("Place", TreeEstimate(sums, precision), places)
    for key, shares in normal.items():
        tolerance = 0.05 if key[0] == "Place" else 0.01
        assert abs(np.mean(shares) - 0.9) < tolerance, key
        # Counts of 0 are covered more often, for an interval that lies below 0 is raised to it.
        assert np.mean(whole[key]) >= np.mean(shares), key
