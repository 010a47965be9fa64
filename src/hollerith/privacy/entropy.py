"""Where random bits come from: the operating system, or a seed in test mode."""

import hashlib
import os
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


@dataclass(frozen=True, slots=True)
class SystemEntropy:
    """The operating system's generator, asked each time.

    The process keeps no generator state and no buffer, so a forked child can never repeat its parent's bits,
    and no assumption beyond the kernel's generator enters the proof (docs/sampler.md).
    """

    @property
    def for_release(self) -> bool:
        """True: bits from the operating system may be published as noise."""
        return True

    def take(self, size: int) -> bytes:
        """Return ``size`` bytes from `os.urandom`."""
        return os.urandom(size)


@dataclass(slots=True)
class SeededEntropy:
    """Reproducible bits for tests and demonstrations, from SHAKE-256 in counter mode.

    Whatever is made from it is marked NOT FOR RELEASE: whoever knows the seed can take the noise off.
    """

    seed: int
    _block: int = field(default=0, init=False)

    @property
    def for_release(self) -> bool:
        """False: a seed is not a secret."""
        return False

    def take(self, size: int) -> bytes:
        """Return the next ``size`` bytes of the stream of calls."""
        self._block += 1
        return hashlib.shake_256(f"hollerith|{self.seed}|{self._block}".encode()).digest(size)
