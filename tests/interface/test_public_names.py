"""The public names: those of the reference page, loaded when asked for, documented, and typed for strict checkers."""

import inspect
import json
import re
import subprocess
import sys
from operator import attrgetter
from pathlib import Path

import pytest

import yupana

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "python.md").read_text(encoding="utf-8")

SCRIPT = """
from collections.abc import Mapping
from fractions import Fraction
from pathlib import Path

import yupana


class Frame:
    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        raise TypeError("never read here")


def heard(step: yupana.Step) -> None:
    print(step.stage, step.done, step.total)


def work(persons: Frame, units: Frame, geo: Frame) -> None:
    product: yupana.Product[object] = yupana.PRODUCTS["phsafe"]
    phsafe = yupana.setup(product, "config.json", set={"tau.PH2": 10}, confidence=Fraction(9, 10), margins="bureau")
    plan = phsafe.plan()
    table: yupana.ArrowTable = plan.table()
    names: tuple[str, ...] = table.columns
    cheaper = phsafe.solve(margins={"PH1_num/usa_*": 500})
    data: Mapping[str, yupana.ArrowStream | str | Path] = {"persons": persons, "units": units, "geo": "geo.csv"}
    account = yupana.Account("ledger.json", "2030", limit="3")
    release = cheaper.run(data, "out", account=account, execution=yupana.Execution(progress=heard))
    yupana.run("phsafe", cheaper, {"persons": persons, "units": units, "geo": geo}, Path("other"), progress=True)
    status: str = release.status
    counts: list[object] = release["PH1_num"]["COUNT"]
    labelled: yupana.ArrowTable = release.labelled("PH1_num")
    for finding in yupana.validate("phsafe", "config.json", data, columns={"persons": {"AGE": "alter"}}):
        print(finding.rule, finding.count, labelled)
    found = release.interval("PH1_num[REGION_ID=06]", confidence="0.95")
    estimates: list[float | None] = [one.estimate for one in found.intervals]
    page: Path = release.certificate().write("certificate")
    report: Path = release.report("report.html")
    wrong: tuple[str, ...] = yupana.check(release).wrong
    rows: yupana.ArrowTable = yupana.accuracy("phsafe", {"tau": {}}, data, trials=3, synthetic=True)
    epsilon: float = yupana.epsilon_tight(Fraction(1, 2), 1e-10)
    print(names, status, counts, estimates, page, report, wrong, rows, epsilon)
    try:
        yupana.open_release("nowhere")
    except yupana.OutputError as error:
        print(error)
"""


def in_python(code: str) -> str:
    return subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout


def test_the_reference_page_has_every_public_name_and_no_other() -> None:
    rows = re.findall(r"^\| (`.*?)\|", PAGE, re.MULTILINE)
    told = {name for row in rows for name in re.findall(r"`(\w+)(?:\(|`)", row)}
    no_names = {"phsafe", "safetab", "topdown", "internal", "all"}
    columns = {
        name
        for row in re.findall(r"^\| argument.*?\n\n", PAGE, re.MULTILINE | re.DOTALL)
        for name in re.findall(r"`(\w+)", row)
    }
    products = set(
        re.findall(r"`([\w]+)`", "".join(re.findall(r"^\| product \| names.*?\n\n", PAGE, re.MULTILINE | re.DOTALL)))
    )
    assert set(yupana.__all__) - told == set()
    assert told - set(yupana.__all__) - columns - products - no_names == set()


def test_every_public_name_can_be_had_and_is_listed() -> None:
    assert dir(yupana) == sorted(yupana.__all__)
    for name in yupana.__all__:
        assert getattr(yupana, name) is not None
    with pytest.raises(AttributeError, match="has no attribute 'plans'"):
        yupana.plans  # noqa: B018


FUNCTIONS = [name for name in yupana.__all__ if inspect.isfunction(getattr(yupana, name)) and name[0].islower()]


VERBS = ["plan", "solve", "strategy", "validate", "run", "exact", "accuracy", "compare", "attribute_bounds"]


@pytest.mark.parametrize("name", FUNCTIONS)
def test_every_function_tells_what_it_takes_gives_and_raises(name: str) -> None:
    function = getattr(yupana, name)
    if name in VERBS:
        assert inspect.getdoc(function).startswith("Set a product up")
        function = getattr(yupana.Configured, name)
    text = inspect.getdoc(function)
    assert text
    if not function.__module__.startswith("yupana.interface."):
        return
    assert "Raises\n------" in text
    assert "Returns\n-------" in text
    words = set(re.findall(r"\w+", text))
    rest = "and all others" in text or "As of `run`" in text
    for parameter in inspect.signature(function).parameters:
        assert rest or parameter in {*words, "self"}, parameter


