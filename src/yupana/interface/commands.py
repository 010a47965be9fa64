"""The commands beside the verbs of configured products, each declared once: what it is, and what it takes.

What a function of Python takes, too, is a class: its keywords are read, checked and given their defaults by it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal, TypeAlias, TypedDict, get_args

from yupana.geography.settings import AREA_TYPES, KINDS, MECHANISMS, PRODUCTIONS, Grouping
from yupana.interface.configured import Configured
from yupana.interface.options import (
    CHANGES,
    OF_ACCOUNT,
    OF_EXECUTION,
    OF_MEASUREMENTS,
    OPTIONS,
    CountTerms,
    Exact,
    Option,
    Overwrite,
    Place,
    Places,
    SetupOptions,
    declared,
    of_stage,
)
from yupana.plan.measurement import Accounting
from yupana.topdown.interval_terms import REPLICATES

if TYPE_CHECKING:
    from yupana.release.release import ReleaseFolder

Format: TypeAlias = Annotated[Literal["csv", "parquet"], Option("form of the tables (csv)", default="csv")]


class CheckOptions(TypedDict, total=False):
    """How a release is checked."""

    inputs: Annotated[Place | None, Option("public files of the run, to compare with", metavar="FOLDER")]
    source: Annotated[
        Place | None,
        Option(
            "the release that an export was made of (default: the folder of that name beside the export)",
            metavar="RELEASE",
            flag="release",
        ),
    ]
    signers: Annotated[Place | None, Option("verify the signature: who may sign, as of ssh-keygen (docs/signing.md)")]


class ExportOptions(TypedDict, total=False):
    """How a release is exported."""

    tables: Annotated[
        Sequence[str] | None, Option("these tables alone (all that hold numbers)", metavar="TABLE,...", default=())
    ]
    split: Annotated[
        str | None, Option("a workbook for each value of a column, such as REGION_TYPE", metavar="COLUMN", default="")
    ]
    agency: Annotated[str | None, Option("who maintains the structures of SDMX (YUPANA)", metavar="ID", default="")]
    overwrite: Overwrite


class SignOptions(TypedDict, total=False):
    """What a release is signed as, and with what."""

    signer: Annotated[str | None, Option("who signs, as --signers names them, such as releases@example.org")]
    beside: Annotated[
        Places | None,
        Option(
            "sign a page, an export or a folder of these, too, which is published with the release; may be repeated",
            default=(),
        ),
    ]
    overwrite: Annotated[bool, Option("replace an earlier signature", default=False)]


class _MapOptions(TypedDict, total=False):
    """What maps are drawn of."""

    boundaries: Annotated[
        Places | None,
        Option(
            "boundaries of areas for a map, as a zipped shapefile such as TIGER/Line, GeoJSON or TopoJSON; may be "
            "repeated",
            default=(),
        ),
    ]


class ReportOptions(_MapOptions, total=False):
    """What a page on a release shows beside it."""

    codes: Annotated[Place | None, Option("the files of codes and groups of SafeTab", metavar="FOLDER")]


class AtlasOptions(_MapOptions, total=False):
    """What an atlas shows."""

    other: Annotated[
        "ReleaseFolder | Place | None",
        Option("a release to compare it with, number by number", "release", "OTHER", flag="with"),
    ]
    kinds: Annotated[
        Sequence[str] | None,
        Option("these kinds of areas alone, such as state,county (all)", metavar="KIND,...", default=()),
    ]
    overwrite: Overwrite


_OF_AREAS: Final = Option("encoding of --areas, such as cp1252 (utf-8)", "text")


class IntervalOptions(TypedDict, total=False):
    """What intervals are made of."""

    areas: Annotated[Places | None, replace(OPTIONS["areas"], takes="", stage="plan")]
    encoding: Annotated[str | None, _OF_AREAS]
    confidence: Annotated[
        Exact | None,
        Option("confidence of the intervals (the release's: of its margins, or of areas that of its intervals)"),
    ]
    noisy: Annotated[
        Place | None,
        Option(
            "of a TopDown release: needed for sums, ratios, and what the published tables have no interval of",
            metavar="DIR",
            flag="noisy-measurements",
        ),
    ]


class DistrictOptions(TypedDict, total=False):
    """What districts are held to."""

    rule: Annotated[
        Literal["range", "deviation"],
        Option("largest less smallest district, or the largest difference from the ideal (range)", default="range"),
    ]
    tolerance: Annotated[
        Exact | None, Option("tolerance as a share of the ideal (10% for a range, 5% for a deviation)", "share", "T")
    ]
    chance: Annotated[Exact | None, Option("that a tightened rule keeps (95%)", default=Fraction(19, 20))]
    query: Annotated[str | None, Option("what is counted, such as P0030001 (total)", metavar="Q", default="total")]
    confidence: Annotated[Exact | None, Option("confidence of intervals (that of the release's margins)")]
    unassigned: Annotated[
        str | None,
        Option("the district of blocks in none, such as ZZ, which are kept apart, as are blanks", metavar="CODE"),
    ]
    crosswalk: Annotated[Place | None, Option("a table of blocks as PLAN has them (from) and as the release does (to)")]
    encoding: Annotated[str | None, Option("encoding of PLAN and crosswalk, such as cp1252 (utf-8)")]


class EstimateOptions(TypedDict, total=False):
    """How final tables are made of the noisy measurements of PHSafe."""

    puerto_rico: Annotated[
        "ReleaseFolder | Place | None",
        Option("the release of Puerto Rico, for tables that show both", "release", "RELEASE"),
    ]
    confidence: Annotated[Exact | None, Option("confidence of the credible intervals (0.9)", default=Fraction(9, 10))]
    method: Annotated[Literal["exact", "original"], Option("original: round as the Census Bureau did", default="exact")]
    combine: Annotated[
        Literal["independent", "joint"],
        Option(
            "joint: use all measurements of the same people together (docs/phsafe-estimates.md)", default="independent"
        ),
    ]
    publish: Annotated[
        bool, Option("refuse a release that is NOT FOR RELEASE; else OUT is marked so, too", default=False)
    ]
    format: Format
    overwrite: Overwrite


class AddedIntervalOptions(TypedDict, total=False):
    """How a release of TopDown is given intervals."""

    method: Annotated[
        Literal["least-squares", "monte-carlo"],
        Option("(least-squares where measurements are given, else monte-carlo)"),
    ]
    replicates: Annotated[int | None, Option(f"runs on the published counts for Monte Carlo ({REPLICATES})")]
    confidence: Annotated[Exact | None, Option("(that of the release's margins)")]
    noisy_measurements: Annotated[
        Place | None, Option("those of the run that made the release, for least squares", metavar="DIR")
    ]
    nmf: Annotated[Place | None, Option("the same as noisy measurement files", metavar="DIR")]
    overwrite: Overwrite


class PlOptions(TypedDict, total=False):
    """How the files of P.L. 94-171 are written."""

    names: Annotated[
        Place | None, Option("a geographic header of the Bureau: areas that it has get its names and other fields")
    ]
    overwrite: Overwrite


class MeasurementOptions(TypedDict, total=False):
    """Which noisy measurements are estimated, and with what."""

    dataset: Annotated[str | None, Option("such as US_Person_PL_PROD, where there are several")]
    config: Annotated[
        Place | None, Option("queries, and the order of their passes (default: those of the dataset)", "name", "CONFIG")
    ]
    states: Annotated[
        Sequence[str] | None, Option("these alone; with a digit before, one branch", metavar="50,...", default=())
    ]
    geography: Annotated[Place | None, Option("a reference file of blocks, for places and the like", metavar="GRFC")]
    totals: Annotated[Place, Option("exact totals of states, which the files lack: columns state and total")]
    overwrite: Overwrite


class EstimatedOptions(MeasurementOptions, SetupOptions, total=False):
    """All that `estimate_measurements` takes beside its folders."""


class CoterminousOptions(TypedDict, total=False):
    """How areas of the same blocks are made to show the same numbers."""

    housing_units: Annotated[Place | None, Option("housing units by block: compare only blocks that have some")]
    zero_suppression: Annotated[
        Exact | None,
        Option(
            "then leave out small totals of SafeTab-P, of all areas of a set or of none; needs --parameters",
            "share",
            "CHANCE",
        ),
    ]
    parameters: Annotated[Place | None, Option("the Bureau's parameter folder with the iterations", metavar="FOLDER")]
    overwrite: Overwrite


class SuppressOptions(TypedDict, total=False):
    """How counts that cannot be true are suppressed."""

    parameters: Annotated[Place | None, Option("the Bureau's parameter folder with the iterations", metavar="FOLDER")]
    overwrite: Overwrite


class CensusOptions(TypedDict, total=False):
    """How a census is invented."""

    states: Annotated[Sequence[str] | None, Option("state codes (default: the 50 states and DC)", metavar="06,17")]
    seed: Annotated[int | None, Option("makes the census reproducible", "seed")]
    format: Format


class LossOptions(TypedDict, total=False):
    """How an empirical privacy loss is estimated."""

    mode: Annotated[
        Literal["sound", "published"], Option("with an interval (sound), or as the paper has it", default="sound")
    ]
    bandwidth: Annotated[float | None, Option("bandwidth in standard deviations (0.5; published 0.1)", metavar="F")]
    percentile: Annotated[
        float | None,
        Option("percentile of the errors where the range of the curve ends (95)", metavar="P", flag="range"),
    ]
    replicates: Annotated[int | None, Option("how often counts are drawn again for the interval (100)")]
    confidence: Annotated[float | None, Option("confidence of the interval (0.95)", "level")]


@dataclass(frozen=True, slots=True, repr=False)
class Argument(Option):
    """What is told by its place; ``many`` is ``?`` where it may be missing, and ``+`` where there may be several."""

    kind: Any = "path"
    many: str = ""


@dataclass(frozen=True, slots=True)
class Command:
    """A command, or a verb of one."""

    about: str  # in a line
    arguments: Mapping[str, Argument] = field(default_factory=dict)  # by name
    options: Mapping[str, Option] = field(default_factory=dict)  # by name
    json: str = ""  # what `--json` prints; empty where there is no such option
    more: str = ""  # in its help in place of what is said in a line
    end: str = ""  # below its help
    product: str = ""  # the product whose words stand for names in braces
    takes: str = ""  # what a product must take to have the verb (`Listing.takes`); empty where all have it


_CONFIG: Final = Argument("{reads}, or a built-in name: {names}", "text", "{source}")
_DATA: Final = Argument("{data}, or s3://BUCKET/PREFIX", "place", "DATA")
OUT: Final = Argument("a folder that does not exist or is empty", metavar="OUT")
_ANSWER: Final = "print the answer as JSON"
_MANIFEST: Final = "print the manifest"
_SPINE: Final = Argument("a folder that spine build made", metavar="SPINE")
_OF_TOPDOWN: Final = Argument("of TopDown", metavar="RELEASE")
_OF_SAFETAB: Final = Argument("a release of SafeTab, or one of its tables", metavar="RELEASE")

_RUN: Final = declared(Configured.run)
_SERVED: Final = {
    "port": Option("0 takes any that is free (0)", "port", default=0),
    "browser": Option("only print the address", "switch", flag="no-browser", default=True),
}

_RELEASES: Final = {
    "check": Command(
        "check a release against its manifest, plan and configuration, or an export against its release",
        {"release": Argument("a release, an export, or a certificate", metavar="RELEASE")},
        declared(CheckOptions),
        json="print what is wrong, and what could not be checked",
    ),
    "export": Command(
        "write a release as a workbook, as SDMX, or as tables with labels",
        {"release": Argument("a release with a codebook", metavar="RELEASE"), "out": OUT},
        {
            "to": Option(
                "an accessible workbook, SDMX-CSV with its structure message, or CSV and Parquet with labels",
                choices=("workbook", "sdmx", "labelled"),
                required=True,
            ),
            **declared(ExportOptions),
        },
        json=_MANIFEST,
    ),
    "sign": Command(
        "sign a release with an SSH key, so that check tells a changed or forged one",
        {"release": Argument("a sound release", metavar="RELEASE")},
        {
            "key": Option(
                "a private key of SSH (default: write what is to be signed, and leave that to ssh-keygen)", "path"
            ),
            **declared(SignOptions),
        },
    ),
    "report": Command(
        "write the atlas of a release as one HTML file of at most 8 MB; of a spine how far areas are from it",
        {
            "release": Argument("a release, or a spine", metavar="RELEASE"),
            "to": Argument("the page", metavar="OUT.html"),
        },
        declared(ReportOptions),
    ),
    "atlas": Command(
        "read releases in the browser: tables, areas, intervals; or write that as a static site",
        {"releases": Argument("a release, or several, each with pages of its own", metavar="RELEASE", many="+")},
        {
            "to": Option("write a static site, which opens from disk, and serve nothing", "path", "FOLDER"),
            **declared(AtlasOptions),
            **_SERVED,
        },
        more="Without --to the pages are served to this machine alone, and the address is printed. Ctrl-C ends it.",
    ),
    "audit certificate": Command(
        "what releases promise, on one page (HTML) and in JSON",
        {
            "releases": Argument(
                "folders with a manifest.json: one, or several of the same census, which are certified together; and "
                "what tables accuracy wrote of the same plan, whose tests of acceptance criteria are told",
                metavar="RELEASE",
                many="+",
            ),
            "out": OUT,
        },
        {
            "household_cap": Option(
                "the most persons in a household, for what several releases promise to one", "whole", "K"
            ),
            "overwrite": _RUN["overwrite"],
        },
        json="print the certificate, too",
    ),
    "interval": Command(
        "intervals for published counts, and for their sums, differences and ratios",
        {"release": Argument("of any product", metavar="RELEASE")},
        {
            "query": Option("what to give an interval of; may be repeated", "texts", "Q"),
            "area": Option(
                "of TopDown: whose counts the queries are of, by code or name (place=1714000, place=Chicago); may "
                "be repeated",
                "texts",
                "KIND=WHICH",
            ),
            "queries": Option("a table of area and query; the answer is a table", "path"),
            "out": Option("write the table there (standard output)", "path"),
            "list": Option(
                "what can be asked: kinds of areas and queries, or all areas of a kind with their names",
                "listing",
                "KIND",
            ),
            **declared(IntervalOptions),
        },
        json=_ANSWER,
        more="Gives intervals for cells of a release, and for their sums, differences, ratios and percentages. Of a "
        "TopDown release it also takes places, districts and other areas, by code or name.",
        end="A query of cells: T04002[REGION_ID=06, ITERATION_CODE=1002, T4_DATA_CELL=3] % T04002[...]\n"
        "A query of an area: total, P0010003, P1 (all of the table) or sum(hispanic*race[hispanic=1]) % total\n"
        "The codebook of the release has columns and codes, docs/intervals.md the language.",
    ),
    "districts": Command(
        "populations of the districts of a plan, and the chance that the true ones are balanced",
        {"release": _OF_TOPDOWN, "plan": Argument("a table of every block and its district", metavar="PLAN")},
        {
            "noisy": Option(
                "those of the run that made the release", "path", "DIR", flag="noisy-measurements", required=True
            ),
            **declared(DistrictOptions),
        },
        json="with the covariance of all districts",
        more="Estimates the populations of the districts of a plan, and the chance that the true ones meet a rule on "
        "balance. Tells how much tighter the rule must be for published counts. docs/districts.md explains the "
        "numbers.",
    ),
    "postprocess coterminous": Command(
        "areas of the same blocks show the same numbers",
        {
            "release": _OF_SAFETAB,
            "reference": Argument("the reference file of blocks, GRF-C.txt", metavar="GRFC"),
            "out": OUT,
        },
        declared(CoterminousOptions),
        json=_MANIFEST,
    ),
    "postprocess suppress": Command(
        "write X for counts that cannot be true",
        {"release": _OF_SAFETAB, "policy": Argument("rules and reason codes (TOML)", metavar="POLICY"), "out": OUT},
        declared(SuppressOptions),
        json=_MANIFEST,
    ),
    "phsafe estimate": Command(
        "from noisy measurements to published tables with intervals",
        {"release": Argument("a release of PHSafe", metavar="RELEASE"), "out": OUT},
        declared(EstimateOptions),
        json=_MANIFEST,
    ),
    "topdown intervals": Command(
        "the same release with an interval for every count, from itself or from its noisy measurements",
        {"release": _OF_TOPDOWN, "out": OUT},
        declared(AddedIntervalOptions),
        json=_MANIFEST,
    ),
    "topdown pl": Command(
        "write the files of P.L. 94-171 from releases of persons and housing units",
        {
            "release": Argument(
                "a folder with releases of persons and of housing units, in persons and units", metavar="RELEASE"
            ),
            "out": Argument("a folder that does not exist or is empty", metavar="DIR"),
        },
        declared(PlOptions),
        json=_MANIFEST,
    ),
    "topdown estimate": Command(
        "from the Census Bureau's noisy measurement files to counts, tables and records",
        {
            "files": Argument("a folder of noisy measurement files (docs/noisy-measurement-files.md)", metavar="NMF"),
            "out": OUT,
        },
        {**declared(MeasurementOptions), **CHANGES, **{name: OPTIONS[name] for name in OF_MEASUREMENTS}},
        json=_MANIFEST,
        product="topdown",
    ),
}
_TOOLS: Final = {
    "synth": Command(
        "write a synthetic census in the Bureau's input formats",
        {"out": OUT},
        {"households": Option("occupied housing units", "whole", required=True), **declared(CensusOptions)},
        json="print what was made as JSON",
    ),
    "count": Command(
        "one table of one record file, with noise, and what it costs",
        {
            "data": Argument(
                "a file of records: .csv, .parquet, or of SPSS, Stata or SAS (.sav, .dta, ...)", "place", "RECORDS"
            )
        },
        {
            "by": Option(
                "columns of codes, or whole numbers in classes as COLUMN:WIDTH:LOW-HIGH, such as "
                "region,age:5:0-115,sex",
                "text",
                "COLUMNS",
                required=True,
            ),
            **declared(CountTerms),
            "out": Option("a folder that does not exist or is empty", "path", "OUT"),
            "dry_run": Option("tell what it would cost, and read no record", "switch", default=False),
            **{name: OPTIONS[name] for name in ("confidence", "format")},
            **_RUN,
            **{name: OF_ACCOUNT[name] for name in ("ledger", "dataset", "limit")},
            "memory": OF_EXECUTION["memory"],
        },
        json="print the manifest, or with --dry-run the plan",
        more="Count the records of one file by some of its columns, with noise. What it costs and how accurate it will "
        "be is told before any record is read; docs/count.md tells more.",
        product="tables",
    ),
    "spine build": Command(
        "make a spine of a reference file of blocks",
        {"reference": Argument("the reference file, separated by | or ,", metavar="GRFC"), "out": OUT},
        {
            "kind": Option("what its geounits are made of (docs/spines.md)", choices=KINDS),
            "production": Option("settings of 2020; an option beside it goes before", choices=PRODUCTIONS),
            "mechanism": Option("decides what is bypassed (zcdp)", choices=MECHANISMS),
            "levels": Option("geolevels from the root down (all but Tract_Group)", "text", "US,State,..."),
            "shares": Option("starting shares, one for each geolevel (equal)", "text", "us=1/10,..."),
            "fanout_cutoff": Option("groups hold int(sqrt(n) + F) + 1 at most (12; pieces are whole)", "natural", "F"),
            "entity_threshold": Option("farther entities shape tract groups (9)", "natural", "T"),
            "bypass_cutoff": Option("most children after a bypass, pure DP (150)", "natural", "C"),
            "grouping": Option("full chunks, or chunks of even size (orig)", choices=get_args(Grouping)),
            "classes": Option(
                "entities that count: pme, aian, gq, school, or columns of GRFC", "names", "pme,aian,..."
            ),
            "aian_areas": Option(f"area types on the spine: {', '.join(AREA_TYPES)}; or none", "names", "TYPE,..."),
            "strong_mcd_states": Option("where county subdivisions count, not places", "names", "09,23,..."),
            "blocks": Option("block, housing_units, gq1 .. gq7: facilities by major type", "path"),
            "areas": Option("of (block, area), each kind a class; may be repeated", "paths"),
            "encoding": _OF_AREAS,
            "live": Option("only blocks with a housing unit or group quarters", "switch", default=False),
            "overwrite": _RUN["overwrite"],
        },
        json=_MANIFEST,
    ),
    "spine distance": Command(
        "how many geounits make up each entity",
        {"spine": _SPINE, "entities": Argument("block and a column for each kind of entity", metavar="ENTITIES")},
        {"root": Option("root of the spine (nation)", default="nation", choices=("nation", "county"))},
        json="print the distances as JSON",
    ),
    "spine report": Command(
        "an HTML page that compares the spine with those of tabulation geography",
        {"spine": _SPINE},
        {
            "boundaries": Option(
                "boundaries of areas for the map: a zipped shapefile such as TIGER/Line, GeoJSON or TopoJSON", "path"
            ),
            "to": Option("where to write it (default OUT/report.html)", "path"),
        },
    ),
    "account": Command(
        "convert between rho, epsilon at a delta, and margins of error",
        options={
            "plan": Option(
                "a plan: a release, its manifest, what plan --json wrote, or a built-in name such as "
                "topdown:pl94-2020-us; may be repeated for what is spent on the same records together. With "
                "--delta or --epsilon: the exact law",
                "texts",
                "FILE|NAME",
            ),
            "rho": Option("a budget of zCDP", "positive", "R"),
            "epsilon": Option("an epsilon, with --delta or under pure DP", "positive", "E"),
            "delta": Option("delta of epsilon (1e-10)", "share", "D", default=Fraction(1, 10**10)),
            "moe": Option("margin of error of one cell", "positive", "M"),
            "sensitivity": Option(
                "squared L2 sensitivity of the counts, such as 484 for tau 10; under pure DP their L1 sensitivity",
                "positive",
                "D",
            ),
            "confidence": Option("confidence of the margin of error (0.9)", "level", default=Fraction(9, 10)),
            "margins": Option(
                "margins of error: exact (default), or the Bureau's z sigma (docs/margins.md)",
                default="exact",
                choices=("exact", "bureau"),
            ),
            "mechanism": Option("the definition of privacy (zcdp)", default="zcdp", choices=("zcdp", "pure")),
        },
        json=_ANSWER,
        more="Give --rho for its epsilon (and its margin of error, with --sensitivity), --epsilon for its rho, or "
        "--moe with --sensitivity for the rho that buys it. With --mechanism pure: --epsilon for its margin of error, "
        "or --moe for the epsilon that buys it, each with --sensitivity.",
    ),
    "audit epl": Command(
        "empirical privacy loss of exact and noisy counts",
        {
            "noisy_counts": Argument("CSV, Parquet, or a release", metavar="FILE|RELEASE", many="?"),
            "truth": Argument("the tables of RELEASE without noise", metavar="TRUTH", many="?"),
        },
        {
            "exact": Option("the column of exact counts in FILE", "text", "COLUMN"),
            "noisy": Option("the column of noisy counts in FILE", "text", "COLUMN"),
            "query": Option("a query of TopDown: total, detailed, race*hispanic", "texts", "QUERY"),
            "beside": Option("the results of 1940, to set beside a release of TopDown", "path", "FOLDER"),
            "mechanism": Option("noise of a count of one person", choices=("geometric", "discrete-gaussian")),
            "epsilon": Option("epsilon of geometric noise", "positive", "E"),
            "rho": Option("rho of discrete Gaussian noise", "positive", "R"),
            "counts": Option("how many counts a mechanism alone is drawn for (2663)", "whole"),
            "reproduce": Option(
                "a figure of the paper, with its generator and seed; SA1 is the table, and with --report the "
                "figure, too",
                choices=("SA1", "SA2", "SA3", "SA4"),
            ),
            "demonstration": Option("a demonstration of the paper, on --data", choices=("composition", "invariant")),
            "data": Option(
                "P.L. 94-171 of 2010 by block, of one county; with --reproduce also enumeration districts of 1940; "
                "with --mechanism any file, whose column --exact is given noise",
                "path",
            ),
            **declared(LossOptions),
            "seed": Option("reproducible noise", "seed"),
            "report": Option("write a page with the plots of the paper", "path", "HTML"),
        },
        json="print the findings as JSON",
    ),
    "audit attribute": Command(
        "the loss where one person differs in some attributes only",
        {
            "config": Argument(
                "a configuration of PHSafe, or s-dhc-2020 or s-dhc-slides; a parameter folder of SafeTab; one of "
                "TopDown; a description of tables",
                "text",
                "CONFIG",
            ),
            "individuals": Argument("people and secrets, in TOML or JSON (PHSafe)", metavar="INDIVIDUALS", many="?"),
        },
        {
            "example": Option("the five people and eight secrets of the Bureau's slides", choices=("slides",)),
            "classes": Option(
                "compare classes of the individuals instead: do some lose much less?", "switch", default=False
            ),
            "accounting": Option(
                "what the noise is scaled to, as in plan",
                flag="sensitivity",
                default="published",
                choices=get_args(Accounting),
            ),
            "codes": Option("the public files of codes and groups, as in plan", "path", "FOLDER"),
        },
        json="print the losses as JSON",
    ),
    "explore": Command(
        "choose budgets by looking: a local page in the browser",
        options={
            **_SERVED,
            "counts": Option("a release whose counts errors are set against", "path", "RELEASE"),
            "parameters": Option("the codes and iterations of SafeTab (the demonstration's)", "path", "FOLDER"),
            "topdown": Option("a configuration of TopDown to show too: a file, or a built-in name", "text", "CONFIG"),
            "tables": Option("a description of tables to show too: a file, or a built-in name", "text", "DESCRIPTION"),
            "codes": Option(
                "the public files of codes and groups that --tables names (where it lies)", "path", "FOLDER"
            ),
        },
        more="Serves a page to this machine alone, and prints its address. It reads plans, never records. Ctrl-C ends "
        "it.",
    ),
    "demo": Command(
        "invented people through TopDown, PHSafe, SafeTab and a description, to one atlas of all releases",
        {"out": Argument("(demo)", metavar="OUT", default=Path("demo"), many="?")},
        {
            "households": Option("households of the census (default 6,000)", "whole", default=6_000),
            "overwrite": Option("replace an earlier demo in OUT", "switch", default=False),
            "open": Option("open the atlas in the browser", "switch", default=False),
        },
    ),
    "docs": Command(
        "print a page of the documentation, or list the pages",
        {"page": Argument("such as tables, or docs/tables.md as messages name it", "text", "PAGE", many="?")},
    ),
    "completion": Command(
        "print the script that completes commands, options and files in a shell",
        {"shell": Argument("bash, zsh or fish", "choice", choices=("bash", "zsh", "fish"))},
        more="Print a script that completes commands, options and files. bash: save it as "
        "~/.local/share/bash-completion/completions/yupana; zsh: as _yupana in a folder of $fpath; fish: as "
        "~/.config/fish/completions/yupana.fish.",
    ),
}
VERBS: Final[Mapping[str, Command]] = {
    "validate": Command(
        "check the records; the report is confidential",
        {"config": _CONFIG, "data": _DATA},
        {**of_stage("records"), **declared(Configured.validate), **OF_EXECUTION},
        json=_ANSWER,
    ),
    "plan": Command(
        "what a run would measure, and what it costs; needs no data",
        {"config": _CONFIG},
        {
            **of_stage("plan"),
            "delta": Option("delta of the epsilon stated (default 1e-10)", "share", "D"),
            "epsilon": Option(
                "scale all budgets to the largest that have this epsilon at --delta (docs/exact-accounting.md)",
                "positive",
                "E",
            ),
            "targets": Option("solve for budgets: margins of error, or a total (docs/targets.md)", "path"),
            "diff": Option("list what differs from the 2020 run", takes="production", choices=("production",)),
        },
        json=_ANSWER,
    ),
    "run": Command(
        "make a release",
        {"config": _CONFIG, "data": _DATA, "out": OUT},
        {**of_stage("run"), **_RUN, **OF_ACCOUNT, **OF_EXECUTION},
        json=_ANSWER,
    ),
    "exact": Command(
        "make the same tables without noise, of synthetic data or with --internal",
        {"config": _CONFIG, "data": _DATA, "out": OUT},
        {**of_stage("release"), **declared(Configured.exact), **OF_EXECUTION},
        json=_ANSWER,
    ),
    "accuracy": Command(
        "measure errors and compare them with the plan, on synthetic data or with --internal",
        {
            "config": _CONFIG,
            "data": _DATA,
            "out": replace(OUT, help="write accuracy.csv into this folder, too", many="?"),
        },
        {
            **of_stage("records"),
            **declared(Configured.accuracy),
            "beside": Option(
                "errors of this configuration, too, on the same records, seed and options; may be repeated",
                "paths",
                "CONFIG",
                takes="estimators",
            ),
        },
        json=_ANSWER,
    ),
    "compare": Command(
        "make the same tables by cell key, rounding, swapping and suppression, of synthetic data or with --internal",
        {"config": _CONFIG, "data": _DATA, "out": OUT},
        {**of_stage("records"), **declared(Configured.compare)},
        json=_ANSWER,
        takes="compare",
    ),
    "strategy": Command(
        "find budgets with smaller errors at the same loss; needs no data",
        {"config": _CONFIG},
        {
            **of_stage("plan"),
            "targets": Option(
                "weights of tables and levels (of TopDown also of queries and geolevels), and margins of error to keep "
                "(default: every published cell counts alike, and geolevels keep their shares)",
                "path",
            ),
            "loss": Option(
                "what is made small: the weighted sum of variances (sum, the default), the largest (max), or the "
                "largest in relation to that of the given budgets (ratio)",
                choices=("sum", "max", "ratio"),
            ),
            "least": Option(
                "the least part that each budget keeps of the given one; of TopDown each query, of its geolevel's "
                "(1/50)",
                "text",
                "SHARE",
            ),
            "total": Option(
                "what the budgets may cost together; where there are several passes, each (default: what they cost "
                "now)",
                "positive",
                "LOSS",
                takes="accountings",
            ),
            "out": Option("write the configuration found, as JSON: a file that does not exist", "path"),
        },
        json=_ANSWER,
    ),
    "init": Command(
        "write a configuration to begin with, every key explained",
        {
            "out": Argument(
                "a file that does not exist (.json is without comments); SafeTab: a folder; default: print it",
                metavar="OUT",
                many="?",
            )
        },
        {
            "like": Option("a built-in configuration; show lists them (the first)", "text"),
            "dictionary": Option(
                "draft it from what a dictionary says of record files: CSPro, DDI-Codebook, SPSS, Stata, SAS, "
                "datapackage.json, CSVW or a CSV of codes (docs/tables.md)",
                "path",
                "DICTIONARY",
                flag="from",
                takes="draft",
            ),
        },
    ),
    "schema": Command("print what a configuration may hold, as JSON Schema"),
    "show": Command("print a built-in configuration", {"name": Argument("(list the names)", "text", "NAME", many="?")}),
}
"""The verbs of products, in the order of help pages."""

GROUPS: Final = {
    "postprocess": "coterminous areas and suppression in SafeTab releases",
    "spine": "geographic spines: build one, and ask how far areas are from it",
    "audit": "what privacy loss was really spent",
}
"""What commands of several verbs are about."""

COMMANDS: Final[Mapping[str, Command]] = _RELEASES | _TOOLS
"""Every command by its words, but `VERBS`."""
