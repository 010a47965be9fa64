"""What users ask of a product, in whatever form they have it, read for the Python interface and the command line."""

import functools
import inspect
import json
import math
import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from types import NoneType, UnionType
from typing import TYPE_CHECKING, Any, Final, Literal, ParamSpec, TypeAlias, TypeVar, Union, get_args, get_origin

from yupana.engine.engine import LEAST_MEMORY
from yupana.errors import ConfigError, nearest
from yupana.files.changes import Changes
from yupana.files.column_map import BUREAU, ColumnMap, column_map_of, read_column_map
from yupana.files.regular import FOLDER, must_be
from yupana.files.store import scheme_of
from yupana.privacy.exact import Budget, read_exact
from yupana.products import PRODUCTS, Listing
from yupana.products.parts import ALONE, PartsDocument, check_units, read_parts
from yupana.release.manifest import MANIFEST
from yupana.release.recipe import Recipe, read_recipe
from yupana.topdown.interval_terms import INTERVAL_METHODS, IntervalMethod, check_terms

if TYPE_CHECKING:
    from yupana.confidential.request import Account
    from yupana.engine.engine import EngineKind, EngineTerms
    from yupana.files.columns import RecordFile
    from yupana.plan.budgets import Entry, Question
    from yupana.plan.margin import Margins
    from yupana.plan.measurement import Accounting
    from yupana.plan.plan import Plan
    from yupana.plan.unit import UnitName
    from yupana.privacy.entropy import Entropy
    from yupana.products.product import Product
    from yupana.release.tables import Format

_P = ParamSpec("_P")
_R = TypeVar("_R")
_T = TypeVar("_T")

Place: TypeAlias = str | Path
Places: TypeAlias = Place | Sequence[Place]
Exact: TypeAlias = Fraction | int | float | str
"""A number that is taken as it is written: a float as its shortest decimal, a text such as "1/3" or "0.05"."""
Estimator: TypeAlias = Literal["topdown", "full-information", "posterior"]
Values: TypeAlias = Mapping[str, object] | Iterable[tuple[str, object]]
"""Values of a configuration by key, with dots between the tables that a key lies in."""


@dataclass(frozen=True, slots=True)
class Case:
    """A product with its configuration, the terms of its plan and the options of its release.

    Attributes
    ----------
    product : Product
    listing : Listing
    config
        The product's own.
    accounting, margins, fmt, estimator
    confidence : Fraction or None
        None for the product's own.
    columns : ColumnMap
    spine : Path or None
        The folder of a spine that was built before.
    areas : tuple of Path
        Tables of the areas that blocks lie in, beside the reference file.
    repeats : Recipe or None
        How the release was made whose manifest is the configuration.
    intervals : "none", "least-squares", "monte-carlo" or None
        How those of published counts are found; None for the default of the size.
    replicates : int or None
        Of Monte Carlo; None for the default.
    """

    product: "Product[Any]"
    listing: Listing
    config: Any
    accounting: "Accounting"
    confidence: Fraction | None
    margins: "Margins"
    fmt: "Format"
    estimator: Estimator
    columns: ColumnMap
    spine: Path | None
    areas: tuple[Path, ...]
    repeats: Recipe | None
    intervals: IntervalMethod | None = None
    replicates: int | None = None

    def plan(self) -> "Plan":
        """What a run would measure."""
        return self.product.plan(
            self.config, accounting=self.accounting, confidence=self.confidence, margins=self.margins
        )

    def production(self) -> "Plan | None":
        """What was measured in 2020 in the same area, if anything was."""
        used = self.product.production(self.config)
        return None if used is None else self.product.plan(used)


@dataclass(frozen=True, slots=True)
class AskedParts:
    """What a run is to make: one release, or the parts of one.

    Attributes
    ----------
    title : str
        What a document of parts calls the whole; empty of one configuration.
    cases : mapping of str to Case
        By the name of the part; of one configuration there is one case, whose name is empty.
    """

    title: str
    cases: Mapping[str, Case]

    @property
    def is_whole(self) -> bool:
        """Whether it has parts."""
        return ALONE not in self.cases


