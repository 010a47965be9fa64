"""The examples in every help text: commands that run as they stand, in their order, in an empty folder."""

import argparse
import functools
import shlex
from collections.abc import Sequence
from typing import Final

from yupana.cli.parser import leaves, verbs_of

MADE_BY: Final = {
    "census": "yupana synth census --households 400 --states 44 --seed 1",
    "config.toml": "yupana phsafe init config.toml",
    "release": "yupana phsafe run config.toml census release",
    "truth": "yupana phsafe exact config.toml census truth",
    "parameters": "yupana safetab-p init parameters",
    "persons": "yupana safetab-p run parameters census persons",
    "counts": "yupana topdown run pl94-2020-us census counts --noisy-measurements measurements",
    "measurements": "yupana topdown run pl94-2020-us census counts --noisy-measurements measurements",
    "plan.csv": (
        """awk -F'|' '{ print $1 "," (NR == 1 ? "district" : NR % 4 + 1) }' counts/spine/blocks.csv > plan.csv"""
    ),
    "whole": "yupana topdown run pl94-2020-us-whole census whole",
    "queries.csv": """printf 'area,query\\ncounty=1,P0010001\\ntract=44001000100,P1\\n' > queries.csv""",
    "measured": "yupana topdown run h1-2020-us census units --nmf measured",
    "spine": "yupana spine build census/GRF-C.txt spine --kind optimized",
    "targets.json": """echo '{"margins": {"PH2/usa_*": 400}, "decimals": 6}' > targets.json""",
    "homes.toml": "yupana tables init homes.toml",
    "map.toml": """printf '[persons]\\nQAGE = "age"\\n' > map.toml""",
    "renamed": "mkdir renamed && cp census/*.csv census/SYNTHETIC renamed && sed -i '1s/QAGE/age/' renamed/persons.csv",
    "key": "ssh-keygen -q -t ed25519 -N '' -f key",
    "policy.toml": (
        """printf '[[rule]]\\nrule = "negative"\\ntables = ["T01001"]\\nreason = "NEG"\\n' > policy.toml"""
    ),
}
"""What a folder or file that examples name is made by."""

