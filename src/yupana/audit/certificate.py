"""The privacy certificate of a release: its guarantee in words and numbers, from its manifest alone.

A manifest holds nothing that depends on the records without noise, so neither does a certificate. What is stated, and
why it holds, is told in docs/certificate.md.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
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
from yupana.plan.exact_loss import CHANGES as EXACT_CHANGES
from yupana.plan.exact_loss import Change, delta_exact, epsilon_exact, exact_where, missed_exact
from yupana.plan.measurement import Mechanism
from yupana.plan.plan import DEFAULT_DELTA, Plan, number, read_plan, tells_moves
from yupana.privacy.exact import INFINITE, Budget, read_exact
from yupana.privacy.zcdp import epsilon_bun_steinke, epsilon_tight
from yupana.products import PRODUCTS
from yupana.products.described.criteria import TESTED, untested
from yupana.release.recipe import ACCURACY
from yupana.release.status import NOT_FOR_RELEASE, refuse_confidential

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


def certificate(manifest: Mapping[str, Any]) -> dict[str, Any]:
    """Certify a release.

    Parameters
    ----------
    manifest : mapping
        Of a release of PHSafe, SafeTab or TopDown, as manifest.json has it.

    Returns
    -------
    dict
        Ready for JSON; docs/certificate.md lists its keys.

    Raises
    ------
    OutputError
        If the manifest holds no plan, contradicts itself, or is of a release that is confidential.
    """
    plan = plan_in(manifest)
    status = refuse_confidential(manifest, "the release")
    product = PRODUCTS.of(manifest)
    noise = _PlanNoise(plan, product is None or product.is_adaptive(plan))
    totals = manifest["plan"]["totals"]
    unit = plan.privacy_unit
    symbol = plan.mechanism.budget_name
    guarantee = []
    for kind, words in CHANGES.items():
        promised, proven = _read(totals.get(f"{kind}_{symbol}")), _read(totals["proven"].get(f"{kind}_{symbol}"))
        if promised is not None and proven is not None:
            guarantee.append(
                {
                    **_exact(plan, kind, told=tells_moves(manifest["plan"])),
                    "neighbours": kind,
                    "change": words.format(unit=unit),
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
        "privacy_unit": unit,
        "neighbours": plan.neighbours.value,
        "own_change": own["change"],
        "guarantee": guarantee,
        "attacker": _attacker(noise, guarantee, told=tells_moves(manifest["plan"])),
        "spare": _spare(noise, own),
        "by_table": _shares(plan, {m.table: m.table for m in plan.measurements}, "table"),
        "by_level": _shares(plan, {m.level: m.level for m in plan.measurements}, "level"),
        "by_attribute": _by_attribute(plan, manifest, told=tells_moves(manifest["plan"])),
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


def _exact(plan: Plan, kind: str, *, told: bool) -> dict[str, Any]:
    """Epsilons by the exact law of the loss, where the manifest tells how far neighbours move each measurement."""
    change = _exact_change(kind, told=told)
    if change is None or plan.mechanism is Mechanism.PURE:
        return {}
    return {"exact": [{"delta": delta, "epsilon": epsilon_exact(plan, delta, change)} for delta in DELTAS]}


def _exact_change(kind: str, *, told: bool) -> Change | None:
    """Neighbours as exact accounting names them; None where the manifest does not tell how far they move."""
    return next((change for change in EXACT_CHANGES if told and change == kind), None)


def plan_in(manifest: Mapping[str, Any]) -> Plan:
    """Read the plan in a manifest: its measurements, laws and composition.

    Sensitivities are all the calibration; those of other neighbours are in the manifest's totals alone.

    Raises
    ------
    OutputError
        If there is none.
    """
    *names, last = PRODUCTS
    try:
        plan = read_plan(manifest["plan"])
    except (KeyError, ValueError):
        raise OutputError(
            f"the manifest holds no plan: a certificate is made for a release of {', '.join(names)} or {last}"
        ) from None
    return plan


def _read(text: str | None) -> Budget | None:
    return None if text is None else read_exact(text)


@dataclass(frozen=True, slots=True)
class _PlanNoise:
    """The noise of a plan, and whether some of its measurements are chosen by the results of others."""

    plan: Plan
    adaptive: bool

    def stated(self, loss: Budget) -> dict[str, Any]:
        """A loss as numbers: rho with its epsilons, or epsilon."""
        if self.plan.mechanism is Mechanism.PURE:
            return number("epsilon", loss)
        gaussian = self.gaussian(loss)
        rows = []
        for delta in DELTAS if loss != INFINITE else ():
            row: dict[str, Any] = {
                "delta": delta,
                "bun_steinke": epsilon_bun_steinke(loss, delta),
                "tight": epsilon_tight(loss, delta),
            }
            if gaussian is not None:
                row["gaussian"] = gaussian.epsilon(delta)
            rows.append(row)
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


def _scale(plan: Plan) -> tuple[Fraction, Fraction]:
    """The smallest variance, and the most counts that neighbours can differ in."""
    variances = [m.variance for m in plan.measurements if isinstance(m.variance, Fraction)]
    return min(variances), _MOST_RATIO * sum((m.calibration for m in plan.measurements), Fraction(0))


def _attacker(noise: _PlanNoise, guarantee: list[dict[str, Any]], *, told: bool) -> dict[str, Any]:
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
        points = [{"type_1": a, **noise.missed(loss, a)} for a in TYPE_1]
        guess, change = noise.guess(loss), _exact_change(row["neighbours"], told=told)
        missed = None if change is None else missed_exact(noise.plan, TYPE_1, change)
        delta = None if change is None else delta_exact(noise.plan, 0.0, change)
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
    if noise.plan.mechanism is Mechanism.PURE:
        kind = "pure"
    else:
        kind = "zcdp" if not curves or "type_2_continuous" not in curves[0]["points"][0] else "gaussian"
    return {"kind": kind, "curves": curves}


def _spare(noise: _PlanNoise, own: Mapping[str, Any]) -> list[dict[str, float]]:
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


def _shares(plan: Plan, groups: Mapping[str, str], kind: str) -> list[dict[str, Any]]:
    """The loss of the measurements of one table, or of one level, under the plan's own neighbours."""
    rows = []
    for name in groups:
        chosen = [m for m in plan.measurements if getattr(m, kind) == name]
        rows.append({kind: name, "measurements": len(chosen), **number("loss", plan.loss_of(chosen))})
    return rows


def _by_attribute(plan: Plan, manifest: Mapping[str, Any], *, told: bool) -> list[dict[str, Any]]:
    """The most that is lost where one privacy unit differs in one attribute: of the measurements that can tell."""
    product, parameters = PRODUCTS.of(manifest), manifest.get("parameters", {})
    if product is None:
        return []
    losses, moved = product.by_attribute(plan, parameters), product.moved_by_attribute(plan, parameters)
    rows = [{"attribute": name, **number("loss", loss)} for name, loss in losses.items()]
    if plan.mechanism is Mechanism.ZCDP and told:
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
