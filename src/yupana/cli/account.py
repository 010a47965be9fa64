"""`yupana account`: rho, epsilon and delta of budgets and of plans, margin of error to and from a budget."""

import argparse
from fractions import Fraction
from pathlib import Path
from typing import Any, Final

import yupana
from yupana.cli.options import tell
from yupana.errors import ConfigError, nearest
from yupana.files.regular import read_json
from yupana.plan.measurement import Mechanism, margin_of, published_variance
from yupana.plan.plan import Plan, number, read_plan
from yupana.privacy.zcdp import epsilon_bun_steinke, epsilon_tight, rho_for_epsilon
from yupana.products import PRODUCTS
from yupana.release.manifest import MANIFEST

_DELTAS: Final = (1e-6, 1e-8, 1e-10, 1e-12)
_TYPE_1: Final = (0.001, 0.01, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5)


def account(options: argparse.Namespace) -> None:
    """Tell what a budget or plans cost, or what a margin of error costs."""
    if options.plan:
        _of_plans(options)
        return
    given = [name for name in ("rho", "epsilon", "moe") if getattr(options, name) is not None]
    if len(given) != 1:
        raise ConfigError("account needs exactly one of --rho, --epsilon and --moe")
    if options.moe is not None and options.sensitivity is None:
        raise ConfigError("account --moe needs --sensitivity, the squared L2 (under pure DP the L1) one of the counts")
    if options.mechanism == "pure":
        _pure(options)
        return
    delta = float(options.delta)
    if options.moe is not None:
        rho = _budget(options)
    else:
        rho = options.rho if options.rho is not None else Fraction(rho_for_epsilon(float(options.epsilon), delta))
    answer = {
        "rho": str(rho) if options.epsilon is None else None,
        "rho_float": float(rho),
        "delta": delta,
        "epsilon_bun_steinke": epsilon_bun_steinke(rho, delta),
        "epsilon_tight": epsilon_tight(rho, delta),
    }
    lines = [
        f"rho                    {float(rho):.9g}",
        f"epsilon, tight         {answer['epsilon_tight']:.6g}   at delta {delta:g}",
        f"epsilon, Bun-Steinke   {answer['epsilon_bun_steinke']:.6g}   at delta {delta:g}",
    ]
    _tell(options, answer, lines, rho)


def _pure(options: argparse.Namespace) -> None:
    if options.rho is not None or options.sensitivity is None:
        raise ConfigError("account --mechanism pure needs --sensitivity, and --epsilon or --moe")
    epsilon = options.epsilon if options.moe is None else _budget(options)
    _tell(options, number("epsilon", epsilon), [f"epsilon                {float(epsilon):.9g}"], epsilon)


def _budget(options: argparse.Namespace) -> Fraction:
    from yupana.plan.budgets import budget_for_margin

    return budget_for_margin(
        options.moe, options.sensitivity, options.confidence, Mechanism(options.mechanism), options.margins
    )


def _tell(options: argparse.Namespace, answer: dict[str, Any], lines: list[str], budget: Fraction) -> None:
    """Tell what a budget costs, and the margin of error that it buys where a sensitivity is given."""
    if options.sensitivity is not None:
        law = Mechanism(options.mechanism).law(options.sensitivity, budget)
        moe, confidence = margin_of(law, 1, options.confidence, options.margins), float(options.confidence)
        answer |= {"sigma2": float(published_variance(law)), "moe": moe, "margins": options.margins}
        answer["confidence"] = confidence
        lines.append(f"margin of error        {moe:.10g}   at {confidence:g} confidence, {options.margins}")
    tell(options, answer, lines)


def _of_plans(options: argparse.Namespace) -> None:
    """Tell what plans cost together: epsilon at a delta, delta at an epsilon, by the exact law of the loss."""
    from yupana.plan.exact_loss import own_change

    others = [name for name in ("rho", "moe", "sensitivity") if getattr(options, name) is not None]
    if others:
        raise ConfigError(f"account --plan takes --delta or --epsilon, not --{others[0]}")
    plans = [_plan_named(text) for text in options.plan]
    try:
        answer = _answer(plans, options)
    except ValueError as error:
        raise ConfigError(f"account --plan: {error}") from None
    lines = [f"plan                   {name}" for name in options.plan]
    for change in dict.fromkeys((own_change(plans[0]), "bounded")):
        key = "" if change == own_change(plans[0]) else f"{change}_"
        if options.epsilon is not None:
            delta = _show(answer[f"{key}delta_exact"])
            lines.append(f"delta, exact           {delta}   at epsilon {options.epsilon}, {change}")
        lines += [
            f"epsilon, exact         {_show(point[f'{key}epsilon_exact'])}   at delta {point['delta']:g}, {change}"
            for point in answer.get("curve", ())
        ]
    tell(options, answer, lines)


def _answer(plans: list[Plan], options: argparse.Namespace) -> dict[str, Any]:
    from yupana.plan.exact_loss import delta_exact, missed_exact

    answer: dict[str, Any] = {"plans": options.plan, "neighbours": plans[0].neighbours.value}
    if options.epsilon is not None:
        epsilon = float(options.epsilon)
        return answer | {
            "epsilon": epsilon,
            "delta_exact": delta_exact(plans, epsilon),
            "bounded_delta_exact": delta_exact(plans, epsilon, "bounded"),
        }
    delta = float(options.delta)
    points = [_point(plans, at) for at in dict.fromkeys((delta, *_DELTAS))]
    missed = missed_exact(plans, _TYPE_1)
    return {
        **answer,
        **points[0],
        "curve": points,
        "trade_off": None
        if missed is None
        else [{"type_1": a, "type_2": b} for a, b in zip(_TYPE_1, missed, strict=True)],
    }


def _point(plans: list[Plan], delta: float) -> dict[str, float | None]:
    from yupana.plan.exact_loss import epsilon_exact

    return {
        "delta": delta,
        "epsilon_exact": epsilon_exact(plans, delta),
        "bounded_epsilon_exact": epsilon_exact(plans, delta, "bounded"),
    }


def _plan_named(text: str) -> Plan:
    """Find a plan by the path of a release, a manifest or a plan, or by a built-in name."""
    path = Path(text)
    if path.is_dir():
        path = path / MANIFEST
    if path.is_file():
        return _read(path)
    found, _, name = text.rpartition(":")
    by_product = {key: PRODUCTS.listing(key).built_in for key in PRODUCTS}
    if found in by_product:
        return yupana.plan(found, name)
    having = [key for key, names in by_product.items() if text in names]
    if len(having) == 1:
        return yupana.plan(having[0], text)
    known = sorted(f"{key}:{name}" for key, names in by_product.items() for name in names)
    if having:
        raise ConfigError(
            f"--plan {text}: several products have it; write {' or '.join(f'{k}:{text}' for k in having)}"
        )
    raise ConfigError(
        f"--plan {text}: no such file, and no plan of that name; built in are {', '.join(known)}{nearest(text, known)}"
    )


def _read(path: Path) -> Plan:
    if path.name == MANIFEST:
        from yupana.products.gate import open_release

        return open_release(path.parent, confidential=True).alone().measured
    try:
        document = read_json(path)
    except (OSError, ValueError):
        raise ConfigError(f"--plan {path}: cannot be read as JSON; give what plan --json wrote") from None
    described = document.get("plan", document) if isinstance(document, dict) else document
    try:
        return read_plan(described)
    except ValueError as error:
        raise ConfigError(f"--plan {path}: holds no plan: {error}") from None


def _show(value: float | None) -> str:
    return f"{'none':>10}" if value is None else f"{value:10.6g}"
