"""Algorithm 3 against the algorithm in plain Python, against dense variances, and at the boundary of Theorem 2."""

from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from spine_maker import make_tree, nested, trees

from yupana.geography.optimized import bypass, worth_bypassing
from yupana.geography.settings import LEVELS, Mechanism
from yupana.geography.spine import Geolevel, Spine, check_spine, path_faults, precisions
from yupana.geography.tree import Tree
from yupana.topdown.tree.least_squares import unit_variances

Matrix = NDArray[np.float64]


def plain_spine(tree: Tree, shares: list[Fraction]) -> Spine:
    """A spine of a tree of six geolevels at most, the county among them; every unit has the share of its level."""
    below = [level for level in LEVELS[3:] if level != "Tract_Group" or len(tree.names) > 4]
    names = (
        (*LEVELS[:3], *below)[-len(tree.names) :] if len(tree.names) > 3 else ("County", *below[1 - len(tree.names) :])
    )
    distinct = tuple(dict.fromkeys(shares))
    levels = [
        Geolevel(
            name,
            4,
            np.arange(tree.units(i)),
            np.zeros(tree.units(i), dtype=np.int32),
            np.full(tree.units(i), distinct.index(share), dtype=np.int32),
            np.zeros(tree.units(i), dtype=np.bool_),
        )
        for i, (name, share) in enumerate(zip(names, shares, strict=True))
    ]
    return Spine(Tree(names, tree.parents), tuple(levels), distinct)


@st.composite
def spines(draw: st.DrawFn) -> Spine:
    tree = draw(trees(levels=6, most_units=40, fanout=5))
    weights = draw(st.lists(st.integers(0, 6), min_size=len(tree.names), max_size=len(tree.names)).filter(any))
    return plain_spine(tree, [Fraction(weight, sum(weights)) for weight in weights])


@dataclass
class Node:
    share: Fraction
    children: list["Node"] = field(default_factory=list)
    bypassed: bool = False
    block: int = -1


def grow(spine: Spine) -> Node:
    made: list[list[Node]] = []
    for i, level in enumerate(spine.levels):
        made.append([Node(spine.shares[share]) for share in level.share.tolist()])
        for unit, parent in enumerate(spine.tree.parents[i].tolist()) if i else ():
            made[i - 1][parent].children.append(made[i][unit])
    for block, node in enumerate(made[-1]):
        node.block = block
    return made[0][0]


def at_depth(root: Node, depth: int) -> list[Node]:
    found = [root]
    for _ in range(depth):
        found = [child for node in found for child in node.children]
    return found


def algorithm_3(spine: Spine, mechanism: Mechanism, cutoff: int) -> Node:
    """One unit after the other, from the geolevel above the blocks to the root."""
    top = Node(Fraction(0), [grow(spine)])
    for level in range(len(spine.levels) - 2, -1, -1):
        below_county = spine.levels[level].name in {"Tract_Group", "Tract", "Block_Group"}
        for above in at_depth(top, level):
            for parent in list(above.children):
                children = parent.children
                least = min(child.share for child in children)
                crowded = len(above.children) - 1 + len(children) > cutoff
                theorem = least >= Fraction(len(children) - 1) * parent.share / 2
                pure = mechanism == "pure" and below_county and theorem and not crowded
                if len(children) > 1 and not pure:
                    continue
                place = above.children.index(parent)
                above.children[place : place + 1] = [Node(parent.share + child.share, [child]) for child in children]
                for child in children:
                    child.share, child.bypassed = Fraction(0), True
                # The new units carry what was said of the old one.
                for node in above.children[place : place + len(children)]:
                    node.bypassed = parent.bypassed
    return top.children[0]


@given(spines(), st.sampled_from(["zcdp", "pure"]), st.integers(0, 12))
@settings(max_examples=200)
@pytest.mark.thorough
def test_bypass_is_algorithm_3(spine: Spine, mechanism: Mechanism, cutoff: int) -> None:
    found = bypass(spine, mechanism, cutoff)
    expected = algorithm_3(spine, mechanism, cutoff)
    for i, level in enumerate(found.levels):
        nodes = at_depth(expected, i)
        assert [found.shares[share] for share in level.share.tolist()] == [node.share for node in nodes]
        assert level.bypassed.tolist() == [node.bypassed for node in nodes]
        if i < len(found.levels) - 1:
            assert found.tree.children(i).tolist() == [len(node.children) for node in nodes]
    assert [node.block for node in at_depth(expected, len(found.levels) - 1)] == found.blocks.tolist()
    assert len(set(zip(found.levels[0].code.tolist(), found.levels[0].part.tolist(), strict=True))) == 1


