"""What the SafeTab products read of a config.json, and its values of 2020. Public; read without rounding.

One file may hold the keys of both products; each reads its own.
"""

import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

from yupana.files.declaration import BUDGET, FLAG, UNREAD, Expected, exact, keyed, list_of, scalar, whole
from yupana.files.document import UNCHANGED, Changes, Number, refuse
from yupana.plan.measurement import Mechanism
from yupana.privacy.exact import Budget, read_exact
from yupana.products.census import MECHANISM, MECHANISMS, READER, STATES, exact_number, states
from yupana.products.safetab.iterations import MOST_RACE_CODES, locate
from yupana.products.safetab.regions import LEVELS, PR, PUERTO_RICO, US, Level, Run
from yupana.products.safetab.specification import AGES, QUESTIONS, DetailedQuestion
from yupana.release.recipe import read_configuration_in

TITLES: Final = {"safetab-p": "SafeTab-P (Detailed DHC-A)", "safetab-h": "SafeTab-H (Detailed DHC-B)"}
_STAGE_1: Final = "privacy_budget_p_stage_1_fraction"
_ZERO_SUPPRESSION: Final = "zero_suppression_chance"


@dataclass(frozen=True, slots=True)
class SafetabConfig:
    """What a product reads of a config.json, validated."""

    product: str
    max_race_codes: int  # how many race codes of a record count, 1 to 8: the first ones
    allow_negative_counts: bool  # whether a noisy count below zero stays as it is, rather than becoming 0
    runs: tuple[Run, ...]  # the passes
    us_states: tuple[str, ...]  # FIPS codes of the US pass
    mechanism: Mechanism
    # by entry: rho (epsilon under pure DP) by `DetailedQuestion.entry`, zeros included: what has budget zero is not
    # measured
    budgets: Mapping[str, Budget]
    # by entry: totals from which a population group gets the next larger table of a question: of persons noisy ones, of
    # households those of T01001
    thresholds: Mapping[str, tuple[int, ...]]
    # share of a level's budget that the totals of persons have which choose tables; 0 of households
    stage_1: Fraction = Fraction(0)
    # the chance with which the total of an empty group is left out; 0 where none is
    zero_suppression: Fraction = Fraction(0)

    @property
    def states(self) -> frozenset[int]:
        """State codes of all passes."""
        return frozenset().union(*(self.states_of(run) for run in self.runs))

    def states_of(self, run: Run) -> frozenset[int]:
        """State codes of one pass."""
        return frozenset(map(int, self.us_states if run == US else (PUERTO_RICO,)))

    @property
    def levels(self) -> tuple[Level, ...]:
        """Population-group levels of the passes."""
        return tuple(level for level in LEVELS if level.region.run in self.runs)


_COMMON: Final[Mapping[str, Expected[Any]]] = {
    "max_race_codes": whole(1, MOST_RACE_CODES).said("how many race codes of a record count"),
    "allow_negative_counts": FLAG.said("whether noisy counts below zero stay as they are"),
    "run_us": FLAG.said("whether the states are tabulated"),
    "run_pr": FLAG.said("whether Puerto Rico is"),
    "reader": READER,
    "state_filter_us": states(*STATES).said("the states of the US pass"),
    "privacy_defn": MECHANISM,
}
_OF_PERSONS: Final[Mapping[str, Expected[Any]]] = {
    _STAGE_1: exact(lambda share: 0 < share < 1, "must be a number above 0 and below 1").said(
        "the share that chooses the table of each group"
    ),
    _ZERO_SUPPRESSION: exact(lambda chance: 0 <= chance < 1, "must be a number at least 0 and below 1").said(
        "the chance that the total of an empty group is left out"
    ),
}


def _threshold(told: object) -> Fraction | None:
    number = read_exact(told) if isinstance(told, Number) else None
    return number if isinstance(number, Fraction) else None


def _rising(place: str, numbers: tuple[Fraction, ...], faults: list[str]) -> tuple[int, ...]:
    """Whole numbers: a count reaches a threshold exactly when it reaches the next one."""
    if any(one > other for one, other in pairwise(numbers)):
        faults.append(f"{place}: thresholds must not descend")
    return tuple(map(math.ceil, numbers))


