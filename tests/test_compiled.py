"""What compiles TopDown's loops is needed by TopDown alone, and its absence is told in words."""

import subprocess
import sys

import pytest

_WITHOUT = """
import sys
sys.modules["numba"] = None
import importlib
import pkgutil
import yupana
yupana.plan("topdown", "h1-2020-us")
for room in ("atlas", "audit", "explore", "interface", "plan", "release", "report"):
    package = importlib.import_module(f"yupana.{room}")
    for module in pkgutil.iter_modules(package.__path__, f"yupana.{room}."):
        if module.name == "yupana.report.spine":
            continue  # its variances are those of TopDown
        importlib.import_module(module.name)
try:
    import yupana.compiled
except yupana.ConfigError as error:
    print(error)
"""


@pytest.mark.thorough
def test_a_missing_numba_is_named_and_pages_do_without_it() -> None:
    done = subprocess.run([sys.executable, "-c", _WITHOUT], capture_output=True, text=True, check=True)
    assert "install Yupana's extra topdown" in done.stdout
