"""The public Python interface: what the command line does, as functions and objects. docs/python.md describes it.

What stands below is imported inside the functions, so that a script loads what it uses.
"""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import fields, replace
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, overload

from yupana.asked import (
    AskedParts,
    Case,
    Estimator,
    Exact,
    Place,
    Places,
    Values,
    accounts,
    ask,
    ask_parts,
    bytes_of,
    changes_of,
    checked,
    confidence_of,
    engine_terms,
    entropy,
    exact_number,
    out_of,
    path_if_given,
    path_of,
    paths_of,
    question_of,
    targets_of,
    whole_number,
)
from yupana.errors import ConfigError, OutputError, nearest
from yupana.products.parts import ALONE, data_of
from yupana.progress import Listener, Progress, Step, announcing, listening, silent
from yupana.topdown.interval_terms import IntervalMethod

if TYPE_CHECKING:
    from yupana.audit.attribute.answers import AttributeAnswer
    from yupana.audit.attribute.bounds import AttributeBound
    from yupana.audit.empirical.loss import LossFinding
    from yupana.confidential.accuracy import Accuracy
    from yupana.confidential.counter import Validation
    from yupana.confidential.records.frames import Data
    from yupana.confidential.request import RunRequest
    from yupana.confidential.run import PartRun
    from yupana.engine.engine import EngineKind, EngineTerms
    from yupana.estimate.areas.area_list import AreaList
    from yupana.estimate.results import AreaIntervals, DistrictEstimates, Intervals
    from yupana.files.arrow import ArrowStream, ArrowTable
    from yupana.files.new_file import NewFile
    from yupana.geography.settings import SpineSettings
    from yupana.plan.budgets import Question
    from yupana.plan.exact_budget import Scaled, SpentEpsilon
    from yupana.plan.margin import Margins
    from yupana.plan.measurement import Accounting
    from yupana.plan.plan import Plan
    from yupana.plan.unit import UnitName
    from yupana.products.described.count import Codes, CountPlan
    from yupana.products.disclosure_control.results import SideBySide
    from yupana.products.product import Checked, Product
    from yupana.products.strategy.results import Strategy
    from yupana.products.topdown.pl.summary_file import SummaryFile
    from yupana.release.release import Release
    from yupana.release.tables import Format
    from yupana.report.certified import Certificate
    from yupana.synthetic.census import CensusSummary


@checked
def plan(
    product: "str | Product[Any]",
    config: object,
    *,
    set: Values | None = None,  # noqa: A002 (as on the command line)
    renormalise: bool = False,
    accounting: "Accounting | None" = None,
    confidence: Exact | None = None,
    margins: "Margins | None" = None,
    codes: Place | None = None,
    spine: Place | None = None,
) -> "Plan":
    """Tell what a run would measure, and what it would cost; needs no data.

    Parameters
    ----------
    product : str or Product
        A key of `PRODUCTS`, such as "phsafe", or one of its values.
    config : str, Path, mapping or configuration
        A file (JSON or TOML), the manifest of a release, SafeTab's parameter folder, a built-in name such as
        "pl94-2020-us", a document as such a file holds, or what ``PRODUCTS[key].read`` gave. Of a release's manifest,
        its options hold where they are not given.
    set : mapping
        Values that take the place of the configuration's, such as ``{"tau.PH2": 10}``, before it is checked.
    renormalise : bool
        Of TopDown: divide shares that do not sum to 1 by their sum.
    accounting : "published" or "tight"
        The sensitivities that noise is scaled to: those of the papers of 2020 (default), or the least proven.
    confidence : Fraction, float or str
        Of the margins of error, strictly between 0 and 1. The product's own (0.9, of SafeTab 0.95) if not given.
    margins : "exact" or "bureau"
        A margin of error is the least whole number with the confidence (default), or z times the standard deviation.
    codes : str or Path
        Of SafeTab and descriptions: the folder with the public files of codes and groups, if it is not that of the
        configuration.
    spine : str or Path, optional
        Of TopDown: "conventional", "aian", "optimized" or "pieces" in place of the configuration's, or the folder of a
        spine.

    Returns
    -------
    Plan
        Budgets are exact fractions, in rho (epsilon under pure differential privacy) per privacy unit; margins are in
        records. ``plan.table()`` has a row for each measurement.

    Raises
    ------
    ConfigError
        Naming the product or every fault of the configuration.

    Source
    ------
    docs/margins.md; docs/phsafe-privacy.md, docs/safetab-privacy.md and docs/topdown-privacy.md prove the losses.
    """
    asked = ask(
        product,
        config,
        set=set,
        renormalise=renormalise,
        codes=codes,
        spine=spine,
        accounting=accounting,
        confidence=confidence,
        margins=margins,
    )
    return asked.plan()


@checked
def parts(
    product: "str | Product[Any]",
    config: object,
    *,
    set: Values | None = None,  # noqa: A002 (as on the command line)
    renormalise: bool = False,
) -> dict[str, Any]:
    """Read all configurations of a document of parts, such as "pl94-2020-us-whole".

    Each has a plan of its own, and the losses of two are never added, for they are promises to different units.

    Parameters
    ----------
    product : str or Product
        "topdown".
    config : str, Path or mapping
        As of `plan`.
    set : mapping
        As of `plan`; keys begin with the name of a part, such as ``{"persons.rho": "1/2"}``.
    renormalise : bool
        As of `plan`.

    Returns
    -------
    dict of str to configuration
        By the name of the part; to be given to `plan`, `solve`, `validate` and `accuracy`.

    Raises
    ------
    ConfigError
        If it is no document of parts, or is faulty; or if two parts protect the same unit.

    Source
    ------
    docs/topdown.md
    """
    asked = ask_parts(product, config, set=set, renormalise=renormalise)
    if not asked.is_whole:
        raise ConfigError(f"config {config}: is one configuration, and no document of parts")
    return {name: case.config for name, case in asked.cases.items()}


@checked
def solve(
    product: "str | Product[Any]",
    config: object,
    *,
    set: Values | None = None,  # noqa: A002 (as on the command line)
    renormalise: bool = False,
    targets: Place | None = None,
    margins: Mapping[str, Exact] | None = None,
    total: "Exact | Mapping[str, Exact] | None" = None,
    sizes: Mapping[str, Exact] | None = None,
    weights: Mapping[str, Exact] | None = None,
    decimals: int | None = None,
    epsilon: Exact | None = None,
    delta: Exact | None = None,
    accounting: "Accounting | None" = None,
    confidence: Exact | None = None,
    rule: "Margins | None" = None,
    codes: Place | None = None,
) -> Any:  # noqa: ANN401 (the configuration of the product)
    """Find the least budgets that reach margins of error, or share a total so that relative errors are equal.

    Parameters
    ----------
    product, config, set, renormalise, accounting, confidence, codes
        As of `plan`.
    targets : str or Path
        A file with what follows (docs/targets.md); nothing else is given then.
    margins : mapping of entry to number
        The largest margin of error of one cell, in records, by the name of its budget, such as "PH1_num/usa_*"
        (``PRODUCTS[key].entries(config)`` has all). Budgets that are not named stay.
    total : number, or mapping with "epsilon" and "delta"
        The loss that all budgets together may have, in rho (epsilon under pure differential privacy); or an epsilon at
        a delta (1e-10 if not given) by the exact law of the loss, as of ``epsilon``.
    sizes : mapping of entry to number
        With a total: the counts, in records, to which the errors are relative.
    weights : mapping of entry to number
        With sizes: how much an error counts; 1 where none is given.
    decimals : int
        To how many digits after the point budgets are rounded.
    epsilon, delta : number
        Scale all budgets to the largest that keep this epsilon at this delta (1e-10 if not given), by the exact law of
        the loss where it gives a bound, else by the conversion of the loss (docs/exact-accounting.md).
    rule : "exact" or "bureau"
        How margins of error are computed.

    Returns
    -------
    configuration
        The same with other budgets, to be given to `plan` and `run`.

    Raises
    ------
    ConfigError
        If not one of targets, margins, epsilon, and a total with sizes is given, or a name or a number is faulty, or
        the total is spent.

    Source
    ------
    docs/targets.md proves that both answers are optimal.
    """
    wanted = [targets is not None, margins is not None, total is not None, epsilon is not None]
    if sum(wanted) != 1 or (total is None) != (sizes is None):
        raise ConfigError("solve needs one of targets, margins, epsilon, and a total with sizes")
    if delta is not None and epsilon is None:
        raise ConfigError("delta has a meaning with epsilon only")
    asked = ask(
        product,
        config,
        set=set,
        renormalise=renormalise,
        codes=codes,
        accounting=accounting,
        confidence=confidence,
        margins=rule,
    )
    if epsilon is not None:
        return scaled(asked, epsilon, delta)[0]
    question = question_of(
        targets,
        asked.product.entries(asked.config, asked.accounting),
        margins=margins,
        total=total,
        sizes=sizes,
        weights=weights,
        decimals=decimals,
    )
    return solved(asked, question)[0]


def solved(asked: Case, question: "Question") -> "tuple[Any, SpentEpsilon | None]":
    """The configuration with the budgets that a question asks for, and what an epsilon that is spent keeps."""
    from yupana.plan.budgets import EpsilonTotal
    from yupana.plan.budgets import solve as solve_budgets

    product = asked.product
    if isinstance(question.total, EpsilonTotal):
        found, spent = product.spend_epsilon(asked.config, question, asked.accounting)
        return product.with_budgets(asked.config, found), spent
    entries, level = product.entries(asked.config, asked.accounting), asked.confidence or product.confidence
    found = solve_budgets(question, entries, level, asked.plan().mechanism, asked.margins)
    return product.with_budgets(asked.config, found), None


