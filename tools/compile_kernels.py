"""Compile the loops of TopDown ahead, so that no run waits for it.

numba keeps what it compiles beside the source, or in the user's cache where that cannot be written.
"""

import numpy as np

from yupana.confidential.tabulate.answers import exact_answers
from yupana.topdown.compile import compile_kernels


def main() -> None:
    """Compile all that a run needs."""
    compile_kernels(print)
    zero, none = np.zeros(1, dtype=np.int64), np.zeros(0, dtype=np.int32)
    exact_answers(zero, none, zero[:0], zero, none, zero, none, 0)


if __name__ == "__main__":
    main()
