"""The one door for releases: a manifest is read whole, and all that follows from its configuration is made anew.

Whatever shows a release, certifies it, estimates from it or makes another of it opens it here, and so refuses one whose
manifest says what its configuration does not. What only the run knew is believed: when it ran, with which versions and
public files, the remarks on these, and how TopDown solved its nodes (docs/manifest.md). Public.
"""

import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from yupana.errors import ConfigError, OutputError
from yupana.files.names import file_of
from yupana.files.regular import FILE, FOLDER, must_be
from yupana.geography.spine_files import read_checked
from yupana.plan.exact_loss import EXACT, plan_as_json
from yupana.plan.plan import Plan, number, read_plan
from yupana.products import PRODUCTS
from yupana.products.codebook import data_package
from yupana.products.parts import check_units
from yupana.products.product import Checked, Product, Stated
from yupana.products.topdown.pl.summary_file import PL_FILES
from yupana.products.topdown.verify import MEASUREMENTS, NOISY
from yupana.release.codebook import DATA_PACKAGE, READABLE, REASON, readable
from yupana.release.manifest import MANIFEST
from yupana.release.recipe import (
    ACCURACY,
    ATLAS,
    CERTIFICATE,
    CONFIGURATION,
    DESCRIBED,
    DESCRIBED_TABLES,
    ESTIMATES,
    EXPORT,
    OPTIONS,
    PUBLIC_INPUTS,
    RECORD,
    SINGLE_TABLE,
    SPINE,
    SUPPRESSION,
)
from yupana.release.recipe import MEASURED as MEASURED_TABLES
from yupana.release.release import ReleaseFolder, part_names, read_release, whole_manifest
from yupana.release.status import (
    CONFIDENTIAL,
    ESTIMATED,
    INTERNAL,
    MEASURED,
    NOT_FOR_RELEASE,
    PUBLIC_SPINE,
    reasons_of_plans,
    status_of,
)
from yupana.release.tables import checked_file, checksum
from yupana.version import __version__

_TOLERANCE: Final = 1e-9
"""How near doubles of two machines are."""

_NEAR: Final = 1e-6
"""How near exact epsilons are, which a search finds."""

_MOST_TOLD: Final = 10

_OF_RUNS: Final = (
    *("product", "status", "created", "plan", "ledger", "parameters", "taken_as_public"),
    *(CONFIGURATION, OPTIONS, PUBLIC_INPUTS, "versions", "tables"),
)
"""What the manifest of every run holds."""


def open_release(folder: Path, *, confidential: bool = False) -> ReleaseFolder:
    """Open the folder of a release whose manifest says what its configuration does.

    The parameters are those of `read_release`.

    Raises
    ------
    OutputError
        If it is none, its manifest contradicts itself or its configuration, or nothing may be made of it.
    """
    release = read_release(folder, confidential=confidential)
    if wrong := manifest_faults(release).wrong:
        raise OutputError("\n  ".join([f"{folder} does not hold together:", *wrong]))
    return release


def open_table(path: Path) -> ReleaseFolder:
    """Open one table by its file, as a release of this table alone.

    Its manifest is that of the release it lies in, if that lists it. Without one, what can be said is that it is a
    table: product "single table", of unknown status.

    Raises
    ------
    OutputError
        If there is no such file, or the manifest beside it is one that `open_release` refuses.
    """
    must_be(FILE, path, "name the folder of a release, or one of its tables", OutputError)
    if (path.parent / MANIFEST).is_file():
        release = read_release(path.parent)
        if path.name in release.manifest["tables"]:
            alone = {path.name: release.manifest["tables"][path.name]}
            return replace(open_release(path.parent), manifest={**release.manifest, "tables": alone})
    told = {"table": path.stem, "sha256": checksum(path)}
    unknown = {"yupana": __version__, "product": SINGLE_TABLE, "status": "unknown", "tables": {path.name: told}}
    return ReleaseFolder(path.parent, unknown, "", {path.name: path})


