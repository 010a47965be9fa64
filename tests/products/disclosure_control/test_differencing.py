"""What an attacker is said to learn, against all true counts that could have been published so."""

from collections.abc import Iterator
from itertools import product
from random import Random

import numpy as np
import pytest

from yupana.products.disclosure_control.differencing import (
    Nested,
    Relations,
    likeliest_count,
    likeliest_difference,
    possible,
)
from yupana.products.disclosure_control.methods import (
    RELEASE,
    UNBOUNDED,
    CellKey,
    Method,
    RandomRounding,
    Shown,
    Suppression,
    read_methods,
)

METHODS = read_methods("rounding-2,rounding-3,suppression:below=3,suppression:below=4,cell-key:D=2:V=1.5:js=1")
LARGEST = 4


def published(method: Method, true: list[int], rng: Random) -> Shown:
    counts = np.array(true)
    if isinstance(method, RandomRounding):
        return method.publish(counts, np.array([rng.randrange(method.base) for _ in true]))
    if isinstance(method, CellKey):
        return method.publish(counts, np.array([rng.getrandbits(64) for _ in true], dtype=np.uint64).view(np.int64))
    assert isinstance(method, Suppression)
    return method.publish(counts)


def could_publish(method: Method, true: int, value: int, flag: bool) -> bool:  # noqa: FBT001
    """By the definition of each method."""
    if isinstance(method, RandomRounding):
        return value % method.base == 0 and abs(value - true) < method.base
    if isinstance(method, CellKey):
        if true == 0 or value == 0:
            return value == 0 and true <= method.largest
        return value > method.gap and abs(value - true) <= method.largest
    assert isinstance(method, Suppression)
    return (value == true and not 0 < true < method.below) if flag else 0 < true < method.below


def consistent(
    method: Method, shown: Shown, relations: list[tuple[int, list[int]]], leaves: int
) -> Iterator[list[int]]:
    """All true counts, given by their leaves, that could have been published so."""
    most = 3 * LARGEST
    for values in product(range(most + 1), repeat=leaves):
        true = [*values]
        for _, parts in relations:
            true.append(sum(true[part] for part in parts))
        if all(
            could_publish(method, t, int(v), bool(f)) for t, v, f in zip(true, shown.values, shown.flags, strict=True)
        ):
            yield true


@pytest.mark.parametrize("method", METHODS, ids=lambda method: method.name)
@pytest.mark.parametrize("seed", range(6))
def test_what_is_certain_holds_in_every_world_that_would_look_the_same(method: Method, seed: int) -> None:
    rng = Random(seed)  # noqa: S311 (no noise)
    leaves = 3
    # Places: three leaves, then a sum of two of them, then the sum of that and the third: a tree.
    relations = [(3, [0, 1]), (4, [3, 2])]
    true = [rng.randint(0, LARGEST) for _ in range(leaves)]
    true += [true[0] + true[1], sum(true)]
    shown = published(method, true, rng)
    nested = Nested(np.array([4, 3]), np.array([0, 1]))
    as_arrays = Relations.of((np.array([whole]), np.array([parts])) for whole, parts in relations)
    (low, high), [(least, most)] = possible(method, shown, as_arrays, [nested])
    worlds = np.array([*consistent(method, shown, relations, leaves)])
    assert true in worlds.tolist()
    # The bounds of the counts themselves are the tightest, as no pair adds to a tree.
    alone, _ = possible(method, shown, as_arrays, [])
    assert alone[0].tolist() == worlds.min(axis=0).tolist()
    assert alone[1].tolist() == worlds.max(axis=0).tolist()
    assert (low >= alone[0]).all()
    assert (high <= alone[1]).all()
    assert (low <= worlds.min(axis=0)).all()
    assert (high >= worlds.max(axis=0)).all()
    differences = worlds[:, nested.outer] - worlds[:, nested.inner]
    assert (least <= differences.min(axis=0)).all()
    assert (most >= differences.max(axis=0)).all()
    # Where the difference is the other part of a sum, nothing is lost.
    assert (least[1], most[1]) == (differences[:, 1].min(), differences[:, 1].max())


def test_one_count_that_is_left_out_is_found_by_its_sum() -> None:
    method = Suppression(5)
    true = np.array([2, 7, 9, 18])
    shown = method.publish(true)
    relations = Relations.of([(np.array([3]), np.array([[0, 1, 2]]))])
    (low, high), _ = possible(method, shown, relations, [])
    assert low.tolist() == high.tolist() == true.tolist()


@pytest.mark.parametrize("method", METHODS, ids=lambda method: method.name)
def test_guesses_are_the_likeliest(method: Method) -> None:
    values: list[int | None] = [0, 2, 3, 4, 6, 7] if not isinstance(method, Suppression) else [None, 0, 5]
    if isinstance(method, RandomRounding):
        values = [method.base * i for i in range(4)]
    chance = {value: {true: _chance(method, true, value) for true in range(20)} for value in values}
    for value in values:
        best = max(chance[value].values())
        guess = likeliest_count(method, value, 0, UNBOUNDED)
        assert chance[value][guess] == pytest.approx(best)
        for other in values:
            scores = {
                d: sum(chance[other][y] * chance[value].get(y + d, 0) for y in range(20))
                if d or not method.unchanged_together
                else sum(chance[other].values()) * (value == other)
                for d in range(-8, 12)
            }
            allowed = {d: score for d, score in scores.items() if d >= 0}
            guess = likeliest_difference(method, value, other, 0, UNBOUNDED)
            if max(allowed.values()) > 0:
                assert scores[guess] == pytest.approx(max(allowed.values()))


def _chance(method: Method, true: int, value: int | None) -> float:
    chances = method.chances(value)
    place = true - chances.first
    return float(chances.of[place]) if 0 <= place < len(chances.of) else 0.0


def test_noise_without_bound_leaves_nothing_certain() -> None:
    shown = Shown.whole(np.array([-3, 4, 2]))
    relations = Relations.of([(np.array([2]), np.array([[0, 1]]))])
    nested = Nested(np.array([2]), np.array([1]))
    (low, high), [(least, most)] = possible(RELEASE, shown, relations, [nested])
    assert low.tolist() == [0, 0, 0]
    assert (high == UNBOUNDED).all()
    assert (int(least[0]), int(most[0])) == (0, UNBOUNDED)
    assert likeliest_count(RELEASE, -3, 0, UNBOUNDED) == 0
    assert likeliest_difference(RELEASE, 2, 4, 0, UNBOUNDED) == 0
    assert likeliest_difference(RELEASE, 9, 4, 0, UNBOUNDED) == 5