def scaled(asked: Case, epsilon: Exact, delta: Exact | None) -> "tuple[Any, Scaled]":
    """The configuration with all budgets times one factor, and what that keeps; see `solve`."""
    from yupana.plan.exact_budget import scale_to
    from yupana.plan.plan import DEFAULT_DELTA

    at = float(DEFAULT_DELTA if delta is None else exact_number("delta", delta))
    plan = asked.plan()
    found = scale_to(
        plan,
        float(exact_number("epsilon", epsilon)),
        at,
        lambda factor: asked.product.epsilon_exact(asked.config, plan, at, factor),
    )
    entries = asked.product.entries(asked.config, asked.accounting)
    budgets = {name: entry.budget * found.factor for name, entry in entries.items()}
    return asked.product.with_budgets(asked.config, budgets), found


@checked
def run(
    product: "str | Product[Any]",
    config: object,
    data: "Data",
    out: Place,
    *,
    synthetic: bool = False,
    seed: int | None = None,
    set: Values | None = None,  # noqa: A002 (as on the command line)
    renormalise: bool = False,
    columns: "Place | Mapping[str, Mapping[str, str]] | None" = None,
    accounting: "Accounting | None" = None,
    confidence: Exact | None = None,
    margins: "Margins | None" = None,
    format: "Format | None" = None,  # noqa: A002 (as on the command line)
    overwrite: bool = False,
    log: Place | None = None,
    ledger: Place | None = None,
    dataset: str | None = None,
    limit: Mapping[str, Exact] | Exact | None = None,
    unit: "UnitName | None" = None,
    household_cap: int | None = None,
    memory: int | None = None,
    engine: "EngineKind" = "local",
    master: str | None = None,
    shards: int | None = None,
    spark_conf: Mapping[str, str] | None = None,
    report: Place | None = None,
    resume: bool = False,
    codes: Place | None = None,
    totals: Place | None = None,
    spine: Place | None = None,
    areas: Places | None = None,
    estimator: Estimator | None = None,
    noisy_measurements: Place | None = None,
    names: Place | None = None,
    microdata: bool = True,
    nmf: Place | None = None,
    intervals: IntervalMethod | None = None,
    replicates: int | None = None,
    pl: Place | None = None,
    progress: Listener | bool = False,
) -> "Release":
    """Make a release of confidential records.

    Parameters
    ----------
    product, config, set, renormalise, accounting, confidence, margins, codes, spine
        As of `plan`. A document of parts, such as "pl94-2020-us-whole", makes a release of several, one for each part
        in a folder of its own; ``set`` and ``limit`` then name a part first (``{"persons.rho": "1/2"}``), and the
        ledger has a dataset for each (``DATASET/persons``).
    data : str, Path or mapping
        A folder with the files of records, a URL such as "s3://BUCKET/PREFIX" (docs/stores.md), or the files by name
        without ending, such as ``{"persons": frame, "units": frame, "geo": frame}``: frames of Polars, pandas, pyarrow
        or DuckDB (anything with ``__arrow_c_stream__``), or paths. Codes are text with their leading zeros. What a
        release holds does not depend on which.
    out : str or Path
        A folder that does not exist or is empty. It appears when the release is whole; a run that fails leaves none.
    synthetic : bool
        Frames are nobody's. They are taken for real records otherwise, as is a folder without a file named SYNTHETIC.
    seed : int, optional
        Reproducible noise, for synthetic records only; the release is then marked NOT FOR RELEASE.
    columns : str, Path or mapping
        What the record files call their columns: a file, or by record file, such as ``{"persons": {"AGE": "alter"}}``
        (docs/configuration.md).
    format : "csv" or "parquet"
        Of the tables.
    overwrite : bool
        Replace an earlier release in ``out``.
    log : str or Path, optional
        The confidential log; beside ``out`` if not given.
    ledger, dataset : str or Path, and str, optional
        A file that adds up what was spent on the data of that name; this run is charged to it before it draws.
    limit : number, or mapping of kind of neighbours to number
        The largest loss that the ledger may reach, in rho (epsilon under pure differential privacy).
    unit : "record", "person" or "household"
        Whose loss the ledger adds ("record"); a household needs ``household_cap``, the most persons in one.
    memory : int, optional
        Bytes to get along with; three quarters of the machine's if not given, at most 12 GB. Of a task, on an engine
        with several.
    engine : "local" or "spark"
        Where records are counted, and nodes of TopDown solved (docs/engines.md).
    master, spark_conf : str, and mapping of str to str, optional
        Of Spark: its master, and more settings.
    shards : int, optional
        Into how many shards records are cut.
    report : str or Path, optional
        An HTML page on the release, as `report` writes it.
    resume : bool
        Go on with a run that was stopped, with the noise that it had drawn; all else must be the same.
    totals : str or Path, optional
        Of SafeTab-H: the table T01001 of SafeTab-P, if it does not lie with the records.
    estimator : "topdown", "full-information" or "posterior"
        Of TopDown.
    noisy_measurements : str or Path, optional
        Of TopDown: a folder for all noisy measurements.
    areas : str or Path, or several
        Of TopDown: tables of the areas that blocks lie in, beside the reference file (docs/topdown-files.md).
    names : str or Path, optional
        Of TopDown: what areas are called: a table, or a geographic header file of P.L. 94-171.
    microdata : bool
        Of TopDown: write a record for each person or unit counted, too.
    noisy_measurements, nmf : str or Path, optional
        Of TopDown: a folder for all noisy measurements, as tables or in the layout of the Census Bureau's noisy
        measurement files (docs/noisy-measurement-files.md).
    intervals : "none", "least-squares" or "monte-carlo"
        Of TopDown: how the interval of every published count is found (docs/topdown-intervals.md). If it is not given,
        by least squares up to a size of the plan, and none above it.
    replicates : int, optional
        Of TopDown, with "monte-carlo": how often the published counts are estimated again; 25 if not given.
    pl : str or Path, optional
        Of TopDown, of a document of parts with persons and housing units: a folder for the four files of P.L. 94-171 of
        each state.
    progress : callable or bool
        Called with each `Step`; True shows a bar. What it raises ends the run as any error does.

    Returns
    -------
    Release

    Raises
    ------
    ConfigError
        If the configuration is faulty, or records that are not synthetic were to be measured without noise or with a
        seed, or something was asked that the product does not have.
    InputError
        If the records break a rule. The message counts records, so it is confidential, but holds no value of one.
    OutputError, BudgetError
        If the output folder or the ledger do not allow the run.

    Source
    ------
    docs/phsafe.md, docs/safetab.md, docs/topdown.md; docs/person-loss.md for units.
    """
    from yupana.confidential.request import check_apart, log_file
    from yupana.confidential.run import run_parts as make

    asked = ask_parts(
        product,
        config,
        set=set,
        renormalise=renormalise,
        codes=codes,
        columns=columns,
        spine=spine,
        areas=areas,
        accounting=accounting,
        confidence=confidence,
        margins=margins,
        format=format,
        estimator=estimator,
        intervals=intervals,
        replicates=replicates,
    )
    if report is not None and asked.is_whole:
        raise ConfigError(f"report: {asked.title} has a report for each part; ask for it by itself of each")
    charged = accounts(asked, ledger, dataset, limit, unit, household_cap)
    made = out_of(out, *_places(data), overwrite=overwrite)
    for name, folder in (("noisy_measurements", noisy_measurements), ("nmf", nmf), ("pl", pl)):
        if folder is not None:
            out_of(folder, *_places(data), overwrite=overwrite, name=name)
    if log is not None:
        log_file(path_of("log", log), made).check()
    page = None if report is None else _claimed(report, [out, *_places(data)])
    files, known = path_if_given("pl", pl), path_if_given("names", names)
    terms = engine_terms(engine, master, shards, spark_conf)
    with _opened(asked, data, out, synthetic, memory, progress, "run", terms) as parts, ExitStack() as stack:
        requests = {
            name: replace(
                part,
                request=replace(
                    part.request,
                    entropy=entropy(seed) if name == ALONE else entropy(seed).branch(name),
                    overwrite=overwrite,
                    log=path_if_given("log", log),
                    account=charged[name],
                    totals=path_if_given("totals", totals),
                    resume=resume,
                    noisy_measurements=path_if_given("noisy_measurements", noisy_measurements),
                    names=known,
                    microdata=microdata,
                    nmf=path_if_given("nmf", nmf),
                    pl=files,
                    intervals=asked.cases[name].intervals,
                    replicates=asked.cases[name].replicates,
                ),
            )
            for name, part in parts.items()
        }
        then = None
        if files is not None:
            check_apart(made, next(iter(requests.values())).request.beside)
            then = _pl_files(stack, asked, files, known, overwrite=overwrite)
        make(asked.title, requests, made, then)
    release = open_release(made)
    if page is not None:
        _write_report(page, asked.cases[ALONE], release)
    return release


