"""The exact sampler: its thresholds, its rare branches, its streams. Its law is tested under quality."""

import hashlib
import os
import ssl
from collections.abc import Callable
from decimal import Decimal, localcontext
from fractions import Fraction
from functools import cache

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from yupana.errors import EntropyError
from yupana.privacy import entropy, sampler
from yupana.privacy.entropy import SeededEntropy, SystemEntropy
from yupana.privacy.laws import DiscreteGaussian, TwoSidedGeometric, Zero
from yupana.privacy.sampler import add_noise, cdf_bounds, sample

LAWS = [
    DiscreteGaussian(Fraction(1, 20)),
    DiscreteGaussian(Fraction(1)),
    DiscreteGaussian(Fraction(22, 7)),
    DiscreteGaussian(Fraction(147818322, 10**6)),
    TwoSidedGeometric(Fraction(1, 9)),
    TwoSidedGeometric(Fraction(5, 2)),
]


class Script:
    """Entropy that plays chosen bytes, to force what never happens by chance."""

    for_release = False

    def __init__(self, *parts: bytes) -> None:
        self.parts = list(parts)

    def take(self, size: int) -> bytes:
        part = self.parts.pop(0)
        assert isinstance(size, int)
        assert len(part) == size
        return part


@cache
def cdf_at_300_digits(law: DiscreteGaussian | TwoSidedGeometric) -> list[Decimal]:
    with localcontext(prec=300):
        a = Decimal(law.exponent.numerator) / Decimal(law.exponent.denominator)
        weights = [Decimal(1)]
        while weights[-1] > Decimal(10) ** -290:
            k = len(weights)
            weights.append(2 * (-a * k**law.curvature).exp())
        total, running, out = sum(weights), Decimal(0), []
        for w in weights:
            running += w
            out.append(running / total)
        return out


@pytest.mark.parametrize("law", LAWS, ids=str)
@pytest.mark.parametrize("bits", [64, 128, 320])
def test_bounds_enclose_the_cdf_at_any_precision(law: DiscreteGaussian | TwoSidedGeometric, bits: int) -> None:
    bounds = list(cdf_bounds(law, bits))
    reference = cdf_at_300_digits(law)
    with localcontext(prec=300):
        for (low, high), c in zip(bounds, reference, strict=False):
            assert low <= c * 2**bits < high + 1
            assert high - low <= 1
            assert high < 2**bits
        assert 1 - reference[min(len(bounds), len(reference)) - 1] < Decimal(2) ** -(bits - 1)


@pytest.mark.parametrize("precision", [65, 128, 480])
def test_integers_around_an_exponential(precision: int) -> None:
    for x in (Fraction(1, 10**9), Fraction(1, 3), Fraction(1), Fraction(40), Fraction(precision), Fraction(10**9)):
        low, high = sampler._exp_bounds(x, precision)
        with localcontext(prec=300, Emin=-(10**12)):
            exact = (-Decimal(x.numerator) / Decimal(x.denominator)).exp() * 2**precision
            assert 0 <= low <= exact <= high <= 2**precision
        assert high - low <= 2
    assert sampler._exp_bounds(Fraction(precision), precision) == (0, 1)
    assert sampler._exp_bounds(Fraction(precision + 1), precision) == (0, 1)


@pytest.mark.parametrize("law", LAWS, ids=str)
def test_table_thresholds_are_the_first_64_bits_of_the_cdf(law: DiscreteGaussian | TwoSidedGeometric) -> None:
    table = sampler._table(law)
    assert table is not None
    with localcontext(prec=300):
        expected = [int(c * 2**64) for c in cdf_at_300_digits(law)[: table.first64.size]]
    assert table.first64.tolist() == expected
    assert expected[-1] == 2**64 - 1


def magnitude_of(law: DiscreteGaussian | TwoSidedGeometric, u64: int, *more: int) -> int:
    """Play one draw whose U begins with the given words."""
    guide = sampler._table(law).guide
    first16 = (u64 >> 48).to_bytes(2, "little")
    # The stream gives low bits that are shifted away, so the 48 bits stand on top.
    rest = [((u64 & (2**48 - 1)) << 16).to_bytes(8, "little")] if guide[u64 >> 48] < 0 else []
    script = Script(first16, *rest, *(word.to_bytes(8, "little") for word in more))
    (magnitude,) = sampler._table(law).magnitudes(1, script)
    assert not script.parts, "every scripted word was used"
    return int(magnitude)


