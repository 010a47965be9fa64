"""The public Python interface: what the command line does, as functions and objects. docs/python.md describes it.

What stands below is imported inside the functions, so that a script loads what it uses.
"""

import json
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields, replace
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

from yupana.errors import ConfigError, OutputError, nearest
from yupana.progress import Listener, Step, listening

if TYPE_CHECKING:
    from yupana.audit.attribute.answers import AttributeAnswer
    from yupana.audit.empirical.loss import LossFinding
    from yupana.confidential.records.findings import Finding
    from yupana.confidential.records.frames import Data
    from yupana.confidential.request import Account, RunRequest
    from yupana.estimate.intervals.answers import Intervals
    from yupana.files.arrow import ArrowTable
    from yupana.geography.settings import SpineSettings
    from yupana.plan.margin import Margins
    from yupana.plan.measurement import Accounting
    from yupana.plan.plan import Plan
    from yupana.plan.unit import UnitName
    from yupana.privacy.entropy import Entropy
    from yupana.privacy.exact import Budget
    from yupana.products.product import Checked, Product
    from yupana.release.recipe import Recipe
    from yupana.release.release import Release
    from yupana.release.tables import Format
    from yupana.report.certified import Certificate
    from yupana.synthetic.census import CensusSummary

Place: TypeAlias = str | Path
Exact: TypeAlias = Fraction | int | float | str
"""A number that is taken as it is written: a float as its shortest decimal, a text such as "1/3" or "0.05"."""


