"""Households and their people, drawn at random for a synthetic census.

Nothing here comes from a record. The constants are rounded national figures as published from the 2020 Census (PL
94-171; the Demographic and Housing Characteristics file, DHC) and the American Community Survey (ACS); what no table
says is marked as assumed. They make a census that looks right; they are no estimate of anything.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import partial
from types import MappingProxyType
from typing import TypeAlias

import numpy as np
from numpy.random import Generator

from yupana.arrays import Flags, Floats, Ints
from yupana.synthetic.race import COMBINATIONS, FIGURES, cumulative, draw_columns

AgeRule: TypeAlias = Callable[[Generator, Ints], Ints]

OLDEST = 115

# People of two or more races by number of races, percent (PL 94-171, rounded; the last two are nearer to 0.1).
_NUMBER_OF_RACES = MappingProxyType({2: 91.5, 3: 7.2, 4: 0.9, 5: 0.3, 6: 0.1})
# How often a race is one of several: White, Black, AIAN, Asian, NHPI, Some Other (assumed, to give the known order of
# the pairs: White with Some Other, AIAN, Black, Asian).
_PART_OF_SEVERAL = (1.0, 0.22, 0.28, 0.2, 0.03, 0.22)
_PART_OF_SEVERAL_HISPANIC = (1.0, 0.05, 0.05, 0.02, 0.006, 1.0)

_NOT_HISPANIC: Mapping[str, list[float]] = FIGURES["not_hispanic"]
# The same shares for Hispanic people, in the states and in Puerto Rico (PL 94-171, rounded).
_HISPANIC = ((20.0, 2.0, 2.4, 0.4, 0.1, 42.4, 32.7), (17.0, 7.0, 0.2, 0.1, 0.02, 26.0, 49.7))

PROFILES: tuple[str, ...] = tuple(_NOT_HISPANIC)
"""Names of the regional race profiles, in the order of `Mix.profile`."""

LEANS = len(PROFILES) + len(_HISPANIC)
"""From here on `Mix.profile` counts those who lean: everybody is of the one race, and of two or more at the seventh."""

_POLES = tuple(tuple(float(pole == column) for column in range(7)) for pole in range(7))


def _race_row(mix: Sequence[float], parts: tuple[float, ...]) -> list[float]:
    """Share of each of the 63 codes, from six shares alone, one of several, and the pull of each race."""
    weights = np.array([np.prod([parts[race] for race in races]) for races in COMBINATIONS])
    sizes = np.array([len(races) for races in COMBINATIONS])
    row = np.zeros(len(COMBINATIONS))
    row[:6] = mix[:6]
    for size, share in _NUMBER_OF_RACES.items():
        chosen = sizes == size
        row[chosen] = mix[6] * share / 100 * weights[chosen] / weights[chosen].sum()
    return [float(share) for share in row]


_RACE = cumulative(
    [_race_row(mix, _PART_OF_SEVERAL) for mix in _NOT_HISPANIC.values()]
    + [_race_row(mix, _PART_OF_SEVERAL_HISPANIC) for mix in _HISPANIC]
    + [_race_row(mix, _PART_OF_SEVERAL) for mix in _POLES]
)
_LEAN = cumulative(list(_NOT_HISPANIC.values()))

# Household types. Columns of every table below are HHT2 01 to 12; rows are groups of householders.
TYPES = 12
_OTHER, _BLACK, _ASIAN, _HISPANIC_GROUP = range(4)
_TYPE = cumulative(FIGURES["households"]["types"])
# Relatives beyond the own family: how much more often than `_KIN` says (multigenerational households, ACS, rounded).
_KIN_FACTOR = np.array([0.6, 1.0, 1.2, 1.4])
_SAME_SEX_MARRIED = 0.012  # of married couples, 2020 DHC, rounded
_SAME_SEX_COHABITING = 0.06  # of cohabiting couples, 2020 DHC, rounded
_MALE_COHABITING = 0.5  # householders of cohabiting couples who are male; assumed
_MALE_MARRIED = 0.53  # householders of married couples who are male; assumed
# Children and others; assumed, so that 49 percent of all people are male though more women live alone or lead a family.
_MALE_CHILD, _MALE_ADULT = 0.511, 0.55
_MALE_PARENT = 0.25  # parents and parents-in-law who live with the householder are mostly mothers; assumed

_HOUSEHOLDER_AGE = np.array(FIGURES["households"]["ages"])

# A normal law has too many of the oldest: so many of them are as much younger than 85 as they were older; assumed.
_OLD, _FEWER_OLD = 85, 0.5

# Own children under 18 where there are any, percent with 1, 2, ... 12 (ACS to four, rounded; the tail is assumed).
_CHILDREN = cumulative([[40.5, 37.5, 14.7, 4.7, 1.55, 0.6, 0.25, 0.11, 0.05, 0.02, 0.013, 0.007]])
_WITH_CHILDREN = np.isin(np.arange(TYPES), (0, 2, 5, 9))
# Biological, adopted, step: percent of own children with a couple and without (2020 DHC, rounded).
_CHILD_KIND = cumulative([[91.3, 2.5, 6.2], [97.3, 1.9, 0.8]])

# Owners among householders, percent by type (2020 DHC and ACS, rounded), then factors by age and by group (ACS).
_OWNERS = np.array([71, 82, 46, 48, 57, 37, 57, 34, 51, 47, 52, 33]) / 100
_OWNER_AGES = np.array([30, 45, 65])
_OWNER_AGE_FACTOR = np.array([0.55, 0.9, 1.08, 1.15])
_OWNER_GROUP_FACTOR = np.array([1.06, 0.78, 0.93, 0.82])
_MOST_OWNERS = 0.97
_MORTGAGE = np.array([0.88, 0.88, 0.68, 0.36])  # of owners, by the same ages
_NO_RENT = 0.045  # of those who do not own

# Chance that somebody has the race and origin of the householder by descent and not by a fresh draw; assumed.
_SHARED_PARTNER, _SHARED_RELATIVE, _SHARED_OTHER = 0.8, 0.87, 0.45

# Rare crowded households: a heavy tail, so that truncation at 10 has something to do. Share and law are assumed; about
# 1.5 percent of households have seven people or more (ACS, rounded).
_CROWDED = 0.004
_CROWD_LEAST, _CROWD_POWER, _CROWD_MOST = 3, 1.5, 40


def _near(spread: float, youngest: int) -> AgeRule:
    def ages(rng: Generator, householder: Ints) -> Ints:
        drawn = np.rint(householder + rng.normal(0, spread, len(householder)))
        return np.clip(drawn, youngest, OLDEST).astype(np.int64)

    return ages


def _older(rng: Generator, householder: Ints) -> Ints:
    gap = np.floor(rng.triangular(16, 26, 46, len(householder)))
    return np.minimum(householder + gap, OLDEST).astype(np.int64)


def _younger(gap: tuple[int, int], youngest: int, oldest: int, skew: float) -> AgeRule:
    """Between `gap` years younger than the householder and within the bounds; a skew above 1 favours the young."""

    def ages(rng: Generator, householder: Ints) -> Ints:
        low = np.maximum(youngest, householder - gap[1])
        high = np.minimum(oldest, householder - gap[0])
        return low + ((high - low + 1) * rng.random(len(householder)) ** skew).astype(np.int64)

    return ages


_anyone = partial(_younger, (-OLDEST, OLDEST))
"""Of any age within the bounds, whatever that of the householder."""


@dataclass(frozen=True)
class _Kin:
    """A relationship to the householder: who has such people, how many, and how old.

    `percent` is the percentage of households with any, by HHT2; `more` the chance of one more after each, up to
    `most`; `eligible` the ages of householder between which it can be. Percentages are assumed, fitted by trial to
    the national shares of RELSHIP (2020 DHC, rounded).
    """

    relship: int
    percent: tuple[float, ...]
    more: float
    most: int
    eligible: tuple[int, int]
    age: AgeRule


_OWN_CHILD = _younger((16, 45), 0, 17, 1.0)
_ADULT_CHILD_AGES = (34, OLDEST)
_ADULT_CHILD = _younger((16, 45), 18, OLDEST, 1.5)
_KIN = (
    _Kin(25, (17, 25, 9, 9, 0, 17, 14, 0, 0, 13, 8, 0), 0.36, 5, _ADULT_CHILD_AGES, _ADULT_CHILD),
    _Kin(28, (2, 1.2, 3, 2.5, 0, 4, 7, 0, 0, 5, 12, 0), 0.25, 4, (15, OLDEST), _near(7, 0)),
    _Kin(29, (2.5, 2.2, 2, 1.5, 0, 6, 7, 0, 0, 7, 8, 0), 0.2, 2, (15, 80), _older),
    _Kin(30, (1.4, 5, 1, 3, 0, 6, 22, 0, 0, 1.5, 9, 0), 0.38, 6, (36, OLDEST), _younger((32, 70), 0, 60, 2.0)),
    _Kin(31, (2, 1.5, 0.5, 0.3, 0, 0.2, 0.2, 0, 0, 0.2, 0.2, 0), 0.15, 2, (15, 80), _older),
    _Kin(32, (15, 22, 12, 12, 0, 22, 25, 0, 0, 15, 15, 0), 0.05, 3, _ADULT_CHILD_AGES, _ADULT_CHILD),
    _Kin(33, (2, 2, 2.5, 2, 0, 4.5, 9, 0, 0, 5, 12, 0), 0.38, 5, (15, OLDEST), _anyone(0, 85, 1.3)),
    _Kin(34, (0.3, 0.3, 2, 3, 0, 1.5, 1.5, 48, 0, 1.5, 3, 55), 0.3, 6, (15, OLDEST), _near(6, 15)),
    _Kin(35, (0.4, 0.2, 0.3, 0.1, 0, 0.3, 0.3, 1, 0, 0.1, 0.1, 0.5), 0.25, 4, (18, OLDEST), _anyone(0, 20, 1.0)),
    _Kin(36, (0.9, 0.9, 5, 5, 0, 3.5, 4, 45, 0, 3.5, 6, 40), 0.25, 6, (15, OLDEST), _anyone(0, 80, 1.3)),
)
_PARTNER_AGE = _near(4.5, 15)
_RELATIVES = (28, 29, 30, 31, 32, 33)

_FIRST_RELATIVES = (25, 28, 29, 30, 33)
_FIRST_RELATIVE = cumulative(FIGURES["households"]["first_relative"])

# HHT by HHT2; where a couple lives unmarried it depends on sex and relatives too.
_HHT = np.array([1, 1, 0, 0, 6, 3, 3, 7, 4, 2, 2, 5])


@dataclass(frozen=True)
class Mix:
    """What race and origin are drawn from, one entry for each household or person."""

    hispanic: Floats  # shape (n,): chance of Hispanic origin, 0 to 1
    profile: Ints  # shape (n,): position in `PROFILES`, for those who are not Hispanic, or `LEANS` and up
    puerto_rico: Flags  # shape (n,): whether Hispanic people answer race as in Puerto Rico
    # shape (n,): logarithm of the odds by which a household there owns its home more often than such households
    # elsewhere
    owners: Floats

    def take(self, index: Ints) -> "Mix":
        """Return the mix of the entries at `index`."""
        return Mix(self.hispanic[index], self.profile[index], self.puerto_rico[index], self.owners[index])


@dataclass(frozen=True)
class InventedHouseholds:
    """Occupied housing units: integer codes of the unit record, arrays of shape (households,)."""

    size: Ints
    family: Ints
    sex: Ints
    hispanic: Ints
    race: Ints
    tenure: Ints
    hht: Ints
    hht2: Ints
    couple: Ints


@dataclass(frozen=True)
class People:
    """Person records, arrays of shape (persons,): `unit` is a position among the units, `age` is in years.

    `sex` is 1 for male and 2 for female. Who is `like_householder` has origin and race from the householder by descent.
    """

    unit: Ints
    age: Ints
    sex: Ints
    like_householder: Flags
    hispanic: Ints
    race: Ints
    relship: Ints

    def followed_by(self, others: "People") -> "People":
        """Return these people and then the others."""
        return People(*(np.concatenate([getattr(self, f.name), getattr(others, f.name)]) for f in fields(self)))


def draw_origin(rng: Generator, mix: Mix) -> tuple[Ints, Ints]:
    """Draw Hispanic origin and race for each entry of a mix.

    Parameters
    ----------
    rng : Generator
        Source of the draws.
    mix : Mix
        Of shape (n,).

    Returns
    -------
    hispanic : ndarray of int, shape (n,)
        CENHISP, 1 or 2.
    race : ndarray of int, shape (n,)
        CENRACE, 1 to 63.
    """
    hispanic = rng.random(len(mix.hispanic)) < mix.hispanic
    row = np.where(hispanic, len(PROFILES) + mix.puerto_rico, mix.profile)
    return hispanic + np.int64(1), draw_columns(rng, _RACE, len(COMBINATIONS), row) + 1


def draw_lean(rng: Generator, profile: Ints) -> Ints:
    """Draw which race a neighbourhood leans to, by the shares of its profile: the average over many is the profile.

    Parameters
    ----------
    rng : Generator
        Source of the draws.
    profile : ndarray of int, shape (n,)
        Position in `PROFILES`.

    Returns
    -------
    ndarray of int, shape (n,)
        `LEANS` and up, for `Mix.profile`.
    """
    return LEANS + draw_columns(rng, _LEAN, 7, profile)


def draw_households(rng: Generator, mix: Mix) -> tuple[InventedHouseholds, People]:
    """Draw occupied housing units and everyone in them.

    Parameters
    ----------
    rng : Generator
        Source of the draws.
    mix : Mix
        Of shape (households,).

    Returns
    -------
    households : InventedHouseholds
        Of shape (households,), consistent with the people by every rule of the reference.
    people : People
        The people of each household together, the householder first.
    """
    hispanic, race = draw_origin(rng, mix)
    group = _group(hispanic, race)
    kind = draw_columns(rng, _TYPE, TYPES, group)
    age = _householder_ages(rng, kind)
    couple = _couples(rng, kind)
    members = _order(_members(rng, kind, group, age, couple))
    sex = _householder_sex(rng, kind)
    people = _with_origin(rng, members, (sex, hispanic, race), mix)

    households = len(kind)
    relative = (people.relship >= 25) & (people.relship <= 33)
    spouse = np.isin(people.relship, (20, 21, 23))
    family = np.bincount(people.unit[relative | spouse], minlength=households)
    relatives = np.bincount(people.unit[relative], minlength=households)
    unmarried = np.where(relatives > 0, np.where(sex == 1, 2, 3), np.where(sex == 1, 5, 7))
    return (
        InventedHouseholds(
            size=np.bincount(people.unit, minlength=households),
            family=np.where(family > 1, family, 0),
            sex=sex,
            hispanic=hispanic,
            race=race,
            tenure=_tenure(rng, (kind, group, age), mix.owners),
            hht=np.where(_HHT[kind] == 0, unmarried, _HHT[kind]),
            hht2=kind + 1,
            couple=couple,
        ),
        people,
    )


def reflect(values: Floats, low: Floats, high: Floats) -> Ints:
    """Round ages to whole years, folding back in what left the bounds so that none piles up there.

    Parameters
    ----------
    values, low, high : ndarray of float, shape (n,)
        Ages and their bounds in years, the bounds themselves allowed.

    Returns
    -------
    ndarray of int, shape (n,)
        Whole years, low <= age <= high.
    """
    folded = np.rint(values)
    folded = low + np.abs(folded - low)
    folded = high - np.abs(high - folded)
    ages: Ints = np.clip(folded, low, high).astype(np.int64)
    return ages


def _group(hispanic: Ints, race: Ints) -> Ints:
    group = np.full(len(race), _OTHER)
    group[race == 2] = _BLACK
    group[(race == 4) | (race == 5)] = _ASIAN
    group[hispanic == 2] = _HISPANIC_GROUP
    return group


def _householder_ages(rng: Generator, kind: Ints) -> Ints:
    parameters: Floats = _HOUSEHOLDER_AGE[kind].T
    mean, spread, low, high = parameters
    age = reflect(rng.normal(mean, spread), low, high)
    died = (age >= _OLD) & (rng.random(len(age)) < _FEWER_OLD)
    return np.where(died, 2 * _OLD - 1 - age, age)


def _couples(rng: Generator, kind: Ints) -> Ints:
    """CPLT of each household: 1 and 2 married, 3 and 4 cohabiting, 5 all other."""
    drawn = rng.random(len(kind))
    married = 1 + (drawn < _SAME_SEX_MARRIED)
    cohabiting = 3 + (drawn < _SAME_SEX_COHABITING)
    return np.where(kind < 2, married, np.where(kind < 4, cohabiting, 5)).astype(np.int64)


def _counts(rng: Generator, kin: _Kin, kind: Ints, group: Ints, age: Ints) -> Ints:
    percent = np.array(kin.percent)[kind]
    if kin.relship in _RELATIVES:
        percent = percent * _KIN_FACTOR[group]
    if kin.relship == 25:
        # grown children have mostly left when a couple is old
        percent = np.where((age >= 65) & (kind < 4), 0.45 * percent, percent)
    has = 100 * rng.random(len(kind)) < percent
    has &= (age >= kin.eligible[0]) & (age <= kin.eligible[1])
    return np.where(has, np.minimum(rng.geometric(1 - kin.more, len(kind)), kin.most), 0)


def _kin_counts(rng: Generator, kind: Ints, group: Ints, age: Ints) -> dict[int, Ints]:
    """Draw how many people of each relationship of `_KIN` live in each household, as its type demands."""
    counts = {kin.relship: _counts(rng, kin, kind, group, age) for kin in _KIN}
    # a child's spouse lives where the grown child does
    counts[32] = np.minimum(counts[32], counts[25])

    male = kind >= 8
    first = np.array(_FIRST_RELATIVES)[draw_columns(rng, _FIRST_RELATIVE, len(_FIRST_RELATIVES), male + 2 * (age < 36))]
    first = np.where((first == 29) & (age > 80), 28, first)
    needs_relative = np.isin(kind, (6, 10))
    for relship in _FIRST_RELATIVES:
        counts[relship] += needs_relative & (first == relship)

    lonely = np.isin(kind, (7, 11)) & (counts[34] + counts[35] + counts[36] == 0)
    roommate = rng.random(len(kind)) < 0.5
    counts[34] += lonely & roommate
    counts[36] += lonely & ~roommate

    crowded = (rng.random(len(kind)) < _CROWDED) & ~np.isin(kind, (4, 8))
    crowd = _CROWD_LEAST * (1 - rng.random(len(kind))) ** (-1 / _CROWD_POWER)
    crowd = np.where(crowded, np.minimum(crowd, _CROWD_MOST), 0).astype(np.int64)
    nonfamily = np.isin(kind, (7, 11))
    counts[36] += np.where(nonfamily, crowd, 0)
    counts[33] += np.where(nonfamily, 0, crowd)
    return counts


def _members(rng: Generator, kind: Ints, group: Ints, age: Ints, couple: Ints) -> list[tuple[Ints, Ints, Ints]]:
    """Draw unit, age and RELSHIP of everyone, a block for each relationship, the householders first."""
    everyone = np.arange(len(kind))
    with_partner = everyone[couple < 5]
    # CPLT 1, 2, 3, 4 go with RELSHIP 21, 23, 22, 24
    partner = np.array([0, 21, 23, 22, 24])[couple[with_partner]]
    number = np.where(_WITH_CHILDREN[kind], 1 + draw_columns(rng, _CHILDREN, 12, np.zeros_like(kind)), 0)
    children = np.repeat(everyone, number)
    members = [
        (everyone, age, np.full_like(everyone, 20)),
        (with_partner, _PARTNER_AGE(rng, age[with_partner]), partner),
        (children, _OWN_CHILD(rng, age[children]), _child_kinds(rng, couple[children])),
    ]
    counts = _kin_counts(rng, kind, group, age)
    for kin in _KIN:
        unit = np.repeat(everyone, counts[kin.relship])
        relship = np.full_like(unit, kin.relship) if kin.relship != 25 else _child_kinds(rng, couple[unit])
        members.append((unit, kin.age(rng, age[unit]), relship))
    return members


def _child_kinds(rng: Generator, couple: Ints) -> Ints:
    return 25 + draw_columns(rng, _CHILD_KIND, 3, (couple == 5).astype(np.int64))


def _order(members: list[tuple[Ints, Ints, Ints]]) -> tuple[Ints, Ints, Ints]:
    unit, age, relship = (np.concatenate(column) for column in zip(*members, strict=True))
    order = np.argsort(unit, kind="stable")
    return unit[order], age[order], relship[order]


def _householder_sex(rng: Generator, kind: Ints) -> Ints:
    """Sex of each householder, as HHT2 says where it does: 05 to 08 are female, 09 to 12 male."""
    drawn = rng.random(len(kind))
    couple = 2 - (drawn < np.where(kind < 2, _MALE_MARRIED, _MALE_COHABITING))
    return np.where(kind < 4, couple, np.where(kind < 8, 2, 1))


def _sexes(rng: Generator, relship: Ints, age: Ints, householder: Ints) -> Ints:
    """Sex of each person, given the sex of that person's householder: RELSHIP of a partner says same or opposite."""
    parent = (relship == 29) | (relship == 31)
    male = np.where(parent, _MALE_PARENT, np.where(age < 18, _MALE_CHILD, _MALE_ADULT))
    sex = 2 - (rng.random(len(relship)) < male)
    sex = np.where((relship == 21) | (relship == 22), 3 - householder, sex)
    return np.where((relship == 20) | (relship == 23) | (relship == 24), householder, sex)


