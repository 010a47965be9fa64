"""Random small worlds for the product `tables`: a description as a document, and records that fit it.

A world is drawn without regard to whether its tables have a sensitivity; those that the reader refuses are left out.
"""

import csv
import json
import random
import re
from collections.abc import Iterator
from copy import deepcopy
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from free_files import FREE, save_free

from yupana.files.document import read_value
from yupana.products.described.reading.description import parse

Record = dict[str, Any]

_FILES = ["persons", "my-file", "Select", "group", "a", "table", "units_2"]
_COLUMNS = [
    *("order", "group", "select", "Mixed", "record", "class", "combination", "area_0", "the_order", "the_parent"),
    *("rowid", "persons", "my-file", "a", "count", "x-1", "Table", "from", "number", "file"),
]
_CODES = [
    *(["1", "2", "3"], ["01", "02", "03", "10"], ["A b", "é", "it's", "c"], ["no", "yes"], ["x"], ["true", "false"]),
    *(["a", "A"], [" a", "b ", "c  d"], ["10,5", "7;7"], ["TRUE", "FALSE", "9"], ["NULL", "null", "nan"]),
]
_LABELS = ["low", "high", "A b", "é", "it's", "18 to 64", "0", "select"]


@dataclass(frozen=True)
class World:
    """A description and the records of its files, in order, with values as the description names them."""

    document: dict[str, Any]
    records: dict[str, list[Record]]


def make_world(seed: int) -> World:
    """Draw until there is a description that the reader accepts."""
    rng = random.Random(seed)  # noqa: S311 (no noise)
    while True:
        document = _document(rng)
        if told := accepted(document):
            return World(told, _records(rng, told))


def with_missing(world: World, seed: int) -> World | None:
    """The world with whole numbers that may be missing, and records, classes and conditions where they are."""
    rng = random.Random(seed)  # noqa: S311 (no noise)
    document, records = deepcopy(world.document), deepcopy(world.records)
    for file, of in document["files"].items():
        for name, column in of["columns"].items():
            if "whole" not in column or rng.random() < 0.3:
                continue
            missing = column["missing"] = rng.choice(["unknown", "-", "999", "it's", "NULL", "5 or more"])
            for record in records[file]:
                if rng.random() < 0.3:
                    record[name] = missing
            conditions = [group["where"] for group in document["groups"].values()]
            for table in document["tables"].values():
                conditions += [table.get("where", {}), *table.get("cells", {}).values()]
            recodes = [of["classes"] for of in document["recodes"].values() if of["column"] == f"{file}.{name}"]
            places = [(where, f"{file}.{name}") for where in conditions if f"{file}.{name}" in where]
            places += [(classes, label) for classes in recodes for label in classes]
            for told, key in places:
                if rng.random() < 0.5:
                    told[key] = [*(told[key] if isinstance(told[key], list) else [told[key]]), missing]
    found = accepted(document)
    return World(found, records) if found else None


def with_others(world: World, seed: int) -> World | None:
    """The world with classes of what no column allows, and records, classes and conditions where it is."""
    rng = random.Random(seed)  # noqa: S311 (no noise)
    document, records = deepcopy(world.document), deepcopy(world.records)
    for file, of in document["files"].items():
        for name, column in of["columns"].items():
            if rng.random() < 0.3:
                continue
            words = [word for word in ("other", "é else", "it's", "77777") if word not in column.get("codes", [])]
            others = column["others"] = rng.choice([word for word in words if word != column.get("missing")])
            for record in records[file]:
                if rng.random() < 0.3:
                    record[name] = others
            recodes = [of["classes"] for of in document["recodes"].values() if of["column"] == f"{file}.{name}"]
            for told, label in [(classes, label) for classes in recodes for label in classes]:
                if rng.random() < 0.3:
                    told[label] = [*(told[label] if isinstance(told[label], list) else [told[label]]), others]
            for area in document["areas"].values():
                if area.get("column") == f"{file}.{name}" and "of" in area and rng.random() < 0.5:
                    area["of"][others] = "North"
    found = accepted(document)
    return World(found, records) if found else None


def accepted(document: dict[str, Any]) -> dict[str, Any] | None:
    """The document without the tables that have no sensitivity."""
    while document["tables"]:
        faults: list[str] = []
        if parse(read_value(json.dumps(document), faults), Path(), faults) is not None:
            return document
        wrong = {match[1] for fault in faults if (match := re.match(r"tables\.([^.:]+)", fault))}
        if not wrong:
            if faults == ["tables: every budget is 0, so nothing would be measured"]:
                return None
            raise AssertionError(faults)
        document = {**document, "tables": {k: v for k, v in document["tables"].items() if k not in wrong}}
    return None


