"""Inputs that SafeTab must refuse: status 2, a message without confidential values, and nothing left behind.

Records hold canaries: values that stand nowhere else and so must not be printed.
"""

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from safetab_worlds import (
    NAMES,
    Block,
    Config,
    Household,
    Iteration,
    Person,
    Total,
    World,
    an_iteration,
    write_data,
    write_parameters,
)

from yupana.cli.main import main

CANARIES = re.compile(r"7777|\b113\b|SECRETX")
PRODUCTS = ("safetab-p", "safetab-h")
BOTH = ("run", "validate")
RECORDS = {"safetab-p": NAMES["persons"], "safetab-h": NAMES["households"]}


def sound_world() -> World:
    blocks = [
        Block("01", "001", "000100", "1000", "12345", "9999"),
        Block("02", "001", "000200", "2000", "54321", "0001"),
    ]
    iterations = [
        an_iteration("0011", 1, "alone"),
        an_iteration("0022", 2, "any"),
        an_iteration("0033", 2, "any", "detailed only"),
        an_iteration("0044", 2, "any", "coarse only"),
        an_iteration("0055", 2, "ethnicity"),
    ]
    mapping = [("0011", "1000"), ("0022", "1000"), ("0033", "1001"), ("0044", "1001"), ("0055", "2000")]
    config = Config(runs=("us",), states=("01", "02")).budgets("0.5").thresholds((5, 10, 20), 5)
    world = World(["1000", "1001", "2000", "9950"], iterations, mapping, blocks, [], [], [], None, config)
    for block in blocks:
        races = ("1000", "1001", *["Null"] * 6)
        world.persons += [Person("42", "1", "True", *block[:4], "01", *races, "9950")] * 3  # type: ignore[call-arg]
        world.households += [Household(*block[:4], "01", *races, "9950", "1", "4")] * 3  # type: ignore[call-arg]
    world.totals = [Total("1", "USA", "0022", "6"), Total("01001", "COUNTY", "0022", "3")]
    return world