EXAMPLES: Final = {
    "synth": (MADE_BY["census"],),
    "phsafe init": (MADE_BY["config.toml"],),
    "phsafe schema": ("yupana phsafe schema > phsafe.schema.json",),
    "phsafe show": ("yupana phsafe show s-dhc-2020-us",),
    "phsafe validate": (
        "yupana phsafe validate config.toml census",
        "yupana phsafe validate config.toml renamed --columns map.toml",
    ),
    "phsafe plan": (
        "yupana phsafe plan s-dhc-2020-us --diff production",
        "yupana phsafe plan config.toml --targets targets.json",
        "yupana phsafe plan config.toml --set tau.PH2=10 --set privacy_budget.PH3.state_A-G=1/40",
    ),
    "phsafe strategy": (
        "yupana phsafe strategy s-dhc-2020-us --out phsafe-found.json",
        "yupana phsafe strategy s-dhc-2020-us --total 2 --least 1",
    ),
    "phsafe run": (MADE_BY["release"],),
    "phsafe exact": (MADE_BY["truth"],),
    "phsafe accuracy": ("yupana phsafe accuracy config.toml census --trials 2",),
    "phsafe estimate": ("yupana phsafe estimate release tables",),
    "postprocess coterminous": ("yupana postprocess coterminous persons census/GRF-C.txt coterminous",),
    "postprocess suppress": ("yupana postprocess suppress persons policy.toml suppressed",),
    "safetab-p init": (MADE_BY["parameters"],),
    "safetab-p schema": ("yupana safetab-p schema > safetab-p.schema.json",),
    "safetab-p show": ("yupana safetab-p show ddhc-2020-us",),
    "safetab-p validate": ("yupana safetab-p validate parameters census",),
    "safetab-p plan": (
        "yupana safetab-p plan parameters --diff production",
        "yupana safetab-p plan parameters --set max_race_codes=4 --set run_pr=false",
    ),
    "safetab-p strategy": ("yupana safetab-p strategy parameters --loss ratio --total 6",),
    "safetab-p run": (MADE_BY["persons"],),
    "safetab-p exact": ("yupana safetab-p exact parameters census persons-truth",),
    "safetab-p accuracy": ("yupana safetab-p accuracy parameters census --trials 2",),
    "safetab-h init": ("yupana safetab-h init households-parameters",),
    "safetab-h schema": ("yupana safetab-h schema > safetab-h.schema.json",),
    "safetab-h show": ("yupana safetab-h show ddhc-2020-us",),
    "safetab-h validate": ("yupana safetab-h validate parameters census --totals persons/T01001.csv",),
    "safetab-h plan": ("yupana safetab-h plan parameters",),
    "safetab-h strategy": ("yupana safetab-h strategy parameters --least 1/2",),
    "safetab-h run": ("yupana safetab-h run parameters census households --totals persons/T01001.csv",),
    "safetab-h exact": ("yupana safetab-h exact parameters census households-truth --totals persons/T01001.csv",),
    "safetab-h accuracy": ("yupana safetab-h accuracy parameters census --totals persons/T01001.csv --trials 2",),
    "topdown init": ("yupana topdown init topdown.toml --like h1-2020-us",),
    "topdown schema": ("yupana topdown schema > topdown.schema.json",),
    "topdown show": ("yupana topdown show cook-2010",),
    "topdown validate": ("yupana topdown validate pl94-2020-us census",),
    "topdown plan": (
        "yupana topdown plan pl94-2020-us --set rho=1/2",
        "yupana topdown plan pl94-2020-us --set shares.State=1/2 --renormalise",
    ),
    "topdown run": (MADE_BY["counts"], "yupana topdown run pl94-2020-us-whole census both --pl redistricting"),
    "topdown exact": ("yupana topdown exact pl94-2020-us census counts-truth",),
    "topdown estimate": ("yupana topdown estimate measured estimated --dataset US_Unit_PL_PROD",),
    "topdown accuracy": (
        "yupana topdown accuracy pl94-2020-us census --trials 1",
        "yupana topdown accuracy pl94-2020-us census --beside pl94-2020-us-block-total --seed 1",
    ),
    "topdown intervals": (
        "yupana topdown intervals counts counts-intervals --replicates 5",
        "yupana topdown intervals counts counts-95 --noisy-measurements measurements --confidence 95%",
    ),
    "topdown strategy": (
        "yupana topdown strategy pl94-2020-us --out found.json",
        "yupana topdown strategy cook-2010 --loss max",
    ),
    "topdown pl": ("yupana topdown pl whole pl",),
    "tables init": (MADE_BY["homes.toml"],),
    "tables schema": ("yupana tables schema > tables.schema.json",),
    "tables show": ("yupana tables show people-and-homes",),
    "tables validate": ("yupana tables validate homes.toml census",),
    "tables plan": ("yupana tables plan homes.toml --set tables.people.budget.nation=1/4",),
    "tables strategy": ("yupana tables strategy homes.toml --loss max --out homes-found.json",),
    "tables run": ("yupana tables run homes.toml census homes",),
    "tables exact": ("yupana tables exact homes.toml census homes-truth",),
    "tables compare": ("yupana tables compare homes.toml census homes-compared --seed 1",),
    "tables accuracy": ("yupana tables accuracy homes.toml census --trials 2",),
    "count": (
        "yupana count census/persons.csv --by QAGE:20:0-115,CENHISP --domain CENHISP=1,2 --epsilon 1 --out people",
        "yupana count census/persons.csv --by QAGE:20:0-115 --unit MAFID --max-per-unit 5 --epsilon 1 --dry-run",
    ),
    "spine build": (MADE_BY["spine"],),
    "spine distance": ("yupana spine distance spine spine/entities.csv",),
    "spine report": ("yupana spine report spine",),
    "interval": (
        """yupana interval release --query 'PH1_num[REGION_ID=44, ITERATION_CODE="*", PH1_NUM_DATA_CELL=2]'""",
        """yupana interval release --query 'sum(PH7[REGION_ID=44, ITERATION_CODE="*"])'""",
        "yupana interval counts --list",
        "yupana interval counts --area county=1 --query P0030001 --query P5",
        """yupana interval counts --area county=1 --query 'hispanic[hispanic=Hispanic] % total' """
        "--noisy-measurements measurements",
        "yupana interval counts --queries queries.csv --out answers.csv",
    ),
    "districts": (
        "yupana districts counts plan.csv --noisy-measurements measurements",
        "yupana districts counts plan.csv --noisy-measurements measurements --rule deviation --tolerance 5% "
        "--query P0030001",
    ),
    "account": (
        "yupana account --rho 1.257281 --delta 1e-10",
        "yupana account --plan pl94-2020-us --delta 1e-10",
        "yupana account --moe 50 --sensitivity 484 --confidence 0.95",
    ),
    "export": (
        "yupana export release workbook --to workbook",
        "yupana export release sdmx --to sdmx --agency OFFICE",
        "yupana check sdmx",
    ),
    "audit epl": ("yupana audit epl --mechanism geometric --epsilon 1", "yupana audit epl release truth"),
    "audit attribute": ("yupana audit attribute parameters",),
    "audit certificate": ("yupana audit certificate release certificate",),
    "explore": ("yupana explore",),
    "atlas": ("yupana atlas release --to atlas", "yupana atlas release counts --to atlases"),
    "report": ("yupana report release release.html", "yupana report counts counts.html"),
    "check": ("yupana check release",),
    "sign": ("yupana sign release --key key --signer releases@example.org",),
    "demo": ("yupana demo demo --households 400",),
    "docs": ("yupana docs", "yupana docs tables"),
    "completion": ("yupana completion bash > yupana.bash",),
}
"""Of every command, by its words."""


def add_examples(parser: argparse.ArgumentParser) -> None:
    """Write the examples of every command below its help, and one of each verb below that of its group."""
    groups: dict[str, list[str]] = {}
    for words, command in leaves(parser):
        own = EXAMPLES.get(words, ())  # a test asks for them; a product that is being written has none
        _show(command, own)
        if " " in words:
            groups.setdefault(words.partition(" ")[0], []).extend(own[:1])
    for name, examples in groups.items():
        _show(verbs_of(parser).choices[name], examples)


def _show(parser: argparse.ArgumentParser, examples: Sequence[str]) -> None:
    if not examples:
        return
    shown = "\n".join(["examples, in an empty folder:", *(f"  {line}" for line in with_makers(examples))])
    parser.epilog = f"{parser.epilog}\n\n{shown}" if parser.epilog else shown


def with_makers(commands: Sequence[str]) -> list[str]:
    """Some commands, and before them those that make what they name."""
    return list(dict.fromkeys(line for command in commands for line in _needed(command)))


@functools.cache
def _needed(command: str) -> tuple[str, ...]:
    makers = (MADE_BY.get(word.partition("/")[0]) for word in shlex.split(command))
    return (*(line for maker in makers if maker not in (None, command) for line in _needed(maker)), command)
