"""The words in which a release says what was done to its tables after they were measured."""

from typing import Final

RECORD: Final = "postprocessing"
"""The entry of the manifest that lists what was done after the measurements, in order."""

COTERMINOUS: Final = "coterminous"
SUPPRESSION: Final = "suppression"
"""Rules that a record names."""

SUPPRESSED: Final = "X"
"""What a suppressed number says."""

SINGLE_TABLE: Final = "single table"
"""The product of a table that was postprocessed without the manifest of its release."""
