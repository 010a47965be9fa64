"""Start the explorer, and tell its address."""

import socket
import sys
import webbrowser
from collections.abc import Mapping
from pathlib import Path

import uvicorn

from hollerith.explore.phsafe import Phsafe
from hollerith.explore.product import Product
from hollerith.explore.reference import iterations_of, phsafe_reference, safetab_reference
from hollerith.explore.safetab import SafetabH, SafetabP
from hollerith.explore.server import HOST, make_app


def all_products(counts: Path | None = None, parameters: Path | None = None) -> Mapping[str, Product]:
    """Every product of the page, with public counts beside them."""
    iterations, sizes = iterations_of(parameters), safetab_reference()
    found: tuple[Product, ...] = (
        Phsafe(phsafe_reference(counts)),
        SafetabP(iterations, sizes),
        SafetabH(iterations, sizes),
    )
    return {product.key: product for product in found}


def serve(port: int, *, browser: bool, counts: Path | None = None, parameters: Path | None = None) -> None:
    """Serve until interrupted. The address goes to stdout as soon as it can be asked.

    Raises
    ------
    OSError
        If the port is taken.
    """
    products = all_products(counts, parameters)
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