@checked
def count(
    data: "ArrowStream | Place | None",
    by: str | Sequence[str],
    out: Place | None = None,
    *,
    unit: str | None = None,
    max_per_unit: int = 1,
    keys: Place | Sequence[Place] | None = None,
    domains: "Mapping[str, Codes] | None" = None,
    keys_public: bool = False,
    epsilon: Exact | None = None,
    rho: Exact | None = None,
    delta: Exact | None = None,
    totals: bool = False,
    dry_run: bool = False,
    synthetic: bool = False,
    seed: int | None = None,
    confidence: Exact | None = None,
    format: "Format | None" = None,  # noqa: A002 (as on the command line)
    overwrite: bool = False,
    log: Place | None = None,
    ledger: Place | None = None,
    dataset: str | None = None,
    limit: Mapping[str, Exact] | Exact | None = None,
    memory: int | None = None,
    resume: bool = False,
    progress: Listener | bool = False,
) -> "Release | CountPlan":
    """Make one table of one record file: how many records there are in every cell, with noise.

    Parameters
    ----------
    data : frame, str or Path
        A frame as of `run`, or a file (CSV or Parquet); None with ``dry_run``.
    by : str or sequence of str
        Columns, such as "region,age:5:0-115,sex": of codes, or of whole numbers in classes of a width between bounds;
        "age:5:0-115:unknown" where some are missing.
    out : str or Path
        A folder that does not exist or is empty.
    unit : str, optional
        The column that says whose each record is; each record is a unit if not given.
    max_per_unit : int
        How many records of one unit count. Of those with more, some are chosen by a hash.
    keys : path or sequence of paths
        Public CSV files with a column of the same name for columns of codes.
    domains : mapping of column to codes
        A list of codes, or codes with labels.
    keys_public : bool
        The values that occur are declared to be public, of columns without codes.
    epsilon, rho, delta : number
        What the answer may cost: epsilon alone (pure differential privacy), rho (zCDP), or epsilon at delta (zCDP with
        the largest rho that keeps within it), for one unit added or removed.
    totals : bool
        Write tables of each column alone and the total, too: sums of the noisy cells, so they agree with these.
    dry_run : bool
        Tell what it would cost, and read no record.
    synthetic : bool
        The frame is nobody's. A file says so by a file named SYNTHETIC beside it.
    seed, confidence, format, overwrite, log, ledger, dataset, limit, memory, resume, progress
        As of `run`.

    Returns
    -------
    Release or CountPlan
        The tables ``counts`` and, with totals, ``by_COLUMN`` and ``total``; or with ``dry_run`` the cost in words,
        whose ``plan`` is a `Plan`.

    Raises
    ------
    ConfigError
        Naming every fault of what is asked.
    InputError, OutputError, BudgetError
        As of `run`.

    Source
    ------
    docs/count.md; docs/tables-privacy.md proves the loss.
    """
    from yupana.products.described.count import RECORDS, plan_of, read_question

    if out is not None:
        out_of(out, *_places(data), overwrite=overwrite)
    question = read_question(
        by,
        unit=unit,
        most=max_per_unit,
        keys=keys,
        domains=domains,
        keys_public=keys_public,
        epsilon=epsilon,
        rho=rho,
        delta=delta,
        totals=totals,
    )
    if dry_run:
        return plan_of(question, _level(confidence))
    if out is None:
        raise ConfigError("out: name the folder of the release; dry_run tells the cost without one")
    from yupana.confidential.described.one_file import one_file
    from yupana.confidential.described.public_keys import occurring

    with one_file(
        data, RECORDS, Path(out), synthetic=synthetic, seeded=seed is not None, memory=bytes_of(memory)
    ) as folder:
        found = occurring(folder, question.to_look_up, question.columns, memory) if question.to_look_up else {}
        return run(
            "tables",
            question.document(found),
            folder,
            out,
            seed=seed,
            confidence=confidence,
            format=format,
            overwrite=overwrite,
            log=log,
            ledger=ledger,
            dataset=dataset,
            limit=limit,
            memory=memory,
            resume=resume,
            progress=progress,
        )


@checked
def exact(
    product: "str | Product[Any]",
    config: object,
    data: "Data",
    out: Place,
    *,
    synthetic: bool = False,
    internal: bool = False,
    set: Values | None = None,  # noqa: A002 (as on the command line)
    renormalise: bool = False,
    columns: "Place | Mapping[str, Mapping[str, str]] | None" = None,
    accounting: "Accounting | None" = None,
    confidence: Exact | None = None,
    margins: "Margins | None" = None,
    format: "Format | None" = None,  # noqa: A002 (as on the command line)
    overwrite: bool = False,
    log: Place | None = None,
    memory: int | None = None,
    engine: "EngineKind" = "local",
    master: str | None = None,
    shards: int | None = None,
    spark_conf: Mapping[str, str] | None = None,
    codes: Place | None = None,
    totals: Place | None = None,
    spine: Place | None = None,
    areas: Places | None = None,
    estimator: Estimator | None = None,
    names: Place | None = None,
    microdata: bool = True,
    progress: Listener | bool = False,
) -> "Release":
    """Make the same tables as `run` without noise: of synthetic records, or for use in the house.

    Parameters
    ----------
    internal : bool
        The records may be real: what is written is CONFIDENTIAL, and only its owner can read the files.
    product, config, data, out and all others
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
    from yupana.confidential.run import run_parts as make

    asked = ask_parts(
        product,
        config,
        set=set,
        renormalise=renormalise,
        codes=codes,
        columns=columns,
        spine=spine,
        areas=areas,
        accounting=accounting,
        confidence=confidence,
        margins=margins,
        format=format,
        estimator=estimator,
    )
    made = out_of(out, *_places(data), overwrite=overwrite)
    if log is not None:
        log_file(path_of("log", log), made).check()
    terms = engine_terms(engine, master, shards, spark_conf)
    with _opened(asked, data, out, synthetic, memory, progress, "exact", terms) as parts:
        requests = {
            name: replace(
                part,
                request=replace(
                    part.request,
                    overwrite=overwrite,
                    log=path_if_given("log", log),
                    totals=path_if_given("totals", totals),
                    internal=internal,
                    names=path_if_given("names", names),
                    microdata=microdata,
                ),
            )
            for name, part in parts.items()
        }
        make(asked.title, requests, made, noisy=False)
    return open_release(made)


@checked
def validate(
    product: "str | Product[Any]",
    config: object,
    data: "Data",
    *,
    synthetic: bool = False,
    internal: bool = False,
    set: Values | None = None,  # noqa: A002 (as on the command line)
    renormalise: bool = False,
    columns: "Place | Mapping[str, Mapping[str, str]] | None" = None,
    memory: int | None = None,
    engine: "EngineKind" = "local",
    master: str | None = None,
    shards: int | None = None,
    spark_conf: Mapping[str, str] | None = None,
    codes: Place | None = None,
    totals: Place | None = None,
    spine: Place | None = None,
    areas: Places | None = None,
    progress: Listener | bool = False,
) -> "Validation":
    """Check records as `run` would. What it finds counts records: it is outside the guarantee, and CONFIDENTIAL.

    Parameters
    ----------
    internal : bool
        Of PHSafe: tell what thresholds tau about the configured ones would leave out, too.
    product, config, data and all others
        As of `run`.

    Returns
    -------
    Validation
        A sequence of findings, rules broken and remarks; ``finding.dropped`` and ``finding.remark`` tell those that
        forbid nothing. ``str`` of one is a line with file, rule, how many records and the first places. No value of a
        record is in it. Beside them ``remarks`` and ``truncation``.

    Raises
    ------
    ConfigError, InputError
        If the configuration is faulty, or the records cannot be opened at all.
    """
    from yupana.confidential.counter import COUNTERS
    from yupana.confidential.records.frames import in_words
    from yupana.confidential.run import validate as look

    asked = ask(
        product, config, set=set, renormalise=renormalise, codes=codes, columns=columns, spine=spine, areas=areas
    )
    terms = engine_terms(engine, master, shards, spark_conf)
    with _alone(asked, data, None, synthetic, memory, progress, "validate", terms) as (folder, request):
        found = look(
            asked.product,
            asked.config,
            folder,
            replace(request, totals=path_if_given("totals", totals), internal=internal),
        )
        if isinstance(data, str | Path):
            say = partial(_in_place, folder=folder, data=data)
        else:
            say = partial(in_words, folder=folder, frames=data, files=COUNTERS[asked.product.key].frames(asked.config))
        told = (replace(one, file=say(one.file), text=say(one.text)) for one in found)
        return replace(found, findings=tuple(told))


@checked
def accuracy(
    product: "str | Product[Any]",
    config: object,
    data: "Data",
    out: Place | None = None,
    *,
    trials: int = 1,
    synthetic: bool = False,
    internal: bool = False,
    seed: int | None = None,
    set: Values | None = None,  # noqa: A002 (as on the command line)
    renormalise: bool = False,
    columns: "Place | Mapping[str, Mapping[str, str]] | None" = None,
    accounting: "Accounting | None" = None,
    confidence: Exact | None = None,
    margins: "Margins | None" = None,
    memory: int | None = None,
    codes: Place | None = None,
    totals: Place | None = None,
    spine: Place | None = None,
    areas: Places | None = None,
    estimator: Estimator | None = None,
    overwrite: bool = False,
    progress: Listener | bool = False,
) -> "Accuracy":
    """Compare observed with expected margins of error: records are counted once and measured ``trials`` times.

    It tells the truth about the records, and each trial would spend the budget again: of synthetic records, or for use
    in the house.

    Parameters
    ----------
    out : str or Path, optional
        A folder for ``accuracy.csv`` and finer tables.
    trials : int
        How often noise is drawn.
    internal : bool
        The records may be real; what is returned is CONFIDENTIAL.
    product, config, data and all others
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

    asked = ask(
        product,
        config,
        set=set,
        renormalise=renormalise,
        codes=codes,
        columns=columns,
        spine=spine,
        areas=areas,
        accounting=accounting,
        confidence=confidence,
        margins=margins,
        estimator=estimator,
    )
    if isinstance(trials, bool) or not isinstance(trials, int) or trials < 1:
        raise ConfigError("trials: must be a whole number above 0")
    if out is not None:
        out_of(out, *_places(data), overwrite=overwrite)
    with _alone(asked, data, out, synthetic, memory, progress, "accuracy") as (folder, common):
        request = replace(
            common,
            entropy=entropy(seed),
            totals=path_if_given("totals", totals),
            internal=internal,
            overwrite=overwrite,
        )
        request.bring(folder, ())
        observed = observe(asked.product, asked.config, folder, request, trials=trials)
    if out is not None:
        write_accuracy(observed, Path(out), request)
    return Accuracy.told(observed)


