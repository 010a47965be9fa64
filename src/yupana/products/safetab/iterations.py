"""Characteristic iterations: which of them a record with given race and ethnicity codes belongs to. Public.

SafeTab-H, section 2: the race groups of a record *alone* are those all its race codes share, those *alone or in any
combination* are all that one of its codes is in, and its ethnicity code gives at most one ethnicity group a level.
They are read from the files of codes and iterations of a parameter folder, as the Census Bureau writes these.
"""

import csv
import hashlib
import json
import re
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from itertools import product
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from yupana.errors import ConfigError
from yupana.files.code_tables import TextRow
from yupana.files.document import located
from yupana.files.regular import FOLDER, must_be, read_regular
from yupana.plan.responses import ResponseGroup, most_groups
from yupana.products import PRODUCTS
from yupana.products.safetab.regions import ITERATION_LEVELS, Granularity

MOST_RACE_CODES = 8
"""Race codes of a record."""

RACE, ETHNICITY = "race", "ethnicity"
"""The questions whose answers iterations group by."""


@dataclass(frozen=True, slots=True)
class Iteration:
    """One characteristic iteration."""

    code: str
    name: str
    level: int  # 0 major race, 1 regional, 2 detailed
    # whether it is a race group alone, rather than alone or in any combination; None for an ethnicity group
    alone: bool | None
    # detailed_only, coarse_only: tabulated for the nation and states only; for all other areas only. Both are false at
    # level 0.
    detailed_only: bool
    coarse_only: bool

    def is_eligible(self, granularity: Granularity) -> bool:
        """Whether areas of this granularity show it."""
        return not (self.coarse_only if granularity == "detailed" else self.detailed_only)


@dataclass(frozen=True, eq=False)
class Eligible:
    """The iterations of one level that areas of one granularity show, and which of them each code is in."""

    iterations: tuple[Iteration, ...]  # in order of their codes
    groups: tuple[ResponseGroup, ...]  # the records of each
    # alone, in_combination, ethnic: shape (codes,): of each race and ethnicity code the place of its iteration in
    # `iterations`, or -1
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
        return _stability(self, race_codes)


@lru_cache(maxsize=64)
def _stability(eligible: Eligible, race_codes: int) -> int:
    """It is asked for again with every budget that is tried."""
    return most_groups(eligible.groups, {RACE: race_codes, ETHNICITY: 1})[0]


@dataclass(frozen=True, eq=False)
class CharacteristicIterations:
    """All codes and iterations of a parameter folder, checked."""

    codes: tuple[int, ...]  # race and ethnicity codes, in order
    iterations: tuple[Iteration, ...]  # race and ethnicity iterations, in order of their codes
    members: Mapping[str, frozenset[int]]  # by iteration code: the race and ethnicity codes in each iteration
    files: Mapping[str, str] = field(default_factory=dict)  # SHA-256 of the files they were read from, by name

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
        return {(level, g): self._find(level, g) for level in ITERATION_LEVELS for g in _GRANULARITIES}

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


CONFIG: Final = "config.json"
CONFIG_WITH_COMMENTS: Final = "config.toml"
"""Read where there is no `CONFIG`."""

_FOUR_DIGITS: Final = (r"\d{4}", "four digits")
_CODE: Final = (r"[1-9]\d{3}", "four digits, the first of them not 0")
_NAME: Final = (r".*\S.*", "not empty")
_LEVEL: Final = (r"[0-2]", "0, 1 or 2, as the hierarchy has no deeper level")
_FLAG: Final = (r"True|False", "True or False")
_FLAG_OR_NULL: Final = (r"True|False|Null", "True, False or Null")

_FILES: Final[Mapping[str, Mapping[str, tuple[str, str]]]] = {
    "race-and-ethnicity-codes.txt": {"RACE_ETH_CODE": _CODE, "RACE_ETH_NAME": _NAME},
    "race-characteristic-iterations.txt": {
        "ITERATION_CODE": _FOUR_DIGITS,
        "ITERATION_NAME": _NAME,
        "LEVEL": _LEVEL,
        "ALONE": _FLAG,
        "DETAILED_ONLY": _FLAG_OR_NULL,
        "COARSE_ONLY": _FLAG_OR_NULL,
    },
    "ethnicity-characteristic-iterations.txt": {
        "ITERATION_CODE": _FOUR_DIGITS,
        "ITERATION_NAME": _NAME,
        "LEVEL": _LEVEL,
        "DETAILED_ONLY": _FLAG_OR_NULL,
        "COARSE_ONLY": _FLAG_OR_NULL,
    },
    "race-and-ethnicity-code-to-iteration.txt": {"ITERATION_CODE": _FOUR_DIGITS, "RACE_ETH_CODE": _CODE},
}
_CODES, _RACE, _ETHNICITY, _MAP = _FILES

