"""The pages of the explorer, one for each product or built-in configuration, each made when it is first opened."""

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Final

from yupana.explore.form import ProductPage
from yupana.products import PRODUCTS
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
        self._counts, self._parameters = counts, parameters
        self._made: dict[str, ProductPage] = {}
        self._titles: dict[str, str] = {}
        self._makers: dict[str, Callable[[], ProductPage]] = {}
        of_folders = {PHSAFE.key: self._phsafe, PERSONS.key: self._persons, HOUSEHOLDS.key: self._households}
        for key, product in PRODUCTS.items():
            if key in of_folders:
                self._makers[key], self._titles[key] = of_folders[key], product.words.title
        for source, built_in in TOPDOWN.built_in.items():
            if built_in.page:
                self._makers[built_in.page] = partial(self._strategy, built_in.page, source, built_in.title)
                self._titles[built_in.page] = built_in.title
        if topdown is not None:
            self._makers[_OWN] = partial(self._strategy, _OWN, topdown, Path(topdown).stem)
        if tables is not None:
            self._makers[TABLES.key] = partial(self._described, tables, codes)
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

    def _phsafe(self) -> ProductPage:
        from yupana.explore.phsafe import PhsafePage  # noqa: PLC0415 (as said above)
        from yupana.explore.reference import phsafe_reference  # noqa: PLC0415

        return PhsafePage(phsafe_reference(self._counts))

    def _persons(self) -> ProductPage:
        from yupana.explore.reference import iterations_of, safetab_reference  # noqa: PLC0415
        from yupana.explore.safetab import PersonsPage  # noqa: PLC0415

        return PersonsPage(iterations_of(self._parameters), safetab_reference())

    def _households(self) -> ProductPage:
        from yupana.explore.reference import iterations_of, safetab_reference  # noqa: PLC0415
        from yupana.explore.safetab import HouseholdsPage  # noqa: PLC0415

        return HouseholdsPage(iterations_of(self._parameters), safetab_reference())

    @staticmethod
    def _strategy(key: str, source: str, title: str) -> ProductPage:
        from yupana.explore.reference import blocks  # noqa: PLC0415
        from yupana.explore.topdown import TopdownPage, finite_configuration  # noqa: PLC0415

        return TopdownPage(key, source, finite_configuration(source), blocks(), title)

    @staticmethod
    def _described(source: str, codes: Path | None) -> ProductPage:
        from yupana.explore.described import DescribedPage, finite_description  # noqa: PLC0415

        return DescribedPage(source, finite_description(source, codes))
