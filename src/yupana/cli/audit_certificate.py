"""`yupana audit certificate`: what a release promises, on one page."""

import argparse
from pathlib import Path

import yupana
from yupana.cli.arguments import Commands, count, print_json
from yupana.cli.product import add_verb
from yupana.interface.arguments import out_of


def add(verbs: Commands) -> None:
    """Add the verb."""
    verb = add_verb(verbs, "certificate", "what releases promise, on one page (HTML) and in JSON", _certificate)
    text = (
        "folders with a manifest.json: one, or several of the same census, which are certified together; and what "
        "tables accuracy wrote of the same plan, whose tests of acceptance criteria are told"
    )
    verb.add_argument("releases", type=Path, nargs="+", metavar="RELEASE", help=text)
    verb.add_argument("out", type=Path, metavar="OUT", help="a folder that does not exist or is empty")
    text = "of several releases: the most persons in a household, for what they promise to one"
    verb.add_argument("--household-cap", type=count, metavar="K", help=text)
    verb.add_argument("--overwrite", action="store_true", help="replace an earlier certificate in OUT")
    verb.add_argument("--json", action="store_true", help="print the certificate, too")


def _certificate(options: argparse.Namespace) -> None:
    from yupana.report.certificate import NUMBERS

    out_of(options.out, *options.releases, overwrite=options.overwrite)
    certified = yupana.certificate(*options.releases, household_cap=options.household_cap)
    page = certified.write(options.out, overwrite=options.overwrite)
    if options.json:
        print_json(dict(certified))
        return
    print(page)
    print(options.out / NUMBERS)
