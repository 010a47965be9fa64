"""Numbers in a byte each where they fit come back as they were, and never take more room."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from yupana.arrays import Integers, narrow
from yupana.topdown.descent.checkpoint import ARRAYS, packed, unpacked

NUMBERS = st.one_of(
    st.integers(-130, 130),
    st.integers(-(2**15) - 1, 2**15),
    st.integers(-(2**31) - 1, 2**31),
    st.integers(-(2**62), 2**62),
)


def size(arrays: dict[str, Integers]) -> int:
    return sum(one.nbytes for one in arrays.values())


@given(st.lists(st.lists(NUMBERS, max_size=6), max_size=3), st.integers(0, 400))
@pytest.mark.slow
def test_arrays_come_back_with_values_shapes_and_types(lists: list[list[int]], more: int) -> None:
    made = [narrow(np.array([*numbers, *[5] * more], dtype=np.int64)).reshape(1, -1) for numbers in lists]
    kept: dict[str, Integers] = {}
    for name, values in enumerate(made):
        arrays = packed(str(name), values)
        assert len(arrays) <= ARRAYS
        assert size(arrays) <= values.nbytes
        kept |= arrays
    found = unpacked(kept)
    assert list(found) == [str(name) for name in range(len(made))]
    for values, again in zip(made, found.values(), strict=True):
        assert (again.dtype, again.shape, again.tolist()) == (values.dtype, values.shape, values.tolist())


def test_noise_of_blocks_takes_a_byte_a_number() -> None:
    values = narrow(np.random.default_rng(1).integers(-9, 10, size=(1000, 50)))
    values[3, 7], values[900, 1] = -129, 4000
    assert size(packed("0", values)) < 1.001 * values.size


@pytest.mark.parametrize(
    "arrays",
    [
        {"0": np.zeros(3, np.int8)},
        {"0": np.zeros(3, np.int8), "0 places": np.array([3]), "0 values": np.array([200], np.int16)},
        {"0": np.zeros(3)},
        {"0": np.zeros(3, np.int16), "0 places": np.zeros(1)},
    ],
)
def test_what_was_not_packed_is_refused(arrays: dict[str, Integers]) -> None:
    with pytest.raises((KeyError, IndexError, ValueError)):
        unpacked(arrays)