@checked
def compare(
    product: "str | Product[Any]",
    config: object,
    data: "Data",
    out: Place,
    *,
    columns: "Place | Mapping[str, Mapping[str, str]] | None" = None,
    methods: str | Sequence[str] | None = None,
    synthetic: bool = False,
    internal: bool = False,
    seed: int | None = None,
    set: Values | None = None,  # noqa: A002 (as on the command line)
    accounting: "Accounting | None" = None,
    codes: Place | None = None,
    memory: int | None = None,
    overwrite: bool = False,
    progress: Listener | bool = False,
) -> "SideBySide":
    """Set the tables of a description by the methods that offices use beside its release, and compare with the truth.

    It tells the truth about the records: of synthetic ones, or for use in the house. Nothing of it is a release, and no
    method but that of the description is differentially private.

    Parameters
    ----------
    product : str or Product
        "tables".
    out : str or Path
        A folder for ``errors.csv``, ``additivity.csv``, ``differencing.csv`` and ``report.html``.
    methods : str or sequence of str
        Of "cell-key:D=5:V=3:js=2", "rounding-3", "rounding-5", "swapping:rate=0.05:k=3" and "suppression:below=3", with
        these or other parameters, which may be left out; all of them if not given.
    internal : bool
        The records may be real: what is written is CONFIDENTIAL, and only its owner can read the files.
    seed : int, optional
        Reproducible random choices, for synthetic records only.
    config, data and all others
        As of `run`.

    Returns
    -------
    SideBySide
        ``errors``, ``additivity`` and ``learnt``, the rows of the three tables; shares are from 0 to 1, errors in
        records.

    Raises
    ------
    ConfigError
        If the records may be real and ``internal`` was not said, a method or parameter is unknown, or the extra
        ``report`` is not installed.
    InputError, OutputError
        As of `run`.

    Source
    ------
    docs/side-by-side.md.
    """
    from yupana.confidential.described.side_by_side import write_side_by_side
    from yupana.products.disclosure_control.choice import DEFAULT, read_methods

    asked = ask(product, config, set=set, columns=columns, accounting=accounting, codes=codes)
    if "compare" not in asked.listing.takes:
        raise ConfigError(f"{asked.product.key} takes no compare; describe its tables (docs/tables.md)")
    chosen = read_methods(DEFAULT if methods is None else methods)
    made = out_of(out, *_places(data), overwrite=overwrite)
    with _alone(asked, data, out, synthetic, memory, progress, "compare") as (folder, common):
        request = replace(common, entropy=entropy(seed), internal=internal, overwrite=overwrite)
        request.bring(folder, ())
        return write_side_by_side(asked.config, asked.plan(), chosen, folder, made, request)


@checked
def open_release(folder: Place) -> "Release":
    """Open a release.

    Parameters
    ----------
    folder : str or Path

    Returns
    -------
    Release
        ``release["PH1_num"]`` is a table with the Arrow C stream interface; its file is compared with the manifest when
        it is asked for. Codes are text; VARIANCE is of COUNT, and MOE its margin of error in records.

    Raises
    ------
    OutputError
        If it is no release.

    Source
    ------
    docs/manifest.md
    """
    from yupana.products.gate import open_release as open_folder

    return open_folder(path_of("folder", folder), confidential=True)


@checked
def read_pl(place: Place) -> "SummaryFile":
    """Read the four files of P.L. 94-171 of a state in the Bureau's layout of 2020.

    Parameters
    ----------
    place : str or Path
        The geographic header, such as ``rigeo2020.pl``, or the folder that holds one; the segments lie beside it.

    Returns
    -------
    SummaryFile
        ``header["NAME"]`` and all other fields of the geographic header are arrays of bytes in latin-1, of shape
        (records,); ``tables["P1"]`` is an array of whole numbers, of shape (records, variables), and
        ``variable("P0010001")`` a column of one.

    Raises
    ------
    InputError
        Naming file and line: if a file is missing, cut short or of another run, or a field is not what it should be.

    Source
    ------
    docs/topdown-files.md
    """
    from yupana.products.topdown.pl.summary_file import read_summary_file

    return read_summary_file(path_of("place", place))


@checked
def write_pl(release: Place, out: Place, *, names: Place | None = None, overwrite: bool = False) -> "Release":
    """Write the files of P.L. 94-171 of every state, from published tables alone.

    Parameters
    ----------
    release : str or Path
        A folder with the release of persons in ``persons`` and that of housing units in ``units``.
    out : str or Path
        A folder that does not exist or is empty.
    names : str or Path, optional
        A geographic header of the Bureau; areas that it has get its names, sizes and all other fields.
    overwrite : bool
        Replace an earlier output in ``out``.

    Returns
    -------
    Release
        Of the files; NOT FOR RELEASE if one of the two is.

    Raises
    ------
    InputError, OutputError
        If the header is faulty; if persons or housing units are missing, were changed, are CONFIDENTIAL or are of
        different areas; or ``out`` cannot be used.

    Source
    ------
    docs/topdown-files.md
    """
    from yupana.products.topdown.pl.release_files import write_release_files

    made = out_of(out, release, overwrite=overwrite)
    write_release_files(path_of("release", release), made, path_if_given("names", names), overwrite=overwrite)
    return open_release(made)


@checked
def check(release: "Release | Place", *, inputs: Place | None = None) -> "Checked":
    """Check a release against its manifest, plan and configuration.

    Parameters
    ----------
    release : Release, str or Path
    inputs : str or Path, optional
        Public files of the run, to compare with those it names.

    Returns
    -------
    Checked
        ``wrong`` has what does not hold, in words, and ``unchecked`` what could not be compared; a release is sound if
        ``wrong`` is empty.

    Raises
    ------
    OutputError
        If it is no release.
    """
    from yupana.products.check import check_release
    from yupana.release.release import read_release

    folder = _folder(release)
    if read_release(folder, confidential=True).product == "certificate":
        from yupana.report.certified import check_certificate

        return check_certificate(folder)
    return check_release(folder, path_if_given("inputs", inputs))


@overload
def interval(
    release: "Release | Place",
    *queries: str,
    query: str | Sequence[str] | None = None,
    area: None = None,
    areas: Places | None = None,
    confidence: Exact | None = None,
    noisy: Place | None = None,
) -> "Intervals": ...


@overload
def interval(
    release: "Release | Place",
    *queries: str,
    query: str | Sequence[str] | None = None,
    area: str | Sequence[str],
    areas: Places | None = None,
    confidence: Exact | None = None,
    noisy: Place | None = None,
) -> "AreaIntervals": ...


@checked
def interval(
    release: "Release | Place",
    *queries: str,
    query: str | Sequence[str] | None = None,
    area: str | Sequence[str] | None = None,
    areas: Places | None = None,
    confidence: Exact | None = None,
    noisy: Place | None = None,
) -> "Intervals | AreaIntervals":
    """Give intervals for published cells, and for their sums, differences, ratios and percentages.

    Parameters
    ----------
    release : Release, str or Path
        Of PHSafe, SafeTab or TopDown.
    queries : str
        Such as ``"PH1_num[REGION_ID=06, PH1_DATA_CELL=2] % PH1_denom[REGION_ID=06]"``; of areas that are named
        ``"total"``, ``"P0010003"``, or ``"P1"`` for all variables of a table. docs/intervals.md has the language.
    query : str or sequence of str, optional
        More of them, by name.
    area : str or sequence of str, optional
        Areas of a TopDown release, each as ``"place=1714000"`` or ``"place=Chicago"``; every query is asked of each.
    areas : path or sequence of paths, optional
        Which areas the blocks lie in, beside what the release tells: tables, or block assignment files of the Bureau.
    confidence : Fraction, float or str, optional
        That of the release's margins of error if not given; of areas that of the published intervals.
    noisy : str or Path, optional
        The noisy measurements of a TopDown release.

    Returns
    -------
    Intervals or AreaIntervals
        One for each query: estimate, variance and the set of the confidence asked for; of areas one for each area and
        query, with what is published. Both have the Arrow C stream interface.

    Raises
    ------
    ConfigError
        If an area or a query is faulty, names what is not there, or no interval can be had.
    InputError, OutputError
        If the release, the measurements or a file of areas are not what they should be.

    Source
    ------
    docs/intervals.md; of ratios Fieller (1954).
    """
    queries = (*queries, *([query] if isinstance(query, str) else query or ()))
    if not queries:
        raise ConfigError("interval needs a query, such as 'PH1_num[REGION_ID=06]'; docs/intervals.md has the language")
    for one in queries:
        if not isinstance(one, str):
            raise ConfigError(
                f"queries: must be texts such as 'PH1_num[REGION_ID=06]', and one is of type {type(one).__name__}"
            )
    if area is not None:
        asked = [area] if isinstance(area, str) else list(area)
        pairs = [(place, one) for place in asked for one in queries]
        return intervals(release, pairs, areas=areas, confidence=confidence, noisy=noisy)
    if areas is not None:
        raise ConfigError("areas: files of areas are for queries of areas; name some with area='place=1714000'")
    from yupana.estimate.intervals.query_intervals import intervals as found

    return found(_folder(release), queries, confidence=_level(confidence), noisy=path_if_given("noisy", noisy))


