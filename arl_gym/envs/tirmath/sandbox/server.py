"""A sandbox over HTTP: `GET /` tells what it is, `POST /run` runs a program. JSON both ways.

Knows no users and no encryption: it listens on this machine only, unless it is told otherwise.
"""

import dataclasses
import json
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from arl_gym.envs.tirmath.sandbox.sandbox import Sandbox

MAX_BYTES = 8 << 20
_FIELDS = {"code": str, "stdin": str, "seed": int, "prelude": str}


class SandboxServer(ThreadingHTTPServer):
    """Serves one sandbox; `serve_forever()` and `shutdown()` as usual."""

    daemon_threads = True
    request_queue_size = 128

    def __init__(self, sandbox: Sandbox, host: str, port: int):
        self.sandbox = sandbox
        super().__init__((host, port), _Handler)

    @property
    def url(self) -> str:
        """Its address, as `RemoteSandbox` takes it."""
        return f"http://{self.server_address[0]!s}:{self.server_address[1]}"

    def server_close(self) -> None:
        """Stop listening and close the sandbox."""
        super().server_close()
        self.sandbox.close()


def serve(host: str = "127.0.0.1", port: int = 0, tier: str = "auto", **limits: Any) -> SandboxServer:
    """Return a server that is bound to its port (0: a free one); call its `serve_forever()`.

    Args:
        host: The address to listen on; others than loopback let anybody there run programs.
        port: The port.
        tier: As for `Sandbox`.
        limits: Likewise.

    Raises:
        SandboxUnavailable: If the tier does not hold on this machine.
        OSError: If the port is taken.
    """
    sandbox = Sandbox(tier, **limits)
    try:
        return SandboxServer(sandbox, host, port)
    except OSError:
        sandbox.close()
        raise


class _Handler(BaseHTTPRequestHandler):
    server: SandboxServer
    timeout = 60
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        """Tell the tier and the limits."""
        if self.path != "/":
            self._answer(404, {"error": f"expected GET / or POST /run, got GET {self.path}"})
            return
        sandbox = self.server.sandbox
        self._answer(200, {"tier": sandbox.tier, "limits": dataclasses.asdict(sandbox.limits)})

    def do_POST(self) -> None:
        """Run a program."""
        try:
            order = self._order()
        except ValueError as error:
            self.close_connection = True
            self._answer(400, {"error": str(error)})
            return
        code = order.pop("code")
        self._answer(200, dataclasses.asdict(self.server.sandbox.run(code, **order)))

    def _order(self) -> dict[str, Any]:
        # A web page can make a browser post a form here, but not this type.
        if self.path != "/run" or self.headers.get("Content-Type") != "application/json":
            raise ValueError(f"expected POST /run with application/json, got POST {self.path}")
        size = int(self.headers.get("Content-Length", "0"))
        if not 0 < size <= MAX_BYTES:
            raise ValueError(f"expected 1 to {MAX_BYTES} bytes, got {size}")
        order = json.loads(self.rfile.read(size))
        if not isinstance(order, dict) or "code" not in order:
            raise ValueError("expected a JSON object with the key 'code'")
        for key, value in order.items():
            if key not in _FIELDS or not isinstance(value, _FIELDS[key]) or isinstance(value, bool):
                raise ValueError(
                    f"expected the keys {', '.join(_FIELDS)} of type str and int, got {key}={value!r:.80}"
                )
        return order

    def _answer(self, status: int, content: dict[str, Any]) -> None:
        body = json.dumps(content).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Log nothing."""
