"""A release on disk as one object: its manifest, plan, status and tables, each checked when it is used.

Columns of tables are numbers as numbers and codes as text, in whichever format they were written. Several releases that
make one lie whole in folders of their own, and a manifest names them.
"""

import html
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from fractions import Fraction
from functools import cached_property
from pathlib import Path
from typing import Any, Final

import duckdb

from yupana.errors import OutputError, nearest
from yupana.files.arrow import ArrowTable
from yupana.files.database import named, open_database, unreadable, write_query
from yupana.files.delimited import PARQUET, column_types, csv_rows, parquet_rows
from yupana.files.names import normal
from yupana.files.regular import FOLDER, must_be
from yupana.plan.measurement import Mechanism
from yupana.plan.plan import Plan, read_plan
from yupana.release.codebook import DATA_PACKAGE, meanings, of_tables, read_codebook, write_codebook
from yupana.release.folder import check_out, new_folder, read_manifest, write_manifest
from yupana.release.manifest import MANIFEST
from yupana.release.recipe import CONFIGURATION, DESCRIBED_TABLES, RECORD
from yupana.release.status import CONFIDENTIAL, NOT_FOR_RELEASE, refuse_confidential, status_of
from yupana.release.tables import (
    ReleaseTable,
    checked_file,
    checksum,
    describe,
    folder_faults,
    read_table,
    table_columns,
    table_rows,
)
from yupana.version import __version__

PARTS: Final = "parts"
"""The key of a manifest that names the parts, with the SHA-256 of the manifest of each."""

PARTS_ENDING: Final = ", parts"


def write_whole(folder: Path, title: str, key: str, names: Sequence[str]) -> dict[str, Any]:
    """Write the manifest of a folder that holds a release for each part, and return it; see `whole_manifest`."""
    manifest = whole_manifest(folder, title, key, names)
    write_manifest(folder, manifest)
    return manifest


def whole_manifest(folder: Path, title: str, key: str, names: Sequence[str]) -> dict[str, Any]:
    """The manifest of a folder that holds a release for each part.

    It lists all their files. Its configuration is a document of parts, whose configurations are their manifests.

    Parameters
    ----------
    title : str
        What the whole is called.
    key : str
        Of the product.
    names : sequence of str
        The parts, each of which is a folder.

    Raises
    ------
    OutputError
        If a part is no release.
    """
    manifests = {name: read_manifest(folder / name, confidential=True) for name in names}
    manifest = {
        "yupana": __version__,
        "product": title,
        "system": f"{key}{PARTS_ENDING}",
        "status": _worst([str(one["status"]) for one in manifests.values()]),
        "created": datetime.now(UTC).isoformat(timespec="seconds"),
        PARTS: {
            name: {"manifest_sha256": checksum(folder / name / MANIFEST), "plan": one["plan"]}
            for name, one in manifests.items()
        },
        CONFIGURATION: {"product": title, PARTS: {name: f"{name}/{MANIFEST}" for name in names}},
        "tables": {
            f"{name}/{file}": {**told, "table": f"{name}/{told.get('table', Path(file).stem)}"}
            for name, one in manifests.items()
            for file, told in one["tables"].items()
        },
        "reports": {
            **{
                f"{name}/{file}": told
                for name, one in manifests.items()
                for file, told in one.get("reports", {}).items()
            },
            **{f"{name}/{MANIFEST}": {"sha256": checksum(folder / name / MANIFEST)} for name in names},
        },
    }
    if reasons := list(dict.fromkeys(why for one in manifests.values() for why in one.get("reasons", ()))):
        manifest["reasons"] = reasons
    return manifest


def _worst(statuses: Sequence[str]) -> str:
    """The status of releases together."""
    return next((status for status in (CONFIDENTIAL, NOT_FOR_RELEASE) if status in statuses), statuses[0])


def part_names(manifest: Mapping[str, Any]) -> tuple[str, ...]:
    """The parts that a manifest is of, each a folder beside it; none of one release."""
    return tuple(manifest.get(PARTS, ())) if str(manifest.get("system")).endswith(PARTS_ENDING) else ()


_WHOLE: Final = re.compile(
    r"COUNT|count|value|children|osed|GROUPS|housing_units|gq[1-7]|[PH]\d{7}(_LOWER|_UPPER|_MOE)?"
)
_REAL: Final = re.compile(
    r"(VARIANCE|MOE|variance|moe|lower|upper|LOWER|UPPER|NOISY|ESTIMATE|COVERAGE|SHARE|mae|rmse|bias)"
    r"|(EXPECTED|EXPERIMENTAL)_MOE\w*|\w+_BIAS|(RATIO|PRED|VARIANCE|MOE_NOISY|COUNT_NOISY)_\w+"
)
"""Names of columns that hold numbers; all others are codes."""

