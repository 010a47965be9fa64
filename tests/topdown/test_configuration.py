"""Configurations of TopDown: read exactly, defaults, names of queries, and every refusal."""

import itertools
import json
import tomllib
from collections.abc import Mapping
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from places import ROOT

from yupana.cli.main import main
from yupana.errors import ConfigError
from yupana.files.document import Changes
from yupana.geography.settings import SpineSettings, production_settings
from yupana.plan.measurement import Mechanism
from yupana.privacy.exact import INFINITE
from yupana.topdown.queries import Attribute, Recode, Schema, nested_chain, query_named
from yupana.topdown.reading.configuration import BUILT_IN, WHOLE, configuration_document, read_configuration

EXAMPLE = """
product = "example"
mechanism = "zcdp"
rho = 0.1
invariants = { County = ["total"] }

[schema]
hhgq = ["household", "prison", "dormitory"]
hispanic = 2
votingage = 2

[shares]
County = 0.1
Tract = 0.2
Block = "7/10"

[queries.County]
"detailed" = 1

[queries.Tract]
"total" = "1/2"
"votingage*hispanic" = "1/6"
"inst" = "1/12"
"hhgq" = 0
"detailed" = 0.25

[queries.Block]
"detailed" = "1"

[passes.Tract]
estimate = [["total"], ["hispanic*votingage", "inst", "detailed"]]
round = [["total", "hispanic"], ["hispanic*hhgq", "hispanic*votingage", "detailed"]]

[recodes]
inst = { of = "hhgq", groups = [[1, "dormitory"], [0]] }

[constraints]
group_quarters = "hhgq"
structural_zeros = [{ hhgq = 1, votingage = 0 }, { hhgq = "dormitory", hispanic = 1, votingage = 0 }]

[spine]
kind = "conventional"
"""


def document() -> dict[str, Any]:
    return tomllib.loads(EXAMPLE)


def write_json(folder: Path, value: object) -> Path:
    path = folder / "config.json"
    path.write_text(json.dumps(value))
    return path


@pytest.fixture
def example(tmp_path: Path) -> Path:
    path = tmp_path / "config.toml"
    path.write_text(EXAMPLE)
    return path


def test_numbers_are_the_numbers_written(example: Path) -> None:
    configuration = read_configuration(example)
    assert configuration.budget == Fraction(1, 10)
    assert configuration.shares == {"County": Fraction(1, 10), "Tract": Fraction(1, 5), "Block": Fraction(7, 10)}
    assert {q.name: share for q, share in configuration.queries["Tract"]} == {
        "total": Fraction(1, 2),
        "votingage*hispanic": Fraction(1, 6),
        "inst": Fraction(1, 12),
        "hhgq": 0,
        "detailed": Fraction(1, 4),
    }
    assert [query.name for query, _ in configuration.measured("Tract")] == [
        *("total", "votingage*hispanic", "inst", "detailed")
    ]


def test_toml_and_json_say_the_same(example: Path, tmp_path: Path) -> None:
    assert read_configuration(write_json(tmp_path, document())) == read_configuration(example)
    # A JSON text is known as such without its suffix, too.
    assert read_configuration(write_json(tmp_path, document()).rename(tmp_path / "config")).budget == Fraction(1, 10)


def test_everything_else_is_as_written(example: Path) -> None:
    configuration = read_configuration(example)
    assert (configuration.product, configuration.privacy_unit) == ("example", "person record")
    assert configuration.mechanism is Mechanism.ZCDP
    assert configuration.schema.attributes[0] == Attribute("hhgq", ("household", "prison", "dormitory"))
    assert configuration.schema.attributes[2] == Attribute("votingage", ("0", "1"))
    assert configuration.recodes == {"inst": Recode("inst", "hhgq", (1, 0, 0))}
    assert {level: [q.name for q in queries] for level, queries in configuration.invariants.items()} == {
        "County": ["total"]
    }
    assert configuration.group_quarters == "hhgq"
    assert configuration.structural_zeros == ((1, None, 0), (2, 1, 0))
    assert configuration.levels == ("County", "Tract", "Block")
    assert configuration.spine == SpineSettings(
        "conventional",
        "zcdp",
        ("County", "Tract", "Block"),
        (Fraction(1, 10), Fraction(1, 5), Fraction(7, 10)),
    )


