"""Values given beside a configuration's file, such as ``rho=1/2``, that take the place of the file's. Public."""

from dataclasses import dataclass
from typing import Any, Final

from yupana.files.document import read_value


@dataclass(frozen=True, slots=True)
class Changes:
    """What is changed in a document before its reader checks it.

    Attributes
    ----------
    values : tuple of (str, str)
        Keys with dots between the tables they lie in, and values as JSON, or texts as they are.
    within : tuple of str
        The keys of the table that is meant, where a document holds several; empty for the document itself.
    """

    values: tuple[tuple[str, str], ...] = ()
    within: tuple[str, ...] = ()

    def applied(self, document: object, faults: list[str]) -> object:
        """The document, or the table meant in it, with these values; a key that there is not yet is added.

        Whether it may have such a key is for the reader to say.
        """
        for key in self.within:
            document = document.get(key) if isinstance(document, dict) else None
        if not isinstance(document, dict):
            return document
        places = [place for place, _ in self.values]
        faults += [f"{place}: is set twice" for place in dict.fromkeys(places) if places.count(place) > 1]
        for place, text in self.values:
            document = _with(document, place, place.split("."), read_value(text, faults), faults)
        return document


UNCHANGED: Final = Changes()


def _with(table: dict[str, Any], place: str, keys: list[str], value: object, faults: list[str]) -> dict[str, Any]:
    """A table with a value at a place in it or in its tables."""
    if len(keys) > 1:
        inner = table.get(keys[0], {})
        if not isinstance(inner, dict):
            faults.append(f"{place}: {keys[0]!r} is no table of keys and values")
            return table
        value = _with(inner, place, keys[1:], value, faults)
    return {**table, keys[0]: value}
