"""The words in which a release says what was done to its tables after they were measured."""

from collections.abc import Mapping
from typing import Any, Final

RECORD: Final = "postprocessing"
"""The entry of the manifest that lists what was done after the measurements, in order."""

COTERMINOUS: Final = "coterminous"
SUPPRESSION: Final = "suppression"
DESCRIBED: Final = "description"
"""Rules that a record names; the last is what a description of tables says is done."""

MEASURED: Final = "measured"
"""The folder of the tables as they were measured, in a release whose description has more done to them."""

SUPPRESSED: Final = "X"
"""What a suppressed number says."""

SPINE: Final = "spine"
ESTIMATES: Final = "phsafe estimates"
CERTIFICATE: Final = "certificate"
"""Products of what is no release of a run."""

ACCURACY: Final = " accuracy"
"""How the product ends of a folder that tells errors: no release, as it compares with the truth."""

SINGLE_TABLE: Final = "single table"
"""The product of a table that was postprocessed without the manifest of its release."""


def leaves_out_small(manifest: Mapping[str, Any]) -> bool:
    """Whether rows were left out because their noisy count was small; those that are there are then off more often."""
    parameters = manifest.get("parameters") or {}
    return parameters.get("zero_suppression_chance") not in {"None", "0", None} or "leave_out" in parameters