def ask_parts(product: "str | Product[Any]", config: object, *, set: Values | None = None, **more: Any) -> AskedParts:  # noqa: A002, ANN401
    """Read a configuration, or all those of a document of parts; ``more`` is what `ask` takes.

    Raises
    ------
    ConfigError
        As by `ask`; or if two parts protect the same unit.
    """
    found = config.product if isinstance(config, Case) else _product(product)
    document = None if isinstance(config, Case) else _parts_of(found, config)
    if document is None:
        return AskedParts("", {ALONE: ask(found, config, set=set, **more)})
    changes = document.changes(changes_of(set))
    cases = {}
    for name, source in document.sources.items():
        try:
            cases[name] = ask(found, source.config, set=changes[name], **more)
        except ConfigError as error:
            raise ConfigError(f"part {name}: {error}") from None
    check_units({name: case.plan() for name, case in cases.items()})
    return AskedParts(document.title, cases)


def _parts_of(product: "Product[Any]", config: object) -> PartsDocument | None:
    """The document of parts that a user gave, if it is one."""
    listing = PRODUCTS.listing(product.key)
    if "parts" not in listing.takes or not isinstance(config, str | Path | Mapping):
        return None
    return read_parts(config, None if isinstance(config, Mapping) else product.locate(config), listing.built_in)


TERMS: Final[Mapping[str, tuple[str, ...]]] = {
    "accounting": ("published", "tight"),
    "margins": ("exact", "bureau"),
    "format": ("csv", "parquet"),
    "estimator": ("topdown", "full-information", "posterior"),
}
"""What terms may be, the default first."""

_TOLD: Final = {"accounting": "sensitivity"}
"""What a manifest calls a term, where it has another name for it."""


def ask(
    product: "str | Product[Any]",
    config: object,
    *,
    set: Values | Changes | None = None,  # noqa: A002 (as users say it)
    renormalise: bool = False,
    codes: Place | None = None,
    confidence: Exact | None = None,
    columns: "Place | Mapping[str, Mapping[str, str]] | None" = None,
    spine: Place | None = None,
    areas: Places | None = None,
    intervals: IntervalMethod | None = None,
    replicates: int | None = None,
    **terms: str | None,
) -> Case:
    """Read the configuration; terms that are not given are those of the release that it is the manifest of.

    Raises
    ------
    ConfigError
        Naming what is wrong with the configuration or the terms, or what the product does not take.
    """
    if isinstance(config, Case):
        return config
    found = _product(product)
    listing = PRODUCTS.listing(found.key)
    more = {"codes": path_if_given("codes", codes), "renormalise": renormalise or None}
    more = {name: value for name, value in more.items() if value is not None}
    beside = {"spine": spine, "areas": areas, "intervals": intervals, "replicates": replicates}
    for name in (*more, *(name for name, value in beside.items() if value is not None)):
        if name not in listing.takes:
            raise ConfigError(f"{found.key} takes no {name}")
    read, folder = _on_spine(_read(found, config, changes_of(set), more), spine)
    path = found.locate(config) if isinstance(config, str | Path) else None
    repeats = None if path is None else read_recipe(path)
    if repeats is not None and path is not None and path.name == MANIFEST:
        _refuse_unsound(path)
    chosen: dict[str, Any] = {}
    for name, choices in TERMS.items():
        told = None if repeats is None or name in _without(listing) else repeats.options.get(_TOLD.get(name, name), "")
        chosen[name] = _chosen(name, terms.get(name), told, choices, f"config {path}: options.")
    if confidence is None and repeats is not None:
        confidence = confidence_of(repeats.options.get("confidence", ""), f"config {path}: options.confidence")
    return Case(
        found,
        listing,
        read,
        chosen["accounting"],
        None if confidence is None else confidence_of(confidence),
        chosen["margins"],
        chosen["format"],
        chosen["estimator"],
        _columns(columns, repeats, found.record_files(read)),
        folder,
        paths_of("areas", areas),
        repeats,
        *_intervals(intervals, replicates, repeats, f"config {path}: options."),
    )


