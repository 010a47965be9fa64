"""The commands that are attacked, each with the input files that are spoiled. A line more is an attack more."""

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class Attacked:
    """A command line and what it reads.

    Attributes
    ----------
    command : str
        Of the command line, or of `attack_case.CALLS`, with ``{w}`` for the world and ``{o}`` for a folder that is
        fresh in every case, where its output goes.
    inputs : tuple of str
        Patterns of the files that it reads, within the world.
    confidential : bool
        Whether these hold records, so that no value of them may be shown.
    """

    command: str
    inputs: tuple[str, ...]
    confidential: bool = False


_LEDGER: Final = "--ledger {o}/ledger.json --dataset D"

_PARTS: Final = "--intervals none --no-microdata --ledger {o}/ledger.json --dataset persons=D,units=E"
_COUNT: Final = "count {w}/d/persons.csv --by QAGE:20:0-115,CENHISP --epsilon 1"
_TEXT: Final = "count {w}/text/PERSON.csv --by AGE:10:0-99 --epsilon 1"
_NOISY: Final = "--noisy-measurements {w}/relm"

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
    (
        f"topdown run pl94-2020-us-whole {{w}}/d {{o}}/out --pl {{o}}/pl --spine conventional {_PARTS}",
        ("d/persons.csv", "d/units.csv", "d/geo.csv", "d/GRF-C.txt", "d/group_quarters.csv"),
    ),
    ("tables validate {w}/homes.toml {w}/h", ("h/persons.csv", "h/homes.csv", "tenure.csv")),
    (
        f"tables run {{w}}/treated.toml {{w}}/h {{o}}/out {_LEDGER}",
        ("treated.toml", "tenure.csv", "h/persons.csv", "h/homes.csv", "h/SYNTHETIC"),
    ),
    (
        f"tables run {{w}}/tab/manifest.json {{w}}/h {{o}}/out --codes {{w}} {_LEDGER}",
        ("tab/manifest.json", "tenure.csv", "h/persons.csv"),
    ),
    (f"tables run {{w}}/homes.toml {{w}}/h {{o}}/out --shards 2 {_LEDGER}", ("h/persons.csv", "h/homes.csv")),
    (f"tables run {{w}}/homes.toml {{w}}/h {{o}}/out --columns {{w}}/map.toml {_LEDGER}", ("map.toml",)),
    ("tables exact {w}/homes.toml {w}/h {o}/out", ("h/SYNTHETIC", "h/persons.csv")),
    *(
        (f"tables run {{w}}/foreign.toml {{w}}/{form} {{o}}/out {_LEDGER}", (f"{form}/*", "foreign.toml"))
        for form in ("sav", "dta", "xpt")
    ),
    (f"tables run {{w}}/text.toml {{w}}/text {{o}}/out {_LEDGER}", ("text/*", "text.toml")),
    (f"tables run {{w}}/fixed.toml {{w}}/dat {{o}}/out {_LEDGER}", ("dat/*", "fixed.toml")),
    (f"tables run {{w}}/fixed.toml {{w}}/csdb {{o}}/out {_LEDGER}", ("csdb/*",)),
    (f"{_TEXT} --others else --encoding cp1252 --separator ; --out {{o}}/out", ("text/*",)),
    ("tables accuracy {w}/treated.toml {w}/h {o}/out", ("treated.toml", "h/persons.csv", "h/homes.csv")),
    ("tables compare {w}/homes.toml {w}/h {o}/out --seed 1", ("homes.toml", "h/persons.csv", "h/homes.csv")),
    (f"{_COUNT} --keys {{w}}/origin.csv --out {{o}}/out {_LEDGER}", ("d/persons.csv", "origin.csv", "d/SYNTHETIC")),
    (f"{_COUNT} --keys-public --unit MAFID --out {{o}}/out {_LEDGER}", ("d/persons.csv",)),
)
_PUBLIC: Final = (
    ("phsafe plan {w}/config.json --json", ("config.json",)),
    ("phsafe plan {w}/config.json --targets {w}/targets.json", ("targets.json",)),
    ("phsafe estimate {w}/rel {o}/out", ("rel/manifest.json", "rel/*.csv")),
    ("phsafe estimate {w}/relq {o}/out --combine joint", ("relq/manifest.json", "relq/*.parquet")),
    ("export {w}/rel {o}/out --to labelled", ("rel/manifest.json", "rel/datapackage.json", "rel/*.csv")),
    ("export {w}/relp {o}/out --to sdmx", ("relp/manifest.json", "relp/*.csv")),
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
    ("check {w}/est --signers {w}/signers", ("signers", "est/signed*", "est/manifest.json", "policy.toml")),
    ("sign {w}/other --key {w}/key --signer a@b --overwrite", ("key",)),
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
    ("phsafe strategy {w}/config.json --targets {w}/shares.json --out {o}/found.json", ("config.json", "shares.json")),
    *(
        (f"tables init {{o}}/out.toml --from {{w}}/dict/{name}", (f"dict/{name}",))
        for name in ("text.dcf", "json.dcf", "ddi.xml", "datapackage.json", "csvw.json", "codes.csv", "isle.sav")
    ),
    ("tables plan {w}/homes.toml --json", ("homes.toml", "tenure.csv")),
    ("tables plan {w}/treated.toml", ("treated.toml", "tenure.csv")),
    ("tables plan {w}/treated/manifest.json --json", ("treated/manifest.json",)),
    ("tables strategy {w}/homes.toml --targets {w}/budgets.json", ("homes.toml", "budgets.json")),
    ("audit attribute {w}/homes.toml", ("homes.toml", "tenure.csv")),
    ("audit attribute {w}/p", ("p/*",)),
    ("audit attribute {w}/t.json", ("t.json",)),
    ("account --plan {w}/rel --plan {w}/relq/manifest.json --delta 1e-9", ("rel/*.json", "relq/*.json")),
    ("account --plan {w}/plan.json --epsilon 2", ("plan.json",)),
    (
        "topdown run {w}/t.json {w}/t {o}/out --areas {w}/areas.csv --names {w}/names.csv --spine {w}/tspine",
        ("areas.csv", "names.csv", "tspine/*"),
    ),
    (
        "topdown estimate {w}/nmf {o}/out --config {w}/t.json --geography {w}/t/geography.txt --areas {w}/areas.csv "
        "--names {w}/names.csv --totals {w}/totals.csv",
        ("nmf/*/*/*/**/*", "nmf/manifest.json", "t.json", "t/geography.txt", "areas.csv", "names.csv", "totals.csv"),
    ),
    (f"districts {{w}}/relt {{w}}/plan.csv {_NOISY}", ("plan.csv", "relt/spine/*", "relt/counts/*", "relm/**/*")),
    (f"districts {{w}}/relt {{w}}/plan.csv --crosswalk {{w}}/crosswalk.csv {_NOISY}", ("crosswalk.csv", "plan.csv")),
    (
        "interval {w}/relt --areas {w}/areas.csv --queries {w}/queries.csv --out {o}/answers.csv",
        ("areas.csv", "queries.csv", "relt/areas/*", "relt/tables/*", "relt/tabulation/*", "relt/manifest.json"),
    ),
    ("interval {w}/relt --list ward --areas {w}/areas.csv", ("areas.csv", "relt/areas/*", "relt/manifest.json")),
    (f"interval {{w}}/relt --area ward=First --query sum(detailed) {_NOISY}", ("relt/areas/*", "relm/**/*")),
    ("interval {w}/tab --query sum(people[REGION_ID=XX])", ("tab/manifest.json", "tab/people.csv")),
    (
        "interval {w}/treated --query sum(measured/people[REGION_ID=XX])",
        ("treated/manifest.json", "treated/measured/*"),
    ),
    ("report {w}/rel {o}/page.html", ("rel/*",)),
    ("atlas {w}/rel --to {o}/out", ("rel/*",)),
    (
        "atlas {w}/relt --to {o}/out --boundaries {w}/counties.geojson",
        ("relt/manifest.json", "relt/**/*", "counties.geojson"),
    ),
    ("report {w}/relp {o}/page.html --codes {w}/p", ("relp/*", "p/*")),
    ("report {w}/relt {o}/page.html", ("relt/manifest.json", "relt/**/*")),
    ("report {w}/relt {o}/page.html --boundaries {w}/counties.geojson", ("counties.geojson",)),
    ("report {w}/relt {o}/page.html --boundaries {w}/counties.topojson", ("counties.topojson",)),
    ("report {w}/relt {o}/page.html --boundaries {w}/counties.zip", ("counties.zip",)),
    ("report {w}/treated {o}/page.html", ("treated/*", "treated/measured/*")),
    ("report {w}/cntpub {o}/page.html", ("cntpub/*",)),
    ("check {w}/tab", ("tab/*",)),
    ("check {w}/treated", ("treated/*", "treated/measured/*")),
    ("check {w}/cntpub", ("cntpub/*",)),
    ("check {w}/nmf", ("nmf/**/*",)),
    ("check {w}/relnmf", ("relnmf/**/*",)),
    ("check {w}/whole", ("whole/manifest.json", "whole/*/manifest.json", "whole/*/tables/*")),
    ("check {w}/pl", ("pl/*",)),
    ("check {w}/relsup", ("relsup/*",)),
    ("check {w}/relcot", ("relcot/*",)),
    ("check {w}/acc", ("acc/*",)),
    ("check {w}/tacc", ("tacc/*",)),
    ("check {w}/compared", ("compared/*",)),
    ("check {w}/relp --inputs {w}/p", ("relp/manifest.json", "p/*")),
    ("audit certificate {w}/treated {w}/tacc {o}/out", ("treated/manifest.json", "tacc/*")),
    ("audit certificate {w}/whole {w}/rel {o}/out", ("whole/manifest.json", "whole/*/manifest.json")),
    ("topdown plan {w}/whole/manifest.json", ("whole/manifest.json", "whole/*/manifest.json")),
    ("postprocess suppress {w}/relcot {w}/policy.toml {o}/out --parameters {w}/p", ("policy.toml", "relcot/*", "p/*")),
    ("read_pl {w}/pl", ("pl/*.pl",)),
    ("write_pl {w}/whole {o}/out", ("whole/manifest.json", "whole/*/manifest.json", "whole/*/*/*.csv")),
    ("pages {w}/rel {w}/p {w}/t.json {w}/homes.toml", ("rel/*", "p/*", "t.json", "homes.toml", "tenure.csv")),
)

TABLE: Final = (
    *(Attacked(command, inputs, confidential=True) for command, inputs in _RECORDS),
    *(Attacked(command, inputs) for command, inputs in _PUBLIC),
)
"""Every command that reads files."""
