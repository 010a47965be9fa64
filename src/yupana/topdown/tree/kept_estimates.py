"""Estimates of a geolevel on disk, of which parts are read: those of a nation do not fit into memory. Public."""

import os
import tempfile
import weakref

import numpy as np

from yupana.arrays import Floats
from yupana.errors import OutputError
from yupana.files.regular import take_room
from yupana.files.temporary import temporary_folder
from yupana.topdown.tree.least_squares import TreeEstimate


class EstimatesOnDisk:
    """Estimates of units in a scratch file of their owner's, which is gone when nobody holds it.

    Parameters
    ----------
    units : int
        So many will be added; their room on the disk is taken at once.
    cells, subsets : int
        Columns of coordinates and of precisions.

    Raises
    ------
    OutputError
        If the disk of the temporary folder is full.
    """

    def __init__(self, units: int, cells: int, subsets: int) -> None:
        self._widths = (cells, subsets)
        self._begins = (0, 8 * units * cells)
        self._added = 0
        try:
            with tempfile.TemporaryFile(dir=temporary_folder()) as file:
                take_room(file.fileno(), 0, 8 * units * (cells + subsets))
                self._file = os.dup(file.fileno())
        except OSError as error:
            text = f"{temporary_folder()} cannot hold the estimates of a geolevel: {error.strerror}; set TMPDIR"
            raise OutputError(text) from None
        weakref.finalize(self, os.close, self._file)

    def add(self, estimate: TreeEstimate) -> None:
        """Add the estimates of the units that follow."""
        for values, width, begin in zip(
            (estimate.coordinates, estimate.precision), self._widths, self._begins, strict=True
        ):
            flat, done = np.ascontiguousarray(values).reshape(-1).view(np.uint8), 0
            while done < len(flat):
                done += os.pwrite(self._file, flat[done:].data, begin + 8 * self._added * width + done)
        self._added += len(estimate.precision)

    def part(self, first: int, last: int) -> TreeEstimate:
        """Estimates of the units from ``first`` up to ``last``."""
        coordinates, precision = (
            self._read(begin + 8 * first * width, (last - first, width))
            for width, begin in zip(self._widths, self._begins, strict=True)
        )
        return TreeEstimate(coordinates, precision)

    def _read(self, begin: int, shape: tuple[int, int]) -> Floats:
        found = np.empty(shape)
        flat, done = found.reshape(-1).view(np.uint8), 0
        while done < found.nbytes:
            # Several may read at a time, so the place is said with each reading.
            done += os.preadv(self._file, [flat[done:].data], begin + done)
        return found
