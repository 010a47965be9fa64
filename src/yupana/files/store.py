"""Files on a store, read by pyarrow with credentials of the environment, which are neither kept nor told.

An object store (``s3``) is asked by pyarrow itself; all other kinds by the connector of a cluster (`open_hadoop`).
"""

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from yupana.errors import ConfigError, InputError, needing

if TYPE_CHECKING:
    from pyarrow import NativeFile
    from pyarrow.fs import FileSystem, HadoopFileSystem, S3FileSystem


_NO_SIGNALS: Final = "-Xrs"
"""Tells a Java machine to leave signals to the process it is in, which removes its scratch when it is interrupted."""


def open_hadoop(scheme: str, authority: str) -> "HadoopFileSystem":
    """Open a file system with the connector, the settings and the rights that this machine has of its cluster.

    Parameters
    ----------
    scheme : str
        Such as ``hdfs`` or ``s3a``.
    authority : str
        The name node, or the bucket; empty for the cluster's default.

    Raises
    ------
    ConfigError
        If there is no connector on this machine.
    InputError
        If it cannot open the file system.
    """
    with needing(f"DATA {scheme}://... needs pyarrow", "s3"):
        from pyarrow.fs import HadoopFileSystem  # noqa: PLC0415
    options = os.environ.get("LIBHDFS_OPTS", "").split()
    if _NO_SIGNALS not in options:
        os.environ["LIBHDFS_OPTS"] = " ".join((*options, _NO_SIGNALS))
    named = {"fs.defaultFS": f"{scheme}://{authority}"} if authority else {}
    try:
        # Of a host pyarrow makes a name node, whatever scheme it has; the default of a cluster may be any.
        return HadoopFileSystem("default", 0, extra_conf=named)
    except OSError as error:
        if "load lib" in str(error):
            raise ConfigError(
                f"DATA {scheme}://...: only a connector of a cluster reads this, and there is none on this machine "
                "(Java, HADOOP_HOME with lib/native/libhdfs.so, CLASSPATH as `hadoop classpath --glob` prints it); "
                "give a local folder, or s3://BUCKET/PREFIX"
            ) from None
        raise InputError(
            f"{scheme}://{authority}: the cluster's connector cannot open it; look at CLASSPATH (as `hadoop classpath "
            "--glob` prints it), HADOOP_CONF_DIR, the name, and your ticket or rights"
        ) from None


PATIENCE: Final = 30.0
"""Seconds after which a store that sends nothing is asked once more, or given up."""

ATTEMPTS: Final = 3
"""How often a store is asked."""

_CHUNK: Final = 8 << 20
_FIRST: Final = 1 << 20
_LEAST: Final = 12
"""Bytes of a Parquet file without anything in it."""

_MOST_LAST: Final = 1 << 28
_URL: Final = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+):(/+.*)", re.DOTALL)
_NAME: Final = "[A-Za-z0-9._-]+"
_PREFIX: Final = "(?:/(?P<prefix>.*))?"
_OF_BUCKET: Final = re.compile(f"//(?P<bucket>{_NAME}){_PREFIX}"), "BUCKET/PREFIX"
_OF_NODE: Final = re.compile(f"//(?P<bucket>{_NAME}(:[0-9]{{1,5}})?|)/+(?P<prefix>[^/].*)"), "NAMENODE/FOLDER"
_OF_CLUSTERS: Final = {"gs": _OF_BUCKET, "hdfs": _OF_NODE, "s3a": _OF_BUCKET, "viewfs": _OF_NODE}
"""What the connector of a cluster opens: what follows the scheme, and how to write it. A cluster has a default node."""

_KINDS: Final = {
    # A path that is made of a URL loses a slash.
    "s3": (re.compile(f"/+(?P<bucket>[a-z0-9][a-z0-9.-]{{1,61}}[a-z0-9]){_PREFIX}"), "BUCKET/PREFIX"),
    **_OF_CLUSTERS,
}
_ENDPOINT: Final = re.compile(r"(https?)://([A-Za-z0-9.-]+|\[[0-9A-Fa-f:]+\])(:[0-9]{1,5})?/?")
_HERE: Final = frozenset({"localhost", "127.0.0.1", "[::1]"})


@dataclass(frozen=True, slots=True)
class StoredFile:
    """A file of a store."""

    name: str  # from the prefix on, its folders with `/` between them
    size: int  # in bytes


@dataclass(frozen=True, slots=True, repr=False)
class FileEnds:
    """What stands at the ends of a file; may hold records."""

    # first, last: from the beginning; and the footer, if the file is Parquet
    first: bytes
    last: bytes
    version: str  # as `StoreReader.version` tells it