def plan(
    product: "str | Product[Any]",
    config: object,
    *,
    accounting: "Accounting | None" = None,
    confidence: Exact | None = None,
    margins: "Margins | None" = None,
    codes: Place | None = None,
) -> "Plan":
    """Tell what a run would measure, and what it would cost; needs no data.

    Parameters
    ----------
    product : str or Product
        A key of `PRODUCTS`, such as "phsafe", or one of its values.
    config : str, Path, mapping or configuration
        A file (JSON or TOML), the manifest of a release, SafeTab's parameter folder, a built-in name such as
        "pl94-2020-us", a document as such a file holds, or what ``PRODUCTS[key].read`` gave.
    accounting : "published" or "tight"
        The sensitivities that noise is scaled to: those of the papers of 2020 (default), or the least proven.
    confidence : Fraction, float or str
        Of the margins of error, strictly between 0 and 1. The product's own (0.9, of SafeTab 0.95) if not given.
    margins : "exact" or "bureau"
        A margin of error is the least whole number with the confidence (default), or z times the standard deviation.
    codes : str or Path
        Of SafeTab: the folder with the files of codes and iterations, if it is not that of the configuration.

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
    return _ask(product, config, codes, accounting=accounting, confidence=confidence, margins=margins).plan()


def solve(
    product: "str | Product[Any]",
    config: object,
    *,
    margins: Mapping[str, Exact] | None = None,
    total: Exact | None = None,
    sizes: Mapping[str, Exact] | None = None,
    weights: Mapping[str, Exact] | None = None,
    decimals: int | None = None,
    accounting: "Accounting" = "published",
    confidence: Exact | None = None,
    rule: "Margins" = "exact",
    codes: Place | None = None,
) -> Any:  # noqa: ANN401 (the configuration of the product)
    """Find the least budgets that reach margins of error, or share a total so that relative errors are equal.

    Parameters
    ----------
    product, config, accounting, confidence, codes
        As of `plan`.
    margins : mapping of entry to number
        The largest margin of error of one cell, in records, by the name of its budget, such as "PH1_num/usa_*"
        (``PRODUCTS[key].entries(config)`` has all). Budgets that are not named stay.
    total : number
        The loss that all budgets together may have, in rho (epsilon under pure differential privacy).
    sizes : mapping of entry to number
        With a total: the counts, in records, to which the errors are relative.
    weights : mapping of entry to number
        With sizes: how much an error counts; 1 where none is given.
    decimals : int
        To how many digits after the point budgets are rounded.
    rule : "exact" or "bureau"
        How margins of error are computed.

    Returns
    -------
    configuration
        The same with other budgets, to be given to `plan` and `run`.

    Raises
    ------
    ConfigError
        If neither margins nor a total with sizes are given, or a name or a number is faulty, or the total is spent.

    Source
    ------
    docs/targets.md proves that both answers are optimal.
    """
    from yupana.plan.budgets import Question
    from yupana.plan.budgets import solve as solved

    if (margins is None) == (total is None) or (total is None) != (sizes is None):
        raise ConfigError("solve needs either margins, or a total and sizes")
    asked = _ask(product, config, codes, accounting=accounting, confidence=confidence, margins=rule)
    entries = asked.product.entries(asked.config, asked.accounting)
    wanted, by_size, by_weight = (
        {name: _positive(f"{kind} of {name}", value) for name, value in (given or {}).items()}
        for kind, given in (("margins", margins), ("sizes", sizes), ("weights", weights))
    )
    for name in (*wanted, *by_size, *by_weight):
        if name not in entries:
            raise ConfigError(f"{name!r} is no entry of this configuration{nearest(name, entries)}")
    weighted = {name: size / by_weight.get(name, 1) for name, size in by_size.items()}
    question = Question(wanted, None if total is None else _positive("total", total), weighted, decimals)
    level = asked.confidence or asked.product.confidence
    found = solved(question, entries, level, asked.plan().mechanism, rule)
    return asked.product.with_budgets(asked.config, found)


def run(
    product: "str | Product[Any]",
    config: object,
    data: "Data",
    out: Place,
    *,
    synthetic: bool = False,
    seed: int | None = None,
    accounting: "Accounting | None" = None,
    confidence: Exact | None = None,
    margins: "Margins | None" = None,
    format: "Format | None" = None,  # noqa: A002 (as on the command line)
    overwrite: bool = False,
    log: Place | None = None,
    ledger: Place | None = None,
    dataset: str | None = None,
    limit: Mapping[str, Exact] | Exact | None = None,
    unit: "UnitName" = "record",
    household_cap: int | None = None,
    memory: int | None = None,
    resume: bool = False,
    codes: Place | None = None,
    totals: Place | None = None,
    spine: Place | None = None,
    estimator: Literal["topdown", "full-information"] | None = None,
    noisy_measurements: Place | None = None,
    progress: Listener | bool = False,
) -> "Release":
    """Make a release of confidential records.

    Parameters
    ----------
    product, config, accounting, confidence, margins, codes
        As of `plan`. Of a release's manifest, its options hold where they are not given.
    data : str, Path or mapping
        A folder with the files of records, or these by name without ending, such as
        ``{"persons": frame, "units": frame, "geo": frame}``: frames of Polars, pandas, pyarrow or DuckDB (anything with
        ``__arrow_c_stream__``), or paths. Codes are text with their leading zeros. What a release holds does not depend
        on which.
    out : str or Path
        A folder that does not exist or is empty. It appears when the release is whole; a run that fails leaves none.
    synthetic : bool
        Frames are nobody's. They are taken for real records otherwise, as is a folder without a file named SYNTHETIC.
    seed : int, optional
        Reproducible noise, for synthetic records only; the release is then marked NOT FOR RELEASE.
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
        Whose loss the ledger adds; a household needs ``household_cap``, the most persons in one.
    memory : int, optional
        Bytes to get along with; three quarters of the machine's if not given, at most 12 GB.
    resume : bool
        Go on with a run that was stopped; of TopDown.
    totals : str or Path, optional
        Of SafeTab-H: the table T01001 of SafeTab-P, if it does not lie with the records.
    spine : str or Path, optional
        Of TopDown: "conventional", "aian" or "optimized" in place of the configuration's, or the folder of a spine.
    estimator : "topdown" or "full-information"
        Of TopDown.
    noisy_measurements : str or Path, optional
        Of TopDown: a folder for all noisy measurements.
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
    from yupana.confidential.run import run as make

    asked = _ask(
        product,
        config,
        codes,
        accounting=accounting,
        confidence=confidence,
        margins=margins,
        format=format,
        estimator=estimator,
        spine=spine,
    )
    with _opened(asked, data, out, synthetic, memory, progress, "run") as (folder, common):
        request = replace(
            common,
            entropy=_entropy(seed),
            overwrite=overwrite,
            log=_path(log),
            account=_account(ledger, dataset, limit, unit, household_cap),
            totals=_path(totals),
            resume=resume,
            noisy_measurements=_path(noisy_measurements),
        )
        make(asked.product, asked.config, folder, Path(out), request)
    return open_release(out)


