"""One small world with an input and a release of every kind, for attacks to spoil."""

import json
import re
import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing, redirect_stderr, redirect_stdout
from fractions import Fraction
from functools import partial
from io import StringIO
from pathlib import Path
from typing import Any, Final

import pandas as pd
import pyreadstat
from boundary_files import write_geojson, write_shapefile, write_topojson
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from dictionaries import write_all
from topdown_worlds import configuration, make_world, write_configuration, write_world

from yupana.cli.main import main
from yupana.products.phsafe.configuration import production_config
from yupana.products.safetab.demonstration_parameters import write_parameters

POLICY: Final = """
[[rule]]
rule = "negative"
tables = ["T01001", "T02001", "T02002", "T02003"]
reason = "N"
"""
INDIVIDUALS: Final = """
[[individuals]]
name = "Ann"
sex = "female"
age = 40
race = "01"
ethnicity = "1"
relation = "spouse"
members = [{sex = "male", age = 41, race = "01", ethnicity = "1", relation = "householder"}]
"""
SHAPE: Final = (2, 3)
DESCRIPTION: Final = """
name = "homes"
unit = "persons"
[files.homes]
key = "MAFID"
[files.homes.columns.TEN]
fixed = true
codes = { file = "tenure.csv", code = "CODE", label = "NAME" }
[files.persons]
parent = { file = "homes", column = "MAFID" }
[files.persons.columns]
QAGE = { whole = [0, 115] }
CENHISP = { codes = { "1" = "not Hispanic", "2" = "Hispanic" } }
[recodes.AGE]
column = "persons.QAGE"
classes = { young = "0-17", old = "18-115" }
[areas.country]
code = "XX"
[areas.tenure]
column = "homes.TEN"
of = { file = "tenure.csv", code = "CODE", area = "KIND" }
[groups.hispanic]
where = { "persons.CENHISP" = "2" }
[levels.by-origin]
areas = "country"
groups = ["hispanic"]
[tables.people]
counts = "persons"
limit = { per = "homes", most = 5 }
by = ["AGE", "persons.CENHISP"]
margins = { people_age = ["AGE"], people_total = [] }
budget = { country = "1/20", tenure = "1/10", by-origin = "1/20" }
[tables.ages]
counts = "persons"
cells = { young = { AGE = "young" }, old = { AGE = "old" } }
sums = { everyone = { all = ["young", "old"] } }
budget = { tenure = "1/10" }
"""
TREATED: Final = """
[postprocess]
non_negative = true
suppress_below = 5
[criteria.totals]
table = "people_total"
level = "tenure"
error = "absolute"
quantile = 0.5
most = 30
[criteria.none-far-off]
table = "everyone"
level = "tenure"
at_least = 10
error = "relative"
quantile = 1
most = "1/5"
chance = 0.9
"""
TENURE: Final = "CODE,NAME,KIND\n0,none,other\n1,owned,owned\n2,mortgage,owned\n3,rented,other\n4,free,other\n"


FOREIGN: Final = """
name = "people"
unit = "PERSON"
[areas.all]
[tables.sexes]
counts = "PERSON"
by = ["PERSON.SEX"]
budget = { all = 1 }
[files.PERSON.columns]
SEX = { codes = ["1", "2"], others = "else" }
AGE = { whole = [0, 99], missing = "none" }
"""
LINES: Final = "D0101001 3 4.5\n" + "".join(f"P0101{n:03}{n % 3}{n:02}110551234aSEC\n" for n in range(1, 20))
CASES: Final = """
CREATE TABLE meta (dictionary TEXT); INSERT INTO meta VALUES ('{"name": "ISLE", "labels": []}');
CREATE TABLE cases (id TEXT, deleted INTEGER, partial_save_mode TEXT);
INSERT INTO cases VALUES ('u', 0, NULL), ('v', 1, NULL);
CREATE TABLE "level-1" ("level-1-id" INTEGER PRIMARY KEY, "case-id" TEXT, province INTEGER, district INTEGER,
    hh INTEGER);
INSERT INTO "level-1" VALUES (1, 'u', 1, 1, 5), (2, 'v', 12, 2, 7);
CREATE TABLE person ("person-id" INTEGER PRIMARY KEY, "level-1-id" INTEGER, occ INTEGER, sex INTEGER, age INTEGER,
    occ_major INTEGER, phone_1 INTEGER, phone_2 INTEGER, phone_3 INTEGER, letter TEXT, name TEXT);
INSERT INTO person ("person-id", "level-1-id", occ, sex, age, name) VALUES
    (4, 1, 1, 1, 30, 'SECRETX'), (5, 2, 1, 2, 40, 'SECRETX'), (6, 1, 2, NULL, NULL, NULL);
"""
COUNTED: Final = ("count", "{w}/d/persons.csv", "--by", "QAGE:20:0-115,CENHISP", "--epsilon", "1")


