"""What a cell counts, as predicates that are written, joined and asked."""

from collections.abc import Iterable
from random import Random

import duckdb
import pytest

from yupana.files.columns import Column, RecordFile
from yupana.plan.predicates import TooManyClassesError, Where, as_sql, classify, told_apart


def where(**columns: int | Iterable[int]) -> Where:
    values = {name: frozenset({of} if isinstance(of, int) else of) for name, of in columns.items()}
    return Where(tuple(sorted(values.items())))


CHILDREN = where(RTYPE=3, QAGE=range(18))


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


def test_a_condition_in_sql_is_the_predicate() -> None:
    records = [{"a": a, "b": b} for a in range(5) for b in range(3)]
    values = ", ".join(f"({record['a']}, {record['b']})" for record in records)
    with duckdb.connect() as db:
        for predicate, words in (
            (where(), "true"),
            (where(a=range(1, 4)), "a BETWEEN 1 AND 3"),
            (where(a={0, 2, 4}, b=1), "a IN (0, 2, 4) AND b BETWEEN 1 AND 1"),
            (where(a=(), b={0, 2}), "false AND b IN (0, 2)"),
        ):
            assert as_sql(predicate) == words
            found = db.execute(f"SELECT a, b FROM (VALUES {values}) AS r (a, b) WHERE {words}").fetchall()
            assert found == [tuple(record.values()) for record in records if record in predicate]


def drawn(rng: Random) -> tuple[RecordFile, list[Where]]:
    columns = tuple(Column(name, range(low := rng.randint(0, 3), low + rng.randint(1, 6))) for name in "abc")
    predicates = [
        Where(
            tuple(
                (column.name, frozenset(rng.sample(column.domain, rng.randint(0, len(column.domain)))))
                for column in columns
                if rng.random() < 0.6
            )
        )
        for _ in range(rng.randint(1, 20))
    ]
    return RecordFile("records", "record", columns), predicates


def test_classes_satisfy_what_their_records_do_and_are_no_more_than_needed() -> None:
    rng = Random(5)  # noqa: S311 (no noise)
    with duckdb.connect() as db:
        for _ in range(40):
            file, predicates = drawn(rng)
            classes = classify(file, predicates)
            places = ", ".join(f"range({c.low}, {c.high + 1}) AS of_{c.name}({c.name})" for c in file.columns)
            rows = db.execute(f"SELECT a, b, c, {classes.combination} FROM {places}").fetchall()
            found = {}
            for *values, combination in rows:
                record = dict(zip("abc", values, strict=True))
                of = classes.class_of[combination]
                satisfied = tuple(record in predicate for predicate in predicates)
                assert tuple(classes.members[:, of]) == satisfied
                assert found.setdefault(satisfied, of) == of
                assert (of == 0) == (not any(satisfied))
            assert classes.count == len({*found.values(), 0})


def test_values_that_are_told_apart_are_those_that_some_predicate_tells_apart() -> None:
    rng = Random(6)  # noqa: S311 (no noise)
    for _ in range(40):
        file, predicates = drawn(rng)
        found = told_apart(file, predicates)
        assert set(found) == {name for predicate in predicates for name, _ in predicate.columns}
        for column in file.columns:
            for i, one in enumerate(column.domain if column.name in found else ()):
                for j, other in enumerate(column.domain):
                    told = any(
                        (one in values) != (other in values)
                        for predicate in predicates
                        for name, values in predicate.columns
                        if name == column.name
                    )
                    assert (found[column.name][i] != found[column.name][j]) == told


def test_so_many_classes_that_they_would_fill_the_memory_are_refused() -> None:
    wide = Column("a", range(40_000))
    each = [Where((("a", frozenset([value])),)) for value in wide.domain]
    with pytest.raises(TooManyClassesError, match="too many combinations of values"):
        classify(RecordFile("records", "record", (wide,)), each)
    columns = tuple(Column(name, range(20)) for name in "abcdef")
    each = [Where(((column.name, frozenset([value])),)) for column in columns for value in column.domain]
    with pytest.raises(TooManyClassesError, match="too many combinations of values"):
        classify(RecordFile("records", "record", columns), each)
    some = [Where((("a", frozenset([value])),)) for value in range(3000)]
    assert classify(RecordFile("records", "record", (wide,)), some).count == 3001
