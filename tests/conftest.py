"""Settings of all tests."""

import os

from hypothesis import settings

# Machines differ in speed, so no example is failed for its time. On continuous integration the same examples come every
# time; elsewhere new ones are tried with every run.
settings.register_profile("everywhere", deadline=None, derandomize=bool(os.environ.get("CI")))
settings.load_profile("everywhere")