class Place:
    """Two sound folders, to be spoiled."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.parameters = write_parameters(root / "parameters", sound_world())
        self.data = write_data(root / "data", sound_world(), synthetic=False)
        self.out = root / "results" / "out"
        self.out.parent.mkdir()
        (root / "tmp").mkdir()

    def path(self, name: str) -> Path:
        path = self.parameters / name
        return path if path.exists() else self.data / name

    def add(self, name: str, *lines: str) -> None:
        path = self.path(name)
        path.write_text(path.read_text(encoding="utf-8") + "".join(f"{line}\n" for line in lines), encoding="utf-8")

    def set_field(self, name: str, line: int, column: str, value: str) -> None:
        path = self.path(name)
        rows = [row.split("|") for row in path.read_text(encoding="utf-8").rstrip("\n").split("\n")]
        rows[line - 1][rows[0].index(column)] = value
        path.write_text("".join("|".join(row) + "\n" for row in rows), encoding="utf-8")

    def configure(self, **changes: Any) -> None:  # noqa: ANN401 (JSON)
        path = self.parameters / NAMES["config"]
        document = json.loads(path.read_text()) | changes
        path.write_text(json.dumps({key: value for key, value in document.items() if value is not ...}))


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Place:
    place = Place(tmp_path)
    monkeypatch.setenv("TMPDIR", str(tmp_path / "tmp"))
    return place


Refused = Callable[..., str]


@pytest.fixture
def refused(place: Place, capsys: pytest.CaptureFixture[str]) -> Refused:
    """Run, or do something else, check all that holds for every refusal, and return what was said."""

    def refuse(product: str, *needles: str, verbs: tuple[str, ...] = ("run",)) -> str:
        said = ""
        for verb in verbs:
            data = [] if verb == "plan" else [str(place.data)]
            out = [str(place.out)] if verb == "run" else []
            status = main([product, verb, str(place.parameters), *data, *out])
            printed = capsys.readouterr()
            said = printed.out + printed.err
            assert status == 2, (verb, said)
            assert printed.err.strip()
            assert "Traceback" not in said
            assert "fault of the program" not in said
            assert not CANARIES.search(said.replace(str(place.root), "")), said
            for needle in needles:
                assert needle in said, (needle, said)
            assert list(place.out.parent.iterdir()) == []
            left = [path for path in (place.root / "tmp").rglob("*") if path.is_file()]
            assert left == []
        return said

    return refuse


@pytest.mark.parametrize("product", PRODUCTS)
@pytest.mark.thorough
def test_what_is_spoiled_below_is_sound(place: Place, product: str) -> None:
    assert main([product, "validate", str(place.parameters), str(place.data)]) == 0
    assert main([product, "run", str(place.parameters), str(place.data), str(place.out)]) == 0
    assert {path.name for path in place.out.parent.iterdir()} == {"out", "out.confidential.log"}


# --- records ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("product", PRODUCTS)
@pytest.mark.parametrize("column", ["QRACE8"])
@pytest.mark.slow
def test_a_race_code_after_a_blank_one(place: Place, refused: Refused, product: str, column: str) -> None:
    place.set_field(RECORDS[product], 3, column, "1000")
    refused(product, RECORDS[product], "3", verbs=BOTH)


@pytest.mark.parametrize("product", PRODUCTS)
@pytest.mark.parametrize("column", ["QRACE2", "QSPAN"])
def test_a_code_that_is_not_in_the_list(place: Place, refused: Refused, product: str, column: str) -> None:
    place.set_field(RECORDS[product], 3, column, "7777")
    refused(product, RECORDS[product], column)


@pytest.mark.parametrize("product", PRODUCTS)
@pytest.mark.parametrize(("column", "value"), [("QRACE1", "Null"), ("QSPAN", "Null"), ("QRACE2", "SECRETX")])
def test_a_code_of_another_form(place: Place, refused: Refused, product: str, column: str, value: str) -> None:
    place.set_field(RECORDS[product], 3, column, value)
    refused(product, RECORDS[product], column)


@pytest.mark.parametrize(
    ("column", "value"),
    [("QAGE", "116"), ("QAGE", "-1"), ("QAGE", "SECRETX"), ("QSEX", "3"), ("QSEX", "Null"), ("HOUSEHOLDER", "SECRETX")],
)
def test_a_person_outside_the_domain(place: Place, refused: Refused, column: str, value: str) -> None:
    place.set_field(NAMES["persons"], 3, column, value)
    refused("safetab-p", NAMES["persons"], column)


@pytest.mark.parametrize(
    ("column", "value"),
    [("HOUSEHOLD_TYPE", "6"), ("HOUSEHOLD_TYPE", "0"), ("TEN", "5"), ("TEN", "Null"), ("HHRACE", "64")],
)
def test_a_household_outside_the_domain(place: Place, refused: Refused, column: str, value: str) -> None:
    place.set_field(NAMES["households"], 3, column, value)
    refused("safetab-h", NAMES["households"], column)


@pytest.mark.parametrize("product", PRODUCTS)
@pytest.mark.parametrize(("column", "value"), [("TABBLK", "7777"), ("TABBLKCOU", "113")])
@pytest.mark.thorough
def test_a_record_whose_block_is_not_in_the_reference_file(
    place: Place, refused: Refused, product: str, column: str, value: str
) -> None:
    place.set_field(RECORDS[product], 4, column, value)
    refused(product, RECORDS[product], "GRF-C.txt", verbs=BOTH)


@pytest.mark.parametrize("product", PRODUCTS)
@pytest.mark.slow
def test_records_of_left_out_states_need_no_block(place: Place, product: str) -> None:
    for line, state in ((3, "72"), (4, "56")):
        place.set_field(RECORDS[product], line, "TABBLKST", state)
    assert main([product, "run", str(place.parameters), str(place.data), str(place.out)]) == 0


@pytest.mark.parametrize("product", PRODUCTS)
def test_no_records(place: Place, refused: Refused, product: str) -> None:
    path = place.path(RECORDS[product])
    path.write_text(path.read_text().split("\n")[0] + "\n")
    refused(product, RECORDS[product])


@pytest.mark.parametrize("product", PRODUCTS)
def test_a_column_is_missing(place: Place, refused: Refused, product: str) -> None:
    path = place.path(RECORDS[product])
    path.write_text(path.read_text().replace("|QSPAN", "|QSPAIN"))
    refused(product, RECORDS[product], "QSPAN")


# --- the reference file -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("product", PRODUCTS)
@pytest.mark.parametrize("again", ["01|001|000100|1000|12345|9999", "01|001|000100|1000|54321|0001"])
def test_a_block_twice(place: Place, refused: Refused, product: str, again: str) -> None:
    place.add(NAMES["blocks"], again)
    refused(product, "GRF-C.txt")


@pytest.mark.parametrize("product", PRODUCTS)
@pytest.mark.parametrize(
    "name", ["GRF-C.txt", "records", *(NAMES[n] for n in ("race", "ethnicity", "map", "codes", "config"))]
)
def test_a_missing_file(place: Place, refused: Refused, product: str, name: str) -> None:
    name = RECORDS[product] if name == "records" else name
    place.path(name).unlink()
    refused(product, name.removesuffix(".txt"))


# --- codes and iterations ---------------------------------------------------------------------------------------------


def with_iterations(place: Place, *iterations: Iteration, mapping: tuple[tuple[str, str], ...] = ()) -> None:
    for i in iterations:
        alone = [] if i.alone is None else [str(i.alone)]
        name = NAMES["ethnicity" if i.alone is None else "race"]
        place.add(name, "|".join((i.code, "Name", str(i.level), *alone, str(i.detailed_only), str(i.coarse_only))))
    place.add(NAMES["map"], *("|".join(pair) for pair in mapping))


@pytest.mark.parametrize("product", PRODUCTS)
@pytest.mark.parametrize(
    ("kind", "flags", "level", "code"),
    [
        ("alone", "common", 1, "1000"),
        ("any", "common", 2, "1000"),
        ("any", "detailed only", 2, "1000"),
        ("any", "coarse only", 2, "1000"),
        ("any", "detailed only", 2, "1001"),
        ("any", "coarse only", 2, "1001"),
        ("ethnicity", "common", 2, "2000"),
        ("ethnicity", "detailed only", 2, "2000"),
    ],
)
def test_a_code_in_two_iterations_of_one_level(
    place: Place, refused: Refused, product: str, kind: str, flags: str, level: int, code: str
) -> None:
    with_iterations(place, an_iteration("0099", level, kind, flags), mapping=(("0099", code),))
    refused(product, code, "0099", verbs=BOTH)


@pytest.mark.parametrize("product", PRODUCTS)
@pytest.mark.parametrize(("kind", "level"), [("alone", 3), ("ethnicity", 4)])
def test_a_hierarchy_too_deep(place: Place, refused: Refused, product: str, kind: str, level: int) -> None:
    with_iterations(place, an_iteration("0099", level, kind))
    refused(product, "LEVEL")


@pytest.mark.parametrize("product", PRODUCTS)
@pytest.mark.parametrize("kind", ["alone", "ethnicity"])
def test_both_flags(place: Place, refused: Refused, product: str, kind: str) -> None:
    with_iterations(place, an_iteration("0099", 2, kind)._replace(detailed_only=True, coarse_only=True))
    refused(product, "DETAILED_ONLY", "COARSE_ONLY")


@pytest.mark.parametrize("product", PRODUCTS)
@pytest.mark.parametrize(
    "row", ["0099|Name|0|True|False|False", "0099|Name|1|True|Null|Null", "0099|Name|1|True|Null|False",
            "0099|Name|2|True|False|Null", "0099|Name|2|Null|False|False", "99|Name|2|True|False|False"],
)  # fmt: skip
def test_flags_and_levels_that_do_not_fit(place: Place, refused: Refused, product: str, row: str) -> None:
    place.add(NAMES["race"], row)
    refused(product, NAMES["race"])


@pytest.mark.parametrize("product", PRODUCTS)
def test_race_and_ethnicity_iterations_overlap(place: Place, refused: Refused, product: str) -> None:
    with_iterations(place, an_iteration("0022", 1, "ethnicity"))
    refused(product, "0022")


@pytest.mark.parametrize("product", PRODUCTS)
@pytest.mark.parametrize("pair", ["0098|1000", "0022|7770"])
def test_a_map_to_nowhere(place: Place, refused: Refused, product: str, pair: str) -> None:
    place.add(NAMES["map"], pair)
    refused(product, NAMES["map"])


# --- totals -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("again", ["1|USA|0022|6", "1|USA|0022|7"])
def test_a_group_twice_in_the_totals(place: Place, refused: Refused, again: str) -> None:
    place.add(NAMES["totals"], again)
    refused("safetab-h", NAMES["totals"], verbs=BOTH)


@pytest.mark.parametrize(
    "rows",
    [("72|PR-STATE|0022|6",), ("56|STATE|0022|6", "72|PR-STATE|0022|6")],
)
def test_totals_none_of_which_belong_to_the_run(place: Place, refused: Refused, rows: tuple[str, ...]) -> None:
    header = place.path(NAMES["totals"]).read_text().split("\n")[0]
    place.path(NAMES["totals"]).write_text("\n".join((header, *rows, "")))
    refused("safetab-h", NAMES["totals"])


@pytest.mark.parametrize("row", ["1|NATION|0022|6", "01|STATE|0022|6.5", "01|STATE|22|6", "01|STATE|0022|"])
def test_totals_outside_the_domain(place: Place, refused: Refused, row: str) -> None:
    place.add(NAMES["totals"], row)
    refused("safetab-h", NAMES["totals"])


def test_totals_are_missing(place: Place, refused: Refused) -> None:
    place.path(NAMES["totals"]).unlink()
    refused("safetab-h", "pop-group-totals")


# --- the configuration ------------------------------------------------------------------------------------------------

BAD_CONFIGS: list[tuple[str, str, object]] = [
    ("ph", "max_race_codes", 0),
    ("ph", "max_race_codes", 9),
    ("ph", "state_filter_us", []),
    ("ph", "state_filter_us", ["01", "01"]),
    ("ph", "state_filter_us", ["01", "72"]),
    ("ph", "state_filter_us", ["03"]),
    ("ph", "privacy_defn", "approxdp"),
    ("ph", "run_us", False),
    ("ph", "run_us", ...),
    ("ph", "allow_negative_counts", "yes"),
    ("p", "privacy_budget_p_level_1_usa", -0.1),
    ("p", "privacy_budget_p_level_1_usa", ...),
    ("p", "privacy_budget_p_level_1_usa", float("nan")),
    ("p", "privacy_budget_p_stage_1_fraction", 0),
    ("p", "privacy_budget_p_stage_1_fraction", 1),
    ("p", "privacy_budget_p_stage_1_fraction", ...),
    ("p", "zero_suppression_chance", 1),
    ("p", "zero_suppression_chance", -0.5),
    ("h", "privacy_budget_h_t4_level_2_tract", "much"),
    ("h", "privacy_budget_h_t4_level_2_tract", ...),
]


@pytest.mark.sampled(8)
@pytest.mark.parametrize(("products", "key", "value"), BAD_CONFIGS)
def test_a_configuration_that_cannot_be(place: Place, refused: Refused, products: str, key: str, value: object) -> None:
    place.configure(**{key: value})
    for product in products:
        refused(f"safetab-{product}", key, verbs=("plan", "run"))


@pytest.mark.parametrize(
    ("product", "key", "where", "values"),
    [
        ("safetab-p", "thresholds_p", "(USA, 2)", [10, 5, 20]),
        ("safetab-p", "thresholds_p", "(TRACT, 1)", [5, 10]),
        ("safetab-p", "thresholds_p", "(STATE, 1)", None),
        ("safetab-h", "thresholds_h_t3", "(PLACE, 2)", [5, 20, 10]),
        ("safetab-h", "thresholds_h_t4", "(PLACE, 2)", [5, 10]),
        ("safetab-h", "thresholds_h_t4", "(PLACE, 2)", []),
    ],
)
def test_thresholds_that_cannot_be(
    place: Place, refused: Refused, product: str, key: str, where: str, values: list[int] | None
) -> None:
    thresholds = json.loads(place.path(NAMES["config"]).read_text())[key]
    if values is None:
        del thresholds[where]
    else:
        thresholds[where] = values
    place.configure(**{key: thresholds})
    refused(product, key, where, verbs=("plan", "run"))


@pytest.mark.parametrize("product", PRODUCTS)
def test_budgets_of_zero_everywhere(place: Place, refused: Refused, product: str) -> None:
    config = sound_world().config.budgets("0")
    place.configure(
        **{key: value for key, value in config.document().items() if "budget" in key and "stage" not in key}
    )
    refused(product, "budget", verbs=("plan", "run"))


# --- without the mark of synthetic data -------------------------------------------------------------------------------


@pytest.mark.parametrize("product", PRODUCTS)
@pytest.mark.parametrize("verb", [("exact",), ("run", "--seed", "1")])
def test_real_records_get_neither_exact_counts_nor_a_seed(
    place: Place, product: str, verb: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = [product, verb[0], str(place.parameters), str(place.data), str(place.out), *verb[1:]]
    assert main(arguments) == 2
    assert "SYNTHETIC" in capsys.readouterr().err
    assert list(place.out.parent.iterdir()) == []


@pytest.mark.parametrize("product", PRODUCTS)
def test_real_records_get_no_infinite_budget(place: Place, refused: Refused, product: str) -> None:
    key = {"safetab-p": "privacy_budget_p_level_1_usa", "safetab-h": "privacy_budget_h_t3_level_1_usa"}[product]
    place.configure(**{key: float("inf")})
    refused(product, "SYNTHETIC")
