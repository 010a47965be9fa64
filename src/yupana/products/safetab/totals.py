"""T01001 of SafeTab-P as SafeTab-H's input: which groups exist, how large they are, and who published them. Public.

SafeTab-H's guarantee holds given the totals (docs/safetab-privacy.md, section 5). It protects nobody from what the
totals tell, so they must be numbers that are public at a cost of their own. The manifest beside them is the witness.
"""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import duckdb
import numpy as np
from numpy.typing import NDArray

from yupana.arrays import Ints
from yupana.errors import InputError, OutputError
from yupana.files import regular
from yupana.files.database import open_database, unreadable
from yupana.files.delimited import PARQUET, Header, column_types, csv_rows, parquet_rows, read_header
from yupana.plan.plan import read_plan
from yupana.privacy.exact import INFINITE, read_exact
from yupana.products.described import published
from yupana.products.described.published import PublishedGroups, PublishedSource
from yupana.products.gate import open_release
from yupana.products.safetab.configuration import SafetabConfig
from yupana.products.safetab.iterations import CharacteristicIterations
from yupana.products.safetab.regions import BY_NAME, REGION_TYPES, US
from yupana.products.safetab.specification import TOTALS, noise_faults
from yupana.products.safetab.translation import sensitivity
from yupana.release.folder import read_manifest
from yupana.release.manifest import MANIFEST
from yupana.release.recipe import RECORD, SUPPRESSED
from yupana.release.status import CONFIDENTIAL

COLUMNS: Final = ("REGION_ID", "REGION_TYPE", "ITERATION_CODE", "COUNT")
"""What is read, and all that the originals' file of totals has."""

FILE: Final = "pop-group-totals.txt"
REASON: Final = "REASON"
"""The column that a table has gained when counts were suppressed."""

_MOST_LINES: Final = 20
_ANY_ID: Final = "[0-9]{2}|[0-9]{5}|[0-9]{7}|[0-9]{11}"


def read_totals(
    source: PublishedSource, config: SafetabConfig, iterations: CharacteristicIterations
) -> PublishedSource:
    """Read a table of totals, `|`- or `,`-separated or Parquet. It is public, so messages may quote it.

    By level are the rows that a run measures: ids of areas as numbers, and places in the eligible iterations.

    Parameters
    ----------
    source : PublishedSource
        As `provenance` gives it; with columns REGION_ID, REGION_TYPE, ITERATION_CODE and COUNT; others do not matter.

    Raises
    ------
    InputError
        If it is no such table, a row is malformed or stands twice, or none belongs to the run.
    """
    path = source.path
    region_type, region, state, code, count, suppressed, lines = _read(path, config)
    _refuse_twice(path, region_type, region, code, lines)
    place_of = {i.code: place for place, i in enumerate(iterations.iterations)}
    known = np.full(10_000, -1, dtype=np.int64)
    known[[int(code) for code in place_of]] = list(place_of.values())
    place = known[code]
    left = np.full(len(region), "", dtype="U40")
    of_run = np.array([r.run in config.runs for r in REGION_TYPES])
    states = np.array(sorted(config.states))
    in_states = np.array([r.base not in {"nation", "aiannh"} for r in REGION_TYPES])[region_type]
    left[in_states & ~np.isin(state, states)] = "of states left out"
    left[~of_run[region_type]] = "of a pass left out"
    left[place < 0] = "of unknown iterations"
    left[suppressed] = "suppressed"
    by_level = {}
    for level in config.levels:
        eligible = iterations.eligible(level.iteration_level, level.region.granularity).iterations
        within = np.full(len(iterations.iterations), -1, dtype=np.int64)
        within[[place_of[i.code] for i in eligible]] = np.arange(len(eligible))
        of_level = (region_type == REGION_TYPES.index(level.region)) & (left == "") & (place >= 0)
        chosen = np.flatnonzero(of_level)
        chosen = chosen[within[place[chosen]] >= 0]
        left[chosen] = "measured"
        order = np.lexsort((within[place[chosen]], region[chosen]))
        chosen = chosen[order]
        by_level[level.name] = PublishedGroups(region[chosen], within[place[chosen]], count[chosen])
    left[left == ""] = "of iterations not published there"
    if not (left == "measured").any():
        raise InputError(
            f"{path}: none of its {len(region):,} rows belongs to this run: they are of other passes, states or "
            "iterations"
        )
    reasons, numbers = np.unique(left[left != "measured"], return_counts=True)
    left_out = dict(zip(reasons.tolist(), map(int, numbers.tolist()), strict=True))
    return replace(source, by_level=by_level, left_out=left_out)


def _read(path: Path, config: SafetabConfig) -> tuple[Ints, Ints, Ints, Ints, Ints, NDArray[np.bool_], bool]:
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
    states = ", ".join(f"'{state:02}'" for state in sorted(config.states))
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


def _header(path: Path) -> Header:
    try:
        header = read_header(path)
    except OSError as error:
        raise InputError(f"{path}: {error.strerror}") from None
    except UnicodeDecodeError:
        header = Header("", ())
    if (
        not header.names
        or len(set(header.names)) < len(header.names)
        or not all(name and name.isascii() for name in header.names)
    ):
        raise InputError(f"{path}: the first line is no header of column names")
    return header


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


PUBLISHED: Final = "the totals of population groups (T01001), which SafeTab-P has published under its own privacy loss"
"""What a release takes as public whose totals have a manifest without a fault."""

