"""What is to be counted: responses, the groups that areas show of them, and categories."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from yupana.arrays import Ints
from yupana.confidential.tabulate.pairs import Categories
from yupana.confidential.tabulate.pieces import in_chosen
from yupana.geography.block_file import BlockFile
from yupana.plan.responses import ResponseGroup

CODE_BITS: Final = 14
CODES_IN_WORD: Final = 4
_MOST_COLUMNS: Final = 2 * CODES_IN_WORD
_MOST_CATEGORIES: Final = 1 << 12


@dataclass(frozen=True, eq=False)
class ResponseColumns:
    """A question that a record may answer with several codes, as the relation of records holds the answer.

    The answer is a set: a code that is given twice is given once, and a column may be skipped.

    Attributes
    ----------
    columns : tuple of str
        SQL of one to eight columns of numbers from 0 to below 2**14.
    place : numpy.ndarray of int, shape (numbers,)
        Of each number the place of the code, or -1 for none. The first such number is the quickest to count.
    codes : int
        How many codes there are.

    Raises
    ------
    ValueError
        If there are too many columns or numbers, or none.
    """

    columns: tuple[str, ...]
    place: Ints
    codes: int

    def __post_init__(self) -> None:
        if not (1 <= len(self.columns) <= _MOST_COLUMNS and 1 <= len(self.place) <= 1 << CODE_BITS):
            raise ValueError(f"a response has 1 to {_MOST_COLUMNS} columns and 1 to {1 << CODE_BITS} numbers")

    @property
    def words(self) -> tuple[tuple[str, ...], ...]:
        """The columns by the number that they are packed into, four in each."""
        return tuple(
            self.columns[first : first + CODES_IN_WORD] for first in range(0, len(self.columns), CODES_IN_WORD)
        )


@dataclass(frozen=True, eq=False)
class GroupTabulation:
    """What is to be counted.

    Attributes
    ----------
    relation : str
        SQL of the relation of records; not of a temporary one, which belongs to one cursor.
    key : tuple of str
        SQL for the columns of the key of the block of a record, in the order of `BlockFile.key`.
    where : str
        SQL for which records count; ``true`` for all.
    responses : mapping of response to ResponseColumns
    spaces : mapping of kind to tuple of ResponseGroup
        By kind of areas the groups that its areas show, by responses of `responses`. Kinds that the areas given to
        `count_groups` lack are not counted, but a record in one of their groups is in some group.
    attribute : str
        SQL for a number that tells the category of a record.
    category : numpy.ndarray of uint8 or uint16
        The category of each such number.

    Raises
    ------
    ValueError
        If there are more than 4096 categories, or groups by a response that is not among `responses`.
    """

    relation: str
    key: tuple[str, ...]
    where: str
    responses: Mapping[str, ResponseColumns]
    spaces: Mapping[str, tuple[ResponseGroup, ...]]
    attribute: str
    category: Categories

    def __post_init__(self) -> None:
        if self.categories > _MOST_CATEGORIES:
            raise ValueError(f"records are counted in {_MOST_CATEGORIES} categories at most")
        unknown = {group.response for groups in self.spaces.values() for group in groups} - self.responses.keys()
        if unknown:
            raise ValueError(f"there are groups by responses that are not given: {', '.join(sorted(unknown))}")

    @property
    def categories(self) -> int:
        """How many categories."""
        return int(self.category.max()) + 1

    def condition(self, blocks: BlockFile) -> str:
        """SQL for the records that count, in blocks that do."""
        return f"({self.where}) AND {in_chosen(self.key[0], blocks)}"
