"""The parameter folder of the demonstration: legal, and knows every code a synthetic census may hold."""

from pathlib import Path

import pytest

from yupana.products.safetab.demonstration_parameters import codes_of, write_parameters
from yupana.products.safetab.iterations import CharacteristicIterations, read_iterations
from yupana.synthetic import race as synthetic_race


@pytest.fixture(scope="module")
def iterations(tmp_path_factory: pytest.TempPathFactory) -> CharacteristicIterations:
    folder = tmp_path_factory.mktemp("demonstration") / "parameters"
    write_parameters(folder)
    return read_iterations(folder)


def test_it_holds_exactly_the_codes_that_are_drawn(iterations: CharacteristicIterations) -> None:
    tables = synthetic_race.code_tables([("06", "4")])
    drawn = {*tables.codes.ravel().tolist(), *tables.rare.tolist(), synthetic_race.NOT_HISPANIC} - {0}
    assert set(iterations.codes) == drawn


def test_it_has_groups_of_every_kind(iterations: CharacteristicIterations) -> None:
    kinds = {(i.level, i.alone, i.detailed_only) for i in iterations.iterations}
    for level in (1, 2):
        assert {(level, alone, False) for alone in (True, False, None)} <= kinds
    assert {(2, alone, True) for alone in (True, False, None)} <= kinds
    assert all(iterations.members[i.code] for i in iterations.iterations)


def test_groups_alone_and_in_combination_hold_the_same_codes(iterations: CharacteristicIterations) -> None:
    by_name: dict[str, list[frozenset[int]]] = {}
    for i in iterations.iterations:
        if i.alone is not None:
            by_name.setdefault(i.name.partition(" alone")[0], []).append(iterations.members[i.code])
    assert all(len(found) == 2 and found[0] == found[1] for found in by_name.values())


def test_hispanic_origins_are_no_race(iterations: CharacteristicIterations) -> None:
    assert iterations.ethnicity_codes.isdisjoint(
        code for i in iterations.iterations if i.alone is not None for code in iterations.members[i.code]
    )
    assert synthetic_race.NOT_HISPANIC not in iterations.ethnicity_codes


def test_codes_are_listed_with_both_ends() -> None:
    assert codes_of("1130-1132 1139") == (1130, 1131, 1132, 1139)
    assert codes_of("") == ()


def test_an_existing_folder_is_not_written_over(tmp_path: Path) -> None:
    with pytest.raises(FileExistsError):
        write_parameters(tmp_path)
