"""Suppression: against a literal reading of the rules, and policies that say something impossible."""

import json
import re
import tempfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from places import ROOT, SHARED
from read_tables import read_tables
from release_maker import World, fill, geography, read_rows

from yupana.cli.main import main
from yupana.estimate.suppression import RULES, pair_iterations, read_policy
from yupana.products.safetab.iterations import CharacteristicIterations, Iteration, read_iterations
from yupana.release.tables import Format

REAL = SHARED / "data" / "race_ethnicity_iterations_2020"
PAIRS = {"1001": "2001", "1002": "2002"}
ALONE_ONLY = "9001"

Key = tuple[str, str, str, tuple[str, ...]]


def write_parameters(folder: Path) -> Path:
    """Two pairs, one by codes and one by name, one iteration without a counterpart, and an ethnicity; CRLF."""
    folder.mkdir()
    head = "ITERATION_CODE|ITERATION_NAME|LEVEL|ALONE|DETAILED_ONLY|COARSE_ONLY"
    races = [
        "1001|Aland alone|2|True|False|False",
        "2001|Anything at all|2|False|False|False",
        "1002|Borduria alone|1|True|False|False",
        "2002|Borduria alone or in any combination|1|False|False|False",
        "9001|Syldavia alone|2|True|True|False",
    ]
    _write_lines(folder / "race-characteristic-iterations.txt", [head, *races, ""])
    head = "ITERATION_CODE|ITERATION_NAME|LEVEL|DETAILED_ONLY|COARSE_ONLY"
    _write_lines(folder / "ethnicity-characteristic-iterations.txt", [head, "3001|Zubrowka|2|False|False"])
    codes = [f"{code}|{name}" for code, name in ((1000, "A"), (1100, "B"), (1101, "C"), (1200, "D"))]
    _write_lines(folder / "race-and-ethnicity-codes.txt", ["RACE_ETH_CODE|RACE_ETH_NAME", *codes])
    members = ["1001|1000", "2001|1000", "1002|1100", "2002|1100", "2002|1101", "9001|1200"]
    _write_lines(
        folder / "race-and-ethnicity-code-to-iteration.txt", ["ITERATION_CODE|RACE_ETH_CODE", *members, "", ""]
    )
    return folder


def _write_lines(path: Path, lines: list[str]) -> None:
    path.write_text("".join(f"{line}\r\n" for line in lines), encoding="utf-8", newline="")


def _as_toml(rules: list[dict[str, object]]) -> str:
    return "".join("[[rule]]\n" + "".join(f"{k} = {json.dumps(v)}\n" for k, v in rule.items()) for rule in rules)


def reasons_by_hand(world: World, rules: list[dict[str, object]]) -> dict[str, dict[Key, str]]:
    """Row by row: the codes of the rules that hit it, in the order of the policy."""
    found: dict[str, dict[Key, str]] = {}
    for table, rows in world.tables.items():
        found[table] = {}
        for (kind, region, code, cell), (count, _) in rows.items():
            hits = []
            for rule in rules:
                if table not in str(rule["tables"]):
                    continue
                hit = rule["rule"] == "negative" and count < 0
                for alone, combination in PAIRS.items() if rule["rule"] == "alone-exceeds-combination" else ():
                    other = {alone: combination, combination: alone}.get(code)
                    for name, others in world.tables.items():
                        theirs = others.get((kind, region, str(other), cell))
                        if theirs is None or name[:3] != table[:3]:
                            continue
                        own_side = code == alone and rule["suppress"] in {"alone", "both"} and count > theirs[0]
                        hit |= own_side or (
                            code == combination and rule["suppress"] in {"combination", "both"} and count < theirs[0]
                        )
                hits += [str(rule["reason"])] if hit else []
            found[table][kind, region, code, cell] = ";".join(hits)
    return found


@pytest.mark.parametrize("examples", [2, pytest.param(4, marks=pytest.mark.thorough)])
@pytest.mark.slow
def test_rows_are_suppressed_by_the_letter_of_the_rules(examples: int) -> None:
    made = given(
        seed=st.integers(0, 2**32 - 1),
        fmt=st.sampled_from(["csv", "parquet"]),
        side=st.sampled_from(["alone", "combination", "both"]),
    )
    settings(max_examples=examples)(made(_check_rows))()


