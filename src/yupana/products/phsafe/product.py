"""PHSafe as a product: the S-DHC, tables of persons and households in person records."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any, Final, Unpack

from yupana.errors import OutputError
from yupana.files.declaration import schema_of
from yupana.files.document import UNCHANGED, Changes
from yupana.plan.budgets import Entry
from yupana.plan.measurement import Accounting, Measurement, PlanTerms, of_own_record
from yupana.plan.plan import Plan
from yupana.privacy.exact import Budget
from yupana.products.codebook import Described, Label, Value, cell_labels, numbers
from yupana.products.described.description import Description
from yupana.products.described.plan import make_plan
from yupana.products.described.product import TABLES as DESCRIBED
from yupana.products.described.stability import sifting_columns, sorting_columns
from yupana.products.described.verify import noise_faults, verify_described
from yupana.products.phsafe.configuration import (
    DOCUMENT,
    POLICIES,
    RULES_OF_CONSISTENCY,
    TAUS,
    PhsafeConfig,
    config_document,
    production,
    read_config,
    sensitivity_of,
)
from yupana.products.phsafe.shells import ITERATION_LABELS, SHELLS, WHOSE, area_name, line_labels, nation_name
from yupana.products.phsafe.specification import FAMILIES, LEVELS, S_DHC, of_states, table
from yupana.products.product import Checked, Product, Stated, Words, checked, terms_of
from yupana.release.manifest import MANIFEST


def _counted() -> dict[str, str]:
    """What each published table counts: as the table that is measured says, in the middle of a sentence."""
    titles = {name: table(family.name).title for family in FAMILIES for name in family.tables}
    return {name: f"{title[:1].lower()}{title[1:]}" for name, title in titles.items()}


WORDS: Final = Words(
    title="PHSafe (S-DHC)",
    tables=_counted() | {"PH8_num": "people in households, by owner or renter"},
    levels={
        "usa_*": "Nation, everyone",
        "usa_A-G": "Nation, by race (A–G)",
        "usa_H,I": "Nation, by origin (H, I)",
        "state_*": "States, everyone",
        "state_A-G": "States, by race (A–G)",
        "state_H,I": "States, by origin (H, I)",
    },
)

_LEFT_OUT: Final = {
    "truncation": "of the persons of one unit whom a table counts, those beyond its tau",
    "group quarters": "persons in group quarters: every table is of housing units",
    "relatives outside families": "of PH4 and PH5, relatives of the householder in a unit that HHT calls no family",
}
"""Who is not counted in some table, whatever the policies of consistency are; for the manifest."""


_SEEN: Final = {
    "Sex": {"HHT", "HHT2", "CPLT"},
    "Age": {"QAGE", "HHT2"},
    "Race": {"CENRACE", "HHRACE"},
    "Ethnicity": {"CENHISP", "HHSPAN"},
    "Relation": {"RELSHIP", "HHT", "HHT2", "CPLT"},
    "Tenure": {"TEN"},
}
"""The columns of the S-DHC that an attribute of one person can change, with those that follow from it."""


class PhsafeProduct(Product[PhsafeConfig]):
    """The S-DHC: the `yupana.products.product.Product` whose configuration is the Bureau's config.json."""

    key: Final = "phsafe"
    words: Final = WORDS
    families: Final = FAMILIES

    def read(self, source: Path | str, changes: Changes = UNCHANGED) -> PhsafeConfig:
        """Read a config.json or .toml, a built-in configuration, or the manifest of a release."""
        return read_config(self.locate(source), changes)

    def schema(self) -> dict[str, Any]:
        """Of config.json and config.toml."""
        return schema_of("PHSafe (S-DHC)", DOCUMENT)

    def document(self, config: PhsafeConfig) -> dict[str, Any]:
        """The configuration as config.json."""
        return config_document(config)

    def production(self, config: PhsafeConfig) -> PhsafeConfig:
        """The run of 2020: of Puerto Rico for a configuration of Puerto Rico, else of the United States."""
        return production(puerto_rico=config.is_puerto_rico)

    def plan(self, config: PhsafeConfig, **terms: Unpack[PlanTerms]) -> Plan:
        """One measurement per table and level with a budget, composed sequentially.

        A run satisfies rho-zCDP (epsilon-DP under pure DP) under addition or removal of one person record, with rho
        the sum of the budgets (PHSafe, theorems 1 and 2; docs/phsafe-privacy.md).
        """
        made = make_plan(config, **terms)
        # A unit's record counts as its members' own: the bounds are those of a household that changes whole.
        measurements = tuple(replace(m, person=of_own_record(m.sensitivity)) for m in made.measurements)
        return replace(made, measurements=measurements)

    def entries(self, config: PhsafeConfig, accounting: Accounting = "published") -> Mapping[str, Entry]:
        """Every budget by the name of its measurement, such as ``PH1_num/usa_*``."""
        return DESCRIBED.entries(config, accounting)

    def with_budgets(self, config: PhsafeConfig, budgets: Mapping[str, Budget]) -> PhsafeConfig:
        """The configuration with some budgets replaced."""
        return config.with_budgets(budgets)

    def moved_by_attribute(self, plan: Plan, parameters: Mapping[str, Any]) -> Mapping[str, Mapping[str, Fraction]]:
        """The tables and iterations that read a column of the attribute, of a person who stays in the household."""
        taus = parameters.get("tau", {})
        measured = {m.table for m in plan.measurements}
        if missing := {name for name in TAUS if name in measured} - set(taus):
            raise OutputError(f"the manifest holds no tau of {', '.join(sorted(missing))}")

        def moved(m: Measurement) -> Fraction:
            found = sensitivity_of(taus.get(m.table), m.mechanism, "tight").same_household
            return m.calibration if found is None else found

        return {
            name: {m.name: moved(m) for m in plan.measurements if seen & _columns(m.table, m.level)}
            for name, seen in _SEEN.items()
        }

    def taken_as_public(self, config: PhsafeConfig) -> tuple[str, ...]:
        """The list of units, and what is published at all."""
        del config
        return (
            "the list of units with their state and whether each is a housing unit or group quarters (the geography "
            "file)",
            "the states, tables, population groups and cells that are published",
        )

    def parameters(self, config: PhsafeConfig, states: Sequence[str]) -> dict[str, Any]:
        """What a manifest says of the configuration; ``states`` are those of the records."""
        return {
            "tau": config.taus,
            "states": list(states),
            "state_filter": list(config.states),
            "consistency": {rule: config.consistency.get(rule, POLICIES[0]) for rule in RULES_OF_CONSISTENCY},
            "left_out": dict(_LEFT_OUT),
        }

    def stated(self, release: Path, manifest: Mapping[str, Any], plan: Plan, inputs: Path | None) -> Stated:
        """All but the states of the records."""
        del inputs
        config = self.read(release / MANIFEST)
        states = [state for state in config.areas["STATE"].codes if state in manifest["parameters"]["states"]]
        told = {"parameters": self.parameters(config, states), "taken_as_public": list(self.taken_as_public(config))}
        due = self.plan(config, **terms_of(plan))
        return Stated(due, told, described=partial(self.described, config, due))

    def described(self, config: PhsafeConfig, plan: Plan, table: str) -> Described:
        """Titles and lines of the published tables, and names of areas and iterations."""
        shell = next(shell for shell in SHELLS if shell.name == table.split("_", maxsplit=1)[0])
        lines = line_labels(shell)

        def name(_column: str, cell: Value) -> str:
            return lines[int(cell)]

        nation = nation_name(config.states)
        areas: dict[Value, str] = {"1": nation, **{state: area_name("STATE", state, nation) for state in config.states}}
        whose = WHOSE[next(family.name for family in FAMILIES if table in family.tables)]
        of = f"Race and ethnicity of the {whose}." if whose else ""
        return self.words.tables[table].capitalize(), {
            "REGION_ID": Label("Area", "1 where REGION_TYPE is USA, else the FIPS code of a state.", values=areas),
            "REGION_TYPE": Label("Kind of area", values={"USA": nation, "STATE": "State"}),
            "ITERATION_CODE": Label("Race and ethnicity iteration", of, values=dict(ITERATION_LABELS.items())),
            **cell_labels(FAMILIES, table, {}, name),
            **numbers(plan),
        }

    def noise_faults(self, release: Path, manifest: Mapping[str, Any], table: str) -> list[str]:
        """Of a table that was measured, or adds up what was."""
        return noise_faults(release, manifest, _released(manifest), table)

    def verify(self, release: Path, manifest: Mapping[str, Any]) -> Checked:
        """Compare every row of every table with the plan."""
        return checked(lambda: (verify_described(release, manifest, _released(manifest))[0], []), "PHSafe")


def _columns(name: str, level: str) -> set[str]:
    """Every column that decides whether and where a table counts at a level."""
    read = sorting_columns(S_DHC, table(name), LEVELS[level]) | sifting_columns(S_DHC, table(name))
    return {S_DHC.columns[column].name for column in read}


def _released(manifest: Mapping[str, Any]) -> Description:
    """The description of the tables of a release: what its plan measures, in the states of its records."""
    measured = {m["name"] for m in manifest["plan"]["measurements"]}
    budgets = {name: Fraction(name in measured) for name in S_DHC.budgets}
    return of_states(S_DHC, manifest["parameters"]["states"]).with_budgets(budgets)


PHSAFE: Final = PhsafeProduct()
