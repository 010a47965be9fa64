"""The codebook in a release, for machines (a Data Package) and for readers (Markdown); what codes mean."""

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import Any, Final

from yupana.errors import OutputError
from yupana.release.recipe import SUPPRESSED
from yupana.release.tables import describe_reports

DATA_PACKAGE: Final = "datapackage.json"
READABLE: Final = "codebook.md"

Package = Mapping[str, Any]
"""A Data Package."""

REASON: Final = "REASON"
"""The column that tells why a number is suppressed."""

_REASON: Final = {
    "name": REASON,
    "type": "string",
    "title": "Reason",
    "description": f"Why the numbers of the row are {SUPPRESSED}: a code of the policy; empty where they are shown.",
}


def write_codebook(folder: Path, package: Package) -> dict[str, Any]:
    """Write both documents into the folder of a release, and return what its manifest says of them."""
    told = {
        DATA_PACKAGE: json.dumps(package, indent=1, ensure_ascii=False) + "\n",
        READABLE: readable(package),
    }
    for name, text in told.items():
        (folder / name).write_text(text, encoding="utf-8")
    return describe_reports(folder, told)


def read_codebook(path: Path) -> dict[str, Any]:
    """Read the Data Package of a release.

    Raises
    ------
    OutputError
        If it is none that `write_codebook` wrote.
    """
    try:
        package = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        package = None
    if not _is_codebook(package):
        raise OutputError(f"{path} is no codebook that yupana wrote")
    found: dict[str, Any] = package
    return found


def _is_codebook(package: Any) -> bool:  # noqa: ANN401 (whatever JSON holds)
    """Whether a value of JSON has every key that is read here."""
    try:
        texts = [package["title"]]
        for resource in package["resources"]:
            texts += [resource["path"], resource["title"], resource.get("universe", "")]
            for field in resource["schema"]["fields"]:
                texts += [field["name"], field["type"], field["title"], field.get("description", "")]
                texts += [one["label"] for one in field.get("categories", ())]
                texts += [str(one["value"]) for one in field.get("categories", ())]
    except (AttributeError, KeyError, TypeError):
        return False
    return all(isinstance(text, str) for text in texts)


def of_tables(package: Package, tables: Mapping[str, tuple[str, Sequence[str]]]) -> dict[str, Any]:
    """The codebook of some tables of a release.

    Parameters
    ----------
    package : mapping
        That of the release.
    tables : mapping
        By its path there, the path of each table, and its columns: those it had, and REASON if counts of it are
        suppressed.
    """
    resources = []
    for resource in package["resources"]:
        if resource["path"] in tables:
            path, columns = tables[resource["path"]]
            fields = {field["name"]: field for field in (*resource["schema"]["fields"], _REASON)}
            # A column of somebody else's making has no field.
            schema = {**resource["schema"], "fields": [fields[column] for column in columns if column in fields]}
            if REASON in columns:
                schema["missingValues"] = ["", SUPPRESSED]
            resources.append({**resource, "name": resource_name(path), "path": path, "schema": schema})
    return {**package, "resources": resources}


def meanings(package: Package, path: str) -> dict[str, dict[str, str]]:
    """What the codes of a table mean: by column, of those columns whose codes are listed."""
    return {
        field["name"]: {str(one["value"]): str(one["label"]) for one in field["categories"]}
        for resource in package["resources"]
        if resource["path"] == path
        for field in resource["schema"]["fields"]
        if field.get("categories")
    }


def resource_name(path: str) -> str:
    """What a Data Package calls a file."""
    return slug(PurePosixPath(path).with_suffix("").as_posix().replace("/", "."))


def slug(text: str) -> str:
    """A text as a Data Package has names: small letters, digits, points and strokes; of other letters a checksum."""
    made = re.sub(r"[^a-z0-9._-]+", "-", text.lower())
    return made if text.isascii() else f"{made}-{hashlib.sha256(text.encode()).hexdigest()[:10]}"


def readable(package: Package) -> str:
    """The codebook as Markdown: tables with their columns, then each list of codes with the columns that it is of."""
    lines = [f"# {_text(package['title'])}: codebook", "", f"The same for machines is `{DATA_PACKAGE}`.", ""]
    lines += ["## Tables", ""]
    codes: dict[tuple[tuple[str, str], ...], dict[str, list[str]]] = {}
    for resource in package["resources"]:
        path = resource["path"]
        lines += [f"### `{path}`", "", f"{_text(resource['title'])}.{_of_universe(resource)}", ""]
        lines += ["| column | type | what it holds |", "|---|---|---|"]
        for field in resource["schema"]["fields"]:
            column, title = field["name"], field["title"]
            told = f"{title}. {field['description']}" if "description" in field else title
            lines.append(f"| {_text(column)} | {field['type']} | {_text(told)} |")
            if "categories" in field:
                listed = tuple((str(one["value"]), str(one["label"])) for one in field["categories"])
                codes.setdefault(listed, {}).setdefault(column, []).append(path)
        lines.append("")
    lines += ["## Codes", ""] if codes else []
    for listed, columns in codes.items():
        of = "; ".join(
            f"{_text(column)} of {', '.join(f'`{path}`' for path in paths)}" for column, paths in columns.items()
        )
        lines += [f"### {_text(', '.join(columns))}", "", f"{of}.", "", "| code | meaning |", "|---|---|"]
        lines += [f"| {_text(value)} | {_text(label)} |" for value, label in listed]
        lines.append("")
    return "\n".join(lines)


def _of_universe(resource: Package) -> str:
    return f" Universe: {_text(resource['universe'])}." if "universe" in resource else ""


def _text(text: str) -> str:
    """A text that Markdown shows as it is, in a table, too."""
    return re.sub(r"([\\`*_\[\]<>|#])", r"\\\1", " ".join(text.split()))
