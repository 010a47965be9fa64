"""Which areas the blocks lie in, from files beside the reference file: the Bureau's, or any table. Public."""

import re
from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Final

import numpy as np

from yupana.arrays import Flags, Ints
from yupana.errors import InputError
from yupana.files.code_tables import open_codes
from yupana.files.delimited import DelimitedFile, Labels, positions
from yupana.geography.blocks import Reference, read_reference, refuse_repeated
from yupana.geography.header import begins_as_header, open_blocks
from yupana.geography.kinds import (
    BLOCK_COLUMNS,
    BLOCK_WIDTH,
    KINDS,
    TOLD,
    BureauKind,
    block_column,
    block_names,
    is_block,
    kind_of,
    on_lost_zeros,
    written_blocks,
)
from yupana.geography.published import PublishedBlocks, published_blocks
from yupana.geography.settings import AREAS, PLACES, QUARTERS, SCHOOLS
from yupana.geography.vintages import vintage_of

_BUREAU: Final = re.compile(r"BlockAssign_ST\d{2}_[A-Z]{2}_(\w+)", re.IGNORECASE)
"""Block assignment files of the Bureau. The kind is in the name, and the code in a column of another name."""

_BUREAU_CODES: Final = ("DISTRICT", "PLACEFP", "COUSUBFP", "AIANNHCE")
_NAME: Final = re.compile(r"[A-Za-z][A-Za-z0-9_]{0,39}")
_SHOWN: Final = 3
_REFERENCE: Final = "the reference file"
_RELEASE: Final = "the release"


@dataclass(frozen=True, slots=True)
class Assignment:
    """What a file says of one kind of areas."""

    kind: str
    file: str  # its name
    areas: int  # how many areas the blocks of the reference file lie in
    unknown: int  # how many of its blocks the reference file does not have; they are passed over
    example: str  # one of these, or `""`
    listed: str = _REFERENCE  # what lists the blocks, in words
    restored: str = ""  # which codes got a leading zero back that they had lost, or `""`

    @property
    def remark(self) -> str:
        """What whoever runs it should know, or ``""``."""
        passed = (
            f"{self.file}: {self.unknown:,} of its blocks are not in {self.listed} and were passed over, such as "
            f"{self.example}"
        )
        return "; ".join(one for one in (passed if self.unknown else "", self.restored) if one)


def read_with_areas(
    path: Path, classes: Iterable[str], files: Iterable[Path], *, schools: bool, encoding: str | None = None
) -> tuple[Reference, tuple[Assignment, ...]]:
    """Read a reference file with the areas that other files tell of its blocks.

    Parameters
    ----------
    path : Path
        The reference file.
    classes : iterable of str
        Classes of entities of a spine; those that are neither settings nor told by ``files`` are columns to read.
    schools : bool
        Whether the columns of school districts must be there, too.
    encoding : str, optional
        Of the text of ``files``; see `open_codes`.

    Raises
    ------
    InputError
        As `read_reference` and `assign`.
    """
    files = tuple(files)
    told = {kind for file in files for kind in kinds_of(file, encoding)}
    columns = [name for name in classes if name not in {PLACES, AREAS, QUARTERS, SCHOOLS} and name not in told]
    return assign(read_reference(path, columns, schools=schools), files, encoding)


def kinds_of(path: Path, encoding: str | None = None) -> tuple[str, ...]:
    """The kinds of areas that a file tells."""
    with _opened(path, encoding) as file:
        return tuple(_kinds(file).values())


def _opened(path: Path, encoding: str | None) -> AbstractContextManager[DelimitedFile]:
    """A table of blocks and areas, or the blocks of a geographic header."""
    if begins_as_header(path):
        return open_blocks(path)
    return open_codes(path, encoding=encoding, names_of=partial(_without_names, path))


def _without_names(path: Path, fields: Sequence[str]) -> tuple[str, ...] | None:
    """The columns of a block assignment file that does not name them."""
    if not any(map(is_block, fields)):
        return None
    if _BUREAU.match(path.name) and (found := block_names(fields)):
        return found
    raise InputError(f"{path}, line 1: holds codes; it must name the columns: block, and each kind of areas")


