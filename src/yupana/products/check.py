"""Check any output of this program against its manifest, and a release against its plan and configuration, too."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from yupana.errors import ConfigError, OutputError
from yupana.geography.disk import check_folder
from yupana.products import PRODUCTS
from yupana.products.described.product import SYSTEM
from yupana.products.parts import check_units
from yupana.products.product import Checked
from yupana.products.repeated import check_recipe
from yupana.products.topdown.pl.release_files import PRODUCT as PL_FILES
from yupana.release.check import check_files
from yupana.release.processing import ACCURACY, SINGLE_TABLE
from yupana.release.release import Release, open_release
from yupana.release.whole import part_names

_SPINE = "spine"
_WITHOUT_RECIPE = (_SPINE, PL_FILES)


def check_release(release: Path, inputs: Path | None = None) -> Checked:
    """Compare an output with what its manifest says of it.

    Parameters
    ----------
    release : Path
    inputs : Path, optional
        A folder with public files of the run, to compare with those that the manifest names.

    Raises
    ------
    OutputError
        If it is no output of this program, or ``inputs`` is no folder.
    """
    if inputs is not None and not inputs.is_dir():
        raise OutputError(f"{inputs} is no folder; name one with public files of the run")
    opened = open_release(release, confidential=True)
    manifest, wrong = opened.manifest, opened.wrong()
    try:
        _ = opened.status
    except OutputError as error:
        wrong.append(str(error))
    if part_names(manifest):
        return _of_parts(opened, wrong, inputs)
    found = _of_kind(release, manifest, wrong)
    # Some of these compare checksums once more.
    wrong = list(dict.fromkeys([*wrong, *found.wrong]))
    unchecked = found.unchecked
    if not wrong and manifest.get("product") not in _WITHOUT_RECIPE:
        wrong, left = check_recipe(release, manifest, inputs)
        unchecked = (*unchecked, *left)
    return replace(found, wrong=tuple(wrong), unchecked=unchecked)


def _of_parts(whole: Release, wrong: list[str], inputs: Path | None) -> Checked:
    """Compare each part with its own manifest, and the whole with the parts."""
    try:
        parts = whole.parts
    except OutputError as error:
        return Checked((*wrong, str(error)))
    unchecked: tuple[str, ...] = ()
    for name, part in parts.items():
        found = check_release(part.folder, inputs)
        wrong += [f"{name}: {fault}" for fault in found.wrong]
        unchecked += tuple(f"{name}: {note}" for note in found.unchecked)
        if whole.manifest["parts"][name].get("plan") != part.manifest.get("plan"):
            wrong.append(f"the plan of {name} is not that of its manifest")
    plans = {name: part.plan for name, part in parts.items()}
    try:
        check_units({name: plan for name, plan in plans.items() if plan is not None})
    except ConfigError as error:
        wrong.append(str(error))
    return Checked(tuple(dict.fromkeys(wrong)), unchecked, "the manifest, and each part with its own")


def _of_kind(release: Path, manifest: Mapping[str, Any], wrong: list[str]) -> Checked:
    """What the kind of output allows to be compared; of most nothing that is wrong already in its files."""
    product = str(manifest.get("product"))
    system = PRODUCTS.of(manifest) if manifest.get("system") is not None else None
    if system is not None:
        against = "the manifest and its plan" if system.key == SYSTEM else "the manifest and each other"
        return Checked(against=against) if wrong else system.verify(release, manifest)
    if product == _SPINE:
        against = "the manifest and each other, and shares sum to 1 along every path"
        return Checked(tuple(check_folder(release)), against=against)
    if product == PL_FILES:
        return Checked(against="the manifest")
    if product == "phsafe":
        return PRODUCTS["phsafe"].verify(release, manifest)
    if product in {"safetab-p", "safetab-h", SINGLE_TABLE}:
        against = "the manifest and its plan" if "plan" in manifest else "the manifest"
        return Checked(against=against) if wrong else PRODUCTS["safetab-p"].verify(release, manifest)
    if product == "phsafe estimates" or product.endswith((ACCURACY, " side by side")):
        return Checked(tuple(check_files(release, confidential=True)[2]), against="the manifest")
    raise OutputError(f"{release} is a release of an unknown product, {manifest.get('product')!r}")