def manifest_faults(release: ReleaseFolder, inputs: Path | None = None) -> Checked:
    """What a manifest says that does not follow from its configuration, and what could not be made anew.

    Parameters
    ----------
    inputs : Path, optional
        A folder with public files of the run. With those of the codes, SafeTab's sensitivities are made anew, too.
    """
    manifest = release.manifest
    product = PRODUCTS.of(manifest)
    if manifest.get("product") in {SINGLE_TABLE, CERTIFICATE}:
        # Nobody has told the one how it was made; the other promises nothing of its own.
        return Checked(against="the manifest")
    wrong = list(_status_faults(manifest))
    if part_names(manifest):
        return Checked((*wrong, *_parts_faults(release)))
    if product is None:
        return Checked(tuple(wrong), against="the manifest")
    found = _run_faults(release, product, inputs)
    return replace(found, wrong=tuple(dict.fromkeys((*wrong, *found.wrong))))


def _status_faults(manifest: Mapping[str, Any]) -> Iterator[str]:
    """A status that does not follow from the kind of output, its plans and the reasons against a release."""
    try:
        status_of(manifest)
    except OutputError as error:
        yield str(error)
        return
    status, reasons = manifest["status"], [*manifest.get("reasons", ()), *reasons_of_plans(manifest)]
    due = CONFIDENTIAL if INTERNAL in reasons else NOT_FOR_RELEASE if reasons else _publishable(manifest)
    if status != due:
        yield f"the status is {status!a}, and must be {due!r} by the plan and the reasons"


def _publishable(manifest: Mapping[str, Any]) -> str:
    """The status of an output against whose release nothing speaks."""
    kind = str(manifest.get("product"))
    if kind == SPINE:
        return PUBLIC_SPINE
    if kind == EXPORT and manifest["status"] in {MEASURED, ESTIMATED}:
        return str(manifest["status"])  # that of its release, which alone tells
    return ESTIMATED if kind == ESTIMATES or MEASUREMENTS in manifest else MEASURED


def apart(due: object, told: object, at: str, near: float = _TOLERANCE) -> Iterator[str]:
    """Where JSON differs from what it should be, in words; doubles may differ in their last digits."""
    if isinstance(due, dict) and isinstance(told, dict):
        for key in dict.fromkeys((*due, *told)):
            place = f"{at}.{key}" if at else key
            if key not in told:
                yield from (f"{place} is missing" for _ in (1,) if at or due[key] is not None)
            elif key not in due:
                yield f"{place} is none that the configuration makes"
            else:
                yield from apart(due[key], told[key], place, _NEAR if key in EXACT else near)
    elif isinstance(due, list) and isinstance(told, list) and len(due) == len(told):
        for place, (one, other) in enumerate(zip(due, told, strict=True)):
            yield from apart(one, other, f"{at}[{place}]", near)
    elif not _alike(due, told, near):
        yield f"{at} is {_shown(told)}, and {_shown(due)} by the configuration"


def _alike(due: object, told: object, near: float) -> bool:
    if isinstance(due, float) and isinstance(told, float):
        return math.isclose(due, told, rel_tol=near)
    return type(due) is type(told) and due == told


_LONGEST_SHOWN: Final = 80


def _shown(value: object) -> str:
    if isinstance(value, dict | list):
        return f"{'an object' if isinstance(value, dict) else 'a list'} of {len(value)}"
    text = ascii(value) if isinstance(value, str) else str(value)
    return text if len(text) <= _LONGEST_SHOWN else f"{text[:_LONGEST_SHOWN]}..."


def _run_faults(release: ReleaseFolder, product: Product[Any], inputs: Path | None) -> Checked:
    """Compare the manifest of a run with what its configuration makes."""
    manifest = release.manifest
    # Whoever only estimates from measurements has charged nothing.
    unneeded = {"ledger"} if MEASUREMENTS in manifest else set()
    if missing := [key for key in _OF_RUNS if key not in manifest and key not in unneeded]:
        return Checked(tuple(f"{key} is missing" for key in missing))
    try:
        plan = read_plan(manifest["plan"])
        due = product.stated(release.folder, manifest, plan, inputs)
    except (ConfigError, OutputError) as error:
        return Checked((f"the manifest does not say how the release was made: {error}",))
    except (KeyError, IndexError, TypeError, ValueError, AttributeError, ZeroDivisionError) as error:
        told = f": {error}" if type(error) is ValueError else ""
        return Checked((f"the manifest does not say how the release was made{told}",))
    wrong = [*due.wrong, *_plan_faults(manifest, plan, due.plan), *_key_faults(manifest, due)]
    wrong += _input_faults(manifest[PUBLIC_INPUTS], inputs)
    wrong += _table_faults(manifest, product)
    wrong += [] if wrong else _codebook_faults(release, product, due)
    return Checked(tuple(wrong[:_MOST_TOLD]), due.unchecked)


