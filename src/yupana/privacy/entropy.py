"""Where random bits come from: the operating system, or a seed in test mode."""

import hashlib
import ssl
from dataclasses import dataclass, field
from functools import cache
from typing import Final, Protocol

from yupana.errors import EntropyError


class Entropy(Protocol):
    """A source of independent uniform bits."""

    @property
    def for_release(self) -> bool:
        """Whether noise made from it may be published."""
        ...

    def take(self, size: int) -> bytes:
        """Return ``size`` fresh bytes."""
        ...

    def branch(self, name: str) -> "Entropy":
        """Another source, independent of this one and of those of other names."""
        ...


@dataclass(frozen=True, slots=True)
class SystemEntropy:
    """The operating system's entropy, stretched by OpenSSL's generator (CTR_DRBG with AES-256, NIST SP 800-90A).

    OpenSSL seeds it from the operating system, again and again, and anew in every forked child. No state and no buffer
    of ours lies in between. `os.urandom` would do as well at a twelfth of the speed, which would then be all the time a
    draw takes (docs/sampler.md says what is assumed).
    """

    @property
    def for_release(self) -> bool:
        """True: bits from the operating system may be published as noise."""
        return True

    def take(self, size: int) -> bytes:
        """Return ``size`` bytes.

        Raises
        ------
        EntropyError
            If the generator fails, or has failed the test that is made of it once.
        """
        _check_generator()
        return _generated(size)

    def branch(self, name: str) -> "SystemEntropy":  # noqa: ARG002  (all bits of the system are independent)
        """Return this source."""
        return self


def _generated(size: int) -> bytes:
    try:
        return ssl.RAND_bytes(size)
    except ssl.SSLError:
        raise EntropyError("the generator of random numbers of OpenSSL fails; nothing can be released") from None


_TESTED: Final = 1 << 15
"""Bits that are tested."""


@cache
def _check_generator() -> None:
    """Test once whether bits come in equal numbers and no word of 64 bits comes twice.

    It finds a generator that is broken, such as one that gives zeros only or repeats itself, not one that is weak. A
    good one fails with probability below 1e-11: seven standard deviations of the number of ones, and 512 words.
    """
    sample = _generated(_TESTED // 8)
    ones = int.from_bytes(sample, "little").bit_count()
    words = {sample[start : start + 8] for start in range(0, len(sample), 8)}
    if (2 * ones - _TESTED) ** 2 > 49 * _TESTED or len(words) < len(sample) // 8:
        raise EntropyError("the generator of random numbers of this system gives bits that are not random")


@dataclass(slots=True)
class SeededEntropy:
    """Reproducible bits for tests and demonstrations, from SHAKE-256 in counter mode.

    Whatever is made from it is marked NOT FOR RELEASE: whoever knows the seed can take the noise off.
    """

    seed: int
    name: str = ""
    _block: int = field(default=0, init=False)

    @property
    def for_release(self) -> bool:
        """False: a seed is not a secret."""
        return False

    def take(self, size: int) -> bytes:
        """Return the next ``size`` bytes of the stream of calls."""
        self._block += 1
        return hashlib.shake_256(f"yupana|{self.seed}{self.name}|{self._block}".encode()).digest(size)

    def branch(self, name: str) -> "SeededEntropy":
        """Return the stream of a name: the same bits whatever was taken elsewhere before."""
        return SeededEntropy(self.seed, f"{self.name}/{name}")
