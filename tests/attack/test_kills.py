"""Commands that are killed, stopped, stopped twice, or refused by the system, at random moments of every stage."""

import os
import random
from pathlib import Path

import pytest
from attack_kill import STRUCK, Struck, Target, zygote

pytestmark = pytest.mark.thorough

CASES = int(os.environ.get("YUPANA_ATTACKS", "1"))
"""Of each command."""


@pytest.mark.parametrize("struck", STRUCK[::2], ids=[s.name for s in STRUCK[::2]])  # fuzz.py strikes all
def test_a_strike_leaves_the_old_the_new_or_nothing(world: Path, tmp_path: Path, struck: Struck) -> None:
    rng = random.Random(struck.command)  # noqa: S311 (an attack that can be repeated)
    with zygote(tmp_path) as own:
        target = Target(own, struck, world, tmp_path / struck.name)
        failures = [line for _ in range(CASES) for line in target.strike(rng)]
    print(f"{CASES} cases at {target.events} events, {len(failures)} lines of failure")
    assert not failures, "\n".join(failures)