def _with_origin(
    rng: Generator, members: tuple[Ints, Ints, Ints], householder: tuple[Ints, Ints, Ints], mix: Mix
) -> People:
    unit, age, relship = members
    sex, hispanic, race = householder
    own_hispanic, own_race = draw_origin(rng, mix.take(unit))
    chance = np.full(len(unit), _SHARED_RELATIVE)
    chance[relship == 20] = 1.0
    chance[(relship >= 21) & (relship <= 24)] = _SHARED_PARTNER
    chance[relship >= 34] = _SHARED_OTHER
    shared = rng.random(len(unit)) < chance
    return People(
        unit=unit,
        age=age,
        sex=_sexes(rng, relship, age, sex[unit]),
        like_householder=shared,
        hispanic=np.where(shared, hispanic[unit], own_hispanic),
        race=np.where(shared, race[unit], own_race),
        relship=relship,
    )


def _tenure(rng: Generator, householder: tuple[Ints, Ints, Ints], owners: Floats) -> Ints:
    """TEN of each household: 1 mortgage, 2 free and clear, 3 rented, 4 without rent."""
    kind, group, age = householder
    stage = np.searchsorted(_OWNER_AGES, age, side="right")
    chance = np.minimum(_OWNERS[kind] * _OWNER_AGE_FACTOR[stage] * _OWNER_GROUP_FACTOR[group], _MOST_OWNERS)
    odds = np.exp(owners) * chance / (1 - chance)
    owner = rng.random(len(kind)) < odds / (1 + odds)
    owned = 1 + (rng.random(len(kind)) >= _MORTGAGE[stage])
    rented = 3 + (rng.random(len(kind)) < _NO_RENT)
    return np.where(owner, owned, rented).astype(np.int64)