def exact(
    product: "str | Product[Any]",
    config: object,
    data: "Data",
    out: Place,
    *,
    synthetic: bool = False,
    internal: bool = False,
    accounting: "Accounting | None" = None,
    confidence: Exact | None = None,
    margins: "Margins | None" = None,
    format: "Format | None" = None,  # noqa: A002 (as on the command line)
    overwrite: bool = False,
    log: Place | None = None,
    memory: int | None = None,
    codes: Place | None = None,
    totals: Place | None = None,
    spine: Place | None = None,
    estimator: Literal["topdown", "full-information"] | None = None,
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
    from yupana.confidential.run import exact as make

    asked = _ask(
        product,
        config,
        codes,
        accounting=accounting,
        confidence=confidence,
        margins=margins,
        format=format,
        estimator=estimator,
        spine=spine,
    )
    with _opened(asked, data, out, synthetic, memory, progress, "exact") as (folder, common):
        request = replace(common, overwrite=overwrite, log=_path(log), totals=_path(totals), internal=internal)
        make(asked.product, asked.config, folder, Path(out), request)
    return open_release(out)


def validate(
    product: "str | Product[Any]",
    config: object,
    data: "Data",
    *,
    synthetic: bool = False,
    memory: int | None = None,
    codes: Place | None = None,
    totals: Place | None = None,
    spine: Place | None = None,
    progress: Listener | bool = False,
) -> "list[Finding]":
    """Check records as `run` would. What it finds counts records: it is outside the guarantee, and CONFIDENTIAL.

    Parameters
    ----------
    product, config, data and all others
        As of `run`.

    Returns
    -------
    list of Finding
        Rules broken, and remarks; ``finding.dropped`` and ``finding.remark`` tell those that forbid nothing. ``str`` of
        one is a line with file, rule, how many records and the first places. No value of a record is in it.

    Raises
    ------
    ConfigError, InputError
        If the configuration is faulty, or the records cannot be opened at all.
    """
    from yupana.confidential.records.frames import in_words
    from yupana.confidential.run import validate as look

    asked = _ask(product, config, codes, spine=spine)
    with _opened(asked, data, None, synthetic, memory, progress, "validate") as (folder, request):
        found = look(asked.product, asked.config, folder, replace(request, totals=_path(totals)))
        frames = {} if isinstance(data, str | Path) else data
        return [
            replace(one, file=in_words(one.file, folder, frames), text=in_words(one.text, folder, frames))
            for one in found.findings
        ]


def accuracy(
    product: "str | Product[Any]",
    config: object,
    data: "Data",
    *,
    trials: int = 1,
    synthetic: bool = False,
    internal: bool = False,
    seed: int | None = None,
    accounting: "Accounting | None" = None,
    confidence: Exact | None = None,
    margins: "Margins | None" = None,
    memory: int | None = None,
    codes: Place | None = None,
    totals: Place | None = None,
    spine: Place | None = None,
    estimator: Literal["topdown", "full-information"] | None = None,
    progress: Listener | bool = False,
) -> "ArrowTable":
    """Compare observed with expected margins of error: records are counted once and measured ``trials`` times.

    It tells the truth about the records, and each trial would spend the budget again: of synthetic records, or for use
    in the house.

    Parameters
    ----------
    trials : int
        How often noise is drawn.
    internal : bool
        The records may be real; what is returned is CONFIDENTIAL.
    product, config, data and all others
        As of `run`.

    Returns
    -------
    ArrowTable
        The rows of ``accuracy.csv`` (docs/phsafe.md, docs/safetab.md, docs/topdown.md); margins are in records.

    Raises
    ------
    ConfigError
        If the records may be real and ``internal`` was not said; and as of `run`.
    InputError
        As of `run`.
    """
    from yupana.confidential.accuracy import accuracy as observe
    from yupana.release.columns import as_columns

    asked = _ask(
        product,
        config,
        codes,
        accounting=accounting,
        confidence=confidence,
        margins=margins,
        estimator=estimator,
        spine=spine,
    )
    if isinstance(trials, bool) or not isinstance(trials, int) or trials < 1:
        raise ConfigError("trials: must be a whole number above 0")
    with _opened(asked, data, None, synthetic, memory, progress, "accuracy") as (folder, common):
        request = replace(common, entropy=_entropy(seed), totals=_path(totals), internal=internal)
        observed = observe(asked.product, asked.config, folder, request, trials=trials)
    return as_columns(observed.tables[0])


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
    from yupana.release.release import open_release as open_folder

    return open_folder(Path(folder), confidential=True)


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

    return check_release(_folder(release), _path(inputs))


def interval(
    release: "Release | Place",
    *queries: str,
    confidence: Exact | None = None,
    noisy: Place | None = None,
) -> "Intervals":
    """Give intervals for published cells, and for their sums, differences, ratios and percentages.

    Parameters
    ----------
    release : Release, str or Path
        Of PHSafe, SafeTab or TopDown.
    queries : str
        Such as ``"PH1_num[REGION_ID=06, PH1_DATA_CELL=2] % PH1_denom[REGION_ID=06]"``; docs/intervals.md has the
        language.
    confidence : Fraction, float or str, optional
        That of the release's margins of error if not given.
    noisy : str or Path, optional
        The noisy measurements of a TopDown release.

    Returns
    -------
    Intervals
        One for each query: estimate, variance and the set of the confidence asked for. It has the Arrow C stream
        interface, with a row for each piece of a set.

    Raises
    ------
    ConfigError
        If a query is faulty, names what is not there, or no exact interval is known for it.
    InputError, OutputError
        If the release or the measurements are not what their manifests say.

    Source
    ------
    docs/intervals.md; of ratios Fieller (1954).
    """
    from yupana.estimate.intervals.answers import intervals

    if not queries:
        raise ConfigError("interval needs a query, such as 'PH1_num[REGION_ID=06]'; docs/intervals.md has the language")
    return intervals(_folder(release), queries, confidence=_share(confidence), noisy=_path(noisy))


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

    request = EstimateRequest(
        release=_folder(release),
        out=Path(out),
        puerto_rico=None if puerto_rico is None else _folder(puerto_rico),
        confidence=_share(confidence) or Fraction(9, 10),
        method=method,
        combination=combine,
        fmt=format,
        overwrite=overwrite,
        publish=publish,
    )
    with listening(progress, "estimate") as tell:
        publish_estimates(request, lambda stage: tell(Step(stage)))
    return open_release(out)


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

    with listening(progress, "coterminous") as tell:
        make_coterminous(
            _folder(release),
            Path(reference),
            Path(out),
            housing_units=_path(housing_units),
            parameters=_path(parameters),
            zero_suppression=_share(zero_suppression),
            overwrite=overwrite,
            announce=lambda stage: tell(Step(stage)),
        )
    return open_release(out)


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
    from yupana.estimate.suppression.suppression import suppress_release

    with listening(progress, "suppress") as tell:
        suppress_release(
            _folder(release),
            Path(policy),
            Path(out),
            parameters=_path(parameters),
            overwrite=overwrite,
            announce=lambda stage: tell(Step(stage)),
        )
    return open_release(out)


def certificate(*releases: "Release | Place", household_cap: int | None = None) -> "Certificate":
    """Tell in plain words what one release, or several of the same people together, promise; reads no record.

    Parameters
    ----------
    releases : Release, str or Path
        At least one.
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
    return certify([_folder(release) for release in releases], household_cap)


def report(release: "Release | Place", to: Place, *, codes: Place | None = None) -> Path:
    """Write an HTML page on a release: its loss, its margins and its tables; no truth.

    Parameters
    ----------
    release : Release, str or Path
    to : str or Path
        The page; it may not lie in the release.
    codes : str or Path, optional
        Of SafeTab: the folder with the files of codes and iterations.

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
    from yupana.report.place import claim_page
    from yupana.report.release import write_release_report

    opened = open_release(_folder(release)).intact()
    asked = _ask(opened.product, opened.folder / "manifest.json", codes)
    page = claim_page(Path(to), (opened.folder,))
    production = asked.product.plan(asked.product.production(asked.config))
    write_release_report(page, asked.plan(), production, opened.manifest, {t: opened.columns(t) for t in opened})
    return Path(to)


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
        Of PHSafe, as of `plan`.
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
    from yupana.audit.attribute.slides import INDIVIDUALS, SECRETS
    from yupana.products.phsafe.product import PHSAFE

    asked = _ask(PHSAFE, config, None, accounting=accounting)
    question = AttributeQuestion(INDIVIDUALS, SECRETS) if individuals is None else read_individuals(Path(individuals))
    costs = costs_of(asked.plan(), asked.config.taus)
    found: list[AttributeAnswer] = []
    with listening(progress, "attribute loss") as tell:
        for individual in question.individuals:
            tell(Step(f"searching the households of {individual.name}"))
            found += answers(costs, [individual], question.secrets or SECRETS, slides=individuals is None)
    return found


def build_spine(
    reference: Place,
    out: Place,
    settings: "SpineSettings | str" = "optimized",
    *,
    blocks: Place | None = None,
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
        "conventional", "aian" or "optimized", or `yupana.geography.settings.SpineSettings`.
    blocks : str or Path, optional
        Block attributes, which the classes "gq" and ``live`` need.
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
    known = [field.name for field in fields(SpineSettings)]
    for name in changes:
        if name not in known:
            raise ConfigError(f"a spine has no setting {name!r}{nearest(name, known)}")
    request = SpineRequest(Path(reference), _path(blocks), Path(out), overwrite)
    with listening(progress, "spine") as tell:
        build(replace(settings, **changes), request, lambda stage: tell(Step(stage)))
    return open_release(out)


def spine_distances(
    spine: "Release | Place", entities: Place, *, root: Literal["nation", "county"] = "nation"
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

    rows = measure(_folder(spine), Path(entities), root, lambda _: None)
    kinds = {"column": "VARCHAR", "entity": "VARCHAR", "county": "VARCHAR", "osed": "BIGINT"}
    return ArrowTable.of({name: (kind, [getattr(row, name) for row in rows]) for name, kind in kinds.items()})


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

    with listening(progress, "synthesize") as tell:
        return invent(
            Path(out),
            households=households,
            states=tuple(states) if states is not None else ALL_51_STATE_CODES,
            seed=seed,
            fmt=format,
            progress=lambda done, total: tell(Step("households", done, total)),
        )


@dataclass(frozen=True, slots=True)
class _Asked:
    """A product with its configuration and the terms of its plan."""

    product: "Product[Any]"
    config: Any
    accounting: "Accounting"
    confidence: Fraction | None
    margins: "Margins"
    fmt: "Format"
    estimator: Literal["topdown", "full-information"]
    spine: Path | None
    repeats: "Recipe | None"

    def plan(self) -> "Plan":
        return self.product.plan(
            self.config, accounting=self.accounting, confidence=self.confidence, margins=self.margins
        )


_CHOICES: Final[Mapping[str, tuple[str, ...]]] = {
    "accounting": ("published", "tight"),
    "margins": ("exact", "bureau"),
    "format": ("csv", "parquet"),
    "estimator": ("topdown", "full-information"),
}
"""What terms may be, the default first."""

_TOLD: Final = {"accounting": "sensitivity"}
"""What a manifest calls a term, where it has another name for it."""


def _ask(
    product: "str | Product[Any]",
    config: object,
    codes: Place | None,
    *,
    confidence: Exact | None = None,
    spine: Place | None = None,
    **terms: str | None,
) -> _Asked:
    """Read the configuration; terms that are not given are those of the release that it is the manifest of."""
    from yupana.release.recipe import read_recipe

    found = _product(product)
    repeats = read_recipe(found.locate(config)) if isinstance(config, str | Path) else None
    chosen: dict[str, Any] = {}
    for name, choices in _CHOICES.items():
        value = terms.get(name)
        if value is None:
            value = choices[0] if repeats is None else repeats.options.get(_TOLD.get(name, name), choices[0])
        if value not in choices:
            raise ConfigError(f"{name}: must be {' or '.join(map(repr, choices))}")
        chosen[name] = value
    if confidence is None and repeats is not None:
        confidence = repeats.options.get("confidence")
    read, folder = _on_spine(found, _read(found, config, codes), spine)
    return _Asked(
        found,
        read,
        chosen["accounting"],
        _share(confidence),
        chosen["margins"],
        chosen["format"],
        chosen["estimator"],
        folder,
        repeats,
    )


def _product(product: "str | Product[Any]") -> "Product[Any]":
    from yupana.products import PRODUCTS

    if not isinstance(product, str):
        return product
    if product not in PRODUCTS:
        known = nearest(product, PRODUCTS) or f"; there are {', '.join(PRODUCTS)}"
        raise ConfigError(f"there is no product {product!r}{known}")
    return PRODUCTS[product]


def _read(product: "Product[Any]", config: object, codes: Place | None) -> Any:  # noqa: ANN401 (the product's own)
    """A configuration from whatever a user has of it."""
    read: Callable[..., Any] = product.read
    more = {} if codes is None else {"codes": Path(codes)}
    if isinstance(config, str | Path):
        return read(config, **more)
    if not isinstance(config, Mapping):
        if not type(config).__module__.startswith("yupana.products.") and not type(config).__module__.startswith(
            "yupana.topdown."
        ):
            raise ConfigError(f"config is a {type(config).__name__}; give a file, a built-in name or a document")
        return config
    with tempfile.TemporaryDirectory(prefix="yupana-") as scratch:
        path = Path(scratch) / "config.json"
        try:
            path.write_text(json.dumps(config, default=_written), encoding="utf-8")
        except (TypeError, ValueError) as error:
            raise ConfigError(f"config: the document cannot be written as JSON: {error}") from None
        try:
            return read(path, **more)
        except ConfigError as error:
            raise ConfigError(str(error).replace(f"config {path}", "config")) from None


def _written(value: object) -> object:
    """A value of a document that JSON has no form for."""
    if isinstance(value, Fraction | Decimal | Path):
        return str(value)
    if isinstance(value, Mapping):
        return dict(value)
    raise TypeError(f"it holds a {type(value).__name__}")


def _on_spine(product: "Product[Any]", config: Any, spine: Place | None) -> tuple[Any, Path | None]:  # noqa: ANN401
    """The configuration on another spine, and its folder if it was built before."""
    from yupana.geography.settings import KINDS

    if spine is None:
        return config, None
    if product.key != "topdown":
        raise ConfigError(f"{product.key} takes no spine")
    if spine in KINDS:
        return config.on_spine(spine), None
    from yupana.geography.disk import manifest_of, settings_of
    from yupana.topdown.given import on_given

    folder = Path(spine)
    if not folder.is_dir():
        raise ConfigError(f"spine {spine}: neither {', '.join(KINDS)} nor a folder")
    return on_given(config, settings_of(manifest_of(folder), folder), folder), folder


@contextmanager
def _opened(
    asked: _Asked,
    data: "Data",
    out: Place | None,
    synthetic: bool,  # noqa: FBT001 (as users say it)
    memory: int | None,
    progress: Listener | bool,  # noqa: FBT001
    title: str,
) -> "Iterator[tuple[Path, RunRequest]]":
    """The folder of the records, and what all verbs ask of a run."""
    from yupana.confidential.records.frames import as_folder
    from yupana.confidential.request import RunRequest, in_output

    if out is not None and isinstance(data, Mapping):
        for given in data.values():
            if isinstance(given, str | Path) and in_output(Path(given), Path(out)):
                raise OutputError(
                    f"{given} lies in {out} and would go with what is replaced there; name another folder"
                )
    with (
        listening(progress, f"{asked.product.key} {title}") as tell,
        as_folder(data, synthetic=synthetic, memory=memory) as folder,
    ):
        yield (
            folder,
            RunRequest(
                accounting=asked.accounting,
                confidence=asked.confidence,
                margins=asked.margins,
                fmt=asked.fmt,
                estimator=asked.estimator,
                spine=asked.spine,
                repeats=asked.repeats,
                memory=memory,
                announce=lambda stage: tell(Step(stage)),
                progress=lambda part, done, total: tell(Step(part, done, total)),
            ),
        )


def _account(
    ledger: Place | None,
    dataset: str | None,
    limit: Mapping[str, Exact] | Exact | None,
    unit: "UnitName",
    household_cap: int | None,
) -> "Account | None":
    from yupana.confidential.request import Account
    from yupana.plan.unit import OWN, Unit

    if ledger is None and dataset is None and (limit, unit, household_cap) == (None, "record", None):
        return None
    if ledger is None or dataset is None:
        raise ConfigError("a ledger needs both ledger and dataset, and limit, unit and household_cap need a ledger")
    limits = limit if isinstance(limit, Mapping) else {} if limit is None else {OWN: limit}
    whose = Unit(unit, household_cap)
    whose.check_columns(limits)
    return Account(
        Path(ledger), dataset, {kind: _exact(f"limit {kind}", value) for kind, value in limits.items()}, whose
    )


def _entropy(seed: int | None) -> "Entropy":
    from yupana.privacy.entropy import SeededEntropy, SystemEntropy

    if seed is None:
        return SystemEntropy()
    if isinstance(seed, bool) or not isinstance(seed, int) or seed < 0:
        raise ConfigError("seed: must be a whole number, zero or more")
    return SeededEntropy(seed)


def _exact(name: str, value: Exact) -> "Budget":
    from yupana.privacy.exact import read_exact

    try:
        return read_exact(str(value))
    except ValueError as error:
        raise ConfigError(f"{name}: {error}") from None


def _positive(name: str, value: Exact) -> Fraction:
    found = _exact(name, value)
    if not isinstance(found, Fraction) or found <= 0:
        raise ConfigError(f"{name}: {value} is not a finite number above 0")
    return found


def _share(value: Exact | None) -> Fraction | None:
    if value is None:
        return None
    found = _exact("confidence", value)
    if not isinstance(found, Fraction) or not Fraction(1, 10**15) <= found <= 1 - Fraction(1, 10**15):
        raise ConfigError(f"{value} does not lie strictly between 0 and 1")
    return found


def _path(place: Place | None) -> Path | None:
    return None if place is None else Path(place)


def _folder(release: "Release | Place") -> Path:
    return Path(release) if isinstance(release, str | Path) else release.folder
