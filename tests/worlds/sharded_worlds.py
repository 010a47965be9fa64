"""Worlds of every product that is counted in shards, what a run of them releases, and what is found in them."""

import json
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

from census_maker import Census, write_csv, write_parquet
from crowded_census import GIANT, STATES, crowded
from described_worlds import make_world, save
from phsafe_oracle import PERSON_TABLES, Config
from safetab_worlds import FORMS, random_world, write_data, write_parameters

import yupana
from yupana.confidential.described.records import cut_of
from yupana.confidential.records.validation import Finding
from yupana.confidential.request import RunRequest
from yupana.confidential.run import run, validate
from yupana.engine.engine import Engine
from yupana.errors import YupanaError
from yupana.files.columns import ColumnMap
from yupana.interface.configured import Configured, setup
from yupana.privacy.entropy import SeededEntropy


def damaged(census: Census, random: Random) -> Census:
    """The same with values that are none, keys that occur twice or are nobody's, and records left out."""
    found = Census(list(census.persons), list(census.units), list(census.geo))
    rows: list[list[Any]] = [found.persons, found.units, found.geo]
    for _ in range(random.randint(0, 12)):
        some = random.choice(rows)
        place = random.randrange(len(some))
        change = random.choice(["value", "key", "twice", "gone"])
        if change == "value":
            column = random.choice(some[place]._fields)
            some[place] = some[place]._replace(**{column: random.choice(["", "x", "999", "0"])})
        elif change == "key":
            some[place] = some[place]._replace(MAFID=random.choice(["123456789", "899999999"]))
        elif change == "twice":
            some.append(some[place])
        elif len(some) > 1:
            del some[place]
    return found


def phsafe(folder: Path, random: Random, **more: Any) -> Configured:  # noqa: ANN401
    taus = dict(zip(PERSON_TABLES, random.choices([1, 2, 3, 7, GIANT - 1, GIANT, GIANT + 1], k=6), strict=True))
    return setup("phsafe", Config(STATES, taus, random.choice(["", "k|'é"]), **more).write(folder / "config.json"))


def made(
    case: Configured,
    data: Path,
    out: Path,
    engine: Engine | None,
    shards: int | None,
    **more: Any,  # noqa: ANN401
) -> dict[str, bytes]:
    """What a seeded release holds, but for its manifest."""
    request = RunRequest(entropy=SeededEntropy(7), engine=engine, shards=shards, overwrite=True, **more)
    run(case.product, case.config, data, out, request)
    files = sorted(path for path in out.rglob("*") if path.is_file() and path.suffix != ".json")
    log = json.loads(out.with_name(f"{out.name}.confidential.log").read_text())
    told = {"log": json.dumps({k: log[k] for k in sorted(log) if "second" not in k}, sort_keys=True).encode()}
    return {path.relative_to(out).as_posix(): path.read_bytes() for path in files} | told


def told(findings: Sequence[Finding]) -> set[Finding]:
    assert len(set(findings)) == len(findings)
    return set(findings)


def refused(case: Configured, data: Path, engine: Engine | None, shards: int | None) -> set[str]:
    """What is found, in words; or the error."""
    request = RunRequest(engine=engine, shards=shards)
    try:
        return {str(finding) for finding in told(tuple(validate(case.product, case.config, data, request)))}
    except YupanaError as error:
        return set(str(error).splitlines())


# --- worlds of each product ----------------------------------------------------------------------------------------

World = Callable[[Path, Random], tuple[Configured, Path]]


def a_census(folder: Path, random: Random) -> tuple[Configured, Path]:
    census = crowded(random.randrange(1000), 60)
    form = random.choice(["csv", "text", "integer", "bureau"])
    (write_csv if form == "csv" else write_parquet)(folder / "data", census, *([] if form == "csv" else [form]))
    return phsafe(folder, random), folder / "data"


def detailed(product: str) -> World:
    def world(folder: Path, random: Random) -> tuple[Configured, Path]:
        of = random_world(random, noise="some")
        form = FORMS[random.choice(sorted(FORMS))]
        parameters = write_parameters(folder / "parameters", of, form)
        return setup(product, parameters), write_data(folder / "data", of, form)

    return world


def described(folder: Path, random: Random) -> tuple[Configured, Path]:
    """A description whose records can be cut into shards: no file lies two files below that of units."""
    for seed in range(random.randrange(10_000), 20_000):
        try:
            description, data = save(make_world(seed), folder / str(seed), form=random.choice(["csv", "parquet"]))
            case = setup("tables", description)
        except YupanaError:
            continue
        if cut_of(case.config, ColumnMap(), 2).number == 2:
            return case, data
    raise AssertionError("no description was accepted")


def of_blocks(folder: Path, random: Random) -> tuple[Configured, Path]:
    of = random_world(random, noise="some")
    parameters = write_parameters(folder / "parameters", of)
    return setup("tables", "ddhc-a-2020-us", codes=parameters), write_data(folder / "data", of)


WORLDS: dict[str, World] = {
    "phsafe": a_census,
    "safetab-p": detailed("safetab-p"),
    "safetab-h": detailed("safetab-h"),
    "tables": described,
}


def census_of_2020(configuration: str) -> World:
    def world(folder: Path, random: Random) -> tuple[Configured, Path]:
        yupana.synthesize(folder / "data", households=60, states=["10", "44"], seed=random.randrange(100))
        return setup("topdown", configuration), folder / "data"

    return world


COUNTIES = [f"c{number}" for number in range(7)]
OF_HOMES: dict[str, Any] = {
    "name": "homes-2026",
    "unit": "persons",
    "neighbours": "replace",
    "files": {
        "homes": {
            "key": "id",
            "columns": {"county": {"codes": COUNTIES, "fixed": True}, "tenure": {"codes": ["o", "r"], "fixed": True}},
        },
        "persons": {"parent": {"file": "homes", "column": "home"}, "columns": {"sex": {"codes": ["1", "2"]}}},
    },
    "areas": {"nation": {"code": "X"}, "county": {"column": "homes.county"}},
    "tables": {
        "all": {
            "counts": "persons",
            "by": ["persons.sex", "homes.tenure"],
            "budget": {"nation": "1/2", "county": "1/2"},
        },
    },
    "topdown": {"spine": ["nation", "county"], "cells": "all"},
}


def described_for_topdown(folder: Path, random: Random, **more: str) -> tuple[Configured, Path]:
    """Persons that are linked to homes, which tell the county."""
    (folder / "config.json").write_text(json.dumps(OF_HOMES | more))
    data = folder / "data"
    data.mkdir()
    number = random.randint(20, 200)
    homes = [f"{home},{random.choice(COUNTIES)},{random.choice('or')}" for home in range(number)]
    persons = [f"{random.randrange(number)},{random.choice('12')}" for _ in range(random.randint(1, 500))]
    (data / "homes.csv").write_text("\n".join(["id,county,tenure", *homes, ""]))
    (data / "persons.csv").write_text("\n".join(["home,sex", *persons, ""]))
    (data / "SYNTHETIC").touch()
    return setup("topdown", folder / "config.json"), data


TOPDOWN = {
    "persons": census_of_2020("pl94-2020-us"),
    "units": census_of_2020("h1-2020-us"),
    "described": described_for_topdown,
    "described, pure": partial(described_for_topdown, privacy_defn="puredp"),
}