def _check_rows(seed: int, fmt: Format, side: str) -> None:
    rng = np.random.default_rng(seed)
    world = geography(rng)
    fill(world, rng, lowest=-10, codes=(*PAIRS, *PAIRS.values(), ALONE_ONLY, "3001"), finer=0.5)
    if rng.random() < 0.3:
        del world.tables["T03002"]
    some = [table for table in world.tables if rng.random() < 0.7] or ["T01001"]
    rules: list[dict[str, object]] = [
        {"rule": "alone-exceeds-combination", "tables": some, "reason": "A", "suppress": side},
        {"rule": "negative", "tables": ["T01001", "T02002", "T03003", "T03002"], "reason": "neg"},
    ]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        release = world.write(folder / "release", fmt)
        (folder / "policy.toml").write_text('parameters = "p"\n' + _as_toml(rules))
        write_parameters(folder / "p")
        assert run(release, folder / "policy.toml", folder / "out") == 0
        manifest, _, wrong = read_tables(folder / "out")
        assert not wrong
        record = manifest["postprocessing"][-1]
        assert record["unpaired"] == [ALONE_ONLY]
        for table, expected in reasons_by_hand(world, rules).items():
            rows = read_rows(folder / "out" / f"{table}.{fmt}")
            assert list(rows) == list(world.tables[table])
            assert {key: row[-1] for key, row in rows.items()} == expected
            for key, (count, variance, margin, reason) in rows.items():
                old = world.tables[table][key]
                if reason:
                    assert (count, variance, margin) == ("X", "X", "X")
                else:
                    assert (int(count), float(variance)) == old
            assert sum(record["suppressed"][table].values()) == sum(bool(reason) for reason in expected.values())


def run(*arguments: object) -> int:
    return main(["postprocess", "suppress", *map(str, arguments)])


def _release(folder: Path) -> Path:
    world = World([], {})
    cell = ()
    world.tables = {
        "T01001": {("STATE", "44", code, cell): (n, 4.0) for code, n in (("1001", 9), ("2001", 7), ("3001", -1))}
    }
    return world.write(folder / "release")


def test_every_rule_of_the_document_is_read(tmp_path: Path) -> None:
    text = (ROOT / "docs" / "suppression.md").read_text()
    block = re.search(r"(?:^    .*\n|^\n)*^    \[\[rule\]\](?:\n    .*|\n)*", text, re.MULTILINE)
    assert block
    (tmp_path / "policy.toml").write_text(re.sub(r"^    ", "", block.group(), flags=re.MULTILINE))
    policy = read_policy(tmp_path / "policy.toml")
    assert {rule.rule for rule in policy.rule} == set(RULES)
    assert all(f"`{rule}`" in text for rule in RULES)


