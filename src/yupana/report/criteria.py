"""What reports and certificates say of acceptance criteria: what is predicted, and what was tested if anything was."""

from collections.abc import Mapping
from typing import Any

from yupana.products.described.criteria import verdicts
from yupana.report.page import Section, sections


def criteria_sections(of_releases: Mapping[str, Mapping[str, Mapping[str, Any]]]) -> tuple[Section, ...]:
    """The section on the criteria of releases, by name; none where they have none."""
    found = [(release, of) for release, criteria in of_releases.items() for of in verdicts(criteria)]
    if not found:
        return ()
    tested = any(of.tested for _, of in found)
    columns = {
        **({"Release": [release for release, _ in found]} if len(of_releases) > 1 else {}),
        "Criterion": [of.name for _, of in found],
        "What it says": [of.says for _, of in found],
        "Predicted": [of.predicted for _, of in found],
        **({"Tested on synthetic records": [of.tested for _, of in found]} if tested else {}),
    }
    return sections("criteria.html", columns=columns, tested=tested)
