"""SafeTab-P and SafeTab-H as products: the Detailed DHC-A of persons, and B of households."""

import tomllib
from abc import abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property, partial
from importlib.resources import files
from pathlib import Path
from typing import Any, ClassVar, Final, Unpack

from yupana.errors import ConfigError
from yupana.files.columns import HOUSING_UNITS
from yupana.files.declaration import schema_of
from yupana.files.document import UNCHANGED, Changes
from yupana.plan.budgets import Entry
from yupana.plan.measurement import (
    Accounting,
    Measurement,
    Mechanism,
    PersonSensitivity,
    PlanTerms,
    Sensitivity,
    of_household_record,
    of_own_record,
)
from yupana.plan.plan import Plan
from yupana.privacy.exact import INFINITE, Budget
from yupana.products.codebook import Described, Label, Value, cell_labels, numbers
from yupana.products.described.description import Description
from yupana.products.described.plan import make_plan
from yupana.products.described.product import TABLES
from yupana.products.product import Checked, Product, Stated, Words, checked, terms_of
from yupana.products.safetab.configuration import (
    TITLES,
    SafetabConfig,
    config_document,
    declaration,
    production_config,
    read_config,
)
from yupana.products.safetab.iterations import PARAMETER_FILES, CharacteristicIterations, locate, read_iterations
from yupana.products.safetab.regions import BY_NAME, LEVELS, REGION_TYPES, Level, RegionType
from yupana.products.safetab.specification import (
    AGES,
    DETAILED_ONLY,
    FAMILIES,
    HOUSEHOLD_TYPE,
    PUBLISHED_AS,
    QUESTIONS,
    STAGE_1,
    STAGE_2,
    TENURE,
    noise_faults,
    verify_release,
)
from yupana.products.safetab.totals import DECLARED, source_of_totals
from yupana.products.safetab.totals import FILE as TOTALS_FILE
from yupana.products.safetab.translation import description_by_plan, description_of
from yupana.release.manifest import MANIFEST
from yupana.release.recipe import PUBLIC_INPUTS

_KINDS: Final = {
    "nation": "Nation",
    "state": "States",
    "county": "Counties",
    "tract": "Tracts",
    "place": "Places",
    "aiannh": "Tribal areas",
}
_DEPTHS: Final = {1: "regional", 2: "detailed"}


def level_name(level: Level) -> str:
    """A level as people call it: ``Counties, detailed``."""
    passing = "Puerto Rico: " if level.region.run == "pr" else ""
    return f"{passing}{_KINDS[level.region.base]}, {_DEPTHS[level.iteration_level]}"


_LEVEL_WORDS: Final = {level.name: level_name(level) for level in LEVELS}

_TOLD: Final = tomllib.loads(files(__package__).joinpath("codebook.toml").read_text("utf-8"))
_WORDS: Final = {key: Words(title=title, levels=_LEVEL_WORDS, **_TOLD[key]) for key, title in TITLES.items()}


def _cell(column: str, value: Value) -> str:
    if column in _TOLD["cells"]:
        return str(_TOLD["cells"][column][int(value)])
    return "All ages" if value == "*" else f"{value} and older" if value == "115" else f"{value} years"


def _region(region: RegionType) -> str:
    tribal = "American Indian, Alaska Native or Native Hawaiian area"
    kind = tribal if region.base == "aiannh" else region.base.capitalize()
    return f"{kind}, Puerto Rico" if region.run == "pr" else kind


_OF_GROUPS: Final = ("Race", "Ethnicity")
"""The attributes that decide which groups a record is in."""


@dataclass(frozen=True)
class Parameters:
    """What a parameter folder of SafeTab holds."""

    config: SafetabConfig  # the keys of config.json that the product reads
    iterations: CharacteristicIterations  # those of the code files

    @cached_property
    def description(self) -> Description:
        """What both say, as a description."""
        return description_of(self.config, self.iterations)

    def with_budgets(self, budgets: Mapping[str, Budget]) -> "Parameters":
        """The same with some budgets replaced, by the names of their entries."""
        made = replace(self, config=replace(self.config, budgets={**self.config.budgets, **budgets}))
        # What is derived is the same with other budgets.
        vars(made.description)["derived"] = self.description.derived
        return made

    def without_noise(self) -> "Parameters":
        """The same with infinite budgets for all that is measured."""
        return self.with_budgets({entry: INFINITE for entry, budget in self.config.budgets.items() if budget > 0})

    def __repr__(self) -> str:
        passes = " and ".join(self.config.runs)
        return (
            f"<parameters of SafeTab: {self.config.mechanism.value}, {len(self.config.levels)} levels of {passes}, "
            f"{len(self.iterations.iterations)} iterations>"
        )


