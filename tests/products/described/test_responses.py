"""Sensitivities of tables with groups by responses and areas made of blocks, against all pairs of records."""

import copy
from fractions import Fraction
from itertools import combinations, product
from random import Random
from typing import Any

import pytest

import yupana
from yupana.products.described.product import described
from yupana.products.described.stability import derive

Record = dict[str, Any]
SEXES, AGES, CODES = ["f", "m"], ["0", "1", "2"], ["1", "2", "3"]
BLOCKS = [{"A": a, "B": b, "C": c} for a, b, c in ("000", "011", "019", "102", "110", "119", "201")]


def random_document(rng: Random) -> dict[str, Any]:
    """One table of one level, with groups by two responses, conditions, or both."""
    answers = {"r": ["R1", "R2"], "s": ["S1"]}
    responses: dict[str, Any] = {name: {"columns": columns, "codes": list(CODES)} for name, columns in answers.items()}
    if rng.random() < 0.7:
        responses["r"]["missing"] = "-"
    if rng.random() < 0.3:
        responses["r"]["most"] = 1
    by_columns = {"people.sex": SEXES, "people.age": AGES}
    groups: dict[str, Any] = {}
    for number in range(rng.randint(1, 5)):
        if rng.random() < 0.25:
            column = rng.choice(list(by_columns))
            groups[f"g{number}"] = {"where": {column: rng.sample(by_columns[column], rng.randint(1, 2))}}
        else:
            of, alone = rng.choice(["people.r", "people.r", "people.s"]), rng.random() < 0.4
            codes = rng.sample(CODES, rng.randint(0, 2))
            groups[f"g{number}"] = {"response": of, "codes": codes} | ({"alone": True} if alone else {})
    kinds: dict[str, Any] = {
        "all": {"code": "1"},
        "a": {"blocks": ["A"]},
        "ac": {"blocks": ["A", "C"], "nowhere": {"C": "9"}},
    }
    by = rng.sample(list(by_columns), rng.randint(0, 2))
    table: dict[str, Any] = {"counts": "people", "budget": {"level": 1}} | ({"by": by} if by else {})
    if rng.random() < 0.4:
        column = rng.choice(list(by_columns))
        table["where"] = {column: rng.sample(by_columns[column], rng.randint(1, 2))}
    if not by and rng.random() < 0.5:
        cells = {f"c{i}": {"people.age": rng.sample(AGES, rng.randint(1, 3))} for i in range(2)}
        table |= {"cells": cells, "overlapping": True}
    blocks: dict[str, Any] = {"file": "blocks", "key": {"A": 1, "B": 1}, "columns": {"C": 1}}
    if rng.random() < 0.4:
        blocks["only"] = {"A": ["0", "1"]}
    return {
        "name": "answers",
        "unit": "people",
        "privacy_defn": rng.choice(["zcdp", "puredp"]),
        "neighbours": rng.choice(["add-remove", "replace"]),
        "blocks": blocks,
        "files": {"people": {"columns": {"sex": {"codes": SEXES}, "age": {"codes": AGES}}, "responses": responses}},
        "areas": kinds,
        "groups": groups,
        "levels": {"level": {"areas": rng.choice(list(kinds)), "groups": [*groups, *rng.choice([[], [], ["*"]])]}},
        "tables": {"t": table},
    }


def records(document: dict[str, Any]) -> list[Record]:
    """Every record there can be: values, codes by response, and the block."""
    found = []
    for sex, age, block in product(SEXES, AGES, BLOCKS):
        answers = []
        for told in document["files"]["people"]["responses"].values():
            words = [*CODES, *([told["missing"]] if "missing" in told else [])]
            most = told.get("most", len(told["columns"]))
            written = product(words, repeat=len(told["columns"]))
            answers.append(list({frozenset(words[:most]) - {told.get("missing")} for words in written}))
        for r, s in product(*answers):
            found.append({"sex": sex, "age": age, "block": tuple(block.items()), "r": r, "s": s})
    return found


