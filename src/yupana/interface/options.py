"""The options of products, declared once: type, words, how each is written, and who takes it.

The signatures of Python, the command line with its completion, the schemas of configurations and the reference are
made of these declarations, and of those of all other commands in `yupana.interface.commands`.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal, TypeAlias, TypedDict, get_args

from yupana.engine.engine import EngineKind
from yupana.plan.account import UnitName
from yupana.products import Listing
from yupana.progress import Listener
from yupana.topdown import Estimator
from yupana.topdown.interval_terms import REPLICATES, IntervalMethod

if TYPE_CHECKING:
    from yupana.products.described.count import Codes

Place: TypeAlias = str | Path
Places: TypeAlias = Place | Sequence[Place]
Exact: TypeAlias = Fraction | int | float | str
"""A number that is taken as it is written: a float as its shortest decimal, a text such as "1/3" or "0.05"."""
ColumnNames: TypeAlias = Place | Mapping[str, Mapping[str, str]]

Kind: TypeAlias = Literal[
    "choice", "switch", "path", "paths", "place", "release", "name", "names", "text", "texts", "listing", "columns",
    "level", "share", "positive", "number", "whole", "natural", "seed", "port", "size",
    "changes", "domains", "limits", "settings",
]  # fmt: skip
"""How a value is read; a name is one of a built-in thing, or a path."""

Stage: TypeAlias = Literal["plan", "records", "release", "run"]
STAGES: Final[tuple[Stage, ...]] = get_args(Stage)


@dataclass(frozen=True, slots=True, repr=False)
class Option:
    """How an option is told."""

    help: str  # what it decides, in a line. A name in braces stands for what `Listing` says of the product.
    kind: Kind = "choice"  # how its value is read, where its type does not tell it
    metavar: str | None = None  # what stands for its value on the command line, if that is not usual for its kind
    flag: str = ""  # what it is called there and in manifests, if that is not its name
    takes: str = ""  # what a product must take to have it (`Listing.takes`); empty where all have it
    stage: Stage = "plan"  # the first stage that reads it: verbs before that do not offer it
    default: Any = None  # what holds if it is not given
    choices: tuple[str, ...] = ()  # what a choice may be
    required: bool = False  # whether the command line must have it

    def __repr__(self) -> str:
        # What `help` shows in a signature.
        return repr(self.help)

    def written(self, name: str) -> str:
        """What the option of a name is called on the command line."""
        return f"--{(self.flag or name).replace('_', '-')}"

    @property
    def value(self) -> str:
        """What stands for its value: its choices, or a word in capitals."""
        return "|".join(self.choices) or self.metavar or _METAVARS.get(self.kind, "")


_METAVARS: Final[Mapping[Kind, str]] = {
    "path": "FILE",
    "paths": "FILE",
    "text": "NAME",
    "whole": "N",
    "port": "N",
    "level": "C",
    "seed": "S",
}
_KINDS: Final[Mapping[Any, Kind]] = {
    bool: "switch",
    int: "whole",
    float: "number",
    str: "text",
    Sequence[str]: "names",
    Place: "path",
    Places: "paths",
    Exact: "level",
}
"""How values of a type are read, unless another kind is told; those of all other types are choices."""


Values: TypeAlias = Mapping[str, object] | Iterable[tuple[str, object]]
"""Values of a configuration by key, with dots between the tables that a key lies in."""


class Options(TypedDict, total=False):
    """What decides what is made, beside the product's own configuration; a configuration may hold it as ``options``."""

    accounting: Annotated[
        Literal["published", "tight"],
        Option("{accountings}", flag="sensitivity", takes="accountings", default="published"),
    ]
    margins: Annotated[
        Literal["exact", "bureau"],
        Option(
            "the least whole number with the confidence (exact), or the Bureau's z sigma (docs/margins.md)",
            default="exact",
        ),
    ]
    confidence: Annotated[Exact, Option("confidence of the margins of error ({confidence})")]
    codes: Annotated[
        Place,
        Option("the public files of codes and groups (default: where {source} lies)", metavar="FOLDER", takes="codes"),
    ]
    renormalise: Annotated[
        bool,
        Option(
            "divide shares that do not sum to 1 by their sum, of geolevels and of the queries of each",
            takes="renormalise",
            default=False,
        ),
    ]
    spine: Annotated[
        Place,
        Option(
            "instead of CONFIG's: conventional, aian, optimized, pieces, or a folder that spine build made",
            "name",
            "KIND|FOLDER",
            takes="spine",
        ),
    ]
    columns: Annotated[
        ColumnNames,
        Option("what your record files call their columns (docs/configuration.md)", "columns", "MAP", stage="records"),
    ]
    totals: Annotated[
        Place,
        Option("published totals of population groups, such as T01001 of safetab-p", takes="totals", stage="records"),
    ]
    areas: Annotated[
        Places,
        Option(
            "more areas that blocks lie in: a table or a file of the Bureau; may be repeated (docs/topdown-files.md)",
            takes="areas",
            stage="records",
            default=(),
        ),
    ]
    encoding: Annotated[
        str, Option("encoding of --areas and --names, such as cp1252 (utf-8)", takes="areas", stage="records")
    ]
    estimator: Annotated[
        Estimator,
        Option("how consistent counts are estimated (topdown)", takes="estimators", stage="records", default="topdown"),
    ]
    format: Annotated[Literal["csv", "parquet"], Option("form of the tables (csv)", stage="release", default="csv")]
    names: Annotated[
        Place,
        Option(
            "what areas are called: a table, or a geographic header file of P.L. 94-171", takes="names", stage="release"
        ),
    ]
    microdata: Annotated[
        bool,
        Option(
            "write no records of persons or units, only counts and tables",
            flag="no-microdata",
            takes="microdata",
            stage="release",
            default=True,
        ),
    ]
    noisy_measurements: Annotated[
        Place, Option("draw and write all measurements, too", metavar="DIR", takes="noisy_measurements", stage="run")
    ]
    nmf: Annotated[
        Place,
        Option(
            "draw and write all measurements, in the Census Bureau's layout (docs/noisy-measurement-files.md)",
            metavar="DIR",
            takes="nmf",
            stage="run",
        ),
    ]
    pl: Annotated[
        Place,
        Option(
            "write the files of P.L. 94-171, too; the configuration has persons and units, such as pl94-2020-us-whole",
            metavar="DIR",
            takes="pl",
            stage="run",
        ),
    ]
    intervals: Annotated[
        IntervalMethod,
        Option(
            "how intervals of published counts are made (least-squares up to a size: docs/topdown-intervals.md)",
            takes="intervals",
            stage="run",
        ),
    ]
    report: Annotated[Place, Option("the atlas of the release as one HTML file", takes="report", stage="run")]
    replicates: Annotated[
        int,
        Option(
            f"runs on the published counts for --intervals monte-carlo ({REPLICATES})", takes="replicates", stage="run"
        ),
    ]