@pytest.mark.parametrize("name", [*FUNCTIONS, *(f"Configured.{verb}" for verb in VERBS)])
def test_no_public_function_has_more_than_ten_parameters(name: str) -> None:
    function = attrgetter(name)(yupana)
    assert len([one for one in inspect.signature(function).parameters if one != "self"]) <= 10


@pytest.mark.thorough
def test_functions_stay_functions_beside_folders_of_their_name() -> None:
    code = """
import yupana.plan.plan, yupana.report.html, yupana.estimate.phsafe.truncated_normal, yupana, sys
from yupana.plan.plan import Plan
from yupana import plan
assert yupana.plan is plan and callable(plan) and callable(yupana.report) and callable(yupana.estimate)
assert yupana.Plan is Plan and sys.modules['yupana.plan.plan'].Plan is Plan
assert yupana.topdown.estimate_node is yupana.estimate_node
"""
    in_python(code)


HEAVY = ("numpy", "duckdb", "numba", "scipy", "rich", "yupana.interface.configured", "argparse")


def test_the_import_loads_nothing() -> None:
    code = "import sys, json, yupana; dir(yupana); print(json.dumps(sorted(sys.modules)))"
    loaded = json.loads(in_python(code))
    assert not set(HEAVY) & set(loaded)
    assert [name for name in loaded if name.startswith("yupana")] == ["yupana", "yupana.version"]


@pytest.mark.slow
def test_plans_and_commands_load_no_library_before_they_need_one() -> None:
    modules = (
        "yupana.plan.plan, yupana.products, yupana.cli.product, yupana.cli.account, yupana.cli.main, yupana.cli.spine"
    )
    loaded = json.loads(in_python(f"import sys, json, {modules}; print(json.dumps(sorted(sys.modules)))"))
    assert not {"numpy", "duckdb", "numba", "scipy", "rich"} & set(loaded)


def test_the_version_is_told_without_the_parser() -> None:
    code = (
        "import sys; sys.argv = ['yupana', '--version']; import yupana.cli.start as s; s.entry(); print(*sys.modules)"
    )
    version, loaded = in_python(code).splitlines()
    assert version == f"yupana {yupana.__version__}"
    assert "argparse" not in loaded.split()


@pytest.mark.thorough
def test_nothing_complains_at_the_end_of_a_process_that_had_every_module() -> None:
    """The database tells on the standard error stream what is still held when Python ends."""
    code = """
import importlib, pkgutil, yupana
from yupana.files.database import open_database
for module in pkgutil.walk_packages(yupana.__path__, "yupana."):
    if not module.name.endswith("__main__"):
        importlib.import_module(module.name)
with open_database() as database:
    database.execute("SELECT 1")
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert (done.stdout, done.stderr) == ("", "")


@pytest.mark.thorough
def test_a_script_of_a_user_passes_mypy_in_strict_mode(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    command = [sys.executable, "-m", "mypy", "--strict", "--config-file", "", "--cache-dir", str(tmp_path), str(script)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, check=False)
    assert done.returncode == 0, done.stdout


@pytest.mark.thorough
def test_a_script_of_a_user_passes_pyright_in_strict_mode(tmp_path: Path) -> None:
    (tmp_path / "script.py").write_text(SCRIPT)
    (tmp_path / "pyrightconfig.json").write_text('{"typeCheckingMode": "strict", "include": ["script.py"]}')
    command = [sys.executable, "-m", "pyright", "--pythonpath", sys.executable, "-p", str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, check=False)
    assert done.returncode == 0, done.stdout


@pytest.mark.thorough
def test_the_tour_runs_end_to_end(tmp_path: Path) -> None:
    command = [sys.executable, str(ROOT / "examples" / "python_tour.py"), str(tmp_path / "tour")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert {path.name for path in (tmp_path / "tour").iterdir()} >= {"census", "release", "certificate", "report.html"}


@pytest.mark.parametrize("code", re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)[:1])
@pytest.mark.thorough
def test_the_first_example_of_the_page_runs(code: str, tmp_path: Path) -> None:
    subprocess.run([sys.executable, "-c", code], cwd=tmp_path, check=True, capture_output=True, text=True)


@pytest.mark.parametrize(("product", "name"), [("phsafe", "s-dhc-2020-us"), ("topdown", "pl94-2020-us")])
def test_a_configuration_is_shown_in_a_line_and_a_table(product: str, name: str) -> None:
    config = yupana.PRODUCTS[product].read(name)
    assert re.fullmatch(rf"<configuration of {product}[^\n]{{10,120}}>", repr(config))
    assert config._repr_html_().count("<tr>") > 5


def test_a_built_in_configuration_of_safetab_asks_for_its_codes() -> None:
    with pytest.raises(yupana.ConfigError, match="name the folder of the code files by codes"):
        yupana.plan("safetab-p", "ddhc-2020-us")
