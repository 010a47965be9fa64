"""Loops that numpy cannot say, compiled by numba when first called and kept on disk from then on."""

import gc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final, ParamSpec, TypeVar

from yupana.errors import ConfigError

try:
    from numba import njit
    from numba.core.codegen import JITCodeLibrary, JITCPUCodegen
    from numba.core.compiler import Compiler, CompilerBase, CompileResult, DefaultPassBuilder, Flags
    from numba.core.event import Event, Listener, install_listener
except ModuleNotFoundError as error:
    raise ConfigError(
        f"TopDown's loops are compiled by the package {error.name}; install Yupana's extra topdown (docs/README.md)"
    ) from None

_P = ParamSpec("_P")
_R = TypeVar("_R")


class _LinkedCode(JITCodeLibrary):  # type: ignore[misc]
    """Code that only compiled functions call: it is optimized and made machine code where it is linked in.

    numba would do so for every function by itself, too, and throw the result away.
    """

    _is_linked_only = False

    def finalize(self) -> None:
        """Link what is called, and leave the rest to the callers."""
        self._raise_if_finalized()
        for library in dict.fromkeys(self._linking_libraries):
            self._reload_init.update(library._reload_init)  # noqa: SLF001 (as the class above does)
            self._final_module.link_in(library._get_module_for_linking(), preserve=True)  # noqa: SLF001
        self._finalized = self._is_linked_only = True

    def get_pointer_to_function(self, name: str) -> int:
        """Find no machine code, but of what was kept on disk."""
        self._ensure_finalized()
        return 0 if self._is_linked_only else int(super().get_pointer_to_function(name))

    @property
    def codegen(self) -> Any:  # noqa: ANN401 (of numba)
        """What the caller of numba hands the environment of the function to."""
        return self if self._is_linked_only else super().codegen

    def set_env(self, env_name: str, env: object) -> None:
        """Leave the environment to the function that this is linked into."""


class _Flags(Flags):  # type: ignore[misc]
    """Flags that are compared by what was set: numba looks them up some hundred thousand times."""

    __slots__ = ()

    def __eq__(self, other: object) -> bool:
        if type(other) is not _Flags:
            return bool(super().__eq__(other))
        here, there = self._values, other._values
        return here == there or all(
            here.get(name, self.options[name].default) == there.get(name, self.options[name].default)
            for name in here.keys() | there.keys()
        )

    def __hash__(self) -> int:
        return _HASH


_HASH: Final = hash(Flags())
"""That of all flags, which numba makes of the names alone."""


@contextmanager
def _no_collection() -> Iterator[None]:
    """Put the search for garbage off: what numba makes nearly all stays, and it takes a quarter of the time."""
    if not gc.isenabled():
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        if not gc.get_freeze_count():
            gc.freeze()
            gc.unfreeze()  # counts what was made as old
        gc.enable()


class _PartCompiler(Compiler):  # type: ignore[misc]
    """Compiles a function that only compiled ones call."""

    def __init__(self, *terms: Any) -> None:  # noqa: ANN401 (of numba)
        super().__init__(*(_Flags(term) if type(term) is Flags else term for term in terms))


class _Compiler(_PartCompiler):
    """Compiles a function that Python calls, and what it calls as `_LinkedCode`."""

    def define_pipelines(self) -> list[Any]:
        """The steps of numba."""
        if self.state.library is None:
            self.state.library = JITCodeLibrary(self.state.targetctx.codegen(), self.state.func_id.func_qualname)
            self.state.library.enable_object_caching()
        return [DefaultPassBuilder.define_nopython_pipeline(self.state)]

    def _compile_core(self) -> Any:  # noqa: ANN401 (of numba)
        codegen = self.state.targetctx.codegen()
        before, codegen._library_class = codegen._library_class, _LinkedCode  # noqa: SLF001 (numba's lock is held)
        try:
            with _no_collection():
                result = super()._compile_core()
        finally:
            codegen._library_class = before  # noqa: SLF001
        for environment in result._find_referenced_environments():  # noqa: SLF001
            codegen.set_env(environment.env_name, environment)
        return result


_WHOLE: Final[dict[str, Any]] = {"nogil": True, "error_model": "numpy", "no_cfunc_wrapper": True}
_PART: Final[dict[str, Any]] = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True, "no_rewrites": True}
_OF_NUMBA: Final = (
    (
        JITCodeLibrary,
        ("_get_module_for_linking", "_raise_if_finalized", "_ensure_finalized"),
    ),
    (JITCPUCodegen, ("_library_class", "set_env")),
    (CompilerBase, ("_compile_core",)),
    (CompileResult, ("_find_referenced_environments",)),
    (Flags, ("_values", "options")),
)
"""What is used of numba beyond its promises, there as of 0.68; without one of them it compiles as it usually does."""
if all(hasattr(of, name) for of, names in _OF_NUMBA for name in names):
    _WHOLE["pipeline_class"], _PART["pipeline_class"] = _Compiler, _PartCompiler


def compiled(function: Callable[_P, _R]) -> Callable[_P, _R]:
    """Compile a function of numbers and arrays that Python calls.

    It runs without the interpreter's lock, so threads run side by side, and a division by zero gives infinity.

    What is compiled is kept beside the source, in the user's cache folder where that cannot be written, or in the
    folder NUMBA_CACHE_DIR; several processes may fill it at once. Where none of them can be written, each process
    compiles anew. What is kept is looked up by the file of the function: after a change to one that a function of
    another file calls, delete the ``__pycache__`` folder beside them.
    """
    try:
        return njit(cache=True, **_WHOLE)(function)  # type: ignore[no-any-return]
    except RuntimeError:  # no folder to keep it in
        return njit(**_WHOLE)(function)  # type: ignore[no-any-return]


def compiled_part(function: Callable[_P, _R]) -> Callable[_P, _R]:
    """Compile a function that only compiled ones call; without an entry for Python it compiles in half the time."""
    return njit(nogil=True, error_model="numpy", **_PART)(function)  # type: ignore[no-any-return]


def compiled_step(function: Callable[_P, _R]) -> Callable[_P, _R]:
    """Compile a step of a loop into the loop itself: a call would cost as much as the step where arrays are small."""
    return njit(nogil=True, error_model="numpy", forceinline=True, **_PART)(function)  # type: ignore[no-any-return]


def is_kept(function: Callable[..., object]) -> bool:
    """Whether there is a folder that keeps a compiled function for the next process."""
    dispatcher: Any = function
    return dispatcher.stats.cache_path is not None


class _First(Listener):  # type: ignore[misc]
    """Calls a function when the first compilation begins."""

    def __init__(self, tell: Callable[[], None]) -> None:
        self._tell: Callable[[], None] | None = tell

    def on_start(self, event: Event) -> None:
        """Tell of the compilation, if it is the first."""
        del event
        tell, self._tell = self._tell, None
        if tell is not None:
            tell()

    def on_end(self, event: Event) -> None:
        """Do nothing."""


@contextmanager
def on_compiling(tell: Callable[[], None]) -> Iterator[None]:
    """Call a function as soon as something must be compiled, once; never where all is found on disk."""
    with install_listener("numba:compile", _First(tell)):
        yield
