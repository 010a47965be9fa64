"""What goes wrong through a user's request or data, as opposed to a fault of the program.

A message names the file, the line, the column and the rule, and says what to do. It never holds a
value of a confidential record: whoever raises one of these for a record gives its place, not its content.
"""

from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from unicodedata import category

_TURNING = frozenset("\u200e\u200f\u061c\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")
"""Marks that change the order in which the characters around them are shown."""


class YupanaError(Exception):
    """A request or an input that cannot be served; the command line prints it and exits with 2."""

    def reworded(self, say: Callable[[str], str]) -> "YupanaError":
        """The same error with its message in other words."""
        return type(self)(say(str(self)))


class ConfigError(YupanaError):
    """A configuration that says something impossible, unknown or contradictory."""


class InputError(YupanaError):
    """A data file that is missing, unreadable or breaks a rule."""


class OutputError(YupanaError):
    """An output place that cannot be used, or a release that does not hold together."""


class BudgetError(YupanaError):
    """A measurement or a run that the plan or the ledger does not allow."""


class EngineError(YupanaError):
    """Work that an engine could not do: workers that are missing, unlike each other, or fail."""


class EntropyError(YupanaError):
    """A source of random bits that fails, so that no noise can be drawn."""


@contextmanager
def reworded(say: Callable[[str], str]) -> Iterator[None]:
    """Raise errors of ours in other words."""
    try:
        yield
    except YupanaError as error:
        raise error.reworded(say) from None


def speaking_of(theirs: object, ours: Path) -> AbstractContextManager[None]:
    """Let errors speak of what was given, such as the folder of the records, and not of a folder in its place."""
    return reworded(lambda text: text.replace(str(ours), str(theirs)))


@contextmanager
def system_fault(fault: type[YupanaError], what: str, way_out: str = "") -> Iterator[None]:
    """Say what the system refuses as a fault of ours, with its reason between two texts."""
    try:
        yield
    except OSError as error:
        raise fault(f"{what}: {error.strerror}{way_out}") from None


@contextmanager
def needing(what: str, extra: str, way_out: str = "") -> Iterator[None]:
    """Say of packages that cannot be imported which extra of ours brings them, as the end of a text."""
    try:
        yield
    except ImportError:
        raise ConfigError(f"{what}; install Yupana's extra {extra} (docs/README.md){way_out}") from None


def nearest(word: str, known: Iterable[str]) -> str:
    """The name that was probably meant, as the end of a message; empty where none is near."""
    from difflib import get_close_matches  # noqa: PLC0415 (only a wrong name needs it)

    by_lower = {name.lower(): name for name in known}
    begun = [name for name in by_lower if len(word) > 1 and name.startswith(word.lower())]
    found = begun or get_close_matches(word.lower(), by_lower, n=1)
    return f"; did you mean {by_lower[found[0]]}?" if found else ""


def is_control(character: str) -> bool:
    """Whether a terminal would obey a character instead of showing it, or show others elsewhere for it."""
    return category(character) in {"Cc", "Cs", "Zl", "Zp"} or character in _TURNING


JOINERS = "\u200c\u200d"
"""Without a form of their own: between the letters of Persian, Sinhala and others, and within pictographs."""


def is_line(text: str) -> bool:
    """Whether a text is one line without characters that nobody sees, but for joiners within a word of some script."""
    if text.isprintable():
        return True
    return all(
        one.isprintable()
        or (one in JOINERS and category(text[place - 1 : place] or " ")[0] in "LMS" and not text[place - 1].isascii())
        for place, one in enumerate(text)
    )


def visible(text: str) -> str:
    """A message with what a terminal would obey written as Python writes it; line ends and tabs stay."""
    if text.isascii() and text.isprintable():
        return text
    return "".join(ascii(one)[1:-1] if is_control(one) and one not in "\n\t" else one for one in text)
