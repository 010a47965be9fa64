"""SDMX-CSV 2.0 with a structure message in SDMX-ML 3.0: a dataflow and a data structure definition for each table.

Of the two forms of the structure message, pysdmx validates SDMX-ML against the official schemas without another
library than it reads XML with.
"""

import csv
import itertools
import re
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import duckdb

from yupana.errors import ConfigError, OutputError
from yupana.files.database import named, quoted, unreadable, write_query
from yupana.privacy.laws import DiscreteGaussian, TwoSidedGeometric
from yupana.progress import Progress
from yupana.release.recipe import ESTIMATES, SUPPRESSED
from yupana.report.export.tables import (
    NOISE,
    VALUES,
    Export,
    ExportColumn,
    ExportTable,
    Row,
    differences,
    library,
    listed,
    one_line,
)

STRUCTURE: Final = "structure.xml"
TOTAL: Final = "_T"
NOT_APPLICABLE: Final = "_Z"

_VERSION: Final = "1.0.0"
_AGENCY: Final = re.compile(r"[A-Za-z][A-Za-z0-9_-]*(\.[A-Za-z][A-Za-z0-9_-]*)*")
_NO_CODE: Final = re.compile(r"[^A-Za-z0-9_@$-]")
_NO_NAME: Final = re.compile(r"[^A-Za-z0-9_]")
_CODE: Final = "code"
"""The type of the annotation that holds a code as the release has it."""

_VALUE: Final = "OBS_VALUE"
_VARIABLE: Final = "VARIABLE"
_STATUS: Final = "OBS_STATUS"
_STATUSES: Final = {
    "A": "Normal value",
    "E": "Estimated value",
    "O": "Missing value",
    "Q": "Missing value; suppressed",
}
_FIXED: Final = ("STRUCTURE", "STRUCTURE_ID", "ACTION")
_TITLES: Final = {
    _VALUE: "Observation value",
    _VARIABLE: "Variable",
    _STATUS: "Observation status",
    "UNIT_MEASURE": "Unit of measure",
    "CONFIDENCE": "Confidence of the margins of error and intervals",
    NOISE: "Distribution of the noise",
    "RELEASE_STATUS": "Whether the release may be published",
}
_UNITS: Final = {"COUNT": "Records counted", "VALUE": "What the title of the table says"}


@dataclass(frozen=True, slots=True)
class _SdmxCodes:
    """A codelist: the id and the label of each code of the release."""

    id: str
    title: str
    ids: Mapping[str, str]
    labels: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class _Flow:
    """How a table becomes a dataflow."""

    id: str
    table: ExportTable
    components: Mapping[str, str]  # what each component is called, in the order of the file
    dimensions: Mapping[str, ExportColumn]  # by id
    measures: Sequence[ExportColumn]  # one, or those that the dimension of variables tells apart
    told: Mapping[str, str]  # attributes of an observation: the column, or what follows the name of the measure's
    fixed: Mapping[str, str]  # attributes of the whole
    codes: Mapping[str, _SdmxCodes] = field(default_factory=dict)  # by id

    @property
    def is_wide(self) -> bool:
        """Whether a dimension tells its measures apart."""
        return _VARIABLE in self.codes

    def told_of(self, measure: str, one: str) -> str:
        """The column of an attribute of a measure."""
        told = self.told[one]
        return f"{measure}{told}" if self.is_wide and told.startswith("_") else told


