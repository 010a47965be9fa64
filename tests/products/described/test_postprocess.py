"""What is done to noisy counts after the door, beside dense least squares and beside the truth."""

import json
import shutil
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import yupana
from yupana.arrays import Floats, Ints
from yupana.errors import ConfigError
from yupana.estimate.phsafe.combine import project
from yupana.plan.plan import Plan
from yupana.privacy.laws import Law
from yupana.products.described.description import Description
from yupana.products.described.plan import families, published_tables
from yupana.products.described.postprocess import postprocessed
from yupana.products.described.product import TABLES
from yupana.products.tables import Groups
from yupana.release.tables import Coded, RowTable, checksum

REGIONS = {"a": "N", "b": "N", "c": "N", "d": "S", "e": "S", "f": "W"}
DISTRICTS = list(REGIONS)
TRUTH = np.array([[0, 0, 3], [1, 40, 0], [0, 0, 0], [200, 7, 1], [2, 2, 2], [0, 90, 5]])


def document(postprocess: dict[str, Any], **changes: object) -> dict[str, Any]:
    return {
        "name": "farms",
        "unit": "animals",
        "files": {
            "animals": {
                "columns": {"district": {"codes": DISTRICTS}, "species": {"codes": ["cow", "pig", "hen"]}},
            }
        },
        "areas": {
            "country": {"code": "XX"},
            "region": {"column": "animals.district", "of": REGIONS},
            "district": {"column": "animals.district"},
        },
        "tables": {
            "stock": {
                "counts": "animals",
                "by": ["animals.species"],
                "margins": {"stock_total": []},
                "budget": {"country": "1/40", "region": "1/60", "district": "1/50"},
            }
        },
        "postprocess": postprocess,
        **changes,
    }


def described(folder: Path, of: dict[str, Any]) -> Description:
    path = folder / "farms.json"
    path.write_text(json.dumps(of), encoding="utf-8")
    return TABLES.read(path)


def true_counts() -> dict[str, Ints]:
    of_region = np.stack([TRUTH[[REGIONS[d] == r for d in DISTRICTS]].sum(axis=0) for r in "NSW"])
    return {"stock/country": TRUTH.sum(axis=0)[None], "stock/region": of_region, "stock/district": TRUTH}


def drawn(plan: Plan, seed: int) -> dict[str, Ints]:
    """Noise by the laws of the plan, drawn by numpy: fixed, and independent of the sampler."""
    rng = np.random.default_rng(seed)
    found = {}
    for name, counts in true_counts().items():
        values, chances = chances_of(plan[name].law)
        found[name] = counts + rng.choice(values, counts.shape, p=chances)
    return found


@cache
def chances_of(law: Law) -> tuple[Ints, Floats]:
    values = np.arange(-200, 201)
    chances = np.array([law.pmf(int(k)) for k in values])
    return values, chances / chances.sum()


def measured(config: Description, plan: Plan, noisy: dict[str, Ints]) -> list[Groups]:
    (family,) = families(config)
    found = []
    for name, counts in noisy.items():
        kind = name.partition("/")[2]
        area, everyone = Coded(config.areas[kind].codes, np.arange(len(counts))), np.zeros(len(counts), dtype=int)
        found.append(Groups(family, 0, kind, area, Coded(["*"], everyone), counts, plan[name]))
    return found


def by_level(groups: list[Groups]) -> dict[str, Ints]:
    return {found.measurement.name: found.counts for found in groups}


def numbers(table: RowTable, name: str) -> list[Any]:
    column = table.columns[name]
    return [column.values[i] for i in column.places] if hasattr(column, "places") else column.tolist()  # type: ignore[union-attr]