def _plan_faults(manifest: Mapping[str, Any], plan: Plan, due: Plan) -> Iterator[str]:
    """What is wrong with a plan: in words what measurements cost and why, else the place of what differs."""
    found = [
        f"{d.value} of {d.measurement} is {d.here or 'missing'} in the plan, and by the configuration "
        f"{d.there or 'missing'}"
        for d in plan.differences(due)
    ]
    # Variances that are not those of a plan have no law that an exact figure could be of.
    exact = any(key in manifest["plan"]["totals"] for key in EXACT)
    yield from found or apart(plan_as_json(due) if exact else due.as_json(), manifest["plan"], "plan")


def _key_faults(manifest: Mapping[str, Any], due: Stated) -> Iterator[str]:
    """What is wrong with the other keys."""
    options = {
        "confidence": str(due.plan.confidence),
        "margins": due.plan.margins,
        "sensitivity": due.plan.accounting,
        # Noisy measurements have the format of their layout.
        **({} if manifest.get("system") == NOISY else {"format": _format(manifest)}),
    }
    yield from _ledger_faults(manifest, due) if MEASUREMENTS not in manifest else ()
    keys = {"product": due.plan.product, **due.keys, OPTIONS: manifest[OPTIONS] | options}
    yield from apart(keys, {key: manifest[key] for key in keys if key in manifest}, "")


def _ledger_faults(manifest: Mapping[str, Any], due: Stated) -> Iterator[str]:
    """A ledger that does not hold every measurement of the plan that had something to measure, once, and their loss."""
    charged = manifest["ledger"].get("charged") if isinstance(manifest["ledger"], dict) else None
    names = [m.name for m in due.plan.measurements]
    if not isinstance(charged, list) or not set(names) - due.without_groups <= set(map(str, charged)) <= set(names):
        yield "ledger.charged is not what the plan measures"
        return
    spent = due.plan.loss_of([m for m in due.plan.measurements if m.name in set(charged)])
    yield from apart({"charged": list(dict.fromkeys(charged)), **number("spent", spent)}, manifest["ledger"], "ledger")


def _format(manifest: Mapping[str, Any]) -> str:
    """The format of the tables, by their names."""
    return "parquet" if any(name.endswith(".parquet") for name in manifest["tables"]) else "csv"


def _input_faults(told: Mapping[str, str], inputs: Path | None) -> list[str]:
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


def _table_faults(manifest: Mapping[str, Any], product: Product[Any]) -> Iterator[str]:
    """What is wrong with the tables that a manifest lists, of a product whose configuration tells them all."""
    families = product.published(manifest)
    due = {table: columns for family in families for table, columns in family.tables.items()}
    rules = {record["rule"] for record in manifest.get(RECORD, ())}
    reason, is_fitted = [REASON] if SUPPRESSION in rules else [], DESCRIBED in rules
    # Of other products a name is the path itself.
    called = file_of if manifest.get("system") == DESCRIBED_TABLES else str
    for name, told in manifest["tables"].items():
        if missing := [key for key in ("table", "rows", "columns") if key not in told]:
            yield f"tables.{name}.{missing[0]} is missing"
        elif families and told["table"] not in due:
            yield f"table {told['table']} is not in the plan"
        elif called(told["table"]) != str(Path(name).with_suffix("")):
            yield f"tables.{name}.table is {told['table']}"
        elif is_fitted and not told["table"].startswith(f"{MEASURED_TABLES}/"):
            continue  # their columns follow from what is done to the counts, which `check` does again
        elif families and told["columns"] != [*due[told["table"]], *reason]:
            yield f"tables.{name}.columns are not those of the table"
    if not rules - {DESCRIBED}:
        measured = {m["table"] for m in manifest["plan"]["measurements"]}
        here = {told.get("table") for told in manifest["tables"].values()}
        for family in families:
            if family.name in measured:
                yield from (f"table {table} is missing" for table in family.tables if table not in here)


