"""The blocks of an invented state, to try spines on."""

from functools import cache
from importlib.resources import as_file, files
from types import MappingProxyType

import numpy as np

from yupana.geography.blocks import Reference
from yupana.report.topdown import SampleBlocks


@cache
def blocks() -> SampleBlocks:
    """The blocks of an invented state, to try spines on."""
    with as_file(files("yupana.explore") / "reference" / "blocks.npz") as path, np.load(path) as found:
        reference = Reference(
            np.cumsum(found["block"]),
            found["aiannh"],
            found["cousub"],
            found["place"],
            MappingProxyType({}),
        )
        quarters = found["quarters"]
    source = f"an invented state of 368,000 households in {len(quarters):,} blocks"
    return SampleBlocks(reference, quarters, source, {"person record": 928_692, "housing unit": 407_530})
