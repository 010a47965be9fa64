"""Pairs of exact and noisy counts, and the losses published for 1940 to compare theirs with."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from yupana.arrays import Floats
from yupana.audit.empirical.residuals import Residuals, residuals_of
from yupana.errors import InputError
from yupana.files.regular import read_json
from yupana.privacy.laws import Law

TOTAL: Final = "total"
DETAILED: Final = "detailed"

_PUBLISHED: Final = "results_dp_epl.json"
_KEY: Final = re.compile(r"(tc|sc)_privacy_loss_(state|county|enum_dist)_(\d+)_(\d+)_max_abs")
_QUERY_OF_1940: Final = {"tc": TOTAL, "sc": DETAILED}


@dataclass(frozen=True, slots=True, eq=False)
class Series:
    """Counts with noise of one kind.

    Attributes
    ----------
    name : str
    exact, noisy : ndarray of float64, shape (counts,)
    law : Law or None
        Of the noise, where it is known.
    both_zero : int
        Further counts that are zero in both.
    left_out : int
        Noisy counts without an exact one, left out.
    """

    name: str
    exact: Floats
    noisy: Floats
    law: Law | None = None
    both_zero: int = 0
    left_out: int = 0

    def residuals(self) -> Residuals:
        """Noisy minus exact counts.

        Raises
        ------
        InputError
            If no density can be estimated from them (`yupana.audit.empirical.residuals`).
        """
        return residuals_of(self.exact, self.noisy, self.name, self.both_zero)


@dataclass(frozen=True, slots=True)
class PublishedLoss:
    """An EPL that Flaxman and Petti published of the Bureau's runs on the 1940 census.

    Attributes
    ----------
    geolevel : str
        "state", "county" or "enum_dist".
    query : str
        "total", or "detailed" for counts by voting age, race and ethnicity.
    epsilon : float
        Of the whole run.
    loss : float
    """

    geolevel: str
    query: str
    epsilon: float
    loss: float

    def as_json(self) -> dict[str, Any]:
        """With the names of the attributes."""
        return {"geolevel": self.geolevel, "query": self.query, "epsilon": self.epsilon, "epl": self.loss}


def read_published_1940(folder: Path) -> tuple[PublishedLoss, ...]:
    """Read the published losses, in their order.

    Parameters
    ----------
    folder : Path
        Holds ``results_dp_epl.json``.

    Raises
    ------
    InputError
        If it holds no such results.
    """
    path = folder / _PUBLISHED
    try:
        document = read_json(path)
        found = [(_KEY.fullmatch(key), float(value)) for key, value in document.items()]
    except (OSError, ValueError, AttributeError, TypeError):
        raise InputError(f"{path} is not readable as the published results of 1940") from None
    rows = tuple(
        PublishedLoss(match[2], _QUERY_OF_1940[match[1]], float(f"{match[3]}.{match[4]}"), loss)
        for match, loss in found
        if match
    )
    if not rows:
        raise InputError(f"{path} holds no published losses")
    return rows


def counterpart(geolevel: str, geolevels: Sequence[str]) -> str | None:
    """Which geolevel of 1940 compares with one of ours: states and counties by name, enumeration districts our lowest.

    Parameters
    ----------
    geolevel : str
    geolevels : sequence of str
        All of ours, from the root down or in any order.
    """
    same = {"State": "state", "County": "county"}
    if geolevel in same:
        return same[geolevel]
    finest = next((name for name in ("Block", "Block_Group", "Tract") if name in geolevels), None)
    return "enum_dist" if geolevel == finest else None
