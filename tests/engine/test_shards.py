"""What is found and counted in shards is what is found and counted in one piece: for every product."""

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from random import Random
from typing import Any

import pytest
from census_maker import Census, seeded, write_csv, write_parquet
from crowded_census import GIANT, STATES, crowded
from described_worlds import make_world, save
from phsafe_oracle import PERSON_TABLES, Config
from safetab_worlds import FORMS, random_world, write_data, write_parameters

import yupana
from yupana.asked import Case, ask
from yupana.confidential.records.findings import Finding
from yupana.confidential.request import RunRequest
from yupana.confidential.run import run, validate
from yupana.engine.engine import Engine
from yupana.engine.local import LocalEngine
from yupana.errors import YupanaError
from yupana.privacy.entropy import SeededEntropy

SHARDS = (1, 3, 8)


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


def phsafe(folder: Path, random: Random, **more: Any) -> Case:  # noqa: ANN401
    taus = dict(zip(PERSON_TABLES, random.choices([1, 2, 3, 7, GIANT - 1, GIANT, GIANT + 1], k=6), strict=True))
    return ask("phsafe", Config(STATES, taus, random.choice(["", "k|'é"]), **more).write(folder / "config.json"))


def made(case: Case, data: Path, out: Path, engine: Engine | None, shards: int | None) -> dict[str, bytes]:
    """What a seeded release holds, but for its manifest."""
    request = RunRequest(entropy=SeededEntropy(7), engine=engine, shards=shards, overwrite=True)
    run(case.product, case.config, data, out, request)
    files = sorted(path for path in out.rglob("*") if path.is_file() and path.suffix != ".json")
    log = json.loads(out.with_name(f"{out.name}.confidential.log").read_text())
    told = {"log": json.dumps({k: log[k] for k in sorted(log) if "second" not in k}, sort_keys=True).encode()}
    return {path.relative_to(out).as_posix(): path.read_bytes() for path in files} | told


def told(findings: Sequence[Finding]) -> set[Finding]:
    assert len(set(findings)) == len(findings)
    return set(findings)


def refused(case: Case, data: Path, engine: Engine | None, shards: int | None) -> set[str]:
    """What is found, in words; or the error."""
    request = RunRequest(engine=engine, shards=shards)
    try:
        return {str(finding) for finding in told(tuple(validate(case.product, case.config, data, request)))}
    except YupanaError as error:
        return set(str(error).splitlines())


# --- worlds of each product ----------------------------------------------------------------------------------------

World = Callable[[Path, Random], tuple[Case, Path]]


def a_census(folder: Path, random: Random) -> tuple[Case, Path]:
    census = crowded(random.randrange(1000), 60)
    form = random.choice(["csv", "text", "integer", "bureau"])
    (write_csv if form == "csv" else write_parquet)(folder / "data", census, *([] if form == "csv" else [form]))
    return phsafe(folder, random), folder / "data"


def detailed(product: str) -> World:
    def world(folder: Path, random: Random) -> tuple[Case, Path]:
        of = random_world(random, noise="some")
        form = FORMS[random.choice(sorted(FORMS))]
        parameters = write_parameters(folder / "parameters", of, form)
        return ask(product, parameters), write_data(folder / "data", of, form)

    return world


def described(folder: Path, random: Random) -> tuple[Case, Path]:
    for seed in range(random.randrange(10_000), 20_000):
        try:
            description, data = save(make_world(seed), folder / str(seed), form=random.choice(["csv", "parquet"]))
            return ask("tables", description), data
        except YupanaError:
            continue
    raise AssertionError("no description was accepted")


def of_blocks(folder: Path, random: Random) -> tuple[Case, Path]:
    of = random_world(random, noise="some")
    parameters = write_parameters(folder / "parameters", of)
    return ask("tables", "ddhc-a-2020-us", codes=parameters), write_data(folder / "data", of)


WORLDS: dict[str, World] = {
    "phsafe": a_census,
    "safetab-p": detailed("safetab-p"),
    "safetab-h": detailed("safetab-h"),
    "tables": described,
}


