"""The characteristic iterations of the Bureau's parameter folder, as postprocessing needs them. Public."""

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from hollerith.errors import InputError

RACE: Final = "race-characteristic-iterations.txt"
ETHNICITY: Final = "ethnicity-characteristic-iterations.txt"
CODES: Final = "race-and-ethnicity-code-to-iteration.txt"

WHOLE_STATES: Final = frozenset({"USA", "STATE", "PR-STATE"})
"""Region types that show iterations for nation and state only, and are never suppressed by SafeTab-P."""


@dataclass(frozen=True, slots=True)
class Iteration:
    """A characteristic iteration.

    Attributes
    ----------
    code, name, level : str
    alone : bool or None
        None for an ethnicity.
    detailed_only, coarse_only : bool
        Shown for nation and states only; below the state only.
    """

    code: str
    name: str
    level: str
    alone: bool | None
    detailed_only: bool
    coarse_only: bool

    def is_shown_for(self, region_type: str) -> bool:
        """Whether SafeTab tabulates it for regions of a type."""
        if self.level == "0":
            return False
        return not self.coarse_only if region_type in WHOLE_STATES else not self.detailed_only


def read_iterations(folder: Path) -> dict[str, Iteration]:
    """Read the iterations of race and of ethnicity, by code.

    Raises
    ------
    InputError
        If a file is missing, unreadable or broken.
    """
    found: dict[str, Iteration] = {}
    shared = ("ITERATION_CODE", "ITERATION_NAME", "LEVEL")
    flags = ("DETAILED_ONLY", "COARSE_ONLY")
    for name, columns in ((RACE, (*shared, "ALONE", *flags)), (ETHNICITY, (*shared, *flags))):
        for line, row in _rows(folder / name, columns):
            code = row["ITERATION_CODE"]
            if code in found:
                raise InputError(f"{folder / name}, line {line}: iteration {code} is listed twice")
            if not {row[flag] for flag in flags} <= {"True", "False", "Null"} or row.get("ALONE") not in _ALONE:
                raise InputError(f"{folder / name}, line {line}: ALONE is True or False, other flags may be Null")
            is_set = {flag: row[flag] == "True" for flag in flags}
            found[code] = Iteration(
                code, row["ITERATION_NAME"], row["LEVEL"], _ALONE[row.get("ALONE")], *(is_set[flag] for flag in flags)
            )
    return found


_ALONE: Final[Mapping[str | None, bool | None]] = {None: None, "True": True, "False": False}


@dataclass(frozen=True, slots=True)
class Pairing:
    """Which iteration "alone or in any combination" belongs to each iteration "alone".

    Attributes
    ----------
    pairs : mapping of str to str
        From the code of the former's counterpart alone to the code in combination.
    unpaired : tuple of str
        Iterations alone without a counterpart.
    """

    pairs: Mapping[str, str]
    unpaired: tuple[str, ...]


def pair_iterations(iterations: Mapping[str, Iteration], codes: Mapping[str, frozenset[str]]) -> Pairing:
    """Pair iterations of race by their codes, or else by their names.

    The counterpart of "X alone" is the iteration in combination of the same level with the same codes; where there are
    several, or none, the one named "X alone or in ...", provided that it has all codes of "X alone": only then can the
    true counts not be the wrong way round.

    Parameters
    ----------
    iterations : mapping of code to Iteration
    codes : mapping of code to frozenset of str
        The race codes of each iteration.
    """
    by_codes: dict[tuple[str, frozenset[str]], list[Iteration]] = defaultdict(list)
    by_level: dict[str, list[Iteration]] = defaultdict(list)
    for iteration in iterations.values():
        if iteration.alone is False:
            by_codes[iteration.level, codes.get(iteration.code, frozenset())].append(iteration)
            by_level[iteration.level].append(iteration)
    pairs: dict[str, str] = {}
    unpaired = []
    for iteration in iterations.values():
        if not iteration.alone:
            continue
        own = codes.get(iteration.code, frozenset())
        same = by_codes.get((iteration.level, own), []) if own else []
        if len(same) != 1:
            named = [other for other in same or by_level[iteration.level] if _is_named_after(iteration, other)]
            same = [other for other in named if own <= codes.get(other.code, frozenset())]
        if len(same) == 1:
            pairs[iteration.code] = same[0].code
        else:
            unpaired.append(iteration.code)
    return Pairing(pairs, tuple(unpaired))


def _is_named_after(alone: Iteration, other: Iteration) -> bool:
    """Whether one is "X alone" or "X alone, Y" and the other "X alone or in ..." or "X alone or in ..., Y"."""
    start, found, end = alone.name.partition(" alone")
    return bool(found) and other.name.startswith(f"{start} alone or in ") and other.name.endswith(end)


def read_codes(folder: Path) -> dict[str, frozenset[str]]:
    """Read the race and ethnicity codes of each iteration.

    Raises
    ------
    InputError
        If the file is missing, unreadable or broken.
    """
    found: dict[str, set[str]] = defaultdict(set)
    for _, row in _rows(folder / CODES, ("ITERATION_CODE", "RACE_ETH_CODE")):
        found[row["ITERATION_CODE"]].add(row["RACE_ETH_CODE"])
    return {iteration: frozenset(codes) for iteration, codes in found.items()}


def _rows(path: Path, columns: tuple[str, ...]) -> list[tuple[int, dict[str, str]]]:
    """Rows with their lines; carriage returns, a byte-order mark and blank lines are passed over."""
    try:
        lines = [line.strip() for line in path.read_text(encoding="utf-8-sig").split("\n")]
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise InputError(f"{path} is not UTF-8") from None
    if tuple(lines[0].split("|")) != columns:
        raise InputError(f"{path}, line 1: its columns must be {'|'.join(columns)}")
    rows = []
    for number, line in enumerate(lines[1:], start=2):
        if not line:
            continue
        fields = line.split("|")
        if len(fields) != len(columns):
            raise InputError(f"{path}, line {number}: {len(columns)} fields are needed")
        rows.append((number, dict(zip(columns, fields, strict=True))))
    return rows