@dataclass(frozen=True, slots=True)
class Store:
    """The files below a prefix of a bucket, without credentials and connection, so that it may be sent anywhere."""

    scheme: str  # `s3`, or one that the connector of a cluster opens
    # bucket, prefix: the bucket, or the name node, or nothing for the cluster's default; the prefix without `/` at its
    # ends, empty for all of it
    bucket: str
    prefix: str

    @property
    def url(self) -> str:
        """As a user writes it."""
        return f"{self.scheme}://{self.bucket}/{self.prefix}".removesuffix("/")

    @property
    def path(self) -> str:
        """As its file system names the prefix."""
        return f"{self.bucket}/{self.prefix}".removesuffix("/") if self.scheme == "s3" else f"/{self.prefix}"

    def connect(self) -> "StoreReader":
        """Make ready to read, with what the environment says now.

        Raises
        ------
        ConfigError
            If pyarrow or the connector is missing, or the environment names no endpoint that may be asked.
        InputError
            If the connector cannot open it.
        """
        return StoreReader(self, _s3() if self.scheme == "s3" else open_hadoop(self.scheme, self.bucket))


@dataclass(frozen=True, slots=True)
class StoreReader:
    """Reads the files of a store. Made by `Store.connect`."""

    store: Store
    _files: "FileSystem"

    def files(self) -> tuple[StoredFile, ...]:
        """All files below the prefix, in order of their names.

        Raises
        ------
        InputError
            If the store does not answer or refuses, no file is there, or one has a name that no file of a folder has.
        """
        from pyarrow.fs import FileSelector, FileType  # noqa: PLC0415

        whole, url = self.store.path, self.store.url
        with _told(url, "listed", "no file lies below it; name the folder of the records"):
            found = self._files.get_file_info(FileSelector(whole, recursive=True))
        below = f"{whole.removesuffix('/')}/"
        files = [StoredFile(one.path.removeprefix(below), one.size) for one in found if one.type == FileType.File]
        if not files:
            raise InputError(f"{url}: no file lies below it; name the folder of the records")
        names = {file.name for file in files}
        for name in names:
            folders = name.split("/")
            inner = {"/".join(folders[:depth]) for depth in range(1, len(folders))}
            if {"", ".", ".."} & set(folders) or not name.isprintable() or inner & names:
                raise InputError(f"{url}: {name!a} is the name of no file of a folder; name another prefix")
        return tuple(sorted(files, key=lambda file: file.name))

    def version(self, file: StoredFile) -> str:
        """What the store calls the content that a file has now: its version, else its entity tag, else when it changed.

        Raises
        ------
        InputError
            If the store does not tell.
        """
        with self._opened(file) as stream:
            return self._version(file, stream)

    def chunks(self, file: StoredFile, version: str | None = None) -> Iterator[bytes]:
        """The content of a file, a piece at a time.

        Parameters
        ----------
        version : str, optional
            That it must have.

        Raises
        ------
        InputError
            If the store breaks off, or the file is another one at the end than it was when it was listed.
        """
        read = 0
        with self._opened(file) as stream:
            found = self._version(file, stream)
            while chunk := stream.read(_CHUNK):
                read += len(chunk)
                yield chunk
        if read != file.size or self.version(file) != found or (version is not None and version != found):
            name = f"{self.store.url}/{file.name}"
            raise InputError(f"{name} was changed while it was read; begin again when nobody writes there")

    def ends(self, file: StoredFile) -> "FileEnds":
        """The ends of a file, which tell what columns it has: of text the first line, of Parquet the footer.

        Raises
        ------
        InputError
            If the store breaks off.
        """
        with (
            _told(f"{self.store.url}/{file.name}", "read", "it is gone"),
            self._files.open_input_file(self._path(file)) as whole,
        ):
            version = self._version(file, whole)
            first = whole.read_at(min(file.size, _FIRST), 0)
            end = whole.read_at(8, file.size - 8) if file.size >= _LEAST else b""
            length = int.from_bytes(end[:4], "little") + 8
            is_parquet = end[4:] == b"PAR1" and length <= min(file.size, _MOST_LAST)
            last = whole.read_at(length, file.size - length) if is_parquet else b""
        return FileEnds(first, last, version)

    @contextmanager
    def _opened(self, file: StoredFile) -> "Iterator[NativeFile]":
        with (
            _told(f"{self.store.url}/{file.name}", "read", "it is gone"),
            self._files.open_input_stream(self._path(file)) as stream,
        ):
            yield stream

    def _path(self, file: StoredFile) -> str:
        return f"{self.store.path.removesuffix('/')}/{file.name}"

    def _version(self, file: StoredFile, stream: "NativeFile") -> str:
        told = stream.metadata()
        tag = next((told[key].decode() for key in ("VersionId", "ETag") if key in told), "")
        return tag or str(self._files.get_file_info(self._path(file)).mtime_ns)


