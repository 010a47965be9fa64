"""What is asked of a release, and made of one; no record is seen but by `empirical_loss`."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Literal, Unpack, overload

from yupana.errors import ConfigError, OutputError
from yupana.files.arrow import Findings
from yupana.interface.arguments import ask_passphrase, checked, folder_of, out_of, path_of, paths_of
from yupana.interface.commands import (
    AddedIntervalOptions,
    AtlasOptions,
    CheckOptions,
    CoterminousOptions,
    DistrictOptions,
    EstimateOptions,
    ExportOptions,
    IntervalOptions,
    LossOptions,
    PlOptions,
    ReportOptions,
    SignOptions,
    SuppressOptions,
)
from yupana.interface.options import Place, Places
from yupana.interface.reading import terms_of
from yupana.progress import Listener, Progress, listening
from yupana.release.release import PARTS_ENDING, ReleaseFolder

if TYPE_CHECKING:
    from yupana.atlas.one_file import InlineAtlas
    from yupana.atlas.site import AtlasRequest
    from yupana.audit.empirical.loss import LossFinding, LossRequest
    from yupana.estimate.areas.released import AreaList
    from yupana.estimate.results import AreaIntervals, DistrictEstimates, Intervals
    from yupana.files.regular import NewFile
    from yupana.products.product import Checked
    from yupana.report.certificate import Certificate


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

    return Release.of(open_folder(path_of("folder", folder), confidential=True))


@checked
def check(
    release: "Release | Place", *, progress: Listener | bool = False, **options: Unpack[CheckOptions]
) -> "Checked":
    """Check a release against its manifest, plan and configuration, or an export against its release.

    Parameters
    ----------
    release : Release, str or Path
        Or the folder of an export.
    progress
        As of `run`.
    options
        {options}

    Returns
    -------
    Checked
        ``wrong`` has what does not hold, in words, and ``unchecked`` what could not be compared; a release is sound if
        ``wrong`` is empty.

    Raises
    ------
    OutputError
        If it is no release.
    InputError, ConfigError
        If the file of signers cannot be read, or the extra ``sign`` is not installed.

    Source
    ------
    docs/manifest.md, docs/signing.md
    """
    from yupana.products.gate import check_release
    from yupana.release.release import read_release
    from yupana.release.signature import verify_release

    folder, terms = folder_of(release), terms_of(CheckOptions, options)
    opened = read_release(folder, confidential=True)
    signature = verify_release(opened, terms["signers"])
    if terms["source"] is not None and opened.product != "export":
        raise ConfigError(f"source (--release) is for exports, and {folder} holds {opened.product}")
    if opened.product == "export":
        from yupana.report.export.publish import check_export

        with listening(progress, "check") as tell:
            found = check_export(folder, terms["source"], tell)
    elif opened.product == "certificate":
        from yupana.report.certificate import check_certificate

        found = check_certificate(folder)
    else:
        found = check_release(folder, terms["inputs"])
    wrong, unchecked = (*found.wrong, *signature.wrong), (*found.unchecked, *signature.unchecked)
    return replace(found, wrong=wrong, unchecked=unchecked, signed="" if wrong else signature.signed)


@checked
def sign(release: "Release | Place", key: Place | None = None, **options: Unpack[SignOptions]) -> Path:
    """Sign a release with an SSH key, so that `check` tells one that was changed or forged.

    If the key has a passphrase, it is asked for on the terminal.

    Parameters
    ----------
    release : Release, str or Path
        Of which `check` finds nothing wrong.
    key : str or Path, optional
        A private key: Ed25519, ECDSA or RSA. Without one what is to be signed is written, and ``ssh-keygen -Y sign``
        signs it.
    options
        {options}

    Returns
    -------
    Path
        The signature, or without a key the statement that is to be signed.

    Raises
    ------
    OutputError
        If the release does not hold together, is CONFIDENTIAL or signed, or cannot be written to.
    InputError
        If the key is none, others can read it, or its passphrase is wrong.
    ConfigError
        If the signer is no name, or the extra ``sign`` is not installed.

    Source
    ------
    docs/signing.md
    """
    from yupana.release.signature import sign_release

    folder, terms = folder_of(release), terms_of(SignOptions, options)
    if wrong := check(folder).wrong:
        raise OutputError("\n  ".join([f"{folder} does not hold together, and is not signed:", *wrong]))
    return sign_release(folder, None if key is None else path_of("key", key), ask_passphrase, **terms)


if TYPE_CHECKING:  # `typing` keeps what it has seen overloaded to the end, and the database would complain of it

    @overload
    def interval(
        release: "Release | Place",
        *queries: str,
        query: str | Sequence[str] | None = None,
        area: None = None,
        **options: Unpack[IntervalOptions],
    ) -> "Intervals": ...

    @overload
    def interval(
        release: "Release | Place",
        *queries: str,
        query: str | Sequence[str] | None = None,
        area: str | Sequence[str],
        **options: Unpack[IntervalOptions],
    ) -> "AreaIntervals": ...


@checked
def interval(
    release: "Release | Place",
    *queries: str,
    query: str | Sequence[str] | None = None,
    area: str | Sequence[str] | None = None,
    **options: Unpack[IntervalOptions],
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
    options
        {options}

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
        raise ConfigError(f"interval needs a query, such as {_QUERY}; docs/intervals.md has the language")
    for one in queries:
        if not isinstance(one, str):
            raise ConfigError(f"queries: must be texts such as {_QUERY}, and one is of type {type(one).__name__}")
    if area is not None:
        asked = [area] if isinstance(area, str) else list(area)
        pairs = [(place, one) for place in asked for one in queries]
        return intervals(release, pairs, **options)
    terms = terms_of(IntervalOptions, options)
    if terms["areas"] or terms["encoding"]:
        raise ConfigError("areas: files of areas are for queries of areas; name some with area='place=1714000'")
    from yupana.estimate.intervals.query_intervals import intervals as found

    return found(folder_of(release), queries, confidence=terms["confidence"], noisy=terms["noisy"])


_QUERY = "'sum(PH1_num[REGION_ID=06])'"
_PAIR = ("place=1714000", "total")


@checked
def intervals(
    release: "Release | Place", questions: "Place | Sequence[tuple[str, str]]", **options: Unpack[IntervalOptions]
) -> "AreaIntervals":
    """Answer many queries of areas of a TopDown release at once.

    Parameters
    ----------
    release : Release, str or Path
    questions : sequence of (area, query), or the path of a table with these columns
        As of `interval`. Other columns of a table stay with their rows.
    options
        {options}

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
    terms = terms_of(IntervalOptions, options)
    files = terms.pop("areas")
    return area_intervals(folder_of(release), asked.questions, files=files, others=asked.others, **terms)


