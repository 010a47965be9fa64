"""A signed release: what was changed, signed by another, or signed too late is told, and which of these."""

import base64
import os
import random
import shutil
import subprocess
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta, tzinfo
from pathlib import Path

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import dsa, ec, ed25519, rsa

import yupana
from yupana.cli.main import main
from yupana.files import ssh_signature
from yupana.files.ssh_signature import OtherTextError, SignatureError, matches, read_private_key, verify_text
from yupana.interface.arguments import ask_passphrase
from yupana.release import signature
from yupana.release.manifest import OF_MANIFEST, SIGNATURE, STATEMENT

pytestmark = pytest.mark.usefixtures("here")

KEY = "AAAAC3NzaC1lZDI1NTE5AAAAIN4RAwwgbvKqQJHiNGuk9tNAxNenRW9lYi6H3GxsI/tF"
MADE_BY_OPENSSH = {
    KEY: """-----BEGIN SSH SIGNATURE-----
U1NIU0lHAAAAAQAAADMAAAALc3NoLWVkMjU1MTkAAAAg3hEDDCBu8qpAkeI0a6T200DE16
dFb2ViLofcbGwj+0UAAAAOeXVwYW5hLXJlbGVhc2UAAAAAAAAABnNoYTUxMgAAAFMAAAAL
c3NoLWVkMjU1MTkAAABAzdvZ1RNg6z+JZNT7Tn7GQZKhYtVxl9YIJnpe7py0dwihYuYAWb
ABev1haRjZsLyh9Wu4VkWGQFjJT45GYr6MAA==
-----END SSH SIGNATURE-----
""",
    "AAAAE2VjZHNhLXNoYTItbmlzdHAyNTYAAAAIbmlzdHAyNTYAAABBBIC5wOmLCHA9xk98HQfVxXXa/fMT9s/i2cpZ2Pod9ItXaQbLifNyK91poLWKi"
    "wwlJhD4hiwcxmSRsEK8JrSV2yA=": """-----BEGIN SSH SIGNATURE-----
U1NIU0lHAAAAAQAAAGgAAAATZWNkc2Etc2hhMi1uaXN0cDI1NgAAAAhuaXN0cDI1NgAAAE
EEgLnA6YsIcD3GT3wdB9XFddr98xP2z+LZylnY+h30i1dpBsuJ83Ir3WmgtYqLDCUmEPiG
LBzGZJGwQrwmtJXbIAAAAA55dXBhbmEtcmVsZWFzZQAAAAAAAAAGc2hhNTEyAAAAZQAAAB
NlY2RzYS1zaGEyLW5pc3RwMjU2AAAASgAAACEAzOhP/p1E0S3dKs/g1kfrxf0Jjuu+CNPB
OKZg9sTqcTgAAAAhAJgjBlLKZaqoeHUOO8nuGbmRvg2gxUHxxMQHTX+jTO4Z
-----END SSH SIGNATURE-----
""",
}
"""What ssh-keygen of OpenSSH 9.2 made of `TEXT`, by its public key."""

TEXT = b"a text\n"
NAME = "releases@example.org"
PrivateKey = ed25519.Ed25519PrivateKey | ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey


def written(folder: Path, name: str, key: PrivateKey) -> Path:
    """A key as ssh-keygen leaves it: NAME and NAME.pub."""
    form = serialization.PrivateFormat.OpenSSH
    content = key.private_bytes(serialization.Encoding.PEM, form, serialization.NoEncryption())
    path = folder / name
    path.write_bytes(content)
    path.chmod(0o600)
    public = key.public_key().public_bytes(serialization.Encoding.OpenSSH, serialization.PublicFormat.OpenSSH)
    (folder / f"{name}.pub").write_bytes(public + b"\n")
    return path


