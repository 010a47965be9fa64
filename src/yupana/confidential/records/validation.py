"""What validation finds: rules by name, how often each is broken, and where."""

import re
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from heapq import merge
from itertools import groupby, islice
from typing import TypeVar

from yupana.errors import InputError

MOST_LINES = 20
"""How many places of one rule are listed."""

_IN_ROWS = (".parquet", ".sav", ".zsav", ".dta", ".sas7bdat", ".xpt", ".csdb")
"""How names of files end that have rows, where others have lines."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One rule broken in one file.

    Attributes
    ----------
    rule : str
        Its name, as in the document of the product.
    file : str
        The file's name; that of a part of several begins with its folder.
    text : str
        What is wrong and what to do. It never holds a value of a record.
    count : int or None
        How many records break the rule; None where the whole file does.
    lines : tuple of int
        The first of them: lines of a text file (a header is line 1), rows of a Parquet file (from 1).
    dropped : bool
        Whether the configuration's policy drops these units instead of failing.
    remark : bool
        Whether this breaks no rule, but somebody should look at it.
    """

    rule: str
    file: str
    text: str
    count: int | None = None
    lines: tuple[int, ...] = ()
    dropped: bool = False
    remark: bool = False

    def __str__(self) -> str:
        """One line for people."""
        place = "row" if self.file.lower().endswith(_IN_ROWS) or ".csdb (" in self.file.lower() else "line"
        parts = [f"{self.file}: {self.rule}: {self.text}"]
        if self.count is not None:
            parts.append(f"{self.count:,} record{'s' * (self.count != 1)}")
        if self.lines:
            more = ", ..." if self.count is not None and self.count > len(self.lines) else ""
            parts.append(f"{place}{'s' * (len(self.lines) > 1)} {', '.join(map(str, self.lines))}{more}")
        parts[-1] += " (dropped and counted, as configured)" if self.dropped else ""
        return "; ".join(parts) + (" (a remark; it forbids nothing)" if self.remark else "")


@dataclass(frozen=True, slots=True)
class BrokenRecords:
    """Which records break one rule, as far as a message can tell; of several shards they add up.

    Sums are associative and commutative. No value of a record is in it.

    Attributes
    ----------
    counts : mapping of int to int
        How many there are by the part of their file, parts ascending.
    first : mapping of int to tuple of int
        The smallest record numbers (`Source`), `MOST_LINES` at most, of each of as many parts, the first that have any.
    """

    counts: Mapping[int, int]
    first: Mapping[int, tuple[int, ...]]

    def __add__(self, other: "BrokenRecords") -> "BrokenRecords":
        counts = Counter(self.counts) + Counter(other.counts)
        parts = sorted(counts)
        both = ((part, (one.first.get(part, ()) for one in (self, other))) for part in parts[:MOST_LINES])
        first = {part: tuple(islice(merge(*of), MOST_LINES)) for part, of in both}
        return BrokenRecords({part: counts[part] for part in parts}, first)

    @property
    def count(self) -> int:
        """How many there are."""
        return sum(self.counts.values())


K = TypeVar("K", bound=Hashable)


def add_broken(one: Mapping[K, BrokenRecords], other: Mapping[K, BrokenRecords]) -> dict[K, BrokenRecords]:
    """Records that break some rules in one shard, and in another: rule by rule."""
    both = dict(one)
    for rule, records in other.items():
        both[rule] = both[rule] + records if rule in both else records
    return both


def more_files(rest: Sequence[Finding]) -> list[Finding]:
    """One finding in place of those about the files of one rule for which there is no room, or none if there are none.

    Returns
    -------
    list of Finding
    """
    if not rest:
        return []
    name = f"{len(rest):,} more files from {rest[0].file} on"
    return [replace(rest[0], file=name, count=sum(finding.count or 0 for finding in rest), lines=())]


def failing(findings: Iterable[Finding]) -> list[Finding]:
    """Those that forbid a run."""
    return [finding for finding in findings if not (finding.dropped or finding.remark)]


def merge_findings(parts: Sequence[Sequence[Finding]]) -> list[Finding]:
    """What was found in the shards of records, rule by rule and file by file, as it is of all of them.

    A file is empty if no shard has records of it.
    """
    together: dict[Finding, list[Finding]] = {}
    order: dict[Finding, int] = {}
    for finding in (finding for part in parts for finding in part):
        together.setdefault(replace(finding, count=None, lines=()), []).append(finding)
        order.setdefault(replace(finding, count=None, lines=(), file=""), len(order))
    by_rule = sorted(together.items(), key=lambda of: (order[replace(of[0], file="")], of[0].file))
    merged = [
        replace(
            rule,
            count=sum(one.count or 0 for one in found) if found[0].count is not None else None,
            lines=tuple(islice(merge(*(one.lines for one in found)), MOST_LINES)),
        )
        for rule, found in by_rule
        if rule.rule != "not_empty" or len(found) == len(parts)
    ]
    of_rules = (list(of) for _, of in groupby(merged, key=_rule_of))
    return [
        finding
        for of in of_rules
        for finding in (of if of[0].count is None else (*of[:MOST_LINES], *more_files(of[MOST_LINES:])))
    ]


def _rule_of(finding: Finding) -> Finding:
    """A rule of a record file, whichever of its parts breaks it, which are files of a folder or of states."""
    return replace(finding, file=re.sub("[0-9]", "", finding.file.split("/")[0]), count=None, lines=())


class BrokenRulesError(InputError):
    """Records break rules.

    Attributes
    ----------
    findings : tuple of Finding
    """

    def __init__(self, findings: Iterable[Finding]) -> None:
        """Of findings, each of which forbids a run."""
        self.findings = tuple(findings)
        head = "the records break these rules (confidential: it counts records):"
        super().__init__("\n".join([head, *(f"  {finding}" for finding in self.findings)]))

    def reworded(self, say: Callable[[str], str]) -> InputError:
        """The same message in other words, which are no longer those of the findings."""
        return InputError(say(str(self)))

    def __reduce__(self) -> tuple[type["BrokenRulesError"], tuple[tuple[Finding, ...]]]:
        return BrokenRulesError, (self.findings,)


def require_none(findings: Iterable[Finding]) -> None:
    """Refuse records that break rules.

    Raises
    ------
    BrokenRulesError
        Naming every rule broken, how often and where.
    """
    if broken := failing(findings):
        raise BrokenRulesError(broken)
