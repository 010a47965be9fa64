"""The demonstration: a census of invented people through every product, ending in reports. Confidential by its place.

It shows the truth beside the noise, so it makes its own census and never takes one.
"""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import yupana
from yupana.confidential.phsafe.accuracy import trials
from yupana.confidential.phsafe.run import TAKEN_AS_PUBLIC, run
from yupana.confidential.request import Request
from yupana.confidential.safetab import demonstration as safetab
from yupana.errors import OutputError
from yupana.privacy.entropy import SystemEntropy
from yupana.products.census import STATES
from yupana.products.phsafe.configuration import read_config
from yupana.products.phsafe.errors import summarize
from yupana.products.phsafe.plan import make_plan
from yupana.products.phsafe.production import production_config
from yupana.progress import Announce, Stopwatch
from yupana.release.check import check_files, describe_reports
from yupana.release.folder import MANIFEST, new_folder, read_manifest, write_manifest
from yupana.release.status import NOT_FOR_RELEASE
from yupana.report.demonstration import Demonstration, demonstration_page
from yupana.report.page import render
from yupana.report.svg import renderer
from yupana.synthetic.census import synthesize

PRODUCT: Final = "demonstration"
REPORT: Final = "report.html"
STAGES: Final = 10 + safetab.STAGES
"""How many stages are announced."""

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
        The reports, absolute: on PHSafe, and on SafeTab.

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
    with new_folder(request.out, overwrite=request.overwrite) as partial:
        clock.start("inventing a census")
        made = synthesize(partial / "census", households=request.households, states=STATES, seed=_SEED)
        (partial / "config.json").write_text(json.dumps(production_config(), indent=1) + "\n", encoding="utf-8")
        config = read_config(partial / "config.json")
        plan = make_plan(config)
        release = Request(partial / "census", partial / "release", log=partial / "release.confidential.log")
        run(config, plan, release, SystemEntropy(), clock.within("release"))
        errors = trials(config, plan, partial / "census", request.trials, SystemEntropy(), clock.within("accuracy"))
        clock.start("drawing the report")
        _, tables, wrong = check_files(partial / "release")
        if wrong:
            raise RuntimeError(f"the release does not hold together: {'; '.join(wrong)}")
        demo = Demonstration(
            plan=plan,
            taus=config.taus,
            states=len(config.states),
            persons=made.persons,
            households=made.households,
            trials=request.trials,
            seed=_SEED,
            release=tables,
            errors=errors,
            status=NOT_FOR_RELEASE,
            observed=summarize(errors, float(plan.confidence)),
            taken_as_public=TAKEN_AS_PUBLIC,
            seconds=clock.stop(),
            out=request.out,
        )
        (partial / REPORT).write_text(render(demonstration_page(demo)), encoding="utf-8")
        safetab.demonstrate_safetab(
            partial,
            persons=made.persons,
            households=made.households,
            trials=request.trials,
            out=request.out,
            clock=clock,
        )
        write_manifest(
            partial,
            {
                "yupana": yupana.__version__,
                "product": PRODUCT,
                "status": NOT_FOR_RELEASE,
                "reasons": ["the reports and the census show true counts, of people who were invented"],
                "reports": describe_reports(partial, [REPORT, safetab.REPORT]),
            },
        )
    return tuple(request.out.absolute() / name for name in (REPORT, safetab.REPORT))


def _refuse_other_output(request: DemonstrationRequest) -> None:
    """Leave a release alone that `new_folder` would take for an earlier output, as any of ours."""
    out = request.out
    if not (request.overwrite and (out / MANIFEST).is_file()):
        return
    manifest = read_manifest(out)
    if "yupana" in manifest and not str(manifest.get("product")).endswith(PRODUCT):
        raise OutputError(f"{out} holds an output of yupana that is no demonstration; name another folder")
