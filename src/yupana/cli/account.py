"""`yupana account`: rho to and from (epsilon, delta), margin of error to and from a budget."""

import argparse
from fractions import Fraction
from typing import Any

from yupana.cli.arguments import Commands, confidence_level, positive, print_json, share
from yupana.errors import ConfigError
from yupana.plan.measurement import Mechanism, margin_of, published_variance
from yupana.plan.plan import DEFAULT_DELTA, number
from yupana.privacy.zcdp import epsilon_bun_steinke, epsilon_tight, rho_for_epsilon


def add(commands: Commands) -> None:
    """Add the command."""
    parser = commands.add_parser(
        "account",
        help="rho <-> (epsilon, delta), margin of error <-> rho",
        description="Give --rho for its epsilon (and its margin of error, with --sensitivity), --epsilon for its rho, "
        "or --moe with --sensitivity for the rho that buys it. With --mechanism pure: --epsilon for its margin of "
        "error, or --moe for the epsilon that buys it, each with --sensitivity.",
    )
    text = (
        "a plan: a release, its manifest, what plan --json wrote, or a built-in name such as topdown:pl94-2020-us; may "
    )
    text += "be repeated for what is spent on the same records together. With --delta or --epsilon: the exact law"
    parser.add_argument("--plan", action="append", default=[], metavar="FILE|NAME", help=text)
    parser.add_argument("--rho", type=positive, metavar="R")
    parser.add_argument("--epsilon", type=positive, metavar="E")
    parser.add_argument("--delta", type=share, default=Fraction(str(DEFAULT_DELTA)), metavar="D", help="default 1e-10")
    parser.add_argument("--moe", type=positive, metavar="M", help="margin of error of one cell")
    parser.add_argument(
        "--sensitivity",
        type=positive,
        metavar="D",
        help="squared L2 sensitivity of the counts, such as 484 for tau 10; under pure DP their L1 sensitivity",
    )
    parser.add_argument("--confidence", type=confidence_level, default=Fraction(9, 10), metavar="C", help="default 0.9")
    text = "margins of error: exact (default), or the Bureau's z sigma (docs/margins.md)"
    parser.add_argument("--margins", choices=("exact", "bureau"), default="exact", help=text)
    parser.add_argument("--mechanism", choices=("zcdp", "pure"), default="zcdp")
    parser.add_argument("--json", action="store_true")
    parser.set_defaults(command=_account)


def _account(options: argparse.Namespace) -> None:
    if options.plan:
        from yupana.cli.account_plan import account_of_plans

        account_of_plans(options)
        return
    given = [name for name in ("rho", "epsilon", "moe") if getattr(options, name) is not None]
    if len(given) != 1:
        raise ConfigError("account needs exactly one of --rho, --epsilon and --moe")
    if options.moe is not None and options.sensitivity is None:
        raise ConfigError("account --moe needs --sensitivity, the squared L2 (under pure DP the L1) one of the counts")
    if options.mechanism == "pure":
        _account_pure(options)
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
    if options.sensitivity is not None:
        answer |= _margin(options, rho)
    if options.json:
        print_json(answer)
        return
    print(f"rho                    {float(rho):.9g}")
    print(f"epsilon, tight         {answer['epsilon_tight']:.6g}   at delta {delta:g}")
    print(f"epsilon, Bun-Steinke   {answer['epsilon_bun_steinke']:.6g}   at delta {delta:g}")
    if options.sensitivity is not None:
        _print_margin(options, answer)


def _account_pure(options: argparse.Namespace) -> None:
    if options.rho is not None or options.sensitivity is None:
        raise ConfigError("account --mechanism pure needs --sensitivity, and --epsilon or --moe")
    epsilon = options.epsilon if options.moe is None else _budget(options)
    answer = {**number("epsilon", epsilon), **_margin(options, epsilon)}
    if options.json:
        print_json(answer)
        return
    print(f"epsilon                {float(epsilon):.9g}")
    _print_margin(options, answer)


def _budget(options: argparse.Namespace) -> Fraction:
    from yupana.plan.budgets import budget_for_margin

    return budget_for_margin(
        options.moe, options.sensitivity, options.confidence, Mechanism(options.mechanism), options.margins
    )


def _margin(options: argparse.Namespace, budget: Fraction) -> dict[str, Any]:
    law = Mechanism(options.mechanism).law(options.sensitivity, budget)
    return {
        "sigma2": float(published_variance(law)),
        "moe": margin_of(law, 1, options.confidence, options.margins),
        "margins": options.margins,
        "confidence": float(options.confidence),
    }


def _print_margin(options: argparse.Namespace, answer: dict[str, Any]) -> None:
    words = f"at {float(options.confidence):g} confidence, {options.margins}"
    print(f"margin of error        {answer['moe']:.10g}   {words}")
