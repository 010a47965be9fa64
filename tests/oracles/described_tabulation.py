"""The tables of a description, counted record by record in plain Python from the document alone."""

from collections import Counter, defaultdict
from collections.abc import Iterator
from hashlib import sha256
from itertools import product
from typing import Any

Document = dict[str, Any]
Record = dict[str, Any]
Joined = dict[str, Record]
"""By file, a record and those above it."""


def published(document: Document, records: dict[str, list[Record]]) -> dict[str, list[dict[str, Any]]]:
    """Every published table: its rows in order, as columns that name them and COUNT."""
    document = {"recodes": {}, "groups": {}, "levels": {}, **document}
    found: dict[str, list[dict[str, Any]]] = {}
    for name, table in document["tables"].items():
        measured = [level for level, budget in table["budget"].items() if str(budget) != "0"]
        if not measured:
            continue
        columns, cells = _cells(document, table)
        kept = _limited(document, table, _universe(document, table, records))
        levels = [_level(document, level) for level in table["budget"]]
        has_groups = any(groups != ["*"] for _, groups in levels)
        own = []
        for kind, groups in (_level(document, level) for level in measured):
            counts = _count(document, kind, groups, [condition for _, condition in cells], kept)
            own += [
                ((kind, area, group), counts[area, group]) for area in _area_codes(document, kind) for group in groups
            ]
        order = [*document["areas"]]
        own.sort(key=lambda of: (order.index(of[0][0]), of[0][1], of[0][2]))
        for shown, its_columns, rows in [
            (name, columns, [(labels, [i]) for i, (labels, _) in enumerate(cells)]),
            *_sums(table, columns, [labels for labels, _ in cells]),
        ]:
            found[shown] = [
                {
                    "REGION_ID": area,
                    "REGION_TYPE": kind,
                    **({"ITERATION_CODE": group} if has_groups else {}),
                    **dict(zip(its_columns, labels, strict=True)),
                    "COUNT": sum(counts[part] for part in parts),
                }
                for (kind, area, group), counts in own
                for labels, parts in rows
            ]
    return found


def _joined(document: Document, records: dict[str, list[Record]], file: str) -> Iterator[Joined]:
    of = document["files"][file]
    if "parent" not in of:
        yield from ({file: record} for record in records[file])
        return
    parent, link = of["parent"]["file"], of["parent"]["column"]
    key = document["files"][parent]["key"]
    above = {str(joined[parent][key]): joined for joined in _joined(document, records, parent)}
    yield from ({**above[str(record[link])], file: record} for record in records[file])


def _universe(document: Document, table: Document, records: dict[str, list[Record]]) -> list[Joined]:
    where = table.get("where", {})
    return [joined for joined in _joined(document, records, table["counts"]) if _meets(document, where, joined)]


def _limited(document: Document, table: Document, universe: list[Joined]) -> list[Joined]:
    """Of each record above the most that count: those with the smallest hashes."""
    if "limit" not in table:
        return universe
    per, most = table["limit"]["per"], int(table["limit"]["most"])
    counts = document["files"][table["counts"]]
    names = [*filter(None, dict.fromkeys([counts.get("key"), counts.get("parent", {}).get("column")]))]
    seen: Counter[tuple[str, ...]] = Counter()
    by_parent: dict[str, list[Any]] = defaultdict(list)
    for place, joined in enumerate(universe):
        record = joined[table["counts"]]
        fields = tuple(str(record[name]) for name in [*names, *counts["columns"]])
        seen[fields] += 1
        text = "|".join([document.get("truncation_key", ""), *fields, str(seen[fields])])
        parent = str(joined[per][document["files"][per]["key"]])
        by_parent[parent].append((sha256(text.encode()).hexdigest(), fields, place))
    kept = {place for of in by_parent.values() for _, _, place in sorted(of)[:most]}
    return [joined for place, joined in enumerate(universe) if place in kept]


def _count(
    document: Document, kind: str, groups: list[str], cells: list[list[Document]], kept: list[Joined]
) -> dict[tuple[str, str], list[int]]:
    found = {(area, group): [0] * len(cells) for area in _area_codes(document, kind) for group in groups}
    for joined in kept:
        for group in groups:
            if group != "*" and not _meets(document, document["groups"][group]["where"], joined):
                continue
            for area in _areas_of(document, kind, joined):
                for number, conditions in enumerate(cells):
                    found[area, group][number] += all(_meets(document, one, joined) for one in conditions)
    return found


def _level(document: Document, name: str) -> tuple[str, list[str]]:
    told = document["levels"].get(name)
    return (told["areas"], told.get("groups", ["*"])) if told else (name, ["*"])


