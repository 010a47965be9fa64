"""A configuration and its options, in whatever form users have them, read into values."""

from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from yupana.errors import ConfigError, nearest
from yupana.files.columns import BUREAU, ColumnMap, column_map_of, read_column_map
from yupana.files.document import Changes, Number, read_value
from yupana.files.regular import FOLDER, must_be
from yupana.interface.arguments import (
    as_json,
    changes_of,
    confidence_of,
    folder_of,
    from_file,
    one_of,
    path_of,
    paths_of,
    typed,
)
from yupana.interface.options import OPTIONS, Option, Place, declared, has
from yupana.products import PRODUCTS, Listing
from yupana.release.manifest import MANIFEST
from yupana.release.recipe import OPTIONS as IN_DOCUMENT
from yupana.release.recipe import Recipe, options_in, read_recipe
from yupana.topdown.interval_terms import check_terms

if TYPE_CHECKING:
    from yupana.files.columns import RecordFile
    from yupana.products.product import Product

_NAMES: Final = {option.flag: name for name, option in OPTIONS.items() if option.flag}
"""Options that documents call otherwise."""


class GivenOption(NamedTuple):
    """The value of an option, and where it was told."""

    value: Any
    place: str
    folder: Path = Path()


def read_configured(
    product: "Product[Any]", config: object, changes: Changes, given: "Mapping[str, GivenOption]"
) -> tuple[Any, dict[str, Any], Recipe | None]:
    """Read a configuration and its options.

    An option is what is given, else what the table ``options`` of the configuration says, or of the release whose
    manifest it is.

    Returns
    -------
    configuration, options, recipe
        The product's own; a value for each of `OPTIONS`; how the release was made whose manifest it is.

    Raises
    ------
    ConfigError
        Naming what is wrong with the configuration or an option, or what the product does not take.
    """
    listing = PRODUCTS.listing(product.key)
    _refuse_others(product.key, given)
    path = product.locate(config) if isinstance(config, str | Path) else None
    try:
        repeats = None if path is None else read_recipe(path)
    except ConfigError:
        if isinstance(config, str | Path):
            # The reader of the product tells a manifest of something else by its name.
            product.read(config)
        raise
    if repeats is not None and path is not None and path.name == MANIFEST:
        _refuse_unsound(path)
    told = {**(_in_document(config, path) if repeats is None else _in_manifest(path, repeats, listing)), **given}
    options = read_options(product.key, told)
    more = {name: options[name] for name in ("codes", "renormalise") if options[name]}
    read = _read(product, _without_options(config), changes, more)
    read, options["spine"] = _on_spine(read, options["spine"])
    options["columns"] = _columns(told.get("columns"), product.record_files(read))
    return read, options, repeats


def told_options(settings: Mapping[str, Any], but: Collection[str] = ()) -> "tuple[Changes, dict[str, GivenOption]]":
    """The changes of a configuration, and the options that are told beside them or among them."""
    changes, told = _options_among(changes_of(settings.get("set")))
    given = {name: value for name, value in settings.items() if value is not None and name not in {"set", *but}}
    return changes, told | {name: GivenOption(value, name) for name, value in given.items()}


def _refuse_others(product: str, told: "Mapping[str, GivenOption]") -> None:
    """Refuse options that there are not, and those that a product does not take."""
    for name, one in told.items():
        if name not in OPTIONS:
            raise ConfigError(f"{one.place}: there is no such option{nearest(name, OPTIONS)}")
        if not has(PRODUCTS.listing(product), OPTIONS[name]) and one.value != OPTIONS[name].default:
            raise ConfigError(f"{product} takes no {name}")


def read_options(product: str, told: "Mapping[str, GivenOption]") -> dict[str, Any]:
    """A value for each of `OPTIONS`, of which a spine and names of columns are read with the configuration.

    Raises
    ------
    ConfigError
        If there is no such option, the product does not take it, or its value is none.
    """
    _refuse_others(product, told)
    options = {name: _value(option, told.get(name)) for name, option in OPTIONS.items()}
    check_terms(options["intervals"], options["replicates"])
    return options


def terms_of(of: object, given: Mapping[str, Any]) -> dict[str, Any]:
    """A value for each option that a class declares, as it is given, or its default.

    Raises
    ------
    ConfigError
        If there is no such option, or its value is none.
    """
    known = declared(of)
    for name in given:
        if name not in known:
            raise ConfigError(f"{name}: there is no such option{nearest(name, known)}")
    told = {name: GivenOption(value, name) for name, value in given.items() if value is not None}
    return {name: _value(option, told.get(name)) for name, option in known.items()}


def _in_document(config: object, path: Path | None) -> dict[str, GivenOption]:
    """The options that a configuration holds itself; paths are from where it lies."""
    if path is not None:
        return _named(options_in(path), f"{path}: {IN_DOCUMENT}", path.parent)
    table = config.get(IN_DOCUMENT, {}) if isinstance(config, Mapping) else {}
    if not isinstance(table, Mapping):
        raise ConfigError(f"{IN_DOCUMENT}: must be a table of keys and values")
    return _named(table, IN_DOCUMENT, Path())