@pytest.mark.parametrize("law", LAWS[1:], ids=str)
def test_draws_beside_and_on_every_threshold_are_settled_exactly(law: DiscreteGaussian | TwoSidedGeometric) -> None:
    thresholds = sampler._table(law).first64.tolist()
    with localcontext(prec=300):
        next64 = [int(c * 2**128) & (2**64 - 1) for c in cdf_at_300_digits(law)]
    for k, (h, n) in enumerate(zip(thresholds[:40], next64, strict=False)):
        if h - 1 in thresholds or h + 1 in thresholds or h == 2**64 - 1:
            continue
        assert magnitude_of(law, h - 1) == k
        assert magnitude_of(law, h + 1) == k + 1
        # On the threshold itself 64 more bits decide; just below and just above c_k.
        assert magnitude_of(law, h, n - 1) == k
        assert magnitude_of(law, h, n + 1) == k + 1
        # On the threshold again, 128 bits long: yet 64 more decide.
        assert magnitude_of(law, h, n, 0) == k


@pytest.mark.parametrize("law", LAWS, ids=str)
def test_first_bits_are_those_of_the_cdf(law: DiscreteGaussian | TwoSidedGeometric) -> None:
    with localcontext(prec=300):
        for k, c in enumerate(cdf_at_300_digits(law)[:4]):
            assert sampler._first_bits(law, k) == int(c * 2**64)


def test_first_bits_that_128_bits_leave_open_get_256(monkeypatch: pytest.MonkeyPatch) -> None:
    law, asked = DiscreteGaussian(Fraction(1)), []

    def bounds(of: DiscreteGaussian | TwoSidedGeometric, bits: int) -> list[tuple[int, int]]:
        assert of is law
        asked.append(bits)
        # At 128 bits the bounds lie on both sides of 5 / 2^64, at 256 above it.
        return [(0, 0), ((5 << 64) - 1, 5 << 64) if bits == 128 else (5 << 192, (5 << 192) + 1)]

    monkeypatch.setattr(sampler, "cdf_bounds", bounds)
    assert sampler._first_bits(law, 1) == 5
    assert asked == [128, 256]


def test_the_tail_goes_on_beyond_the_table() -> None:
    law = DiscreteGaussian(Fraction(1))
    last = sampler._table(law).first64.size - 1
    assert magnitude_of(law, 2**64 - 1, 2**64 - 2**8) > last


@given(
    st.one_of(
        st.builds(DiscreteGaussian, st.fractions(Fraction(1, 30), 400, max_denominator=1000)),
        st.builds(TwoSidedGeometric, st.fractions(Fraction(1, 30), 20, max_denominator=1000)),
    ),
    st.integers(0, 2**64 - 1),
)
@settings(deadline=None)
def test_a_draw_is_the_first_magnitude_whose_cdf_exceeds_u(law: DiscreteGaussian | TwoSidedGeometric, u: int) -> None:
    thresholds = sampler._table(law).first64.tolist()
    if u in thresholds:
        return
    assert magnitude_of(law, u) == sum(h < u for h in thresholds)


def test_seeded_draws_repeat_and_say_so() -> None:
    law = DiscreteGaussian(Fraction(100))
    first, again, other = (sample(law, 1000, SeededEntropy(seed)) for seed in (1, 1, 2))
    assert (first == again).all()
    assert (first != other).any()
    assert not SeededEntropy(1).for_release
    assert SystemEntropy().for_release


def in_child(work: Callable[[], bytes]) -> bytes:
    read, write = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.write(write, work())
        os._exit(0)
    os.waitpid(pid, 0)
    out = os.read(read, 1 << 16)
    os.close(read)
    os.close(write)
    return out


def test_a_forked_child_never_repeats_its_parent() -> None:
    law, entropy = DiscreteGaussian(Fraction(10**6)), SystemEntropy()
    sample(law, 10, entropy)
    child = in_child(lambda: sample(law, 500, entropy).tobytes())
    sibling = in_child(lambda: sample(law, 500, entropy).tobytes())
    assert len({child, sibling, sample(law, 500, entropy).tobytes()}) == 3


def test_any_size_is_served() -> None:
    for size in (0, 1, 7, 65_536, 65_537):
        assert sample(DiscreteGaussian(Fraction(4)), size, SystemEntropy()).shape == (size,)
    assert sample(Zero(), 3, SystemEntropy()).tolist() == [0, 0, 0]


def test_wide_laws_go_by_rejection() -> None:
    law = DiscreteGaussian(Fraction(10**12))
    assert sampler._table(law) is None
    draws = sample(law, 400, SeededEntropy(3))
    assert 0.8 < draws.std() / 1e6 < 1.2


