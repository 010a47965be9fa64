"""Every engine does the same work, once for each piece, and tells nothing of what it moved."""

import string
from functools import partial
from pathlib import Path

import engine_tasks as tasks
import pytest
from census_maker import seeded

from yupana.engine.engine import Engine, EngineTerms
from yupana.engine.spark_session import open_spark
from yupana.errors import EngineError, InputError


@pytest.mark.thorough
def test_results_come_in_the_order_of_the_work(engine: Engine) -> None:
    work = [bytes([letter]) * (letter % 7) for letter in range(64)]
    assert list(engine.map(tasks.twice, work)) == [one * 2 for one in work]
    assert list(engine.map(tasks.twice, [])) == []


@pytest.mark.parametrize("shards", [1, 3, 8])
def test_parcels_of_a_shard_come_together(engine: Engine, shards: int) -> None:
    random = seeded(shards)
    letters = string.ascii_lowercase[:shards]
    work = ["".join(random.choices(letters, k=random.randint(0, 9))).encode() for _ in range(11)]
    found = list(engine.regroup(tasks.by_letter, work, tasks.joined, [*range(shards), 30]))
    for shard, result in enumerate(found[:-1]):
        expected = b"".join(bytes([c]) for one in work for c in one if c - ord("a") == shard)
        assert result == b"%d:" % shard + expected
    assert found[-1] == b"30:", "a shard without parcels has a result"


def test_a_shard_may_leave_parcels_unread(engine: Engine) -> None:
    found = list(engine.regroup(tasks.by_letter, [b"abc", b"cb"], tasks.first_alone, range(4)))
    assert found == [b"a", b"b", b"c", b"none"]


@pytest.mark.parametrize("which", ["00000000-*", "00000002-00000001", "*"])
def test_parcels_that_others_remove_are_missed(
    session: tuple[str, Engine], engine: Engine, tmp_path: Path, which: str
) -> None:
    """Whichever they are, of a shard that is brought together or of a later one."""
    if session[0] not in {"local", "processes"}:
        pytest.skip("its parcels are no files of ours")
    gather = partial(tasks.removing, tmp_path, which)
    with pytest.raises(EngineError, match="lost on their way to a shard"):
        list(engine.regroup(tasks.by_letter, [b"aabb", b"cb", b"aabcc"], gather, range(3)))


def test_what_nobody_reads_is_counted(session: tuple[str, Engine], engine: Engine, tmp_path: Path) -> None:
    if session[0] not in {"local", "processes"}:
        pytest.skip("its parcels are no files of ours")
    gather = partial(tasks.emptied, tmp_path)
    with pytest.raises(EngineError, match="lost on their way to a shard"):
        list(engine.regroup(tasks.by_letter, [b"aa", b"a"], gather, [0]))


def test_a_folder_of_parcels_that_is_gone_is_missed(
    session: tuple[str, Engine], engine: Engine, tmp_path: Path
) -> None:
    if session[0] not in {"local", "processes"}:
        pytest.skip("its parcels are no files of ours")
    tmp_path.rmdir()
    with pytest.raises(EngineError, match="lost on their way to a shard"):
        list(engine.regroup(tasks.by_letter, [b"aa"], tasks.joined, [0]))


def test_large_parcels_arrive_whole(engine: Engine) -> None:
    assert list(engine.regroup(tasks.large, [b"1234567", b"x"], tasks.size, range(4))) == [b"%d" % (8 << 20)] * 3 + [
        b"0"
    ]


def test_what_a_task_refuses_is_raised_as_it_is(engine: Engine) -> None:
    with pytest.raises(InputError, match="5 records break a rule"):
        list(engine.map(tasks.refuses, [b"12345"]))


def test_what_a_task_raises_is_told_without_its_words(
    session: tuple[str, Engine], engine: Engine, capfd: pytest.CaptureFixture[str]
) -> None:
    name, _ = session
    if name == "local":
        pytest.skip("within this process an error goes on as it is, to the file of faults")
    with pytest.raises(EngineError, match=r"a task failed on .* \(ValueError\)") as raised:
        list(engine.map(tasks.fails, [b"5"]))
    with pytest.raises(EngineError, match="ValueError"):
        list(engine.regroup(tasks.fails_later, [b"ab", b"c"], tasks.joined, range(3)))
    told = capfd.readouterr()
    assert tasks.PLANTED not in str(raised.value) + told.out + told.err
    # What the engine was given is on disk, if anywhere, in the file of faults that the message names.
    report = Path(str(raised.value).split("Details are in ")[1].split(",")[0])
    assert tasks.PLANTED in report.read_text()
    assert report.stat().st_mode & 0o077 == 0
    report.unlink()


def test_a_killed_worker(session: tuple[str, Engine], engine: Engine, tmp_path: Path) -> None:
    """Spark tries again; processes of this machine end the run."""
    name, _ = session
    if name in {"local", "sail"}:
        pytest.skip("it works in this process")
    work = [str(tmp_path / f"mark{number}").encode() for number in range(3)]
    if name == "processes":
        with pytest.raises(EngineError, match="was killed"):
            list(engine.map(tasks.killed_once, work))
    else:
        assert list(engine.map(tasks.killed_once, work)) == work


def test_a_session_of_somebody_else_is_left_alone(session: tuple[str, Engine], engine: Engine) -> None:
    if session[0] not in {"spark", "sail"}:
        pytest.skip("it has no session")
    for master in ("local[1]", "sc://localhost:1"):
        with pytest.raises(EngineError, match="has a Spark session already"), open_spark(EngineTerms("spark", master)):
            pass
    assert list(engine.map(bytes.upper, [b"still"])) == [b"STILL"]
