"""Read the kinds of areas of a description: of columns, of hierarchies, and of the blocks of a public file. Public."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import product
from math import prod
from typing import Final

from yupana.errors import nearest
from yupana.files.codes import lost_zeros, pairs_of
from yupana.files.document import is_text
from yupana.files.names import fault_of, folded
from yupana.geography.block_file import BlockAreas, BlockColumn, BlockFile, HousingUnitFile
from yupana.geography.hierarchy import hierarchy_of
from yupana.plan.responses import ResponseGroup
from yupana.products.described.description import AreaKind, DescribedColumn, Description, in_join
from yupana.products.described.reading.declaration import MOST_DIGITS, MOST_VALUES, DeclaredAreaKind, DeclaredHierarchy
from yupana.products.described.reading.records import DescriptionDocument


def read_areas(doc: DescriptionDocument) -> None:
    """Read them all, those of hierarchies first."""
    for name, hierarchy in doc.read.hierarchies.items():
        _hierarchy(doc, name, hierarchy)
    for name, told in doc.read.areas.items():
        doc.areas[name] = _area(doc, name, told)


def _hierarchy(doc: DescriptionDocument, name: str, told: DeclaredHierarchy) -> None:
    """Kinds of areas by one table of units and parents, from the one that holds everything to codes of a column."""
    place, levels = f"hierarchies.{name}", told.levels
    column = doc.column(f"{place}.column", told.column)
    doc.faults.extend(f"{place}.levels: {level!r} {fault}" for level in levels if (fault := fault_of(level)))
    doc.fault_alike(f"{place}.levels", "are one name", levels)
    doc.fault_each(f"{place}.levels", "is named twice", (one for i, one in enumerate(levels) if one in levels[:i]))
    again = [level for level in levels if level in {*doc.areas, *doc.read.areas}]
    doc.fault_each(f"{place}.levels", "is the name of two kinds of areas", again)
    pairs = pairs_of(f"{place}.of", told.of, doc.folder, doc.faults)
    if column is None or not column.column.words:
        doc.faults.append(f"{place}.column: must be a column of codes")
    if doc.faults or column is None:
        return
    found = hierarchy_of(f"{place}.of", levels, pairs, doc.faults)
    if found is None:
        return
    above_of, words = found.pairs, column.column.words
    units = set(words) - {column.column.others}
    doc.at("hierarchies", name)["of"] = above_of
    for what, odd in (
        (f"codes of {column.file}.{column.name} are no unit of {levels[-1]}", units - set(found.blocks)),
        (f"units of {levels[-1]} are no code of {column.file}.{column.name}", set(found.blocks) - units),
    ):
        if odd:
            doc.faults.append(f"{place}.of: {len(odd)} {what}, such as {min(odd)!r}")
    if doc.faults:
        return
    named = {words[value]: label for value, label in column.labels.items()}
    # Others lie in no unit.
    above = {word: word for word in units}
    for level in reversed(levels[1:]):
        inside = [[above[word]] if word in above else [] for word in words]
        labels = named if level == levels[-1] else {}
        doc.areas[level] = _area_kind(level, [column], inside, labels)
        above = {word: str(above_of[unit]) for word, unit in above.items()}
    doc.areas[levels[0]] = AreaKind(levels[0], (), found.units[0], ((0,),), {})


def _area(doc: DescriptionDocument, name: str, told: DeclaredAreaKind) -> AreaKind:
    place = f"areas.{name}"
    one = AreaKind(name, (), (told.code or "1",), ((0,),), told.labels)
    if told.blocks is not None:
        return read_block_areas(doc, name, told, doc.blocks)
    if told.nowhere is not None:
        doc.faults.append(f"{place}.nowhere: is of areas that are made of blocks")
    if doc.blocks and (told.column or told.columns or told.from_ or told.first or told.of is not None):
        text = "where there is a file of blocks, areas are made of these (blocks) or hold everything (code)"
        doc.faults.append(f"{place}: {text}")
        return one
    if told.columns is not None or told.from_ is not None:
        return _area_above(doc, name, told) if told.columns is None else _area_of_columns(doc, name, told) or one
    if told.column is None:
        if told.of is not None or told.first is not None:
            doc.faults.append(f"{place}: without a column it is one area, and has a code and labels alone")
        return one
    column = doc.column(f"{place}.column", told.column)
    if column is None or not column.column.words:
        doc.faults.append(f"{place}.column: must be a column of codes")
        return one
    words, labels = column.column.words, told.labels
    pairs = _area_pairs(doc, name, told, words, column.column.others)
    if told.first is None and told.of is None:
        labels = {words[value]: label for value, label in column.labels.items()} | dict(labels)
    return _area_kind(name, [column], pairs, labels)


def _area_of_columns(doc: DescriptionDocument, name: str, told: DeclaredAreaKind) -> AreaKind | None:
    """Each combination of values of some columns is an area. Its code is their codes one after another.

    Whole numbers have leading zeros. Where the codes of a column differ in length, hyphens stand between.
    """
    place, names = f"areas.{name}.columns", told.columns or ()
    if others := [key for key in ("column", "from", "first", "of", "code") if key in doc.at("areas", name)]:
        doc.faults.append(f"areas.{name}: has columns and {', '.join(others)}; keep columns, and labels")
    columns = [column for column in (doc.column(place, name) for name in names) if column]
    doc.fault_each(place, "stands twice", (one for one in dict.fromkeys(names) if names.count(one) > 1))
    combinations = prod(len(column.column.domain) for column in columns)
    if combinations > MOST_VALUES:
        text = f"make {combinations:,} areas, and at most {MOST_VALUES:,} are allowed; leave the last out"
        doc.faults.append(f"{place}: {text}")
    if doc.faults:
        return None
    parts = [_parts(column) for column in columns]
    between = "" if all(len({len(code) for code, _ in some}) == 1 for some in parts) else "-"
    codes = [between.join(code for code, _ in some) for some in product(*parts)]
    labels = [", ".join(label for _, label in some) for some in product(*parts)]
    if len(set(codes)) < len(codes):
        doc.faults.append(f"{place}: two areas would have one code, as some codes of a column hold hyphens")
        return None
    named = dict(zip(codes, labels, strict=True)) if any(column.labels for column in columns) else {}
    return _area_kind(name, columns, ([code] for code in codes), {**named, **told.labels})


def _parts(column: DescribedColumn) -> list[tuple[str, str]]:
    """Codes and labels of a column: whole numbers as long as the longest."""
    of = column.column
    if of.words:
        return [(word, column.labels.get(value, word)) for value, word in enumerate(of.words)]
    width, words = len(str(of.numbers.high)), set(of.not_numbers.values())
    return [(of.written(value).zfill(0 if value in words else width), of.written(value)) for value in of.domain]


def _area_above(doc: DescriptionDocument, name: str, told: DeclaredAreaKind) -> AreaKind:
    """Areas of areas: what the areas of another kind, which stands before it, lie in."""
    place, below = f"areas.{name}", doc.areas.get(str(told.from_))
    if below is None or not below.columns:
        known = [kind for kind, of in doc.areas.items() if of.columns]
        text = f"must be a kind of areas that stands before it: {', '.join(known)}; {told.from_!r} is none"
        doc.faults.append(f"{place}.from: {text}")
    if told.column is not None or (told.of is None) == (told.first is None):
        doc.faults.append(f"{place}: with from it has either of or first, and no column")
    if below is None or doc.faults:
        return AreaKind(name, (), ("1",), ((0,),), told.labels)
    others = [of.column.others for of in doc.columns.values() if (in_join(of.file, of.name),) == below.columns]
    above = _area_pairs(doc, name, told, below.codes, *others)
    pairs = [sorted({area for code in codes for area in above[code]}) for codes in below.of]
    if len(below.columns) > 1 and any(len(areas) != 1 for areas in pairs):
        text = f"areas of {below.name}, which are of several columns, must lie in one area each"
        doc.faults.append(f"{place}.of: {text}")
    of_name = {in_join(column.file, column.name): column for column in doc.columns.values()}
    columns = [of_name[column] for column in below.columns]
    return _area_kind(name, columns, pairs, told.labels)


def _area_pairs(
    doc: DescriptionDocument, name: str, told: DeclaredAreaKind, words: Sequence[str], others: str = ""
) -> list[list[str]]:
    """Of each code of a column, or of areas below, the areas it lies in; of others those that are told alone."""
    place = f"areas.{name}"
    if told.first is not None:
        if told.first > min(len(word) for word in words if word != others):
            doc.faults.append(f"{place}.first: must be a number of characters that every code has")
        return [[word[: told.first]] if word != others else [] for word in words]
    if told.of is None:
        return [[word] for word in words]
    before = len(doc.faults)
    pairs = pairs_of(f"{place}.of", told.of, doc.folder, doc.faults)
    if not pairs and len(doc.faults) > before:
        return [[] for _ in words]
    strange = [code for code in pairs if code not in words]
    if not isinstance(told.of, dict):
        # A public file of a whole hierarchy tells of other levels, too.
        meant = lost_zeros(pairs, words)
        strange, pairs = [], {word: pairs[code] for word in words if (code := meant.get(word, word)) in pairs}
        if meant:
            word = next(iter(meant))
            text = f"codes of {told.of.file} had lost the leading zero, as in a spreadsheet, and got it back, such as"
            doc.notes.append(f"{place}.of: {len(meant):,} {text} {word!r}, written {meant[word]!r}")
    doc.at("areas", name)["of"] = pairs
    doc.fault_each(f"{place}.of", "is none of the codes below", map(repr, strange))
    lost = [word for word in words if word not in pairs and word != others]
    if lost:
        doc.faults.append(
            f"{place}.of: {len(lost)} codes below lie in no area, such as {lost[0]!r}; write them "
            "with an empty list if that is meant"
        )
    return [pairs.get(word, []) for word in words]


def _area_kind(
    name: str, columns: Sequence[DescribedColumn], pairs: Iterable[Sequence[str]], labels: Mapping[str, str]
) -> AreaKind:
    """Areas by what each value of a column, or each combination of values of several, lies in."""
    inside = list(pairs)
    codes = tuple(sorted({area for areas in inside for area in areas}))
    number = {code: i for i, code in enumerate(codes)}
    of = tuple(tuple(sorted({number[area] for area in areas})) for areas in inside)
    joined = tuple(in_join(column.file, column.name) for column in columns)
    return AreaKind(
        name,
        joined,
        codes,
        of,
        labels,
        values=tuple(range(column.column.low, column.column.high + 1) for column in columns),
    )


_NEED_AREAS: Final = ("hierarchies", "criteria", "topdown")
"""Parts of a description that ask which areas there are, which a file of blocks tells a run only."""


def check_parts(document: Mapping[str, object], faults: list[str]) -> None:
    """Name the parts that cannot stand beside a file of blocks."""
    text = "needs areas that are known without the records, and a file of blocks lies beside them; leave one out"
    faults += [f"blocks: {part} {text}" for part in _NEED_AREAS if "blocks" in document and part in document]


def read_blocks(doc: DescriptionDocument) -> BlockFile | None:
    """Read what the file of blocks holds; None if there is none."""
    told = doc.read.blocks
    if told is None:
        return None
    if folded(told.file) in map(folded, doc.read.files):
        doc.faults.append(f"blocks.file: {told.file} is a file of records; blocks are public and stand in another")
    key = _columns(doc, "blocks.key", told.key_, ())
    others = _columns(doc, "blocks.columns", told.columns, [column.name for column in key])
    if not key or sum(column.digits for column in key) > MOST_DIGITS:
        text = f"must be columns with their digits, at most {MOST_DIGITS} in all, such as {{ BLOCK = 15 }}"
        doc.faults.append(f"blocks.key: {text}")
        return None
    if set(told.only) - {key[0].name}:
        doc.faults.append(f"blocks.only: may choose values of {key[0].name}, the first column of the key, alone")
    only = told.only.get(key[0].name, ())
    values = [only] if isinstance(only, str) else only
    chosen = _values(doc, f"blocks.only.{key[0].name}", values, key[0]) if told.only else None
    if told.housing_units is not None:
        _check_housing_units(doc, told.file, told.housing_units)
    return BlockFile(told.file, key, others, chosen, told.housing_units)


def _check_housing_units(doc: DescriptionDocument, blocks: str, of: HousingUnitFile) -> None:
    place = "blocks.housing_units"
    if folded(of.file) in map(folded, (blocks, *doc.read.files)):
        doc.faults.append(f"{place}.file: {of.file} is another file of the description")
    if folded(of.block) == folded(of.number) or '"' in of.block + of.number:
        doc.faults.append(f"{place}: block and number must be names of two columns, without quotes")


def _columns(
    doc: DescriptionDocument, place: str, told: Mapping[str, int], taken: Collection[str]
) -> tuple[BlockColumn, ...]:
    for name in told:
        if not is_text(name) or '"' in name or folded(name) in map(folded, taken):
            doc.faults.append(f"{place}.{name}: must be the name of a column, without quotes, that stands once")
        if name.lower() == "housing_units":
            text = "is the number of homes of a block, which no area is made of; blocks.housing_units names its file"
            doc.faults.append(f"{place}.{name}: {text}")
        taken = (*taken, name)
    return tuple(BlockColumn(name, digits) for name, digits in told.items())


def _values(doc: DescriptionDocument, place: str, values: Sequence[str], column: BlockColumn) -> frozenset[int]:
    """Values of a column: texts of as many digits as it has."""
    fits = [is_text(of) and len(of) == column.digits and of.isascii() and of.isdecimal() for of in values]
    if not values or not all(fits):
        text = f"must be a text of {column.digits} digits with leading zeros, such as '{1:0{column.digits}}'"
        doc.faults.append(f"{place}: {text}")
        return frozenset()
    return frozenset(map(int, values))


def read_block_areas(doc: DescriptionDocument, name: str, told: DeclaredAreaKind, of: BlockFile | None) -> AreaKind:
    """A kind of areas that is made of blocks."""
    place, blocks = f"areas.{name}", of or BlockFile("", ())
    if of is None:
        doc.faults.append(f"{place}.blocks: needs a file of blocks, which a table [blocks] names")
    if others := [key for key in ("column", "from", "first", "of", "code", "labels") if key in doc.at("areas", name)]:
        text = "; keep blocks, and nowhere; which areas there are is told by the file of blocks alone"
        doc.faults.append(f"{place}: has blocks and {', '.join(others)}{text}")
    known = {column.name: column for column in (*blocks.key, *blocks.columns)}
    names = told.blocks or ()
    columns = tuple(known[column] for column in names if column in known)
    if of is not None and len(set(columns)) < len(names):
        strange = [f"{column!r}{nearest(column, known)}" for column in names if column not in known]
        doc.fault_each(f"{place}.blocks", f"no column of the file of blocks ({', '.join(known)}) is", strange)
        doc.faults.extend([] if strange else [f"{place}.blocks: names a column twice"])
    if (width := sum(column.digits for column in columns)) > MOST_DIGITS:
        doc.faults.append(f"{place}.blocks: makes codes of {width} digits, and at most {MOST_DIGITS} are allowed")
    return AreaKind(name, (), (), (), {}, BlockAreas(name, columns, nowhere=_nowhere(doc, place, told, columns)))


def _nowhere(
    doc: DescriptionDocument, place: str, told: DeclaredAreaKind, columns: Sequence[BlockColumn]
) -> dict[str, int] | None:
    """Values that say that a block is in no area of a kind."""
    known = {column.name: column for column in columns}
    found: dict[str, int] = {}
    for name, value in (told.nowhere or {}).items():
        if not known:
            break
        if name in known:
            found.update((name, number) for number in _values(doc, f"{place}.nowhere.{name}", [value], known[name]))
        else:
            doc.faults.append(f"{place}.nowhere: {name!r} is none of the columns of the kind: {', '.join(known)}")
    return found or None


def check_blocks(doc: DescriptionDocument, made: Description) -> None:
    """That tables and what is done to them go with a file of blocks; and that groups by responses have one."""
    for table in made.tables:
        place, file = f"tables.{table.name}", made.files[table.counts]
        for level in table.levels:
            read = {group.response.partition(".")[0] for group in made.by_response(level)}
            if read and made.blocks is None:
                text = "has groups by a response, and these need a file of blocks, which a table [blocks] names"
                doc.faults.append(f"{place}.budget: {level.name} {text}")
            elif strange := sorted(read - {table.counts}):
                text = f"has groups by a response of {', '.join(strange)}, and the table counts {table.counts}"
                doc.faults.append(f"{place}.budget: {level.name} {text}")
        by_response = [code for code in table.groups if isinstance(made.groups.get(code), ResponseGroup)]
        doc.fault_each(f"{place}.groups", "is a group by a response, which no condition replaces", by_response)
        if made.blocks is None:
            continue
        if file.parent:
            text = f"with a file of blocks, {table.counts} must stand alone, and its records belong to {file.parent}"
            doc.faults.append(f"{place}.counts: {text}")
        if table.limit:
            doc.faults.append(
                f"{place}.limit: goes with links between files, and a file of blocks without; leave one out"
            )
    if made.blocks is not None:
        text = "needs areas that are known without the records; leave it or blocks out"
        fitted = ("consistent", "coterminous")
        doc.fault_each("postprocess", text, (name for name in fitted if getattr(made.postprocess, name)))
