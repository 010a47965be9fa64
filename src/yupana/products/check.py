"""Check any output of this program against its manifest, and a release against its plan and configuration, too."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from yupana.errors import OutputError
from yupana.files.regular import FOLDER, must_be
from yupana.geography.spine_files import check_folder
from yupana.products import PRODUCTS
from yupana.products.gate import manifest_faults
from yupana.products.product import Checked
from yupana.products.topdown.pl.layout import PL_FILES
from yupana.release.recipe import ACCURACY, CERTIFICATE, ESTIMATES, SPINE
from yupana.release.release import ReleaseFolder, part_names, read_release

_SIDE_BY_SIDE = " side by side"


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
    release : Path
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
        return Checked(tuple(check_folder(release)), against=against)
    if kind in {PL_FILES, ESTIMATES, CERTIFICATE} or kind.endswith((ACCURACY, _SIDE_BY_SIDE)):
        return Checked(against="the manifest")
    raise OutputError(f"{release} is a release of an unknown product, {kind!r}")
