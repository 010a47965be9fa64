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
    assert tuple(rule.name for rule in RULES) == RULES_OF_CONSISTENCY


def test_every_rule_is_documented() -> None:
    text = (ROOT / "docs" / "phsafe.md").read_text()
    assert all(f"`{rule}`" in text for rule in RULES_OF_CONSISTENCY)


def test_the_lock_names_no_hosts() -> None:
    assert "://" not in (ROOT / "uv.lock").read_text()
