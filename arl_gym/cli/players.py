"""Who plays: the options of a policy, shared by `arl-gym eval` and `collect`."""

import argparse
import importlib
import json
import os
from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import Any

from arl_gym.agents.endpoint import EndpointPolicy
from arl_gym.agents.evaluate import named_policy
from arl_gym.agents.types import Policy
from arl_gym.cli.options import positive_int

PLAYERS = ("random", "expert", "hf", "vllm", "openai")


def add_player_options(p: argparse.ArgumentParser) -> None:
    """Add who plays and how it samples; the sampling goes by vLLM's names. `--model` is the caller's."""
    p.add_argument(
        "--backend",
        "--policy",
        dest="policy",
        choices=PLAYERS,
        help="who plays: hf is transformers, vllm an engine in this process, openai any server with OpenAI's "
        "chat interface (vLLM, SGLang, llama.cpp, …); all three need --model",
    )
    p.add_argument("--base-url", metavar="URL", help="of the server, e.g. http://localhost:8000/v1")
    p.add_argument(
        "--concurrency", type=positive_int, default=16, help="requests under way at once at the server"
    )
    p.add_argument("--temperature", type=float, default=0.0, help="sampling temperature; 0 is greedy")
    p.add_argument("--top-p", type=float, default=1.0, help="draw from this share of the probability")
    p.add_argument("--top-k", type=int, default=0, help="draw from so many likeliest tokens; 0 is all")
    p.add_argument("--max-tokens", type=positive_int, default=512, help="most tokens of one response")
    p.add_argument(
        "--max-model-len",
        "--max-context",
        dest="max_context",
        type=positive_int,
        default=2048,
        help="most tokens of prompt and response; the server has its own",
    )
    p.add_argument(
        "--batch-size", type=positive_int, default=64, help="most responses generated together (hf)"
    )
    p.add_argument(
        "--chat-template-kwargs",
        type=_json_object,
        default={},
        metavar="JSON",
        help="arguments of the chat template, e.g. '{\"enable_thinking\": false}'",
    )
    p.add_argument(
        "--extra-body",
        type=_json_object,
        default={},
        metavar="JSON",
        help="more fields of a server's request",
    )


def check_player(p: argparse.ArgumentParser, options: argparse.Namespace) -> None:
    """Find out who plays from what was given, or end with what is missing."""
    if options.policy is None and options.model in ("random", "expert"):
        p.error(f"--model takes a model: say --policy {options.model}")
    if options.policy is None and options.model:
        options.policy = "openai" if options.base_url else "hf"
    if options.policy is None:
        p.error("say who plays: --policy random, --policy expert or --model DIR")
    if (options.policy in ("hf", "vllm", "openai")) != (options.model is not None):
        p.error(
            "--model goes with --policy hf, vllm or openai, "
            f"got --policy {options.policy} --model {options.model}"
        )
    if options.policy == "openai":
        options.base_url = options.base_url or os.environ.get("OPENAI_BASE_URL")
        if not options.base_url:
            p.error("--policy openai needs --base-url URL or the environment variable OPENAI_BASE_URL")
    elif options.base_url:
        p.error(f"--base-url goes with --policy openai, got --policy {options.policy}")


@contextmanager
def player(options: argparse.Namespace, env_id: str, *, seed: int, format: str) -> Iterator[Policy]:
    """Give the policy that the options name."""
    if options.policy == "openai":
        with _endpoint(options) as policy:
            yield policy
    elif options.policy == "hf":
        yield _local(options, batch_size=options.batch_size)
    elif options.policy == "vllm":
        with closing(_local(options)) as policy:
            yield policy
    else:
        yield named_policy(options.policy, env_id, seed=seed, format=format)


def _endpoint(options: argparse.Namespace) -> EndpointPolicy:
    # Not of OpenAI's own interface, but of the servers' that know more.
    more: dict[str, Any] = {"top_k": options.top_k} if options.top_k > 0 else {}
    if options.chat_template_kwargs:
        more["chat_template_kwargs"] = options.chat_template_kwargs
    return EndpointPolicy(
        base_url=options.base_url,
        model=options.model,
        concurrency=options.concurrency,
        temperature=options.temperature,
        top_p=options.top_p,
        max_tokens=options.max_tokens,
        extra_body={**more, **options.extra_body},
    )


def _local(options: argparse.Namespace, **more: Any) -> Any:
    """Return the policy of a model that is loaded into this process."""
    # Loaded by name: the playing half installs and starts without the trainer's dependencies.
    load_policy: Any = importlib.import_module(f"arl_gym.train.policies.{options.policy}").load_policy
    template = dict(options.chat_template_kwargs)
    return load_policy(
        options.model,
        temperature=options.temperature,
        top_p=options.top_p,
        top_k=options.top_k,
        max_tokens=options.max_tokens,
        max_context=options.max_context,
        enable_thinking=template.pop("enable_thinking", True),
        chat_template_kwargs=template,
        **more,
    )


def _json_object(text: str) -> dict[str, Any]:
    try:
        value = json.loads(text)
    except ValueError as err:
        raise argparse.ArgumentTypeError(f"expected a JSON object, got {text!r}: {err}") from err
    if not isinstance(value, dict):
        raise argparse.ArgumentTypeError(f"expected a JSON object, got {text!r}")
    return value
