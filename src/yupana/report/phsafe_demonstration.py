"""The report of a demonstration of PHSafe: a plan, a release, and the truth beside it, as invented people allow."""

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from yupana.plan.plan import DEFAULT_DELTA, Plan
from yupana.privacy.zcdp import epsilon_tight
from yupana.products.phsafe.errors import Accuracy, CellError
from yupana.report.html import bullets, code, element, paragraph, table
from yupana.report.numbers import loss, power_of_ten, rounded, whole
from yupana.report.page import Page, Section
from yupana.report.phsafe_errors import (
    Columns,
    law_section,
    observed_section,
    reliance_section,
    truncation_section,
    truth_section,
)
from yupana.report.phsafe_reference import published_counts, relative_section
from yupana.report.plans import losses, plan_sections

_NATION: Final = 331_449_281
"""Residents of the United States on 1 April 2020."""


@dataclass(frozen=True, slots=True)
class Demonstration:
    """What a demonstration hands to its report.

    Attributes
    ----------
    plan : Plan
    taus : mapping of table to int
    states, persons, households, trials : int
        Sizes of the synthetic census, and how often it was measured.
    seed : int
        Of the census, not of the noise.
    status : str
    release : mapping of table to columns
        The tables as published.
    errors : sequence of CellError
    observed : sequence of Accuracy
        Of the same errors.
    taken_as_public : sequence of str
    seconds : mapping of stage to float
    out : Path
        Where the demonstration will stand, as its user wrote it.
    """

    plan: Plan
    taus: Mapping[str, int]
    states: int
    persons: int
    households: int
    trials: int
    seed: int
    status: str
    release: Mapping[str, Columns]
    errors: Sequence[CellError]
    observed: Sequence[Accuracy]
    taken_as_public: Sequence[str]
    seconds: Mapping[str, float]
    out: Path


def demonstration_page(demo: Demonstration) -> Page:
    """Assemble the report."""
    return Page(
        title="PHSafe on a synthetic census",
        status=demo.status,
        status_words="A demonstration on invented people: the truth is shown beside the noisy counts. A report on real "
        "records must never do that.",
        key_numbers=_key_numbers(demo),
        sections=(
            _summary(demo),
            *plan_sections(demo.plan),
            relative_section(demo.plan, published_counts(demo.release), "PH1_num", 2, "this release, noise included"),
            truth_section(demo.plan, demo.release, demo.errors),
            observed_section(demo.plan, demo.observed, demo.trials),
            law_section(demo.plan, demo.errors),
            reliance_section(demo.plan, demo.errors),
            truncation_section(demo.taus, demo.errors),
            _public(demo),
            _again(demo),
        ),
    )


def _key_numbers(demo: Demonstration) -> dict[str, tuple[str, str]]:
    total = losses(demo.plan)
    unbounded, bounded = total["unbounded"], total["bounded"]
    epsilon = [rounded(epsilon_tight(rho, DEFAULT_DELTA), 4) for rho in unbounded]
    states = "the 50 states and DC" if demo.states == 51 else f"{demo.states} states"
    return {
        "Persons": (whole(demo.persons), "all of them invented"),
        "Households": (whole(demo.households), f"in {states}"),
        "Noisy counts": (whole(_counts(demo)), f"in {len(demo.release)} tables"),
        "ρ promised, unbounded": (loss(unbounded[0]), f"proven at most {loss(unbounded[1])}"),
        "ρ promised, bounded": (loss(bounded[0]), f"proven at most {loss(bounded[1])}"),
        f"ε at δ = {power_of_ten(DEFAULT_DELTA)}, unbounded": (epsilon[0], f"proven at most {epsilon[1]}"),
    }


def _counts(demo: Demonstration) -> int:
    return sum(len(columns["COUNT"]) for columns in demo.release.values())


def _summary(demo: Demonstration) -> Section:
    times = _NATION / demo.persons
    smaller = (
        f"This census is about {whole(float(f'{times:.2g}'))} times smaller than the nation, but the noise is that of "
        "2020. So the errors below are as large in people as they were then, and far larger as a share of the counts."
    )
    return Section(
        "summary",
        "What was done",
        (
            paragraph(
                f"We invented a census of {whole(demo.persons)} persons in {whole(demo.households)} households. We ran "
                "PHSafe on it, the system that protected the Supplemental Demographic and Housing Characteristics "
                f"File of the 2020 US Census, with the budgets used then, and published {whole(_counts(demo))} noisy "
                f"counts in {len(demo.release)} tables. Then we counted the same census without noise, measured it "
                f"{demo.trials} more times, and compared the errors with the margins of error that the plan promises."
            ),
            *([paragraph(smaller)] if times >= 2 else []),
        ),
    )


def _public(demo: Demonstration) -> Section:
    return Section(
        "public",
        "What is taken as public",
        (
            paragraph("The guarantee protects the records of persons. It takes as known to everybody:"),
            bullets(*(item[0].upper() + item[1:] + "." for item in demo.taken_as_public)),
            paragraph(
                "The check of the records before the run is outside the guarantee, too. Its findings stay confidential."
            ),
        ),
    )


_FILES: Final = {
    "report.html": "this report",
    "config.json": "the configuration: budgets, thresholds, states",
    "census/": "the synthetic census: persons, units and geography, and the mark SYNTHETIC",
    "release/": "the tables, and manifest.json with plan, ledger and checksums",
    "release.confidential.log": "what depends on the records without noise; never part of a release",
    "safetab.html": "the report on SafeTab, about the same people; it lists its own files",
    "manifest.json": "what this folder is, and that it is not for release",
}


def _again(demo: Demonstration) -> Section:
    config, census, release = (str(demo.out / name) for name in ("config.json", "census", "release"))
    synth = ("synth", "my-census", "--households", str(demo.households), "--seed", str(demo.seed))
    commands = {
        "what the plan costs, and how precise it is; needs no records": ("phsafe", "plan", config),
        "another release: new noise, the same law": ("phsafe", "run", config, census, "my-release"),
        "a release against its manifest and plan": ("check", release),
        "the counts without noise, as synthetic records allow": ("phsafe", "exact", config, census, "my-truth"),
        "the errors, measured": ("phsafe", "accuracy", config, census, "--trials", str(demo.trials)),
        "the same census, invented again": synth,
    }
    lines = "\n\n".join(f"# {words}\nyupana {shlex.join(arguments)}" for words, arguments in commands.items())
    return Section(
        "again",
        "The files, and how to do it again",
        (
            paragraph("Everything lies in the folder ", code(str(demo.out)), "."),
            table({"File": [code(name) for name in _FILES], "Holds": list(_FILES.values())}, "The files"),
            paragraph("These commands repeat it part by part, from the folder where the demonstration was started."),
            element("pre", code(lines), tabindex="0"),
            table(
                {
                    "Stage": list(demo.seconds),
                    "Seconds": [f"{seconds:.2f}" for seconds in demo.seconds.values()],
                },
                "How long each stage took, up to this report",
            ),
        ),
    )
