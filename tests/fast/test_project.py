"""The project agrees with itself where one thing is said in two places."""

import tomllib
from pathlib import Path

import hollerith
from hollerith.products.phsafe.config import RULES_OF_CONSISTENCY
from hollerith.records.census import RULES

ROOT = Path(__file__).parents[2]


def test_version_is_the_one_of_the_package() -> None:
    assert tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"] == hollerith.__version__


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
        "records/synthetic.py",
        "records/synthetic_geography.py",
        "records/synthetic_households.py",
        "records/synthetic_race.py",
        "records/synthetic_shares.py",
        "audit/districts.py",
        "audit/epl.py",  # resamples counts for an interval
        "audit/sound.py",  # simulates a confidence band, and splits counts for cross-fitting
        "audit/published.py",  # the generator of the paper, on made-up districts
        "report/epl.py",  # chooses the dots of a picture
    }
    source = ROOT / "src" / "hollerith"
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
