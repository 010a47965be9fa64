"""Draft a description of tables from a dictionary of record files, which says what records may hold. Public.

What is drafted is a function of the dictionary alone: no record is read.
"""

import json
import re
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from math import prod
from typing import Final

from yupana.files.dictionaries.dictionary import Dictionary, DictionaryItem, ValueRange, ValueSet, case_keys
from yupana.files.document import is_text
from yupana.files.names import fault_of, file_of, normal
from yupana.products.described.reading.declaration import MOST_VALUES, is_word, stands_for_none

_LISTED: Final = 2_000
"""Whole numbers with gaps that are listed one by one; more are a range that allows what lies between."""

_MOST_AREAS: Final = 10_000
_FEW: Final = 20
"""Codes of a column that a first table is by."""

_WIDTH: Final = 118
_NO_VALUE: Final = "no value"
_ALL: Final = "All"
_OTHERS: Final = ("other", "not listed", "none of the codes", "outside the list")

_PEOPLE: Final = {
    *("person", "persons", "people", "population", "individual", "individuals", "member", "members", "roster"),
    *("persona", "personas", "personne", "personnes", "individu", "pessoa", "pessoas", "poblacion", "populacao"),
}
_SEX: Final = {"sex", "gender", "sexo", "sexe", "genero", "genre", "geschlecht", "sesso", "jinsi"}
_PLACES: Final = {
    *("country", "nation", "region", "province", "state", "county", "district", "department", "municipality"),
    *("commune", "canton", "governorate", "prefecture", "ward", "village", "parish", "division", "subdistrict", "pais"),
    *("provincia", "departamento", "municipio", "distrito", "estado", "comuna", "regiao", "concelho", "freguesia"),
    *("departement", "prov", "dist", "geolev", "statefip", "countyfip", "statefips", "countyfips"),
}
"""What a column of areas is called, mostly, without accents and numbers."""

_DWELLINGS: Final = {
    *("household", "hh", "hu", "dwelling", "building", "structure", "housing", "house", "line", "person", "segment"),
    *("number", "hogar", "vivienda", "menage", "logement", "domicilio", "bldg", "du", "serial", "case", "id"),
}
_URBAN: Final = {"urban", "rural", "ur", "urbano", "urbain"}


@dataclass(frozen=True, slots=True)
class _DraftDomain:
    """The values of a column: codes with labels, or a range of whole numbers."""

    codes: dict[str, str]
    whole: tuple[int, int] | None = None
    missing: str = ""
    remark: str = ""

    @property
    def size(self) -> int:
        return self.whole[1] - self.whole[0] + 1 if self.whole else len(self.codes)


@dataclass(slots=True)
class _DraftFile:
    """A record file of the description."""

    name: str
    record: str
    items: Sequence[DictionaryItem]
    key: str = ""
    parent: str = ""
    link: str = ""
    most: int = 0
    is_level: bool = False
    domains: dict[str, _DraftDomain] = field(default_factory=dict)
    unread: list[tuple[str, str]] = field(default_factory=list)


def draft(dictionary: Dictionary, named: str, out: str = "FILE") -> str:
    """A description in TOML of what a dictionary says, with a first table.

    Parameters
    ----------
    named : str
        What the description calls the dictionary: its path from the folder of the description.
    out : str
        What the description is called, for the commands that its head shows.
    """
    files = _files(dictionary)
    unit = _unit(files)
    chain = _chain(files, unit)
    areas = list(_areas(files, chain))
    lines = [
        *_head(dictionary, named, out, unit, chain),
        "",
        "# Record files. A record of a file with a parent belongs to one record of that.",
    ]
    in_areas = {column for _, columns in areas for column in columns}
    for file in files:
        # No change of a unit changes the areas it lies in, and ids are what tells questionnaires apart.
        fixed = {name for name in file.domains if file.is_level or f"{file.name}.{name}" in in_areas}
        lines += _file_lines(file, fixed if file in chain[1:] else set(), dictionary.lists_all)
    lines += _recode_lines(files)
    lines += _area_lines(dictionary, files, areas)
    return "\n".join([*lines, *_table_lines(unit, areas, in_areas)]) + "\n"


# What is there.


