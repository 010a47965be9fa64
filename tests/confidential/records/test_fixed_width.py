"""Lines of fixed width against a plain reading of them, one character at a time."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from yupana.confidential.records import fixed_width, safetab_records
from yupana.confidential.records.census_edited_file import PERSON_LAYOUT, UNIT_LAYOUT
from yupana.confidential.records.fixed_width import Layout, ShapeError, distinct_fields, misshapen, numbers, read_lines

FIELD = st.text(alphabet="0011239 +-x.\0\x7f", min_size=30, max_size=30) | st.lists(
    st.sampled_from(("    ", "1000", "0000", "02", " ")), min_size=30, max_size=30
).map(lambda parts: "".join(parts)[:30])
LAYOUTS = {
    "persons": PERSON_LAYOUT,
    "units": UNIT_LAYOUT,
    "detailed persons": safetab_records.PERSON_LAYOUT,
    "detailed households": safetab_records.HOUSEHOLD_LAYOUT,
}


def read_field(text: str, layout: Layout, name: str) -> int:
    """What the specification says a field means; -1 for nothing allowed."""
    column = layout.schema[name]
    if column.blank and text.strip(" ") == "":
        return 0
    if name in layout.blank_is_zero and text.strip(" ") == "":
        text = "0" * len(text)
    elif column.width is None and text.strip(" "):
        text = text.lstrip(" ").rjust(len(text), "0")
    if not all(character in "0123456789" for character in text):
        return -1
    return int(text) if int(text) in column.domain else -1


@pytest.mark.parametrize("layout", LAYOUTS.values(), ids=LAYOUTS)
@given(data=st.lists(FIELD, min_size=1, max_size=20))
@pytest.mark.thorough
def test_fields_mean_what_they_say(layout: Layout, data: list[str]) -> None:
    texts = [(field * 4)[: layout.width] for field in data]
    lines = np.array([list(text.encode()) for text in texts], dtype=np.uint8)
    found = numbers(lines, layout)
    assert tuple(found) == layout.schema.header
    for name, values in found.items():
        if name in layout.fields:
            start, end = layout.fields[name]
            assert values.tolist() == [read_field(text[start:end], layout, name) for text in texts]
        else:
            assert not values.any()


@given(data=st.lists(st.text(alphabet="01 \0x", min_size=22, max_size=22), min_size=1, max_size=30))
@pytest.mark.slow
def test_texts_of_a_field_are_told_apart(data: list[str]) -> None:
    lines = np.array([list(("ab" + text).encode()) for text in data], dtype=np.uint8)
    texts, which = distinct_fields(lines, (2, 24))
    assert [texts[place] for place in which] == data
    assert len(set(texts)) == len(texts)


@given(
    texts=st.lists(st.text(alphabet="01 x", min_size=5, max_size=5), min_size=1, max_size=12),
    end=st.sampled_from(["\n", "\r\n"]),
    last=st.booleans(),
)
@pytest.mark.slow
def test_lines_are_read_in_stretches(
    tmp_path_factory: pytest.TempPathFactory, texts: list[str], end: str, *, last: bool
) -> None:
    path = tmp_path_factory.mktemp("lines") / "file.txt"
    path.write_bytes((end.join(texts) + end * last).encode())
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(fixed_width, "_LINES_AT_ONCE", 3)
        found = [line.tobytes().decode() for lines in read_lines(path, 5) for line in lines]
    assert found == texts


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"12345\n1234\n", "line 2"),
        (b"12345\n123456\n12345", "line 2"),
        (b"12345\r\n12345\n", "more than one kind"),
        (b"12345\n12345\r\n", "more than one kind"),
        (b"12345\r12345\n", "too long"),
        (b"12345\n12345\n\n", "line 3"),
        (b"12345\n12\r45\n", "more than one kind"),
        (b"12345\n12\n45\n12345\n", "lines 2, 3"),
        (b"12345\n1234\xe9\n", "not ASCII"),
        (b"12345\r\n1234\r\r\n", "more than one kind"),
    ],
)
def test_lines_of_another_shape_are_refused(tmp_path: Path, content: bytes, said: str) -> None:
    path = tmp_path / "file.txt"
    path.write_bytes(content)
    with pytest.raises(ShapeError):
        list(read_lines(path, 5))
    assert said in "\n".join(map(str, misshapen(path, 5)))