@checked
def intervals(
    release: "Release | Place",
    questions: "Place | Sequence[tuple[str, str]]",
    *,
    areas: Places | None = None,
    confidence: Exact | None = None,
    noisy: Place | None = None,
) -> "AreaIntervals":
    """Answer many queries of areas of a TopDown release at once.

    Parameters
    ----------
    release : Release, str or Path
    questions : sequence of (area, query), or the path of a table with these columns
        As of `interval`. Other columns of a table stay with their rows.
    areas, confidence, noisy
        As of `interval`.

    Returns
    -------
    AreaIntervals
        In the order of the questions, a table taken apart into its variables.

    Raises
    ------
    ConfigError, InputError, OutputError
        As by `interval`; of a table naming the line.

    Source
    ------
    docs/intervals.md
    """
    from yupana.estimate.areas.intervals import area_intervals
    from yupana.estimate.areas.queries import AreaQuestion, QuestionFile, read_questions

    if isinstance(questions, str | Path):
        asked = read_questions(path_of("questions", questions))
    else:
        for one in questions:
            if not (
                isinstance(one, Sequence) and len(one) == len(_PAIR) and all(isinstance(text, str) for text in one)
            ):
                raise ConfigError(f"questions: must be pairs of an area and a query such as {_PAIR}")
        asked = QuestionFile(tuple(AreaQuestion(area, query) for area, query in questions), ())
    if not asked.questions:
        raise ConfigError(f"questions: there are none; give pairs of an area and a query such as {_PAIR}")
    return area_intervals(
        _folder(release),
        asked.questions,
        files=paths_of("areas", areas),
        confidence=_level(confidence),
        noisy=path_if_given("noisy", noisy),
        others=asked.others,
    )


_PAIR = ("place=1714000", "total")


@checked
def areas(release: "Release | Place", *, files: Places | None = None) -> "AreaList":
    """List the areas of a TopDown release, and what can be counted of them.

    Parameters
    ----------
    release : Release, str or Path
    files : path or sequence of paths, optional
        As ``areas`` of `interval`.

    Returns
    -------
    AreaList
        ``find("place=Chicago")`` is an area with its kind, code and name; ``table("place")`` has all of a kind;
        ``rows("tables/P1", "place=Chicago")`` the rows of a table of the release; ``kinds`` and ``queries`` what there
        is.

    Raises
    ------
    InputError, OutputError
        If the release or a file is not what it should be.

    Source
    ------
    docs/intervals.md
    """
    from yupana.estimate.areas.area_list import listed_areas

    return listed_areas(_folder(release), paths_of("files", files))


@checked
def districts(
    release: "Release | Place",
    plan: Place,
    noisy: Place,
    *,
    rule: Literal["range", "deviation"] = "range",
    tolerance: Exact | None = None,
    chance: Exact = "0.95",
    query: str = "total",
    confidence: Exact | None = None,
) -> "DistrictEstimates":
    """Estimate the populations of districts with their joint law, and the chance that the true ones are balanced.

    Parameters
    ----------
    release : Release, str or Path
        Of TopDown.
    plan : str or Path
        A file with a row for each block of the release: the block, of 15 or 16 digits, and its district.
    noisy : str or Path
        The noisy measurements of the same run.
    rule : "range" or "deviation"
        What is held against the tolerance: the largest district less the smallest, or the largest difference from the
        ideal, which is the average of the districts.
    tolerance : number, optional
        In shares of the ideal, strictly between 0 and 1; 0.1 for the range and 0.05 for the deviation if not given.
    chance : number
        Above 1/2: what a tightened tolerance for published populations is to keep for the true ones.
    query : str
        What is counted: ``"total"``, ``"votingage[votingage=1]"``, ``"P0030001"``, or sums and differences of such.
    confidence : Fraction, float or str, optional
        Of the intervals; that of the release's margins of error if not given.

    Returns
    -------
    DistrictEstimates
        ``published``, ``estimate`` and ``covariance`` as arrays, ``chance`` with its standard error, and ``tightened``.
        It has the Arrow C stream interface, with a row for each district.

    Raises
    ------
    ConfigError
        If the query or an option is faulty, or the measurements do not determine what is asked for.
    InputError, OutputError
        If the plan is none for the blocks of the release, or release or measurements are not what they should be.

    Source
    ------
    docs/districts.md
    """
    from yupana.estimate.districts.districts import districts as found

    return found(
        _folder(release),
        path_of("plan", plan),
        path_of("noisy", noisy),
        rule=rule,
        tolerance=None if tolerance is None else confidence_of(tolerance, "tolerance"),
        level=confidence_of(chance, "chance"),
        query=query,
        confidence=_level(confidence),
    )


@checked
def estimate(
    release: "Release | Place",
    out: Place,
    *,
    puerto_rico: "Release | Place | None" = None,
    confidence: Exact = "0.9",
    method: Literal["exact", "original"] = "exact",
    combine: Literal["independent", "joint"] = "independent",
    publish: bool = False,
    format: "Format" = "csv",  # noqa: A002 (as on the command line)
    overwrite: bool = False,
    progress: Listener | bool = False,
) -> "Release":
    """Make the final tables of the S-DHC from the noisy measurements of PHSafe, with credible intervals.

    Parameters
    ----------
    release : Release, str or Path
        Of PHSafe.
    out : str or Path
        A folder that does not exist or is empty.
    puerto_rico : Release, str or Path, optional
        The release of Puerto Rico, for tables that show both.
    confidence : Fraction, float or str
        Of the intervals.
    method : "exact" or "original"
        "original" rounds as the Bureau did.
    combine : "independent" or "joint"
        "joint" uses all measurements of the same people together.
    publish : bool
        Refuse a release that is NOT FOR RELEASE.
    format, overwrite, progress
        As of `run`.

    Returns
    -------
    Release

    Raises
    ------
    ConfigError, OutputError
        If the release is none of PHSafe, or ``out`` cannot be used.

    Source
    ------
    docs/phsafe-estimates.md
    """
    from yupana.report.final_tables import EstimateRequest, publish_estimates

    sources = [_folder(one) for one in (release, puerto_rico) if one is not None]
    made = out_of(out, *sources, overwrite=overwrite)
    request = EstimateRequest(
        release=_folder(release),
        out=made,
        puerto_rico=None if puerto_rico is None else _folder(puerto_rico),
        confidence=confidence_of(confidence),
        method=method,
        combination=combine,
        fmt=format,
        overwrite=overwrite,
        publish=publish,
    )
    with listening(progress, "estimate") as tell:
        publish_estimates(request, announcing(tell))
    return open_release(made)


@checked
def estimate_measurements(
    files: Place,
    out: Place,
    *,
    dataset: str | None = None,
    config: Place | None = None,
    set: Values | None = None,  # noqa: A002 (as on the command line)
    states: Sequence[str] | None = None,
    geography: Place | None = None,
    areas: Places | None = None,
    names: Place | None = None,
    totals: Place | None = None,
    estimator: Estimator = "topdown",
    confidence: Exact | None = None,
    margins: "Margins | None" = None,
    format: "Format" = "csv",  # noqa: A002 (as on the command line)
    microdata: bool = True,
    intervals: IntervalMethod | None = None,
    overwrite: bool = False,
    progress: Listener | bool = False,
) -> "Release":
    """Make counts, tables and records of noisy measurement files, as a run of TopDown does; no record is seen.

    Parameters
    ----------
    files : str or Path
        The folder of the files, which holds datasets, or of one dataset.
    out : str or Path
        A folder that does not exist or is empty.
    dataset : str, optional
        Such as "US_Person_PL_PROD", where there are several.
    config : str or Path, optional
        A configuration of TopDown: schema, recodes, and of every geolevel its queries and the order of their passes. Of
        the files a run of ours wrote, its own if not given; else the built-in one of the dataset.
    set : mapping
        As of `plan`, of that configuration.
    states : sequence of str, optional
        FIPS codes of two digits, or three with the branch of the spine first; these alone are estimated.
    geography : str or Path, optional
        A reference file of blocks; without it areas are those that the digits of a block tell.
    areas, names : str or Path, or several
        As of `run`; areas go with a reference file.
    totals : str or Path, optional
        A table of state and total, which are kept exactly.
    estimator : "topdown", "full-information" or "posterior"
        The latter writes intervals, too.
    confidence, margins
        As of `plan`: of the margins of error that the plan in the manifest tells.
    intervals : "none" or "least-squares"
        As of `run`; for replicates the files say too little.
    format, microdata, overwrite, progress
        As of `run`.

    Returns
    -------
    Release

    Raises
    ------
    ConfigError
        If no configuration is known, or it is of areas of its own.
    InputError
        If the files do not hold together, or the lists do not go with them.
    OutputError
        If ``out`` cannot be used.

    Source
    ------
    docs/noisy-measurement-files.md
    """
    from yupana.estimate.measurement_files import MeasurementRequest, publish_from_files
    from yupana.progress import Stopwatch

    if isinstance(states, str) or not isinstance(states, Sequence | None):
        raise ConfigError("states: must be a sequence of codes, such as ['50', '44']")
    made = out_of(out, path_of("files", files), overwrite=overwrite)
    request = MeasurementRequest(
        root=path_of("files", files),
        out=made,
        dataset=dataset,
        config=config,
        changes=changes_of(set),
        states=tuple(states or ()),
        geography=path_if_given("geography", geography),
        areas=paths_of("areas", areas),
        names=path_if_given("names", names),
        totals=path_if_given("totals", totals),
        estimator=estimator,
        confidence=_level(confidence),
        margins="exact" if margins is None else margins,
        fmt=format,
        microdata=microdata,
        intervals=intervals,
        overwrite=overwrite,
    )
    with listening(progress, "topdown estimate") as tell:
        publish_from_files(
            request, Stopwatch(announcing(tell)), lambda stage, done, total: tell(Step(stage, done, total))
        )
    return open_release(made)


