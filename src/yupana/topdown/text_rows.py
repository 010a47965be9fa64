"""Rows of the large files of a release in compiled loops: numbers to text, and text compared with numbers. Public.

A row has two texts, out of lists of few, and then whole numbers; or it is a record, of which there are several alike.
The loops run without the interpreter's lock, so that threads make or read several stretches of rows side by side.
"""

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from yupana.arrays import Ints
from yupana.compiled import compiled, compiled_part, compiled_step
from yupana.files.arrow_stream import TextColumn, letters
from yupana.release.lines import texts
from yupana.topdown.histogram import Cells, Histogram
from yupana.topdown.queries import Schema

Bytes = NDArray[np.uint8]

NO_NUMBER: Final = -1
"""Instead of the number of the first record, where records have none."""

_DIGITS: Final = 9
"""How many digits the number of a record has at least."""

_BAR, _END, _ZERO = ord("|"), ord("\n"), ord("0")
_MOST: Final = 20
"""Digits of a number and a separator, at most."""


@dataclass(frozen=True, slots=True)
class NumberForm:
    """What stands for each number of a row."""

    shown: bool = True  # the number itself
    bounded: bool = False  # two ends in order, from 0 on, and half of what lies between them, rounded up


def lay_rows(first: TextColumn, second: TextColumn, numbers: Ints) -> Bytes:
    """The text of rows of two texts and whole numbers from 0 on, ``|`` between, each with the end of its line.

    Parameters
    ----------
    numbers : ndarray of int64, shape (rows, numbers)
    """
    out = np.empty(most_bytes(first, second, numbers, NumberForm()), dtype=np.uint8)
    return out[: _lay_rows(letters(first.texts), first.at, letters(second.texts), second.at, numbers, out)]


def most_bytes(first: TextColumn, second: TextColumn, numbers: Ints, form: NumberForm, more: int = 0) -> int:
    """How many bytes rows have at most, where ends of intervals have at most so many digits more than the numbers."""
    size = len(str(int(numbers.max(initial=0)))) + 1
    each = size * form.shown + 3 * (size + more) * form.bounded
    return len(first.at) * int(first.texts.itemsize + second.texts.itemsize + 2 + numbers.shape[1] * each)


def lay_records(first: TextColumn, second: TextColumn, times: Ints, number: int) -> Bytes:
    """The text of records of two texts, with a running number of nine digits between them if there is one.

    Parameters
    ----------
    times : ndarray of int64, shape (rows,)
        How many records there are of each row.
    number : int
        That of the first record, or `NO_NUMBER`.
    """
    most = int(times.sum()) * (first.texts.itemsize + second.texts.itemsize + 3 + _MOST)
    out = np.empty(most, dtype=np.uint8)
    return out[: _lay_records(letters(first.texts), first.at, letters(second.texts), second.at, times, number, out)]


def match_rows(text: Bytes, first: TextColumn, second: TextColumn, numbers: Ints, form: NumberForm) -> int:
    """How many bytes rows take at the beginning of a text; -1 if it does not begin with them."""
    given = letters(first.texts), first.at, letters(second.texts), second.at, numbers
    return int(_match_rows(text, *given, int(form.shown), int(form.bounded)))


def parse_counts(text: Bytes, rows: int, width: int, schema: Schema) -> tuple[Ints, Cells, Ints] | None:
    """Read rows of a file of counts whose areas are named by digits; None if the text is not these rows and no more.

    Parameters
    ----------
    text : ndarray of uint8
    width : int
        Digits of an area.

    Returns
    -------
    tuple of ndarray, each of shape (rows,), or None
        Areas as numbers, cells, and counts above 0.
    """
    labels = texts(label for attribute in schema.attributes for label in attribute.labels)
    places = np.cumsum([0, *schema.shape])
    found = np.empty(rows, dtype=np.int64), np.empty(rows, dtype=np.int32), np.empty(rows, dtype=np.int64)
    end = _parse_counts(text, width, letters(labels), places, *found)
    return found if end == len(text) else None


def variables(histogram: Histogram, member: Ints, size: int) -> Ints:
    """Sums over the cells of each unit, of shape (units, size); parameters are those of `CountIntervals.of_table`."""
    out = np.zeros((histogram.units, size), dtype=np.int64)
    _add_variables(histogram.starts, histogram.cells, histogram.counts, np.ascontiguousarray(member), out)
    return out


@compiled
def _add_variables(starts: Ints, cells: Cells, counts: Ints, member: Ints, out: Ints) -> None:
    for unit in range(len(starts) - 1):
        for entry in range(starts[unit], starts[unit + 1]):
            for place in range(member.shape[1]):
                variable = member[cells[entry], place]
                if variable >= 0:
                    out[unit, variable] += counts[entry]


@compiled_step
def _put_text(out: Bytes, end: int, letters: Bytes, which: int) -> int:
    for place in range(letters.shape[1]):
        if letters[which, place] == 0:
            break
        out[end] = letters[which, place]
        end += 1
    return end


@compiled_step
def _put_number(out: Bytes, end: int, value: int, least: int) -> int:
    """Write a number with so many digits at least."""
    size, rest = 1, value
    while rest >= 10:
        rest //= 10
        size += 1
    size = max(size, least)
    for place in range(end + size - 1, end - 1, -1):
        rest = value // 10
        out[place] = _ZERO + value - 10 * rest
        value = rest
    return end + size