def test_a_query_is_one_object_within_a_geolevel_whatever_the_order_of_its_names(example: Path) -> None:
    tract = read_configuration(example).passes["Tract"]
    names = [[[q.name for q in queries] for queries in passes] for passes in (tract.estimate, tract.round)]
    assert names == [
        [["total"], ["votingage*hispanic", "inst", "detailed"]],
        [["total", "hispanic"], ["hispanic*hhgq", "votingage*hispanic", "detailed"]],
    ]
    assert tract.round[1][0].factors == ((0, 1, 2), (0, 1), (0, 0))


def test_structural_zeros_are_cells(example: Path) -> None:
    configuration = read_configuration(example)
    cells = itertools.product(range(3), range(2), range(2))
    expected = [(g == 1 and v == 0) or (g == 2 and h == 1 and v == 0) for g, h, v in cells]
    assert configuration.impossible().tolist() == expected


def test_without_passes_everything_is_estimated_at_once_and_a_chain_rounded(tmp_path: Path) -> None:
    changed = document()
    del changed["passes"]
    tract = read_configuration(write_json(tmp_path, changed)).passes["Tract"]
    assert [[q.name for q in queries] for queries in tract.estimate] == [
        ["total", "votingage*hispanic", "inst", "detailed"]
    ]
    assert [[q.name for q in queries] for queries in tract.round] == [["total", "hhgq", "hhgq*hispanic", "detailed"]]


def test_a_geolevel_without_a_share_needs_no_queries(tmp_path: Path) -> None:
    changed = document()
    changed["shares"] = {"Block": 1, "County": 0, "Tract": "0"}
    del changed["queries"]["County"]
    configuration = read_configuration(write_json(tmp_path, changed))
    assert configuration.levels == ("County", "Tract", "Block")
    assert configuration.queries["County"] == ()
    assert configuration.passes["County"].estimate == ()
    assert configuration.passes["County"].round == (nested_chain(configuration.schema),)
    assert configuration.without_detail() == ("County", "Tract")
    changed["shares"] |= {"Block": 0, "Block_Group": 1}
    changed["queries"]["Block_Group"] = {"total": 1}
    assert read_configuration(write_json(tmp_path, changed)).without_detail() == (
        *("County", "Tract", "Block_Group", "Block"),
    )


@pytest.mark.parametrize("written", ["inf", '"inf"', '"Infinity"'])
def test_a_budget_may_be_infinite(example: Path, written: str) -> None:
    example.write_text(EXAMPLE.replace("rho = 0.1", f"rho = {written}"))
    assert read_configuration(example).budget == INFINITE


def test_json_has_infinity_too(tmp_path: Path) -> None:
    assert read_configuration(write_json(tmp_path, document() | {"rho": float("inf")})).budget == INFINITE


def test_pure_differential_privacy_has_an_epsilon(example: Path) -> None:
    example.write_text(EXAMPLE.replace('"zcdp"\nrho', '"pure"\nepsilon'))
    configuration = read_configuration(example)
    assert (configuration.mechanism, configuration.budget) == (Mechanism.PURE, Fraction(1, 10))
    assert configuration.spine.mechanism == "pure"


def test_options_of_the_spine_are_those_of_the_command(tmp_path: Path) -> None:
    changed = document()
    changed["spine"] = {
        "kind": "aian",
        "fanout-cutoff": 0,
        "entity_threshold": 3,
        "bypass_cutoff": 20,
        "grouping": "even",
        "classes": "pme,GQ,SLDU",
        "aian_areas": "none",
        "strong_mcd_states": ["09"],
        "live": True,
    }
    spine = read_configuration(write_json(tmp_path, changed)).spine
    assert (spine.kind, spine.fanout_cutoff, spine.entity_threshold, spine.bypass_cutoff) == ("aian", 0, 3, 20)
    assert (spine.grouping, spine.classes, spine.aian_areas) == ("even", ("pme", "gq", "SLDU"), ())
    assert (spine.strong_mcd_states, spine.live) == ((9,), True)


def test_another_kind_of_spine_is_refused_where_it_cannot_be(example: Path) -> None:
    configuration = read_configuration(example)
    assert configuration.on_spine("aian").spine.kind == "aian"
    with pytest.raises(ConfigError, match="Block_Group is missing"):
        configuration.on_spine("optimized")


@pytest.mark.parametrize("puerto_rico", [False, True])
def test_the_spine_of_production_is_that_of_spine_build(*, puerto_rico: bool) -> None:
    settings = read_configuration("pl94-2020-pr" if puerto_rico else "pl94-2020-us").spine
    expected = production_settings(puerto_rico=puerto_rico)
    assert (settings.levels, settings.shares) == (expected.levels, expected.shares)
    assert settings.classes == expected.classes
    assert settings.live


