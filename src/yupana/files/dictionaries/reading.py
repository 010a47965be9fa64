"""Read a dictionary of record files, of any of the kinds that are known by what is in it. Public."""

import codecs
from pathlib import Path
from typing import Final

from yupana.files.dictionaries import code_list, cspro, ddi, frictionless, statistics
from yupana.files.dictionaries.dictionary import Dictionary
from yupana.files.dictionaries.told import loaded, read_bytes, refuse, unknown
from yupana.files.document import with_line, with_lines

_HEAD: Final = 1 << 12


def read_dictionary(path: Path) -> Dictionary:
    """Read what a dictionary says of record files; no record is read.

    Parameters
    ----------
    path : Path
        What kind of dictionary it is, is seen in the file, whatever its name.

    Raises
    ------
    ConfigError
        If it is no dictionary, or has faults: all are named by their places.
    """
    path = Path(path)
    if kind := statistics.kind_of(read_bytes(path, _HEAD)):
        return statistics.read_metadata(path, kind)
    data = read_bytes(path)
    if ddi.is_xml(data):
        return ddi.ddi_dictionary(path, data)
    text = _decoded(path, data)
    begin = text.lstrip()[:20]
    if begin.startswith("["):
        return _of_text(path, text)
    return _of_json(path, text) if begin.startswith("{") else code_list.code_list_dictionary(path, text)


def _decoded(path: Path, data: bytes) -> str:
    """Text in UTF-8 or UTF-16 by its mark, or as Windows wrote it before dictionaries had marks."""
    if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        encodings: tuple[str, ...] = ("utf-16",)
    else:
        encodings = ("utf-8-sig", "cp1252", "latin-1")
    for encoding in encodings:
        try:
            text = data.decode(encoding)
        except UnicodeDecodeError:
            continue
        if "\0" in text:
            break
        return text
    raise unknown(path)


def _of_text(path: Path, text: str) -> Dictionary:
    if not text.lstrip().lower().startswith("[dictionary]"):
        raise unknown(path)
    lines: dict[str, int] = {}
    faults: list[str] = []
    document = cspro.document_of_text(text, lines, faults)
    found = cspro.cspro_dictionary(path, document, faults)
    if faults:
        raise refuse(path, cspro.KIND, [with_line(fault, fault.partition(": ")[0], lines) for fault in faults])
    return found


def _of_json(path: Path, text: str) -> Dictionary:
    document = loaded(path, text)
    faults: list[str] = []
    if document.get("fileType") == "dictionary" or {"software", "levels"} <= document.keys():
        found, kind = cspro.cspro_dictionary(path, document, faults), cspro.KIND
    elif any(isinstance(document.get(name), list) for name in ("resources", "fields")):
        found, kind = frictionless.package_dictionary(path, document, faults), frictionless.PACKAGE
    elif "csvw" in str(document.get("@context", "")) or {"tableSchema", "tables"} & document.keys():
        found, kind = frictionless.csvw_dictionary(path, document, faults), frictionless.CSVW
    else:
        raise unknown(path)
    if faults:
        raise refuse(path, kind, with_lines(text, faults, of_json=True))
    return found
