"""How far the lines of TopDown's tables stand in, and what each adds up."""

import numpy as np

from yupana.atlas.tables import classes_of, depths_of
from yupana.products.topdown.tables import PERSONS, UNITS, tables_of
from yupana.topdown.queries import Attribute, Schema


def schema(sizes: dict[str, int]) -> Schema:
    return Schema(tuple(Attribute(name, tuple(map(str, range(size)))) for name, size in sizes.items()))


def test_lines_stand_in_below_those_that_they_are_part_of() -> None:
    depths = {table.name: depths_of(classes_of(table)) for table in tables_of(schema(PERSONS))}
    # Total; one race; White alone and five more; several races; two races; the first pair of them.
    assert depths["P1"][:11] == (0, 1, 2, 2, 2, 2, 2, 2, 1, 2, 3)
    # Total; Hispanic; not Hispanic; of these one race; White alone.
    assert depths["P2"][:5] == (0, 1, 1, 2, 3)
    assert depths["P5"] == (0, 1, 2, 2, 2, 2, 1, 2, 2, 2)
    assert [depths_of(classes_of(table)) for table in tables_of(schema(UNITS))] == [(0, 1, 1)]
    assert [depths_of(classes_of(table)) for table in tables_of(schema({"a": 2, "b": 3}))] == [(0, 1, 1, 1, 1, 1)]


def test_what_a_line_adds_up_is_the_classes_of_its_cells() -> None:
    for table in tables_of(schema(PERSONS)):
        classes = classes_of(table)
        counts = np.random.default_rng(1).integers(0, 9, len(table.member))
        lines = [int(counts[(table.member == place).any(axis=1)].sum()) for place in range(table.size)]
        # Every cell is of one class at most, so lines of disjoint classes add up.
        assert lines[0] == sum(line for line, depth in zip(lines, depths_of(classes), strict=True) if depth == 1), (
            table.name
        )
        assert set(classes[0]) == set().union(*map(set, classes[1:]))
