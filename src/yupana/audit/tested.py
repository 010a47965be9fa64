"""What errors on synthetic records tell of the acceptance criteria of releases of the same plan."""

from collections.abc import Mapping, Sequence
from typing import Any

from yupana.errors import OutputError
from yupana.plan.read import read_plan
from yupana.products.described.criteria import TESTED, untested
from yupana.release.processing import ACCURACY
from yupana.release.status import NOT_FOR_RELEASE, refuse_confidential


def is_test(manifest: Mapping[str, Any]) -> bool:
    """Whether a manifest is that of a folder of `accuracy`."""
    return str(manifest.get("product")).endswith(ACCURACY)


def with_tests(manifests: Sequence[tuple[str, Mapping[str, Any]]]) -> list[tuple[str, Mapping[str, Any]]]:
    """Of releases and tests the releases, with what the tests found of their criteria.

    Where it tells a test a manifest is NOT FOR RELEASE, as a test reads true counts.

    Parameters
    ----------
    manifests : sequence of (str, mapping)
        What each is called, and its manifest.

    Raises
    ------
    OutputError
        If a test is CONFIDENTIAL or tests no criteria, or no release has its plan and its criteria.
    """
    found = [(name, manifest) for name, manifest in manifests if not is_test(manifest)]
    for name, test in manifests:
        if not is_test(test):
            continue
        refuse_confidential(test, name)
        if not test.get("criteria") or "tested_plan" not in test:
            raise OutputError(f"{name} is no release, and tests no acceptance criteria of one")
        same = [_same(manifest, test) for _, manifest in found]
        if not any(same):
            raise OutputError(
                f"{name} tests acceptance criteria; name the release beside it that has the same plan and criteria"
            )
        found = [
            (release, _with_test(manifest, test) if is_same else manifest)
            for (release, manifest), is_same in zip(found, same, strict=True)
        ]
    return found


def _with_test(manifest: Mapping[str, Any], test: Mapping[str, Any]) -> dict[str, Any]:
    reasons = dict.fromkeys((*manifest.get("reasons", ()), TESTED))
    return {**manifest, "criteria": test["criteria"], "status": NOT_FOR_RELEASE, "reasons": list(reasons)}


def _same(manifest: Mapping[str, Any], test: Mapping[str, Any]) -> bool:
    if "plan" not in manifest or untested(manifest.get("criteria", {})) != untested(test["criteria"]):
        return False
    try:
        return read_plan(manifest["plan"]) == read_plan(test["tested_plan"])
    except ValueError:
        return False