_SUPPRESSED: Final = "REASON"
"""A table with this column has texts in place of suppressed numbers."""


def read_columns(path: Path, kinds: Mapping[str, str] | None = None) -> ArrowTable:
    """Hand out a table of a release; its rows are read from the file each time they are asked for.

    Parameters
    ----------
    path : Path
        Written by `write_table`, `write_parts` or `write_query`.
    kinds : mapping of str to str, optional
        SQL types of the columns that are not text, where people have named the others; else names tell.

    Returns
    -------
    ArrowTable
        Of two names that differ in case only, which a database does not tell apart, the second ends in ``_2``.

    Raises
    ------
    OutputError
        If it is no such table.
    """
    with unreadable(OutputError(f"{path} is not readable as a table of a release")), open_database() as database:
        names = list(_distinct(table_columns(path)))
        rows = parquet_rows([path]) if path.suffix == PARQUET else csv_rows(path, names)
        query = f"SELECT {', '.join(_typed(name, names, kinds) for name in names)} FROM {rows}"
        database.execute(f"DESCRIBE {query}")
    return ArrowTable(query)


def typed_columns(table: ReleaseTable) -> dict[str, tuple[str, list[object]]]:
    """The columns of a table that was not written, with the types `read_columns` would give it; "" is no value."""
    made: dict[str, tuple[str, list[object]]] = {}
    for name, values in table.columns.items():
        kind = _kind(name)
        told: list[object] = [None if value == "" else str(value) if kind == "VARCHAR" else value for value in values]
        made[name] = kind, told
    return made


def _typed(name: str, names: Sequence[str], kinds: Mapping[str, str] | None) -> str:
    kind = _kind(name) if kinds is None else kinds.get(name, "VARCHAR")
    kind = "VARCHAR" if _SUPPRESSED in names else kind
    return f"CAST({named(name)} AS {kind}) AS {named(name)}"


def _kind(name: str) -> str:
    return "BIGINT" if _WHOLE.fullmatch(name) else "DOUBLE" if _REAL.fullmatch(name) else "VARCHAR"


def _distinct(names: Sequence[str]) -> Iterator[str]:
    met = Counter[str]()
    for name in names:
        met[name.lower()] += 1
        yield name if met[name.lower()] == 1 else f"{name}_{met[name.lower()]}"


KINDS: Final = {"COUNT": "BIGINT", "VARIANCE": "DOUBLE", "MOE": "DOUBLE"}
"""SQL types of the columns that hold numbers; all others are codes and stay text."""


