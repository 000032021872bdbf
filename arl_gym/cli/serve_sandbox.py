"""`arl-gym serve-sandbox`: run TIR-Math's programs for other processes and machines."""

import sys

from arl_gym.cli.options import parser, positive_int


def run(args: list[str]) -> int:
    """Serve until interrupted."""
    from arl_gym.envs.tirmath.sandbox import serve

    options = parser(
        "serve-sandbox",
        'Run programs sent over HTTP in a sandbox; environments use it with sandbox="http://HOST:PORT". '
        "There is no password: whoever reaches the port can run programs.",
    )
    options.add_argument("--host", default="127.0.0.1", help="address to listen on")
    options.add_argument("--port", type=int, default=8470, help="port; 0 takes a free one")
    options.add_argument("--tier", default="auto", help="auto, namespace, landlock or unsafe")
    options.add_argument("--timeout-s", type=float, default=3.0, help="wall-clock seconds of a program")
    options.add_argument("--memory-mb", type=positive_int, default=512, help="address space of a program")
    options.add_argument(
        "--output-bytes", type=positive_int, default=65536, help="of stdout and of stderr, each"
    )
    options.add_argument("--max-concurrency", type=positive_int, default=16, help="programs at the same time")
    with serve(**vars(options.parse_args(args))) as server:
        print(f"{server.url}  tier {server.sandbox.tier}", flush=True)
        try:
            server.serve_forever()
        except KeyboardInterrupt:
            print(file=sys.stderr)  # after the terminal's ^C
    return 0
