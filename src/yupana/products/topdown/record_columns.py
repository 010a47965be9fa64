"""The columns of the Microdata Detail File of P.L. 94-171."""

from typing import Final

GEOGRAPHY: Final = {"TABBLKST": 2, "TABBLKCOU": 3, "TABTRACTCE": 6, "TABBLKGRPCE": 1, "TABBLK": 4}
"""Columns that name a block, with the digits of each."""

_HEAD: Final = ("SCHEMA_TYPE_CODE", "SCHEMA_BUILD_ID", *GEOGRAPHY)

PERSON_COLUMNS: Final = (*_HEAD, "EPNUM", "RTYPE", "GQTYPE_PL", "VOTING_AGE", "CENHISP", "CENRACE")
UNIT_COLUMNS: Final = (*_HEAD, "RTYPE", "HH_STATUS")
