"""The demonstration: a census of invented people through the products, ending in reports.

It shows the truth beside the noise, so it makes its own census and never takes one.
"""

import json
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from yupana.confidential.accuracy import accuracy
from yupana.confidential.request import RunRequest
from yupana.confidential.run import exact, run
from yupana.errors import OutputError
from yupana.products.census import STATES
from yupana.products.gate import open_release
from yupana.products.phsafe.configuration import production_config
from yupana.products.phsafe.product import PHSAFE
from yupana.products.safetab.demonstration_parameters import write_parameters
from yupana.products.safetab.product import HOUSEHOLDS, PERSONS
from yupana.products.safetab.specification import TOTALS
from yupana.products.safetab.totals import PUBLISHED
from yupana.products.topdown.product import TOPDOWN
from yupana.progress import Announce, Stopwatch
from yupana.release.folder import new_folder, read_manifest, write_manifest
from yupana.release.manifest import MANIFEST
from yupana.release.status import NOT_FOR_RELEASE
from yupana.release.tables import describe_reports
from yupana.report.charts import renderer
from yupana.report.demonstration import (
    Demonstration,
    SafetabDemonstration,
    demonstration_page,
    safetab_page,
    topdown_page_with_truth,
)
from yupana.report.page import render
from yupana.report.topdown_areas import TopdownRelease
from yupana.report.topdown_release import topdown_page
from yupana.synthetic.census import CensusSummary, synthesize
from yupana.synthetic.files import outlines
from yupana.version import __version__

PRODUCT: Final = "demonstration"
REPORT: Final = "report.html"
SAFETAB_REPORT: Final = "safetab.html"
TOPDOWN_REPORT: Final = "topdown.html"

_STATE: Final = "44"
_STATE_HOUSEHOLDS: Final = 12_000
"""At most, of the state that TopDown counts; few enough for seconds."""

_MOST_TRIALS: Final = 20
"""Of SafeTab: a trial has tens of thousands of groups, so that a few tell enough."""

_SEED: Final = 2020
"""Of the census. The noise has none: it comes from the operating system, as in a real run."""


@dataclass(frozen=True, slots=True)
class DemonstrationRequest:
    """What a demonstration is asked to do.

    Attributes
    ----------
    out : Path
    households : int
        Of the synthetic census; 41,000 hold more than 100,000 persons.
    trials : int
        How often the census is measured to observe the errors.
    overwrite : bool
        Replace an earlier demonstration.
    """

    out: Path
    households: int = 41_000
    trials: int = 50
    overwrite: bool = False


def demonstrate(request: DemonstrationRequest, announce: Announce) -> tuple[Path, ...]:
    """Make a census, releases and reports in one folder, which appears whole or not at all.

    Returns
    -------
    tuple of Path
        The reports, absolute: on TopDown, PHSafe and SafeTab.

    Raises
    ------
    ConfigError
        If charts cannot be drawn because the extra ``report`` is not installed; nothing was begun.
    OutputError
        If the folder is not empty, or is to be overwritten and holds something else than a demonstration.
    """
    renderer()
    _refuse_other_output(request)
    clock = Stopwatch(announce)
    with new_folder(request.out, overwrite=request.overwrite) as folder:
        clock.start("inventing a census")
        made = synthesize(folder / "census", households=request.households, states=STATES, seed=_SEED)
        _demonstrate_topdown(folder, request, clock)
        _demonstrate_phsafe(folder, request, made, clock)
        _demonstrate_safetab(folder, request, made, clock)
        write_manifest(
            folder,
            {
                "yupana": __version__,
                "product": PRODUCT,
                "status": NOT_FOR_RELEASE,
                "reasons": ["the reports and the census show true counts, of people who were invented"],
                "reports": describe_reports(folder, [TOPDOWN_REPORT, REPORT, SAFETAB_REPORT]),
            },
        )
    return tuple(request.out.absolute() / name for name in (TOPDOWN_REPORT, REPORT, SAFETAB_REPORT))


def _asked(folder: Path, name: str, clock: Stopwatch, *, part: str | None = None) -> RunRequest:
    """What a run of the demonstration is asked, whose release has this name."""
    return RunRequest(log=folder / f"{name}.confidential.log", announce=clock.within(part or name))


def _demonstrate_topdown(folder: Path, request: DemonstrationRequest, clock: Stopwatch) -> None:
    """A state with its map, a release with and without noise, and the report that compares them."""
    data = folder / "state"
    made = synthesize(data, households=min(request.households, _STATE_HOUSEHOLDS), states=(_STATE,), seed=_SEED)
    config = TOPDOWN.read("pl94-2020-us")
    run(TOPDOWN, config, data, folder / "topdown", _asked(folder, "topdown", clock))
    exact(TOPDOWN, config, data, folder / "topdown-exact", _asked(folder, "topdown-exact", clock, part="topdown exact"))
    clock.start("drawing the report on TopDown")
    release = open_release(folder / "topdown")
    groups = [block[:12] for block in sorted(release.columns("spine/blocks")["block"])]
    (folder / "block-groups.json").write_text(json.dumps(outlines(groups)), encoding="utf-8")
    page = topdown_page(TopdownRelease(release, config, TOPDOWN.plan(config)), [folder / "block-groups.json"])
    released, truth = (
        {"P1": opened.columns("tables/P1")} for opened in (release, open_release(folder / "topdown-exact"))
    )
    told = topdown_page_with_truth(
        released, truth, page, NOT_FOR_RELEASE, persons=made.persons, households=made.households
    )
    (folder / TOPDOWN_REPORT).write_text(render(told), encoding="utf-8")