def _refuse_unsound(manifest: Path) -> None:
    """Refuse to repeat a release whose manifest says what its configuration does not."""
    from yupana.products.gate import manifest_faults
    from yupana.release.release import read_release

    if wrong := manifest_faults(read_release(manifest.parent, confidential=True)).wrong:
        raise ConfigError("\n  ".join([f"config {manifest}: its release does not hold together:", *wrong]))


def _intervals(
    method: IntervalMethod | None, replicates: int | None, repeats: Recipe | None, place: str
) -> tuple[IntervalMethod | None, int | None]:
    """Method and number of replicates as they are given, or else as a manifest tells them."""
    if method is None and repeats is not None and (told := repeats.options.get("intervals")) is not None:
        found = [known for known in INTERVAL_METHODS if known == told]
        if not found:
            raise ConfigError(f"{place}intervals: must be {' or '.join(map(repr, INTERVAL_METHODS))}")
        (method,) = found
        number = repeats.options.get("replicates")
        if replicates is None and number is not None:
            if not (number.isascii() and number.isdigit() and len(number) < 10):
                raise ConfigError(f"{place}replicates: must be a whole number")
            replicates = int(number)
    check_terms(method, replicates)
    return method, replicates


def _chosen(name: str, given: str | None, told: str | None, choices: Sequence[str], place: str) -> str:
    """A term as it is given, or else as a manifest tells it, or else the first choice."""
    value, what = (told, place + _TOLD.get(name, name)) if given is None and told is not None else (given, name)
    if value is None:
        return choices[0]
    if value not in choices:
        raise ConfigError(f"{what}: must be {' or '.join(map(repr, choices))}")
    return value


def _without(listing: Listing) -> list[str]:
    """The terms that a product has no choice of."""
    return [name for name, has in (("accounting", listing.accountings), ("estimator", listing.estimators)) if not has]


def _product(product: "str | Product[Any]") -> "Product[Any]":
    if isinstance(product, str):
        return PRODUCTS[product]
    if not isinstance(getattr(product, "key", None), str):
        raise ConfigError(f"product: must be a key such as 'phsafe', and is of type {type(product).__name__}")
    return product


def changes_of(values: Values | Changes | None) -> Changes:
    """What is to change in a configuration before it is checked.

    Raises
    ------
    ConfigError
        If it is no mapping of keys.
    """
    if isinstance(values, Changes):
        return values
    try:
        named = [(key, value) for key, value in (values.items() if isinstance(values, Mapping) else values or ())]
        wrong = [key for key, _ in named if not isinstance(key, str) or not all(key.split("."))]
    except (TypeError, ValueError):
        raise ConfigError('set: give a mapping, such as {"tau.PH2": 10}') from None
    if wrong:
        raise ConfigError(f"set: {wrong[0]!r} is no key, such as 'tau.PH2'")
    return Changes(tuple((key, value if isinstance(value, str) else _as_json(key, value)) for key, value in named))


def _as_json(name: str, value: object) -> str:
    try:
        return json.dumps(value, default=_written)
    except (TypeError, ValueError, RecursionError) as error:
        raise ConfigError(f"{name}: cannot be written as JSON: {error}") from None


def _read(product: "Product[Any]", config: object, changes: Changes, more: Mapping[str, Any]) -> Any:  # noqa: ANN401
    """A configuration of the product's own, from whatever a user has of it."""
    read: Callable[..., Any] = product.read
    if isinstance(config, str | Path):
        return read(config, changes, **more)
    if not isinstance(config, Mapping):
        if not type(config).__module__.startswith(("yupana.products.", "yupana.topdown.")):
            raise ConfigError(f"config is a {type(config).__name__}; give a file, a built-in name or a document")
        if not changes.values and not more:
            return config
        config = product.document(config)
    return _from_file("config", config, lambda path: read(path, changes, **more))


