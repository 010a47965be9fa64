"""The commands that are attacked, each with the input files that are spoiled. A line more is an attack more."""

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class Attacked:
    """A command line and what it reads.

    Attributes
    ----------
    command : str
        With ``{w}`` for the world and ``{o}`` for a folder that is fresh in every case, where its output goes.
    inputs : tuple of str
        Patterns of the files that it reads, within the world.
    confidential : bool
        Whether these hold records, so that no value of them may be shown.
    """

    command: str
    inputs: tuple[str, ...]
    confidential: bool = False


_LEDGER: Final = "--ledger {o}/ledger.json --dataset D"

_RECORDS: Final = (
    ("phsafe validate {w}/config.json {w}/d", ("d/persons.csv", "d/units.csv", "d/geo.csv")),
    (
        f"phsafe run {{w}}/config.json {{w}}/d {{o}}/out {_LEDGER}",
        ("config.json", "d/persons.csv", "d/units.csv", "d/geo.csv", "d/SYNTHETIC"),
    ),
    (f"phsafe run {{w}}/config.json {{w}}/dq {{o}}/out {_LEDGER}", ("dq/*.parquet",)),
    ("phsafe exact {w}/config.json {w}/d {o}/out", ("d/SYNTHETIC",)),
    ("phsafe accuracy {w}/config.json {w}/d", ("d/units.csv",)),
    (f"safetab-p run {{w}}/p {{w}}/d {{o}}/out {_LEDGER}", ("p/*", "d/person-records.txt", "d/GRF-C.txt")),
    (
        f"safetab-h run {{w}}/p {{w}}/d {{o}}/out --totals {{w}}/relp/T01001.csv {_LEDGER}",
        ("p/*", "d/household-records.txt", "d/GRF-C.txt", "relp/T01001.csv", "relp/manifest.json"),
    ),
    (f"topdown run {{w}}/t.json {{w}}/t {{o}}/out {_LEDGER}", ("t.json", "t/*")),
)
_PUBLIC: Final = (
    ("phsafe plan {w}/config.json --json", ("config.json",)),
    ("phsafe plan {w}/config.json --targets {w}/targets.json", ("targets.json",)),
    ("phsafe estimate {w}/rel {o}/out", ("rel/manifest.json", "rel/*.csv")),
    ("phsafe estimate {w}/relq {o}/out --combine joint", ("relq/manifest.json", "relq/*.parquet")),
    ("safetab-p plan {w}/p --json", ("p/*",)),
    ("topdown plan {w}/t.json --json", ("t.json",)),
    (
        "spine build {w}/d/GRF-C.txt {o}/out --kind optimized --blocks {w}/d/group_quarters.csv",
        ("d/GRF-C.txt", "d/group_quarters.csv"),
    ),
    ("spine distance {w}/spine {w}/spine/entities.csv", ("spine/*",)),
    ("spine report {w}/spine --to {o}/page.html", ("spine/*",)),
    ("interval {w}/rel --query PH2[REGION_ID=44,PH2_DATA_CELL=3]", ("rel/manifest.json", "rel/PH2.csv")),
    ("interval {w}/relp --query sum(T01001[REGION_ID=44])", ("relp/manifest.json", "relp/T01001.csv")),
    (
        "interval {w}/relt --noisy-measurements {w}/relm --query sum(County/total[geounit^=01])",
        ("relt/manifest.json", "relt/counts/State.csv", "relt/spine/*", "relm/manifest.json", "relm/State/*.csv"),
    ),
    ("postprocess suppress {w}/relp {w}/policy.toml {o}/out", ("policy.toml", "relp/*")),
    (
        "postprocess coterminous {w}/relp {w}/d/GRF-C.txt {o}/out --housing-units {w}/d/housing-units.txt",
        ("d/GRF-C.txt", "d/housing-units.txt", "relp/*"),
    ),
    ("check {w}/rel", ("rel/*",)),
    ("check {w}/relq", ("relq/*",)),
    ("check {w}/est", ("est/manifest.json", "est/*.csv")),
    ("check {w}/relp", ("relp/*",)),
    ("check {w}/relh", ("relh/*",)),
    ("check {w}/relt", ("relt/manifest.json", "relt/**/*")),
    ("check {w}/relm", ("relm/manifest.json", "relm/**/*")),
    ("check {w}/spine", ("spine/*",)),
    ("audit certificate {w}/rel {o}/out", ("rel/manifest.json", "rel/*.csv")),
    ("audit certificate {w}/relt {o}/out", ("relt/manifest.json",)),
    ("audit attribute {w}/config.json {w}/people.toml", ("config.json", "people.toml")),
    ("audit epl {w}/columns.csv --exact exact --noisy noisy --mechanism geometric --epsilon 1", ("columns.csv",)),
    ("audit epl {w}/rel {w}/relx --replicates 2", ("rel/*", "relx/*")),
    (
        "audit epl {w}/relt {w}/truth --query detailed --replicates 2",
        ("relt/manifest.json", "relt/counts/*", "truth/counts/*", "relt/spine/*"),
    ),
    ("phsafe run {w}/config.json {w}/d {o}/out --ledger {w}/ledger.json --dataset D", ("ledger.json",)),
)

TABLE: Final = (
    *(Attacked(command, inputs, confidential=True) for command, inputs in _RECORDS),
    *(Attacked(command, inputs) for command, inputs in _PUBLIC),
)
"""Every command that reads files."""
