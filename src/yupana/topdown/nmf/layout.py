"""How the Census Bureau's noisy measurement files are laid out: folders, columns, names, geocodes; and found. Public.

The facts are those of docs/noisy-measurement-files.md. The writer and the reader share these names and nothing else.
"""

import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from yupana.errors import InputError
from yupana.files.regular import FOLDER, must_be
from yupana.geography.settings import LEVELS

DPQUERY: Final = "DPQuery"
CONSTRAINT: Final = "Constraint"
"""The folders of a geolevel: noisy answers, and what holds exactly."""

QUERY_ENDING: Final = "_dpq"
"""What the names of queries end with."""

COLUMNS: Final = ("geocode", "query_name", "sign", "query_shape", "value", "variance", "plb", "State", "County")
"""Columns beside those of the attributes; ``sign`` is of constraints alone, ``plb`` may be absent."""

PARTITION: Final = "State"
"""The key of the folders below every geolevel but the nation."""

SUMMED: Final = "*"
WHOLE: Final = "detailed"
"""What an axis says that is summed over, and that is kept level by level; so does the name of its attribute."""

JOINED: Final = " * "
"""Between the parts of a query's name."""

TOTAL_IS: Final = "total_con"
TOTAL_AT_LEAST: Final = "total_lb_con"
QUARTERS_AT_LEAST: Final = "hhgq_total_lb_con"
QUARTERS_AT_MOST: Final = "hhgq_total_ub_con"
ZERO_ENDING: Final = "_0_con"
NURSING_MINORS: Final = "nurse_nva_0_con"

LEVEL_NAMES: Final = {("hhgq", 3): "gqNursingTotal", ("votingage", 0): "nonvoting"}
"""What an axis says of which one level alone is kept, of the redistricting data."""

NATION: Final = "US"

BRANCH_AND_STATE: Final = 3
"""Characters of a state: 0, or 1 within areas of American Indians and Alaska Natives, and its two digits."""

COUNTY: Final = "10"
"""What stands between a state and the three digits of a county that is no such area."""

MORE_CHARACTERS: Final = {"County": 1, "Tract_Group": 3, "Tract": 4, "Block_Group": 2}
"""Characters of the number of a geounit within the one above, at least; of a county behind its digits."""

BLOCK_DIGITS: Final = 16
"""The last characters of a block: state 2, county 3, tract 6, block group 1, block 4."""


LEVEL_ENDING: Final = ".parquet"
"""What the folders of geolevels end with."""

_STATE: Final = re.compile(r"State=([0-9]{1,3})")


@dataclass(frozen=True, slots=True)
class FoundFiles:
    """The files of one dataset."""

    folder: Path
    levels: tuple[str, ...]  # geolevels that are there, from the top down
    # by kind, `DPQUERY` or `CONSTRAINT`, and partition the files; the partition is the three characters of the state
    # with its branch, and empty where there is none
    parts: Mapping[tuple[str, str], Mapping[str, tuple[Path, ...]]]

    def files(self) -> list[Path]:
        """All of them, in order."""
        return sorted({path for of in self.parts.values() for files in of.values() for path in files})


def find_files(root: Path, dataset: str | None, states: Collection[str] = ()) -> FoundFiles:
    """Find the files of a dataset.

    Parameters
    ----------
    root : Path
        The folder that holds datasets, by themselves or each in a folder of a part, or one dataset.
    dataset : str or None
        Its name; may be left out where there is one.
    states : collection of str
        States to keep, as two digits for both branches or three for one; all if none is named. With states the nation
        is left out: what was measured of it is not of them.

    Raises
    ------
    InputError
        If there is no such dataset, or a geolevel that a spine has not, or a state that is named and not there.
    """
    folder = _dataset(root, dataset)
    found = {path.name.removesuffix(LEVEL_ENDING): path for path in _levels(folder)}
    if odd := sorted(set(found) - set(LEVELS)):
        raise InputError(
            f"{folder}: {', '.join(odd)} is no geolevel of the redistricting files; there are {', '.join(LEVELS)}. The "
            "files of the DHC, with Prim and subsets of tracts, are not read"
        )
    if flat := [path for path in found.values() if not path.is_dir()]:
        raise InputError(f"{flat[0]} is a file; a geolevel is a folder with {DPQUERY} and {CONSTRAINT}")
    levels = [level for level in LEVELS if level in found and not (states and level == NATION)]
    parts = {(level, kind): _parts(found[level] / kind, level) for level in levels for kind in (DPQUERY, CONSTRAINT)}
    if not levels or not any(parts.values()):
        raise InputError(f"{folder} holds no noisy measurement files")
    if states:
        _check_states(folder, states, {state for of in parts.values() for state in of})
        parts = {
            key: {state: files for state, files in of.items() if state in states or state[1:] in states}
            for key, of in parts.items()
        }
    return FoundFiles(folder, tuple(levels), parts)


def _dataset(root: Path, name: str | None) -> Path:
    must_be(FOLDER, root, "name a folder of noisy measurement files")
    if name is None and _levels(root):
        return root
    known = {path.name: path for path in sorted(_datasets(root))}
    if name is None and len(known) == 1:
        return next(iter(known.values()))
    if not known:
        raise InputError(f"{root} holds no noisy measurement files: no dataset with a folder such as Block.parquet")
    listed = ", ".join(known)
    if name is None:
        raise InputError(f"{root}: name one of its datasets with --dataset: {listed}")
    if name not in known:
        raise InputError(
            f"{root} holds no dataset {name!r}: a folder with folders such as County.parquet; there is {listed}"
        )
    return known[name]


def _datasets(root: Path) -> Iterator[Path]:
    """The datasets in a folder, or in those of the parts of a release."""
    for path in root.iterdir():
        if path.is_dir() and _levels(path):
            yield path
        elif path.is_dir():
            yield from (one for one in path.iterdir() if one.is_dir() and _levels(one))


def _levels(folder: Path) -> list[Path]:
    return [path for path in folder.iterdir() if path.name.endswith(LEVEL_ENDING) and not path.name.startswith("part-")]


def _parts(folder: Path, level: str) -> dict[str, tuple[Path, ...]]:
    """The files of a geolevel by partition; none where the folder is missing, as where every unit was bypassed."""
    found: dict[str, list[Path]] = {}
    for path in sorted(folder.rglob(f"*{LEVEL_ENDING}")) if folder.is_dir() else ():
        if path.is_dir():
            continue
        keys = [_STATE.fullmatch(part) for part in path.relative_to(folder).parts[:-1]]
        state = [key[1] for key in keys if key is not None]
        if len(keys) > 1 or len(state) != len(keys) or (level != NATION and not state):
            raise InputError(f"{path}: the files of {level} must lie in folders such as {folder.name}/State=050")
        found.setdefault(f"{int(state[0]):03d}" if state else "", []).append(path)
    return {state: tuple(paths) for state, paths in found.items()}


def _check_states(folder: Path, states: Collection[str], there: Collection[str]) -> None:
    odd = [state for state in states if not re.fullmatch("[01]?[0-9]{2}", state)]
    if odd:
        raise InputError(f"--states: {odd[0]!r} is no state: two digits, or three with the branch, such as 50 or 050")
    missing = [state for state in states if state not in there and state not in {other[1:] for other in there}]
    if missing:
        raise InputError(
            f"--states: {folder} has no partition of {', '.join(missing)}; there is {', '.join(sorted(there))}"
        )
