"""Signatures as ``ssh-keygen -Y sign`` makes them, private keys as ``ssh-keygen`` writes them, and who may sign.

The form of a signature is PROTOCOL.sshsig of OpenSSH, that of a file of signers ALLOWED SIGNERS in ssh-keygen(1).
"""

import binascii
import hashlib
import os
import re
import stat
from base64 import b64encode
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from yupana.errors import ConfigError, InputError, needing
from yupana.files.regular import FILE, must_be, read_regular

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
    from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey

    PrivateKey: TypeAlias = Ed25519PrivateKey | RSAPrivateKey | EllipticCurvePrivateKey

NAMESPACE: Final = "yupana-release"
"""What a signature is for, so that a key's signatures of mail or of commits are none of releases."""

_MAGIC: Final = b"SSHSIG"
_HEAD: Final = _MAGIC + b"\0\0\0\1"
"""With the version."""

_BEGIN: Final = "-----BEGIN SSH SIGNATURE-----"
_END: Final = "-----END SSH SIGNATURE-----"
_HASHES: Final = {b"sha256": "sha256", b"sha512": "sha512"}
_ALGORITHMS: Final = {
    "ssh-ed25519": {b"ssh-ed25519"},
    "ssh-rsa": {b"rsa-sha2-256", b"rsa-sha2-512"},
    **{f"ecdsa-sha2-nistp{bits}": {b"ecdsa-sha2-nistp%d" % bits} for bits in (256, 384, 521)},
}
"""Of each kind of key how it may sign."""

_KINDS: Final = "Ed25519, ECDSA, or RSA of at least 2048 bits"
_LEAST_BITS: Final = 2048
_LARGEST_KEY: Final = 1 << 16
LARGEST_SIGNATURE: Final = 1 << 16
_LARGEST_SIGNERS: Final = 1 << 24
"""Bytes of files; a larger one is another thing."""

_NO_SIGNATURE: Final = "is no signature as ssh-keygen -Y sign makes them"


class SignatureError(Exception):
    """What is no signature, or none that can be verified; its words follow the name of the file."""


class OtherTextError(SignatureError):
    """A signature of another text."""


@dataclass(frozen=True, slots=True)
class Signature:
    """A signature that is of its text, by the key that it names."""

    key: bytes  # the public key, as SSH encodes it
    namespace: str


@dataclass(frozen=True, slots=True)
class Signer:
    """A line of a file of signers."""

    line: int  # its number, from 1
    # principals, namespaces: patterns, separated by commas; no namespaces are all
    principals: str
    namespaces: str
    key: bytes  # as of `Signature`
    # after, before: from when to when it may sign, both included
    after: datetime | None = None
    before: datetime | None = None


def fingerprint(key: bytes) -> str:
    """A public key as ``ssh-keygen -l`` shows it."""
    return "SHA256:" + b64encode(hashlib.sha256(key).digest()).decode().rstrip("=")


def matches(text: str, patterns: str) -> bool:
    """Whether a text is among patterns separated by commas, with ``*`` and ``?``; one that begins with ``!`` excludes.

    Source
    ------
    PATTERNS in ssh_config(5).
    """
    found = False
    for pattern in patterns.split(","):
        body = re.escape(pattern.removeprefix("!")).replace(r"\*", ".*").replace(r"\?", ".")
        if re.fullmatch(body, text, re.DOTALL):
            if pattern.startswith("!"):
                return False
            found = True
    return found