def _codebook_faults(release: ReleaseFolder, product: Product[Any], due: Stated) -> Iterator[str]:
    """What the codebook says of tables, columns and codes that the configuration does not."""
    if due.described is None or DATA_PACKAGE not in release.manifest.get("reports", {}):
        return
    if READABLE not in release.manifest["reports"]:
        yield f"reports has {DATA_PACKAGE} and no {READABLE}"
        return
    files = {name: told["columns"] for name, told in release.manifest["tables"].items()}
    try:
        told = dict(release.codebook or {})
        text = checked_file(release.folder, release.manifest, READABLE, "reports").read_text(encoding="utf-8")
    except (OutputError, OSError, ValueError) as error:
        yield str(error)
        return
    try:
        package = data_package(product.words.title, due.plan.product, files, due.described, product.words.universes)
    except (KeyError, StopIteration, IndexError, ValueError):
        yield f"{DATA_PACKAGE} cannot be made of these tables and columns"
        return
    made = json.loads(json.dumps(package))
    yield from apart(made, told, DATA_PACKAGE)
    if text != readable(made):
        yield f"{READABLE} is not what {DATA_PACKAGE} says"


def _parts_faults(release: ReleaseFolder) -> Iterator[str]:
    """Compare each part with its own manifest, and the whole with the parts."""
    manifest = release.manifest
    try:
        parts = release.parts
        for name, part in parts.items():
            yield from (f"{name}: {fault}" for fault in manifest_faults(part).wrong)
        check_units({name: part.measured for name, part in parts.items()})
        key = str(manifest["system"]).partition(",")[0]
        due = whole_manifest(release.folder, str(manifest.get("product")), key, tuple(parts))
    except (ConfigError, OutputError) as error:
        yield str(error)
        return
    yield from apart({**due, "yupana": manifest["yupana"], "created": manifest.get("created")}, dict(manifest), "")


_SIDE_BY_SIDE = " side by side"


def check_release(release: Path, inputs: Path | None = None) -> Checked:
    """Compare an output with what its manifest says of it.

    Parameters
    ----------
    inputs : Path, optional
        A folder with public files of the run, to compare with those that the manifest names.

    Raises
    ------
    OutputError
        If it is no output of this program, or ``inputs`` is no folder.
    """
    if inputs is not None:
        must_be(FOLDER, inputs, "name a folder with public files of the run", OutputError)
    opened = read_release(release, confidential=True)
    stated = manifest_faults(opened, inputs)
    wrong = [*stated.wrong, *opened.wrong()]
    unchecked = stated.unchecked
    if part_names(opened.manifest):
        found = Checked(against="the manifest, and each part with its own")
        for name in () if wrong else opened.parts:
            of_part = check_release(release / name, inputs)
            wrong += [f"{name}: {fault}" for fault in of_part.wrong]
            unchecked += tuple(f"{name}: {note}" for note in of_part.unchecked)
    else:
        found = _of_kind(release, opened.manifest, wrong)
    # Some of these compare checksums once more.
    return replace(found, wrong=tuple(dict.fromkeys([*wrong, *found.wrong])), unchecked=(*found.unchecked, *unchecked))


def open_checked(release: Path, *, confidential: bool = False) -> ReleaseFolder:
    """Open a release of which `check_release` finds nothing wrong; for what publishes more of it.

    Parameters
    ----------
    confidential : bool
        As of `yupana.products.gate.open_release`.

    Raises
    ------
    OutputError
        Naming what is wrong; or if nothing may be made of it.
    """
    opened = read_release(release, confidential=confidential)
    if wrong := check_release(release).wrong:
        raise OutputError("\n  ".join([f"{release} does not hold together:", *wrong]))
    return opened


def _of_kind(release: Path, manifest: Mapping[str, Any], wrong: list[str]) -> Checked:
    """What the kind of output allows to be compared; of most nothing that is wrong already in its files."""
    kind = str(manifest.get("product"))
    product = PRODUCTS.of(manifest)
    if product is not None:
        return Checked() if wrong else product.verify(release, manifest)
    if kind == SPINE:
        against = "the manifest and each other, and shares sum to 1 along every path"
        return Checked(tuple(read_checked(release)[1]), against=against)
    if kind in {PL_FILES, ESTIMATES, CERTIFICATE, EXPORT, ATLAS} or kind.endswith((ACCURACY, _SIDE_BY_SIDE)):
        return Checked(against="the manifest")
    raise OutputError(f"{release} is a release of an unknown product, {kind!r}")
