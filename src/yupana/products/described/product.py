"""Tables as data as a product: what a description measures and publishes."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from typing import Any, Final, Unpack
from weakref import WeakValueDictionary

from yupana.errors import ConfigError
from yupana.files.columns import RecordFile
from yupana.files.declaration import schema_of
from yupana.files.document import UNCHANGED, Changes, Number, read_value, refuse
from yupana.files.names import file_of
from yupana.plan.budgets import Entry
from yupana.plan.measurement import Accounting, Measurement, PlanTerms
from yupana.plan.plan import Plan
from yupana.privacy.exact import Budget
from yupana.products.census import exact_number
from yupana.products.codebook import Described, Label, Value, cell_labels, numbers
from yupana.products.described.criteria import predictions
from yupana.products.described.description import DescribedLevel, DescribedTable, Description
from yupana.products.described.plan import TOTALS_OF, entries, families, make_plan, table_of, within
from yupana.products.described.published import source_of_totals, tables_by_size
from yupana.products.described.reading.declaration import DOCUMENT
from yupana.products.described.reading.description import parse
from yupana.products.described.stability import derive
from yupana.products.described.uncounted import left_out
from yupana.products.described.verify import noise_faults, verify_described
from yupana.products.product import Checked, Product, Stated, Words, checked, terms_of
from yupana.products.tables import Family
from yupana.release.recipe import CONFIGURATION, DESCRIBED, DESCRIBED_TABLES, MEASURED, RECORD, read_configuration_in

SYSTEM: Final = DESCRIBED_TABLES

LEFT_OUT: Final = "left_out"
"""Where a manifest and a plan tell which records are counted nowhere."""

_NO_GROUP: Final = "the totals list no group of "


class DescribedProduct(Product[Description]):
    """Tables of a description: the `yupana.products.product.Product` whose configuration says everything."""

    key: Final = SYSTEM
    words: Final = Words(title="Tables of a description")
    families: Final[tuple[Family, ...]] = ()

    def published(self, manifest: Mapping[str, Any]) -> tuple[Family, ...]:
        """What the description of a manifest publishes, and what was measured where more was done to it."""
        config = described_in(manifest)
        found = families(config)
        return (*found, *(within(MEASURED, family) for family in found if config.postprocess))

    def record_files(self, config: Description) -> Mapping[str, RecordFile]:
        """The record files, with the names that the description has for their columns."""
        schemas = {file.name: file.schema for file in config.record_files}
        return {
            name: replace(
                schema,
                columns=tuple(replace(column, name=schema.written[column.name]) for column in schema.columns),
                called=(),
            )
            for name, schema in schemas.items()
        }

    def read(self, source: Path | str, changes: Changes = UNCHANGED, codes: Path | None = None) -> Description:
        """Read a description, or that of a release by its manifest.

        Parameters
        ----------
        changes : Changes
            Made in the description before it is checked.
        codes : Path, optional
            The folder with the public files that it names, if it is another than its own.
        """
        path = self.locate(source)
        folder = path.parent if codes is None else Path(codes)
        document, faults = read_configuration_in(path, SYSTEM, changes)
        found = None if faults else parse(document, folder, faults)
        if codes is None and str(source) in self.built_in and any(str(folder) in fault for fault in faults):
            raise ConfigError(f"{source} names public files that lie elsewhere; name their folder by codes")
        if found is not None and not faults:
            try:
                make_plan(found)
            except ConfigError as error:
                faults.append(str(error))
        if found is None or faults:
            raise refuse(path, faults)
        return found

    def schema(self) -> dict[str, Any]:
        """Of a description."""
        return schema_of("tables of a description", DOCUMENT)

    def document(self, config: Description) -> dict[str, Any]:
        """The description with its budgets as they are, and the lists of files in their place."""
        tables = {name: dict(told) for name, told in config.document["tables"].items()}
        for table in config.tables:
            tables[table.name]["budget"] = {level: exact_number(budget) for level, budget in table.budgets.items()}
        found = {**_plain(config.document), "tables": _plain(tables)}
        _IN_USE[json.dumps(found)] = config
        return found

    def plan(self, config: Description, **terms: Unpack[PlanTerms]) -> Plan:
        """One measurement per table and level with a budget; see `make_plan`."""
        return make_plan(config, **terms)

    def entries(self, config: Description, accounting: Accounting = "published") -> Mapping[str, Entry]:
        """Every budget by the name of its measurement, such as ``children/county``."""
        return entries(config, accounting)

    def families_of(self, config: Description) -> tuple[Family, ...]:
        """The tables that are measured, and those that add up their cells."""
        return families(config)

    def entry_of(self, measurement: Measurement) -> str:
        """Its table at its level: the totals that decide detail, and the groups that have none, are paid from it."""
        return f"{table_of(measurement.table)}/{measurement.level}"

    def with_budgets(self, config: Description, budgets: Mapping[str, Budget]) -> Description:
        """The description with some budgets replaced."""
        return config.with_budgets(budgets)

    def is_adaptive(self, plan: Plan) -> bool:
        """Where a table has detail that a noisy total decides."""
        return any(m.table.startswith(TOTALS_OF) for m in plan.measurements)

    def promises(self, config: Description, plan: Plan, delta: float) -> dict[str, Any]:
        """Of each measurement what is derived and why, and of each criterion what is predicted.

        ``attained`` says for which neighbours some are known to be as far apart as is derived.
        """
        del delta
        return {
            "criteria": predictions(config, plan),
            LEFT_OUT: self.left_out(config),
            "derived": {name: _derived(config, *at) for name, at in config.at_levels.items()},
        }

    def left_out(self, config: Description) -> list[dict[str, Any]]:
        """Values in no cell, class, area, group or row of a sum."""
        return [one.as_json() for one in left_out(config)]

    def taken_as_public(self, config: Description) -> tuple[str, ...]:
        """The lists of codes, what is published at all, the file of blocks, and fixed columns."""
        fixed = [f"{c.file}.{c.name}" for c in config.columns.values() if c.fixed]
        told = [
            "the codes and ranges of all columns, and the lists of areas and groups",
            "the tables, population groups and cells that are published",
        ]
        if config.layout is not None:
            told.append(f"the dictionary {config.layout.name}: which items lines of records hold, and where")
        if config.blocks is not None:
            told.append(f"the file of blocks, {config.blocks.file}, and so which areas there are and where blocks lie")
            if units := config.blocks.housing_units:
                told.append(f"the file of housing units by block, {units.file}, and so which areas are left out")
        told += [f"which codes of {name} are members of which groups" for name in config.responses]
        told += [
            f"the values of {column.name} that occur in the records, as the user declares"
            for column in config.columns.values()
            if column.occurring
        ]
        if fixed:
            told.append(
                f"that no change of a {config.files[config.unit].record} changes {', '.join(fixed)} of a record"
            )
        return tuple(told)

    def processing(self, config: Description) -> dict[str, Any]:
        """What a manifest says that was done to the counts after they were measured; nothing, if nothing was."""
        done = {name: value for name, value in asdict(config.postprocess).items() if value}
        if config.postprocess.fitted and (left := [table.name for table in config.tables if table.detail]):
            done["not_fitted"] = left
        return {RECORD: [{"rule": DESCRIBED, **done}]} if done else {}

    def parameters(
        self, config: Description, totals: Mapping[str, Any] | None, empty: Sequence[str] = ()
    ) -> dict[str, Any]:
        """What a manifest says of the description, and of the totals that decide the detail of tables.

        Parameters
        ----------
        totals : mapping, optional
            What is known of the file of totals.
        empty : sequence of str
            Measurements of which the totals list no group.
        """
        small = {table.name: table.detail.leave_out for table in config.tables if table.detail}
        leave_out = {table: {level: str(chance) for level, chance in of.items()} for table, of in small.items() if of}
        return {
            "unit": config.unit,
            "limits": limits(config),
            "truncation_key": config.truncation_key,
            **({"totals": dict(totals)} if totals else {}),
            **({"leave_out": leave_out} if leave_out else {}),
            **({"remarks": [f"{_NO_GROUP}{', '.join(empty)}; their budgets buy nothing"]} if empty else {}),
        }

    def stated(self, release: Path, manifest: Mapping[str, Any], plan: Plan, inputs: Path | None) -> Stated:
        """All but where totals come from, and how criteria were tested."""
        del release, inputs
        config = described_in(manifest)
        due = self.plan(config, **terms_of(plan))
        told, reasons = manifest["parameters"], manifest.get("reasons", ())
        by_size = tables_by_size(config)
        totals = told["totals"] if by_size else None
        names = [f"{table.name}/{level.name}" for table in by_size for level in table.levels]
        empty = [name for name in names if any(_NO_GROUP in text and name in text for text in told.get("remarks", ()))]
        # Of areas in which nobody lives a listed group is measured nowhere; its tables have no row then.
        made = {of["table"] for of in manifest["tables"].values() if of["rows"]}
        bare = {family.name for family in families(config) if not made & family.tables.keys()}
        public = list(self.taken_as_public(config))
        if totals is not None:
            public.append(source_of_totals(totals, reasons, manifest["taken_as_public"][-1]))
        # Tests are of true counts, and cannot be repeated without the records.
        tests = {name: of["tested"] for name, of in manifest.get("criteria", {}).items() if "tested" in of}
        criteria = {
            name: {**of, **({"tested": tests[name]} if name in tests else {})}
            for name, of in predictions(config, due).items()
        }
        tested = "criteria were tested on true counts, and the manifest gives no reason against a release"
        # What was done after the run follows on what the description does.
        done = self.processing(config).get(RECORD, [])
        return Stated(
            due,
            {
                "system": SYSTEM,
                "parameters": self.parameters(config, totals, empty),
                "taken_as_public": public,
                "criteria": criteria or None,
                LEFT_OUT: self.left_out(config) or None,
                RECORD: [*done, *manifest.get(RECORD, [])[len(done) :]] or None,
            },
            without_groups=frozenset(name for name in names if name in empty or name.partition("/")[0] in bare),
            described=partial(self.described, config, due),
            wrong=(tested,) if tests and not reasons else (),
        )

    def described(self, config: Description, plan: Plan, table: str) -> Described:
        """Titles of tables, and names of areas, groups and cells."""
        folder, _, file = table.rpartition("/")
        of, table = next((of, name) for of in config.tables for name in of.published if file_of(name) == file)
        labels = self._labels(config, of)
        groups: dict[Value, str] = {"*": "Everyone", **dict(config.group_labels.items())}
        summed = of.title if table == of.name else f"{of.title}, added up to {table}"
        title = f"{summed}, as it was measured" if folder else summed
        lost = [f"{one}." for one in left_out(config) if one.table in {of.name, table}]
        labels_of: dict[str, Label] = {
            "REGION_ID": _areas(config),
            "REGION_TYPE": Label("Kind of area", values={name: name for name in config.areas}),
            "ITERATION_CODE": Label("Population group", values=groups),
            **cell_labels(families(config), table, {}, lambda column, cell: labels.get((column, str(cell)), str(cell))),
            **numbers(plan),
        }
        if lost and (count := labels_of.get("COUNT")):
            labels_of["COUNT"] = replace(count, description=" ".join([count.description, *lost]))
        return title, labels_of

    def _labels(self, config: Description, of: Any) -> dict[tuple[str, str], str]:  # noqa: ANN401 (a table)
        found = {}
        for column in config.columns.values():
            if column.name in of.columns:
                for value, label in column.labels.items():
                    found[column.name, column.column.written(value)] = label
        return found

    def noise_faults(self, release: Path, manifest: Mapping[str, Any], table: str) -> list[str]:
        """Of a table as it was measured."""
        return noise_faults(release, manifest, described_in(manifest), table)

    def verify(self, release: Path, manifest: Mapping[str, Any]) -> Checked:
        """Compare every row of every table with the plan."""
        return checked(lambda: verify_described(release, manifest, described_in(manifest)), "a description")


def _areas(config: Description) -> Label:
    """What the codes of areas are called; where a file of blocks tells which there are, how they are made."""
    kinds = config.areas.values()
    if config.blocks is None:
        called: dict[Value, set[str]] = {}
        for kind in kinds:
            for code in kind.codes:
                called.setdefault(code, set()).add(kind.labels.get(code, code))
        # A code of several kinds that mean different areas by it has no name of its own.
        values = {code: names.pop() if len(names) == 1 else str(code) for code, names in called.items()}
        return Label("Area", values=values)
    made = [(kind.name, [column.name for column in kind.blocks.columns]) for kind in kinds if kind.blocks]
    told = [f"{name}: digits of {', '.join(columns)}" for name, columns in made]
    told += [f"{kind.name}: {code}" for kind in kinds for code in kind.codes]
    return Label("Area", f"{'; '.join(told)}.")


def _derived(config: Description, table: DescribedTable, level: DescribedLevel) -> dict[str, Any]:
    found = derive(config, table, level)
    return {
        "unbounded": str(found.sensitivity.unbounded),
        "bounded": str(found.sensitivity.bounded),
        "because": found.because,
        "overlap": found.overlap.number,
        "attained": dict(found.attained),
    }


def described_in(manifest: Mapping[str, Any]) -> Description:
    """The description that a manifest holds.

    Raises
    ------
    KeyError, ValueError
        If it holds none that can be read.
    """
    return described(manifest[CONFIGURATION])


def described(document: object) -> Description:
    """A description as JSON's values.

    Raises
    ------
    ValueError
        If it is none.
    """
    text = json.dumps(document)
    known = _IN_USE.get(text)
    if known is not None:
        return known
    faults: list[str] = []
    found = parse(read_value(text, faults), Path(), faults)
    if found is None:
        raise ValueError("; ".join(faults))
    _IN_USE[text] = found
    return found


_IN_USE: Final[WeakValueDictionary[str, Description]] = WeakValueDictionary()
"""Descriptions by what they write as their document, which is read once as long as one of them is in use."""


def _plain(value: Any) -> Any:  # noqa: ANN401 (a document)
    """A document whose numbers are written as JSON's."""
    if isinstance(value, Mapping):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_plain(item) for item in value]
    if isinstance(value, Number):
        return int(value) if value.isdecimal() else str(value)
    return value


def limits(config: Description) -> dict[str, dict[str, Any]]:
    """By table, of which records how many count."""
    return {table.name: {"per": table.limit.per, "most": table.limit.most} for table in config.tables if table.limit}


TABLES: Final = DescribedProduct()
