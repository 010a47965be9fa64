"""Characteristic iterations: which of them a record with given race and ethnicity codes belongs to. Public.

SafeTab-H, section 2: the race groups of a record *alone* are those all its race codes share, those *alone or in any
combination* are all that one of its codes is in, and its ethnicity code gives at most one ethnicity group a level.
"""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from yupana.plan.responses import ResponseGroup, most_groups
from yupana.products.safetab.regions import ITERATION_LEVELS, Granularity

MOST_RACE_CODES = 8
"""Race codes of a record."""

RACE, ETHNICITY = "race", "ethnicity"
"""The questions whose answers iterations group by."""


@dataclass(frozen=True, slots=True)
class Iteration:
    """One characteristic iteration.

    Attributes
    ----------
    code, name : str
    level : int
        0 major race, 1 regional, 2 detailed.
    alone : bool or None
        Whether it is a race group alone, rather than alone or in any combination; None for an ethnicity group.
    detailed_only, coarse_only : bool
        Tabulated for the nation and states only; for all other areas only. Both are false at level 0.
    """

    code: str
    name: str
    level: int
    alone: bool | None
    detailed_only: bool
    coarse_only: bool

    def is_eligible(self, granularity: Granularity) -> bool:
        """Whether areas of this granularity show it."""
        return not (self.coarse_only if granularity == "detailed" else self.detailed_only)


@dataclass(frozen=True, eq=False)
class Eligible:
    """The iterations of one level that areas of one granularity show, and which of them each code is in.

    Attributes
    ----------
    iterations : tuple of Iteration
        In order of their codes.
    groups : tuple of ResponseGroup
        The records of each.
    alone, in_combination, ethnic : numpy.ndarray of int32, shape (codes,)
        Of each race and ethnicity code the place of its iteration in `iterations`, or -1.
    """

    iterations: tuple[Iteration, ...]
    groups: tuple[ResponseGroup, ...]
    alone: NDArray[np.int32]
    in_combination: NDArray[np.int32]
    ethnic: NDArray[np.int32]

    def published_stability(self, race_codes: int) -> int:
        """Most iterations a record can be in, as the originals bound it: ``h_race * max(2, race codes) + h_ethnic``.

        h is 1 where some code is in an iteration, else 0: no code is in two of one kind (SafeTab-H, section 7).
        """
        h_race = int(bool((self.alone >= 0).any() or (self.in_combination >= 0).any()))
        return h_race * max(2, race_codes) + int(bool((self.ethnic >= 0).any()))

    def stability(self, race_codes: int) -> int:
        """Most iterations a record with 1 to ``race_codes`` race codes and one ethnicity code is in, exactly.

        For no code is in two of one kind, which is refused when code files are read.
        """
        return most_groups(self.groups, {RACE: race_codes, ETHNICITY: 1})[0]


@dataclass(frozen=True, eq=False)
class CharacteristicIterations:
    """All codes and iterations of a parameter folder, checked.

    Attributes
    ----------
    codes : tuple of int
        Race and ethnicity codes, in order.
    iterations : tuple of Iteration
        Race and ethnicity iterations, in order of their codes.
    members : mapping of iteration code to frozenset of int
        The race and ethnicity codes in each iteration.
    files : mapping of str to str
        SHA-256 of the files they were read from, by name.
    """

    codes: tuple[int, ...]
    iterations: tuple[Iteration, ...]
    members: Mapping[str, frozenset[int]]
    files: Mapping[str, str] = field(default_factory=dict)

    @cached_property
    def sha256(self) -> str:
        """SHA-256 of what decides which records an iteration counts: the codes, and each iteration but for its name.

        Two parameter folders with the same number define the same population groups, however their files are written.
        """
        defined = [
            (i.code, i.level, i.alone, i.detailed_only, i.coarse_only, sorted(self.members[i.code]))
            for i in self.iterations
        ]
        return hashlib.sha256(json.dumps([self.codes, defined]).encode()).hexdigest()

    @property
    def ethnicity_codes(self) -> frozenset[int]:
        """Codes that some ethnicity iteration holds."""
        ethnic = [self.members[iteration.code] for iteration in self.iterations if iteration.alone is None]
        return frozenset().union(*ethnic)

    @cached_property
    def _eligible(self) -> Mapping[tuple[int, Granularity], Eligible]:
        granularities: tuple[Granularity, ...] = ("detailed", "coarse")
        return {(level, g): self._find(level, g) for level in ITERATION_LEVELS for g in granularities}

    def eligible(self, level: int, granularity: Granularity) -> Eligible:
        """Iterations of a level that areas of a granularity show."""
        return self._eligible[level, granularity]

    def _find(self, level: int, granularity: Granularity) -> Eligible:
        chosen = tuple(i for i in self.iterations if i.level == level and i.is_eligible(granularity))
        place = {code: number for number, code in enumerate(self.codes)}
        groups = tuple(
            ResponseGroup(
                ETHNICITY if iteration.alone is None else RACE,
                frozenset(place[code] for code in self.members[iteration.code]),
                alone=bool(iteration.alone),
            )
            for iteration in chosen
        )
        of_kind = {kind: np.full(len(self.codes), -1, dtype=np.int32) for kind in (True, False, None)}
        for number, iteration in enumerate(chosen):
            for code in self.members[iteration.code]:
                of_kind[iteration.alone][place[code]] = number
        return Eligible(chosen, groups, alone=of_kind[True], in_combination=of_kind[False], ethnic=of_kind[None])
