"""What the accuracy of both SafeTab products shares: its file. Confidential."""

from pathlib import Path

import yupana
from yupana.products.safetab.errors import Accuracy, IterationAccuracy
from yupana.release.check import describe_tables
from yupana.release.folder import new_folder, write_manifest
from yupana.release.status import CONFIDENTIAL, NOT_FOR_RELEASE
from yupana.release.tables import ReleaseTable, Value, write_table


def write_accuracy(
    product: str,
    rows: list[Accuracy],
    by_iteration: list[IterationAccuracy],
    out: Path,
    *,
    overwrite: bool,
    internal: bool = False,
) -> None:
    """Write ``OUT/accuracy.csv``, ``OUT/accuracy_by_iteration.csv`` and a manifest.

    The manifest says NOT FOR RELEASE, or CONFIDENTIAL after ``internal`` use.

    Raises
    ------
    OutputError
        If ``out`` cannot be used.
    """
    table = ReleaseTable(
        "accuracy",
        {
            "TABLE": [row.table for row in rows],
            "REGION_TYPE": [row.region_type for row in rows],
            "ITERATION_LEVEL": [row.iteration_level for row in rows],
            "DETAILED_ONLY": [str(row.detailed_only) for row in rows],
            "GROUP_SIZE": [row.size for row in rows],
            "GROUPS": [row.groups for row in rows],
            "SHARE": [row.share for row in rows],
            "COUNT": [row.count for row in rows],
            "EXPECTED_MOE": [_known(row.expected_moe) for row in rows],
            "EXPERIMENTAL_MOE": [_known(row.experimental_moe) for row in rows],
            "EXPERIMENTAL_MOE_UNCAPPED": [_known(row.experimental_moe_uncapped) for row in rows],
            "RACE_CAP_BIAS": [_known(row.race_cap_bias) for row in rows],
            "COVERAGE": [_known(row.coverage) for row in rows],
        },
    )
    iterations = ReleaseTable(
        "accuracy_by_iteration",
        {
            "TABLE": [row.table for row in by_iteration],
            "REGION_TYPE": [row.region_type for row in by_iteration],
            "ITERATION_LEVEL": [row.iteration_level for row in by_iteration],
            "ITERATION_CODE": [row.iteration for row in by_iteration],
            "COUNT": [row.count for row in by_iteration],
            "MEAN_SIZE": [row.mean_size for row in by_iteration],
            "EXPECTED_MOE": [row.expected_moe for row in by_iteration],
            "EXPERIMENTAL_MOE": [row.experimental_moe for row in by_iteration],
            "EXPERIMENTAL_MOE_UNCAPPED": [row.experimental_moe_uncapped for row in by_iteration],
            "RACE_CAP_BIAS": [row.race_cap_bias for row in by_iteration],
        },
    )
    with new_folder(out, overwrite=overwrite, private=internal) as partial:
        tables = [table, iterations]
        paths = {each.name: write_table(partial, each, "csv") for each in tables}
        write_manifest(
            partial,
            {
                "yupana": yupana.__version__,
                "product": f"{product} accuracy",
                "status": CONFIDENTIAL if internal else NOT_FOR_RELEASE,
                "tables": describe_tables(paths, tables),
            },
        )


def _known(value: float | None) -> Value:
    return "" if value is None else value
