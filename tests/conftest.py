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
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Of a test that is ``sampled(n)``, keep cases with every value of every parameter; all but n are thorough.

    The order in which cases are looked at is that of a hash of their names.
    """
    cases: dict[tuple[str, int], list[pytest.Function]] = defaultdict(list)
    for item in items:
        if isinstance(item, pytest.Function) and (marker := item.get_closest_marker("sampled")) is not None:
            cases[item.nodeid.partition("[")[0], marker.args[0]].append(item)
    left_out = set()
    for (_, number), of_test in cases.items():
        seen: set[tuple[str | int, ...]] = set()
        kept = 0
        for item in sorted(of_test, key=lambda item: hashlib.sha256(item.nodeid.encode()).digest()):
            values = _values(item)
            if values <= seen:
                left_out.add(item)
                continue
            seen |= values
            kept += 1
            if kept > number:
                item.add_marker(pytest.mark.thorough)
    if left_out:
        config.hook.pytest_deselected(items=[*left_out])
        items[:] = [item for item in items if item not in left_out]


def _values(item: pytest.Function) -> set[tuple[str | int, ...]]:
    """What is given to a case by each of its parametrisations; what one gives together counts as one value."""
    given = item.callspec.params
    marks = [mark.args[0] for mark in item.iter_markers("parametrize")]
    together = [[name.strip() for name in (of.split(",") if isinstance(of, str) else of)] for of in marks]
    of_fixtures = [[name] for name in given if not any(name in names for names in together)]
    return {(*names, *(id(given[name]) for name in names)) for names in (*together, *of_fixtures)}
