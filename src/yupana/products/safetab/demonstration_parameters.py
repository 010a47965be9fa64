"""A parameter folder for demonstrations: codes as `synth` writes them, iterations made by rule, the budgets of 2020.

The numbers of the codes are those of the 2020 Census. Which groups there are, what they are called and how they are
grouped is ours, much simpler than the lists of the Census Bureau and no substitute for them. Public.
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from yupana.products.safetab.configuration import config_document, production_config
from yupana.products.safetab.iterations import CONFIG
from yupana.products.safetab.regions import US, Run
from yupana.products.safetab.specification import QUESTIONS


@dataclass(frozen=True, slots=True)
class Region:
    """A regional group and its detailed groups.

    Attributes
    ----------
    name : str
        Empty where codes are in detailed groups only, or in none.
    detailed : mapping of name to codes
        Codes and ranges of codes, ends included. Those of an asterisked name are shown for the nation and states only.
    others : str
        Codes of the region that are in no detailed group.
    """

    name: str
    detailed: Mapping[str, str]
    others: str = ""


RACES: Final = (
    Region(
        "European",
        {
            "English": "1121", "German": "1171-1175", "Irish": "1201", "Italian": "1206-1208", "Polish": "1286",
            "French": "1156", "Scottish": "1320", "Norwegian": "1280", "Swedish": "1355", "Russian": "1305",
            "Portuguese": "1290-1292", "Dutch": "1115", "Greek": "1185", "Ukrainian": "1375", "Hungarian": "1190",
            "Danish": "1110", "Welsh": "1385", "Czech": "1100", "Armenian": "1025", "Belgian*": "1050-1051",
            "Carpatho-Rusyn*": "1075-1077", "Cypriot*": "1095-1096", "Faroese*": "1140",
        },
        "1070-1072 1130-1135 1139 1310-1312",
    ),
    Region("Middle Eastern or North African", {"Lebanese": "7151", "Iranian": "7091", "Egyptian": "7071-7072"}),
    Region("Other White", {"French Canadian": "1775"}, "1000-1001 1770"),
    Region(
        "Sub-Saharan African",
        {
            "Nigerian": "3236-3238", "Ethiopian": "3166", "Somali": "3266", "Ghanaian": "3180", "Liberian": "3200",
            "Congolese": "3145",
        },
        "3100 3404",
    ),
    Region(
        "Caribbean",
        {
            "Jamaican": "3446", "Haitian": "3441", "Trinidadian and Tobagonian": "3465", "Barbadian": "3420",
            "U.S. Virgin Islander*": "3470-3472",
        },
        "3405",
    ),
    Region("Other Black or African American", {"African American": "3011 3015-3016"}, "3000-3003 3020"),
    Region(
        "American Indian",
        {
            "Cherokee": "5599-5617", "Navajo": "5999", "Choctaw": "5689-5690", "Apache": "5514",
            "Chippewa": "5649-5673", "Blackfeet": "5536", "Lumbee": "5922", "Iroquois": "5863",
            "Muscogee (Creek)": "5735-5747", "Pueblo": "6164-6186", "Menominee": "5948", "Sioux": "6300-6318",
            "Paiute": "6043-6063", "Puget Sound Salish*": "6189-6210", "Pomo*": "6117-6141", "Kumeyaay*": "5771-5784",
        },
        "5500 5786-5811",
    ),
    Region(
        "Alaska Native",
        {
            "Yup'ik": "5410-5483", "Inupiat": "5220-5266", "Tlingit": "5320-5342", "Aleut": "5120-5132 5134-5173",
            "Alaskan Athabascan*": "5020-5089",
        },
    ),
    Region(
        "Other American Indian",
        {"Canadian Indian*": "6500-6563 6565-6696", "Mexican Indian": "6843-6880 6914"},
        "6800-6822 6915-6941",
    ),
    Region(
        "East Asian",
        {
            "Chinese": "4020-4026", "Korean": "4050", "Japanese": "4040-4043", "Hmong": "4080", "Taiwanese": "4070",
        },
    ),
    Region(
        "South Asian",
        {"Asian Indian": "4220", "Pakistani": "4290", "Bangladeshi": "4240", "Nepalese": "4280", "Punjabi*": "4224"},
        "4223",
    ),
    Region(
        "Southeast Asian",
        {
            "Filipino": "4450", "Vietnamese": "4520-4523", "Cambodian": "4440", "Laotian": "4470", "Thai": "4510",
            "Burmese": "4420", "Indonesian": "4460",
        },
    ),
    Region("Central Asian", {"Afghan": "4160"}),
    Region("Other Asian", {}, "4000-4003 4790"),
    Region("Polynesian", {"Native Hawaiian": "7530-7532", "Samoan": "7550", "Tongan": "7561"}),
    Region(
        "Micronesian", {"Chamorro": "7615-7616", "Marshallese": "7641-7649", "Chuukese": "7620", "Palauan*": "7665"}
    ),
    Region("Melanesian", {"Fijian": "7711"}),
    Region(
        "",
        {
            "Brazilian": "8060", "Cabo Verdean": "8080", "Guyanese": "8140-8141", "Belizean": "8040",
            "Multiracial*": "8540 8570",
        },
        "5000 7500-7503 7805 8000-8004 8090",
    ),
)  # fmt: skip
"""Race groups. Codes under the empty name are in no regional group, such as boxes of a whole major group."""

ORIGINS: Final = (
    Region("", {"Mexican": "2010"}, "2058-2096"),
    Region(
        "Central American",
        {
            "Salvadoran": "2151", "Guatemalan": "2110", "Honduran": "2120", "Nicaraguan": "2130", "Panamanian": "2140",
            "Costa Rican": "2100",
        },
        "2160-2164 2169-2174",
    ),
    Region(
        "South American",
        {
            "Colombian": "2231", "Ecuadorian": "2240", "Peruvian": "2260", "Venezuelan": "2275", "Argentinean": "2200",
            "Chilean": "2220", "Bolivian": "2210",
        },
        "2280-2296",
    ),
    Region("Caribbean Hispanic", {"Puerto Rican": "2330", "Cuban": "2310", "Dominican": "2321"}, "2300-2304"),
    Region("Other Hispanic", {"Spaniard": "2400", "Latino*": "2620"}, "2002 2790"),
)  # fmt: skip
"""Hispanic origins, which also are answers to the question on race; there they are in no group."""

NOT_HISPANIC: Final = 9950


def codes_of(text: str) -> tuple[int, ...]:
    """Codes of a text such as ``1130-1135 1139``."""
    ends = [(part.partition("-")[0], part.rpartition("-")[2]) for part in text.split()]
    return tuple(code for first, last in ends for code in range(int(first), int(last) + 1))


@dataclass(frozen=True, slots=True)
class _Group:
    """A group of codes: regional or detailed, of race or of origin."""

    name: str
    level: int
    detailed_only: bool
    codes: tuple[int, ...]


def _groups(regions: tuple[Region, ...]) -> Iterator[_Group]:
    for region in regions:
        detailed = [
            _Group(name.removesuffix("*"), 2, name.endswith("*"), codes_of(codes))
            for name, codes in region.detailed.items()
        ]
        within = tuple(code for group in detailed for code in group.codes)
        if region.name:
            yield _Group(region.name, 1, False, (*within, *codes_of(region.others)))  # noqa: FBT003 (a plain row)
        yield from detailed


def _named_codes() -> dict[int, str]:
    """Every code with a name made from that of its group."""
    named = {NOT_HISPANIC: "Not Hispanic, Latino, or Spanish"}
    for region in (*RACES, *ORIGINS):
        for name, codes in region.detailed.items():
            first, *more = codes_of(codes)
            named[first] = name.removesuffix("*")
            named |= {code: f"{named[first]}, answer {code}" for code in more}
        named |= {code: f"{region.name or 'Other'}, answer {code}" for code in codes_of(region.others)}
    return dict(sorted(named.items()))


def write_parameters(folder: Path) -> None:
    """Write a parameter folder for both products: US pass, budgets and thresholds of 2020."""
    folder.mkdir()
    races = [(group, alone) for alone in (True, False) for group in _groups(RACES)]
    origins = list(_groups(ORIGINS))
    race_rows, members = [], []
    for number, (group, alone) in enumerate(races, 1001):
        kind = "alone" if alone else "alone or in any combination"
        race_rows.append((number, f"{group.name} {kind}", group.level, alone, group.detailed_only, False))
        members += [(number, code) for code in group.codes]
    origin_rows = []
    for number, group in enumerate(origins, 3001):
        origin_rows.append((number, group.name, group.level, group.detailed_only, False))
        members += [(number, code) for code in group.codes]
    flags = ("DETAILED_ONLY", "COARSE_ONLY")
    files = {
        "race-and-ethnicity-codes": (("RACE_ETH_CODE", "RACE_ETH_NAME"), _named_codes().items()),
        "race-characteristic-iterations": (
            ("ITERATION_CODE", "ITERATION_NAME", "LEVEL", "ALONE", *flags),
            race_rows,
        ),
        "ethnicity-characteristic-iterations": (("ITERATION_CODE", "ITERATION_NAME", "LEVEL", *flags), origin_rows),
        "race-and-ethnicity-code-to-iteration": (("ITERATION_CODE", "RACE_ETH_CODE"), members),
    }
    for name, (header, rows) in files.items():
        lines = ["|".join(header), *("|".join(map(str, row)) for row in rows)]
        (folder / f"{name}.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
    (folder / CONFIG).write_text(json.dumps(_config(), indent=1) + "\n", encoding="utf-8")


def _config() -> dict[str, object]:
    """config.json of both products."""
    runs: tuple[Run, ...] = (US,)
    return {key: of for product in QUESTIONS for key, of in config_document(production_config(product, runs)).items()}
