"""Parents whose blocks are drawn from the model of docs/topdown-posterior.md, and measured."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from yupana.topdown.descent.divide import Siblings, Terms
from yupana.topdown.posterior.learning import concentrations, learn_densities, moments, restricted
from yupana.topdown.posterior.siblings import Posed, Prior, PublicLists, classes, flat, pose

CELLS = 16
GROUP = (np.arange(CELLS) // 2).astype(np.int32)
LABELS = (np.zeros(CELLS, dtype=np.int32), GROUP, np.arange(CELLS, dtype=np.int32))
BETWEEN, WITHIN = 12.0, 40.0
PLANS = {"production": (0.0002, 0.0005, 0.1), "direct total": (0.02, 0.001, 0.08)}
"""Weights of the total, the groups and the cells."""


@dataclass(frozen=True)
class Drawn:
    """A parent whose blocks are drawn from the model."""

    posed: Posed
    terms: Terms
    truth: NDArray[np.int64]
    start: NDArray[np.int64]


def parent(
    random: np.random.Generator, weights: tuple[float, float, float], spread: float = 0.5, lumpy: float = 0.7
) -> Drawn:
    children = 12
    p, q = random.dirichlet(np.full(8, lumpy)), random.dirichlet(np.full(2, 4.0), 8)
    units = random.integers(4, 60, children)
    people = random.poisson(2.5 * units * np.exp(spread * random.normal(size=children)))
    truth = np.zeros((children, CELLS), dtype=np.int64)
    for child in range(children):
        groups = random.multinomial(people[child], random.dirichlet(BETWEEN * p + 1e-9))
        for group, held in enumerate(groups):
            truth[child, 2 * group : 2 * group + 2] = random.multinomial(held, random.dirichlet(WITHIN * q[group]))
    live = np.flatnonzero(truth.sum(axis=0))
    truth = truth[:, live]
    labels = tuple(np.unique(of[live], return_inverse=True)[1].astype(np.int32) for of in LABELS)
    answers = []
    for of, weight in zip(labels, weights, strict=True):
        exact = np.zeros((children, int(of.max()) + 1))
        np.add.at(exact.T, of, truth.T)
        answers.append(exact + random.normal(size=exact.shape) / weight**0.5)
    terms = Terms(labels, tuple(answers), np.tile(weights, (children, 1)), ())
    family = Siblings(truth.sum(axis=0), children, ((labels[1], None),), (), None, ())
    posed = pose(family, terms, range(3), labels[1], PublicLists(units, None))
    return Drawn(posed, terms, truth, spread_evenly(truth.sum(axis=0), children))


def spread_evenly(people: NDArray[np.int64], children: int) -> NDArray[np.int64]:
    """A start that knows nothing of the children."""
    start = np.tile(people // children, (children, 1))
    for cell, rest in enumerate(people % children):
        start[:rest, cell] += 1
    return start


def learned(parents: list[Drawn]) -> Prior:
    sums = sum((moments(of.posed, restricted(of.terms)) for of in parents), np.zeros((2, 3)))
    between, within = concentrations(sums)
    with ThreadPoolExecutor(1) as pool:
        found, _ = learn_densities(
            [(number, of.posed, of.start) for number, of in enumerate(parents)],
            Prior(flat(classes(1)), between, within),
            1,
            pool,
        )
    return found
