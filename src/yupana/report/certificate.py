"""The privacy certificate as a page for people who know no mathematics. Its one picture is drawn here, by hand.

A certificate must not need an optional package, so the trade-off curves are not drawn by the charts' renderer.
"""

from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any, Final

from yupana.privacy.exact import read_exact
from yupana.report.html import Html, bullets, code, element, join, paragraph, table
from yupana.report.numbers import loss, percent, power_of_ten, rounded
from yupana.report.page import Page, Section, render
from yupana.report.phsafe import LEVELS, TABLES

PRODUCTS: Final = {
    "phsafe": "S-DHC (PHSafe)",
    "safetab-p": "Detailed DHC-A (SafeTab-P)",
    "safetab-h": "Detailed DHC-B (SafeTab-H)",
}
"""What a release is called."""

_COLOURS: Final = ("#2f6fb0", "#d9982a", "#cf5a1e")
_SHOWN_DELTA: Final = 1e-10
_SHOWN_TYPE_1: Final = 0.05

Certificate = Mapping[str, Any]


def certificate_page(certificate: Certificate) -> str:
    """Lay out a certificate (`yupana.audit.certificate`) as one HTML file that loads nothing."""
    certificate = {**certificate, "attacker": {**certificate["attacker"], "curves": _merged(certificate)}}
    name = PRODUCTS.get(certificate["product"], certificate["product"])
    status, words = _status(certificate)
    return render(
        Page(
            f"Privacy certificate: {name}",
            status,
            words,
            _key_numbers(certificate),
            (
                _in_words(certificate, name),
                _attacker(certificate),
                _guarantee(certificate),
                _parts(certificate),
                _not_protected(certificate),
                *_spare(certificate),
                _identities(certificate),
                _glossary(certificate),
            ),
        )
    )


def _status(certificate: Certificate) -> tuple[str, str]:
    if certificate["status"] == "NOT FOR RELEASE":
        return "NOT FOR RELEASE", f"Reason: {' and '.join(certificate['reasons']) or 'its manifest says so'}."
    return "For publication.", "This page follows from the public plan of the release; no record was read to make it."


def _merged(certificate: Certificate) -> list[dict[str, Any]]:
    """Curves that are the same drawn once, under the words of all."""
    merged: list[dict[str, Any]] = []
    for curve in certificate["attacker"]["curves"]:
        same = next((m for m in merged if m["points"] == curve["points"]), None)
        if same is None:
            merged.append({**curve, "kinds": [curve["neighbours"]]})
        else:
            # "one person record is added", "... is changed": the subject need not be said twice.
            predicate = curve["change"].split(" is ", 1)[-1]
            same["change"] += f", or {predicate}"
            same["kinds"].append(curve["neighbours"])
    return merged


def _key_numbers(certificate: Certificate) -> dict[str, tuple[str, str]]:
    curves = certificate["attacker"]["curves"]
    own = _own(certificate)
    numbers: dict[str, tuple[str, str]] = {}
    if curves:
        curve = next((c for c in curves if certificate["neighbours"] in c["kinds"]), curves[0])
        numbers["Best guess of an attacker"] = (
            f"right {_at_most(curve['best_guess'])} of the time",
            f"at most, whether {curve['change']}; a coin is right 50%",
        )
    if certificate["mechanism"] == "zcdp":
        numbers["Privacy loss ρ promised"] = (_loss(own["promised"], "rho"), own["change"])
        if own["promised"]["epsilon"]:
            row = next(r for r in own["promised"]["epsilon"] if r["delta"] == _SHOWN_DELTA)
            numbers["ε promised"] = (rounded(row["tight"], 4), f"at δ = {power_of_ten(_SHOWN_DELTA)}")
    else:
        numbers["Privacy loss ε promised"] = (_loss(own["promised"], "epsilon"), own["change"])
    return numbers


def _own(certificate: Certificate) -> Mapping[str, Any]:
    found: Mapping[str, Any] = next(g for g in certificate["guarantee"] if g["neighbours"] == certificate["neighbours"])
    return found


def _loss(stated: Mapping[str, Any], key: str) -> str:
    return loss(read_exact(stated[key]))


