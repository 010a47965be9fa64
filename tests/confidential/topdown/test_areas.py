"""TopDown on areas of any codes: against a count by hand, and what is refused."""

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from area_worlds import ATTRIBUTES, Country, country_configuration, make_country, write_country

from yupana.cli.main import main
from yupana.products.topdown.agreement import verify_release
from yupana.topdown.queries import Attribute, Schema


def released(path: Path) -> dict[tuple[str, ...], int]:
    lines = path.read_text(encoding="utf-8").splitlines()
    found = {}
    for *key, count in (line.split("|") for line in lines[1:]):
        assert tuple(key) not in found
        found[tuple(key)] = int(count)
    return found


def go(folder: Path, country: Country, *options: str, out: str = "out", **more: Any) -> Path:  # noqa: ANN401
    if not (folder / "data").exists():
        write_country(country, folder)
    config = folder / "config.json"
    config.write_text(json.dumps(country_configuration(country, **more)))
    arguments = ["topdown", "run", str(config), str(folder / "data"), str(folder / out), "--seed", "5", *options]
    assert main(arguments) == 0
    return folder / out


@pytest.mark.sampled(2)
@pytest.mark.parametrize("estimator", ["topdown", "full-information"])
@pytest.mark.parametrize(("seed", "depth"), [(1, 1), (2, 2), (3, 4), (4, 6)])
@pytest.mark.slow
def test_without_noise_every_level_is_the_count_by_hand(tmp_path: Path, seed: int, depth: int, estimator: str) -> None:
    country = make_country(seed, depth)
    out = go(tmp_path, country, "--estimator", estimator)
    for level in country.levels:
        assert released(out / "counts" / f"{level}.csv") == country.of(level)
    records = (out / "microdata.csv").read_text(encoding="utf-8").splitlines()
    assert records[0] == "block|sex|age"
    assert Counter(tuple(line.split("|")) for line in records[1:]) == country.counts
    # The units of every level are published areas, too, with intervals: without noise the counts themselves.
    for level in country.levels:
        header, *rows = (out / "tabulation" / f"{level}.csv").read_text(encoding="utf-8").splitlines()
        assert header == "geounit|sex|age|count|LOWER|UPPER|MOE"
        cells = [row.split("|") for row in rows]
        assert {(*row[:3],): int(row[3]) for row in cells} == dict(country.of(level))
        assert all(row[3:] == [row[3]] * 3 + ["0"] for row in cells)
    assert main(["check", str(out)]) == 0


@pytest.mark.sampled(1)
@pytest.mark.parametrize("fmt", ["csv", "parquet"])
@pytest.mark.slow
def test_totals_are_kept_levels_agree_and_a_seed_repeats(tmp_path: Path, fmt: str) -> None:
    country = make_country(3, 4)
    kept = country.levels[1]
    asked = {"rho": "1/2", "invariants": {kept: ["total"]}}
    out = go(tmp_path, country, "--format", fmt, **asked)
    assert main(["check", str(out)]) == 0
    again = tmp_path / "again"
    arguments = [str(out / "manifest.json"), str(tmp_path / "data"), str(again), "--seed", "5", "--format", fmt]
    assert main(["topdown", "run", *arguments]) == 0
    names = [path.relative_to(out) for path in out.rglob("*") if path.is_file() and path.name != "manifest.json"]
    assert names
    assert all((out / name).read_bytes() == (again / name).read_bytes() for name in names)
    if fmt == "parquet":
        return
    blocks = released(out / "counts" / "block.csv")
    assert blocks != country.counts
    noisy = Country(country.levels, country.parent, country.blocks, {(a, b, c): n for (a, b, c), n in blocks.items()})
    totals: dict[str, Counter[str]] = {"true": Counter(), "released": Counter()}
    for level in country.levels:
        assert released(out / "counts" / f"{level}.csv") == noisy.of(level)
    for name, of in (("true", country), ("released", noisy)):
        for (unit, _, _), count in of.of(kept).items():
            totals[name][unit] += count
    assert totals["released"] == totals["true"]


@pytest.mark.thorough
def test_a_changed_count_or_block_is_found(tmp_path: Path) -> None:
    country = make_country(3, 3)
    out = go(tmp_path, country)
    schema = Schema(tuple(Attribute(name, tuple(labels)) for name, labels in ATTRIBUTES.items()))

    def wrong() -> str:
        return "\n".join(verify_release(out, schema, country.levels, any_codes=True))

    assert not wrong()
    for name in ("microdata", "counts/block", "counts/Level-1", "counts/Level-0"):
        path = out / f"{name}.csv"
        text = path.read_text(encoding="utf-8")
        head, first, *rest = text.splitlines()
        _, _, cells = first.partition("|")
        for changed in ([f"nowhere|{cells}", *rest], rest):
            path.write_text("\n".join([head, *changed, ""]), encoding="utf-8")
            # Where the blocks themselves are changed, all else disagrees with them.
            assert ("Level-1" if name == "counts/block" else name) in wrong() or "geounit" in wrong()
        path.write_text(text, encoding="utf-8")
    assert not wrong()


@pytest.mark.thorough
def test_all_measurements_tell_intervals_of_any_codes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    country = make_country(3, 3)
    out = go(tmp_path, country, "--noisy-measurements", str(tmp_path / "noisy"), rho="2")
    block = next(iter(country.counts))[0]
    capsys.readouterr()
    query = f'block/sex[geounit="{block}",sex=f]'
    assert main(["interval", str(out), "--noisy-measurements", str(tmp_path / "noisy"), "--query", query]) == 0
    assert "estimate" in capsys.readouterr().out


def test_records_of_unknown_blocks_are_refused_and_not_shown(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    country = make_country(3, 3)
    data = write_country(country, tmp_path)
    with (data / "histogram.csv").open("a", encoding="utf-8") as file:
        file.write("SECRET|m|65+|3\n")
    (tmp_path / "config.json").write_text(json.dumps(country_configuration(country)))
    assert main(["topdown", "run", str(tmp_path / "config.json"), str(data), str(tmp_path / "out")]) == 2
    told = capsys.readouterr().err
    assert "block must be a unit of the last of areas.levels; 1 record" in told
    assert "SECRET" not in told


@pytest.mark.parametrize("option", [("--spine", "optimized"), ("--spine", "aian"), ("--spine", "pieces")])
def test_spines_of_the_bureaus_blocks_are_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], option: tuple[str, str]
) -> None:
    country = make_country(3, 3)
    data = write_country(country, tmp_path)
    (tmp_path / "config.json").write_text(json.dumps(country_configuration(country)))
    assert main(["topdown", "run", str(tmp_path / "config.json"), str(data), str(tmp_path / "out"), *option]) == 2
    assert "[areas] of the configuration says what the spine is" in capsys.readouterr().err
