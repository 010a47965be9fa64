"""What a release of TopDown tells of itself: its schema, its geolevels, its spine and its noisy measurements. Public.

It imports nothing of the least squares, so that what only reads tables does not wait for the compiler.
"""

from pathlib import Path

from yupana.errors import OutputError
from yupana.geography.spine import Spine
from yupana.geography.spine_files import read_spine
from yupana.products.topdown.tables import SPINE
from yupana.products.topdown.verify import NOISY, SYSTEM
from yupana.release.release import ReleaseFolder
from yupana.topdown.configuration import OF_AREAS
from yupana.topdown.queries import Attribute, Schema


def must_be_of_topdown(release: ReleaseFolder) -> None:
    """Refuse what is no release of TopDown.

    Raises
    ------
    OutputError
    """
    if release.product == NOISY:
        raise OutputError(
            f"{release.folder} holds noisy measurements, without the spine they were made on; name the release, and "
            f"give this folder with --noisy-measurements"
        )
    if release.product != SYSTEM:
        raise OutputError(f"{release.folder} is of {release.product!r}, and not a release of TopDown")
    schema_of(release)


def schema_of(release: ReleaseFolder) -> tuple[Schema, tuple[str, ...]]:
    """The schema and the geolevels that the manifest of a TopDown release tells.

    Raises
    ------
    OutputError
        If it does not.
    """
    try:
        told = release.manifest["parameters"]
        attributes = tuple(Attribute(name, tuple(labels)) for name, labels in told["schema"].items())
        dict(told["invariants"])
        str(told["spine"])
        return Schema(attributes), tuple(told["geolevels"])
    except (KeyError, TypeError, ValueError, AttributeError):
        raise OutputError(f"{release.folder}: the manifest does not hold the schema and geolevels of TopDown") from None


def released_spine(release: ReleaseFolder) -> Spine:
    """The spine of a release of TopDown.

    Raises
    ------
    InputError, OutputError
        If it is missing, was changed, or is none.
    """
    _, levels = schema_of(release)
    # The manifest lists the spine; without it, nobody can say which geounits add up to which.
    if f"{SPINE}/blocks.csv" not in release.files.values():
        raise OutputError(f"{release.folder} has no {SPINE}/blocks.csv; it is no release of TopDown")
    release.file(f"{SPINE}/blocks.csv")
    any_codes = release.manifest["parameters"]["spine"] == OF_AREAS
    return read_spine(release.folder / SPINE, levels, any_codes=any_codes)


def path_of(release: ReleaseFolder, stem: str) -> Path:
    """Where the file is that is called so without its ending, which every such release has; its bytes are checked.

    Raises
    ------
    OutputError
        If there is none, or it was changed.
    """
    name = file_of(release, stem)
    if name is None:
        raise OutputError(f"{release.folder} has no {stem}, which it must have; run yupana check")
    return release.file(name)


def file_of(release: ReleaseFolder, stem: str) -> str | None:
    """The file of a release, text or Parquet, that is called so without its ending; None if it has none.

    Raises
    ------
    OutputError
        If it has both.
    """
    found = [name for name in (f"{stem}.csv", f"{stem}.parquet") if name in release.files.values()]
    if len(found) > 1:
        raise OutputError(f"{release.folder} has {' and '.join(found)}, which say the same; run yupana check")
    return found[0] if found else None