def _document(rng: random.Random) -> dict[str, Any]:
    files = _files(rng)
    unit = rng.choice([*files])
    for name in _chain(files, unit)[1:]:
        for column in files[name]["columns"].values():
            if rng.random() < 0.6:
                column["fixed"] = True
    shuffled = dict(rng.sample(list(files.items()), len(files)))
    document: dict[str, Any] = {"name": "world", "unit": unit, "files": shuffled}
    if rng.random() < 0.5:
        document["truncation_key"] = rng.choice(["k", "it's", "é|", ""])
    if rng.random() < 0.5:
        document |= {"privacy_defn": "puredp", "neighbours": rng.choice(["replace", "add-remove"])}
    document["recodes"] = {f"R{i}": _recode(rng, files) for i in range(rng.randint(0, 3))}
    document["areas"] = _areas(rng, files)
    document["groups"] = {
        code: {"where": _condition(rng, document, [*files], 1)}
        for code in rng.sample(["H", "N", "A b", "é", "01"], rng.randint(0, 3))
    }
    document["levels"] = {f"L{number}": _level(rng, document) for number in range(rng.randint(0, 2))}
    document["tables"] = {f"T{number}": _table(rng, document, number) for number in range(5)}
    return document


def _level(rng: random.Random, document: dict[str, Any]) -> dict[str, Any]:
    groups = rng.sample(["*", *document["groups"]], rng.randint(1, 1 + len(document["groups"])))
    level: dict[str, Any] = {"areas": rng.choice([*document["areas"]])}
    return {**level, "groups": groups} if groups != ["*"] or rng.random() < 0.5 else level


def _files(rng: random.Random) -> dict[str, Any]:
    names = rng.sample(_FILES, rng.randint(1, 4))
    files: dict[str, Any] = {}
    for place, name in enumerate(names):
        parent = rng.choice(names[:place]) if place and rng.random() < 0.85 else None
        columns = rng.sample(_COLUMNS, rng.randint(1, 3))
        files[name] = {"columns": {column: _column(rng) for column in columns}}
        if parent:
            one_column = "key" in files[name] and rng.random() < 0.3
            files[name]["parent"] = {"file": parent, "column": "id" if one_column else rng.choice(["link", "up"])}
        if rng.random() < 0.5:
            files[name]["key"] = rng.choice(["key", "id"])
    for of in files.values():
        if "parent" in of:
            files[of["parent"]["file"]].setdefault("key", "id")
    for of in files.values():
        if "parent" in of and "key" in of and rng.random() < 0.2:
            of["parent"]["column"] = of["key"]
    return files


def _chain(files: dict[str, Any], name: str) -> list[str]:
    found = [name]
    while "parent" in files[found[-1]]:
        found.append(files[found[-1]]["parent"]["file"])
    return found


def _column(rng: random.Random) -> dict[str, Any]:
    if rng.random() < 0.35:
        low = rng.choice([0, 0, 5])
        return {"whole": [low, low + rng.randint(0, 12)]}
    codes = rng.choice(_CODES)
    return {"codes": list(codes) if rng.random() < 0.7 else {code: f"label {code}" for code in codes}}


def domain(column: dict[str, Any]) -> list[Any]:
    """All values of a column: codes or whole numbers."""
    return list(column["codes"]) if "codes" in column else list(range(column["whole"][0], column["whole"][1] + 1))


def _values(rng: random.Random, column: dict[str, Any]) -> object:
    """One value of a column, or several, in one of the ways to write that."""
    values = domain(column)
    if "whole" in column and rng.random() < 0.6:
        low, high = sorted([rng.choice(values), rng.choice(values)])
        return rng.choice([f"{low}-{high}", [f"{low}-{high}", rng.choice(values)], str(low)])
    return rng.choice(values) if rng.random() < 0.3 else rng.sample(values, rng.randint(1, len(values)))


def _recode(rng: random.Random, files: dict[str, Any]) -> dict[str, Any]:
    name, column = _some_column(rng, files, [*files])
    values = domain(column)
    labels = rng.sample(_LABELS, rng.randint(1, 3))
    if rng.random() < 0.3:
        return _said({"column": name, "classes": {label: _values(rng, column) for label in labels}}, column)
    parts: dict[str, list[Any]] = {label: [] for label in labels}
    for value in values:
        if rng.random() < 0.9:
            parts[rng.choice(labels)].append(value)
    return _said(
        {"column": name, "classes": {label: of for label, of in parts.items() if of} or {"all": values}}, column
    )


def _said(recode: dict[str, Any], column: dict[str, Any]) -> dict[str, Any]:
    """A recode that says so if a value is in none of its classes."""
    held = {value for of in recode["classes"].values() for value in _held(of)}
    return recode if set(map(str, domain(column))) <= held else {**recode, "incomplete": True}


