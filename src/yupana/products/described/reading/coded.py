"""Read the codes of a column or of a response, and the one that stands for no value. Public."""

from collections.abc import Mapping

from yupana.files.codes import Codes, codes_of
from yupana.files.columns import Column
from yupana.products.described.reading.declaration import is_word
from yupana.products.described.reading.document import DescriptionDocument


def read_coded(
    doc: DescriptionDocument, keys: tuple[str, ...], told: Codes, missing: str | None
) -> tuple[Column, Mapping[int, str]]:
    """A column of codes with what they are called; that for ``missing`` values, if there is one, is the first."""
    place = ".".join(keys)
    listed = codes_of(f"{place}.codes", told, doc.folder, doc.faults)
    doc.at(*keys)["codes"] = listed.document
    codes, labels = listed.codes, listed.labels
    if missing is not None:
        if not is_word(missing) or missing in codes:
            doc.faults.append(f"{place}.missing: must be a code that is not listed, without | and quotes")
        codes, labels = (missing, *codes), (missing, *labels)
    return Column(keys[-1], range(len(codes)), words=codes, blank=missing or ""), dict(enumerate(labels))
