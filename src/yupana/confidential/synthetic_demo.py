"""The demonstration: records of invented people, releases of every product made of them, and one atlas of all."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from yupana.atlas.site import AtlasRequest, write_site
from yupana.confidential.request import RunRequest
from yupana.confidential.run import run
from yupana.errors import OutputError
from yupana.products import PRODUCTS
from yupana.products.gate import open_release
from yupana.products.phsafe.configuration import production_config
from yupana.products.safetab.demonstration_parameters import write_parameters
from yupana.products.safetab.specification import TOTALS
from yupana.progress import Announce, Stopwatch
from yupana.release.folder import new_folder, read_manifest, write_manifest
from yupana.release.manifest import MANIFEST
from yupana.release.status import NOT_FOR_RELEASE
from yupana.synthetic.census import CensusSummary, synthesize
from yupana.synthetic.files import outlines
from yupana.version import __version__

PRODUCT: Final = "demonstration"
RELEASES: Final = ("topdown", "phsafe", "safetab-p", "safetab-h", "people-and-homes")
ATLAS: Final = "atlas"

_STATES: Final = ("09", "25", "33", "44")
_TOPDOWN_HOUSEHOLDS: Final = 2_000
"""At most, of the census that TopDown counts by block; few enough for seconds."""

_SEED: Final = 2020
"""Of the census. The noise has none: it comes from the operating system, as in a real run."""


def demonstrate(out: Path, households: int, announce: Announce, *, overwrite: bool) -> tuple[Path, CensusSummary]:
    """Make a census, releases and their atlas in one folder, which appears whole or not at all.

    Parameters
    ----------
    households : int
        Of the census.
    overwrite : bool
        Replace an earlier demonstration.

    Returns
    -------
    tuple of Path and CensusSummary
        The first page of the atlas, absolute; and who was invented.

    Raises
    ------
    OutputError
        If the folder is not empty, is to be overwritten and holds something else than a demonstration, or cannot be
        written.
    """
    if overwrite:
        _refuse_other_output(out)
    clock = Stopwatch(announce)
    with new_folder(out, overwrite=overwrite, noisy=False) as folder:
        clock.start("inventing a census")
        census, small = folder / "census", folder / "small-census"
        made = synthesize(census, households=households, states=_STATES, seed=_SEED)
        synthesize(small, households=min(households, _TOPDOWN_HOUSEHOLDS), states=_STATES, seed=_SEED)
        (folder / "config.json").write_text(
            json.dumps({**production_config(), "state_filter": list(_STATES)}, indent=1) + "\n", encoding="utf-8"
        )
        write_parameters(folder / "parameters")
        for name in RELEASES:
            _make_release(folder, name, small if name == "topdown" else census, clock)
        clock.start("block groups for a map")
        blocks = open_release(folder / "topdown").columns("spine/blocks")["block"]
        shapes = folder / "block-groups.json"
        shapes.write_text(json.dumps(outlines(sorted({block[:12] for block in blocks}))), encoding="utf-8")
        asked = [AtlasRequest(folder / name, (shapes,) if name == "topdown" else ()) for name in RELEASES]
        write_site(folder / ATLAS, asked, announce=clock.within("atlas"))
        clock.stop()
        write_manifest(
            folder,
            {
                "yupana": __version__,
                "product": PRODUCT,
                "status": NOT_FOR_RELEASE,
                "reasons": ["it holds records, of people who were invented"],
            },
        )
    return out.absolute() / ATLAS / "index.html", made


_CONFIGURATIONS: Final = {
    "topdown": ("topdown", "pl94-2020-us"),
    "phsafe": ("phsafe", "config.json"),
    "safetab-p": ("safetab-p", "parameters"),
    "safetab-h": ("safetab-h", "parameters"),
    "people-and-homes": ("tables", "people-and-homes"),
}
"""The product and the configuration of each release."""


def _make_release(folder: Path, name: str, records: Path, clock: Stopwatch) -> None:
    key, source = _CONFIGURATIONS[name]
    product: Any = PRODUCTS[key]
    config = product.read(folder / source if (folder / source).exists() else source)
    asked = RunRequest(log=folder / f"{name}.confidential.log", announce=clock.within(name))
    if name == "safetab-h":
        asked = replace(asked, totals=folder / "safetab-p" / f"{TOTALS}.csv")
    run(product, config, records, folder / name, asked)


def _refuse_other_output(out: Path) -> None:
    """Leave a release alone that `new_folder` would take for an earlier output, as any of ours."""
    if not (out / MANIFEST).is_file():
        return
    manifest = read_manifest(out)
    if "yupana" in manifest and not str(manifest.get("product")).endswith(PRODUCT):
        raise OutputError(f"{out} holds an output of yupana that is no demonstration; name another folder")
