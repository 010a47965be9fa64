"""The table of a configuration that says what the spine is: units of any codes and what each lies in. Public."""

from pathlib import Path
from typing import Any

from yupana.files.codes import read_pairs
from yupana.files.document import check_keys, read_table
from yupana.geography.hierarchy import Hierarchy, check_level_names, hierarchy_of


def read_areas(
    document: dict[str, Any], folder: Path, faults: list[str]
) -> tuple[tuple[str, ...] | None, Hierarchy | None]:
    """The geolevels and the hierarchy of the table "areas"; None of either that is not there or in doubt.

    Parameters
    ----------
    document : dict
        The configuration, for what cannot stand beside areas.
    folder : Path
        Which a file of units is relative to.
    faults : list of str
        Faults found are added.
    """
    if "areas" not in document:
        return None, None
    if "spine" in document:
        faults.append("spine: is built of the Census Bureau's blocks, and areas says what the spine is; leave one out")
    constraints = document.get("constraints")
    if isinstance(constraints, dict) and "group_quarters" in constraints:
        faults.append("constraints.group_quarters: reads facilities of the Census Bureau's blocks; areas have none")
    table = read_table("areas", document["areas"], faults)
    check_keys("areas", table, ("levels", "of"), faults)
    if not {"levels", "of"} <= table.keys():
        return None, None
    before = len(faults)
    levels = table["levels"]
    if not isinstance(levels, list) or not levels:
        faults.append("areas.levels: must be a list of geolevels from the root down, the last those of the blocks")
        return None, None
    check_level_names("areas.levels", levels, faults)
    if len(faults) > before:
        return None, None
    pairs = read_pairs("areas.of", table["of"], folder, faults)
    if len(faults) > before:
        return tuple(levels), None
    return tuple(levels), hierarchy_of("areas.of", levels, pairs, faults)
