"""Lies in manifests of releases: each field of each product's changed, and every command that reads one."""

import hashlib
import json
import random
import re
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from attack_case import Outcome, run
from attack_mutations import Place, altered, changes, places, written


@dataclass(frozen=True)
class Lie:
    """Where, in which way, and the manifest then."""

    place: Place
    way: str
    manifest: bytes


_CERTIFICATE: Final = "audit certificate {r} {o}/out"
_EVERY: Final = ("check {r}", "report {r} {o}/page.html", _CERTIFICATE, "account --plan {r} --delta 1e-10")


def _of(product: str, data: str, more: str = "") -> tuple[str, ...]:
    """What takes the manifest for a configuration."""
    return (
        f"{product} plan {{r}}/manifest.json {more} --json",
        f"{product} run {{r}}/manifest.json {{w}}/{data} {{o}}/out --seed 1 {more}",
    )


_PLANNED: Final = (*_EVERY, "tables plan {r}/manifest.json --json", "audit attribute {r}/manifest.json")
_DESCRIBED: Final = (*_PLANNED, *_of("tables", "h", "--codes {w}")[1:], "tables strategy {r}/manifest.json --json")
_SAFETAB: Final = (*("check {r}", "check {r} --inputs {w}/p", "report {r} {o}/page.html --codes {w}/p", *_EVERY[2:]),)
_SUPPRESS: Final = "postprocess suppress {r} {w}/policy.toml {o}/out"
_COMBINE: Final = "postprocess coterminous {r} {w}/d/GRF-C.txt {o}/out"
_AREAS: Final = (
    "interval {r} --list",
    "interval {r} --area state=01 --query total",
    "interval {r} --area ward=1 --query T1",
)
_NOISY: Final = (
    "interval {w}/relt --noisy-measurements {w}/relm --query US/total[]",
    "interval {w}/relt --area county=01001 --query sum(a0*a1[a0=1]) --noisy-measurements {w}/relm",
    "districts {w}/relt {w}/plan.csv --noisy-measurements {w}/relm",
)

READERS: Final[dict[str, tuple[str, ...]]] = {
    "rel": (
        *(*_EVERY, *_of("phsafe", "d"), "phsafe estimate {r} {o}/out"),
        "phsafe strategy {r}/manifest.json --json",
        "interval {r} --query PH2[REGION_ID=44,PH2_DATA_CELL=3]",
        "audit epl {r} {w}/relx --replicates 1 --seed 1",
    ),
    "relp": (
        *(
            *_SAFETAB,
            _SUPPRESS,
            _COMBINE,
            *_of("safetab-p", "d", "--codes {w}/p"),
            "safetab-p strategy {r}/manifest.json --codes {w}/p",
        ),
        "interval {r} --query sum(T01001[REGION_ID=44])",
        "safetab-h run {w}/p {w}/d {o}/out --totals {r}/T01001.csv --seed 1",
    ),
    "relh": (
        *(*_SAFETAB, _COMBINE, "safetab-h plan {r}/manifest.json --codes {w}/p"),
        "safetab-h run {r}/manifest.json {w}/d {o}/out --seed 1 --codes {w}/p --totals {w}/relp/T01001.csv",
        *("safetab-h strategy {r}/manifest.json --codes {w}/p", "interval {r} --query sum(T03001[REGION_ID=44])"),
    ),
    "relt": (
        *(*_EVERY, "topdown plan {r}/manifest.json", "audit attribute {r}/manifest.json", *_AREAS, *_NOISY),
        "topdown run {r}/manifest.json {w}/t {o}/out --seed 1 --areas {w}/areas.csv --names {w}/names.csv",
        "report {r} {o}/page.html --boundaries {w}/counties.geojson",
        "audit epl {r} {w}/truth --query detailed --replicates 1 --seed 1",
    ),
    "relm": ("check {r}", _CERTIFICATE, *_NOISY),
    "nmf": ("check {r}", "topdown estimate {r} {o}/out --config {w}/t.json"),
    "relnmf": (*_EVERY, *_AREAS[:2], "topdown plan {r}/manifest.json --json"),
    "whole": ("check {r}", _CERTIFICATE, "topdown plan {r}/manifest.json --json"),
    "whole/persons": ("check {w}/whole", "audit certificate {w}/whole {o}/out", _EVERY[1]),
    "whole/units": (
        *("check {w}/whole", "audit certificate {w}/whole {o}/out", "topdown plan {w}/whole/manifest.json --json"),
        *(*_EVERY, *_AREAS[:1], "topdown run {r}/manifest.json {w}/d {o}/out --seed 1"),
    ),
    "pl": ("check {r}",),
    "tab": (*_DESCRIBED, "interval {r} --query sum(people[REGION_ID=XX])"),
    "treated": (
        *_DESCRIBED,
        "interval {r} --query sum(measured/people[REGION_ID=XX])",
        f"{_CERTIFICATE.replace('{o}', '{w}/tacc {o}')}",
    ),
    "cnt": (*_PLANNED, "interval {r} --query sum(counts)"),
    "cntpub": (*_PLANNED, "interval {r} --query sum(counts)"),
    "relsup": (*_SAFETAB, "interval {r} --query T01001[REGION_ID=1,ITERATION_CODE=1002]"),
    "relcot": (*_SAFETAB, _SUPPRESS, _COMBINE, "interval {r} --query T01001[REGION_ID=1,ITERATION_CODE=1002]"),
    "certificate": ("check {r}",),
    "est": ("check {r}",),
    "acc": ("check {r}",),
    "tacc": ("check {r}", "audit certificate {w}/treated {r} {o}/out"),
    "compared": ("check {r}",),
    "spine": ("check {r}", "spine distance {r} {w}/spine/entities.csv", "spine report {r} --to {o}/page.html"),
}
"""By the folder of a release in the world, the commands that read it."""

