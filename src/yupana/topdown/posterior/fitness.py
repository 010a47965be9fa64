"""Whether a configuration measures what the posterior of the blocks needs."""

from yupana.errors import ConfigError
from yupana.plan.measurement import Mechanism
from yupana.privacy.exact import INFINITE
from yupana.topdown.configuration import Configuration


def check_posterior(configuration: Configuration) -> None:
    """Refuse a configuration whose last geolevel tells too little of its units, or without normal noise.

    Raises
    ------
    ConfigError
    """
    level = configuration.levels[-1]
    if configuration.budget == INFINITE:
        raise ConfigError("--estimator posterior: the budget is infinite; without noise there is nothing to estimate")
    if configuration.mechanism is not Mechanism.ZCDP:
        raise ConfigError(
            "--estimator posterior: weighs measurements by the normal law, and the noise of pure DP has another; use "
            "--estimator full-information, or the mechanism zcdp"
        )
    if level in configuration.without_detail():
        raise ConfigError(
            f"--estimator posterior: learns from the detailed query of {level} how alike its units are, and "
            f"queries.{level} does not measure it; give it a share, or use --estimator full-information"
        )