def census_of_2020(configuration: str) -> World:
    def world(folder: Path, random: Random) -> tuple[Case, Path]:
        yupana.synthesize(folder / "data", households=60, states=["10", "44"], seed=random.randrange(100))
        return ask("topdown", configuration), folder / "data"

    return world


TOPDOWN = {
    "persons": census_of_2020("pl94-2020-us"),
    "units": census_of_2020("h1-2020-us"),
}
SHARDS_OF = {"local": SHARDS, "processes": (3,), "spark": (3,), "sail": (8,)}
"""Sessions and processes take seconds; what is in a shard does not depend on who counts it."""


@pytest.mark.parametrize("product", [*WORLDS, *TOPDOWN])
def test_releases_are_the_same_on_every_engine(
    product: str, session: tuple[str, Engine], engine: Engine, tmp_path: Path
) -> None:
    shards = SHARDS_OF[session[0]]
    for seed in range(1 if product in TOPDOWN or len(shards) == 1 else 3):
        folder = tmp_path / f"world{seed}"
        folder.mkdir()
        case, data = {**WORLDS, **TOPDOWN}[product](folder, seeded(seed))
        whole = made(case, data, folder / "whole", None, None)
        for number in shards:
            assert made(case, data, folder / str(number), engine, number) == whole


@pytest.mark.parametrize("form", ["csv", "text"])
@pytest.mark.parametrize("seed", range(8))
def test_the_same_is_found_in_a_census(seed: int, form: str, tmp_path: Path) -> None:
    random = seeded(seed)
    census = damaged(crowded(seed, random.choice([1, 5, 40]), breaks_rules=random.random() < 0.5), random)
    if form == "csv":
        write_csv(tmp_path / "data", census)
    else:
        write_parquet(tmp_path / "data", census, "text")
    case = phsafe(tmp_path, random, drops=random.random() < 0.3)
    whole = refused(case, tmp_path / "data", None, None)
    for shards in SHARDS:
        (tmp_path / str(shards)).mkdir()
        assert refused(case, tmp_path / "data", LocalEngine(tmp_path / str(shards)), shards) == whole


@pytest.mark.parametrize("product", ["safetab-p", "safetab-h"])
@pytest.mark.parametrize("seed", range(4))
def test_the_same_is_found_in_detailed_records(seed: int, product: str, tmp_path: Path) -> None:
    random = seeded(seed)
    of = random_world(random, noise="some")
    for records in (of.persons, of.households):
        for _ in range(random.randint(0, 6)):
            place = random.randrange(len(records))
            column = random.choice(records[place]._fields)
            records[place] = records[place]._replace(**{column: random.choice(["", "x", "9999", "0", "Null"])})  # type: ignore[call-overload]
    parameters = write_parameters(tmp_path / "parameters", of)
    data, case = write_data(tmp_path / "data", of), ask(product, parameters)
    whole = refused(case, data, None, None)
    for shards in SHARDS:
        (tmp_path / str(shards)).mkdir()
        assert refused(case, data, LocalEngine(tmp_path / str(shards)), shards) == whole


@pytest.mark.parametrize("file", ["persons", "units", "geo"])
@pytest.mark.parametrize("fault", ["gone", "empty", "header", "fields", "binary", "folder"])
def test_files_that_are_none(file: str, fault: str, tmp_path: Path) -> None:
    write_csv(tmp_path / "data", crowded(1, 5))
    path = tmp_path / "data" / f"{file}.csv"
    text = path.read_text()
    path.unlink()
    if fault == "folder":
        path.mkdir()
    elif fault != "gone":
        head, rest = text.split("\n", 1)
        path.write_bytes(
            {
                "empty": b"",
                "header": f"{head.replace('MAFID', 'MAFIX')}\n{rest}".encode(),
                "fields": f"{text}1,2\n".encode(),
                "binary": b"\xff\x00" + text.encode(),
            }[fault]
        )
    case = phsafe(tmp_path, seeded(1))
    whole, parcels = refused(case, tmp_path / "data", None, None), tmp_path / "parcels"
    parcels.mkdir()
    found = refused(case, tmp_path / "data", LocalEngine(parcels), 3)
    # What cannot be read is told before anything else is looked at, which may then be nothing.
    assert found
    assert found <= whole
    assert any(file in line for line in found)
