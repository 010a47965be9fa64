"""One small world with an input and a release of every kind, for attacks to spoil."""

import json
from contextlib import redirect_stderr, redirect_stdout
from io import StringIO
from pathlib import Path
from typing import Final

from topdown_worlds import configuration, make_world, write_configuration, write_world

from yupana.cli.main import main
from yupana.products.phsafe.production import production_config
from yupana.products.safetab.demonstration_parameters import write_parameters

POLICY: Final = """
[[rule]]
rule = "negative"
tables = ["T01001", "T02001", "T02002", "T02003"]
reason = "N"
"""
INDIVIDUALS: Final = """
[[individuals]]
name = "Ann"
sex = "female"
age = 40
race = "01"
ethnicity = "1"
relation = "spouse"
members = [{sex = "male", age = 41, race = "01", ethnicity = "1", relation = "householder"}]
"""
SHAPE: Final = (2, 3)


def build(folder: Path) -> None:
    """Write inputs, and make releases of them."""

    def made(*arguments: str) -> None:
        with redirect_stdout(StringIO()), redirect_stderr(StringIO()):
            status = main([a.format(w=folder) for a in arguments])
        if status:
            raise RuntimeError(f"the world cannot be built: {arguments}")

    made("synth", "{w}/d", "--households", "60", "--states", "44", "--seed", "1")
    made("synth", "{w}/dq", "--households", "20", "--states", "44", "--seed", "1", "--format", "parquet")
    (folder / "config.json").write_text(json.dumps(production_config()))
    write_parameters(folder / "p")
    made("phsafe", "run", "{w}/config.json", "{w}/d", "{w}/rel")
    made("phsafe", "run", "{w}/config.json", "{w}/d", "{w}/relq", "--format", "parquet")
    made("phsafe", "exact", "{w}/config.json", "{w}/d", "{w}/relx")
    made("phsafe", "estimate", "{w}/rel", "{w}/est")
    made("safetab-p", "run", "{w}/p", "{w}/d", "{w}/relp")
    made("safetab-h", "run", "{w}/p", "{w}/d", "{w}/relh", "--totals", "{w}/relp/T01001.csv")
    write_world(make_world(1, SHAPE, states=1), folder / "t")
    write_configuration(configuration(SHAPE, rho="2"), folder / "t.json")
    made("topdown", "run", "{w}/t.json", "{w}/t", "{w}/relt", "--noisy-measurements", "{w}/relm")
    made("topdown", "run", "{w}/t.json", "{w}/t", "{w}/truth")
    made("spine", "build", "{w}/d/GRF-C.txt", "{w}/spine", "--kind", "conventional")
    made("audit", "certificate", "{w}/rel", "{w}/certificate")
    (folder / "policy.toml").write_text(POLICY)
    (folder / "people.toml").write_text(INDIVIDUALS)
    (folder / "targets.json").write_text('{"margins": {"PH1_num/usa_*": 500}, "decimals": 6}')
    (folder / "columns.csv").write_text("exact,noisy\n" + "".join(f"{n},{n + n % 7 - 3}\n" for n in range(200)))
    made(
        *("phsafe", "run", "{w}/config.json", "{w}/d", "{w}/other"),
        *("--ledger", "{w}/ledger.json", "--dataset", "D", "--limit", "100"),
    )
