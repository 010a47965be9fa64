"""What was measured, as tables in Markdown."""

from collections.abc import Callable, Iterator, Mapping
from itertools import pairwise
from typing import Any

import numpy as np
from worlds import PRODUCTION, Target, World

Runs = Mapping[str, Any]
"""Figures of a case by seed."""

Done = Mapping[str, Runs]
"""Of a world, by case."""


def ratio(done: Done, case: str, target: Target) -> tuple[float, float]:
    """The mean ratio of errors to production's over replicates, and its standard error (not a number for one)."""
    key, base = " ".join(target), done[PRODUCTION]
    found = np.array([of["mae"][key] / base[seed]["mae"][key] for seed, of in done[case].items() if seed in base])
    return float(found.mean()), float(found.std(ddof=1) / np.sqrt(len(found))) if len(found) > 1 else float("nan")


def shown(done: Done, case: str, target: Target) -> str:
    """The ratio in words."""
    mean, error = ratio(done, case, target)
    return f"{mean:.3f}" if np.isnan(error) else f"{mean:.3f} ± {error:.3f}"


def production(done: Done, target: Target) -> str:
    """Production's own mean absolute error."""
    mean = float(np.mean([of["mae"][" ".join(target)] for of in done[PRODUCTION].values()]))
    return f"{mean:.4f}" if mean < 0.1 else f"{mean:.3f}"


def _there(world: World, done: Done) -> list[str]:
    return [case for case in world.cases if done.get(case)]


def _row(cells: list[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _head(cells: list[str]) -> Iterator[str]:
    yield _row(cells)
    yield "|---" * len(cells) + "|"


def one_table(worlds: list[World], done: Mapping[str, Done]) -> Iterator[str]:
    """Every case of every world, with the targets that the world shows."""
    for world in worlds:
        yield f"**{world.title}**, {len(done[world.name][PRODUCTION])} replicates"
        yield ""
        names = [f"{world.kinds[kind]}: {world.queries[query]}" for kind, query in world.shown]
        yield from _head(["", *names])
        yield _row(["production, MAE", *(production(done[world.name], target) for target in world.shown)])
        for case in _there(world, done[world.name])[1:]:
            yield _row([case, *(shown(done[world.name], case, target) for target in world.shown)])
        yield ""


def bars(world: World, done: Done) -> Iterator[str]:
    """What was asked for, and whether it is met."""
    yield from _head(["case", "replicates", "what", "measured", "bar", ""])
    for name in _there(world, done):
        case, number = world.cases[name], str(len(done[name]))
        for (kind, query), bar in case.bars.items():
            met = "met" if ratio(done, name, (kind, query))[0] <= bar else "missed"
            what = f"{world.kinds[kind]}: {world.queries[query]}"
            yield _row([name, number, what, shown(done, name, (kind, query)), f"{bar:.2f}", met])
        for low, bar in case.bias.items():
            bias = float(np.mean([run["sizes"][str(low)]["bias"] for run in done[name].values()]))
            met = "met" if abs(bias) <= abs(bar) else "missed"
            yield _row([name, number, f"bias, {sizes(world)[str(low)]}", f"{bias:+.2f}", f"{bar:+.2f}", met])


def sizes(world: World) -> dict[str, str]:
    """Size classes in words, by their smallest population."""
    words = {
        str(low): f"{low:,}" if low == high - 1 else f"{low:,} to {high - 1:,}" for low, high in pairwise(world.sizes)
    }
    return {**words, str(world.sizes[-1]): f"{world.sizes[-1]:,} and more"}


def by_area(world: World, done: Done) -> Iterator[str]:
    """All areas and queries."""
    there = _there(world, done)
    yield from _head(["areas", "answers", "production, MAE", *there[1:]])
    for kind, kind_words in world.kinds.items():
        for query, words in world.queries.items():
            cells = [shown(done, case, (kind, query)) for case in there[1:]]
            yield _row([kind_words, words, production(done, (kind, query)), *cells])


def by_size(world: World, done: Done) -> Iterator[str]:
    """Errors and bias of totals of the last units by their true population."""
    there = _there(world, done)
    yield from _head([f"{next(iter(world.kinds.values()))}s of", "number", *there])
    for low, words in sizes(world).items():
        if low in next(iter(done[PRODUCTION].values()))["sizes"]:
            pairs = [(of_size(done, case, low, "mae"), of_size(done, case, low, "bias")) for case in there]
            cells = [f"{mae:.2f} ({bias:+.2f})" for mae, bias in pairs]
            yield _row([words, f"{of_size(done, PRODUCTION, low, 'blocks'):,.0f}", *cells])


def of_size(done: Done, case: str, low: str, what: str) -> float:
    """The mean over replicates."""
    return float(np.mean([run["sizes"][low][what] for run in done[case].values()]))


def speed(world: World, done: Done) -> Iterator[str]:
    """Seconds a run, and the load they were measured at."""
    mean: Callable[[Runs, str], float] = lambda runs, what: float(np.mean([run[what] for run in runs.values()]))  # noqa: E731
    yield from _head(["case", "seconds a run", "load of the machine"])
    for case in _there(world, done):
        yield _row([case, f"{mean(done[case], 'seconds'):.0f}", f"{mean(done[case], 'load'):.1f}"])