def _from_file(name: str, document: Mapping[str, object], read: Callable[[Path], Any]) -> Any:  # noqa: ANN401
    """What a file of a document is read as, whose faults are then told without the file."""
    with tempfile.TemporaryDirectory(prefix="yupana-") as scratch:
        path = Path(scratch) / "document.json"
        path.write_text(_as_json(f"{name}: the document", document), encoding="utf-8")
        try:
            return read(path)
        except ConfigError as error:
            raise ConfigError(str(error).replace(f"config {path}", name)) from None


def question_of(targets: Place | None, entries: "Mapping[str, Entry]", **given: object) -> "Question":
    """What budgets are to be found: what a file of targets says, or the same document as arguments.

    Raises
    ------
    ConfigError
        Naming every fault.
    """
    from yupana.plan.budgets import read_question

    if targets is not None:
        return read_question(path_of("targets", targets), entries)
    document = {name: value for name, value in given.items() if value is not None}
    found: Question = _from_file("targets", document, lambda path: read_question(path, entries))
    return found


def targets_of(targets: Place | Mapping[str, object], read: Callable[[Path], _T]) -> _T:
    """What a strategy is found for: what is read of a file, or of the same document."""
    if isinstance(targets, Mapping):
        found: _T = _from_file("targets", targets, read)
        return found
    return read(path_of("targets", targets))


def _written(value: object) -> object:
    """A value of a document that JSON has no form for."""
    if isinstance(value, Fraction | Decimal | Path):
        return str(value)
    if isinstance(value, Mapping):
        return dict(value)
    raise TypeError(f"it holds a value of type {type(value).__name__}")


def _on_spine(config: Any, spine: Place | None) -> tuple[Any, Path | None]:  # noqa: ANN401 (the product's own)
    """The configuration on another spine, and its folder if it was built before."""
    if spine is None:
        return config, None
    from yupana.geography.settings import KINDS

    if isinstance(spine, str) and spine in KINDS:
        return config.on_spine(spine), None
    from yupana.geography.spine_files import manifest_of, settings_of
    from yupana.topdown.existing_spine import on_given

    folder = path_of("spine", spine)
    must_be(FOLDER, folder, f"as spine name one of {', '.join(KINDS)}, or a folder that spine build made", ConfigError)
    return on_given(config, settings_of(manifest_of(folder), folder), folder), folder


def _columns(
    columns: "Place | Mapping[str, Mapping[str, str]] | None",
    repeats: Recipe | None,
    files: "Mapping[str, RecordFile]",
) -> ColumnMap:
    """The map of columns that is given, or else that of the release which is repeated."""
    if isinstance(columns, str | Path):
        return read_column_map(Path(columns), files)
    if columns is not None:
        return column_map_of(_as_json("columns", columns), "columns", files)
    return BUREAU if repeats is None else column_map_of(repeats.options.get("columns", ""), files=files)


def account(
    ledger: Place | None,
    dataset: str | None,
    limit: Mapping[str, Exact] | Exact | None,
    unit: "UnitName | None",
    household_cap: int | None,
) -> "Account | None":
    """Where a run's loss is added up; None if nowhere.

    Raises
    ------
    ConfigError, BudgetError
        If what is given does not go together.
    """
    from yupana.confidential.request import Account
    from yupana.plan.unit import OWN, UNITS, Unit

    if ledger is None and dataset is None and (limit, unit or "record", household_cap) == (None, "record", None):
        return None
    if ledger is None or dataset is None:
        raise ConfigError(
            "a ledger needs both its file and the name of a dataset (--ledger FILE --dataset NAME), "
            "and a limit, a unit and a household cap need a ledger"
        )
    if not isinstance(dataset, str):
        raise ConfigError(f"dataset: must be a text, and is of type {type(dataset).__name__}")
    if unit is not None and unit not in UNITS:
        raise ConfigError(f"unit: must be {', '.join(UNITS[:-1])} or {UNITS[-1]}")
    whole_number("household_cap", household_cap)
    limits = limit if isinstance(limit, Mapping) else {} if limit is None else {OWN: limit}
    whose = Unit(unit or "record", household_cap)
    whose.check_columns(limits)
    least = {kind: exact_number(f"limit {kind}", value) for kind, value in limits.items()}
    return Account(path_of("ledger", ledger), dataset, least, whose)