def _files(dictionary: Dictionary) -> list[_DraftFile]:
    """The files of all levels and record types, parents first, with what their columns hold."""
    found: list[_DraftFile] = []
    keys, ids = case_keys(dictionary), list[DictionaryItem]()
    above = ("", "")
    for level, key in zip(dictionary.levels, keys, strict=True):
        ids += level.ids
        if level.name:
            found.append(
                _DraftFile(level.name, _called(level.label, level.name), tuple(ids), key, *above, is_level=True)
            )
            above = (level.name, key)
        for of in level.records:
            parent, link = above if level.name else (of.parent, of.link)
            found.append(_DraftFile(of.name, _called(of.label, of.name), of.items, of.key, parent, link, of.most))
    known = {file.name for file in found}
    for file in found:
        if file.parent not in known:
            file.parent = file.link = ""
        for item in file.items:
            _take(file, item, width=item.length if file.is_level else 0)
    renamed = {file.name: _named(file.name, f"file{place + 1}") for place, file in enumerate(found)}
    for file in found:
        file.name, file.parent = renamed[file.name], renamed.get(file.parent, "")
    return found


def _named(name: str, otherwise: str) -> str:
    """A name that files and areas may have."""
    return next((one for one in (normal(name), file_of(normal(name))) if not fault_of(one)), otherwise)


def _take(file: _DraftFile, item: DictionaryItem, width: int) -> None:
    """Put a column to those that are read, or to those that are not."""
    if item.name.lower() in {file.key.lower(), file.link.lower()}:
        return
    fault = fault_of(normal(item.name), parted=False)
    domain = f"its name {fault}; give it another, which --columns maps to its own" if fault else _domain(item, width)
    if isinstance(domain, str):
        file.unread.append((item.name, domain))
    else:
        file.domains[item.name] = domain


def _called(label: str, name: str) -> str:
    """What one record is called, without the word record."""
    bare = re.sub(r"\s*\brecords?$", "", label, flags=re.IGNORECASE).strip()
    return _label(bare or name).lower()


def _unit(files: Sequence[_DraftFile]) -> _DraftFile:
    """The file whose records are people, or of which a questionnaire may have most, or that nothing belongs to."""
    parents = {file.parent for file in files}
    rows = [file for file in files if not file.is_level] or list(files)
    return max(
        rows,
        key=lambda file: (
            bool(_PEOPLE & {*_words(file.name), *_words(file.record)}),
            file.most,
            file.name not in parents,
            len(_chain(files, file)),
        ),
    )


def _chain(files: Sequence[_DraftFile], file: _DraftFile) -> list[_DraftFile]:
    """A file and those above it; each once, should links go in a circle."""
    of, found = {one.name: one for one in files}, [file]
    while (above := of.get(found[-1].parent)) and above not in found:
        found.append(above)
    return found


def _plain(text: str) -> str:
    return "".join(one for one in unicodedata.normalize("NFKD", text) if not unicodedata.combining(one))


def _words(text: str) -> list[str]:
    """The words of a name, without accents and numbers."""
    return [word for word in re.split(r"[\W\d_]+", _plain(text).lower()) if word]


# Columns.


def _domain(item: DictionaryItem, width: int) -> _DraftDomain | str:
    """What a column may hold; or why it is not read, in words.

    Parameters
    ----------
    width : int
        Digits that the codes of numbers have, where they name areas; 0 where they are as the dictionary has them.
    """
    known: dict[tuple[str, str], ValueRange] = {}
    for of in (*item.values, *(of for some in item.sets for of in some.values)):
        known.setdefault((of.first, of.last), of)
    values = list(known.values())
    some = [of for of in values if of.first]
    blank = next((of for of in values if not of.first), None)
    if not some:
        return _without_values(item)
    if item.is_number:
        some, words = [of for of in some if _ends(of)], [of for of in some if not _ends(of)]
        if any(not of.missing for of in words) or item.decimals or (item.is_fraction and any(map(_is_range, some))):
            return "a number with decimals; only whole numbers and codes are counted by"
        blank = next((of for of in words if of.missing), blank)
        found = _numbers(some, width)
    else:
        unlabelled = next((of for of in some if of.missing and not of.label), None)
        blank = unlabelled or blank
        found = _texts([of for of in some if of is not unlabelled])
    if isinstance(found, str):
        return found
    missing = _missing(blank, found) if blank is not None else ""
    return _DraftDomain(found.codes, found.whole, missing, found.remark)


