"""A server on loopback that answers as a test tells it, to chat completions or to anything else."""

import json
import threading
from collections.abc import Callable, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self

Answer = tuple[int, Any, dict[str, str]]
"""Status, body (JSON unless bytes) and headers."""


def completion(content: str | None, *, finish: str = "stop", **message: Any) -> Answer:
    body = {
        "choices": [
            {"message": {"role": "assistant", "content": content, **message}, "finish_reason": finish}
        ],
        "usage": {"prompt_tokens": 10, "completion_tokens": 3},
    }
    return 200, body, {}


def failure(status: int, message: str = "no", **headers: str) -> Answer:
    return status, {"error": {"message": message}}, {k.replace("_", "-"): v for k, v in headers.items()}


class StubServer:
    """Calls `answer(body)` for every request, in a thread each; use as a context manager.

    Paths in `routes`, without their query, have an answer of their own.
    """

    def __init__(
        self,
        answer: Callable[[dict[str, Any]], Answer],
        routes: Mapping[str, Callable[[dict[str, Any]], Answer]] | None = None,
    ):
        stub = self
        self.paths: list[str] = []
        self.bodies: list[dict[str, Any]] = []
        self.headers: list[dict[str, str]] = []
        self._lock = threading.Lock()

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self):
                self.do_POST()

            def do_POST(self):
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"] or 0)) or b"{}")
                with stub._lock:
                    stub.paths.append(self.path)
                    stub.bodies.append(body)
                    stub.headers.append(dict(self.headers))
                act = (routes or {}).get(self.path.split("?")[0], answer)
                status, said, headers = act(body)
                raw = said if isinstance(said, bytes) else json.dumps(said).encode()
                try:
                    self.send_response(status)
                    for name, value in headers.items():
                        self.send_header(name, value)
                    self.send_header("Content-Length", str(len(raw)))
                    self.end_headers()
                    self.wfile.write(raw)
                except OSError:  # the client has given up
                    pass

            def log_message(self, format: str, *args: Any) -> None:
                """Keep the terminal clean."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.01})
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}/v1"

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *exc: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()