def _held(told: Any) -> Iterator[str]:  # noqa: ANN401 (codes, numbers, ranges, or lists of them)
    """The values of a class, as texts."""
    for one in told if isinstance(told, list) else [told]:
        low, stroke, high = str(one).partition("-")
        if stroke and low.isdecimal() and high.isdecimal():
            yield from map(str, range(int(low), int(high) + 1))
        else:
            yield str(one)


def _some_column(rng: random.Random, files: dict[str, Any], of: list[str]) -> tuple[str, dict[str, Any]]:
    file = rng.choice(of)
    name = rng.choice([*files[file]["columns"]])
    return f"{file}.{name}", files[file]["columns"][name]


def _condition(rng: random.Random, document: dict[str, Any], of: list[str], least: int = 0) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for _ in range(rng.randint(least, 2)):
        recodes = [n for n, r in document["recodes"].items() if r["column"].partition(".")[0] in of]
        if recodes and rng.random() < 0.4:
            name = rng.choice(recodes)
            classes = [*document["recodes"][name]["classes"]]
            found[name] = rng.choice([rng.choice(classes), rng.sample(classes, rng.randint(1, len(classes)))])
        else:
            name, column = _some_column(rng, document["files"], of)
            found[name] = _values(rng, column)
    return found


def _areas(rng: random.Random, files: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = {"nation": rng.choice([{}, {"code": "US"}, {"code": "A b"}])}
    coded = [
        (f"{file}.{name}", domain(column))
        for file, of in files.items()
        for name, column in of["columns"].items()
        if "codes" in column
    ]
    for number in range(rng.randint(0, 3) if coded else 0):
        name, codes = rng.choice(coded)
        area: dict[str, Any] = {"column": name}
        way = rng.random()
        if way < 0.25:
            area["first"] = 1
        elif way < 0.6:
            areas = ["North", "A b", "é", "01"]
            area["of"] = {code: rng.choice([rng.choice(areas), rng.sample(areas, rng.randint(0, 3))]) for code in codes}
            area["of"][codes[0]] = "North"
        found[f"kind{number}"] = area
    own = random.Random(str(files))  # noqa: S311 (no noise)
    if own.random() < 0.4:
        # Other draws are as without it.
        chain = _chain(files, own.choice([*files]))
        columns = [f"{file}.{name}" for file in chain for name in files[file]["columns"]]
        found["several"] = {"columns": own.sample(columns, min(len(columns), own.randint(1, 3)))}
    return dict(rng.sample(list(found.items()), len(found)))


def _table(rng: random.Random, document: dict[str, Any], number: int) -> dict[str, Any]:
    files = document["files"]
    unit = document["unit"]
    counts = rng.choice([name for name in files if set(_chain(files, name)) & set(_chain(files, unit))])
    chain = _chain(files, counts)
    table: dict[str, Any] = {"counts": counts}
    if rng.random() < 0.5:
        table["where"] = _condition(rng, document, chain)
    if len(chain) > 1 and rng.random() < 0.7:
        table["limit"] = {"per": rng.choice(chain[1:]), "most": rng.choice([1, 1, 2, 3, 5])}
    way = rng.random()
    if way < 0.45:
        recodes = [n for n, r in document["recodes"].items() if r["column"].partition(".")[0] in chain]
        columns = [f"{file}.{name}" for file in chain for name in files[file]["columns"]]
        by = rng.sample([*recodes, *columns], rng.randint(1, min(2, len(recodes) + len(columns))))
        table |= {"by": by, "overlapping": True}
        if rng.random() < 0.5:
            table["margins"] = {f"M{number}": rng.sample(by, rng.randint(0, len(by))), f"N{number}": []}
    elif way < 0.9:
        labels = rng.sample(_LABELS, rng.randint(1, 4))
        table |= {"cells": {label: _condition(rng, document, chain) for label in labels}, "overlapping": True}
        if rng.random() < 0.5:
            parts = {label: rng.sample(labels, rng.randint(1, len(labels))) for label in ("all", "é")}
            table["sums"] = {f"S{number}": parts}
    levels = [*document["areas"], *document["levels"]]
    table["budget"] = {
        level: rng.choice(["1/10", 1, "0"]) for level in rng.sample(levels, rng.randint(1, min(3, len(levels))))
    }
    return table


def _records(rng: random.Random, document: dict[str, Any]) -> dict[str, list[Record]]:
    files = document["files"]
    found: dict[str, list[Record]] = {}
    texts = rng.random() < 0.3
    for name in sorted(files, key=lambda name: len(_chain(files, name))):
        of = files[name]
        parent = of.get("parent")
        above = found[parent["file"]] if parent else []
        number = rng.choice([0, 1, 10, 60]) if not found else rng.randint(0, 120)
        rows: list[Record] = []
        numbers = rng.sample(range(1, 1000), number)
        for i in range(number):
            row: Record = {}
            if parent:
                # Few parents have many children, so that limits matter.
                links = [record[files[parent["file"]]["key"]] for record in above[: rng.choice([3, 30, 1000])]]
                if not links:
                    break
                row[parent["column"]] = rng.choice(links)
            if "key" in of and of["key"] not in row:
                row[of["key"]] = f"{numbers[i] // 7}|{numbers[i] % 7} é" if texts else numbers[i]
            row |= {column: rng.choice(domain(told)) for column, told in of["columns"].items()}
            rows.append(row)
        if "key" in of:
            rows = list({row[of["key"]]: row for row in rows}.values())
        found[name] = rows
    return found


def save(world: World, folder: Path, seed: int = 0, form: str = "csv") -> tuple[Path, Path]:
    """Write a description, and a folder of records as CSV or Parquet; what does not matter differs by chance."""
    rng = random.Random(seed)  # noqa: S311 (no noise)
    data = folder / "data"
    data.mkdir(parents=True)
    (data / "SYNTHETIC").write_text("invented by a test\n", encoding="utf-8")
    told = world.document
    for name, of in world.document["files"].items():
        keys = [*dict.fromkeys([of.get("key"), of.get("parent", {}).get("column")])]
        columns = [*filter(None, keys), *of["columns"], "another column"]
        rng.shuffle(columns)
        rows = _without(rng, of, [{**row, "another column": "9"} for row in world.records[name]])
        if form in FREE:
            told = deepcopy(told)
            told["files"][name] |= save_free(rng, data, name, of, columns, rows, form)
        elif form == "csv":
            _write_csv(data / f"{name}.csv", rng, columns, rows)
        else:
            table = pa.table(
                {column: _array(rng, of["columns"].get(column), [row[column] for row in rows]) for column in columns}
            )
            pq.write_table(table, data / f"{name}.parquet")
    path = folder / "description.json"
    path.write_text(json.dumps(_with_lists(told, folder, rng)), encoding="utf-8")
    return path, data


def _without(rng: random.Random, of: dict[str, Any], rows: list[Record]) -> list[Record]:
    """Rows where some that have no value say nothing in place of the word for it."""
    missing = {name: column["missing"] for name, column in of["columns"].items() if "missing" in column}
    return [
        {name: "" if value == missing.get(name) and rng.random() < 0.5 else value for name, value in row.items()}
        for row in rows
    ]


def _write_csv(path: Path, rng: random.Random, columns: list[str], rows: list[Record]) -> None:
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, delimiter=rng.choice(",|"), lineterminator="\n")
        writer.writerow([column.upper() if rng.random() < 0.2 else column for column in columns])
        writer.writerows([[row[column] for column in columns] for row in rows])


