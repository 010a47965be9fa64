"""Releases of TopDown with names, and with intervals in their tables that were made by hand."""

import csv
import json
from pathlib import Path

from topdown_worlds import World, configuration, make_world, write_configuration, write_world

from yupana.cli.main import main
from yupana.release.folder import write_manifest
from yupana.release.tables import checksum

NAMES = {
    ("place", "0100001"): "Springfield city",
    ("place", "0100002"): "Oak Park village",
    ("place", "0200001"): "Springfield city",
    ("place", "0200002"): "Kansas City city",
    ("county", "01001"): "Adams County",
    ("county", "02001"): "ADAMS COUNTY",
    ("tract", "01001000001"): "Census Tract 1.01",
    ("aiannh", "0100"): "Two Rivers Reservation",
}


def make_release(
    folder: Path, shape: tuple[int, ...], *options: str, attributes: str = "a", intervals: str = "none"
) -> World:
    """Write a release and its noisy measurements to ``folder / "out"`` and ``folder / "noisy"``."""
    world = make_world(4, shape)
    write_world(world, folder / "data")
    document = configuration(shape, rho="4")
    if attributes != "a":
        histogram = folder / "data" / "histogram.csv"
        histogram.write_text(histogram.read_text().replace("a0", attributes))
        document["schema"] = {attributes: shape[0]}
    config = write_configuration(document, folder / "config.json")
    lines = ["kind|code|name", *(f"{kind}|{code}|{name}" for (kind, code), name in NAMES.items())]
    (folder / "names.csv").write_text("\n".join(lines) + "\n")
    arguments = [str(config), str(folder / "data"), str(folder / "out"), "--seed", "5"]
    more = [
        "--intervals",
        intervals,
        "--names",
        str(folder / "names.csv"),
        "--noisy-measurements",
        str(folder / "noisy"),
    ]
    assert main(["topdown", "run", *arguments, *more, *options]) == 0
    return world


def ends_of(count: int) -> tuple[int, int, int]:
    """An interval that no method gives, to be known again: lower, upper and margin."""
    lower, upper = max(0, count - 3), count + 5
    return lower, upper, (upper - lower + 1) // 2


def add_intervals(release: Path, *, confidence: str = "9/10") -> None:
    """Put the intervals of `ends_of` beside every count of tabulation and tables, and name them in the manifest."""
    manifest = json.loads((release / "manifest.json").read_text())
    for name in [one for one in manifest["tables"] if one.startswith(("tabulation/", "tables/"))]:
        path = release / name
        header, *rows = list(csv.reader(path.read_text().splitlines(), delimiter="|"))
        if name.startswith("tabulation/"):
            written = [[*header, "LOWER", "UPPER", "MOE"], *([*row, *ends_of(int(row[-1]))] for row in rows)]
        else:
            path = path.with_name(f"{path.stem}_intervals.csv")
            columns = [f"{variable}_{end}" for variable in header[2:] for end in ("LOWER", "UPPER", "MOE")]
            ends = ([*row[:2], *(end for count in row[2:] for end in ends_of(int(count)))] for row in rows)
            written = [[*header[:2], *columns], *ends]
        path.write_text("\n".join("|".join(map(str, row)) for row in written) + "\n")
        told = {"table": path.relative_to(release).with_suffix("").as_posix(), "sha256": checksum(path)}
        manifest["tables"][path.relative_to(release).as_posix()] = {
            **told,
            "rows": len(rows),
            "columns": [str(column) for column in written[0]],
        }
    manifest["options"] |= {"intervals": "monte-carlo", "replicates": "25"}
    manifest["parameters"]["intervals"] = {"method": "monte-carlo", "confidence": confidence, "replicates": 25}
    for name in manifest.pop("reports"):  # the codebook of the tables without intervals
        (release / name).unlink()
    write_manifest(release, manifest)
