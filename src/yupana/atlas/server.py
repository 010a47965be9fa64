"""Serve the atlas of a release to this machine alone."""

import sys
import webbrowser
from collections.abc import Mapping, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final
from urllib.parse import unquote

from yupana.atlas.site import AtlasRequest, pages_of_all

HOST: Final = "127.0.0.1"
HEADERS: Final = {
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}
"""Of all that is served to this machine, by the explorer, too."""

_IN_MEMORY: Final = 500_000_000
"""Bytes of pages; the rest lies in a temporary folder, which is public as the release is."""

_TYPES: Final = {"html": "text/html", "js": "text/javascript", "css": "text/css"}


def hosts_of(port: int) -> set[str]:
    """What requests may call this machine, by a port."""
    return {f"{name}:{port}" for name in (HOST, "localhost")} | ({HOST, "localhost"} if port == 80 else set())


def tell_address(port: int, what: str, *, browser: bool) -> None:
    """Print the address of what is served, and open it in the browser."""
    address = f"http://{HOST}:{port}/"
    print(address, flush=True)  # noqa: T201 (the address is the command's answer)
    if browser and not webbrowser.open(address):
        print(f"open this address in a browser; Ctrl-C ends the {what}", file=sys.stderr)  # noqa: T201


def serve(requests: Sequence[AtlasRequest], port: int, *, browser: bool) -> None:
    """Make the pages of releases and serve them until interrupted; the address goes to stdout when it can be asked.

    Raises
    ------
    OSError
        If the port is taken.
    OutputError
        As by `pages_of`.
    """
    files: dict[str, bytes | Path] = {}
    held = 0
    with (
        TemporaryDirectory(prefix="yupana-atlas-") as folder,
        ThreadingHTTPServer((HOST, port), _handler(files)) as server,
    ):

        def put(name: str, content: bytes) -> None:
            nonlocal held
            held += len(content)
            if held <= _IN_MEMORY:
                files[name] = content
            else:
                place = Path(folder) / str(len(files))
                place.write_bytes(content)
                files[name] = place

        pages_of_all(requests, put)
        tell_address(server.server_port, "atlas", browser=browser)
        server.serve_forever()


def _handler(files: Mapping[str, bytes | Path]) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        server_version, sys_version = "yupana", ""

        def do_GET(self) -> None:
            """Answer with a page that was made, to requests that name this server alone; none names a file."""
            hosts = hosts_of(self.server.server_port)  # type: ignore[attr-defined] # of an HTTPServer
            name = unquote(self.path.partition("?")[0]).removeprefix("/") or "index.html"
            if self.headers.get("Host", "") not in hosts:
                self._answer(421, b"this server answers to its own address only\n", "text/plain")
            elif name in files:
                held = files[name]
                self._answer(
                    200, held if isinstance(held, bytes) else held.read_bytes(), _TYPES[name.rpartition(".")[2]]
                )
            else:
                self._answer(404, b"there is no such page\n", "text/plain")

        def _answer(self, status: int, content: bytes, kind: str) -> None:
            self.send_response(status)
            for name, value in {**HEADERS, "X-Frame-Options": "DENY", "Content-Type": f"{kind}; charset=utf-8"}.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *_: object) -> None:
            """Requests are no news."""

    return Handler
