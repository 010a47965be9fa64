"""Compiled loops: kept once, by several processes at once, and wherever a folder can be written, or not at all."""

import gc
import os
import shutil
import subprocess
import sys
from itertools import product
from pathlib import Path

import pytest
from numba.core.compiler import Flags
from numba.core.errors import TypingError

import yupana
from yupana import compiled

pytestmark = pytest.mark.slow

ASK = """
import numpy as np
from yupana.compiled import is_kept, on_compiling
from yupana.topdown.descent import measurements
one = np.array([0, 2])
cells = np.arange(2, dtype=np.int32)
with on_compiling(lambda: print("compiling")):
    asked = measurements.ask(measurements.SiblingBatch(one, one, cells), cells[::-1].copy(), 2)
print(is_kept(measurements._ask), asked.answers.tolist())
"""
"""Calls one loop; what it prints tells whether that took compiling, and whether that is kept."""

ANSWERS = "[1, 0]"

ALL = """
from yupana.topdown.descent.compile import compile_kernels
from yupana.topdown.node.active_set import solve_active_set
from yupana.topdown.rounding.network import round_by_flow
from yupana.topdown.text_rows import _lay_rows
compile_kernels(print)
print(*(sum(kernel.stats.cache_misses.values()) for kernel in (solve_active_set, round_by_flow, _lay_rows)))
"""
"""Compiles what is not kept; what it prints tells how often three loops were compiled by this process."""


def start(code: str = ASK, **environment: str) -> subprocess.Popen[str]:
    """Call loops in a process of its own."""
    return subprocess.Popen(
        [sys.executable, "-W", "error", "-c", code],
        env={**os.environ, **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def told(process: subprocess.Popen[str]) -> list[str]:
    """The lines that a process printed; it must have ended well."""
    out, errors = process.communicate()
    assert process.returncode == 0, errors
    return out.splitlines()


@pytest.mark.thorough
def test_two_processes_at_once_fill_an_empty_cache_and_a_third_finds_everything(tmp_path: Path) -> None:
    """Both come to the same answers, and nothing is compiled a second time; one may find what the other has kept."""
    pair = [start(NUMBA_CACHE_DIR=str(tmp_path)) for _ in range(2)]
    lines = sorted(told(process) for process in pair)
    assert lines[1] == ["compiling", f"True {ANSWERS}"]
    assert lines[0] in (lines[1], lines[1][1:])
    assert told(start(NUMBA_CACHE_DIR=str(tmp_path))) == [f"True {ANSWERS}"]


@pytest.mark.thorough
def test_a_read_only_install_is_compiled_into_the_cache_of_the_user_or_in_memory(tmp_path: Path) -> None:
    """A file in the way of each ``__pycache__`` keeps even root from writing there."""
    package = tmp_path / "site" / "yupana"
    shutil.copytree(Path(yupana.__file__).parent, package, ignore=shutil.ignore_patterns("__pycache__"))
    for folder in [package, *(path for path in package.rglob("*") if path.is_dir())]:
        (folder / "__pycache__").touch()
    environment = {"PYTHONPATH": str(package.parent), "NUMBA_CACHE_DIR": str(tmp_path / "site/yupana/__pycache__")}
    home = tmp_path / "home"
    home.mkdir()
    assert told(start(**environment, XDG_CACHE_HOME=str(home))) == ["compiling", f"True {ANSWERS}"]
    assert list(home.rglob("*.nbc"))
    assert told(start(**environment, XDG_CACHE_HOME=str(home))) == [f"True {ANSWERS}"]
    nowhere = str(package / "__pycache__")
    assert told(start(**environment, XDG_CACHE_HOME=nowhere)) == ["compiling", f"False {ANSWERS}"]


def install(folder: Path, *without: str) -> dict[str, str]:
    """An install that keeps what `make setup` compiled without some loops, and one before them that is quick."""
    package = folder / "site" / "yupana"
    shutil.copytree(Path(yupana.__file__).parent, package)
    for name in ("_ask", *without):
        for kept in package.rglob(f"*.{name}-*.nb?"):
            kept.unlink()
    # An empty name is none.
    return {"PYTHONPATH": str(package.parent), "NUMBA_CACHE_DIR": ""}


@pytest.mark.thorough
def test_a_run_compiles_what_it_calls_once_and_nothing_else(tmp_path: Path) -> None:
    """What writes text is compiled when text is written; the next process finds all."""
    site = install(tmp_path, "solve_active_set", "round_by_flow", "_lay_rows")
    assert told(start(ALL, **site)) == ["compiling, once on this machine", "1 1 0"]
    assert told(start(ALL, **site)) == ["0 0 0"]


def test_flags_are_equal_where_those_of_numba_are() -> None:
    """Also where one was set to what it is by default."""
    told = [
        {},
        {"nrt": True},
        {"nrt": False},
        {"release_gil": True},
        {"release_gil": True, "nrt": True},
        {"error_model": "numpy"},
    ]
    theirs, ours = [], []
    for options in told:
        flags = Flags()
        for name, value in options.items():
            setattr(flags, name, value)
        theirs.append(flags)
        ours.append(compiled._Flags(flags))
    for a, b in product(range(len(told)), repeat=2):
        same = theirs[a] == theirs[b]
        assert same is (ours[a] == ours[b]) is (ours[a] == theirs[b]) is (theirs[a] == ours[b])
        assert not same or hash(ours[a]) == hash(ours[b]) == hash(theirs[a])


@pytest.mark.parametrize("collects", [True, False])
def test_the_search_for_garbage_goes_on_after_a_compilation(*, collects: bool) -> None:
    before = gc.isenabled()
    try:
        (gc.enable if collects else gc.disable)()
        with pytest.raises(TypingError):
            compiled.compiled(lambda value: value.nothing)(1)
        assert gc.isenabled() is collects
        assert compiled.compiled(lambda value: value + 1)(1) == 2
        assert gc.isenabled() is collects
        assert gc.get_freeze_count() == 0
    finally:
        (gc.enable if before else gc.disable)()