def write_sdmx(folder: Path, export: Export, database: duckdb.DuckDBPyConnection, tell: Progress) -> None:
    """Write the structure message, and a file of data for each table.

    Raises
    ------
    ConfigError
        If pysdmx is not installed, or the agency is no id.
    OutputError
        If two rows of a table have the same codes, or the structure message is not valid.
    OSError
        If it cannot be written.
    """
    pysdmx: Any = library("pysdmx.io", "SDMX")
    formats: Any = library("pysdmx.io.format", "SDMX")
    flows = _flows(export, database)
    for flow in flows:
        _refuse_repeated(flow, database)
    tell("writing the structure")
    made = _structures(export, flows)
    text = pysdmx.write_sdmx(list(itertools.chain(*made)), formats.Format.STRUCTURE_SDMX_ML_3_0, header=_header(export))
    (folder / STRUCTURE).write_text(text, encoding="utf-8")
    _read_structure(folder / STRUCTURE)
    for done, (flow, name) in enumerate(zip(flows, export.names(".csv"), strict=True)):
        tell("writing data", done, len(flows))
        write_query(database, _query(export, flow, database), folder / name, "FORMAT csv")


def code_ids(labels: Mapping[str, str]) -> dict[str, str]:
    """The SDMX id of each code.

    The total, whose code is ``*`` or whose label is "Total", is ``_T``; no value is ``_Z``. Any other code keeps its
    letters of ASCII, digits, ``_@$-``, and has ``_`` for all else; of two alike the later ends in ``_2``.
    """
    total = next((code for code in labels if code == "*"), None)
    if total is None:
        total = next((code for code, label in labels.items() if label.casefold() == "total"), None)
    found = {code: TOTAL if code == total else NOT_APPLICABLE for code in labels if code in {total, ""}}
    taken = {TOTAL, NOT_APPLICABLE, *found.values()}
    for is_legal in (True, False):
        for code in labels:
            if code not in found and (_NO_CODE.search(code) is None) is is_legal:
                found[code] = _free(_NO_CODE.sub("_", code), taken)
                taken.add(found[code])
    return {code: found[code] for code in labels}


def _free(name: str, taken: Iterable[str]) -> str:
    names = itertools.chain((name,), (f"{name}_{number}" for number in itertools.count(2)))
    return next(one for one in names if one not in taken)


def _name_id(name: str, taken: Iterable[str]) -> str:
    """An id of a component or dataflow: it begins with a letter."""
    plain = _NO_NAME.sub("_", name)
    return _free(plain if plain[:1].isalpha() else f"C_{plain}", taken)


def _flows(export: Export, database: duckdb.DuckDBPyConnection) -> list[_Flow]:
    if not _AGENCY.fullmatch(export.agency):
        raise ConfigError(f"agency: {export.agency!a} is no id of SDMX: letters, digits, - and _, a letter first")
    flows: list[_Flow] = []
    lists: dict[str, _SdmxCodes] = {}
    for table in export.tables:
        if not table.numbers:
            raise ConfigError(f"tables: {table.name} has no numbers, and so no observations; export it as labelled")
        flows.append(_flow(table, {flow.id for flow in flows}, lists, database, export))
    return flows


def _flow(
    table: ExportTable,
    taken: set[str],
    lists: dict[str, _SdmxCodes],
    database: duckdb.DuckDBPyConnection,
    export: Export,
) -> _Flow:
    """How a table becomes a dataflow; its lists of codes are added to those that there are."""
    ids = {*_FIXED, *_TITLES, "SERIES_KEY", "OBS_KEY"}
    components: dict[str, str] = {}
    dimensions: dict[str, ExportColumn] = {}
    told: dict[str, str] = {}
    codes: dict[str, _SdmxCodes] = {}
    for column in table.columns:
        if column.kind == "code":
            one = _name_id(column.name, ids)
            ids.add(one)
            components[one], dimensions[one] = column.title, column
            labels = _all_labels(table, column, database)
            if labels:
                codes[one] = _listed(lists, one, column.title, labels)
    value = next((column for column in table.numbers if column.name in VALUES), None)
    beside = [column for column in table.columns if column.kind != "code" and column is not value]
    measures = [value] if value is not None else []
    if value is None:
        ends = ("_MOE", "_LOWER", "_UPPER")
        names = {column.name for column in table.numbers}
        of = {column.name for column in table.numbers if column.name.endswith(ends)}
        of = {name for name in of if name.rpartition("_")[0] in names}
        measures = [column for column in table.numbers if column.name not in of]
        titles = {column.name: column.title for column in measures}
        components[_VARIABLE], codes[_VARIABLE] = _TITLES[_VARIABLE], _listed(lists, _VARIABLE, "Variable", titles)
        told = {end[1:]: end for end in ends if of}
        beside = [column for column in beside if not column.is_number]
    components[_VALUE] = measures[0].title if len(measures) == 1 and value is not None else _TITLES[_VALUE]
    for column in beside:
        one = column.name if column.name == NOISE else _name_id(column.name, ids)
        ids.add(one)
        components[one], told[one] = column.title, column.name
    components |= {one: _TOLD_TITLES[one] for one in told if one in _TOLD_TITLES and one not in components}
    fixed = _fixed(table, export, has_noise=NOISE in told)
    codes[_STATUS] = _listed(lists, _STATUS, _TITLES[_STATUS], _STATUSES)
    codes["UNIT_MEASURE"] = _listed(lists, "UNIT_MEASURE", _TITLES["UNIT_MEASURE"], _UNITS)
    components |= {_STATUS: _TITLES[_STATUS], **{one: _TITLES[one] for one in fixed}}
    return _Flow(_name_id(table.name, taken), table, components, dimensions, measures, told, fixed, codes)