def sign_text(text: bytes, key: "PrivateKey") -> str:
    """Sign a text, as ``ssh-keygen -Y sign -n yupana-release`` does.

    Source
    ------
    PROTOCOL.sshsig of OpenSSH; RFC 8332 (RSA), RFC 5656 (ECDSA), RFC 8709 (Ed25519).
    """
    rsa, padding, ec, hashes, utils, form = _cryptography()
    public = key.public_key().public_bytes(form.Encoding.OpenSSH, form.PublicFormat.OpenSSH).split(b" ")
    signed = _signed_data(NAMESPACE.encode(), b"sha512", text)
    algorithm: bytes = public[0]
    made: Any = key  # each kind has a method of its own
    if isinstance(key, rsa.RSAPrivateKey):
        algorithm, raw = b"rsa-sha2-512", made.sign(signed, padding.PKCS1v15(), hashes.SHA512())
    elif isinstance(key, ec.EllipticCurvePrivateKey):
        found = utils.decode_dss_signature(made.sign(signed, ec.ECDSA(_curve_hash(algorithm, hashes))))
        raw = b"".join(_string(one.to_bytes(one.bit_length() // 8 + 1, "big")) for one in found)
    else:
        raw = made.sign(signed)
    fields = (binascii.a2b_base64(public[1]), NAMESPACE.encode(), b"", b"sha512", _string(algorithm) + _string(raw))
    blob = b64encode(_HEAD + b"".join(map(_string, fields))).decode()
    lines = [blob[at : at + 70] for at in range(0, len(blob), 70)]
    armored = "\n".join((_BEGIN, *lines, _END, ""))
    verify_text(armored.encode(), text)  # a machine that errs once could give an RSA key away
    return armored


def verify_text(armored: bytes, text: bytes) -> Signature:
    """Verify that a signature is of a text, by the key that it names; who may sign is not asked.

    It is read strictly: of all the ways to write its bytes one is taken, and only hashes and kinds of keys that OpenSSH
    takes.

    Raises
    ------
    SignatureError
        If it is no signature.
    OtherTextError
        If it is none of this text by the key that it names.
    ConfigError
        If the extra ``sign`` is not installed.

    Source
    ------
    As `sign_text`.
    """
    try:
        written = armored.decode("ascii").replace("\r\n", "\n")
        begin, *lines, end = written.removesuffix("\n").split("\n")
        blob = binascii.a2b_base64("".join(lines), strict_mode=True)
        head, fields = blob[: len(_HEAD)], _strings(blob[len(_HEAD) :])
        key, namespace, reserved, algorithm, raw = fields
        used, value = _strings(raw)
        kind, name = _strings(key, whole=False)[0].decode("ascii"), namespace.decode("ascii")
    except ValueError:
        raise SignatureError(_NO_SIGNATURE) from None
    if (begin, end, head, reserved) != (_BEGIN, _END, _HEAD, b""):
        raise SignatureError(_NO_SIGNATURE)
    if kind not in _ALGORITHMS:
        raise SignatureError(f"is by a key of the kind {kind!a}, which cannot be verified here; use {_KINDS}")
    if algorithm not in _HASHES or used not in _ALGORITHMS[kind]:
        raise SignatureError("is of an algorithm that OpenSSH does not take")
    if not _verified(written, text, kind, key, name, algorithm, value):
        raise OtherTextError("is not a signature of this text")
    return Signature(key, name)


def _verified(armored: str, text: bytes, kind: str, key: bytes, name: str, algorithm: bytes, value: bytes) -> bool:
    """Whether a signature is of a text; ECDSA is what the library does not have."""
    rsa, _, ec, hashes, utils, form = _cryptography()
    library, invalid = import_module("sshsig"), import_module("cryptography.exceptions")
    try:
        public = form.load_ssh_public_key(kind.encode() + b" " + b64encode(key))
        if isinstance(public, rsa.RSAPublicKey) and public.key_size < _LEAST_BITS:
            raise SignatureError(f"is by an RSA key of {public.key_size} bits; use {_KINDS}")
        if not isinstance(public, ec.EllipticCurvePublicKey):
            library.check_signature(text, armored, name)
            return True
        numbers = [int.from_bytes(one, "big", signed=True) for one in _strings(value)]
        signed = _signed_data(name.encode(), algorithm, text)
        public.verify(utils.encode_dss_signature(*numbers), signed, ec.ECDSA(_curve_hash(kind.encode(), hashes)))
    except (library.InvalidSignature, invalid.InvalidSignature, invalid.UnsupportedAlgorithm):
        return False
    except (NotImplementedError, ValueError, TypeError, AssertionError):  # of bytes that are no key or no value
        return False
    return True


def _signed_data(namespace: bytes, algorithm: bytes, text: bytes) -> bytes:
    """What is signed in place of a text."""
    digest = hashlib.new(_HASHES[algorithm], text).digest()
    return _MAGIC + b"".join(map(_string, (namespace, b"", algorithm, digest)))


def _string(content: bytes) -> bytes:
    return len(content).to_bytes(4, "big") + content


def _strings(content: bytes, *, whole: bool = True) -> list[bytes]:
    """The strings that SSH writes one after the other; of what is not whole the first."""
    found: list[bytes] = []
    at = 0
    while at < len(content) and (whole or not found):
        end = at + 4 + int.from_bytes(content[at : at + 4], "big")
        if end > len(content):
            raise ValueError("a string is longer than what holds it")
        found.append(content[at + 4 : end])
        at = end
    if not found:
        raise ValueError("there is no string")
    return found


def _curve_hash(kind: bytes, hashes: Any) -> Any:  # noqa: ANN401 (of the library)
    """The hash of an elliptic curve: RFC 5656, section 6.2.1."""
    return {b"256": hashes.SHA256, b"384": hashes.SHA384, b"521": hashes.SHA512}[kind[-3:]]()


def _cryptography() -> tuple[Any, ...]:
    """Of the library: rsa, padding, ec, hashes, utils and serialization."""
    at = "cryptography.hazmat.primitives"
    with needing("signatures need the package sshsig", "sign"):
        import_module("sshsig")
        return (
            *(import_module(f"{at}.asymmetric.{name}") for name in ("rsa", "padding", "ec")),
            *(import_module(f"{at}.{name}") for name in ("hashes", "asymmetric.utils", "serialization")),
        )


def read_private_key(path: Path, ask: Callable[[str], str]) -> "PrivateKey":
    """Read a private key: OpenSSH's own form, or PEM.

    Nothing of it gets into a message.

    Parameters
    ----------
    ask : callable
        For its passphrase, with a question; called only if it has one.

    Raises
    ------
    InputError
        If it is no private key that can sign here, others can read it, or the passphrase is wrong.
    ConfigError
        If the extra ``sign``, or what opens its passphrase, is not installed.
    """
    must_be(FILE, path, "name a private key")
    try:
        content, status = read_regular(path, _LARGEST_KEY), path.stat()
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror}; name a private key") from None
    except ValueError:
        raise InputError(f"{path} is no private key: it has more than {_LARGEST_KEY:,} bytes") from None
    head = content.lstrip()[:80].decode("latin-1")
    if head.startswith(("ssh-", "ecdsa-", "sk-", "-----BEGIN PUBLIC", "-----BEGIN SSH2 PUBLIC", "---- BEGIN SSH2 PUB")):
        raise InputError(f"{path} is a public key; name the private one, mostly the same name without .pub")
    if head.startswith("PuTTY"):
        raise InputError(f"{path} is a key of PuTTY; export it as an OpenSSH key: puttygen KEY -O private-openssh")
    if not re.match(r"-----BEGIN ([A-Z]+ )?PRIVATE KEY-----", head):
        raise InputError(f"{path} is no private key as ssh-keygen writes them")
    if status.st_uid == os.getuid() and stat.S_IMODE(status.st_mode) & 0o077:
        raise InputError(f"others than you can read {path}, or write to it: chmod 600 {path}, or make a new key")
    rsa, _, ec, _, _, form = _cryptography()
    loaded = _loaded(path, content, form, ask)
    is_curve = isinstance(loaded, ec.EllipticCurvePrivateKey) and loaded.curve.name in _CURVES
    edwards = import_module("cryptography.hazmat.primitives.asymmetric.ed25519").Ed25519PrivateKey
    is_rsa = isinstance(loaded, rsa.RSAPrivateKey) and loaded.key_size >= _LEAST_BITS
    if not (is_curve or is_rsa or isinstance(loaded, edwards)):
        raise InputError(f"{path} is a key that cannot sign here; use {_KINDS}")
    found: PrivateKey = loaded
    return found


_CURVES: Final = {"secp256r1", "secp384r1", "secp521r1"}


def _loaded(path: Path, content: bytes, form: Any, ask: Callable[[str], str]) -> Any:  # noqa: ANN401 (of the library)
    """A private key of any kind."""
    unsupported = import_module("cryptography.exceptions").UnsupportedAlgorithm
    load = form.load_ssh_private_key if b"OPENSSH PRIVATE" in content[:80] else form.load_pem_private_key
    passphrase: bytes | None = None
    try:
        try:
            return load(content, None)
        except TypeError:  # so the library says that there is a passphrase
            passphrase = ask(f"Passphrase of {path}: ").encode()
            return load(content, passphrase)
    except unsupported as error:
        if "bcrypt" in str(error):
            raise ConfigError(
                f"{path} has a passphrase, and to open it the package bcrypt is needed: install Yupana's extra sign "
                "(docs/README.md), or let ssh-keygen sign (docs/signing.md)"
            ) from None
    except (ValueError, TypeError):
        if passphrase is not None:
            raise InputError(f"{path} is not opened by this passphrase, or is damaged") from None
    raise InputError(f"{path} is damaged, or a key that cannot sign here; use {_KINDS}")


def read_signers(path: Path) -> tuple[Signer, ...]:
    """Read a file of signers, as ``ssh-keygen -Y verify -f`` takes it.

    Lines with ``cert-authority`` are passed over, for certificates do not sign here.

    Raises
    ------
    InputError
        If a line is none; it is named.
    ConfigError
        If the extra ``sign`` is not installed.
    """
    must_be(FILE, path, "name a file of signers (docs/signing.md)")
    _cryptography()
    try:
        lines = read_regular(path, _LARGEST_SIGNERS).decode("utf-8-sig").split("\n")
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror}") from None
    except ValueError:
        raise InputError(f"{path} is no file of signers: too large, or no text in UTF-8") from None
    found = []
    for number, line in enumerate(lines, 1):
        text = line.strip(" \t\r")
        if text and not text.startswith("#"):
            try:
                found.append(_signer(number, text))
            except (ValueError, IndexError):
                wanted = 'NAME namespaces="yupana-release" ssh-ed25519 AAAA...'
                raise InputError(f"{path}, line {number}: is none of a file of signers, such as {wanted}") from None
            except _WindowError as error:
                raise InputError(f"{path}, line {number}: {error}") from None
    if not found:
        raise InputError(f"{path} names no signer; docs/signing.md has an example")
    return tuple(one for one in found if one is not None)


class _WindowError(Exception):
    """A time that is none, or a window that never opens."""


def _signer(number: int, line: str) -> Signer | None:
    """One line; None if it is of an authority."""
    told = import_module("sshsig.allowed_signers").AllowedSigner.parse(line)
    key = binascii.a2b_base64(told.base64_key, strict_mode=True)
    if _strings(key, whole=False)[0] != told.key_type.encode():
        raise ValueError("a key of another kind")
    options = told.options or {}
    after, before = (_time(options[name], name) if name in options else None for name in ("valid-after", _BEFORE))
    if after is not None and before is not None and before <= after:
        raise _WindowError(f"{_BEFORE} is not later than valid-after")
    if "cert-authority" in options:
        return None
    return Signer(number, told.principals, options.get("namespaces", "*"), key, after, before)


_BEFORE: Final = "valid-before"
_TIMES: Final = {8: "%Y%m%d", 12: "%Y%m%d%H%M", 14: "%Y%m%d%H%M%S"}


def _time(text: str, name: str) -> datetime:
    """A time as OpenSSH writes it: that of this machine's zone, or with Z that of UTC."""
    digits = text.removesuffix("Z")
    try:
        moment = datetime.strptime(digits, _TIMES[len(digits) if re.fullmatch("[0-9]+", digits) else 0])  # noqa: DTZ007 (the zone follows)
        return moment.replace(tzinfo=UTC) if text.endswith("Z") else moment.astimezone(UTC)
    except (ValueError, KeyError, OverflowError, OSError):
        raise _WindowError(f"{name} must be a time such as 20300101 or 20300101120000Z") from None
