"""Record files in the many ways in which tools of offices write the same values; what does not matter is by chance.

Missing values are the empty text, and values that are not allowed the word for others, as in `described_worlds`.
"""

import random
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

FREE = ("text", "typed")

_ENCODINGS = ["utf-8", "utf-8-sig", "utf-16", "cp1252", "latin-1"]
_STRANGE = ["zz", "?", "-1", "2.5", "88888", "1e0", "0x1", "1 2", "nan", "ÿ", "99999999999999999999"]
_TRUTH = {"true": True, "false": False}


def save_free(
    rng: random.Random, data: Path, name: str, of: dict[str, Any], columns: list[str], rows: list[dict[str, Any]],
    form: str,
) -> dict[str, Any]:  # fmt: skip
    """Write a record file as text or as Parquet with types; return what the description must say of that."""
    if form == "typed":
        arrays = {column: typed(rng, of["columns"].get(column), [row[column] for row in rows]) for column in columns}
        pq.write_table(pa.table(arrays), data / f"{name}.parquet", row_group_size=max(1, len(rows) // 2))
        return {}
    encoding, separator = rng.choice(_ENCODINGS), rng.choice([",", ";", "|", "\t"])
    decimal = rng.choice([None, ".", ","])
    lines = [columns, *([_written(rng, of, column, row[column], decimal) for column in columns] for row in rows)]
    end = rng.choice(["\n", "\r\n"])
    text = end.join(separator.join(_quoted(rng, field, separator) for field in line) for line in lines) + end
    try:
        written = text.encode(encoding)
    except UnicodeEncodeError:
        encoding, written = "utf-8", text.encode()
    (data / f"{name}.{rng.choice(['csv', 'txt', 'tsv'])}").write_bytes(written)
    told: dict[str, Any] = {"separator": {"\t": "tab"}.get(separator, separator)}
    told |= {"encoding": encoding} if not encoding.startswith("utf-8") or rng.random() < 0.3 else {}
    return told | ({"decimal": decimal} if decimal else {})


def _quoted(rng: random.Random, field: str, separator: str) -> str:
    needs = separator in field or '"' in field or "\n" in field
    return '"' + field.replace('"', '""') + '"' if needs or rng.random() < 0.2 else field


def _written(rng: random.Random, of: dict[str, Any], name: str, value: Any, decimal: str | None) -> str:  # noqa: ANN401
    """A value as a text that means the same."""
    column = of["columns"].get(name)
    if column is None:
        return str(value)
    if value == column.get("others"):
        value = rng.choice([one for one in _STRANGE if _is_strange(column, one)])
    text = str(value)
    if isinstance(value, int):
        text = rng.choice([text, text.zfill(rng.randint(1, 4))])
    if decimal and text.isdecimal():
        text += rng.choice(["", f"{decimal}0", f"{decimal}00"])
    if text == text.strip() and rng.random() < 0.3:
        text = rng.choice([" ", "  ", "\t"]) * rng.randint(0, 1) + text + rng.choice([" ", "\t"])
    return text


def _is_strange(column: dict[str, Any], text: str) -> bool:
    """Whether a text is none of the values of a column in any way to write them."""
    codes = {*map(str.strip, column.get("codes", [])), column.get("missing")}
    low, high = column.get("whole", (0, -1))
    return text not in codes and not (text.isdecimal() and low <= int(text) <= high)


def typed(rng: random.Random, column: dict[str, Any] | None, values: list[Any]) -> pa.Array:
    """Values in a type that data frames give them."""
    if column is None:
        return pa.array([None if value == "" else value for value in values])
    others, missing = column.get("others"), column.get("missing")
    allowed = [*column["codes"]] if "codes" in column else [*range(column["whole"][0], column["whole"][1] + 1)]
    if {str(one).lower() for one in allowed} == {*_TRUTH} and others not in values and len(allowed) == 2:
        found = [None if value in ("", missing) else _TRUTH[value.lower()] for value in values]
        return pa.array(found, pa.bool_())
    if all(isinstance(one, int) or (one.isdecimal() and str(int(one)) == one) for one in allowed):
        return _numbers(rng, column, values)
    texts = []
    for value in values:
        text = str(value)
        if value == others:
            text = rng.choice([one for one in _STRANGE if _is_strange(column, one)])
        texts.append(None if text == "" and rng.random() < 0.5 else text)
    found = pa.array(texts, pa.string())
    return found.dictionary_encode() if rng.random() < 0.4 else found


def _numbers(rng: random.Random, column: dict[str, Any], values: list[Any]) -> pa.Array:
    others = column.get("others")
    kinds: list[pa.DataType] = [pa.float64(), pa.float32(), pa.decimal128(9, 2), pa.string()]
    if others not in values:
        kinds += [pa.int8(), pa.int64(), pa.uint32()]
    kind = rng.choice(kinds)
    if kind == pa.string():
        strange: list[Any] = [one for one in _STRANGE if _is_strange(column, one)]
        nothing: list[Any] = [None, "", column.get("missing")]
    elif pa.types.is_decimal(kind):
        strange, nothing = [Decimal(-1), Decimal("2.50"), Decimal(88888)], [None]
    else:
        strange = [-1.0, 2.5, 88888.0, float("inf"), -0.5, 3e38 if kind == pa.float32() else 1e300]
        nothing = [None, float("nan")] if pa.types.is_floating(kind) else [None]
    say = str if kind == pa.string() else float if pa.types.is_floating(kind) else int
    return pa.array(
        [
            rng.choice(nothing) if value in ("", column.get("missing"))
            else rng.choice(strange) if value == others
            else say(value)
            for value in values
        ],
        kind,
    )  # fmt: skip


def dates(rng: random.Random, values: list[date | None]) -> pa.Array:
    """Dates in a type that data frames give them, in UTC where they have a zone."""
    way = rng.randint(0, 3)
    if way == 0:
        return pa.array(values, pa.date32())
    if way == 1:
        return pa.array([None if one is None else one.isoformat() for one in values], pa.string())
    moments = [None if one is None else datetime(one.year, one.month, one.day, rng.randint(0, 23)) for one in values]  # noqa: DTZ001
    return pa.array(moments, pa.timestamp("us", tz="UTC" if way == 3 else None))
