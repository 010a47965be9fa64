"""`yupana audit attribute`: what a plan loses where one person differs in some attributes only."""

import argparse
import sys
from collections.abc import Callable, Iterator
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import yupana
from yupana.cli.options import tell
from yupana.errors import ConfigError
from yupana.products import PRODUCTS

if TYPE_CHECKING:
    from yupana.audit.attribute.answers import AttributeAnswer, ClassComparison
    from yupana.audit.attribute.bounds import AttributeBound
    from yupana.plan.plan import Plan

_PRODUCTION = "s-dhc-2020"
_SLIDES = "s-dhc-slides"
_OTHER_BUDGETS = (
    f"The slides used other budgets than these, so the printed numbers and the rule differ; with {_SLIDES}, the "
    "budgets solved for from the printed numbers, they agree."
)
_SAFETAB_KEYS = "privacy_budget_"


def attribute(options: argparse.Namespace) -> None:
    """Tell what is lost where one person differs in some attributes only."""
    if options.individuals is not None and options.example:
        raise ConfigError("name a file of INDIVIDUALS or an --example, not both")
    ask = _asker(Path(options.config), options.config)
    if ask is not _phsafe and (options.individuals is not None or options.example or options.classes):
        raise ConfigError("individuals and their households are for PHSafe; other products are answered for any record")
    if ask is _phsafe and options.codes is not None:
        raise ConfigError("codes are of SafeTab and of descriptions of tables; PHSafe has no files of them")
    ask(options)


def _asker(path: Path, name: str) -> Callable[[argparse.Namespace], None]:
    """What answers for a configuration, by its keys."""
    from yupana.files.document import read_document
    from yupana.products.described.product import TABLES
    from yupana.products.phsafe.product import PHSAFE
    from yupana.products.topdown.product import TOPDOWN

    described, of_topdown = (partial(_bounds, product.key) for product in (TABLES, TOPDOWN))
    if path.is_dir() and name not in TABLES.built_in:
        return _safetab
    document: object = read_document(path)[0] if path.is_file() else None
    told = document if isinstance(document, dict) else {}
    is_phsafe = name in (_PRODUCTION, _SLIDES, *PHSAFE.built_in) or {"privacy_budget", "tau"} & set(told)
    is_description = {"files", "tables"} <= set(told) and TOPDOWN.key not in told
    is_described = name in TABLES.built_in or is_description or told.get("system") == TABLES.key
    if is_phsafe or is_described:
        return _phsafe if is_phsafe else described
    return _safetab if any(key.startswith(_SAFETAB_KEYS) for key in told) else of_topdown


def _phsafe(options: argparse.Namespace) -> None:
    from yupana.audit.attribute.answers import comparisons, planned
    from yupana.products.phsafe.product import PHSAFE

    known = planned(options.config, options.accounting)
    plan = known[1] if known else yupana.plan(PHSAFE, options.config, accounting=options.accounting)
    found = [*yupana.attribute_loss(options.config, options.individuals, accounting=options.accounting, progress=True)]
    example = options.individuals is None
    compared = list(comparisons(found))
    if options.classes and not compared:
        raise ConfigError("--classes: the individuals are all of one class, so there is nobody to compare them with")
    words = _OTHER_BUDGETS if example and options.config != _SLIDES else ""
    if options.json and words:
        print(f"yupana: {words}", file=sys.stderr)
    lines = _means_text(compared) if options.classes else _answers_text(found, plan, slides=example)
    rows = [row.as_json() for row in (compared if options.classes else found)]
    tell(options, rows, [*lines, *_conclusions_text(compared), *(["", words] if words else [])])


def _answers_text(found: "list[AttributeAnswer]", plan: "Plan", *, slides: bool) -> Iterator[str]:
    from yupana.audit.attribute.answers import change_line

    symbol = plan.mechanism.budget_name
    promised, proven = plan.loss(lambda m: m.sensitivity.bounded), plan.loss(lambda m: m.proven.bounded)
    yield f"{symbol} where one person differs in the attributes of a secret only; any change at all costs"
    yield f"{float(promised):.6f} as promised, {float(proven):.6f} as proven at most."
    width = max(len(answer.individual.name) for answer in found)
    secrets = max(10, *(len(answer.secret.name) for answer in found))
    heads = ["printed", "rule", "difference", "largest found"] if slides else ["rule", "largest found"]
    yield ""
    yield f"{'':{width}} {'secret':{secrets}}" + "".join(f"{head:>14}" for head in heads)
    for answer in found:
        printed = f"{answer.printed:14.3f}" if answer.printed is not None else ""
        difference = f"{float(answer.difference):14.6f}" if answer.difference is not None else ""
        yield (
            f"{answer.individual.name:{width}} {answer.secret.name:{secrets}}{printed}{float(answer.rule):14.6f}"
            f"{difference}{float(answer.exact.value):14.6f}"
        )
    yield ""
    yield "Attained where these households change (RELSHIP/sex and age/CENRACE-CENHISP, those kept first first):"
    told: set[tuple[str, frozenset[str]]] = set()
    for answer in found:
        key = (answer.individual.name, answer.secret.attributes)
        if key in told or not answer.exact.value:
            continue
        told.add(key)
        yield f"{answer.individual.name}, {', '.join(sorted(answer.secret.attributes))}:"
        yield from (f"  {change_line(one)}" for one in answer.exact.changes if one.before != one.after)
    if slides:
        yield ""
        yield "The column rule follows the printed numbers, with their exceptions (docs/attribute-loss.md); the"
        yield "difference is the printed number minus the rule."


