"""A census written as a Census Edited File."""

from collections import defaultdict
from pathlib import Path

from census_maker import Census, Person, Place, Unit
from refusals import place as place  # noqa: PLC0414
from refusals import refused as refused  # noqa: PLC0414

FILLER = "x"


def person_line(person: Person, state: str, *, pad: str = "0") -> str:
    """91 characters; what PHSafe does not read is filled so that a wrong place would show."""
    line = [FILLER] * 91
    fields = {0: person.RTYPE, 1: person.MAFID, 15: state, 23: person.QAGE.rjust(3, pad), 47: person.CENHISP}
    for start, text in {**fields, 81: person.CENRACE, 85: person.RELSHIP}.items():
        line[start : start + len(text)] = text
    return "".join(line)


def unit_line(unit: Unit, state: str, block: str, *, blank: bool, pad: str = "0") -> str:
    """76 characters, with blanks for zero codes if asked."""
    line = [FILLER] * 76
    codes = {25: unit.HHSPAN, 27: unit.HHRACE, 29: unit.TEN, 59: unit.HHT, 60: unit.HHT2, 62: unit.CPLT}
    if blank:
        codes = {start: " " * len(code) if not int(code) else code for start, code in codes.items()}
    fields = {0: unit.RTYPE, 1: unit.MAFID, 10: state, 17: unit.FINAL_POP.rjust(5, pad), 37: block.ljust(22)}
    for start, text in {**fields, **codes}.items():
        line[start : start + len(text)] = text
    return "".join(line)


def write_cef(
    folder: Path,
    census: Census,
    *,
    blank: bool = True,
    pad: str = "0",
    end: str = "\n",
    last: bool = True,
    folders: tuple[str, str, str] = ("", "", ""),
) -> None:
    """Write a census as CEF files by state, one block of the reference file for each unit."""
    for name in folders:
        (folder / name).mkdir(parents=True, exist_ok=True)
    (folder / "SYNTHETIC").touch()
    state_of = {row.MAFID: row.TABBLKST for row in census.geo}
    persons, units, blocks = (defaultdict[str, list[str]](list) for _ in range(3))
    for person in census.persons:
        persons[state_of[person.MAFID]].append(person_line(person, state_of[person.MAFID], pad=pad))
    place_of = {row.MAFID: row for row in census.geo}
    for unit in census.units:
        row = place_of[unit.MAFID]
        block = f"{unit.MAFID:0>22}"
        units[row.TABBLKST].append(unit_line(unit, row.TABBLKST, block, blank=blank, pad=pad))
        # Other columns and another order: they are found by name.
        blocks[row.TABBLKST].append("|".join(("n/a", *row[2:], block)))
    header = "|".join(("NAME", *Place._fields[2:], "OIDTABBLK"))
    names = ("CEF20_PER_{}.txt", "CEF20_UNIT_{}.txt", "grfc_tab20_{}.txt")
    for sub, name, files in zip(folders, names, (persons, units, blocks), strict=True):
        for state, lines in files.items():
            rows = [header, *lines] if name.startswith("grfc") else lines
            text = end.join(rows) + end * last
            (folder / sub / name.format(state)).write_text(text, encoding="ascii", newline="")
