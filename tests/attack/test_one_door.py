"""Whatever a manifest says wrongly, each command that reads it refuses it, or answers as if it were not said."""

import os
from dataclasses import replace
from pathlib import Path

import pytest
from attack_lies import BORROWED, READERS, answer, borrowed, deceive, judge

READINGS = int(os.environ.get("YUPANA_ATTACKS", "3"))
"""Of each release, each of another lie by one of its readers."""


@pytest.mark.sampled(4)
@pytest.mark.parametrize("release", READERS)
@pytest.mark.slow
def test_a_lie_is_refused_or_without_effect(world: Path, tmp_path: Path, release: str) -> None:
    failures = [found for n in range(READINGS) if (found := deceive(world, release, f"lie {release} {n}", tmp_path))]
    print(f"{READINGS} readings, {len(failures)} failures")
    assert not failures, "\n".join(failures)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("release", BORROWED)
@pytest.mark.slow
def test_no_release_borrows_the_manifest_of_a_cheaper_run(world: Path, tmp_path: Path, release: str) -> None:
    path = world / release / "manifest.json"
    whole = path.read_bytes()
    truth = answer(world, release, BORROWED[release], tmp_path)
    assert truth.status == 0, truth.told
    path.write_bytes(borrowed(world, release))
    try:
        readers = ("check {r}", "report {r} {o}/page.html", "audit certificate {r} {o}/out")
        told = {reader: answer(world, release, reader, tmp_path) for reader in readers}
        wrong = judge(answer(world, release, BORROWED[release], tmp_path), truth, ("plan",))
    finally:
        path.write_bytes(whole)
    assert {reader: (one.status, [*one.files]) for reader, one in told.items()} == dict.fromkeys(readers, (2, []))
    assert wrong is None


@pytest.mark.slow
def test_a_reader_that_believes_is_found(world: Path, tmp_path: Path) -> None:
    """The judge itself: an answer that follows the manifest is told from one that does not."""
    told = answer(world, "tab", "check {r}", tmp_path)
    assert judge(told, told, ("plan",)) is None
    assert judge(told, replace(told, told="another"), ("plan",)) == "it believed it: what it says"
    assert judge(told, replace(told, files={"page.html": b""}), ("plan",)) == "it believed it: page.html"
    assert judge(replace(told, status=2, files={"x": b""}), told, ("plan",)) == "it refused and left ['x']"
    assert judge(replace(told, status=2), told, ("plan",)) is None
    assert "ended with 1" in str(judge(replace(told, status=1), told, ("versions",)))
    assert judge(told, replace(told, told="another"), ("versions",)) is None