class SetupOptions(Options, total=False):
    """All that `setup` takes beside a product and its configuration."""

    set: Annotated[
        Values,
        Option(
            "a value in place of the configuration's, such as tau.PH2=10 (docs/configuration.md); may be repeated",
            "changes",
            "KEY=VALUE",
        ),
    ]


class CountTerms(TypedDict, total=False):
    """What `count` asks of one record file."""

    unit: Annotated[
        str, Option("the column that says whose each record is (default: each record is a unit)", metavar="COLUMN")
    ]
    max_per_unit: Annotated[
        int, Option("how many records of one unit count; of those with more, some are chosen by a hash (1)")
    ]
    keys: Annotated[Places, Option("a public table with the codes of the columns of the same name; may be repeated")]
    domains: Annotated[
        "Mapping[str, Codes]",
        Option("the codes of a column, such as sex=1,2; may be repeated", "domains", "COLUMN=CODES", flag="domain"),
    ]
    keys_public: Annotated[
        bool, Option("declare that the values which occur in columns without codes are public; the manifest says so")
    ]
    others: Annotated[
        "Mapping[str, str] | str",
        Option(
            "count values that are none of the codes or bounds, as LABEL; COLUMN=LABEL of one column, may be repeated",
            "domains",
            "LABEL",
        ),
    ]
    separator: Annotated[Literal[",", ";", "|", "tab"], Option("what separates fields of text (the header tells)")]
    encoding: Annotated[str, Option("encoding of text and keys, such as cp1252, latin-1 or utf-16 (utf-8)")]
    decimal: Annotated[Literal[",", "."], Option("what may stand between a whole number and zeros in text, as in 12,0")]
    epsilon: Annotated[
        Exact,
        Option("loss of one unit: pure differential privacy, or with --delta zCDP that keeps within it", "text", "E"),
    ]
    delta: Annotated[Exact, Option("delta beside --epsilon, such as 1e-9", "text", "D")]
    rho: Annotated[Exact, Option("loss of one unit under zCDP, in place of epsilon", "text", "R")]
    totals: Annotated[bool, Option("tables of each column alone and the total, too, as sums of the noisy cells")]


@dataclass(frozen=True, slots=True)
class Account:
    """Where the loss of a run is added up with that of others on the same data.

    Attributes
    ----------
    ledger : str or Path
        The file that adds up; the run is charged before it draws.
    dataset : str
        The name of the data there; of a document of parts each has one of its own, ``DATASET/PART``.
    limit : number, or mapping of kind of neighbours to number, optional
        The largest loss that the ledger may reach, in rho (epsilon under pure differential privacy).
    unit : "record", "person" or "household"
        Whose loss is added up.
    household_cap : int, optional
        Of households: the most persons in one.
    """

    ledger: Annotated[Place, Option("add this run's loss to what was spent on the same data")]
    dataset: Annotated[str, Option("your name for the data in the ledger")]
    limit: Annotated[
        "Mapping[str, Exact] | Exact | None",
        Option(
            "largest loss the ledger may reach for the data: L of the plan's own, or KIND=L,... as "
            "unbounded=3,bounded=6; of a configuration of parts PART=L or PART.KIND=L",
            "limits",
            "L",
        ),
    ] = None
    unit: Annotated[
        UnitName,
        Option(
            "whose loss is added up: the records' own (default), one person's, or a household's (docs/person-loss.md)"
        ),
    ] = "record"
    household_cap: Annotated[int | None, Option("the most persons in one, for --unit household", metavar="K")] = None


