"""Which iteration "alone or in any combination" belongs to each iteration "alone". Public."""

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass

from yupana.products.safetab.iterations import CharacteristicIterations, Iteration


@dataclass(frozen=True, slots=True)
class Pairing:
    """Iterations of race that belong together.

    Attributes
    ----------
    pairs : mapping of str to str
        From the code of an iteration alone to the code of its counterpart in combination.
    unpaired : tuple of str
        Iterations alone without a counterpart.
    """

    pairs: Mapping[str, str]
    unpaired: tuple[str, ...]


def pair_iterations(found: CharacteristicIterations) -> Pairing:
    """Pair iterations of race by their codes, or else by their names.

    The counterpart of "X alone" is the iteration in combination of the same level with the same codes; where there are
    several, or none, the one named "X alone or in ...", provided that it has all codes of "X alone": only then can the
    true counts not be the wrong way round.
    """
    by_codes: dict[tuple[int, frozenset[int]], list[Iteration]] = defaultdict(list)
    by_level: dict[int, list[Iteration]] = defaultdict(list)
    for iteration in found.iterations:
        if iteration.alone is False:
            by_codes[iteration.level, found.members[iteration.code]].append(iteration)
            by_level[iteration.level].append(iteration)
    pairs: dict[str, str] = {}
    unpaired = []
    for iteration in found.iterations:
        if not iteration.alone:
            continue
        own = found.members[iteration.code]
        same = by_codes.get((iteration.level, own), []) if own else []
        if len(same) != 1:
            named = [other for other in same or by_level[iteration.level] if _is_named_after(iteration, other)]
            same = [other for other in named if own <= found.members[other.code]]
        if len(same) == 1:
            pairs[iteration.code] = same[0].code
        else:
            unpaired.append(iteration.code)
    return Pairing(pairs, tuple(unpaired))


def _is_named_after(alone: Iteration, other: Iteration) -> bool:
    """Whether one is "X alone" or "X alone, Y" and the other "X alone or in ..." or "X alone or in ..., Y"."""
    start, found, end = alone.name.partition(" alone")
    return bool(found) and other.name.startswith(f"{start} alone or in ") and other.name.endswith(end)