def _means_text(compared: "list[ClassComparison]") -> Iterator[str]:
    """For each division the mean losses by secret, of the class and of the others."""
    from itertools import groupby

    for division, group in groupby(compared, lambda c: c.division):
        columns = list(group)
        first = columns[0]
        yield f"{division.name} ({', '.join(first.members)}) beside {division.others} ({', '.join(first.others)})"
        yield f"{'mean loss':24}" + "".join(f"{c.column:>24}" for c in columns)
        for place, (secret, _, _) in enumerate(first.means):
            shown = (f"{float(c.means[place][1]):.4f} / {float(c.means[place][2]):.4f}" for c in columns)
            yield f"{secret:24}" + "".join(f"{pair:>24}" for pair in shown)
        yield ""


def _conclusions_text(compared: "list[ClassComparison]") -> Iterator[str]:
    """Whether each class often loses significantly less, column by column, with the counts that decide."""
    if not compared:
        return
    yield ""
    yield (
        "Who often loses significantly less? In how many secrets the class loses less on average; and of the pairs of a"
    )
    yield "member and another, secret by secret, in how many the member loses at most half as much, or at least twice."
    for c in compared:
        counts = f"{c.less} of {len(c.means)} secrets less; of {c.pairs} pairs {c.half} half, {c.twice} twice"
        verdict = "yes" if c.holds else "no"
        yield f"  {c.division.name} beside {c.division.others}, {c.column}: {verdict} ({counts})"


def _safetab(options: argparse.Namespace) -> None:
    from yupana.files.document import read_document
    from yupana.plan.plan import number
    from yupana.products.safetab.product import HOUSEHOLDS, PERSONS

    source = Path(options.config)
    folder = source if source.is_dir() else source.parent
    path = PERSONS.locate(folder)
    document, _ = read_document(path)
    keys = set(document) if isinstance(document, dict) else set()
    found: list[AttributeBound] = []
    for product, prefix in ((PERSONS, "p_"), (HOUSEHOLDS, "h_")):
        if any(key.startswith(_SAFETAB_KEYS + prefix) for key in keys):
            found += yupana.attribute_bounds(product, folder, accounting=options.accounting, codes=options.codes)
    if not found:
        raise ConfigError(f"{path}: has no budgets of SafeTab")
    answer = [
        {
            "product": bound.product,
            "privacy_unit": bound.privacy_unit,
            "attributes": list(bound.attributes),
            **number("loss", bound.loss),
        }
        for bound in found
    ]
    lines = [f"{'product':10} {'a record differs only in':48} {found[0].mechanism.budget_name + ', at most':>14}"]
    for bound in found:
        shown = f"{float(bound.loss):.6f}" if isinstance(bound.loss, Fraction) else "infinite"
        lines.append(f"{bound.product:10} {', '.join(bound.attributes):48} {shown:>14}")
    tell(options, answer, lines)


def _bounds(product: str, options: argparse.Namespace) -> None:
    from yupana.plan.plan import DEFAULT_DELTA
    from yupana.topdown.plan import loss_as_json

    terms = {"accounting": options.accounting} if PRODUCTS.listing(product).accountings else {}
    found = [*yupana.attribute_bounds(product, options.config, codes=options.codes, **terms)]
    if not found:
        raise ConfigError(f"{options.config}: no column of the unit's records or of those below them is described")
    unit = {"product": found[0].product, "privacy_unit": found[0].privacy_unit}
    rows = [
        {
            **({"geolevel": f"Block in {bound.within}"} if bound.within else {"attribute": bound.attributes[0]}),
            **loss_as_json(bound.loss, bound.mechanism),
        }
        for bound in found
    ]
    names = [str(row.get("attribute", row.get("geolevel"))) for row in rows]
    width = max(33, *map(len, names)) + 1
    has_rho = any(row.get("rho_float") is not None for row in rows)
    heads = f"{'rho':>14}{'epsilon':>14}   at delta {DEFAULT_DELTA:g}" if has_rho else f"{'epsilon':>14}"
    lines = [f"{unit['product']}: where one {unit['privacy_unit']} differs only in", f"{'':{width}}{heads}"]
    for name, row in zip(names, rows, strict=True):
        losses = [row["rho_float"]] if has_rho else []
        losses.append(row.get("epsilon_float", row.get("epsilon")))
        shown = "".join(f"{'-' if value is None else format(value, '.6f'):>14}" for value in losses)
        lines.append(f"{name:{width}}{shown}")
    tell(options, [{**unit, **row} for row in rows], lines)
