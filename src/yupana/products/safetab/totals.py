"""T01001 of SafeTab-P as SafeTab-H's input: which population groups exist, and how large they are. Public."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from yupana.arrays import Ints
from yupana.errors import InputError
from yupana.files import regular
from yupana.files.database import open_database, unreadable
from yupana.files.delimited import PARQUET, Header, column_types, csv_rows, parquet_rows, read_header
from yupana.products.described.published import PublishedGroups
from yupana.products.safetab.configuration import Settings
from yupana.products.safetab.iterations import CharacteristicIterations
from yupana.products.safetab.regions import REGION_TYPES, Level
from yupana.release.recipe import SUPPRESSED

COLUMNS: Final = ("REGION_ID", "REGION_TYPE", "ITERATION_CODE", "COUNT")
"""What is read, and all that the originals' file of totals has."""

FILE: Final = "pop-group-totals.txt"
REASON: Final = "REASON"
"""The column that a table has gained when counts were suppressed."""

_MOST_LINES: Final = 20
_ANY_ID: Final = "[0-9]{2}|[0-9]{5}|[0-9]{7}|[0-9]{11}"


@dataclass(frozen=True, eq=False)
class Totals:
    """The rows of T01001 that a run measures, by level, and how many it leaves out.

    Attributes
    ----------
    by_level : mapping of Level to PublishedGroups
        Ids of areas as numbers, and places in the eligible iterations of the level.
    left_out : mapping of reason to int
    """

    by_level: Mapping[Level, PublishedGroups]
    left_out: Mapping[str, int]


def read_totals(path: Path, settings: Settings, iterations: CharacteristicIterations) -> Totals:
    """Read a table of totals, `|`- or `,`-separated or Parquet. It is public, so messages may quote it.

    Parameters
    ----------
    path : Path
        Columns REGION_ID, REGION_TYPE, ITERATION_CODE and COUNT; others do not matter.
    settings : Settings
    iterations : CharacteristicIterations

    Raises
    ------
    InputError
        If it is no such table, a row is malformed or stands twice, or none belongs to the run.
    """
    region_type, region, state, code, count, suppressed, lines = _read(path, settings)
    _refuse_twice(path, region_type, region, code, lines)
    place_of = {i.code: place for place, i in enumerate(iterations.iterations)}
    known = np.full(10_000, -1, dtype=np.int64)
    known[[int(code) for code in place_of]] = list(place_of.values())
    place = known[code]
    left = np.full(len(region), "", dtype="U40")
    of_run = np.array([r.run in settings.runs for r in REGION_TYPES])
    states = np.array(sorted(settings.states))
    in_states = np.array([r.base not in {"nation", "aiannh"} for r in REGION_TYPES])[region_type]
    left[in_states & ~np.isin(state, states)] = "of states left out"
    left[~of_run[region_type]] = "of a pass left out"
    left[place < 0] = "of unknown iterations"
    left[suppressed] = "suppressed"
    by_level = {}
    for level in settings.levels:
        eligible = iterations.eligible(level.iteration_level, level.region.granularity).iterations
        within = np.full(len(iterations.iterations), -1, dtype=np.int64)
        within[[place_of[i.code] for i in eligible]] = np.arange(len(eligible))
        of_level = (region_type == REGION_TYPES.index(level.region)) & (left == "") & (place >= 0)
        chosen = np.flatnonzero(of_level)
        chosen = chosen[within[place[chosen]] >= 0]
        left[chosen] = "measured"
        order = np.lexsort((within[place[chosen]], region[chosen]))
        chosen = chosen[order]
        by_level[level] = PublishedGroups(region[chosen], within[place[chosen]], count[chosen])
    left[left == ""] = "of iterations not published there"
    if not (left == "measured").any():
        raise InputError(
            f"{path}: none of its {len(region):,} rows belongs to this run: they are of other passes, states or "
            "iterations"
        )
    reasons, numbers = np.unique(left[left != "measured"], return_counts=True)
    return Totals(by_level, dict(zip(reasons.tolist(), map(int, numbers.tolist()), strict=True)))


