"""A folder of several releases that make one: each lies whole in a folder of its own, and a manifest names them."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from yupana.release.folder import MANIFEST, read_manifest, write_manifest
from yupana.release.recipe import CONFIGURATION
from yupana.release.status import CONFIDENTIAL, NOT_FOR_RELEASE
from yupana.release.tables import checksum
from yupana.version import __version__

PARTS: Final = "parts"
"""The key of a manifest that names the parts, with the SHA-256 of the manifest of each."""

_ENDING: Final = ", parts"


def write_whole(folder: Path, title: str, key: str, names: Sequence[str]) -> dict[str, Any]:
    """Write the manifest of a folder that holds a release for each part, and return it; see `whole_manifest`."""
    manifest = whole_manifest(folder, title, key, names)
    write_manifest(folder, manifest)
    return manifest


def whole_manifest(folder: Path, title: str, key: str, names: Sequence[str]) -> dict[str, Any]:
    """The manifest of a folder that holds a release for each part.

    It lists all their files. Its configuration is a document of parts, whose configurations are their manifests.

    Parameters
    ----------
    folder : Path
    title : str
        What the whole is called.
    key : str
        Of the product.
    names : sequence of str
        The parts, each of which is a folder.

    Raises
    ------
    OutputError
        If a part is no release.
    """
    manifests = {name: read_manifest(folder / name, confidential=True) for name in names}
    manifest = {
        "yupana": __version__,
        "product": title,
        "system": f"{key}{_ENDING}",
        "status": _worst([str(one["status"]) for one in manifests.values()]),
        "created": datetime.now(UTC).isoformat(timespec="seconds"),
        PARTS: {
            name: {"manifest_sha256": checksum(folder / name / MANIFEST), "plan": one["plan"]}
            for name, one in manifests.items()
        },
        CONFIGURATION: {"product": title, PARTS: {name: f"{name}/{MANIFEST}" for name in names}},
        "tables": {
            f"{name}/{file}": {**told, "table": f"{name}/{told.get('table', Path(file).stem)}"}
            for name, one in manifests.items()
            for file, told in one["tables"].items()
        },
        "reports": {
            **{f"{name}/{file}": told for name, one in manifests.items() for file, told in _reports(one).items()},
            **{f"{name}/{MANIFEST}": {"sha256": checksum(folder / name / MANIFEST)} for name in names},
        },
    }
    if reasons := list(dict.fromkeys(why for one in manifests.values() for why in one.get("reasons", ()))):
        manifest["reasons"] = reasons
    return manifest


def _reports(manifest: Mapping[str, Any]) -> Mapping[str, Any]:
    found: Mapping[str, Any] = manifest.get("reports", {})
    return found


def _worst(statuses: Sequence[str]) -> str:
    """The status of releases together."""
    return next((status for status in (CONFIDENTIAL, NOT_FOR_RELEASE) if status in statuses), statuses[0])


def part_names(manifest: Mapping[str, Any]) -> tuple[str, ...]:
    """The parts that a manifest is of, each a folder beside it; none of one release."""
    return tuple(manifest.get(PARTS, ())) if str(manifest.get("system")).endswith(_ENDING) else ()
