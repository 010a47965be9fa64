"""What a cell counts, as predicates that are written, joined and asked."""

import pytest

from yupana.plan.predicates import Where, where

CHILDREN = where(RTYPE="3", QAGE=range(18))


def test_codes_and_numbers_are_written_as_one_likes() -> None:
    assert Where((("QAGE", frozenset(range(18))), ("RTYPE", frozenset({3})))) == CHILDREN
    assert where(RELSHIP="20 21 36", TEN=4, HHT=frozenset({1, 2})).columns == (
        ("HHT", frozenset({1, 2})),
        ("RELSHIP", frozenset({20, 21, 36})),
        ("TEN", frozenset({4})),
    )


def test_a_record_satisfies_all_columns() -> None:
    assert {"RTYPE": 3, "QAGE": 17, "TEN": 1} in CHILDREN
    assert {"RTYPE": 3, "QAGE": 18} not in CHILDREN
    assert {"RTYPE": 2, "QAGE": 0} not in CHILDREN
    assert {} in where()


def test_both_of_two_holds_where_each_does() -> None:
    both = CHILDREN & where(TEN=1, QAGE=range(16, 30))
    assert both == where(RTYPE=3, QAGE=range(16, 18), TEN=1)
    assert CHILDREN & where() == CHILDREN


@pytest.mark.parametrize(
    ("columns", "part"), [({"QAGE", "TEN"}, where(QAGE=range(18))), (set(), where()), ({"RTYPE", "QAGE"}, CHILDREN)]
)
def test_a_part_speaks_of_some_columns(columns: set[str], part: Where) -> None:
    assert CHILDREN.on(frozenset(columns)) == part
