"""What is asked of a release, and made of one; no record is seen but by `empirical_loss`."""

from collections.abc import Mapping, Sequence
from fractions import Fraction
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, overload

from yupana.errors import ConfigError, OutputError
from yupana.interface.arguments import (
    checked,
    confidence_of,
    out_of,
    path_if_given,
    path_of,
    paths_of,
    whole_number,
)
from yupana.interface.options import Exact, Place, Places, SetupOptions
from yupana.progress import Listener, Step, announcing, listening
from yupana.release.release import ReleaseFolder
from yupana.topdown.interval_terms import IntervalMethod

if TYPE_CHECKING:
    from yupana.audit.empirical.loss import LossFinding
    from yupana.estimate.areas.area_list import AreaList
    from yupana.estimate.results import AreaIntervals, DistrictEstimates, Intervals
    from yupana.files.regular import NewFile
    from yupana.interface.configured import Configured
    from yupana.products.product import Checked
    from yupana.release.tables import Format
    from yupana.report.certified import Certificate


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

    folder = folder_of(release)
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

    return found(folder_of(release), queries, confidence=_level(confidence), noisy=path_if_given("noisy", noisy))


_PAIR = ("place=1714000", "total")


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
        folder_of(release),
        asked.questions,
        files=paths_of("areas", areas),
        confidence=_level(confidence),
        noisy=path_if_given("noisy", noisy),
        others=asked.others,
    )


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

    return listed_areas(folder_of(release), paths_of("files", files))


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
        folder_of(release),
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

    sources = [folder_of(one) for one in (release, puerto_rico) if one is not None]
    made = out_of(out, *sources, overwrite=overwrite)
    request = EstimateRequest(
        release=folder_of(release),
        out=made,
        puerto_rico=None if puerto_rico is None else folder_of(puerto_rico),
        confidence=confidence_of(confidence),
        method=method,
        combination=combine,
        format=format,
        overwrite=overwrite,
        publish=publish,
    )
    with listening(progress, "estimate") as tell:
        publish_estimates(request, announcing(tell))
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
    made = out_of(out, folder_of(release), overwrite=overwrite)
    request = IntervalRequest(
        release=folder_of(release),
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

    made = out_of(out, folder_of(release), overwrite=overwrite)
    with listening(progress, "coterminous") as tell:
        make_coterminous(
            folder_of(release),
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

    made = out_of(out, folder_of(release), overwrite=overwrite)
    with listening(progress, "suppress") as tell:
        suppress_release(
            folder_of(release),
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
    opened = [open_release(folder_of(release)) for release in releases]
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

    claim_report(to, [])  # before the work; whether it may lie in the folder is told by what that holds
    opened = open_checked(folder_of(release), confidential=True).alone()
    given = [boundaries] if isinstance(boundaries, str | Path) else list(boundaries or ())
    shapes = [path_of("boundaries", place) for place in given]
    if opened.product == "spine":
        from yupana.report.spine import write_report as write_spine_report

        if len(shapes) > 1:
            raise ConfigError("boundaries: the report of a spine has one map; name one file")
        with listening(progress, "report") as tell:
            return write_spine_report(opened.folder, shapes[0] if shapes else None, path_of("to", to), announcing(tell))
    if shapes and opened.product != "topdown":
        raise ConfigError("boundaries are for the maps of TopDown and of spines")
    if opened.product not in PRODUCTS:
        raise OutputError(
            f"{opened.folder} holds {opened.product}, of which there is no report; name a release or a spine"
        )
    from yupana.interface.configured import setup

    public: SetupOptions = {} if codes is None else {"codes": codes}
    asked = setup(opened.product, opened.folder / "manifest.json", **public)
    page = claim_report(to, [opened.folder], confidential=opened.status == "CONFIDENTIAL")
    write_report(page, asked, opened.intact(), shapes)
    return path_of("to", to)


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
    from yupana.confidential.audit_counts import COUNTS, by_geolevel, release_and_truth

    given = {"bandwidth": bandwidth, "percentile": percentile, "replicates": replicates, "confidence": confidence}
    more: dict[str, Any] = {name: value for name, value in given.items() if value is not None}
    request = LossRequest(mode, **more)
    noisy, exact_counts = folder_of(release), folder_of(truth)
    if (noisy / COUNTS).is_dir():
        return examine_all(list(by_geolevel(noisy, exact_counts, queries)), request)
    if queries is not None:
        raise ConfigError("queries are for releases of TopDown")
    return examine_all(list(release_and_truth(noisy, exact_counts)), request)


def claim_report(page: Place, homes: Sequence[Place], *, confidential: bool = False) -> "NewFile":
    """A page that may lie in none of these folders, claimed before the work."""
    from yupana.report.place import CONFIDENTIAL, PUBLIC, claim_page

    places = [Path(home) for home in homes]
    return claim_page(path_of("report", page), places, mode=CONFIDENTIAL if confidential else PUBLIC)


def write_report(page: "NewFile", asked: "Configured", release: ReleaseFolder, boundaries: Sequence[Path] = ()) -> None:
    """Write the page on a release into the file that was claimed."""
    from yupana.report.release import write_release_report
    from yupana.report.topdown_release import write_topdown_report

    if asked.product.key == "topdown":
        write_topdown_report(page, release, asked.config, asked.plan(), boundaries)
        return
    # Tables of detailed groups can be too large to be read at once; their report shows no counts.
    is_large = "parameters" in asked.listing.takes or getattr(asked.config, "blocks", None) is not None
    tables = {} if is_large else {table: release.columns(table) for table in release}
    write_release_report(page, asked.plan(), asked.production(), release.manifest, tables)


def folder_of(release: "Release | Place") -> Path:
    """Where a release lies."""
    return release.folder if isinstance(release, ReleaseFolder) else path_of("release", release)


def _level(value: Exact | None) -> Fraction | None:
    return None if value is None else confidence_of(value)


class Release(ReleaseFolder):
    """A release: its tables, its plan and what can be asked of it. `open_release` and runs give it.

    ``release["PH1_num"]`` is a table with the Arrow C stream interface, and ``list(release)`` the names of all.
    """

    check = check
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
    write_pl = write_pl
    empirical_loss = empirical_loss

    @classmethod
    def of(cls, folder: ReleaseFolder) -> "Release":
        """What can be asked of a folder that passed the gate."""
        return cls(folder.folder, folder.manifest, folder.sha256)

    @cached_property
    def parts(self) -> "Mapping[str, Release]":
        """The releases that it is made of, by name, such as ``persons`` and ``units``; none of most."""
        return {name: Release.of(part) for name, part in super().parts.items()}