def _areas_by_code(document: Document, kind: str) -> dict[str, list[str]]:
    told = document["areas"][kind]
    file, _, column = told["column"].partition(".")
    own = document["files"][file]["columns"][column]
    codes, others = [*own["codes"]], [own["others"]] if "others" in own else []
    if "first" in told:
        return {code: [code[: told["first"]]] for code in codes} | {code: [] for code in others}
    if "of" in told:
        areas = {**{code: [] for code in others}, **told["of"]}
        return {code: [of] if isinstance(of := areas[code], str) else of for code in [*codes, *others]}
    codes += others
    return {code: [code] for code in codes}


def _codes_of_columns(document: Document, told: Document) -> dict[tuple[str, ...], str]:
    """Of each combination of values of columns, as texts, the code of its area."""
    parts = []
    for name in told["columns"]:
        file, _, column = name.partition(".")
        of = document["files"][file]["columns"][column]
        missing, others = ({of[word]: of[word]} if word in of else {} for word in ("missing", "others"))
        if "codes" in of:
            parts.append(missing | {code: code for code in of["codes"]} | others)
        else:
            low, high = map(int, of["whole"])
            parts.append({str(n): f"{n:0{len(str(high))}}" for n in range(low, high + 1)} | missing | others)
    between = "-" if any(len({len(code) for code in of.values()}) > 1 for of in parts) else ""
    return {
        tuple(value for value, _ in some): between.join(code for _, code in some)
        for some in product(*(of.items() for of in parts))
    }


def _area_codes(document: Document, kind: str) -> list[str]:
    told = document["areas"][kind]
    if "columns" in told:
        return sorted(_codes_of_columns(document, told).values())
    if "column" not in told:
        return [told.get("code", "1")]
    return sorted({area for areas in _areas_by_code(document, kind).values() for area in areas})


def _areas_of(document: Document, kind: str, joined: Joined) -> list[str]:
    told = document["areas"][kind]
    if "columns" in told:
        names = [name.partition(".") for name in told["columns"]]
        return [_codes_of_columns(document, told)[tuple(str(joined[file][column]) for file, _, column in names)]]
    if "column" not in told:
        return _area_codes(document, kind)
    file, _, column = told["column"].partition(".")
    return _areas_by_code(document, kind)[joined[file][column]]


def _meets(document: Document, where: Document, joined: Joined) -> bool:
    for name, wanted in where.items():
        recode = document["recodes"].get(name)
        column = recode["column"] if recode else name
        if recode:
            labels = wanted if isinstance(wanted, list) else [wanted]
            values = {value for label in labels for value in _values(document, column, recode["classes"][label])}
        else:
            values = _values(document, column, wanted)
        file, _, own = column.partition(".")
        if joined[file][own] not in values:
            return False
    return True


def _values(document: Document, column: str, told: object) -> set[Any]:
    file, _, own = column.partition(".")
    found: set[Any] = set()
    of = document["files"][file]["columns"][own]
    for value in told if isinstance(told, list) else [told]:
        if "codes" in of or str(value) in (of.get("missing"), of.get("others")):
            found.add(value)
        else:
            low, _, high = str(value).partition("-")
            found.update(range(int(low), int(high or low) + 1))
    return found


def _cells(document: Document, table: Document) -> tuple[list[str], list[tuple[tuple[str, ...], list[Document]]]]:
    """Names of the columns; and of each cell its labels and its conditions."""
    if "by" not in table:
        return ["CELL"], [((label,), [where]) for label, where in table.get("cells", {"total": {}}).items()]
    choices = []
    for name in table["by"]:
        if name in document["recodes"]:
            choices.append([(label, {name: label}) for label in document["recodes"][name]["classes"]])
        else:
            file, _, own = name.partition(".")
            column = document["files"][file]["columns"][own]
            low, high = column.get("whole", (0, -1))
            none, others = ([column[word]] if word in column else [] for word in ("missing", "others"))
            values = [*none, *column["codes"]] if "codes" in column else [*range(low, high + 1), *none]
            values += others
            choices.append([(str(value), {name: value}) for value in values])
    return [name.rpartition(".")[2] for name in table["by"]], [
        (tuple(label for label, _ in of), [where for _, where in of]) for of in product(*choices)
    ]


def _sums(
    table: Document, columns: list[str], labels: list[tuple[str, ...]]
) -> Iterator[tuple[str, list[str], list[tuple[tuple[str, ...], list[int]]]]]:
    for name, rows in table.get("sums", {}).items():
        number = {label: i for i, (label,) in enumerate(labels)}
        yield name, ["CELL"], [((label,), [number[part] for part in parts]) for label, parts in rows.items()]
    for name, kept in table.get("margins", {}).items():
        places = [i for i, column in enumerate(columns) if column in {one.rpartition(".")[2] for one in kept}]
        of: dict[tuple[str, ...], list[int]] = {}
        for cell, one in enumerate(labels):
            of.setdefault(tuple(one[i] for i in places) or ("total",), []).append(cell)
        yield name, [columns[i] for i in places] or ["CELL"], [*of.items()]
