"""Dictionaries of an invented census in every kind, all of the same items, and broken copies of them."""

import json
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

CSPRO_TEXT = """[Dictionary]
Version=CSPro 7.7
Label=Isle census|Recensement
Name=ISLE
RecordTypeStart=1
RecordTypeLen=1
Positions=Relative
ZeroFill=Yes
DecimalChar=Yes

[Languages]
EN=English
FR=Francais

[Level]
Label=Questionnaire
Name=QUEST

[IdItems]

[Item]
Label=Province
Name=PROVINCE
Start=2
Len=2
ZeroFill=Yes

[ValueSet]
Label=Province
Name=PROVINCE_VS1
Value=1;North|Nord
Value=12;South; and east

[Item]
Label=District
Name=DISTRICT
Start=4
Len=2

[ValueSet]
Name=DISTRICT_VS1
Value=1:3

[Item]
Label=Household number
Name=HH
Start=6
Len=3

[Record]
Label=Dwelling record
Name=DWELLING
RecordTypeValue='D'
RecordLen=14

[Item]
Label=Rooms
Name=ROOMS
Start=9
Len=2

[ValueSet]
Name=ROOMS_VS1
Value=0:20

[Item]
Label=Area
Name=AREA
Start=11
Len=4
Decimal=1
DecimalChar=Yes

[Record]
Label=Person record
Name=PERSON
RecordTypeValue='P'
MaxRecords=30
RecordLen=24

[Item]
Label=Sex
Name=SEX
Start=9
Len=1

[ValueSet]
Name=SEX_VS1
Value=1;Male
Value=2;Female

[Item]
Label=Age
Name=AGE
Start=10
Len=2

[ValueSet]
Label=Years
Name=AGE_VS1
Value=0:98
Value=99;Not stated
Name=MISSING,Special

[ValueSet]
Label=Groups
Name=AGE_VS2
Value=0:14;Child
Value=15:64;Adult
Value=65:98;Old

[Item]
Label=Occupation
Name=OCC
Start=12
Len=3

[ValueSet]
Name=OCC_VS1
Value=100 110:112;Farm
Value=200;Trade
Value='   ';Not applicable
Name=NOTAPPL,Special

[Item]
Label=Major group
Name=OCC_MAJOR
Start=12
Len=1
ItemType=SubItem

[ValueSet]
Name=OCC_MAJOR_VS1
Value=1;Farm
Value=2;Trade

[Item]
Label=Phones
Name=PHONE
Start=15
Len=2
Occurrences=3

[ValueSet]
Name=PHONE_VS1
Value=0:9

[Item]
Label=Letter
Name=LETTER
Start=21
Len=1
DataType=Alpha

[ValueSet]
Name=LETTER_VS1
Value='a';Lower
Value='B';Upper

[Item]
Label=Name
Name=NAME
Start=22
Len=3
DataType=Alpha
"""


def _values(*told: tuple[Any, str] | tuple[Any, str, str]) -> list[dict[str, Any]]:
    found = []
    for of, label, *special in told:
        pairs = [{"range": list(one)} if isinstance(one, tuple) else {"value": one} for one in of]
        found.append({"labels": [{"text": label}], "pairs": pairs, **({"special": special[0]} if special else {})})
    return found


def _item(name: str, label: str, length: int, *values: Any, **more: Any) -> dict[str, Any]:  # noqa: ANN401
    sets = [{"name": of, "labels": [{"text": text}] if text else [], "values": some} for of, text, some in values]
    found = {"name": name, "labels": [{"text": label, "language": "EN"}], "contentType": "numeric", "length": length}
    return found | ({"valueSets": sets} if sets else {}) | more


