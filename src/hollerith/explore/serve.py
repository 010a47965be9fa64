"""Start the explorer, and tell its address."""

import socket
import sys
import webbrowser
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import uvicorn

from hollerith.explore.phsafe import Phsafe
from hollerith.explore.product import Product
from hollerith.explore.reference import blocks, iterations_of, phsafe_reference, safetab_reference
from hollerith.explore.safetab import SafetabH, SafetabP
from hollerith.explore.server import HOST, make_app
from hollerith.explore.topdown import TopDown, finite_configuration

STRATEGIES: Final = {"topdown": "pl94-2020-us", "topdown-h1": "h1-2020-us"}
"""Strategies of TopDown by the key of their page."""


def all_products(
    counts: Path | None = None, parameters: Path | None = None, topdown: str | None = None
) -> Mapping[str, Product]:
    """Every product of the page, with public counts beside them.

    Parameters
    ----------
    counts : Path, optional
        A release of PHSafe whose counts its errors are set against.
    parameters : Path, optional
        A parameter folder of SafeTab.
    topdown : str, optional
        A configuration of TopDown, in place of that of the redistricting data.
    """
    iterations, sizes = iterations_of(parameters), safetab_reference()
    sources = STRATEGIES | ({"topdown": topdown} if topdown is not None else {})
    found: tuple[Product, ...] = (
        Phsafe(phsafe_reference(counts)),
        SafetabP(iterations, sizes),
        SafetabH(iterations, sizes),
        *(TopDown(key, source, finite_configuration(source), blocks()) for key, source in sources.items()),
    )
    return {product.key: product for product in found}


def serve(products: Mapping[str, Product], port: int, *, browser: bool) -> None:
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
        config = uvicorn.Config(
            make_app(products, port), log_level="warning", access_log=False, server_header=False, lifespan="off"
        )
        print(address, flush=True)  # noqa: T201 (the address is the command's answer)
        if browser and not webbrowser.open(address):
            print("open this address in a browser; Ctrl-C ends the explorer", file=sys.stderr)  # noqa: T201
        uvicorn.Server(config).run(sockets=[listening])
