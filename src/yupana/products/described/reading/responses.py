"""Read the multiple responses of a record file: questions that one record may answer with several codes. Public."""

from collections.abc import Collection, Mapping
from typing import Any, Final

from yupana.errors import nearest
from yupana.files.document import Number, check_keys, is_text, read_table
from yupana.products.described.description import DescribedFile, MultipleResponse
from yupana.products.described.reading.coded import read_coded
from yupana.products.described.reading.document import DescriptionDocument

MOST_COLUMNS: Final = 8
MOST_CODES: Final = 16_383
"""Most codes of a response: with the one for none they fit 14 bits."""


def read_responses(
    doc: DescriptionDocument, file: str, told: object, taken: Collection[str]
) -> dict[str, MultipleResponse]:
    """Those of a file; ``taken`` are the names of its columns, keys and links, which are no answers."""
    found: dict[str, MultipleResponse] = {}
    known = {name.lower() for name in taken}
    used = set(known)
    for name, given in read_table(f"files.{file}.responses", told, doc.faults).items():
        place = f"files.{file}.responses.{name}"
        doc.check_name(place, name)
        if name.lower() in known:
            doc.faults.append(f"{place}: is the name of a column, a key, a link or another response")
        known.add(name.lower())
        of = read_table(place, given, doc.faults)
        check_keys(place, of, ("columns", "codes"), doc.faults, optional=("missing", "most"))
        columns = _columns(doc, f"{place}.columns", of.get("columns"), used)
        used.update(column.lower() for column in columns)
        if "codes" not in of:
            continue
        column, labels = read_coded(doc, place, name, of)
        if len(column.words) - bool(column.blank) > MOST_CODES:
            doc.faults.append(f"{place}.codes: at most {MOST_CODES:,} are allowed")
        found[name] = MultipleResponse(
            file, name, columns, column, labels, _most(doc, place, of, len(columns) or MOST_COLUMNS)
        )
    return found


def _columns(doc: DescriptionDocument, place: str, told: object, used: Collection[str]) -> tuple[str, ...]:
    if not isinstance(told, list) or not 1 <= len(told) <= MOST_COLUMNS or not all(map(is_text, told)):
        doc.faults.append(f"{place}: must be a list of 1 to {MOST_COLUMNS} columns")
        return ()
    lower = [name.lower() for name in told]
    doc.fault_each(place, "stands twice", (name for i, name in enumerate(told) if lower[i] in lower[:i]))
    doc.fault_each(place, "is a name without quotes, which is not", (repr(name) for name in told if '"' in name))
    doc.fault_each(
        place,
        "is a column, a key or a link of the file already, or one of another response",
        (name for name in told if name.lower() in used),
    )
    return tuple(told)


def _most(doc: DescriptionDocument, place: str, of: dict[str, Any], columns: int) -> int:
    most = of.get("most", Number(columns))
    if isinstance(most, Number) and most.isdecimal() and 1 <= int(most) <= columns:
        return int(most)
    doc.faults.append(f"{place}.most: must be a whole number from 1 to the number of columns, {columns}")
    return 1


def response_of(
    doc: DescriptionDocument, place: str, told: object, files: Mapping[str, DescribedFile]
) -> MultipleResponse | None:
    """A response by ``file.name``; None, with a fault, if there is none."""
    known = {f"{file.name}.{name}": of for file in files.values() for name, of in file.responses.items()}
    if isinstance(told, str) and told in known:
        return known[told]
    there = nearest(str(told), known) or (f"; there are {', '.join(known)}" if known else "; no file has any")
    doc.faults.append(f"{place}: {told!r} is no response, such as persons.race{there}")
    return None


def members_of(response: MultipleResponse) -> dict[str, int]:
    """The codes that may be members of groups, with their places: all but the one for none."""
    return {word: place for place, word in enumerate(response.column.words) if word != response.column.blank}