DECLARED: Final = (
    f"the totals of population groups in {FILE}, of which no manifest tells how they were made: that they are "
    "published is the word of whoever put the file there"
)
"""The same of totals in the form of the originals, which has no manifest."""

DOUBTFUL: Final = "the totals of population groups (T01001), although they are not known to be public: see the reasons"
"""The same of totals that only synthetic records may be tabulated by."""


def source_of_totals(told: Mapping[str, Any], reasons: Sequence[str], stated: object) -> str:
    """What a manifest must say of the totals that it takes as public; see `published.source_of_totals`."""
    if stated == DOUBTFUL and reasons:
        return DOUBTFUL
    if "manifest_sha256" in told:
        return PUBLISHED
    return DECLARED if told["file"] == FILE else DOUBTFUL


_PRODUCT: Final = "safetab-p"
_NO_PLAN: Final = "its manifest holds no plan of safetab-p"


def provenance(path: Path, config: SafetabConfig, iterations: CharacteristicIterations) -> PublishedSource:
    """Find out where totals come from.

    Doubts are why they may not be public, or not those of the same population groups; there are none where a manifest
    vouches for them, or where whoever made the file does.

    Totals in the form of the originals, named ``pop-group-totals.txt`` and with their four columns alone, have no
    manifest: no release is written so, and whoever makes such a file declares that its numbers are published. All
    others need the manifest of a release of SafeTab-P beside them.

    Parameters
    ----------
    config : SafetabConfig
        Of the run that is to read them.
    iterations : CharacteristicIterations
        Of the same run.

    Raises
    ------
    InputError
        If the file is missing, or is declared in the folder of a confidential output.
    OutputError
        If the manifest cannot be read, contradicts itself, or is of a confidential release, which no run may read.
    """
    if path.name == FILE and _header(path).names == COLUMNS:
        _refuse_confidential_folder(path.parent)
        return PublishedSource(path, published.file_of(path), (), DECLARED)
    told, manifest, doubts = published.told_of(path)
    if manifest is None:
        return PublishedSource(path, told, tuple(doubts), DOUBTFUL)
    doubts = [*_not_published(path, told["sha256"], manifest), *_of_other_groups(manifest, config, iterations)]
    open_release(path.parent)
    try:
        told |= {key: manifest["plan"][key] for key in ("mechanism", "totals")}
        told["postprocessing"] = [record["rule"] for record in manifest.get(RECORD, ())]
        if not doubts:
            doubts = [*_wrong_plan(manifest, config, iterations), *noise_faults(path.parent, manifest, TOTALS)]
    except (KeyError, TypeError, ValueError, AttributeError, duckdb.Error):
        doubts.append(_NO_PLAN)
    return PublishedSource(path, told, tuple(doubts), DOUBTFUL if doubts else PUBLISHED)


def _refuse_confidential_folder(folder: Path) -> None:
    """Refuse to take a declaration for what lies in a confidential output, if the folder is one."""
    with suppress(OutputError):
        if read_manifest(folder, confidential=True).get("status") != CONFIDENTIAL:
            return
        raise InputError(f"{folder} is {CONFIDENTIAL}, so no totals in it are taken; name totals that are published")


def _not_published(path: Path, sha256: str, manifest: Mapping[str, Any]) -> list[str]:
    """Why a manifest does not say that SafeTab-P published this file."""
    doubts = []
    if manifest.get("product") != _PRODUCT:
        doubts.append(f"{MANIFEST} beside it is not that of a release of {_PRODUCT}")
    doubts += published.status_doubts(manifest)
    listed = manifest.get("tables", {}).get(path.name, {})
    if listed.get("table") != TOTALS:
        doubts.append(f"its manifest does not list it as {TOTALS}")
    elif listed["sha256"] != sha256:
        doubts.append("it was changed after it was written: its checksum is not the manifest's")
    return doubts


def _of_other_groups(
    manifest: Mapping[str, Any], config: SafetabConfig, iterations: CharacteristicIterations
) -> list[str]:
    """What says that the groups of the totals are not those of the run."""
    made = manifest.get("parameters")
    if made is None:
        return ["its manifest holds no parameters"]
    doubts = []
    if made.get("iterations_sha256") != iterations.sha256:
        doubts.append("it was made with other codes or iterations than those of the parameter folder")
    if made.get("max_race_codes") != config.max_race_codes:
        doubts.append(
            f"it was made with max_race_codes {made.get('max_race_codes')}, not {config.max_race_codes} as configured"
        )
    if not set(config.runs) <= set(made.get("passes", ())):
        doubts.append("it was made without a pass that is to be run: run_us, run_pr")
    if US in config.runs and set(made.get("states", ())) != set(config.us_states):
        doubts.append("it was made of other states than those of state_filter_us")
    return doubts


def _wrong_plan(manifest: Mapping[str, Any], config: SafetabConfig, iterations: CharacteristicIterations) -> list[str]:
    """What is wrong with the plan for the groups of the run: infinite budgets, and too little noise."""
    plan = read_plan(manifest["plan"])
    wrong = []
    for m in plan.measurements:
        least = sensitivity(iterations, BY_NAME[m.level], config.max_race_codes, "tight").unbounded
        if m.budget == INFINITE:
            wrong.append(f"a budget of its plan is infinite, that of {m.name}, so counts without noise are in it")
        elif m.calibration < least:
            wrong.append(f"the noise that its plan states for {m.name} is not that of its budget")
    if read_exact(manifest["ledger"]["spent"]) != plan.loss():
        wrong.append("the loss that its plan states is not that of its measurements")
    return wrong if plan.measurements else [_NO_PLAN]
