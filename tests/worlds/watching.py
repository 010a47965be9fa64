"""What a command takes in memory, as seen from outside."""

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


def watched() -> ModuleType:
    """The program that watches a command."""
    spec = importlib.util.spec_from_file_location("watched", BENCHMARKS / "watched.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["watched"] = module
    spec.loader.exec_module(module)
    return module
