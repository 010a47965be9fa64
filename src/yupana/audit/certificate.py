"""The privacy certificate of a release, or of several of one census together: guarantees from their manifests alone.

A manifest holds nothing that depends on the records without noise, so neither does a certificate. What is stated, and
why it holds, is told in docs/certificate.md; why the losses of a person add over products, in docs/person-loss.md.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations
from typing import Any, Final

from yupana.audit.tradeoff import (
    Gaussian,
    composed,
    pure_guess,
    pure_missed,
    variance_to_spare,
    zcdp_guess,
    zcdp_missed,
)
from yupana.errors import OutputError
from yupana.plan.account import Losses, Unit, add, as_zcdp
from yupana.plan.exact_loss import Change, delta_exact, epsilon_exact, exact_where, missed_exact
from yupana.plan.measurement import Mechanism
from yupana.plan.plan import DEFAULT_DELTA, Plan, number, read_plan
from yupana.privacy.exact import INFINITE, Budget, read_exact
from yupana.privacy.zcdp import epsilon_bun_steinke, epsilon_tight
from yupana.products import PRODUCTS
from yupana.products.described.criteria import TESTED, untested
from yupana.release.recipe import ACCURACY
from yupana.release.status import NOT_FOR_RELEASE, refuse_confidential

NEIGHBOURS: Final[tuple[Change, ...]] = ("unbounded", "same_household", "bounded")

CHANGES: Final = {
    "unbounded": "one {unit} is added or left out",
    "same_household": "one {unit} is changed and stays in its household",
    "bounded": "one {unit} is changed in any way, its place included",
}

DELTAS: Final = (1e-6, 1e-8, 1e-10, 1e-12)

TYPE_1: Final = tuple(sorted({0.0, 0.001, 0.005, *(i / 100 for i in range(101)), 0.995, 0.999}))
"""Errors of type I at which a trade-off curve is told."""

_MOST_RATIO: Final = 4
"""No neighbours are farther apart, in squared distance, than four times the calibration (docs/phsafe-privacy.md)."""


def certificate(manifest: Mapping[str, Any], *, is_brief: bool = False) -> dict[str, Any]:
    """Certify a release.

    Parameters
    ----------
    manifest : mapping
        Of a release of PHSafe, SafeTab or TopDown, as manifest.json has it.
    is_brief : bool
        Leave out what takes most of the time: epsilons by the exact law, points of curves, single attributes.

    Returns
    -------
    dict
        Ready for JSON; docs/certificate.md lists its keys.

    Raises
    ------
    OutputError
        If the manifest holds no plan, contradicts itself, or is of a release that is confidential.
    """
    plan = _plan_in(manifest)
    status = refuse_confidential(manifest, "the release")
    product = PRODUCTS.of(manifest)
    noise = PlanNoise(plan, product is None or product.is_adaptive(plan))
    totals = manifest["plan"]["totals"]
    symbol = plan.mechanism.budget_name
    guarantee = []
    for kind in NEIGHBOURS:
        promised, proven = (_read(of.get(f"{kind}_{symbol}")) for of in (totals, totals["proven"]))
        if promised is not None and proven is not None:
            exact = [] if is_brief or symbol != "rho" else [(at, epsilon_exact(plan, at, kind)) for at in DELTAS]
            guarantee.append(
                {
                    **({"exact": [{"delta": at, "epsilon": of} for at, of in exact]} if exact else {}),
                    "neighbours": kind,
                    "change": CHANGES[kind].format(unit=plan.privacy_unit),
                    "promised": noise.stated(promised),
                    "proven_at_most": noise.stated(proven),
                }
            )
    own = next(g for g in guarantee if g["neighbours"] == plan.neighbours.value)
    return {
        "certificate": 1,
        "product": plan.product,
        "status": status,
        "reasons": list(dict.fromkeys((*manifest.get("reasons", ()), *plan.against_release))),
        "created": manifest.get("created"),
        "mechanism": plan.mechanism.value,
        "privacy_unit": plan.privacy_unit,
        "neighbours": plan.neighbours.value,
        "own_change": own["change"],
        "guarantee": guarantee,
        "attacker": _attacker(noise, guarantee, () if is_brief else TYPE_1),
        "spare": _spare(noise, own),
        "by_table": _shares(plan, "table"),
        "by_level": _shares(plan, "level"),
        "by_attribute": [] if is_brief else _by_attribute(plan, manifest),
        "measurements": [
            {
                "name": m.name,
                "table": m.table,
                "level": m.level,
                "law": m.law.name,
                **number(symbol, m.budget),
                **number("variance", m.variance),
            }
            for m in plan.measurements
        ],
        "criteria": dict(manifest.get("criteria", {})),
        "taken_as_public": list(manifest.get("taken_as_public", ())),
        "invariants": _invariants(manifest),
        "parameters": dict(manifest.get("parameters", {})),
        "software": {"yupana": manifest.get("yupana"), **manifest.get("versions", {})},
        "files": {
            name: described.get("sha256")
            for name, described in manifest.get("tables", {}).items()
            if isinstance(described, Mapping)
        },
    }


def _plan_in(manifest: Mapping[str, Any]) -> Plan:
    """The plan in a manifest; all sensitivities are the calibration, and those of other neighbours in the totals."""
    *names, last = PRODUCTS
    try:
        return read_plan(manifest["plan"])
    except (KeyError, ValueError):
        raise OutputError(
            f"the manifest holds no plan: a certificate is made for a release of {', '.join(names)} or {last}"
        ) from None


def _read(text: str | None) -> Budget | None:
    return None if text is None else read_exact(text)


@dataclass(frozen=True, slots=True)
class PlanNoise:
    """The noise of a plan, and whether some of its measurements are chosen by the results of others."""

    plan: Plan
    adaptive: bool

    def stated(self, loss: Budget) -> dict[str, Any]:
        """A loss as numbers: rho with its epsilons, or epsilon."""
        if self.plan.mechanism is Mechanism.PURE:
            return number("epsilon", loss)
        gaussian = self.gaussian(loss)
        rows = _epsilons(loss)
        if gaussian is not None:
            rows = [{**row, "gaussian": gaussian.epsilon(row["delta"])} for row in rows]
        return {**number("rho", loss), "epsilon": rows}

    def gaussian(self, loss: Budget) -> Gaussian | None:
        """One shift of a normal law; None where the plan is adaptive, or noise is missing or too small."""
        is_shift = self.plan.mechanism is Mechanism.ZCDP and not self.adaptive
        if not is_shift or not self.plan.is_finite or loss == INFINITE:
            return None
        return composed(loss, *_scale(self.plan))

    def missed(self, loss: Budget, type_1: float) -> dict[str, float]:
        """The least error of type II that is proven, with what brackets it for Gaussian noise."""
        if self.plan.mechanism is Mechanism.PURE:
            return {"type_2": pure_missed(float(loss), type_1)}
        gaussian = self.gaussian(loss)
        if gaussian is None:
            return {"type_2": zcdp_missed(loss, type_1)}
        low, middle, high = gaussian.missed(type_1)
        return {"type_2": low, "type_2_continuous": middle, "type_2_at_most": high}

    def guess(self, loss: Budget) -> float:
        """How often, at most, the best guess between two equally likely databases is right; at random it is half."""
        if self.plan.mechanism is Mechanism.PURE:
            return pure_guess(float(loss))
        gaussian = self.gaussian(loss)
        return zcdp_guess(loss) if gaussian is None else gaussian.guess


def _epsilons(loss: Budget) -> list[dict[str, Any]]:
    """The epsilons of a rho by the two conversions, at each delta."""
    return [
        {"delta": delta, "bun_steinke": epsilon_bun_steinke(loss, delta), "tight": epsilon_tight(loss, delta)}
        for delta in (() if loss == INFINITE else DELTAS)
    ]


def _scale(plan: Plan) -> tuple[Fraction, Fraction]:
    """The smallest variance, and the most counts that neighbours can differ in."""
    variances = [m.variance for m in plan.measurements if isinstance(m.variance, Fraction)]
    return min(variances), _MOST_RATIO * sum((m.calibration for m in plan.measurements), Fraction(0))


def _attacker(noise: PlanNoise, guarantee: list[dict[str, Any]], type_1: Sequence[float]) -> dict[str, Any]:
    """What the best test can achieve, for every kind of neighbours and by the smallest loss proven.

    Of neighbours whose exact law is known, the better of two proven bounds at every point: that of the law, and that of
    the loss.
    """
    curves = []
    for row in guarantee:
        stated = row["proven_at_most"]
        loss = read_exact(stated[noise.plan.mechanism.budget_name])
        if loss == INFINITE:
            continue
        points = [{"type_1": a, **noise.missed(loss, a)} for a in type_1]
        guess, change = noise.guess(loss), row["neighbours"]
        missed = missed_exact(noise.plan, type_1, change) if type_1 else ()
        delta = delta_exact(noise.plan, 0.0, change)
        if missed is not None and delta is not None:
            guess = min(guess, (1 + delta) / 2)
            points = [
                {**point, "type_2": max(point["type_2"], b, 2 * (1 - guess) - point["type_1"])}
                for point, b in zip(points, missed, strict=True)
            ]
        curves.append(
            {
                "neighbours": row["neighbours"],
                "change": row["change"],
                "exact": missed is not None and delta is not None,
                "best_guess": guess,
                "points": points,
            }
        )
    is_gaussian = any("type_2_continuous" in point for curve in curves[:1] for point in curve["points"][:1])
    kind = "pure" if noise.plan.mechanism is Mechanism.PURE else "gaussian" if is_gaussian else "zcdp"
    return {"kind": kind, "curves": curves}


def _spare(noise: PlanNoise, own: Mapping[str, Any]) -> list[dict[str, float]]:
    """Which share of the variance the exact accounting of Gaussian noise would save, by delta."""
    if noise.plan.mechanism is Mechanism.PURE:
        return []
    loss = read_exact(own["promised"]["rho"])
    if noise.gaussian(loss) is None:
        return []
    least, counts = _scale(noise.plan)
    return [
        {
            "delta": delta,
            "share": variance_to_spare(loss, least, counts, epsilon_tight(loss, delta), delta),
            "share_bun_steinke": variance_to_spare(loss, least, counts, epsilon_bun_steinke(loss, delta), delta),
        }
        for delta in DELTAS
    ]


def _shares(plan: Plan, kind: str) -> list[dict[str, Any]]:
    """The loss of the measurements of one table, or of one level, under the plan's own neighbours."""
    rows = []
    for name in dict.fromkeys(getattr(m, kind) for m in plan.measurements):
        chosen = [m for m in plan.measurements if getattr(m, kind) == name]
        rows.append({kind: name, "measurements": len(chosen), **number("loss", plan.loss_of(chosen))})
    return rows


