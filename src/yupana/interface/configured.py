"""A product that is configured once and then asked: what a run would cost, and to make one."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, fields, replace
from fractions import Fraction
from functools import partial
from inspect import signature
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, Unpack

from yupana.errors import ConfigError, nearest
from yupana.interface.arguments import checked, entropy, exact_number, out_of, path_of, targets_of
from yupana.interface.options import (
    CHANGES,
    OPTIONS,
    Account,
    Exact,
    Execution,
    Internal,
    Log,
    Memory,
    Option,
    Overwrite,
    Place,
    Resume,
    Seed,
    SetupOptions,
)
from yupana.interface.reading import read_configured, told_options
from yupana.products import PRODUCTS, Listing
from yupana.products.parts import ALONE, check_units, read_parts
from yupana.progress import Listener, listening

if TYPE_CHECKING:
    from yupana.audit.attribute.bounds import AttributeBound
    from yupana.confidential.accuracy import Accuracy
    from yupana.confidential.product_counter import Validation
    from yupana.confidential.records.data_frames import Data
    from yupana.files.arrow import Findings
    from yupana.files.regular import NewFile
    from yupana.interface.releases import Release
    from yupana.plan.budgets import Question
    from yupana.plan.exact_budget import SpentEpsilon
    from yupana.plan.plan import Plan
    from yupana.products.disclosure_control.results import SideBySide
    from yupana.products.parts import PartsDocument
    from yupana.products.product import Product
    from yupana.products.strategy import Strategy
    from yupana.release.recipe import Recipe

_HERE = Execution()


@dataclass(frozen=True, slots=True, repr=False)
class Configured:
    """A product with its configuration, made by `setup`.

    Of a document of parts, such as "pl94-2020-us-whole", `run` and `exact` make the whole, and all else is asked of
    each of `parts`.

    Attributes
    ----------
    product : Product
    config
        The product's own configuration; of a document of parts None.
    options : mapping of str to value
        What decides what is made beside it, by the names of `yupana.interface.options.Options`.
    repeats : Recipe or None
        How the release was made whose manifest is the configuration.
    title : str
        What a document of parts calls the whole.
    parts : mapping of str to Configured
        By name; of one configuration there is none.
    """

    product: "Product[Any]"
    config: Any
    options: Mapping[str, Any] = field(default_factory=dict)
    repeats: "Recipe | None" = None
    title: str = ""
    parts: "Mapping[str, Configured]" = field(default_factory=dict)

    def __repr__(self) -> str:
        shown = f"{self.title} in parts: {', '.join(self.parts)}" if self.parts else repr(self.config).strip("<>")
        return f"<{self.product.key} set up: {shown}>"

    @property
    def listing(self) -> Listing:
        """What the command line tells of the product."""
        return PRODUCTS.listing(self.product.key)

    @property
    def cases(self) -> "Mapping[str, Configured]":
        """What a run makes: the parts, or this by the name `ALONE`."""
        return self.parts or {ALONE: self}

    def alone(self) -> "Configured":
        """Return it, if it has no parts.

        Raises
        ------
        ConfigError
            If it has.
        """
        if self.parts:
            names = " or ".join(f"parts[{name!r}]" for name in self.parts)
            raise ConfigError(f"{self.title} is a document of parts, each with a plan of its own; ask {names}")
        return self

    def plan(self) -> "Plan":
        """Tell what a run would measure, and what it would cost; needs no data.

        Returns
        -------
        Plan
            Budgets are exact fractions, in rho (epsilon under pure differential privacy) per privacy unit; margins are
            in records. ``plan.table()`` has a row for each measurement.

        Raises
        ------
        ConfigError
            Of a document of parts.

        Source
        ------
        docs/margins.md; docs/phsafe-privacy.md, docs/safetab-privacy.md, docs/tables-privacy.md and
        docs/topdown-privacy.md prove the losses.
        """
        terms = {name: self.alone().options[name] for name in ("accounting", "confidence", "margins")}
        return self.product.plan(self.config, **terms)

    def production(self) -> "Plan | None":
        """What was measured in 2020 in the same area; None if nothing was."""
        used = self.product.production(self.alone().config)
        return None if used is None else self.product.plan(used)

    @checked
    def solve(
        self,
        targets: Place | None = None,
        *,
        margins: Mapping[str, Exact] | None = None,
        total: "Exact | Mapping[str, Exact] | None" = None,
        sizes: Mapping[str, Exact] | None = None,
        weights: Mapping[str, Exact] | None = None,
        decimals: int | None = None,
        epsilon: Exact | None = None,
        delta: Exact | None = None,
    ) -> "Configured":
        """Find the least budgets that reach margins of error, or share a total so that relative errors are equal.

        Parameters
        ----------
        targets : str or Path
            A file with what follows (docs/targets.md); nothing else is given then.
        margins : mapping of entry to number
            The largest margin of error of one cell, in records, by the name of its budget, such as "PH1_num/usa_*"
            (``product.entries(config)`` has all). Budgets that are not named stay.
        total : number, or mapping with "epsilon" and "delta"
            The loss that all budgets together may have, in rho (epsilon under pure differential privacy); or an epsilon
            at a delta (1e-10 if not given) by the exact law of the loss, as of ``epsilon``.
        sizes : mapping of entry to number
            With a total: the counts, in records, to which the errors are relative.
        weights : mapping of entry to number
            With sizes: how much an error counts; 1 where none is given.
        decimals : int
            To how many digits after the point budgets are rounded.
        epsilon, delta : number
            Scale all budgets to the largest that keep this epsilon at this delta (1e-10 if not given), by the exact law
            of the loss where it gives a bound, else by the conversion of the loss (docs/exact-accounting.md).

        Returns
        -------
        Configured
            The same with other budgets.

        Raises
        ------
        ConfigError
            If not one of targets, margins, epsilon, and a total with sizes is given, or a name or a number is faulty,
            or the total is spent.

        Source
        ------
        docs/targets.md proves that both answers are optimal.
        """
        wanted = [targets is not None, margins is not None, total is not None, epsilon is not None]
        if sum(wanted) != 1 or (total is None) != (sizes is None):
            raise ConfigError("solve needs one of targets, margins, epsilon, and a total with sizes")
        if delta is not None and epsilon is None:
            raise ConfigError("delta has a meaning with epsilon only")
        if epsilon is not None:
            return self.scaled(epsilon, delta)[0]
        given = {"margins": margins, "total": total, "sizes": sizes, "weights": weights, "decimals": decimals}
        return self.solved(self._question(targets, given))[0]

    def _question(self, targets: Place | None, given: Mapping[str, object]) -> "Question":
        """What budgets are to be found: what a file of targets says, or the same document as arguments."""
        from yupana.plan.budgets import read_question

        entries = self.product.entries(self.alone().config, self.options["accounting"])
        document = {name: value for name, value in given.items() if value is not None}
        told = document if targets is None else path_of("targets", targets)
        return targets_of(told, lambda path: read_question(path, entries))

    def solved(self, question: "Question | Place") -> "tuple[Configured, SpentEpsilon | None]":
        """Return it with the budgets that a question or a file of targets asks for, and what an epsilon spent keeps."""
        from yupana.plan.budgets import EpsilonTotal
        from yupana.plan.budgets import solve as solve_budgets

        if isinstance(question, str | Path):
            question = self._question(question, {})
        product, accounting = self.product, self.options["accounting"]
        spent = None
        if isinstance(question.total, EpsilonTotal):
            found, spent = product.spend_epsilon(self.config, question, accounting)
        else:
            entries, level = product.entries(self.config, accounting), self.options["confidence"] or product.confidence
            found = solve_budgets(question, entries, level, self.plan().mechanism, self.options["margins"])
        return replace(self, config=product.with_budgets(self.config, found)), spent

    def scaled(self, epsilon: Exact, delta: Exact | None) -> "tuple[Configured, Fraction, SpentEpsilon]":
        """Return it with all budgets times one factor, that factor, and what it keeps; see `solve`."""
        from yupana.plan.exact_budget import scale_to
        from yupana.plan.plan import DEFAULT_DELTA

        at = float(DEFAULT_DELTA if delta is None else exact_number("delta", delta))
        plan, product = self.plan(), self.product
        factor, kept = scale_to(
            plan,
            float(exact_number("epsilon", epsilon)),
            at,
            lambda factor: product.epsilon_exact(self.config, plan, at, factor),
        )
        entries = product.entries(self.config, self.options["accounting"])
        budgets = {name: entry.budget * factor for name, entry in entries.items()}
        return replace(self, config=product.with_budgets(self.config, budgets)), factor, kept

    @checked
    def strategy(
        self,
        targets: "Place | Mapping[str, object] | None" = None,
        *,
        loss: Literal["sum", "max", "ratio"] = "sum",
        least: Exact | None = None,
        total: Exact | None = None,
    ) -> "Strategy[Any]":
        """Find the budgets that make what is asked for least variable at the same loss; needs no data.

        Parameters
        ----------
        targets : str, Path or mapping, optional
            A file with weights of published tables and levels, and margins of error to be kept; of TopDown with weights
            of queries, tables and geolevels or margins of error, and numbers of children; or the same document
            (docs/strategies.md). If not given, all cells of the published tables count alike; geolevels of TopDown keep
            their shares.
        loss : "sum", "max" or "ratio"
            The weighted sum of the variances of all answers; the largest weighted one; or the largest of them, each
            divided by what it is with the budgets given.
        least : Fraction, float or str
            What each budget keeps of the one given (1/50 if not given). Of TopDown what each query has at least of the
            budget of its geolevel (1/50); of the whole where shares of geolevels are found (1/50 divided by the number
            of geolevels).
        total : Fraction, float or str, optional
            What the budgets may cost, in SafeTab those of each pass; if not given, what they cost now. Not of TopDown.

        Returns
        -------
        Strategy
            Its ``found`` is a configuration, to be given to `setup`.

        Raises
        ------
        ConfigError
            If targets are unknown, have no weight or are told by nothing, a budget is no finite rho, or the total does
            not meet what is to be kept.

        Source
        ------
        docs/strategies.md proves the bound.
        """
        if self.product.key == "topdown":
            if total is not None:
                raise ConfigError("topdown takes no total: name another budget by set, as rho=1")
            return self._strategy_of_shares(targets, loss, least)
        from yupana.products.strategy import LEAST, BudgetQuestion, TableTargets, find_budgets, read_table_targets

        entries = self.product.entries(self.config, self.options["accounting"])
        question = BudgetQuestion(
            TableTargets() if targets is None else targets_of(targets, lambda path: read_table_targets(path, entries)),
            loss,
            LEAST if least is None else _finite("least", least),
            None if total is None else _finite("total", total),
        )
        return find_budgets(self.product, self.config, self.plan(), question)

    def _strategy_of_shares(
        self, targets: "Place | Mapping[str, object] | None", loss: Literal["sum", "max", "ratio"], least: Exact | None
    ) -> "Strategy[Any]":
        """Of TopDown, whose queries and geolevels share a budget."""
        from yupana.products.topdown.strategy import default_targets, find_strategy, read_targets, usual_least

        config = self.alone().config
        wanted = (
            default_targets(config) if targets is None else targets_of(targets, lambda path: read_targets(path, config))
        )
        own = usual_least(config, wanted) if least is None else _finite("least", least)
        return find_strategy(config, wanted, loss, own)

    def attribute_bounds(self) -> "Findings[AttributeBound]":
        """Tell what is revealed at most of single attributes of any record, or of where it is.

        Returns
        -------
        Findings of AttributeBound
            A sequence with the Arrow C stream interface, a row for each. In it
            ``bound.loss`` is exact: rho, or epsilon under pure differential privacy, where a record differs only in
            ``bound.attributes``, or only in its block within one unit of the geolevel ``bound.within``.

        Raises
        ------
        ConfigError
            Of PHSafe, whose losses depend on the household (`attribute_loss`).

        Source
        ------
        docs/attribute-loss.md, docs/topdown-privacy.md, docs/tables-privacy.md
        """
        from yupana.audit.attribute.bounds import COLUMNS, bounds
        from yupana.files.arrow import Findings

        return Findings("bounds", bounds(self.product, self.config, self.plan()), COLUMNS)

    @checked
    def run(
        self,
        data: "Data",
        out: Place,
        *,
        synthetic: bool = False,
        seed: Seed = None,
        overwrite: Overwrite = False,
        resume: Resume = False,
        log: Log = None,
        account: Account | None = None,
        execution: Execution = _HERE,
    ) -> "Release":
        """Make a release of confidential records.

        Parameters
        ----------
        data : str, Path or mapping
            A folder with the files of records, a URL such as "s3://BUCKET/PREFIX" (docs/stores.md), or the files by
            name without ending, such as ``{"persons": frame, "units": frame, "geo": frame}``: frames of Polars, pandas,
            pyarrow or DuckDB (anything with ``__arrow_c_stream__``), or paths. Codes are text with their leading zeros.
            What a release holds does not depend on which.
        out : str or Path
            A folder that does not exist or is empty. It appears when the release is whole; a run that fails leaves
            none. Of a document of parts it holds a folder for each.
        synthetic : bool
            Frames are nobody's. They are taken for real records otherwise, as is a folder without a file named
            SYNTHETIC.
        seed : int, optional
            Reproducible noise, for synthetic records only; the release is then marked NOT FOR RELEASE.
        overwrite : bool
            Replace an earlier release in ``out``.
        resume : bool
            Go on with a run that was stopped, with the noise that it had drawn; all else must be the same.
        log : str or Path, optional
            The confidential log; beside ``out`` if not given.
        account : Account, optional
            What the loss is charged to.
        execution : Execution
            Where the work is done, and how it tells of its progress.

        Returns
        -------
        Release

        Raises
        ------
        ConfigError
            If records that are not synthetic were to be measured without noise or with a seed, or something was asked
            that the product does not have.
        InputError
            If the records break a rule. The message counts records, so it is confidential, but holds no value of one.
        OutputError, BudgetError
            If the output folder or the ledger do not allow the run.

        Source
        ------
        docs/phsafe.md, docs/safetab.md, docs/topdown.md, docs/tables.md; docs/person-loss.md for accounts.
        """
        from yupana.interface.records import accounts
        from yupana.interface.releases import open_release, write_report

        charged = accounts(self, account)
        made, page = self._claim(data, out, log, overwrite=overwrite)
        how = {"overwrite": overwrite, "resume": resume, "log": None if log is None else path_of("log", log)}
        drawn = {name: entropy(seed) if name == ALONE else entropy(seed).branch(name) for name in self.cases}
        asked = {name: {**how, "account": charged[name], "entropy": drawn[name]} for name in self.cases}
        self._make(data, made, "run", asked, execution, synthetic=synthetic)
        release = open_release(made)
        if page is not None:
            with listening(execution.progress, "report") as tell:
                write_report(page, release, tell)
        return release

    def _claim(self, data: "Data", out: Place, log: Place | None, *, overwrite: bool) -> "tuple[Path, NewFile | None]":
        """The places that a run writes, refused before the work where they cannot be written."""
        from yupana.confidential.request import log_file
        from yupana.interface.records import places_of
        from yupana.interface.releases import claim_report

        page, sources = self.shared_options["report"], places_of(data)
        made = out_of(out, *sources, overwrite=overwrite)
        for name in ("noisy_measurements", "nmf", "pl"):
            if (folder := self.shared_options[name]) is not None:
                out_of(folder, *sources, overwrite=overwrite, name=name)
        if log is not None:
            log_file(path_of("log", log), made).check()
        return made, None if page is None else claim_report(page, [out, *sources])

    def _make(
        self, data: "Data", made: Path, verb: str, asked: Mapping[str, Any], execution: Execution, *, synthetic: bool
    ) -> None:
        """Open the records and make the release of each part, with what is asked of it by its name."""
        from yupana.confidential.request import check_apart
        from yupana.confidential.run import run_parts
        from yupana.interface.records import opened

        with opened(self, data, made, verb, execution, synthetic=synthetic) as parts, ExitStack() as stack:
            requests = {
                name: replace(part, request=replace(part.request, **asked[name])) for name, part in parts.items()
            }
            request, then = next(iter(requests.values())).request, None
            if request.pl is not None:
                check_apart(made, request.beside)
                then = self._pl_files(stack, request.pl, overwrite=request.overwrite)
            run_parts(self.title, requests, made, then, noisy=verb == "run")

    @property
    def shared_options(self) -> Mapping[str, Any]:
        """The options, which the parts of a document share."""
        return next(iter(self.cases.values())).options

    def _pl_files(self, stack: ExitStack, files: Path, *, overwrite: bool) -> Callable[[Path], object]:
        """Claim the folder of the files of P.L. 94-171; returned is what fills it from the folder of the parts."""
        from yupana.products.topdown.pl.release_files import claim_files

        configurations = {name: case.config for name, case in self.cases.items()}
        names = self.shared_options["names"]
        return stack.enter_context(claim_files(configurations, files, names, overwrite=overwrite))

    @checked
    def exact(
        self,
        data: "Data",
        out: Place,
        *,
        synthetic: bool = False,
        internal: Internal = False,
        overwrite: Overwrite = False,
        log: Log = None,
        execution: Execution = _HERE,
    ) -> "Release":
        """Make the same tables without noise: of synthetic records, or for use in the house.

        Parameters
        ----------
        internal : bool
            The records may be real: what is written is CONFIDENTIAL, and only its owner can read the files.
        data, out and all others
            As of `run`.

        Returns
        -------
        Release
            NOT FOR RELEASE, or CONFIDENTIAL.

        Raises
        ------
        ConfigError
            If the records may be real and ``internal`` was not said; and as of `run`.
        InputError, OutputError
            As of `run`.
        """
        from yupana.confidential.request import log_file
        from yupana.interface.records import places_of
        from yupana.interface.releases import open_release

        made = out_of(out, *places_of(data), overwrite=overwrite)
        place = None if log is None else path_of("log", log)
        if place is not None:
            log_file(place, made).check()
        asked = {"overwrite": overwrite, "log": place, "internal": internal}
        self._make(data, made, "exact", dict.fromkeys(self.cases, asked), execution, synthetic=synthetic)
        return open_release(made)

    @checked
    def validate(
        self,
        data: "Data",
        *,
        synthetic: bool = False,
        internal: Annotated[bool, Option("tell, too, what each tau would leave out", takes="truncation")] = False,
        execution: Execution = _HERE,
    ) -> "Validation":
        """Check records as `run` would. What it finds counts records: it is outside the guarantee, and CONFIDENTIAL.

        Parameters
        ----------
        internal : bool
            Of PHSafe: tell what thresholds tau about the configured ones would leave out, too.
        data and all others
            As of `run`.

        Returns
        -------
        Validation
            A sequence of findings, rules broken and remarks; ``finding.dropped`` and ``finding.remark`` tell those that
            forbid nothing. ``str`` of one is a line with file, rule, how many records and the first places. No value of
            a record is in it. Beside them ``remarks`` and ``truncation``.

        Raises
        ------
        InputError
            If the records cannot be opened at all.
        """
        from yupana.confidential.records.data_frames import in_words
        from yupana.confidential.run import validate as look
        from yupana.interface.records import counter, in_place, opened_alone

        with opened_alone(self, data, None, "validate", execution, synthetic=synthetic) as (folder, request):
            found = look(self.product, self.config, folder, replace(request, internal=internal))
            if isinstance(data, str | Path):
                say = partial(in_place, folder=folder, data=data)
            else:
                say = partial(in_words, folder=folder, frames=data, files=counter(self).frames)
            told = (replace(one, file=say(one.file), text=say(one.text)) for one in found)
            return replace(found, findings=tuple(told))

    @checked
    def accuracy(
        self,
        data: "Data",
        out: Place | None = None,
        *,
        trials: Annotated[int, Option("how often noise is drawn (default 1)")] = 1,
        synthetic: bool = False,
        internal: Internal = False,
        seed: Seed = None,
        overwrite: Overwrite = False,
        memory: Memory = None,
        progress: Listener | bool = False,
    ) -> "Accuracy":
        """Compare observed with expected margins of error: records are counted once and measured ``trials`` times.

        It tells the truth about the records, and each trial would spend the budget again: of synthetic records, or for
        use in the house.

        Parameters
        ----------
        out : str or Path, optional
            A folder for ``accuracy.csv`` and finer tables.
        trials : int
            How often noise is drawn.
        internal : bool
            The records may be real; what is returned is CONFIDENTIAL.
        data and all others
            As of `run`.

        Returns
        -------
        Accuracy
            A table: the rows of ``accuracy.csv`` (docs/phsafe.md, docs/safetab.md, docs/topdown.md); margins are in
            records. ``observed`` has them as objects.

        Raises
        ------
        ConfigError
            If the records may be real and ``internal`` was not said; and as of `run`.
        InputError
            As of `run`.
        """
        from yupana.confidential.accuracy import Accuracy, write_accuracy
        from yupana.confidential.accuracy import accuracy as observe
        from yupana.interface.records import opened_alone, places_of

        if trials < 1:
            raise ConfigError("trials: must be a whole number above 0")
        if out is not None:
            out_of(out, *places_of(data), overwrite=overwrite)
        execution = Execution(memory=memory, progress=progress)
        with opened_alone(self, data, out, "accuracy", execution, synthetic=synthetic) as (folder, common):
            request = replace(common, entropy=entropy(seed), internal=internal, overwrite=overwrite)
            request.bring(folder, ())
            observed = observe(self.product, self.config, folder, request, trials=trials)
        if out is not None:
            write_accuracy(observed, Path(out), request)
        return Accuracy.told(observed)

    @checked
    def compare(
        self,
        data: "Data",
        out: Place,
        *,
        methods: Annotated[
            str | Sequence[str] | None,
            Option(
                "with commas between: cell-key:D=5:V=3:js=2, rounding-3, rounding-5, swapping:rate=0.05:k=3, "
                "suppression:below=3; parameters may be left out (default: all these)",
                "text",
                "METHODS",
            ),
        ] = None,
        synthetic: bool = False,
        internal: Internal = False,
        seed: Seed = None,
        overwrite: Overwrite = False,
        memory: Memory = None,
        progress: Listener | bool = False,
    ) -> "SideBySide":
        """Set the tables of a description by the methods of offices beside its release, and compare with the truth.

        It tells the truth about the records: of synthetic ones, or for use in the house. Nothing of it is a release,
        and no method but that of the description is differentially private.

        Parameters
        ----------
        out : str or Path
            A folder for ``errors.csv``, ``additivity.csv``, ``differencing.csv`` and ``report.html``.
        methods : str or sequence of str
            Of "cell-key:D=5:V=3:js=2", "rounding-3", "rounding-5", "swapping:rate=0.05:k=3" and
            "suppression:below=3", with these or other parameters, which may be left out; all of them if not given.
        internal : bool
            The records may be real: what is written is CONFIDENTIAL, and only its owner can read the files.
        seed : int, optional
            Reproducible random choices, for synthetic records only.
        data and all others
            As of `run`.

        Returns
        -------
        SideBySide
            ``errors``, ``additivity`` and ``learnt``, the rows of the three tables; shares are from 0 to 1, errors in
            records.

        Raises
        ------
        ConfigError
            If the product is not "tables", the records may be real and ``internal`` was not said, a method or parameter
            is unknown, or the extra ``report`` is not installed.
        InputError, OutputError
            As of `run`.

        Source
        ------
        docs/side-by-side.md.
        """
        from yupana.confidential.described.side_by_side import write_side_by_side
        from yupana.interface.records import opened_alone, places_of
        from yupana.products.disclosure_control.methods import DEFAULT, read_methods

        if "compare" not in self.listing.takes:
            raise ConfigError(f"{self.product.key} takes no compare; describe its tables (docs/tables.md)")
        chosen = read_methods(DEFAULT if methods is None else methods)
        made = out_of(out, *places_of(data), overwrite=overwrite)
        execution = Execution(memory=memory, progress=progress)
        with opened_alone(self, data, out, "compare", execution, synthetic=synthetic) as (folder, common):
            request = replace(common, entropy=entropy(seed), internal=internal, overwrite=overwrite)
            request.bring(folder, ())
            return write_side_by_side(self.config, self.plan(), chosen, folder, made, request)


def _finite(name: str, value: Exact) -> Fraction:
    number = exact_number(name, value)
    if not isinstance(number, Fraction) or number < 0:
        raise ConfigError(f"{name}: must be a finite number that is not negative")
    return number


def setup(product: "str | Product[Any]", config: object, **settings: Unpack[SetupOptions]) -> Configured:
    """Configure a product; reads its configuration and public files, and no record.

    Parameters
    ----------
    product : str or Product
        A key of `PRODUCTS`, such as "phsafe", or one of its values.
    config : str, Path, mapping or configuration
        A file (JSON or TOML), the manifest of a release, SafeTab's parameter folder, a built-in name such as
        "pl94-2020-us", a document as such a file holds, or what ``PRODUCTS[key].read`` or `Configured.solve` gave. Of
        the manifest of a release the options hold, too, where they are not given.
    settings
        ``set``: values that take the place of the configuration's, such as ``{"tau.PH2": 10}``, before it is checked;
        and the options of docs/options.md, such as ``margins="bureau"``, which ``set`` may hold as
        ``{"options.margins": "bureau"}`` and a configuration as its table ``options``.

    Returns
    -------
    Configured
        To be asked for its plan, or to make a release.

    Raises
    ------
    ConfigError
        Naming the product or every fault of the configuration, or what the product does not take; or if two parts
        protect the same unit.

    Source
    ------
    docs/configuration.md, docs/options.md
    """
    if isinstance(config, Configured):
        if settings:
            raise ConfigError(f"{', '.join(settings)}: the product is configured; set it up anew")
        return config
    changes, told = told_options(settings)
    found = _product(product)
    document = _parts_of(found, config)
    if document is None:
        return Configured(found, *read_configured(found, config, changes, told))
    each = document.changes(changes)
    parts = {}
    for name, source in document.sources.items():
        try:
            parts[name] = Configured(found, *read_configured(found, source.config, each[name], told))
        except ConfigError as error:
            raise ConfigError(f"part {name}: {error}") from None
    check_units({name: case.plan() for name, case in parts.items()})
    return Configured(found, None, title=document.title, parts=parts)


def _product(product: "str | Product[Any]") -> "Product[Any]":
    if isinstance(product, str):
        return PRODUCTS[product]
    if not isinstance(getattr(product, "key", None), str):
        raise ConfigError(f"product: must be a key such as 'phsafe', and is of type {type(product).__name__}")
    return product


def _parts_of(product: "Product[Any]", config: object) -> "PartsDocument | None":
    """The document of parts that a user gave, if it is one."""
    listing = PRODUCTS.listing(product.key)
    if "parts" not in listing.takes or not isinstance(config, str | Path | Mapping):
        return None
    return read_parts(config, None if isinstance(config, Mapping) else product.locate(config), listing.built_in)


_UNLEDGERED = (
    "a ledger needs both its file and the name of a dataset (--ledger FILE --dataset NAME), and a limit, a unit and a "
    "household cap need a ledger"
)


def told_together(
    verb: str, product: "str | Product[Any]", config: object, given: Mapping[str, Any]
) -> tuple[Configured, dict[str, Any]]:
    """Set a product up by options that were told together with those of a verb, and give what the verb is left with."""
    given = {name: value for name, value in given.items() if value is not None}
    takes = signature(getattr(Configured, verb)).parameters
    known = [*takes, *OPTIONS, *CHANGES]
    own = {name: given.pop(name) for name in [*given] if name in takes}
    of: Any
    for what, of in (("account", Account), ("execution", Execution)):
        names = [one.name for one in fields(of)] if what in takes else []
        known += names
        if told := {name: given.pop(name) for name in [*given] if name in names}:
            if of is Account and not {"ledger", "dataset"} <= told.keys():
                raise ConfigError(_UNLEDGERED)
            own[what] = of(**told)
    if unknown := next((name for name in given if name not in known), None):
        raise ConfigError(f"{unknown}: there is no such option{nearest(unknown, known)}")
    return setup(product, config, **given), own


def plan(product: "str | Product[Any]", config: object, **options: Any) -> "Plan":  # noqa: ANN401 (those of `setup`)
    """Set a product up and return its `Configured.plan`."""
    return told_together("plan", product, config, options)[0].plan()


def solve(product: "str | Product[Any]", config: object, targets: Place | None = None, **options: Any) -> Any:  # noqa: ANN401
    """Set a product up and return the configuration that `Configured.solve` finds."""
    asked, own = told_together("solve", product, config, options)
    return asked.solve(targets, **own).config


def strategy(config: object, *, product: "str | Product[Any]" = "topdown", **options: Any) -> "Strategy[Any]":  # noqa: ANN401
    """Set a product up and return what `Configured.strategy` finds."""
    asked, own = told_together("strategy", product, config, options)
    return asked.strategy(**own)


def run(product: "str | Product[Any]", config: object, data: "Data", out: Place, **options: Any) -> "Release":  # noqa: ANN401
    """Set a product up and make a release by `Configured.run`; an account and an execution are told by their fields."""
    asked, own = told_together("run", product, config, options)
    return asked.run(data, out, **own)


def exact(product: "str | Product[Any]", config: object, data: "Data", out: Place, **options: Any) -> "Release":  # noqa: ANN401
    """Set a product up and count without noise by `Configured.exact`."""
    asked, own = told_together("exact", product, config, options)
    return asked.exact(data, out, **own)


def validate(product: "str | Product[Any]", config: object, data: "Data", **options: Any) -> "Validation":  # noqa: ANN401
    """Set a product up and check records by `Configured.validate`."""
    asked, own = told_together("validate", product, config, options)
    return asked.validate(data, **own)


def accuracy(
    product: "str | Product[Any]",
    config: object,
    data: "Data",
    out: Place | None = None,
    **options: Any,  # noqa: ANN401
) -> "Accuracy":
    """Set a product up and measure its errors by `Configured.accuracy`."""
    asked, own = told_together("accuracy", product, config, options)
    return asked.accuracy(data, out, **own)


def compare(product: "str | Product[Any]", config: object, data: "Data", out: Place, **options: Any) -> "SideBySide":  # noqa: ANN401
    """Set a product up and compare it with other methods by `Configured.compare`."""
    asked, own = told_together("compare", product, config, options)
    return asked.compare(data, out, **own)


def attribute_bounds(product: "str | Product[Any]", config: object, **options: Any) -> "Findings[AttributeBound]":  # noqa: ANN401
    """Set a product up and return its `Configured.attribute_bounds`."""
    return setup(product, config, **options).attribute_bounds()
