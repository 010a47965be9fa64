"""Read DDI-Codebook: variables, their categories, and where a line holds them. Public.

Versions 1, 2.1 and 2.5 with a namespace or without, as IPUMS and the archives of surveys write it. The parser takes no
document type and no entities of a document's own, so that nothing can expand or be fetched.
"""

import codecs
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final, Self
from xml.parsers import expat

from yupana.errors import ConfigError
from yupana.files.dictionaries.dictionary import Dictionary, DictionaryItem, Questionnaire, RecordType, ValueRange
from yupana.files.dictionaries.told import (
    MOST_ITEMS,
    MOST_VALUES,
    ToldTable,
    apart,
    clean,
    refuse,
    value_range,
    whole_text,
)
from yupana.files.document import Number

KIND: Final = "a DDI-Codebook"
_DEEPEST: Final = 100
_LONGEST_LINE: Final = 1_000_000
_LONGEST_TEXT: Final = 4000
"""Characters of an element; notes are longer, and nobody reads them here."""


def is_xml(data: bytes) -> bool:
    """Whether a file begins as XML does, in any encoding that a parser takes."""
    for mark in (codecs.BOM_UTF8, codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE):
        data = data.removeprefix(mark)
    return data[:200].replace(b"\0", b"").lstrip().startswith(b"<")


@dataclass(slots=True)
class _Element:
    """An element of a variable or a file, or one of both."""

    tag: str
    attributes: Mapping[str, str]
    line: int
    text: str = ""
    children: list[Self] = field(default_factory=list)

    def all(self, *path: str) -> list[Self]:
        """The elements at a path below this."""
        found = [self]
        for tag in path:
            found = [child for of in found for child in of.children if child.tag == tag]
        return found

    def told(self, *path: str, attribute: str = "") -> str:
        """The text of the first that has any of those at a path, or an attribute."""
        said = (one.attributes.get(attribute, "") if attribute else one.text for one in self.all(*path))
        return next(filter(None, said), "")

    def groups(self) -> list[dict[str, str]]:
        """The record types of a file."""
        return [{"labl": one.told("labl"), **one.attributes} for one in self.all("fileTxt", "fileStrc", "recGrp")]


_NAME: Final = "fileTxt", "fileName"
_KEPT: Final = {
    *("fileTxt", "fileName", "fileStrc", "fileType", "recGrp", "labl", "location", "varFormat", "catgry", "catValu"),
    *("valrng", "invalrng", "range", "item"),
}


class _RefusedError(Exception):
    """A document that asks for more than a dictionary needs."""


class _Codebook:
    """The elements of a codebook, one after another."""

    def __init__(self) -> None:
        self.title, self.root = "", ""
        self.files: list[_Element] = []
        self.variables: list[_Element] = []
        self._open: list[_Element] = []
        self._text: list[str] = []
        self._values = 0
        self.parser = expat.ParserCreate()
        self.parser.buffer_text = True
        self.parser.StartElementHandler = self._start
        self.parser.EndElementHandler = self._end
        self.parser.CharacterDataHandler = self._characters
        self.parser.StartDoctypeDeclHandler = self._refused
        self.parser.EntityDeclHandler = self._refused
        self.parser.ExternalEntityRefHandler = self._refused

    def _refused(self, *_: object) -> int:
        raise _RefusedError("has a document type or entities, which may expand without end; remove <!DOCTYPE ...>")

    def _start(self, name: str, attributes: dict[str, str]) -> None:
        bare = name.rpartition(":")[2]
        if len(self._open) >= _DEEPEST:
            raise _RefusedError("is nested too deeply to be a codebook")
        self.root = self.root or bare
        one = _Element(bare, attributes, self.parser.CurrentLineNumber)
        if bare in _KEPT and self._open:
            self._open[-1].children.append(one)
        elif bare == "var":
            self.variables.append(one)
        elif bare == "fileDscr":
            self.files.append(one)
        self._open.append(one)
        self._text = []
        self._values += bare in {"catgry", "range", "item"}
        for count, most, of in ((len(self.variables), MOST_ITEMS, "variables"), (self._values, MOST_VALUES, "values")):
            if count > most:
                raise _RefusedError(f"has more than {most:,} {of}")

    def _characters(self, text: str) -> None:
        if sum(map(len, self._text)) < _LONGEST_TEXT:
            self._text.append(text)

    def _end(self, _: str) -> None:
        one = self._open.pop()
        one.text, self._text = clean("".join(self._text)), []
        if one.tag == "titl":
            self.title = self.title or one.text