def _by_attribute(plan: Plan, manifest: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The most that is lost where one privacy unit differs in one attribute: of the measurements that can tell."""
    product, parameters = PRODUCTS.of(manifest), manifest.get("parameters", {})
    if product is None:
        return []
    losses, moved = product.by_attribute(plan, parameters), product.moved_by_attribute(plan, parameters)
    rows = [{"attribute": name, **number("loss", loss)} for name, loss in losses.items()]
    if plan.mechanism is Mechanism.ZCDP:
        for row in rows:
            row |= {"delta": DEFAULT_DELTA, "epsilon_exact": exact_where(plan, moved[row["attribute"]])}
    return rows


def _invariants(manifest: Mapping[str, Any]) -> list[str]:
    """What a release keeps exactly, in words."""
    kept = manifest.get("parameters", {}).get("invariants", {})
    return [f"{query} of every {level}" for level, queries in kept.items() for query in queries]


def is_test(manifest: Mapping[str, Any]) -> bool:
    """Whether a manifest is that of a folder of `accuracy`."""
    return str(manifest.get("product")).endswith(ACCURACY)


def with_tests(manifests: Sequence[tuple[str, Mapping[str, Any]]]) -> list[tuple[str, Mapping[str, Any]]]:
    """Of releases and tests the releases, with what the tests found of their criteria.

    Where it tells a test a manifest is NOT FOR RELEASE, as a test reads true counts.

    Parameters
    ----------
    manifests : sequence of (str, mapping)
        What each is called, and its manifest.

    Raises
    ------
    OutputError
        If a test is CONFIDENTIAL or tests no criteria, or no release has its plan and its criteria.
    """
    found = [(name, manifest) for name, manifest in manifests if not is_test(manifest)]
    for name, test in manifests:
        if not is_test(test):
            continue
        refuse_confidential(test, name)
        if not test.get("criteria") or "tested_plan" not in test:
            raise OutputError(f"{name} is no release, and tests no acceptance criteria of one")
        same = [_same(manifest, test) for _, manifest in found]
        if not any(same):
            raise OutputError(
                f"{name} tests acceptance criteria; name the release beside it that has the same plan and criteria"
            )
        found = [
            (release, _with_test(manifest, test) if is_same else manifest)
            for (release, manifest), is_same in zip(found, same, strict=True)
        ]
    return found


def _with_test(manifest: Mapping[str, Any], test: Mapping[str, Any]) -> dict[str, Any]:
    reasons = dict.fromkeys((*manifest.get("reasons", ()), TESTED))
    return {**manifest, "criteria": test["criteria"], "status": NOT_FOR_RELEASE, "reasons": list(reasons)}


def _same(manifest: Mapping[str, Any], test: Mapping[str, Any]) -> bool:
    if "plan" not in manifest or untested(manifest.get("criteria", {})) != untested(test["criteria"]):
        return False
    try:
        return read_plan(manifest["plan"]) == read_plan(test["tested_plan"])
    except ValueError:
        return False


_OF_PERSON: Final = {
    "unbounded": "one person is added or left out",
    "same_household": "one person is changed and stays in the household",
    "bounded": "one person is changed in any way, the household included",
}
OF_HOUSEHOLD: Final = {
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
    releases = [_certified(name, manifest) for name, manifest in manifests]
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
        changes = {kind: text.format(cap=cap) for kind, text in OF_HOUSEHOLD.items()}
        losses = [(r, household.of_persons(r.person, r.mechanism)) for r in releases]
        yield _Unit("household", f"household of at most {cap} persons", changes, losses)
    for unit in dict.fromkeys(r.certified["privacy_unit"] for r in releases):
        changes = {kind: text.format(unit=unit) for kind, text in CHANGES.items()}
        yield _Unit("record", unit, changes, [(r, r.records) for r in releases if r.certified["privacy_unit"] == unit])


def _certified(name: str, manifest: Mapping[str, Any]) -> _Release:
    try:
        certified = certificate(manifest, is_brief=True)
    except OutputError as error:
        raise OutputError(f"{name}: {error}") from None
    mechanism = Mechanism(certified["mechanism"])
    symbol = mechanism.budget_name
    totals = manifest["plan"]["totals"]

    def losses(by: Mapping[str, Any]) -> Losses:
        return {kind: _read(by.get(f"{kind}_{symbol}")) for kind in NEIGHBOURS}

    try:
        found = _Release(name, certified, mechanism, losses(totals), losses(totals["person"]))
        negative = any(loss is not None and loss < 0 for loss in (*found.records.values(), *found.person.values()))
    except (AttributeError, KeyError, TypeError, ValueError):
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
        **{key: certified[key] for key in ("product", "created", "mechanism", "privacy_unit", "neighbours")},
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
    return (
        row
        | ({} if pure else {"epsilon": _epsilons(loss)})
        | {"best_guess": guess, "attacker": _in_words(unit.changes[neighbours], loss, guess, len(unit.losses))}
    )


def _in_words(change: str, loss: Budget, guess: float, releases: int) -> str:
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