@pytest.mark.parametrize("mechanism", ["zcdp", "puredp"])
@pytest.mark.parametrize("seed", range(5))
def test_estimates_are_those_of_dense_least_squares(tmp_path: Path, seed: int, mechanism: str) -> None:
    config = described(tmp_path, document({"consistent": True}, privacy_defn=mechanism))
    plan = TABLES.plan(config)
    noisy = drawn(plan, seed)
    identities = [{0: -1.0, **dict.fromkeys((1, 2, 3), 1.0)}]
    identities += [
        {1 + r: -1.0, **{4 + d: 1.0 for d, name in enumerate(DISTRICTS) if REGIONS[name] == region}}
        for r, region in enumerate("NSW")
    ]
    values = np.concatenate([*noisy.values()]).astype(float)
    variances = np.repeat([float(plan[name].variance) for name in noisy], [1, 3, 6])
    oracle = project(values, variances, identities)
    due = np.array([oracle.covariances(np.array([[i]]))[0, 0, 0] for i in range(10)])
    found = postprocessed(config, plan, measured(config, plan, noisy))
    counts = np.concatenate([of.counts for of in found])
    assert np.abs(counts - oracle.values).max() < 1
    assert np.concatenate([of.estimated.variances for of in found if of.estimated])[:, 0] == pytest.approx(due)
    assert (np.array([counts[1:4].sum(axis=0), counts[4:].sum(axis=0)]) == counts[0]).all()
    assert [counts[4 + np.array([REGIONS[d] == r for d in DISTRICTS]).nonzero()[0]].sum() for r in "NSW"] == [
        counts[1 + i].sum() for i in range(3)
    ]


ALL = {"non_negative": True, "consistent": True, "suppress_below": 4}

ASKED: list[dict[str, Any]] = [
    {"non_negative": True},
    {"consistent": True},
    {"consistent": True, "non_negative": True},
    {"coterminous": True, "non_negative": True},
]


@pytest.mark.parametrize(("asked", "mechanism"), list(zip(ASKED, ["puredp", "zcdp", "puredp", "zcdp"], strict=True)))
@pytest.mark.slow
def test_margins_hold_for_the_true_counts(tmp_path: Path, asked: dict[str, Any], mechanism: str) -> None:
    config = described(tmp_path, document(asked, privacy_defn=mechanism))
    plan = TABLES.plan(config)
    (own, total, *_) = published_tables(config, plan, measured(config, plan, true_counts()))
    truth = [np.array(numbers(table, "COUNT")) for table in (own, total)]
    held: list[list[Any]] = [[], []]
    repeats = 80
    for seed in range(repeats):
        tables = [
            t for t in published_tables(config, plan, measured(config, plan, drawn(plan, seed))) if "/" not in t.name
        ]
        for i, table in enumerate(tables):
            counts = np.array(numbers(table, "COUNT"))
            held[i].append(np.abs(counts - truth[i]) <= np.array(numbers(table, "MOE")))
            assert not asked.get("non_negative") or counts.min() >= 0
    # Of 80 that each hold with a chance of 90 percent, no more than 65 percent do with a chance below 1e-9.
    assert min(np.mean(rows, axis=0).min() for rows in held) > 0.65


def test_areas_that_hold_the_same_show_the_same(tmp_path: Path) -> None:
    config = described(tmp_path, document({"coterminous": True}))
    plan = TABLES.plan(config)
    noisy = drawn(plan, 1)
    found = by_level(postprocessed(config, plan, measured(config, plan, noisy)))
    # Region W is district f; nothing else is the same.
    weights = np.array([1 / float(plan[f"stock/{level}"].variance) for level in ("region", "district")])
    due = weights @ np.stack([noisy["stock/region"][2], noisy["stock/district"][5]]) / weights.sum()
    assert (found["stock/region"][2] == np.rint(due)).all()
    assert (found["stock/district"][5] == np.rint(due)).all()
    assert (found["stock/district"][:5] == noisy["stock/district"][:5]).all()
    assert (found["stock/country"] == noisy["stock/country"]).all()


