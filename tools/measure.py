"""The size of the package: `python tools/measure.py`. It ends with status 1 where a measure is above its limit.

A limit is what was reached, and is lowered with each step towards the aim that is shown beside it.
"""

import ast
import sys
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import Final

SOURCE: Final = Path(__file__).parent.parent / "src"
_RUN: Final = 6
"""So many equal lines make a pair of places."""
_COMMON: Final = 8
"""What stands in more places is a common form."""

_Function = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True, slots=True)
class Measure:
    """A measure with its limit, the aim, and what makes it as large as it is."""

    name: str
    found: int
    limit: int
    aim: int
    at: str = ""


def measures(source: Path) -> list[Measure]:
    """All measures of the Python files below a folder."""
    texts = {path: path.read_text(encoding="utf-8") for path in sorted(source.rglob("*.py"))}
    trees = {path: ast.parse(text) for path, text in texts.items()}
    functions = [(path, node) for path, tree in trees.items() for node in ast.walk(tree) if isinstance(node, _Function)]
    longest = max(functions, key=lambda one: _length(one[1]))
    widest = max(functions, key=lambda one: len(_parameters(one[1])))
    pairs = _pairs({path: list(_lines(text, trees[path])) for path, text in texts.items()})
    return [
        Measure("lines", sum(text.count("\n") for text in texts.values()), 90_316, 80_000),
        Measure(
            "lines of code", sum(len(list(_lines(text, trees[path]))) for path, text in texts.items()), 53_998, 46_000
        ),
        Measure("files", len(texts), 375, 400),
        Measure("longest function", _length(longest[1]), 79, 80, _place(source, *longest)),
        Measure("most parameters", len(_parameters(widest[1])), 10, 10, _place(source, *widest)),
        Measure("pairs of six equal lines", len(pairs), 1, 10, ", ".join(sorted(pairs)[:3])),
    ]


def _place(source: Path, path: Path, function: _Function) -> str:
    return f"{path.relative_to(source)}:{function.lineno} {function.name}"


def _length(function: _Function) -> int:
    return (function.end_lineno or 0) - function.lineno + 1


def _parameters(function: _Function) -> list[str]:
    """The parameters, but for the object or class itself."""
    given = function.args
    names = [one.arg for one in (*given.posonlyargs, *given.args, *given.kwonlyargs)]
    names += [one.arg for one in (given.vararg, given.kwarg) if one is not None]
    return [name for place, name in enumerate(names) if place or name not in {"self", "cls"}]


def _lines(text: str, tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Numbers and words of the lines of code: no imports, docstrings, comments and blank lines."""
    passed: set[int] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import | ast.ImportFrom):
            passed.update(range(node.lineno, (node.end_lineno or 0) + 1))
        if isinstance(node, ast.Module | ast.ClassDef | _Function) and ast.get_docstring(node, clean=False) is not None:
            passed.update(range(node.body[0].lineno, (node.body[0].end_lineno or 0) + 1))
    for number, line in enumerate(text.splitlines(), 1):
        words = " ".join(line.split())
        if words and not words.startswith("#") and number not in passed:
            yield number, words


def _pairs(files: dict[Path, list[tuple[int, str]]]) -> dict[str, int]:
    """Pairs of places that share a run of equal lines, lone punctuation aside, each run once."""
    places: dict[tuple[str, ...], list[tuple[Path, int]]] = defaultdict(list)
    for path, lines in files.items():
        words = [(number, text) for number, text in lines if any(map(str.isalnum, text))]
        for start in range(len(words) - _RUN + 1):
            run = words[start : start + _RUN]
            places[tuple(text for _, text in run)].append((path, run[0][0]))
    found: dict[str, int] = {}
    last: dict[tuple[Path, Path], tuple[int, int]] = {}
    for at in places.values():
        if not 1 < len(at) <= _COMMON:
            continue
        for (one, here), (other, there) in combinations(at, 2):
            before = last.get((one, other), (-_COMMON, -_COMMON))
            last[one, other] = (here, there)
            if here - before[0] >= _COMMON or there - before[1] >= _COMMON or here < before[0]:
                found[f"{one.name}:{here} and {other.name}:{there}"] = here
    return found


def main() -> int:
    """Print the measures; 1 if one is above its limit."""
    found = measures(SOURCE)
    print(f"{'':26}{'found':>8}{'limit':>8}{'aim':>8}")
    for one in found:
        print(f"{one.name:26}{one.found:8,}{one.limit:8,}{one.aim:8,}  {one.at}")
    return int(any(one.found > one.limit for one in found))


if __name__ == "__main__":
    sys.exit(main())
