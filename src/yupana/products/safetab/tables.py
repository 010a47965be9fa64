"""The published tables of SafeTab, from noisy groups."""

from collections.abc import Iterable

from yupana.plan.plan import Plan
from yupana.products.safetab.regions import REGION_TYPES
from yupana.products.safetab.specification import FAMILIES
from yupana.products.tables import Groups, lay_out
from yupana.release.rows import RowTable


def published_tables(groups: Iterable[Groups], plan: Plan) -> list[RowTable]:
    """Lay out the tables of the product that a plan is of.

    Where negative counts are not allowed, the cells were set to zero before they are added up here.

    Parameters
    ----------
    groups : iterable of Groups
    plan : Plan
        Of SafeTab-P or SafeTab-H.
    """
    return lay_out(FAMILIES[plan.product], groups, plan, [region.name for region in REGION_TYPES])