def _thresholds(question: DetailedQuestion, levels: Collection[Level]) -> Expected[dict[str, tuple[int, ...]]]:
    """The thresholds of a question by level; those of levels that are not run may be there, and are not read."""
    least = len(question.tables) - 1
    words = "a list of 1 threshold, a number" if least == 1 else f"a list of at least {least} thresholds, each a number"
    numbers = list_of(
        scalar("a number", _threshold, {"type": "number"}), words, least=least, most=1 if least == 1 else None
    ).made(_rising)
    kinds = {
        level.threshold_key: numbers if level in levels else replace(numbers, read=UNREAD.read) for level in LEVELS
    }
    table = keyed(
        kinds,
        question.thresholds,
        optional=[level.threshold_key for level in LEVELS if level not in levels],
        words='a table with keys such as "(USA, 1)"',
    )

    def read(place: str, told: object, faults: list[str]) -> dict[str, tuple[int, ...]] | None:
        if isinstance(told, dict):
            told = {" ".join(name.split()): of for name, of in told.items()}
        return table.read(place, told, faults)

    return replace(table, read=read)


def _own_keys(product: str, levels: Collection[Level]) -> dict[str, Expected[Any]]:
    found: dict[str, Expected[Any]] = dict(_OF_PERSONS) if AGES in QUESTIONS[product] else {}
    for question in QUESTIONS[product]:
        for level in LEVELS:
            says = f"the budget of {question.key}_{level.budget_key}; 0 measures nothing"
            found[question.budget_key(level)] = BUDGET.said(says)
        found[f"thresholds_{question.key}"] = _thresholds(question, levels)
    return found


def declaration(product: str, levels: Collection[Level] = ()) -> Expected[dict[str, Any]]:
    """What a configuration may hold; ``levels`` are those whose thresholds are needed."""
    others = [key for other in QUESTIONS if other != product for key in _own_keys(other, ())]
    unread = dict.fromkeys(others, UNREAD.said("of the other product; not read"))
    return keyed(
        {**_COMMON, **_own_keys(product, levels), **unread},
        f"The configuration of {TITLES[product]}.",
        optional=(_ZERO_SUPPRESSION, *others),
        words="a table of keys and values",
    )


def read_config(product: str, path: Path, changes: Changes = UNCHANGED) -> SafetabConfig:
    """Read and check a configuration, or that of a release by its manifest, with changes made in it.

    Raises
    ------
    ConfigError
        Naming the file, the key and what is wrong with it. All faults are named at once.
    """
    document, faults = read_configuration_in(path, product, changes)
    flags = document if isinstance(document, dict) else {}
    runs: tuple[Run, ...] = tuple(run for run in (US, PR) if flags.get(f"run_{run}") is True)
    levels = [level for level in LEVELS if level.region.run in runs]
    told = declaration(product, levels).read("", document, faults)
    if told is None:
        raise refuse(path, faults)
    if told.get("run_us") is False and told.get("run_pr") is False:
        faults.append("run_us and run_pr: at least one of them must be true")
    asked = [(question, level) for question in QUESTIONS[product] for level in LEVELS]
    budgets = {q.entry(level): told[key] for q, level in asked if (key := q.budget_key(level)) in told}
    if budgets and not any(budgets.values()):
        faults.append("every budget is 0, so nothing would be measured")
    if faults:
        raise refuse(path, faults)
    return SafetabConfig(
        product,
        told["max_race_codes"],
        told["allow_negative_counts"],
        runs,
        told["state_filter_us"],
        told["privacy_defn"],
        budgets,
        {q.entry(level): told[f"thresholds_{q.key}"][level.threshold_key] for q, level in asked if level in levels},
        told.get(_STAGE_1, Fraction(0)),
        told.get(_ZERO_SUPPRESSION, Fraction(0)),
    )


def config_document(config: SafetabConfig) -> dict[str, Any]:
    """A configuration as its config.json, which is read back exactly."""
    questions = QUESTIONS[config.product]
    of_persons = AGES in questions
    return {
        "max_race_codes": config.max_race_codes,
        "allow_negative_counts": config.allow_negative_counts,
        "run_us": US in config.runs,
        "run_pr": PR in config.runs,
        "reader": "csv",
        "state_filter_us": list(config.us_states),
        "privacy_defn": next(name for name, mechanism in MECHANISMS.items() if mechanism is config.mechanism),
        **{q.budget_key(level): exact_number(config.budgets[q.entry(level)]) for q in questions for level in LEVELS},
        **({_STAGE_1: exact_number(config.stage_1)} if of_persons else {}),
        **{
            f"thresholds_{q.key}": {
                level.threshold_key: list(config.thresholds[entry])
                for level in LEVELS
                if (entry := q.entry(level)) in config.thresholds
            }
            for q in questions
        },
        **({_ZERO_SUPPRESSION: exact_number(config.zero_suppression)} if of_persons else {}),
    }


@cache
def _of_2020(product: str) -> SafetabConfig:
    """Both passes of 2020."""
    return read_config(product, locate("ddhc-2020-us"), Changes((("run_pr", "true"),)))


def production_config(product: str, runs: tuple[Run, ...]) -> SafetabConfig:
    """The configuration of 2020 for the given passes."""
    return replace(_of_2020(product), runs=runs)
