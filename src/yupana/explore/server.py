"""The server of the explorer: static files, and answers in JSON that the library computes. It keeps nothing.

It listens on this machine only. A page of another site cannot ask it: requests must name it as their host, and none may
come from another origin. It serves the files of its own folder by name, and no other.
"""

import json
import socket
import sys
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import asdict
from functools import partial
from importlib.resources import files
from typing import Any, Final

import uvicorn
from fastapi import FastAPI, Request
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import JSONResponse, Response
from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Receive, Scope, Send

from yupana.atlas.server import HEADERS, HOST, hosts_of, tell_address
from yupana.errors import ConfigError
from yupana.explore.consequences import consequences
from yupana.explore.effects import as_csv, compare, exact_view, view
from yupana.explore.form import BudgetPage, Chosen
from yupana.explore.products import Pages
from yupana.explore.questions import answer, offered
from yupana.explore.scenario import (
    FORMAT,
    Fault,
    Filled,
    RefusedError,
    Scenario,
    read_name,
    read_scenario,
    read_settings,
)
from yupana.privacy.exact import show_exact
from yupana.version import __version__

_STATIC: Final = files("yupana.explore") / "static"

_FILES: Final = {
    "/": ("index.html", "text/html; charset=utf-8"),
    "/explorer.css": ("explorer.css", "text/css; charset=utf-8"),
    "/explorer.js": ("explorer.js", "text/javascript; charset=utf-8"),
    "/favicon.ico": ("icon.svg", "image/svg+xml"),
}
"""Every path that is served, and its file."""

_HEADERS: Final = {
    **HEADERS,
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; "
    "img-src 'self' data:; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "Cross-Origin-Opener-Policy": "same-origin",
}
_LARGEST: Final = 1 << 20
"""Bytes of a request: many times a scenario."""

_MOST_COLUMNS: Final = 8
"""Scenarios that are compared."""

Call = Callable[[Request], Awaitable[Response]]
_Body = dict[str, Any]
_Answer = Callable[[BudgetPage, Filled, Chosen, _Body], dict[str, Any]]


def make_app(products: Pages, port: int) -> FastAPI:
    """Make the application.

    Parameters
    ----------
    port : int
        Under which it will be asked: part of the host that requests must name.
    """
    app = FastAPI(title="Yupana explorer", docs_url=None, redoc_url=None, openapi_url=None, redirect_slashes=False)
    hosts = hosts_of(port)

    @app.middleware("http")
    async def guard(request: Request, call_next: Call) -> Response:
        refused = _refuse(request, hosts)
        response = refused if refused is not None else await call_next(request)
        response.headers.update(_HEADERS)
        return response

    for path in _FILES:
        app.add_api_route(path, _file(path), methods=["GET"], include_in_schema=False)

    @app.get("/api/products")
    def describe() -> dict[str, Any]:
        return {
            "version": __version__,
            "products": [
                {"key": key, "product": page.product.words.title, "title": page.title} for key, page in products.items()
            ],
        }

    @app.get("/api/products/{key:path}")
    def form(key: str) -> Response:
        if key not in products:
            return _plain(404, "there is no such configuration")
        return JSONResponse(products[key].as_json())

    for asked in (_view, _exact, _compare, _solve, _save, _export):
        _add(app, f"/api/{asked.__name__[1:]}", partial(_of_page, products, asked))
    _add(app, "/api/load", partial(_load, products))
    return app


def _refuse(request: Request, hosts: set[str]) -> Response | None:
    """Answer a request that does not come from our own page."""
    if request.headers.get("host") not in hosts:
        return _plain(421, "this server answers to its own address only")
    origin = request.headers.get("origin")
    if origin is not None and origin not in {f"http://{host}" for host in hosts}:
        return _plain(403, "requests from other origins are refused")
    if request.headers.get("sec-fetch-site", "same-origin") not in ("same-origin", "none"):
        return _plain(403, "requests from other sites are refused")
    if request.method == "POST":
        if request.headers.get("content-type", "").partition(";")[0].strip() != "application/json":
            return _plain(415, "requests must be JSON")
        length = request.headers.get("content-length", "")
        if not length.isdecimal() or int(length) > _LARGEST:
            return _plain(413, "a request must tell its length, of at most a megabyte")
    return None


def _plain(status: int, words: str) -> Response:
    return Response(words + "\n", status, media_type="text/plain; charset=utf-8")


def _file(path: str) -> Callable[[], Response]:
    name, kind = _FILES[path]

    def serve() -> Response:
        found = _STATIC / name
        if not found.is_file():
            return _plain(404, f"{name} is missing")
        return Response(found.read_bytes(), media_type=kind)

    return serve


def _add(app: FastAPI, path: str, answer: Callable[[dict[str, Any]], dict[str, Any]]) -> None:
    """Answer posts of JSON objects; what cannot be done is answered by faults, each with its field."""

    async def asked(request: Request) -> Response:
        try:
            body = json.loads(await request.body())
        except (ValueError, RecursionError):
            return _faults([Fault("", "a request must be JSON")])
        except ClientDisconnect:
            return Response(status_code=400)
        try:
            # In a thread, so that other requests are heard meanwhile.
            return JSONResponse(await run_in_threadpool(answer, body if isinstance(body, dict) else {}))
        except RefusedError as refused:
            return _faults(refused.faults)
        except ConfigError as error:
            return _faults([Fault("", str(error))])

    app.add_api_route(path, asked, methods=["POST"])


