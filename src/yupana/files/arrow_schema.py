"""What the columns of an Arrow stream are called, told before anybody reads it."""

import ctypes
from typing import Final


class _Schema(ctypes.Structure):
    """ArrowSchema of the Arrow C data interface."""


_SchemaPointer = ctypes.POINTER(_Schema)
_Schema._fields_ = [
    ("format", ctypes.c_char_p),
    ("name", ctypes.c_char_p),
    ("metadata", ctypes.c_char_p),
    ("flags", ctypes.c_int64),
    ("n_children", ctypes.c_int64),
    ("children", ctypes.POINTER(_SchemaPointer)),
    ("dictionary", _SchemaPointer),
    ("release", ctypes.CFUNCTYPE(None, _SchemaPointer)),
    ("private_data", ctypes.c_void_p),
]


class _Stream(ctypes.Structure):
    """ArrowArrayStream, of which the first field is what is needed."""

    _fields_ = (("get_schema", ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, _SchemaPointer)),)


NO_TYPE: Final = "n"
"""The Arrow format of a column in which nothing but missing values is."""


def stream_columns(capsule: object) -> tuple[tuple[str, str], ...]:
    """Names and Arrow formats of the columns of a stream that nobody has read yet.

    Doubled names are told as they are, where a database renames them.

    Raises
    ------
    ValueError
        If it is no stream, or the schema cannot be had.
    """
    pointer = ctypes.pythonapi.PyCapsule_GetPointer
    pointer.restype, pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    address = pointer(capsule, b"arrow_array_stream")
    schema = _Schema()
    if _Stream.from_address(address).get_schema(address, ctypes.byref(schema)):
        raise ValueError("the stream does not tell its schema")
    try:
        children = [schema.children[i].contents for i in range(schema.n_children)]
        return tuple(((child.name or b"").decode(), child.format.decode()) for child in children)
    finally:
        schema.release(ctypes.byref(schema))
