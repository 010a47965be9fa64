"""Serve the atlas of a release to this machine alone."""

import sys
import webbrowser
from collections.abc import Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Final

HOST: Final = "127.0.0.1"
_TYPES: Final = {"html": "text/html", "js": "text/javascript", "css": "text/css"}
_HEADERS: Final = {
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}


def serve(files: Mapping[str, bytes], port: int, *, browser: bool) -> None:
    """Serve until interrupted. The address goes to stdout as soon as it can be asked.

    Parameters
    ----------
    files : mapping of str to bytes
        By their names within the site (`site_of`): nothing that a request names is read from a disk.
    port : int
    browser : bool

    Raises
    ------
    OSError
        If the port is taken.
    """
    with ThreadingHTTPServer((HOST, port), _handler(files)) as server:
        address = f"http://{HOST}:{server.server_port}/"
        print(address, flush=True)  # noqa: T201 (the address is the command's answer)
        if browser and not webbrowser.open(address):
            print("open this address in a browser; Ctrl-C ends the atlas", file=sys.stderr)  # noqa: T201
        server.serve_forever()


def _handler(files: Mapping[str, bytes]) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        server_version, sys_version = "yupana", ""

        def do_GET(self) -> None:
            """Answer with a file of the site, to requests that name this server alone."""
            host = self.headers.get("Host", "")
            port = self.server.server_port  # type: ignore[attr-defined] # of an HTTPServer
            name = self.path.partition("?")[0].removeprefix("/") or "index.html"
            if host not in {f"{HOST}:{port}", f"localhost:{port}"}:
                self._answer(421, b"this server answers to its own address only\n", "text/plain")
            elif name in files:
                self._answer(200, files[name], _TYPES[name.rpartition(".")[2]])
            else:
                self._answer(404, b"there is no such page\n", "text/plain")

        def _answer(self, status: int, content: bytes, kind: str) -> None:
            self.send_response(status)
            for name, value in {**_HEADERS, "Content-Type": f"{kind}; charset=utf-8"}.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *_: object) -> None:
            """Requests are no news."""

    return Handler