def scheme_of(place: str | Path) -> str:
    """The scheme of a URL, in lower case; empty for a path of this machine."""
    found = _URL.fullmatch(str(place))
    return found[1].lower() if found else ""


def store_at(place: str | Path) -> Store | None:
    """The store that a URL names; None for a path of this machine.

    Raises
    ------
    ConfigError
        If the URL is of no store that can be read. What it says beside its scheme is repeated only where it can hold no
        credentials.
    """
    found = _URL.fullmatch(str(place))
    if found is None:
        return None
    scheme, rest = found[1].lower(), found[2]
    if scheme not in _KINDS:
        raise ConfigError(
            f"DATA {scheme}://...: no such store can be read; give a local folder, or s3://BUCKET/PREFIX, or what a "
            f"cluster's connector opens: {', '.join(f'{known}://' for known in _OF_CLUSTERS)}"
        )
    if "@" in rest or "?" in rest or not rest.isprintable():
        raise ConfigError(
            f"DATA {scheme}://...: a URL holds no @ and no ?, and neither credentials nor options; "
            + ("they are those of the connector" if scheme in _OF_CLUSTERS else "set AWS_ACCESS_KEY_ID and the like")
        )
    pattern, form = _KINDS[scheme]
    named = pattern.fullmatch(rest)
    prefix = (named["prefix"] or "").strip("/") if named else ""
    if named is None or (prefix and {"", ".", ".."} & set(prefix.split("/"))):
        raise ConfigError(f"DATA {scheme}:{rest}: is no whole address; write {scheme}://{form}")
    return Store(scheme, named["bucket"], prefix)


def _s3() -> "S3FileSystem":
    with needing("DATA on a store needs pyarrow", "s3"):
        from pyarrow.fs import AwsStandardS3RetryStrategy, S3FileSystem  # noqa: PLC0415
    endpoint = os.environ.get("AWS_ENDPOINT_URL_S3") or os.environ.get("AWS_ENDPOINT_URL") or ""
    scheme, address = _address(endpoint) if endpoint else ("https", None)
    with _told("the store", "opened"):
        return S3FileSystem(
            endpoint_override=address,
            scheme=scheme,
            connect_timeout=PATIENCE,
            request_timeout=PATIENCE,
            retry_strategy=AwsStandardS3RetryStrategy(max_attempts=ATTEMPTS),
            tls_ca_file_path=os.environ.get("AWS_CA_BUNDLE") or None,
        )


def _address(endpoint: str) -> tuple[str, str]:
    """Scheme and address of an endpoint; records do not travel in the clear but within this machine."""
    found = _ENDPOINT.fullmatch(endpoint)
    if found is None:
        raise ConfigError("AWS_ENDPOINT_URL: must be https://HOST or https://HOST:PORT")
    if found[1] == "http" and found[2] not in _HERE:
        raise ConfigError("AWS_ENDPOINT_URL: is http, and records would travel in the clear; give one of https")
    return found[1], found[2] + (found[3] or "")


@contextmanager
def _told(name: str, done: str, gone: str = "") -> Iterator[None]:
    """Say in words of ours why a store could not be read; its own may hold anything."""
    try:
        yield
    except FileNotFoundError:
        raise InputError(f"{name}: {gone}") from None
    except PermissionError:
        raise InputError(f"{name} cannot be {done}: the store refuses; look at your ticket and your rights") from None
    except OSError as error:
        raise InputError(f"{name} cannot be {done}: {_reason(str(error))}") from None


_REASONS: Final = {
    "NO_SUCH_BUCKET": "there is no such bucket",
    "NO_SUCH_KEY": "it is gone",
    "NETWORK_CONNECTION": f"the store does not answer, or breaks off; it was asked {ATTEMPTS} times, "
    f"for at most {PATIENCE:g} seconds each",
    "SLOW_DOWN": f"the store is too busy; it was asked {ATTEMPTS} times",
    **dict.fromkeys(
        ("ACCESS_DENIED", "INVALID_ACCESS_KEY_ID", "SIGNATURE_DOES_NOT_MATCH", "403", "400"),
        "the store refuses; look at the credentials, the region and your rights "
        "(AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_SESSION_TOKEN, AWS_REGION)",
    ),
    **dict.fromkeys(("301", "307"), "the bucket lies in another region; set AWS_REGION"),
}


def _reason(text: str) -> str:
    """Why, by the name or the number of the error alone."""
    found = re.search(r"AWS Error ([A-Z_]+)(?: \(HTTP status (-?[0-9]+)\))?", text)
    if found is None:
        return "the store does not answer as it should"
    name, status = found[1], found[2] or ""
    known = _REASONS.get(name) or _REASONS.get(status)
    return known or f"the store does not answer as it should ({name}{f', {status}' if status else ''})"
