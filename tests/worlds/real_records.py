"""Small records of every product without the mark of synthetic ones, as a census bureau would have them."""

import json
from pathlib import Path

from census_maker import random_census, seeded, write_csv
from safetab_worlds import random_world, write_data, write_parameters
from safetab_worlds import seeded as seeded_world
from topdown_worlds import configuration, make_world, write_configuration, write_world

from yupana.cli.main import main
from yupana.products.phsafe.configuration import production_config

PRODUCTS = ("phsafe", "safetab-p", "safetab-h", "topdown")

Named = dict[str, list[str]]
"""By product the arguments that name its configuration, its records, and what else it needs."""


def write_real_records(folder: Path) -> Named:
    """Write records and configurations of every product."""
    config = production_config()
    config["state_filter"] = ["06", "17"]
    (folder / "config.json").write_text(json.dumps(config), encoding="utf-8")
    write_csv(folder / "census", random_census(seeded(12), ["06", "17"], 60))
    (folder / "census" / "SYNTHETIC").unlink()

    world = random_world(seeded_world(3), noise="some")
    parameters = write_parameters(folder / "parameters", world)
    detailed = write_data(folder / "detailed", world, synthetic=False)
    assert main(["safetab-p", "run", str(parameters), str(detailed), str(folder / "p")]) == 0

    data = write_world(make_world(4, (3, 2)), folder / "blocks")
    (data / "SYNTHETIC").unlink()
    document = write_configuration(configuration((3, 2), rho="1"), folder / "topdown.json")
    return {
        "phsafe": [str(folder / "config.json"), str(folder / "census")],
        "safetab-p": [str(parameters), str(detailed)],
        "safetab-h": [str(parameters), str(detailed), "--totals", str(folder / "p" / "T01001.csv")],
        "topdown": [str(document), str(data)],
    }