@checked
def areas(release: "Release | Place", *, files: Places | None = None, encoding: str | None = None) -> "AreaList":
    """List the areas of a TopDown release, and what can be counted of them.

    Parameters
    ----------
    release : Release, str or Path
    files : path or sequence of paths, optional
        As ``areas`` of `interval`.
    encoding : str, optional
        Of their text, such as cp1252, if that is not UTF-8.

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
    from yupana.estimate.areas.released import listed_areas

    return listed_areas(folder_of(release), paths_of("files", files), encoding)


@checked
def districts(
    release: "Release | Place", plan: Place, noisy: Place, **options: Unpack[DistrictOptions]
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
    options
        {options}

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
    from yupana.estimate.districts import districts as found
    from yupana.geography.district_plan import PlanOptions

    terms = terms_of(DistrictOptions, options)
    level = terms.pop("chance")
    reading = PlanOptions(**{name: terms.pop(name) for name in ("encoding", "unassigned", "crosswalk")})
    places = folder_of(release), path_of("plan", plan), path_of("noisy", noisy)
    return found(*places, level=level, reading=reading, **terms)


@checked
def estimate(
    release: "Release | Place", out: Place, *, progress: Listener | bool = False, **options: Unpack[EstimateOptions]
) -> "Release":
    """Make the final tables of the S-DHC from the noisy measurements of PHSafe, with credible intervals.

    Parameters
    ----------
    release : Release, str or Path
        Of PHSafe.
    out, progress
        As of `run`.
    options
        {options}

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

    terms = terms_of(EstimateOptions, options)
    other, combination = terms["puerto_rico"], terms.pop("combine")
    sources = [folder_of(release), *([] if other is None else [other])]
    made = out_of(out, *sources, overwrite=terms["overwrite"])
    request = EstimateRequest(sources[0], made, combination=combination, **terms)
    with listening(progress, "estimate") as tell:
        publish_estimates(request, tell)
    return open_release(made)


