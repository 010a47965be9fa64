"""Small releases of every product, for the tests of manifests."""

import json
from dataclasses import dataclass
from pathlib import Path

from safetab_worlds import NAMES, random_world, seeded, write_data, write_parameters
from spine_maker import random_blocks, write_reference
from topdown_worlds import configuration, make_world, write_configuration, write_world

from yupana.cli.main import main
from yupana.products.phsafe.configuration import production_config

POLICY = '[[rule]]\nrule = "negative"\ntables = ["T01001", "T02001", "T02002", "T02003"]\nreason = "N"\n'
STATE = "44"
SHAPE = (3, 2)


@dataclass(frozen=True)
class Releases:
    """A folder with releases and what they were made of.

    Below it lie `census`, `config.json`, `phsafe`, `exact`, `estimates`; `safetab/parameters`, `safetab/data`,
    `safetab-p`, `safetab-h`, `coterminous`, `policy.toml`; `world`, `topdown.json`, `topdown`, `noisy`; `grfc.txt`,
    `spine`.
    """

    folder: Path

    def __truediv__(self, name: str) -> Path:
        return self.folder / name


def call(*arguments: object) -> int:
    return main([str(argument) for argument in arguments])


def make_releases(folder: Path) -> Releases:
    made = Releases(folder)
    _phsafe(made)
    _safetab(made)
    _topdown(made)
    write_reference(made / "grfc.txt", random_blocks(seeded(5), blocks=20))
    levels = "US,State,County,Tract,Block_Group,Block"
    assert call("spine", "build", made / "grfc.txt", made / "spine", "--kind", "optimized", "--levels", levels) == 0
    return made


def phsafe_config(*kept: str, budget: object = 0.5) -> dict[str, object]:
    """Few budgets: a plan of few measurements."""
    document = {**production_config(), "state_filter": [STATE]}
    document["privacy_budget"] = {
        table: dict.fromkeys(levels, budget if table in kept else 0)
        for table, levels in document["privacy_budget"].items()
    }
    return document


def _phsafe(made: Releases) -> None:
    assert call("synth", made / "census", "--households", 40, "--states", STATE, "--seed", 1) == 0
    (made / "config.json").write_text(
        json.dumps({**phsafe_config("PH2", "PH7"), "truncation_key": "k", "consistency": {"couple": "drop-and-count"}})
    )
    options = ("--confidence", "0.95", "--sensitivity", "tight", "--seed", 3)
    assert call("phsafe", "run", made / "config.json", made / "census", made / "phsafe", *options) == 0
    assert call("phsafe", "exact", made / "config.json", made / "census", made / "exact", *options[:4]) == 0
    assert call("phsafe", "estimate", made / "phsafe", made / "estimates") == 0


def _safetab(made: Releases) -> None:
    world = random_world(seeded(3), persons=30, households=25)
    world.config.runs = ("us",)
    world.config.budgets("2").thresholds((4, 8, 20), 4)
    world.config.allow_negative, world.config.zero_suppression = True, "0.5"
    world.config.definition, world.config.fraction = "zcdp", "1/3"
    parameters = write_parameters(made / "safetab/parameters", world)
    data = write_data(made / "safetab/data", world)
    for product in ("safetab-p", "safetab-h"):
        assert call(product, "run", parameters, data, made / product, "--seed", 3, "--format", "parquet") == 0
    grfc = data / NAMES["blocks"]
    assert call("postprocess", "coterminous", made / "safetab-p", grfc, made / "coterminous") == 0
    (made / "policy.toml").write_text(POLICY)


def _topdown(made: Releases) -> None:
    write_world(make_world(4, SHAPE, states=1), made / "world")
    write_configuration(configuration(SHAPE, rho="1/2"), made / "topdown.json")
    options = ("--estimator", "full-information", "--noisy-measurements", made / "noisy", "--spine", "optimized")
    arguments = (made / "topdown.json", made / "world", made / "topdown", "--seed", 3)
    assert call("topdown", "run", *arguments, *options) == 0
