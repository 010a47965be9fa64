"""The signature of a release: a statement that lists every file by its SHA-256, and a signature of SSH over it.

The statement has the form that ``sha256sum -c`` reads, and the signature that of ``ssh-keygen -Y``, so that both can be
verified without this program. A signature that ``ssh-keygen`` made of the manifest itself is one, too: the manifest
lists every other file. docs/signing.md says what a signature does not show. Public.
"""

import hashlib
import os
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final

from yupana.errors import ConfigError, InputError, OutputError, system_fault
from yupana.files.regular import FILE, FOLDER, kind_of, must_be, read_regular, sync
from yupana.files.ssh_signature import (
    LARGEST_SIGNATURE,
    NAMESPACE,
    OtherTextError,
    Signature,
    SignatureError,
    Signer,
    fingerprint,
    matches,
    read_private_key,
    read_signers,
    sign_text,
    verify_text,
)
from yupana.interruption import whole
from yupana.release.manifest import MANIFEST, OF_MANIFEST, SIGNATURE, STATEMENT
from yupana.release.release import ReleaseFolder, part_names, read_release
from yupana.release.status import CONFIDENTIAL
from yupana.release.tables import checksum

_HEAD: Final = re.compile(
    r"# yupana release statement 1\n# product: (?P<product>[^\n]*)\n# status: (?P<status>[^\n]*)\n"
    r"# signer: (?P<signer>[^\n]*)\n# signed: (?P<signed>\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ)\n"
)
_LINE: Final = re.compile(r"([^ \n]+)  ([^\n]+)\n")
_TIME: Final = "%Y-%m-%dT%H:%M:%SZ"
_UNNAMED: Final = "-"
_NAME: Final = re.compile(r"[^\s,*?!\"#]{1,255}")
"""A signer: what stands for itself as a pattern."""

_LARGEST: Final = 1 << 27
"""Bytes of a statement or a manifest that is signed."""

_AHEAD: Final = timedelta(minutes=10)
"""How far clocks of two machines are apart."""

_MOST_TOLD: Final = 10


@dataclass(frozen=True, slots=True)
class _Verified:
    """What a signature shows."""

    wrong: tuple[str, ...] = ()  # why it is none of this release by a signer, in words
    unchecked: tuple[str, ...] = ()  # what it does not show, in words
    signed: str = ""  # who signed, with which key and when, in words; empty if something is wrong


def sign_release(
    release: Path,
    key: Path | None,
    ask: Callable[[str], str],
    *,
    signer: str | None = None,
    beside: Sequence[Path] = (),
    overwrite: bool = False,
) -> Path:
    """Sign a release that `yupana.products.gate.check_release` found sound.

    Parameters
    ----------
    key : Path, optional
        A private key. Without one the statement alone is written, and ``ssh-keygen -Y sign`` signs it.
    ask : callable
        For the passphrase of the key.
    signer : str, optional
        Who signs, as files of signers name them.
    beside : sequence of Path
        Files and folders that are published with the release, whose SHA-256 the statement lists, too.
    overwrite : bool
        Replace an earlier signature.

    Returns
    -------
    Path
        The signature, or the statement without one.

    Raises
    ------
    ConfigError
        If ``signer`` is no name, or an extra is missing.
    InputError
        If ``key`` or what lies beside cannot be read.
    OutputError
        If the release is CONFIDENTIAL, a part of another or signed, or the folder cannot be written to.
    """
    opened = read_release(release, confidential=True)
    if opened.manifest.get("status") == CONFIDENTIAL:
        raise OutputError(f"{release} is {CONFIDENTIAL}: it tells the truth of real records, and is not to be signed")
    if signer is not None and not (_NAME.fullmatch(signer) and signer.isprintable()):
        raise ConfigError('signer: must be a name such as releases@example.org, without spaces or one of ,*?!"#')
    _refuse_part(release)
    here = [name for name in (SIGNATURE, OF_MANIFEST) if os.path.lexists(release / name)]
    if here and not overwrite:
        raise OutputError(f"{release / here[0]} is a signature; replace it with --overwrite")
    private = None if key is None else read_private_key(key, ask)
    now = datetime.now(UTC).strftime(_TIME)
    text = _statement(opened, _files(opened) | _beside(release, beside), signer or _UNNAMED, now).encode()
    made = None if private is None else sign_text(text, private)
    # A signature of an earlier statement is none of this one.
    with system_fault(OutputError, f"{release} cannot be signed"), whole():
        for name in (*here, *([STATEMENT] if os.path.lexists(release / STATEMENT) else [])):
            (release / name).unlink()
        _write(release / STATEMENT, text)
        if made is not None:
            _write(release / SIGNATURE, made.encode())
        sync(release)
    return release / (STATEMENT if made is None else SIGNATURE)


