"""What a histogram counts: attributes, their levels, and the shape they span."""

from dataclasses import dataclass
from math import prod


@dataclass(frozen=True, slots=True)
class Attribute:
    """One attribute of a record.

    Attributes
    ----------
    name : str
    labels : tuple of str
        Its levels, in order; ``"0"``, ``"1"``, ... where a configuration gives a number of levels only.
    """

    name: str
    labels: tuple[str, ...]

    @property
    def size(self) -> int:
        """How many levels it has."""
        return len(self.labels)


@dataclass(frozen=True, slots=True)
class Schema:
    """The attributes of a histogram. Its cells are numbered in C order: the last attribute varies fastest."""

    attributes: tuple[Attribute, ...]

    @property
    def names(self) -> tuple[str, ...]:
        """The attributes' names."""
        return tuple(attribute.name for attribute in self.attributes)

    @property
    def shape(self) -> tuple[int, ...]:
        """Levels of each attribute."""
        return tuple(attribute.size for attribute in self.attributes)

    @property
    def cells(self) -> int:
        """How many cells a histogram has."""
        return prod(self.shape)
