"""What goes wrong through a user's request or data, as opposed to a fault of the program.

A message names the file, the line, the column and the rule, and says what to do. It never holds a
value of a confidential record: whoever raises one of these for a record gives its place, not its content.
"""

from collections.abc import Callable, Iterable


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


def nearest(word: str, known: Iterable[str]) -> str:
    """The name that was probably meant, as the end of a message; empty where none is near."""
    from difflib import get_close_matches  # noqa: PLC0415 (only a wrong name needs it)

    by_lower = {name.lower(): name for name in known}
    begun = [name for name in by_lower if len(word) > 1 and name.startswith(word.lower())]
    found = begun or get_close_matches(word.lower(), by_lower, n=1)
    return f"; did you mean {by_lower[found[0]]}?" if found else ""