@checked
def topdown_intervals(
    release: "Release | Place",
    out: Place,
    *,
    method: IntervalMethod | None = None,
    replicates: int | None = None,
    confidence: Exact | None = None,
    noisy_measurements: Place | None = None,
    nmf: Place | None = None,
    overwrite: bool = False,
    progress: Listener | bool = False,
) -> "Release":
    """Write a release of TopDown again with an interval for every count of its tabulation and tables.

    It is made of the release alone, or of its noisy measurements, so it costs no privacy.

    Parameters
    ----------
    release : Release, str or Path
    out : str or Path
        A folder that does not exist or is empty.
    method : "least-squares" or "monte-carlo"
        If it is not given, least squares where measurements are given, else Monte Carlo.
    replicates : int, optional
        Of Monte Carlo: how often the published counts are estimated again; 25 if not given.
    confidence : Fraction, float or str
        Of each interval; that of the release's margins if not given.
    noisy_measurements, nmf : str or Path, optional
        The noisy measurements of the run that made the release, as tables or as noisy measurement files; either.
    overwrite, progress
        As of `run`.

    Returns
    -------
    Release

    Raises
    ------
    ConfigError
        If what is asked does not go together.
    InputError, OutputError
        If the release is none of TopDown or was changed, measurements are of another run, or ``out`` cannot be used.

    Source
    ------
    docs/topdown-intervals.md
    """
    from yupana.estimate.topdown_intervals import IntervalRequest, publish_intervals
    from yupana.progress import Stopwatch

    whole_number("replicates", replicates)
    made = out_of(out, _folder(release), overwrite=overwrite)
    request = IntervalRequest(
        release=_folder(release),
        out=made,
        method=method,
        replicates=replicates,
        confidence=None if confidence is None else confidence_of(confidence),
        noisy_measurements=path_if_given("noisy_measurements", noisy_measurements),
        nmf=path_if_given("nmf", nmf),
        overwrite=overwrite,
    )
    with listening(progress, "topdown intervals") as tell:
        publish_intervals(
            request, Stopwatch(announcing(tell)), lambda stage, done, total: tell(Step(stage, done, total))
        )
    return open_release(made)


@checked
def combine_coterminous(
    release: "Release | Place",
    reference: Place,
    out: Place,
    *,
    housing_units: Place | None = None,
    parameters: Place | None = None,
    zero_suppression: Exact | None = None,
    overwrite: bool = False,
    progress: Listener | bool = False,
) -> "Release":
    """Let areas of the same blocks show the same numbers, in a release of SafeTab.

    Parameters
    ----------
    release : Release, str or Path
        Of SafeTab, or one of its tables.
    reference : str or Path
        The reference file of blocks, GRF-C.txt.
    out : str or Path
        A folder that does not exist or is empty.
    housing_units : str or Path, optional
        Housing units by block: compare only blocks that have some.
    parameters : str or Path, optional
        The Bureau's parameter folder with the iterations.
    zero_suppression : Fraction, float or str, optional
        The chance with which small totals are then left out; needs ``parameters``.
    overwrite, progress
        As of `run`.

    Returns
    -------
    Release

    Raises
    ------
    ConfigError, InputError, OutputError
        If an input breaks a rule, or the release was made coterminous by other sets, or was suppressed.

    Source
    ------
    docs/coterminous.md
    """
    from yupana.estimate.coterminous.combine import make_coterminous

    made = out_of(out, _folder(release), overwrite=overwrite)
    with listening(progress, "coterminous") as tell:
        make_coterminous(
            _folder(release),
            path_of("reference", reference),
            made,
            housing_units=path_if_given("housing_units", housing_units),
            parameters=path_if_given("parameters", parameters),
            zero_suppression=_level(zero_suppression),
            overwrite=overwrite,
            announce=announcing(tell),
        )
    return open_release(made)


@checked
def strategy(
    config: object,
    *,
    product: "str | Product[Any]" = "topdown",
    targets: "Place | Mapping[str, object] | None" = None,
    loss: Literal["sum", "max", "ratio"] = "sum",
    least: Exact | None = None,
    total: Exact | None = None,
    set: Values | None = None,  # noqa: A002 (as on the command line)
    renormalise: bool = False,
    accounting: "Accounting | None" = None,
    confidence: Exact | None = None,
    margins: "Margins | None" = None,
    codes: Place | None = None,
) -> "Strategy[Any]":
    """Find the budgets of a plan that make what is asked for least variable at the same loss; needs no data.

    Parameters
    ----------
    config, set, renormalise, codes
        As of `plan`.
    product : str or Product
        Whose configuration it is.
    targets : str, Path or mapping, optional
        A file with weights of published tables and levels, and margins of error to be kept; of TopDown with weights of
        queries, tables and geolevels or margins of error, and numbers of children; or the same document
        (docs/strategies.md). If not given, all cells of the published tables count alike; geolevels of TopDown keep
        their shares.
    loss : "sum", "max" or "ratio"
        The weighted sum of the variances of all answers; the largest weighted one; or the largest of them, each
        divided by what it is with the budgets given.
    least : Fraction, float or str
        What each budget keeps of the one given (1/50 if not given). Of TopDown what each query has at least of the
        budget of its geolevel (1/50); of the whole where shares of geolevels are found (1/50 divided by the number of
        geolevels).
    total : Fraction, float or str, optional
        What the budgets may cost, in SafeTab those of each pass; if not given, what they cost now. Not of TopDown.
    accounting, confidence, margins
        As of `plan`; confidence and margins are those of the margins of error in the targets. Not of TopDown.

    Returns
    -------
    Strategy
        Its ``found`` is a configuration, to be given to `plan` and `run`.

    Raises
    ------
    ConfigError
        If targets are unknown, have no weight or are told by nothing, a budget is no finite rho, or the total does not
        meet what is to be kept.

    Source
    ------
    docs/strategies.md proves the bound.
    """
    asked = ask(
        product,
        config,
        set=set,
        renormalise=renormalise,
        accounting=accounting,
        confidence=confidence,
        margins=margins,
        codes=codes,
    )
    if asked.product.key == "topdown":
        if total is not None:
            raise ConfigError("topdown takes no total: name another budget by set, as rho=1")
        return _strategy_of_shares(asked, targets, loss, least)
    from yupana.products.strategy.budgets import LEAST, BudgetQuestion, find_budgets, refuse_other_noise
    from yupana.products.strategy.published import as_published
    from yupana.products.strategy.targets import TableTargets, read_table_targets

    plan = asked.plan()
    refuse_other_noise(plan)
    entries = asked.product.entries(asked.config, asked.accounting)
    question = BudgetQuestion(
        TableTargets() if targets is None else targets_of(targets, lambda path: read_table_targets(path, entries)),
        loss,
        LEAST if least is None else _finite("least", least),
        None if total is None else _finite("total", total),
    )
    return find_budgets(
        asked.product, asked.config, plan, as_published(asked.product, asked.config, plan, entries), question
    )


def _strategy_of_shares(
    asked: "Case",
    targets: "Place | Mapping[str, object] | None",
    loss: Literal["sum", "max", "ratio"],
    least: Exact | None,
) -> "Strategy[Any]":
    """Of TopDown, whose queries and geolevels share a budget."""
    from yupana.products.topdown.strategy import find_strategy, usual_least
    from yupana.products.topdown.strategy_targets import default_targets, read_targets

    config = asked.config
    wanted = (
        default_targets(config) if targets is None else targets_of(targets, lambda path: read_targets(path, config))
    )
    own = usual_least(config, wanted) if least is None else _finite("least", least)
    return find_strategy(config, wanted, loss, own)


def _finite(name: str, value: Exact) -> Fraction:
    number = exact_number(name, value)
    if not isinstance(number, Fraction) or number < 0:
        raise ConfigError(f"{name}: must be a finite number that is not negative")
    return number


@checked
def suppress(
    release: "Release | Place",
    policy: Place,
    out: Place,
    *,
    parameters: Place | None = None,
    overwrite: bool = False,
    progress: Listener | bool = False,
) -> "Release":
    """Write X for counts that cannot be true, in a release of SafeTab.

    Parameters
    ----------
    release : Release, str or Path
        Of SafeTab, or one of its tables.
    policy : str or Path
        Rules and reason codes (TOML).
    out : str or Path
        A folder that does not exist or is empty.
    parameters : str or Path, optional
        The Bureau's parameter folder, in place of the one that the policy names.
    overwrite, progress
        As of `run`.

    Returns
    -------
    Release

    Raises
    ------
    ConfigError, InputError, OutputError
        If the policy, the parameters or the release break a rule.

    Source
    ------
    docs/suppression.md
    """
    from yupana.estimate.suppression import suppress_release

    made = out_of(out, _folder(release), overwrite=overwrite)
    with listening(progress, "suppress") as tell:
        suppress_release(
            _folder(release),
            path_of("policy", policy),
            made,
            parameters=path_if_given("parameters", parameters),
            overwrite=overwrite,
            announce=announcing(tell),
        )
    return open_release(made)


