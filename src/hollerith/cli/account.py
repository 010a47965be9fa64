"""`hollerith account`: rho to and from (epsilon, delta), margin of error to and from rho."""

import argparse
from fractions import Fraction

from hollerith.cli.arguments import Commands, positive, print_json, share
from hollerith.errors import ConfigError
from hollerith.plan.margin import margin_of_error, rho_for_margin
from hollerith.plan.plan import DEFAULT_DELTA
from hollerith.privacy.zcdp import epsilon_bun_steinke, epsilon_tight, rho_for_epsilon


def add(commands: Commands) -> None:
    """Add the command."""
    parser = commands.add_parser(
        "account",
        help="rho <-> (epsilon, delta), margin of error <-> rho",
        description="Give --rho for its epsilon (and its margin of error, with --sensitivity), --epsilon for its rho, "
        "or --moe with --sensitivity for the rho that buys it.",
    )
    parser.add_argument("--rho", type=positive, metavar="R")
    parser.add_argument("--epsilon", type=positive, metavar="E")
    parser.add_argument("--delta", type=share, default=Fraction(str(DEFAULT_DELTA)), metavar="D", help="default 1e-10")
    parser.add_argument("--moe", type=positive, metavar="M", help="margin of error of one cell")
    parser.add_argument(
        "--sensitivity",
        type=positive,
        metavar="D2",
        help="squared L2 sensitivity of the counts, such as 484 for tau 10",
    )
    parser.add_argument("--confidence", type=share, default=Fraction(9, 10), metavar="C", help="default 0.9")
    parser.add_argument("--json", action="store_true")
    parser.set_defaults(command=_account)


def _account(options: argparse.Namespace) -> None:
    given = [name for name in ("rho", "epsilon", "moe") if getattr(options, name) is not None]
    if len(given) != 1:
        raise ConfigError("account needs exactly one of --rho, --epsilon and --moe")
    delta = float(options.delta)
    if options.moe is not None:
        if options.sensitivity is None:
            raise ConfigError("account --moe needs --sensitivity, the squared L2 sensitivity of the counts")
        rho = rho_for_margin(options.moe, options.sensitivity, options.confidence)
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
        sigma2 = options.sensitivity / (2 * rho)
        answer |= {"sigma2": float(sigma2), "moe": margin_of_error(sigma2, options.confidence)}
        answer["confidence"] = float(options.confidence)
    if options.json:
        print_json(answer)
        return
    print(f"rho                    {float(rho):.9g}")
    print(f"epsilon, tight         {answer['epsilon_tight']:.6g}   at delta {delta:g}")
    print(f"epsilon, Bun-Steinke   {answer['epsilon_bun_steinke']:.6g}   at delta {delta:g}")
    if options.sensitivity is not None:
        print(f"margin of error        {answer['moe']:.6g}   at {float(options.confidence):g} confidence")
