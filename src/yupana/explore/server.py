"""The server of the explorer: static files, and answers in JSON that the library computes. It keeps nothing.

It listens on this machine only. A page of another site cannot ask it: requests must name it as their host, and none may
come from another origin. It serves the files of its own folder by name, and no other.
"""

import json
import socket
import sys
import webbrowser
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from importlib.resources import files
from pathlib import Path
from typing import Any, Final

import uvicorn
from fastapi import FastAPI, Request
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import JSONResponse, Response
from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Receive, Scope, Send

from yupana.errors import ConfigError
from yupana.explore.form import Chosen, ProductPage
from yupana.explore.products import Pages
from yupana.explore.questions import AskedTotal, equal, least, scaled, shared
from yupana.explore.scenario import Fault, Filled, RefusedError, Scenario, read_name, read_scenario, read_settings
from yupana.explore.strategy import StrategyForm, Weighed, WeighingPage, places, read_weighed
from yupana.explore.view import as_csv, exact_view, section_as_json, to_six_decimals, view
from yupana.files.regular import replacing
from yupana.privacy.exact import show_exact
from yupana.report.numbers import percent
from yupana.report.page import STYLE
from yupana.version import __version__

HOST: Final = "127.0.0.1"

_STATIC: Final = files("yupana.explore") / "static"

_FILES: Final = {
    "/": ("index.html", "text/html; charset=utf-8"),
    "/style.css": ("style.css", "text/css; charset=utf-8"),
    "/explorer.js": ("explorer.js", "text/javascript; charset=utf-8"),
    "/grid.js": ("grid.js", "text/javascript; charset=utf-8"),
    "/strategy.js": ("strategy.js", "text/javascript; charset=utf-8"),
    "/charts.js": ("charts.js", "text/javascript; charset=utf-8"),
    "/server.js": ("server.js", "text/javascript; charset=utf-8"),
    "/vega.js": ("vega.js", "text/javascript; charset=utf-8"),
    "/favicon.ico": ("icon.svg", "image/svg+xml"),
}
"""Every path that is served, and its file."""

_HEADERS: Final = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; "
    "img-src 'self' data:; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cache-Control": "no-store",
}
_SNIPPET: Final = "window.vegaEmbed = vegaEmbed;"
_LARGEST: Final = 1 << 20
"""Bytes of a request: many times a scenario."""

_HALF: Final = 560
"""Width in pixels of a chart that has half the page."""

Call = Callable[[Request], Awaitable[Response]]
_Body = dict[str, Any]
_Answer = Callable[[ProductPage, Filled, Chosen, _Body], dict[str, Any]]


def make_app(products: Pages, port: int) -> FastAPI:
    """Make the application.

    Parameters
    ----------
    products : Pages
    port : int
        Under which it will be asked: part of the host that requests must name.
    """
    app = FastAPI(title="Yupana explorer", docs_url=None, redoc_url=None, openapi_url=None, redirect_slashes=False)
    hosts = {f"{name}:{port}" for name in (HOST, "localhost")} | ({HOST, "localhost"} if port == 80 else set())

    @app.middleware("http")
    async def guard(request: Request, call_next: Call) -> Response:
        refused = _refuse(request, hosts)
        response = refused if refused is not None else await call_next(request)
        response.headers.update(_HEADERS)
        return response

    for path in _FILES:
        app.add_api_route(path, _file(path), methods=["GET"], include_in_schema=False)
    app.add_api_route("/report.css", _style, methods=["GET"])

    @app.get("/api/products")
    def describe() -> dict[str, Any]:
        return {
            "version": __version__,
            "charts": make_bundle(),
            "products": [{"key": key, "title": title} for key, title in products.titles.items()],
        }

    @app.get("/api/products/{key}")
    def form(key: str) -> Response:
        if key not in products:
            return _plain(404, "there is no such product")
        product = products[key]
        weighed = _strategy_form(product)
        return JSONResponse(
            {
                "form": product.form.as_json(),
                "settings": product.start().as_json(),
                "strategy": None if weighed is None else weighed.as_json(),
            }
        )

    for answer in (_view, _exact, _strategy, _solve, _save, _export):
        _add(app, f"/api/{answer.__name__[1:]}", partial(_of_page, products, answer))
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


