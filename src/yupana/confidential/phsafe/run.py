"""PHSafe from records to release: open and check, count, pass the door, lay out, check again, publish. Confidential."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from yupana.confidential.phsafe.count import ExactCounts, count
from yupana.confidential.records.census import Census, Policy, open_census
from yupana.confidential.records.database import numbers
from yupana.confidential.request import (
    Request,
    charge,
    confidential_log,
    input_checksums,
    manifest_of,
    options_of,
    reasons_against_release,
)
from yupana.plan.ledger import Ledger
from yupana.plan.plan import Plan
from yupana.privacy.entropy import Entropy
from yupana.products.phsafe.configuration import RULES_OF_CONSISTENCY, Config
from yupana.products.phsafe.tables import published_tables
from yupana.products.phsafe.targets import config_document
from yupana.products.phsafe.verify import verify_tables
from yupana.progress import Announce, Stopwatch
from yupana.release.check import describe_tables
from yupana.release.folder import new_folder, write_manifest
from yupana.release.recipe import Recipe, check_public_inputs
from yupana.release.tables import write_table

TAKEN_AS_PUBLIC: Final = (
    "the list of units with their state and whether each is a housing unit or group quarters (the geography file)",
    "the states, tables, population groups and cells that are published",
)
"""What the guarantee does not protect, for the manifest."""


LEFT_OUT: Final = {
    "truncation": "of the persons of one unit whom a table counts, those beyond its tau",
    "group quarters": "persons in group quarters: every table is of housing units",
    "relatives outside families": "of PH4 and PH5, relatives of the householder in a unit that HHT calls no family",
}
"""Who is not counted in some table, whatever the policies of consistency are; for the manifest."""


@contextmanager
def checked_census(config: Config, data: Path, memory: int | None = None) -> Iterator[Census]:
    """Open the records a configuration speaks of, in ``memory`` bytes (`open_database` tells the default)."""
    policies = {rule: Policy(policy) for rule, policy in config.consistency.items()}
    with open_census(data, states=frozenset(map(int, config.states)), policies=policies, memory=memory) as census:
        yield census


def run(config: Config, plan: Plan, request: Request, entropy: Entropy, announce: Announce) -> dict[str, Any]:
    """Make a release and return its manifest.

    The tables satisfy the plan's loss (`make_plan`) against neighbours that differ in one person record. Validation
    of the records lies outside the guarantee (PHSafe, section 6.1), as does the confidential log.

    Parameters
    ----------
    config : Config
    plan : Plan
        Of the same configuration.
    request : Request
    entropy : Entropy
        `SystemEntropy` unless testing.
    announce : callable

    Raises
    ------
    ConfigError
        If records that are not synthetic were to be measured without noise or with a seed.
    InputError, OutputError, BudgetError
        If the records, the output folder or the ledger do not allow the run. Nothing is left in the folder.
    """
    reasons = reasons_against_release(plan, entropy, request)
    clock = Stopwatch(announce)
    folder = new_folder(request.out, overwrite=request.overwrite, private=request.internal)
    with confidential_log(request) as write_log, folder as partial:
        clock.start("reading and checking the records")
        with checked_census(config, request.data, request.memory) as census:
            census.require_valid()
            clock.start("counting")
            exact = count(census, config, plan)
            log = _log(census, exact)
        # No file of PHSafe is public: the list of units is taken as public, but it is one of addresses.
        check_public_inputs(request.repeats, {})
        charge(request, plan)
        clock.start("adding noise")
        ledger = Ledger(plan)
        noisy = measure(ledger, exact, entropy)
        clock.start("writing the release")
        tables = published_tables(plan, exact.states, noisy)
        paths = {table.name: write_table(partial, table, request.fmt) for table in tables}
        parameters = {
            "tau": dict(config.taus),
            "states": list(exact.states),
            "state_filter": list(config.states),
            "consistency": {rule: config.consistency.get(rule, Policy.FAIL.value) for rule in RULES_OF_CONSISTENCY},
            "left_out": LEFT_OUT,
        }
        recipe = Recipe(config_document(config), options_of(request, plan), {})
        manifest = manifest_of(ledger, reasons, parameters, TAKEN_AS_PUBLIC, recipe)
        manifest["tables"] = describe_tables(paths, tables)
        columns = {
            table.name: {name: [str(v) for v in values] for name, values in table.columns.items()} for table in tables
        }
        if wrong := verify_tables(manifest["plan"], exact.states, columns):
            raise RuntimeError(f"the tables do not match the plan: {'; '.join(wrong)}")
        write_manifest(partial, manifest)
        write_log({**log, "seconds": clock.stop()})
    return manifest


def measure(ledger: Ledger, exact: ExactCounts, entropy: Entropy) -> dict[str, NDArray[np.int64]]:
    """Pass every measurement of the plan through the door, in the plan's order."""
    return {m.name: ledger.measure(m, exact.by_measurement[m.name], entropy) for m in ledger.plan.measurements}


def _log(census: Census, exact: ExactCounts) -> dict[str, Any]:
    def rows(name: str) -> int:
        return numbers(census.db, f"SELECT count(*) FROM {name}")[0]

    return {
        "records": {name: rows(name) for name in census.files},
        "dropped_units": rows("dropped_units"),
        "dropped_persons": rows("persons SEMI JOIN dropped_units USING (MAFID)"),
        "findings": [str(finding) for finding in census.findings],
        "persons_left_out_by_truncation": dict(exact.truncated),
        "inputs": input_checksums(census.folder, census.files),
    }