@dataclass(frozen=True, eq=False, repr=False)
class ReleaseFolder:
    """Tables and the manifest that says how they were made. Made by `yupana.products.gate.open_release`.

    ``release.tables`` are the names of its tables, which ``for name in release`` goes through, too.
    """

    folder: Path
    manifest: Mapping[str, Any]  # as docs/manifest.md describes it; its shape was checked
    sha256: str  # of the manifest
    _checked: dict[str, Path] = field(default_factory=dict)

    def __repr__(self) -> str:
        tables = f"{len(self.files)} table{'s' * (len(self.files) != 1)}"
        return f"<release of {self.name}: {self.manifest.get('status')}; {tables} in {self.folder}>"

    @property
    def product(self) -> str:
        """The product it is of, such as ``phsafe``, or ``topdown`` whatever its configuration calls it."""
        return str(self.manifest.get("system", self.manifest.get("product")))

    @property
    def name(self) -> str:
        """What the configuration calls it: of TopDown another name than the product's."""
        return str(self.manifest.get("product"))

    @cached_property
    def plan(self) -> Plan | None:
        """What was measured and what it cost; None of what does not say.

        Raises
        ------
        OutputError
            If the manifest holds no whole plan.
        """
        if "plan" not in self.manifest:
            return None
        try:
            return read_plan(self.manifest["plan"])
        except ValueError as error:
            raise OutputError(f"{self.folder}: the manifest holds no plan: {error}") from None

    @property
    def measured(self) -> Plan:
        """The plan of a release that must have one.

        Raises
        ------
        OutputError
            If there is none, or it is not whole.
        """
        if self.plan is None:
            raise OutputError(f"{self.folder}: the manifest holds no plan")
        return self.plan

    @cached_property
    def parts(self) -> "Mapping[str, ReleaseFolder]":
        """The releases that it is made of, by name, such as ``persons`` and ``units``; none of most.

        Raises
        ------
        OutputError
            If one is missing, or its manifest is not the one that this names.
        """
        found = {}
        for name in part_names(self.manifest):
            found[name] = read_release(self.folder / name, confidential=True)
            if found[name].sha256 != self.manifest[PARTS][name]["manifest_sha256"]:
                raise OutputError(f"{self.folder / name} is another release than the manifest of {self.folder} names")
        return found

    @property
    def confidence(self) -> Fraction | None:
        """The confidence of its margins of error, which every plan tells; None without a plan.

        Raises
        ------
        OutputError
            If the plan tells none.
        """
        if "plan" not in self.manifest:
            return None
        try:
            confidence = Fraction(str(self.manifest["plan"]["confidence"]))
        except (KeyError, ValueError):
            confidence = Fraction(0)
        if not 0 < confidence < 1:
            raise OutputError(f"{self.folder}: the manifest does not hold a plan with the confidence of its margins")
        return confidence

    @property
    def is_pure(self) -> bool:
        """Whether its plan is one of pure differential privacy, whose noise is two-sided geometric."""
        return (self.manifest.get("plan") or {}).get("mechanism") == Mechanism.PURE.value

    @cached_property
    def status(self) -> str:
        """NOT FOR RELEASE, CONFIDENTIAL, or what may be published; derived from the plan (`status_of`).

        Raises
        ------
        OutputError
            If the manifest says that it is better than the plan and the reasons allow.
        """
        return status_of(self.manifest)

    @property
    def record(self) -> list[dict[str, Any]]:
        """What was done to the tables after they were measured, in order."""
        return list(self.manifest.get(RECORD, ()))

    @cached_property
    def files(self) -> Mapping[str, str]:
        """The file of each table, as the manifest names it, by the name of the table."""
        return {str(told.get("table", Path(name).stem)): name for name, told in self.manifest["tables"].items()}

    @property
    def tables(self) -> tuple[str, ...]:
        """Names of the tables, in the order of the manifest."""
        return tuple(self.files)

    @cached_property
    def codebook(self) -> Mapping[str, Any] | None:
        """What its tables, columns and codes are called, as a Data Package; None if it has none.

        Raises
        ------
        OutputError
            If it is missing, was changed, or is none of ours.
        """
        if DATA_PACKAGE not in self.manifest.get("reports", {}):
            return None
        return read_codebook(checked_file(self.folder, self.manifest, DATA_PACKAGE, "reports"))

    def labelled(self, table: str) -> ArrowTable:
        """A table with what its codes mean: beside each column of listed codes one whose name ends in ``_LABEL``.

        Raises
        ------
        KeyError, OutputError
            As by `path`, or if the release has no codebook.
        """
        if self.codebook is None:
            raise OutputError(f"{self.folder} has no codebook, which tells what codes mean")
        listed = meanings(self.codebook, self._file_of(table))
        return self[table].mapped({name: (f"{name}_LABEL", texts) for name, texts in listed.items()})

    def __iter__(self) -> Iterator[str]:
        """Go through the names of the tables."""
        return iter(self.files)

    def __len__(self) -> int:
        """How many tables there are."""
        return len(self.files)

    def __getitem__(self, table: str) -> ArrowTable:
        """A table with the Arrow C stream interface, whose rows are read from the file each time they are asked for.

        Raises
        ------
        KeyError, OutputError
            As by `path`, or if it is no table of a release.
        """
        return read_columns(self.path(table), KINDS if self.product == DESCRIBED_TABLES else None)

    def _repr_html_(self) -> str:
        rows = "".join(
            f"<tr><td>{html.escape(table)}</td><td>{self.manifest['tables'][name].get('rows', '')}</td></tr>"
            for table, name in self.files.items()
        )
        head = "<tr><th>table</th><th>rows</th></tr>"
        return f"<p>{html.escape(repr(self)[1:-1])}</p><table><thead>{head}</thead><tbody>{rows}</tbody></table>"

    def __contains__(self, table: object) -> bool:
        """Whether there is a table of this name."""
        return isinstance(table, str) and normal(table) in self.files

    def path(self, table: str) -> Path:
        """The file of a table, whose bytes are those of the manifest: compared once, at the first use.

        Raises
        ------
        KeyError
            If the release has no such table.
        OutputError
            If it is missing, a link, or was changed.
        """
        return self.file(self._file_of(table))

    def _file_of(self, table: str) -> str:
        if table not in self:
            known = nearest(table, self.files) if isinstance(table, str) else ""
            raise KeyError(f"there is no table {table!r}{known or '; there are ' + ', '.join(self.files)}")
        return self.files[normal(table)]

    def file(self, name: str) -> Path:
        """A file that the manifest lists under "tables", by its name within the folder; checked as by `path`."""
        if name not in self._checked:
            self._checked[name] = checked_file(self.folder, self.manifest, name)
        return self._checked[name]

    def alone(self) -> "ReleaseFolder":
        """Return it, if it is one release and not several.

        Raises
        ------
        OutputError
            If it has parts.
        """
        if names := part_names(self.manifest):
            folders = " or ".join(str(self.folder / name) for name in names)
            raise OutputError(f"{self.folder} holds several releases, each with a plan of its own; name {folders}")
        return self

    def rows(self, table: str, *, as_text: bool = False) -> str:
        """SQL for the rows of a table: counts, variances and margins are numbers, codes and all else text.

        Parameters
        ----------
        as_text : bool
            Leave the numbers of a text file as they are written.

        Raises
        ------
        KeyError, OutputError
            As by `path`, or if it is no table of a release.
        """
        path = self.path(table)
        with unreadable(OutputError(f"{path} is not readable as a table of a release")):
            # A suppressed number is written as a text.
            return table_rows(path, {} if as_text or _SUPPRESSED in table_columns(path) else KINDS)

    def columns(self, table: str) -> dict[str, list[str]]:
        """The columns of a table as text, a float with the fewest digits that read back as itself.

        Raises
        ------
        KeyError, OutputError
            As by `path`, or if it is no table of a release.
        """
        return read_table(self.path(table))

    def wrong(self) -> list[str]:
        """What is wrong with its files, in words: missing, changed or not listed, links and empty folders."""
        return folder_faults(self.folder, self.manifest)

    def intact(self) -> "ReleaseFolder":
        """Return it, if all its files are those of the manifest, and no others.

        Raises
        ------
        OutputError
            If they are not.
        """
        if wrong := self.wrong():
            raise OutputError("\n  ".join([f"{self.folder} is not what its manifest says:", *wrong]))
        return self

    def derive(
        self,
        out: Path,
        tables: Mapping[str, str],
        record: Mapping[str, Any] | None,
        *,
        database: duckdb.DuckDBPyConnection | None = None,
        overwrite: bool = False,
    ) -> "ReleaseFolder":
        """Write a release with this manifest, other tables, and a record of what was done.

        Parameters
        ----------
        tables : mapping of table name to SQL
            What each table is to hold, written in the format it has here (`rows`, as text); tables that are not named
            are dropped.
        record : mapping, optional
            Appended to `record`.
        database : duckdb.DuckDBPyConnection, optional
            What the SQL is for, if it does not only read `rows`.
        overwrite : bool
            Replace an earlier output there.

        Raises
        ------
        OutputError
            If this is CONFIDENTIAL, or ``out`` cannot be used.
        """
        refuse_confidential(self.manifest, str(self.folder))
        check_out(out, [self.folder], overwrite=overwrite)
        if database is None:
            with open_database() as opened:
                return self.derive(out, tables, record, database=opened, overwrite=overwrite)
        with new_folder(out, overwrite=overwrite) as draft:
            described = {}
            for name, query in tables.items():
                path = draft / Path(self.files[name]).name
                write_query(database, query, path)
                ((rows,),) = database.execute(f"SELECT count(*) FROM ({query})").fetchall()
                described[path.name] = describe(name, path, int(rows), column_types(database, f"({query})"))
            # A report shows the numbers as they were before, so that of the pages only the codebook stays.
            kept = {key: value for key, value in self.manifest.items() if key not in {"tables", "reports", RECORD}}
            if (package := self.codebook) is not None:
                paths = {self.files[told["table"]]: (path, told["columns"]) for path, told in described.items()}
                kept["reports"] = write_codebook(draft, of_tables(package, paths))
            made_of = {"source_manifest_sha256": self.sha256} if self.sha256 else {}
            records = self.record if record is None else [*self.record, {**record, **made_of}]
            manifest = {**kept, RECORD: records, "tables": described}
            write_manifest(draft, manifest)
            digest = checksum(draft / MANIFEST)
        return ReleaseFolder(out, manifest, digest)


def read_release(folder: Path, *, confidential: bool = False) -> ReleaseFolder:
    """Read the manifest of a folder, and check its shape; `yupana.products.gate.open_release` checks what it says.

    Parameters
    ----------
    confidential : bool
        Whether it may be CONFIDENTIAL, or hold several releases; only what makes nothing of it says so.

    Raises
    ------
    OutputError
        If it is none, its manifest is not as docs/manifest.md says, or nothing may be made of it.
    """
    must_be(FOLDER, folder, "name the folder of a release", OutputError)
    manifest = read_manifest(folder, confidential=confidential)
    if "tables" not in manifest:
        raise OutputError(f"{folder / MANIFEST} is not the manifest of a release of yupana: it lists no tables")
    release = ReleaseFolder(folder, manifest, checksum(folder / MANIFEST))
    return release if confidential else release.alone()
