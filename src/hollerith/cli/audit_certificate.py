"""`hollerith audit certificate`: what a release promises, on one page."""

import argparse
from pathlib import Path

from hollerith.cli.arguments import Commands, print_json
from hollerith.cli.product import add_verb

PAGE = "certificate.html"
NUMBERS = "certificate.json"


def add(verbs: Commands) -> None:
    """Add the verb."""
    verb = add_verb(verbs, "certificate", "what a release promises, on one page (HTML) and in JSON", _certificate)
    verb.add_argument("release", type=Path, metavar="RELEASE", help="a folder with a manifest.json")
    verb.add_argument("out", type=Path, metavar="OUT", help="a folder that does not exist or is empty")
    verb.add_argument("--overwrite", action="store_true", help="replace an earlier certificate in OUT")
    verb.add_argument("--json", action="store_true", help="print the certificate, too")


def _certificate(options: argparse.Namespace) -> None:
    import json

    import hollerith
    from hollerith.audit.certificate import certificate
    from hollerith.errors import OutputError
    from hollerith.release.folder import new_folder, read_manifest, write_manifest
    from hollerith.release.tables import checksum
    from hollerith.report.certificate import certificate_page

    if not options.release.is_dir():
        raise OutputError(f"{options.release} is no folder; name that of a release")
    manifest = read_manifest(options.release)
    files = manifest.get("tables")
    for name, described in files.items() if isinstance(files, dict) else ():
        path = options.release / name
        if not path.is_file() or not isinstance(described, dict) or checksum(path) != described.get("sha256"):
            raise OutputError(
                f"{path} is not the file that the manifest describes, so the release is not certified; "
                f"see hollerith check {options.release}"
            )
    certified = certificate(manifest)
    with new_folder(options.out, overwrite=options.overwrite, noisy=False) as partial:
        (partial / NUMBERS).write_text(json.dumps(certified, indent=1) + "\n", encoding="utf-8")
        (partial / PAGE).write_text(certificate_page(certified), encoding="utf-8")
        write_manifest(
            partial,
            {
                "hollerith": hollerith.__version__,
                "product": "certificate",
                "certifies": checksum(options.release / "manifest.json"),
                "tables": {name: {"sha256": checksum(partial / name)} for name in (PAGE, NUMBERS)},
            },
        )
    if options.json:
        print_json(certified)
        return
    print(options.out / PAGE)
    print(options.out / NUMBERS)