def build_records(folder: Path) -> None:
    """Write records and a configuration of PHSafe for them."""
    _made(folder, "synth", "{w}/d", "--households", "30", "--states", "44", "--seed", "1")
    (folder / "config.json").write_text(json.dumps({**production_config(), "state_filter": ["44"]}))


def _few_tables(config: Path) -> None:
    """Leave a budget to those tables alone that attacks name."""
    document = json.loads(config.read_text())
    for table, levels in document["privacy_budget"].items():
        if table not in {"PH1_num", "PH1_denom", "PH2", "PH3"}:
            document["privacy_budget"][table] = dict.fromkeys(levels, 0)
    config.write_text(json.dumps(document))


def _made(folder: Path, *arguments: str) -> str:
    told = StringIO()
    with redirect_stdout(told), redirect_stderr(StringIO()) as wrong:
        status = main([a.format(w=folder) for a in arguments])
    if status:
        raise RuntimeError(f"the world cannot be built: {arguments}\n{wrong.getvalue()}")
    return told.getvalue()


def build(folder: Path) -> None:
    """Write inputs, and make releases of them."""
    made = partial(_made, folder)
    build_records(folder)
    _few_tables(folder / "config.json")
    made("synth", "{w}/dq", "--households", "20", "--states", "44", "--seed", "1", "--format", "parquet")
    write_parameters(folder / "p")
    made("phsafe", "run", "{w}/config.json", "{w}/d", "{w}/rel")
    made("phsafe", "run", "{w}/config.json", "{w}/d", "{w}/relq", "--format", "parquet")
    made("phsafe", "exact", "{w}/config.json", "{w}/d", "{w}/relx")
    made("phsafe", "estimate", "{w}/rel", "{w}/est")
    made("phsafe", "accuracy", "{w}/config.json", "{w}/d", "{w}/acc")
    made("safetab-p", "run", "{w}/p", "{w}/d", "{w}/relp")
    made("safetab-h", "run", "{w}/p", "{w}/d", "{w}/relh", "--totals", "{w}/relp/T01001.csv")
    _topdown(folder, made)
    _tables(folder, made)
    _foreign(folder, made)
    _cheaper(folder, made)
    made("spine", "build", "{w}/d/GRF-C.txt", "{w}/spine", "--kind", "conventional")
    (folder / "policy.toml").write_text(POLICY)
    made("postprocess", "suppress", "{w}/relp", "{w}/policy.toml", "{w}/relsup")
    made("postprocess", "coterminous", "{w}/relp", "{w}/d/GRF-C.txt", "{w}/relcot")
    made("audit", "certificate", "{w}/rel", "{w}/certificate")
    _signed(folder, made)
    (folder / "people.toml").write_text(INDIVIDUALS)
    (folder / "shares.json").write_text('{"tables": {"PH2": 2, "PH3": "1/2"}, "margins": {"PH2/usa_*": 500}}')
    (folder / "plan.json").write_text(made("phsafe", "plan", "{w}/config.json", "--json"))
    (folder / "targets.json").write_text('{"margins": {"PH1_num/usa_*": 500}, "decimals": 6}')
    (folder / "columns.csv").write_text("exact,noisy\n" + "".join(f"{n},{n + n % 7 - 3}\n" for n in range(200)))
    made(
        *("phsafe", "run", "{w}/config.json", "{w}/d", "{w}/other"),
        *("--ledger", "{w}/ledger.json", "--dataset", "D", "--limit", "100"),
    )


