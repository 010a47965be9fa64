"""Small forests of records for random descriptions, and neighbours of them, as the files that the program opens.

Keys and codes are hostile: bars, quotes, leading zeros, texts that look like numbers or like no value. Records are
often alike, as those move together.
"""

import csv
from collections.abc import Iterator
from copy import deepcopy
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

from described_worlds import accepted, domain, make_world

_KEYS = [
    *("1", "01", "1|1", "|", 'a"b', '"', "a", "A", " a", "a ", "é", "x,y", "NULL", "nan", "0x1", "1e3", "-1", "+1"),
    *("1.0", "true", "it's", "' OR ''='", "\\", "0", "00", "9223372036854775808", "1|2", "2|1", "None", "\t", "ı"),
]
_MISSING = ["none", "NULL", "0", "00", "it's"]


@dataclass
class Node:
    """A record with those that belong to it; a column of ids has nodes too, which stand in no file."""

    file: str
    key: str
    values: dict[str, str]
    below: list["Node"] = field(default_factory=list)


class Forests:
    """What can be drawn for one description: forests, and neighbours of a forest."""

    def __init__(self, seed: int) -> None:
        self.rng = Random(seed)  # noqa: S311 (no noise)
        self.document = self._described(seed)
        self.files: dict[str, Any] = {name: deepcopy(of) for name, of in self.document["files"].items()}
        unit = self.document["unit"]
        self.unit: str = unit if isinstance(unit, str) else unit["column"]
        if not isinstance(unit, str):
            self.files[unit["file"]]["parent"] = {"file": self.unit, "column": self.unit}
            self.files[self.unit] = {"columns": {}, "key": self.unit}
        self._number = 0

    def _described(self, seed: int) -> dict[str, Any]:
        """A world's description, where there may be codes for no value, and ids in place of a file of units."""
        while True:
            document = make_world(seed).document
            for file, of in document["files"].items():
                for name, column in of["columns"].items():
                    if self.rng.random() < 0.4:
                        self._let_miss(document, f"{file}.{name}", column)
            if self.rng.random() < 0.25:
                self._protect_ids(document)
            if told := accepted(document):
                return told
            seed += 1_000_000

    def _let_miss(self, document: dict[str, Any], name: str, column: dict[str, Any]) -> None:
        known = [*map(str, domain(column)), *(["0", "00"] if "whole" in column else [])]
        missing = self.rng.choice([code for code in _MISSING if code not in known])
        column["missing"] = missing
        for kind in document["areas"].values():
            if kind.get("column") == name and "of" in kind:
                kind["of"][missing] = self.rng.choice([[], ["01"], ["01", "North"]])

    def _protect_ids(self, document: dict[str, Any]) -> None:
        tops = [name for name, of in document["files"].items() if "parent" not in of]
        document["unit"] = {"file": self.rng.choice(tops), "column": "pid"}
        for of in document["files"].values():
            for column in of["columns"].values():
                column.pop("fixed", None)
        for table in document["tables"].values():
            table["limit"] = {"per": "pid", "most": self.rng.choice([1, 1, 2, 3])}

    def forest(self) -> list[Node]:
        """A few records at the top, with all that is below them."""
        return [self._grown(file, 1) for file in self._children("") for _ in range(self.rng.randint(1, 3))]

    def less(self, forest: list[Node]) -> list[Node] | None:
        """A forest with one unit less, those above it changed at random; None if there is none."""
        made = deepcopy(forest)
        paths = [path for path in _paths(made) if path[-1].file == self.unit]
        if not paths:
            return None
        *above, unit = self.rng.choice(paths)
        _remove(made, above, unit)
        for place in range(len(above) - 1, -1, -1):
            if not above[place].below and self.rng.random() < 0.4:
                _remove(made, above[:place], above[place])
            else:
                self._change(above[place])
        return made

    def more(self, forest: list[Node]) -> list[Node] | None:
        """A forest with one unit more, below records that are there or new; None where only one may be and is."""
        made = deepcopy(forest)
        below, file, parent = made, self._chain(self.unit)[-1], ""
        while True:
            there = [node for node in below if node.file == file]
            if there and self._links_by_key(file):
                if file == self.unit:
                    return None
            elif file == self.unit or not there or self.rng.random() < 0.15:
                below.append(self._grown(file, 1, self.unit, parent))
                return made
            node = self.rng.choice(there)
            self._change(node)
            below, file, parent = node.below, self._beneath(file), node.key

    def write(self, forest: list[Node], folder: Path) -> None:
        """The forest as CSV, its rows in a random order."""
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "SYNTHETIC").write_text("invented by a test\n", encoding="utf-8")
        rows: dict[str, list[dict[str, str]]] = {name: [] for name in self.document["files"]}
        for path in _paths(forest):
            node, of = path[-1], self.files[path[-1].file]
            if node.file in rows:
                row = node.values | ({of["key"]: node.key} if "key" in of else {})
                rows[node.file].append(row | ({of["parent"]["column"]: path[-2].key} if "parent" in of else {}))
        for name, some in rows.items():
            of = self.files[name]
            names = [*filter(None, {of.get("key"): 0, of.get("parent", {}).get("column"): 0}), *of["columns"]]
            self.rng.shuffle(some)
            with (folder / f"{name}.csv").open("w", encoding="utf-8", newline="") as file:
                writer = csv.writer(file, delimiter=self.rng.choice(",|"), lineterminator="\n")
                writer.writerow(names)
                writer.writerows([[row[column] for column in names] for row in some])

    def _children(self, file: str) -> list[str]:
        return [name for name, of in self.files.items() if of.get("parent", {}).get("file", "") == file]

    def _chain(self, file: str) -> list[str]:
        found = [file]
        while "parent" in self.files[found[-1]]:
            found.append(self.files[found[-1]]["parent"]["file"])
        return found

    def _beneath(self, file: str) -> str:
        chain = self._chain(self.unit)
        return chain[chain.index(file) - 1]

    def _grown(self, file: str, least: int, only: str = "", parent: str = "") -> Node:
        """A record with what is below it; ``only``, one record of that file and no other below those above it."""
        values = {name: self._value(file, name) for name in self.files[file]["columns"]}
        node = Node(file, self._key(file, parent), values)
        above_only = bool(only) and file != only and file in self._chain(only)
        for child in [self._beneath(file)] if above_only else self._children(file):
            one = self._links_by_key(child) or above_only
            number = 1 if above_only else self.rng.choice([0, least, 2, 4])
            number = min(number, 1) if one else number
            grown = [self._grown(child, least, only if above_only else "", node.key) for _ in range(number)]
            for other in grown[1:]:
                if self.rng.random() < 0.6:
                    other.values = dict(grown[0].values)
            node.below += grown
        return node

    def _links_by_key(self, file: str) -> bool:
        """Whether the column that tells records apart is the one that says where they belong."""
        of = self.files[file]
        return "parent" in of and of.get("key") == of["parent"]["column"]

    def _key(self, file: str, parent: str) -> str:
        if self._links_by_key(file):
            return parent
        self._number += 1
        return self.rng.choice([f"{self._number}", f"{self._number}", ""]) or (
            self.rng.choice(_KEYS) + f"{self._number:03}" + self.rng.choice(["", "|", " ", '"'])
        )

    def _value(self, file: str, name: str) -> str:
        column = self.files[file]["columns"][name]
        value = self.rng.choice([*domain(column), *([column["missing"], ""] if "missing" in column else [])])
        return f"{value:02}" if isinstance(value, int) and self.rng.random() < 0.2 else str(value)

    def _change(self, node: Node) -> None:
        if self.rng.random() < 0.8:
            for name, column in self.files[node.file]["columns"].items():
                if not column.get("fixed"):
                    node.values[name] = self._value(node.file, name)


def _paths(forest: list[Node], above: tuple[Node, ...] = ()) -> Iterator[list[Node]]:
    for node in forest:
        yield [*above, node]
        yield from _paths(node.below, (*above, node))


def _remove(forest: list[Node], above: list[Node], node: Node) -> None:
    siblings = above[-1].below if above else forest
    siblings[:] = [other for other in siblings if other is not node]
