"""The pages of the explorer, one for each product or built-in configuration, each made when it is first opened."""

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Final

from yupana.explore.described import DescribedPage, finite_description
from yupana.explore.form import ProductPage
from yupana.explore.phsafe import PhsafePage
from yupana.explore.reference import blocks, iterations_of, phsafe_reference, safetab_reference
from yupana.explore.safetab import HouseholdsPage, PersonsPage
from yupana.explore.topdown import TopdownPage, finite_configuration
from yupana.products.described.product import TABLES
from yupana.products.phsafe.product import PHSAFE
from yupana.products.safetab.product import HOUSEHOLDS, PERSONS
from yupana.products.topdown.product import TOPDOWN

_OWN: Final = f"{TOPDOWN.key}-own"
"""The key of a configuration of TopDown that was given."""


class Pages(Mapping[str, ProductPage]):
    """Pages by key. Making one may raise what reading its files raises, so files of the user are read at once.

    Parameters
    ----------
    counts : Path, optional
        A release of PHSafe whose counts its errors are set against.
    parameters : Path, optional
        A parameter folder of SafeTab.
    topdown : str, optional
        A configuration of TopDown to show beside the built-in ones.
    tables : str, optional
        A description of tables to show.
    codes : Path, optional
        The folder of the public files that it names, if it is another than its own.
    """

    def __init__(
        self,
        counts: Path | None = None,
        parameters: Path | None = None,
        topdown: str | None = None,
        tables: str | None = None,
        codes: Path | None = None,
    ) -> None:
        self._made: dict[str, ProductPage] = {}
        self._makers: dict[str, Callable[[], ProductPage]] = {
            PHSAFE.key: lambda: PhsafePage(phsafe_reference(counts)),
            PERSONS.key: lambda: PersonsPage(iterations_of(parameters), safetab_reference()),
            HOUSEHOLDS.key: lambda: HouseholdsPage(iterations_of(parameters), safetab_reference()),
        }
        self._titles = {product.key: product.words.title for product in (PHSAFE, PERSONS, HOUSEHOLDS)}
        for source, built_in in TOPDOWN.built_in.items():
            if built_in.page:
                self._makers[built_in.page] = partial(_strategy, built_in.page, source, built_in.title)
                self._titles[built_in.page] = built_in.title
        if topdown is not None:
            self._makers[_OWN] = partial(_strategy, _OWN, topdown, Path(topdown).stem)
        if tables is not None:
            self._makers[TABLES.key] = lambda: DescribedPage(tables, finite_description(tables, codes))
            self._titles[TABLES.key] = Path(tables).stem
        of_files = ((counts, PHSAFE.key), (parameters, PERSONS.key), (topdown, _OWN), (tables, TABLES.key))
        for given, key in of_files:
            if given is not None:
                self[key]

    def __getitem__(self, key: str) -> ProductPage:
        """A page, made if it has not been."""
        if key not in self._made:
            self._made[key] = self._makers[key]()
        return self._made[key]

    def __iter__(self) -> Iterator[str]:
        """The keys, in the order of the page."""
        return iter(self._makers)

    def __len__(self) -> int:
        """How many there are."""
        return len(self._makers)

    def __contains__(self, key: object) -> bool:
        """Whether there is such a page; it is not made for the asking."""
        return key in self._makers

    @property
    def titles(self) -> Mapping[str, str]:
        """What each is called."""
        return self._titles | {key: page.form.title for key, page in self._made.items()}


def _strategy(key: str, source: str, title: str) -> ProductPage:
    """The page of a configuration of TopDown."""
    return TopdownPage(key, source, finite_configuration(source), blocks(), title)