def _style() -> Response:
    return Response(STYLE, media_type="text/css; charset=utf-8")


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
    return JSONResponse({"faults": [{"field": f.field, "message": f.message} for f in faults]})


def _of_page(products: Mapping[str, ProductPage], answer: _Answer, body: _Body) -> dict[str, Any]:
    """Answer what is asked of the page of a product, as it is filled in."""
    key = body.get("product")
    if not isinstance(key, str) or key not in products:
        raise RefusedError([Fault("product", f"must be one of {', '.join(products)}")])
    product = products[key]
    settings = read_settings(body.get("settings"), product.start())
    return answer(product, settings, product.choose(settings), body)


def _view(product: ProductPage, settings: Filled, chosen: Chosen, body: _Body) -> dict[str, Any]:
    against = _against(product, body, settings, chosen)
    return view(product, settings, chosen, against, narrow=body.get("narrow") is True)


def _exact(product: ProductPage, settings: Filled, chosen: Chosen, body: _Body) -> dict[str, Any]:
    return exact_view(product, chosen, _against(product, body, settings, chosen))


def _against(product: ProductPage, body: _Body, settings: Filled, chosen: Chosen) -> tuple[str, Filled, Chosen]:
    """The scenario beside the one on the page."""
    given = body.get("against")
    if given is None:
        was_used = product.product.production(chosen.config) is not None
        name, other = "production of 2020" if was_used else "the start", product.production(settings)
    elif isinstance(given, dict):
        name, other = read_name(given.get("name")), read_settings(given.get("settings"), product.start())
    else:
        raise RefusedError([Fault("against", "must be a scenario")])
    try:
        return name, other, product.choose(other)
    except RefusedError as refused:
        message = f"the scenario beside this one, {name}, cannot be used: {refused}"
        raise RefusedError([Fault("against", message)]) from None


def _strategy_form(product: ProductPage) -> StrategyForm | None:
    return product.strategy_form if isinstance(product, WeighingPage) else None


def _weighing(product: ProductPage, body: _Body) -> tuple[WeighingPage, Weighed]:
    form = _strategy_form(product)
    if form is None or not isinstance(product, WeighingPage):
        raise RefusedError([Fault("product", "no strategy can be found for it")])
    return product, read_weighed(form, body.get("asked"))


def _strategy(product: ProductPage, _: Filled, chosen: Chosen, body: _Body) -> dict[str, Any]:
    page, weighed = _weighing(product, body)
    found = page.find(chosen, weighed)
    narrow = body.get("narrow") is True
    trade_off = found.trade_off
    return {
        "said": found.said,
        "found": [section_as_json(section, narrow=narrow) for section in found.found],
        "trade_off": [] if isinstance(trade_off, Fault) else [section_as_json(trade_off, narrow=narrow, wide=_HALF)],
        "marked": [{"field": f.field, "message": f.message} for f in [trade_off] if isinstance(f, Fault)],
        "places": places(body["asked"]),
    }


def _texts(body: _Body, key: str) -> dict[str, str]:
    found = body.get(key, {})
    if not isinstance(found, dict) or not all(isinstance(v, str) and len(v) < 100 for v in found.values()):
        raise RefusedError([Fault(key, "must be an object of texts")])
    return {str(name): text.strip() for name, text in found.items()}


def _total(body: _Body) -> AskedTotal:
    found = _texts({"total": {"loss": body.get("total", ""), "epsilon": body.get("total_epsilon", "")}}, "total")
    return AskedTotal(found["loss"], found["epsilon"])


