"""Which run of 2020 a configuration is compared with."""

from yupana.topdown.configuration import Configuration
from yupana.topdown.reading.configuration import read_configuration


def production_configuration(configuration: Configuration) -> Configuration:
    """The run of 2020 with the same privacy unit: that of Puerto Rico for a spine whose root is the state."""
    product = "h1-2020" if configuration.privacy_unit == "housing unit" else "pl94-2020"
    return read_configuration(f"{product}-{'pr' if configuration.levels[0] == 'State' else 'us'}")