def assign(
    reference: Reference, paths: Iterable[Path], encoding: str | None = None
) -> tuple[Reference, tuple[Assignment, ...]]:
    """Add the kinds of areas that files tell to the blocks of a reference file.

    A file is a table (`open_codes`) with a column of blocks, of 15 or 16 digits, and a column for each kind, empty or
    all nines for none; or a block assignment file of the Bureau, whose name says the kind; or a geographic header of
    P.L. 94-171, which tells every kind that it has in the records of its blocks (`open_blocks`). Codes of the Bureau's
    kinds may be those within the state or county, or whole identifiers; they become whole identifiers. Codes of other
    kinds are any texts.

    Parameters
    ----------
    encoding : str, optional
        Of their text.

    Raises
    ------
    InputError
        If a file is no such table, a block is listed twice, blocks of the reference file are missing, a code is none of
        its kind, a kind is told twice, or places and the like are told otherwise than by the reference file.
    """
    given, found = _told(paths, published_blocks(reference, nation=False), _REFERENCE, encoding)
    columns = MappingProxyType({**reference.columns, **given})
    return replace(reference, columns=columns, assigned=tuple(given)), found


def assign_published(
    published: PublishedBlocks, paths: Iterable[Path], encoding: str | None = None
) -> tuple[PublishedBlocks, tuple[Assignment, ...]]:
    """Add the kinds of areas that files tell to the blocks of a release, as `assign` does to those of a reference file.

    Raises
    ------
    InputError
        As by `assign`.
    """
    given, found = _told(paths, published, _RELEASE, encoding)
    return replace(published, kinds={**published.kinds, **given}), found


def _told(
    paths: Iterable[Path], known: PublishedBlocks, listed: str, encoding: str | None
) -> tuple[dict[str, Labels], tuple[Assignment, ...]]:
    """The area of each block, by kind, and what each file said; nothing else than is known of the blocks."""
    columns, found = dict[str, Labels](), list[Assignment]()
    for path in paths:
        for kind, column, assignment in _read(path, known.block, listed, encoding):
            if told := [one.file for one in found if one.kind.lower() == kind.lower()]:
                raise InputError(f"{path}: {kind} is told by {told[0]}, too; name one of them")
            columns[kind] = column
            found.append(assignment)
    for one in found:
        if one.kind in known.kinds:
            _compare(one, known, columns[one.kind], listed)
    return columns, tuple(found)


def _read(path: Path, known: Ints, listed: str, encoding: str | None) -> list[tuple[str, Labels, Assignment]]:
    strict = begins_as_header(path)
    with _opened(path, encoding) as file:
        named = block_column(file)
        block, lost = written_blocks(file, named).whole(known)
        refuse_repeated(file, named, block)
        at = positions(block, known)
        unknown = np.flatnonzero(at < 0)
        missing = np.delete(known, at[at >= 0])
        if len(missing):
            shown = ", ".join(f"{code:016d}" for code in missing[:_SHOWN].tolist())
            vintage = f"; {len(unknown):,} are in the file alone: {vintage_of(block[unknown], known)}"
            raise InputError(
                f"{path}: {len(missing):,} of {len(known):,} blocks of {listed} are missing, such as "
                f"{shown}{vintage if len(unknown) else ''}. Give every block a row, with an empty field for no area"
            )
        example = f"{block[unknown[0]]:016d}" if len(unknown) else ""
        found, there = [], at >= 0
        rows = np.full(len(known), -1, dtype=np.int64)
        rows[at[there]] = np.flatnonzero(there)
        for name, kind in _kinds(file).items():
            texts = file.texts(name, whole=True)
            column = _used(Labels.at(at[there], len(known), texts.index[there], texts.labels))
            short = np.zeros(len(known), dtype=np.bool_)
            if kind in KINDS:
                column, short = _identifiers(file, name, kind, known, column, rows, strict=strict)
            restored = [on_lost_zeros(file, named, lost), on_lost_zeros(file, name, short[at] & there)]
            said = "; ".join(filter(None, restored))
            told = Assignment(kind, path.name, len(column.labels), len(unknown), example, listed, said)
            found.append((kind, column, told))
        return found


