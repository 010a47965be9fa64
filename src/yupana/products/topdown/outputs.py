"""All public files of a release but the spine and the manifest, from the final counts of blocks."""

from pathlib import Path
from typing import Any

import numpy as np

from yupana.arrays import Integers
from yupana.errors import ConfigError
from yupana.geography.names import AreaNames, write_names
from yupana.geography.published import Areas, PublishedBlocks, write_published
from yupana.geography.spine import Spine
from yupana.products.topdown.records import person_records, unit_records, with_quarters
from yupana.products.topdown.schema import counts_persons, counts_units
from yupana.products.topdown.tables import write_tables
from yupana.release.check import describe
from yupana.release.lines import texts
from yupana.release.tables import Format, table_columns
from yupana.topdown.count_intervals import FindsIntervals
from yupana.topdown.disk import (
    BOUNDS,
    plain_records,
    write_counts,
    write_microdata,
    write_tabulation,
)
from yupana.topdown.histogram import Histogram
from yupana.topdown.queries import Schema


def write_outputs(
    folder: Path,
    spine: Spine,
    published: PublishedBlocks | None,
    schema: Schema,
    histogram: Histogram,
    *,
    facilities: Integers | None = None,
    names: AreaNames | None = None,
    microdata: bool = True,
    fmt: Format = "csv",
    intervals: FindsIntervals | None = None,
) -> dict[str, int]:
    """Write counts, tabulation, microdata and, of the schemas of P.L. 94-171, the published tables.

    Parameters
    ----------
    folder : Path
        Where the release is made.
    spine : Spine
    published : PublishedBlocks or None
        The blocks of the spine, and others perhaps, with the areas they lie in; None where the units of the spine are
        what is published.
    schema : Schema
    histogram : Histogram
        Final counts of the blocks of the spine, in its order.
    facilities : ndarray of integers, shape (blocks, 8), optional
        In the same order; housing units are listed with the group quarters beside them.
    names : mapping, optional
        Of areas.
    microdata : bool
        Whether records are written, too.
    fmt : "csv" or "parquet"
        Of counts, tabulation and areas; records and tables are text.
    intervals : callable, optional
        Makes ready what finds intervals of tabulation and tables. Where the units of the spine are what is published,
        their counts are then tabulated, too, with their intervals.

    Returns
    -------
    dict of str to int
        Rows, by the file's path within the folder.
    """
    rows = write_counts(folder, spine, schema, histogram, fmt)
    if published is None:
        if intervals is not None:
            units = areas_of_spine(spine)
            rows |= write_tabulation(folder, schema, histogram, units, fmt, intervals(units))
        if microdata:
            rows |= write_microdata(folder, histogram, *plain_records(spine, schema))
        return rows
    areas = published.areas(spine.blocks)
    rows |= write_published(folder, published, fmt)
    if names is not None:
        rows |= write_names(folder, names, {kind.name: map(bytes.decode, kind.labels.tolist()) for kind in areas})
    found = None if intervals is None else intervals(areas)
    rows |= write_tabulation(folder, schema, histogram, areas, fmt, found)
    if microdata:
        rows |= _records(folder, spine, schema, histogram, facilities)
    return rows | write_tables(folder, schema, histogram, areas, found)


def areas_of_spine(spine: Spine) -> list[Areas]:
    """The units of each geolevel as published areas, from the blocks up."""
    above = [spine.tree.parents[level + 1] for level in range(len(spine.levels) - 1)]
    index = [*(parents.astype(np.int64) for parents in above), np.arange(len(spine.blocks))]
    below = [*(level.name for level in spine.levels[1:]), ""]
    kinds = zip(spine.levels, index, below, strict=True)
    return [Areas(level.name, texts(level.labels()), of, under) for level, of, under in kinds][::-1]


def _records(
    folder: Path, spine: Spine, schema: Schema, histogram: Histogram, facilities: Integers | None
) -> dict[str, int]:
    if counts_persons(schema):
        return write_microdata(folder, histogram, *person_records(spine.blocks, schema))
    if counts_units(schema):
        records = histogram if facilities is None else with_quarters(histogram, facilities)
        return write_microdata(folder, records, *unit_records(spine.blocks))
    return write_microdata(folder, histogram, *plain_records(spine, schema))


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
    names = ["block", "geounit", "count", *(end.lower() for end in BOUNDS), *(name.lower() for name in schema.names)]
    if len(set(names)) < len(names):
        raise ConfigError(
            f"[schema] {', '.join(schema.names)}: names must differ from each other and from block, geounit, count, "
            "lower, upper and moe"
        )


def describe_files(folder: Path, rows: dict[str, int]) -> dict[str, dict[str, Any]]:
    """What the manifest says of the files: by path, checksum, rows and columns."""
    described = {}
    for name, number in rows.items():
        path = folder / name
        table = path.with_suffix("").relative_to(folder).as_posix()
        described[name] = describe(table, path, number, table_columns(path))
    return described