def _without_values(item: DictionaryItem) -> str:
    if not item.is_number:
        kind = f"a text of {item.length} characters" if item.length else "a text or a date"
        return f"{kind} without codes"
    if item.decimals or item.is_fraction:
        return "a number with decimals and without values"
    if 0 < item.length < 7:
        most = min(10**item.length, MOST_VALUES) - 1
        return f"a number without values or a range; say whole = [0, {most}], or less, to read it"
    return "a number without values or a range"


def _ends(of: ValueRange) -> tuple[int, int] | None:
    try:
        return int(of.first), int(of.last)
    except ValueError:
        return None


def _is_range(of: ValueRange) -> bool:
    return of.first != of.last


def _numbers(values: Sequence[ValueRange], width: int) -> _DraftDomain | str:
    """Codes, where all values stand alone or are few; else a range."""
    spans = [(ends, of) for of in values if (ends := _ends(of))]
    if not spans:
        return "a number without values or a range"
    low, high = min(ends[0] for ends, _ in spans), max(ends[1] for ends, _ in spans)
    has_ranges, number = any(_is_range(of) for _, of in spans), _held([ends for ends, _ in spans])
    is_whole = low >= 0 and high - low < MOST_VALUES
    # Areas have codes as long as the item; whole numbers have as many digits as the largest.
    is_short = number <= _LISTED and len(str(high)) < width
    is_full = has_ranges and number == high - low + 1 and (number > _FEW or not any(of.label for of in values))
    if is_whole and is_full and not is_short:
        return _DraftDomain({}, (low, high))
    if not has_ranges or number <= _LISTED:
        labels = {n: _label_of(of, n) for ends, of in reversed(spans) for n in range(ends[0], ends[1] + 1)}
        return _DraftDomain({str(n).zfill(width if low >= 0 else 0): labels[n] for n in sorted(labels)})
    if is_whole:
        return _DraftDomain({}, (low, high), remark="allows numbers between those that the dictionary has")
    return f"numbers from {low} to {high}; whole numbers of 0 and above in a range of a million can be read"


def _held(ranges: Iterable[tuple[int, int]]) -> int:
    """How many numbers lie in some of the ranges."""
    number, last = 0, None
    for low, high in sorted(ranges):
        first = low if last is None else max(low, last + 1)
        number += max(high - first + 1, 0)
        last = high if last is None else max(last, high)
    return number


def _label_of(of: ValueRange, number: int) -> str:
    label, ends = _label(of.label), _ends(of)
    if ends is None or ends[0] == ends[1]:
        return label or ("missing" if of.missing else "")
    return f"{label}, {number}" if label and ends[1] - ends[0] < _FEW else ""


def _texts(values: Sequence[ValueRange]) -> _DraftDomain | str:
    codes = {of.first: _label(of.label) for of in values}
    if not codes:
        return "a text without codes"
    if strange := [code for code in codes if not is_text(code) or not is_word(code) or code != code.strip()]:
        return f"{len(strange)} of its codes hold quotes, bars, blanks at an end or what is no text"
    return _DraftDomain(codes)


def _label(text: str) -> str:
    """A label as tables may publish it: one line without bars and quotes."""
    bare = " ".join(text.replace('"', "'").replace("|", "/").split())
    return bare if is_text(bare) else ""


def _missing(blank: ValueRange, domain: _DraftDomain) -> str:
    """The text that stands for no value: what the dictionary writes or calls it."""
    for text in (blank.first, _label(blank.label), _NO_VALUE, "none", "-", "no value here"):
        if is_word(text) and text not in domain.codes and (not domain.whole or stands_for_none(text, *domain.whole)):
            return text
    return ""


# Areas.


def _areas(files: Sequence[_DraftFile], chain: Sequence[_DraftFile]) -> Iterator[tuple[str, list[str]]]:
    """Kinds of areas, each with its columns: the ids of questionnaires that nest, or columns that are called so."""
    level = next((file for file in files if file.is_level), None)
    if level is not None:
        columns: list[str] = []
        sizes: list[int] = []
        for item in level.items:
            words = {*_words(item.name), *_words(item.label)}
            domain = level.domains.get(item.name)
            if words & _URBAN:
                continue
            if domain is None or words & _DWELLINGS or prod(sizes) * domain.size > _MOST_AREAS:
                break
            columns.append(f"{level.name}.{item.name}")
            sizes.append(domain.size)
            yield _named(item.name, f"area{len(columns)}"), list(columns)
        return
    taken: set[str] = set()
    for file in chain:
        for item in file.items:
            domain = file.domains.get(item.name)
            names, label = _words(item.name), _words(item.label)
            called = {*names, "".join(names), *(label if len(label) == 1 else ())}
            if domain and domain.codes and domain.size <= _MOST_AREAS and called & _PLACES and item.name not in taken:
                taken.add(item.name)
                yield _named(item.name, f"area{len(taken)}"), [f"{file.name}.{item.name}"]