_TOLD_TITLES: Final = {
    "MOE": "Margin of error", "LOWER": "Lower end of the interval", "UPPER": "Upper end of the interval",
}  # fmt: skip


def _fixed(table: ExportTable, export: Export, *, has_noise: bool) -> dict[str, str]:
    """Attributes of the whole table."""
    counts = {"COUNT", "count"} & {column.name for column in table.numbers} or table.release.product == "topdown"
    has_variance = any(column.name == "VARIANCE" for column in table.columns)
    law = TwoSidedGeometric.name if table.release.is_pure else DiscreteGaussian.name
    noise = {NOISE: law} if "plan" in table.release.manifest and has_variance and not has_noise else {}
    return {
        "UNIT_MEASURE": "COUNT" if counts else "VALUE",
        **({"CONFIDENCE": table.confidence} if table.confidence else {}),
        **noise,
        "RELEASE_STATUS": export.release.status,
    }


def _all_labels(table: ExportTable, column: ExportColumn, database: duckdb.DuckDBPyConnection) -> dict[str, str]:
    """The labels of a listed column, with those codes of the table that the codebook does not list."""
    if not column.labels:
        return {}
    query = f"SELECT DISTINCT {named(column.name)} FROM ({table.query}) ORDER BY 1"
    occurring = [str(code) for (code,) in database.execute(query).fetchall()]
    others = {code: code or "Not applicable" for code in occurring if code not in column.labels}
    return {**column.labels, **others}


def _listed(lists: dict[str, _SdmxCodes], name: str, title: str, labels: Mapping[str, str]) -> _SdmxCodes:
    """The codelist of these labels, made if there is none."""
    for codes in lists.values():
        if codes.title == title and dict(codes.labels) == dict(labels) and list(codes.labels) == list(labels):
            return codes
    found = _SdmxCodes(_free(f"CL_{name}", lists), title, code_ids(labels), dict(labels))
    lists[found.id] = found
    return found


def _refuse_repeated(flow: _Flow, database: duckdb.DuckDBPyConnection) -> None:
    keys = ", ".join(named(column.name) for column in flow.dimensions.values()) or "1"
    query = f"SELECT count(*), count(DISTINCT ({keys},)) FROM ({flow.table.query})".replace(",)", ")")
    ((rows, different),) = database.execute(query).fetchall()
    if rows != different:
        raise OutputError(
            f"{flow.table.name} has several rows of the same codes, which SDMX does not tell apart; leave it out with "
            "--tables, or export it as labelled"
        )


