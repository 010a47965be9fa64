"""A product: its configuration, plan, budgets, checks and words, whichever it is; nothing here sees a record."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from pathlib import Path
from typing import Any, Protocol, TypeVar, Unpack

from yupana.files.columns import BUREAU_FILES, RecordFile
from yupana.files.document import UNCHANGED, Changes, located
from yupana.plan.budgets import Entry, Question
from yupana.plan.exact_budget import SpentEpsilon, spend_epsilon, times
from yupana.plan.exact_loss import epsilon_exact
from yupana.plan.measurement import Accounting, Measurement, PlanTerms
from yupana.plan.plan import Plan
from yupana.privacy.exact import Budget
from yupana.products import PRODUCTS
from yupana.products.codebook import Described
from yupana.products.tables import Family

C = TypeVar("C")
"""A product's own configuration: everything public that a plan follows from."""


@dataclass(frozen=True, slots=True)
class Words:
    """What a product and its parts are called."""

    title: str
    # by table: what each table counts or shows; empty where the configuration names them
    tables: Mapping[str, str] = field(default_factory=dict)
    # by level: what each population-group level is called; empty where the configuration names them
    levels: Mapping[str, str] = field(default_factory=dict)
    # by kind: what measurements are for: by the part of their names before the stroke
    kinds: Mapping[str, str] = field(default_factory=dict)
    # by table: what the tables count whose names begin so; empty where the configuration says it
    universes: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Checked:
    """What a check of a release found.

    Attributes
    ----------
    wrong : tuple of str
        What does not hold, in words.
    unchecked : tuple of str
        What could not be checked, in words.
    against : str
        What the tables were compared with.
    signed : str
        Whose signature was verified, in words; empty if none was.
    """

    wrong: tuple[str, ...] = ()
    unchecked: tuple[str, ...] = ()
    against: str = "the manifest and its plan"
    signed: str = ""


@dataclass(frozen=True, slots=True)
class Stated:
    """What the manifest of a run says if it follows from its configuration."""

    plan: Plan  # made anew
    keys: Mapping[str, Any]  # keys of the manifest with their values
    # measurements that may be missing in the ledger, as nothing of theirs was to be measured
    without_groups: frozenset[str] = frozenset()
    # what a table and its columns are called, as `Product.described`; None where public files decide that
    described: Callable[[str], Described] | None = None
    wrong: tuple[str, ...] = ()  # what cannot be, whatever the configuration says, in words
    unchecked: tuple[str, ...] = ()  # what could not be made anew, in words


def checked(
    compare: Callable[[], tuple[list[str], list[str]]], of: str, against: str = "the manifest and its plan"
) -> Checked:
    """What comparing tables with a plan ``of`` a product finds, or that the manifest holds none."""
    try:
        wrong, unchecked = compare()
    except (KeyError, TypeError, ValueError):
        return Checked((f"the manifest does not hold a plan of {of}",), (), against)
    return Checked(tuple(wrong), tuple(unchecked), against)


def terms_of(plan: Plan) -> PlanTerms:
    """What a plan is asked for beside its configuration, as `Product.plan` takes it."""
    accounting: Accounting = "tight" if plan.accounting == "tight" else "published"
    return {"accounting": accounting, "confidence": plan.confidence, "margins": plan.margins}