def ddi_dictionary(path: Path, data: bytes) -> Dictionary:
    """What a codebook says.

    Raises
    ------
    ConfigError
        If it is none, has entities or a document type, or has faults: all are named by their lines.
    """
    book = _Codebook()
    try:
        book.parser.Parse(data, True)  # noqa: FBT003 (expat's)
    except expat.ExpatError as error:
        text = expat.ErrorString(error.code)
        raise ConfigError(f"{path}: not XML: {text} at line {error.lineno}, column {error.offset + 1}") from None
    except _RefusedError as error:
        raise ConfigError(f"{path}: line {book.parser.CurrentLineNumber}: {error}") from None
    except (ValueError, LookupError):
        raise ConfigError(f"{path}: not XML in an encoding that is known") from None
    if book.root != "codeBook":
        raise ConfigError(f"{path} is XML, but no DDI-Codebook, whose first element is codeBook")
    faults: list[str] = []
    found = _dictionary(path, book, faults)
    if faults:
        raise refuse(path, KIND, faults)
    return found


def _dictionary(path: Path, book: _Codebook, faults: list[str]) -> Dictionary:
    if not book.variables:
        faults.append("describes no variables (var)")
    files = book.files or [_Element("fileDscr", {}, 0)]
    structured = next((of for of in files if len(of.groups()) > 1), None)
    records: list[RecordType] = []
    type_start = type_length = 0
    if structured is not None:
        records, type_start, type_length = _hierarchical(structured, book.variables, faults)
    else:
        for of in files:
            own = [var for var in book.variables if _is_of(var, of, files)]
            items = tuple(_item(var, faults, file=of.attributes.get("ID", "")) for var in own)
            if items:
                records.append(RecordType(_stem(of.told(*_NAME)) or "records", "", "", items))
    for record in records:
        twice = apart([item.name for item in record.items])
        faults.extend(f"{name} is the name of two variables of {record.name}" for name in twice)
    twice = apart([record.name for record in records])
    faults.extend(f"{name} is the name of two files or record types" for name in twice)
    encoding = next(
        (known for of in files if (known := _encoding(of.told("fileTxt", "fileType", attribute="charset")))), ""
    )
    return Dictionary(
        _stem(files[0].told(*_NAME)) or path.stem, book.title, type_start, type_length,
        (Questionnaire("", "", (), tuple(records)),), path, "DDI-Codebook", encoding,
    )  # fmt: skip


def _is_of(var: _Element, of: _Element, files: Sequence[_Element]) -> bool:
    """Whether a variable is of a file: by its attribute, or by its location, or because there is one file."""
    named = {
        *var.attributes.get("files", "").split(),
        *(at.attributes.get("fileid", "") for at in var.all("location")),
    } - {""}
    return len(files) == 1 or of.attributes.get("ID", "") in named


def _hierarchical(of: _Element, variables: Iterable[_Element], faults: list[str]) -> tuple[list[RecordType], int, int]:
    """Record types of a file, the one that others name by their key first, and where a line tells its type."""
    by_name = {var.attributes.get("name", ""): var for var in variables}
    telling = next((group["recidvar"] for group in of.groups() if group.get("recidvar")), "")
    start = length = 0
    if telling in by_name:
        of_type = _item(by_name[telling], [], file=of.attributes.get("ID", ""))
        start, length = of_type.start, of_type.length
    if not start:
        faults.append("recGrp: recidvar must name the variable that tells record types apart, which has a location")
    # The key is told of those below, mostly.
    groups = sorted(of.groups(), key=lambda group: bool(group.get("keyvar")))
    codes = [group.get("rectype", "") for group in groups]
    if not all(codes) or len(set(codes)) < len(codes):
        faults.append("recGrp: rectype must tell record types apart")
    found: list[RecordType] = []
    for group in groups:
        code = group.get("rectype", "")
        own = [var for var in by_name.values() if code in var.attributes.get("rectype", code).split()]
        items = tuple(
            _item(var, faults, file=of.attributes.get("ID", "")) for var in own if var.attributes.get("name") != telling
        )
        found.append(RecordType(_record_name(group, found), group.get("labl", ""), code, items))
    return _linked(found, groups), start, length


def _record_name(group: Mapping[str, str], others: Iterable[RecordType]) -> str:
    """A record type by its label, PERSON of "Person Record", where this tells it from others; else by its code."""
    words = [word for word in re.split(r"[\W_]+", group.get("labl", "").upper()) if word not in {"", "RECORD"}]
    name, code = "_".join(words), group.get("rectype", "")
    if not name[:1].isalpha() or name in {other.name for other in others}:
        return code if code[:1].isalpha() else f"R{code}"
    return name


