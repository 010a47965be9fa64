"""`yupana audit certificate`: what a release promises, on one page."""

import argparse
from pathlib import Path
from typing import Any

from yupana.cli.arguments import Commands, count, print_json
from yupana.cli.product import add_verb

PAGE = "certificate.html"
NUMBERS = "certificate.json"


def add(verbs: Commands) -> None:
    """Add the verb."""
    verb = add_verb(verbs, "certificate", "what releases promise, on one page (HTML) and in JSON", _certificate)
    text = "folders with a manifest.json: one, or several of the same census, which are certified together"
    verb.add_argument("releases", type=Path, nargs="+", metavar="RELEASE", help=text)
    verb.add_argument("out", type=Path, metavar="OUT", help="a folder that does not exist or is empty")
    text = "of several releases: the most persons in a household, for what they promise to one"
    verb.add_argument("--household-cap", type=count, metavar="K", help=text)
    verb.add_argument("--overwrite", action="store_true", help="replace an earlier certificate in OUT")
    verb.add_argument("--json", action="store_true", help="print the certificate, too")


def _certificate(options: argparse.Namespace) -> None:
    import json

    import yupana
    from yupana.errors import ConfigError
    from yupana.release.folder import new_folder, write_manifest
    from yupana.release.tables import checksum

    releases: list[Path] = options.releases
    if options.household_cap is not None and len(releases) == 1:
        raise ConfigError("--household-cap goes with several releases; that of one speaks of its own records")
    manifests = [(release, _manifest_of(release)) for release in releases]
    if len(manifests) == 1:
        from yupana.audit.certificate import certificate
        from yupana.report.certificate import certificate_page

        certified = certificate(manifests[0][1])
        page = certificate_page(certified)
    else:
        from yupana.audit.certificate_set import certificate_of_set
        from yupana.report.certificate_set import certificate_set_page

        short = [release.resolve().name for release in releases]
        names = short if len(set(short)) == len(short) else [str(release) for release in releases]
        named = [(name, manifest) for name, (_, manifest) in zip(names, manifests, strict=True)]
        certified = certificate_of_set(named, options.household_cap)
        page = certificate_set_page(certified)
    digests = [checksum(release / "manifest.json") for release in releases]
    with new_folder(options.out, overwrite=options.overwrite, noisy=False) as partial:
        (partial / NUMBERS).write_text(json.dumps(certified, indent=1) + "\n", encoding="utf-8")
        (partial / PAGE).write_text(page, encoding="utf-8")
        write_manifest(
            partial,
            {
                "yupana": yupana.__version__,
                "product": "certificate",
                "certifies": digests[0] if len(digests) == 1 else digests,
                "tables": {name: {"sha256": checksum(partial / name)} for name in (PAGE, NUMBERS)},
            },
        )
    if options.json:
        print_json(certified)
        return
    print(options.out / PAGE)
    print(options.out / NUMBERS)


def _manifest_of(release: Path) -> dict[str, Any]:
    """The manifest of a release whose files are those that it describes, and whose plan is its configuration's."""
    from yupana.errors import OutputError
    from yupana.products.repeated import check_recipe
    from yupana.release.check import read_intact

    try:
        manifest = read_intact(release)
    except OutputError as error:
        raise OutputError(f"not certified: {error}") from None
    wrong, _ = check_recipe(release, manifest, None)
    if wrong:
        raise OutputError("\n".join([f"not certified: {release} contradicts itself:", *(f"  {one}" for one in wrong)]))
    return manifest
