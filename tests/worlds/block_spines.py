"""Spines of few blocks."""

from yupana.geography.blocks import Reference
from yupana.geography.entities import targets
from yupana.geography.optimized import optimized_spine
from yupana.geography.settings import SpineSettings
from yupana.geography.spine import Spine, conventional_spine
from yupana.progress import Stopwatch


def make_spine(reference: Reference, *, optimized: bool) -> Spine:
    if not optimized:
        return conventional_spine(reference, SpineSettings("conventional"))
    settings = SpineSettings("optimized")
    return optimized_spine(reference, targets(reference, None, settings), settings, Stopwatch(lambda _: None))