_BRANCHES: Final = {STAGE_1: "common", STAGE_2: "common", DETAILED_ONLY: DETAILED_ONLY}
"""Where measurements stand in the composition of their pass and level."""

_TAKEN_AS_PUBLIC: Final = (
    "the reference file of blocks, and the list of housing units by block where one is given",
    "the codes, the iterations and which of them each code is in",
)
_NO_HOUSING_UNITS: Final = "no list of housing units was given, so areas where none stands are not left out"
_BARE_POLICY: Final = "an area where no housing unit stands is left out; other kinds of areas count its persons"

IN_NO_ITERATION: Final = "records_in_no_iteration"
IN_BARE_AREAS: Final = "records_in_areas_without_housing_units"
NOT_LISTED: Final = "households_in_groups_not_listed"
"""Policies of a manifest, which are names of counts in the confidential log, too."""


def _lists_housing_units(manifest: Mapping[str, Any]) -> bool:
    """Whether a public list of housing units was read."""
    return any(Path(name).stem == HOUSING_UNITS.name for name in manifest[PUBLIC_INPUTS])


class SafetabProduct(Product[Parameters]):
    """What both products do alike."""

    of_cells: ClassVar[Mapping[str, tuple[str, ...]]]
    """By the table of a measurement, the attributes that decide which cell of a group a record is in."""
    public: ClassVar[tuple[str, ...]] = _TAKEN_AS_PUBLIC
    """What the guarantee takes as known, but for totals."""
    person: Callable[[Sensitivity, Mechanism], PersonSensitivity]
    """How far one person moves the counts, by how far one record does."""

    def locate(self, source: Path | str) -> Path:
        """The configuration of a parameter folder, a built-in one, or a file as it is."""
        return locate(source)

    def read(self, source: Path | str, changes: Changes = UNCHANGED, codes: Path | None = None) -> Parameters:
        """Read a parameter folder, or the manifest of a release and the files of codes.

        Parameters
        ----------
        changes : Changes
            Made in the configuration before it is checked.
        codes : Path, optional
            The folder with the files of codes and iterations, if it is another.
        """
        path = self.locate(source)
        config = read_config(self.key, path, changes)
        if codes is None and source in self.built_in:
            raise ConfigError(f"{source} is a configuration without codes; name the folder of the code files by codes")
        return Parameters(config, read_iterations(Path(codes or path.parent)))

    def schema(self) -> dict[str, Any]:
        """Of config.json and config.toml, which may hold the other product's keys, too."""
        return schema_of(TITLES[self.key], declaration(self.key))

    def document(self, config: Parameters) -> dict[str, Any]:
        """The configuration as config.json."""
        return config_document(config.config)

    def production(self, config: Parameters) -> Parameters:
        """The run of 2020 for the same passes."""
        return replace(config, config=production_config(self.key, config.config.runs))

    def plan(self, config: Parameters, **terms: Unpack[PlanTerms]) -> Plan:
        """What a run measures under addition or removal of one of its records."""
        made = make_plan(config.description, **terms)
        return self._in_passes(made)

    def _in_passes(self, plan: Plan) -> Plan:
        """The plan of a description with the passes of its measurements, which are over people of their own.

        Each pass satisfies rho-zCDP (epsilon-DP under pure DP) under addition or removal of one record, with rho the
        sum of the budgets of its levels (docs/safetab-privacy.md).
        """
        places = [*BY_NAME]

        def placed(m: Measurement) -> Measurement:
            of_pass, branch = f"pass:{BY_NAME[m.level].region.run}", _BRANCHES.get(m.table)
            return replace(
                m,
                table=PUBLISHED_AS.get(m.table, m.table),
                composition=f"{of_pass}/{m.level}:{branch}" if branch else of_pass,
                person=self.person(m.sensitivity, m.mechanism),
            )

        kinds = [*self.words.kinds]
        ordered = sorted(plan.measurements, key=lambda m: (places.index(m.level), kinds.index(m.table)))
        return replace(plan, measurements=tuple(map(placed, ordered)))

    def entries(self, config: Parameters, accounting: Accounting = "published") -> Mapping[str, Entry]:
        """Every budget of the passes that are run by name, such as ``COUNTY 2`` and ``T03/COUNTY 2``."""
        found = TABLES.entries(config.description, accounting)
        return {
            question.entry(level): replace(found[name], population=level.region.run)
            for level in config.config.levels
            for question in QUESTIONS[self.key]
            if (name := f"{question.name}/{level.name}") in found
        }

    def with_budgets(self, config: Parameters, budgets: Mapping[str, Budget]) -> Parameters:
        """The configuration with some budgets replaced."""
        return config.with_budgets(budgets)

    @property
    def attributes(self) -> tuple[str, ...]:
        """Attributes of a record; the place is its block."""
        return (*dict.fromkeys(name for names in self.of_cells.values() for name in names), *_OF_GROUPS, "Place")

    def moved_by_attribute(self, plan: Plan, parameters: Mapping[str, Any]) -> Mapping[str, Mapping[str, Fraction]]:
        """One record changed is one left out and one added, where a table or a level depends on the attribute."""
        del parameters

        def asks(name: str, m: Measurement) -> bool:
            if name == "Place":
                return not m.level.startswith("USA ")
            return name in _OF_GROUPS or name in self.of_cells.get(m.table, ())

        return {
            name: {m.name: 2 * m.calibration for m in plan.measurements if asks(name, m)} for name in self.attributes
        }

    def is_adaptive(self, plan: Plan) -> bool:
        """Of persons: their first stage chooses."""
        del plan
        return AGES in QUESTIONS[self.key]

    def taken_as_public(self, config: Parameters) -> tuple[str, ...]:
        """Areas and codes; what the totals of persons are is told by the run, which reads them."""
        del config
        return self.public

    def parameters_of(self, config: SafetabConfig, iterations: str, *, housing_units: bool) -> dict[str, Any]:
        """What the manifests of both products say of the configuration.

        Parameters
        ----------
        iterations : str
            `CharacteristicIterations.sha256` of the code files.
        housing_units : bool
            Whether it is known where housing units stand.
        """
        return {
            "states": list(config.us_states),
            "passes": list(config.runs),
            "max_race_codes": config.max_race_codes,
            "allow_negative_counts": config.allow_negative_counts,
            "iterations_sha256": iterations,
            "policies": {
                "records_of_other_states": "left out: their state is in no pass",
                "records_with_more_race_codes": f"the first {config.max_race_codes} race codes of a record count",
                "qspan_is_race_code": "in no ethnicity group: their ethnicity code is in no ethnicity iteration",
                IN_NO_ITERATION: "in no group: none of their codes that count is in an iteration of level 1 or 2",
            },
            "remarks": [] if housing_units else [_NO_HOUSING_UNITS],
        }

    def stated(self, release: Path, manifest: Mapping[str, Any], plan: Plan, inputs: Path | None) -> Stated:
        """What follows from the code files is made of these if they are among the inputs, else of the plan."""
        config = read_config(self.key, release / MANIFEST)
        there = inputs is not None and all((inputs / name).is_file() for name in PARAMETER_FILES)
        iterations = read_iterations(inputs) if inputs is not None and there else None
        described = description_of(config, iterations) if iterations else description_by_plan(config, plan)
        due = self._in_passes(make_plan(described, **terms_of(plan)))
        digest = manifest["parameters"]["iterations_sha256"] if iterations is None else iterations.sha256
        found = self.stated_of(config, str(digest), manifest, due)
        if iterations is None:
            return found
        return replace(found, described=partial(self.described, Parameters(config, iterations), due))

    @abstractmethod
    def stated_of(self, config: SafetabConfig, iterations: str, manifest: Mapping[str, Any], plan: Plan) -> Stated:
        """What a manifest says of a configuration; ``iterations`` as of `parameters_of`."""

    def described(self, config: Parameters, plan: Plan, table: str) -> Described:
        """Areas, the iterations of the code files, and cells."""
        words = self.words.tables[table]
        # A table of one number is called by what it counts.
        title = self.words.universes[table[:3]] if words == "a total" else words.capitalize()
        return title, {
            "REGION_ID": Label("Area", "FIPS or ANSI codes one after the other; 1 for the nation."),
            "REGION_TYPE": Label("Kind of area", values={region.name: _region(region) for region in REGION_TYPES}),
            "ITERATION_CODE": Label(
                "Characteristic iteration: a race or ethnicity group",
                values={iteration.code: iteration.name for iteration in config.iterations.iterations},
            ),
            **cell_labels(self.families, table, _TOLD["columns"], _cell),
            **numbers(plan),
        }

    def noise_faults(self, release: Path, manifest: Mapping[str, Any], table: str) -> list[str]:
        """Of any table of a release that has a plan."""
        return noise_faults(release, manifest, table) if "plan" in manifest else []

    def verify(self, release: Path, manifest: Mapping[str, Any]) -> Checked:
        """Compare tables with each other and with the plan, as far as postprocessing leaves them to be compared."""
        against = "the manifest and its plan" if "plan" in manifest else "the manifest"
        return checked(lambda: verify_release(release, manifest), "SafeTab", against)