def test_a_suppressed_release_is_the_last(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    release = _release(tmp_path)
    (tmp_path / "policy.toml").write_text('[[rule]]\nrule = "negative"\ntables = ["T01001"]\nreason = "N"\n')
    assert run(release, tmp_path / "policy.toml", tmp_path / "out") == 0
    assert "N 1" in capsys.readouterr().out
    assert run(tmp_path / "out", tmp_path / "policy.toml", tmp_path / "again") == 2
    assert "was suppressed, which comes last" in capsys.readouterr().err


NEGATIVE = '[[rule]]\nrule = "negative"\ntables = ["T01001"]\nreason = "N"\n'
COMPARE = '[[rule]]\nrule = "alone-exceeds-combination"\ntables = ["T01001"]\nreason = "A"\nsuppress = "both"\n'
BAD_POLICIES = {
    "rule[0].rule: must be 'negative' or 'alone-exceeds-combination'": NEGATIVE.replace("negative", "positive"),
    "rule[0].tables[0]: must be 'T01001' or": NEGATIVE.replace("T01001", "T09999"),
    "not TOML": NEGATIVE.replace("]]", "]"),
    "key 'rules' is unknown; known are rule, parameters": NEGATIVE + "[rules]\n",
    "line 5: rule[0]: key 'because' is unknown": NEGATIVE + 'because = "so"\n',
    "key 'rule' is missing": "",
    "line 3: rule[0].tables: must be a list": NEGATIVE.replace('["T01001"]', '"T01001"'),
    "rule[0].reason: must be a code": NEGATIVE.replace('"N"', '"a|b"'),
    "rule[0].suppress: must be 'alone' or 'combination' or 'both'": COMPARE.replace("both", "neither"),
    "rule[0].suppress: is for": NEGATIVE + 'suppress = "both"\n',
    "name their folder": COMPARE,
    "nowhere does not exist": 'parameters = "nowhere"\n' + COMPARE,
    "line 1: parameters: must be a text": "parameters = 7\n" + COMPARE,
    "has none of the tables": NEGATIVE.replace("T01001", "T04001"),
}


@pytest.mark.parametrize("words", BAD_POLICIES)
def test_a_bad_policy_is_refused(words: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "policy.toml").write_text(BAD_POLICIES[words])
    assert run(_release(tmp_path), tmp_path / "policy.toml", tmp_path / "out") == 2
    assert words in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


BAD_PARAMETERS = {
    "line 1": ("LEVEL|ALONE", "ALONE|LEVEL"),
    "line 2: must have 6 fields": ("1001|Aland alone|2", "1001|Aland alone"),
    "line 3: ITERATION_CODE stands in line 2 already": ("2001|", "1001|"),
    "line 2: ALONE": ("2|True", "2|Yes"),
}


@pytest.mark.parametrize("words", BAD_PARAMETERS)
def test_bad_parameters_are_refused(words: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = write_parameters(tmp_path / "p") / "race-characteristic-iterations.txt"
    text = path.read_text(encoding="utf-8")
    assert BAD_PARAMETERS[words][0] in text
    path.write_text(text.replace(*BAD_PARAMETERS[words], 1), encoding="utf-8")
    (tmp_path / "policy.toml").write_text(COMPARE)
    assert run(_release(tmp_path), tmp_path / "policy.toml", tmp_path / "out", "--parameters", tmp_path / "p") == 2
    assert words in capsys.readouterr().err


def _pair(*races: tuple[str, str, bool, str]) -> dict[str, str]:
    flags = {"detailed_only": False, "coarse_only": False}
    iterations = tuple(Iteration(code, name, 2, alone, **flags) for code, name, alone, _ in races)
    members = {code: frozenset(map(ord, codes)) for code, _, _, codes in races}
    codes = tuple(sorted(frozenset().union(*members.values())))
    return pair_iterations(CharacteristicIterations(codes, iterations, members))[0]


def test_pairs_are_by_codes_then_by_name() -> None:
    assert _pair(("1", "A alone", True, "x"), ("2", "B", False, "x"), ("3", "A alone or in any", False, "xy")) == {
        "1": "2"
    }
    twins = (("2", "B alone or in any combination", False, "x"), ("3", "A alone or in any combination", False, "x"))
    assert _pair(("1", "A alone", True, "x"), *twins) == {"1": "3"}
    # By name only if it holds all codes, for otherwise alone may truly be larger.
    assert _pair(("1", "A alone", True, "xy"), ("2", "A alone or in any combination", False, "xz")) == {}
    assert _pair(("1", "A alone, other", True, "x"), ("2", "A alone or in any combination", False, "xz")) == {}


@pytest.mark.skipif(not REAL.is_dir(), reason="the iterations of 2020 are not here")
@pytest.mark.slow
def test_all_iterations_of_2020_have_their_counterpart() -> None:
    for name in ("ddhca_safetab_p_NMFv7", "ddhcb_safetab_h_NMFv5"):
        iterations = read_iterations(REAL / name)
        names = {iteration.code: iteration.name for iteration in iterations.iterations}
        pairs, unpaired = pair_iterations(iterations)
        assert not unpaired
        assert len(pairs) == len(set(pairs.values())) == 27 + 24 + 1457
        for alone, combination in pairs.items():
            start, _, end = names[alone].partition(" alone")
            assert names[combination].startswith(f"{start} alone or in ")
            assert names[combination].endswith(end)