def cspro_json() -> dict[str, Any]:
    """The same dictionary as version 8 writes it, where items have no start."""
    province = [("PROVINCE_VS1", "Province", _values((["1"], "North"), (["12"], "South; and east")))]
    phone = [("PHONE_VS1", "", _values(([("0", "9")], "")))]
    return {
        "software": "CSPro",
        "version": 8.0,
        "fileType": "dictionary",
        "name": "ISLE",
        "labels": [{"text": "Isle census", "language": "EN"}, {"text": "Recensement", "language": "FR"}],
        "recordType": {"start": 1, "length": 1},
        "defaults": {"decimalMark": True, "zeroFill": True},
        "relativePositions": True,
        "levels": [
            {
                "name": "QUEST",
                "labels": [{"text": "Questionnaire"}],
                "ids": {
                    "items": [
                        _item("PROVINCE", "Province", 2, *province, start=2),
                        _item("DISTRICT", "District", 2, ("DISTRICT_VS1", "", _values(([("1", "3")], ""))), start=4),
                        _item("HH", "Household number", 3, start=6),
                    ]
                },
                "records": [
                    {
                        "name": "DWELLING",
                        "labels": [{"text": "Dwelling record"}],
                        "recordType": "D",
                        "occurrences": {"required": True, "maximum": 1},
                        "length": 14,
                        "items": [
                            _item("ROOMS", "Rooms", 2, ("ROOMS_VS1", "", _values(([("0", "20")], "")))),
                            _item("AREA", "Area", 4, decimals=1, decimalMark=True),
                        ],
                    },
                    {
                        "name": "PERSON",
                        "labels": [{"text": "Person record"}],
                        "recordType": "P",
                        "occurrences": {"required": False, "maximum": 30},
                        "length": 24,
                        "items": [
                            _item("SEX", "Sex", 1, ("SEX_VS1", "", _values((["1"], "Male"), (["2"], "Female")))),
                            _item(
                                "AGE", "Age", 2,
                                ("AGE_VS1", "Years", _values(([("0", "98")], ""), (["99"], "Not stated", "MISSING"))),
                                ("AGE_VS2", "Groups", _values(
                                    ([("0", "14")], "Child"), ([("15", "64")], "Adult"), ([("65", "98")], "Old"))),
                            ),
                            _item("OCC", "Occupation", 3, ("OCC_VS1", "", _values(
                                (["100", ("110", "112")], "Farm"), (["200"], "Trade"),
                                (["   "], "Not applicable", "NOTAPPL")))),
                            _item(
                                "OCC_MAJOR", "Major group", 1,
                                ("OCC_MAJOR_VS1", "", _values((["1"], "Farm"), (["2"], "Trade"))),
                                subitem=True, subitemOffset=0,
                            ),
                            _item("PHONE", "Phones", 2, *phone, occurrences={"maximum": 3}),
                            _item("PICTURE", "Picture", 0, contentType="image"),
                            _item("LETTER", "Letter", 1, ("LETTER_VS1", "", _values(
                                (["a"], "Lower"), (["B"], "Upper"))), contentType="alpha"),
                            _item("NAME", "Name", 3, contentType="alpha"),
                        ],
                    },
                ],
            }
        ],
    }  # fmt: skip


DDI = """<?xml version="1.0" encoding="UTF-8"?>
<codeBook version="2.5" xmlns="ddi:codebook:2_5">
 <stdyDscr><citation><titlStmt><titl>Isle census</titl></titlStmt></citation></stdyDscr>
 <fileDscr ID="F1"><fileTxt><fileName>isle.dat</fileName>
  <fileStrc type="hierarchical">
   <recGrp keyvar="SERIAL" recidvar="RECTYPE" rectype="P"><labl>Person Record</labl></recGrp>
   <recGrp recidvar="RECTYPE" rectype="H"><labl>Household Record</labl></recGrp>
  </fileStrc><fileType charset="ISO-8859-1">text</fileType></fileTxt></fileDscr>
 <dataDscr>
  <var name="RECTYPE" files="F1" rectype="H P" dcml="0"><location StartPos="1" EndPos="1" width="1"/>
   <catgry><catValu>H</catValu></catgry><catgry><catValu>P</catValu></catgry><varFormat type="character"/></var>
  <var name="SERIAL" files="F1" rectype="H P"><location StartPos="2" EndPos="6" width="5"/>
   <varFormat type="numeric"/></var>
  <var name="REGION" files="F1" rectype="H" intrvl="discrete"><location StartPos="7" EndPos="8" width="2"/>
   <labl>Region</labl><catgry><catValu>01</catValu><labl>North</labl></catgry>
   <catgry><catValu>12</catValu><labl>South</labl></catgry><varFormat type="numeric"/></var>
  <var name="SEX" files="F1" rectype="P" intrvl="discrete"><location StartPos="7" width="1"/>
   <labl>Sex</labl><catgry><catValu>1</catValu><labl>Male</labl></catgry>
   <catgry><catValu>2</catValu><labl>Female</labl></catgry>
   <catgry missing="Y"><catValu>9</catValu><labl>Unknown</labl></catgry><varFormat type="numeric"/></var>
  <var name="AGE" files="F1" rectype="P" intrvl="contin"><location StartPos="8" EndPos="10" width="3"/>
   <valrng><range min="0" max="115"/></valrng><varFormat type="numeric"/></var>
  <var name="WEIGHT" files="F1" rectype="P" intrvl="contin" dcml="2"><location StartPos="11" EndPos="16"/>
   <catgry><catValu>0</catValu><labl>None</labl></catgry><varFormat type="numeric"/></var>
 </dataDscr>
</codeBook>
"""

