"""A plan as a table for people."""

from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from typing import Any, Final

from yupana.plan.exact_loss import own_change, plan_as_json
from yupana.plan.measurement import Measurement, Mechanism, z_value
from yupana.plan.plan import Plan, PlanDifference
from yupana.privacy.exact import Budget, read_exact

_CHANGES: Final = {
    "unbounded": "one {unit} added or removed (unbounded)",
    "same_household": "one {unit} changed, staying in the household",
    "bounded": "one {unit} changed arbitrarily (bounded)",
}

_WIDTH: Final = 56


def plan_text(plan: Plan, delta: float) -> str:
    """Lay out the measurements of a plan and its totals."""
    zcdp = plan.mechanism is Mechanism.ZCDP
    loss, distance = plan.mechanism.budget_name, "L2^2" if zcdp else "L1"
    table, level = (
        max([least, *(len(getattr(m, column)) for m in plan.measurements)])
        for column, least in (("table", 13), ("level", 11))
    )
    lines = [
        f"{plan.product}: {plan.mechanism.value}, privacy unit {plan.privacy_unit}, {plan.neighbours.value} neighbours,"
        f" {plan.accounting} sensitivities",
        f"{'table':{table}} {'level':{level}} {'cells':>5} {loss:>12} {'bounded ' + loss:>15} {distance:>8} "
        f"{'sigma':>10} {'MOE ' + _percent(plan):>12}",
    ]
    lines += [
        f"{m.table:{table}} {m.level:{level}} {m.cells:5} {_show(m.budget):>12} "
        f"{_show(m.loss(m.sensitivity.bounded)):>15} {_show(m.calibration):>8} "
        f"{m.sigma:10.3f} {_margin(plan, m)}"
        for m in plan.measurements
    ]
    lines += ["", f"MOE of one cell: {_definition(plan)};", "before clamping, suppression and truncation."]
    totals = plan_as_json(plan, delta)["totals"]
    lines += ["", f"{'total ' + loss:{_WIDTH}} {'promised':>12} {'proven at most':>15}"]
    for key, words in _CHANGES.items():
        promised, proven = totals[f"{key}_{loss}"], totals["proven"][f"{key}_{loss}"]
        if promised is not None:
            lines.append(f"{words.format(unit=plan.privacy_unit):{_WIDTH}} {_total(promised):>12} {_total(proven):>15}")
    for name, of_pass in totals.get("passes", {}).items():
        promised = f"{_total(of_pass[loss]):>12}, bounded {_total(of_pass[f'bounded_{loss}'])}"
        lines.append(f"{f'of the {name} pass alone, never added to another':{_WIDTH}} {promised}")
    if zcdp:
        lines += [
            f"{f'epsilon at delta {delta:g} (tight conversion, {key})':{_WIDTH}} {totals[f'{key}_epsilon']:12.6f}"
            for key in ("unbounded", "bounded")
            if totals[f"{key}_epsilon"] is not None
        ]
    lines += _exact_lines(plan, totals, delta)
    if set(plan.person_losses().values()) == {None}:
        unit = f"the plan protects one {plan.privacy_unit}"
        person = f"where that is one person, the {loss} above is the person's, else none of a person is stated"
        return "\n".join([*lines, "", f"{unit}; {person} (docs/person-loss.md)"])
    lines += ["", f"total {loss} of one person, whatever the records count (docs/person-loss.md)"]
    for key, words in _CHANGES.items():
        of_person = totals["person"][f"{key}_{loss}"]
        lines.append(f"{words.format(unit='person'):{_WIDTH}} {'none' if of_person is None else _total(of_person):>12}")
    return "\n".join(lines)


def _exact_lines(plan: Plan, totals: Mapping[str, Any], delta: float) -> list[str]:
    """Epsilons by the exact law of the loss, or that it gives none."""
    at = totals.get("exact_at_delta", totals)
    exact = {own_change(plan): at["epsilon_exact"], "bounded": at["bounded_epsilon_exact"]}
    if all(epsilon is None for epsilon in exact.values()):
        return ["the exact law of the loss gives no bound here; the promised loss is what is proven"] * plan.is_finite
    return [
        f"{f'epsilon at delta {delta:g} (exact law, {change})':{_WIDTH}} "
        + (f"{'none':>12}" if epsilon is None else f"{epsilon:12.6f}")
        for change, epsilon in exact.items()
    ]


def _definition(plan: Plan) -> str:
    if plan.margins == "exact":
        return f"the smallest whole m with P(|noise| <= m) >= {_percent(plan)}, by the exact law of the noise"
    return f"{z_value(plan.confidence):.4g} sigma, as the Census Bureau computes it"


def _margin(plan: Plan, m: Measurement) -> str:
    return f"{plan.margin(m):12}" if plan.margins == "exact" else f"{plan.margin(m):12.2f}"


def _percent(plan: Plan) -> str:
    return f"{float(100 * plan.confidence):g}%"


def _show(value: Budget) -> str:
    return f"{float(value):.9g}" if isinstance(value, Fraction) else "infinite"


def _total(value: str) -> str:
    exact = read_exact(value)
    return f"{float(exact):.6f}" if isinstance(exact, Fraction) else "infinite"


