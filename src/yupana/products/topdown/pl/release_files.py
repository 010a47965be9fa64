"""The files of P.L. 94-171 as an output of their own: made of two releases that lie side by side, with a manifest."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from yupana.errors import ConfigError, OutputError
from yupana.files.regular import FOLDER, must_be
from yupana.geography.gazetteer import read_names
from yupana.geography.header import HEADER
from yupana.products.check import open_checked
from yupana.products.gate import open_release
from yupana.products.topdown.pl.area_fields import check_names
from yupana.products.topdown.pl.from_release import areas_in, summary_files
from yupana.products.topdown.pl.layout import LINKS, PL_FILES, segment_variables
from yupana.products.topdown.pl.summary_file import (
    header_in,
    is_geographic_header,
    read_geographic_header,
    write_summary_file,
)
from yupana.products.topdown.schema import counts_persons, counts_units
from yupana.release.folder import MANIFEST, new_folder, write_manifest
from yupana.release.lines import Texts
from yupana.release.release import ReleaseFolder
from yupana.release.status import CONFIDENTIAL, MEASURED, NOT_FOR_RELEASE, refuse_confidential
from yupana.release.tables import describe
from yupana.topdown.configuration import Configuration
from yupana.version import __version__

_PARTS: Final = {
    "persons": ("tables/P1", "a configuration such as pl94-2020-us"),
    "units": ("tables/H1", "a configuration such as h1-2020-us"),
}
"""The folders of the two releases, a table that each has, and what makes it."""


def write_release_files(release: Path, out: Path, names: Path | None, *, overwrite: bool = False) -> dict[str, Any]:
    """Write the four files of every state, and return their manifest.

    They follow from public files alone, so that they cost no privacy; they are as fit for release as what they are of.

    Parameters
    ----------
    release : Path
        A folder with the release of persons in ``persons`` and that of housing units in ``units``.
    out : Path
        A folder that does not exist or is empty; it appears whole.
    names : Path, optional
        A geographic header, or the folder that holds one; areas that it has get its fields.
    overwrite : bool
        Replace an earlier output.

    Raises
    ------
    InputError
        If the header is faulty.
    OutputError
        If a release is missing, was changed, is CONFIDENTIAL, or they are of different areas; or ``out`` cannot be
        used.
    """
    must_be(FOLDER, release, "name the folder of the releases of persons and units", OutputError)
    parts = {part: _part(release, part, open_checked) for part in _PARTS}
    known = None if names is None else read_geographic_header(header_in(names))
    with new_folder(out, overwrite=overwrite, noisy=False) as draft:
        return _write(draft, parts, known)


@contextmanager
def claim_files(
    configurations: Mapping[str, Configuration], out: Path, names: Path | None, *, overwrite: bool
) -> Iterator[Callable[[Path], object]]:
    """Claim the folder of the files before a run, and refuse what none could be written of.

    Parameters
    ----------
    configurations : mapping of str to Configuration
        Of the parts that the run makes, by name.
    out : Path
        A folder that does not exist or is empty; it appears whole at the end.
    names : Path, optional
        What areas are called: a geographic header, or a table, which the releases keep.
    overwrite : bool
        Replace an earlier output.

    Yields
    ------
    callable
        Writes the files, of the folder with the releases of the parts.

    Raises
    ------
    ConfigError
        If there are no persons or no housing units.
    InputError, OutputError
        If the header is faulty, or ``out`` cannot be used.
    """
    for part, counts in (("persons", counts_persons), ("units", counts_units)):
        if part not in configurations or not counts(configurations[part].schema):
            raise ConfigError(
                "--pl: the files of P.L. 94-171 hold persons and housing units, and neither is left out or written as "
                f"zero. This run has no part {part!r} with the schema of P.L. 94-171; run a document of the parts "
                "persons and units, such as pl94-2020-us-whole"
            )
    known = None
    if names is not None and is_geographic_header(names):
        known = read_geographic_header(names)
        areas_in(known)
    elif names is not None:
        check_names(read_names(names))
    with new_folder(out, overwrite=overwrite, noisy=False) as draft:
        # The run that has just made them has checked every row.
        yield lambda release: _write(draft, {part: _part(release, part, open_release) for part in _PARTS}, known)


def _write(draft: Path, parts: Mapping[str, ReleaseFolder], known: Mapping[str, Texts] | None) -> dict[str, Any]:
    """Write the files of all states and their manifest."""
    statuses = [refuse_confidential(part.manifest, str(part.folder)) for part in parts.values()]
    columns = [list(HEADER), *([*LINKS, *segment_variables(segment)] for segment in range(3))]
    tables: dict[str, Any] = {}
    for file in summary_files(parts["persons"], parts["units"], known):
        for name, fields in zip(write_summary_file(draft, file), columns, strict=True):
            tables[name] = describe(name.removesuffix(".pl"), draft / name, file.records, fields)
    reasons = list(dict.fromkeys(why for part in parts.values() for why in part.manifest.get("reasons", ())))
    manifest = {
        "yupana": __version__,
        "product": PL_FILES,
        "status": NOT_FOR_RELEASE if {NOT_FOR_RELEASE, CONFIDENTIAL} & set(statuses) else MEASURED,
        **({"reasons": reasons} if reasons else {}),
        "parts": {name: {"manifest_sha256": part.sha256} for name, part in parts.items()},
        "tables": tables,
    }
    write_manifest(draft, manifest)
    return manifest


def _part(release: Path, part: str, opened: Callable[[Path], ReleaseFolder]) -> ReleaseFolder:
    """One of the two releases, whose files are those of its manifest."""
    table, made_by = _PARTS[part]
    folder = release / part
    if not (folder / MANIFEST).is_file():
        alone = f"{release} is one release by itself" if (release / MANIFEST).is_file() else f"{folder} is no release"
        raise OutputError(
            f"{alone}: the files of P.L. 94-171 hold persons and housing units, and neither is left out or written as "
            f"zero. Name a folder with a release of each in {' and '.join(_PARTS)}; {part} are made by a run of "
            f"{made_by}"
        )
    found = opened(folder)
    if table not in found:
        raise OutputError(
            f"{folder} has no table {table.removeprefix('tables/')}: {part} are made by a run of {made_by}"
        )
    return found