def test_nursing_home_minors_are_structural_zeros_in_production() -> None:
    configuration = read_configuration("pl94-2020-us")
    impossible = configuration.impossible().reshape(configuration.schema.shape)
    assert impossible[3, 0].all()
    assert impossible.sum() == 2 * 63


def test_races_of_production_are_in_the_order_of_their_codes() -> None:
    races = read_configuration("pl94-2020-us").schema.attributes[3].labels
    assert len(set(races)) == 63
    assert [race.count("+") for race in races] == sorted(race.count("+") for race in races)
    # 01 White alone, 07 White and Black, 22 White, Black and American Indian, 63 all six.
    assert races[0] == "White"
    assert races[6] == "White+Black"
    assert races[21] == "White+Black+AIAN"
    assert races[62].count("+") == 5


# A refusal: what is changed, by a path of keys, and what must be said of it.
DELETED = object()
REFUSALS: list[tuple[tuple[str, ...], object, str]] = [
    (("mood",), 1, "key 'mood' is unknown"),
    (("product",), DELETED, "key 'product' is missing"),
    (("product",), 7, "product: must be a text"),
    (("privacy_unit",), "household", "privacy_unit: must be 'person record' or 'housing unit'"),
    (("mechanism",), "gauss", "mechanism: must be 'zcdp' or 'pure'"),
    (("mechanism",), "pure", "rho: has no meaning under mechanism 'pure'; give epsilon"),
    (("rho",), DELETED, "key 'rho' is missing"),
    (("rho",), 0, "rho: is 0, so nothing would be measured"),
    (("rho",), -1, "rho: must not be negative"),
    (("rho",), True, "rho: must be a number"),
    (("rho",), float("nan"), "rho: not an exact number"),
    (("rho",), "2e-14", "queries.Tract.inst: has a budget below 1e-15"),
    (("schema",), DELETED, "key 'schema' is missing"),
    (("schema",), {}, "schema: has no attribute"),
    (("schema",), [2, 3], "schema: must be a table"),
    (("schema", "hispanic"), 0, "schema.hispanic: must be a number of levels from 1 to"),
    (("schema", "hispanic"), 2.5, "schema.hispanic: must be a number of levels from 1 to"),
    (("schema", "hispanic"), ["no", "no"], "schema.hispanic: the label 'no' is given twice"),
    (("schema", "hispanic"), ["no", 1], "schema.hispanic: must be a list of labels, which are texts"),
    (("schema", "hispanic"), 2**16 + 1, "schema.hispanic: must be a number of levels from 1 to 65,536"),
    (("schema",), {"a": 2**13, "b": 2**12}, "schema: has 33,554,432 cells; at most 16,777,216 are possible"),
    (("schema", "total"), 2, "schema: 'total' has a meaning of its own"),
    (("schema", "a*b"), 2, "schema: 'a*b' must be letters, digits and _"),
    (("schema", "HHGQ"), 2, "schema: 'HHGQ' is named twice"),
    (("shares",), DELETED, "key 'shares' is missing"),
    (("shares", "Block"), "69/100", "shares: the shares sum to 99/100 (about 0.99), not to 1"),
    (("shares", "Block"), 2, "shares: the shares sum to 23/10"),
    (("shares", "Block"), "-7/10", "shares.Block: must be 0 or more"),
    (("shares", "Block"), "inf", "shares.Block: must be 0 or more, and finite"),
    (("shares", "Block"), "1/0", "shares.Block: a fraction with denominator zero"),
    (("shares", "Block"), [1], "shares.Block: must be a number"),
    (("shares", "Block"), DELETED, "shares: Block is missing"),
    (("shares", "Parish"), 0, "shares: 'Parish' is no geolevel; there are US, State"),
    (("queries",), DELETED, "key 'queries' is missing"),
    (("queries", "Tract"), DELETED, "queries.Tract: is missing, and the geolevel has a share of 1/5"),
    (("queries", "State"), {"detailed": 1}, "queries: 'State' has no share; geolevels are County, Tract, Block"),
    (("queries", "Block", "detailed"), "3/4", "queries.Block: the shares sum to 3/4 (about 0.75), not to 1"),
    (("queries", "Block", "total"), "inf", "queries.Block.total: must be 0 or more, and finite"),
    (("queries", "Block", "age"), 0, "queries.Block: query 'age': 'age' is unknown; known are hhgq, hispanic"),
    (("queries", "Block", "hhgq**hispanic"), 0, "'' is unknown"),
    (("queries", "Block", "hhgq*inst"), 0, "'hhgq' and 'inst' both mean 'hhgq'"),
    (("queries", "Block", "inst*hhgq"), 0, "'inst' and 'hhgq' both mean 'hhgq'"),
    (("queries", "Block", "hispanic*hispanic"), 0, "'hispanic' and 'hispanic' both mean 'hispanic'"),
    (("queries", "Tract", "hispanic*votingage"), 0, "is the same query as 'votingage*hispanic'"),
    (("queries", "Block", "votingage*hhgq*hispanic"), 0, "is the same query as 'detailed'"),
    (("passes", "State"), {}, "passes: 'State' has no share"),
    (("passes", "Tract", "plan"), [], "passes.Tract: key 'plan' is unknown"),
    (("passes", "Tract", "estimate"), [["total", "detailed"]], "'inst' is measured, and in no pass"),
    (("passes", "Block"), {"estimate": [["total", "detailed"]]}, "passes.Block.estimate: 'total' is not measured"),
    (
        ("passes", "Tract", "estimate"),
        [["total"], ["hhgq", "inst", "detailed", "votingage*hispanic"]],
        "passes.Tract.estimate: 'hhgq' is not measured",
    ),
    (("passes", "Block"), {"estimate": [["detailed"], ["detailed"]]}, "estimate: 'detailed' is named twice"),
    (("passes", "Tract", "round"), [["total"]], "passes.Tract.round: the last pass must hold 'detailed'"),
    (("passes", "Tract", "round"), [["detailed"], ["total"]], "the last pass must hold 'detailed'"),
    (("passes", "Tract", "round"), [["age", "detailed"]], "passes.Tract.round: query 'age': 'age' is unknown"),
    (("passes", "Tract", "round"), ["detailed"], "passes.Tract.round: must be a list of lists of queries"),
    (("passes", "Tract", "round"), [], "passes.Tract.round: must be a list of lists of queries"),
    (("passes", "Tract", "round"), [[1, "detailed"]], "passes.Tract.round: must be a list of lists of queries"),
    (
        ("recodes", "inst", "groups"),
        [[0], [1]],
        "level dormitory of hhgq is in no group; a query must cover",
    ),
    (("recodes", "inst", "groups"), [[0, 1], [1, 2]], "level prison of hhgq is listed more than once"),
    (("recodes", "inst", "groups"), [[0, 1], [2, 2]], "level dormitory of hhgq is listed more than once"),
    (("recodes", "inst", "groups"), [[0, 1], [2, 3]], "'3' is no level of hhgq: 0 to 2, or a label"),
    (("recodes", "inst", "groups"), [[0, 1], []], "recodes.inst.groups: must be a list of lists of levels, none empty"),
    (("recodes", "inst", "groups"), [[0, 1, 2]], "is the same as summing over hhgq"),
    (("recodes", "inst", "groups"), [[0], [2], [1]], "is the same as keeping hhgq"),
    (("recodes", "inst", "of"), "age", "recodes.inst.of: 'age' is no attribute"),
    (("recodes", "inst", "of"), DELETED, "recodes.inst: key 'of' is missing"),
    (("recodes", "hispanic"), {"of": "hhgq", "groups": [[0], [1, 2]]}, "'hispanic' is the name of an attribute"),
    (("recodes", "detailed"), {"of": "hhgq", "groups": [[0], [1, 2]]}, "'detailed' has a meaning of its own"),
    (("invariants", "State"), ["total"], "invariants: 'State' has no share"),
    (("invariants", "Block"), ["hispanic"], 'invariants.Block: must be ["total"]'),
    (("invariants",), "County", "invariants: must be a table"),
    (("constraints", "age"), 1, "constraints: key 'age' is unknown"),
    (("constraints", "group_quarters"), "hispanic", "constraints.group_quarters: must be 'hhgq', the first attribute"),
    (("schema", "hhgq"), 9, "hhgq has 9 levels; households and up to 7 major types are 2 to 8"),
    (("constraints", "structural_zeros"), {}, "constraints.structural_zeros: must be a list of tables"),
    (("constraints", "structural_zeros"), [{}], "constraints.structural_zeros[0]: names no attribute"),
    (("constraints", "structural_zeros"), [{"age": 1}], "constraints.structural_zeros[0]: key 'age' is unknown"),
    (("constraints", "structural_zeros"), [{"hispanic": 2}], "'2' is no level of hispanic: 0 to 1"),
    (("spine",), "conventional", "spine: must be a table"),
    (("spine", "kind"), "straight", "spine.kind: must be 'conventional' or 'aian' or 'optimized'"),
    (("spine", "kind"), "optimized", "shares: Block_Group is missing; an optimized spine needs it"),
    (("spine", "shares"), {}, "spine: key 'shares' is unknown"),
    (("spine", "fanout_cutoff"), -1, "spine.fanout_cutoff: must be a whole number"),
    (("spine", "live"), 1, "spine.live: must be true or false"),
    (("spine", "classes"), 3, "spine.classes: must be a list of names"),
    (("spine", "classes"), ["pme", "PME"], "spine.classes: PME is named twice"),
    (("spine", "aian_areas"), ["moon"], "spine.aian_areas: 'moon' is no type of area"),
    (("spine", "strong_mcd_states"), ["9"], "spine.strong_mcd_states: '9' is no FIPS code"),
    (("spine", "production"), "dhc", "spine.production: must be 'pl94-2020'"),
]


