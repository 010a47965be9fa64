"""Rounding and suppression by enumeration, and how methods are named."""

from fractions import Fraction

import numpy as np
import pytest

from yupana.errors import ConfigError
from yupana.products.disclosure_control.methods import DEFAULT, RandomRounding, Shown, Suppression, read_methods


@pytest.mark.parametrize("base", [2, 3, 5, 10])
def test_rounding_is_right_on_average_and_goes_to_the_nearest_multiples(base: int) -> None:
    method = RandomRounding(base)
    for count in range(4 * base):
        rounded = method.publish(np.full(base, count), np.arange(base)).values.tolist()
        assert Fraction(sum(rounded), base) == count
        assert all(value % base == 0 and abs(value - count) < base for value in rounded)
        assert count % base or set(rounded) == {count}


@pytest.mark.parametrize("base", [2, 3, 5])
def test_what_a_rounded_value_leaves_possible_is_what_rounding_can_give(base: int) -> None:
    method = RandomRounding(base)
    for value in range(0, 4 * base, base):
        able = {}
        for count in range(6 * base):
            times = int((method.publish(np.full(base, count), np.arange(base)).values == value).sum())
            if times:
                able[count] = times / base
        low, high = method.bounds(Shown.whole(np.array([value])))
        assert (int(low[0]), int(high[0])) == (min(able), max(able))
        chances = method.chances(value)
        assert {chances.first + i: float(c) for i, c in enumerate(chances.of)} == pytest.approx(able)


def test_suppression_leaves_out_small_counts_alone() -> None:
    method = Suppression(4)
    shown = method.publish(np.arange(6))
    assert shown.flags.tolist() == [True, False, False, False, True, True]
    low, high = method.bounds(shown)
    assert list(zip(low.tolist(), high.tolist(), strict=True)) == [(0, 0), (1, 3), (1, 3), (1, 3), (4, 4), (5, 5)]


def test_names_are_read_as_they_are_told() -> None:
    told = read_methods(DEFAULT)
    assert [method.name for method in read_methods(",".join(method.name for method in told))] == [m.name for m in told]
    (method,) = read_methods("cell-key:js=1:D=4")
    assert method.name == "cell-key:D=4:V=3:js=1"


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("round-3", "did you mean rounding-3"),
        ("rounding-1", "base must be from 2"),
        ("rounding-3:base=5", "is none of"),
        ("cell-key:V=5", "V must lie above 2 and below 5"),
        ("cell-key:D=2.5", "D must be a whole number"),
        ("cell-key:V=inf", "must be a finite number"),
        ("cell-key:W=2", "D=NUMBER, V=NUMBER, js=NUMBER"),
        ("cell-key:D=4:D=4", "D is given twice"),
        ("swapping:rate=120%", "rate: not an exact number"),
        ("swapping:rate=2", "rate must be from 0 to 1"),
        ("suppression:below=1", "must be from 2"),
        (f"suppression:below={10**30}", "to 1,000"),
        (f"swapping:k={10**30}", "k from 0 to 1,000"),
        (f"cell-key:D={10**30}", "D must be from 1 to 50"),
        ("cell-key:V=1e-300:js=0", "V 0.01 or more"),
        ("suppression,suppression:below=3", "is named twice"),
        ("", "is none of"),
    ],
)
def test_faults_say_what_is_allowed(text: str, told: str) -> None:
    with pytest.raises(ConfigError, match="methods: ") as caught:
        read_methods(text)
    assert told in str(caught.value)


def test_all_faults_are_told_at_once() -> None:
    with pytest.raises(ConfigError, match="is of type int"):
        read_methods(3)  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match="name one of"):
        read_methods([])
    with pytest.raises(ConfigError) as caught:
        read_methods(["swap", "suppression:below=0", "rounding-x"])
    assert str(caught.value).count("\n") == 3