def _write(path: Path, content: bytes) -> None:
    with path.open("xb") as file:
        file.write(content)
    sync(path)


def _refuse_part(release: Path) -> None:
    """Refuse a part of a release, which lists all the files of its parts."""
    around = release.absolute().parent
    if kind_of(around / MANIFEST) != FILE:
        return
    try:
        whole_release = read_release(around, confidential=True)
    except OutputError:
        return
    if release.absolute().name in part_names(whole_release.manifest):
        raise OutputError(f"{release} is a part of {around}; sign that")


def _files(release: ReleaseFolder) -> dict[str, str]:
    """SHA-256 of every file of a release, as its manifest tells them, and of the manifest."""
    listed: Mapping[str, Mapping[str, Any]] = release.manifest["tables"] | release.manifest.get("reports", {})
    return {name: str(told["sha256"]) for name, told in listed.items()} | {MANIFEST: release.sha256}


def _beside(release: Path, places: Sequence[Path]) -> dict[str, str]:
    """SHA-256 of files that lie elsewhere, by their paths from the release; of folders every file."""
    found: dict[str, str] = {}
    for place in places:
        if kind_of(place) != FOLDER:
            must_be(FILE, place, "name a page, an export or a folder of these")
        for path in sorted(place.rglob("*")) if place.is_dir() else [place]:
            if kind_of(path) != FOLDER or path.is_symlink():
                name = Path(os.path.relpath(path.resolve(), release.resolve())).as_posix()
                if not name.startswith("../"):
                    raise ConfigError(f"beside: {path} lies in the release, whose files are signed anyway")
                if not name.isprintable():
                    raise ConfigError(f"beside: {name!a} has a character that cannot be shown; give it another name")
                with system_fault(InputError, f"beside: {path} cannot be read"):
                    found[name] = checksum(path)
    return found


def _statement(release: ReleaseFolder, files: Mapping[str, str], signer: str, signed: str) -> str:
    """The text that is signed: what is released, who signs it when, and every file."""
    head = (
        "yupana release statement 1",
        f"product: {release.name}",
        f"status: {release.manifest.get('status', _UNNAMED)}",
        f"signer: {signer}",
        f"signed: {signed}",
    )
    return "".join((*(f"# {line}\n" for line in head), *(f"{digest}  {name}\n" for name, digest in files.items())))


def verify_release(release: ReleaseFolder, signers: Path | None) -> _Verified:
    """Verify the signature of a release; that its files are those of the manifest is for `ReleaseFolder.wrong`.

    A release that was changed after it was signed, one that another signed, and one that was signed after its key was
    withdrawn are told apart.

    Parameters
    ----------
    signers : Path, optional
        A file of signers, as ``ssh-keygen -Y verify -f`` takes it. Without one it is told that nothing was verified.

    Raises
    ------
    InputError
        If ``signers`` cannot be read.
    ConfigError
        If the extra ``sign`` is not installed.
    """
    folder = release.folder
    here = [name for name in (SIGNATURE, OF_MANIFEST) if os.path.lexists(folder / name)]
    if signers is None:
        if here:
            return _Verified(unchecked=(f"the signature in {here[0]}, for --signers names no file of signers",))
        unsigned = os.path.lexists(folder / STATEMENT)
        return _Verified(unchecked=(f"who made it: {STATEMENT} has no signature",) if unsigned else ())
    known = read_signers(signers)
    if not here:
        return _Verified((f"it is not signed: there is no {SIGNATURE}",))
    found = [_verified(release, name, known, signers) for name in here]
    wrong = tuple(fault for one in found for fault in one.wrong)
    unchecked = tuple(note for one in found for note in one.unchecked)
    return _Verified(wrong, unchecked, "" if wrong else "; ".join(one.signed for one in found))


def _verified(release: ReleaseFolder, name: str, known: Sequence[Signer], signers: Path) -> _Verified:
    """Verify one of the signatures that a release may have."""
    of = STATEMENT if name == SIGNATURE else MANIFEST
    try:
        text = read_regular(release.folder / of, _LARGEST)
        signature = verify_text(read_regular(release.folder / name, LARGEST_SIGNATURE), text)
    except (OSError, ValueError):
        return _Verified((f"{name} or {of}, which it signs, cannot be read",))
    except OtherTextError:
        return _Verified((f"{of} was changed after it was signed, or {name} is the signature of another release",))
    except SignatureError as error:
        return _Verified((f"{name} {error}",))
    if of == STATEMENT:
        return _stated(release, text, signature, known, signers)
    wrong, signed = _judged(signature, _UNNAMED, None, known, signers)
    changed = [] if hashlib.sha256(text).hexdigest() == release.sha256 else [f"{MANIFEST} has just been changed"]
    return _Verified((*wrong, *changed), signed=signed)


