"""Classes of records: those that no predicate can tell apart, against a look at every combination of values."""

from random import Random

import duckdb
import pytest

from yupana.files.columns import Column, RecordFile
from yupana.plan.classes import TooManyClassesError, classify, told_apart
from yupana.plan.predicates import Where


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
