"""Settings of all tests."""

import hashlib
import os
import sys
from collections import defaultdict
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import settings

from yupana import interruption

# Machines differ in speed, so no example is failed for its time. The same examples come every time, so that a failure
# speaks of a change; `pytest --hypothesis-profile search` tries new ones.
settings.register_profile("everywhere", deadline=None, derandomize=True)
settings.register_profile("search", deadline=None)
settings.load_profile("everywhere")


@pytest.fixture(scope="session", autouse=True)
def _no_disk_is_waited_for() -> Iterator[None]:
    """No test loses power, so none waits until the disk has written; a descriptor that is none is noticed all the same.

    What is called through a process of its own waits as ever.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", os.fstat)
        yield


@pytest.fixture(scope="session", autouse=True)
def _nothing_is_remembered() -> None:
    """A mutant is tested in a process that has run the tests before, whose results would hide what it changes."""
    for name in [name for name in sys.modules if name.startswith(("yupana.privacy.", "yupana.plan."))]:
        for found in vars(sys.modules[name]).values():
            if hasattr(found, "cache_clear"):
                found.cache_clear()


@pytest.fixture(autouse=True)
def _one_run() -> Iterator[None]:
    """A test is a run of its own: no signal of an earlier one waits in it, nor in what is made for a whole file."""
    interruption.begin()
    yield
    interruption.begin()


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """A running Chromium."""
    from chromium import chromium  # noqa: PLC0415 (skips the test where there is none)

    with chromium() as started:
        yield started


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Of a test that is ``sampled(n)``, all cases but n, chosen by a hash of their names, are thorough."""
    cases: dict[tuple[str, int], list[pytest.Item]] = defaultdict(list)
    for item in items:
        if (marker := item.get_closest_marker("sampled")) is not None:
            cases[item.nodeid.partition("[")[0], marker.args[0]].append(item)
    for (_, number), of_test in cases.items():
        in_order = sorted(of_test, key=lambda item: hashlib.sha256(item.nodeid.encode()).digest())
        for item in in_order[number:]:
            item.add_marker(pytest.mark.thorough)
