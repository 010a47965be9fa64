"""Names that people choose: of any script, compared in Unicode's normal form C; and the files that are named so.

A name is 1 to 200 characters of one line, with spaces inside. It has no ``|``, quotes or backslash, and does not begin
with a mark or a sign that a spreadsheet or SQL takes for something else. Public.
"""

import hashlib
import re
from pathlib import Path
from typing import Final
from unicodedata import category, is_normalized, name, normalize

from yupana.errors import JOINERS, is_line

LONGEST: Final = 200
"""Characters of a name; of the name of a record file bytes, as a disk holds 255 with its ending."""

RULE: Final = f"a name: 1 to {LONGEST} characters of any script, spaces inside"

_NEVER: Final = '|"\\'
_PARTED: Final = "./:"
"""Between the parts of FILE.COLUMN, TABLE/LEVEL and COLUMN:WIDTH."""

_NOT_FIRST: Final = "_=+-@"
"""Columns that begin with _ are our own in queries; a spreadsheet takes the others for a formula."""

_LONGEST_FILE: Final = 150
"""Bytes that the name of a table's file has at most, but for its ending."""

_PLAIN: Final = re.compile(r"[A-Za-z0-9_.-]*", re.ASCII)


def normal(text: str) -> str:
    """A text in Unicode's normal form C, in which an accented letter is written in one way."""
    return text if text.isascii() or is_normalized("NFC", text) else normalize("NFC", text)


def folded(text: str) -> str:
    """What two names have in common that are taken for the same: upper case, other spaces and joiners do not count."""
    if text.isascii():
        return text.lower()
    seen = (" " if category(one) == "Zs" else one for one in normal(text).lower() if one not in JOINERS)
    return normal("".join(seen))


def fault_of(told: str, *, parted: bool = True) -> str:
    """What keeps a text in normal form from being a name, in words; empty if it is one.

    Parameters
    ----------
    parted : bool
        Whether it must do without ``.``, ``/`` and ``:``, as it stands before or between these. Names of columns, of
        recodes and of groups may have them.
    """
    never = _NEVER + (_PARTED if parted else "")
    if not 1 <= len(told) <= LONGEST:
        return f"has {len(told):,} characters, and a name has 1 to {LONGEST}"
    if told != told.strip():
        return "begins or ends with a space; take it away"
    if odd := next((one for place, one in enumerate(told) if one in never or not is_line(told[: place + 1])), ""):
        return f"holds {_shown(odd)}; a name is without {' '.join(never)} and what is not seen or no plain space"
    if told[0] in _NOT_FIRST or category(told[0])[0] == "M":
        why = "which a name does not" if told[0] in _NOT_FIRST else "which belongs to a letter before it"
        return f"begins with {_shown(told[0])}, {why}"
    return ""


def _shown(character: str) -> str:
    if character.isascii() and character.isprintable():
        return character
    return f"U+{ord(character):04X} ({name(character, 'a character without a name')})"


def file_of(table: str) -> str:
    """What the file of a table is called, without its ending; ``/`` stands after the folder that it lies in.

    ASCII letters, digits, ``-`` and ``_`` stay, and letters, marks and digits of other scripts. Joiners are left out.
    Each run of other characters becomes one ``_``. What is longer than 150 bytes in UTF-8 is cut, and ends in ``-`` and
    ten digits of the SHA-256 of the name. So disks, archives and addresses hold it. Two names may have one file.
    """
    return "/".join(map(_file_of, table.split("/")))


def _file_of(told: str) -> str:
    if _PLAIN.fullmatch(told):
        made = told
    else:
        made = ""
        for one in (one for one in told if one not in JOINERS):
            kind = category(one)
            stays = one in "-_" or kind[0] == "L" or kind == "Nd" or (kind[0] == "M" and made[-1:].strip(" _-"))
            made += one if stays else "" if made.endswith(" ") else " "
        made = made.replace(" ", "_")
    if len(made.encode()) <= _LONGEST_FILE:
        return made
    end = f"-{hashlib.sha256(told.encode()).hexdigest()[:10]}"
    return made.encode()[: _LONGEST_FILE - len(end)].decode(errors="ignore") + end


def on_disk(path: Path) -> list[Path]:
    """The files of a name as their disk spells them: in one normal form or another, of a name in ASCII itself."""
    if path.name.isascii() or not path.parent.is_dir():
        return [path] if path.exists() else []
    wanted = normal(path.name)
    return sorted(one for one in path.parent.iterdir() if normal(one.name) == wanted)
