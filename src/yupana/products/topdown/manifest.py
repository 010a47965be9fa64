"""What a manifest of TopDown says that follows from its configuration and from public files. Public."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any, Final

import duckdb

from yupana.files.database import STOPS, open_database
from yupana.geography.attributes import FACILITIES
from yupana.geography.spine_files import GEOUNITS
from yupana.plan.measurement import Measurement
from yupana.plan.plan import Plan
from yupana.privacy.exact import INFINITE, read_exact
from yupana.products.product import Stated
from yupana.products.topdown.verify import MEASUREMENTS, NOISY, SYSTEM
from yupana.release.recipe import OPTIONS, PUBLIC_INPUTS
from yupana.release.tables import table_rows
from yupana.topdown.configuration import Configuration
from yupana.topdown.plan import make_measurement, make_plan, measurement_with

GEOCODES: Final = "geocodes of the files"
"""The spine of a release that was made of noisy measurement files."""

SOURCE: Final = "source_manifest_sha256"
"""Where intervals tell the release that they were added to."""

UNUSUAL_BLOCKS: Final = (
    "the posterior draws blocks to what is common around them; where half of a block is unlike its block group, "
    "Hispanic by race was off by 25 percent more than without it (Cook County, 2010; docs/topdown-posterior.md)"
)
"""What is remarked of every release of which blocks were drawn from a posterior."""

_OF_FILES: Final = "areas/"
_GIVEN_SPINE: Final = "the spine and its shares, from a folder"
_TOTALS: Final = "totals of states (--totals)"


def parameters(
    config: Configuration,
    *,
    spine: str,
    estimator: str,
    intervals: Mapping[str, Any],
    areas: Mapping[str, Any],
    remarks: Sequence[str],
) -> dict[str, Any]:
    """What a manifest says for readers of the tables.

    Parameters
    ----------
    config : Configuration
    spine : str
        Of which kind.
    estimator : str
    intervals : mapping
        `IntervalTerms.as_json`.
    areas : mapping of kind to mapping
        Of areas that were given beside the reference file, their "file" and how many "areas" there are.
    remarks : sequence of str
    """
    return {
        "schema": {a.name: list(a.labels) for a in config.schema.attributes},
        "invariants": {level: [q.name for q in queries] for level, queries in config.invariants.items()},
        "geolevels": list(config.levels),
        "spine": spine,
        "estimator": estimator,
        "intervals": dict(intervals),
        "areas": dict(areas),
        **({"remarks": list(remarks)} if remarks else {}),
    }


def taken_as_public(areas: Sequence[str], config: Configuration, *, given: bool, facilities: bool) -> list[str]:
    """What the guarantee of a run does not protect.

    Parameters
    ----------
    areas : sequence of str
        What it does not protect of areas (`public_areas`).
    config : Configuration
    given : bool
        Whether the spine came from a folder.
    facilities : bool
        Whether housing units and facilities of the blocks are known.
    """
    return [
        *areas,
        *([_GIVEN_SPINE] if given else []),
        *(["housing units and group-quarters facilities of every block (group_quarters.csv)"] if facilities else []),
        *(f"invariant: total of every {level}" for level in config.invariants),
        *(["structural zeros of the configuration"] if config.structural_zeros else []),
    ]


def taken_as_public_of_files(areas: Sequence[str], config: Configuration, *, totals: bool) -> list[str]:
    """What the guarantee of noisy measurement files does not protect, as far as the files tell.

    Parameters
    ----------
    areas : sequence of str
        As of `taken_as_public`.
    config : Configuration
    totals : bool
        Whether totals of states were given.
    """
    return [
        *areas,
        *(["housing units and group-quarters facilities of every block"] if config.group_quarters else []),
        *(f"invariant: total of every {level}" for level in config.invariants),
        *(["structural zeros of the files"] if config.structural_zeros else []),
        *([_TOTALS] if totals else []),
    ]


def stated(
    release: Path, manifest: Mapping[str, Any], config: Configuration, plan: Plan, areas: Sequence[str]
) -> Stated:
    """Make a manifest of a run, or of what was made of noisy measurement files, anew; see `Product.stated`.

    Parameters
    ----------
    release : Path
    manifest : mapping
    config : Configuration
        That of the manifest.
    plan : Plan
        In the manifest.
    areas : sequence of str
        As of `taken_as_public`.
    """
    told, files = manifest["parameters"], manifest.get(MEASUREMENTS)
    exact = files is None or files["loss"]["exact"] is True
    # The spine of noisy measurements lies in their release; there the shares are those that budgets tell.
    is_noisy = manifest["system"] == NOISY
    measured = _of_budgets(plan, config) if is_noisy else _of_spine(release, config) if exact else _told(plan, config)
    loss = config.budget
    if files is not None:
        loss = read_exact(files["loss"]["most"][config.mechanism.budget_name])
    wrong = [] if plan.loss() == loss else [f"the loss of the plan is not {'the budget' if exact else 'that of files'}"]
    public = manifest[PUBLIC_INPUTS]
    if files is None:
        facilities = FACILITIES in public or any(
            Path(name).stem == Path(FACILITIES).stem for name in manifest["tables"]
        )
        given = any(name.startswith("spine/") for name in public)
        taken = taken_as_public(
            areas, config, given=given, facilities=facilities or (is_noisy and _facilities(manifest))
        )
    else:
        # Which of the public files had totals is not told.
        totals = _TOTALS in manifest["taken_as_public"] and any(not name.startswith(_OF_FILES) for name in public)
        taken = taken_as_public_of_files(areas, config, totals=totals)
    options, remarks = manifest[OPTIONS], list(told.get("remarks", ()))
    if options["estimator"] == "posterior" and "posterior" in manifest and UNUSUAL_BLOCKS not in remarks:
        wrong.append("the remark on the blocks of a posterior is missing")
    due = parameters(
        config,
        spine=config.spine_kind if files is None else GEOCODES,
        estimator=options["estimator"],
        intervals=_intervals(options, told["intervals"]),
        areas=told["areas"],
        remarks=remarks,
    )
    unchecked = () if exact else ("the budgets: the configuration has no such variances as the files",)
    # Without noise nothing is charged where the counts themselves are written.
    free = frozenset(m.name for m in plan.measurements) if config.budget == INFINITE else frozenset[str]()
    keys = {"system": NOISY if is_noisy else SYSTEM, "parameters": due, "taken_as_public": taken}
    return Stated(_along(plan, config, measured), keys, free, wrong=tuple(wrong), unchecked=unchecked)


def _facilities(manifest: Mapping[str, Any]) -> bool:
    """Of noisy measurements, whether facilities are said to be known: no file beside them tells."""
    return any("facilities of every block" in text for text in manifest["taken_as_public"])


def _intervals(options: Mapping[str, str], told: Mapping[str, Any]) -> dict[str, Any]:
    """The terms of intervals by the options that asked for them; they may have been added later, by others."""
    method = options.get("intervals", "none")
    if method == "none":
        return {"method": method}
    confidence = Fraction(told["confidence"])
    if not 0 < confidence < 1:
        raise ValueError("parameters.intervals.confidence does not lie strictly between 0 and 1")
    return {
        "method": method,
        **({"replicates": int(options["replicates"])} if "replicates" in options else {}),
        "confidence": str(confidence),
        **({SOURCE: str(told[SOURCE])} if SOURCE in told else {}),
    }


def _along(plan: Plan, config: Configuration, measured: Sequence[Measurement]) -> Plan:
    """A plan of some measurements, in the order and along the paths of another that has the same."""
    by_name = {m.name: m for m in measured}
    ordered = [by_name.pop(m.name) for m in plan.measurements if m.name in by_name]
    # Which shares follow one another is told by the plan's paths; along each of them the loss is that of the budget.
    paths = plan.paths if len(ordered) == len(plan.measurements) and not by_name else ()
    made = make_plan(config, confidence=plan.confidence, margins=plan.margins)
    return replace(made, measurements=(*ordered, *by_name.values()), paths=paths)


def _told(plan: Plan, config: Configuration) -> list[Measurement]:
    """The measurements of a plan as those of the configuration's queries, with the budgets that it tells."""
    known = {(level, query.name): query for level in config.levels for query, _ in config.measured(level)}
    return [
        measurement_with(config, m.level, known[m.level, m.table], m.name, m.budget)
        for m in plan.measurements
        if (m.level, m.table) in known
    ]


