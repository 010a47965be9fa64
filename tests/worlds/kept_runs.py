"""What checkpoints of TopDown hold: which counts were made of which draws."""

import numpy as np

from yupana.geography.tree import Tree
from yupana.topdown.descent.checkpoint import BatchCheckpoint


def measured_for(tree: Tree, counts: str) -> str:
    """The name of the file of draws that a file of counts was made of, where draws are made on demand."""
    level, parent = map(int, counts.removesuffix(".counts").split("-"))
    return f"{level:02d}-{np.searchsorted(tree.parents[level], parent) if level else 0:09d}.measured"


def kept_counts(checkpoint: BatchCheckpoint) -> dict[str, tuple[bytes, ...]]:
    """The counts of every piece, by the name of its file."""
    found = {}
    for path in checkpoint.folder.glob("*.counts"):
        arrays = checkpoint.load_arrays(path.name)
        assert arrays is not None
        found[path.name] = tuple(arrays[of].tobytes() for of in ("starts", "cells", "counts"))
    return found


def drawn_files(checkpoint: BatchCheckpoint) -> set[str]:
    """The names of the files of draws."""
    return {path.name for path in checkpoint.folder.glob("*.measured")}