def _at_most(share: float) -> str:
    """A share rounded up to a tenth of a percent: a bound must not be rounded down."""
    tenths = -(-share * 1000 // 1)
    return f"{min(tenths, 1000) / 10:g}%"


def _at_least(share: float) -> str:
    """A share rounded down to a tenth of a percent."""
    return f"{share * 1000 // 1 / 10:g}%"


def _in_words(certificate: Certificate, name: str) -> Section:
    unit = certificate["privacy_unit"]
    one = "one household" if "household" in unit or "housing" in unit else "one person"
    content: list[Html] = [
        paragraph(
            f"The numbers of this release, {name}, were made from confidential census records. Before publication, "
            "random noise was added to the counts. It limits what anybody can find out about the record of "
            f"{one}: what it said, or whether it was there at all. How narrow the limit is, this page says."
        ),
        paragraph(
            "The promise holds whatever somebody already knows, from any source, now or later, and however much "
            f"computing power they have. It protects each {unit}. It does not hide facts about large groups: those "
            "are what a census is for."
        ),
    ]
    if not certificate["attacker"]["curves"]:
        content.append(
            paragraph(element("strong", "Some counts carry no noise at all, so this release protects nobody."))
        )
    content += [
        paragraph(
            "Suppose somebody knows everything about the census except one thing, whether ",
            element("em", curve["change"]),
            ", and thinks both equally likely. Without this release they guess right 50% of the time. With all of it, "
            f"and the best method there can be, they guess right {_at_most(curve['best_guess'])} of the time at most."
            f"{_WEAK if curve['best_guess'] > _NEAR_CERTAIN else ''}",
        )
        for curve in certificate["attacker"]["curves"]
    ]
    return Section("words", "The promise in words", tuple(content))


_NEAR_CERTAIN: Final = 0.95
_WEAK: Final = " That is near to certainty: against somebody who knows so much, this release promises little."


def _attacker(certificate: Certificate) -> Section:
    attacker = certificate["attacker"]
    content: list[Html] = [
        paragraph(
            "An attacker who tests a suspicion can go wrong in two ways: to accuse wrongly (error of type I) or to "
            "miss what is true (error of type II). Being stricter about one makes the other worse. Each curve shows "
            "the least share of misses for every share of wrong accusations; no test whatever comes below it."
        )
    ]
    if attacker["curves"]:
        content += [_legend(attacker["curves"]), picture(attacker["curves"])]
        for curve in attacker["curves"]:
            point = next(p for p in curve["points"] if p["type_1"] == _SHOWN_TYPE_1)
            content.append(
                paragraph(
                    f"Where {curve['change']}: an attacker who accuses wrongly in {percent(_SHOWN_TYPE_1)} of cases "
                    f"misses the truth in at least {_at_least(point['type_2'])} of cases."
                )
            )
        rows = [p for p in attacker["curves"][0]["points"] if p["type_1"] in _TOLD]
        columns: dict[str, list[object]] = {"Wrong accusations": [percent(p["type_1"]) for p in rows]}
        for curve in attacker["curves"]:
            told = [p for p in curve["points"] if p["type_1"] in _TOLD]
            columns[f"Misses at least, {' or '.join(map(_short, curve['kinds']))}"] = [
                _at_least(p["type_2"]) for p in told
            ]
        content.append(
            element("details", element("summary", "The numbers drawn"), table(columns, "Points of the curves."))
        )
    notes = {
        "gaussian": "The curves are those of the exact composition of all the noise in the release, with a proven "
        "allowance for its being made of whole numbers (docs/certificate.md).",
        "zcdp": "Some measurements were chosen by the results of others, or their noise is very small. So the curves "
        "follow from the total loss ρ alone, and the truth is better for privacy than drawn.",
        "pure": "The curves follow from ε alone; the truth is at least as good for privacy as drawn.",
    }
    content.append(paragraph(notes[attacker["kind"]], class_="note"))
    return Section("attack", "What the best attack could achieve", tuple(content))


_TOLD: Final = (0.0, 0.01, 0.05, 0.1, 0.2, 0.3, 0.5, 0.7, 0.9, 1.0)


def _short(neighbours: str) -> str:
    return {"unbounded": "added or left out", "bounded": "changed", "same_household": "changed within the household"}[
        neighbours
    ]


def _legend(curves: Sequence[Mapping[str, Any]]) -> Html:
    def item(colour: str, words: str) -> Html:
        mark = element(
            "svg", element("path", d="M-8,-1.5H8V1.5H-8Z", fill=colour), viewBox="-8 -8 16 16", aria_hidden="true"
        )
        return element("li", mark, words)

    items = [item(_COLOURS[i % len(_COLOURS)], curve["change"]) for i, curve in enumerate(curves)]
    return element("ul", *items, item("#8a939c", "no release at all"), class_="legend")


_LEFT, _TOP, _SIDE = 52, 14, 280


def picture(curves: Sequence[Mapping[str, Any]]) -> Html:
    """Draw trade-off curves as an SVG element; colours as in the legend, text in the colour of the page."""

    def at(x: float, y: float) -> str:
        return f"{_LEFT + x * _SIDE:.1f},{_TOP + (1 - y) * _SIDE:.1f}"

    lines: list[Html] = []
    for share in (0.0, 0.25, 0.5, 0.75, 1.0):
        x, y = _LEFT + share * _SIDE, _TOP + (1 - share) * _SIDE
        lines += [
            element(
                "path",
                d=f"M{at(share, 0)}L{at(share, 1)}M{at(0, share)}L{at(1, share)}",
                stroke="#8a939c",
                stroke_opacity="0.3",
                fill="none",
            ),
            _text(percent(share), x, _TOP + _SIDE + 16, "middle"),
            _text(percent(share), _LEFT - 6, y + 4, "end"),
        ]
    lines.append(element("path", d=f"M{at(0, 1)}L{at(1, 0)}", stroke="#8a939c", stroke_dasharray="5 4", fill="none"))
    for i, curve in enumerate(curves):
        points = "L".join(at(p["type_1"], p["type_2"]) for p in curve["points"])
        lines.append(
            element("path", d=f"M{points}", stroke=_COLOURS[i % len(_COLOURS)], stroke_width="2.5", fill="none")
        )
    middle = _TOP + _SIDE / 2
    lines += [
        _text("wrong accusations (type I)", _LEFT + _SIDE / 2, _TOP + _SIDE + 36, "middle"),
        element(
            "text",
            "misses (type II), at least",
            x="12",
            y=f"{middle:g}",
            font_size="12",
            fill="currentColor",
            text_anchor="middle",
            transform=f"rotate(-90 12 {middle:g})",
        ),
    ]
    label = "Trade-off curves: the least share of misses for every share of wrong accusations."
    drawing = element(
        "svg", *lines, viewBox=f"0 0 {_LEFT + _SIDE + 22} {_TOP + _SIDE + 44}", role="img", aria_label=label
    )
    return element("div", drawing, class_="panel", style="max-width: 30rem")


def _text(words: str, x: float, y: float, anchor: str) -> Html:
    return element("text", words, x=f"{x:g}", y=f"{y:g}", font_size="12", fill="currentColor", text_anchor=anchor)


def _guarantee(certificate: Certificate) -> Section:
    zcdp = certificate["mechanism"] == "zcdp"
    symbol, key = ("ρ", "rho") if zcdp else ("ε", "epsilon")
    rows = certificate["guarantee"]
    content: list[Html] = [
        paragraph(
            "Formally: the release keeps ",
            "ρ-zero-concentrated differential privacy (zCDP)" if zcdp else "ε-differential privacy",
            f" with the values below. The privacy unit is a {certificate['privacy_unit']}. The smaller a value, the "
            "less the release tells about it. “Promised” is the accounting the budgets were set by; “proven at most” "
            "is the smaller value that the documents prove for the very same noise.",
        ),
        table(
            {
                "What differs between two censuses": [row["change"] for row in rows],
                f"{symbol} promised": [_loss(row["promised"], key) for row in rows],
                f"{symbol} proven at most": [_loss(row["proven_at_most"], key) for row in rows],
            },
            "The privacy loss of the whole release.",
        ),
    ]
    for row in rows if zcdp else ():
        stated = row["promised"]["epsilon"]
        if stated:
            columns: dict[str, list[object]] = {
                "δ": [power_of_ten(r["delta"]) for r in stated],
                "ε, Bun and Steinke": [rounded(r["bun_steinke"], 4) for r in stated],
                "ε, tight": [rounded(r["tight"], 4) for r in stated],
            }
            if "gaussian" in stated[0]:
                columns["ε, exact composition"] = [rounded(r["gaussian"], 4) for r in stated]
                columns["the same, of what is proven"] = [
                    rounded(r["gaussian"], 4) for r in row["proven_at_most"]["epsilon"]
                ]
            content.append(
                element(
                    "details",
                    element("summary", f"As (ε, δ), where {row['change']}"),
                    table(columns, "ε at chosen δ: conversions from ρ, and the composition of the noise itself."),
                )
            )
    return Section("guarantee", "The guarantee in numbers", tuple(content))


def _parts(certificate: Certificate) -> Section:
    symbol = "ρ" if certificate["mechanism"] == "zcdp" else "ε"

    def listed(
        rows: Sequence[Mapping[str, Any]],
        kind: str,
        caption: str,
        note: str = "",
        words: Mapping[str, str] | None = None,
    ) -> Html:
        names = [row[kind.lower()] for row in rows]
        meaning = {"What it is": [words.get(name, "") for name in names]} if words else {}
        return table({kind: names, **meaning, symbol: [loss(_number(row)) for row in rows]}, caption, note)

    content = [
        paragraph(
            f"Every table and level of the release uses a part of the loss {symbol}, under the neighbours of the plan: "
            f"{certificate['own_change']}. Where parts are about different records, only the largest counts, so "
            "parts may add up to more than the whole."
        ),
        listed(certificate["by_table"], "Table", "The loss by table.", words=_table_words(certificate)),
        listed(certificate["by_level"], "Level", "The loss by level.", words=_level_words(certificate)),
    ]
    if certificate["by_attribute"]:
        content.append(
            listed(
                certificate["by_attribute"],
                "Attribute",
                f"The most that is lost where one {certificate['privacy_unit']} differs in one attribute only.",
                "An upper bound: of all tables that can tell values of the attribute apart. For a person in a small "
                "household it is often far less; yupana audit attribute computes it.",
            )
        )
    return Section("parts", "By table, level and attribute", tuple(content))


def _table_words(certificate: Certificate) -> Mapping[str, str] | None:
    """What each table of the S-DHC counts; other products' names speak for themselves."""
    return TABLES if certificate["product"] == "phsafe" else None


def _level_words(certificate: Certificate) -> Mapping[str, str] | None:
    return {key: series.name for key, series in LEVELS.items()} if certificate["product"] == "phsafe" else None


def _number(row: Mapping[str, Any]) -> Fraction | float:
    return read_exact(row["loss"])


def _not_protected(certificate: Certificate) -> Section:
    content = [
        paragraph(
            "The following is taken as known to everybody. It is published or used as it is, without noise, and the "
            "guarantee says nothing about it."
        ),
        bullets(*certificate["taken_as_public"]) if certificate["taken_as_public"] else paragraph("Nothing."),
    ]
    if certificate["invariants"]:
        content += [
            paragraph(
                "Kept exactly as counted (invariants). The guarantee compares only censuses that agree on them, so "
                "what follows from them is not protected:"
            ),
            bullets(*certificate["invariants"]),
        ]
    content += [
        paragraph("Nor does the guarantee cover:"),
        bullets(
            "what is true of a group whoever is in it: that people of a place are mostly old says something about each",
            "several releases together: what one person loses to all of them adds up, and is more than this page says "
            "(yupana audit certificate RELEASE RELEASE ... OUT)",
            "the checks of the records before counting, whose outcome is not published",
        ),
    ]
    return Section("public", "What is not protected", tuple(content))


def _spare(certificate: Certificate) -> tuple[Section, ...]:
    rows = certificate["spare"]
    if not rows:
        return ()
    return (
        Section(
            "spare",
            "Noise to spare",
            (
                paragraph(
                    "The plan adds up its losses as ρ and converts the sum to ε, which is simple and safe. The noise "
                    "itself does better. So the same (ε, δ) could have been promised with less noise, by this share of "
                    "all variances:"
                ),
                table(
                    {
                        "δ": [power_of_ten(row["delta"]) for row in rows],
                        "promise by Bun and Steinke": [percent(row["share_bun_steinke"], 1) for row in rows],
                        "promise by the tight conversion": [percent(row["share"], 1) for row in rows],
                    },
                    f"Variance that could be left out, where {certificate['own_change']}.",
                ),
                paragraph(
                    "Published work on other releases of 2020, with other choices of ε and δ, found 15 to 25 percent.",
                    class_="note",
                ),
            ),
        ),
    )


def _identities(certificate: Certificate) -> Section:
    software = certificate["software"]
    files = certificate["files"]
    content: list[Html] = [
        table(
            {"Software": list(software), "Version": [str(v) for v in software.values()]},
            "What the release was made with.",
        ),
        paragraph(f"Made at {certificate['created']}."),
    ]
    parameters = [join(code(key), ": ", _brief(value)) for key, value in certificate["parameters"].items()]
    if parameters:
        content += [paragraph("Public parameters:"), bullets(*parameters)]
    if files:
        listed = table(
            {"File": list(files), "SHA-256": [code(str(v)) for v in files.values()]}, "The files this is about."
        )
        content.append(element("details", element("summary", "The files and their checksums"), listed))
    return Section("identities", "Software, parameters and files", tuple(content))


_LONGEST: Final = 300


def _brief(value: object) -> str:
    if isinstance(value, Mapping):
        text = ", ".join(f"{key} {_brief(v)}" for key, v in value.items())
    elif isinstance(value, (list, tuple)):
        text = " ".join(_brief(v) for v in value)
    else:
        text = str(value)
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]} …"


def _glossary(certificate: Certificate) -> Section:
    words = {
        "Noise": "a random whole number added to a count. Its law is public, its value is not.",
        "ρ (rho) and ε (epsilon)": "measures of how much two censuses that differ in one record can differ in what is "
        "released. 0 would be perfect secrecy, and of no use.",
        "δ (delta)": "a tiny chance that the bound by ε does not hold.",
        "Neighbours": "the two censuses that are compared: they differ in one record, which is added, or changed.",
        "Privacy unit": f"what is protected as one: here a {certificate['privacy_unit']}.",
        "Invariant": "a number that is published exactly, without noise.",
    }
    return Section(
        "glossary",
        "What the words mean",
        (bullets(*(join(element("strong", word), ": ", meaning) for word, meaning in words.items())),),
    )
