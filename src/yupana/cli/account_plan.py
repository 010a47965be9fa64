"""`yupana account --plan`: epsilon at a delta and delta at an epsilon, by the exact law of the loss of plans."""

import argparse
from pathlib import Path
from typing import Any, Final

import yupana
from yupana.cli.arguments import print_json
from yupana.errors import ConfigError, nearest
from yupana.files.regular import read_json
from yupana.plan.exact_loss import delta_exact, epsilon_exact, missed_exact, own_change
from yupana.plan.plan import Plan, read_plan, tells_moves
from yupana.products import PRODUCTS
from yupana.release.manifest import MANIFEST

_DELTAS: Final = (1e-6, 1e-8, 1e-10, 1e-12)
_TYPE_1: Final = (0.001, 0.01, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5)


def account_of_plans(options: argparse.Namespace) -> None:
    """Tell what plans cost together.

    Raises
    ------
    ConfigError
        If a plan is not found or another question is asked, too, or the plans do not compose.
    """
    others = [name for name in ("rho", "moe", "sensitivity") if getattr(options, name) is not None]
    if others:
        raise ConfigError(f"account --plan takes --delta or --epsilon, not --{others[0]}")
    plans = [plan_named(text) for text in options.plan]
    try:
        answer = _answer(plans, options)
    except ValueError as error:
        raise ConfigError(f"account --plan: {error}") from None
    if options.json:
        print_json(answer)
        return
    for name in options.plan:
        print(f"plan                   {name}")
    for change in dict.fromkeys((own_change(plans[0]), "bounded")):
        key = "" if change == own_change(plans[0]) else f"{change}_"
        if options.epsilon is not None:
            print(
                f"delta, exact           {_show(answer[f'{key}delta_exact'])}   at epsilon {options.epsilon}, {change}"
            )
            continue
        for point in answer["curve"]:
            print(
                f"epsilon, exact         {_show(point[f'{key}epsilon_exact'])}   at delta {point['delta']:g}, {change}"
            )


def _answer(plans: list[Plan], options: argparse.Namespace) -> dict[str, Any]:
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
    return {
        "delta": delta,
        "epsilon_exact": epsilon_exact(plans, delta),
        "bounded_epsilon_exact": epsilon_exact(plans, delta, "bounded"),
    }


def plan_named(text: str) -> Plan:
    """Find a plan by the path of a release, a manifest or a plan, or by a built-in name.

    Raises
    ------
    ConfigError
        If there is none.
    """
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
        plan = read_plan(described)
    except ValueError as error:
        raise ConfigError(f"--plan {path}: holds no plan: {error}") from None
    if not tells_moves(described):
        raise ConfigError(f"--plan {path}: was written before plans told how far neighbours move; write it anew")
    return plan


def _show(value: float | None) -> str:
    return f"{'none':>10}" if value is None else f"{value:10.6g}"
