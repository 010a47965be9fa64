"""What a session of Spark must have, and in which words it is refused."""

import logging
import shutil
import socket
import warnings
from collections.abc import Iterator, Mapping
from importlib import util
from pathlib import Path

import pytest

from yupana.engine import spark, spark_session
from yupana.engine.engine import EngineTerms, result_of
from yupana.engine.spark import SparkEngine, check_installed, check_master
from yupana.engine.spark_session import open_spark, require_set, settings_of
from yupana.errors import ConfigError, EngineError


def settings(master: str, given: Mapping[str, str]) -> dict[str, str]:
    return settings_of(master, given)


@pytest.mark.parametrize(
    ("terms", "told"),
    [
        ({"kind": "other"}, "engine: must be local or spark"),
        ({"shards": 0}, "shards: must be 1"),
        ({"shards": 100_001}, "shards: must be 1"),
        ({"master": "local[2]"}, "master: is of the engine spark"),
        ({"settings": {"spark.ui.port": "1"}}, "spark_conf: is of the engine spark"),
    ],
)
def test_terms_that_do_not_go_together(terms: dict[str, object], told: str) -> None:
    with pytest.raises(ConfigError, match=told):
        EngineTerms(**terms)  # type: ignore[arg-type]


def test_every_master_needs_authentication_and_encryption() -> None:
    clusters = ("spark://far.example:7077", "spark://localhost:7077", "yarn", "k8s://far", "sc://localhost:15002")
    here = ("local", "local[2]", "local-cluster[2,1,1024]")
    for master in (*clusters, *here):
        found = settings(master, {"spark.executor.memory": "4g"})
        assert found["spark.authenticate"] == found["spark.network.crypto.enabled"] == "true"
        assert found["spark.io.encryption.enabled"] == "true"
        assert found["spark.executor.memory"] == "4g"
        assert (found.get("spark.driver.bindAddress") == "127.0.0.1") == (master in here)
    secrets = {settings(here[-1], {})["spark.authenticate.secret"] for _ in range(3)}
    assert len(secrets) == 3
    with pytest.raises(ConfigError, match="bindAddress"):
        settings("local[2]", {"spark.driver.bindAddress": "0.0.0.0"})  # noqa: S104 (that is the point)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("spark.ui.enabled", "true"),
        ("spark.eventLog.enabled", "TRUE"),
        ("spark.eventLog.dir", "folder"),
        ("spark.io.encryption.enabled", "false"),
        ("spark.authenticate", "false"),
        ("spark.network.crypto.enabled", "false"),
        ("spark.log.level", "INFO"),
        ("spark.extraListeners", "x.Y"),
        ("spark.plugins", "x.Y"),
        ("spark.plugins.defaultList", "x.Y"),
        ("spark.api.mode", "connect"),
        ("spark.remote", "sc://far.example:15002"),
        ("spark.master", "spark://far.example:7077"),
        ("spark.sql.queryExecutionListeners", "x.Y"),
        ("spark.sql.streaming.streamingQueryListeners", "x.Y"),
        ("spark.executor.defaultJavaOptions", "-Xlog"),
        ("spark.driver.extraJavaOptions", "-Xlog"),
    ],
)
def test_settings_that_would_let_records_out(name: str, value: str) -> None:
    with pytest.raises(ConfigError, match=name):
        settings("spark://far.example:7077", {name: value})