def _read(path: Path, settings: Settings) -> tuple[Ints, Ints, Ints, Ints, Ints, NDArray[np.bool_], bool]:
    """Region type, region, state, iteration and count of every row; which of them are suppressed, and so count 0.

    The last entry is whether rows are lines below a header.
    """
    is_text = path.suffix != PARQUET
    if is_text:
        header = _header(path)
        source = csv_rows(path, header.names, separator=header.separator, quote='"')
    else:
        source = parquet_rows([path])
    # An id of another width is forgiven where its state is not of the run: such rows are left out in any case.
    states = ", ".join(f"'{state:02}'" for state in sorted(settings.states))
    elsewhere = f"regexp_full_match(REGION_ID, '{_ANY_ID}') AND REGION_ID[1:2] NOT IN ({states})"
    region = " ".join(
        f"WHEN REGION_TYPE = '{r.name}' AND (regexp_full_match(REGION_ID, '{_pattern(r.base, r.width)}')"
        + (f" OR {elsewhere}" if r.base not in {"nation", "aiannh"} else "")
        + f") THEN {place}"
        for place, r in enumerate(REGION_TYPES)
    )
    fault = InputError(f"{path}: not readable as a table of totals: rows of {len(COLUMNS)} fields or more")
    with open_database() as db, unreadable(fault):
        found = column_types(db, source)
        if missing := [name for name in COLUMNS if name not in found]:
            raise InputError(f"{path}: column {', '.join(missing)} is missing; needed are {', '.join(COLUMNS)}")
        suppressed = f"COUNT::VARCHAR = '{SUPPRESSED}'" if REASON in found else "false"
        rows = db.execute(f"""
                SELECT CASE {region} END AS region_type, TRY_CAST(REGION_ID AS BIGINT) AS region,
                    coalesce(TRY_CAST(REGION_ID[1:2] AS SMALLINT), 0) AS state,
                    CASE WHEN regexp_full_match(ITERATION_CODE::VARCHAR, '[0-9]{{4}}')
                        THEN ITERATION_CODE::SMALLINT END AS iteration,
                    CASE WHEN {suppressed} THEN 0
                        WHEN regexp_full_match(COUNT::VARCHAR, '-?[0-9]{{1,18}}') THEN COUNT::BIGINT END AS total,
                    coalesce({suppressed}, false) AS suppressed
                FROM {source}""").fetchnumpy()
    if not len(rows["region"]):
        raise InputError(f"{path}: holds no row below its header")
    rules = {
        "region_type": "REGION_TYPE must be one of "
        + ", ".join(r.name for r in REGION_TYPES)
        + ", and REGION_ID an id of that type",
        "iteration": "ITERATION_CODE must be four digits",
        "total": "COUNT must be a whole number",
    }
    faults = []
    for name, rule in rules.items():
        wrong = np.flatnonzero(np.ma.getmaskarray(rows[name]))
        if len(wrong):
            faults.append(f"  {rule}; {len(wrong):,} rows, {_listed(wrong, lines=is_text)}")
    if faults:
        raise InputError("\n".join([f"{path} cannot be used:", *faults]))
    names = ("region_type", "region", "state", "iteration", "total")
    region_type, region_id, state, iteration, count = (np.asarray(rows[name], dtype=np.int64) for name in names)
    return region_type, region_id, state, iteration, count, np.asarray(rows["suppressed"], dtype=bool), is_text


def _pattern(base: str, width: int) -> str:
    return "1" if base == "nation" else f"[0-9]{{{width}}}"


def header_of(path: Path) -> tuple[str, ...]:
    """The columns of a table of totals written as text.

    Raises
    ------
    InputError
        If its first line is no header.
    """
    return _header(path).names


def _header(path: Path) -> Header:
    try:
        header = read_header(path)
    except OSError as error:
        raise InputError(f"{path}: {error.strerror}") from None
    except UnicodeDecodeError:
        header = Header("", ())
    if not header.names or len(set(header.names)) < len(header.names) or not all(map(_is_name, header.names)):
        raise InputError(f"{path}: the first line is no header of column names")
    return header


def _is_name(text: str) -> bool:
    return text.isascii() and text != ""


def _listed(rows: Ints, *, lines: bool) -> str:
    numbers = rows[:_MOST_LINES] + (2 if lines else 1)
    more = ", ..." if len(rows) > _MOST_LINES else ""
    kind = ("line" if lines else "row") + "s" * (len(rows) > 1)
    return f"{kind} {', '.join(map(str, numbers.tolist()))}{more}"


def _refuse_twice(path: Path, region_type: Ints, region: Ints, iteration: Ints, lines: bool) -> None:  # noqa: FBT001
    order = np.lexsort((iteration, region, region_type))
    same = np.ones(max(len(order) - 1, 0), dtype=bool)
    for column in (region_type, region, iteration):
        same &= column[order][1:] == column[order][:-1]
    if same.any():
        twice = np.sort(order[1:][same])
        raise InputError(
            f"{path}: an area and an iteration stand in more than one row; {len(twice):,} too many: "
            f"{_listed(twice, lines=lines)}"
        )


def find_totals(data: Path, named: Path | None) -> Path:
    """The file of totals: as named, or ``pop-group-totals.txt`` in the data folder.

    Raises
    ------
    InputError
        If there is none.
    """
    path = named or data / FILE
    regular.must_be(regular.FILE, path, "name a file of totals, such as SafeTab-P's T01001, with --totals")
    return path
