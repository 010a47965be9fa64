"""The products, public: what each measures and publishes. `PRODUCTS` is the only list of them."""

from collections.abc import Iterator, Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from yupana.products.product import Product
    from yupana.products.tables import Family

_PLACES: Final = {
    "phsafe": ("phsafe", "PHSAFE", "the Supplemental Demographic and Housing Characteristics File"),
    "safetab-p": ("safetab", "PERSONS", "the Detailed Demographic and Housing Characteristics File A: persons"),
    "safetab-h": ("safetab", "HOUSEHOLDS", "the Detailed Demographic and Housing Characteristics File B: households"),
    "topdown": ("topdown", "TOPDOWN", "the TopDown Algorithm: consistent counts for a hierarchy of geounits"),
}


class Products(Mapping[str, "Product[Any]"]):
    """Products by key. Each is imported when it is asked for, so that to list them costs nothing."""

    def __getitem__(self, key: str) -> "Product[Any]":
        """A product, or KeyError."""
        folder, name, _ = _PLACES[key]
        found: Product[Any] = getattr(import_module(f"yupana.products.{folder}.product"), name)
        return found

    def __iter__(self) -> Iterator[str]:
        """The keys, in the order of help pages."""
        return iter(_PLACES)

    def __len__(self) -> int:
        """How many there are."""
        return len(_PLACES)

    def __contains__(self, key: object) -> bool:
        """Whether there is such a product; it is not imported for the asking."""
        return key in _PLACES

    def about(self, key: str) -> str:
        """What a product makes, in a line, without importing it."""
        return _PLACES[key][2]


PRODUCTS: Final = Products()


def family_of(table: str, product: object) -> "Family | None":
    """The family of a table: of its product, or of any where the table came without its release."""
    keys = sorted(PRODUCTS, key=lambda key: key != product)
    return next((family for key in keys for family in PRODUCTS[key].families if table in family.tables), None)
