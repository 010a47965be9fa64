"""The joint certificate of several releases as a page for people who know no mathematics."""

from collections.abc import Mapping
from typing import Any, Final

from yupana.privacy.exact import read_exact
from yupana.report.certificate import PRODUCTS
from yupana.report.html import Html, bullets, element, join, paragraph, table
from yupana.report.numbers import loss, power_of_ten, rounded
from yupana.report.page import Page, Section, render

_SHOWN_DELTA: Final = 1e-10

Certificate = Mapping[str, Any]


def certificate_set_page(certificate: Certificate) -> str:
    """Lay out a joint certificate (`yupana.audit.certificate_set`) as one HTML file that loads nothing."""
    names = [PRODUCTS.get(r["product"], r["product"]) for r in certificate["releases"]]
    symbol = _symbol(certificate)
    numbers = {
        f"{symbol} of one person": (_loss(row, certificate), row["change"])
        for row in certificate["guarantee"]
        if row["of"] == "person" and row["neighbours"] == "bounded"
    }
    return render(
        Page(
            f"Privacy certificate of {len(names)} releases together",
            certificate["status"] if certificate["reasons"] else "For publication.",
            f"Reasons: {'; '.join(certificate['reasons'])}."
            if certificate["reasons"]
            else "This page follows from the public plans of the releases; no record was read to make it.",
            numbers,
            (
                _in_words(certificate),
                _releases(certificate, names),
                _guarantee(certificate),
                _not_protected(certificate),
            ),
        )
    )


def _symbol(certificate: Certificate) -> str:
    return "ε" if certificate["mechanism"] == "pure" else "ρ"


def _loss(row: Mapping[str, Any], certificate: Certificate) -> str:
    stated = row["epsilon" if certificate["mechanism"] == "pure" else "rho"]
    return "none" if stated is None else loss(read_exact(stated))


def _in_words(certificate: Certificate) -> Section:
    content: list[Html] = [
        paragraph(
            "Each of these releases limits what anybody can find out about one record. They were made from the same "
            "census, so somebody who sees them all learns more about a person than any of them alone allows. This page "
            "says how much more, at most."
        ),
        *(
            paragraph(row["attacker"])
            for row in certificate["guarantee"]
            if row["of"] != "record" and "attacker" in row
        ),
    ]
    if certificate["household_cap"] is None:
        content.append(
            paragraph(
                "Of households nothing is said: without a declared largest number of persons in one (--household-cap) "
                "their loss has no bound.",
                class_="note",
            )
        )
    return Section("words", "What somebody learns who sees them all", tuple(content))


def _releases(certificate: Certificate, names: list[str]) -> Section:
    releases = certificate["releases"]
    columns: dict[str, list[object]] = {
        "Release": [r["name"] for r in releases],
        "Product": list(names),
        "What it protects by itself": [r["protects"] for r in releases],
        "Noise": ["pure DP" if r["mechanism"] == "pure" else "zCDP" for r in releases],
    }
    return Section("releases", "The releases", (table(columns, "What each release protects."),))


def _guarantee(certificate: Certificate) -> Section:
    symbol, pure = _symbol(certificate), certificate["mechanism"] == "pure"
    rows = certificate["guarantee"]
    columns: dict[str, list[object]] = {
        "Unit": [row["unit"] for row in rows],
        "How two censuses differ": [row["change"] for row in rows],
        "Releases": [len(row["releases"]) for row in rows],
        f"{symbol} together": [_loss(row, certificate) for row in rows],
    }
    if not pure:
        columns[f"ε at δ = {power_of_ten(_SHOWN_DELTA)}"] = [_epsilon(row) for row in rows]
    empty = [f"{row['unit']}, {row['neighbours']}: {row['empty']}" for row in rows if "empty" in row]
    content: list[Html] = [table(columns, "Losses added up, by unit and by what the censuses compared differ in.")]
    if empty:
        content += [paragraph("Where there is none:"), bullets(*empty)]
    if not pure and any(r["mechanism"] == "pure" for r in certificate["releases"]):
        content.append(paragraph("A release under pure DP counts as ρ = ε² / 2.", class_="note"))
    content.append(paragraph("Why losses add, and in which unit, is proven in docs/person-loss.md.", class_="note"))
    return Section("guarantee", "The guarantee in numbers", tuple(content))


def _epsilon(row: Mapping[str, Any]) -> str:
    found = [r["tight"] for r in row.get("epsilon", ()) if r["delta"] == _SHOWN_DELTA]
    return rounded(found[0], 4) if found else "none"


def _not_protected(certificate: Certificate) -> Section:
    content: list[Html] = [
        paragraph("Taken as known to everybody, by one release or another:"),
        bullets(*certificate["taken_as_public"]) if certificate["taken_as_public"] else paragraph("Nothing."),
    ]
    if certificate["invariants"]:
        content += [paragraph("Kept exactly as counted (invariants):"), bullets(*certificate["invariants"])]
    content.append(
        paragraph(
            join(
                element("strong", "Other releases"),
                " from the same census are not counted here. Their losses come on top.",
            )
        )
    )
    return Section("public", "What is not protected", tuple(content))