SIBLINGS: Final = {
    "rel": "relx",
    "relp": "relh",
    "relh": "relp",
    "relt": "truth",
    "relm": "nmf",
    "nmf": "relm",
    "relnmf": "relt",
    "whole/persons": "whole/units",
    "whole/units": "whole/persons",
    "tab": "treated",
    "treated": "tab",
    "cnt": "cntpub",
    "cntpub": "cnt",
    "relsup": "relp",
    "relcot": "relsup",
}
"""Another release whose fields are put into the manifest of the first."""


def tell(manifest: dict[str, Any], sibling: dict[str, Any] | None, rng: random.Random) -> Lie:
    """Make a lie of a field of the root, or of one below it, in one of the ways, or of that of another release."""
    key = rng.choice(sorted(manifest))
    place = rng.choice([(key,), *places(manifest[key], (key,))])
    value: Any = manifest
    for step in place:
        value = value[step]
    ways = [*changes(value).items(), ("dropped", None), ("renamed", None)]
    if len(place) == 1 and sibling is not None and sibling.get(key) not in (None, value):
        ways += [("that of another", sibling[key])] * 4
    way, becomes = rng.choice(ways)
    return Lie(place, way, written(altered(manifest, place, way, becomes)))


_WITNESS: Final = ("yupana", "created", "versions", "public_inputs", "failsafe", "solvers", "settings", "tested")
"""What only the run knew, which nothing else can deny: when, by what and of which public files, how nodes were solved,
with which options a spine was searched, and what tests on true counts found."""


@dataclass(frozen=True)
class Answer:
    """What a reader says and makes, without what tells only which manifest it read, and when."""

    status: int
    told: str
    files: dict[str, bytes]


def answer(world: Path, release: str, reader: str, place: Path) -> Answer:
    """Let a reader read."""
    out = place / "o"
    out.mkdir()
    try:
        outcome: Outcome = run([part.format(r=world / release, w=world, o=out) for part in reader.split()])
        made = {
            path.relative_to(out).as_posix(): path.read_bytes() for path in sorted(out.rglob("*")) if path.is_file()
        }
    finally:
        shutil.rmtree(out)
    manifest = (world / release / "manifest.json").read_bytes()
    own = [hashlib.sha256(content).hexdigest().encode() for content in (manifest, *made.values())]

    def plain(content: bytes) -> bytes:
        for checksum in own:
            content = content.replace(checksum, b"CHECKSUM").replace(checksum[:12], b"CHECKSUM")
        content = re.sub(rb"\d+\.\d s\)", b"SECONDS)", content)
        return re.sub(
            rb"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d[.\d]*\+00:00", lambda at: at[0] if at[0] in manifest else b"NOW", content
        )

    return Answer(
        outcome.status,
        plain(outcome.told.encode("utf-8", "replace")).decode(),
        {name: plain(content) for name, content in made.items() if not name.endswith(".confidential.log")},
    )


def judge(told: Answer, truth: Answer, place: Place) -> str | None:
    """What is wrong with what a reader made of a lie."""
    if told.status not in {0, 2}:
        return f"it ended with {told.status}: {told.told.strip()[-200:]}"
    if "\x1b" in told.told:
        return "it wrote to the terminal what that would obey"
    if told.status == 2:
        return f"it refused and left {sorted(told.files)}" if told.files else None
    if any(part in _WITNESS for part in place):
        return None
    different = [name for name in sorted({*told.files, *truth.files}) if told.files.get(name) != truth.files.get(name)]
    if told.told != truth.told:
        different.append("what it says")
    return f"it believed it: {', '.join(different)}" if different else None


def deceive(world: Path, release: str, seed: str, place: Path) -> str | None:
    """Try one lie on one reader; tell what went wrong, and how to see it again."""
    rng = random.Random(seed)  # noqa: S311 (a lie that can be repeated)
    path = world / release / "manifest.json"
    whole = path.read_bytes()
    sibling = json.loads((world / SIBLINGS[release] / "manifest.json").read_bytes()) if release in SIBLINGS else None
    lie, reader = tell(json.loads(whole), sibling, rng), rng.choice(READERS[release])
    truth = answer(world, release, reader, place)
    path.write_bytes(lie.manifest)
    try:
        told = answer(world, release, reader, place)
    finally:
        path.write_bytes(whole)
    wrong = judge(told, truth, lie.place) if truth.status == 0 else f"of the truth it ended with {truth.status}"
    said = f"{seed}: {'.'.join(map(str, lie.place))} {lie.way}: {reader.format(r=release, w='', o='')}"
    return f"{said}\n    {wrong}" if wrong else None


BORROWED: Final = {
    "rel": "phsafe estimate {r} {o}/out",
    "relp": _COMBINE,
    "relm": "districts {w}/relt {w}/plan.csv --noisy-measurements {r}",
    "nmf": "topdown estimate {r} {o}/out --config {w}/t.json",
    "tab": "interval {r} --query sum(people[REGION_ID=XX])",
    "cnt": "interval {r} --query sum(counts)",
}
"""Releases of which the world has a cheaper run, each with a command that it is for.

A release of TopDown without its measurements is none of them: nothing in it tells its noise (docs/manifest.md).
"""


def borrowed(world: Path, release: str) -> bytes:
    """The manifest of the cheaper run, which promises less than the noise, with the files of the release itself."""
    lie, own = (json.loads((world / at / release / "manifest.json").read_bytes()) for at in ("cheap", "."))
    return written(lie | {key: own[key] for key in ("tables", "reports") if key in own})
