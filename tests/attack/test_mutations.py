"""Every input file of every command, spoiled in every way: a refusal in words or a sound result, and nothing else."""

import os
from pathlib import Path

import pytest
from attack_case import attack, run, targets
from attack_table import TABLE, Attacked

CASES = int(os.environ.get("YUPANA_ATTACKS", "1"))
"""Of each command."""


@pytest.mark.sampled(2)
@pytest.mark.parametrize("attacked", TABLE, ids=[a.command.partition("{")[0] + a.inputs[0] for a in TABLE])
@pytest.mark.slow
def test_a_spoiled_input_is_refused_in_words(world: Path, tmp_path: Path, attacked: Attacked) -> None:
    failures = [found for n in range(CASES) if (found := attack(world, attacked, f"{attacked.command} {n}", tmp_path))]
    print(f"{CASES} cases, {len(failures)} failures")
    assert not failures, "\n".join(failures)


@pytest.mark.sampled(4)
@pytest.mark.parametrize("command", list(dict.fromkeys(attacked.command for attacked in TABLE)))
def test_the_input_is_sound_before_it_is_spoiled(world: Path, tmp_path: Path, command: str) -> None:
    assert all(targets(world, attacked) for attacked in TABLE if attacked.command == command)
    outcome = run([part.format(w=world, o=tmp_path) for part in command.split()])
    assert outcome.status == 0, outcome.told
