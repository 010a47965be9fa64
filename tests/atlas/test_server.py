"""The server of an atlas: what it answers, and to whom."""

import re
import threading
from http.server import ThreadingHTTPServer
from pathlib import Path

import httpx
import pytest

from yupana.atlas import site
from yupana.atlas.server import HOST, _handler
from yupana.atlas.site import AtlasRequest, pages_of_all

FOLDER = "my release #1, 100%"


@pytest.mark.parametrize(
    ("path", "host", "status"),
    [
        ("", None, 200),
        ("my%20release%20%231%2C%20100%25/index.html?lang=es", None, 200),
        ("my%20release/index.html", None, 404),
        ("%2e%2e/index.html", None, 404),
        ("", "evil.example", 421),
    ],
)
def test_a_page_has_the_address_that_its_folder_gives_it(path: str, host: str | None, status: int) -> None:
    files = {"index.html": b"all", f"{FOLDER}/index.html": b"one"}
    with ThreadingHTTPServer((HOST, 0), _handler(files)) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        # The path as it is, which the client would shorten.
        url = httpx.URL(f"http://{HOST}:{server.server_port}", raw_path=f"/{path}".encode())
        answer = httpx.get(url, headers={"Host": host} if host else {})
        server.shutdown()
    assert answer.status_code == status
    assert answer.text == {200: "one" if path else "all"}.get(status, answer.text)


def test_links_to_releases_are_addresses(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    told = {"releases": [{"title": "", "status": {"kind": "", "text": ""}}], "tables": []}
    monkeypatch.setattr(site, "pages_of", lambda *_: told)
    pages: dict[str, bytes] = {}
    pages_of_all([AtlasRequest(tmp_path / name) for name in (FOLDER, "other")], pages.__setitem__)
    assert re.findall(rb'href="(.*/index.html)"', pages["index.html"]) == [
        b"my%20release%20%231%2C%20100%25/index.html",
        b"other/index.html",
    ]