def _query(export: Export, flow: _Flow, database: duckdb.DuckDBPyConnection) -> str:
    """SQL of the file of data."""
    usual = "E" if flow.table.release.product in {ESTIMATES, "topdown"} else "A"
    dimensions = [
        f"{_code_sql(flow, one, column, database)} AS {named(one)}" for one, column in flow.dimensions.items()
    ]
    head = {"STRUCTURE": "dataflow", "STRUCTURE_ID": f"{export.agency}:{flow.id}({_VERSION})", "ACTION": "I"}
    first = [f"{quoted(text)} AS {named(one)}" for one, text in head.items()]
    last = [f"{quoted(text)} AS {named(one)}" for one, text in flow.fixed.items()]
    if not flow.is_wide:
        told = [*_observation(flow, flow.measures[0].name, usual)]
        pairs = [f"{sql} AS {named(one)}" for one, sql in told]
        return f"SELECT {', '.join([*first, *dimensions, *pairs, *last])} FROM ({flow.table.query})"
    variables = flow.codes[_VARIABLE].ids
    rows = []
    for column in flow.measures:
        pairs = [f"{named(_VARIABLE)}: {quoted(variables[column.name])}"]
        pairs += [f"{named(one)}: {sql}" for one, sql in _observation(flow, column.name, usual)]
        rows.append(f"{{{', '.join(pairs)}}}")
    inner = f"unnest([{', '.join(rows)}], recursive := true)"
    within = f"SELECT {', '.join([*dimensions, inner])} FROM ({flow.table.query})"
    return f"SELECT {', '.join([*first, '*', *last])} FROM ({within})"


def _code_sql(flow: _Flow, one: str, column: ExportColumn, database: duckdb.DuckDBPyConnection) -> str:
    name = named(column.name)
    if one in flow.codes:
        return listed(database, name, flow.codes[one].ids, quoted(NOT_APPLICABLE))
    return f"coalesce(nullif({name}, ''), {quoted(NOT_APPLICABLE)})"


def _observation(flow: _Flow, measure: str, usual: str) -> Iterator[tuple[str, str]]:
    """SQL of the value and its attributes, by component."""
    value = named(measure)
    yield _VALUE, _number(value)
    columns = {column.name for column in flow.table.columns}
    numbers = {column.name for column in flow.table.numbers}
    for one in flow.told:
        name = flow.told_of(measure, one)
        if name not in columns:
            yield one, "CAST(NULL AS VARCHAR)"
            continue
        yield one, _number(named(name)) if name in numbers else f"nullif({named(name)}, '')"
    missing = f"WHEN '' THEN 'O' WHEN 'nan' THEN 'O' WHEN {quoted(SUPPRESSED)} THEN 'Q'"
    yield _STATUS, f"CASE {value} {missing} ELSE {quoted(usual)} END"


def _number(name: str) -> str:
    return f"CASE WHEN {name} IN ('', 'nan', {quoted(SUPPRESSED)}) THEN NULL ELSE {name} END"


def _header(export: Export) -> Any:  # noqa: ANN401 (of pysdmx)
    model: Any = library("pysdmx.model", "SDMX")
    message: Any = library("pysdmx.model.message", "SDMX")
    name = _NO_CODE.sub("-", f"{export.release.name}-{export.release.sha256[:16]}")
    sender = model.Organisation(export.agency)
    return message.Header(id=name, test=export.is_marked, prepared=export.made, sender=sender)


