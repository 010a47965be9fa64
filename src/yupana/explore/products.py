"""The configurations that can be explored: those that come with each product, and those given."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

from yupana.errors import InputError
from yupana.explore.form import BudgetPage
from yupana.explore.reference import (
    KnownCounts,
    blocks,
    invented_groups,
    invented_phsafe,
    known_to_phsafe,
    known_to_release,
    known_to_safetab,
    known_to_topdown,
)
from yupana.files.document import Changes
from yupana.products import PRODUCTS
from yupana.products.gate import open_checked
from yupana.products.parts import read_parts
from yupana.products.phsafe.product import PHSAFE
from yupana.products.product import Product
from yupana.products.safetab.configuration import read_config
from yupana.products.safetab.demonstration_parameters import write_parameters
from yupana.products.safetab.iterations import read_iterations
from yupana.products.safetab.product import HOUSEHOLDS, PERSONS, Parameters


class Pages(dict[str, BudgetPage]):
    """Pages by key. To ask one may raise what reading its files raises, so those of the user are read at once.

    Parameters
    ----------
    counts : Path, optional
        A release whose counts the errors of its product are set against. Unless it is of PHSafe, or another
        configuration of its product is given, its own configuration is shown.
    parameters : Path, optional
        A parameter folder of SafeTab.
    topdown : str, optional
        A configuration of TopDown to show beside the built-in ones, or a document of parts.
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
        super().__init__()
        self._parameters = parameters
        self._release = None if counts is None else open_checked(counts)
        self._known: dict[tuple[str, ...], Mapping[str, KnownCounts]] = {}
        for product in PRODUCTS.values():
            for source, of in product.built_in.items():
                if parameters is None or not source.startswith("ddhc-2020-pr"):
                    self._add(product, source, of)
        if topdown is not None:
            self._add(PRODUCTS["topdown"], topdown, Path(topdown).stem, own=True)
        if tables is not None:
            self._add(PRODUCTS["tables"], tables, Path(tables).stem, codes, own=True)
        release = self._release
        if release is not None and release.product != PHSAFE.key and f"{release.product}-own" not in self:
            if (whose := PRODUCTS.of(release.manifest)) is None:
                raise InputError(f"{counts} is no release of one product, whose budgets could be explored")
            self._add(whose, str(release.folder / "manifest.json"), release.folder.name, codes, own=True)
        own = [key for key in self if key.endswith("-own") or "-own/" in key]
        given = ((release is not None and release.product == PHSAFE.key, "phsafe/s-dhc-2020-us"),
                 (parameters is not None, "safetab-p/ddhc-2020-us"))  # fmt: skip
        for key in (*(key for is_given, key in given if is_given), *own):
            _ = self[key].config

    def _add(
        self, product: Product[Any], source: str, title: str, codes: Path | None = None, *, own: bool = False
    ) -> None:
        """A configuration, or each of its parts; nothing where it needs files that are not given."""
        key = f"{product.key}-own" if own else f"{product.key}/{source}"
        known = self._known_of(product) if self._is_told(product, own=own) else _KNOWN.get(product.key, lambda _: {})
        if product.key.startswith("safetab"):
            self._put(key, product, title, self._safetab(product, source, own=own), known)
            return
        if product.key == "topdown":
            whole = read_parts(source, product.locate(source), product.built_in)
            if whole is not None:
                for part, of in whole.sources.items() if own else ():
                    reader = _reader(product, of.config, of.within)
                    self._put(f"{key}/{part}", product, f"{title}, {part}", reader, known_to_topdown)
                return
        elif product.key == "tables" and not own and source.startswith("ddhc"):
            return  # their code files are those of SafeTab, which has them under its own name
        self._put(key, product, title, _reader(product, source, codes=codes), known)

    def _put(
        self,
        key: str,
        product: Product[Any],
        title: str,
        reader: Callable[[Changes], Any],
        known: Callable[[Any], Mapping[str, KnownCounts]],
    ) -> None:
        told = self._is_told(product, own="-own" in key)
        self[key] = BudgetPage(key, title, product, reader, known, lambda: self._source(product, told=told))

    def _is_told(self, product: Product[Any], *, own: bool) -> bool:
        """Whether the release tells the counts: of PHSafe for every configuration, else for that of the user."""
        is_of = self._release is not None and self._release.product == product.key
        return is_of and (own or product.key == PHSAFE.key)

    def _known_of(self, product: Product[Any]) -> Callable[[Any], Mapping[str, KnownCounts]]:
        """The counts of the release by the entries of a configuration, read once."""

        def known(config: Any) -> Mapping[str, KnownCounts]:  # noqa: ANN401 (the product's own)
            key = (product.key, *product.entries(config))
            if key not in self._known and self._release is not None:
                self._known[key] = known_to_release(self._release, product, config)
            return self._known.get(key, {})

        return known

    def _source(self, product: Product[Any], *, told: bool) -> str:
        if told and self._release is not None:
            return f"the release {self._release.folder.name}, noise included"
        if product.key == PHSAFE.key:
            return str(invented_phsafe()["source"])
        if product.key == "topdown":
            return f"an average geounit of {blocks().source}, and 51 times that state for the nation"
        return str(invented_groups()["source"]) if product.key.startswith("safetab") else ""

    def _safetab(self, product: Product[Any], source: str, *, own: bool) -> Callable[[Changes], Any]:
        """A built-in configuration with the groups of a parameter folder, or of the demonstration."""
        parameters = self._parameters

        @cache
        def read() -> tuple[Path, Parameters]:
            if parameters is None:
                path = product.locate(source)
                with TemporaryDirectory() as folder:
                    write_parameters(Path(folder) / "parameters")
                    iterations = read_iterations(Path(folder) / "parameters")
            else:
                iterations = read_iterations(parameters)
                path = product.locate(source if own else parameters)
            return path, Parameters(read_config(product.key, path), iterations)

        return lambda changes: replace(read()[1], config=read_config(product.key, read()[0], changes))


_KNOWN: Final[Mapping[str, Callable[[Any], Mapping[str, KnownCounts]]]] = {
    "topdown": known_to_topdown,
    PHSAFE.key: known_to_phsafe,
    **dict.fromkeys((PERSONS.key, HOUSEHOLDS.key), known_to_safetab),
}
"""The counts of invented people by the entries of a configuration."""


def _reader(
    product: Product[Any], source: Any, within: tuple[str, ...] = (), codes: Path | None = None  # noqa: ANN401
) -> Callable[[Changes], Any]:  # fmt: skip
    """Reads a configuration with changes in it."""
    more = {} if codes is None else {"codes": codes}
    return lambda changes: product.read(source, Changes(changes.values, within), **more)