def test_a_sum_beyond_64_bits_is_refused_not_wrapped() -> None:
    law = DiscreteGaussian(Fraction(10**6))
    counts = np.full(100, 2**63 - 1, dtype=np.int64)
    for extreme in (counts, -counts - 1):
        with pytest.raises(OverflowError, match="64 bits"):
            add_noise(extreme, law, SeededEntropy(1))
    assert add_noise(counts - 10**5, law, SeededEntropy(1)).min() > 0


def test_a_draw_beyond_64_bits_is_refused() -> None:
    with pytest.raises(OverflowError, match="64 bits"):
        sample(DiscreteGaussian(Fraction(2**160)), 10, SeededEntropy(1))


def test_noise_keeps_the_shape_of_the_counts() -> None:
    counts = np.arange(12, dtype=np.int64).reshape(3, 4)
    noisy = add_noise(counts, DiscreteGaussian(Fraction(9)), SeededEntropy(5))
    assert noisy.shape == (3, 4)
    assert (noisy != counts).any()


def test_draws_of_64_bits_fit_and_no_others() -> None:
    for fits in (-(2**63), 2**63 - 1, 0):
        assert sampler._fits(fits) == fits
    for wide in (-(2**63) - 1, 2**63):
        with pytest.raises(OverflowError, match=r"^a noise draw does not fit into 64 bits$"):
            sampler._fits(wide)


def test_a_single_count_that_would_overflow_is_refused_without_a_warning() -> None:
    law, positive = DiscreteGaussian(Fraction(10**6)), 0
    for seed in range(20):
        if int(sample(law, 1, SeededEntropy(seed))[0]) > 0:
            positive += 1
            with pytest.raises(OverflowError, match=r"^a noisy count does not fit into 64 bits$"):
                add_noise(np.array(2**63 - 1), law, SeededEntropy(seed))
    assert positive


def test_a_law_without_a_sampler_is_refused_by_name() -> None:
    with pytest.raises(TypeError, match=r"^no sampler for str$"):
        sample("normal", 1, SeededEntropy(1))


def test_a_sign_is_a_bit_of_its_own() -> None:
    law = DiscreteGaussian(Fraction(1))
    first16 = [int(np.flatnonzero(sampler._table(law).guide == magnitude)[0]) for magnitude in (1, 2, 0)] * 6
    for size, signs in (8, b"\xa1"), (9, b"\xa1\x80"), (17, b"\xa1\x80\x80"):
        words = b"".join(word.to_bytes(2, "little") for word in first16[:size])
        negative = [byte >> bit & 1 for byte in signs for bit in range(7, -1, -1)]
        expected = [-m if minus else m for m, minus in zip([1, 2, 0] * 6, negative, strict=False)]
        assert sample(law, size, Script(signs, words)).tolist() == expected[:size]


def test_draws_are_of_64_bits() -> None:
    for law in (DiscreteGaussian(Fraction(10**12)), DiscreteGaussian(Fraction(1)), Zero()):
        assert sample(law, 3, SeededEntropy(1)).dtype == np.int64


def test_a_draw_beyond_all_thresholds_of_a_short_table_is_settled() -> None:
    law = LAWS[0]
    assert sampler._table(law).first64.size == 3
    assert magnitude_of(law, 2**64 - 1, 0) == 2


def test_a_seed_names_a_stream_and_its_branches() -> None:
    entropy = SeededEntropy(7)
    assert [entropy.take(4), entropy.take(9)] == [
        hashlib.shake_256(b"yupana|7|1").digest(4),
        hashlib.shake_256(b"yupana|7|2").digest(9),
    ]
    assert entropy.branch("a").branch("b").take(5) == hashlib.shake_256(b"yupana|7/a/b|1").digest(5)


class TestGenerator:
    @pytest.fixture(autouse=True)
    def _untested(self) -> None:
        entropy._check_generator.cache_clear()

    @pytest.mark.parametrize(
        "broken", [bytes, lambda size: b"\xff" * size, lambda size: (b"abcdefgh" * (size // 8 + 1))[:size]]
    )
    def test_one_that_is_broken_is_refused(self, broken: object, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(ssl, "RAND_bytes", broken)
        with pytest.raises(
            EntropyError, match=r"^the generator of random numbers of this system gives bits that are not random$"
        ):
            entropy.SystemEntropy().take(8)

    def test_one_that_fails_is_told(self, monkeypatch: pytest.MonkeyPatch) -> None:
        def fails(_: int) -> bytes:
            raise ssl.SSLError(1, "RAND failed")

        monkeypatch.setattr(ssl, "RAND_bytes", fails)
        with pytest.raises(
            EntropyError, match=r"^the generator of random numbers of OpenSSL fails; nothing can be released$"
        ):
            entropy.SystemEntropy().take(8)

    def test_that_of_the_system_passes(self) -> None:
        assert len(entropy.SystemEntropy().take(8)) == 8
