"""What compiles TopDown's loops is needed by TopDown alone, and its absence is told in words."""

import subprocess
import sys

_WITHOUT = """
import sys
sys.modules["numba"] = None
import yupana
yupana.plan("topdown", "h1-2020-us")
try:
    import yupana.compiled
except yupana.ConfigError as error:
    print(error)
"""


def test_a_missing_numba_is_named() -> None:
    done = subprocess.run([sys.executable, "-c", _WITHOUT], capture_output=True, text=True, check=True)
    assert "install Yupana's extra topdown" in done.stdout
