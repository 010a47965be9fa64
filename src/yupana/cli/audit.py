"""`yupana audit`: what privacy loss was really spent. Each verb has a module of its own."""

from yupana.cli import audit_attribute, audit_certificate, audit_epl
from yupana.cli.arguments import Commands


def add(commands: Commands) -> None:
    """Add the command and its verbs."""
    parser = commands.add_parser("audit", help="what privacy loss was really spent")
    verbs = parser.add_subparsers(metavar="VERB", required=True)
    for module in (audit_epl, audit_attribute, audit_certificate):
        module.add(verbs)