def _signed(folder: Path, made: Callable[..., str]) -> None:
    key, form = Ed25519PrivateKey.generate(), serialization.PrivateFormat.OpenSSH
    (folder / "key").touch(0o600)
    (folder / "key").write_bytes(key.private_bytes(serialization.Encoding.PEM, form, serialization.NoEncryption()))
    public = key.public_key().public_bytes(serialization.Encoding.OpenSSH, serialization.PublicFormat.OpenSSH)
    (folder / "signers").write_text(f'a@b namespaces="yupana-release",valid-after="20200101Z" {public.decode()}\n')
    made("sign", "{w}/est", "--key", "{w}/key", "--signer", "a@b", "--beside", "{w}/policy.toml")


def _topdown(folder: Path, made: Callable[..., str]) -> None:
    world = make_world(1, SHAPE, states=1)
    write_world(world, folder / "t")
    write_configuration(configuration(SHAPE, rho="2"), folder / "t.json")
    for name, column, number in (("areas.csv", "ward", 3), ("plan.csv", "district", 2)):
        lines = (f"{block},{n % number + 1}\n" for n, block in enumerate(world.blocks))
        (folder / name).write_text(f"block,{column}\n" + "".join(lines))
    pairs = (f"{block},{block}\n" for block in world.blocks)
    (folder / "crosswalk.csv").write_text("from,to\n" + "".join(pairs))
    (folder / "names.csv").write_text("kind,code,name\nstate,01,Alabama\ncounty,01001,Adams\nward,1,First\n")
    (folder / "queries.csv").write_text("area,query\nstate=01,total\nward=1,T0010001\n")
    (folder / "totals.csv").write_text(f"state,total\n01,{sum(world.counts.values())}\n")
    squares = {county: (float(n), 0.0) for n, county in enumerate(sorted({block[:5] for block in world.blocks}))}
    write_geojson(folder / "counties.geojson", squares)
    write_shapefile(folder / "counties.zip", squares)
    write_topojson(folder / "counties.topojson", quantized=True)
    topology = (folder / "counties.topojson").read_text()
    for name, county in zip("ab", squares, strict=False):
        topology = topology.replace(f'"id": "{name}"', f'"id": "{county}"')
    (folder / "counties.topojson").write_text(topology)
    made(
        *("topdown", "run", "{w}/t.json", "{w}/t", "{w}/relt", "--noisy-measurements", "{w}/relm"),
        *("--nmf", "{w}/nmf", "--areas", "{w}/areas.csv", "--names", "{w}/names.csv"),
    )
    made("topdown", "run", "{w}/t.json", "{w}/t", "{w}/truth")
    made("spine", "build", "{w}/t/geography.txt", "{w}/tspine", "--kind", "optimized")
    made("topdown", "estimate", "{w}/nmf", "{w}/relnmf", "--config", "{w}/t.json")
    made(
        *("topdown", "run", "pl94-2020-us-whole", "{w}/d", "{w}/whole", "--spine", "conventional"),
        *("--pl", "{w}/pl", "--intervals", "none", "--no-microdata"),
    )


def _tables(folder: Path, made: Callable[..., str]) -> None:
    shutil.copytree(folder / "d", folder / "h")
    (folder / "h" / "units.csv").rename(folder / "h" / "homes.csv")
    (folder / "homes.toml").write_text(DESCRIPTION)
    (folder / "treated.toml").write_text(DESCRIPTION + TREATED)
    (folder / "tenure.csv").write_text(TENURE)
    (folder / "origin.csv").write_text("CENHISP\n1\n2\n")
    (folder / "budgets.json").write_text('{"tables": {"people": 2, "ages": "1/2"}, "margins": {"ages/tenure": 50}}')
    (folder / "map.toml").write_text('[persons]\nQAGE = "QAGE"\n')
    made("tables", "run", "{w}/homes.toml", "{w}/h", "{w}/tab")
    made("tables", "run", "{w}/treated.toml", "{w}/h", "{w}/treated")
    made("tables", "accuracy", "{w}/treated.toml", "{w}/h", "{w}/tacc", "--trials", "2")
    made("tables", "compare", "{w}/homes.toml", "{w}/h", "{w}/compared", "--seed", "1")
    made(*COUNTED, "--out", "{w}/cnt", "--keys", "{w}/origin.csv")
    made(*COUNTED, "--out", "{w}/cntpub", "--keys-public")


