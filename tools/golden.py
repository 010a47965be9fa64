"""Golden releases: what every product makes of one synthetic census with one seed, to compare two versions of the code.

    python tools/golden.py make FOLDER       all releases, estimates, intervals and pages, by the command line
    python tools/golden.py compare A B       what differs: tables byte by byte, manifests but for time and versions

A change of structure leaves everything as it is; a change of results says in its commit what moved.
"""

import json
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

COMMAND = Path(sys.executable).parent / "yupana"
VOLATILE = (
    *("created", "seconds", "versions", "yupana"),
    # Digests of files that hold one of these; every file is compared by itself.
    *("sha256", "source_manifest_sha256", "manifest_sha256", "certifies"),
)
"""Keys of a manifest that differ from run to run."""

RUNS = (
    "synth census --households 3000 --states 04,44 --seed 1",
    "demo demo --households 500",
    *(
        f"phsafe {verb} s-dhc-2020-us census phsafe-{name} {more}"
        for verb, name, more in (
            ("run", "csv", "--seed 1"),
            ("run", "parquet", "--seed 1 --format parquet --sensitivity tight --margins bureau"),
            ("exact", "exact", ""),
        )
    ),
    "safetab-p run demo/parameters census safetab-p --seed 1",
    "safetab-p exact demo/parameters census safetab-p-exact --format parquet",
    "safetab-h run demo/parameters census safetab-h --seed 1 --totals safetab-p/T01001.csv",
    "safetab-h run demo/parameters census safetab-h-parquet --seed 1 --format parquet --totals safetab-p/T01001.csv",
    "spine build census/GRF-C.txt spine --kind optimized",
    *(
        f"topdown run {plan} census topdown-{plan}-{estimator} --seed 1 --spine {spine} --estimator {estimator}"
        for plan, estimator, spine in (
            ("pl94-2020-us", "topdown", "optimized"),
            ("pl94-2020-us", "full-information", "conventional"),
            ("h1-2020-us", "topdown", "aian"),
        )
    ),
    "topdown exact pl94-2020-us census topdown-exact",
    "phsafe estimate phsafe-csv estimates",
    "postprocess coterminous safetab-p census/GRF-C.txt coterminous",
    "audit certificate phsafe-csv safetab-p safetab-h certificate",
    "phsafe accuracy s-dhc-2020-us census accuracy --trials 2 --seed 1",
    "safetab-p accuracy demo/parameters census safetab-p-accuracy --trials 2 --seed 1",
    "safetab-h accuracy demo/parameters census safetab-h-accuracy --trials 2 --seed 1 --totals safetab-p/T01001.csv",
    "topdown accuracy h1-2020-us census topdown-accuracy --trials 2 --seed 1 --spine aian",
)


def make(folder: Path) -> None:
    """Run every command in a new folder."""
    folder.mkdir(parents=True)
    for line in RUNS:
        print(line, flush=True)
        subprocess.run([COMMAND, *line.split()], cwd=folder, check=True, stdout=subprocess.DEVNULL)
    # The demo draws from the operating system; what is kept of it is the parameters.
    for part in (folder / "demo").iterdir():
        if part.name != "parameters":
            shutil.rmtree(part) if part.is_dir() else part.unlink()


def stable(value: Any) -> Any:  # noqa: ANN401 (JSON)
    """A manifest without what differs from run to run, at any depth."""
    if isinstance(value, dict):
        return {key: stable(item) for key, item in value.items() if key not in VOLATILE}
    return [stable(item) for item in value] if isinstance(value, list) else value


def differences(a: Path, b: Path) -> Iterator[str]:
    """Name every file that is not the same in both."""
    here, there = ({path.relative_to(of) for path in of.rglob("*") if path.is_file()} for of in (a, b))
    yield from (f"only in {a}: {name}" for name in sorted(here - there))
    yield from (f"only in {b}: {name}" for name in sorted(there - here))
    for name in sorted(here & there):
        one, other = (a / name).read_bytes(), (b / name).read_bytes()
        if one == other:
            continue
        if name.suffix in {".json", ".log"} and stable(json.loads(one)) == stable(json.loads(other)):
            continue
        yield f"differs: {name}"


def main() -> int:
    """Do what was asked; 1 if something differs."""
    match sys.argv[1:]:
        case ["make", folder]:
            make(Path(folder))
            return 0
        case ["compare", a, b]:
            found = list(differences(Path(a), Path(b)))
            print("\n".join(found) or "the same")
            return int(bool(found))
    print(__doc__)
    return 2


if __name__ == "__main__":
    sys.exit(main())