def _linked(records: list[RecordType], groups: Sequence[Mapping[str, str]]) -> list[RecordType]:
    """Record types of which those below name the first by its key: the variable that both have."""
    for group, record in zip(groups, records, strict=True):
        key = group.get("keyvar", "")
        top = records[0]
        if record is top or len(key.split()) != 1:
            continue
        if all(any(item.name == key for item in of.items) for of in (top, record)) and top.key in {"", key}:
            records[0] = replace(top, key=key)
            records[records.index(record)] = replace(record, parent=top.name, link=key)
    return records


def _item(var: _Element, faults: list[str], *, file: str) -> DictionaryItem:
    """A variable, with its location in a file."""
    name = clean(var.attributes.get("name", "") or var.attributes.get("ID", ""))
    # Its numbers are read as those of other tables are.
    told = ToldTable({key: Number(value) for key, value in var.attributes.items()}, f"line {var.line}: {name}", faults)
    if not name:
        faults.append(f"line {var.line}: var must have a name")
    locations = [one.attributes for one in var.all("location")]
    at = [one for one in locations if one.get("fileid", file) == file] or locations
    start = length = 0
    if at and at[0].get("StartPos"):
        place = ToldTable({key: Number(value) for key, value in at[0].items()}, told.place, faults)
        start = place.whole("StartPos", 1, _LONGEST_LINE)
        end = place.whole("EndPos", start, _LONGEST_LINE, 0)
        length = place.whole("width", 1, _LONGEST_LINE, end - start + 1 if end else 1)
        if end and end - start + 1 != length:
            faults.append(f"line {var.line}: {name} from {start} to {end} has another width than {length}")
    decimals = told.whole("dcml", 0, 15, 0)
    is_number = _is_number(var)
    values = tuple(_values(var, name, faults, is_number=is_number))
    return DictionaryItem(
        name, var.told("labl"), start, length, is_number=is_number, decimals=decimals if start else 0,
        values=values,
    )  # fmt: skip


def _is_number(var: _Element) -> bool:
    """What the format says; else whether all categories are numbers that are written as such."""
    if said := var.told("varFormat", attribute="type"):
        return said.lower() not in {"character", "char", "string", "text"}
    codes = [code for one in var.all("catgry") if (code := one.told("catValu"))]
    return bool(codes or _ranges(var)) and all(whole_text(code) == code for code in codes)


def _ranges(var: _Element) -> list[tuple[Mapping[str, str], bool]]:
    """The ranges and single values of a variable, and whether they stand for no answer."""
    groups = [one for one in var.children if one.tag in {"valrng", "invalrng"}]
    return [
        (one.attributes, group.tag == "invalrng")
        for group in groups for one in group.children if one.tag in {"range", "item"}
    ]  # fmt: skip


def _values(var: _Element, name: str, faults: list[str], *, is_number: bool) -> list[ValueRange]:
    """Categories, and ranges; of numbers that are measured, categories name some of the values only."""
    found: list[ValueRange] = []
    for category in var.all("catgry"):
        if not (code := category.told("catValu")):
            continue
        missing = category.attributes.get("missing", "").lower() in {"y", "yes", "true"}
        one = value_range(code, code, category.told("labl"), is_number=is_number, missing=missing)
        if one is None:
            faults.append(f"line {var.line}: {name} is a number, and has a category whose value is none (catValu)")
            return []
        found.append(one)
    ranges = []
    for attributes, missing in _ranges(var):
        low = attributes.get("min") or attributes.get("VALUE") or attributes.get("value") or ""
        high = attributes.get("max") or (low if "min" not in attributes else "")
        one = value_range(low, high, "", is_number=is_number, missing=missing) if low and high else None
        if one is not None and (one.first, one.last) not in {(of.first, of.last) for of in found}:
            ranges.append(one)
    if is_number and var.attributes.get("intrvl", "") == "contin" and not any(not of.missing for of in ranges):
        # Labels of some values of a quantity, such as 999 for unknown, do not list the others.
        return []
    known = [of for of in ranges if of.missing or not found]
    return [*found, *known]


def _encoding(charset: str) -> str:
    try:
        return codecs.lookup(charset).name if re.fullmatch(r"[A-Za-z0-9_.:-]{1,40}", charset) else ""
    except LookupError:
        return ""


def _stem(name: str) -> str:
    """A file's name without folder and ending, of which archives add a second one, as in people.NSDstat."""
    return Path(name.replace("\\", "/")).name.partition(".")[0].strip()
