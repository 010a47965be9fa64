"""An object store on this machine, and a bad line to it."""

import http.client
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any, Literal

SECRETS = {
    "AWS_ACCESS_KEY_ID": "KEYCANARY",
    "AWS_SECRET_ACCESS_KEY": "SECRETCANARY",
    "AWS_SESSION_TOKEN": "TOKENCANARY",
}
BUCKET = "census"

Fault = Literal["cut", "stalled", "changed", "refused", "elsewhere", "silent", "busy"]
"""What goes wrong: of a file that is read, or of every question."""

_ANSWERS = {"refused": (403, "AccessDenied"), "elsewhere": (301, "PermanentRedirect"), "busy": (503, "SlowDown")}


@dataclass(frozen=True)
class ObjectStore:
    """A store with one bucket."""

    port: int
    client: Any

    @property
    def environment(self) -> dict[str, str]:
        return environment(self.port)

    def put(self, folder: Path, prefix: str) -> str:
        """Put a folder below a prefix; returned is its URL."""
        for path in sorted(folder.rglob("*")):
            if path.is_file():
                self.client.upload_file(str(path), BUCKET, f"{prefix}/{path.relative_to(folder).as_posix()}")
        return f"s3://{BUCKET}/{prefix}"

    def write(self, key: str, content: bytes) -> None:
        self.client.put_object(Bucket=BUCKET, Key=key, Body=content)


def environment(port: int) -> dict[str, str]:
    return {**SECRETS, "AWS_ENDPOINT_URL": f"http://127.0.0.1:{port}", "AWS_REGION": "us-east-1"}


@contextmanager
def bad_line(port: int, fault: Fault, key: str = "") -> Iterator[int]:
    """A port that answers as another does, but for a fault: of each question, or of the content of one key."""
    state = _State(port, fault, key)

    class Handler(_Handler):
        line = state

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
    thread.start()
    try:
        yield server.server_port
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


@dataclass
class _State:
    port: int
    fault: Fault
    key: str
    asked: list[str] = field(default_factory=list)


class _Handler(BaseHTTPRequestHandler):
    line: _State
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        fault = self.line.fault
        if fault == "silent":
            self._wait()
            return
        if fault in _ANSWERS:
            status, code = _ANSWERS[fault]
            text = f"<Error><Code>{code}</Code><Message>SECRETX KEYCANARY</Message></Error>"
            self._send(status, {}, text.encode() if self.command == "GET" else b"")
            return
        ask = http.client.HTTPConnection("127.0.0.1", self.line.port)
        headers = {name: value for name, value in self.headers.items() if name.lower() != "host"}
        ask.request(self.command, self.path, headers=headers)
        answer = ask.getresponse()
        body, told = answer.read(), dict(answer.getheaders())
        ask.close()
        of_key = self.path.partition("?")[0].endswith(self.line.key)
        if of_key and self.command == "HEAD" and fault == "changed":
            self.line.asked.append(self.path)
            told = {name: value for name, value in told.items() if name.lower() != "etag"}
            told["ETag"] = f'"{len(self.line.asked)}"'
        if of_key and self.command == "GET" and "list-type" not in self.path and fault in {"cut", "stalled"}:
            self._send(answer.status, told, body[: len(body) // 2], len(body))
            self.wfile.flush()
            if fault == "stalled":
                self._wait()
            self.close_connection = True
            return
        self._send(answer.status, told, body)

    do_HEAD = do_GET  # noqa: N815

    def _send(self, status: int, headers: dict[str, str], body: bytes, length: int | None = None) -> None:
        self.send_response(status)
        for name, value in headers.items():
            if name.lower() not in {"content-length", "date", "server", "connection", "transfer-encoding"}:
                self.send_header(name, value)
        told = headers.get("Content-Length", "0") if self.command == "HEAD" else str(length or len(body))
        self.send_header("Content-Length", told)
        self.end_headers()
        self.wfile.write(body)

    def _wait(self) -> None:
        """Until the other side has enough of it."""
        self.connection.settimeout(600)
        with suppress(OSError):
            self.connection.recv(1)
        self.close_connection = True

    def log_message(self, *_: object) -> None:
        """Say nothing."""
