"""What one column of a unit's records costs: how far tables move when it alone changes.

The theorem and its proof are in docs/tables-privacy.md, "What one column costs". Public: nothing here sees a record.
"""

from collections.abc import Iterator
from fractions import Fraction
from functools import partial

from yupana.plan.measurement import Measurement
from yupana.plan.plan import Plan
from yupana.privacy.exact import Budget
from yupana.products.described.description import DescribedLevel, DescribedTable, Description
from yupana.products.described.footprints import footprints
from yupana.products.described.stability import Move, sifting_columns, sorting_columns
from yupana.products.described.tables import coarsest_name, total_name


def column_losses(description: Description, plan: Plan) -> Iterator[tuple[str, Budget]]:
    """Of each column of the unit's file and those below it, ``file.column``, the most that is lost where it changes.

    The column alone may change, in any way in all records of its file that are the unit's; all else stays. A response
    is one column, and so is the block.

    Parameters
    ----------
    description : Description
    plan : Plan
        Of the description.
    """
    measured = {
        f"{what}/{level.name}": (table, level)
        for table in description.tables
        for level in table.levels
        for what in (table.name, coarsest_name(table), total_name(table))
    }
    of = {m.name: footprints(description, *measured[m.name]) for m in plan.measurements}

    def distance(name: str, m: Measurement) -> Fraction:
        move = column_move(description, *measured[m.name], name)
        if move is None:
            return Fraction(0)
        return min(Fraction(move.unbounded(of[m.name], m.mechanism.power)[0]), m.proven.bounded)

    for name, (file, column) in description.attributes.items():
        if description.unit in description.chain(file):
            yield f"{file}.{column}", plan.loss(partial(distance, name))


def column_move(description: Description, table: DescribedTable, level: DescribedLevel, name: str) -> Move | None:
    """Which records appear and disappear in a table when a column of a unit's records changes; None if none does.

    Parameters
    ----------
    description : Description
    table : DescribedTable
    level : DescribedLevel
    name : str
        The column as joins call it, of the unit's file or one below it.
    """
    unit, limit, file = description.unit, table.limit, description.attributes[name][0]
    if file not in description.chain(table.counts):
        return None
    sorts = name in sorting_columns(description, table, level)
    sifts = name in sifting_columns(description, table)
    # A limit keeps the first by a hash of the records' own fields.
    orders = limit is not None and file == table.counts and name in description.columns
    if not (sorts or sifts or orders):
        return None
    most = limit.most if limit is not None and table.counts != unit else 1
    if not (sorts or orders) and file == unit and (limit is None or limit.per == unit):
        return Move(most, None, None, alone=False)
    # Without a limit, or where it keeps the same records, each stands against itself.
    kept = description.chain(limit.per if limit is not None and (sifts or orders) else table.counts)
    shared = frozenset(other for other, (of, _) in description.attributes.items() if of in kept and other != name)
    return Move(most, shared, None, alone=False)
