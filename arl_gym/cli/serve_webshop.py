"""`arl-gym serve-webshop`: the web store as a site, for people, browsers, and recorded episodes."""

import inspect
import ipaddress
import sys
from pathlib import Path
from typing import Any

from arl_gym.agents.records import read_trajectories
from arl_gym.cli.options import add_kwargs_option, parser, positive_int
from arl_gym.envs.webshop.session import Session
from arl_gym.envs.webshop.site.visits import MAX_VISITS
from arl_gym.envs.webshop.tasks import open_tasks
from arl_gym.errors import ConfigError, UnknownNameError
from arl_gym.make import env_parameters, find_spec

_ENV_ID = "ARL/WebShop-v0"
_TASKS = {name: p.default for name, p in inspect.signature(open_tasks).parameters.items()}
_PAGES = {name: p.default for name, p in inspect.signature(Session).parameters.items() if name != "shop"}


def run(args: list[str]) -> int:
    """Serve until the user interrupts."""
    p = parser(
        "serve-webshop", "Serve WebShop as a site. People shop at its address, environments with site_url=."
    )
    p.add_argument(
        "--host", default="127.0.0.1", help="address to listen on; the default is this machine only"
    )
    p.add_argument("--port", type=int, default=3000, help="0 takes a free one")
    add_kwargs_option(p, f"argument of {_ENV_ID}: {', '.join(_TASKS | _PAGES)}")
    p.add_argument(
        "--max-visits", type=positive_int, default=MAX_VISITS, help="visits that are kept at a time"
    )
    p.add_argument(
        "--episodes",
        action="append",
        type=Path,
        default=[],
        metavar="FILE",
        help="recorded episodes to look at, a .jsonl or .jsonl.gz; may be repeated",
    )
    options = p.parse_args(args)
    _serve(options.host, options.port, dict(options.env), options.max_visits, options.episodes)
    return 0


def _serve(host: str, port: int, kwargs: dict[str, Any], max_visits: int, files: list[Path]) -> None:
    # Here, so that nothing but serving needs Flask.
    from arl_gym.envs.webshop.site.app import create_app
    from arl_gym.envs.webshop.site.server import SiteServer

    _check(kwargs)
    app = create_app(
        open_tasks(**{name: kwargs.get(name, default) for name, default in _TASKS.items()}),
        options={name: kwargs.get(name, default) for name, default in _PAGES.items()},
        max_visits=max_visits,
        episodes=[(str(file), episode) for file in files for episode in read_trajectories(file)],
    )
    with SiteServer(app, host=host, port=port) as server:
        if not _is_loopback(host):
            print(
                f"arl-gym: others can reach {host}: the site knows no users and no passwords", file=sys.stderr
            )
        print(f"WebShop is at {server.url} (Ctrl-C ends it)", flush=True)
        try:
            server.wait()
        except KeyboardInterrupt:
            print(file=sys.stderr)  # after the terminal's ^C


def _check(kwargs: dict[str, Any]) -> None:
    taken, known = _TASKS | _PAGES, env_parameters(find_spec(_ENV_ID)) or ()
    for key in kwargs:
        if key in known and key not in taken:
            raise ConfigError(f"--env {key}: a site has no use for it, it takes {', '.join(taken)}")
        if key not in taken:
            raise UnknownNameError("--env key", key, taken, "serve-webshop")


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