PACKAGE: dict[str, Any] = {
    "name": "isle",
    "title": "Isle census",
    "resources": [
        {
            "name": "households",
            "path": "data/households.csv",
            "schema": {
                "fields": [
                    {"name": "hid", "type": "integer"},
                    {
                        "name": "region",
                        "title": "Region",
                        "type": "string",
                        "categories": [{"value": "N", "label": "North"}, {"value": "S", "label": "South"}],
                        "constraints": {"required": True},
                    },
                    {"name": "owned", "type": "boolean"},
                ],
                "primaryKey": "hid",
            },
        },
        {
            "name": "persons",
            "path": ["data/persons.csv"],
            "schema": {
                "missingValues": ["", "NA"],
                "fields": [
                    {"name": "hid", "type": "integer"},
                    {"name": "sex", "type": "string", "constraints": {"enum": ["f", "m"], "required": True}},
                    {"name": "age", "type": "integer", "constraints": {"minimum": 0, "maximum": "115"}},
                    {"name": "grade", "type": "string", "constraints": {"pattern": "^(A|B|C)$"}},
                    {"name": "income", "type": "number"},
                ],
                "foreignKeys": [{"fields": "hid", "reference": {"resource": "households", "fields": ["hid"]}}],
            },
        },
    ],
}

CSVW: dict[str, Any] = {
    "@context": "http://www.w3.org/ns/csvw",
    "tables": [
        {
            "url": "households.csv",
            "tableSchema": {
                "columns": [
                    {"name": "hid", "titles": "hid"},
                    {
                        "name": "region",
                        "titles": {"en": ["Region"]},
                        "datatype": {"base": "string", "format": "^(01|02)$"},
                        "required": True,
                    },
                ],
                "primaryKey": "hid",
            },
        },
        {
            "url": "persons.csv",
            "null": ["NA"],
            "tableSchema": {
                "columns": [
                    {"name": "hid"},
                    {"name": "age", "datatype": {"base": "integer", "minimum": "0", "maximum": "115"}},
                    {"name": "alive", "datatype": {"base": "boolean", "format": "Y|N"}},
                    {"name": "aboutUrl", "virtual": True},
                ],
                "foreignKeys": [
                    {"columnReference": "hid", "reference": {"resource": "households.csv", "columnReference": "hid"}}
                ],
            },
        },
    ],
}

CODES = """Variable;Value;Label;Variable Label
SEX;1;Male;Sex
;2;Female
AGE;0-14;Child;Age
AGE;15-98;Grown
REGION;01;North;Region
REGION;02;South
"""


def write_all(folder: Path) -> dict[str, Path]:
    """Write all kinds that are text, by name."""
    texts = {
        "text.dcf": CSPRO_TEXT,
        "json.dcf": json.dumps(cspro_json(), indent=1),
        "ddi.xml": DDI,
        "datapackage.json": json.dumps(PACKAGE),
        "csvw.json": json.dumps(CSVW),
        "codes.csv": CODES,
    }
    for name, text in texts.items():
        (folder / name).write_text(text, encoding="utf-8")
    return {name: folder / name for name in texts}


_PIECES = [
    *(b'"', b"{", b"}", b"[", b"]", b",", b"0", b"-1", b"99999999999", b"null", b"true", b"1e308", b"\n", b"\xff"),
    *(b"\x00", b"=", b";", b"'", b":", b"<", b">", b"&", b"|", b"\\u0000", b"\\ud800", b"1:999999999", b"[Item]\n"),
    *(b"[ValueSet]\n", b"[Level]\n", b"Len=9999\n", b"Occurrences=9999\n", b"\xe2\x80\xae", b"<var/>", b"<!DOCTYPE x>"),
]


def mutations(data: bytes, rng: Random, number: int) -> Iterator[bytes]:
    """Copies with a few bytes changed, pieces put in, cut out, or written twice."""
    for _ in range(number):
        changed = bytearray(data)
        for _ in range(rng.choice([1, 1, 2, 3, 8])):
            at, length = rng.randrange(len(changed) + 1), rng.choice([1, 5, 50, 400])
            way = rng.randrange(4)
            if way == 0:
                changed[at : at + 1] = bytes([rng.randrange(256)])
            elif way == 1:
                changed[at:at] = rng.choice(_PIECES)
            elif way == 2:
                del changed[at : at + length]
            else:
                changed[at:at] = changed[at : at + length]
        yield bytes(changed)
