"""Exact, vectorised draws by inversion with lazily revealed bits.

The law of every draw is exactly the stated one, given uniform bits (proof: docs/sampler.md). In short:
a magnitude is the first k whose cdf c_k lies above a uniform real U of unlimited precision. The first 16 bits
of U decide most draws by a table; those they leave open get 64 bits and a search; those whose 64 bits
equal the first 64 of some c_k, about one in 10^15, get as many more bits as it takes, against bounds of
c_k in integer arithmetic. A separate fair bit is the sign.

Laws too wide for a table are drawn one at a time, by rejection in rational arithmetic. The algorithms are those of
Canonne, Kamath and Steinke 2020 (section 5): Bernoulli(exp(-x)) from Bernoullis of rational probability, the discrete
Laplace from it, the discrete Gaussian by rejection from the Laplace. About 10,000 draws a second at any width. The
tests also use it as a second opinion on the table.
"""

import decimal
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from math import isqrt
from typing import Final

import numpy as np
from numpy.typing import NDArray

from yupana.privacy.entropy import Entropy
from yupana.privacy.laws import DiscreteGaussian, Law, TwoSidedGeometric, Zero


def draw_by_rejection(law: DiscreteGaussian | TwoSidedGeometric, entropy: Entropy) -> int:
    """Draw one value of a law, as an unbounded integer."""
    if isinstance(law, DiscreteGaussian):
        return _discrete_gaussian(law.sigma2, entropy)
    return _discrete_laplace(law.scale, entropy)


def _below(n: int, entropy: Entropy) -> int:
    """Uniform integer in [0, n)."""
    size = ((n - 1).bit_length() + 7) // 8
    mask = (1 << (n - 1).bit_length()) - 1
    while True:
        value = int.from_bytes(entropy.take(size), "little") & mask
        if value < n:
            return value


def _bernoulli(p: Fraction, entropy: Entropy) -> bool:
    return _below(p.denominator, entropy) < p.numerator


def _bernoulli_exp(x: Fraction, entropy: Entropy) -> bool:
    """True with probability exp(-x), for x >= 0 (algorithm 1 there)."""
    while x > 1:
        if not _bernoulli_exp(Fraction(1), entropy):
            return False
        x -= 1
    k = 1
    while _bernoulli(x / k, entropy):
        k += 1
    return k % 2 == 1


def _discrete_laplace(scale: Fraction, entropy: Entropy) -> int:
    """P(k) proportional to exp(-|k| / scale) (algorithm 2 there, with scale = t/s)."""
    t, s = scale.numerator, scale.denominator
    while True:
        u = _below(t, entropy)
        if not _bernoulli_exp(Fraction(u, t), entropy):
            continue
        v = 0
        while _bernoulli_exp(Fraction(1), entropy):
            v += 1
        magnitude = (u + t * v) // s
        negative = _below(2, entropy) == 1
        if negative and magnitude == 0:
            continue
        return -magnitude if negative else magnitude