@checked
def certificate(*releases: "Release | Place", household_cap: int | None = None) -> "Certificate":
    """Tell in plain words what one release, or several of the same people together, promise; reads no record.

    Parameters
    ----------
    releases : Release, str or Path
        At least one; of one that has parts these are told together. Beside it may stand what `accuracy` wrote of the
        same plan, whose tests of acceptance criteria are told.
    household_cap : int, optional
        Of several releases: the most persons in a household, for what they promise to one.

    Returns
    -------
    Certificate
        Its numbers by name, and a page: ``certificate.write(folder)`` keeps both; a notebook shows the page.

    Raises
    ------
    OutputError
        If a release does not hold together, or its plan is not that of its configuration.
    ConfigError
        If a cap is given for one release.

    Source
    ------
    docs/certificate.md
    """
    from yupana.report.certified import certify

    if not releases:
        raise ConfigError("certificate needs a release")
    opened = [open_release(_folder(release)) for release in releases]
    folders = [part.folder for release in opened for part in (*release.parts.values(),) or (release,)]
    return certify(folders, whole_number("household_cap", household_cap))


@checked
def report(
    release: "Release | Place",
    to: Place,
    *,
    codes: Place | None = None,
    boundaries: Place | Sequence[Place] | None = None,
    progress: Listener | bool = False,
) -> Path:
    """Write an HTML page on a release: its loss, its margins and its tables; no truth. Of a spine: how far areas are.

    Of TopDown it has maps and a profile of every area, too.

    Parameters
    ----------
    release : Release, str or Path
    to : str or Path
        The page; it may not lie in the release.
    codes : str or Path, optional
        Of SafeTab: the folder with the public files of codes and groups.
    boundaries : path or sequence of paths, optional
        Of TopDown and spines: boundaries of areas for maps, as zipped shapefiles such as TIGER/Line, GeoJSON or
        TopoJSON; of a spine one file.
    progress : callable or bool
        As of `run`.

    Returns
    -------
    Path
        The page.

    Raises
    ------
    OutputError
        If it is no release with a plan, or the page cannot be written.
    ConfigError
        If charts cannot be drawn, as the extra ``report`` is not installed.
    """
    from yupana.products import PRODUCTS
    from yupana.products.check import open_checked

    _claimed(to, [])  # before the work; whether it may lie in the folder is told by what that holds
    opened = open_checked(_folder(release), confidential=True).alone()
    given = [boundaries] if isinstance(boundaries, str | Path) else list(boundaries or ())
    shapes = [path_of("boundaries", place) for place in given]
    if opened.product == "spine":
        from yupana.report.spine import write_report

        if len(shapes) > 1:
            raise ConfigError("boundaries: the report of a spine has one map; name one file")
        with listening(progress, "report") as tell:
            return write_report(opened.folder, shapes[0] if shapes else None, path_of("to", to), announcing(tell))
    if shapes and opened.product != "topdown":
        raise ConfigError("boundaries are for the maps of TopDown and of spines")
    if opened.product not in PRODUCTS:
        raise OutputError(
            f"{opened.folder} holds {opened.product}, of which there is no report; name a release or a spine"
        )
    asked = ask(opened.product, opened.folder / "manifest.json", codes=codes)
    page = _claimed(to, [opened.folder], confidential=opened.status == "CONFIDENTIAL")
    _write_report(page, asked, opened.intact(), shapes)
    return path_of("to", to)


def _claimed(page: Place, homes: Sequence[Place], *, confidential: bool = False) -> "NewFile":
    """A page that may lie in none of these folders, claimed before the work."""
    from yupana.report.place import CONFIDENTIAL, PUBLIC, claim_page

    places = [Path(home) for home in homes]
    return claim_page(path_of("report", page), places, mode=CONFIDENTIAL if confidential else PUBLIC)


def _write_report(page: "NewFile", asked: Case, release: "Release", boundaries: Sequence[Path] = ()) -> None:
    from yupana.report.release import write_release_report
    from yupana.report.topdown_release import write_topdown_report

    if asked.product.key == "topdown":
        write_topdown_report(page, release, asked.config, asked.plan(), boundaries)
        return
    # Tables of detailed groups can be too large to be read at once; their report shows no counts.
    is_large = "parameters" in asked.listing.takes or getattr(asked.config, "blocks", None) is not None
    tables = {} if is_large else {table: release.columns(table) for table in release}
    write_release_report(page, asked.plan(), asked.production(), release.manifest, tables)


@checked
def empirical_loss(
    release: "Release | Place",
    truth: "Release | Place",
    *,
    queries: Sequence[str] | None = None,
    mode: Literal["sound", "published"] = "sound",
    bandwidth: float | None = None,
    percentile: float | None = None,
    replicates: int | None = None,
    confidence: float | None = None,
) -> "list[LossFinding]":
    """Estimate the privacy loss that a release shows beside its truth; CONFIDENTIAL, for it reads true counts.

    Parameters
    ----------
    release, truth : Release, str or Path
        What `run` and `exact` made of the same records.
    queries : sequence of str, optional
        Of a release of TopDown: which queries to look at; all if not given.
    mode : "sound" or "published"
        With an interval, or as the paper has it.
    bandwidth : float, optional
        A multiple of the standard deviation of the residuals.
    percentile : float, optional
        Where the range ends, between 50 and 100.
    replicates : int, optional
        How often counts are resampled.
    confidence : float, optional
        Of the interval.

    Returns
    -------
    list of LossFinding
        One for each table and level: ``finding.loss`` is an epsilon, None where it cannot be told.

    Raises
    ------
    ConfigError, InputError, OutputError
        If one is no release, or their counts do not match.

    Source
    ------
    docs/audits.md
    """
    from yupana.audit.empirical.loss import LossRequest, examine_all
    from yupana.confidential.truth.hierarchy import COUNTS, by_geolevel
    from yupana.confidential.truth.series import release_and_truth

    given = {"bandwidth": bandwidth, "percentile": percentile, "replicates": replicates, "confidence": confidence}
    more: dict[str, Any] = {name: value for name, value in given.items() if value is not None}
    request = LossRequest(mode, **more)
    noisy, exact_counts = _folder(release), _folder(truth)
    if (noisy / COUNTS).is_dir():
        return examine_all(list(by_geolevel(noisy, exact_counts, queries)), request)
    if queries is not None:
        raise ConfigError("queries are for releases of TopDown")
    return examine_all(list(release_and_truth(noisy, exact_counts)), request)


@checked
def attribute_loss(
    config: object,
    individuals: Place | None = None,
    *,
    accounting: "Accounting" = "published",
    progress: Listener | bool = False,
) -> "list[AttributeAnswer]":
    """Tell what PHSafe reveals at most of single attributes of a person, such as race alone.

    Parameters
    ----------
    config : str, Path, mapping or configuration
        Of PHSafe, as of `plan`; or "s-dhc-slides", the budgets behind the slides of the Bureau.
    individuals : str or Path, optional
        A file of individuals, their households and their secrets (TOML or JSON); the example of the slides of the
        Bureau if not given.
    accounting : "published" or "tight"
    progress : callable or bool
        As of `run`.

    Returns
    -------
    list of AttributeAnswer
        For each individual and secret the loss by the rule of the slides, and the largest found, in rho.

    Raises
    ------
    ConfigError, InputError
        If the configuration or the individuals are faulty.

    Source
    ------
    docs/attribute-loss.md
    """
    from yupana.audit.attribute.answers import answers
    from yupana.audit.attribute.contribution import costs_of
    from yupana.audit.attribute.individuals import AttributeQuestion, read_individuals
    from yupana.audit.attribute.published_example import INDIVIDUALS, SECRETS, planned
    from yupana.products.phsafe.product import PHSAFE

    known = planned(config, accounting) if isinstance(config, str) else None
    if known is None:
        asked = ask(PHSAFE, config, accounting=accounting)
        known = asked.config.taus, asked.plan()
    question = (
        AttributeQuestion(INDIVIDUALS, SECRETS)
        if individuals is None
        else read_individuals(path_of("individuals", individuals))
    )
    taus, of_config = known
    costs = costs_of(of_config, taus)
    found: list[AttributeAnswer] = []
    with listening(progress, "attribute") as tell:
        for individual in question.individuals:
            tell(Step(f"searching the households of {individual.name}"))
            found += answers(costs, [individual], question.secrets or SECRETS, slides=individuals is None)
    return found


@checked
def attribute_bounds(
    product: "str | Product[Any]",
    config: object,
    *,
    set: Values | None = None,  # noqa: A002
    renormalise: bool = False,
    accounting: "Accounting | None" = None,
    codes: Place | None = None,
) -> "list[AttributeBound]":
    """Tell what all products but PHSafe reveal at most of single attributes of any record, or of where it is.

    Parameters
    ----------
    product, config, set, renormalise, accounting, codes
        As of `plan`.

    Returns
    -------
    list of AttributeBound
        ``bound.loss`` is exact: rho, or epsilon under pure differential privacy, where a record differs only in
        ``bound.attributes``, or only in its block within one unit of the geolevel ``bound.within``.

    Raises
    ------
    ConfigError
        As by `plan`; or of PHSafe, whose losses depend on the household (`attribute_loss`).

    Source
    ------
    docs/attribute-loss.md, docs/topdown-privacy.md, docs/tables-privacy.md
    """
    from yupana.audit.attribute.bounds import bounds

    asked = ask(product, config, set=set, renormalise=renormalise, accounting=accounting, codes=codes)
    return list(bounds(asked.product, asked.config, asked.plan()))


