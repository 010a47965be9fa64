"""Population groups by a multiple response: a question that one record may answer with several codes, such as race.

Public: codes and groups are parameters, and nothing here sees a record.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from math import comb
from typing import Final

_MOST_TRIED: Final = 1 << 16
"""Most sets of kinds of codes that are tried one by one."""


@dataclass(frozen=True, slots=True)
class ResponseGroup:
    """The records of which one code, or every code, of a response is among some."""

    response: str  # the name of the question
    members: frozenset[int]  # places of the codes
    alone: bool = False  # whether all codes of a record must be members, rather than any of them

    def __contains__(self, codes: Collection[int]) -> bool:
        """Whether a record with these codes is in the group; one without any is in none."""
        given = frozenset(codes)
        return bool(given) and (given <= self.members if self.alone else not given.isdisjoint(self.members))


def most_groups(groups: Iterable[ResponseGroup], most_codes: Mapping[str, int]) -> tuple[int, bool]:
    """How many of some groups one record is in at most, and whether some record is in so many.

    Responses are columns of their own, so what one of them adds does not depend on the others.

    Parameters
    ----------
    most_codes : mapping of response to int
        How many codes of a record count.
    """
    of: dict[str, list[ResponseGroup]] = {}
    for group in groups:
        of.setdefault(group.response, []).append(group)
    found = [_most_of_one(some, most_codes[response]) for response, some in of.items()]
    return sum(number for number, _ in found), all(exact for _, exact in found)


def _most_of_one(groups: Sequence[ResponseGroup], most: int) -> tuple[int, bool]:
    """The same of one response.

    Only which groups a code is a member of matters, so codes that are members of the same ones are tried once. Where
    there are too many kinds of codes, no record with k codes is in more groups of any code than k times what one code
    is in, nor in more groups alone than each of its codes is a member of (docs/tables-privacy.md, lemma 3).
    """
    of_code: dict[int, list[int]] = {}
    for place, one in enumerate(groups):
        for code in one.members:
            of_code.setdefault(code, []).append(place)
    kinds = set(map(frozenset, of_code.values()))
    alone = frozenset(place for place, group in enumerate(groups) if group.alone)
    if not kinds:
        return 0, True
    if any(len(kind - alone) > 1 or len(kind & alone) > 1 for kind in kinds):
        return _most_of_overlapping(list(kinds), alone, most)
    any_code = {kind - alone for kind in kinds} - {frozenset()}
    within: dict[frozenset[int], set[frozenset[int]]] = {kind & alone: set() for kind in kinds if kind & alone}
    for kind in kinds:
        if kind & alone and kind - alone:
            within[kind & alone].add(kind - alone)
    return max(min(most, len(any_code)), *(1 + min(most, len(with_it)) for with_it in within.values()), 0), True


def _most_of_overlapping(kinds: Sequence[frozenset[int]], alone: frozenset[int], most: int) -> tuple[int, bool]:
    """Where a code is a member of several groups of a sort."""
    most = min(most, len(kinds))
    if sum(comb(len(kinds), number) for number in range(1, most + 1)) > _MOST_TRIED:
        any_code = min(len(frozenset().union(*kinds) - alone), most * max(len(kind - alone) for kind in kinds))
        return any_code + max(len(kind & alone) for kind in kinds), False
    return max(
        len(frozenset().union(*some) - alone) + len(frozenset.intersection(*some) & alone)
        for number in range(1, most + 1)
        for some in combinations(kinds, number)
    ), True
