"""Measurements of a release that are opened once for all questions of a file of tests."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType

import pytest

from yupana.estimate.intervals.tree import TreeMeasurements, open_tree
from yupana.release.release import ReleaseFolder


@contextmanager
def opened_once(asking: ModuleType) -> Iterator[None]:
    """Let a module that opens measurements keep them."""
    found: dict[tuple[Path, Path], TreeMeasurements] = {}

    def once(release: ReleaseFolder, noisy: Path) -> TreeMeasurements:
        key = release.folder, noisy
        if key not in found:
            found[key] = open_tree(release, noisy)
        return found[key]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(asking, "open_tree", once)
        yield