PARAMETER_FILES: Final = tuple(_FILES)
"""The files of codes and iterations."""

_MOST_NAMED: Final = 20
_SEPARATORS: Final = "|,"


def locate(source: str | Path) -> Path:
    """Where a configuration lies: a parameter folder's, a file, or a built-in one.

    Raises
    ------
    ConfigError
        If the folder has two, or none; or there is no such file or name.
    """
    folder = Path(source)
    if not folder.is_dir():
        return located(source, __package__, [*PRODUCTS.listing("safetab-p").built_in])
    if not (folder / CONFIG_WITH_COMMENTS).exists():
        return folder / CONFIG
    if (folder / CONFIG).exists():
        raise ConfigError(f"{folder} has both {CONFIG} and {CONFIG_WITH_COMMENTS}; remove one")
    return folder / CONFIG_WITH_COMMENTS


def read_iterations(folder: Path) -> CharacteristicIterations:
    """Read the four files of codes and iterations.

    Parameters
    ----------
    folder : Path
        The Census Bureau's parameter folder. Line ends may be of either kind, and blank lines do not matter.

    Raises
    ------
    ConfigError
        Naming file, line and rule of what is wrong; all faults are named at once.
    """
    must_be(FOLDER, folder, "name the folder of the files of codes and iterations", ConfigError)
    faults: list[str] = []
    files: dict[str, str] = {}
    rows = {name: _read(folder / name, columns, files, faults) for name, columns in _FILES.items()}
    if not faults:
        _check_rows(rows, faults)
    if not faults:
        found = _assemble(rows, files)
        _check_hierarchy(found, faults)
        _check_members(found, faults)
        if not faults:
            return found
    raise ConfigError("\n".join([f"parameters {folder} cannot be used:", *(f"  {fault}" for fault in faults)]))


def _read(
    path: Path, columns: Mapping[str, tuple[str, str]], files: dict[str, str], faults: list[str]
) -> list[TextRow]:
    """Read a file, and note its checksum."""
    try:
        content = read_regular(path)
        text = content.decode("utf-8-sig").replace("\r\n", "\n").replace("\r", "\n")
    except (OSError, UnicodeDecodeError) as error:
        told = {FileNotFoundError: "no such file", UnicodeDecodeError: "not text in UTF-8"}
        faults.append(f"{path.name}: {told.get(type(error)) or getattr(error, 'strerror', '')}")
        return []
    files[path.name] = hashlib.sha256(content).hexdigest()
    # Only these end a line; str.splitlines knows others, which may stand in a name.
    lines = text.split("\n")
    separator = next((s for s in _SEPARATORS if s in lines[0]), _SEPARATORS[0])
    read, rows = csv.reader(lines, delimiter=separator, strict=True), []
    try:
        for fields in ([field.strip() for field in row] for row in read):
            place = f"{path.name}: line {read.line_num}"
            if read.line_num == 1 and fields != list(columns):
                faults.append(f"{place}: the columns must be {separator.join(columns)}, in this order")
                return []
            if read.line_num > 1 and len(fields) != len(columns) and any(fields):
                faults.append(f"{place}: must have {len(columns)} fields, not {len(fields)}")
            elif read.line_num > 1 and any(fields):
                rows.append(TextRow(read.line_num, dict(zip(columns, fields, strict=True))))
                faults += [
                    f"{place}: {name} must be {rule}"
                    for (name, (pattern, rule)), field in zip(columns.items(), fields, strict=True)
                    if not re.fullmatch(pattern, field)
                ]
    except csv.Error:
        faults.append(f"{path.name}: not readable as fields separated by {separator}")
    return rows