def footprint(record: Record, document: dict[str, Any]) -> frozenset[tuple[str, ...]]:
    """The triples of area, group and cell that a record counts in."""
    table, level = document["tables"]["t"], document["levels"]["level"]
    if not meets(record, table.get("where", {})):
        return frozenset()
    kind, block = document["areas"][level["areas"]], dict(record["block"])
    if block["A"] not in document["blocks"].get("only", {"A": ["0", "1", "2"]})["A"]:
        return frozenset()
    if any(block[name] == value for name, value in kind.get("nowhere", {}).items()):
        return frozenset()
    area = "".join(block[name] for name in kind["blocks"]) if "blocks" in kind else kind["code"]
    if "by" in table:
        cells = ["|".join(record[name.partition(".")[2]] for name in table["by"])]
    else:
        cells = [label for label, where in table.get("cells", {"total": {}}).items() if meets(record, where)]
    groups = [code for code in level["groups"] if code == "*" or of_group(record, document["groups"][code])]
    return frozenset(product([area], groups, cells))


def of_group(record: Record, group: dict[str, Any]) -> bool:
    if "where" in group:
        return meets(record, group["where"])
    codes: frozenset[str] = record[group["response"].partition(".")[2]]
    members = set(group["codes"])
    return bool(codes) and (codes <= members if group.get("alone") else bool(codes & members))


def meets(record: Record, where: dict[str, list[str]]) -> bool:
    return all(record[name.partition(".")[2]] in values for name, values in where.items())


@pytest.mark.parametrize("seeds", [50, pytest.param(120, marks=pytest.mark.thorough)])
@pytest.mark.slow
def test_no_two_records_are_farther_apart_than_derived(seeds: int) -> None:
    """A unit is one record that nothing displaces, so that all databases are told by pairs of records."""
    sure, shares, costs = [0, 0], [Fraction(0), Fraction(0)], [0, 0]
    worlds = 0
    for seed in range(seeds):
        rng = Random(seed)  # noqa: S311 (a test)
        document = random_document(rng)
        try:
            plan = yupana.plan("tables", copy.deepcopy(document))
        except yupana.ConfigError:
            continue  # no record can be of the groups
        worlds += 1
        (measurement,) = plan.measurements
        config = described(copy.deepcopy(document))
        (table,) = config.tables
        derived = derive(config, table, table.levels[0])
        found = [(record, footprint(record, document)) for record in records(document)]
        unlike = list({cells: None for _, cells in found})
        truth = (max(map(len, unlike)), max((len(one ^ two) for one, two in combinations(unlike, 2)), default=0))
        said = (measurement.proven.unbounded, measurement.proven.bounded)
        for place, attained in enumerate((derived.attained["unbounded"], derived.attained["bounded"])):
            assert truth[place] <= said[place], (seed, document)
            assert truth[place] == said[place] or not attained, (seed, document)
            sure[place] += attained
            shares[place] += Fraction(truth[place]) / said[place]
        bounds = {
            bound.attributes[0]: bound.loss for bound in yupana.attribute_bounds("tables", copy.deepcopy(document))
        }
        assert set(bounds) == {f"people.{name}" for name in ("sex", "age", "r", "s", "A+B")}
        for name, loss in bounds.items():
            own = name.partition(".")[2].replace("A+B", "block")
            alike: dict[tuple[Any, ...], set[frozenset[tuple[str, ...]]]] = {}
            for record, cells in found:
                alike.setdefault(tuple(record[other] for other in record if other != own), set()).add(cells)
            far = max(len(one ^ two) for some in alike.values() for one in some for two in some)
            assert measurement.loss(Fraction(far)) <= loss, (seed, name, document)
            costs[0] += loss == measurement.loss(Fraction(far))
            costs[1] += loss == 0
    assert worlds > seeds * 18 // 25
    assert sure[0] == worlds
    assert sure[1] > worlds * 0.4
    assert shares[0] == worlds
    assert shares[1] / worlds > 0.9
    assert costs[0] > worlds
    assert costs[1] > worlds / 2