@given(spines(), st.sampled_from(["zcdp", "pure"]))
@pytest.mark.thorough
def test_shares_along_every_path_keep_their_sum(spine: Spine, mechanism: Mechanism) -> None:
    found = bypass(spine, mechanism, 150)
    for one in (spine, found):
        assert path_faults(one) == []
    assert check_spine(found, np.sort(spine.blocks)) == []


def flags(tree: Tree) -> Matrix:
    plain = nested(tree)
    units = [plain.leaves(level, unit) for level in range(plain.levels) for unit in range(plain.units(level))]
    return np.array([[float(block in unit) for block in range(plain.units(plain.levels - 1))] for unit in units])


def variances(spine: Spine, mechanism: Mechanism, asked: Matrix) -> Matrix:
    """Diagonal of the dense variance matrix of the rows asked."""
    weight = np.concatenate(precisions(spine, mechanism))
    measured = flags(spine.tree)
    inverse = np.linalg.inv(measured.T @ (weight[:, None] * measured))
    return np.einsum("ij,jk,ik->i", asked, inverse, asked)


@st.composite
def positive_spines(draw: st.DrawFn) -> Spine:
    tree = draw(trees(levels=4, most_units=25, fanout=4))
    weights = draw(st.lists(st.integers(1, 6), min_size=len(tree.names), max_size=len(tree.names)))
    return plain_spine(tree, [Fraction(weight, sum(weights)) for weight in weights])


@given(positive_spines(), st.sampled_from(["zcdp", "pure"]), st.data())
@pytest.mark.thorough
def test_no_variance_is_raised(spine: Spine, mechanism: Mechanism, data: st.DataObject) -> None:
    found = bypass(spine, mechanism, 150)
    blocks = len(spine.blocks)
    # The workload: every unit of the spine as it was, and any other area.
    areas = data.draw(st.lists(st.lists(st.integers(-1, 1), min_size=blocks, max_size=blocks), max_size=5))
    asked = np.concatenate([flags(spine.tree), np.array(areas, dtype=np.float64).reshape(-1, blocks)])
    before, after = variances(spine, mechanism, asked), variances(found, mechanism, asked)
    assert (after <= before * (1 + 1e-9)).all()
    assert np.allclose(
        np.concatenate(unit_variances(found.tree, precisions(found, mechanism))),
        variances(found, mechanism, flags(found.tree)),
    )


QUERIES = {
    "total": np.ones((1, 4)),
    "first": np.kron(np.eye(2), np.ones((1, 2))),
    "second": np.kron(np.ones((1, 2)), np.eye(2)),
    "detailed": np.eye(4),
}

Asked = dict[str, Fraction]


def information(spine: Spine, mechanism: Mechanism, asked: list[Asked]) -> Matrix:
    """What all answers say of the cells of the blocks, where every geolevel has its own queries, with their parts."""
    total: Matrix = np.zeros((4 * len(spine.blocks),) * 2)
    for row, level, share in zip(flags(spine.tree), *owners(spine), strict=True):
        for name, part in asked[level].items():
            budget = float(share * part)
            precision = budget if mechanism == "zcdp" else budget * budget / 8
            of_query = np.kron(row[None], QUERIES[name])
            total += precision * of_query.T @ of_query
    return total


def owners(spine: Spine) -> tuple[list[int], list[Fraction]]:
    """Geolevel and share of each row of `flags`."""
    levels = [i for i in range(len(spine.levels)) for _ in range(spine.tree.units(i))]
    return levels, [spine.shares[share] for level in spine.levels for share in level.share.tolist()]


@st.composite
def measured_spines(draw: st.DrawFn) -> tuple[Spine, list[Asked]]:
    spine = draw(positive_spines())
    proportions = st.dictionaries(st.sampled_from(sorted(QUERIES)), st.integers(1, 5), min_size=1)
    choices = draw(st.lists(proportions, min_size=1, max_size=2))
    weights = [draw(st.sampled_from(choices)) for _ in spine.levels]
    return spine, [{q: Fraction(w, sum(one.values())) for q, w in one.items()} for one in weights]


@given(measured_spines(), st.sampled_from(["zcdp", "pure"]), st.data())
@settings(deadline=None, max_examples=40)
@pytest.mark.thorough
def test_no_variance_is_raised_where_geolevels_that_differ_keep_their_shares(
    measured: tuple[Spine, list[Asked]], mechanism: Mechanism, data: st.DataObject
) -> None:
    spine, asked = measured
    different = [level.name for level, one, below in zip(spine.levels, asked, asked[1:], strict=False) if one != below]
    found = bypass(spine, mechanism, 150, different)
    before, after = information(spine, mechanism, asked), information(found, mechanism, asked)
    assert np.linalg.eigvalsh(after - before).min() >= -1e-9
    # Every count of every area that could be estimated before.
    area = np.array(data.draw(st.lists(st.integers(0, 1), min_size=len(spine.blocks), max_size=len(spine.blocks))))
    some, others = np.linalg.pinv(before, hermitian=True), np.linalg.pinv(after, hermitian=True)
    for rows in QUERIES.values():
        counts = np.kron(area[None].astype(np.float64), rows)
        known = [row for row in counts if np.allclose(before @ some @ row, row, atol=1e-7)]
        assert all(row @ others @ row <= row @ some @ row * (1 + 1e-7) + 1e-7 for row in known)


