"""`arl-gym serve-openenv`: an environment for clients of OpenEnv."""

from arl_gym.cli.options import add_chat_options, add_env_options, env_kwargs, parser, positive_int


def run(args: list[str]) -> int:
    """Serve until interrupted."""
    p = parser(
        "serve-openenv", "Serve an environment to OpenEnv's clients. A session is an episode at a time."
    )
    add_env_options(p, split="train")
    add_chat_options(p, window="dialogue")
    p.add_argument("--penalty", type=float, default=0.1, help="what a response of broken format costs")
    p.add_argument(
        "--host", default="127.0.0.1", help="address to listen on; the default is this machine only"
    )
    p.add_argument("--port", type=int, default=8000, help="0 takes a free one")
    p.add_argument("--max-concurrent-envs", type=positive_int, default=64, help="most sessions at a time")
    options = p.parse_args(args)
    chat = {key: getattr(options, key) for key in ("window", "format", "prompt", "penalty")}
    # Here, so that nothing but serving needs OpenEnv.
    import uvicorn

    from arl_gym.adapters.openenv import app

    server = app(options.id, {**env_kwargs(options), **chat}, max_concurrent_envs=options.max_concurrent_envs)
    uvicorn.run(server, host=options.host, port=options.port)
    return 0
