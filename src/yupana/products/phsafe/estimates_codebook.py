"""What the tables of estimates from PHSafe's measurements, their columns and codes are called."""

from collections.abc import Iterable, Iterator
from fractions import Fraction

from yupana.products.codebook import Described, Label, Value
from yupana.products.phsafe.shells import ITERATION_LABELS, SHELLS, area_name, line_labels, nation_name

_PARTS = {"": "", "_NUM": " of the numerator", "_DENOM": " of the denominator"}


def describe_estimates(table: str, states: Iterable[str], confidence: Fraction) -> Described:
    """The title of a table of estimates, and its columns.

    Parameters
    ----------
    table : str
        A final table such as ``PH1``, a file of the Bureau's such as ``PH1_state_trunc_normal``, or ``estimates``.
    states : iterable of str
        FIPS codes of those estimated.
    confidence : Fraction
        Of the intervals.
    """
    states = tuple(states)
    nation, percent = nation_name(states), f"{float(100 * confidence):g} %"
    columns = dict(_numbers(percent)) | dict(_groups(nation, states))
    if table == "estimates":
        columns["DATA_CELL"] = Label("Line", "Of the table that TABLE names, counted from 1.", "integer")
        return "Every estimate, unrounded", columns
    name, _, kind = table.partition("_")
    shell = next(shell for shell in SHELLS if shell.name == name)
    lines: dict[Value, str] = dict(line_labels(shell).items())
    columns["DATA_CELL"] = Label("Line", "Of the table, counted from 1.", "integer", lines)
    return shell.title + (", with the columns of the Census Bureau's files" if kind else ""), columns


def _groups(nation: str, states: tuple[str, ...]) -> Iterator[tuple[str, Label]]:
    areas: dict[Value, str] = {"1": nation, **{state: area_name("STATE", state, nation) for state in states}}
    code = "1 where REGION_TYPE is USA, else the FIPS code of a state."
    yield "TABLE", Label("Table", "A final table of the release.")
    yield "REGION_ID", Label("Area", code, values=areas)
    yield (
        "GEOID",
        Label("Area", "01 where REGION_TYPE is USA, as the Bureau has it; else a state's FIPS code."),
    )
    yield "REGION_TYPE", Label("Kind of area", values={"USA": nation, "STATE": "State"})
    yield "AREA", Label("Name of the area")
    yield "ITERATION_CODE", Label("Race and ethnicity iteration", values=dict(ITERATION_LABELS.items()))
    yield "ITERATION", Label("Name of the iteration")
    yield "LABEL", Label("Name of the line")
    yield "DEPTH", Label("Depth", "How many lines this one is indented under.", "integer")
    yield "MEASURE", Label("Measure", values={"count": "A count", "average": "An average: a ratio of counts"})


def _numbers(percent: str) -> Iterator[tuple[str, Label]]:
    interval = f"end of the credible interval of {percent}"
    for suffix, of in _PARTS.items():
        yield f"COUNT_NOISY{suffix}", Label(f"Noisy count{of}", type="integer")
        yield f"VARIANCE{suffix}", Label(f"Variance of the noise{of}", type="number")
        yield f"MOE_NOISY{suffix}", Label(f"Margin of error of the noise{of}", f"At {percent}.", "number")
    for name in ("PRED", "ESTIMATE", "RATIO_PRED"):
        yield name, Label("Estimate", "Posterior mean.", "number")
    for name in ("PRED_LO", "LOWER", "RATIO_PRED_LO"):
        yield name, Label(f"Lower {interval}", type="number")
    for name in ("PRED_HI", "UPPER", "RATIO_PRED_HI"):
        yield name, Label(f"Upper {interval}", type="number")
    yield "NOISY", Label("Noisy value", "Of the measurements, without an estimate.", "number")
    yield "RATIO_NOISY", Label("Noisy ratio", "Of the noisy counts.", "number")
    yield "PRED_NUM", Label("Estimate of the numerator", "Posterior mean.", "number")
    yield "PRED_DENOM", Label("Estimate of the denominator", "Posterior mean.", "number")