def no_terminal(question: str) -> str:
    raise AssertionError(question)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A release, keys of all kinds, and a file of signers that names the key `office`."""
    folder = tmp_path_factory.mktemp("made")
    (folder / "people.csv").write_text("region\n" + "N\nS\n" * 20)
    (folder / "SYNTHETIC").touch()
    yupana.count(folder / "people.csv", by="region", domains={"region": ["N", "S"]}, epsilon=1, out=folder / "release")
    for name in ("office", "other"):
        written(folder, name, ed25519.Ed25519PrivateKey.generate())
    written(folder, "p256", ec.generate_private_key(ec.SECP256R1()))
    written(folder, "p384", ec.generate_private_key(ec.SECP384R1()))
    written(folder, "p521", ec.generate_private_key(ec.SECP521R1()))
    written(folder, "rsa", rsa.generate_private_key(65537, 2048))
    return folder


@pytest.fixture
def here(made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "here"
    shutil.copytree(made, folder)
    monkeypatch.chdir(folder)
    signers("office")
    return folder


def signers(*names: str, who: str = NAME, options: str = 'namespaces="yupana-release"') -> None:
    lines = [f"{who} {options} {Path(f'{name}.pub').read_text()}" for name in names]
    Path("signers").write_text("# who may sign\n\n" + "".join(lines))


def wrong() -> str:
    """What check says is wrong, and that nobody is said to have signed it then."""
    found = yupana.check("release", signers="signers")
    assert bool(found.signed) != bool(found.wrong)
    return "; ".join(found.wrong)


def at(monkeypatch: pytest.MonkeyPatch, moment: str) -> None:
    """Let the clock of a signature show a time."""

    class Clock(datetime):
        @classmethod
        def now(cls, tz: tzinfo | None = None) -> datetime:
            return datetime.fromisoformat(moment).astimezone(tz)

    monkeypatch.setattr(signature, "datetime", Clock)


def forge() -> None:
    """Change a table, and write a manifest that fits it: what `check` alone believes."""
    table = Path("release/counts.csv")
    lines = table.read_text().splitlines()
    old = yupana.open_release("release").manifest["tables"]["counts.csv"]["sha256"]
    fields = lines[-1].split("|")
    at = lines[0].split("|").index("COUNT")
    fields[at] = str(int(fields[at]) + 7)
    table.write_text("\n".join([*lines[:-1], "|".join(fields)]) + "\n")
    manifest = Path("release/manifest.json")
    manifest.write_text(manifest.read_text().replace(old, signature.checksum(table)))


@pytest.mark.sampled(1)
@pytest.mark.parametrize("key", ["office", "p256", "p384", "p521", "rsa"])
@pytest.mark.slow
def test_a_signed_release_tells_who_signed_it(key: str) -> None:
    signers(key)
    assert yupana.check("release") == yupana.check("release")
    made = yupana.open_release("release").sign(key, signer=NAME)
    assert made == Path("release") / SIGNATURE
    found = yupana.check("release", signers="signers")
    assert found.wrong == found.unchecked == ()
    public = base64.b64decode(Path(f"{key}.pub").read_text().split()[1])
    assert found.signed.startswith(f"{NAME} with {ssh_signature.fingerprint(public)} at ")
    assert yupana.check("release").unchecked == (
        f"the signature in {SIGNATURE}, for --signers names no file of signers",
    )
    yupana.report("release", "page.html")
    yupana.certificate("release")


@pytest.mark.slow
def test_a_coherent_forgery_passes_check_and_not_the_signature() -> None:
    yupana.sign("release", "office", signer=NAME)
    forge()
    assert not yupana.check("release").wrong
    assert wrong() == "counts.csv, manifest.json was changed after the release was signed"
    yupana.sign("release", "other", signer=NAME, overwrite=True)
    assert "a key that is not in signers" in wrong()
    assert "changed" not in wrong()


@pytest.mark.thorough
def test_every_file_is_covered_and_told_by_its_name() -> None:
    yupana.sign("release", "office")
    kept = {path.name: path.read_bytes() for path in Path("release").iterdir()}
    listed = {line.split("  ")[1] for line in kept[STATEMENT].decode().splitlines() if not line.startswith("#")}
    assert listed == set(kept) - {STATEMENT, SIGNATURE}
    for name, content in kept.items():
        path = Path("release") / name
        path.write_bytes(content + b" ")
        assert wrong(), name
        if name != "manifest.json":
            assert name.removesuffix(".sig") in wrong()
        path.unlink()
        if name == "manifest.json":
            with pytest.raises(yupana.OutputError, match="is no release"):
                wrong()
        else:
            assert wrong(), name
        path.write_bytes(content)
    (Path("release") / "more.csv").touch()
    assert "more.csv is not in the manifest" in wrong()


@pytest.mark.slow
def test_no_byte_of_statement_and_signature_can_be_another() -> None:
    yupana.sign("release", "p256", signer=NAME)
    signers("p256")
    opened = yupana.open_release("release")
    rng = random.Random(1)  # noqa: S311 (which bits are flipped)
    for name in (STATEMENT, SIGNATURE):
        path = Path("release") / name
        kept = path.read_bytes()
        for place in [*range(0, len(kept), 5), len(kept) - 1]:
            path.write_bytes(kept[:place] + bytes([kept[place] ^ (1 << rng.randrange(8))]) + kept[place + 1 :])
            assert signature.verify_release(opened, Path("signers")).wrong, place
        for spoiled in (b"", kept[:-30], kept + kept, kept + b"\n\n", b"\0" + kept, kept * 9000):
            path.write_bytes(spoiled)
            assert signature.verify_release(opened, Path("signers")).wrong
        path.unlink()
        for become in (path.mkdir, lambda path=path: os.mkfifo(path), lambda path=path: path.symlink_to("nowhere")):
            become()
            assert signature.verify_release(opened, Path("signers")).wrong
            path.rmdir() if path.is_dir() else path.unlink()
        path.write_bytes(kept)
    assert not wrong()


@pytest.mark.thorough
def test_a_signature_counts_for_its_release_its_namespace_and_its_text_alone() -> None:
    yupana.sign("release", "office", signer=NAME)
    first = Path("release", SIGNATURE).read_bytes()
    shutil.copytree("release", "second")
    yupana.sign("second", "office", overwrite=True)
    Path("release", SIGNATURE).write_bytes(Path("second", SIGNATURE).read_bytes())
    assert "is the signature of another release" in wrong()
    Path("release", SIGNATURE).write_bytes(first)
    Path("release", OF_MANIFEST).write_bytes(first)
    assert "manifest.json was changed after it was signed, or manifest.json.sig is the signature of another" in wrong()
    Path("release", OF_MANIFEST).unlink()
    private = read_private_key(Path("office"), no_terminal)
    for text in (b"", b"any text\n", Path("release", STATEMENT).read_bytes().replace(b"# status", b"# state")):
        Path("release", STATEMENT).write_bytes(text)
        Path("release", SIGNATURE).write_text(ssh_signature.sign_text(text, private))
        assert "is no statement on a release" in wrong()


@pytest.mark.slow
def test_a_statement_that_adds_a_word_is_none() -> None:
    yupana.sign("release", "office", signer=NAME)
    private, kept = read_private_key(Path("office"), no_terminal), Path("release", STATEMENT).read_text()
    for text in (
        kept.replace("# status: ", "# status: approved "),
        kept + "approved by the minister\n",
        kept + kept.splitlines()[-1] + "\n",
        kept.replace("T", "T", 1).replace("  counts.csv", "   counts.csv"),
        "\n".join([*kept.splitlines()[:5], *reversed(kept.splitlines()[5:]), ""]),
    ):
        Path("release", STATEMENT).write_text(text)
        Path("release", SIGNATURE).write_text(ssh_signature.sign_text(text.encode(), private))
        assert wrong()


def test_another_namespace_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ssh_signature, "NAMESPACE", "git")
    yupana.sign("release", "office")
    assert "it is signed as 'git', and a release as 'yupana-release'" in wrong()


@pytest.mark.thorough
def test_a_key_signs_for_whom_and_what_its_line_says() -> None:
    yupana.sign("release", "office", signer=NAME)
    for who, options, told in (
        ("*@example.org", "", ""),
        (f"a@b,{NAME}", 'namespaces="git,yupana-*"', ""),
        ("*", 'NAMESPACES="yupana-release"', ""),
        ("somebody@else.org", "", f"it names '{NAME}' as its signer, and is signed with the key of somebody@else.org"),
        (f"*,!{NAME}", "", "as its signer"),
        (NAME, 'namespaces="git"', "is not for releases"),
        (NAME, "cert-authority", "names no signer|a key that is not in"),
    ):
        signers("office", who=who, options=options)
        if options == "cert-authority":
            assert "a key that is not in" in wrong()
        else:
            assert (told in wrong()) if told else not wrong()
    signers("other")
    assert "a key that is not in signers" in wrong()


@pytest.mark.slow
def test_a_signature_after_its_key_was_withdrawn_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patched:
        at(patched, "2026-06-30T23:30:00+00:00")
        yupana.sign("release", "office", signer=NAME)
    at(monkeypatch, "2030-01-01T00:00:00+00:00")
    monkeypatch.setenv("TZ", "America/Lima")
    time.tzset()
    try:
        for options, told in (
            ('valid-before="20260630233000Z"', ""),
            (
                'valid-before="20260630232959Z"',
                "it is signed at 2026-06-30T23:30:00Z, after its key was withdrawn at 20",
            ),
            ('valid-before="20260630Z"', "after its key was withdrawn at 2026-06-30T00:00:00Z"),
            ('valid-before="202606301830"', ""),
            ('valid-before="202606301829"', "after its key was withdrawn at 2026-06-30T23:29:00Z"),
            ('valid-after="20260701Z"', "before its key is valid from 2026-07-01T00:00:00Z"),
            ('valid-after="20260630",valid-before="20260701"', ""),
        ):
            signers("office", options=options)
            assert (told in wrong()) if told else not wrong(), options
    finally:
        monkeypatch.undo()
        time.tzset()


def test_what_tells_no_time_counts_as_now_and_none_lies_ahead(monkeypatch: pytest.MonkeyPatch) -> None:
    text = Path("release", "manifest.json").read_bytes()
    private = read_private_key(Path("office"), no_terminal)
    Path("release", OF_MANIFEST).write_text(ssh_signature.sign_text(text, private))
    assert yupana.check("release", signers="signers").signed.endswith(" without a time")
    signers("office", options='valid-before="20200101Z"')
    assert "without a time, and its key was withdrawn at 2020-01-01T00:00:00Z" in wrong()
    with monkeypatch.context() as patched:
        at(patched, (datetime.now(UTC) + timedelta(days=2)).isoformat())
        yupana.sign("release", "office", overwrite=True)
    signers("office")
    assert not Path("release", OF_MANIFEST).exists()
    assert "which is still to come" in wrong()


@pytest.mark.slow
def test_what_lies_beside_is_covered_where_it_is_named() -> None:
    Path("pages").mkdir()
    for name in ("page.html", "pages/a b.html", "pages/ñ.csv"):
        Path(name).write_text(name)
    yupana.sign("release", "office", beside=["page.html", "pages"])
    assert not wrong()
    if shutil.which("sha256sum"):
        subprocess.run(["sha256sum", "--quiet", "--strict", "-c", STATEMENT], cwd="release", check=True)
    Path("page.html").write_text("changed")
    assert wrong() == "../page.html was changed after it was signed"
    Path("page.html").unlink()
    assert yupana.check("release", signers="signers").unchecked == ("../page.html, which is signed and not there",)
    os.mkfifo("page.html")
    assert "cannot be read" in wrong()
    with pytest.raises(yupana.ConfigError, match="lies in the release"):
        yupana.sign("release", "office", beside="release", overwrite=True)
    with pytest.raises(yupana.InputError, match=r"page\.html is a pipe"):
        yupana.sign("release", "office", beside="page.html", overwrite=True)


@pytest.mark.slow
def test_what_is_not_sound_signed_or_confidential_is_not_signed(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    yupana.sign("release", "office")
    with pytest.raises(yupana.OutputError, match="replace it with --overwrite"):
        yupana.sign("release", "office")
    with Path("release/counts.csv").open("a") as table:
        table.write("x")
    with pytest.raises(yupana.OutputError, match="does not hold together, and is not signed"):
        yupana.sign("release", "office", overwrite=True)
    shutil.rmtree("release")
    yupana.count("people.csv", by="region", domains={"region": ["N", "S"]}, epsilon=1, out="release", seed=1)
    yupana.sign("release", "office")
    assert "# status: NOT FOR RELEASE\n" in Path("release", STATEMENT).read_text()
    for name in ("a b", "", "*", "a,b", "x" * 300, "a\u202eb", "!a"):
        with pytest.raises(yupana.ConfigError, match="signer: must be a name"):
            yupana.sign("release", "office", signer=name, overwrite=True)
    assert main(["check", "release", "--signers", "signers"]) == 0
    assert "signed by " in capsys.readouterr().out
    found = yupana.open_release("release")
    confidential = type(found)(found.folder, {**found.manifest, "status": "CONFIDENTIAL"}, found.sha256)
    monkeypatch.setattr(signature, "read_release", lambda *_, **__: confidential)
    with pytest.raises(yupana.OutputError, match="is CONFIDENTIAL"):
        yupana.sign("release", "office", overwrite=True)


@pytest.mark.slow
def test_an_unsigned_release_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    assert wrong() == "it is not signed: there is no signed.txt.sig"
    assert yupana.check("release").unchecked == ()
    assert main(["sign", "release", "--signer", NAME]) == 0
    assert f"ssh-keygen -Y sign -n yupana-release -f KEY release/{STATEMENT}" in capsys.readouterr().out
    assert yupana.check("release").unchecked == ("who made it: signed.txt has no signature",)
    assert "it is not signed" in wrong()
    text = Path("release", STATEMENT).read_bytes()
    Path("release", SIGNATURE).write_text(ssh_signature.sign_text(text, read_private_key(Path("office"), no_terminal)))
    assert not wrong()


@pytest.mark.thorough
def test_what_is_no_key_is_called_what_it_is() -> None:
    kept, form = Path("office").read_bytes(), serialization.PrivateFormat
    pem = serialization.Encoding.PEM
    weak = rsa.generate_private_key(65537, 1024)  # noqa: S505 (refused)
    old = dsa.generate_private_key(1024)  # noqa: S505 (refused)
    curve = ec.generate_private_key(ec.SECP256K1())
    plain = serialization.NoEncryption()
    for content, told in (
        (Path("office.pub").read_bytes(), "is a public key"),
        (b"PuTTY-User-Key-File-3: ssh-ed25519\n", "is a key of PuTTY"),
        (b"", "is no private key"),
        (b"no key\n", "is no private key"),
        (kept * 200, "has more than"),
        (kept[:100] + kept[180:], "is damaged"),
        (kept.replace(b"b3Bl", b"b3Bm"), "is damaged"),
        *(
            (one.private_bytes(pem, form.PKCS8, plain), "a key that cannot sign here; use Ed25519, ECDSA, or RSA")
            for one in (weak, old, curve)
        ),
    ):
        path = Path("key")
        path.write_bytes(content)
        path.chmod(0o600)
        with pytest.raises(yupana.InputError, match=told) as refused:
            yupana.sign("release", path)
        assert not set(kept.decode().split()[4:-4]) & set(str(refused.value).split())
        assert not Path("release", SIGNATURE).exists()
    Path("office").chmod(0o640)
    with pytest.raises(yupana.InputError, match=r"others than you can read office.*chmod 600 office"):
        yupana.sign("release", "office")


def test_a_passphrase_is_asked_for_where_there_is_one(monkeypatch: pytest.MonkeyPatch) -> None:
    private = read_private_key(Path("office"), no_terminal)
    locked = serialization.BestAvailableEncryption(b"correct horse")
    content = private.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, locked)
    Path("locked").write_bytes(content)
    Path("locked").chmod(0o600)
    asked: list[str] = []

    def answering(words: str) -> Callable[[str], str]:
        return lambda question: (asked.append(question), words)[1]

    assert read_private_key(Path("locked"), answering("correct horse"))
    assert asked == ["Passphrase of locked: "]
    for words in ("wrong", ""):
        with pytest.raises(yupana.InputError, match="is not opened by this passphrase"):
            read_private_key(Path("locked"), answering(words))

    opened = os.open

    def none(place: str, *arguments: int) -> int:
        if place == "/dev/tty":
            raise OSError
        return opened(place, *arguments)

    monkeypatch.setattr("yupana.interface.arguments.os.open", none)
    with pytest.raises(yupana.ConfigError, match="there is no terminal to ask for it"):
        ask_passphrase("Passphrase of locked: ")


@pytest.mark.parametrize(
    "line",
    [
        "x",
        f"{NAME} ssh-ed25519",
        f"{NAME} ssh-ed25519 AAAA",
        f"{NAME} ssh-rsa {KEY}",
        f"{NAME} ssh-ed25519 {KEY[:30]}%%{KEY[32:]}",
        f'{NAME} valid-from="20260101" ssh-ed25519 {KEY}',
        f'{NAME} valid-before="20261301Z" ssh-ed25519 {KEY}',
        f'{NAME} valid-before="now" ssh-ed25519 {KEY}',
        f'{NAME} valid-after="20260102Z",valid-before="20260101Z" ssh-ed25519 {KEY}',
        f'"{NAME}',
        f'"{NAME}" ',
    ],
)
def test_a_line_that_names_no_signer_is_named(line: str) -> None:
    with Path("signers").open("a") as file:
        file.write(f"{line}\n")
    with pytest.raises(yupana.InputError, match="signers, line 4: "):
        yupana.check("release", signers="signers")


def test_a_file_of_signers_is_one() -> None:
    for content in (b"", b"# nobody\n", b"\xff\xfe\0", b"\n" * ((1 << 24) + 1)):
        Path("signers").write_bytes(content)
        with pytest.raises(yupana.InputError, match=r"signers (names no signer|is no file of signers)"):
            yupana.check("release", signers="signers")
    separated = f"{NAME} {Path('office.pub').read_text().strip()} note\u2028* {Path('other.pub').read_text()}"
    Path("signers").write_text(separated)  # for OpenSSH a line ends with a line feed alone
    yupana.sign("release", "other")
    assert "a key that is not in" in wrong()


@pytest.mark.parametrize("key", MADE_BY_OPENSSH)
def test_signatures_of_openssh_are_verified(key: str) -> None:
    made = MADE_BY_OPENSSH[key].encode()
    found = verify_text(made, TEXT)
    assert (found.key, found.namespace) == (base64.b64decode(key), "yupana-release")
    assert verify_text(made.replace(b"\n", b"\r\n"), TEXT) == found
    with pytest.raises(OtherTextError):
        verify_text(made, TEXT + b"\n")
    blob = base64.b64decode(b"".join(made.splitlines()[1:-1]))
    for spoiled in (
        blob + b"\0",
        blob.replace(b"sha512", b"md5555"),
        blob.replace(b"SSHSIG\0\0\0\1", b"SSHSIG\0\0\0\2"),
        blob.replace(b"yupana-release\0\0\0\0", b"yupana-release\0\0\0\1x"),
        blob[:40],
        *(blob[:place] + bytes([blob[place] ^ 1]) + blob[place + 1 :] for place in range(len(blob))),
    ):
        with pytest.raises(SignatureError):
            verify_text(_armored(spoiled), TEXT)


def _armored(blob: bytes) -> bytes:
    return b"-----BEGIN SSH SIGNATURE-----\n" + base64.b64encode(blob) + b"\n-----END SSH SIGNATURE-----\n"


def test_patterns_are_those_of_openssh() -> None:
    assert matches("a@b.org", "*")
    assert matches("a@b.org", "x,?@*.org")
    assert not matches("a@b.org", "a@b?org,!a@*")
    assert not matches("a@b.org", "a@b")
    assert not matches("a@b.org", "[a]@b.org")
    assert not matches("a@bxorg", "a@b.org")
    assert not matches("a", "!b")


@pytest.mark.skipif(shutil.which("ssh-keygen") is None, reason="ssh-keygen is not installed")
@pytest.mark.parametrize("key", ["office", "p384", "rsa"])
@pytest.mark.slow
def test_openssh_verifies_ours_and_we_verify_those_of_openssh(key: str) -> None:
    signers(key)
    verify = ["ssh-keygen", "-Y", "verify", "-f", "signers", "-I", NAME, "-n", "yupana-release", "-s"]
    yupana.sign("release", key, signer=NAME)
    statement = Path("release", STATEMENT)
    subprocess.run([*verify, f"release/{SIGNATURE}"], input=statement.read_bytes(), check=True, capture_output=True)
    yupana.sign("release", signer=NAME, overwrite=True)
    sign = ["ssh-keygen", "-Y", "sign", "-n", "yupana-release", "-f", key]
    subprocess.run([*sign, str(statement)], check=True, capture_output=True)
    assert not wrong()
    subprocess.run([*sign, "release/manifest.json"], check=True, capture_output=True)
    assert not wrong()
