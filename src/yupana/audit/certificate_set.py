"""The joint certificate of several releases of one census: what they promise together, from their manifests alone.

Why the losses of a person add over products is told in docs/person-loss.md; what is stated, in docs/certificate.md.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations
from typing import Any, Final

from yupana.audit.certificate import CHANGES, DELTAS, certificate
from yupana.audit.tradeoff import pure_guess, zcdp_guess
from yupana.errors import OutputError
from yupana.plan.account import Losses, Unit, add, as_zcdp
from yupana.plan.measurement import Mechanism
from yupana.plan.plan import number
from yupana.privacy.exact import INFINITE, Budget, read_exact
from yupana.privacy.zcdp import epsilon_bun_steinke, epsilon_tight
from yupana.release.status import NOT_FOR_RELEASE

NEIGHBOURS: Final = ("unbounded", "same_household", "bounded")

_OF_PERSON: Final = {
    "unbounded": "one person is added or left out",
    "same_household": "one person is changed and stays in the household",
    "bounded": "one person is changed in any way, the household included",
}
_OF_HOUSEHOLD: Final = {
    "unbounded": "all persons of a household of at most {cap} are added or left out",
    "same_household": "all persons of a household of at most {cap} are changed and stay in it",
    "bounded": "all persons of a household of at most {cap} are changed in any way, the place included",
}

_CERTAIN: Final = 0.9995
"""A best guess that rounds to 100 percent."""


@dataclass(frozen=True, slots=True)
class _Release:
    """What a manifest says of one release: its own certificate, and its losses by neighbours."""

    name: str
    certified: Mapping[str, Any]
    mechanism: Mechanism
    records: Losses
    person: Losses

    @property
    def of_persons(self) -> bool:
        """Whether it bounds any loss of one person."""
        return set(self.person.values()) != {None}


@dataclass(frozen=True, slots=True)
class _Unit:
    """In whose terms losses are added: what kind of unit, its name, how it changes by neighbours, and each loss."""

    kind: str
    name: str
    changes: Mapping[str, str]
    losses: Sequence[tuple[_Release, Losses]]


def certificate_of_set(manifests: Sequence[tuple[str, Mapping[str, Any]]], cap: int | None = None) -> dict[str, Any]:
    """Certify releases of one census together, as JSON with the keys of docs/certificate.md.

    Losses add in one unit: a person; a household of at most ``cap`` persons; and the records of the releases that
    protect the same records. Where all releases are under pure DP the sum is epsilon; otherwise it is rho, and a
    release under pure DP counts as epsilon squared / 2.

    Parameters
    ----------
    manifests : sequence of (str, mapping)
        What each release is called, and its manifest.
    cap : int, optional
        The most persons a household is declared to have; without it nothing is said of households.

    Raises
    ------
    OutputError
        If a release cannot be certified, bounds no loss of a person and shares its unit with none, or holds the
        measurements of another.
    BudgetError
        If no household can have so many persons.
    """
    releases = [_read(name, manifest) for name, manifest in manifests]
    _refuse_twice(manifests)
    _refuse_unrelated(releases)
    marked = [release for release in releases if release.certified["status"] == NOT_FOR_RELEASE]
    pure = all(release.mechanism is Mechanism.PURE for release in releases)
    mechanism = Mechanism.PURE if pure else Mechanism.ZCDP
    return {
        "certificate_of_set": 1,
        "status": NOT_FOR_RELEASE if marked else "for publication",
        "reasons": [f"{r.name}: {why}" for r in marked for why in r.certified["reasons"] or ["its manifest says so"]],
        "mechanism": mechanism.value,
        "household_cap": cap,
        "releases": [_described(release) for release in releases],
        "guarantee": [
            _stated(unit, neighbours, mechanism)
            for unit in _units(releases, cap)
            for neighbours in NEIGHBOURS
            if neighbours != "same_household" or any(losses[neighbours] is not None for _, losses in unit.losses)
        ],
        "criteria": {release.name: release.certified["criteria"] for release in releases},
        "taken_as_public": _once(r.certified["taken_as_public"] for r in releases),
        "invariants": _once(r.certified["invariants"] for r in releases),
    }


def _units(releases: Sequence[_Release], cap: int | None) -> Iterator[_Unit]:
    """A person, a household of so many at most, and the records of the releases that protect the same."""
    yield _Unit("person", "person", _OF_PERSON, [(r, r.person) for r in releases])
    if cap is not None:
        household = Unit("household", cap)
        changes = {kind: text.format(cap=cap) for kind, text in _OF_HOUSEHOLD.items()}
        losses = [(r, household.of_persons(r.person, r.mechanism)) for r in releases]
        yield _Unit("household", f"household of at most {cap} persons", changes, losses)
    for unit in dict.fromkeys(r.certified["privacy_unit"] for r in releases):
        changes = {kind: text.format(unit=unit) for kind, text in CHANGES.items()}
        yield _Unit("record", unit, changes, [(r, r.records) for r in releases if r.certified["privacy_unit"] == unit])


def _read(name: str, manifest: Mapping[str, Any]) -> _Release:
    try:
        certified = certificate(manifest)
    except OutputError as error:
        raise OutputError(f"{name}: {error}") from None
    mechanism = Mechanism(certified["mechanism"])
    symbol = mechanism.budget_name
    totals = manifest["plan"]["totals"]
    person = totals.get("person")
    if person is None:
        raise OutputError(
            f"{name}: its manifest states no loss of one person; it was written by an earlier version, "
            "and can be certified on its own only"
        )

    def losses(by: Mapping[str, Any]) -> Losses:
        return {kind: None if (text := by.get(f"{kind}_{symbol}")) is None else read_exact(text) for kind in NEIGHBOURS}

    try:
        found = _Release(name, certified, mechanism, losses(totals), losses(person))
        negative = any(loss is not None and loss < 0 for loss in (*found.records.values(), *found.person.values()))
    except (AttributeError, TypeError, ValueError):
        negative = True
    if negative:
        raise OutputError(f"{name}: the losses in its manifest are no losses")
    return found


def _refuse_unrelated(releases: Sequence[_Release]) -> None:
    """Nothing is said of a release that bounds no loss of a person and protects what no other does."""
    for release in releases:
        unit = release.certified["privacy_unit"]
        if not release.of_persons and not any(unit == r.certified["privacy_unit"] for r in releases if r != release):
            raise OutputError(
                f"{release.name}: {release.certified['product']} bounds no loss of one person (docs/person-loss.md), "
                f"and no other release protects a {unit}, so nothing can be said of them together"
            )


def _refuse_twice(manifests: Sequence[tuple[str, Mapping[str, Any]]]) -> None:
    """A release and what was made of it hold the same noise; to add both would overstate the loss."""
    for (one, here), (other, there) in combinations(manifests, 2):
        if all(here.get(key) == there.get(key) for key in ("plan", "created")):
            raise OutputError(
                f"{one} and {other} hold the same measurements, as the plan and the time of both are the same; "
                "what is made of a release costs nothing more, so name one of them"
            )


def _described(release: _Release) -> dict[str, Any]:
    certified = release.certified
    symbol = release.mechanism.budget_name
    return {
        "name": release.name,
        "product": certified["product"],
        "created": certified["created"],
        "mechanism": certified["mechanism"],
        "privacy_unit": certified["privacy_unit"],
        "neighbours": certified["neighbours"],
        "protects": f"one {certified['privacy_unit']}: whether {certified['own_change']}",
        "person": {
            key: value
            for kind, loss in release.person.items()
            for key, value in number(f"{kind}_{symbol}", loss).items()
        },
    }


def _stated(unit: _Unit, neighbours: str, mechanism: Mechanism) -> dict[str, Any]:
    """One joint promise, with what it means for an attacker; or why there is none."""
    pure = mechanism is Mechanism.PURE
    total: Losses = {neighbours: Fraction(0)}
    for release, of_release in unit.losses:
        here = of_release if pure or release.mechanism is Mechanism.ZCDP else as_zcdp(of_release)
        total = add(total, here)
    loss = total[neighbours]
    row = {
        "of": unit.kind,
        "unit": unit.name,
        "neighbours": neighbours,
        "change": unit.changes[neighbours],
        "releases": [release.name for release, _ in unit.losses],
        **number(mechanism.budget_name, loss),
    }
    if loss is None:
        without = [release for release, of_release in unit.losses if of_release[neighbours] is None]
        whose = " and ".join(release.name for release in without)
        persons = unit.kind != "record" and not any(release.of_persons for release in without)
        why = "bound no loss of one person" if persons else "leave no such neighbours"
        return row | {"empty": f"the plan or the invariants of {whose} {why}"}
    guess = pure_guess(float(loss)) if pure else zcdp_guess(loss)
    rows = [
        {"delta": delta, "bun_steinke": epsilon_bun_steinke(loss, delta), "tight": epsilon_tight(loss, delta)}
        for delta in (() if pure or loss == INFINITE else DELTAS)
    ]
    return (
        row
        | ({} if pure else {"epsilon": rows})
        | {"best_guess": guess, "attacker": _attacker(unit.changes[neighbours], loss, guess, len(unit.losses))}
    )


def _attacker(change: str, loss: Budget, guess: float, releases: int) -> str:
    """What somebody learns, in a sentence."""
    seen = {1: "this release", 2: "both of these releases"}.get(releases, f"all {releases} of these releases")
    if loss == INFINITE:
        return f"Whoever sees {seen} may learn with certainty whether {change}: some counts carry no noise."
    share = min(-(-guess * 1000 // 1), 1000) / 10
    words = (
        f"Whoever sees {seen}, knows everything else about the census and thinks it as likely as not that {change} "
        f"guesses right at most {share:g}% of the time; a coin is right 50% of the time."
    )
    if guess > _CERTAIN:
        words += " Against somebody who knows so much this promises next to nothing."
    return words


def _once(lists: Iterable[Sequence[str]]) -> list[str]:
    return list(dict.fromkeys(item for items in lists for item in items))
