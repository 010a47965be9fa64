"""Where a table of totals comes from: whether SafeTab-P published it, and of the same population groups. Public.

SafeTab-H's guarantee holds given the totals (docs/safetab-privacy.md, section 5). It protects nobody from what the
totals tell, so they must be numbers that are public at a cost of their own. The manifest beside them is the witness.
"""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import duckdb

from yupana.errors import InputError, OutputError
from yupana.plan.plan import read_plan
from yupana.privacy.exact import INFINITE, read_exact
from yupana.products.gate import manifest_faults
from yupana.products.safetab.configuration import Settings
from yupana.products.safetab.iterations import CharacteristicIterations
from yupana.products.safetab.plan import sensitivity
from yupana.products.safetab.regions import LEVELS, US
from yupana.products.safetab.specification import TOTALS
from yupana.products.safetab.totals import COLUMNS, FILE, header_of
from yupana.products.safetab.verify import noise_faults
from yupana.release.folder import read_manifest
from yupana.release.manifest import MANIFEST
from yupana.release.recipe import RECORD
from yupana.release.release import read_release
from yupana.release.status import CONFIDENTIAL, MEASURED, status_of
from yupana.release.tables import checksum

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
    """What a manifest must say of the totals that it takes as public, by what it says of their file.

    Parameters
    ----------
    told : mapping
        `Provenance.described`, of the manifest.
    reasons : sequence of str
        Against its release.
    stated : object
        What it says; taken where doubts decide, of which the reasons tell.
    """
    if stated == DOUBTFUL and reasons:
        return DOUBTFUL
    if "manifest_sha256" in told:
        return PUBLISHED
    return DECLARED if told["file"] == FILE else DOUBTFUL


_PRODUCT: Final = "safetab-p"
_NO_PLAN: Final = "its manifest holds no plan of safetab-p"


@dataclass(frozen=True, slots=True)
class Provenance:
    """What is known of a table of totals.

    Attributes
    ----------
    taken_as_public : str
        What a release by these totals takes as public.
    described : mapping
        For its manifest: the file and its checksum, and what the manifest of the totals says.
    doubts : tuple of str
        Why they may not be public, or not those of the same population groups; empty where a manifest vouches for
        them, or where whoever made the release does.
    is_vouched : bool
        Whether a manifest without a fault vouches for them.
    """

    taken_as_public: str
    described: Mapping[str, Any]
    doubts: tuple[str, ...]
    is_vouched: bool


