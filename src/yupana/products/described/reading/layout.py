"""Read the dictionary of a description, by which lines of fixed width are records of several files. Public."""

from yupana.errors import ConfigError
from yupana.files.dictionaries.dictionary import Dictionary
from yupana.files.dictionaries.layout import layout_document
from yupana.products.described.reading.records import DescriptionDocument


def read_layout(doc: DescriptionDocument) -> Dictionary | None:
    """The dictionary that a description names, or that a manifest holds in its place; None if there is none."""
    told = doc.read.dictionary
    if told is None:
        doc.faults += [
            f"{name}: is of the file that a dictionary describes; name that, too"
            for name in ("data", "encoding")
            if getattr(doc.read, name) is not None
        ]
        return None
    if doc.read.data is not None and ("/" in doc.read.data or doc.read.data.startswith(".")):
        doc.faults.append("data: must be the name of a file in the data folder, without a folder")
    if not isinstance(told, str):
        return told
    # The readers of all formats are loaded by those who name a dictionary.
    from yupana.files.dictionaries.reading import read_dictionary  # noqa: PLC0415

    try:
        found = read_dictionary(doc.folder / told)
    except ConfigError as error:
        doc.faults.append(f"dictionary: {error}")
        return None
    there = {name.lower(): name for name in names_of(found)}
    if not found.is_fixed_width:
        doc.faults.append(f"dictionary: {told} does not say where lines hold items; only such a file is named here")
    elif not there.keys() & {name.lower() for name in doc.read.files}:
        doc.faults.append(f"dictionary: no file is called as one of its records is: {', '.join(there.values())}")
    described = {name.lower() for name in doc.read.files}
    doc.told["dictionary"] = layout_document(found, lambda name: name.lower() in described)
    return found


def names_of(dictionary: Dictionary) -> tuple[str, ...]:
    """What files of records a dictionary describes: those of its levels with ids, and of its record types."""
    levels = [level.name for level in dictionary.levels if level.name and level.ids]
    return (*levels, *(record.name for level in dictionary.levels for record in level.records))


def lines_of(dictionary: Dictionary | None, file: str, files: tuple[str, ...]) -> tuple[str, ...]:
    """Of a file that is called as a level: the record types whose lines make it, as files are called; else none."""
    if dictionary is None:
        return ()
    called = {name.lower(): name for name in files}
    for number, level in enumerate(dictionary.levels):
        if level.name.lower() == file.lower() and level.ids:
            records = [record.name for below in dictionary.levels[number:] for record in below.records]
            return tuple(called.get(name.lower(), name) for name in records)
    return ()