class Product(Protocol[C]):
    """What commands, the explorer, reports and audits ask of a product."""

    @property
    def key(self) -> str:
        """Its name on the command line and in manifests."""
        ...

    @property
    def words(self) -> Words:
        """What it and its parts are called."""
        ...

    @property
    def confidence(self) -> Fraction:
        """Of its margins of error unless asked otherwise."""
        return Fraction(PRODUCTS.listing(self.key).confidence)

    @property
    def built_in(self) -> Mapping[str, str]:
        """The configurations that Yupana brings along, by the names that `read` takes, and what each is of."""
        return PRODUCTS.listing(self.key).built_in

    @property
    def families(self) -> tuple[Family, ...]:
        """What is published, whatever the budgets; empty where counts are, as of TopDown."""
        ...

    def published(self, manifest: Mapping[str, Any]) -> tuple[Family, ...]:
        """What a release is made of, by its manifest; of most products the same in every release.

        Raises
        ------
        KeyError, TypeError, ValueError
            If it is no manifest of the product.
        """
        del manifest
        return self.families

    def families_of(self, config: C) -> tuple[Family, ...]:
        """What a run of a configuration publishes; of most products always the same."""
        del config
        return self.families

    def record_files(self, config: C) -> Mapping[str, RecordFile]:
        """The record files whose columns may have other names, each with the names that are known here."""
        del config
        return BUREAU_FILES

    def locate(self, source: Path | str) -> Path:
        """The file of a configuration, or the manifest that holds it: a built-in one, or a file as it is.

        Raises
        ------
        ConfigError
            If there is none.
        """
        return located(source, type(self).__module__.rpartition(".")[0], [*self.built_in])

    def read(self, source: Path | str, changes: Changes = UNCHANGED) -> C:
        """Read a configuration: a built-in name, a file, a parameter folder, or the manifest of a release.

        Changes are made in it before it is checked.

        Raises
        ------
        ConfigError
            Naming the file, the key and what is wrong with it. All faults are named at once.
        """
        ...

    def schema(self) -> dict[str, Any]:
        """What a configuration may hold, as JSON Schema."""
        ...

    def document(self, config: C) -> dict[str, Any]:
        """The configuration as its file says it; read back as the same configuration."""
        ...

    def production(self, config: C) -> C | None:
        """What was used in 2020 for the same area and privacy unit; None where nothing was."""
        del config
        return None

    def plan(self, config: C, **terms: Unpack[PlanTerms]) -> Plan:
        """What a run measures, and what it costs."""
        ...

    def entries(self, config: C, accounting: Accounting = "published") -> Mapping[str, Entry]:
        """Every budget of a configuration by name, zeros included, and what its noise is scaled to."""
        ...

    def entry_of(self, measurement: Measurement) -> str:
        """Which of the `entries` pays for a measurement of a plan."""
        return measurement.name

    def with_budgets(self, config: C, budgets: Mapping[str, Budget]) -> C:
        """The configuration with other budgets, named as by `entries`."""
        ...

    def is_adaptive(self, plan: Plan) -> bool:
        """Whether some measurements of a plan are chosen by the results of others."""
        del plan
        return False

    def by_attribute(self, plan: Plan, parameters: Mapping[str, Any]) -> Mapping[str, Budget]:
        """The most that is lost where one privacy unit differs in one attribute only; as `moved_by_attribute`."""

        def lost(moved: Mapping[str, Fraction]) -> Budget:
            return plan.loss_of([m for m in plan.measurements if m.name in moved], lambda m: moved[m.name])

        return {name: lost(moved) for name, moved in self.moved_by_attribute(plan, parameters).items()}

    def moved_by_attribute(self, plan: Plan, parameters: Mapping[str, Any]) -> Mapping[str, Mapping[str, Fraction]]:
        """How far measurements move at most where one privacy unit differs in one attribute only.

        Parameters
        ----------
        parameters : mapping
            Of the manifest of a release under the plan.

        Returns
        -------
        mapping of attribute to mapping of measurement to Fraction
            Squared L2 distances (L1 under pure differential privacy); what is not named does not move. Empty where they
            follow from the configuration, as of a description (`column_losses`).

        Raises
        ------
        OutputError
            If they lack what that depends on.
        """
        del plan, parameters
        return {}

    def epsilon_exact(self, config: C, plan: Plan, delta: float, factor: Fraction = Fraction(1)) -> float | None:
        """The exact epsilon of any run of a configuration, all budgets times a factor (docs/exact-accounting.md)."""
        del config
        return epsilon_exact(times(plan, factor), delta)

    def spend_epsilon(
        self, config: C, question: Question, accounting: Accounting
    ) -> tuple[dict[str, Budget], SpentEpsilon]:
        """Every budget of a configuration by name, of a question whose total is an `EpsilonTotal`; see `spend_epsilon`.

        Each pass over people of its own keeps the epsilon by itself.
        """
        entries = self.entries(config, accounting)
        kept = {name: entry.budget for name, entry in entries.items()}

        def epsilon_of(budgets: Mapping[str, Budget], population: str, delta: float) -> float | None:
            other = self.with_budgets(config, {**kept, **budgets})
            plan = self.plan(other, accounting=accounting)
            if not population:
                return self.epsilon_exact(other, plan, delta)
            return epsilon_exact(replace(plan, measurements=plan.passes[population]), delta)

        mechanism = self.plan(config, accounting=accounting).mechanism
        return spend_epsilon(question, entries, mechanism, epsilon_of)

    def promises(self, config: C, plan: Plan, delta: float) -> dict[str, Any]:
        """What a run promises beside its plan, ready for JSON; ``delta`` is that of the epsilons stated."""
        del config, plan, delta
        return {}

    def left_out(self, config: C) -> list[dict[str, Any]]:
        """Which records no row of a table counts by the configuration alone, ready for JSON.

        Each has ``table``, ``levels`` (empty for all), ``of`` (a column), ``values`` and ``because``.
        """
        del config
        return []

    def taken_as_public(self, config: C) -> tuple[str, ...]:
        """What the guarantee takes as known to everybody, as far as the configuration tells."""
        ...

    def stated(self, release: Path, manifest: Mapping[str, Any], plan: Plan, inputs: Path | None) -> Stated:
        """Make anew what a manifest says that follows from its configuration.

        What only the run knew, such as the states of its records, is taken from the manifest.

        Parameters
        ----------
        manifest : mapping
            Of a run of the product, as `read_manifest` gives it.
        plan : Plan
            In the manifest.
        inputs : Path, optional
            A folder with public files of the run.

        Raises
        ------
        ConfigError
            If the configuration cannot be read.
        KeyError, TypeError, ValueError
            If the manifest lacks what the rest is made of.
        """
        ...

    def described(self, config: C, plan: Plan, table: str) -> Described:
        """What a table of a release, named by its path without the ending, and its columns are called."""
        ...

    def noise_faults(self, release: Path, manifest: Mapping[str, Any], table: str) -> list[str]:
        """What is wrong with the noise that the rows of a table state, by the plan; nothing of tables without any."""
        del release, manifest, table
        return []

    def verify(self, release: Path, manifest: Mapping[str, Any]) -> Checked:
        """Compare the tables of a release with its plan. Their checksums must be those of the manifest."""
        ...