@pytest.mark.parametrize(("keys", "value", "words"), REFUSALS)
def test_what_cannot_be_is_refused(tmp_path: Path, keys: tuple[str, ...], value: object, words: str) -> None:
    changed = document()
    place = changed
    for key in keys[:-1]:
        place = place[key]
    if value is DELETED:
        del place[keys[-1]]
    else:
        place[keys[-1]] = value
    with pytest.raises(ConfigError) as refused:
        read_configuration(write_json(tmp_path, changed))
    assert words in str(refused.value)
    assert "config.json" in str(refused.value)


def test_all_faults_are_named_at_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    changed = document()
    changed["mood"] = 1
    changed["shares"]["Block"] = "1/2"
    changed["queries"]["Block"] = {"age": 1}
    changed["passes"]["Tract"]["round"] = [["sex", "detailed"]]
    changed["spine"]["kind"] = "straight"
    assert main(["topdown", "plan", str(write_json(tmp_path, changed))]) == 2
    told = capsys.readouterr().err
    for words in ("mood", "sum to 4/5", "'age' is unknown", "'sex' is unknown", "spine.kind"):
        assert words in told


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("rho = \n", "not TOML"),
        ("rho = 1\nrho = 2\n", "not TOML"),
        ('{"rho": 1,}', "not JSON"),
        ('{"rho": 1, "rho": 2}', "key 'rho' is given twice"),
        ("", "key 'product' is missing"),
        ("a = " + "[" * 5000, "not TOML|nested too deeply"),
    ],
)
def test_what_is_no_document_is_refused(example: Path, text: str, words: str) -> None:
    example.write_text(text)
    with pytest.raises(ConfigError, match=words):
        read_configuration(example)


