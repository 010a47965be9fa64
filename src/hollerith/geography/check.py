"""Whether the folder of a spine holds together: checksums, both tables, and shares that sum to 1."""

from fractions import Fraction
from pathlib import Path

from hollerith.errors import InputError
from hollerith.geography.read import WrittenShares, WrittenSpine, manifest_of, read_shares, read_spine, settings_of
from hollerith.geography.verify import path_sums
from hollerith.geography.write import BLOCKS, GEOUNITS
from hollerith.release.tables import checksum


def check_folder(folder: Path) -> list[str]:
    """Compare the files of a spine with its manifest and with each other; return what is wrong, in words.

    Raises
    ------
    OutputError
        If the folder holds no spine.
    """
    return read_checked(folder)[1]


def read_checked(folder: Path) -> tuple[tuple[WrittenSpine, WrittenShares] | None, list[str]]:
    """Read the files of a spine; also return what is wrong. If they cannot be read there is no spine.

    Raises
    ------
    OutputError
        If the folder holds no spine.
    """
    manifest = manifest_of(folder)
    settings = settings_of(manifest, folder)
    wrong = []
    listed = manifest.get("tables")
    listed = listed if isinstance(listed, dict) else {}
    for name in sorted({BLOCKS, GEOUNITS, *listed}):
        told = listed.get(name)
        if not (folder / name).is_file():
            wrong.append(f"{name} is missing")
        elif not isinstance(told, dict):
            wrong.append(f"{name} has no checksum in the manifest")
        elif checksum(folder / name) != told.get("sha256"):
            wrong.append(f"{name} was changed after it was written: its checksum is not the manifest's")
    try:
        spine = read_spine(folder, settings.levels)
        shares = read_shares(folder, spine)
    except InputError as error:
        return None, [*wrong, str(error)]
    sums = path_sums(spine.tree, shares.shares, shares.index)
    if sums != {Fraction(1)}:
        wrong.append(f"shares from the root to the blocks sum to {', '.join(sorted(map(str, sums)))}, not all to 1")
    return (spine, shares), wrong
