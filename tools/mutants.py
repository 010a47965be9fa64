"""Mutate the guarantee and the plan, run their tests on every mutant or a sample, and print how many are caught.

`--sample 500` tests so many, drawn with a fixed seed; `--again` prints the last run.

Mutants that change nothing a caller can see are listed, each with its reason, in unseen_mutants.md; any other mutant
that survives is printed with its change.
"""

import argparse
import random
import re
import subprocess
import sys
from collections import Counter
from contextlib import chdir
from pathlib import Path
from typing import NamedTuple

from mutmut.mutation.diff_apply import get_diff_for_mutant

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "tools" / "unseen_mutants.md"
BAR = 0.95
CAUGHT = {"killed", "timeout", "suspicious", "segfault", "caught by type check"}


class Change(NamedTuple):
    """What a mutant does: its function, and the line before and after, without white space around."""

    function: str
    before: str
    after: str


MUTMUT = Path(sys.executable).parent / "mutmut"


def verdicts() -> dict[str, str]:
    """Read the verdict on every mutant that there is, by its name."""
    asked = [str(MUTMUT), "results", "--all", "true"]
    told = subprocess.run(asked, cwd=ROOT, check=True, capture_output=True, text=True).stdout
    return dict(line.strip().rsplit(": ", 1) for line in told.splitlines() if ": " in line)


def run(*mutants: str) -> None:
    """Make all mutants, and run the tests on some of them, or on all."""
    subprocess.run([str(MUTMUT), "run", *mutants], cwd=ROOT, check=False)


def module_of(mutant: str) -> str:
    """Name the module of a mutant."""
    return mutant.split(".x", 1)[0]


def change_of(mutant: str) -> Change:
    """Show what a mutant changes."""
    function = re.sub(r"__mutmut_\d+$", "", mutant.split(".x", 1)[1]).replace("ǁ", ".").strip("._")
    path = Path("src", *module_of(mutant).split(".")).with_suffix(".py")
    shown = [line for line in get_diff_for_mutant(mutant, path=path).splitlines() if line[:3] not in {"---", "+++"}]
    before = " ".join(line[1:].strip() for line in shown if line.startswith("-"))
    after = " ".join(line[1:].strip() for line in shown if line.startswith("+"))
    return Change(f"{module_of(mutant).removeprefix('yupana.')}.{function}", before, after)


def explained() -> set[Change]:
    """Read the mutants that the page says cannot be seen: rows of function, before, after, reason."""
    rows = (re.findall(r"`` (.*?) ``", line) for line in PAGE.read_text(encoding="utf-8").splitlines())
    return {Change(*row) for row in rows if len(row) == len(Change._fields)}


def main() -> int:
    """Print a table by module and the mutants that survive unexplained; 1 if too many do."""
    asked = argparse.ArgumentParser(description=__doc__)
    asked.add_argument("--again", action="store_true")
    asked.add_argument("--sample", type=int)
    options = asked.parse_args()
    if not options.again:
        # One module has all mutants made, so that there are names to draw from.
        run("yupana.privacy.exact.*") if options.sample else run()
    found = verdicts()
    if options.sample:
        names = random.Random(1).sample(sorted(found), options.sample)  # noqa: S311 (no noise)
        run(*names)
        found = {name: verdict for name, verdict in verdicts().items() if name in names}
    known = explained()
    with chdir(ROOT):
        survivors = {mutant: change_of(mutant) for mutant, verdict in found.items() if verdict not in CAUGHT}
    equivalent = {mutant for mutant, change in survivors.items() if change in known}
    made = Counter(map(module_of, found))
    caught = Counter(module_of(mutant) for mutant, verdict in found.items() if verdict in CAUGHT)
    unseen = Counter(map(module_of, equivalent))
    print("\n| module | mutants | caught | cannot be seen | score |\n|---|---|---|---|---|")
    for module in sorted(made):
        score = caught[module] / max(1, made[module] - unseen[module])
        print(f"| {module} | {made[module]} | {caught[module]} | {unseen[module]} | {score:.1%} |")
    score = caught.total() / max(1, made.total() - unseen.total())
    print(f"| all | {made.total()} | {caught.total()} | {unseen.total()} | {score:.1%} |\n")
    for mutant, change in survivors.items():
        if mutant not in equivalent:
            print(f"{mutant}\n| `` {change.function} `` | `` {change.before} `` | `` {change.after} `` | |")
    for change in sorted(known - set(survivors.values()) if not options.sample else ()):
        print(f"no longer a survivor: {change}")
    return int(score <= BAR)


if __name__ == "__main__":
    sys.exit(main())
