"""Settings of all tests."""

from hypothesis import settings

# Machines differ in speed, so no example is failed for its time. The same examples come every time, so that a failure
# speaks of a change; `pytest --hypothesis-profile search` tries new ones.
settings.register_profile("everywhere", deadline=None, derandomize=True)
settings.register_profile("search", deadline=None)
settings.load_profile("everywhere")
