"""Whatever a manifest holds, every command that reads one answers or refuses in words; none fails."""

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from manifest_releases import Releases, call, make_releases
from safetab_worlds import NAMES

from yupana.errors import OutputError
from yupana.release.folder import read_manifest

CELLS = "PH2[REGION_TYPE=USA, PH2_DATA_CELL=3]"
COMMANDS = {
    "check phsafe": ("check", "@phsafe"),
    "check estimates": ("check", "@estimates"),
    "check safetab-p": ("check", "@safetab-p", "--inputs", ":safetab/parameters"),
    "check safetab-h": ("check", "@safetab-h"),
    "check coterminous": ("check", "@coterminous"),
    "check topdown": ("check", "@topdown"),
    "check spine": ("check", "@spine"),
    "estimate": ("phsafe", "estimate", "@phsafe", ":OUT"),
    "interval phsafe": ("interval", "@phsafe", "--query", CELLS),
    "interval topdown": ("interval", ":topdown", "--noisy-measurements", "@noisy", "--query", "US/total[]"),
    "coterminous": ("postprocess", "coterminous", "@safetab-p", f":safetab/data/{NAMES['blocks']}", ":OUT"),
    "suppress": ("postprocess", "suppress", "@safetab-p", ":policy.toml", ":OUT"),
    "certificate phsafe": ("audit", "certificate", "@phsafe", ":OUT"),
    "certificate topdown": ("audit", "certificate", "@topdown", ":OUT"),
    "epl": ("audit", "epl", "@phsafe", ":exact", "--replicates", "1", "--json"),
    "distance": ("spine", "distance", "@spine", ":spine/entities.csv"),
    "report": ("spine", "report", "@spine", "--to", ":OUT.html"),
    "plan phsafe": ("phsafe", "plan", "@phsafe/manifest.json"),
    "plan safetab-p": ("safetab-p", "plan", "@safetab-p/manifest.json", "--codes", ":safetab/parameters"),
    "plan safetab-h": ("safetab-h", "plan", "@safetab-h/manifest.json", "--codes", ":safetab/parameters"),
    "plan topdown": ("topdown", "plan", "@topdown/manifest.json"),
}
"""Arguments; files are marked with : and the folder whose manifest is changed with @."""

ODD: tuple[Any, ...] = (
    *(None, True, 0, -1, 5, 2**70, 1e308, 0.5),
    *("", "x", "0", "1/0", "Infinity", "1e999", "1/3", "../x", "\x1b[31mred", "\0", "\ud800", "a" * 300, "a/" * 2000),
    *([], [[]], [5], {}, {"": {}}, {"x": 5}, {"\0": 1}, {"../x": {"sha256": "0"}}),
)
EXAMPLES = 8
SLOW = {"coterminous": 2, "report": 2, "interval topdown": 4, "check spine": 4, "epl": 4}
"""How often each command is tried."""


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Releases:
    return make_releases(tmp_path_factory.mktemp("made"))


def arguments_of(made: Releases, name: str) -> list[str]:
    return [str(made / word[1:]) if word[0] in "@:" else word for word in COMMANDS[name]]


def manifest_of(made: Releases, name: str) -> Path:
    release = next(word[1:] for word in COMMANDS[name] if word.startswith("@"))
    return made / release.removesuffix("/manifest.json") / "manifest.json"


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:  # noqa: ANN401 (JSON)
    """Every place below the root; of a long list the first two items."""
    items = value.items() if isinstance(value, dict) else enumerate(value[:2]) if isinstance(value, list) else ()
    for key, item in items:
        yield (*path, key)
        yield from places(item, (*path, key))


def changed(manifest: Any, path: tuple[Any, ...], value: Any, *, delete: bool) -> Any:  # noqa: ANN401
    found = json.loads(json.dumps(manifest))
    parent = found
    for key in path[:-1]:
        parent = parent[key]
    if delete:
        del parent[path[-1]]
    else:
        parent[path[-1]] = value
    return found


@st.composite
def a_place(draw: st.DrawFn, manifest: Any) -> tuple[Any, ...]:  # noqa: ANN401
    """A place: first a key of the root, then any place below it, so that a long plan does not take all draws."""
    key = draw(st.sampled_from(sorted(manifest)))
    return draw(st.sampled_from([(key,), *((key, *path) for path in places(manifest[key]))]))


@pytest.mark.sampled(1)
@pytest.mark.parametrize("name", COMMANDS)
@pytest.mark.slow
def test_no_manifest_makes_a_command_fail(made: Releases, name: str, capsys: pytest.CaptureFixture[str]) -> None:
    path = manifest_of(made, name)
    whole = path.read_text(encoding="utf-8")
    manifest = json.loads(whole)
    arguments = arguments_of(made, name)

    # Several commands share a fixture that none of them changes.
    @settings(
        max_examples=SLOW.get(name, EXAMPLES),
        suppress_health_check=[HealthCheck.function_scoped_fixture],
        derandomize=True,
    )
    @given(data=st.data())
    def try_one(data: st.DataObject) -> None:
        where = data.draw(a_place(manifest))
        odd = data.draw(st.sampled_from(ODD))
        path.write_text(json.dumps(changed(manifest, where, odd, delete=data.draw(st.booleans()))))
        shutil.rmtree(made / "OUT", ignore_errors=True)
        status = call(*arguments)
        said = capsys.readouterr()
        assert status in {0, 2}, (where, odd, said.err)
        assert "\x1b" not in said.out + said.err

    try:
        try_one()
    finally:
        path.write_text(whole, encoding="utf-8")


@pytest.mark.sampled(6)
@pytest.mark.parametrize("name", COMMANDS)
def test_text_that_is_no_manifest_is_refused(made: Releases, name: str, capsys: pytest.CaptureFixture[str]) -> None:
    path = manifest_of(made, name)
    whole = path.read_text(encoding="utf-8")
    arguments = arguments_of(made, name)
    try:
        for text in (
            "[" * 100_000,
            '{"a":' * 100_000,
            '{"yupana": "0", "x": ' + "[" * 900 + "]" * 900 + "}",
            '{"yupana": ' + "1" * 5000 + "}",
            '{"yupana": NaN}',
            "[]",
            "5",
            '"\\ud800"',
            "",
        ):
            path.write_text(text, encoding="utf-8")
            assert call(*arguments) == 2
            assert "fault of the program" not in capsys.readouterr().err
    finally:
        path.write_text(whole, encoding="utf-8")


def test_what_a_terminal_would_obey_is_never_printed(made: Releases, tmp_path: Path) -> None:
    for text in ("\x1b[31mred", "a\nb", "\x00", "\ud800"):
        (tmp_path / "manifest.json").write_text(json.dumps({"yupana": "0", "status": text}))
        with pytest.raises(OutputError, match="status: must be a text of one line"):
            read_manifest(tmp_path)
    assert read_manifest(made / "phsafe")["product"] == "phsafe"
