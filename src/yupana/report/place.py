"""Where a page may be written: never over anything but an earlier page of ours, never among records or tables."""

from collections.abc import Iterable
from pathlib import Path
from typing import Final

from yupana.errors import OutputError
from yupana.files.regular import NewFile, real, regular
from yupana.interruption import whole
from yupana.report.charts import renderer
from yupana.report.page import MARK

CONFIDENTIAL: Final = 0o600
PUBLIC: Final = 0o666


def claim_page(path: Path, apart_from: Iterable[Path] = (), *, mode: int = PUBLIC) -> NewFile:
    """Check where a page is to go, before the work.

    Parameters
    ----------
    path : Path
    apart_from : iterable of Path
        Folders it may not lie in: of records, or of a release, which holds tables only.
    mode : int
        Of the file, before the user's mask.

    Raises
    ------
    OutputError
        If it would lie in one of these, replace a file that is no report of ours, or cannot be written.
    ConfigError
        If charts cannot be drawn because the extra ``report`` is not installed.
    """
    renderer()
    path = path.absolute()
    for folder in apart_from:
        if real(folder) in real(path).parents:
            raise OutputError(f"the report {path} would lie in {folder}; name another place")
    page = NewFile(path, "the report", _is_page, mode)
    page.check()
    return page


def write_page(page: NewFile, text: str) -> None:
    """Write a page that was claimed.

    Raises
    ------
    OutputError
        If it cannot be written.
    """
    with whole():
        page.write(text)
        page.keep()


def _is_page(path: Path) -> bool:
    try:
        with open(path, "rb", opener=regular) as file:
            return MARK.encode() in file.read(1000)
    except OSError:
        return False
