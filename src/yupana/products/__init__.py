"""The products, public: what each measures and publishes. `PRODUCTS` is the only list of them."""

from collections.abc import Iterator, Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final, NamedTuple, get_args

from yupana.errors import ConfigError, nearest
from yupana.release.recipe import SINGLE_TABLE
from yupana.topdown import Estimator

if TYPE_CHECKING:
    from yupana.products.product import Product
    from yupana.products.tables import Family


class Listing(NamedTuple):
    """What the command line tells of a product before it is imported.

    Attributes
    ----------
    source, reads, data : str
        What its configuration is called, what that may be, and what its records are.
    """

    # folder, name: where it stands: a folder of `yupana.products`, and its name in `product.py` there
    folder: str
    name: str
    about: str  # what it makes, in a line
    confidence: str  # of its margins, unless asked otherwise
    source: str
    reads: str
    built_in: Mapping[str, str]  # names of the configurations that come with it, and what each is of
    data: str
    accountings: str  # what the choice between published and tight sensitivities is; empty where they are the same
    # how consistent counts may be estimated, the default first; empty where noisy counts are published
    estimators: tuple[str, ...]
    takes: frozenset[str]  # options and verbs that not every product has
    outputs: tuple[str, ...]  # what manifests of its outputs name as the system, or else as the product


_PERSONS: Final = Listing(
    "safetab",
    "PERSONS",
    "the Detailed Demographic and Housing Characteristics File A: persons",
    "0.95",
    "PARAMETERS",
    "a parameter folder, a release's manifest",
    {"ddhc-2020-us": "the United States", "ddhc-2020-pr": "Puerto Rico"},
    "a folder with the records and GRF-C.txt",
    "scale the noise to the originals' bound (published), or to the least the code files allow "
    "(docs/safetab-privacy.md)",
    (),
    frozenset({"codes", "parameters", "report", "production"}),
    ("safetab-p", SINGLE_TABLE),
)

_LISTINGS: Final = {
    "phsafe": Listing(
        "phsafe",
        "PHSAFE",
        "the Supplemental Demographic and Housing Characteristics File",
        "0.9",
        "CONFIG",
        "config.json or .toml, a release's manifest",
        {"s-dhc-2020-us": "the United States", "s-dhc-2020-pr": "Puerto Rico"},
        "a folder with persons, units and geo (CSV, Parquet or CEF)",
        "scale the noise to the paper's 2 tau + 2 (published), or to the tight bound (docs/phsafe-privacy.md)",
        (),
        frozenset({"truncation", "report", "estimate", "production"}),
        ("phsafe",),
    ),
    "safetab-p": _PERSONS,
    "safetab-h": _PERSONS._replace(
        name="HOUSEHOLDS",
        about="the Detailed Demographic and Housing Characteristics File B: households",
        takes=_PERSONS.takes | {"totals"},
        outputs=("safetab-h",),
    ),
    "topdown": Listing(
        "topdown",
        "TOPDOWN",
        "the TopDown Algorithm: consistent counts for a hierarchy of geounits",
        "0.9",
        "CONFIG",
        "a file in TOML or JSON, a release's manifest",
        {
            "pl94-2020-us": "TopDown, persons",
            "pl94-2020-pr": "Puerto Rico, persons",
            "h1-2020-us": "TopDown, housing units",
            "h1-2020-pr": "Puerto Rico, housing units",
            "cook-2010": "one county of 2010",
            "pl94-2020-us-block-total": "TopDown, persons, block totals",
            "cook-2010-block-total": "one county of 2010, block totals",
            "pl94-2020-us-whole": "persons and housing units, each a configuration by itself",
            "pl94-2020-pr-whole": "Puerto Rico, persons and housing units",
        },
        "a folder with persons, units and geo, or with histogram.csv (docs/topdown-files.md)",
        "",
        get_args(Estimator),
        frozenset({"spine", "renormalise", "report", "noisy_measurements", "production", "areas", "names"})
        | {"microdata", "pl", "nmf", "intervals", "replicates", "parts"},
        ("topdown", "topdown, noisy measurements"),
    ),
    "tables": Listing(
        "described",
        "TABLES",
        "any office's tables, from a description of its records, areas and cells",
        "0.9",
        "DESCRIPTION",
        "a description in TOML or JSON (docs/tables.md), a release's manifest",
        {
            "people-and-homes": "an example, for the files of a synthetic census",
            "s-dhc-2020-us": "the S-DHC of 2020 (PHSafe) of the United States",
            "ddhc-a-2020-us": "the Detailed DHC-A of 2020 (SafeTab-P) of the United States",
            "ddhc-b-2020-us": "the Detailed DHC-B of 2020 (SafeTab-H) of the United States",
        },
        "a folder with the record files (CSV or Parquet)",
        "scale the noise to the sensitivities that the description states (published), or to the derived ones",
        (),
        frozenset({"codes", "report", "compare", "totals", "draft"}),
        ("tables",),
    ),
}


class UnknownProductError(ConfigError, KeyError):
    """A key of no product, as mappings and as configurations refuse it."""

    __str__ = Exception.__str__  # that of KeyError puts quotes around its words


class Products(Mapping[str, "Product[Any]"]):
    """Products by key. Each is imported when it is asked for, so that to list them costs nothing."""

    def __getitem__(self, key: str) -> "Product[Any]":
        """A product, or `UnknownProductError`."""
        if key not in _LISTINGS:
            known = nearest(key, _LISTINGS) if isinstance(key, str) else ""
            raise UnknownProductError(f"there is no product {key!r}{known or '; there are ' + ', '.join(_LISTINGS)}")
        listing = _LISTINGS[key]
        module = import_module(f"yupana.products.{listing.folder}.product")
        found: Product[Any] = getattr(module, listing.name)
        return found

    def __iter__(self) -> Iterator[str]:
        """The keys, in the order of help pages."""
        return iter(_LISTINGS)

    def __len__(self) -> int:
        """How many there are."""
        return len(_LISTINGS)

    def __contains__(self, key: object) -> bool:
        """Whether there is such a product; it is not imported for the asking."""
        return key in _LISTINGS

    def listing(self, key: str) -> Listing:
        """What the command line tells of a product, without importing it."""
        return _LISTINGS[key]

    def of(self, manifest: "Mapping[str, Any]") -> "Product[Any] | None":
        """The product whose output a manifest is of; None if it is of none."""
        made = manifest.get("system", manifest.get("product"))
        return next((self[key] for key, listing in _LISTINGS.items() if made in listing.outputs), None)


PRODUCTS: Final = Products()


def family_of(table: str, manifest: "Mapping[str, Any]") -> "Family | None":
    """The family of a table: of its release, or of any product's where the table came without its release."""
    found = PRODUCTS.of(manifest)
    own = () if found is None else found.published(manifest)
    families = (*own, *(family for product in PRODUCTS.values() for family in product.families))
    return next((family for family in families if table in family.tables), None)
