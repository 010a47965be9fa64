"""What a comparison of methods finds, as plain rows for tables and reports. They tell the truth about the records."""

from collections.abc import Sequence
from dataclasses import dataclass, fields

from yupana.files.arrow import ArrowTable
from yupana.privacy.sealed import Sealed
from yupana.products.disclosure_control.methods import Method


@dataclass(frozen=True, slots=True)
class SizeErrors:
    """How far the published counts of one size are from the true ones."""

    method: str
    size: str
    # counts, shown: how many counts have this true size, and how many of them are published
    counts: int
    shown: int
    exact: float | None  # the share of these that are published as they are; None, as below, where none is published
    # mean_absolute_error, bias, quantile_90, largest: of published less true, in records: the mean of its size, its
    # mean, the 90% quantile of its size, its largest
    mean_absolute_error: float | None
    bias: float | None
    quantile_90: float | None
    largest: float | None


@dataclass(frozen=True, slots=True)
class AdditivityRow:
    """How far published sums are from the sums of what is published of their parts."""

    # method, kind: `margins` of cells in a table, `areas` made of areas, or `groups` that make up everyone
    method: str
    kind: str
    # sums, shown: how many there are of any record, and how many of these are published with all their parts
    sums: int
    shown: int
    exact: float | None  # the share of these that add up; None, as below, where there are none
    # mean_difference, largest: in records
    mean_difference: float | None
    largest: float | None


@dataclass(frozen=True, slots=True)
class LearntRow:
    """What somebody learns of small counts, and of small differences between nested ones."""

    # method, target: `areas` or `groups` that differ by few records, or `counts` of few
    method: str
    target: str
    number: int  # how many there are whose true value is small (`yupana.products.disclosure_control.differencing.FEW`)
    # face, certain, guess: shares: read off right from the published numbers; known for certain to who knows the
    # method; guessed right by who does. None where there are no targets.
    face: float | None
    certain: float | None
    guess: float | None


@dataclass(frozen=True, slots=True, repr=False)
class SideBySide(Sealed):
    """All that a comparison found: it tells the truth about the records.

    Attributes
    ----------
    product : str
        As the plan calls it.
    methods : tuple of Method
        The release of the description first.
    errors : sequence of SizeErrors
    additivity : sequence of AdditivityRow
    learnt : sequence of LearntRow
    remarks : sequence of str
        Of single methods, such as how many records were swapped.
    best_guess : float or None
        How often, at most, anybody guesses right from the release whether one unit is among the records, if it is as
        likely as not; None if a count has no noise.
    """

    product: str
    methods: tuple[Method, ...]
    errors: Sequence[SizeErrors]
    additivity: Sequence[AdditivityRow]
    learnt: Sequence[LearntRow]
    remarks: Sequence[str]
    best_guess: float | None

    def table(self) -> ArrowTable:
        """Tabulate the errors, with a row for each method and size of the true count; it tells the truth."""
        names = [field.name for field in fields(SizeErrors)]
        return ArrowTable.of({name: (_kind(name), [getattr(row, name) for row in self.errors]) for name in names})


def _kind(name: str) -> str:
    return "VARCHAR" if name in {"method", "size"} else "BIGINT" if name in {"counts", "shown"} else "DOUBLE"
