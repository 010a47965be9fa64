"""Records on an object store: the same releases as of a folder, and refusals that tell no secret."""

import json
import logging
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import pytest
from cef_maker import write_cef
from census_maker import random_census, write_csv, write_parquet
from census_maker import seeded as census_seed
from linked_homes import homes
from object_stores import BUCKET, SECRETS, Fault, ObjectStore, bad_line, environment
from record_folders import by_area
from safetab_worlds import random_world, seeded, write_data, write_parameters
from topdown_worlds import configuration, make_world, write_world

import yupana
from yupana.cli.main import main
from yupana.confidential.records import object_store
from yupana.confidential.shards import shard_tasks
from yupana.errors import InputError
from yupana.files import store as store_module
from yupana.files.store import Store
from yupana.products.phsafe.configuration import production_config

pytest.importorskip("moto.server", reason="moto is not installed, so there is no object store to ask")
pytest.importorskip("pyarrow.fs", reason="pyarrow is not installed")

STATES = ("10", "44")
CANARIES = re.compile(r"4567\d{5}|117999|SECRETX|[A-Z]+CANARY")


@pytest.fixture(scope="module")
def server() -> Iterator[ObjectStore]:
    import boto3  # noqa: PLC0415
    from moto.server import ThreadedMotoServer  # noqa: PLC0415

    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    moto = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    moto.start()
    _, port = moto.get_host_and_port()
    client = boto3.client(
        "s3",
        endpoint_url=f"http://127.0.0.1:{port}",
        region_name="us-east-1",
        aws_access_key_id="test",
        aws_secret_access_key="test",  # noqa: S106
    )
    client.create_bucket(Bucket=BUCKET)
    yield ObjectStore(port, client)
    client.close()
    moto.stop()


