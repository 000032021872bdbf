"""`RemoteSandbox`: the programs run where `arl-gym serve-sandbox` does.

    sandbox = RemoteSandbox("http://127.0.0.1:8470")

Every run is one request; nothing of the server's state is kept here.
"""

import http.client
import json
import time
import urllib.parse
from typing import Any, Self

from arl_gym.envs.tirmath.sandbox.execution import Execution, Limits, sandbox_error
from arl_gym.errors import ConfigError, SandboxUnavailable

_CONNECT_S = 10.0
_QUEUE_S = 120.0
"""How long a program may wait for a place on the server, and be under way."""


class RemoteSandbox:
    """A sandbox on another machine, or in another process; thread-safe.

    Raises:
        ConfigError: If the address is none.
        SandboxUnavailable: If no sandbox answers there.
    """

    def __init__(self, url: str):
        parts = urllib.parse.urlsplit(url)
        if parts.scheme != "http" or not parts.hostname or parts.path not in ("", "/") or parts.query:
            raise ConfigError(f"expected the address of a sandbox server as http://HOST:PORT, got {url!r}")
        self.url = url
        self._host, self._port = parts.hostname, parts.port or 80
        try:
            facts = self._request("GET", "/", None, _CONNECT_S)
            self.tier, self.limits = str(facts["tier"]), Limits(**facts["limits"])
        except (OSError, http.client.HTTPException, ValueError, KeyError, TypeError) as error:
            raise SandboxUnavailable(
                f"expected a sandbox server at {url} (arl-gym serve-sandbox), got: {error}"
            ) from error

    def run(self, code: str, *, stdin: str = "", seed: int = 0, prelude: str = "") -> Execution:
        """Run a program, as `Sandbox.run`; a server that cannot be reached is a `sandbox_error`."""
        order = {"code": code, "stdin": stdin, "seed": seed, "prelude": prelude}
        start = time.monotonic()
        for attempt in (1, 2):
            try:
                return Execution(**self._request("POST", "/run", order, self.limits.timeout_s + _QUEUE_S))
            except (OSError, http.client.HTTPException, ValueError, TypeError) as error:
                reason = f"sandbox: {self.url}, attempt {attempt}: {type(error).__name__}: {error}"
        return sandbox_error(reason, (time.monotonic() - start) * 1000)

    def _request(self, method: str, path: str, order: Any, timeout_s: float) -> dict[str, Any]:
        connection = http.client.HTTPConnection(self._host, self._port, timeout=timeout_s)
        try:
            body = None if order is None else json.dumps(order)
            connection.request(method, path, body, {"Content-Type": "application/json"})
            response = connection.getresponse()
            answer = response.read()
        finally:
            connection.close()
        if response.status != 200:
            raise http.client.HTTPException(
                f"status {response.status}: {answer[:200].decode(errors='replace')}"
            )
        facts: dict[str, Any] = json.loads(answer)
        return facts

    def close(self) -> None:
        """Do nothing: the server stays."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()
