"""What is made or told beside the releases of configured products."""

import os
import shlex
from collections.abc import Sequence
from dataclasses import fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Unpack

from yupana.errors import ConfigError, OutputError, nearest, system_fault
from yupana.interface.arguments import bytes_of, checked, confidence_of, folder_of, out_of, path_of, paths_of
from yupana.interface.commands import CensusOptions, EstimatedOptions, MeasurementOptions
from yupana.interface.configured import run, setup
from yupana.interface.options import OF_MEASUREMENTS, CountTerms, Place, Places, declared
from yupana.interface.reading import read_options, terms_of, told_options
from yupana.interface.releases import Release, open_release
from yupana.progress import Listener, listening

if TYPE_CHECKING:
    from yupana.audit.attribute.answers import AttributeAnswer
    from yupana.files.arrow import ArrowStream, ArrowTable, Findings
    from yupana.geography.settings import SpineSettings
    from yupana.plan.measurement import Accounting
    from yupana.products.described.count import CountPlan
    from yupana.products.topdown.pl.summary_records import SummaryFile
    from yupana.synthetic.census import CensusSummary


@checked
def read_pl(place: "Release | Places") -> "SummaryFile":
    """Read the files of P.L. 94-171 of one or more states in the Bureau's layout of 2020.

    Parameters
    ----------
    place : Release, path or sequence of paths
        The geographic header, such as ``rigeo2020.pl``, or a folder with those of one or more states, as `write_pl`
        makes it; the segments lie beside them. Of several states the rows stand one after another.

    Returns
    -------
    SummaryFile
        ``file["P1"]`` and ``file["header"]`` are tables as those of a release: with the Arrow C stream interface, codes
        and names as text, numbers as numbers. The whole is one, too. ``variable("P0010001")`` is an array.

    Raises
    ------
    InputError
        Naming file and line: if a file is missing, cut short or of another run, a field is not what it should be, or a
        state is there twice.

    Source
    ------
    docs/topdown-files.md
    """
    from yupana.products.topdown.pl.summary_file import read_summary_files

    return read_summary_files([place.folder] if isinstance(place, Release) else paths_of("place", place))


