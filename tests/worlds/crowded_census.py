"""A census with a household of 500 persons, most of them alike."""

from census_maker import Census, Person, Place, Unit, random_census, seeded

STATES = ("06", "17", "48")
GIANT = 500


def crowded(seed: int, units: int, *, breaks_rules: bool = False) -> Census:
    """A census with a household of 500 persons, most of them alike."""
    random = seeded(seed)
    census = random_census(random, STATES, units, breaks_rules=breaks_rules)
    alike = [Person("3", "100000000", "7", "1", "01", "30")] * (GIANT - 1)
    mafid = str(max(int(unit.MAFID) for unit in census.units) + 1)
    people = [Person("3", mafid, "50", "2", "62", "20"), *(one._replace(MAFID=mafid) for one in alike)]
    census.persons += random.sample(people, GIANT)
    census.units.append(Unit("2", mafid, str(GIANT), "97", "2", "62", "4", "3", "07", "5"))
    census.geo.append(Place("2", mafid, "48", "001", "000100", "1000", "1", "1", "1", "99999", "9999"))
    return census
