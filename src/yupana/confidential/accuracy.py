"""How far noisy counts are from the truth, whatever the product; refused of records that may be real."""

from pathlib import Path

import yupana
from yupana.confidential.counter import C, Observed
from yupana.confidential.request import RunRequest, check_accuracy_allowed
from yupana.confidential.run import counter_of, product_plan
from yupana.products.product import Product
from yupana.release.check import describe_tables
from yupana.release.folder import new_folder, write_manifest
from yupana.release.status import CONFIDENTIAL, NOT_FOR_RELEASE
from yupana.release.tables import write_table


def accuracy(
    product: Product[C], config: C, data: Path, request: RunRequest | None = None, *, trials: int = 1
) -> Observed:
    """Count records once, measure them ``trials`` times, and compare: how accurate a configuration is.

    Parameters
    ----------
    product : Product
        One of `yupana.products.PRODUCTS`.
    config
        What `product.read` gave.
    data : Path
        The folder of the records: synthetic, or for internal use any.
    request : RunRequest, optional
    trials : int
        Noise is drawn anew in each.

    Raises
    ------
    ConfigError
        If `check_accuracy_allowed` refuses: errors tell the truth, and repeated runs spend the budget each time.
    InputError
        If the records break a rule.
    """
    request = request or RunRequest()
    counter, plan = counter_of(product, request), product_plan(product, config, request)
    check_accuracy_allowed(plan, data, request)
    return counter.observe(config, plan, data, trials, request)


def write_accuracy(observed: Observed, out: Path, request: RunRequest) -> None:
    """Write what was observed and a manifest, which says NOT FOR RELEASE, or CONFIDENTIAL after internal use.

    Raises
    ------
    OutputError
        If ``out`` cannot be used.
    """
    with new_folder(out, overwrite=request.overwrite, private=request.internal) as draft:
        paths = {table.name: write_table(draft, table, "csv") for table in observed.tables}
        write_manifest(
            draft,
            {
                "yupana": yupana.__version__,
                "product": f"{observed.product} accuracy",
                "status": CONFIDENTIAL if request.internal else NOT_FOR_RELEASE,
                **observed.told,
                "tables": describe_tables(paths, list(observed.tables)),
            },
        )
