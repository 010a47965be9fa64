"""How many groups one record is in, against every set of codes."""

from itertools import combinations
from random import Random

import pytest

from yupana.plan import responses
from yupana.plan.responses import ResponseGroup, most_groups


def by_hand(groups: list[ResponseGroup], most: dict[str, int], codes: int) -> int:
    """The most groups of any record: of each response every set of codes, none among them."""
    return sum(
        max(
            sum(set(some) in group for group in groups if group.response == response)
            for number in range(limit + 1)
            for some in combinations(range(codes), number)
        )
        for response, limit in most.items()
    )


def in_group(group: ResponseGroup, codes: set[int]) -> bool:
    return bool(codes) and (codes <= group.members if group.alone else bool(codes & group.members))


def random_groups(rng: Random, codes: int) -> list[ResponseGroup]:
    nested = rng.random() < 0.5
    found = []
    for response in ("a", "b")[: rng.randint(1, 2)]:
        free = {alone: rng.sample(range(codes), codes) for alone in (False, True)}
        for _ in range(rng.randint(0, 5)):
            alone = rng.random() < 0.5
            members = rng.sample(range(codes), rng.randint(0, codes))
            if nested:
                members = [free[alone].pop() for _ in range(min(len(free[alone]), rng.randint(0, 3)))]
            found.append(ResponseGroup(response, frozenset(members), alone))
    return found


@pytest.mark.parametrize("tried", [1 << 16, 0])
def test_no_record_is_in_more_groups_than_said(tried: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whether sets of codes are tried one by one, or are too many for that."""
    monkeypatch.setattr(responses, "_MOST_TRIED", tried)
    sure = bounds = 0
    for seed in range(1500):
        rng = Random(seed)  # noqa: S311 (a test)
        codes = rng.randint(1, 5)
        groups, most = random_groups(rng, codes), {"a": rng.randint(1, 3), "b": rng.randint(1, 3)}
        number, exact = most_groups(groups, most)
        truth = by_hand(groups, most, codes)
        assert number >= truth, groups
        assert number == truth or not exact, groups
        sure += exact
        bounds += not exact
    assert sure > 250
    assert (bounds > 250) == (tried == 0)


def test_a_record_is_in_a_group_by_its_codes() -> None:
    for seed in range(500):
        rng = Random(seed)  # noqa: S311 (a test)
        for group in random_groups(rng, 4):
            codes = set(rng.sample(range(4), rng.randint(0, 4)))
            assert (codes in group) == in_group(group, codes)
