"""What holds records or true counts shows nothing of them and cannot be pickled."""

import copy
import pickle
from dataclasses import fields, is_dataclass

import numpy as np
import pytest

from yupana.audit.empirical.series import Residuals, Series
from yupana.confidential.described.block_counts import DescribedCounts, FileCounts, UncountedRecords
from yupana.confidential.described.tabulate import Tabulated
from yupana.confidential.measure_groups import AreaCounts, ChosenCounts, GroupCounts, ListedLevel
from yupana.confidential.product_counter import Observed, Validation
from yupana.confidential.records.sources import OpenedRecords
from yupana.confidential.tabulate.block_histograms import BlockCounts
from yupana.confidential.tabulate.group_counts import KindCounts, PartCounts
from yupana.confidential.topdown.exact_counts import CountsInParts, GeolevelCounts
from yupana.confidential.topdown.world import World
from yupana.privacy.sealed import Sealed, packed

SEALED = (
    *(Series, Residuals, OpenedRecords, DescribedCounts, UncountedRecords, PartCounts, KindCounts),
    *(BlockCounts, World, Observed, Validation, ChosenCounts, GroupCounts, FileCounts, AreaCounts, ListedLevel),
    *(CountsInParts, GeolevelCounts, Tabulated),
)
TRUTH = 8_675_309


@pytest.mark.parametrize("kind", SEALED)
def test_a_holder_of_truth_is_sealed(kind: type[Sealed]) -> None:
    assert is_dataclass(kind)
    held = object.__new__(kind)
    for field in fields(kind):
        object.__setattr__(held, field.name, np.array([TRUTH]))
    for shown in (repr(held), str(held), f"{held!r}", repr([held])):
        assert str(TRUTH) not in shown
        assert f"<{kind.__name__}: confidential>" in shown
    assert not hasattr(held, "_repr_html_")
    for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
        with pytest.raises(TypeError, match="not copied or pickled"):
            pickle.dumps(held, protocol)
    with pytest.raises(TypeError, match="not copied or pickled"):
        copy.deepcopy(held)


def test_what_is_packed_for_another_process_of_the_run_is_unpacked_there() -> None:
    held = Series(**{field.name: np.array([TRUTH]) for field in fields(Series)})
    opened = pickle.loads(packed({"of": (held, [1, "x"])}))["of"]  # noqa: S301 (our own bytes)
    assert type(opened[0]) is Series
    assert opened[1] == [1, "x"]
    for field in fields(Series):
        np.testing.assert_array_equal(getattr(opened[0], field.name), [TRUTH])
    with pytest.raises(TypeError, match="Series tells the truth about records, so it is not copied or pickled"):
        pickle.dumps(opened)
