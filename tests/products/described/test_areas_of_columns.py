"""Areas of several columns: their codes, what they are sums of, and what is refused."""

from typing import Any

import pytest

import yupana
from yupana.products.described.postprocess import parents_of
from yupana.products.described.product import described


def document(areas: dict[str, Any], **columns: Any) -> dict[str, Any]:  # noqa: ANN401 (domains)
    own = {
        "province": {"codes": {"01": "North", "12": "South"}},
        "district": {"whole": [9, 11], "missing": "-"},
        "kind": {"codes": ["a", "bb"]},
    }
    return {
        "name": "areas",
        "unit": "people",
        "files": {"people": {"columns": {name: {"codes": of} for name, of in columns.items()} or own}},
        "areas": areas,
        "tables": {"t": {"counts": "people", "budget": dict.fromkeys(areas, 1)}},
    }


def test_codes_stand_one_after_another_or_with_hyphens_and_bear_labels() -> None:
    made = described(
        document(
            {
                "one": {"columns": ["people.district"]},
                "both": {"columns": ["people.province", "people.kind"], "labels": {"01-a": "Best"}},
                "three": {"columns": ["people.district", "people.province"]},
                "north": {"from": "both", "first": 2},
            }
        )
    )
    areas = made.areas
    assert areas["one"].codes == ("-", "09", "10", "11")
    assert areas["both"].codes == ("01-a", "01-bb", "12-a", "12-bb")
    assert areas["both"].labels == {"01-a": "Best", "01-bb": "North, bb", "12-a": "South, a", "12-bb": "South, bb"}
    assert areas["three"].codes == ("--01", "--12", "09-01", "09-12", "10-01", "10-12", "11-01", "11-12")
    assert areas["north"].codes == ("01", "12")
    assert all(kind.overlap == 1 for kind in areas.values())


def test_areas_of_fewer_columns_are_sums_of_those_of_more() -> None:
    areas = {
        "all": {},
        "province": {"column": "people.province"},
        "district": {"columns": ["people.province", "people.district"]},
        "kind": {"columns": ["people.kind", "people.district"]},
    }
    made = described(document(areas)).areas
    found = parents_of(made["province"], made["district"])
    assert found is not None
    codes = [(made["province"].codes[above], made["district"].codes[below]) for below, above in enumerate(found)]
    assert codes == [(code[:2], code) for code in made["district"].codes]
    assert parents_of(made["all"], made["district"]) is not None
    assert parents_of(made["province"], made["kind"]) is None
    plan = yupana.plan("tables", document({name: areas[name] for name in ("all", "province", "district")}) | {
        "postprocess": {"consistent": True}})  # fmt: skip
    assert len(plan.measurements) == 3
    with pytest.raises(yupana.ConfigError, match="not sums of whole areas of"):
        yupana.plan("tables", document(areas) | {"postprocess": {"consistent": True}})


@pytest.mark.parametrize(
    ("area", "columns", "words"),
    [
        ({"columns": ["people.kind", "people.kind"]}, {}, "people.kind stands twice"),
        ({"columns": ["people.sort"]}, {}, "'people.sort' is no column"),
        ({"columns": ["people.kind"], "code": "1"}, {}, "has columns and code; keep columns, and labels"),
        ({"columns": []}, {}, "must be a list of columns"),
        (
            {"columns": ["people.a", "people.b"]},
            {"a": ["1", "1-1"], "b": ["1", "1-1"]},
            "two areas would have one code, as some codes of a column hold hyphens",
        ),
        (
            {"columns": ["people.a", "people.b"]},
            {"a": [f"{n:04}" for n in range(1001)], "b": [f"{n:04}" for n in range(1000)]},
            "make 1,001,000 areas, and at most 1,000,000 are allowed",
        ),
    ],
)
def test_a_fault_of_areas_of_columns_is_named(area: dict[str, Any], columns: dict[str, Any], words: str) -> None:
    with pytest.raises(yupana.ConfigError) as raised:
        yupana.plan("tables", document({"area": area}, **columns))
    assert words in str(raised.value)


def test_areas_of_areas_of_columns_hold_each_of_them_once() -> None:
    areas = {
        "both": {"columns": ["people.province", "people.kind"]},
        "some": {"from": "both", "of": {"01-a": "x", "01-bb": ["x", "y"], "12-a": "y", "12-bb": []}},
    }
    with pytest.raises(yupana.ConfigError, match="which are of several columns, must lie in one area each"):
        yupana.plan("tables", document(areas))
