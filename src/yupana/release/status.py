"""The status of a release: whether it may be published, told by its plan as much as by its manifest. Public."""

from collections.abc import Mapping
from typing import Any, Final

from yupana.errors import OutputError
from yupana.plan.plan import read_plan

NOT_FOR_RELEASE: Final = "NOT FOR RELEASE"
"""Of what was made of synthetic records without noise, or with a seed."""

CONFIDENTIAL: Final = "CONFIDENTIAL"
"""Of what tells the truth of real records."""

INTERNAL: Final = "it was made with --internal and tells the truth about records that may be real"
"""The reason that makes an output CONFIDENTIAL."""

WITH_TRUTH: Final = "it compares with the truth"
"""The reason against a release of what tells errors."""

PUBLIC_SPINE: Final = "public: made of geography, housing units and facilities alone"
MEASURED: Final = "noisy measurements under the plan"
ESTIMATED: Final = "estimates from noisy measurements"


def status_of(manifest: Mapping[str, Any]) -> str:
    """The status of an output, derived from its plan and its reasons; a manifest that says another is refused.

    A plan with a measurement without noise (`Plan.against_release`), and any reason against release, make it
    NOT FOR RELEASE or CONFIDENTIAL. Noise made from a seed can be told by the reasons alone, so this does not show that
    they were taken out (docs/manifest.md).

    Parameters
    ----------
    manifest : mapping
        As `read_manifest` gives it.

    Raises
    ------
    OutputError
        If the status is missing, or better than the plan and the reasons allow; or if the plan is not whole.
    """
    status = manifest.get("status")
    if not isinstance(status, str):
        raise OutputError("the manifest has no status, so nobody can say whether this may be published")
    reasons = [*manifest.get("reasons", ()), *reasons_of_plans(manifest)]
    if reasons and status not in {NOT_FOR_RELEASE, CONFIDENTIAL}:
        raise OutputError(
            f"the status is {status!r}, but must be {NOT_FOR_RELEASE!r}: {'; '.join(dict.fromkeys(reasons))}"
        )
    return status


def reasons_of_plans(manifest: Mapping[str, Any]) -> list[str]:
    """What the plan of a release, those of its parts, and those that estimates were made from say against a release.

    Raises
    ------
    OutputError
        If one is not whole.
    """
    described = [manifest["plan"]] if "plan" in manifest else []
    others = [*manifest.get("sources", ()), *manifest.get("parts", {}).values()]
    described += [other["plan"] for other in others if "plan" in other]
    try:
        return [reason for plan in described for reason in read_plan(plan).against_release]
    except ValueError as error:
        raise OutputError(f"the manifest holds no plan: {error}") from None


def refuse_confidential(manifest: Mapping[str, Any], name: str) -> str:
    """The status of what is to be worked on, unless that is CONFIDENTIAL: nothing public is made of it.

    Raises
    ------
    OutputError
        If it is, or if the status does not follow from the plan.
    """
    try:
        status = status_of(manifest)
    except OutputError as error:
        raise OutputError(f"{name}: {error}") from None
    if status == CONFIDENTIAL:
        raise OutputError(f"{name} is {CONFIDENTIAL}: it tells the truth of real records, and nothing is made of it")
    return status


def refuse_unpublishable(manifest: Mapping[str, Any], name: str) -> str:
    """The status of what is to be published.

    Raises
    ------
    OutputError
        If it is NOT FOR RELEASE or CONFIDENTIAL, or does not follow from the plan.
    """
    status = refuse_confidential(manifest, name)
    if status == NOT_FOR_RELEASE:
        why = "; ".join(manifest.get("reasons", ())) or "its manifest says so"
        raise OutputError(f"{name} is {NOT_FOR_RELEASE} and cannot be published: {why}")
    return status