def promises_text(plan: Plan, more: Mapping[str, Any]) -> list[str]:
    """What a product promises beside its plan (`Product.promises`), line by line."""
    lines = []
    if scaled := more.get("scaled"):
        lines += [
            "",
            f"budgets are those of the configuration times {float(read_exact(scaled['factor'])):.9g}, for "
            f"epsilon {scaled['epsilon']:.6f} at delta {scaled['delta']:g} by the {_by(scaled)}; --json has them",
        ]
    if spent := more.get("spent"):
        lines += [
            "",
            f"the budgets with a size keep, with the others, epsilon {spent['epsilon']:.6f} at delta "
            f"{spent['delta']:g} by the {_by(spent)}",
        ]
    if kept := ", ".join(more.get("invariants", {})):
        lines += ["", f"kept exactly, outside the guarantee: the totals of {kept}"]
    any_spine = more.get("any_spine", {})
    if any_spine.get("epsilon_exact") is not None:
        lines += [
            "",
            f"epsilon at delta {any_spine['delta']:g} by the exact law, whichever geounits the spine bypasses: "
            f"{any_spine['epsilon_exact']:.6f}",
        ]
    if semantics := more.get("semantics"):
        lines += ["", *_semantics(plan.privacy_unit, semantics, more.get("semantics_of_production"))]
    if derived := more.get("derived"):
        lines += [
            "",
            "derived sensitivities, unbounded and bounded, and why (docs/tables-privacy.md); some neighbours are so",
            "far apart but where ≤ says that it is an upper bound alone:",
        ]
        for name, of in derived.items():
            unbounded, bounded = (
                ("" if of["attained"][kind] else "≤ ") + of[kind] for kind in ("unbounded", "bounded")
            )
            lines.append(f"{name:32} {unbounded:>10} {bounded:>10}  {of['because']}")
    if lost := left_out_text(more.get("left_out", ())):
        lines += ["", *lost]
    return lines + criteria_text(more.get("criteria", {}))


def left_out_text(left_out: Sequence[Mapping[str, Any]]) -> list[str]:
    """Which records no row of a table counts; nothing if every record is counted."""
    if not left_out:
        return []
    return [
        "records that no row counts, by the description alone:",
        *(
            f"{one['table']}{' at ' * bool(one['levels'])}{', '.join(one['levels'])}: {one['of']} {one['values']} "
            f"({one['because']})"
            for one in left_out
        ),
    ]


def _by(kept: Mapping[str, Any]) -> str:
    return "exact law" if kept["by"] == "exact" else "conversion of the loss, as the exact law gives no bound"


def _semantics(unit: str, here: Mapping[str, Any], there: Mapping[str, Any] | None) -> Iterator[str]:
    """What changes of single attributes and of places cost, beside what they cost in production."""
    head = f"epsilon where one {unit} changes less:"
    names = [here, *([] if there is None else [there])]
    heads = [f"{'here' if of is here else of['product']:>12} {'exact':>11} {'any spine':>11}" for of in names]
    yield f"{head:52} {' '.join(heads)}"
    named = [("attributes", name, f"in its {name} alone") for name in here["attributes"]]
    named += [("geolevels", name, name.replace("Block in", "in its block, in the same")) for name in here["geolevels"]]
    for what, name, words in named:
        shown = [_epsilons(of[what][name]) for of in (here, there) if of is not None]
        yield f"{words:52} {' '.join(shown)}".rstrip()
    yield "here and exact: of geounits with the share of their geolevel; any spine: exact, whichever are bypassed"


def _epsilons(loss: Mapping[str, Any]) -> str:
    """By the tight conversion, by the exact law, and by that on any spine, where they are known."""
    exact = (loss["epsilon_exact"], loss["any_spine"]["epsilon_exact"])
    return " ".join([f"{_epsilon(loss):>12}", *(f"{'none' if of is None else f'{of:.6f}':>11}" for of in exact)])


def criteria_text(criteria: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """Acceptance criteria with their verdicts; nothing where there are none."""
    from yupana.products.described.criteria import verdicts

    lines = []
    for of in verdicts(criteria):
        lines += [f"{of.name}: {of.says}", f"  predicted of the noise: {of.predicted}"]
        lines += [f"  tested: {of.tested}"] if of.tested else []
    return (
        ["", "acceptance criteria of counts as they are measured (docs/tables-criteria.md):", *lines] if lines else []
    )


def _epsilon(described: Mapping[str, Any]) -> str:
    # Under pure DP the exact epsilon is a text, with its float beside it.
    value = described.get("epsilon_float", described["epsilon"])
    return "infinite" if value is None else f"{value:.6f}"


def differences_text(differences: Sequence[PlanDifference]) -> Iterator[str]:
    """What differs from the run of 2020, a line for each value."""
    if not differences:
        yield "No difference from the production plan of 2020."
    width = max([24, *(len(d.measurement) for d in differences)])
    for d in differences:
        here, there = d.here or "not measured", d.there or "not measured"
        yield f"{d.measurement:{width}} {d.value:12} here {here:>14}   production {there:>14}"