def accounts(
    asked: AskedParts,
    ledger: Place | None,
    dataset: str | None,
    limit: Mapping[str, Exact] | Exact | None,
    unit: "UnitName | None",
    household_cap: int | None,
) -> "dict[str, Account | None]":
    """Where the loss of each part is added up: under ``DATASET/PART``, each with limits of its own.

    What one person or household loses adds over all releases, whatever their units, so that parts share its account.

    Raises
    ------
    ConfigError, BudgetError
        If what is given does not go together, or a limit is of no part.
    """
    from yupana.plan.unit import OWN

    if not asked.is_whole or unit in {"person", "household"}:
        return dict.fromkeys(asked.cases, account(ledger, dataset, limit, unit, household_cap))
    limits: dict[str, dict[str, Exact]] = {name: {} for name in asked.cases}
    for key, value in limit.items() if isinstance(limit, Mapping) else [] if limit is None else [("", limit)]:
        part, _, kind = key.partition(".")
        if part not in limits:
            example = ",".join(f"{name}=L" for name in asked.cases)
            raise ConfigError(
                f"limit: {' and '.join(asked.cases)} have a ledger each, and their losses are never added; give the "
                f"limit of each, such as {example} or {next(iter(asked.cases))}.bounded=L"
            )
        limits[part][kind or OWN] = value
    names = {name: f"{dataset}/{name}" if isinstance(dataset, str) else dataset for name in limits}
    return {
        name: account(ledger, names[name], of_part or None, unit, household_cap) for name, of_part in limits.items()
    }


def checked(function: Callable[_P, _R]) -> Callable[_P, _R]:
    """Refuse arguments that are not of the types which a function names: switches, choices and plain numbers.

    A text such as "no" would turn a switch on, and a misspelt choice would be another one.

    Raises
    ------
    ConfigError
        If an argument is of another type, or none of the choices.
    """
    signature = inspect.signature(function)

    @functools.wraps(function)
    def call(*args: _P.args, **named: _P.kwargs) -> _R:
        for name, value in signature.bind(*args, **named).arguments.items():
            _check(name, value, signature.parameters[name].annotation)
        return function(*args, **named)

    return call


def _check(name: str, value: object, annotation: object) -> None:
    # A choice or nothing is a union of typing's own, before Python 3.14.
    kinds = get_args(annotation) if get_origin(annotation) in {Union, UnionType} else (annotation,)
    if (value is None and NoneType in kinds) or annotation is inspect.Parameter.empty:
        return
    (kind, *others) = [kind for kind in kinds if kind is not NoneType]
    if others:
        return
    if kind is bool and not isinstance(value, bool):
        raise ConfigError(f"{name}: must be True or False")
    if kind is int:
        whole_number(name, value)
    if kind is float and (isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) < math.inf):
        raise ConfigError(f"{name}: must be a finite number")
    if get_origin(kind) is Literal and not (isinstance(value, str) and value in get_args(kind)):
        known = nearest(value, get_args(kind)) if isinstance(value, str) else ""
        raise ConfigError(f"{name}: must be {' or '.join(map(repr, get_args(kind)))}{known}")


def path_of(name: str, place: object) -> Path:
    """A path as users give it, absolute or from where they are.

    Raises
    ------
    ConfigError
        If it is of another type, no path of any system, or a URL.
    """
    if not isinstance(place, str | Path):
        raise ConfigError(f"{name}: must be a path, and is of type {type(place).__name__}")
    if not str(place):
        raise ConfigError(f"{name}: an empty text names no place")
    if "\0" in str(place):
        raise ConfigError(f"{name}: no path has a character of number 0")
    if scheme := scheme_of(place):
        raise ConfigError(f"{name}: {scheme}://... is no path of this machine; only DATA may lie on a store")
    return Path(place)


