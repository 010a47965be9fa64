"""Whether the plan of a release is the one that its configuration makes. Public; reads the release only."""

import math
from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any, Final

import duckdb

from yupana.errors import ConfigError
from yupana.files.changes import UNCHANGED
from yupana.files.database import STOPS, open_database
from yupana.geography.disk import GEOUNITS
from yupana.plan.exact_loss import EXACT, exact_totals
from yupana.plan.measurement import Accounting, Measurement, Sensitivity, of_household_record, of_own_record
from yupana.plan.plan import Plan
from yupana.plan.read import read_plan, tells_moves
from yupana.privacy.exact import Budget, read_exact
from yupana.products.described.criteria import predictions, untested
from yupana.products.described.product import SYSTEM as DESCRIBED
from yupana.products.described.product import TABLES
from yupana.products.phsafe import configuration as phsafe_config
from yupana.products.phsafe import plan as phsafe_plan
from yupana.products.safetab.iterations import CharacteristicIterations
from yupana.products.safetab.parameters import PARAMETER_FILES, read_iterations
from yupana.products.safetab.persons import PersonsConfig
from yupana.products.safetab.product import HOUSEHOLDS, PERSONS, Parameters, SafetabProduct
from yupana.products.topdown.product import TOPDOWN
from yupana.products.topdown.verify import MEASUREMENTS
from yupana.release.folder import MANIFEST
from yupana.release.recipe import CONFIGURATION, OPTIONS, PUBLIC_INPUTS
from yupana.release.tables import checksum, table_rows
from yupana.topdown.configuration import Configuration
from yupana.topdown.plan import make_measurement, measurement_with
from yupana.topdown.plan import make_plan as make_topdown_plan

_TOLERANCE: Final = 1e-9

_NEAR: Final = 1e-6
"""How near exact epsilons of two machines are."""

_SYSTEM: Final = "topdown"


def check_recipe(release: Path, manifest: Mapping[str, Any], inputs: Path | None) -> tuple[list[str], list[str]]:
    """Compare the plan of a release with the configuration and the options that the manifest tells.

    Parameters
    ----------
    release : Path
        Whose files are those of its manifest.
    manifest : mapping
        As `read_manifest` gives it.
    inputs : Path, optional
        A folder with public files of the run, to compare with their checksums. With those of the codes, the whole plan
        of SafeTab is compared, else its budgets.

    Returns
    -------
    tuple
        What is wrong, and what could not be checked, in words.
    """
    if manifest.get("system") not in {None, _SYSTEM, DESCRIBED}:
        # Noisy measurements lie apart from the spine that their plan is spread over; the release is checked with it.
        return [], []
    if CONFIGURATION not in manifest:
        return [], ["the configuration, which the manifest does not hold"] if "plan" in manifest else []
    try:
        plan = read_plan(manifest["plan"])
        options = manifest[OPTIONS]
        wrong = [
            f"the option {name} is {options[name]!r}, and {told!r} in the plan"
            for name, told in (("confidence", str(plan.confidence)), ("sensitivity", plan.accounting))
            if options[name] != told
        ]
        wrong += _check_files(manifest[PUBLIC_INPUTS], inputs)
        wrong += _compare(release, manifest, plan, inputs)
        unchecked = [] if _is_exact(manifest) else ["the budgets: the configuration has no such variances as the files"]
    except (KeyError, ConfigError) as error:
        told = "a key is missing" if isinstance(error, KeyError) else str(error)
        return [f"the manifest does not say how the release was made: {told}"], []
    return wrong, unchecked


def _is_exact(manifest: Mapping[str, Any]) -> bool:
    """Whether the plan is one of the configuration: not where it was read from the variances of others' files."""
    return MEASUREMENTS not in manifest or bool(manifest[MEASUREMENTS]["loss"]["exact"])


def _check_files(told: Mapping[str, str], inputs: Path | None) -> list[str]:
    """What is wrong with the public files of a folder; a run may have read them from several folders."""
    if inputs is None:
        return []
    here = {name: digest for name, digest in told.items() if (inputs / name).is_file()}
    if told and not here:
        return [f"{inputs} holds none of the public files {', '.join(told)}"]
    return [
        f"{inputs / name} is not the public file of the manifest"
        for name in here
        if checksum(inputs / name) != here[name]
    ]