def provenance(path: Path, settings: Settings, iterations: CharacteristicIterations) -> Provenance:
    """Find out where totals come from.

    Totals in the form of the originals, named ``pop-group-totals.txt`` and with their four columns alone, have no
    manifest: no release is written so, and whoever makes such a file declares that its numbers are published. All
    others need the manifest of a release of SafeTab-P beside them.

    Parameters
    ----------
    path : Path
    settings : Settings
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
    try:
        described: dict[str, Any] = {"file": path.name, "sha256": checksum(path)}
    except OSError as error:
        raise InputError(f"{path}: {error.strerror}") from None
    if path.name == FILE and header_of(path) == COLUMNS:
        _refuse_confidential_folder(path.parent)
        return Provenance(DECLARED, described, (), is_vouched=False)
    if not (path.parent / MANIFEST).is_file():
        return _doubtful(described, [f"there is no {MANIFEST} beside it"])
    manifest = read_manifest(path.parent)
    described["manifest_sha256"] = checksum(path.parent / MANIFEST)
    described |= {key: manifest[key] for key in ("product", "status", "created") if key in manifest}
    doubts = [*_not_published(path, described["sha256"], manifest), *_of_other_groups(manifest, settings, iterations)]
    if wrong := manifest_faults(read_release(path.parent)).wrong:
        raise OutputError("\n  ".join([f"{path.parent} does not hold together:", *wrong]))
    try:
        plan = manifest["plan"]
        described |= {key: plan[key] for key in ("mechanism", "totals")}
        described["postprocessing"] = [str(record["rule"]) for record in manifest.get(RECORD, ())]
        if not doubts:
            doubts = [*_wrong_plan(manifest, settings, iterations), *noise_faults(path.parent, manifest, TOTALS)]
    except (KeyError, TypeError, ValueError, AttributeError, duckdb.Error):
        doubts.append(_NO_PLAN)
    return _doubtful(described, doubts) if doubts else Provenance(PUBLISHED, described, (), is_vouched=True)


def _refuse_confidential_folder(folder: Path) -> None:
    """Refuse to take a declaration for what lies in a confidential output, if the folder is one."""
    with suppress(OutputError):
        if read_manifest(folder, confidential=True).get("status") != CONFIDENTIAL:
            return
        raise InputError(f"{folder} is {CONFIDENTIAL}, so no totals in it are taken; name totals that are published")


def _doubtful(described: Mapping[str, Any], doubts: list[str]) -> Provenance:
    return Provenance(DOUBTFUL, described, tuple(doubts), is_vouched=False)


def _not_published(path: Path, sha256: str, manifest: Mapping[str, Any]) -> list[str]:
    """Why a manifest does not say that SafeTab-P published this file."""
    doubts = []
    if manifest.get("product") != _PRODUCT:
        doubts.append(f"{MANIFEST} beside it is not that of a release of {_PRODUCT}")
    try:
        status = status_of(manifest)
    except OutputError as error:
        doubts.append(str(error))
    else:
        if status != MEASURED:
            why = "; ".join(manifest.get("reasons", ()))
            doubts.append(f"its manifest does not call it released, but {status!r}" + (f": {why}" if why else ""))
    tables = manifest.get("tables")
    listed = tables.get(path.name) if isinstance(tables, dict) else None
    if not isinstance(listed, dict) or listed.get("table") != TOTALS:
        doubts.append(f"its manifest does not list it as {TOTALS}")
    elif listed.get("sha256") != sha256:
        doubts.append("it was changed after it was written: its checksum is not the manifest's")
    return doubts


def _of_other_groups(
    manifest: Mapping[str, Any], settings: Settings, iterations: CharacteristicIterations
) -> list[str]:
    """What says that the groups of the totals are not those of the run."""
    made = manifest.get("parameters")
    if not isinstance(made, dict):
        return ["its manifest holds no parameters"]
    doubts = []
    if made.get("iterations_sha256") != iterations.sha256:
        doubts.append("it was made with other codes or iterations than those of the parameter folder")
    if made.get("max_race_codes") != settings.max_race_codes:
        doubts.append(
            f"it was made with max_race_codes {made.get('max_race_codes')}, not {settings.max_race_codes} as configured"
        )
    passes, states = made.get("passes"), made.get("states")
    if not isinstance(passes, list) or not set(settings.runs) <= set(map(str, passes)):
        doubts.append("it was made without a pass that is to be run: run_us, run_pr")
    if US in settings.runs and (not isinstance(states, list) or set(map(str, states)) != set(settings.us_states)):
        doubts.append("it was made of other states than those of state_filter_us")
    return doubts


def _wrong_plan(manifest: Mapping[str, Any], settings: Settings, iterations: CharacteristicIterations) -> list[str]:
    """What is wrong with the plan for the groups of the run: infinite budgets, and too little noise."""
    plan, levels = read_plan(manifest["plan"]), {level.name: level for level in LEVELS}
    wrong = []
    for m in plan.measurements:
        least = sensitivity(iterations, levels[m.level], settings.max_race_codes, "tight").unbounded
        if m.budget == INFINITE:
            wrong.append(f"a budget of its plan is infinite, that of {m.name}, so counts without noise are in it")
        elif m.calibration < least:
            wrong.append(f"the noise that its plan states for {m.name} is not that of its budget")
    if read_exact(manifest["ledger"]["spent"]) != plan.loss():
        wrong.append("the loss that its plan states is not that of its measurements")
    return wrong if plan.measurements else [_NO_PLAN]