@checked
def topdown_intervals(
    release: "Release | Place",
    out: Place,
    *,
    progress: Listener | bool = False,
    **options: Unpack[AddedIntervalOptions],
) -> "Release":
    """Write a release of TopDown again with an interval for every count of its tabulation and tables.

    It is made of the release alone, or of its noisy measurements, so it costs no privacy.

    Parameters
    ----------
    release : Release, str or Path
    out, progress
        As of `run`.
    options
        {options}

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

    terms = terms_of(AddedIntervalOptions, options)
    made = out_of(out, folder_of(release), overwrite=terms["overwrite"])
    request = IntervalRequest(release=folder_of(release), out=made, **terms)
    with listening(progress, "topdown intervals") as tell:
        publish_intervals(request, Stopwatch(tell), tell)
    return open_release(made)


@checked
def combine_coterminous(
    release: "Release | Place",
    reference: Place,
    out: Place,
    *,
    progress: Listener | bool = False,
    **options: Unpack[CoterminousOptions],
) -> "Release":
    """Let areas of the same blocks show the same numbers, in a release of SafeTab.

    Parameters
    ----------
    release : Release, str or Path
        Of SafeTab, or one of its tables.
    reference : str or Path
        The reference file of blocks, GRF-C.txt.
    out, progress
        As of `run`.
    options
        {options}

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
    from yupana.estimate.coterminous import make_coterminous

    terms = terms_of(CoterminousOptions, options)
    made, blocks = out_of(out, folder_of(release), overwrite=terms["overwrite"]), path_of("reference", reference)
    with listening(progress, "coterminous") as tell:
        make_coterminous(folder_of(release), blocks, made, announce=tell, **terms)
    return open_release(made)


