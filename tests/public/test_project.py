"""The project agrees with itself where one thing is said in two places."""

import re
import subprocess
import sys
import tomllib
from collections import Counter

import pytest
import yaml
from places import ROOT

import yupana
from yupana.confidential.records.phsafe_records import RULES
from yupana.products.phsafe.configuration import RULES_OF_CONSISTENCY


def test_version_is_the_one_of_the_package() -> None:
    assert tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"] == yupana.__version__
    for name in ("CITATION.cff", "packaging/conda/recipe.yaml"):
        assert re.findall(r"^ *version: (\d[\w.]*)$", (ROOT / name).read_text(), re.MULTILINE) == [yupana.__version__]


def test_the_conda_package_needs_what_the_package_does() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    needed = project["dependencies"] + project["optional-dependencies"]["topdown"]
    recipe = (ROOT / "packaging/conda/recipe.yaml").read_text().partition("run:")[2].partition("tests:")[0]
    listed = {line.strip("- ").replace(" ", "").removeprefix("python-") for line in recipe.split("\n") if "- " in line}
    assert listed == {*needed, "python>=3.11"}


def test_the_wheel_holds_the_pages_that_messages_name() -> None:
    made = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["hatch"]["build"]["targets"]["wheel"]
    assert "docs/*.md" in made["include"]
    assert made["sources"]["docs"] == "yupana/docs"


def test_continuous_integration_asks_for_targets_of_the_makefile() -> None:
    text = (ROOT / ".github/workflows/ci.yml").read_text()
    jobs = yaml.safe_load(text)["jobs"]
    makefile = (ROOT / "Makefile").read_text()
    asked = [step["run"].split() for job in jobs.values() for step in job["steps"] if "run" in step]
    targets = {word for command, *words in asked for word in words if command == "make" and "=" not in word}
    assert all(command == "make" for command, *_ in asked)
    assert {"lint", "types", "contracts", "test", "test-thorough", "docs", "dist", "trial"} == targets
    assert all(re.search(rf"^{target}:", makefile, re.MULTILINE) for target in targets)
    assert {len(jobs[job]["strategy"]["matrix"]["python"]) for job in ("test", "install")} == {4}
    assert {name.partition("-")[0] for name in jobs["install"]["strategy"]["matrix"]["os"]} == {
        "ubuntu",
        "macos",
        "windows",
    }
    assert "://" not in text
    assert "secrets" not in text


def test_rules_that_take_a_policy_are_the_rules_of_consistency() -> None:
    # The configuration is public and cannot import the rules themselves.
    assert tuple(rule.name for rule in RULES if not rule.remark) == RULES_OF_CONSISTENCY


def test_every_rule_is_documented() -> None:
    text = (ROOT / "docs" / "phsafe.md").read_text()
    assert all(f"`{rule}`" in text for rule in RULES_OF_CONSISTENCY)


def test_the_lock_names_no_hosts() -> None:
    assert "://" not in (ROOT / "uv.lock").read_text()


def test_noise_never_comes_from_a_generator_of_pseudo_random_numbers() -> None:
    allowed = {
        # invent people
        "synthetic/census.py",
        "synthetic/geography.py",
        "synthetic/households.py",
        "synthetic/race.py",
        "confidential/paper_figures.py",
        "audit/empirical/loss.py",  # resamples counts for an interval
        "audit/empirical/local_likelihood.py",  # simulates a confidence band, and splits counts for cross-fitting
        "audit/empirical/kernel_density.py",  # the generator of the paper, on made-up districts
        "estimate/districts.py",  # draws true populations given what was published
        "report/empirical.py",  # chooses the dots of a picture
        "topdown/posterior/learning.py",  # draws blocks given what was measured, by a seed that the manifest tells
        "topdown/posterior/kernels.py",  # takes that generator
    }
    source = ROOT / "src" / "yupana"
    # Generators that are only passed on are named by their type.
    words = (
        "random.Generator",
        "default_rng",
        "RandomState",
        "import random",
        "from random",
        "np.random.seed",
        "numpy.random",
    )
    found = {
        path.relative_to(source).as_posix()
        for path in source.rglob("*.py")
        if any(word in path.read_text(encoding="utf-8") for word in words)
    }
    assert found == allowed


def test_the_old_name_is_gone() -> None:
    # It belongs to another project of the Python package index; only the changelog tells of it.
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True).stdout.decode()
    old = b"holl" + b"erith"
    names = [name for name in listed.split("\0") if name and name != "CHANGELOG.md"]
    assert not [name for name in names if old in name.lower().encode() or old in (ROOT / name).read_bytes().lower()]


def test_a_class_name_is_unique_in_the_package() -> None:
    source = (path.read_text(encoding="utf-8") for path in (ROOT / "src" / "yupana").rglob("*.py"))
    found = Counter(name for text in source for name in re.findall(r"^class (\w+)", text, re.MULTILINE))
    assert not [name for name, times in found.items() if times > 1]


def test_nothing_inside_imports_the_package_itself() -> None:
    # The package stands on all that is in it. The command line alone speaks to it from above.
    source = ROOT / "src" / "yupana"
    written = {path.relative_to(source): path.read_text(encoding="utf-8") for path in source.rglob("*.py")}
    found = {str(name) for name, text in written.items() if re.search(r"^\s*import yupana$", text, re.MULTILINE)}
    assert not {name for name in found if not name.startswith("cli/")}


def test_no_module_needs_posix_to_be_imported() -> None:
    # So a plan is made and a release is read on every system. What writes asks for a lock, and says if there is none.
    source = (path.read_text(encoding="utf-8") for path in (ROOT / "src" / "yupana").rglob("*.py"))
    needed = re.compile(r"^(?:import|from) (?:fcntl|grp|pty|pwd|resource|termios|tty)\b", re.MULTILINE)
    assert not [found for text in source for found in needed.findall(text)]


@pytest.mark.parametrize("door", ["releases", "configured", "tools", "records"])
@pytest.mark.thorough
def test_a_process_that_used_a_door_ends_without_a_word(door: str) -> None:
    """The database complains on stderr of whatever keeps a module that uses it to the end."""
    load = [sys.executable, "-c", f"import yupana.interface.{door}, yupana.confidential.product_counter"]
    done = subprocess.run(load, capture_output=True, text=True, check=True)
    assert done.stdout + done.stderr == ""
