"""Arguments of Python that are of another type, or name what there is not: refused by their names."""

import re
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, cast

import polars as pl
import pytest

import yupana
from yupana.products.phsafe.configuration import production_config


def phsafe() -> dict[str, Any]:
    return {**production_config(), "state_filter": ["10", "44"]}


def test_what_is_asked_for_and_does_not_exist_is_named(frames: dict[str, pl.DataFrame], tmp_path: Path) -> None:
    with pytest.raises(yupana.ConfigError, match="there is no product 'phsaef'; did you mean phsafe"):
        yupana.run("phsaef", phsafe(), frames, tmp_path / "out")
    with pytest.raises(yupana.ConfigError, match="phsafe takes no spine"):
        yupana.run("phsafe", phsafe(), frames, tmp_path / "out", spine="optimized")
    with pytest.raises(yupana.ConfigError, match="a ledger needs both"):
        yupana.run("phsafe", phsafe(), frames, tmp_path / "out", dataset="2030")
    with pytest.raises(yupana.ConfigError, match="margins: must be 'exact' or 'bureau'"):
        yupana.plan("phsafe", phsafe(), margins="wide")  # type: ignore[arg-type]
    with pytest.raises(yupana.ConfigError, match="does not lie strictly between 0 and 1"):
        yupana.plan("phsafe", phsafe(), confidence=95)
    with pytest.raises(yupana.ConfigError, match=r"^config cannot be used:\n  key 'privacy_budget' is missing"):
        yupana.plan("phsafe", {"tau": {}})
    with pytest.raises(yupana.ConfigError, match="config is a list; give"):
        yupana.plan("phsafe", [])
    with pytest.raises(yupana.ConfigError, match="is no entry of this configuration; did you mean"):
        yupana.solve("phsafe", phsafe(), margins={"PH1_num/state": 10})
    with pytest.raises(yupana.OutputError, match="name the folder of a release"):
        yupana.open_release(tmp_path / "nothing")


STRANGE: tuple[Any, ...] = (5, 1.5, float("nan"), True, b"x", [1], {}, object(), "a\0b")
"""What is no path, whatever it is given for."""

REFUSED: dict[str, tuple[Any, ...]] = {
    "log": STRANGE,
    "report": STRANGE,
    "ledger": STRANGE,
    "memory": (0, -1, 1.5, float("nan"), float("inf"), True, "4GB", b"x", [1], object(), 10**30, 299_999_999),
    "dataset": (5, 1.5, b"x", [1], {}, object()),
    "unit": (5, b"x", "persons", object()),
    "household_cap": (1.5, "6", True, [1]),
}


@pytest.mark.parametrize("name", REFUSED)
def test_an_option_of_another_type_is_refused_by_its_name(name: str, census: Path, tmp_path: Path) -> None:
    common: dict[str, Any] = {"synthetic": True}
    if name in ("ledger", "dataset", "unit", "household_cap"):
        common |= {"ledger": tmp_path / "ledger.json", "dataset": "2030", "limit": 100}
    for value in REFUSED[name]:
        with pytest.raises(yupana.ConfigError, match=f"^{name}: "):
            yupana.run("phsafe", phsafe(), census, tmp_path / "out", **{**common, name: value})
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("value", STRANGE, ids=lambda value: type(value).__name__)
def test_a_folder_of_another_type_is_refused_by_its_name(value: Any, census: Path, tmp_path: Path) -> None:  # noqa: ANN401
    calls: dict[str, Callable[[], object]] = {
        "folder": lambda: yupana.open_release(value),
        "release": lambda: yupana.check(value),
        "out": lambda: yupana.run("phsafe", phsafe(), census, value),
        "targets": lambda: yupana.solve("phsafe", phsafe(), targets=value),
        "spine": lambda: yupana.plan("topdown", "pl94-2020-us", spine=value),
        "codes": lambda: yupana.plan("safetab-p", "ddhc-2020-us", codes=value),
        "individuals": lambda: yupana.attribute_loss("s-dhc-2020-us", value),
        "reference": lambda: yupana.build_spine(value, tmp_path / "spine"),
    }
    for name, call in calls.items():
        with pytest.raises(yupana.ConfigError, match=f"^{name}: "):
            call()
    assert list(tmp_path.iterdir()) == []


def _refusals(census: Path, out: Path) -> dict[str, Callable[[], object]]:
    """Calls that are refused, by how the refusal begins."""
    release = out / "release"
    run, solve, wrong = partial(yupana.run, "phsafe", phsafe()), partial(yupana.solve, "phsafe", phsafe()), cast(Any, 5)
    yupana.run("phsafe", phsafe(), census, release)
    no = cast(Any, "no")
    return {
        "synthetic: must be True or False": lambda: run(census, out / "o", synthetic=no),
        "overwrite: must be True or False": lambda: run(census, release, overwrite=no),
        "internal: must be True or False": lambda: yupana.exact("phsafe", phsafe(), census, out / "o", internal=no),
        "method: must be 'exact' or 'original'; did you": lambda: yupana.estimate(release, out / "o", method="orignal"),  # type: ignore[arg-type]
        "intervals: must be 'none' or": lambda: yupana.plan("topdown", "cook-2010", intervals="leastsquares"),
        "mode: must be": lambda: yupana.empirical_loss(release, release, mode="publised"),  # type: ignore[arg-type]
        "confidence: 95 does not lie": lambda: yupana.empirical_loss(release, release, confidence=95),
        "replicates: must be a whole number, zero": lambda: yupana.empirical_loss(release, release, replicates=-5),
        "product: must be a key": lambda: yupana.plan(wrong, phsafe()),
        "there is no product 'phsave'": lambda: yupana.PRODUCTS["phsave"],
        "targets cannot be used:\n  margins: names no entry": lambda: solve(margins={}),
        "targets cannot be used:\n  total: must be": lambda: solve(total=10**400, sizes={"PH2/usa_*": 3}),
        "targets cannot be used:\n  decimals: must be": lambda: solve(margins={"PH2/usa_*": 9}, decimals=10**9),
        "queries: must be texts": lambda: yupana.interval(release, wrong),
        "households: must be a whole number": lambda: yupana.synthesize(out / "o", cast(Any, "5")),
        "states: must be a sequence": lambda: yupana.synthesize(out / "o", 5, states=cast(Any, "06")),
        "settings: must be a kind": lambda: yupana.build_spine("GRF-C.txt", out / "o", wrong),
        "root: must be 'nation' or 'county'": lambda: yupana.spine_distances("x", "y", root=cast(Any, "earth")),
        "household_cap: must be a whole number": lambda: yupana.certificate(release, household_cap=cast(Any, "6")),
    }


@pytest.mark.thorough
def test_switches_choices_and_numbers_of_another_type_are_refused(census: Path, tmp_path: Path) -> None:
    """A text such as "no" would turn a switch on."""
    for words, call in _refusals(census, tmp_path).items():
        with pytest.raises(yupana.ConfigError, match=f"^{re.escape(words)}"):
            call()
    assert {path.name for path in tmp_path.iterdir()} == {"release", "release.confidential.log"}