def _compare(release: Path, manifest: Mapping[str, Any], plan: Plan, inputs: Path | None) -> list[str]:
    if manifest.get("system") == _SYSTEM:
        return _compare_topdown(release, manifest, plan)
    if manifest.get("system") == DESCRIBED:
        description = TABLES.read(release / MANIFEST)
        due_plan = TABLES.plan(description, accounting=_accounting(plan), confidence=plan.confidence)
        return _unlike_criteria(manifest, predictions(description, due_plan)) + _differences(manifest, plan, due_plan)
    if manifest["product"] == "phsafe":
        config = phsafe_config.read_config(release / MANIFEST)
        wrong = _unlike(manifest, {"tau": dict(config.taus), "state_filter": list(config.states)})
        due = phsafe_plan.make_plan(config, accounting=_accounting(plan), confidence=plan.confidence)
        return wrong + _differences(manifest, plan, due)
    there = inputs is not None and all((inputs / name).is_file() for name in PARAMETER_FILES)
    return _compare_safetab(release, manifest, plan, read_iterations(inputs) if inputs is not None and there else None)


def _accounting(plan: Plan) -> Accounting:
    return "tight" if plan.accounting == "tight" else "published"


def _compare_safetab(
    release: Path, manifest: Mapping[str, Any], plan: Plan, iterations: CharacteristicIterations | None
) -> list[str]:
    """Compare SafeTab's plan; without the codes, from which its sensitivities follow, its budgets and totals."""
    product: SafetabProduct[Any] = PERSONS if manifest["product"] == PERSONS.key else HOUSEHOLDS
    config = product.read_config(release / MANIFEST, UNCHANGED)
    told: dict[str, Any] = {"states": list(config.settings.us_states), "passes": list(config.settings.runs)}
    if isinstance(config, PersonsConfig):
        told["zero_suppression_chance"] = str(config.zero_suppression)
    wrong = _unlike(manifest, told)
    if iterations is None:
        return wrong + _unlike_budgets(plan, config.by_measurement()) + _unlike_totals(manifest, plan)
    made_of = Parameters(config, iterations)
    due = product.plan(made_of, accounting=_accounting(plan), confidence=plan.confidence)
    return wrong + _differences(manifest, plan, due)


def _unlike_criteria(manifest: Mapping[str, Any], due: Mapping[str, Any]) -> list[str]:
    """Compare what is predicted; what was tested cannot be repeated without the records, and forbids a release."""
    criteria = manifest.get("criteria", {})
    wrong = (
        [] if _same(due, untested(criteria)) else ["the criteria are not what the plan of the configuration predicts"]
    )
    if any("tested" in of for of in criteria.values()) and not manifest.get("reasons"):
        wrong.append("criteria were tested on true counts, and the manifest gives no reason against a release")
    return wrong


def _unlike_budgets(plan: Plan, due: Mapping[str, Budget]) -> list[str]:
    names = [m.name for m in plan.measurements if m.name not in due or m.budget != due[m.name]]
    return [f"the budget of {name} is not that of the configuration" for name in names]


def _unlike_totals(manifest: Mapping[str, Any], plan: Plan) -> list[str]:
    """Compare what SafeTab's plan promises with its sensitivities, as it tells them; what is proven takes the codes."""

    def made(m: Measurement) -> Measurement:
        record = Sensitivity(m.calibration, 2 * m.calibration)
        own = manifest["product"] == "safetab-p"
        person = of_own_record(record) if own else of_household_record(record, m.mechanism)
        return replace(m, sensitivity=record, person=person)

    told = manifest["plan"]["totals"]
    delta = told.get("delta")
    if delta != 0 and not (isinstance(delta, float) and 0 < delta < 1):
        return ["the plan states its epsilon at no delta between 0 and 1"]
    rebuilt = replace(plan, measurements=tuple(map(made, plan.measurements)))
    due = (rebuilt.as_json(delta) if delta else rebuilt.as_json())["totals"]
    same = _same({**due, "proven": None}, {**_without_exact(told), "proven": None})
    return [] if same else ["the totals of the plan are not those of its measurements"]


def _unlike(manifest: Mapping[str, Any], due: Mapping[str, object]) -> list[str]:
    told = manifest.get("parameters", {})
    return [
        f"parameters.{key} is not that of the configuration" for key, value in due.items() if told.get(key) != value
    ]


def _differences(manifest: Mapping[str, Any], plan: Plan, due: Plan) -> list[str]:
    wrong = [
        f"{d.value} of {d.measurement} is {d.here or 'missing'} in the plan, and by the configuration "
        f"{d.there or 'missing'}"
        for d in plan.differences(due)
    ]
    wrong += [
        f"{name} of the plan is not that of the configuration"
        for name in ("product", "privacy_unit", "neighbours", "mechanism")
        if getattr(plan, name) != getattr(due, name)
    ]
    told = manifest["plan"]["totals"]
    delta = told.get("delta")
    if not wrong and not (isinstance(delta, float) and 0 < delta < 1) and delta != 0:
        wrong.append("the plan states its epsilon at no delta between 0 and 1")
    if not wrong and not _same(
        due.as_json(delta)["totals"] if delta else due.as_json()["totals"], _without_exact(told)
    ):
        wrong.append("the totals of the plan are not those of the configuration")
    if not wrong and tells_moves(manifest["plan"]):
        wrong += [
            f"the plan tells that neighbours move {m.name} otherwise than the configuration"
            for m in due.measurements
            if (m.by_one, m.proven.unbounded, m.proven.bounded)
            != (plan[m.name].by_one, plan[m.name].proven.unbounded, plan[m.name].proven.bounded)
            or plan[m.name].proven.same_household not in {None, m.proven.same_household}
        ]
        exact = {key: told[key] for key in EXACT if key in told}
        if not wrong and exact and not _alike(exact_totals(due, delta) if delta else exact_totals(due), exact):
            wrong.append("the exact epsilons of the plan are not those of the configuration")
    return wrong


