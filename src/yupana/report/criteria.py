"""What reports and certificates say of acceptance criteria: what is predicted, and what was tested if anything was."""

from collections.abc import Mapping
from typing import Any

from yupana.products.described.criteria import verdicts
from yupana.report.page import Section, sections


def criteria_sections(criteria: Mapping[str, Mapping[str, Any]]) -> tuple[Section, ...]:
    """The section on the criteria of a manifest; none where it has none."""
    found = verdicts(criteria)
    if not found:
        return ()
    tested = any(of.tested for of in found)
    columns = {
        "Criterion": [of.name for of in found],
        "What it says": [of.says for of in found],
        "Predicted": [of.predicted for of in found],
        **({"Tested on synthetic records": [of.tested for of in found]} if tested else {}),
    }
    return sections("criteria.html", columns=columns, tested=tested)
