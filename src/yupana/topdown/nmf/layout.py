"""How the Census Bureau's noisy measurement files are laid out: folders, columns, names, widths of geocodes. Public.

The facts are those of docs/noisy-measurement-files.md. The writer and the reader share these names and nothing else.
"""

from typing import Final

DPQUERY: Final = "DPQuery"
CONSTRAINT: Final = "Constraint"
"""The folders of a geolevel: noisy answers, and what holds exactly."""

ENDINGS: Final = {DPQUERY: "_dpq", CONSTRAINT: "_con"}
"""What the names of queries end with."""

COLUMNS: Final = ("geocode", "query_name", "sign", "query_shape", "value", "variance", "plb", "State", "County")
"""Columns beside those of the attributes; ``sign`` is of constraints alone, ``plb`` may be absent."""

PARTITION: Final = "State"
"""The key of the folders below every geolevel but the nation."""

SUMMED: Final = "*"
WHOLE: Final = "detailed"
"""What an axis says that is summed over, and that is kept level by level; so does the name of its attribute."""

JOINED: Final = " * "
"""Between the parts of a query's name."""

TOTAL_IS: Final = "total_con"
TOTAL_AT_LEAST: Final = "total_lb_con"
QUARTERS_AT_LEAST: Final = "hhgq_total_lb_con"
QUARTERS_AT_MOST: Final = "hhgq_total_ub_con"
ZERO_ENDING: Final = "_0_con"
NURSING_MINORS: Final = "nurse_nva_0_con"

LEVEL_NAMES: Final = {("hhgq", 3): "gqNursingTotal", ("votingage", 0): "nonvoting"}
"""What an axis says of which one level alone is kept, of the redistricting data."""

NATION: Final = "US"

BRANCH_AND_STATE: Final = 3
"""Characters of a state: 0, or 1 within areas of American Indians and Alaska Natives, and its two digits."""

COUNTY: Final = "10"
"""What stands between a state and the three digits of a county that is no such area."""

MORE_CHARACTERS: Final = {"County": 1, "Tract_Group": 3, "Tract": 4, "Block_Group": 2}
"""Characters of the number of a geounit within the one above, at least; of a county behind its digits."""

BLOCK_DIGITS: Final = 16
"""The last characters of a block: state 2, county 3, tract 6, block group 1, block 4."""


def level_folder(dataset: str, level: str) -> str:
    """The folder of a geolevel, within the root of the files."""
    return f"{dataset}/{level}.parquet"
