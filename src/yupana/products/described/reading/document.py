"""A description as a document, where its files lie and what is wrong with it; checks of its small parts. Public."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any, Final

from yupana.files.document import is_text, read_table
from yupana.privacy.exact import read_exact

NAME: Final = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,62}")


@dataclass(frozen=True, slots=True)
class DescriptionDocument:
    """What the readers of all parts share.

    Attributes
    ----------
    told : dict
        The document; lists of codes that stand in files are put in their place.
    folder : Path
        Which names of files are relative to.
    faults : list of str
        Each begins with its place. Readers add to it.
    """

    told: dict[str, Any]
    folder: Path
    faults: list[str]

    def tables_of(self, key: str) -> list[tuple[str, dict[str, Any]]]:
        """The tables below a key, by name."""
        told = read_table(key, self.told.get(key, {}), self.faults)
        return [(name, read_table(f"{key}.{name}", of, self.faults)) for name, of in told.items()]

    def check_name(self, place: str, name: str, advice: str = "") -> None:
        """That a name is one."""
        if not NAME.fullmatch(name):
            self.faults.append(f"{place}: a name is letters, digits, - and _, beginning with a letter{advice}")

    def check_labels(self, place: str, labels: Sequence[str] | Mapping[str, object]) -> None:
        """That labels can be published."""
        strange = [label for label in labels if not is_text(label) or "|" in label or '"' in label]
        self.fault_each(place, "is no label; one is a line of text without | and quotes:", map(repr, strange[:5]))

    def is_text(self, place: str, value: object) -> bool:
        """Whether something is a text of one line; a fault if not."""
        if not is_text(value):
            self.faults.append(f"{place}: must be a text of one line")
        return is_text(value)

    def fraction(self, place: str, value: object) -> Fraction | None:
        """A number above 0, exactly; None, with a fault, if it is none."""
        try:
            found = read_exact(value) if isinstance(value, str) else None
        except ValueError:
            found = None
        if not isinstance(found, Fraction) or found <= 0:
            self.faults.append(f"{place}: must be a number above 0, or a fraction as a text 'p/q'")
            return None
        return found

    def fault_each(self, place: str, what: str, which: Iterable[str]) -> None:
        """A fault for each of some things, if there are any."""
        self.faults.extend(
            f"{place}: {what} {one}" if what.startswith("no ") else f"{place}: {one} {what}" for one in which
        )
