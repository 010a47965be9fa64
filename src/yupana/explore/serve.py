"""Start the explorer, and tell its address."""

import socket
import sys
import webbrowser

import uvicorn
from starlette.types import ASGIApp, Receive, Scope, Send

from yupana.explore.products import Pages
from yupana.explore.server import HOST, make_app


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
