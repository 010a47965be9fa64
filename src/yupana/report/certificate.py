"""The privacy certificate of a release, or of several: its numbers, and a page for people who know no mathematics."""

import html
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import cycle
from pathlib import Path
from typing import Any, Final

from yupana.audit.certificate import certificate, certificate_of_set, is_test, with_tests
from yupana.errors import ConfigError, OutputError
from yupana.privacy.exact import read_exact
from yupana.products import PRODUCTS
from yupana.products.described.criteria import verdicts
from yupana.products.gate import check_release, open_checked
from yupana.products.product import Checked, Words
from yupana.release.folder import new_folder, write_manifest
from yupana.release.manifest import MANIFEST
from yupana.release.recipe import CERTIFICATE
from yupana.release.release import read_release
from yupana.release.tables import checksum
from yupana.report.charts import GREY, SERIES, Mark
from yupana.report.html import Html
from yupana.report.numbers import at_most, loss, percent, power_of_ten, rounded
from yupana.report.page import render
from yupana.version import __version__

_SHOWN_DELTA: Final = 1e-10
_SHOWN_TYPE_1: Final = 0.05
_TOLD: Final = (0.0, 0.01, 0.05, 0.1, 0.2, 0.3, 0.5, 0.7, 0.9, 1.0)
_CHANGES: Final = {
    "unbounded": "added or left out",
    "bounded": "changed",
    "same_household": "changed within the household",
}
_LONGEST: Final = 300

_Numbers = Mapping[str, Any]
Columns = Mapping[str, Sequence[object]]


def certificate_page(certificate: _Numbers) -> str:
    """Lay out a certificate (`yupana.audit.certificate`) as one HTML file that loads nothing."""
    symbol, key = ("ρ", "rho") if certificate["mechanism"] == "zcdp" else ("ε", "epsilon")
    rows = certificate["guarantee"]
    own = next(row for row in rows if row["neighbours"] == certificate["neighbours"])
    curves = _merged(certificate["attacker"]["curves"])
    marks = [Mark(curve["change"], colour, "line") for curve, colour in zip(curves, cycle(SERIES), strict=False)]
    words = _words(certificate["product"])
    return render(
        "certificate.html",
        certificate=certificate,
        name=words.title,
        unpublishable=certificate["status"] == "NOT FOR RELEASE",
        unit=certificate["privacy_unit"],
        protected=_protected(certificate["privacy_unit"]),
        symbol=symbol,
        shown_delta=_SHOWN_DELTA,
        own={
            "promised": loss(read_exact(own["promised"][key])),
            "change": own["change"],
            "epsilon": _epsilon(own["promised"]) if key == "rho" else None,
            "exact": _exact_epsilon(own),
        },
        own_curve=next((c for c in curves if certificate["neighbours"] in c["kinds"]), next(iter(curves), None)),
        attacker={**certificate["attacker"], "curves": curves},
        at_most=at_most,
        at_least=_at_least,
        marks=(*marks, Mark("no release at all", GREY, "line")),
        drawn=list(zip(marks, curves, strict=True)),
        points=_points(curves),
        guarantee={
            "What differs between two censuses": [row["change"] for row in rows],
            f"{symbol} promised": [loss(read_exact(row["promised"][key])) for row in rows],
            f"{symbol} proven at most": [loss(read_exact(row["proven_at_most"][key])) for row in rows],
        },
        conversions=[(row["change"], _conversions(row)) for row in rows if row["promised"].get("epsilon")]
        if symbol == "ρ"
        else [],
        by_table=_part(certificate["by_table"], "Table", symbol, words.tables),
        by_level=_part(certificate["by_level"], "Level", symbol, words.levels),
        criteria=_criteria({"": certificate["criteria"]}),
        by_attribute=certificate["by_attribute"] and _attributes(certificate["by_attribute"], symbol),
        spare=_spare(certificate["spare"]),
        software={"Software": list(certificate["software"]), "Version": list(certificate["software"].values())},
        parameters=[(name, _brief(value)) for name, value in certificate["parameters"].items()],
        files=_files(certificate["files"]),
    )