def _stated(
    release: ReleaseFolder, text: bytes, signature: Signature, known: Sequence[Signer], signers: Path
) -> _Verified:
    """Compare a signed statement with its release."""
    try:
        stated = _HEAD.match(text.decode("utf-8"))
        when = datetime.strptime(stated["signed"], _TIME).replace(tzinfo=UTC) if stated else None
    except ValueError:
        stated = when = None
    if stated is None or when is None:
        return _Verified((f"{STATEMENT} is signed, and is no statement on a release",))
    wrong, signed = _judged(signature, stated["signer"], when, known, signers)
    lines = {line[2]: line[1] for line in _LINE.finditer(stated.string, stated.end())}
    beside = {path: digest for path, digest in lines.items() if path.startswith("../")}
    wrong += _changed(_files(release), {path: lines[path] for path in lines if path not in beside})
    due = _statement(release, _files(release) | beside, stated["signer"], stated["signed"])
    if not wrong and due != stated.string:
        wrong = [f"{STATEMENT} does not say of the release what {MANIFEST} does"]
    changed, missing = ([], []) if wrong else _compared(release.folder, beside)
    return _Verified((*wrong, *changed), tuple(missing), signed)


def _changed(here: Mapping[str, str], stated: Mapping[str, str]) -> list[str]:
    """What was done to a release after it was signed, in words."""
    ways = {
        "was changed": [name for name in stated if name in here and here[name] != stated[name]],
        "was removed": [name for name in stated if name not in here],
        "was added": [name for name in here if name not in stated],
    }
    return [
        f"{', '.join(names[:_MOST_TOLD])}{f' and {more:,} more' * (more > 0)} {way} after the release was signed"
        for way, names in ways.items()
        if names
        for more in (len(names) - _MOST_TOLD,)
    ]


def _compared(folder: Path, beside: Mapping[str, str]) -> tuple[list[str], list[str]]:
    """Which files beside a release were changed after it was signed, and which are not there, in words."""
    changed, missing = [], []
    for name, digest in beside.items():
        path = folder.resolve() / name
        try:
            if checksum(path) != digest:
                changed.append(f"{name} was changed after it was signed")
        except FileNotFoundError:
            missing.append(f"{name}, which is signed and not there")
        except OSError as error:
            changed.append(f"{name} is signed, and cannot be read: {error.strerror}")
    return changed, missing


def _judged(
    signature: Signature, signer: str, when: datetime | None, known: Sequence[Signer], signers: Path
) -> tuple[list[str], str]:
    """Why a signature counts for nothing, in words; or who signed; without a time it counts as of now."""
    now, by = datetime.now(UTC), fingerprint(signature.key)
    found = [one for one in known if one.key == signature.key]
    able = [one for one in found if matches(NAMESPACE, one.namespaces)]
    meant = [one for one in able if signer == _UNNAMED or matches(signer, one.principals)]
    faults = [_outside(one, when, now) for one in meant]
    key = f"{found[0].principals} (line {found[0].line} of {signers})" if found else ""
    if signature.namespace != NAMESPACE:
        wrong = f"it is signed as {signature.namespace!a}, and a release as {NAMESPACE!a}"
    elif not found:
        wrong = f"it is signed with {by}, a key that is not in {signers}"
    elif not able:
        wrong = f"it is signed with a key that is not for releases: {key}"
    elif not meant:
        wrong = f"it names {signer!a} as its signer, and is signed with the key of {key}"
    elif when is not None and when > now + _AHEAD:
        wrong = f"it is signed at {_written(when)}, which is still to come"
    elif all(faults):
        wrong = f"{faults[0]}: {key}"
    else:
        name = signer if signer != _UNNAMED else meant[faults.index("")].principals
        told = "without a time" if when is None else f"at {_written(when)}, as the signer says"
        return [], f"{name} with {by} {told}"
    return [wrong], ""


def _outside(signer: Signer, when: datetime | None, now: datetime) -> str:
    """Why a key could not sign at a time, in words; empty if it could."""
    moment = when or now
    told = f"it is signed at {_written(when)}" if when else "it is signed without a time"
    if signer.before is not None and moment > signer.before:
        return f"{told}, {'after' if when else 'and'} its key was withdrawn at {_written(signer.before)}"
    if signer.after is not None and moment < signer.after:
        return f"{told}, {'before' if when else 'and'} its key is valid from {_written(signer.after)}"
    return ""


def _written(when: datetime) -> str:
    return when.strftime(_TIME)