# Text.


def _head(dictionary: Dictionary, named: str, out: str, unit: _DraftFile, chain: Sequence[_DraftFile]) -> Iterator[str]:
    title = _label(dictionary.label)
    about = f"{_label(dictionary.name)}{f', {title}' if title else ''}"
    yield f"# Drafted from a dictionary ({dictionary.kind}): {about}."
    yield "# It says what the dictionary says, and nothing of any record. Read it, and change what you want otherwise;"
    yield "# docs/tables.md tells what each key means. A value that a column does not list is refused, unless it has"
    yield "# others, as here columns do whose codes may not be all. Then:"
    yield "#"
    for verb, says in (
        (f"plan {out}", "what the tables cost, and their margins of error"),
        (f"validate {out} DATA", "whether the records are as it says"),
        (f"run {out} DATA OUT", "the tables"),
    ):
        yield f"#   yupana tables {verb:<{len(out) + 18}}{says}"
    yield ""
    name = re.sub(r"[^A-Za-z0-9_-]+", "-", _plain(dictionary.name)).strip("-_")[:60]
    yield f"name = {_text(name if re.match('[A-Za-z]', name) else 'tables')}"
    if title:
        yield f"title = {_text(title)}"
    if dictionary.is_fixed_width:
        yield f"dictionary = {_text(named)} # where the lines of the data hold each column"
    yield f"unit = {_text(unit.name)} # what is protected: one record of this file, with all that belongs to it"
    if len(chain) > 1:
        above = chain[1].name
        yield f"# To protect a record of {above} with all below it, name it as the unit, take out each fixed = true,"
        yield f"# and give each table a limit, such as limit = {{ per = {_text(above)}, most = 10 }}."
    yield 'neighbours = "add-remove" # what budgets refer to: a unit added or removed'
    yield 'privacy_defn = "zcdp" # budgets are rho'


def _file_lines(file: _DraftFile, fixed: set[str], lists_all: bool) -> Iterator[str]:  # noqa: FBT001 (private)
    yield ""
    yield f"[files.{_key(file.name)}]"
    yield f"record = {_text(file.record)}"
    if file.key:
        yield f"key = {_text(file.key)}"
    if file.parent:
        yield f"parent = {{ file = {_text(file.parent)}, column = {_text(file.link)} }}"
    if not file.domains:
        yield "columns = {}"
    labels = {item.name: item.label for item in file.items}
    for name, domain in file.domains.items():
        yield ""
        place = f"files.{_key(file.name)}.columns.{_key(name)}"
        # Long lists, as of occupations, are seldom complete. One record must not stop a release for that.
        is_complete = name in fixed or (lists_all and len(domain.codes) <= _FEW)
        yield from _column_lines(place, labels[name], domain, fixed=name in fixed, is_complete=is_complete)
    if file.unread:
        width = max(len(_comment(name)) for name, _ in file.unread)
        yield ""
        yield f"# Columns of {file.name} that are not read, and why:"
        for name, why in file.unread:
            label = _comment(labels[name])
            yield f"#   {_comment(name):<{width}}  {label + ': ' if label else ''}{why}"