def test_a_name_that_is_no_file_is_told_the_built_in_names(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="pl94-2020-us, pl94-2020-pr"):
        read_configuration(tmp_path / "pl94-2021-us")
    with pytest.raises(ConfigError, match="is a folder"):
        read_configuration(tmp_path)


def test_every_built_in_configuration_comes_along() -> None:
    folder = ROOT / "src" / "yupana" / "topdown" / "builtin"
    assert sorted((*BUILT_IN, *WHOLE)) == sorted(path.stem for path in folder.iterdir())
    for name in BUILT_IN:
        assert read_configuration(name).product == name


@st.composite
def named_queries(draw: st.DrawFn) -> tuple[Schema, Mapping[str, Recode], list[str]]:
    """A schema, recodes, and names of different attributes and recodes in any order."""
    shape = draw(st.lists(st.integers(1, 4), min_size=1, max_size=4))
    schema = Schema(tuple(Attribute(f"a{i}", tuple(map(str, range(size)))) for i, size in enumerate(shape)))
    recodes = {}
    for i, size in enumerate(shape):
        groups = draw(st.lists(st.integers(0, size - 1), min_size=size, max_size=size))
        numbers = {group: number for number, group in enumerate(dict.fromkeys(groups))}
        recodes[f"r{i}"] = Recode(f"r{i}", f"a{i}", tuple(numbers[group] for group in groups))
    chosen = draw(st.permutations(range(len(shape))))[: draw(st.integers(1, len(shape)))]
    return schema, recodes, [draw(st.sampled_from([f"a{i}", f"r{i}"])) for i in chosen]