def _without_exact(told: Mapping[str, Any]) -> dict[str, Any]:
    """Totals without what follows from the exact law of the loss."""
    return {key: value for key, value in told.items() if key not in EXACT}


def _alike(due: Mapping[str, Any], told: Mapping[str, Any]) -> bool:
    """Whether exact epsilons are the same, up to where their search ends."""
    if due.keys() != told.keys():
        return False
    for key, value in due.items():
        other = told[key]
        if isinstance(value, dict):
            if not isinstance(other, dict) or not _alike(value, other):
                return False
        elif isinstance(value, float) and isinstance(other, float | int):
            if not math.isclose(value, other, rel_tol=_NEAR):
                return False
        elif value != other:
            return False
    return True


def _same(due: object, told: object) -> bool:
    """Whether JSON is the same, up to the last digits of doubles."""
    if isinstance(due, dict) and isinstance(told, dict):
        return due.keys() == told.keys() and all(_same(value, told[key]) for key, value in due.items())
    if isinstance(due, float) and isinstance(told, float):
        return math.isclose(due, told, rel_tol=_TOLERANCE)
    return due == told


def _compare_topdown(release: Path, manifest: Mapping[str, Any], plan: Plan) -> list[str]:
    configuration = TOPDOWN.read(release / MANIFEST)
    due = {
        "schema": {a.name: list(a.labels) for a in configuration.schema.attributes},
        "invariants": {level: [q.name for q in queries] for level, queries in configuration.invariants.items()},
        "geolevels": list(configuration.levels),
        "spine": configuration.spine_kind,
        "estimator": manifest[OPTIONS].get("estimator"),
    }
    loss = configuration.budget
    if MEASUREMENTS in manifest:
        del due["spine"]
        loss = read_exact(manifest[MEASUREMENTS]["loss"]["most"][configuration.mechanism.budget_name])
    measured = _measured(release, configuration) if _is_exact(manifest) else _as_told(plan, configuration)
    if measured is None:
        return [f"spine/{GEOUNITS} does not hold the shares of the geounits"]
    # Which shares follow one another is told by the plan's paths; along each of them the loss is that of the budget.
    by_name = {m.name: m for m in measured}
    ordered = [by_name.pop(m.name) for m in plan.measurements if m.name in by_name]
    paths = plan.paths if len(ordered) == len(plan.measurements) and not by_name else ()
    rebuilt = replace(
        make_topdown_plan(configuration, confidence=plan.confidence),
        measurements=(*ordered, *by_name.values()),
        paths=paths,
    )
    wrong = _unlike(manifest, due) + _differences(manifest, plan, rebuilt)
    if plan.loss() != loss:
        what = "that of the files" if MEASUREMENTS in manifest else "the budget of the configuration"
        wrong.append(f"the loss of the plan is not {what}")
    return wrong


def _as_told(plan: Plan, configuration: Configuration) -> list[Measurement]:
    """The measurements of a plan as those of the configuration's queries, with the budgets that it tells."""
    known = {(level, query.name): query for level in configuration.levels for query, _ in configuration.measured(level)}
    return [
        measurement_with(configuration, m.level, known[m.level, m.table], m.name, m.budget)
        for m in plan.measurements
        if (m.level, m.table) in known
    ]


def _measured(release: Path, configuration: Configuration) -> list[Measurement] | None:
    """The measurements of every share that a geounit of a geolevel has; None where shares cannot be read."""
    try:
        with open_database() as db:
            query = f"SELECT DISTINCT geolevel, share FROM {table_rows(release / 'spine' / GEOUNITS)} ORDER BY ALL"
            shares = {(str(level), read_exact(str(share))) for level, share in db.execute(query).fetchall()}
    except STOPS:
        raise
    except (OSError, duckdb.Error, ValueError):
        return None
    return [
        make_measurement(configuration, level, query, share, part)
        for level, share in shares
        if level in configuration.levels and isinstance(share, Fraction) and share > 0
        for query, part in configuration.measured(level)
    ]