@pytest.mark.thorough
def test_defaults_of_a_cluster_add_no_listeners(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A class that is none would end the session when it begins."""
    if shutil.which("java") is None:
        pytest.skip("Java is not installed")
    names = ("spark.extraListeners", "spark.plugins", "spark.sql.queryExecutionListeners")
    (tmp_path / "spark-defaults.conf").write_text("".join(f"{name} no.such.Class\n" for name in names))
    monkeypatch.setenv("SPARK_CONF_DIR", str(tmp_path))
    with open_spark(EngineTerms("spark", "local[1]")) as engine:
        assert list(engine.map(bytes.upper, [b"a"])) == [b"A"]


def test_a_master_that_does_not_answer() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # nobody listens
        port = taken.getsockname()[1]
        for scheme in ("spark", "sc"):
            with pytest.raises(EngineError, match="does not answer"):
                check_master(f"{scheme}://127.0.0.1:{port}")


@pytest.mark.parametrize("master", ["", "locl[2]", "spark://", "spark://host", "spark://host:99999", "http://x:1"])
def test_a_master_that_is_none(master: str) -> None:
    with pytest.raises(ConfigError, match="--master"):
        check_master(master)


def fake_java(folder: Path, words: str) -> str:
    java = folder / "bin" / "java"
    java.parent.mkdir()
    java.write_text(f"#!/bin/sh\necho '{words}' >&2\n")
    java.chmod(0o755)
    return str(folder)


def test_java_that_is_too_old_or_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_HOME", fake_java(tmp_path, 'openjdk version "11.0.2" 2019-01-15'))
    with pytest.raises(ConfigError, match="Java 17 or newer, and this is Java 11"):
        check_installed("local[2]")
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "nothing"))
    with pytest.raises(ConfigError, match="none was found"):
        check_installed("local[2]")
    monkeypatch.delenv("JAVA_HOME")
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ConfigError, match="none was found"):
        check_installed("local[2]")
    check_installed("sc://localhost:1")  # Java is the server's


def test_without_pyspark(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spark, "find_spec", lambda name: None if name == "pyspark" else util.find_spec(name))
    with pytest.raises(ConfigError, match="install Yupana's extra spark"):
        check_installed("local[2]")


@pytest.mark.thorough
def test_workers_of_other_versions_are_refused_whenever_they_come() -> None:
    here = spark.describe_worker().decode().splitlines()
    driver = "\n".join([*here[:2], "duckdb 0.1", *here[3:]]).encode()
    done: list[bytes] = []

    def work(*_: object) -> bytes:
        done.append(b"")
        return b""

    def cut(_: bytes) -> Iterator[tuple[int, bytes]]:
        yield 0, work()

    batches = [spark.batch_of(("number", "result"), (0, b""))]
    for made in (
        spark.apply(work, driver, batches),
        spark.cut_up(cut, driver, (0,), batches),
        spark.gather_up(work, driver, 0, True, [spark.batch_of(("shard", "number", "parcel"), (0, 0, b""))]),  # noqa: FBT003
    ):
        for batch in made:
            with pytest.raises(EngineError, match=r"a worker has duckdb .* \(here duckdb 0\.1\)"):
                result_of(batch.column(batch.num_columns - 1)[0].as_py())
    assert not done


class Session:
    """One whose Java machine has died, or that has settings."""

    def __init__(self, settings: Mapping[str, str]) -> None:
        self.conf = self
        self.get = settings.get

    def set(self, *_: str) -> None:
        raise ValueError

    def createDataFrame(self, _: object) -> None:  # noqa: N802
        raise ConnectionRefusedError(111, "Connection refused")


def test_a_session_that_died_is_told_in_our_words() -> None:
    engine = SparkEngine(Session({}), 2, sorts=True)  # type: ignore[arg-type]
    with pytest.raises(EngineError, match="gave up"):
        list(engine.map(bytes, [b""]))
    with pytest.raises(EngineError, match="gave up"):
        list(engine.regroup(lambda _: iter(()), [b""], lambda *_: b"", [0]))


@pytest.mark.parametrize("master", ["spark://far.example:7077", "local[2]"])
def test_settings_are_read_back(master: str) -> None:
    needed = settings(master, {})
    as_spark_has_them = {name: value.upper() for name, value in needed.items() if value}
    require_set(Session(as_spark_has_them), master, needed)  # type: ignore[arg-type]
    for name in ("spark.authenticate", "spark.plugins"):
        for found in ({name: "other"}, {} if needed[name] else {name: "x"}):
            others = {one: value for one, value in as_spark_has_them.items() if one != name} | found
            with pytest.raises(EngineError, match=name):
                require_set(Session(others), master, needed)  # type: ignore[arg-type]


def test_a_server_of_spark_connect_elsewhere_must_be_spoken_to_in_secret(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SPARK_CONNECT_AUTHENTICATE_TOKEN", raising=False)
    for options in ("", "/;user_id=me", "/;use_ssl=false"):
        with pytest.raises(ConfigError, match="in the clear"):
            check_master(f"sc://192.0.2.1:15002{options}")
    assert spark._is_enciphered("sc://192.0.2.1:15002/;use_ssl=true")


def test_a_token_is_in_no_message() -> None:
    for master in ("sc://localhost:1/;token=SECRET", "sc://localhost/;token=SECRET", "xx://localhost:1;token=SECRET"):
        with pytest.raises((ConfigError, EngineError)) as told:
            check_master(master)
        assert "SECRET" not in str(told.value)


def test_what_breaks_off_is_not_told_to_the_root_logger(caplog: pytest.LogCaptureFixture) -> None:
    py4j = Path(util.find_spec("py4j").origin or "").parent  # type: ignore[union-attr]
    others = logging.getLogger().filters[:]
    with spark_session._without_its_loggers():
        for path, words in ((py4j / "java_gateway.py", "of py4j"), (Path(__file__), "of others")):
            logging.getLogger().handle(logging.makeLogRecord({"pathname": str(path), "msg": words, "levelno": 40}))
    assert [record.msg for record in caplog.records] == ["of others"]
    assert logging.getLogger().filters == others


def test_a_session_whose_server_has_gone_is_in_nobodys_way() -> None:
    server = pytest.importorskip("pysail.spark").SparkConnectServer(port=0)
    server.start(background=True)
    with open_spark(EngineTerms("spark", f"sc://localhost:{server.listening_address[1]}")) as engine:
        server.stop()
        # It was opened in an earlier test, whose filters of warnings have gone, too.
        warnings.simplefilter("error")
    assert type(engine.session).getActiveSession() is None