@given(named_queries())
@pytest.mark.thorough
def test_a_name_groups_the_cells_as_its_parts_say(case: tuple[Schema, Mapping[str, Recode], list[str]]) -> None:
    schema, recodes, parts = case
    query = query_named("*".join(parts), schema, recodes)
    # By brute force: what the parts, in the order of the schema, say of each cell.
    said = [
        tuple(
            recodes[f"r{i}"].factor[level] if f"r{i}" in parts else level
            for i, level in enumerate(cell)
            if {f"a{i}", f"r{i}"} & set(parts)
        )
        for cell in itertools.product(*(range(size) for size in schema.shape))
    ]
    number = {key: i for i, key in enumerate(sorted(set(said)))}
    assert query.answers().tolist() == [number[key] for key in said]
    assert query.size == len(number)
    assert query.name == "*".join(parts)


@given(st.lists(st.integers(1, 3), min_size=1, max_size=4))
def test_the_chain_of_rounding_is_laminar(shape: list[int]) -> None:
    schema = Schema(tuple(Attribute(f"a{i}", tuple(map(str, range(size)))) for i, size in enumerate(shape)))
    chain = nested_chain(schema)
    assert chain[0].size == 1
    assert chain[-1].size == schema.cells
    for coarse, fine in itertools.pairwise(chain):
        pairs = np.unique(np.stack([fine.answers(), coarse.answers()]), axis=1)
        assert pairs.shape[1] == fine.size


def test_shares_are_divided_by_their_sum_where_that_is_asked(tmp_path: Path) -> None:
    whole = read_configuration("pl94-2020-us")
    factor = 1 - whole.shares["State"] + Fraction(1, 2)
    changes = Changes((("shares.State", "0.5"), ("queries.County.total", "3")))
    with pytest.raises(ConfigError, match="not to 1; --renormalise divides them by their sum"):
        read_configuration("pl94-2020-us", changes)
    found = read_configuration("pl94-2020-us", changes, renormalise=True)
    assert found.shares["State"] == Fraction(1, 2) / factor
    assert found.shares["Block"] == whole.shares["Block"] / factor
    county = {query.name: share for query, share in found.queries["County"]}
    before = {query.name: share for query, share in whole.queries["County"]}
    assert county == {
        name: (Fraction(3) if name == "total" else share) / (4 - before["total"]) for name, share in before.items()
    }
    assert found.queries["Block"] == whole.queries["Block"]
    assert read_configuration(write_json(tmp_path, configuration_document(found))) == found


def test_shares_that_sum_to_1_stay_and_those_that_cannot_are_refused() -> None:
    assert read_configuration("pl94-2020-us", renormalise=True) == read_configuration("pl94-2020-us")
    for value, told in (("-1", "0 or more"), ("much", "shares.State: "), ("true", "must be a number")):
        with pytest.raises(ConfigError, match=told):
            read_configuration("pl94-2020-us", Changes((("shares.State", value),)), renormalise=True)
    zero = Changes((("queries.County", '{"total": 0, "detailed": 0}'),))
    with pytest.raises(ConfigError, match=r"queries.County: the shares sum to 0, not to 1\n"):
        read_configuration("pl94-2020-us", zero, renormalise=True)


def test_shares_may_be_percent_and_are_divided_by_their_sum_when_asked(tmp_path: Path) -> None:
    path = tmp_path / "config.toml"
    percent = EXAMPLE.replace("County = 0.1", 'County = "10%"').replace(
        "Tract = 0.2", 'Tract = " 20 % "'.replace(" %", "%")
    )
    path.write_text(percent)
    assert read_configuration(path).shares == {
        level: Fraction(n, 10) for level, n in (("County", 1), ("Tract", 2), ("Block", 7))
    }
    path.write_text(percent.replace('"7/10"', '"10%"'))
    shares = read_configuration(path, renormalise=True).shares
    assert shares == {"County": Fraction(1, 4), "Tract": Fraction(1, 2), "Block": Fraction(1, 4)}


@pytest.mark.parametrize("text", ["1%2", "%", "10%%", "-1%", "inf%"])
def test_what_is_no_percent_is_refused(text: str, tmp_path: Path) -> None:
    path = tmp_path / "config.toml"
    path.write_text(EXAMPLE.replace("County = 0.1", f'County = "{text}"'))
    with pytest.raises(ConfigError, match=r"shares\.County"):
        read_configuration(path)
