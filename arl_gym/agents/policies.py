"""Policies that need no model: random, scripted, expert. And how a response is put in the env's format.

All answer at once and draw only from `Request.stream`, so that a rollout is the same in any order.
"""

from abc import abstractmethod
from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial

from arl_gym.agents.types import Reply, Request
from arl_gym.envs import ENVS
from arl_gym.errors import PolicyError, UnknownNameError
from arl_gym.rng import Rng

Respond = Callable[[str, str], str]
"""From (thought, action) to a whole response."""

# What the random policy says where the actions cannot be enumerated: legal everywhere, right nowhere.
FALLBACK_ACTIONS = ("look", "help", "search[anything]", "\\boxed{0}")

_LAYOUTS = {
    "strict": "<think>{thought}</think><action>{action}</action>",
    "lenient": "<think>{thought}</think><action>{action}</action>",
    "action_only": "<action>{action}</action>",
    "none": "{action}",
}


def format_response(format: str, thought: str, action: str) -> str:
    """Return the response that says `thought` and `action` in a response format.

    Formats without a place for the thought leave it out.

    Raises:
        UnknownNameError: If the format is unknown.
    """
    if format not in _LAYOUTS:
        raise UnknownNameError("format", format, _LAYOUTS)
    return _LAYOUTS[format].format(thought=thought, action=action)


def resolve_format(format: str, env_id: str) -> str:
    """Return a response format by name, "default" being the env's own, and strict for unknown ids."""
    if format != "default":
        return format
    return ENVS[env_id].format if env_id in ENVS else "strict"


def respond_in(format: str, env_id: str) -> Respond:
    """Return what says thought and action in a format; "default" is the env's own, strict for unknown ids.

    Raises:
        UnknownNameError: If the format is unknown.
    """
    entry = ENVS.get(env_id)
    format = resolve_format(format, env_id)
    if format == "none" and entry is not None and entry.prose:
        return _thought_first
    format_response(format, "", "")
    return partial(format_response, format)


def _thought_first(thought: str, action: str) -> str:
    return f"{thought}\n{action}" if thought else action


class _Immediate:
    """A policy that answers every request by itself; a subclass says how in `respond`."""

    def __init__(self) -> None:
        self._pending: list[Request] = []

    def submit(self, requests: Sequence[Request]) -> None:
        """Queue requests."""
        self._pending.extend(requests)

    def poll(self) -> list[Reply]:
        """Answer everything that is queued."""
        pending, self._pending = self._pending, []
        return [self._reply(request, self.respond(request)) for request in pending]

    @staticmethod
    def _reply(request: Request, response: str) -> Reply:
        return Reply(key=request.key, response=response, finish="stop" if response else "empty")

    @abstractmethod
    def respond(self, request: Request) -> str:
        """Return the response; an empty one is an invalid action."""


class RandomPolicy(_Immediate):
    """Draws uniformly from the admissible actions, or from fixed strings where there are none."""

    def __init__(self, seed: int, respond: Respond):
        super().__init__()
        self._seed, self._respond = seed, respond

    def respond(self, request: Request) -> str:
        """Return a random action in the env's format."""
        actions = request.info.get("admissible_actions") or FALLBACK_ACTIONS
        return self._respond("Any move will do.", Rng("random", self._seed, request.stream).choice(actions))


class ScriptedPolicy(_Immediate):
    """Says what it is told: a function of the request, or the k-th response on the k-th turn of each episode.

    A list that has run out gives empty responses. With a list, one policy plays one
    rollout: it counts the turns of each episode.
    """

    def __init__(self, script: Sequence[str] | Callable[[Request], str]):
        super().__init__()
        self._script = script
        self._turns: Counter[int] = Counter()

    def respond(self, request: Request) -> str:
        """Return the scripted response."""
        if callable(self._script):
            return self._script(request)
        turn = self._turns[request.key]
        self._turns[request.key] += 1
        return self._script[turn] if turn < len(self._script) else ""


class ExpertPolicy(_Immediate):
    """Follows the env's own expert; the envs must be made with `expert=True`."""

    def __init__(self, respond: Respond):
        super().__init__()
        self._respond = respond

    def respond(self, request: Request) -> str:
        """Return the expert's thought and action in the env's format.

        Raises:
            PolicyError: If the info carries no expert action.
        """
        if "expert_action" not in request.info:
            raise PolicyError("ExpertPolicy needs info['expert_action']: make the envs with expert=True")
        return self._respond(request.info["expert_thought"], request.info["expert_action"])
