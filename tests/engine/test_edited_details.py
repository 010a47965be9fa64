"""SafeTab's records out of the Census Edited File, counted state by state, are those of one piece."""

import os
from collections.abc import Callable
from itertools import cycle
from pathlib import Path
from typing import Any

import pytest
from edited_homes import edited
from safetab_worlds import NAMES, seeded
from sharded_worlds import made, refused

import yupana
from yupana.cli.main import main
from yupana.confidential.records import safetab_records
from yupana.confidential.shards import census_edited_file
from yupana.engine.local import LocalEngine
from yupana.plan import ledger as door

pytestmark = pytest.mark.thorough

PRODUCTS = ("safetab-p", "safetab-h")


@pytest.mark.parametrize("product", PRODUCTS)
@pytest.mark.parametrize("path", ["data", "link", "parameters/../data"])
def test_the_folder_may_be_named_in_any_way(
    path: str, product: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    case, data = edited(product, tmp_path, seeded(1))
    whole = made(case, data, tmp_path / "whole", None, None)
    (tmp_path / "link").symlink_to(data)
    (tmp_path / "parcels").mkdir()
    monkeypatch.chdir(tmp_path)
    assert made(case, Path(path), Path("out"), LocalEngine(tmp_path / "parcels"), 2) == whole


@pytest.mark.parametrize("product", PRODUCTS)
@pytest.mark.parametrize("shards", [1, 2, None])
def test_a_release_is_that_of_one_piece(
    shards: int | None, product: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    case, data = edited(product, tmp_path, seeded(shards or 0))
    whole = made(case, data, tmp_path / "whole", None, None)
    # A list of units that lies there says nothing: the edited file has them.
    (data / NAMES["housing"]).write_text("none")
    opened = safetab_records.open_detailed_cef

    def apart(*terms: Any) -> Any:  # noqa: ANN401
        assert data not in terms, "read in one piece"
        return opened(*terms)

    monkeypatch.setattr(safetab_records, "open_detailed_cef", apart)
    (tmp_path / "parcels").mkdir()
    assert made(case, data, tmp_path / "out", LocalEngine(tmp_path / "parcels"), shards) == whole


def unknown_code(text: str) -> str:
    return "".join(f"{line[:48]}0000{line[52:]}\n" for line in text.splitlines())


SPOILED: dict[str, tuple[str, Callable[[str], str]]] = {
    "a line too short": ("CEF20_PER_{}.txt", lambda text: text[1:]),
    "a line too long": ("CEF20_UNIT_{}.txt", lambda text: f"x{text}"),
    "an unknown code": ("CEF20_PER_{}.txt", unknown_code),
    "no such block": ("CEF20_UNIT_{}.txt", lambda text: f"{text[:37]}none{text[41:]}"),
    "a unit twice": ("CEF20_UNIT_{}.txt", lambda text: f"{text}{text.splitlines()[0]}\n"),
    "a block twice": ("grfc_tab20_{}.txt", lambda text: f"{text}{text.splitlines()[1]}\n"),
    "no header": ("grfc_tab20_{}.txt", lambda text: text.split("\n", 1)[1]),
    "an empty file": ("CEF20_PER_{}.txt", lambda _: ""),
}
"""What becomes of the text of a file."""

REPLACED: dict[str, tuple[str, Callable[[Path], object]]] = {
    "a file gone": ("CEF20_UNIT_{}.txt", lambda _: None),
    "a link that leads nowhere": ("CEF20_UNIT_{}.txt", lambda path: path.symlink_to("nowhere")),
    "a pipe": ("CEF20_PER_{}.txt", os.mkfifo),
    "a folder": ("grfc_tab20_{}.txt", Path.mkdir),
}
"""What is made in place of a file."""


def spoil(data: Path, fault: str) -> None:
    """Spoil one file of a state."""
    one = min(path.stem[-2:] for path in data.glob("CEF20_PER_*"))
    if fault in SPOILED:
        name, change = SPOILED[fault]
        path = data / name.format(one)
        path.write_text(change(path.read_text()))
    else:
        name, make = REPLACED[fault]
        path = data / name.format(one)
        path.unlink()
        make(path)


@pytest.mark.parametrize(("fault", "product"), list(zip([*SPOILED, *REPLACED], cycle(PRODUCTS), strict=False)))
def test_what_is_wrong_is_told_as_in_one_piece(fault: str, product: str, tmp_path: Path) -> None:
    case, data = edited(product, tmp_path, seeded(4))
    spoil(data, fault)
    whole = refused(case, data, None, None)
    assert whole
    parcels = tmp_path / "parcels"
    parcels.mkdir()
    assert refused(case, data, LocalEngine(parcels), 2) == whole


def test_a_file_that_changes_meanwhile_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    case, data = edited("safetab-p", tmp_path, seeded(4))
    standing = census_edited_file._standing

    def then_changed(*arguments: object) -> object:
        found = standing(*arguments)  # type: ignore[arg-type]
        for path in data.glob("CEF20_PER_*"):
            path.write_text(path.read_text() * 2)
        return found

    (tmp_path / "parcels").mkdir()
    monkeypatch.setattr(census_edited_file, "_standing", then_changed)
    found = refused(case, data, LocalEngine(tmp_path / "parcels"), 2)
    assert len(found) == 1
    assert "is not the same file" in found.pop()


@pytest.mark.parametrize("product", PRODUCTS)
@pytest.mark.parametrize("shards", [(), ("--shards", "2")])
def test_an_interrupted_run_goes_on_by_state_and_in_one_piece(
    shards: tuple[str, ...], product: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without a seed: other noise would be drawn if the draws were not used."""
    _, data = edited(product, tmp_path, seeded(2))
    arguments = [product, "run", str(tmp_path / "parameters"), str(data), str(tmp_path / "out")]
    draw, calls = door.add_noise, list[None]()

    def mortal(*of: Any, **more: Any) -> Any:  # noqa: ANN401
        calls.append(None)
        if len(calls) == 2:
            raise KeyboardInterrupt
        return draw(*of, **more)

    with monkeypatch.context() as other:
        other.setattr(door, "add_noise", mortal)
        assert main([*arguments, *shards]) == 2
    assert len(calls) == 2
    further = () if shards else ("--shards", "2")
    assert main([*arguments, *further, "--resume"]) == 0
    assert yupana.check(tmp_path / "out").wrong == ()