def out_of(out: object, *reads: Place, overwrite: bool | None = None, name: str = "out") -> Path:
    """The absolute path of an output folder, refused before any work if none can be made there.

    Parameters
    ----------
    out
        As `path_of` reads it.
    *reads : path
        What is read for it.
    overwrite : bool, optional
        As of `yupana.release.folder.check_out`.
    name : str
        Of the argument.

    Raises
    ------
    ConfigError
        As of `path_of`.
    OutputError
        If no folder can be made there.
    """
    from yupana.release.folder import check_out

    path = path_of(name, out)
    check_out(path, map(Path, reads), overwrite=overwrite)
    return path.absolute()


def paths_of(name: str, places: Places | None) -> tuple[Path, ...]:
    """One path or several.

    Raises
    ------
    ConfigError
        If something else is given.
    """
    if places is None:
        return ()
    several = [places] if isinstance(places, str | Path) else places
    if not isinstance(several, Sequence):
        raise ConfigError(f"{name}: must be a path or several, and is of type {type(places).__name__}")
    return tuple(path_of(name, place) for place in several)


def path_if_given(name: str, place: object) -> Path | None:
    """A path as `path_of` reads it; None where none is given."""
    return None if place is None else path_of(name, place)


def bytes_of(memory: int | None) -> int | None:
    """How much memory may be used, in bytes; None where nothing is said.

    Raises
    ------
    ConfigError
        If it is no whole number of a size that machines have, or less than `LEAST_MEMORY`.
    """
    found = whole_number("memory", memory)
    if found is not None and not 0 < found < 1 << 60:
        raise ConfigError("memory: must be a number of bytes that a machine has, such as 4_000_000_000")
    if found is not None and found < LEAST_MEMORY:
        raise ConfigError(f"memory: {found:,} bytes are too little: at least {LEAST_MEMORY:,} are needed")
    return found


def engine_terms(
    kind: "EngineKind", master: str | None, shards: int | None, settings: Mapping[str, str] | None
) -> "EngineTerms":
    """Where the work of a run is to be done.

    Raises
    ------
    ConfigError
        If something is said that is none, or that the engine does not have.
    """
    from yupana.engine.engine import EngineTerms

    if master is not None and not isinstance(master, str):
        raise ConfigError(f"master: must be a text such as local[4], and is of type {type(master).__name__}")
    given = dict(settings or {})
    if not all(isinstance(text, str) for text in (*given, *given.values())):
        raise ConfigError("spark_conf: must hold texts, such as {'spark.executor.memory': '4g'}")
    return EngineTerms(kind, master, whole_number("shards", shards), given)


def whole_number(name: str, value: object) -> int | None:
    """A whole number, or None where nothing is said.

    Raises
    ------
    ConfigError
        If it is of another type.
    """
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int):
        raise ConfigError(f"{name}: must be a whole number, and is of type {type(value).__name__}")
    return value


def entropy(seed: int | None) -> "Entropy":
    """The operating system's randomness, or that of a seed.

    Raises
    ------
    ConfigError
        If the seed is no whole number, zero or more.
    """
    from yupana.privacy.entropy import SeededEntropy, SystemEntropy

    if seed is None:
        return SystemEntropy()
    if isinstance(seed, bool) or not isinstance(seed, int) or seed < 0:
        raise ConfigError("seed: must be a whole number, zero or more")
    return SeededEntropy(seed)


def exact_number(name: str, value: Exact) -> Budget:
    """A number as it is written.

    Raises
    ------
    ConfigError
        If it is none.
    """
    try:
        return read_exact(str(value))
    except ValueError as error:
        raise ConfigError(f"{name}: {error}") from None


def confidence_of(value: Exact, name: str = "confidence") -> Fraction:
    """A confidence level.

    Raises
    ------
    ConfigError
        If it does not lie between 0 and 1, or doubles do not tell it from these.
    """
    found = exact_number(name, value)
    if not isinstance(found, Fraction) or not Fraction(1, 10**15) <= found <= 1 - Fraction(1, 10**15):
        raise ConfigError(f"{name}: {value} does not lie strictly between 0 and 1")
    return found
