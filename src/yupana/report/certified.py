"""A certificate as an object: its numbers, its page, and both in a folder."""

import html
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from yupana.audit.certificate import certificate, is_test, with_tests
from yupana.audit.certificate_set import certificate_of_set
from yupana.errors import ConfigError, OutputError
from yupana.products.check import check_release, open_checked
from yupana.products.product import Checked
from yupana.release.folder import MANIFEST, new_folder, write_manifest
from yupana.release.recipe import CERTIFICATE
from yupana.release.release import read_release
from yupana.release.tables import checksum
from yupana.report.certificate import certificate_page, certificate_set_page
from yupana.version import __version__

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
    """Certify a release, or several of the same people together, from their manifests alone.

    Parameters
    ----------
    releases : sequence of Path
        And what `accuracy` wrote of the same plans: its tests of their acceptance criteria are told, too.
    household_cap : int, optional
        Of several: the most persons in a household, for what they promise to one.

    Raises
    ------
    ConfigError
        If a cap is given for one release.
    OutputError
        If the files of a release are not those that its manifest describes, or its plan is not its configuration's.
    """
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
