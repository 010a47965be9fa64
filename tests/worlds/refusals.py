"""A small census in files, spoiled, and the refusal that it must meet."""

import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb
import pytest

from yupana.cli.main import main

CANARIES = re.compile(r"4567\d{5}|117999|987654321|SECRETX")


PERSONS = """\
RTYPE,MAFID,QAGE,CENHISP,CENRACE,RELSHIP
3,456700001,45,1,01,20
3,456700001,44,2,07,21
3,456700001,9,1,01,25
3,456700002,70,2,06,20
5,456700003,33,1,02,38
"""


UNITS = """\
RTYPE,MAFID,FINAL_POP,NPF,HHSPAN,HHRACE,TEN,HHT,HHT2,CPLT
2,456700001,3,3,1,01,1,1,01,1
2,456700002,1,0,2,06,3,6,05,5
4,456700003,1,0,0,00,0,0,00,0
2,456700004,0,0,0,00,0,0,00,0
"""


GEO = """\
RTYPE,MAFID,TABBLKST,TABBLKCOU,TABTRACTCE,TABBLK,TABBLKGRPCE,REGIONCE,DIVISIONCE,PLACEFP,AIANNHCE
2,456700001,06,001,400100,1000,1,4,9,99999,9999
2,456700002,06,001,400100,1000,1,4,9,99999,9999
4,456700003,06,001,400100,1000,1,4,9,99999,9999
2,456700004,17,031,010100,1000,1,2,3,14000,9999
"""


LEVELS = ("usa_A-G", "usa_H,I", "usa_*", "state_A-G", "state_H,I", "state_*")


ITERATED = ("PH1_num", "PH1_denom", "PH3", "PH4", "PH5_denom", "PH7", "PH8_denom")


CONFIG: dict[str, Any] = {
    "privacy_budget": {
        **{table: dict.fromkeys(LEVELS, 0.01) for table in ITERATED},
        **{table: {"usa_*": 0.01, "state_*": 0.01} for table in ("PH2", "PH6")},
    },
    "tau": {"PH1_num": 10, "PH2": 10, "PH3": 6, "PH4": 10, "PH6": 6, "PH7": 10},
    "state_filter": ["06", "17"],
    "reader": "csv",
    "privacy_defn": "zcdp",
}


@dataclass
class Place:
    """A folder with sound records and configuration, to be spoiled."""

    root: Path

    @property
    def data(self) -> Path:
        return self.root / "data"

    @property
    def config(self) -> Path:
        return self.root / "config.json"

    @property
    def out(self) -> Path:
        return self.root / "results" / "out"

    @property
    def temporary(self) -> Path:
        return self.root / "tmp"

    def build(self) -> "Place":
        for folder in (self.data, self.out.parent, self.temporary):
            folder.mkdir()
        self.write_records()
        self.write_config(CONFIG)
        return self

    def write_records(self) -> None:
        for name, text in (("persons", PERSONS), ("units", UNITS), ("geo", GEO)):
            (self.data / f"{name}.csv").write_text(text, encoding="ascii", newline="")

    def write_config(self, document: object) -> None:
        self.config.write_text(json.dumps(document), encoding="utf-8")

    def configure(self, place: str, value: object) -> None:
        """Change one entry, its keys joined by dots; the value `...` removes it."""
        document = json.loads(json.dumps(CONFIG))
        *path, last = place.split(".")
        inner = document
        for key in path:
            inner = inner.setdefault(key, {})
        if value is ...:
            del inner[last]
        else:
            inner[last] = value
        self.write_config(document)

    def replace(self, name: str, old: str, new: str) -> None:
        path = self.data / f"{name}.csv"
        text = path.read_bytes().decode("latin-1")
        assert old in text
        path.write_bytes(text.replace(old, new, 1).encode("latin-1"))

    def set_field(self, name: str, line: int, column: str, value: str) -> None:
        path = self.data / f"{name}.csv"
        lines = path.read_text().split("\n")
        fields = lines[line - 1].split(",")
        fields[lines[0].split(",").index(column)] = value
        lines[line - 1] = ",".join(fields)
        path.write_text("\n".join(lines))

    def as_parquet(self, name: str, **casts: str) -> Path:
        """Turn a CSV file into Parquet, casting the columns named: all others are text."""
        source, path = self.data / f"{name}.csv", self.data / f"{name}.parquet"
        header = source.read_text().split("\n")[0].split(",")
        columns = ", ".join(f"{casts.get(column, column)} AS {column}" for column in header)
        with duckdb.connect() as db:
            db.execute(
                f"COPY (SELECT {columns} FROM read_csv('{source}', header = true, all_varchar = true)) TO '{path}'"
            )
        source.unlink()
        return path

    def arguments(self, verb: str, *options: str) -> list[str]:
        out = [] if verb in {"validate", "plan"} else [str(self.out)]
        data = [] if verb == "plan" else [str(self.data)]
        return ["phsafe", verb, str(self.config), *data, *out, *options]

    def assert_nothing_left(self) -> None:
        assert list(self.out.parent.iterdir()) == []
        self.assert_no_scratch()

    def assert_only_draws_left(self) -> None:
        """Or nothing, where none were made."""
        assert {path.name for path in self.out.parent.iterdir()} <= {"out.checkpoint"}
        self.assert_no_scratch()

    def assert_no_scratch(self) -> None:
        left = [path for path in self.temporary.rglob("*") if path.is_file() or path.parent != self.temporary]
        assert left == []


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Place:
    place = Place(tmp_path).build()
    monkeypatch.setenv("TMPDIR", str(place.temporary))
    return place


Refused = Callable[..., str]


@pytest.fixture
def refused(place: Place, capsys: pytest.CaptureFixture[str]) -> Refused:
    """Run a verb in this process, check all that holds for every refusal, and return what it said."""

    def refuse(*needles: str, verb: str = "run", options: tuple[str, ...] = (), leaves_nothing: bool = True) -> str:
        try:
            status = main(place.arguments(verb, *options))
        except SystemExit as stop:  # argparse
            status = int(stop.code or 0)
        printed = capsys.readouterr()
        assert_proper_refusal(status, printed.out, printed.err)
        said = printed.out + printed.err
        for needle in needles:
            assert needle in said, said
        if leaves_nothing:
            place.assert_nothing_left()
        return said

    return refuse


def assert_proper_refusal(status: int, out: str, err: str) -> None:
    assert "Traceback" not in out + err
    assert not CANARIES.search(out + err), out + err
    assert status == 2, out + err
    assert err.strip()