class PersonsProduct(SafetabProduct):
    """The Detailed DHC-A: sex by age of population groups."""

    key: Final = "safetab-p"
    families: Final = FAMILIES["safetab-p"]
    of_cells: ClassVar[Mapping[str, tuple[str, ...]]] = {PUBLISHED_AS[STAGE_2]: ("Sex", "Age")}
    public = (*_TAKEN_AS_PUBLIC, "the areas, population groups and cells that may be published")
    words: Final = _WORDS["safetab-p"]

    @staticmethod
    def person(record: Sensitivity, mechanism: Mechanism) -> PersonSensitivity:
        """A person is one record."""
        del mechanism
        return of_own_record(record)

    def entry_of(self, measurement: Measurement) -> str:
        """Its level: both stages and the totals alone are paid from one budget."""
        return measurement.level

    def parameters(self, config: SafetabConfig, iterations: str, *, housing_units: bool) -> dict[str, Any]:
        """What a manifest says of the configuration; see `parameters_of`."""
        found = self.parameters_of(config, iterations, housing_units=housing_units)
        bare = {IN_BARE_AREAS: _BARE_POLICY} if housing_units else {}
        return {
            **found,
            "zero_suppression_chance": str(config.zero_suppression),
            "policies": found["policies"] | bare,
        }

    def stated_of(self, config: SafetabConfig, iterations: str, manifest: Mapping[str, Any], plan: Plan) -> Stated:
        """Whether it is known where housing units stand is told by the policies."""
        known = IN_BARE_AREAS in manifest["parameters"]["policies"] or _lists_housing_units(manifest)
        told = {
            "parameters": self.parameters(config, iterations, housing_units=known),
            "taken_as_public": list(self.public),
        }
        return Stated(plan, told)


