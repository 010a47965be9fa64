"""Whether the folder of a spine holds together: checksums, both tables, and shares that sum to 1."""

from fractions import Fraction
from pathlib import Path

from yupana.errors import InputError
from yupana.geography.read import WrittenShares, WrittenSpine, manifest_of, read_shares, read_spine, settings_of
from yupana.geography.verify import path_sums
from yupana.release.check import check_checksums


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
    _, wrong = check_checksums(folder)
    try:
        spine = read_spine(folder, settings.levels)
        shares = read_shares(folder, spine)
    except InputError as error:
        return None, [*wrong, str(error)]
    sums = path_sums(spine.tree, shares.shares, shares.index)
    if sums != {Fraction(1)}:
        wrong.append(f"shares from the root to the blocks sum to {', '.join(sorted(map(str, sums)))}, not all to 1")
    return (spine, shares), wrong
