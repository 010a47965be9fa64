"""`yupana postprocess coterminous|suppress`: what is done to a SafeTab release after its measurements."""

import argparse
from collections.abc import Callable
from pathlib import Path

import yupana
from yupana.cli.arguments import Commands, print_json, share
from yupana.cli.product import given


def add(commands: Commands) -> None:
    """Add the command and its verbs."""
    parser = commands.add_parser("postprocess", help="coterminous areas and suppression in SafeTab releases")
    verbs = parser.add_subparsers(metavar="VERB", required=True)

    coterminous = _verb(verbs, "coterminous", "areas of the same blocks show the same numbers", _coterminous)
    coterminous.add_argument("reference", type=Path, metavar="GRFC", help="the reference file of blocks, GRF-C.txt")
    _out(coterminous)
    coterminous.add_argument(
        "--housing-units", type=Path, metavar="FILE", help="housing units by block: compare only blocks that have some"
    )
    coterminous.add_argument(
        "--zero-suppression",
        type=share,
        metavar="CHANCE",
        help="then leave out small totals of SafeTab-P, of all areas of a set or of none; needs --parameters",
    )

    suppress = _verb(verbs, "suppress", "write X for counts that cannot be true", _suppress)
    suppress.add_argument("policy", type=Path, metavar="POLICY", help="rules and reason codes (TOML)")
    _out(suppress)

    for verb in (coterminous, suppress):
        verb.add_argument(
            "--parameters", type=Path, metavar="FOLDER", help="the Bureau's parameter folder with the iterations"
        )
        verb.add_argument("--overwrite", action="store_true", help="replace an earlier release in OUT")
        verb.add_argument("--json", action="store_true", help="print the manifest")


def _verb(
    verbs: Commands, name: str, text: str, command: Callable[[argparse.Namespace], None]
) -> argparse.ArgumentParser:
    verb: argparse.ArgumentParser = verbs.add_parser(name, help=text, description=text[0].upper() + text[1:] + ".")
    verb.add_argument("release", type=Path, metavar="RELEASE", help="a release of SafeTab, or one of its tables")
    verb.set_defaults(command=command)
    return verb


def _out(verb: argparse.ArgumentParser) -> None:
    verb.add_argument("out", type=Path, metavar="OUT", help="a folder that does not exist or is empty")


def _coterminous(options: argparse.Namespace) -> None:
    from yupana.release.recipe import COTERMINOUS

    release = yupana.combine_coterminous(**given(yupana.combine_coterminous, options), progress=True)
    if options.json:
        print_json(release.manifest)
        return
    record = next(entry for entry in release.record if entry["rule"] == COTERMINOUS)
    groups = record["groups"]
    print(
        f"{options.out}: {record['sets']} sets of coterminous areas; population groups combined {groups['combined']}, "
        f"added {groups['added']}, suppressed {groups['dropped']}"
    )


def _suppress(options: argparse.Namespace) -> None:
    release = yupana.suppress(**given(yupana.suppress, options), progress=True)
    if options.json:
        print_json(release.manifest)
        return
    for table, counts in release.record[-1]["suppressed"].items():
        found = ", ".join(f"{reason} {n}" for reason, n in counts.items()) or "nothing suppressed"
        print(f"{table}: {found}")