class HouseholdsProduct(SafetabProduct):
    """The Detailed DHC-B: household types and tenure of population groups."""

    key: Final = "safetab-h"
    families: Final = FAMILIES["safetab-h"]
    of_cells: ClassVar[Mapping[str, tuple[str, ...]]] = {
        HOUSEHOLD_TYPE.name: ("Household type",),
        TENURE.name: ("Tenure",),
    }
    words: Final = _WORDS["safetab-h"]

    person = staticmethod(of_household_record)

    def parameters(
        self, config: SafetabConfig, iterations: str, totals: Mapping[str, Any], *, housing_units: bool, own: bool
    ) -> dict[str, Any]:
        """What a manifest says of the configuration; see `parameters_of`.

        Parameters
        ----------
        totals : mapping
            What is known of the totals, with "left_out" and "levels_without_groups".
        own : bool
            Whether nothing but the user's word says that the totals are published.
        """
        found = self.parameters_of(config, iterations, housing_units=housing_units)
        remarks = [f"{number:,} rows of the totals are left out: {why}" for why, number in totals["left_out"].items()]
        if empty := totals["levels_without_groups"]:
            remarks.append(f"the totals list no group of {', '.join(empty)}; their budgets buy nothing")
        if own:
            remarks.append(f"nothing but your word says that the totals are published: {TOTALS_FILE} has no manifest")
        return {
            **found,
            "totals": dict(totals),
            "policies": found["policies"] | {NOT_LISTED: "groups that the totals do not list have no table"},
            "remarks": [*found["remarks"], *remarks],
        }

    def stated_of(self, config: SafetabConfig, iterations: str, manifest: Mapping[str, Any], plan: Plan) -> Stated:
        """Which totals there were, and what they left out, is told by the run."""
        told = manifest["parameters"]
        known = _NO_HOUSING_UNITS not in told["remarks"] or _lists_housing_units(manifest)
        totals = told["totals"]
        source = source_of_totals(totals, manifest.get("reasons", ()), manifest["taken_as_public"][-1])
        own = source == DECLARED
        due = {
            "parameters": self.parameters(config, iterations, totals, housing_units=known, own=own),
            "taken_as_public": [*self.public, source],
        }
        empty = set(totals["levels_without_groups"])
        return Stated(plan, due, frozenset(m.name for m in plan.measurements if m.level in empty))


PERSONS: Final = PersonsProduct()
HOUSEHOLDS: Final = HouseholdsProduct()