@checked
def build_spine(
    reference: Place,
    out: Place,
    settings: "SpineSettings | str" = "optimized",
    *,
    blocks: Place | None = None,
    areas: Places | None = None,
    overwrite: bool = False,
    progress: Listener | bool = False,
    **changes: Any,  # noqa: ANN401 (the fields of the settings)
) -> "Release":
    """Build a hierarchy of geounits on which TopDown spends its budget.

    Parameters
    ----------
    reference : str or Path
        The reference file of blocks, GRF-C.txt.
    out : str or Path
        A folder that does not exist or is empty.
    settings : str or SpineSettings
        "conventional", "aian", "optimized" or "pieces", or `yupana.geography.settings.SpineSettings`.
    blocks : str or Path, optional
        Block attributes, which the classes "gq" and ``live`` need.
    areas : str or Path, or several
        Tables of the areas that blocks lie in, beside the reference file; each kind may be a class.
    overwrite, progress
        As of `run`.
    changes
        Fields of the settings that are to be others, such as ``fanout_cutoff=10``.

    Returns
    -------
    Release
        ``release["geounits"]`` and ``release["blocks"]`` are its tables.

    Raises
    ------
    ConfigError, InputError, OutputError
        If a setting or a file is faulty, or ``out`` cannot be used.

    Source
    ------
    docs/spines.md
    """
    from yupana.geography.build import SpineRequest, build
    from yupana.geography.settings import KINDS, SpineSettings

    if isinstance(settings, str):
        if settings not in KINDS:
            raise ConfigError(f"settings: {settings!r} is not one of {', '.join(KINDS)}{nearest(settings, KINDS)}")
        settings = SpineSettings(settings)
    if not isinstance(settings, SpineSettings):
        raise ConfigError(f"settings: must be a kind such as 'optimized', and is of type {type(settings).__name__}")
    known = [field.name for field in fields(SpineSettings)]
    for name in changes:
        if name not in known:
            raise ConfigError(f"a spine has no setting {name!r}{nearest(name, known)}")
    made = out_of(out, overwrite=overwrite)
    request = SpineRequest(
        path_of("reference", reference),
        path_if_given("blocks", blocks),
        made,
        overwrite,
        paths_of("areas", areas),
    )
    with listening(progress, "spine") as tell:
        build(replace(settings, **changes), request, announcing(tell))
    return open_release(made)


@checked
def spine_distances(
    spine: "Release | Place",
    entities: Place,
    *,
    root: Literal["nation", "county"] = "nation",
    progress: Listener | bool = False,
) -> "ArrowTable":
    """Tell how many geounits of a spine make up each entity: its off-spine distance.

    Parameters
    ----------
    spine : Release, str or Path
        What `build_spine` made.
    entities : str or Path
        A file with the column ``block`` (16 digits) and one for each kind of entity.
    root : "nation" or "county"
        Where a distance begins.
    progress : callable or bool
        As of `run`.

    Returns
    -------
    ArrowTable
        A row for each entity (in each county): column, entity, county, osed (a number of geounits).

    Raises
    ------
    InputError, OutputError
        If the folder holds no spine, or the entities are not on it.

    Source
    ------
    docs/spines.md
    """
    from yupana.files.arrow import ArrowTable
    from yupana.geography.distance import measure

    with listening(progress, "distance") as tell:
        rows = measure(_folder(spine), path_of("entities", entities), root, announcing(tell))
    kinds = {"column": "VARCHAR", "entity": "VARCHAR", "county": "VARCHAR", "osed": "BIGINT"}
    return ArrowTable.of({name: (kind, [getattr(row, name) for row in rows]) for name, kind in kinds.items()})


@checked
def synthesize(
    out: Place,
    households: int,
    *,
    states: Sequence[str] | None = None,
    seed: int | None = None,
    format: "Format" = "csv",  # noqa: A002 (as on the command line)
    progress: Listener | bool = False,
) -> "CensusSummary":
    """Write a census of invented people as the input files of every product.

    Parameters
    ----------
    out : str or Path
        A folder that does not exist or is empty; it holds a file named SYNTHETIC.
    households : int
        Occupied housing units.
    states : sequence of str, optional
        FIPS codes of two digits; the 50 states and the District of Columbia if not given.
    seed : int, optional
        Makes the census reproducible.
    format : "csv" or "parquet"
        Of persons, units and geo.
    progress : callable or bool
        As of `run`.

    Returns
    -------
    CensusSummary
        How many records of each kind there are.

    Raises
    ------
    ConfigError, OutputError
        If the request is faulty, or ``out`` cannot be used.

    Source
    ------
    docs/synthetic.md
    """
    from yupana.synthetic.census import ALL_51_STATE_CODES
    from yupana.synthetic.census import synthesize as invent

    if isinstance(states, str) or not isinstance(states, Sequence | None):
        raise ConfigError("states: must be a sequence of FIPS codes, such as ['06', '44']")
    with listening(progress, "synthesize") as tell:
        return invent(
            out_of(out),
            households=households,
            states=tuple(states) if states is not None else ALL_51_STATE_CODES,
            seed=seed,
            fmt=format,
            progress=lambda done, total: tell(Step("households", done, total)),
        )


@contextmanager
def _opened(
    asked: AskedParts,
    data: "Data",
    out: Place | None,
    synthetic: bool,  # noqa: FBT001 (as users say it)
    memory: int | None,
    progress: Listener | bool,  # noqa: FBT001
    title: str,
    terms: "EngineTerms | None" = None,
) -> "Iterator[dict[str, PartRun[Any]]]":
    """What all verbs ask of a run, of each part: its records, and how it is made."""
    from yupana.confidential.counter import COUNTERS
    from yupana.confidential.engines import open_engine
    from yupana.confidential.request import RunRequest, in_output
    from yupana.confidential.run import PartRun
    from yupana.engine.engine import EngineTerms

    memory = bytes_of(memory)
    cases = asked.cases
    files: dict[str, str] = {}
    for case in cases.values():
        files |= COUNTERS[case.product.key].frames(case.config)
    if out is not None and isinstance(data, Mapping):
        for given in _places(data):
            if in_output(Path(given), path_of("out", out)):
                raise OutputError(
                    f"{given} lies in {out} and would go with what is replaced there; name another folder"
                )
    key = next(iter(cases.values())).product.key
    with (
        listening(progress, f"{key} {title}") as tell,
        _at_hand(data, files, synthetic, memory, tell) as (folder, bring),
        open_engine(terms or EngineTerms()) as engine,
    ):
        folders = data_of(folder, tuple(cases))
        yield {
            name: PartRun(
                case.product,
                case.config,
                folders[name],
                RunRequest(
                    accounting=case.accounting,
                    confidence=case.confidence,
                    margins=case.margins,
                    fmt=case.fmt,
                    estimator=case.estimator,
                    spine=case.spine,
                    areas=case.areas,
                    columns=case.columns,
                    repeats=case.repeats,
                    memory=memory,
                    engine=engine,
                    shards=None if terms is None else terms.shards,
                    announce=announcing(_told_by(name, tell)),
                    progress=_counting(_told_by(name, tell)),
                    bring=bring,
                ),
            )
            for name, case in cases.items()
        }


@contextmanager
def _at_hand(
    data: "Data",
    files: Mapping[str, str],
    synthetic: bool,  # noqa: FBT001 (as users say it)
    memory: int | None,
    tell: Listener,
) -> "Iterator[tuple[Path, Callable[[Path, Collection[Path]], None]]]":
    """The folder of the records, and what brings them there if they lie on a store."""
    from yupana.confidential.records.frames import as_folder
    from yupana.confidential.records.stored import stored_records
    from yupana.files.store import store_at

    store = store_at(data) if isinstance(data, str | Path) else None
    if store is None:
        with as_folder(data, files=files, synthetic=synthetic, memory=memory) as folder:
            yield folder, silent
        return
    with (
        stored_records(store, _counting(tell)) as records,
        as_folder(records.folder, synthetic=synthetic) as folder,
    ):
        yield folder, records.bring


@contextmanager
def _alone(
    asked: Case,
    data: "Data",
    out: Place | None,
    synthetic: bool,  # noqa: FBT001 (as users say it)
    memory: int | None,
    progress: Listener | bool,  # noqa: FBT001
    title: str,
    terms: "EngineTerms | None" = None,
) -> "Iterator[tuple[Path, RunRequest]]":
    """The folder of the records and the request of one configuration."""
    with _opened(AskedParts("", {ALONE: asked}), data, out, synthetic, memory, progress, title, terms) as parts:
        yield parts[ALONE].data, parts[ALONE].request


def _in_place(text: str, folder: Path, data: Place) -> str:
    """Say of records where they lie what was said of the folder that they were read in."""
    return text.replace(str(folder), str(data))


def _told_by(name: str, tell: Listener) -> Listener:
    """Tell steps under the name of a part, if it has one."""
    return tell if name == ALONE else lambda step: tell(replace(step, stage=f"{name}: {step.stage}"))


def _counting(tell: Listener) -> "Progress":
    return lambda stage, done, total: tell(Step(stage, done, total))


def _pl_files(
    stack: ExitStack, asked: AskedParts, files: Path, names: Path | None, *, overwrite: bool
) -> Callable[[Path], object]:
    """Claim the folder of the files of P.L. 94-171; returned is what fills it from the folder of the parts."""
    if any("pl" not in case.listing.takes for case in asked.cases.values()):
        raise ConfigError(f"{next(iter(asked.cases.values())).product.key} takes no pl")
    from yupana.products.topdown.pl.release_files import claim_files

    configurations = {name: case.config for name, case in asked.cases.items()}
    return stack.enter_context(claim_files(configurations, files, names, overwrite=overwrite))


def _places(data: object) -> list[Place]:
    """Where records lie, as far as they lie anywhere."""
    given: list[object] = list(data.values()) if isinstance(data, Mapping) else [data]
    return [place for place in given if isinstance(place, str | Path)]


def _level(value: Exact | None) -> Fraction | None:
    return None if value is None else confidence_of(value)


def _folder(release: "Release | Place") -> Path:
    from yupana.release.release import Release

    return release.folder if isinstance(release, Release) else path_of("release", release)
