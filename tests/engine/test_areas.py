"""Records that lie in folders by area: counted area by area where no key is in two, and cut by their keys otherwise."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from census_maker import seeded, write_parquet
from crowded_census import crowded
from hypothesis import given
from hypothesis import strategies as st
from record_folders import AREAS, by_area
from sharded_worlds import TOPDOWN, WORLDS, damaged, made, phsafe, refused

from yupana.confidential.records.sources import Source
from yupana.confidential.shards.cut_records import KeysOfAreas, areas_of
from yupana.engine.engine import Cut, Engine, Gather
from yupana.engine.local import LocalEngine

pytestmark = pytest.mark.thorough

PRODUCTS = ["phsafe", "safetab-p", "safetab-h"]


@dataclass(frozen=True, slots=True)
class Watched(LocalEngine):
    """Tells how often parcels were cut."""

    cuts: list[int]

    def regroup(self, cut: Cut, work: Sequence[bytes], gather: Gather, shards: Sequence[int]) -> Iterator[bytes]:
        self.cuts.append(len(work))
        return LocalEngine.regroup(self, cut, work, gather, shards)


@pytest.mark.parametrize(
    ("product", "lie"), [*((product, "torn") for product in PRODUCTS), ("phsafe", "apart"), ("persons", "apart")]
)
def test_areas_are_counted_where_they_lie(product: str, lie: str, tmp_path: Path) -> None:
    torn = lie == "torn"
    case, data = {**WORLDS, **TOPDOWN}[product](tmp_path, seeded(3))
    folders = by_area(data, tmp_path / "folders", torn=torn)
    whole = made(case, folders, tmp_path / "whole", None, None)
    # A run of TopDown takes seconds, of which counting is the least.
    for shards, cut in ((None, torn), (5, True) if torn else (2, False))[: 1 if product in TOPDOWN else 2]:
        scratch = tmp_path / str(shards)
        scratch.mkdir()
        engine = Watched(scratch, [])
        assert made(case, folders, tmp_path / "out", engine, shards) == whole
        assert bool(engine.cuts) == cut


def test_areas_are_counted_the_same_on_every_engine(engine: Engine, tmp_path: Path) -> None:
    case, data = WORLDS["phsafe"](tmp_path, seeded(4))
    folders = by_area(data, tmp_path / "folders")
    assert made(case, folders, tmp_path / "out", engine, None) == made(case, folders, tmp_path / "whole", None, None)


@pytest.mark.parametrize("seed", range(4))
def test_the_same_is_found_in_areas(seed: int, tmp_path: Path) -> None:
    random = seeded(seed)
    census = damaged(crowded(seed, random.choice([1, 5, 40]), breaks_rules=random.random() < 0.5), random)
    write_parquet(tmp_path / "data", census, "text")
    folders = by_area(tmp_path / "data", tmp_path / "folders", torn=seed % 3 == 0)
    if seed % 4 == 1:
        (folders / "persons" / AREAS[1] / "part-0.parquet").unlink()
        (folders / "persons" / AREAS[1] / "part-1.parquet").unlink()
    broken = seed % 4 == 2
    if broken:
        path = folders / "units" / AREAS[2] / "part-1.parquet"
        path.write_bytes(path.read_bytes()[:-20])
    case = phsafe(tmp_path, random, drops=random.random() < 0.3)
    found, whole = refused(case, folders, LocalEngine(tmp_path), None), refused(case, folders, None, None)
    # A file that cannot be read is told before anything else is looked at.
    assert found == {one for one in whole if "cut off" in one} if broken else found == whole


@given(st.lists(st.lists(st.lists(st.integers(0, 2**64 - 1) | st.integers(0, 9)), min_size=1), min_size=1))
def test_keys_of_two_areas_are_seen(tmp_path_factory: pytest.TempPathFactory, areas: list[list[list[int]]]) -> None:
    keys = KeysOfAreas(tmp_path_factory.mktemp("keys"))
    for area in areas:
        keys.add([np.array(of_file, np.uint64) for of_file in area])
    distinct = [key for area in areas for key in {key for of_file in area for key in of_file}]
    assert keys.are_apart() == (len(distinct) == len(set(distinct)))


def source(folder: Path, *names: str) -> Source:
    paths = tuple(folder / name for name in names)
    for path in paths:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"x" * len(path.name))
    return Source(paths, names)


def test_folders_of_the_same_name_are_an_area(tmp_path: Path) -> None:
    persons = source(tmp_path, "persons/a/1", "persons/a/2", "persons/b/x/1", "persons/c/1")
    units = source(tmp_path, "units/a/1", "units/c/large-one")
    found = areas_of({"persons": persons, "units": units}, None)
    assert found == (
        {"persons": (3,), "units": (1,)},
        {"persons": (0, 1), "units": (0,)},
        {"persons": (2,), "units": ()},
    )
    assert areas_of({"persons": persons, "units": units}, 2) == (
        {"persons": (3,), "units": (1,)},
        {"persons": (0, 1, 2), "units": (0,)},
    )
    assert areas_of({"persons": persons, "units": units}, 4) == ()
    assert areas_of({"persons": persons, "geo": source(tmp_path, "geo.parquet")}, None) == ()
    assert areas_of({"units": source(tmp_path, "units/a/1", "units/a/2")}, None) == ()
    assert areas_of({"units": source(tmp_path, "units/a/1", "units/2")}, None) == ()
