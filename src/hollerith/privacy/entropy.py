"""Where random bits come from: the operating system, or a seed in test mode."""

import hashlib
import ssl
from dataclasses import dataclass, field
from typing import Protocol


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
        """Return ``size`` bytes."""
        return ssl.RAND_bytes(size)

    def branch(self, name: str) -> "SystemEntropy":  # noqa: ARG002  (all bits of the system are independent)
        """Return this source."""
        return self


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
        return hashlib.shake_256(f"hollerith|{self.seed}{self.name}|{self._block}".encode()).digest(size)

    def branch(self, name: str) -> "SeededEntropy":
        """Return the stream of a name: the same bits whatever was taken elsewhere before."""
        return SeededEntropy(self.seed, f"{self.name}/{name}")