def _structures(export: Export, flows: Sequence[_Flow]) -> tuple[list[Any], ...]:
    """Codelists, concepts, data structure definitions and dataflows, as pysdmx has them."""
    model: Any = library("pysdmx.model", "SDMX")
    common: dict[str, object] = {"agency": export.agency, "version": _VERSION}
    lists = {codes.id: codes for flow in flows for codes in flow.codes.values()}
    codelists = {one: _codelist(model, codes, common) for one, codes in lists.items()}
    concepts: dict[tuple[str, str], str] = {}
    for flow in flows:
        for one, title in flow.components.items():
            if (one, title) not in concepts:
                concepts[one, title] = _free(one, concepts.values())
    scheme = model.ConceptScheme(
        id="CS_YUPANA",
        name=export.title(f"Concepts of a release of {one_line(export.release.name)}"),
        items=[model.Concept(id=one, name=title) for (_, title), one in concepts.items()],
        **common,
    )
    made = []
    for flow in flows:
        components = []
        for one, title in flow.components.items():
            told = {"id": scheme.id, "item_id": concepts[one, title], **common}
            concept = model.ItemReference(sdmx_type="Concept", **told)
            components.append(_component(model, flow, one, concept, codelists))
        title = export.title(flow.table.title)
        structure = model.DataStructureDefinition(
            id=flow.id, name=title, components=model.Components(components), **common
        )
        notes = [
            model.Annotation(id="RELEASE", type="sha256", text=export.release.sha256),
            model.Annotation(id="STATUS", type="status", text=export.release.status),
            model.Annotation(id="UNIVERSE", type="universe", text=flow.table.universe),
        ]
        flown = model.Dataflow(
            id=flow.id, name=title, description=flow.table.universe, structure=structure, annotations=notes, **common
        )
        made.append((structure, flown))
    return list(codelists.values()), [scheme], [one for one, _ in made], [one for _, one in made]


def _codelist(model: Any, codes: _SdmxCodes, common: Mapping[str, object]) -> Any:  # noqa: ANN401 (of pysdmx)
    items = []
    for code, label in codes.labels.items():
        one = codes.ids[code]
        notes = [model.Annotation(id="CODE", type=_CODE, text=code or "(none)")] if one != code else []
        items.append(model.Code(id=one, name=label or code or NOT_APPLICABLE, annotations=notes))
    return model.Codelist(id=codes.id, name=codes.title, items=items, **common)


def _component(model: Any, flow: _Flow, one: str, concept: Any, codelists: Mapping[str, Any]) -> Any:  # noqa: ANN401
    coded = codelists[flow.codes[one].id] if one in flow.codes else None
    numbers = {column.name for column in flow.table.numbers}
    is_dimension = one in flow.dimensions or one == _VARIABLE
    is_number = one == _VALUE or (not is_dimension and (one in _TOLD_TITLES or flow.told.get(one) in numbers))
    kind = None if coded is not None else model.DataType.DOUBLE if is_number else model.DataType.STRING
    role, level = (model.Role.DIMENSION if is_dimension else model.Role.MEASURE), None
    if not is_dimension and one != _VALUE:
        role, level = model.Role.ATTRIBUTE, "D" if one in flow.fixed else "O"
    return model.Component(
        id=one,
        required=is_dimension or one in flow.fixed,
        role=role,
        concept=concept,
        local_codes=coded,
        local_dtype=kind,
        attachment_level=level,
    )


def _read_structure(path: Path) -> Any:  # noqa: ANN401 (of pysdmx)
    """Read a structure message, validated against the schemas of SDMX-ML."""
    pysdmx: Any = library("pysdmx.io", "SDMX")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return pysdmx.read_sdmx(path.read_text(encoding="utf-8"), validate=True)
        except Exception as error:  # noqa: BLE001 (of a file that is none the library raises anything)
            raise OutputError(f"{path} is no valid structure message: {one_line(str(error))[:200]}") from None


