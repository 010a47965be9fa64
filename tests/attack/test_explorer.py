"""The explorer's server under requests that mean harm: an answer of its own to each, and never a fault."""

import asyncio
import json
import os
import random
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("fastapi", reason="the explorer's server is not installed: explore")

import httpx
from attack_mutations import ODD, nested, value

from yupana.explore.products import Pages
from yupana.explore.server import make_app

CASES = int(os.environ.get("YUPANA_ATTACKS", "4"))
PORT = 8080
HOST = f"127.0.0.1:{PORT}"
POSTS = ("view", "exact", "compare", "solve", "save", "load", "export")
SHELF = Pages()
APP = make_app(SHELF, PORT)

HOSTS = ("evil.example", "127.0.0.1", "127.0.0.1:1", "localhost.evil.example:8080", "[::1]:8080", "", f"{HOST}@x", " ")
ORIGINS = ("http://evil.example", "null", f"https://{HOST}", f"http://{HOST}.evil.example", "file://", "")
PATHS = (
    *(
        "/../etc/passwd",
        "/%2e%2e/etc/passwd",
        "//etc/passwd",
        "/server.py",
        "/static/index.html",
        "/api/products/../view",
    ),
    *(
        "/api/products/%00",
        "/api/products/" + "x" * 5000,
        "/%ff",
        "/docs",
        "/openapi.json",
        "/api/view",
        "/.git/config",
    ),
)
TYPES = ("text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x", "", "application/JSON+x")


def ask(method: str, path: str, body: bytes = b"", **headers: str) -> httpx.Response:
    async def asked() -> httpx.Response:
        transport = httpx.ASGITransport(app=APP, raise_app_exceptions=False)
        async with httpx.AsyncClient(transport=transport, base_url=f"http://{HOST}") as client:
            own = {"host": HOST, "content-type": "application/json"}
            sent = {**own, **{name.replace("_", "-"): text for name, text in headers.items()}}
            return await client.request(method, path, content=body, headers=sent)

    return asyncio.run(asked())


def sound() -> dict[str, Any]:
    settings = ask("GET", "/api/products/phsafe/s-dhc-2020-us").json()["settings"]
    text = ask(
        "POST", "/api/save", json.dumps({"product": "phsafe/s-dhc-2020-us", "settings": settings, "name": "a"}).encode()
    ).json()
    return {
        "product": "phsafe/s-dhc-2020-us",
        "settings": settings,
        "name": "a",
        "question": "share",
        "value": "10",
        "names": ["PH2/usa_*", "PH2/state_*"],
        "others": [{"name": "b", "settings": settings}],
        "text": text["content"],
    }


@pytest.mark.slow
def test_odd_requests_are_answered() -> None:
    document = json.dumps(sound()).encode()
    tried = 0
    for number in range(10 * CASES):
        rng = random.Random(number)  # noqa: S311 (an attack that can be repeated)
        body = document
        match rng.randrange(4):
            case 0:
                body = nested(b"1", rng)
            case 1:
                whole = json.loads(document)
                whole[rng.choice(list(whole))] = rng.choice(ODD)
                body = json.dumps(whole).encode()
            case 2:
                body = b'{"product": "phsafe/s-dhc-2020-us", "settings": ' + b"9" * 5000 + b"}"
            case _:
                for _ in range(rng.randrange(1, 4)):
                    body = value(body, rng)
        path = rng.choice(POSTS)
        answer = ask("POST", f"/api/{path}", body)
        tried += 1
        assert answer.status_code == 200, (number, path, answer.status_code)
        assert isinstance(answer.json(), dict)
    print(f"{tried} bodies")


@pytest.mark.parametrize("text", ["9" * 5000, "[" * 100_000, '{"format": 1e999}', "\ud800", "\x00", '"' * 1000])
def test_odd_scenarios_are_refused(text: str) -> None:
    answer = ask("POST", "/api/load", json.dumps({"text": text}).encode())
    assert answer.status_code == 200
    assert answer.json()["faults"]


def test_only_the_page_itself_may_ask() -> None:
    for host in HOSTS:
        assert ask("GET", "/", host=host).status_code == 421
    for origin in ORIGINS:
        assert ask("POST", "/api/view", b"{}", origin=origin).status_code == 403
    for site in ("cross-site", "same-site", "x"):
        assert ask("GET", "/", sec_fetch_site=site).status_code == 403
    for kind in TYPES:
        assert ask("POST", "/api/view", b"{}", content_type=kind).status_code == 415
    assert ask("POST", "/api/view", b" " * ((1 << 20) + 1)).status_code == 413
    for length in ("-1", "x", "1e3"):
        assert ask("POST", "/api/view", b"{}", content_length=length).status_code == 413


def test_no_other_path_is_served() -> None:
    for path in PATHS:
        for method in ("GET", "PUT", "DELETE", "OPTIONS", "HEAD"):
            answer = ask(method, path)
            assert answer.status_code in {404, 405}, (method, path, answer.status_code)
            assert "root:" not in answer.text


@pytest.mark.slow
def test_slow_and_vanishing_clients_cost_others_nothing(tmp_path: Path) -> None:
    program = Path(sys.executable).with_name("yupana")
    with (tmp_path / "told").open("w") as told:
        server = subprocess.Popen([program, "explore", "--no-browser"], stdout=subprocess.PIPE, stderr=told, text=True)
    try:
        assert server.stdout is not None
        port = int(server.stdout.readline().strip().rstrip("/").rpartition(":")[2])
        head = f"POST /api/view HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nContent-Type: application/json\r\n"
        slow = []
        for number in range(60):
            client = socket.create_connection(("127.0.0.1", port))
            client.sendall((head + "Content-Length: 1000\r\n\r\n{" if number % 2 else head[: number + 1]).encode())
            slow.append(client)
        for odd in (
            b"\x00" * 1000,
            b"GET " + b"/x" * 40_000,
            head.encode() + b"Transfer-Encoding: chunked\r\n\r\nzz\r\n",
        ):
            with socket.create_connection(("127.0.0.1", port)) as client:
                client.sendall(odd)
        began = time.monotonic()
        answer = httpx.get(f"http://127.0.0.1:{port}/api/products", timeout=30)
        assert answer.status_code == 200
        print(f"answered in {time.monotonic() - began:.1f} s beside {len(slow)} slow clients")
        for client in slow:
            client.close()
        time.sleep(0.5)
        assert httpx.get(f"http://127.0.0.1:{port}/", timeout=30).status_code == 200
    finally:
        server.terminate()
        server.communicate(timeout=30)
    assert "Traceback" not in (tmp_path / "told").read_text()