def _check_rows(rows: Mapping[str, list[TextRow]], faults: list[str]) -> None:
    """Rules on the rows of each file, and that files name what others hold."""
    if not rows[_CODES]:
        faults.append(f"{_CODES}: holds no code")
    _check_unique(rows[_CODES], _CODES, "RACE_ETH_CODE", faults)
    for name in (_RACE, _ETHNICITY):
        _check_unique(rows[name], name, "ITERATION_CODE", faults)
        for row in rows[name]:
            level, detailed, coarse = (row.values[c] for c in ("LEVEL", "DETAILED_ONLY", "COARSE_ONLY"))
            if detailed == coarse == "True":
                faults.append(f"{name}: line {row.line}: DETAILED_ONLY and COARSE_ONLY cannot both be True")
            if not (level == "0") == (detailed == "Null") == (coarse == "Null"):
                text = "DETAILED_ONLY and COARSE_ONLY must be Null at level 0, and at no other"
                faults.append(f"{name}: line {row.line}: {text}")
    race, ethnicity = ({row.values["ITERATION_CODE"] for row in rows[name]} for name in (_RACE, _ETHNICITY))
    if both := sorted(race & ethnicity):
        faults.append(f"{_ETHNICITY}: iterations that are race iterations, too: {_listed(both)}")
    known, codes = race | ethnicity, {row.values["RACE_ETH_CODE"] for row in rows[_CODES]}
    for row in rows[_MAP]:
        if row.values["ITERATION_CODE"] not in known:
            faults.append(f"{_MAP}: line {row.line}: ITERATION_CODE is in neither file of iterations")
        if row.values["RACE_ETH_CODE"] not in codes:
            faults.append(f"{_MAP}: line {row.line}: RACE_ETH_CODE is not in {_CODES}")


def _check_unique(rows: list[TextRow], name: str, column: str, faults: list[str]) -> None:
    seen: dict[str, int] = {}
    for row in rows:
        first = seen.setdefault(row.values[column], row.line)
        if first != row.line:
            faults.append(f"{name}: line {row.line}: {column} stands in line {first} already")


def _assemble(rows: Mapping[str, list[TextRow]], files: Mapping[str, str]) -> CharacteristicIterations:
    iterations = sorted(
        (
            Iteration(
                code=row.values["ITERATION_CODE"],
                name=row.values["ITERATION_NAME"],
                level=int(row.values["LEVEL"]),
                alone=row.values["ALONE"] == "True" if name == _RACE else None,
                detailed_only=row.values["DETAILED_ONLY"] == "True",
                coarse_only=row.values["COARSE_ONLY"] == "True",
            )
            for name in (_RACE, _ETHNICITY)
            for row in rows[name]
        ),
        key=lambda iteration: iteration.code,
    )
    members: dict[str, set[int]] = {iteration.code: set() for iteration in iterations}
    for row in rows[_MAP]:
        members[row.values["ITERATION_CODE"]].add(int(row.values["RACE_ETH_CODE"]))
    return CharacteristicIterations(
        codes=tuple(sorted(int(row.values["RACE_ETH_CODE"]) for row in rows[_CODES])),
        iterations=tuple(iterations),
        members={code: frozenset(codes) for code, codes in members.items()},
        files=files,
    )


_GRANULARITIES: Final[Mapping[Granularity, str]] = {"detailed": "nation and states", "coarse": "other areas"}
"""The areas of each, in words."""


def _check_hierarchy(found: CharacteristicIterations, faults: list[str]) -> None:
    """No code may be in two iterations of one level, kind and granularity: the sensitivity rests on it."""
    kinds: Mapping[bool | None, str] = {True: "alone", False: "alone or in any combination", None: "of ethnicity"}
    told: set[tuple[int, tuple[str, ...]]] = set()
    for level, kind, granularity in product(ITERATION_LEVELS, kinds, _GRANULARITIES):
        holders: dict[int, list[str]] = defaultdict(list)
        for iteration in found.eligible(level, granularity).iterations:
            for code in found.members[iteration.code] if iteration.alone is kind else ():
                holders[code].append(iteration.code)
        for code, codes in sorted(holders.items()):
            if len(codes) > 1 and (code, tuple(codes)) not in told:
                told.add((code, tuple(codes)))
                where = f"level {level} {kinds[kind]} for {_GRANULARITIES[granularity]}"
                faults.append(f"{_MAP}: code {code} is in more than one iteration of {where}: {_listed(codes)}")


def _check_members(found: CharacteristicIterations, faults: list[str]) -> None:
    """Where areas show iterations of a level, some code is in one of them: nobody could be counted otherwise."""
    for level, granularity in product(ITERATION_LEVELS, _GRANULARITIES):
        shown = found.eligible(level, granularity).iterations
        if shown and not any(found.members[iteration.code] for iteration in shown):
            faults.append(f"{_MAP}: no code is in an iteration of level {level} for {_GRANULARITIES[granularity]}")


def _listed(codes: list[str]) -> str:
    more = f" and {len(codes) - _MOST_NAMED} more" if len(codes) > _MOST_NAMED else ""
    return ", ".join(codes[:_MOST_NAMED]) + more