def sdmx_faults(folder: Path, export: Export, database: duckdb.DuckDBPyConnection, tell: Progress) -> Iterator[str]:
    """Where the files do not hold what the release does, in words."""
    flows = _flows(export, database)
    try:
        message = _read_structure(folder / STRUCTURE)
        lists = {one.id: {item.id: item for item in one.items} for one in message.get_codelists()}
        told = {(one.id, item.id): item.name for one in message.get_concept_schemes() for item in one.items}
        names = {one.id: one.name for one in message.get_dataflows()}
        components = {one.id: {part.id for part in one.components} for one in message.get_data_structure_definitions()}
    except (AttributeError, TypeError):
        yield f"{STRUCTURE} does not hold the structures of the export"
        return
    except OutputError as error:
        yield str(error)
        return
    *_, schemes, structures, due = _structures(export, flows)
    if told != {(one.id, item.id): item.name for one in schemes for item in one.items}:
        yield f"{STRUCTURE}: the concepts are not those of the release"
    if components != {one.id: {part.id for part in one.components} for one in structures}:
        yield f"{STRUCTURE}: the components are not those of the release"
    if names != {one.id: one.name for one in due}:
        yield f"{STRUCTURE}: the dataflows are not the tables of the release"
    for done, (flow, name) in enumerate(zip(flows, export.names(".csv"), strict=True)):
        tell("reading data", done, len(flows))
        table = flow.table
        try:
            rows = _rows(folder / name, export, flow, lists)
            yield from differences(name, table.headers(), table.cells(database), rows)
        except OutputError as error:
            yield str(error)


def _rows(path: Path, export: Export, flow: _Flow, lists: Mapping[str, Mapping[str, Any]]) -> Iterator[Row]:
    """The rows of a file of data, as the table has them; codes and labels are those of the structure message."""
    with (
        unreadable(OutputError(f"{path} is not readable as SDMX-CSV")),
        path.open(encoding="utf-8", newline="") as file,
    ):
        found = csv.reader(file)
        header = next(found, [])
        if header[:3] != list(_FIXED) or set(header[3:]) != set(flow.components):
            raise OutputError(f"{path} does not have the columns of its structure")
        due = ("dataflow", f"{export.agency}:{flow.id}({_VERSION})", "I")
        records = (dict(zip(header, row, strict=False)) for row in found)
        several = len(flow.measures)
        for group in iter(lambda: list(itertools.islice(records, several)), []):
            right = len(group) == several and all(
                tuple(one.get(name) for name in _FIXED) == due
                and all(one.get(name) == text for name, text in flow.fixed.items())
                for one in group
            )
            yield tuple(_decoded(flow, group, lists)) if right else ("no row of this table",)


def _decoded(flow: _Flow, group: Sequence[Mapping[str, str]], lists: Mapping[str, Mapping[str, Any]]) -> Iterator[Any]:
    """The cells of a row of the table."""
    texts: dict[str, str] = {}
    labels: dict[str, str] = {}
    for one, column in flow.dimensions.items():
        code = group[0].get(one, "")
        if any(other.get(one) != code for other in group):
            code = "several"
        if one not in flow.codes:
            texts[column.name] = "" if code == NOT_APPLICABLE else code
            continue
        item = lists.get(flow.codes[one].id, {}).get(code)
        texts[column.name], labels[column.name] = _original(item)
    for measure, row in zip(flow.measures, group, strict=True):
        texts[measure.name] = _told(row, _VALUE)
        if flow.is_wide:
            item = lists.get(flow.codes[_VARIABLE].id, {}).get(row.get(_VARIABLE, ""))
            if _original(item) != (measure.name, measure.title):
                texts[measure.name] = "another variable"
        texts |= {flow.told_of(measure.name, one): _told(row, one) for one in flow.told}
    for column in flow.table.columns:
        yield column.read(texts.get(column.name, ""))
        if column.labels:
            label = labels.get(column.name, "")
            yield label if texts.get(column.name) in column.labels else ""


def _told(row: Mapping[str, str], one: str) -> str:
    text = row.get(one, "")
    is_number = one == _VALUE or one in _TOLD_TITLES or one == "VARIANCE"
    return SUPPRESSED if not text and is_number and row.get(_STATUS) == "Q" else text


def _original(item: Any) -> tuple[str, str]:  # noqa: ANN401 (of pysdmx)
    """The code of the release and its label, of an item of a codelist."""
    if item is None:
        return "unknown", "unknown"
    notes = [note.text for note in item.annotations or () if note.type == _CODE]
    code = notes[0] if notes else item.id
    return ("" if item.id == NOT_APPLICABLE and code == "(none)" else str(code)), str(item.name)
