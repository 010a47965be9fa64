"""A description as a document, where its files lie and what is wrong with it; checks of its small parts. Public."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from yupana.files.document import is_text
from yupana.products.described.reading.declaration import DeclaredDescription


@dataclass(frozen=True, slots=True)
class DescriptionDocument:
    """What the readers of all parts share.

    Attributes
    ----------
    told : dict
        The document; lists of codes that stand in files are put in their place.
    read : DeclaredDescription
        What it said before.
    folder : Path
        Which names of files are relative to.
    faults : list of str
        Each begins with its place. Readers add to it.
    """

    told: dict[str, Any]
    read: DeclaredDescription
    folder: Path
    faults: list[str]

    def at(self, *keys: str) -> dict[str, Any]:
        """A table of the document."""
        found = self.told
        for key in keys:
            found = found[key]
        return found

    def check_labels(self, place: str, labels: Sequence[str] | Mapping[str, object]) -> None:
        """That labels can be published."""
        strange = [label for label in labels if not is_text(label) or "|" in label or '"' in label]
        self.fault_each(place, "is no label; one is a line of text without | and quotes:", map(repr, strange[:5]))

    def fault_each(self, place: str, what: str, which: Iterable[str]) -> None:
        """A fault for each of some things, if there are any."""
        self.faults.extend(
            f"{place}: {what} {one}" if what.startswith("no ") else f"{place}: {one} {what}" for one in which
        )
