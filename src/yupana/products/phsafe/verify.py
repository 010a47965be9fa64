"""Whether the tables of a PHSafe release are those its plan promises."""

from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from yupana.products.phsafe.specification import FAMILIES
from yupana.products.phsafe.tables import groups, level_of
from yupana.products.tables import Family
from yupana.products.verify import Codes, Key, verify_noise, verify_tables


def verify_release(folder: Path, manifest: Mapping[str, Any]) -> list[str]:
    """Compare the tables of a release with its plan: their rows are all population groups and cells, and no other.

    Returns
    -------
    list of str
        What is wrong, in words; empty if nothing is.

    Raises
    ------
    KeyError, TypeError, ValueError
        If the manifest does not hold a plan of PHSafe.
    """
    wrong, _ = verify_tables(folder, manifest, *_published(manifest))
    return wrong


def noise_faults(folder: Path, manifest: Mapping[str, Any], table: str) -> list[str]:
    """What is wrong with the noise of one table; see `verify_noise`."""
    return verify_noise(folder / table, manifest, *_published(manifest), table)


def _published(manifest: Mapping[str, Any]) -> tuple[list[Family], Codes]:
    """What a release publishes, and of whom."""
    measured = {m["table"] for m in manifest["plan"]["measurements"]}
    published = partial(_groups, states=tuple(manifest["parameters"]["states"]))
    codes = Codes(lambda _: "true", lambda level: level_of(level).region_type, published)
    return [family for family in FAMILIES if family.name in measured], codes


def _groups(family: Family, level: str, states: tuple[str, ...]) -> Iterator[Key]:
    for group in groups(level_of(level), states):
        yield (group.region_id, group.region_type, group.iteration)[: len(family.keys)]
