"""A parameter folder for demonstrations: codes as `synth` writes them, iterations made by rule, the budgets of 2020.

The numbers of the codes are those of the 2020 Census. Which groups there are, what they are called and how they are
grouped is ours, much simpler than the lists of the Census Bureau and no substitute for them. Public.
"""

import json
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Final

from yupana.products.safetab.configuration import config_document, production_config
from yupana.products.safetab.iterations import CONFIG
from yupana.products.safetab.regions import US
from yupana.products.safetab.specification import QUESTIONS


@dataclass(frozen=True, slots=True)
class Region:
    """A regional group and its detailed groups."""

    name: str  # empty where codes are in detailed groups only, or in none
    # by name: codes and ranges of codes, ends included. Those of an asterisked name are shown for the nation and states
    # only.
    detailed: Mapping[str, str]
    others: str = ""  # codes of the region that are in no detailed group


def _regions(question: str) -> tuple[Region, ...]:
    """The groups of race, or of origin."""
    text = files("yupana.products.safetab").joinpath("demonstration-groups.toml").read_text("utf-8")
    return tuple(Region(**region) for region in tomllib.loads(text)[question])


RACES: Final = _regions("races")
ORIGINS: Final = _regions("origins")
NOT_HISPANIC: Final = 9950


def codes_of(text: str) -> tuple[int, ...]:
    """Codes of a text such as ``1130-1135 1139``."""
    ends = [(part.partition("-")[0], part.rpartition("-")[2]) for part in text.split()]
    return tuple(code for first, last in ends for code in range(int(first), int(last) + 1))


@dataclass(frozen=True, slots=True)
class _Group:
    """A group of codes: regional or detailed, of race or of origin."""

    name: str
    level: int
    detailed_only: bool
    codes: tuple[int, ...]


def _groups(regions: tuple[Region, ...]) -> Iterator[_Group]:
    for region in regions:
        detailed = [
            _Group(name.removesuffix("*"), 2, name.endswith("*"), codes_of(codes))
            for name, codes in region.detailed.items()
        ]
        within = tuple(code for group in detailed for code in group.codes)
        if region.name:
            yield _Group(region.name, 1, False, (*within, *codes_of(region.others)))  # noqa: FBT003 (a plain row)
        yield from detailed


def _named_codes() -> dict[int, str]:
    """Every code with a name made from that of its group."""
    named = {NOT_HISPANIC: "Not Hispanic, Latino, or Spanish"}
    for region in (*RACES, *ORIGINS):
        for name, codes in region.detailed.items():
            first, *more = codes_of(codes)
            named[first] = name.removesuffix("*")
            named |= {code: f"{named[first]}, answer {code}" for code in more}
        named |= {code: f"{region.name or 'Other'}, answer {code}" for code in codes_of(region.others)}
    return dict(sorted(named.items()))


def write_parameters(folder: Path) -> None:
    """Write a parameter folder for both products: US pass, budgets and thresholds of 2020."""
    folder.mkdir()
    races = [(group, alone) for alone in (True, False) for group in _groups(RACES)]
    origins = list(_groups(ORIGINS))
    race_rows, members = [], []
    for number, (group, alone) in enumerate(races, 1001):
        kind = "alone" if alone else "alone or in any combination"
        race_rows.append((number, f"{group.name} {kind}", group.level, alone, group.detailed_only, False))
        members += [(number, code) for code in group.codes]
    origin_rows = []
    for number, group in enumerate(origins, 3001):
        origin_rows.append((number, group.name, group.level, group.detailed_only, False))
        members += [(number, code) for code in group.codes]
    flags = ("DETAILED_ONLY", "COARSE_ONLY")
    written = {
        "race-and-ethnicity-codes": (("RACE_ETH_CODE", "RACE_ETH_NAME"), _named_codes().items()),
        "race-characteristic-iterations": (
            ("ITERATION_CODE", "ITERATION_NAME", "LEVEL", "ALONE", *flags),
            race_rows,
        ),
        "ethnicity-characteristic-iterations": (("ITERATION_CODE", "ITERATION_NAME", "LEVEL", *flags), origin_rows),
        "race-and-ethnicity-code-to-iteration": (("ITERATION_CODE", "RACE_ETH_CODE"), members),
    }
    for name, (header, rows) in written.items():
        lines = ["|".join(header), *("|".join(map(str, row)) for row in rows)]
        (folder / f"{name}.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
    configs = (config_document(production_config(product, (US,))) for product in QUESTIONS)
    of_both = {key: of for config in configs for key, of in config.items()}
    (folder / CONFIG).write_text(json.dumps(of_both, indent=1) + "\n", encoding="utf-8")