@checked
def suppress(
    release: "Release | Place",
    policy: Place,
    out: Place,
    *,
    progress: Listener | bool = False,
    **options: Unpack[SuppressOptions],
) -> "Release":
    """Write X for counts that cannot be true, in a release of SafeTab.

    Parameters
    ----------
    release : Release, str or Path
        Of SafeTab, or one of its tables.
    policy : str or Path
        Rules and reason codes (TOML).
    out, progress
        As of `run`.
    options
        {options}

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

    terms = terms_of(SuppressOptions, options)
    made, rules = out_of(out, folder_of(release), overwrite=terms["overwrite"]), path_of("policy", policy)
    with listening(progress, "suppress") as tell:
        suppress_release(folder_of(release), rules, made, announce=tell, **terms)
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
    from yupana.report.certificate import certify

    if not releases:
        raise ConfigError("certificate needs a release")
    opened = [open_release(folder_of(release)) for release in releases]
    folders = [part.folder for release in opened for part in (*release.parts.values(),) or (release,)]
    return certify(folders, household_cap)


@checked
def report(
    release: "Release | Place", to: Place, *, progress: Listener | bool = False, **options: Unpack[ReportOptions]
) -> Path:
    """Write the atlas of a release as one HTML file of at most 8 MB. Of a spine: how far areas are.

    If not all kinds of areas fit, it holds those with the fewest areas, and says which are not in it.

    Parameters
    ----------
    release : Release, str or Path
    to : str or Path
        The page; it may not lie in the release.
    progress : callable or bool
        As of `run`.
    options
        {options}

    Returns
    -------
    Path
        The page.

    Raises
    ------
    OutputError
        If it is no release with a plan, or the page cannot be written.
    InputError, ConfigError
        If a file has no boundaries of the release, or of a spine, charts cannot be drawn.

    Source
    ------
    docs/atlas.md
    """
    from yupana.products import PRODUCTS
    from yupana.products.gate import open_checked

    claim_report(to, [])  # before the work; whether it may lie in the folder is told by what that holds
    opened = open_checked(folder_of(release), confidential=True)
    product = opened.product.removesuffix(PARTS_ENDING)
    terms = terms_of(ReportOptions, options)
    shapes = terms["boundaries"]
    if opened.product == "spine":
        from yupana.report.spine import write_report as write_spine_report

        if len(shapes) > 1:
            raise ConfigError("boundaries: the report of a spine has one map; name one file")
        with listening(progress, "report") as tell:
            return write_spine_report(opened.folder, shapes[0] if shapes else None, path_of("to", to), tell)
    if product not in PRODUCTS:
        raise OutputError(
            f"{opened.folder} holds {opened.product}, of which there is no report; name a release or a spine"
        )
    if terms["codes"] is not None and not product.startswith("safetab"):
        raise ConfigError(f"codes are for releases of SafeTab, and {opened.folder} holds {product}")
    page = claim_report(to, [opened.folder], confidential=opened.status == "CONFIDENTIAL")
    with listening(progress, "report") as tell:
        write_report(page, opened.intact(), tell, shapes, terms["codes"])
    return path_of("to", to)


if TYPE_CHECKING:  # as of `interval`

    @overload
    def atlas(
        release: "Release | Place | Sequence[Release | Place]", to: Place, **options: Unpack[AtlasOptions]
    ) -> Path: ...

    @overload
    def atlas(release: "Release | Place", to: None = None, **options: Unpack[AtlasOptions]) -> "InlineAtlas": ...


@checked
def atlas(
    release: "Release | Place | Sequence[Release | Place]", to: Place | None = None, **options: Unpack[AtlasOptions]
) -> "Path | InlineAtlas":
    """Make the atlas of a release: pages on which anybody reads its tables, error first.

    Parameters
    ----------
    release : Release, str or Path
        Also of several parts; or a sequence of releases, each of which has pages of its own below the first.
    to : str or Path, optional
        A folder that does not exist or is empty. Its ``index.html`` opens from disk and from any web server. Without
        it the atlas shows itself in a notebook.
    options
        {options}

    Returns
    -------
    Path or InlineAtlas
        The first page; or what a notebook shows, the kinds with the fewest areas that fit into 8 MB.

    Raises
    ------
    OutputError
        If it is no sound release, is CONFIDENTIAL, has more rows than a static site may, has no table in common with
        the other, or the folder cannot be used.

    Source
    ------
    docs/atlas.md
    """
    from yupana.atlas.one_file import inline_atlas
    from yupana.atlas.site import write_site

    requests = atlas_requests(release, **options)
    if to is None:
        if len(requests) > 1:
            raise ConfigError("to: the atlas of several releases needs a folder")
        return inline_atlas(requests[0])
    reads = [one for request in requests for one in (request.release, request.other) if one is not None]
    overwrite = terms_of(AtlasOptions, options)["overwrite"]
    return write_site(out_of(to, *reads, overwrite=overwrite, name="to"), requests, overwrite=overwrite)


def atlas_requests(
    release: "Release | Place | Sequence[Release | Place]", **options: Unpack[AtlasOptions]
) -> "list[AtlasRequest]":
    """What pages of each release are made of.

    Raises
    ------
    ConfigError
        If several releases are to be compared, or drawn by one file of boundaries.
    """
    from yupana.atlas.site import AtlasRequest

    releases = [release] if isinstance(release, str | Path | ReleaseFolder) else list(release)
    if not releases:
        raise ConfigError("atlas needs a release")
    terms = terms_of(AtlasOptions, options)
    if len(releases) > 1 and (terms["boundaries"] or terms["other"] is not None):
        raise ConfigError("boundaries and another release to compare with (--with) go with one release; name one")
    shown = {name: terms[name] for name in ("boundaries", "other", "kinds")}
    return [AtlasRequest(folder_of(one), **shown) for one in releases]


@checked
def write_pl(release: Place, out: Place, **options: Unpack[PlOptions]) -> "Release":
    """Write the files of P.L. 94-171 of every state, from published tables alone.

    Parameters
    ----------
    release : str or Path
        A folder with the release of persons in ``persons`` and that of housing units in ``units``.
    out : str or Path
        A folder that does not exist or is empty.
    options
        {options}

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

    terms = terms_of(PlOptions, options)
    made = out_of(out, release, overwrite=terms["overwrite"])
    write_release_files(path_of("release", release), made, **terms)
    return open_release(made)


@checked
def export(
    release: "Release | Place",
    out: Place,
    *,
    to: Literal["workbook", "sdmx", "labelled"],
    progress: Listener | bool = False,
    **options: Unpack[ExportOptions],
) -> Path:
    """Write a release in a form that offices publish; made of the release alone, it costs no privacy.

    Parameters
    ----------
    release : Release, str or Path
        With a codebook.
    out : str or Path
        A folder that does not exist or is empty.
    to : "workbook", "sdmx" or "labelled"
        A workbook that follows the guidance on accessible spreadsheets; SDMX-CSV 2.0 with a structure message in
        SDMX-ML 3.0; or CSV and Parquet with labels beside codes.
    progress
        As of `run`.
    options
        {options}

    Returns
    -------
    Path
        The folder, which `check` compares with the release.

    Raises
    ------
    ConfigError
        If an option does not go with the form, or the extra ``publish`` is not installed.
    OutputError
        If the release does not hold together, is CONFIDENTIAL, or is too large for a workbook.

    Source
    ------
    docs/export.md
    """
    from yupana.report.export.publish import ExportRequest, publish_export

    terms = terms_of(ExportOptions, options)
    made = out_of(out, folder_of(release), overwrite=terms["overwrite"])
    request = ExportRequest(
        folder_of(release), made, to, tuple(terms["tables"]), terms["split"], terms["agency"], terms["overwrite"]
    )
    with listening(progress, "export") as tell:
        publish_export(request, tell)
    return made