def _named(table: Mapping[str, Any], place: str, folder: Path) -> dict[str, GivenOption]:
    """Options by the names of Python, each with the key under which it was told."""
    return {_NAMES.get(name, name): GivenOption(value, f"{place}.{name}", folder) for name, value in table.items()}


def _in_manifest(path: Path | None, repeats: Recipe, listing: Listing) -> dict[str, GivenOption]:
    """The options of a release, as texts; its manifest tells some that its product has no choice of."""
    told = _named(repeats.options, f"{path}: {IN_DOCUMENT}", Path())
    return {
        name: one._replace(value=Number(one.value)) if OPTIONS[name].kind == "whole" else one
        for name, one in told.items()
        if name in OPTIONS and has(listing, OPTIONS[name])
    }


def _options_among(changes: Changes) -> tuple[Changes, dict[str, GivenOption]]:
    """The changes of a configuration, and the options among them."""
    start = f"{IN_DOCUMENT}."
    faults: list[str] = []
    found = {}
    for key, text in changes.values:
        if key == IN_DOCUMENT:
            raise ConfigError(f"{IN_DOCUMENT}: set one of them, such as {start}margins=bureau")
        if key.startswith(start):
            name = key.removeprefix(start)
            found[_NAMES.get(name, name)] = GivenOption(read_value(text, faults), key)
    own = tuple(pair for pair in changes.values if not pair[0].startswith(start))
    return Changes(own, changes.within), found


def _without_options(config: object) -> object:
    if not isinstance(config, Mapping) or IN_DOCUMENT not in config:
        return config
    return {key: value for key, value in config.items() if key != IN_DOCUMENT}


def _value(option: Option, told: GivenOption | None) -> Any:  # noqa: ANN401 (of any option, by its kind)
    """The value of an option, or its default."""
    if told is None:
        return option.default
    value, place = told.value, told.place
    if isinstance(value, Number) and option.kind == "whole":
        value = int(value) if value.isdecimal() and len(value) < _DIGITS else value
    if option.choices:
        return one_of(place, value, option.choices)
    if option.kind == "path":
        return told.folder / path_of(place, value)
    if option.kind == "paths":
        return tuple(told.folder / path for path in paths_of(place, value))
    return _READERS[option.kind](place, value) if option.kind in _READERS else value


def _texts(place: str, value: object) -> tuple[str, ...]:
    if isinstance(value, str) or not isinstance(value, Sequence) or not all(isinstance(one, str) for one in value):
        raise ConfigError(f"{place}: must be a sequence of texts, such as ['06', '44']")
    return tuple(value)


_READERS: Final[Mapping[str, Callable[[str, Any], Any]]] = {
    "switch": partial(typed, kind=bool),
    "text": partial(typed, kind=str),
    "number": partial(typed, kind=float),
    "whole": partial(typed, kind=int),
    "seed": partial(typed, kind=int),
    "level": lambda place, value: confidence_of(value, place),
    "share": lambda place, value: confidence_of(value, place),
    "names": _texts,
    "release": lambda place, value: folder_of(value, place),
}
"""How values are read from whatever Python has; those of other kinds are read with what they belong to."""

_DIGITS: Final = 10


def _columns(told: GivenOption | None, files: "Mapping[str, RecordFile]") -> ColumnMap:
    """The map of columns: a file of it, a document, or the text of one as a manifest holds it."""
    if told is None:
        return BUREAU
    value = told.value
    if isinstance(value, Mapping):
        return column_map_of(as_json("columns", value), "columns", files)
    if isinstance(value, str) and value.lstrip().startswith("{"):
        return column_map_of(value, files=files)
    return read_column_map(told.folder / path_of("columns", value), files)


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
    return from_file("config", config, lambda path: read(path, changes, **more))


def _on_spine(config: Any, spine: Place | None) -> tuple[Any, Path | None]:  # noqa: ANN401 (the product's own)
    """The configuration on another spine, and its folder if it was built before."""
    if spine is None:
        return config, None
    from yupana.geography.settings import KINDS

    if isinstance(spine, str) and spine in KINDS:
        return config.on_spine(spine), None
    from yupana.geography.spine_files import manifest_of, settings_of
    from yupana.topdown.budget import on_given

    folder = path_of("spine", spine)
    known = f"as spine name one of {', '.join(KINDS)}, or a folder that spine build made{nearest(str(spine), KINDS)}"
    must_be(FOLDER, folder, known, ConfigError)
    return on_given(config, settings_of(manifest_of(folder), folder), folder), folder


def _refuse_unsound(manifest: Path) -> None:
    """Refuse to repeat a release whose manifest says what its configuration does not."""
    from yupana.products.gate import manifest_faults
    from yupana.release.release import read_release

    if wrong := manifest_faults(read_release(manifest.parent, confidential=True)).wrong:
        raise ConfigError("\n  ".join([f"{manifest}: its release does not hold together:", *wrong]))
