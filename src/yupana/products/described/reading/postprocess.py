"""Read what is done to noisy counts after the door, and check that the areas of a description allow it. Public."""

from collections.abc import Iterator
from itertools import pairwise

from yupana.products.described.description import Description, Postprocess
from yupana.products.described.postprocess import parents_of
from yupana.products.described.reading.document import DescriptionDocument


def read_postprocess(doc: DescriptionDocument) -> Postprocess:
    """Read the part; without it counts stay as they were measured."""
    found = doc.read.postprocess
    if found.consistent and found.coterminous:
        doc.faults.append(
            "postprocess.coterminous: leave it out; where counts are consistent, areas that hold the same show the same"
        )
    return found


def check_postprocess(doc: DescriptionDocument, made: Description) -> None:
    """That some table has the same cells at all levels, and areas that are sums of others, where that is needed."""
    doc.faults.extend(
        f"postprocess.{name}: every table has detail, so that areas are told in different cells; leave it out"
        for name in made.postprocess.fitted
        if all(table.detail for table in made.tables)
    )
    if made.postprocess.consistent:
        doc.faults.extend(dict.fromkeys(_not_nested(made)))


def _not_nested(made: Description) -> Iterator[str]:
    for table in made.tables:
        if table.detail:
            continue
        for code in dict.fromkeys(code for level in table.levels for code in level.groups):
            kinds = [made.areas[level.areas] for level in table.levels if code in level.groups]
            kinds.sort(key=lambda kind: len(kind.codes))
            for above, below in pairwise(kinds):
                if parents_of(above, below) is None:
                    yield (
                        f"postprocess.consistent: table {table.name} is published for {above.name} and {below.name}, "
                        f"but areas of {above.name} are not sums of whole areas of {below.name}; publish it for areas "
                        "that lie in each other, or leave consistent out"
                    )
