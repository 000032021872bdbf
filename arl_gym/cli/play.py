"""`arl-gym play`: a person plays in the terminal, or a pipe does."""

import sys
from typing import Any

import gymnasium as gym
from gymnasium.envs.registration import load_env_creator

from arl_gym.cli.options import add_env_options, env_kwargs, parser

_MANY_ACTIONS = 24


def run(args: list[str]) -> int:
    """Play one episode: one action a line, `q` or the end of the input stops."""
    p = parser("play", "Play an environment: type one action a line, q to quit. Works with a pipe too.")
    add_env_options(p, split="train")
    p.add_argument("--seed", type=int, default=0, help="picks the task")
    p.add_argument("--task-id", help="this task instead")
    options = p.parse_args(args)
    env = _make(options.id, env_kwargs(options))
    try:
        chosen = {"task_id": options.task_id} if options.task_id is not None else None
        _play(env, *env.reset(seed=options.seed, options=chosen))
    finally:
        env.close()
    return 0


def _make(env_id: str, kwargs: dict[str, Any]) -> gym.Env[Any, Any]:
    # A person sees the env's own text rendering, where it has one: observations are laid out for models.
    entry = gym.spec(env_id).entry_point
    creator = load_env_creator(entry) if isinstance(entry, str) else entry
    modes = getattr(creator, "metadata", {}).get("render_modes", [])
    return gym.make(env_id, render_mode="ansi" if "ansi" in modes else None, **kwargs)


def _play(env: gym.Env[Any, Any], observation: Any, info: dict[str, Any]) -> None:
    print(f"{env.spec.id if env.spec else env}  task {info.get('task_id', '?')}\n{info.get('task', '')}\n")
    total, steps, over = 0.0, 0, False
    while not over:
        _show(env, observation, info)
        action = _read(env)
        if action is None:
            print(f"\nstopped after {steps} steps, return {total:g}")
            return
        observation, reward, terminated, truncated, info = env.step(action)
        total, steps, over = total + float(reward), steps + 1, terminated or truncated
        remark = "" if info.get("action_valid", True) else "  (not a legal action here)"
        print(f"\nstep {steps}  reward {float(reward):g}{remark}")
    _show(env, observation, {})
    print(f"\n{'solved' if info.get('success') else 'not solved'} in {steps} steps, return {total:g}")


def _show(env: gym.Env[Any, Any], observation: Any, info: dict[str, Any]) -> None:
    print(env.render() if env.render_mode == "ansi" else observation)
    actions = info.get("admissible_actions", [])
    if actions:
        more = f", … ({len(actions)})" if len(actions) > _MANY_ACTIONS else ""
        print("actions: " + ", ".join(map(str, actions[:_MANY_ACTIONS])) + more)


def _read(env: gym.Env[Any, Any]) -> str | int | None:
    """Return the next action; None at the end of the input and for `q`."""
    while True:
        if sys.stdin.isatty():
            print("> ", end="", flush=True)
        line = sys.stdin.readline()
        text = line.strip()
        if not line or text == "q":
            return None
        if not isinstance(env.action_space, gym.spaces.Discrete):
            if text:  # an empty line is a slip, not an action
                return text
        elif text.isdecimal() and env.action_space.contains(int(text)):
            return int(text)
        else:
            print(f"type a number from 0 to {int(env.action_space.n) - 1}, or q")
