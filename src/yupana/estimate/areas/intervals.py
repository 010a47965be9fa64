"""Counts of areas with intervals: from the published tables where they suffice, else by least squares. Public."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import partial
from math import prod
from pathlib import Path
from typing import Final

import numpy as np

from yupana.arrays import Floats, Ints
from yupana.errors import ConfigError, OutputError, YupanaError
from yupana.estimate.areas.queries import (
    AreaForm,
    AreaQuestion,
    AskedOfArea,
    Kept,
    WeightedCells,
    expanded,
    open_parts,
    questions_by_part,
    read_form,
)
from yupana.estimate.areas.released import ReleasedAreas, released_areas, short_block
from yupana.estimate.intervals.intervals import Interval
from yupana.estimate.intervals.selections import Counted, counted_in, list_labels, open_file
from yupana.estimate.results import AreaInterval, AreaIntervals
from yupana.estimate.topdown_release import file_of, path_of, schema_of
from yupana.files.database import named, open_database, unreadable
from yupana.geography.gazetteer import NamedArea
from yupana.geography.kinds import BLOCK_WIDTH, KINDS, NONE, TOLD
from yupana.products.topdown.tables import BOUNDS, COUNTS, INTERVALS_OF, TABLES, TABULATION, levels_of
from yupana.products.topdown.verify import cell_of
from yupana.release.release import ReleaseFolder
from yupana.topdown.interval_terms import IntervalTerms
from yupana.topdown.plan import DEFAULT_CONFIDENCE

ENDS: Final = BOUNDS[:2]
"""The columns of an interval; its margin follows from these."""


def _published_intervals(release: ReleaseFolder) -> IntervalTerms | None:
    """How the intervals of the tables were found; None if they have none."""
    told = release.manifest.get("parameters", {}).get("intervals")
    if told is None or told.get("method", "none") == "none":
        return None
    try:
        found = IntervalTerms(told["method"], Fraction(str(told["confidence"])), int(told.get("replicates", 0)))
        known = 0 < found.confidence < 1
    except (KeyError, ValueError, TypeError, ZeroDivisionError):
        known = False
    if not known:
        raise OutputError(f"{release.folder}: the manifest does not tell the confidence of the intervals of its tables")
    return found


def _in_words(terms: IntervalTerms) -> str:
    """The method in words."""
    words = {"monte-carlo": "approximate Monte Carlo", "least-squares": "least squares"}.get(terms.method, terms.method)
    return f"{words} of {terms.replicates} replicates" if terms.replicates else words


@dataclass(frozen=True, slots=True, eq=False)
class _TabulatedRows:
    """Rows of a long table, of some areas."""

    area: Ints  # shape (rows,): by its place among those asked for
    # shape (rows,): the cell of the schema in C order. Cells that are not there count 0.
    cell: Ints
    count: Ints
    ends: Ints | None  # shape (rows, 2), or None: `ENDS`

    def sums(self, cells: WeightedCells, shape: tuple[int, ...], areas: int) -> Floats:
        """A weighted sum of cells of every area, of shape (areas,)."""
        weighted = cells.at(self.cell, shape) * self.count
        return np.asarray(cells.constant + np.bincount(self.area, weights=weighted, minlength=areas))


@dataclass(frozen=True, slots=True, eq=False)
class _PublishedTables:
    """The tables of a release, and what is asked of them."""

    areas: ReleasedAreas
    words: Counted  # the schema and the tables that it gives
    intervals: IntervalTerms | None
    codes: Mapping[str, Mapping[str, int]]  # by kind, the place of each area that is asked for
    _rows: dict[str, _TabulatedRows] = field(default_factory=dict, init=False)
    _sums: dict[tuple[str, float, tuple[Kept, bytes]], Floats] = field(default_factory=dict, init=False)

    @property
    def release(self) -> ReleaseFolder:
        """Where they lie."""
        return self.areas.release

    def has(self, kind: str) -> bool:
        """Whether the areas of a kind are tabulated."""
        return file_of(self.release, f"{TABULATION}/{kind}") is not None

    def value(self, asked: AskedOfArea) -> int | float | None:
        """What is published; None of a ratio whose denominator is published as 0."""
        above, *below = (self._sum(asked.area.kind, one)[asked.place] for one in asked.form.sums)
        if asked.form.factor is not None:
            return asked.form.factor
        if below:
            return float(above / below[0]) if below[0] else None
        return int(above) if above == int(above) else float(above)

    def _sum(self, kind: str, cells: WeightedCells) -> Floats:
        """A sum for all areas of a kind that are asked for."""
        key = kind, cells.constant, cells.key
        if key not in self._sums:
            shape, areas = self.words.schema.shape, len(self.codes[kind])
            self._sums[key] = self.rows(kind).sums(cells, shape, areas)
        return self._sums[key]

    def rows(self, kind: str) -> _TabulatedRows:
        """The counts of all cells of the areas of a kind that are asked for, read once."""
        if kind not in self._rows:
            self._rows[kind] = self._rows_of(kind, tuple(self.codes[kind]))
        return self._rows[kind]

    def _rows_of(self, kind: str, codes: Sequence[str]) -> _TabulatedRows:
        """Those of its own table or, of a kind that is not tabulated, sums of those of its blocks."""
        published = self.areas.published
        if self.has(kind) or published is None:
            stem = f"{TABULATION if self.has(kind) else COUNTS}/{kind}"
            return self._read(stem, codes, np.arange(len(codes), dtype=np.int64))
        column = published.kinds[kind]
        place = {column.labels.index(code): at for at, code in enumerate(codes)}
        inside = np.flatnonzero(np.isin(column.index, list(place)))
        blocks = [f"{code:0{BLOCK_WIDTH}d}" for code in published.block[inside].tolist()]
        of_block = np.array([place[i] for i in column.index[inside].tolist()], dtype=np.int64)
        return self._read(f"{TABULATION}/block", blocks, of_block)

    def _read(self, stem: str, geounits: Sequence[str], area: Ints) -> _TabulatedRows:
        """Rows of a file by geounit, each geounit in an area; several geounits of one area are added up."""
        path = path_of(self.release, stem)
        attributes = self.words.schema.attributes
        with open_database() as db:
            columns = open_file(db, "tabulated", path)
            if columns[: len(attributes) + 2] != ["geounit", *(one.name for one in attributes), "count"]:
                raise OutputError(f"{path} is no tabulation of the schema that the manifest names")
            cell = cell_of(attributes)
            list_labels(db, "wanted", list(geounits))
            ends = [end for end in ENDS if end in columns]
            picked = "".join(f", {named(end)}::BIGINT AS {named(end)}" for end in ends)
            with unreadable(OutputError(f"{path} is not readable as counts")):
                found = db.execute(
                    f'SELECT wanted.place AS place, {cell} AS cell, "count"::BIGINT AS number{picked} FROM tabulated '
                    f"JOIN wanted ON wanted.label = geounit WHERE {cell} IS NOT NULL"
                ).fetchnumpy()
        place, cells, count = (np.asarray(found[column], dtype=np.int64) for column in ("place", "cell", "number"))
        alone = len(ends) == len(ENDS) and len(area) == len(np.unique(area))
        bounds = np.stack([np.asarray(found[end], dtype=np.int64) for end in ENDS], axis=1) if alone else None
        return _TabulatedRows(area[place], cells, count, bounds)

    def variables(self) -> dict[tuple[tuple[int, ...], bytes], tuple[str, str]]:
        """Which variable, by table, is a sum of cells, as `WeightedCells.key`, if the tables have intervals of it."""
        found: dict[tuple[tuple[int, ...], bytes], tuple[str, str]] = {}
        for table in self.words.tables:
            if file_of(self.release, f"{TABLES}/{table.name}{INTERVALS_OF}") is not None:
                for variable in table.variables:
                    found.setdefault(read_form(variable, self.words).above.key, (table.name, variable))
        return found

    def ends_of(self, kind: str, table: str, variables: Sequence[str]) -> Mapping[str, Ints]:
        """The intervals of variables of a table: for each an array of shape (areas, 2), of `ENDS`."""
        path = path_of(self.release, f"{TABLES}/{table}{INTERVALS_OF}")
        level = levels_of(self.areas.gazetteer.kinds)[kind]
        codes = self.codes[kind]
        geocodes = [short_block(code) if kind == "block" else code for code in codes]
        wanted = [f"{variable}_{end}" for variable in variables for end in ENDS]
        with open_database() as db:
            columns = open_file(db, "ends", path)
            if missing := [column for column in ("SUMLEV", "GEOCODE", *wanted) if column not in columns]:
                raise OutputError(f"{path} has no column {missing[0]}")
            list_labels(db, "wanted", geocodes)
            picked = "".join(f", {named(column)}::BIGINT AS {named(column)}" for column in wanted)
            with unreadable(OutputError(f"{path} is not readable as a table of intervals")):
                found = db.execute(
                    f"SELECT wanted.place AS place{picked} FROM ends JOIN wanted ON wanted.label = GEOCODE "
                    "WHERE SUMLEV = ?",
                    [level],
                ).fetchnumpy()
        place = np.asarray(found["place"], dtype=np.int64)
        if len(place) != len(codes) or len(np.unique(place)) != len(codes):
            raise OutputError(f"{path} does not have one row for every {kind} that is asked for; run yupana check")
        order = np.argsort(place)
        return {
            variable: np.stack([np.asarray(found[f"{variable}_{end}"], dtype=np.int64)[order] for end in ENDS], axis=1)
            for variable in variables
        }


def area_intervals(
    release: Path,
    questions: Sequence[AreaQuestion],
    *,
    files: Sequence[Path] = (),
    confidence: Fraction | None = None,
    noisy: Path | None = None,
    others: Sequence[str] = (),
    encoding: str | None = None,
) -> AreaIntervals:
    """Answer queries of areas, as `releases.intervals` tells; ``others`` names what the questions hold besides."""
    opened, parts = open_parts(release)
    answer = partial(_of_release, files=files, confidence=confidence, encoding=encoding)
    found = _of_parts(opened, questions, noisy, answer) if parts else answer(opened, questions, noisy)
    return replace(found, others=tuple(others))


def _of_parts(
    release: ReleaseFolder,
    questions: Sequence[AreaQuestion],
    noisy: Path | None,
    answer: Callable[[ReleaseFolder, Sequence[AreaQuestion], Path | None], AreaIntervals],
) -> AreaIntervals:
    """Answers of a release of several parts, each question put to the one that counts what it asks for."""
    words = {name: counted_in(schema_of(part)[0]) for name, part in release.parts.items()}
    asked = questions_by_part(questions, words)
    found: dict[str, AreaIntervals] = {}
    for name in dict.fromkeys(part for part, _ in asked):
        mine = [question for part, question in asked if part == name]
        own = noisy / name if noisy is not None and (noisy / name).is_dir() else noisy
        found[name] = answer(release.parts[name], mine, own)
    if len({one.confidence for one in found.values()}) > 1:
        told = ", ".join(f"{name} of {_percent(one.confidence)}" for name, one in found.items())
        raise ConfigError(f"the intervals of the parts are of several confidences: {told}; name one with --confidence")
    left = {name: iter(one) for name, one in found.items()}
    notes = dict.fromkeys(note for one in found.values() for note in one.notes)
    level = next(iter(found.values())).confidence
    answers = tuple(next(left[name]) for name, _ in asked)
    return AreaIntervals(release.name, str(release.manifest.get("status")), level, answers, tuple(notes))


def _of_release(
    opened: ReleaseFolder,
    questions: Sequence[AreaQuestion],
    noisy: Path | None,
    *,
    files: Sequence[Path],
    confidence: Fraction | None,
    encoding: str | None,
) -> AreaIntervals:
    areas = released_areas(opened, files, encoding)
    words, told = counted_in(schema_of(opened)[0]), _published_intervals(opened)
    asked, codes = _understood(questions, areas, words)
    tables = _PublishedTables(areas, words, told, codes)
    level = confidence or (told.confidence if told else None) or opened.confidence or DEFAULT_CONFIDENCE
    found = _from_tables(asked, tables, level)
    notes = list(_NOTES.get(told.method, ())) if told and found else []
    if open_ := [number for number in range(len(asked)) if number not in found]:
        if noisy is None:
            raise ConfigError(_missing(asked[open_[0]], len(open_), tables, level))
        # It loads the compiler, for which what the tables answer does not wait.
        from yupana.estimate.areas.least_squares import intervals_by_least_squares  # noqa: PLC0415
        from yupana.estimate.intervals.tree import open_tree  # noqa: PLC0415

        measurements = open_tree(opened, noisy)
        found |= intervals_by_least_squares(
            {number: asked[number] for number in open_}, measurements, areas, codes, level
        )
        notes += measurements.notes
    answers = [
        AreaInterval(one.area, tables.value(one), found[number], one.question.others)
        for number, one in enumerate(asked)
    ]
    notes += _on_published(answers, opened)
    notes += [one.remark for one in areas.assigned if one.remark] + _on_areas(asked, areas)
    status = str(opened.manifest.get("status"))
    return AreaIntervals(opened.name, status, level, tuple(answers), tuple(notes))


def _on_published(answers: Sequence[AreaInterval], opened: ReleaseFolder) -> list[str]:
    """How many intervals do not hold the published count, why, and how to get those that lie about it."""
    apart = sum(one.holds_published is False for one in answers)
    if not apart:
        return []
    verb = "does" if apart == 1 else "do"
    return [
        f"{apart:,} of {len(answers):,} intervals {verb} not hold the published count: they are of the true count, and "
        "lie about the estimate of least squares; the published count was made non-negative and consistent. Intervals "
        f"about the published counts are made by: yupana topdown intervals {opened.folder} OUT --method monte-carlo"
    ]


def _understood(
    questions: Sequence[AreaQuestion], areas: ReleasedAreas, words: Counted
) -> tuple[list[AskedOfArea], dict[str, dict[str, int]]]:
    """The questions, tables taken apart, and by kind the place of each code that is asked for."""
    known: dict[str, NamedArea] = {}
    forms: dict[str, AreaForm] = {}
    codes: dict[str, dict[str, int]] = {}
    found = []
    for question in questions:
        try:
            if question.area not in known:
                known[question.area] = areas.gazetteer.find(question.area)
            area = known[question.area]
            place = codes.setdefault(area.kind, {}).setdefault(area.code, len(codes[area.kind]))
            for query in expanded(question.query, words):
                if query not in forms:
                    forms[query] = read_form(query, words)
                found.append(AskedOfArea(replace(question, query=query), area, place, forms[query]))
        except YupanaError as error:
            raise type(error)(f"{question.where}{error}") from None
    return found, codes


def _from_tables(asked: Sequence[AskedOfArea], tables: _PublishedTables, level: Fraction) -> dict[int, Interval]:
    """The intervals that stand beside published counts, by the number of the question."""
    told = tables.intervals
    if told is None or told.confidence != level:
        return {}
    variables, cells = tables.variables(), prod(tables.words.schema.shape)
    found: dict[int, Interval] = {}
    wanted: dict[tuple[str, str], dict[str, list[int]]] = {}
    # The row of each area and cell, as one number.
    places = {
        kind: {key: row for row, key in enumerate((of.area * cells + of.cell).tolist())}
        for kind in tables.codes
        if (of := tables.rows(kind)).ends is not None
    }
    for number, one in enumerate(asked):
        kind, form = one.area.kind, one.form
        if form.below is not None or form.above.constant or not tables.has(kind):
            continue
        if (variable := variables.get(form.above.key)) is not None:
            wanted.setdefault((kind, variable[0]), {}).setdefault(variable[1], []).append(number)
        elif kind in places and (cell := form.above.cell(tables.words.schema.shape)) is not None:
            row = places[kind].get(one.place * cells + cell)
            ends = tables.rows(kind).ends
            if row is not None and ends is not None:
                found[number] = _read(one, ends[row], f"{TABULATION}/{kind}", _in_words(told))
    for (kind, table), by_variable in wanted.items():
        ends_of = tables.ends_of(kind, table, tuple(by_variable))
        for variable_name, numbers in by_variable.items():
            for number in numbers:
                ends = ends_of[variable_name][asked[number].place]
                found[number] = _read(asked[number], ends, f"{TABLES}/{table}{INTERVALS_OF}", _in_words(told))
    return found


def _read(asked: AskedOfArea, ends: Ints, where: str, how: str) -> Interval:
    pieces = ((float(ends[0]), float(ends[1])),)
    return Interval(asked.question.query, None, None, pieces, asked.form.cells, f"{how}, in {where}")


def _missing(asked: AskedOfArea, number: int, tables: _PublishedTables, level: Fraction) -> str:
    """Why there is no interval of a question, and what would give it."""
    folder, told, form = tables.release.folder, tables.intervals, asked.form
    by_noise = "the noisy measurements of its run, with --noisy-measurements DIR"
    value = tables.value(asked)
    count = "" if value is None else f" {value:,} is published."
    more = f" The same is true of {number - 1:,} more." if number > 1 else ""
    if told is None:
        why = f"the tables have no intervals. yupana topdown intervals {folder} OUT adds them to every count; or give"
    elif told.confidence != level:
        why = (
            f"the intervals of the tables are of {_percent(told.confidence)}. yupana topdown intervals {folder} OUT "
            f"--confidence {float(100 * level):g}% makes others; or give"
        )
    elif not tables.has(asked.area.kind):
        why = (
            f"the release does not tabulate {asked.area.kind}, so its tables have no interval of it: make it with "
            "topdown run --areas FILE, or give"
        )
    elif form.below is None and not form.above.constant and form.above.cell(tables.words.schema.shape) is not None:
        why = "the tables leave out counts of 0 and their intervals; give"
    else:
        why = "it is no single count of the tables but made of several, whose errors depend on each other; give"
    return f"{asked.said}:{count} No interval: {why} {by_noise}.{more}"


def _percent(level: Fraction) -> str:
    return f"{float(100 * level):g} percent"


def _on_areas(asked: Sequence[AskedOfArea], areas: ReleasedAreas) -> list[str]:
    """What is to be known of areas that are not bound to one state."""
    notes = []
    for area in dict.fromkeys(one.area for one in asked):
        if area.kind in TOLD or area.kind not in KINDS or KINDS[area.kind].within != NONE:
            continue
        states = areas.states_of(area)
        if len(states) > 1:
            parts = ", ".join(f"state_{area.kind}={state}{area.code}" for state in states)
            notes.append(f"{area.label} lies in {len(states)} states and is counted whole; its parts are {parts}")
        elif not areas.is_whole:
            notes.append(f"{area.label} is counted as far as it lies in the blocks of the release")
    return notes


_NOTES = {
    "least-squares": (
        "intervals of the tables are of the true count, each by itself, over the draw of the noise: of least-squares "
        "estimates from all noisy measurements, about which the published count need not lie",
    ),
    "monte-carlo": (
        "intervals of the tables are of the true count, each by itself, and approximate: they stand for the errors of "
        "the published counts by those of replicates",
    ),
}