def _array(rng: random.Random, column: dict[str, Any] | None, values: list[Any]) -> pa.Array:
    """Whole numbers, and codes that look like them, as an integer type or as texts."""
    allowed = domain(column) if column else values
    if column and "missing" in column:
        if column["missing"].isdecimal() or not set(values) & {column["missing"]}:
            kind = rng.choice([pa.int16(), pa.int32(), pa.uint64(), pa.string()])
            return pa.array([None if v == "" else str(v) if kind == pa.string() else int(v) for v in values], kind)
        return pa.array([str(v) for v in values], pa.string())
    if all(isinstance(value, int) or (value.isdecimal() and str(int(value)) == value) for value in allowed):
        kind = rng.choice([pa.int16(), pa.int64(), pa.uint64(), pa.string()])
        return pa.array([str(v) if kind == pa.string() else int(v) for v in values], kind)
    return pa.array(values, pa.string())


def _with_lists(document: dict[str, Any], folder: Path, rng: random.Random) -> dict[str, Any]:
    """The document with some lists of codes and areas in files."""
    told = deepcopy(document)
    for name, of in told["files"].items():
        for column, given in of["columns"].items():
            codes = given.get("codes", [])
            if codes and rng.random() < 0.3 and all(code == code.strip() and "," not in code for code in codes):
                path = folder / f"{name}-{column}.csv"
                path.write_text("name,code\n" + "".join(f"x {code},{code}\n" for code in codes), encoding="utf-8")
                given["codes"] = {"file": path.name, "code": "code", **rng.choice([{}, {"label": "name"}])}
    for name, of in told["areas"].items():
        pairs = of.get("of")
        if pairs and rng.random() < 0.3 and all(code == code.strip() and "," not in code for code in pairs):
            path = folder / f"of-{name}.csv"
            lines = [
                f"{code},{area}\n"
                for code, areas in pairs.items()
                for area in ((areas if isinstance(areas, list) else [areas]) or [""])
            ]
            path.write_text("code,area\n" + "".join(lines), encoding="utf-8")
            of["of"] = {"file": path.name, "code": "code", "area": "area"}
    return told