def _kinds(file: DelimitedFile) -> dict[str, str]:
    """The kind that each column tells."""
    others = [name for name in file.header if name and name.lower() not in BLOCK_COLUMNS and name != block_column(file)]
    bureau = _BUREAU.match(file.path.name)
    if bureau:
        kind = kind_of(bureau[1])
        codes = [name for name in others if name.upper() in _BUREAU_CODES]
        if kind not in KINDS or len(codes) != 1:
            raise InputError(
                f"{file.path}: not a block assignment file that is known; it needs one of the columns "
                f"{', '.join(_BUREAU_CODES)}, and a name such as BlockAssign_ST44_RI_VTD.txt"
            )
        return {codes[0]: kind}
    found = {name: kind_of(name) for name in others}
    if not found:
        raise InputError(f"{file.path}, line 1: no column but that of blocks; name a column for each kind of areas")
    for name, kind in found.items():
        if kind in TOLD:
            raise InputError(f"{file.path}, column {name}: {kind} is told by the digits of the block or by other kinds")
        if not _NAME.fullmatch(kind):
            raise InputError(
                f"{file.path}, line 1: a kind of areas cannot be called {name!r}; begin with a letter, and use "
                "letters, digits and _ alone, 40 at most"
            )
        if [other for other in found.values() if other.lower() == kind.lower()] != [kind]:
            raise InputError(f"{file.path}, line 1: {kind} is told by two columns")
    return found


def _used(column: Labels) -> Labels:
    """A column without the texts that no block of the reference file has."""
    kept, index = np.unique(column.index, return_inverse=True)
    none = int(len(kept) > 0 and kept[0] < 0)
    return Labels((index - none).astype(np.int32), tuple(column.labels[i] for i in kept[none:].tolist()))


def _identifiers(
    file: DelimitedFile, name: str, kind: str, block: Ints, column: Labels, rows: Ints, *, strict: bool
) -> tuple[Labels, Flags]:
    """Whole identifiers of the areas of one of the Bureau's kinds, and of which blocks they had lost a leading zero."""
    told = KINDS[kind]
    width = told.outer
    before = block // 10 ** (BLOCK_WIDTH - width)
    some = np.flatnonzero(column.index >= 0)
    pairs, first, place = np.unique(
        before[some] * (len(column.labels) or 1) + column.index[some], return_index=True, return_inverse=True
    )
    written, lost = [], []
    for pair, at in zip(pairs.tolist(), some[first].tolist(), strict=True):
        prefix = f"{pair // len(column.labels):0{width}d}" if width else ""
        given = column.labels[pair % len(column.labels)]
        code = given if strict else _with_zeros(given, told, prefix)
        lost.append(code != given)
        whole = code if len(code) > told.most and code.startswith(prefix) else prefix + code
        if not told.least <= len(whole) - width <= told.most:
            size = f"{told.least}" if told.least == told.most else f"{told.least} to {told.most}"
            rest = f", or these after the {width} digits of its {told.within}, here {prefix}" if width else ""
            raise file.fault(int(rows[at]), name, f"{given!r} is no {kind}: its code has {size} characters{rest}")
        written.append(whole)
    short = np.zeros(len(block), dtype=np.bool_)
    short[some] = np.array(lost, dtype=np.bool_)[place]
    return Labels.at(some, len(block), place, ()).relabelled(written), short


def _with_zeros(code: str, kind: BureauKind, prefix: str) -> str:
    """A code of digits with the leading zeros that it lost, where all codes of its kind are as long."""
    if not code.isdecimal() or kind.least < kind.most:
        return code
    whole = code.zfill(kind.most if len(code) < kind.most else len(prefix) + kind.most)
    return whole if len(whole) == kind.most or whole.startswith(prefix) else code


def _compare(one: Assignment, published: PublishedBlocks, given: Labels, listed: str) -> None:
    """Refuse a file that puts blocks into other areas than the list of blocks does."""
    known = published.kinds[one.kind]
    names = np.array([*known.labels, ""], dtype=object), np.array([*given.labels, ""], dtype=object)
    differs = np.flatnonzero(names[0][known.index] != names[1][given.index])
    if len(differs):
        at = int(differs[0])
        here, there = (of[column.index[at]] or "none" for of, column in zip(names, (known, given), strict=True))
        raise InputError(
            f"{one.file}: {len(differs):,} blocks lie in another {one.kind} than {listed} says, such as "
            f"{published.block[at]:016d}: {there} here, {here} there; is it of another vintage?"
        )
