"""Attack without end: `make fuzz`. Failures are told as they are found, each with what repeats it; Ctrl-C ends it.

``python tests/attack/fuzz.py --case SEED`` repeats one: SEED is the first part of the line that told of it.
"""

import argparse
import contextlib
import itertools
import os
import random
import sys
import tempfile
import time
from pathlib import Path
from typing import Final

sys.path[:0] = [str(Path(__file__).parents[1] / folder) for folder in ("attack", "worlds", "oracles")]

from attack_case import attack  # noqa: E402
from attack_kill import STRUCK, Target, zygote  # noqa: E402
from attack_lies import READERS, deceive  # noqa: E402
from attack_table import TABLE  # noqa: E402
from attack_worlds import build  # noqa: E402

_KINDS: Final = (*(attacked.command for attacked in TABLE), *(f"lie {release}" for release in READERS))


def _case(place: Path, seed: str) -> str | None:
    """Try a case by its seed: what is attacked, and a number."""
    kind, _, _ = seed.rpartition(" ")
    if kind.startswith("lie "):
        return deceive(place / "world", kind.removeprefix("lie "), seed, place)
    (attacked,) = (a for a in TABLE if a.command == kind)
    return attack(place / "world", attacked, seed, place)


def main() -> int:
    """Attack, and tell."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cases", type=int, help="how many (default: no end)")
    parser.add_argument("--first", type=int, help="the number of the first case (default: by the clock)")
    parser.add_argument("--case", help="repeat one")
    options = parser.parse_args()
    failures = tried = 0
    with contextlib.ExitStack() as stack:
        place = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        (place / "scratch").mkdir()
        os.environ["TMPDIR"] = str(place / "scratch")
        (place / "world").mkdir()
        build(place / "world")
        if options.case is not None:
            print(_case(place, options.case) or "nothing is wrong")
            return 0
        struck = random.Random(options.first)  # noqa: S311 (an attack that can be repeated)
        own = stack.enter_context(zygote(place))
        marks = [Target(own, one, place / "world", place / str(number)) for number, one in enumerate(STRUCK)]
        first = int(time.time()) * 1000 if options.first is None else options.first
        numbers = itertools.count(first) if options.cases is None else range(first, first + options.cases)
        told = time.monotonic()
        try:
            for number in numbers:
                tried += 1
                if found := _case(place, f"{_KINDS[number % len(_KINDS)]} {number}"):
                    failures += 1
                    print(found, flush=True)
                if tried % 10 == 0:
                    mark = marks[tried // 10 % len(marks)]
                    if lines := mark.strike(struck):
                        failures += 1
                        print(f"{mark.struck.command}: ", *lines, sep="\n    ", flush=True)
                if time.monotonic() - told > 10:
                    told = time.monotonic()
                    print(f"{tried} cases and {tried // 10} strikes, {failures} failures", flush=True)
        except KeyboardInterrupt:
            pass
    print(f"{tried} cases and {tried // 10} strikes, {failures} failures")
    return int(failures > 0)


if __name__ == "__main__":
    sys.exit(main())