@checked
def estimate_measurements(
    files: Place, out: Place, *, progress: Listener | bool = False, **settings: Unpack[EstimatedOptions]
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
    states : sequence of str, optional
        FIPS codes of two digits, or three with the branch of the spine first; these alone are estimated.
    geography : str or Path, optional
        A reference file of blocks; areas are those that the digits of a block tell without it.
    overwrite, progress
        As of `run`.
    settings
        ``set``, and the options estimator (full information and the posterior write intervals, too), intervals (for
        replicates the files say too little), confidence, margins, format, areas (with a reference file), names and
        microdata, as of `setup`; ``totals`` is a table of state and total, which are kept exactly.

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

    own = declared(MeasurementOptions)
    terms = terms_of(MeasurementOptions, {name: value for name, value in settings.items() if name in own})
    made = out_of(out, path_of("files", files), overwrite=terms["overwrite"])
    changes, told = told_options(settings, but=own)
    options = read_options("topdown", told)
    for_tables = {name: options[name] for name in OF_MEASUREMENTS}
    request = MeasurementRequest(root=path_of("files", files), out=made, changes=changes, **terms, **for_tables)
    with listening(progress, "topdown estimate") as tell:
        publish_from_files(request, Stopwatch(tell), tell)
    return open_release(made)


@checked
def attribute_loss(
    config: object,
    individuals: Place | None = None,
    *,
    accounting: "Accounting" = "published",
    progress: Listener | bool = False,
) -> "Findings[AttributeAnswer]":
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
    Findings of AttributeAnswer
        A sequence with the Arrow C stream interface: for each individual and secret the loss by the rule of the
        slides, and the largest found, in rho.

    Raises
    ------
    ConfigError, InputError
        If the configuration or the individuals are faulty.

    Source
    ------
    docs/attribute-loss.md
    """
    from yupana.audit.attribute.answers import COLUMNS, INDIVIDUALS, SECRETS, answers, planned
    from yupana.audit.attribute.individuals import AttributeQuestion, read_individuals
    from yupana.audit.attribute.loss import costs_of
    from yupana.files.arrow import Findings
    from yupana.products.phsafe.product import PHSAFE

    known = planned(config, accounting) if isinstance(config, str) else None
    if known is None:
        asked = setup(PHSAFE, config, accounting=accounting)
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
            tell(f"searching the households of {individual.name}")
            found += answers(costs, [individual], question.secrets or SECRETS, slides=individuals is None)
    return Findings("answers", found, COLUMNS)


@checked
def build_spine(
    reference: Place,
    out: Place,
    settings: "SpineSettings | str" = "optimized",
    *,
    blocks: Place | None = None,
    areas: Places | None = None,
    encoding: str | None = None,
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
    encoding : str, optional
        Of their text, such as cp1252, if that is not UTF-8.
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
        None if blocks is None else path_of("blocks", blocks),
        made,
        overwrite,
        paths_of("areas", areas),
        encoding,
    )
    with listening(progress, "spine") as tell:
        build(replace(settings, **changes), request, tell)
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
        rows = measure(folder_of(spine), path_of("entities", entities), root, tell)
    kinds = {"column": "VARCHAR", "entity": "VARCHAR", "county": "VARCHAR", "osed": "BIGINT"}
    return ArrowTable.of({name: (kind, [getattr(row, name) for row in rows]) for name, kind in kinds.items()})


@checked
def synthesize(
    out: Place, households: int, *, progress: Listener | bool = False, **options: Unpack[CensusOptions]
) -> "CensusSummary":
    """Write a census of invented people as the input files of every product.

    Parameters
    ----------
    out : str or Path
        A folder that does not exist or is empty; it holds a file named SYNTHETIC.
    households : int
        Occupied housing units.
    progress : callable or bool
        As of `run`.
    options
        {options}

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

    terms = terms_of(CensusOptions, options)
    with listening(progress, "synthesize") as tell:
        return invent(
            out_of(out),
            households=households,
            states=ALL_51_STATE_CODES if terms["states"] is None else terms["states"],
            seed=terms["seed"],
            fmt=terms["format"],
            progress=lambda done, total: tell("households", done, total),
        )


def draft(dictionary: Place, out: Place | None = None) -> str:
    """Draft a description of tables from what a dictionary says of record files; no record is read.

    Parameters
    ----------
    dictionary : str or Path
        A dictionary of CSPro, a DDI-Codebook, a file of SPSS, Stata or SAS, a datapackage.json, a file of CSVW, or a
        CSV of codes. What it is, is seen in the file.
    out : str or Path, optional
        A file that does not exist, to write it to (.json is without comments).

    Returns
    -------
    str
        The description in TOML: files, columns, recodes, areas, and a first table with a budget.

    Raises
    ------
    ConfigError
        If it is no dictionary, or has faults: all are named by their places.
    OutputError
        If ``out`` is there, or cannot be written.

    Source
    ------
    docs/tables.md
    """
    from yupana.files.dictionaries.reading import read_dictionary
    from yupana.files.document import write_document
    from yupana.products.described.draft import draft as drafted

    path, place = path_of("dictionary", dictionary), None if out is None else path_of("out", out)
    if place is not None and (place.exists() or place.is_symlink()):
        raise OutputError(f"{place} exists; name a place that does not")
    beside = Path.cwd() if place is None else place.parent
    named = Path(os.path.relpath(path, beside)).as_posix()
    text = drafted(read_dictionary(path), named, "FILE" if out is None else shlex.quote(str(out)))
    if place is not None:
        with system_fault(OutputError, f"{place} cannot be written"):
            write_document(place, text)
    return text


def count(
    data: "ArrowStream | Place | None",
    by: str | Sequence[str],
    out: Place | None = None,
    *,
    dry_run: bool = False,
    synthetic: bool = False,
    **options: Any,  # noqa: ANN401
) -> "Release | CountPlan":
    """Make one table of one record file: how many records there are in every cell, with noise.

    Parameters
    ----------
    data : frame, str or Path
        A frame as of `Configured.run`, or a file (CSV, Parquet, or of SPSS, Stata or SAS); None with ``dry_run``.
    by : str or sequence of str
        Columns, such as "region,age:5:0-115,sex": of codes, or of whole numbers in classes of a width between bounds;
        "age:5:0-115:unknown" where some are missing.
    out : str or Path
        A folder that does not exist or is empty.
    dry_run : bool
        Tell what it would cost, and read no record.
    synthetic : bool
        The frame is nobody's. A file says so by a file named SYNTHETIC beside it.
    options
        ``unit``: the column that says whose each record is (each record is a unit if not given); ``max_per_unit``: how
        many records of one unit count, 1 if not given, of those with more some chosen by a hash.
        Codes of columns: ``keys``, public CSV files with a column of the same name; ``domains``, by column a list of
        codes, or codes with labels; ``keys_public``: the values that occur are declared to be public.
        The loss for one unit added or removed: ``epsilon`` alone (pure differential privacy), ``rho`` (zCDP), or
        ``epsilon`` at ``delta`` (zCDP with the largest rho that keeps within it).
        ``others``: what values are called that are none of the codes or bounds, which are then counted so; or that by
        column. Of text: ``separator``, ``encoding``, ``decimal`` (docs/tables.md).
        ``totals``: tables of each column alone and the total, too, as sums of the noisy cells.
        All others are those of `run`.

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
    from yupana.products.described.count import LOSS, RECORDS, TEXT, plan_of, read_question

    given = {name: value for name, value in options.items() if value is not None}
    asked = {name: given.pop(name) for name in [*given] if name in declared(CountTerms)}
    places = [data] if isinstance(data, str | Path) else []
    if out is not None:
        out_of(out, *places, overwrite=given.get("overwrite", False))
    loss = {str(name): asked.pop(name) for name in LOSS if name in asked}
    text = {str(name): asked.pop(name) for name in TEXT if name in asked}
    question = read_question(by, most=asked.pop("max_per_unit", 1), loss=loss, text=text, **asked)
    if dry_run:
        confidence = given.get("confidence")
        return plan_of(question, None if confidence is None else confidence_of(confidence))
    if out is None:
        raise ConfigError("out: name the folder of the release; dry_run tells the cost without one")
    from yupana.confidential.described.one_file import occurring, one_file

    memory = bytes_of(given.get("memory"))
    with one_file(data, RECORDS, Path(out), synthetic=synthetic, seeded="seed" in given, memory=memory) as folder:
        found = (
            occurring(folder, question.to_look_up, question.columns, memory, question.dialect)
            if question.to_look_up
            else {}
        )
        return run("tables", question.document(found), folder, out, **given)
