"""What the table "areas" of a configuration says the spine is: units of any codes and what each lies in. Public."""

from pathlib import Path

from yupana.files.codes import pairs_of
from yupana.geography.hierarchy import Hierarchy, hierarchy_of
from yupana.topdown.reading.declaration import DeclaredConfiguration


def read_areas(
    told: DeclaredConfiguration, folder: Path, faults: list[str]
) -> tuple[tuple[str, ...] | None, Hierarchy | None]:
    """The geolevels and the hierarchy of the table "areas"; None of either that is not there or in doubt.

    Parameters
    ----------
    told : DeclaredConfiguration
        For what cannot stand beside areas, too.
    folder : Path
        Which a file of units is relative to.
    faults : list of str
        Faults found are added.
    """
    if told.areas is None:
        return None, None
    if told.spine is not None:
        faults.append("spine: is built of the Census Bureau's blocks, and areas says what the spine is; leave one out")
    if told.constraints.group_quarters is not None:
        faults.append("constraints.group_quarters: reads facilities of the Census Bureau's blocks; areas have none")
    levels, pairs = told.areas.levels, told.areas.of
    if levels is None or pairs is None or any(fault.startswith("areas.levels") for fault in faults):
        return levels, None
    before = len(faults)
    found = pairs_of("areas.of", pairs, folder, faults)
    return levels, None if len(faults) > before else hierarchy_of("areas.of", levels, found, faults)
