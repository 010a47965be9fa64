"""The benchmarks as one table: `make bench`. Each row is a ratio, in one run, to a named alternative or a bar.

The rows: draws per second beside OpenDP; 4,000 households from CSV to release, start-up included; validation in records
per second; the stages of the demo's size. Results of a quiet machine stand in benchmarks/README.md.
"""

import json
import os
import platform
import re
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from fractions import Fraction
from importlib.metadata import version
from pathlib import Path

import duckdb
import numpy as np
import opendp.prelude as dp

import yupana
from yupana.privacy.entropy import SystemEntropy
from yupana.privacy.laws import DiscreteGaussian
from yupana.privacy.sampler import sample

CONFIG = "s-dhc-2020-us"
COMMAND = Path(sys.executable).with_name("yupana")
ORIGINAL_4000_HOUSEHOLDS = 248.0
"""Seconds the original takes for 4,000 households on such a machine, as its study measured."""


def best(work: Callable[[], object], repeats: int) -> float:
    """Median seconds of several runs, the first left out."""
    seconds = []
    for _ in range(repeats + 1):
        began = time.perf_counter()
        work()
        seconds.append(time.perf_counter() - began)
    return statistics.median(seconds[1:])


def row(what: str, measured: str, beside: str, ratio: float, bar: str) -> None:
    """Print one line of the table."""
    print(f"| {what} | {measured} | {beside} | {ratio:,.2f} | {bar} |", flush=True)


def sampler() -> None:
    """Draws per second beside OpenDP's discrete Gaussian on a vector of integers."""
    dp.enable_features("contrib")
    space = dp.vector_domain(dp.atom_domain(T="i64")), dp.l2_distance(T=float)
    for sigma, bar in ((1, 1000), (30, 1000), (300, 1000), (3000, 500)):
        law, ours, theirs = DiscreteGaussian(Fraction(sigma * sigma)), 5_000_000, 50_000
        measurement = dp.m.make_gaussian(*space, scale=float(sigma))
        zeros = [0] * theirs
        our_rate = ours / best(lambda law=law, n=ours: sample(law, n, SystemEntropy()), 5)  # type: ignore[misc]
        their_rate = theirs / best(lambda m=measurement, z=zeros: m(z), 3)  # type: ignore[misc]
        what = f"discrete Gaussian, sigma {sigma}"
        row(what, f"{our_rate / 1e6:.1f} M/s", f"OpenDP {their_rate / 1e3:.1f} k/s", our_rate / their_rate, f"≥ {bar}")


def timed(*arguments: str) -> tuple[float, float]:
    """Seconds and peak memory (GB) of one command."""
    began = time.perf_counter()
    with subprocess.Popen(
        [COMMAND, *arguments], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, text=True
    ) as process:
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"failed: yupana {' '.join(arguments)}")
    return time.perf_counter() - began, usage.ru_maxrss / 1e6


def phsafe(folder: Path) -> None:
    """PHSafe from the command line: small from CSV, and a million persons by stage."""
    small, million, out, log = (str(folder / name) for name in ("small", "million", "out", "log"))
    timed("synth", small, "--households", "4000", "--seed", "1")
    runs = [timed("phsafe", "run", CONFIG, small, out, "--overwrite", "--log", log) for _ in range(4)][1:]
    seconds, memory = statistics.median(s for s, _ in runs), max(m for _, m in runs)
    what = "4,000 households, CSV to release, start-up included"
    row(what, f"{seconds:.2f} s, {memory:.2f} GB", "bar 3 s", 3 / seconds, "≥ 1")
    row(what, f"{seconds:.2f} s", f"original {ORIGINAL_4000_HOUSEHOLDS:.0f} s", ORIGINAL_4000_HOUSEHOLDS / seconds, "")

    seconds, memory = timed("synth", million, "--households", "390000", "--seed", "1")
    persons = 0
    for fmt in ("csv", "parquet"):
        data = million
        if fmt == "parquet":
            data = str(folder / "million-parquet")
            timed("synth", data, "--households", "390000", "--seed", "1", "--format", "parquet")
        seconds, memory = timed("phsafe", "run", CONFIG, data, out, "--overwrite", "--log", log)
        told = json.loads(Path(log).read_text())
        persons, records = told["records"]["persons"], sum(told["records"].values())
        stages = told["seconds"]
        checking = stages["reading and checking the records"]
        read = best(lambda fmt=fmt, data=data: scan(Path(data), fmt), 3)  # type: ignore[misc]
        what = f"{records:,} records, {fmt}: read and validated"
        row(what, f"{records / checking / 1e6:.2f} M records/s", f"bare read {read:.2f} s", read / checking, "")
        what = f"{persons:,} persons, {fmt}: whole run"
        row(what, f"{seconds:.2f} s, {memory:.2f} GB", f"bare read {read:.2f} s", read / seconds, "")
        for stage, took in stages.items():
            row(f"... {stage}", f"{took:.2f} s", f"whole run {seconds:.2f} s", took / seconds, "")


def scan(folder: Path, fmt: str) -> None:
    """Read every value of the three files and do nothing with them: the floor of any run."""
    with duckdb.connect(":memory:") as db:
        for name in ("persons", "units", "geo"):
            source = f"read_{fmt}('{folder / name}.{fmt}'{', all_varchar = true' if fmt == 'csv' else ''})"
            db.execute(f"SELECT max(hash(COLUMNS(*))) FROM {source}").fetchall()


def demo(folder: Path) -> None:
    """The demo, as `make demo` runs it, by the stages it announces."""
    began = time.perf_counter()
    told = subprocess.run(
        [COMMAND, "demo", str(folder / "demo")], capture_output=True, text=True, check=True
    ).stderr.splitlines()
    whole = time.perf_counter() - began
    row("yupana demo: 41,000 households, 50 trials, report", f"{whole:.1f} s", "itself", 1, "")
    stages = [match.groups() for line in told if (match := re.fullmatch(r"demo: (.+) \((.+) s\)", line))]
    ends = [float(since) for _, since in stages[1:]] + [whole]
    for (stage, since), end in zip(stages, ends, strict=True):
        took = end - float(since)
        row(f"... {stage}", f"{took:.1f} s", f"whole demo {whole:.1f} s", took / whole, "")


if __name__ == "__main__":
    processor = platform.processor() or platform.machine()
    print(f"yupana {yupana.__version__}, Python {platform.python_version()}, numpy {np.__version__}, ", end="")
    print(f"DuckDB {duckdb.__version__}, OpenDP {version('opendp')}; {os.cpu_count()} cores, {processor}")
    print("\n| what | measured | beside | ratio | bar |\n|---|---|---|---|---|")
    sampler()
    with tempfile.TemporaryDirectory() as temporary:
        phsafe(Path(temporary))
        demo(Path(temporary))
    print(f"\npeak memory of the benchmark itself: {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6:.2f} GB")
