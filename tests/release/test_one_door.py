"""Whatever a manifest says wrongly, each command that reads it refuses it, or answers as if it were not said."""

import json
import os
import random
from pathlib import Path

import pytest
from attack_worlds import build
from release_lies import READERS, SIBLINGS, Answer, answer, judge, lies

LIES = int(os.environ.get("YUPANA_ATTACKS", "6"))
"""Of each release, each of which all its readers read."""


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("world")
    build(folder)
    return folder


@pytest.fixture(autouse=True)
def _scratch(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "scratch").mkdir()
    monkeypatch.setenv("TMPDIR", str(tmp_path / "scratch"))


@pytest.mark.parametrize("release", READERS)
def test_a_lie_is_refused_or_without_effect(world: Path, tmp_path: Path, release: str) -> None:
    path = world / release / "manifest.json"
    whole = path.read_bytes()
    sibling = json.loads((world / SIBLINGS[release] / "manifest.json").read_bytes()) if release in SIBLINGS else None
    truth: dict[str, Answer] = {}
    failures = []
    made_up = random.Random(release)  # noqa: S311 (lies that can be repeated)
    try:
        for _, lie in zip(range(LIES), lies(json.loads(whole), sibling, made_up), strict=False):
            for reader in READERS[release]:
                if reader not in truth:
                    path.write_bytes(whole)
                    truth[reader] = answer(world, release, reader, tmp_path)
                    assert truth[reader].status == 0, truth[reader].told
                path.write_bytes(lie.manifest)
                if wrong := judge(answer(world, release, reader, tmp_path), truth[reader], lie.place):
                    failures.append(f"{'.'.join(map(str, lie.place))} {lie.way}: {reader}: {wrong}")
    finally:
        path.write_bytes(whole)
    assert not failures, "\n".join(failures)