def _foreign(folder: Path, made: Callable[..., str]) -> None:
    """Records as CSPro, statistics programs and spreadsheets write them, and dictionaries of all kinds."""
    (folder / "dict").mkdir()
    write_all(folder / "dict")
    people = pd.DataFrame({"SEX": [1.0, 2.0, 9.0] * 9, "AGE": [4.0, None, 98.0] * 9, "NAME": ["SECRETX"] * 27})
    for name in ("sav", "dta", "xpt", "text", "dat", "csdb"):
        (folder / name).mkdir()
    pyreadstat.write_sav(people, folder / "sav" / "PERSON.sav")
    pyreadstat.write_dta(people, folder / "dta" / "PERSON.dta")
    pyreadstat.write_xport(people, folder / "xpt" / "PERSON.xpt")
    labels = {"SEX": {1: "Male", 2: "Female"}}
    pyreadstat.write_sav(people, folder / "dict" / "isle.sav", variable_value_labels=labels)
    text = "SEX;AGE;Pr\u00e9nom\r\n" + "1,0;42;SECRETX\u00e9\r\n2;;\r\n9; 3 ;\r\n" * 9
    (folder / "text" / "PERSON.csv").write_bytes(text.encode("cp1252"))
    (folder / "dat" / "isle.dat").write_text(LINES)
    with closing(sqlite3.connect(folder / "csdb" / "isle.csdb")) as db:
        db.executescript(CASES)
    (folder / "foreign.toml").write_text(FOREIGN)
    (folder / "text.toml").write_text(f'{FOREIGN}[files.PERSON]\nencoding = "cp1252"\nseparator = ";"\ndecimal = ","\n')
    (folder / "fixed.toml").write_text(f'dictionary = "dict/text.dcf"\n{FOREIGN}')
    made("tables", "run", "{w}/foreign.toml", "{w}/sav", "{w}/foreign")


def _cheaper(folder: Path, made: Callable[..., str]) -> None:
    """Make releases of the same data with a thousandth of the budgets, whose manifests a lie can borrow whole."""
    cheap = folder / "cheap"
    cheap.mkdir()
    for release in ("rel", "relp", "relt"):
        document = json.loads((folder / release / "manifest.json").read_text())["configuration"]
        spent = {key: _thousandth(of) for key, of in document.items() if key.startswith(("privacy_budget", "rho"))}
        (cheap / f"{release}.json").write_text(json.dumps(document | spent))
    (cheap / "tab.toml").write_text(re.sub(r'"1/(\d+)"', r'"1/\g<1>000"', DESCRIPTION))
    shutil.copy(folder / "tenure.csv", cheap)
    made("phsafe", "run", "{w}/cheap/rel.json", "{w}/d", "{w}/cheap/rel")
    made("safetab-p", "run", "{w}/cheap/relp.json", "{w}/d", "{w}/cheap/relp", "--codes", "{w}/p")
    made("tables", "run", "{w}/cheap/tab.toml", "{w}/h", "{w}/cheap/tab")
    made(*COUNTED[:-1], "1/1000", "--out", "{w}/cheap/cnt", "--keys", "{w}/origin.csv")
    made(
        *("topdown", "run", "{w}/cheap/relt.json", "{w}/t", "{w}/cheap/relt", "--areas", "{w}/areas.csv"),
        *("--names", "{w}/names.csv", "--noisy-measurements", "{w}/cheap/relm", "--nmf", "{w}/cheap/nmf"),
    )


def _thousandth(value: Any) -> Any:  # noqa: ANN401 (a document)
    match value:
        case dict():
            return {key: _thousandth(item) for key, item in value.items()}
        case list():
            return list(map(_thousandth, value))
    return str(Fraction(str(value)) / 1000)