def _words(product: str) -> Words:
    """What a product and its parts are called; a configuration of TopDown has its own name."""
    return PRODUCTS[product].words if product in PRODUCTS else Words(product)


def _protected(unit: str) -> str:
    """What a release protects, in words for everybody."""
    people = {"person": "person", "household": "household", "housing unit": "household"}
    whose = people.get(unit.removesuffix(" record"))
    return f"the record of one {whose}" if whose else f"one {unit}"


def _merged(curves: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Curves that are the same drawn once, under the words of all, each with the point that is told in words."""
    merged: list[dict[str, Any]] = []
    for curve in curves:
        same = next((m for m in merged if m["points"] == curve["points"]), None)
        if same is None:
            shown = next(p for p in curve["points"] if p["type_1"] == _SHOWN_TYPE_1)
            merged.append({**curve, "kinds": [curve["neighbours"]], "shown": shown})
        else:
            # "one person record is added", "... is changed": the subject need not be said twice.
            predicate = curve["change"].split(" is ", 1)[-1]
            same["change"] += f", or {predicate}"
            same["kinds"].append(curve["neighbours"])
    return merged


def _at_least(share: float) -> str:
    """A share rounded down to a tenth of a percent."""
    return f"{share * 1000 // 1 / 10:g}%"


def _epsilon(stated: Mapping[str, Any]) -> str | None:
    """The tight ε at the δ that is told first; None where a loss is infinite, or of pure DP."""
    found = [row["tight"] for row in stated.get("epsilon") or () if row["delta"] == _SHOWN_DELTA]
    return rounded(found[0], 4) if found else None


def _exact_epsilon(row: Mapping[str, Any]) -> str | None:
    """The ε by the exact law at the δ that is told first; None where there is none."""
    found = [of["epsilon"] for of in row.get("exact", ()) if of["delta"] == _SHOWN_DELTA]
    return rounded(found[0], 4) if found and found[0] is not None else None


def _points(curves: Sequence[Mapping[str, Any]]) -> Columns:
    told = {
        f"Misses at least, {' or '.join(_CHANGES[kind] for kind in curve['kinds'])}": [
            _at_least(p["type_2"]) for p in curve["points"] if p["type_1"] in _TOLD
        ]
        for curve in curves
    }
    return {"Wrong accusations": [percent(share) for share in _TOLD], **told}


def _conversions(row: Mapping[str, Any]) -> Columns:
    stated = row["promised"]["epsilon"]
    columns: dict[str, list[str]] = {
        "δ": [power_of_ten(r["delta"]) for r in stated],
        "ε, Bun and Steinke": [rounded(r["bun_steinke"], 4) for r in stated],
        "ε, tight": [rounded(r["tight"], 4) for r in stated],
    }
    if "gaussian" in stated[0]:
        columns["ε, bound by normal laws"] = [rounded(r["gaussian"], 4) for r in stated]
        proven = row["proven_at_most"]["epsilon"]
        columns["the same, of what is proven"] = [rounded(r["gaussian"], 4) for r in proven]
    if any(r["epsilon"] is not None for r in row.get("exact", ())):
        shown = [None if r["epsilon"] is None else rounded(r["epsilon"], 4) for r in row["exact"]]
        columns["ε, exact law, of what is proven"] = ["none" if text is None else text for text in shown]
    return columns


def _attributes(rows: Sequence[Mapping[str, Any]], symbol: str) -> Columns:
    columns = dict(_part(rows, "Attribute", symbol, {}))
    if "epsilon_exact" in rows[0]:
        exact = [row["epsilon_exact"] for row in rows]
        columns[f"ε at δ = {power_of_ten(rows[0]['delta'])}, exact law"] = [
            "none" if epsilon is None else rounded(epsilon, 4) for epsilon in exact
        ]
    return columns


def _part(rows: Sequence[Mapping[str, Any]], kind: str, symbol: str, words: Mapping[str, str]) -> Columns:
    names = [row[kind.lower()] for row in rows]
    meaning = {"What it is": [words.get(name, "") for name in names]} if words.keys() >= set(names) else {}
    return {kind: names, **meaning, symbol: [loss(read_exact(row["loss"])) for row in rows]}


def _spare(rows: Sequence[Mapping[str, Any]]) -> Columns | None:
    if not rows:
        return None
    return {
        "δ": [power_of_ten(row["delta"]) for row in rows],
        "promise by Bun and Steinke": [percent(row["share_bun_steinke"], 1) for row in rows],
        "promise by the tight conversion": [percent(row["share"], 1) for row in rows],
    }


def _files(files: Mapping[str, str]) -> Columns | None:
    digests = [Html("<code>{}</code>").format(digest) for digest in files.values()]
    return {"File": list(files), "SHA-256": digests} if files else None


def _brief(value: object) -> str:
    if isinstance(value, Mapping):
        text = ", ".join(f"{key} {_brief(v)}" for key, v in value.items())
    elif isinstance(value, (list, tuple)):
        text = " ".join(_brief(v) for v in value)
    else:
        text = str(value)
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]} …"


def certificate_set_page(certificate: _Numbers) -> str:
    """Lay out a joint certificate (`yupana.audit.certificate`) as one HTML file that loads nothing."""
    symbol, key = ("ε", "epsilon") if certificate["mechanism"] == "pure" else ("ρ", "rho")
    rows, releases = certificate["guarantee"], certificate["releases"]
    losses = ["none" if row[key] is None else loss(read_exact(row[key])) for row in rows]
    # Where nothing is known of a person the page speaks of the records.
    of_persons = [row for row in rows if row["of"] != "record" and "attacker" in row]
    shown = of_persons or [row for row in rows if "attacker" in row]
    return render(
        "certificate_set.html",
        certificate=certificate,
        symbol=symbol,
        numbers=[
            (row["unit"], lost, row["change"])
            for lost, row in zip(losses, rows, strict=True)
            if row in shown and row["of"] != "household" and row["neighbours"] == "bounded"
        ],
        attackers=[row["attacker"] for row in shown],
        speaks_of_persons=bool(of_persons),
        releases=_releases(releases),
        criteria=_criteria({r["name"]: certificate["criteria"][r["name"]] for r in releases}),
        guarantee=_together(rows, symbol, losses),
        empty=[row for row in rows if "empty" in row],
        converted=key == "rho" and any(r["mechanism"] == "pure" for r in releases),
    )


def _releases(releases: Sequence[Mapping[str, Any]]) -> Columns:
    return {
        "Release": [r["name"] for r in releases],
        "Product": [_words(r["product"]).title for r in releases],
        "What it protects by itself": [r["protects"] for r in releases],
        "Noise": ["pure DP" if r["mechanism"] == "pure" else "zCDP" for r in releases],
    }


def _together(rows: Sequence[Mapping[str, Any]], symbol: str, losses: Sequence[str]) -> Columns:
    """What the releases promise together; a loss under zCDP as ε, too."""
    columns: dict[str, Sequence[object]] = {
        "Unit": [row["unit"] for row in rows],
        "How two censuses differ": [row["change"] for row in rows],
        "Releases": [len(row["releases"]) for row in rows],
        f"{symbol} together": losses,
    }
    if symbol == "ρ":
        columns[f"ε at δ = {power_of_ten(_SHOWN_DELTA)}"] = [_epsilon(row) or "none" for row in rows]
    return columns


PAGE: Final = "certificate.html"
NUMBERS: Final = "certificate.json"


@dataclass(frozen=True, slots=True, repr=False)
class Certificate(Mapping[str, Any]):
    """What one release promises, or several together: a mapping of its numbers (docs/certificate.md) with a page.

    Attributes
    ----------
    numbers : mapping
        What certificate.json says.
    page : str
        One HTML file that loads nothing.
    certifies : tuple of str
        SHA-256 of the manifest of each release.
    """

    numbers: Mapping[str, Any]
    page: str
    certifies: tuple[str, ...]

    def __getitem__(self, key: str) -> Any:  # noqa: ANN401 (whatever the certificate says there)
        """One of the numbers, by its key in certificate.json."""
        return self.numbers[key]

    def __iter__(self) -> Iterator[str]:
        """The keys of certificate.json."""
        return iter(self.numbers)

    def __len__(self) -> int:
        """How many keys there are."""
        return len(self.numbers)

    def write(self, out: str | Path, *, overwrite: bool = False) -> Path:
        """Write certificate.html and certificate.json into a folder that does not exist or is empty; return the page.

        Raises
        ------
        OutputError
            If the folder cannot be used.
        """
        folder = Path(out)
        with new_folder(folder, overwrite=overwrite, noisy=False) as partial:
            (partial / NUMBERS).write_text(json.dumps(self.numbers, indent=1) + "\n", encoding="utf-8")
            (partial / PAGE).write_text(self.page, encoding="utf-8")
            write_manifest(
                partial,
                {
                    "yupana": __version__,
                    "product": CERTIFICATE,
                    "certifies": self.certifies[0] if len(self.certifies) == 1 else list(self.certifies),
                    "tables": {name: {"sha256": checksum(partial / name)} for name in (PAGE, NUMBERS)},
                },
            )
        return folder / PAGE

    def __repr__(self) -> str:
        number = len(self.certifies)
        return f"<Certificate of {number} release{'s' * (number != 1)}>"

    def _repr_html_(self) -> str:
        return f'<iframe srcdoc="{html.escape(self.page)}" style="width: 100%; height: 40em; border: 0"></iframe>'


def certify(releases: Sequence[Path], household_cap: int | None = None) -> Certificate:
    """Certify a release, or several of the same people together, from their manifests alone."""
    short = [release.resolve().name for release in releases]
    names = short if len(set(short)) == len(short) else [str(release) for release in releases]
    named = list(zip(names, map(_manifest_of, releases), strict=True))
    found = with_tests(named)
    digests = tuple(
        checksum(folder / MANIFEST) for folder, (_, of) in zip(releases, named, strict=True) if not is_test(of)
    )
    if len(found) == 1:
        if household_cap is not None:
            raise ConfigError("--household-cap goes with several releases; that of one speaks of its own records")
        numbers = certificate(found[0][1])
        return Certificate(numbers, certificate_page(numbers), digests)
    numbers = certificate_of_set(found, household_cap)
    return Certificate(numbers, certificate_set_page(numbers), digests)


def check_certificate(folder: Path) -> Checked:
    """Compare a certificate's page with its numbers; only the releases tell whether the numbers are theirs.

    Raises
    ------
    OutputError
        If the folder holds none.
    """
    found = check_release(folder)
    if found.wrong:
        return found
    release = read_release(folder)
    try:
        numbers = json.loads(release.file(NUMBERS).read_text(encoding="utf-8"))
        page = certificate_set_page(numbers) if "certificate_of_set" in numbers else certificate_page(numbers)
    except (KeyError, TypeError, ValueError, AttributeError, IndexError):
        return Checked((f"{NUMBERS} holds no numbers of a certificate",))
    same = page == release.file(PAGE).read_text(encoding="utf-8")
    wrong = () if same else (f"{PAGE} does not show what {NUMBERS} says",)
    return Checked(wrong, ("the releases that it certifies: certify them again",), "the manifest and each other")


def _manifest_of(release: Path) -> dict[str, Any]:
    """The manifest of a release that holds together."""
    try:
        return dict(open_checked(release).manifest)
    except OutputError as error:
        raise OutputError(f"not certified: {error}") from None


def _criteria(of_releases: Mapping[str, Mapping[str, Mapping[str, Any]]]) -> dict[str, Any] | None:
    """What is told of the criteria of releases, by name; None where they have none."""
    found = [(release, of) for release, criteria in of_releases.items() for of in verdicts(criteria)]
    if not found:
        return None
    tested = any(of.tested for _, of in found)
    columns = {
        **({"Release": [release for release, _ in found]} if len(of_releases) > 1 else {}),
        "Criterion": [of.name for _, of in found],
        "What it says": [of.says for _, of in found],
        "Predicted": [of.predicted for _, of in found],
        **({"Tested on synthetic records": [of.tested for _, of in found]} if tested else {}),
    }
    return {"columns": columns, "tested": tested}