def _of_budgets(plan: Plan, config: Configuration) -> list[Measurement]:
    """The measurements of a plan as those of geounits whose share its budgets tell."""
    if config.budget == INFINITE:
        return _told(plan, config)
    known = {(level, query.name): (query, part) for level in config.levels for query, part in config.measured(level)}
    found = []
    for m in plan.measurements:
        if (m.level, m.table) in known and isinstance(m.budget, Fraction):
            query, part = known[m.level, m.table]
            found.append(make_measurement(config, m.level, query, m.budget / (Fraction(config.budget) * part), part))
    return found


def _of_spine(release: Path, config: Configuration) -> list[Measurement]:
    """The measurements of every share that a geounit of a geolevel has.

    Raises
    ------
    ValueError
        If the shares cannot be read.
    """
    try:
        with open_database() as db:
            query = f"SELECT DISTINCT geolevel, share FROM {table_rows(release / 'spine' / GEOUNITS)} ORDER BY ALL"
            shares = {(str(level), read_exact(str(share))) for level, share in db.execute(query).fetchall()}
    except STOPS:
        raise
    except (OSError, duckdb.Error, ValueError):
        raise ValueError(f"spine/{GEOUNITS} does not hold the shares of the geounits") from None
    return [
        make_measurement(config, level, query, share, part)
        for level, share in shares
        if level in config.levels and isinstance(share, Fraction) and share > 0
        for query, part in config.measured(level)
    ]