def test_where_queries_differ_a_bypass_would_raise_a_variance() -> None:
    # A county whose only tract asks what it does not: after a bypass the answers of the tract are gone.
    asked: list[Asked] = [{"detailed": Fraction(1)}, {"total": Fraction(1)}, {"detailed": Fraction(1)}]
    spine = plain_spine(make_tree([[1], [2]]), [Fraction(1, 3)] * 3)
    total = np.ones((1, 8))
    spread = [
        float((total @ np.linalg.inv(information(one, "zcdp", asked)) @ total.T)[0, 0])
        for one in (spine, bypass(spine, "zcdp", 150, ("County",)), bypass(spine, "zcdp", 150))
    ]
    assert spread[1] == spread[0]
    assert spread[2] > 1.5 * spread[0]


@pytest.mark.parametrize(
    ("parent", "child", "children", "verdict"),
    [
        (Fraction(1, 6), Fraction(1, 6), 3, True),
        (Fraction(1, 6), Fraction(1, 6), 4, False),
        (Fraction(1, 10), Fraction(2, 10), 5, True),
        (Fraction(1, 10), Fraction(2, 10), 6, False),
        (Fraction(2, 3), Fraction(1, 3) - Fraction(1, 10**30), 2, False),
        (Fraction(2, 3), Fraction(1, 3), 2, True),
        (Fraction(1, 3), Fraction(0), 1, True),
    ],
)
def test_the_boundary_of_theorem_2(parent: Fraction, child: Fraction, children: int, *, verdict: bool) -> None:
    assert worth_bypassing(parent, child, children) is verdict


@pytest.mark.parametrize("children", [2, 3, 4, 7])
def test_past_the_boundary_some_variance_is_raised(children: int) -> None:
    tree = make_tree([[1], [children]])
    on = Fraction(children - 1, 2)
    for child, raised in ((on, False), (on - Fraction(1, 100), True)):
        shares = [share / (1 + child) for share in (Fraction(0), Fraction(1), child)]
        spine = plain_spine(tree, shares)
        spread = [(shares[1] + shares[2]) for _ in range(children)]
        total = np.ones((1, children))
        weights = np.array([0.0, float(shares[1]) ** 2, *(float(shares[2]) ** 2 for _ in spread)]) / 8
        measured = flags(spine.tree)
        before = total @ np.linalg.inv(measured.T @ (weights[:, None] * measured)) @ total.T
        after = sum(8 / float(share) ** 2 for share in spread)
        assert (after > float(before[0, 0]) * (1 + 1e-9)) is raised


@pytest.mark.parametrize(("parent", "bypassed"), [(2, False), (1, True)])
def test_unequal_children_count_by_the_smallest(parent: int, *, bypassed: bool) -> None:
    # Three block groups: one of a single block, which gets its share, 2, and two of four blocks, which keep theirs, 1.
    tree = make_tree([[1], [3], [1, 4, 4]])
    weights = [1, parent, 1, 1]
    found = bypass(plain_spine(tree, [Fraction(w, sum(weights)) for w in weights]), "pure", 150)
    assert found.tree.names == ("County", "Tract", "Block_Group", "Block")
    assert (found.tree.units(1) == 3) is bypassed


def test_under_zcdp_two_children_are_not_bypassed_and_one_is() -> None:
    shares = [Fraction(1, 4)] * 4
    for tree, bypassed in (
        (make_tree([[1], [1], [3]]), [False, True, True]),
        (make_tree([[2], [2, 2], [2] * 4]), [False] * 3),
    ):
        found = bypass(plain_spine(tree, shares), "zcdp", 150)
        assert [bool(level.bypassed.all()) for level in found.levels[:-1]] == bypassed


def test_the_county_and_above_follow_only_children_under_pure_dp() -> None:
    # A state of one county of one tract group of two tracts: the theorem would allow to bypass all three.
    tree = make_tree([[1], [1], [2], [9, 9], [9] * 18])
    shares = [Fraction(1, 10), Fraction(1, 10), Fraction(1, 10), Fraction(4, 10), Fraction(2, 10), Fraction(1, 10)]
    found = bypass(plain_spine(tree, shares), "pure", 150)
    assert found.tree.names == ("State", "County", "Tract_Group", "Tract", "Block_Group", "Block")
    assert [str(found.shares[level.share[0]]) for level in found.levels[:3]] == ["1/5", "0", "1/2"]
    assert [found.tree.units(i) for i in range(4)] == [1, 1, 2, 2]
