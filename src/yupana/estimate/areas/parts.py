"""Which part of a release of several, such as persons and housing units, counts what a query asks for. Public."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from yupana.errors import ConfigError
from yupana.estimate.areas.queries import AreaQuestion, expanded, read_form
from yupana.estimate.intervals.counted import Counted
from yupana.products.gate import open_release
from yupana.release.release import ReleaseFolder
from yupana.release.status import refuse_confidential


def open_parts(folder: Path) -> tuple[ReleaseFolder, Mapping[str, ReleaseFolder]]:
    """Open a release, and its parts if it has some.

    Raises
    ------
    OutputError
        If it is none, or one of them is CONFIDENTIAL.
    """
    opened = open_release(folder, confidential=True)
    if not opened.parts:
        return open_release(folder), {}
    for part in opened.parts.values():
        refuse_confidential(part.manifest, str(part.folder))
    return opened, opened.parts


def questions_by_part(
    questions: Sequence[AreaQuestion], words: Mapping[str, Counted]
) -> list[tuple[str, AreaQuestion]]:
    """Put every question, tables taken apart, to the part that counts what it asks for.

    Parameters
    ----------
    questions : sequence of AreaQuestion
    words : mapping of str to Counted
        By part.

    Raises
    ------
    ConfigError
        If no part counts it, or several do.
    """
    part_of: dict[str, tuple[str, list[str]]] = {}
    found = []
    for question in questions:
        if question.query not in part_of:
            part_of[question.query] = _part_of(question, words)
        part, queries = part_of[question.query]
        found += [(part, replace(question, query=query)) for query in queries]
    return found


def _part_of(question: AreaQuestion, words: Mapping[str, Counted]) -> tuple[str, list[str]]:
    counts, faults = [], []
    for name, of_part in words.items():
        try:
            queries = expanded(question.query, of_part)
            for query in queries:
                read_form(query, of_part)
            counts.append((name, queries))
        except ConfigError as error:
            faults.append(f"of {name}: {error}")
    if len(counts) > 1:
        raise ConfigError(
            f"{question.where}query {question.query!r} is counted of {' and of '.join(name for name, _ in counts)}; "
            "ask for a variable of the tables, such as P0010001 or H0010001, or name the folder of one part"
        )
    if not counts:
        raise ConfigError("\n  ".join([f"{question.where}no part counts {question.query!r}:", *faults]))
    return counts[0]