@checked
def empirical_loss(
    release: "Release | Place",
    truth: "Release | Place",
    *,
    queries: Sequence[str] | None = None,
    **options: Unpack[LossOptions],
) -> "Findings[LossFinding]":
    """Estimate the privacy loss that a release shows beside its truth; CONFIDENTIAL, for it reads true counts.

    Parameters
    ----------
    release, truth : Release, str or Path
        What `run` and `exact` made of the same records.
    queries : sequence of str, optional
        Of a release of TopDown: which queries to look at; all if not given.
    options
        {options}

    Returns
    -------
    Findings of LossFinding
        A sequence with the Arrow C stream interface, one for each table and level: ``finding.loss`` is an epsilon,
        None where it cannot be told.

    Raises
    ------
    ConfigError, InputError, OutputError
        If one is no release, or their counts do not match.

    Source
    ------
    docs/audits.md
    """
    from yupana.audit.empirical.loss import COLUMNS, examine_all
    from yupana.confidential.audit_counts import COUNTS, by_geolevel, release_and_truth

    request = loss_request(**options)
    noisy, exact_counts = folder_of(release), folder_of(truth)
    if (noisy / COUNTS).is_dir():
        found = examine_all(list(by_geolevel(noisy, exact_counts, queries)), request)
        return Findings(_LOSSES, found, COLUMNS)
    if queries is not None:
        raise ConfigError("queries are for releases of TopDown")
    return Findings(_LOSSES, examine_all(list(release_and_truth(noisy, exact_counts)), request), COLUMNS)


_LOSSES = "losses of series; confidential"


def loss_request(**options: Unpack[LossOptions]) -> "LossRequest":
    """How an empirical privacy loss is to be estimated.

    Raises
    ------
    ConfigError
        If an option is none.
    """
    from yupana.audit.empirical.loss import LossRequest

    given = {name: value for name, value in terms_of(LossOptions, options).items() if value is not None}
    return LossRequest(**given | ({"confidence": float(given["confidence"])} if "confidence" in given else {}))


def claim_report(page: Place, homes: Sequence[Place], *, confidential: bool = False) -> "NewFile":
    """A page that may lie in none of these folders, claimed before the work."""
    from yupana.report.page import CONFIDENTIAL, PUBLIC, claim_page

    places = [Path(home) for home in homes]
    mode = CONFIDENTIAL if confidential else PUBLIC
    return claim_page(path_of("report", page), places, mode=mode, has_charts=False)


def write_report(
    page: "NewFile", release: ReleaseFolder, tell: Progress, boundaries: Sequence[Path] = (), codes: Path | None = None
) -> None:
    """Write the atlas of a release into the file that was claimed, and tell what it has no room for."""
    from yupana.atlas.one_file import inline_atlas
    from yupana.atlas.site import AtlasRequest

    tell("making the page")
    request = AtlasRequest(release.folder, tuple(boundaries), confidential=True, codes=codes)
    made = inline_atlas(request)
    page.put(made.page)
    if made.told:
        tell(f"{page.path} {made.told}")


class Release(ReleaseFolder):
    """A release: its tables, its plan and what can be asked of it. `open_release` and runs give it.

    ``release["PH1_num"]`` is a table with the Arrow C stream interface, and ``list(release)`` the names of all.
    """

    check = check
    sign = sign
    interval = interval
    intervals = intervals
    areas = areas
    districts = districts
    estimate = estimate
    topdown_intervals = topdown_intervals
    combine_coterminous = combine_coterminous
    suppress = suppress
    certificate = certificate
    report = report
    atlas = atlas
    write_pl = write_pl
    export = export
    empirical_loss = empirical_loss

    @classmethod
    def of(cls, folder: ReleaseFolder) -> "Release":
        """What can be asked of a folder that passed the gate."""
        return cls(folder.folder, folder.manifest, folder.sha256)

    @cached_property
    def parts(self) -> "Mapping[str, Release]":
        """The releases that it is made of, by name, such as ``persons`` and ``units``; none of most."""
        return {name: Release.of(part) for name, part in super().parts.items()}
