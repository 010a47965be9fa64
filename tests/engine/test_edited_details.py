"""SafeTab's records out of the Census Edited File, counted state by state, are those of one piece."""

from dataclasses import replace
from pathlib import Path
from random import Random

import pytest
from edited_homes import Home, homes_of, write_cef
from safetab_worlds import FORMS, NAMES, Total, random_world, seeded, write_parameters, write_text
from sharded_worlds import made, refused

from yupana.asked import Case, ask
from yupana.confidential.records import detailed
from yupana.confidential.shards import detailed_by_state
from yupana.engine.engine import Engine
from yupana.engine.local import LocalEngine


def edited(product: str, folder: Path, random: Random) -> tuple[Case, Path]:
    """A world as the edited file: some blocks have no housing unit, and some homes are group quarters."""
    world = random_world(random, noise="some")
    homes = [in_quarters(home) if random.random() < 0.1 else home for home in homes_of(world)]
    bare = random.sample(sorted({home.block for home in homes}), 3)
    homes = [in_quarters(home) if home.block in bare[:2] else home for home in homes if home.block != bare[2]]
    write_cef(folder / "data", homes, world.blocks)
    write_text(folder / "data" / NAMES["totals"], Total._fields, world.totals, FORMS["plain"], "|")
    (folder / "data" / "SYNTHETIC").touch()
    document = world.config.document() | {"reader": "cef"}
    return ask(product, write_parameters(folder / "parameters", world, document=document)), folder / "data"


def in_quarters(home: Home) -> Home:
    people = [replace(person, relship="37") for person in home.people]
    return replace(home, rtype="4", hht="0", tenure="0", people=people)


PRODUCTS = ("safetab-p", "safetab-h")


@pytest.mark.parametrize("product", PRODUCTS)
@pytest.mark.parametrize("seed", range(3))
def test_a_release_is_that_of_one_piece(
    seed: int, product: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    case, data = edited(product, tmp_path, seeded(seed))
    whole = made(case, data, tmp_path / "whole", None, None)
    # A list of units that lies there says nothing: the edited file has them.
    (data / NAMES["housing"]).write_text("none")
    monkeypatch.setattr(detailed, "open_detailed_cef", None)
    for shards in (1, 2, None):
        (tmp_path / str(shards)).mkdir()
        assert made(case, data, tmp_path / "out", LocalEngine(tmp_path / str(shards)), shards) == whole


@pytest.mark.parametrize("product", PRODUCTS)
def test_a_release_is_the_same_on_every_engine(
    product: str, session: tuple[str, Engine], engine: Engine, tmp_path: Path
) -> None:
    del session
    case, data = edited(product, tmp_path, seeded(21))
    whole = made(case, data, tmp_path / "whole", None, None)
    assert made(case, data, tmp_path / "out", engine, None) == whole


def spoiled(data: Path, fault: str) -> None:
    """Spoil one file of a state."""
    one = min(path.stem[-2:] for path in data.glob("CEF20_PER_*"))
    persons, units, blocks = (
        data / name.format(one) for name in ("CEF20_PER_{}.txt", "CEF20_UNIT_{}.txt", "grfc_tab20_{}.txt")
    )
    match fault:
        case "a line too short":
            persons.write_text(persons.read_text()[1:])
        case "a line too long":
            units.write_text("x" + units.read_text())
        case "an unknown code":
            lines = persons.read_text().splitlines()
            persons.write_text("".join(f"{line[:48]}0000{line[52:]}\n" for line in lines))
        case "no such block":
            units.write_text(units.read_text()[:37] + "none" + units.read_text()[41:])
        case "a unit twice":
            units.write_text(units.read_text() + units.read_text().splitlines()[0] + "\n")
        case "a block twice":
            blocks.write_text(blocks.read_text() + blocks.read_text().splitlines()[1] + "\n")
        case "no header":
            blocks.write_text(blocks.read_text().split("\n", 1)[1])
        case "a file gone":
            units.unlink()
        case "an empty file":
            persons.write_text("")


FAULTS = (
    "a line too short",
    "a line too long",
    "an unknown code",
    "no such block",
    "a unit twice",
    "a block twice",
    "no header",
    "a file gone",
    "an empty file",
)


@pytest.mark.parametrize("product", PRODUCTS)
@pytest.mark.parametrize("fault", FAULTS)
def test_what_is_wrong_is_told_as_in_one_piece(fault: str, product: str, tmp_path: Path) -> None:
    case, data = edited(product, tmp_path, seeded(4))
    spoiled(data, fault)
    whole = refused(case, data, None, None)
    assert whole
    parcels = tmp_path / "parcels"
    parcels.mkdir()
    assert refused(case, data, LocalEngine(parcels), 2) == whole


def test_a_file_that_changes_meanwhile_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    case, data = edited("safetab-p", tmp_path, seeded(4))
    standing = detailed_by_state._standing

    def then_changed(*arguments: object) -> object:
        found = standing(*arguments)  # type: ignore[arg-type]
        for path in data.glob("CEF20_PER_*"):
            path.write_text(path.read_text() * 2)
        return found

    (tmp_path / "parcels").mkdir()
    monkeypatch.setattr(detailed_by_state, "_standing", then_changed)
    found = refused(case, data, LocalEngine(tmp_path / "parcels"), 2)
    assert len(found) == 1
    assert "is not the same file" in found.pop()