def _column_lines(place: str, label: str, domain: _DraftDomain, *, fixed: bool, is_complete: bool) -> Iterator[str]:
    said = _comment(label)
    yield f"[{place}]{f' # {said}' if said else ''}"
    if domain.whole:
        remark = f" # {domain.remark}" if domain.remark else ""
        yield f"whole = [{domain.whole[0]}, {domain.whole[1]}]{remark}"
    if fixed:
        yield "fixed = true # no change of a unit below changes it"
    if domain.missing:
        yield f"missing = {_text(domain.missing)}"
    if domain.whole:
        return
    others = [word for word in _OTHERS if word not in {*domain.codes, domain.missing}]
    if others and not is_complete:
        yield f"others = {_text(others[0])}"
    # A table with the key "file" would name one.
    if not any(domain.codes.values()) or "file" in domain.codes:
        yield from _list("codes", [*domain.codes])
        return
    codes = {code: name or code for code, name in domain.codes.items()}
    inline = ", ".join(f"{_text(code)} = {_text(name)}" for code, name in codes.items())
    inline = f"codes = {{ {inline} }}"
    if len(inline) <= _WIDTH:
        yield inline
        return
    width = max(len(_text(code)) for code in codes)
    yield f"[{place}.codes]"
    for code, name in codes.items():
        yield f"{_text(code):<{width}} = {_text(name)}"


def _list(key: str, texts: Sequence[str]) -> Iterator[str]:
    """A list, on as many lines as it needs."""
    inline = f"{key} = [{', '.join(map(_text, texts))}]"
    if len(inline) <= _WIDTH:
        yield inline
        return
    yield f"{key} = ["
    line = "   "
    for text in map(_text, texts):
        if len(line) + len(text) + 2 > _WIDTH:
            yield line
            line = "   "
        line += f" {text},"
    yield line
    yield "]"


@dataclass(frozen=True, slots=True)
class _DraftRecode:
    name: str
    label: str
    column: str
    classes: dict[str, list[str]]
    incomplete: bool


def _recode_lines(files: Sequence[_DraftFile]) -> Iterator[str]:
    taken: set[str] = set()
    found = [one for file in files for item in file.items for one in _recodes(file, item, taken)]
    if found:
        yield ""
        yield "# Classes of values."
    for one in found:
        said = _comment(one.label)
        yield ""
        yield f"[recodes.{_key(one.name)}]{f' # {said}' if said else ''}"
        yield f"column = {_text(one.column)}"
        if one.incomplete:
            yield "incomplete = true # other values are in no class, and count in no cell by it"
        width = max(len(_key(label)) for label in one.classes)
        yield f"[recodes.{_key(one.name)}.classes]"
        for label, values in one.classes.items():
            key = f"{_key(label):<{width}}"
            yield from _list(key, values) if len(values) > 1 else [f"{key} = {_text(values[0])}"]


def _recodes(file: _DraftFile, item: DictionaryItem, taken: set[str]) -> Iterator[_DraftRecode]:
    """The sets of values of a column that have classes of several values."""
    domain = file.domains.get(item.name)
    if domain is None:
        return
    for number, of in enumerate(item.sets or (ValueSet("", "", item.values),)):
        labels = [_label(value.label) for value in of.values if value.label and value.first]
        is_coarser = any(value.label and _is_range(value) for value in of.values) or len(set(labels)) < len(labels)
        if not is_coarser:
            continue
        classes, incomplete = _classes(domain, of.values)
        name = next(name for name in _recode_names(of.name, item, number) if name.lower() not in taken)
        if len(classes) > 1:
            taken.add(name.lower())
            yield _DraftRecode(name, of.label or item.label, f"{file.name}.{item.name}", classes, incomplete)


def _recode_names(name: str, item: DictionaryItem, number: int) -> Iterator[str]:
    suffix = f"_{item.occurrence}" if item.occurrence else ""
    own = normal(f"{name}{suffix}")
    yield from ([own] if name and not fault_of(own, parted=False) else [])
    place = number
    while True:
        place += 1
        yield f"{normal(item.name)[:180]}_groups{place if place > 1 else ''}"


def _classes(domain: _DraftDomain, values: Iterable[ValueRange]) -> tuple[dict[str, list[str]], bool]:
    """Classes by label, each value in the first that names it; and whether some are in none."""
    place = {int(code): code for code in domain.codes} if _are_numbers(domain) else {}
    left = set(domain.codes)
    free: list[tuple[int, int]] = [domain.whole] if domain.whole else []
    found: dict[str, list[str]] = {}
    for value in values:
        ends = _ends(value)
        if not value.first or (ends is None and (domain.whole or place)):
            continue
        said = f"{value.first}-{value.last}" if _is_range(value) else value.first
        label = _label(value.label) or _label(said)
        if domain.whole and ends:
            own, free = _cut(free, *ends)
            some = [f"{low}-{high}" if low < high else str(low) for low, high in own]
        elif place and ends:
            some = [place[n] for n in sorted(place) if ends[0] <= n <= ends[1] and place[n] in left]
            left.difference_update(some)
        else:
            some = [value.first] if value.first in left else []
            left.discard(value.first)
        if some and label:
            found.setdefault(label, []).extend(some)
    incomplete = bool(left if not domain.whole else free)
    if domain.missing and found and domain.missing not in found:
        found[domain.missing] = [domain.missing]
    return found, incomplete