def _discrete_gaussian(sigma2: Fraction, entropy: Entropy) -> int:
    """P(k) proportional to exp(-k^2 / (2 sigma2)) (algorithm 3 there)."""
    t = isqrt(sigma2.numerator // sigma2.denominator) + 1
    while True:
        candidate = _discrete_laplace(Fraction(t), entropy)
        distance = abs(candidate) - sigma2 / t
        if _bernoulli_exp(distance * distance / (2 * sigma2), entropy):
            return candidate


Int64Array = NDArray[np.int64]

_CHUNK: Final = 1 << 16
"""Draws at a time: the work arrays stay in the second-level cache."""

_GUIDE_BITS: Final = 16
_WORD_BITS: Final = 64
_WIDEST_TABLE: Final = 1 << 17
"""Magnitudes in the longest table (1 MB of thresholds). Wider laws, sigma above about 14,000, go by rejection."""

_UNDECIDED: Final = -1

_STEPS: Final = 3
"""A cell of the guide seldom holds more thresholds than this, unless it lies in a tail."""


def sample(law: Law, size: int, entropy: Entropy) -> Int64Array:
    """Draw ``size`` independent values of a law.

    Parameters
    ----------
    law : DiscreteGaussian, TwoSidedGeometric or Zero
    size : int
        How many, zero or more.
    entropy : Entropy
        Source of uniform bits.

    Returns
    -------
    numpy.ndarray of int64, shape (size,)

    Raises
    ------
    OverflowError
        If a draw does not fit into 64 bits (probability below 1e-300 unless sigma is above 1e17).
    """
    if isinstance(law, Zero):
        return np.zeros(size, dtype=np.int64)
    if not isinstance(law, DiscreteGaussian | TwoSidedGeometric):
        raise TypeError(f"no sampler for {type(law).__name__}")
    table = _table(law)
    if table is None:
        draws = (draw_by_rejection(law, entropy) for _ in range(size))
        return np.fromiter((_fits(draw) for draw in draws), dtype=np.int64, count=size)
    out = np.empty(size, dtype=np.int64)
    for start in range(0, size, _CHUNK):
        part = out[start : start + _CHUNK]
        bits = np.frombuffer(entropy.take((part.size + 7) // 8), dtype=np.uint8)
        signs = 1 - 2 * np.unpackbits(bits, count=part.size).view(np.int8)
        np.multiply(table.magnitudes(part.size, entropy), signs, out=part)
    return out


def add_noise(counts: Int64Array, law: Law, entropy: Entropy) -> Int64Array:
    """Return ``counts`` plus one independent draw per cell.

    Raises
    ------
    OverflowError
        If a sum does not fit into 64 bits. The message holds no count.
    """
    noise = sample(law, counts.size, entropy).reshape(counts.shape)
    noisy = counts + noise
    # Sums of arrays wrap. Two's complement: a sum overflowed if and only if both terms differ from it in sign.
    if bool((((counts ^ noisy) & (noise ^ noisy)) < 0).any()):
        raise OverflowError("a noisy count does not fit into 64 bits")
    return noisy


def _fits(draw: int) -> int:
    if not -(1 << 63) <= draw < 1 << 63:
        raise OverflowError("a noise draw does not fit into 64 bits")
    return draw


@dataclass(frozen=True, slots=True, eq=False)
class _Table:
    """Thresholds of one law: ``first64[k] = floor(c_k 2^64)``, ending at the first that is all ones.

    ``guide[g]`` is the magnitude of every U whose first 16 bits are g, or `_UNDECIDED`; ``below[g]`` counts the
    thresholds below the first such U.
    """

    law: DiscreteGaussian | TwoSidedGeometric
    first64: NDArray[np.uint64]
    guide: NDArray[np.int32]
    below: NDArray[np.int32]

    def magnitudes(self, size: int, entropy: Entropy) -> NDArray[np.int32]:
        """Draw |X|, shape (size,)."""
        first16 = np.frombuffer(entropy.take(2 * size), dtype="<u2")
        out: NDArray[np.int32] = self.guide[first16]
        open_ = np.flatnonzero(out == _UNDECIDED)
        if open_.size:
            rest = np.frombuffer(entropy.take(8 * open_.size), dtype="<u8") >> np.uint64(_GUIDE_BITS)
            u = (first16[open_].astype(np.uint64) << np.uint64(_WORD_BITS - _GUIDE_BITS)) | rest
            k = self._count_at_most(u, first16[open_])
            for tie in np.flatnonzero(self.first64[np.maximum(k, 1) - 1] == u):
                k[tie] = _settle(self.law, int(u[tie]), entropy)
            out[open_] = k
        return out

    def _count_at_most(self, u: NDArray[np.uint64], first16: NDArray[np.uint16]) -> NDArray[np.intp]:
        """Count thresholds that are at most ``u``: few steps from the first of its cell, else a binary search."""
        k = self.below[first16].astype(np.intp)
        for _ in range(_STEPS):
            k += self.first64.take(k, mode="clip") <= u
        far = np.flatnonzero(self.first64.take(k, mode="clip") <= u)
        k[far] = np.searchsorted(self.first64, u[far], side="right")
        return k


@lru_cache(maxsize=256)
def _table(law: DiscreteGaussian | TwoSidedGeometric) -> _Table | None:
    """Build the table of a law, or say with None that it would be too long."""
    # 2^-64 of the mass lies beyond 9.3 sigma (Gaussian) or 45 scales (geometric).
    width = 87 * law.sigma2 if isinstance(law, DiscreteGaussian) else (45 * law.scale) ** 2
    if width > _WIDEST_TABLE**2:
        return None
    thresholds: list[int] = []
    for low, high in cdf_bounds(law, _WORD_BITS):
        if low != high:  # the bounds straddle a multiple of 2^-64: leave it to a wider computation
            thresholds.append(_first_bits(law, len(thresholds)))
        else:
            thresholds.append(low)
        if thresholds[-1] == (1 << _WORD_BITS) - 1:
            break
    first64 = np.array(thresholds, dtype=np.uint64)
    starts = np.arange(1 << _GUIDE_BITS, dtype=np.uint64) << np.uint64(_WORD_BITS - _GUIDE_BITS)
    ends = starts | np.uint64((1 << (_WORD_BITS - _GUIDE_BITS)) - 1)
    below = np.searchsorted(first64, starts, side="left")
    guide = np.where(below == np.searchsorted(first64, ends, side="right"), below, _UNDECIDED)
    return _Table(law, first64, guide.astype(np.int32), below.astype(np.int32))


def _first_bits(law: DiscreteGaussian | TwoSidedGeometric, k: int) -> int:
    """First 64 bits of c_k, with as much precision as it takes."""
    bits = 2 * _WORD_BITS
    while True:
        low, high = list(cdf_bounds(law, bits))[k]
        if low >> (bits - _WORD_BITS) == high >> (bits - _WORD_BITS):
            return low >> (bits - _WORD_BITS)
        bits *= 2


def _settle(law: DiscreteGaussian | TwoSidedGeometric, u: int, entropy: Entropy) -> int:
    """Find the magnitude of a U whose first 64 bits ``u`` do not decide it, revealing 64 more at a time."""
    bits = _WORD_BITS
    while True:
        u = u << _WORD_BITS | int.from_bytes(entropy.take(_WORD_BITS // 8), "little")
        bits += _WORD_BITS
        # U lies in [u, u + 1) / 2^bits, and c_k 2^bits in [low, high + 1).
        previous_is_below = True
        for k, (low, high) in enumerate(cdf_bounds(law, bits)):
            if low > u:
                if previous_is_below:
                    return k
                break
            previous_is_below = high < u


def cdf_bounds(law: DiscreteGaussian | TwoSidedGeometric, bits: int) -> Iterator[tuple[int, int]]:
    """Bound the cdf of the magnitude, c_k = P(|X| <= k), for k = 0, 1, 2, ...

    Yields
    ------
    tuple of int
        ``(low, high)`` with ``low = floor`` of a lower bound and ``high = floor`` of an upper bound of
        ``c_k 2^bits``, so that ``low <= c_k 2^bits < high + 1``. Usually they are equal. The last k is the
        first with ``1 - c_k < 2^-bits`` proven, or later.
    """
    guard = 64 + bits // 2
    precision = bits + guard
    one = 1 << precision
    q_low, q_high = _exp_bounds(law.exponent, precision)
    # The weight of k is w_k = prod of s_j, s_0 = q, s_{j+1} = s_j t, with t = q^2 (Gaussian) or 1 (geometric).
    t_low, t_high = (
        (q_low * q_low >> precision, (q_high * q_high >> precision) + 1) if law.curvature == 2 else (one, one)
    )
    w_low, w_high, s_low, s_high = one, one, q_low, q_high
    mass_low, mass_high = one, one
    masses = [(mass_low, mass_high)]
    while True:
        w_low, w_high = w_low * s_low >> precision, (w_high * s_high >> precision) + 1
        s_low, s_high = s_low * t_low >> precision, min(s_high, (s_high * t_high >> precision) + 1)
        # The ratio of later weights is at most s, so all that follows is at most w / (1 - s).
        tail = -(-2 * w_high * one // (one - s_high))
        if tail >> (guard - 8) == 0:
            break
        mass_low, mass_high = mass_low + 2 * w_low, mass_high + 2 * w_high
        masses.append((mass_low, mass_high))
    total_low, total_high = mass_low, mass_high + tail
    top = (1 << bits) - 1
    for low, high in masses:
        yield (low << bits) // total_high, min(top, (high << bits) // total_low)


def _exp_bounds(x: Fraction, precision: int) -> tuple[int, int]:
    """Integers around ``exp(-x) 2^precision``, for x > 0; `decimal` rounds exp correctly."""
    if x > precision:  # exp(-x) < 2^-precision, and its decimal could have more digits than fit
        return 0, 1
    digits = precision * 302 // 1000 + 20
    with decimal.localcontext(decimal.Context(prec=digits, Emin=-(10**9), Emax=10**9)) as context:
        context.rounding = decimal.ROUND_CEILING
        larger = decimal.Decimal(x.numerator) / decimal.Decimal(x.denominator)
        context.rounding = decimal.ROUND_FLOOR
        smaller = decimal.Decimal(x.numerator) / decimal.Decimal(x.denominator)
        context.rounding = decimal.ROUND_HALF_EVEN
        low, high = (-larger).exp().next_minus(), (-smaller).exp().next_plus()
    scale = 1 << precision
    return max(0, int(Fraction(low) * scale)), min(scale, int(Fraction(high) * scale) + 1)
