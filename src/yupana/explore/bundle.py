"""The charts' library for the browser, as one local file: made once, at `make setup`, and served from this machine."""

from importlib.resources import files
from pathlib import Path
from typing import Final

from yupana.files.regular import replacing

_SNIPPET: Final = "window.vegaEmbed = vegaEmbed;"


def bundle_path() -> Path:
    """Where the file lies, beside the page's own."""
    return Path(str(files("yupana.explore") / "static" / "vega.js"))


def make_bundle() -> bool:
    """Make the file if it is missing; whether it is there afterwards. Without it the page shows tables for charts."""
    path = bundle_path()
    if path.is_file():
        return True
    try:
        import vl_convert  # noqa: PLC0415 (optional, and half a second to start)
    except ImportError:
        return False
    try:
        with replacing(path) as file:
            file.write(vl_convert.javascript_bundle(_SNIPPET).encode())
    except OSError:
        return False
    return True


if __name__ == "__main__":
    make_bundle()
