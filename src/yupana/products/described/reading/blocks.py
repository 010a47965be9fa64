"""Read the public file of blocks beside the records and the kinds of areas that are made of blocks. Public."""

from collections.abc import Collection, Mapping, Sequence
from typing import Final

from yupana.errors import nearest
from yupana.files.document import is_text
from yupana.geography.block_file import BlockAreas, BlockColumn, BlockFile, HousingUnitFile
from yupana.plan.responses import ResponseGroup
from yupana.products.described.description import AreaKind, Description
from yupana.products.described.reading.declaration import MOST_DIGITS, DeclaredAreaKind
from yupana.products.described.reading.document import DescriptionDocument

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
    if told.file.lower() in map(str.lower, doc.read.files):
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
    if of.file.lower() in {name.lower() for name in (blocks, *doc.read.files)}:
        doc.faults.append(f"{place}.file: {of.file} is another file of the description")
    if of.block.lower() == of.number.lower() or '"' in of.block + of.number:
        doc.faults.append(f"{place}: block and number must be names of two columns, without quotes")


def _columns(
    doc: DescriptionDocument, place: str, told: Mapping[str, int], taken: Collection[str]
) -> tuple[BlockColumn, ...]:
    for name in told:
        if not is_text(name) or '"' in name or name.lower() in {other.lower() for other in taken}:
            doc.faults.append(f"{place}.{name}: must be the name of a column, without quotes, that stands once")
        if name.lower() == "housing_units":
            text = "is the number of homes of a block, which no area is made of; blocks.housing_units names its file"
            doc.faults.append(f"{place}.{name}: {text}")
        taken = (*taken, name)
    return tuple(BlockColumn(name, digits) for name, digits in told.items())


def _values(doc: DescriptionDocument, place: str, values: Sequence[str], column: BlockColumn) -> frozenset[int]:
    """Values of a column: texts of as many digits as it has."""
    if not values or not all(_is_code(value, column.digits) for value in values):
        text = f"must be a text of {column.digits} digits with leading zeros, such as '{1:0{column.digits}}'"
        doc.faults.append(f"{place}: {text}")
        return frozenset()
    return frozenset(map(int, values))


def _is_code(value: object, digits: int) -> bool:
    return is_text(value) and len(str(value)) == digits and str(value).isascii() and str(value).isdecimal()


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
    return AreaKind(name, "", (), (), {}, BlockAreas(name, columns, nowhere=_nowhere(doc, place, told, columns)))


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
