"""Read the codes of a column or of a response, and the one that stands for no value. Public."""

from collections.abc import Mapping
from typing import Any

from yupana.files.codes import read_codes
from yupana.files.columns import Column
from yupana.files.document import is_text
from yupana.products.described.reading.document import DescriptionDocument


def read_coded(doc: DescriptionDocument, place: str, name: str, of: dict[str, Any]) -> tuple[Column, Mapping[int, str]]:
    """A column of ``codes`` with what they are called; that for ``missing`` values, if there is one, is the first."""
    listed = read_codes(f"{place}.codes", of["codes"], doc.folder, doc.faults)
    of["codes"] = listed.document
    codes, labels, missing = listed.codes, listed.labels, of.get("missing", "")
    if "missing" in of:
        if not is_word(missing) or missing in codes:
            doc.faults.append(f"{place}.missing: must be a code that is not listed, without | and quotes")
        codes, labels = (missing, *codes), (missing, *labels)
    return Column(name, range(len(codes)), words=codes, blank=missing), dict(enumerate(labels))


def is_word(missing: object) -> bool:
    """Whether a value can be what stands for no value: fields of a hash stand between bars."""
    return is_text(missing) and not set('|"') & set(str(missing))
