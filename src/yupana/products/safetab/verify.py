"""Whether the tables of a SafeTab release hold together: with each other, and with their plan."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from yupana.products.safetab.regions import REGION_TYPES, US
from yupana.products.safetab.specification import FAMILIES
from yupana.products.tables import Family
from yupana.products.verify import Codes, verify_noise, verify_tables

_AREAS: Final = " OR ".join(
    f"(REGION_TYPE = '{r.name}' AND regexp_full_match(REGION_ID, '[0-9]{{{r.width}}}'))" for r in REGION_TYPES
)
CODES: Final = Codes(
    written=lambda _: f"({_AREAS}) AND regexp_full_match(ITERATION_CODE, '[0-9]{{4}}')",
    region_type=lambda level: level.rsplit(" ", 1)[0],
    # One of each summary level.
    most_combined=sum(region.run == US for region in REGION_TYPES),
)


def verify_release(folder: Path, manifest: Mapping[str, Any]) -> tuple[list[str], list[str]]:
    """Compare the tables of a release, or single ones that were postprocessed, with their plan; see `verify_tables`."""
    return verify_tables(folder, manifest, _families(manifest), CODES)


def noise_faults(folder: Path, manifest: Mapping[str, Any], table: str) -> list[str]:
    """What is wrong with the noise of one table; see `verify_noise`."""
    return verify_noise(folder / table, manifest, _families(manifest), CODES, table)


def _families(manifest: Mapping[str, Any]) -> Sequence[Family]:
    """What the product publishes; of tables without a manifest, what both publish."""
    return FAMILIES.get(manifest["product"]) or [family for families in FAMILIES.values() for family in families]
