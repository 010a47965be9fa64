"""Pairs of exact and noisy counts out of a release and its truth: a series for each table and level."""

import math
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import numpy as np

from yupana.audit.empirical.series import Series
from yupana.errors import InputError
from yupana.privacy.laws import Law, Zero
from yupana.products.gate import open_release
from yupana.release.release import ReleaseFolder
from yupana.release.tables import read_table

_VALUES: Final = frozenset({"COUNT", "VARIANCE", "MOE", "NOISE_DISTRIBUTION"})
"""Columns that do not say which count a row is."""


def release_and_truth(release: Path, truth: Path) -> Iterator[Series]:
    """Pair the tables of a release with those of its truth, such as `phsafe run` and `phsafe exact` write.

    Counts are taken together by table and variance, so that a series has noise of one law. The law is known where the
    variance is that of a measurement of the plan; sums of measured cells have another. SafeTab chooses the table of a
    group by noise, so a noisy count may have no exact one; such counts are left out and numbered.

    Raises
    ------
    InputError, OutputError
        If one is no release, or their counts do not match.
    """
    noisy_release, exact_release = (open_release(folder).intact() for folder in (release, truth))
    for name in noisy_release.files.values():
        if name not in exact_release.files.values():
            raise InputError(f"{truth} has no table {name}, so its counts cannot be matched with those of {release}")
    try:
        for table, name in noisy_release.files.items():
            noisy, exact = (read_table(folder / name) for folder in (release, truth))
            if "COUNT" not in noisy:
                raise InputError(f"{release / name} has no column COUNT")
            if "COUNT" not in exact:
                raise InputError(f"{truth / name} has no column COUNT")
            yield from _by_variance(table, noisy, exact, noisy_release)
    except (KeyError, TypeError, ValueError, AttributeError, ArithmeticError):
        # The checksums hold, so whoever wrote them wrote other tables or another plan than this program does.
        raise InputError(f"{release} and {truth} do not hold the counts and the plan of a release") from None


def _by_variance(
    table: str, noisy: dict[str, list[str]], exact: dict[str, list[str]], release: ReleaseFolder
) -> Iterator[Series]:
    keys = [column for column in noisy if column not in _VALUES]
    if missing_keys := [key for key in keys if key not in exact]:
        raise InputError(f"table {table}: the truth has no column {missing_keys[0]}: the counts do not match")
    for counts in (noisy, exact):
        _check_numbers(table, [*counts["COUNT"], *counts.get("VARIANCE", ())])
    truth = dict(zip(zip(*(exact.get(key, []) for key in keys), strict=True), exact["COUNT"], strict=True))
    may_differ = release.product.startswith("safetab")
    missing: Counter[tuple[str, str]] = Counter()
    groups: dict[tuple[str, str], list[tuple[float, float]]] = {}
    rows = zip(*(noisy[key] for key in keys), strict=True)
    variances = noisy.get("VARIANCE", [""] * len(noisy["COUNT"]))
    regions = noisy.get("REGION_TYPE", [""] * len(noisy["COUNT"]))
    for row, count, variance, region in zip(rows, noisy["COUNT"], variances, regions, strict=True):
        if row not in truth and may_differ:
            missing[region, variance] += 1
            continue
        if row not in truth:
            place = ", ".join(f"{key} {value}" for key, value in zip(keys, row, strict=True))
            raise InputError(f"table {table}: the truth has no count for {place}: the counts do not match")
        groups.setdefault((region, variance), []).append((float(truth[row]), float(count)))
    laws = _laws(release)
    for (region, variance), pairs in groups.items():
        both = np.array(pairs)
        name = " ".join(filter(None, (table, region, f"variance {float(variance):.6g}" if variance else "")))
        law = _law(laws, table, float(variance)) if variance else None
        yield Series(name, both[:, 0], both[:, 1], law, 0, missing[region, variance])


def _check_numbers(table: str, values: list[str]) -> None:
    try:
        good = all(math.isfinite(float(value)) for value in values)
    except ValueError:
        good = False
    if not good:
        raise InputError(f"table {table}: a COUNT or VARIANCE is no number")


def _law(laws: dict[tuple[str, float], Law], table: str, variance: float) -> Law | None:
    """The law of a measurement of this table; plans of SafeTab say T03 for T03001, T01001-T02003 for all between."""
    for (measured, its_variance), law in laws.items():
        first, _, last = measured.partition("-")
        if its_variance == variance and (table.startswith(measured) or first <= table <= last):
            return law
    return None


def _laws(release: ReleaseFolder) -> dict[tuple[str, float], Law]:
    """Laws of the measurements of a plan, by table and variance as a table writes it."""
    measured = release.plan.measurements if release.plan else ()
    return {(m.table, float(m.variance)): m.law for m in measured if not isinstance(m.law, Zero)}