@compiled_step
def _hash_on(mixed: int, letter: int) -> int:
    return (mixed ^ letter) * 1099511628211


@compiled_part
def _listed(labels: Bytes, places: Ints) -> Ints:
    """The labels of all attributes in a table by their hash, -1 where none is; its length is a power of two."""
    size = 2
    while size < 4 * len(labels):
        size *= 2
    slots = np.full(size, -1, dtype=np.int64)
    for attribute in range(len(places) - 1):
        for which in range(places[attribute], places[attribute + 1]):
            mixed = attribute
            for place in range(labels.shape[1]):
                if labels[which, place] == 0:
                    break
                mixed = _hash_on(mixed, labels[which, place])
            slot = mixed & (size - 1)
            while slots[slot] >= 0:
                slot = (slot + 1) & (size - 1)
            slots[slot] = which
    return slots


@compiled
def _parse_counts(text: Bytes, width: int, labels: Bytes, places: Ints, codes: Ints, cells: Cells, counts: Ints) -> int:
    end = 0
    slots = _listed(labels, places)
    for row in range(len(codes)):
        code = 0
        for _ in range(width):
            if end >= len(text) or text[end] < _ZERO or text[end] >= _ZERO + 10:
                return -1
            code = 10 * code + text[end] - _ZERO
            end += 1
        end = _read_sign(text, end, _BAR)
        cell = 0
        for attribute in range(len(places) - 1):
            begin, mixed = end, attribute
            while end < len(text) and text[end] != _BAR:
                mixed = _hash_on(mixed, text[end])
                end += 1
            slot = mixed & (len(slots) - 1)
            first, last = places[attribute], places[attribute + 1]
            while slots[slot] >= 0:
                which = slots[slot]
                if first <= which < last and _read_text(text, begin, labels, which) == end:
                    break
                slot = (slot + 1) & (len(slots) - 1)
            if slots[slot] < 0:
                return -1
            end = _read_sign(text, end, _BAR)
            cell = cell * (last - first) + slots[slot] - first
        count, end = _read_any(text, end)
        end = _read_sign(text, end, _END)
        if end > len(text) or count <= 0:
            return -1
        codes[row], cells[row], counts[row] = code, cell, count
    return end


@compiled
def _lay_rows(first: Bytes, at: Ints, second: Bytes, which: Ints, numbers: Ints, out: Bytes) -> int:
    end = 0
    for row in range(len(at)):
        end = _put_text(out, end, first, at[row])
        out[end] = _BAR
        end = _put_text(out, end + 1, second, which[row])
        for column in range(numbers.shape[1]):
            out[end] = _BAR
            end = _put_number(out, end + 1, numbers[row, column], 1)
        out[end] = _END
        end += 1
    return end


@compiled
def _lay_records(first: Bytes, at: Ints, second: Bytes, which: Ints, times: Ints, number: int, out: Bytes) -> int:
    end = 0
    for row in range(len(at)):
        for _ in range(times[row]):
            end = _put_text(out, end, first, at[row])
            out[end] = _BAR
            end += 1
            if number >= 0:
                end = _put_number(out, end, number, _DIGITS)
                out[end] = _BAR
                end += 1
                number += 1
            end = _put_text(out, end, second, which[row])
            out[end] = _END
            end += 1
    return end


@compiled_step
def _read_text(text: Bytes, at: int, letters: Bytes, which: int) -> int:
    """Where a text ends that should stand here; beyond the end of all if it does not."""
    for place in range(letters.shape[1]):
        if letters[which, place] == 0:
            break
        if at >= len(text) or text[at] != letters[which, place]:
            return len(text) + 1
        at += 1
    return at


@compiled_step
def _read_sign(text: Bytes, at: int, sign: int) -> int:
    return at + 1 if at < len(text) and text[at] == sign else len(text) + 1


@compiled_step
def _read_any(text: Bytes, at: int) -> tuple[int, int]:
    """A number that stands here, and where it ends; beyond the end of all if there is none."""
    begin, found = at, 0
    while at < len(text) and text[at] >= _ZERO and text[at] < _ZERO + 10 and at - begin < _MOST - 2:
        found = 10 * found + text[at] - _ZERO
        at += 1
    return (found, at) if at > begin else (found, len(text) + 1)


@compiled
def _match_rows(
    text: Bytes, first: Bytes, at: Ints, second: Bytes, which: Ints, numbers: Ints, shown: int, bounded: int
) -> int:
    end = 0
    for row in range(len(at)):
        end = _read_text(text, end, first, at[row])
        end = _read_sign(text, end, _BAR)
        end = _read_text(text, end, second, which[row])
        for column in range(numbers.shape[1]):
            if shown:
                begin = _read_sign(text, end, _BAR)
                found, end = _read_any(text, begin)
                if found != numbers[row, column] or (end - begin > 1 and text[begin] == _ZERO):
                    return -1
            if bounded:
                lower, end = _read_any(text, _read_sign(text, end, _BAR))
                upper, end = _read_any(text, _read_sign(text, end, _BAR))
                margin, end = _read_any(text, _read_sign(text, end, _BAR))
                if lower > upper or margin != (upper - lower) // 2 + (upper - lower) % 2:
                    return -1
        end = _read_sign(text, end, _END)
        if end > len(text):
            return -1
    return end
