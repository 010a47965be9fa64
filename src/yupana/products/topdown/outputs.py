"""All public files of a release but the spine and the manifest, from the final counts of blocks."""

from pathlib import Path
from typing import Any

from yupana.arrays import Ints
from yupana.errors import ConfigError
from yupana.geography.blocks import Reference
from yupana.geography.spine import Spine
from yupana.products.topdown.records import person_records, unit_records, with_quarters
from yupana.products.topdown.schema import counts_persons, counts_units
from yupana.products.topdown.tables import write_tables
from yupana.release.check import describe
from yupana.release.tables import Format, table_columns
from yupana.topdown.disk import (
    plain_records,
    published_areas,
    write_counts,
    write_microdata,
    write_tabulation,
)
from yupana.topdown.histogram import Histogram
from yupana.topdown.queries import Schema


def write_outputs(
    folder: Path,
    spine: Spine,
    reference: Reference | None,
    schema: Schema,
    histogram: Histogram,
    *,
    facilities: Ints | None = None,
    fmt: Format = "csv",
) -> dict[str, int]:
    """Write counts, tabulation, microdata and, of the schemas of P.L. 94-171, the published tables.

    Parameters
    ----------
    folder : Path
        Where the release is made.
    spine : Spine
    reference : Reference or None
        The blocks of the spine, and others perhaps, with their published geography; None where the units of the spine
        are what is published.
    schema : Schema
    histogram : Histogram
        Final counts of the blocks of the spine, in its order.
    facilities : ndarray of int64, shape (blocks, 8), optional
        In the same order; housing units are listed with the group quarters beside them.
    fmt : "csv" or "parquet"
        Of counts and tabulation; records and tables are text.

    Returns
    -------
    dict of str to int
        Rows, by the file's path within the folder.
    """
    rows = write_counts(folder, spine, schema, histogram, fmt)
    if reference is None:
        return rows | write_microdata(folder, histogram, *plain_records(spine, schema))
    areas = published_areas(reference, spine.blocks)
    rows |= write_tabulation(folder, schema, histogram, areas, fmt)
    if counts_persons(schema):
        rows |= write_microdata(folder, histogram, *person_records(spine.blocks, schema))
    elif counts_units(schema):
        records = histogram if facilities is None else with_quarters(histogram, facilities)
        rows |= write_microdata(folder, records, *unit_records(spine.blocks))
    else:
        rows |= write_microdata(folder, histogram, *plain_records(spine, schema))
    return rows | write_tables(folder, schema, histogram, areas)


def check_labels(schema: Schema) -> None:
    """Refuse names and labels that a table separated by ``|`` could not hold.

    Raises
    ------
    ConfigError
    """
    for attribute in schema.attributes:
        for text in (attribute.name, *attribute.labels):
            if not text or any(character in text for character in '|"\n\r\0'):
                raise ConfigError(
                    f"[schema] {attribute.name!r}: {text!r} cannot be written; a name or label must not be empty or "
                    'hold a line break, | or "'
                )
    # The database does not tell names apart that differ by case alone.
    names = ["block", "geounit", "count", *(name.lower() for name in schema.names)]
    if len(set(names)) < len(names):
        raise ConfigError(
            f"[schema] {', '.join(schema.names)}: names must differ from each other and from block, geounit and count"
        )


def describe_files(folder: Path, rows: dict[str, int]) -> dict[str, dict[str, Any]]:
    """What the manifest says of the files: by path, checksum, rows and columns."""
    described = {}
    for name, number in rows.items():
        path = folder / name
        table = path.with_suffix("").relative_to(folder).as_posix()
        described[name] = describe(table, path, number, table_columns(path))
    return described
