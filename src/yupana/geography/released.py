"""The blocks of a release, the areas they lie in and what these are called; files are checked first. Public."""

from types import MappingProxyType

from yupana.errors import OutputError
from yupana.geography.names import NAMES, AreaNames, read_names
from yupana.geography.published import AREAS_FOLDER, BLOCKS_STEM, PublishedBlocks, read_published
from yupana.geography.settings import ROOT
from yupana.release.release import ReleaseFolder


def released_blocks(release: ReleaseFolder) -> PublishedBlocks | None:
    """All blocks of a release of TopDown with their areas; None where the units of its spine are what is published.

    Raises
    ------
    InputError, OutputError
        If the file is missing, was changed, or is no such table.
    """
    name = file_of(release, f"{AREAS_FOLDER}/{BLOCKS_STEM}")
    if name is None:
        return None
    release.file(name)
    levels = release.manifest.get("parameters", {}).get("geolevels") or [""]
    return read_published(release.folder, nation=levels[0] == ROOT)


def released_names(release: ReleaseFolder) -> AreaNames:
    """What a release calls its areas, by kind and identifier; nothing if it names none.

    Raises
    ------
    InputError, OutputError
        As by `released_blocks`.
    """
    return read_names(release.file(NAMES)) if NAMES in release.files.values() else MappingProxyType({})


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