def _demonstrate_phsafe(folder: Path, request: DemonstrationRequest, made: CensusSummary, clock: Stopwatch) -> None:
    """A release, trials, and the report on them."""
    (folder / "config.json").write_text(json.dumps(production_config(), indent=1) + "\n", encoding="utf-8")
    config, census = PHSAFE.read(folder / "config.json"), folder / "census"
    run(PHSAFE, config, census, folder / "release", _asked(folder, "release", clock))
    trials = RunRequest(announce=clock.within("accuracy"))
    observed = accuracy(PHSAFE, config, census, trials, trials=request.trials)
    clock.start("drawing the report")
    demo = Demonstration(
        plan=PHSAFE.plan(config),
        taus=config.taus,
        states=len(config.states),
        persons=made.persons,
        households=made.households,
        trials=request.trials,
        seed=_SEED,
        release=_tables(folder / "release"),
        errors=observed.errors,
        status=NOT_FOR_RELEASE,
        observed=observed.rows,
        taken_as_public=PHSAFE.taken_as_public(config),
        seconds=clock.stop(),
        out=request.out,
    )
    (folder / REPORT).write_text(render(demonstration_page(demo)), encoding="utf-8")


def _demonstrate_safetab(folder: Path, request: DemonstrationRequest, made: CensusSummary, clock: Stopwatch) -> None:
    """Parameters, releases of persons with and without noise and of households, trials, and the report on them."""
    census, parameters = folder / "census", folder / "parameters"
    write_parameters(parameters)
    persons, households = PERSONS.read(parameters), HOUSEHOLDS.read(parameters)
    totals = folder / "safetab-p" / f"{TOTALS}.csv"
    run(PERSONS, persons, census, folder / "safetab-p", _asked(folder, "safetab-p", clock))
    without_noise = _asked(folder, "safetab-p-exact", clock, part="safetab-p exact")
    exact(PERSONS, persons, census, folder / "safetab-p-exact", without_noise)
    of_households = replace(_asked(folder, "safetab-h", clock), totals=totals)
    run(HOUSEHOLDS, households, census, folder / "safetab-h", of_households)
    trials = min(request.trials, _MOST_TRIALS)
    asked = RunRequest(announce=clock.within("safetab-p accuracy"))
    of_persons = accuracy(PERSONS, persons, census, asked, trials=trials)
    asked = RunRequest(totals=totals, announce=clock.within("safetab-h accuracy"))
    observed = accuracy(HOUSEHOLDS, households, census, asked, trials=trials)
    seconds = {stage: took for stage, took in clock.stop().items() if stage.startswith("safetab")}
    clock.start("drawing the report on SafeTab")
    public = (*PERSONS.taken_as_public(persons), *HOUSEHOLDS.taken_as_public(households), PUBLISHED)
    page = safetab_page(
        SafetabDemonstration(
            iterations=persons.iterations,
            persons_plan=PERSONS.plan(persons),
            households_plan=HOUSEHOLDS.plan(households),
            persons=made.persons,
            households=made.households,
            trials=trials,
            persons_release=_tables(folder / "safetab-p"),
            households_release=_tables(folder / "safetab-h"),
            truth=_tables(folder / "safetab-p-exact")[TOTALS],
            persons_errors=of_persons.errors,
            households_errors=observed.errors,
            persons_observed=of_persons.rows,
            households_observed=observed.rows,
            taken_as_public=tuple(dict.fromkeys(public)),
            seconds=seconds,
            status=NOT_FOR_RELEASE,
            out=request.out,
        )
    )
    (folder / SAFETAB_REPORT).write_text(render(page), encoding="utf-8")


def _tables(release: Path) -> dict[str, dict[str, list[str]]]:
    """Read the tables of a release that has just been made."""
    opened = open_release(release)
    return {table: opened.columns(table) for table in opened}


def _refuse_other_output(request: DemonstrationRequest) -> None:
    """Leave a release alone that `new_folder` would take for an earlier output, as any of ours."""
    out = request.out
    if not (request.overwrite and (out / MANIFEST).is_file()):
        return
    manifest = read_manifest(out)
    if "yupana" in manifest and not str(manifest.get("product")).endswith(PRODUCT):
        raise OutputError(f"{out} holds an output of yupana that is no demonstration; name another folder")
