"""What can be asked of areas: kinds, areas and counts of a release, and the rows of its tables by area. Public."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from yupana.errors import ConfigError
from yupana.estimate.areas.queries import open_parts
from yupana.estimate.areas.released_areas import ReleasedAreas, released_areas
from yupana.estimate.intervals.counted import counted_in
from yupana.estimate.topdown_release import schema_of
from yupana.files.arrow import ArrowTable
from yupana.geography.gazetteer import NAME_COLUMNS, NamedArea
from yupana.products.topdown.tables import levels_of
from yupana.release.release import ReleaseFolder
from yupana.topdown.queries import DETAILED, TOTAL

GEOUNIT, LEVEL, CODE = "geounit", "SUMLEV", "GEOCODE"


@dataclass(frozen=True, slots=True, eq=False)
class AreaList:
    """The areas of a release of TopDown. Made by `areas`.

    Attributes
    ----------
    areas : ReleasedAreas
        Of a release of several parts those of the first: all have the same blocks.
    parts : tuple of ReleaseFolder
        The release, or its parts.
    """

    areas: ReleasedAreas
    parts: tuple[ReleaseFolder, ...]

    @property
    def kinds(self) -> dict[str, int]:
        """How many areas each kind has."""
        return {kind: len(codes) for kind, codes in self.areas.gazetteer.codes.items()}

    @property
    def queries(self) -> dict[str, str]:
        """What can be counted of an area, each with what it means."""
        found: dict[str, str] = {}
        for part in self.parts:
            found |= self._queries_of(part)
        return found

    def _queries_of(self, part: ReleaseFolder) -> dict[str, str]:
        words = counted_in(schema_of(part)[0])
        alone = len(self.parts) == 1
        found = {TOTAL: "everybody or everything that is counted"} if alone else {}
        for one in words.schema.attributes:
            found[f"{one.name}[{one.name}=...]"] = ", ".join(one.labels)
        if len(words.schema.attributes) > 1 and alone:
            names = ", ".join(f"{one.name}=..." for one in words.schema.attributes)
            found[f"{DETAILED}[{names}]"] = "one cell of all attributes"
        for table in words.tables:
            found[table.name] = f"all its variables, {table.variables[0]} to {table.variables[-1]}, or one by its name"
        return found

    def find(self, area: str) -> NamedArea:
        """Find an area by KIND=CODE or KIND=NAME, such as ``place=1714000`` or ``place=Chicago``.

        Returns
        -------
        NamedArea
            With ``kind``, ``code`` and ``name``.

        Raises
        ------
        ConfigError
            If none is meant, or several.
        """
        return self.areas.gazetteer.find(area)

    def table(self, kind: str | None = None) -> ArrowTable:
        """Tabulate areas: kind, code, name, land and water in square metres, latitude and longitude.

        Parameters
        ----------
        kind : str, optional
            All if not given.

        Raises
        ------
        ConfigError
            If there is no such kind.
        """
        gazetteer = self.areas.gazetteer
        known = [row for one in ([kind] if kind else gazetteer.kinds) for row in gazetteer.known(one)]
        texts = {
            NAME_COLUMNS[0]: [area.kind for area, _ in known],
            NAME_COLUMNS[1]: [area.code for area, _ in known],
            NAME_COLUMNS[2]: [area.name for area, _ in known],
        }
        numbers = {
            name: [float(text) if (text := getattr(one, name)) else None for _, one in known]
            for name in NAME_COLUMNS[3:]
        }
        return ArrowTable.of(
            {name: ("VARCHAR", values) for name, values in texts.items()}
            | {name: ("DOUBLE", values) for name, values in numbers.items()}
        )

    def rows(self, table: str, area: str) -> ArrowTable:
        """The rows of a table of the release that are of an area.

        Parameters
        ----------
        table : str
            Such as ``tables/P1``, or ``tabulation/place``, which must be of the area's kind.
        area : str
            As of `find`.

        Raises
        ------
        ConfigError
            If no area is meant, or the table has no such areas.
        KeyError, OutputError
            As by `ReleaseFolder.path`.
        """
        found = self.find(area)
        rows = next((part for part in self.parts if table in part), self.parts[0])[table]
        if {LEVEL, CODE} <= set(rows.columns):
            level = levels_of(self.areas.gazetteer.kinds)[found.kind]
            code = found.code[:11] + found.code[12:] if found.kind == "block" else found.code
            return rows.where({LEVEL: level, CODE: code})
        if GEOUNIT not in rows.columns or table.rsplit("/", maxsplit=1)[-1] != found.kind:
            raise ConfigError(f"{table} is no table of {found.kind}")
        return rows.where({GEOUNIT: found.code})


def listed_areas(release: Path, files: Sequence[Path] = ()) -> AreaList:
    """Open the list of the areas of a release; parameters and errors as of `released_areas`."""
    opened, found = open_parts(release)
    parts = tuple(found.values()) or (opened,)
    return AreaList(released_areas(parts[0], files), parts)