Memory: TypeAlias = Annotated[
    int | None, Option("memory to work in (default: 3/4 of the machine's, at most 12GB)", "size", "4GB")
]


@dataclass(frozen=True, slots=True)
class Execution:
    """How work is done; what is made does not depend on it.

    Attributes
    ----------
    memory : int, optional
        Bytes to get along with; of a task, on an engine with several.
    engine : "local" or "spark"
        Where records are counted, and nodes of TopDown solved (docs/engines.md).
    master, spark_conf : str, and mapping of str to str, optional
        Of Spark: its master, and more settings.
    shards : int, optional
        Into how many shards records are cut.
    progress : callable or bool
        Called with each `Step`; True shows a bar. What it raises ends the work as any error does.
    """

    memory: Memory = None
    engine: Annotated[
        EngineKind,
        Option("where records are counted and nodes solved: this machine (local), or a cluster (docs/engines.md)"),
    ] = "local"
    master: Annotated[
        str | None,
        Option(
            "the master of Spark: local[N] (default: all cores), spark://HOST:PORT, yarn, k8s://... or sc://HOST:PORT",
            metavar="URL",
        ),
    ] = None
    shards: Annotated[
        int | None, Option("cut records into so many shards, counted one at a time or by several workers")
    ] = None
    spark_conf: Annotated[
        Mapping[str, str], Option("another setting of Spark; may be repeated", "settings", "KEY=VALUE")
    ] = field(default_factory=dict)
    progress: Listener | bool = False


Seed: TypeAlias = Annotated[int | None, Option("reproducible noise, for synthetic data only; NOT FOR RELEASE", "seed")]
Overwrite: TypeAlias = Annotated[bool, Option("replace an earlier output in OUT", default=False)]
Log: TypeAlias = Annotated[Place | None, Option("the confidential log (default: beside OUT)")]
Resume: TypeAlias = Annotated[
    bool, Option("go on with a run that was interrupted, with what it had drawn (docs/interrupted-runs.md)")
]
Internal: TypeAlias = Annotated[
    bool, Option("on real records, too; what it tells is CONFIDENTIAL, and nobody but you can read the files")
]


def declared(of: Any) -> dict[str, Option]:  # noqa: ANN401 (a class or a function)
    """The options that a class or a function declares, by name."""
    return {
        name: _of_type(option, hint.__origin__) if option.kind == "choice" else option
        for name, hint in of.__annotations__.items()
        for option in getattr(hint, "__metadata__", ())
        if isinstance(option, Option)
    }


def _of_type(option: Option, of: Any) -> Option:  # noqa: ANN401 (a type, or one or nothing)
    """The option with what its type tells: its kind, or what it may choose among."""
    kind = next((kind for known, kind in _KINDS.items() if of in {known, known | None}), None)
    return replace(option, choices=get_args(of)) if kind is None else replace(option, kind=kind)


OPTIONS: Final = declared(Options)
CHANGES: Final = {"set": declared(SetupOptions)["set"]}
OF_ACCOUNT: Final = declared(Account)
OF_EXECUTION: Final = declared(Execution)
OF_MEASUREMENTS: Final = (
    "areas", "names", "encoding", "estimator", "confidence", "margins", "format", "microdata", "intervals",
)  # fmt: skip
"""The options of what is estimated from files of noisy measurements."""


def of_stage(stage: Stage) -> dict[str, Option]:
    """The options of products that verbs of a stage read."""
    last = STAGES.index(stage)
    return CHANGES | {name: option for name, option in OPTIONS.items() if STAGES.index(option.stage) <= last}


def has(listing: Listing, option: Option) -> bool:
    """Whether a product has an option."""
    return not option.takes or bool(getattr(listing, option.takes, option.takes in listing.takes))


def schema(listing: Listing) -> dict[str, Any]:
    """What the table ``options`` of a configuration of a product may hold, as JSON Schema."""
    properties = {
        option.flag if option.choices and option.flag else name: {
            "description": option.help.format_map(listing._asdict()),
            **({"enum": list(option.choices)} if option.choices else _SHAPES.get(option.kind, {"type": "string"})),
        }
        for name, option in OPTIONS.items()
        if has(listing, option)
    }
    return {"type": "object", "additionalProperties": False, "properties": properties}


_SHAPES: Final[Mapping[str, dict[str, Any]]] = {
    "switch": {"type": "boolean"},
    "whole": {"type": "integer", "minimum": 1},
    "level": {"type": ["string", "number"]},
    "paths": {"type": ["string", "array"], "items": {"type": "string"}},
    "columns": {"type": ["string", "object"]},
}
