"""Records in other forms than CSV and Parquet, given a folder in which they are as if they were Parquet.

Each record file is written once, part after part, into the private scratch folder; findings name the file and line that
the records came from. All else of the data folder is there, too.
"""

from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from yupana.confidential.records.database import private_database, scratch_folder
from yupana.confidential.records.fixed_records import write_fixed
from yupana.confidential.records.lines import CSDB, begins_as, embedded_name
from yupana.confidential.records.sources import SHARD, Source, forms, make_rows, rows_of, write_shard
from yupana.confidential.records.statistics_files import STATISTICS, write_statistics
from yupana.confidential.records.validation import Finding, require_none
from yupana.errors import InputError, speaking_of
from yupana.files.columns import RecordFile
from yupana.files.dictionaries.dictionary import Dictionary
from yupana.products.described.reading.layout import names_of


@dataclass(frozen=True, slots=True)
class RecordForms:
    """Record files that may be in other forms.

    Attributes
    ----------
    schemas : mapping of str to RecordFile
        By name.
    layout : Dictionary or None
        That describes one file of text, in which the records of several are.
    data, encoding : str
        The name of that file, and its encoding; empty where nothing is said.
    """

    schemas: Mapping[str, RecordFile] = field(default_factory=dict)
    layout: Dictionary | None = None
    data: str = ""
    encoding: str = ""

    @property
    def of_layout(self) -> dict[str, RecordFile]:
        """The files that the layout describes, by what it calls them."""
        called = {name.lower(): name for name in (names_of(self.layout) if self.layout else ())}
        return {called[name.lower()]: of for name, of in self.schemas.items() if name.lower() in called}

    def of_statistics(self, folder: Path) -> dict[str, list[Path]]:
        """The files of SPSS, Stata and SAS that are there, by the name of the record file."""
        others = {schema.name for schema in self.of_layout.values()}
        there = {
            name: [path for ending in STATISTICS if (path := folder / f"{name}{ending}").is_file()]
            for name in self.schemas
            if name not in others
        }
        return {name: paths for name, paths in there.items() if paths}


@contextmanager
def as_parquet(
    folder: Path, asked: RecordForms, memory: int | None, bring: Callable[[], None] = lambda: None
) -> Iterator[Path]:
    """Give records in other forms a folder in which they are read as Parquet; any other folder is taken as it is.

    Parameters
    ----------
    memory : int, optional
        Bytes to get along with.
    bring : callable
        Copies what lies on a store.

    Raises
    ------
    InputError
        If a file is there in two forms, or cannot be read. What is raised within the context speaks of the folder.
    """
    statistics, fixed = asked.of_statistics(folder), asked.of_layout
    if not statistics and not fixed:
        yield folder
        return
    bring()
    with scratch_folder() as scratch:
        _require_one_form(folder, asked, statistics, fixed.values())
        for path in folder.iterdir():
            if not path.name.endswith(SHARD):
                (scratch / path.name).symlink_to(path.absolute())
        make_rows(scratch, (*(asked.schemas[name] for name in statistics), *fixed.values()))
        with speaking_of(folder, scratch):
            with private_database(memory) as db:
                for name, (path,) in statistics.items():
                    schema, copy = asked.schemas[name], scratch / path.name
                    write_statistics(db, copy, schema, rows_of(scratch, schema.name), asked.encoding)
                    write_shard(scratch, schema, Source((copy,), (path.name,)))
                if asked.layout is not None and fixed:
                    data = _data_file(scratch, asked, asked.layout)
                    rows = {name: rows_of(scratch, schema.name) for name, schema in fixed.items()}
                    write_fixed(db, data, asked.layout, asked.encoding, fixed, rows)
                    for name, schema in fixed.items():
                        called = f"{data.name} ({name})" if data.suffix.lower() == CSDB else data.name
                        write_shard(scratch, schema, Source((data,), (called,)))
            yield scratch


def _require_one_form(
    folder: Path, asked: RecordForms, statistics: Mapping[str, list[Path]], fixed: Collection[RecordFile]
) -> None:
    findings = []
    for name, schema in asked.schemas.items():
        there = [path.name for path in (*forms(folder, schema), *statistics.get(name, ()))]
        if name in statistics and len(there) > 1:
            findings.append(Finding("one_file", " or ".join(there), "more than one is there; leave one"))
        elif schema in fixed and there:
            told = f"is there beside the file that the dictionary describes, which has {name}, too; leave one"
            findings.append(Finding("one_file", " or ".join(there), told))
    require_none(findings)


def _data_file(folder: Path, asked: RecordForms, layout: Dictionary) -> Path:
    """The file that the dictionary describes.

    Raises
    ------
    InputError
        If it is not there, or nothing tells which of several it is.
    """
    if asked.data:
        path = folder / asked.data
        if not path.is_file():
            raise InputError(f"{path}: there is no such file; data in the description names it")
        return path
    files = [path for path in sorted(folder.iterdir()) if path.is_file() and not path.name.startswith(".")]
    found = [path for path in files if path.suffix.lower() == ".dat" or path.name.lower().endswith(".dat.gz")]
    found += [
        path for path in files if path.suffix.lower() == CSDB and embedded_name(path).lower() == layout.name.lower()
    ]
    others = {f"{name}.txt".lower() for name in asked.schemas}
    found = found or [path for path in files if path.suffix.lower() == ".txt" and path.name.lower() not in others]
    if len(found) > 1:  # what another dictionary describes shows in the first lines
        found = [path for path in found if path.suffix.lower() == CSDB or begins_as(path, layout, asked.encoding)]
    if len(found) == 1:
        return found[0]
    if any(path.suffix.lower() == ".csdbe" for path in files) and not found:
        raise InputError(f"{folder}: holds an encrypted file (.csdbe) alone; export it with CSPro")
    which = (
        f"several files may be it ({', '.join(path.name for path in found)})" if found else "no .dat, .csdb or .txt is"
    )
    raise InputError(
        f"{folder}: the file that the dictionary {layout.name} describes is not clear: {which}; name it in the "
        'description, as data = "census.dat"'
    )
