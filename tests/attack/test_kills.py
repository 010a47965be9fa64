"""Commands that are killed, stopped, stopped twice, or refused by the system, at random moments of every stage."""

import errno
import os
import random
import shutil
from pathlib import Path
from signal import SIGINT, SIGKILL, SIGTERM

import pytest
from attack_kill import STRUCK, Moment, Struck, strike, zygote

CASES = int(os.environ.get("HOLLERITH_ATTACKS", "3"))
"""Of each command."""

SIGNALS = ([SIGKILL], [SIGTERM], [SIGINT], [SIGTERM, SIGTERM], [SIGINT, SIGTERM], [])
ERRORS = (errno.ENOSPC, errno.EIO, errno.EROFS, errno.EMFILE, errno.EACCES)


def moment(rng: random.Random, events: int, seconds: float) -> Moment:
    signals = list(map(int, rng.choice(SIGNALS)))
    if signals and rng.random() < 0.3:
        return Moment(signals, after=rng.uniform(0, seconds))
    first = rng.randrange(1, events + 1)
    if rng.random() < 0.4:
        # Publishing is among the last steps, and the one that must be whole.
        first = rng.randrange(max(1, events - 8), events + 1)
    at = [first + 2 * n for n in range(max(1, len(signals)))]
    return Moment(signals, at, refusal=0 if signals else rng.choice(ERRORS))


@pytest.mark.parametrize("struck", STRUCK, ids=[s.command.partition(" {")[0] for s in STRUCK])
def test_a_strike_leaves_the_old_the_new_or_nothing(world: Path, tmp_path: Path, struck: Struck) -> None:
    rng = random.Random(struck.command)  # noqa: S311 (an attack that can be repeated)
    failures: list[str] = []
    with zygote(tmp_path) as own:
        arguments = [part.format(w=world, o=tmp_path / "o") for part in struck.command.split()]
        (tmp_path / "o").mkdir()
        clean = own.run(arguments, tmp_path / "o", Moment())
        assert clean["status"] == 0, clean["told"]
        shutil.move(tmp_path / "o" / "out", tmp_path / "old")
        for _ in range(CASES):
            old = tmp_path / "old" if rng.random() < 0.5 else None
            chosen = moment(rng, clean["events"], clean["seconds"])
            failures += strike(own, struck, chosen, world, tmp_path / "o", old=old)
    print(f"{CASES} cases at {clean['events']} events, {len(failures)} lines of failure")
    assert not failures, "\n".join(failures)
