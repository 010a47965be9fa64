"""What the verbs of products tell people: plans, observed errors, comparisons and strategies, in lines."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from typing import Any, Final

from yupana.plan.exact_loss import own_change, plan_as_json
from yupana.plan.measurement import Measurement, Mechanism, z_value
from yupana.plan.plan import Plan, PlanDifference
from yupana.privacy.exact import Budget, read_exact
from yupana.products.disclosure_control.differencing import FEW
from yupana.products.disclosure_control.results import SideBySide
from yupana.products.product import Product
from yupana.products.strategy import Strategy
from yupana.topdown.configuration import Configuration

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
        lines.append(f"{f'of the {name} pass alone: not to be added to another':{_WIDTH}} {promised}")
    if zcdp:
        lines += [
            f"{f'epsilon at delta {delta:g} (tight conversion, {key})':{_WIDTH}} {totals[f'{key}_epsilon']:12.6f}"
            for key in ("unbounded", "bounded")
            if totals[f"{key}_epsilon"] is not None
        ]
    lines += _exact_lines(plan, totals, delta)
    if set(plan.person_losses().values()) == {None}:
        unit = f"the plan protects one {plan.privacy_unit}"
        person = f"the {loss} above is of one person only where each person has one such record"
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
            "sensitivities, unbounded and bounded, and what each follows from (docs/tables-privacy.md);",
            "≤ marks an upper bound that may not be attained:",
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
        "records that the description leaves out of a table:",
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
    yield "here: by conversion of rho; exact: by the exact law; both for geounits with the share of their geolevel"
    yield "any spine: by the exact law, whichever geounits are bypassed"


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


def cells_text(rows: Sequence[Any]) -> Iterator[str]:
    """Of PHSafe and of described tables: a line for each cell, whose names may be of any length."""
    heads = f"{'n':>8}{'expected':>10}{'noise':>10}{'within':>9}{'with truncation':>17}{'bias':>10}"
    names = [("table", "level", "iteration", "cell"), *((r.table, r.level, r.iteration, str(r.cell)) for r in rows)]
    widths = [max(map(len, column)) + 2 for column in zip(*names, strict=True)]
    starts = ["".join(map(str.ljust, some, widths)) for some in names]
    yield starts[0] + heads
    for start, row in zip(starts[1:], rows, strict=True):
        yield (
            f"{start}{row.count:8}{row.expected_moe:10.1f}{row.experimental_moe:10.1f}{row.coverage:9.2%}"
            f"{row.experimental_moe_with_truncation:17.1f}{row.bias_from_truncation:10.2f}"
        )


def groups_text(rows: Sequence[Any]) -> Iterator[str]:
    """Of SafeTab: a line for each size of a population group."""
    yield (
        f"{'table':10}{'level':14}{'size':>22}{'groups':>12}{'share':>9}{'n':>12}{'expected':>10}{'noise':>10}"
        f"{'within':>9}{'cap':>10}"
    )
    for row in rows:
        level = f"{row.region_type} {row.iteration_level}{'*' * row.detailed_only}"
        margins = (row.expected_moe, row.experimental_moe, row.race_cap_bias)
        expected, found, bias = ("-" if m is None else f"{m:.1f}" for m in margins)
        yield (
            f"{row.table:10}{level:14}{row.size:>22}{row.groups:12,}{row.share:9.2%}{row.count:12,}"
            f"{expected:>10}{found:>10}{'-' if row.coverage is None else f'{row.coverage:.2%}':>9}{bias:>10}"
        )
    yield "cap: how many records the limit on race codes adds to a group, on average"
    if any(row.detailed_only for row in rows):
        yield "* iterations of which only totals are made"


def counts_text(rows: Sequence[Any]) -> Iterator[str]:
    """Of TopDown: a line for each kind of areas and query."""
    yield "CONFIDENTIAL: these errors tell the truth about the records."
    yield f"{'areas':22} {'query':24} {'population':>16} {'number':>8} {'MAE':>10} {'RMSE':>10} {'bias':>10}"
    for row in _of_sizes(rows):
        yield (
            f"{row.geolevel:22} {row.query:24} {row.population:>16} {row.areas:8,} {row.mae:10.3f} {row.rmse:10.3f} "
            f"{row.bias:+10.3f}"
        )


def _of_sizes(rows: Sequence[Any]) -> list[Any]:
    """Leave out rows of one size of areas where all areas have this size: they repeat the row of all."""
    sizes = Counter((row.geolevel, row.query) for row in rows)
    return [row for row in rows if row.population == "all" or sizes[row.geolevel, row.query] > _ALL_AND_ONE]


_ALL_AND_ONE: Final = 2


def errors_text(found: Sequence[tuple[str, Sequence[Any]]]) -> Iterator[str]:
    """Of TopDown: mean absolute errors of several configurations, a line for each kind of areas and query."""
    yield "CONFIDENTIAL: these errors tell the truth about the records."
    yield from (f"MAE {number}: {name}" for number, (name, _) in enumerate(found, 1))
    errors = [{(row.geolevel, row.query, row.population): row.mae for row in _of_sizes(rows)} for _, rows in found]
    heads = "".join(f"{f'MAE {number}':>11}" for number in range(1, len(found) + 1))
    yield f"{'areas':22} {'query':24} {'population':>16}{heads}"
    for place in dict.fromkeys(place for own in errors for place in own):
        told = (f"{own[place]:11.3f}" if place in own else f"{'-':>11}" for own in errors)
        yield f"{place[0]:22} {place[1]:24} {place[2]:>16}{''.join(told)}"


def comparison_text(found: SideBySide) -> Iterator[str]:
    """A line for each method and size of the true count, kind of sums, and target of an attacker."""
    width = max(len(method.name) for method in found.methods) + 2
    heads = f"{'counts':>10}{'shown':>10}{'exact':>8}{'error':>9}{'bias':>9}{'90%':>6}"
    yield f"{'method':{width}}{'true count':>17}{heads}"
    for e in found.errors:
        error, bias = (
            f"{value:9.2f}" if value is not None else f"{'-':>9}" for value in (e.mean_absolute_error, e.bias)
        )
        most = f"{'-':>6}" if e.quantile_90 is None else f"{e.quantile_90:6.0f}"
        yield f"{e.method:{width}}{e.size:>17}{e.counts:10,}{e.shown:10,}{_share_text(e.exact)}{error}{bias}{most}"
    yield f"{'method':{width}}{'sums of':>17}{'number':>10}{'shown':>10}{'add up':>8}{'off by':>9}"
    for a in found.additivity:
        off = f"{'-':>9}" if a.mean_difference is None else f"{a.mean_difference:9.2f}"
        yield f"{a.method:{width}}{a.kind:>17}{a.sums:10,}{a.shown:10,}{_share_text(a.exact)}{off}"
    heads = f"{'number':>10}{'read off':>10}{'guessed':>9}{'certain':>9}"
    yield f"{'method':{width}}{f'1 to {FEW} of':>17}{heads}"
    for row in found.learnt:
        shares = f"{_share_text(row.face):>10}{_share_text(row.guess):>9}{_share_text(row.certain):>9}"
        yield f"{row.method:{width}}{row.target:>17}{row.number:10,}{shares}"
    yield from found.remarks
    yield "None of the methods but the release is differentially private."


def _share_text(value: float | None) -> str:
    return f"{'-':>8}" if value is None else f"{value:8.1%}"


def strategy_text(strategy: Strategy[Configuration]) -> list[str]:
    """Lay out shares of TopDown, variances and the bound."""
    lines = [*_shares(strategy), "", *_variances(strategy), "", *_loss(strategy, "shares of these queries")]
    given, found = strategy.given.budget, strategy.found.budget
    if found != given:
        lines.append(f"rho: given {float(given):.9g}; the margins asked for need {float(found):.9g}")
    untold = [level for level in strategy.found.without_detail() if level not in strategy.given.without_detail()]
    if untold:
        lines.append(
            f"detailed is no longer measured at {', '.join(untold)}; counts from the root down will suffer (--least)"
        )
    told = "variances are of unbiased estimates, before counts are made whole and non-negative (docs/strategies.md)"
    return [*lines, told]


def budgets_text(product: Product[Any], strategy: Strategy[Any]) -> list[str]:
    """Lay out budgets, variances and the bound."""
    given, found = (product.entries(config) for config in (strategy.given, strategy.found))
    width = max(map(len, given)) + 2
    lines = [f"{'budget':{width}} {'given':>14} {'found':>14}"]
    lines += [
        f"{name:{width}} {float(of.budget):14.9f} {float(found[name].budget):14.9f}" for name, of in given.items()
    ]
    told = "variances are of counts as they are measured and added up (docs/strategies.md)"
    return [*lines, "", *_variances(strategy), "", *_loss(strategy, "budgets of this loss"), told]


def _shares(strategy: Strategy[Configuration]) -> Iterator[str]:
    queries = [query.name for of_level in strategy.given.queries.values() for query, _ in of_level]
    width = max(map(len, [*queries, *strategy.given.levels])) + 2
    yield f"{'share':{width}} {'given':>10} {'found':>10}"
    for level in strategy.given.levels:
        yield f"{level:{width}} {_level(strategy.given, level):10.4%} {_level(strategy.found, level):10.4%}"
        of_found = {query.factors: float(share) for query, share in strategy.found.queries[level]}
        for query, share in strategy.given.queries[level]:
            yield f"  {query.name:{width - 2}} {float(share):10.4%} {of_found[query.factors]:10.4%}"


def _level(config: Configuration, level: str) -> float:
    return float(config.shares[level])


def _variances(strategy: Strategy[Any]) -> Iterator[str]:
    width = max(len(f"{row.level} {row.target}") for row in strategy.rows)
    yield f"{'variance of an answer, mean':{max(width, 28)}} {'given':>12} {'found':>12} {'ratio':>8}"
    for row in strategy.rows:
        name = f"{row.level} {row.target}"
        yield f"{name:{max(width, 28)}} {row.given:12.2f} {row.found:12.2f} {row.ratio:8.3f}"


def _loss(strategy: Strategy[Any], of: str) -> Iterator[str]:
    ratio = strategy.found_loss / strategy.given_loss
    yield f"loss: given {strategy.given_loss:.6g}, found {strategy.found_loss:.6g}, {ratio:.4f} of it"
    yield f"no {of} have less than {strategy.bound:.6g} (gap {max(strategy.gap, 0.0):.1e})"
