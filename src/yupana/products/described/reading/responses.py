"""Read columns of codes, and multiple responses: questions that one record may answer with several codes. Public."""

from collections.abc import Collection, Mapping, Sequence
from typing import Final

from yupana.errors import nearest
from yupana.files.codes import Codes, codes_of
from yupana.files.columns import Column
from yupana.products.described.description import DescribedFile, MultipleResponse
from yupana.products.described.reading.declaration import MOST_COLUMNS, DeclaredResponse, is_word
from yupana.products.described.reading.document import DescriptionDocument

MOST_CODES: Final = 16_383
"""Most codes of a response: with the one for none they fit 14 bits."""


def read_coded(
    doc: DescriptionDocument, keys: tuple[str, ...], told: Codes, missing: str | None
) -> tuple[Column, Mapping[int, str]]:
    """A column of codes with what they are called; that for ``missing`` values, if there is one, is the first."""
    place = ".".join(keys)
    listed = codes_of(f"{place}.codes", told, doc.folder, doc.faults)
    doc.at(*keys)["codes"] = listed.document
    codes, labels = listed.codes, listed.labels
    if missing is not None:
        if not is_word(missing) or missing in codes:
            doc.faults.append(f"{place}.missing: must be a code that is not listed, without | and quotes")
        codes, labels = (missing, *codes), (missing, *labels)
    return Column(keys[-1], range(len(codes)), words=codes, blank=missing or ""), dict(enumerate(labels))


def read_responses(
    doc: DescriptionDocument, file: str, told: Mapping[str, DeclaredResponse], taken: Collection[str]
) -> dict[str, MultipleResponse]:
    """Those of a file; ``taken`` are the names of its columns, keys and links, which are no answers."""
    found: dict[str, MultipleResponse] = {}
    known = {name.lower() for name in taken}
    used = set(known)
    for name, of in told.items():
        place = f"files.{file}.responses.{name}"
        if name.lower() in known:
            doc.faults.append(f"{place}: is the name of a column, a key, a link or another response")
        known.add(name.lower())
        _check_columns(doc, f"{place}.columns", of.columns, used)
        used.update(column.lower() for column in of.columns)
        column, labels = read_coded(doc, ("files", file, "responses", name), of.codes, of.missing)
        if len(column.words) - bool(column.blank) > MOST_CODES:
            doc.faults.append(f"{place}.codes: at most {MOST_CODES:,} are allowed")
        columns = min(len(of.columns), MOST_COLUMNS)
        most = columns if of.most is None else of.most
        if most > columns:
            text = f"must be a whole number from 1 to the number of columns, {columns}"
            doc.faults.append(f"{place}.most: {text}")
        found[name] = MultipleResponse(file, name, of.columns, column, labels, most)
    return found


def _check_columns(doc: DescriptionDocument, place: str, told: Sequence[str], used: Collection[str]) -> None:
    if len(told) > MOST_COLUMNS:
        doc.faults.append(f"{place}: must be a list of 1 to {MOST_COLUMNS} columns")
        return
    lower = [name.lower() for name in told]
    doc.fault_each(place, "stands twice", (name for i, name in enumerate(told) if lower[i] in lower[:i]))
    doc.fault_each(place, "is a name without quotes, which is not", (repr(name) for name in told if '"' in name))
    doc.fault_each(
        place,
        "is a column, a key or a link of the file already, or one of another response",
        (name for name in told if name.lower() in used),
    )


def response_of(
    doc: DescriptionDocument, place: str, told: str, files: Mapping[str, DescribedFile]
) -> MultipleResponse | None:
    """A response by ``file.name``; None, with a fault, if there is none."""
    known = {f"{file.name}.{name}": of for file in files.values() for name, of in file.responses.items()}
    if told in known:
        return known[told]
    there = nearest(told, known) or (f"; there are {', '.join(known)}" if known else "; no file has any")
    doc.faults.append(f"{place}: {told!r} is no response, such as persons.race{there}")
    return None


def members_of(response: MultipleResponse) -> dict[str, int]:
    """The codes that may be members of groups, with their places: all but the one for none."""
    return {word: place for place, word in enumerate(response.column.words) if word != response.column.blank}
