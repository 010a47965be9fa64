"""The products of the page, each made when it is first opened, so that the page is there at once."""

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Final

from yupana.explore.product import Product

TITLES: Final = {
    "phsafe": "PHSafe (S-DHC)",
    "safetab-p": "SafeTab-P (Detailed DHC-A)",
    "safetab-h": "SafeTab-H (Detailed DHC-B)",
    "topdown": "TopDown, persons",
    "topdown-h1": "TopDown, housing units",
    "topdown-pr": "Puerto Rico, persons",
    "topdown-h1-pr": "Puerto Rico, housing units",
}
"""What each product is called, by its key."""

_STRATEGIES: Final = {
    "topdown": "pl94-2020-us",
    "topdown-h1": "h1-2020-us",
    "topdown-pr": "pl94-2020-pr",
    "topdown-h1-pr": "h1-2020-pr",
}
"""The built-in configurations of TopDown that are shown, by key."""

_OWN: Final = "topdown-own"
"""The key of a configuration of TopDown that was given."""


class Shelf(Mapping[str, Product]):
    """Products by key. Making one may raise what reading its files raises, so files of the user are read at once.

    Parameters
    ----------
    counts : Path, optional
        A release of PHSafe whose counts its errors are set against.
    parameters : Path, optional
        A parameter folder of SafeTab.
    topdown : str, optional
        A configuration of TopDown to show beside the built-in ones.
    """

    def __init__(self, counts: Path | None = None, parameters: Path | None = None, topdown: str | None = None) -> None:
        self._counts, self._parameters = counts, parameters
        self._made: dict[str, Product] = {}
        self._makers: dict[str, Callable[[], Product]] = {
            "phsafe": self._phsafe,
            "safetab-p": self._safetab_p,
            "safetab-h": self._safetab_h,
        }
        sources = _STRATEGIES | ({_OWN: topdown} if topdown is not None else {})
        self._makers |= {key: partial(self._strategy, key, source) for key, source in sources.items()}
        for given, key in ((counts, "phsafe"), (parameters, "safetab-p"), (topdown, _OWN)):
            if given is not None:
                self[key]

    def __getitem__(self, key: str) -> Product:
        """A product, made if it has not been."""
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
        """Whether there is such a product; it is not made for the asking."""
        return key in self._makers

    @property
    def titles(self) -> Mapping[str, str]:
        """What each is called."""
        return TITLES | {key: product.form.title for key, product in self._made.items()}

    def _phsafe(self) -> Product:
        from yupana.explore.phsafe import Phsafe  # noqa: PLC0415 (as said above)
        from yupana.explore.reference import phsafe_reference  # noqa: PLC0415

        return Phsafe(phsafe_reference(self._counts))

    def _safetab_p(self) -> Product:
        from yupana.explore.reference_safetab import iterations_of, safetab_reference  # noqa: PLC0415
        from yupana.explore.safetab import SafetabP  # noqa: PLC0415

        return SafetabP(iterations_of(self._parameters), safetab_reference())

    def _safetab_h(self) -> Product:
        from yupana.explore.reference_safetab import iterations_of, safetab_reference  # noqa: PLC0415
        from yupana.explore.safetab import SafetabH  # noqa: PLC0415

        return SafetabH(iterations_of(self._parameters), safetab_reference())

    @staticmethod
    def _strategy(key: str, source: str) -> Product:
        from yupana.explore.reference_topdown import blocks  # noqa: PLC0415
        from yupana.explore.topdown import TopDown, finite_configuration  # noqa: PLC0415

        return TopDown(key, source, finite_configuration(source), blocks())
