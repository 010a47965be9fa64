"""Where the tests find the project, and public data beside it that is never copied in."""

from pathlib import Path

ROOT = Path(__file__).parents[2]
SHARED = ROOT.parent / "shared"
