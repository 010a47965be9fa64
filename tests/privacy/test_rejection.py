"""Rejection: the law of every draw, by walking all branches that its random choices can take."""

import math
from collections import defaultdict
from collections.abc import Callable
from fractions import Fraction

import pytest

from yupana.privacy import sampler
from yupana.privacy.entropy import SeededEntropy
from yupana.privacy.laws import DiscreteGaussian, TwoSidedGeometric


class ForkError(Exception):
    """A choice that the path does not make, with the chances of its branches."""

    def __init__(self, chances: list[float]) -> None:
        super().__init__()
        self.chances = chances


class AgainError(Exception):
    """A draw that was rejected begins again."""


AGAIN = 10**9
"""What such a draw is counted as."""


class Path:
    """Choices made one after another; stands in for entropy."""

    def __init__(self, *choices: int) -> None:
        self.choices = list(choices)
        self.beginnings = 0

    def choose(self, *chances: float) -> int:
        if not self.choices:
            raise ForkError(list(chances))
        return self.choices.pop(0)


def law_of(draw: Callable[[Path], int], least: float = 1e-12) -> dict[int, float]:
    """The chance of every value, but for branches less likely than ``least``."""
    found: dict[int, float] = defaultdict(float)
    open_: list[tuple[tuple[int, ...], float]] = [((), 1.0)]
    while open_:
        path, chance = open_.pop()
        try:
            found[draw(Path(*path))] += chance
        except ForkError as fork:
            branches = ((i, chance * p) for i, p in enumerate(fork.chances))
            open_ += [((*path, i), p) for i, p in branches if p > least]
    return found


class Bytes:
    """Entropy that plays chosen bytes."""

    def __init__(self, *parts: bytes) -> None:
        self.parts = list(parts)

    def take(self, size: int) -> bytes:
        part = self.parts.pop(0)
        assert isinstance(size, int)
        assert len(part) == size
        return part


@pytest.mark.parametrize(
    ("n", "parts", "drawn"),
    [
        (1, [b""], 0),
        (2, [b"\xfe"], 0),
        (2, [b"\x03"], 1),
        (5, [b"\x07", b"\x05", b"\x0c"], 4),
        (256, [b"\xff"], 255),
        (257, [b"\xff\xff", b"\x01\x01", b"\x00\x01"], 256),
        (2**64 + 1, [b"\x01" + b"\x00" * 7 + b"\x01", b"\x02" + b"\x00" * 8], 2),
    ],
)
def test_a_uniform_number_takes_as_many_bits_as_it_has_and_those_too_large_are_drawn_again(
    n: int, parts: list[bytes], drawn: int
) -> None:
    entropy = Bytes(*parts)
    assert sampler._below(n, entropy) == drawn
    assert not entropy.parts


def test_an_event_of_rational_chance_is_a_uniform_number_below_its_numerator() -> None:
    assert [sampler._bernoulli(Fraction(3, 5), Bytes(bytes([n]))) for n in range(5)] == [True] * 3 + [False] * 2


@pytest.mark.parametrize("x", [Fraction(0), Fraction(1, 7), Fraction(1), Fraction(3, 2), Fraction(5, 2)], ids=str)
def test_an_event_of_exponential_chance_has_it(x: Fraction, monkeypatch: pytest.MonkeyPatch) -> None:
    def bernoulli(p: Fraction, path: Path) -> bool:
        assert 0 <= p <= 1
        return path.choose(1 - float(p), float(p)) == 1

    monkeypatch.setattr(sampler, "_bernoulli", bernoulli)
    found = law_of(lambda path: sampler._bernoulli_exp(x, path))
    assert found[True] == pytest.approx(math.exp(-x), abs=1e-10)
    assert found[False] == pytest.approx(1 - math.exp(-x), abs=1e-10)


@pytest.mark.parametrize("scale", [Fraction(1, 2), Fraction(1), Fraction(5, 2), Fraction(4, 3)], ids=str)
def test_geometric_draws_have_their_law(scale: Fraction, monkeypatch: pytest.MonkeyPatch) -> None:
    def below(n: int, path: Path) -> int:
        if n != 2:  # not a sign, but a remainder, drawn first
            assert n == scale.numerator
            path.beginnings += 1
        if path.beginnings == 2:
            raise AgainError
        return path.choose(*[1 / n] * n)

    def bernoulli_exp(x: Fraction, path: Path) -> bool:
        return path.choose(-math.expm1(-x), math.exp(-x)) == 1

    def draw(path: Path) -> int:
        try:
            return sampler._discrete_laplace(scale, path)
        except AgainError:
            return AGAIN

    monkeypatch.setattr(sampler, "_below", below)
    monkeypatch.setattr(sampler, "_bernoulli_exp", bernoulli_exp)
    found, law = law_of(draw), TwoSidedGeometric(scale)
    # A draw that begins again has the same law.
    whole = 1 - found.pop(AGAIN, 0)
    for k in range(-8, 9):
        assert found[k] / whole == pytest.approx(law.pmf(k), abs=1e-9), k


@pytest.mark.parametrize(("sigma2", "t"), [("1/2", 1), ("10/3", 2), ("4", 3), ("99/10", 4)])
def test_gaussian_draws_accept_a_geometric_one_by_its_distance(
    sigma2: str, t: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    candidates, accepted, asked = [3, -2], [False, True], []
    s = Fraction(sigma2)

    def laplace(scale: Fraction, entropy: object) -> int:
        assert (scale, type(scale), entropy) == (t, Fraction, "bits")
        return candidates.pop(0)

    def bernoulli_exp(x: Fraction, entropy: object) -> bool:
        assert entropy == "bits"
        asked.append(x)
        return accepted.pop(0)

    monkeypatch.setattr(sampler, "_discrete_laplace", laplace)
    monkeypatch.setattr(sampler, "_bernoulli_exp", bernoulli_exp)
    assert sampler._discrete_gaussian(s, "bits") == -2
    assert asked == [(k - s / t) ** 2 / (2 * s) for k in (3, 2)]


def test_a_law_is_drawn_by_its_own_algorithm() -> None:
    gaussian, geometric = DiscreteGaussian(Fraction(10**6)), TwoSidedGeometric(Fraction(1000, 3))
    for seed in range(5):
        drawn = sampler.draw_by_rejection(gaussian, SeededEntropy(seed))
        assert drawn == sampler._discrete_gaussian(Fraction(10**6), SeededEntropy(seed))
        drawn = sampler.draw_by_rejection(geometric, SeededEntropy(seed))
        assert drawn == sampler._discrete_laplace(Fraction(1000, 3), SeededEntropy(seed))
