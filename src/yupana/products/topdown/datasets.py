"""What datasets of noisy measurement files are called, and the configuration that each was measured with."""

import re
from typing import Final

from yupana.geography.spine import Spine
from yupana.products.safetab.regions import PUERTO_RICO
from yupana.products.topdown.schema import counts_persons, counts_units
from yupana.topdown.configuration import Configuration

DATASETS: Final = {
    "US_Person_PL_PROD": "pl94-2020-us",
    "PR_Person_PL_PROD": "pl94-2020-pr",
    "US_Unit_PL_PROD": "h1-2020-us",
    "PR_Unit_PL_PROD": "h1-2020-pr",
}
"""By the name of a dataset of the Census Bureau the built-in configuration."""


def dataset_name(configuration: Configuration, spine: Spine) -> str:
    """The name of the dataset that a run makes: of the redistricting data the Bureau's, else one with its product."""
    state = "PR" if (spine.blocks // 10**14 == int(PUERTO_RICO)).all() else "US"
    if counts_persons(configuration.schema):
        return f"{state}_Person_PL_PROD"
    if counts_units(configuration.schema):
        return f"{state}_Unit_PL_PROD"
    return f"{state}_{re.sub('[^A-Za-z0-9-]', '_', configuration.product)}"