def _faults(faults: tuple[Fault, ...] | list[Fault]) -> Response:
    # Not an error of HTTP: the page asks as somebody types, and a browser would write each into its console.
    return JSONResponse({"faults": [asdict(fault) for fault in faults]})


def _of_page(products: Mapping[str, BudgetPage], answer: _Answer, body: _Body) -> dict[str, Any]:
    """Answer what is asked of the page of a product, as it is filled in."""
    key = body.get("product")
    if not isinstance(key, str) or key not in products:
        raise RefusedError([Fault("product", f"must be one of {', '.join(products)}")])
    product = products[key]
    settings = read_settings(body.get("settings"), product.start)
    return answer(product, settings, product.choose(settings), body)


def _view(page: BudgetPage, settings: Filled, chosen: Chosen, _: _Body) -> dict[str, Any]:
    return view(page, settings, chosen) | {"asks": offered(chosen)}


def _exact(page: BudgetPage, _: Filled, chosen: Chosen, _body: _Body) -> dict[str, Any]:
    return exact_view(page, chosen) | {"consequences": consequences(page.product.key, chosen)}


def _compare(page: BudgetPage, settings: Filled, _: Chosen, body: _Body) -> dict[str, Any]:
    """The scenario of the page beside others."""
    others = body.get("others")
    if not isinstance(others, list) or len(others) >= _MOST_COLUMNS:
        raise RefusedError([Fault("others", f"must be a list of at most {_MOST_COLUMNS - 1} scenarios")])
    columns = [("here", settings)]
    for other in others:
        if not isinstance(other, dict):
            raise RefusedError([Fault("others", "must be scenarios")])
        columns.append((read_name(other.get("name")), read_settings(other.get("settings"), page.start)))
    return compare(page, columns)


def _solve(page: BudgetPage, settings: Filled, chosen: Chosen, body: _Body) -> dict[str, Any]:
    found, said = answer(page, settings, chosen, body)
    return {"settings": asdict(found), "said": said, "view": _view(page, found, page.choose(found), body)}


def _save(page: BudgetPage, settings: Filled, chosen: Chosen, body: _Body) -> dict[str, Any]:
    name = read_name(body.get("name"))
    scenario = asdict(Scenario(page.key, name, settings, show_exact(chosen.plan.loss())))
    return {
        "filename": f"{_file_name(name)}.{_file_name(page.key)}.json",
        "content": json.dumps({"format": FORMAT, "yupana": __version__, **scenario}, indent=1, ensure_ascii=False)
        + "\n",
    }


def _load(products: Mapping[str, BudgetPage], body: _Body) -> dict[str, Any]:
    text = body.get("text")
    if not isinstance(text, str):
        raise RefusedError([Fault("file", "must be the text of a scenario")])
    scenario = read_scenario(text, products, lambda key: products[key].start)
    said = ""
    try:
        now = show_exact(products[scenario.product].choose(scenario.settings).plan.loss())
    except RefusedError:
        said = "This file has been edited: the marked fields are not usable."
    else:
        if scenario.total != now:
            said = (
                "This file was edited, or written by another version: it tells another total than its settings give. "
                "What is shown is computed of its settings."
            )
    told = asdict(scenario)
    return {name: told[name] for name in ("product", "name", "settings")} | {"said": said}


def _export(page: BudgetPage, _: Filled, chosen: Chosen, body: _Body) -> dict[str, Any]:
    if body.get("form") == "csv":
        name = _file_name(read_name(body.get("name")))
        return {"filename": f"{name}.{_file_name(page.key)}.csv", "content": as_csv(chosen.plan)}
    content = json.dumps(page.product.document(chosen.config), indent=1, ensure_ascii=False) + "\n"
    return {"filename": f"{_file_name(page.key)}.json", "content": content}


def _file_name(name: str) -> str:
    kept = "".join(c if c.isascii() and (c.isalnum() or c in "-_") else "-" for c in name).strip("-")
    return kept or "scenario"


def _in_a_line(app: ASGIApp) -> ASGIApp:
    """Tell of a request that failed in one line: clients that leave while they are answered are no news."""

    async def answer(scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await app(scope, receive, send)
        except Exception as error:  # noqa: BLE001 (whatever it is, the server goes on)
            print(f"a request could not be answered: {type(error).__name__}", file=sys.stderr)  # noqa: T201

    return answer


def serve(products: Pages, port: int, *, browser: bool) -> None:
    """Serve until interrupted. The address goes to stdout as soon as it can be asked.

    Raises
    ------
    OSError
        If the port is taken.
    """
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as listening:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind((HOST, port))
        listening.listen()
        port = int(listening.getsockname()[1])
        app = _in_a_line(make_app(products, port))
        config = uvicorn.Config(app, log_level="warning", access_log=False, server_header=False, lifespan="off")
        tell_address(port, "explorer", browser=browser)
        uvicorn.Server(config).run(sockets=[listening])
