"""How a release was made, as its manifest tells it. Public.

The configuration, the options, the public files by checksum, and what was done to its tables after the measurements.
"""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, Final

from yupana.errors import ConfigError, InputError
from yupana.files.declaration import TEXT, must_be, table_of
from yupana.files.document import Changes, read_document, refuse

CONFIGURATION: Final = "configuration"
OPTIONS: Final = "options"
PUBLIC_INPUTS: Final = "public_inputs"


@dataclass(frozen=True, slots=True)
class Recipe:
    """Everything public that decides what a run makes of its records."""

    # a document that the configuration's reader takes, and makes the same configuration of
    configuration: Mapping[str, Any]
    options: Mapping[str, str]  # those of the command line that change the release
    # by file: SHA-256 of every public file that was read, by its path within its folder, or by its name where it lies
    # beside (`release.tables.checksums_by_name`). Files of records have no place here.
    public_inputs: Mapping[str, str]

    def as_json(self) -> dict[str, Any]:
        """Describe it, for a manifest."""
        return {of.name: dict(getattr(self, of.name)) for of in fields(self)}


def read_configuration_in(path: Path, product: str, changes: Changes) -> tuple[object, list[str]]:
    """The configuration that a file is, or holds if it is the manifest of an output of the product, with its faults.

    Parameters
    ----------
    changes : Changes
        Made in it.

    Raises
    ------
    ConfigError
        If it is the manifest of something else, or of a release that does not say how it was made.
    """
    document, faults = read_document(path)
    if not isinstance(document, dict) or "yupana" not in document:
        found = changes.applied(document, faults)
        if isinstance(found, dict):
            found = {key: value for key, value in found.items() if key != OPTIONS}
        return found, faults
    made = document.get("system", document.get("product"))
    if str(made).partition(",")[0] != product:
        raise ConfigError(f"{path}: is the manifest of an output of {made!a}, and one of {product!r} is needed")
    if CONFIGURATION not in document:
        raise ConfigError(f"{path}: is a manifest without {CONFIGURATION!r}; it does not say how to repeat it")
    return changes.applied(document[CONFIGURATION], faults), faults


def read_recipe(path: Path) -> Recipe | None:
    """How the release of a manifest was made; None if the file is a configuration and no manifest.

    Raises
    ------
    ConfigError
        If the file cannot be read, or does not say how the release was made.
    """
    document, faults = read_document(path)
    if not isinstance(document, dict) or "yupana" not in document:
        return None
    configuration = document.get(CONFIGURATION)
    if not isinstance(configuration, dict):
        must_be(CONFIGURATION, "a table of keys and values", faults)
    options, inputs = (table_of(TEXT).read(key, document.get(key), faults) for key in (OPTIONS, PUBLIC_INPUTS))
    if faults or options is None or inputs is None or not isinstance(configuration, dict):
        raise refuse(path, faults)
    return Recipe(configuration, options, inputs)


def options_in(path: Path) -> Mapping[str, Any]:
    """The table ``options`` of a configuration that is no manifest; empty where it has none.

    Raises
    ------
    ConfigError
        If the file cannot be read, or ``options`` is no table.
    """
    document, faults = read_document(path)
    found = document.get(OPTIONS, {}) if isinstance(document, dict) else {}
    if not isinstance(found, dict):
        must_be(OPTIONS, "a table of keys and values", faults)
        raise refuse(path, faults)
    return found


def check_public_inputs(recipe: Recipe | None, found: Mapping[str, str]) -> None:
    """Compare the public files of a run with those of the release it repeats, if it repeats one.

    Raises
    ------
    InputError
        If a file is missing, is another, or was not there.
    """
    if recipe is None:
        return
    told = recipe.public_inputs
    wrong = [
        *(f"{name} is not among the public files here" for name in told if name not in found),
        *(f"{name} was not read for that release" for name in found if name not in told),
        *(
            f"{name} must have the SHA-256 {told[name]}, and has {digest}"
            for name, digest in found.items()
            if name in told and told[name] != digest
        ),
    ]
    if wrong:
        advice = f"give the files of that release, or save {CONFIGURATION!r} of its manifest as a file and name that"
        raise InputError("\n  ".join(["the release of the manifest was made of other public files:", *wrong, advice]))


RECORD: Final = "postprocessing"
"""The entry of the manifest that lists what was done after the measurements, in order."""

COTERMINOUS: Final = "coterminous"
SUPPRESSION: Final = "suppression"
DESCRIBED: Final = "description"
"""Rules that a record names; the last is what a description of tables says is done."""

MEASURED: Final = "measured"
"""The folder of the tables as they were measured, in a release whose description has more done to them."""

DESCRIBED_TABLES: Final = "tables"
"""The system of tables of a description, whose columns and cells people have named."""

SUPPRESSED: Final = "X"
"""What a suppressed number says."""

SPINE: Final = "spine"
ESTIMATES: Final = "phsafe estimates"
CERTIFICATE: Final = "certificate"
EXPORT: Final = "export"
ATLAS: Final = "atlas"
"""Products of what is no release of a run."""

ACCURACY: Final = " accuracy"
"""How the product ends of a folder that tells errors: no release, as it compares with the truth."""

SINGLE_TABLE: Final = "single table"
"""The product of a table that was postprocessed without the manifest of its release."""


def leaves_out_small(manifest: Mapping[str, Any]) -> bool:
    """Whether rows were left out because their noisy count was small; those that are there are then off more often."""
    parameters = manifest.get("parameters") or {}
    return parameters.get("zero_suppression_chance") not in {"None", "0", None} or "leave_out" in parameters
