"""Lets the tests of this folder import the makers and tabulators that lie beside the fast tests."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "fast"))
