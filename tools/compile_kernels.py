"""Compile the loops of TopDown ahead, so that no run waits for it.

numba keeps what it compiles beside the source, or in the user's cache where that cannot be written.
"""

from yupana.topdown.descent.compile import compile_chain, compile_kernels


def main() -> None:
    """Compile all that a run needs."""
    compile_kernels(print)
    compile_chain(print)


if __name__ == "__main__":
    main()
