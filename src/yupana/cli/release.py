"""What is asked of releases and made of them: checks, pages, districts, estimates, intervals, postprocessing."""

import argparse
from collections.abc import Iterator
from typing import TYPE_CHECKING

import yupana
from yupana.cli.interval import notes_text
from yupana.cli.options import given, tell
from yupana.cli.product import print_release, say
from yupana.cli.tools import serving
from yupana.errors import OutputError
from yupana.interface.arguments import out_of

if TYPE_CHECKING:
    from yupana.estimate.results import DistrictEstimates


def check(options: argparse.Namespace) -> None:
    """Tell whether a release agrees with its manifest, plan and configuration."""
    from yupana.release.release import read_release

    checked = yupana.check(**given(options), progress=True)
    manifest = read_release(options.release, confidential=True).manifest
    tables, status = len(manifest["tables"]), manifest.get("status")
    answer = {"release": str(options.release), "status": status, "tables": tables, "wrong": list(checked.wrong)}
    answer |= {"unchecked": list(checked.unchecked), "signed": checked.signed}
    what = "file" if manifest.get("product") == "export" else "table"
    number = f"{tables} {what}{'s' * (tables != 1)} agree{'s' * (tables == 1)}"
    lines = [f"{options.release}: {number} with {checked.against}; status: {status}"]
    lines += [f"signed by {checked.signed}"] if checked.signed else []
    lines += [f"not checked: {note}" for note in checked.unchecked]
    tell(options, answer, [] if checked.wrong else lines)
    if checked.wrong:
        faults = [f"  {fault}" for fault in checked.wrong]
        raise OutputError("\n".join([f"{options.release} does not hold together:", *faults]))


def export(options: argparse.Namespace) -> None:
    """Write a release in a form that offices publish."""
    from yupana.release.folder import read_manifest

    made = yupana.export(**given(options), progress=True)
    tell(options, read_manifest(made), (f"{options.out / path.name}" for path in sorted(made.iterdir())))


def sign(options: argparse.Namespace) -> None:
    """Sign a release."""
    from yupana.files.ssh_signature import NAMESPACE

    made = yupana.sign(**given(options))
    print(made)
    if options.key is None:
        print(f"not signed yet: ssh-keygen -Y sign -n {NAMESPACE} -f KEY {made}")


def report(options: argparse.Namespace) -> None:
    """Write a page on a release."""
    print(yupana.report(**given(options), progress=True))


def atlas(options: argparse.Namespace) -> None:
    """Serve the atlas of releases, or write it."""
    if options.to is not None:
        print(yupana.atlas(options.releases, **given(options, "releases", "port", "browser")))
        return
    from yupana.atlas.server import serve
    from yupana.interface.releases import atlas_requests

    requests = atlas_requests(options.releases, **given(options, "releases", "to", "port", "browser"))
    with serving(options.port):
        serve(requests, options.port, browser=options.browser)


def certificate(options: argparse.Namespace) -> None:
    """Write what releases promise."""
    from yupana.report.certificate import NUMBERS

    out_of(options.out, *options.releases, overwrite=options.overwrite)
    certified = yupana.certificate(*options.releases, **given(options, "releases", "out", "overwrite"))
    page = certified.write(options.out, overwrite=options.overwrite)
    tell(options, dict(certified), [f"{page}", f"{options.out / NUMBERS}"])


def estimate(options: argparse.Namespace) -> None:
    """Make published tables of noisy measurements."""
    from yupana.report.final_tables import PAGE

    made = yupana.estimate(**given(options), progress=True)
    print_release(options, made, f"browse the tables: {options.out / PAGE}")


def intervals(options: argparse.Namespace) -> None:
    """Make a release of TopDown again with intervals."""
    print_release(options, yupana.topdown_intervals(**given(options), progress=True))


def pl(options: argparse.Namespace) -> None:
    """Write the files of P.L. 94-171."""
    print_release(options, yupana.write_pl(**given(options)))


def estimate_measurements(options: argparse.Namespace) -> None:
    """Make a release of noisy measurement files."""
    say(options, yupana.estimate_measurements(**given(options), progress=True))


def coterminous(options: argparse.Namespace) -> None:
    """Let areas of the same blocks show the same numbers."""
    from yupana.release.recipe import COTERMINOUS

    release = yupana.combine_coterminous(**given(options), progress=True)
    record = next(entry for entry in release.record if entry["rule"] == COTERMINOUS)
    groups = record["groups"]
    text = (
        f"{options.out}: {record['sets']} sets of coterminous areas; population groups combined {groups['combined']}, "
        f"added {groups['added']}, suppressed {groups['dropped']}"
    )
    tell(options, release.manifest, [text])


def suppress(options: argparse.Namespace) -> None:
    """Write X for counts that cannot be true."""
    release = yupana.suppress(**given(options), progress=True)
    found = {
        table: ", ".join(f"{reason} {n}" for reason, n in counts.items()) or "nothing suppressed"
        for table, counts in release.record[-1]["suppressed"].items()
    }
    tell(options, release.manifest, (f"{table}: {told}" for table, told in found.items()))


def districts(options: argparse.Namespace) -> None:
    """Tell how balanced the districts of a plan are."""
    found = yupana.districts(**given(options))
    tell(options, found.as_json(), _districts_text(found))


def _districts_text(found: "DistrictEstimates") -> Iterator[str]:
    columns = found.columns()
    width = max(len("district"), *(len(name) for name in found.districts))
    ends = f"{float(100 * found.confidence):g} % interval"
    yield f"{found.query} by district, of {len(found)}"
    yield f"{'district':<{width}}  published     estimate  std. dev.  {ends:>25}  from ideal"
    for name, published, estimate, deviation, lower, upper, from_ideal in zip(*columns.values(), strict=True):
        interval = f"{lower:,.1f} to {upper:,.1f}"
        yield (
            f"{name:<{width}}  {published:>9,.10g} {estimate:>12,.1f} {deviation:>10,.1f}  {interval:>25}  "
            f"{from_ideal:>+9.3%}"
        )
    if found.unassigned is not None:
        apart = found.unassigned
        blocks = f"{apart.blocks:,} block{'s' if apart.blocks > 1 else ''}"
        yield (
            f"unassigned {apart.code}: {blocks}, published {apart.published:,.10g}, "
            f"estimate {apart.estimate:,.1f}, std. dev. {apart.standard_deviation:,.1f}; not in the balance"
        )
    chance, what = found.chance, {"range": "largest less smallest", "deviation": "largest difference from the ideal"}
    yield ""
    yield f"rule       {what[found.rule]} at most {_percent(float(found.tolerance))} of the ideal"
    departures = found.departures
    yield f"           published {_percent(departures['published'])}, estimated {_percent(departures['estimated'])}"
    how = f"standard error {chance.standard_error:.2g}" if chance.standard_error else "by formula"
    yield (
        f"chance     {chance.value:.6g} that the true populations meet it ({how}; certainly {chance.lower:.6g} to "
        f"{chance.upper:.6g})"
    )
    level = _percent(float(found.level))
    if found.tightened is None:
        yield f"tightened  no tolerance of published populations keeps the chance at {level}"
    else:
        yield f"tightened  published populations within {_percent(found.tightened)} keep the chance at {level}"
    yield from notes_text(found)


def _percent(value: float) -> str:
    return f"{100 * value:.4f}".rstrip("0").rstrip(".") + " %"