def _solve(product: ProductPage, settings: Filled, chosen: Chosen, body: _Body) -> dict[str, Any]:
    question = body.get("question")
    if question == "least":
        found = least(product, settings, chosen, _texts(body, "targets"))
        after = product.choose(found)
        said = f"The smallest total that meets these margins: {show(after)}."
    elif question == "equal":
        found = equal(product, settings, chosen, _total(body), _texts(body, "weights"))
        after = product.choose(found)
        sizes = product.sizes(after)
        errors = [after.sigmas[name] / float(sizes[name]) for name in after.sigmas]
        said = (
            f"Spent: {show(after)}. Relative standard deviations run from {percent(min(errors), 3)} to "
            f"{percent(max(errors), 3)}; "
        )
        said += "no other budgets of this total have a smaller largest one, by their weights."
    elif question == "scale":
        found = scaled(product, settings, chosen, _total(body))
        said = f"Every budget was scaled alike: {show(product.choose(found))}."
    elif question == "shares":
        found = shared(product, settings, chosen, _texts(body, "shares"))
        said = f"The total is as it was, {show(product.choose(found))}; levels have the shares you gave."
    elif question == "round":
        found = to_six_decimals(settings, chosen)
        said = f"Budgets are rounded to six decimals, as in 2020: {show(product.choose(found))}."
    elif question == "production":
        was_used = product.product.production(chosen.config) is not None
        found = product.production(settings)
        said = f"These are the {'production settings of 2020' if was_used else 'settings that the page began with'}."
    elif question == "strategy":
        page, weighed = _weighing(product, body)
        found = page.take(settings, chosen, weighed)
        said = f"These are the shares found; the total is as it was, {show(product.choose(found))}."
    else:
        raise RefusedError([Fault("question", "must be least, equal, scale, shares, round, production or strategy")])
    return {"settings": found.as_json(), "said": said}


def show(chosen: Chosen) -> str:
    """The total of a plan in words."""
    return f"{'ρ' if chosen.plan.mechanism.value == 'zcdp' else 'ε'} = {float(chosen.plan.loss()):.6f}"


def _save(product: ProductPage, settings: Filled, chosen: Chosen, body: _Body) -> dict[str, Any]:
    name = read_name(body.get("name"))
    scenario = Scenario(product.key, name, settings, show_exact(chosen.plan.loss()))
    return {
        "filename": f"{_file_name(name)}.{product.key}.json",
        "content": json.dumps(scenario.as_json(), indent=1, ensure_ascii=False) + "\n",
    }


def _load(products: Mapping[str, ProductPage], body: _Body) -> dict[str, Any]:
    text = body.get("text")
    if not isinstance(text, str):
        raise RefusedError([Fault("file", "must be the text of a scenario")])
    scenario = read_scenario(text, products, lambda key: products[key].start())
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
    return {
        "product": scenario.product,
        "name": scenario.name,
        "settings": scenario.settings.as_json(),
        "said": said,
    }


def _export(product: ProductPage, _: Filled, chosen: Chosen, body: _Body) -> dict[str, Any]:
    if body.get("form") == "csv":
        name = _file_name(read_name(body.get("name")))
        return {"filename": f"{name}.{product.key}.csv", "content": as_csv(chosen.plan)}
    content = json.dumps(product.product.document(chosen.config), indent=1, ensure_ascii=False) + "\n"
    return {"filename": product.filename, "content": content}


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
        address = f"http://{HOST}:{port}/"
        app = _in_a_line(make_app(products, port))
        config = uvicorn.Config(app, log_level="warning", access_log=False, server_header=False, lifespan="off")
        print(address, flush=True)  # noqa: T201 (the address is the command's answer)
        if browser and not webbrowser.open(address):
            print("open this address in a browser; Ctrl-C ends the explorer", file=sys.stderr)  # noqa: T201
        uvicorn.Server(config).run(sockets=[listening])


def make_bundle() -> bool:
    """Make the charts' library for the browser, one local file, if it is missing; whether it is there afterwards.

    It is made once, at `make setup`. Without it the page shows tables for charts.
    """
    path = Path(str(_STATIC / "vega.js"))
    if path.is_file():
        return True
    try:
        import vl_convert  # noqa: PLC0415 (optional, and half a second to start)
    except ImportError:
        return False
    try:
        with replacing(path) as file:
            file.write(vl_convert.javascript_bundle(_SNIPPET).encode())
    except OSError:
        return False
    return True
