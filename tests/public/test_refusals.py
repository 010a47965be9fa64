"""The list of what a run refuses names tests that exist."""

import re
from pathlib import Path

TESTS = Path(__file__).parents[1]


def test_every_guard_names_tests_that_exist() -> None:
    lines = (TESTS.parent / "docs" / "refusals.md").read_text(encoding="utf-8").splitlines()
    guards = [line for line in lines if line.startswith("| ") and "`" in line.rpartition(" | ")[2]]
    assert len(guards) > 50
    for guard in guards:
        file = ""
        for named, test in re.findall(r"`((?:\w+/)+\w+\.py)?(?:::(\w+))?`", guard.split(" | ", 1)[1]):
            file = named or file
            assert not test or f"def {test}(" in (TESTS / file).read_text(encoding="utf-8"), (guard, test)
            assert (TESTS / file).is_file(), guard
