"""A site on a port of this machine, served by threads of this process.

>>> with SiteServer(create_app(tasks)) as server:  # doctest: +SKIP
...     print(server.url)
"""

import socket
import threading
from types import TracebackType

from flask import Flask
from werkzeug.serving import WSGIRequestHandler, make_server, select_address_family

from arl_gym.errors import ConfigError

_POLL_S = 0.05
"""How soon the server notices that it is to close."""


class _Quiet(WSGIRequestHandler):
    protocol_version = "HTTP/1.0"  # no connection outlives its answer, so that a closed server is silent

    def log_request(self, code: int | str = "-", size: int | str = "-") -> None:
        """Say nothing of single requests."""


class SiteServer:
    """Serves an app from construction to `close`.

    Args:
        app: The site.
        host: Address to listen on; only this machine can reach the default.
        port: 0 takes a free one.

    Attributes:
        url: Where the site is.

    Raises:
        ConfigError: If it cannot listen there.
    """

    def __init__(self, app: Flask, *, host: str = "127.0.0.1", port: int = 0):
        try:
            # Given an open socket, werkzeug neither prints what is wrong with it nor exits.
            with socket.create_server((host, port), family=select_address_family(host, port)) as s:
                self._server = make_server(
                    host, port, app, threaded=True, request_handler=_Quiet, fd=s.fileno()
                )
        except (OSError, OverflowError) as err:
            raise ConfigError(f"cannot listen on {host}:{port}: {err}") from err
        name = f"[{host}]" if ":" in host else host
        self.url = f"http://{name}:{self._server.port}"
        self._thread = threading.Thread(
            target=self._server.serve_forever, args=(_POLL_S,), daemon=True, name="webshop-site"
        )
        self._thread.start()

    def __enter__(self) -> "SiteServer":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, err: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def wait(self) -> None:
        """Wait until the server is closed or the user interrupts."""
        self._thread.join()

    def close(self) -> None:
        """Stop listening; a second call does nothing."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()