def _are_numbers(domain: _DraftDomain) -> bool:
    return bool(domain.codes) and all(re.fullmatch(r"-?\d{1,18}", code, re.ASCII) for code in domain.codes)


def _cut(free: Sequence[tuple[int, int]], low: int, high: int) -> tuple[list[tuple[int, int]], list[tuple[int, int]]]:
    """What of some ranges lies between two numbers, and what is left of them."""
    own, rest = [], []
    for first, last in free:
        if max(first, low) <= min(last, high):
            own.append((max(first, low), min(last, high)))
        for one, other in ((first, min(last, low - 1)), (max(first, high + 1), last)):
            if one <= other and (one, other) not in rest:
                rest.append((one, other))
    return own, rest


def _area_lines(
    dictionary: Dictionary, files: Sequence[_DraftFile], areas: Sequence[tuple[str, list[str]]]
) -> Iterator[str]:
    names = {name.lower() for name, _ in areas}
    yield ""
    yield "# Areas. Every kind of areas is a level of its name, too."
    yield ""
    whole = _everything(names)
    yield f"[areas.{whole}]"
    yield f"code = {_text(whole)}"  # which is no code of another area
    yield f"labels = {{ {whole} = {_text(_label(dictionary.label) or _ALL)} }}"
    of = {file.name: file for file in files}
    for name, columns in areas:
        file, _, column = columns[-1].partition(".")
        yield ""
        number = prod(of[one.partition(".")[0]].domains[one.partition(".")[2]].size for one in columns)
        yield f"[areas.{_key(name)}] # {number:,}"
        if len(columns) == 1 and of[file].domains[column].codes:
            yield f"column = {_text(columns[0])}"
        else:
            yield from _list("columns", columns)
    level = next((file for file in files if file.is_level), None)
    nested = {columns[-1] for _, columns in areas}
    rest = [item.name for item in level.items if f"{level.name}.{item.name}" not in nested] if level else []
    if level and rest:
        yield ""
        yield f"# Other ids of {level.name} name too many areas, or none: {', '.join(rest)}."


def _everything(taken: set[str]) -> str:
    return next(name for name in ("country", "all", "everything", "the-whole") if name not in taken)


def _table_lines(unit: _DraftFile, areas: Sequence[tuple[str, list[str]]], in_areas: set[str]) -> Iterator[str]:
    few = [
        item
        for item in unit.items
        if (domain := unit.domains.get(item.name))
        and domain.codes
        and 2 <= domain.size <= _FEW
        and f"{unit.name}.{item.name}" not in in_areas
    ]
    item = next((one for one in few if _SEX & {*_words(one.name), *_words(one.label)}), next(iter(few), None))
    whole = _everything({name.lower() for name, _ in areas})
    levels = [whole, *(name for name, _ in areas[:1])]
    title = _label(unit.name)
    yield ""
    yield "# What is counted. The sensitivity of each table is derived (docs/tables-privacy.md)."
    yield ""
    yield "[tables.first]"
    by = f" by {_label(item.label) or item.name}" if item else ""
    yield f"title = {_text(title + by)}"
    yield f"counts = {_text(unit.name)}"
    if item:
        yield from _list("by", [f"{unit.name}.{item.name}"])
        yield "margins = { first_total = [] }"
    budget = ", ".join(f'{_key(level)} = "1/10"' for level in levels)
    others = ", ".join(name for name, _ in areas[1:])
    yield f"budget = {{ {budget} }}{f' # also possible: {others}' if others else ''}"


def _text(text: str) -> str:
    """A text of TOML."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def _key(name: str) -> str:
    return name if re.fullmatch(r"[A-Za-z0-9_-]+", name) else _text(name)


def _comment(text: str) -> str:
    """A text as a comment may hold it."""
    return "".join(one if one.isprintable() else " " for one in text).strip()