@pytest.fixture
def store(server: ObjectStore, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> ObjectStore:
    """The store as the environment names it, with temporary files of its own and little patience."""
    use(monkeypatch, server.port)
    (tmp_path / "tmp").mkdir()
    monkeypatch.setenv("TMPDIR", str(tmp_path / "tmp"))
    monkeypatch.setattr(store_module, "PATIENCE", 0.5)
    monkeypatch.setattr(store_module, "ATTEMPTS", 1)
    return server


def use(monkeypatch: pytest.MonkeyPatch, port: int) -> None:
    for name, value in environment(port).items():
        monkeypatch.setenv(name, value)


def phsafe() -> dict[str, Any]:
    return {**production_config(), "state_filter": list(STATES)}


def tables(release: yupana.Release) -> dict[str, bytes]:
    paths = [path for path in sorted(release.folder.rglob("*")) if path.is_file() and path.name != "manifest.json"]
    return {str(path.relative_to(release.folder)): path.read_bytes() for path in paths}


def told(release: yupana.Release) -> dict[str, Any]:
    return {key: value for key, value in release.manifest.items() if key != "created"}


def log(out: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(Path(f"{out}.confidential.log").read_text())
    return {key: value for key, value in found.items() if key != "seconds"}


@pytest.fixture(scope="module")
def of_folder(tmp_path_factory: pytest.TempPathFactory) -> yupana.Release:
    """A release of records in a folder, `data` beside it."""
    place = tmp_path_factory.mktemp("phsafe")
    write_csv(place / "data", random_census(census_seed(3), STATES, 60))
    return yupana.run("phsafe", phsafe(), place / "data", place / "of-folder", seed=5)


def check_same(store: ObjectStore, product: str, config: object, data: Path) -> None:
    """A run in shards on a folder's copy on the store makes the same of it, and nothing of it stays behind.

    The records are read where they are counted.
    """
    temporary = data.parent / "tmp"
    url = store.put(data, f"{data.parent.name}/{data.name}")
    local = data.parent / "of-folder"
    check_of_store(yupana.run(product, config, data, local, seed=5), product, config, url, temporary, shards=2)


def check_of_store(
    of_folder: yupana.Release, product: str, config: object, url: str, temporary: Path, shards: int | None
) -> None:
    remote = temporary.parent / f"of-store-in-{shards}"
    of_store = yupana.run(product, config, url, remote, seed=5, shards=shards)
    assert tables(of_store) == tables(of_folder) != {}
    assert told(of_store) == told(of_folder)
    assert log(remote) == log(of_folder.folder)
    assert list(temporary.glob("yupana-scratch-*/*")) == []
    assert str(temporary) not in Path(f"{remote}.confidential.log").read_text()


def lay_out(path: Path, columns: str) -> None:
    """Replace a Parquet file by Hive-style folders of the same name."""
    whole = path.rename(path.with_name("whole"))
    with duckdb.connect() as db:
        rows = f"FROM read_parquet('{whole}', hive_partitioning = false)"
        db.execute(f"COPY ({rows}) TO '{path}' (FORMAT parquet, PARTITION_BY ({columns}))")
    whole.unlink()


@pytest.mark.parametrize(
    "form",
    [pytest.param("parquet", marks=pytest.mark.thorough), pytest.param("hive", marks=pytest.mark.thorough), "cef"],
)
@pytest.mark.thorough
def test_phsafe(form: str, store: ObjectStore, tmp_path: Path) -> None:
    census, data = random_census(census_seed(3), STATES, 60), tmp_path / "data"
    if form == "cef":
        write_cef(data, census)
    else:
        write_parquet(data, census, "text")
    if form == "hive":
        lay_out(data / "geo.parquet", "TABBLKST, TABBLKCOU")
        lay_out(data / "persons.parquet", "RTYPE")
    check_same(store, "phsafe", phsafe(), data)


@pytest.mark.thorough
def test_phsafe_of_csv(of_folder: yupana.Release, store: ObjectStore, tmp_path: Path) -> None:
    url = store.put(of_folder.folder.parent / "data", f"{tmp_path.name}/data")
    for shards in (None, 2):
        check_of_store(of_folder, "phsafe", phsafe(), url, tmp_path / "tmp", shards)


@pytest.mark.thorough
def test_a_connector_of_a_cluster(of_folder: yupana.Release, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No cluster is here: the files of this machine stand for those that its connector would open."""
    from pyarrow.fs import LocalFileSystem  # noqa: PLC0415

    asked = []
    monkeypatch.setattr(store_module, "open_hadoop", lambda *named: asked.append(named) or LocalFileSystem())
    data = of_folder.folder.parent / "data"
    (tmp_path / "tmp").mkdir()
    monkeypatch.setenv("TMPDIR", str(tmp_path / "tmp"))
    of_store = yupana.run("phsafe", phsafe(), f"hdfs://namenode:8020{data}", tmp_path / "out", seed=5, shards=2)
    assert tables(of_store) == tables(of_folder) != {}
    assert log(of_store.folder) == log(of_folder.folder)
    assert set(asked) == {("hdfs", "namenode:8020")}
    assert store_module.store_at(f"s3a://bucket{data}") == Store("s3a", "bucket", str(data).lstrip("/"))
    assert list((tmp_path / "tmp").glob("yupana-scratch-*/*")) == []


def test_what_a_connector_refuses(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from pyarrow.fs import LocalFileSystem  # noqa: PLC0415

    monkeypatch.setattr(store_module, "open_hadoop", lambda *_: LocalFileSystem())
    store = Store("hdfs", "", str(tmp_path / "data").lstrip("/"))
    with pytest.raises(InputError, match=f"^hdfs://{store.path}: no file lies below it"):
        store.connect().files()
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "persons.csv").write_text("RTYPE\n")
    (file,) = store.connect().files()
    version = store.connect().version(file)
    assert b"".join(store.connect().chunks(file, version)) == b"RTYPE\n"
    (tmp_path / "data" / "persons.csv").write_text("Rtype\n")
    with pytest.raises(InputError, match=r"persons\.csv was changed while it was read"):
        list(store.connect().chunks(file, version))


@pytest.mark.thorough
def test_an_engine_counts_what_lies_on_a_store(
    of_folder: yupana.Release, store: ObjectStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = tmp_path / "data"
    write_parquet(data, random_census(census_seed(3), STATES, 60), "text")
    lay_out(data / "geo.parquet", "TABBLKST")
    url = store.put(data, tmp_path.name)
    asked: list[str] = []
    bring = object_store.bring_part
    monkeypatch.setattr(
        shard_tasks, "bring_part", lambda left, name, path: asked.append(name) or bring(left, name, path)
    )
    shards = yupana.run("phsafe", phsafe(), url, tmp_path / "shards", seed=5, shards=3)
    assert tables(shards) == tables(of_folder) != {}
    assert sorted(asked) == sorted(
        path.relative_to(data).as_posix() for path in data.rglob("*.parquet") if path.is_file()
    )


@pytest.mark.slow
def test_keys_that_are_there_twice_are_found_on_a_store(store: ObjectStore, tmp_path: Path) -> None:
    """Shards are cut by another key, so all values of this one are looked at before."""
    _, data = homes(tmp_path, twice=(201, 390))
    url = store.put(data, tmp_path.name)
    whole = {str(finding) for finding in yupana.validate("tables", tmp_path / "homes.json", data)}
    assert whole
    found = yupana.validate("tables", tmp_path / "homes.json", url, shards=3)
    assert {str(finding).replace(url, str(data)) for finding in found} == whole


@pytest.mark.thorough
@pytest.mark.skipif(shutil.which("java") is None, reason="Java is not installed")
def test_spark_counts_what_lies_on_a_store(store: ObjectStore, tmp_path: Path) -> None:
    data = write_data(tmp_path / "data", world := random_world(seeded(5), noise="some"))
    parameters, url = write_parameters(tmp_path / "parameters", world), store.put(data, tmp_path.name)
    whole = yupana.run("safetab-p", parameters, data, tmp_path / "whole", seed=5)
    spark = yupana.run("safetab-p", parameters, url, tmp_path / "spark", seed=5, engine="spark", master="local[2]")
    assert tables(spark) == tables(whole) != {}
    from pyspark import SparkContext  # noqa: PLC0415

    assert SparkContext._gateway is None  # the next session has a Java machine without the settings of this one


@pytest.mark.parametrize("areas", [False, pytest.param(True, marks=pytest.mark.thorough)])
@pytest.mark.thorough
def test_a_worker_on_another_machine_brings_all_it_needs(
    areas: bool,  # noqa: FBT001
    store: ObjectStore,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    data = write_data(tmp_path / "data", world := random_world(seeded(6), noise="some"))
    if areas:
        data = by_area(data, tmp_path / "folders")
    parameters, url = write_parameters(tmp_path / "parameters", world), store.put(data, tmp_path.name)
    whole = yupana.run("safetab-p", parameters, data, tmp_path / "whole", seed=5)
    # The folder of the driver is not there.
    monkeypatch.setattr(shard_tasks.Shard, "whole", lambda self: object_store.folder_of_others(self.left))
    shards = yupana.run("safetab-p", parameters, url, tmp_path / "shards", seed=5, shards=3)
    assert tables(shards) == tables(whole) != {}


@pytest.mark.thorough
def test_a_mark_in_a_folder_of_a_user_is_not_believed(tmp_path: Path) -> None:
    data = tmp_path / "data"
    write_parquet(data, random_census(census_seed(3), STATES, 10), "text")
    mark = {"store": {"bucket": BUCKET, "prefix": ""}, "files": [{"name": "geo.parquet", "size": 1}]}
    (data / ".stored.shard").write_text(json.dumps({**mark, "versions": [["geo.parquet", "1"]]}))
    assert object_store.left_on_store(data) is None


@pytest.mark.parametrize("name", ["persons.parquet", "persons.csv"])
@pytest.mark.thorough
def test_the_ends_of_a_file_tell_its_columns(name: str, store: ObjectStore, tmp_path: Path) -> None:
    data = tmp_path / "data"
    data.mkdir()
    columns = "i AS MAFID, (i % 7)::UTINYINT AS QAGE, ['a', 'b'][1 + i % 2]::ENUM('a', 'b') AS C"
    rows = duckdb.sql(f"SELECT {columns} FROM range(900_000) t(i)")
    (rows.write_parquet if name.endswith("parquet") else rows.write_csv)(str(data / name))
    reader = store_module.store_at(store.put(data, tmp_path.name)).connect()  # type: ignore[union-attr]
    (file,) = reader.files()
    object_store._write_ends(tmp_path / name, file.size, reader.ends(file))
    assert (tmp_path / name).stat().st_size == (data / name).stat().st_size
    assert (tmp_path / name).stat().st_blocks * 512 < max(1 << 21, file.size)
    described = [duckdb.sql(f"DESCRIBE FROM '{place / name}'").fetchall() for place in (data, tmp_path)]
    assert described[0] == described[1]


@pytest.mark.parametrize(
    ("product", "hive"),
    [
        ("safetab-p", True),
        ("safetab-h", False),
        pytest.param("safetab-p", False, marks=pytest.mark.thorough),
        pytest.param("safetab-h", True, marks=pytest.mark.thorough),
    ],
)
@pytest.mark.thorough
def test_safetab(product: str, store: ObjectStore, tmp_path: Path, *, hive: bool) -> None:
    world = random_world(seeded(4), noise="some")
    parameters, data = write_parameters(tmp_path / "parameters", world), write_data(tmp_path / "data", world)
    if hive:
        name = "person-records" if product == "safetab-p" else "household-records"
        (text,) = data.glob(f"{name}.*")
        rows = duckdb.read_csv(str(text), sep="|", all_varchar=True)
        rows.write_parquet(str(data / f"{name}.parquet"))
        text.unlink()
        lay_out(data / f"{name}.parquet", "TABBLKST")
    check_same(store, product, parameters, data)


@pytest.mark.thorough
def test_topdown(store: ObjectStore, tmp_path: Path) -> None:
    data = write_world(make_world(2, (2, 3)), tmp_path / "data")
    check_same(store, "topdown", configuration((2, 3), rho="1"), data)


@pytest.mark.thorough
def test_topdown_of_records_in_two_parts(store: ObjectStore, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    data = tmp_path / "data"
    for part in ("persons", "units"):
        yupana.synthesize(data / part, 5, states=["44"], seed=1)
    url = store.put(data, tmp_path.name)
    of_folder = yupana.exact("topdown", "pl94-2020-us-whole", data, tmp_path / "of-folder")
    of_store = yupana.exact("topdown", "pl94-2020-us-whole", url, tmp_path / "of-store")
    assert list(of_store.parts) == list(of_folder.parts) == ["persons", "units"]
    assert tables(of_store.parts["units"]) == tables(of_folder.parts["units"]) != {}
    assert main(["topdown", "validate", "pl94-2020-us-whole", url]) == 0
    assert f"{url}/persons: valid" in capfd.readouterr().out


TOWN = """
name = "town"
title = "Town"
unit = "people"
files.people.record = "person"
files.people.columns.age = { whole = [0, 9] }
files.people.columns.district = { codes = ["north", "far south"] }
areas.town = { code = "T", labels = { T = "Town" } }
tables.ages = { title = "Ages", counts = "people", by = ["people.age", "people.district"], budget = { town = "1" } }
"""


@pytest.mark.slow
def test_tables(store: ObjectStore, tmp_path: Path) -> None:
    data, config = tmp_path / "data", tmp_path / "town.toml"
    config.write_text(TOWN)
    data.mkdir()
    (data / "SYNTHETIC").touch()
    with duckdb.connect() as db:
        people = "SELECT range % 10 AS age, ['north', 'far south'][1 + range % 2] AS district FROM range(100)"
        db.execute(f"COPY ({people}) TO '{data}/people.parquet' (FORMAT parquet)")
    lay_out(data / "people.parquet", "district")
    check_same(store, "tables", config, data)


# --- what a user may do wrong ---------------------------------------------------------------------------------------


@pytest.fixture
def url(store: ObjectStore, tmp_path: Path) -> str:
    """A census on the store, which holds no mark and so might be of people."""
    data = tmp_path / "data"
    write_csv(data, random_census(census_seed(3), STATES, 20))
    (data / "SYNTHETIC").unlink(missing_ok=True)
    (tmp_path / "config.json").write_text(json.dumps(phsafe()))
    return store.put(data, tmp_path.name)


def refused(url: str, root: Path, capfd: pytest.CaptureFixture[str], *more: str) -> str:
    """What a run says that is refused before anything is drawn, charged or published."""
    ledger, out = root / "ledger.json", root / "results" / "out"
    out.parent.mkdir(exist_ok=True)
    charged = ["--ledger", str(ledger), "--dataset", "census"]
    assert main(["phsafe", "run", str(root / "config.json"), url, str(out), *charged, *more]) == 2
    said = capfd.readouterr()
    assert list(out.parent.iterdir()) == []
    assert not ledger.exists()
    assert list((root / "tmp").glob("yupana-scratch-*/*")) == []
    assert list((root / "tmp").glob("yupana-fault-*")) == []
    (line,) = [line for line in said.err.splitlines() if line.startswith("yupana: ")]
    assert not CANARIES.search(said.out + said.err)
    return line


NO_ANSWER = "the store does not answer, or breaks off; it was asked 3 times, for at most 30 seconds each"
REFUSES = "the store refuses; look at the credentials, the region and your rights (AWS_ACCESS_KEY_ID"


FAULTS: list[tuple[Fault, str, str]] = [
    ("refused", "", f" cannot be listed: {REFUSES}"),
    ("elsewhere", "", " cannot be listed: the bucket lies in another region; set AWS_REGION"),
    ("busy", "", " cannot be listed: the store is too busy"),
    ("silent", "", f" cannot be listed: {NO_ANSWER}"),
    ("cut", "/persons.csv", f"/persons.csv cannot be read: {NO_ANSWER}"),
    ("stalled", "/units.csv", f"/units.csv cannot be read: {NO_ANSWER}"),
    ("changed", "/geo.csv", "/geo.csv was changed while it was read; begin again when nobody writes there"),
]


def faults(shards: tuple[str, ...]) -> list[Any]:
    """All faults, of which those that must be waited for are thorough; one of them stays, and a file that is cut."""
    return [
        pytest.param(
            *fault,
            shards,
            marks=[pytest.mark.thorough] * (fault[0] == "stalled" or (shards != () and fault[0] == "silent")),
            id=f"{fault[0]}-shards{len(shards)}",
        )
        for fault in FAULTS
    ]


@pytest.mark.parametrize(("fault", "key", "words", "shards"), [*faults(()), *faults(("--shards", "2"))])
def test_a_store_that_fails(
    fault: Fault,
    key: str,
    words: str,
    shards: tuple[str, ...],
    store: ObjectStore,
    url: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    with bad_line(store.port, fault, key) as port:
        use(monkeypatch, port)
        assert refused(url, tmp_path, capfd, *shards).startswith(f"yupana: {url}{words}")


def test_nobody_answers(
    url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    use(monkeypatch, 9)
    assert refused(url, tmp_path, capfd).endswith(NO_ANSWER)
    monkeypatch.setenv("AWS_ENDPOINT_URL", "https://no-such-host.invalid")
    assert refused(url, tmp_path, capfd).endswith(NO_ANSWER)


@pytest.mark.parametrize(
    ("place", "words"),
    [
        ("s3://nowhere/2020", "s3://nowhere/2020 cannot be listed: there is no such bucket"),
        ("s3://census/none", "s3://census/none: no file lies below it; name the folder of the records"),
        ("s3://", "DATA s3://: is no whole address; write s3://BUCKET/PREFIX"),
        ("s3://Census/2020", "DATA s3://Census/2020: is no whole address"),
        ("s3://census/a//b", "DATA s3://census/a//b: is no whole address"),
        ("s3://census/../b", "DATA s3://census/../b: is no whole address"),
        ("s3://KEYCANARY:SECRETCANARY@census/2020", "DATA s3://...: a URL holds no @ and no ?"),
        ("s3://census/2020?secret_key=SECRETCANARY", "DATA s3://...: a URL holds no @ and no ?"),
        ("s3://census/\x1b[31m", "DATA s3://...: a URL holds no @ and no ?"),
        ("s3a://census/2020", "DATA s3a://...: only a connector of a cluster reads this, and there is none"),
        ("hdfs://census/2020", "DATA hdfs://...: only a connector of a cluster reads this, and there is none"),
        ("hdfs://KEYCANARY@host/2020", "DATA hdfs://...: a URL holds no @ and no ?, and neither credentials"),
        ("hdfs://host:8020", "DATA hdfs://host:8020: is no whole address; write hdfs://NAMENODE/FOLDER"),
        ("hdfs:/census/2020", "DATA hdfs:/census/2020: is no whole address"),
        ("s3a://census/../b", "DATA s3a://census/../b: is no whole address; write s3a://BUCKET/PREFIX"),
        ("abfs://census/2020", "DATA abfs://...: no such store can be read; give a local folder, or s3://"),
        ("ftp://u:SECRETCANARY@host/2020", "DATA ftp://...: no such store can be read; give a local folder, or s3://"),
        ("file:///tmp/census", "DATA file://...: no such store can be read; give a local folder, or s3://"),
    ],
)
@pytest.mark.usefixtures("url")
def test_a_place_that_is_none(place: str, words: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert refused(place, tmp_path, capfd).startswith(f"yupana: {words}")


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("AWS_ENDPOINT_URL", "http://store.example:9000", "is http, and records would travel in the clear"),
        ("AWS_ENDPOINT_URL_S3", "https://u:SECRETCANARY@host", "AWS_ENDPOINT_URL: must be https://HOST"),
    ],
)
def test_an_endpoint_that_may_not_be_asked(
    name: str,
    value: str,
    words: str,
    url: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv(name, value)
    assert words in refused(url, tmp_path, capfd)


@pytest.mark.parametrize("key", ["a/../../../escaped", "persons.csv/part", "./persons", "\x1b[31mred"])
def test_names_that_no_file_has(
    key: str, store: ObjectStore, url: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    store.write(f"{tmp_path.name}/{key}", b"SECRETX")
    assert "is the name of no file of a folder; name another prefix" in refused(url, tmp_path, capfd)


def test_a_name_that_leads_elsewhere_on_this_machine(
    store: ObjectStore, url: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    store.write(f"{tmp_path.name}/.persons.shard", b'{"paths": ["/etc/passwd"], "names": ["SECRETX"], "rows": []}')
    assert "a name ends in .shard, which is that of a file of ours" in refused(url, tmp_path, capfd)


def test_a_name_that_is_too_long(
    store: ObjectStore, url: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    store.write(f"{tmp_path.name}/{'x' * 400}", b"SECRETX")
    assert "the records cannot be copied: File name too long" in refused(url, tmp_path, capfd)


def test_records_that_do_not_fit(
    url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    usage = shutil.disk_usage(tmp_path)._replace(free=10)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage)
    assert f"do not fit into the 10 that are free in {tmp_path / 'tmp'}" in refused(url, tmp_path, capfd)


def test_no_pyarrow(
    url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow.fs", None)
    assert (
        refused(url, tmp_path, capfd)
        == "yupana: DATA on a store needs pyarrow; install Yupana's extra s3 (docs/README.md)"
    )


def test_nothing_is_copied_for_a_run_that_is_refused(
    store: ObjectStore,
    url: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    with bad_line(store.port, "stalled", ".csv") as port:
        use(monkeypatch, port)
        said = refused(url, tmp_path, capfd, "--seed", "1")
    assert said.startswith(f"yupana: {url} holds no file named SYNTHETIC, so its records may be real; refused because")
    assert "copying" not in said


def test_broken_records_are_told_by_their_place_on_the_store(
    store: ObjectStore, url: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    persons = (tmp_path / "data" / "persons.csv").read_text().splitlines()
    header, (first, *others) = persons[0].split(persons[0][5]), persons[1:]
    fields = first.split(persons[0][5])
    fields[header.index("QAGE")] = "117999"
    text = "\n".join([persons[0], persons[0][5].join(fields), *others])
    store.write(f"{tmp_path.name}/persons.csv", text.encode())
    store.client.delete_object(Bucket=BUCKET, Key=f"{tmp_path.name}/units.csv")
    assert main(["phsafe", "validate", str(tmp_path / "config.json"), url]) == 2
    said = capfd.readouterr()
    assert "persons.csv: domain: QAGE must be 0 to 115; 1 record; line 2" in said.out
    assert f"units.csv or units.parquet: file_present: no such file in {url}" in said.out
    assert not CANARIES.search(said.out + said.err)


@pytest.mark.usefixtures("url")
@pytest.mark.slow
def test_a_part_of_another_schema(store: ObjectStore, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    data = tmp_path / "parts"
    write_parquet(data, random_census(census_seed(3), STATES, 20), "text")
    lay_out(data / "geo.parquet", "TABBLKST")
    (part,) = (data / "geo.parquet" / "TABBLKST=44").iterdir()
    rows = duckdb.sql(
        f"SELECT * REPLACE (PLACEFP::INTEGER AS PLACEFP) FROM read_parquet('{part}', hive_partitioning = 0)"
    )
    rows.write_parquet(str(part))
    there = store.put(data, f"{tmp_path.name}-parts")
    assert main(["phsafe", "run", str(tmp_path / "config.json"), there, str(tmp_path / "out")]) == 2
    said = capfd.readouterr().err
    assert "geo.parquet/TABBLKST=44/data_0.parquet: column_type: column PLACEFP has another type than in" in said
    assert not (tmp_path / "out").exists()


def test_only_data_may_lie_on_a_store(
    url: str, tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    config, data = str(tmp_path / "config.json"), str(tmp_path / "data")
    words = "s3://... is no path of this machine; only DATA may lie on a store"
    for verb, more in (("run", []), ("exact", ["--internal"]), ("accuracy", ["--internal"])):
        assert main(["phsafe", verb, config, data, "s3://census/out", *more]) == 2
        assert f"out: {words}" in capfd.readouterr().err
    assert main(["phsafe", "run", config, data, "out", "--log", "s3://census/log"]) == 2
    assert f"log: {words}" in capfd.readouterr().err
    with pytest.raises(yupana.InputError, match=r"data\['persons'\] is s3://\.\.\.; only all files together"):
        yupana.validate("phsafe", config, {"persons": f"{url}/persons.csv"})
    assert not any(path.name.startswith("s3") for path in tmp_path.iterdir())


@pytest.mark.thorough
def test_a_run_without_a_store_needs_no_pyarrow() -> None:
    code = """if True:
        import sys
        from yupana.cli.main import main
        main(["phsafe", "plan", "s-dhc-2020-us"])
        assert "pyarrow" not in sys.modules"""
    subprocess.run([sys.executable, "-c", code], check=True, capture_output=True)


def test_no_secret_is_in_what_is_sent_to_workers() -> None:
    found = store_module.store_at(f"s3://{BUCKET}/2020/")
    assert found == Store("s3", BUCKET, "2020")
    assert not any(secret in repr(found) for secret in SECRETS.values())