FAULTS: list[tuple[dict[str, Any], dict[str, Any], str]] = [
    ({"consistant": True}, {}, "consistant"),
    ({"consistent": "yes", "suppress_below": 0}, {}, "postprocess.consistent: must be true or false"),
    ({"consistent": "yes", "suppress_below": 0}, {}, "postprocess.suppress_below: must be a whole number above 0"),
    ({"suppress_below": -3}, {}, "suppress_below"),
    ({"consistent": True, "coterminous": True}, {}, "postprocess.coterminous: leave it out"),
    ({"consistent": True}, {"overlap": {**REGIONS, "a": ["N", "S"]}}, "areas of region are not sums of whole areas"),
    ({"consistent": True}, {"overlap": {**REGIONS, "a": []}}, "are not sums of whole areas"),
]


@pytest.mark.parametrize(("asked", "areas", "words"), FAULTS)
def test_what_cannot_be_done_is_refused_in_words(
    tmp_path: Path, asked: dict[str, Any], areas: dict[str, Any], words: str
) -> None:
    of = document(asked)
    if areas:
        of["areas"]["region"]["of"] = areas["overlap"]
    with pytest.raises(ConfigError, match=words):
        described(tmp_path, of)


def make_release(folder: Path, told: dict[str, Any], fmt: str = "csv") -> yupana.Release:
    data = folder / "data"
    data.mkdir(parents=True)
    lines = ["district|species"]
    for district, row in zip(DISTRICTS, TRUTH, strict=True):
        for species, number in zip(["cow", "pig", "hen"], row.tolist(), strict=True):
            lines += [f"{district}|{species}"] * number
    (data / "animals.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    (data / "SYNTHETIC").touch()
    return yupana.run("tables", told, data, folder / "out", seed=5, format=fmt)


@pytest.mark.sampled(1)
@pytest.mark.parametrize("fmt", ["csv", "parquet"])
@pytest.mark.slow
def test_a_release_keeps_what_was_measured_and_is_checked_against_it(tmp_path: Path, fmt: str) -> None:
    plain, done = (
        make_release(tmp_path / name, document(asked), fmt) for name, asked in (("plain", {}), ("done", ALL))
    )
    assert done.tables == ("stock", "stock_total", "measured/stock", "measured/stock_total")
    for name in plain:
        assert done.columns(f"measured/{name}") == plain.columns(name)
    assert done.record == [{"rule": "description", "non_negative": True, "consistent": True, "suppress_below": 4}]
    found, before = done.columns("stock"), done.columns("measured/stock")
    counts = [None if count == "X" else int(count) for count in found["COUNT"]]
    assert min(count for count in counts if count is not None) >= 4
    assert found["REASON"] == ["" if count is not None else "below-4" for count in counts]
    assert [moe == "X" for moe in found["MOE"]] == [variance == "X" for variance in found["VARIANCE"]]
    assert None in counts
    assert min(map(int, before["COUNT"])) < 0
    assert yupana.check(done.folder).wrong == ()
    with pytest.raises(yupana.ConfigError, match="ask measured/stock"):
        yupana.interval(done.folder, "stock[REGION_ID=d, species=cow]")
    query = "stock[REGION_ID=d, species=cow] / stock_total[REGION_TYPE=country]"
    queried = query.replace("stock[", "measured/stock[").replace("stock_total", "measured/stock_total")
    (one,), (same,) = yupana.interval(done.folder, queried), yupana.interval(plain.folder, query)
    assert one.pieces == same.pieces


def forged(folder: Path, name: str, old: str, new: str) -> tuple[str, ...]:
    """What is wrong with a release in which a row was changed, and its checksum with it."""
    path, manifest = folder / name, folder / "manifest.json"
    before = checksum(path)
    text = path.read_text(encoding="utf-8")
    assert old in text
    path.write_text(text.replace(old, new, 1), encoding="utf-8")
    told = manifest.read_text(encoding="utf-8")
    manifest.write_text(told.replace(before, checksum(path)), encoding="utf-8")
    return yupana.check(folder).wrong


@pytest.mark.thorough
def test_a_count_a_margin_and_a_measurement_that_were_changed_are_found(tmp_path: Path) -> None:
    done = make_release(tmp_path / "a", document(ALL))
    row = done.path("stock").read_text(encoding="utf-8").splitlines()[1]
    key, count, law, variance, margin, _ = row.rsplit("|", 5)
    rows = [f"{key}|{int(count) + 1}|{law}|{variance}|{margin}|", f"{key}|{count}|{law}|{variance}|{int(margin) - 1}|"]
    for i, changed in enumerate(rows):
        copied = shutil.copytree(done.folder, tmp_path / f"copy{i}")
        assert forged(copied, "stock.csv", row, changed) == (
            "stock: rows are what is made of the measured counts: 1 times not",
        )
    before = done.path("measured/stock_total").read_text(encoding="utf-8").splitlines()[1]
    head, _, tail = before.partition("|total|")
    count, _, tail = tail.partition("|")
    changed = f"{head}|total|{int(count) + 1}|{tail}"
    assert "every group has its total" in forged(done.folder, "measured/stock_total.csv", before, changed)[0]


@pytest.mark.thorough
def test_groups_shown_in_different_detail_are_checked_too(tmp_path: Path) -> None:
    changed = document({"non_negative": True})
    changed["tables"]["stock"]["detail"] = {
        "share": "1/10",
        "steps": [["stock_total"], ["stock", "stock_total"]],
        "thresholds": [30],
        "leave_out": {"district": "0.9"},
    }
    done = make_release(tmp_path, changed)
    assert done.columns("stock") != done.columns("measured/stock")
    assert 0 < len(set(done.columns("stock")["REGION_ID"])) < len(set(done.columns("stock_total")["REGION_ID"])) < 10
    assert min(int(count) for table in ("stock", "stock_total") for count in done.columns(table)["COUNT"]) == 0
    assert yupana.check(done.folder).wrong == ()
    row = done.path("stock").read_text(encoding="utf-8").splitlines()[1]
    assert forged(done.folder, "stock.csv", row, row.replace("|Disc", "0|Disc"))
    for name in ("consistent", "coterminous"):
        with pytest.raises(ConfigError, match=f"{name}: every table has detail"):
            described(tmp_path, {**changed, "postprocess": {name: True}})


@pytest.mark.parametrize("asked", [{"consistent": True, "non_negative": True}, {"coterminous": True}])
@pytest.mark.thorough
def test_tables_with_detail_stay_as_they_were_measured_where_others_are_fitted(
    tmp_path: Path, asked: dict[str, Any]
) -> None:
    changed = document(asked)
    stock = changed["tables"]["stock"]
    # Areas of this one overlap, so it could not be fitted, were it asked to.
    changed["areas"]["basin"] = {"column": "animals.district", "of": {d: ["x", "y"] for d in DISTRICTS}}
    changed["areas"]["whole"] = {"column": "animals.district", "of": dict.fromkeys(DISTRICTS, "all")}
    stock["budget"]["whole"] = "1/50"
    changed["tables"]["herds"] = {
        **stock,
        "margins": {"herds_total": []},
        "budget": {**stock["budget"], "basin": "1/50"},
        "detail": {"share": "1/10", "steps": [["herds_total"], ["herds", "herds_total"]], "thresholds": [30]},
    }
    done = make_release(tmp_path, changed)
    assert done.columns("stock_total") != done.columns("measured/stock_total")
    for table in ("herds", "herds_total"):
        shown, noisy = done.columns(table), done.columns(f"measured/{table}")
        raised = [str(max(int(count), 0)) for count in noisy["COUNT"]] if "non_negative" in asked else noisy["COUNT"]
        assert shown["COUNT"] == (raised if table == "herds" else shown["COUNT"])
        if "non_negative" not in asked:
            assert shown == noisy
    assert done.manifest["postprocessing"] == [{"rule": "description", **asked, "not_fitted": ["herds"]}]
    assert yupana.check(done.folder).wrong == ()
