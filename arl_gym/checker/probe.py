"""What the rules share: the environment under test, ways to play it, and how a rule says what it found."""

import inspect
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, SupportsFloat

import gymnasium as gym
from gymnasium.utils.env_checker import data_equivalence

from arl_gym.rng import Rng

Env = gym.Env[Any, Any]

_STEP_CAP = 200
"""Steps after which an episode of great or unknown length is left."""
_EXPERT_CAP = 5_000
"""The same for the expert, who should come to an end."""
_SHOWN = 300
"""Characters of a value that a report shows."""


class Mismatch(Exception):
    """A rule does not hold; the text says what was expected, what came, and where."""


class NotApplicable(Exception):
    """A rule cannot be tried on this environment; the text says why."""


@dataclass(frozen=True, slots=True)
class Moment:
    """What a reset or step returned; reward and flags of a reset are 0 and False."""

    obs: Any
    reward: SupportsFloat
    terminated: bool
    truncated: bool
    info: dict[str, Any]

    @property
    def is_last(self) -> bool:
        """Whether the episode is over."""
        return bool(self.terminated or self.truncated)


@dataclass(frozen=True, slots=True)
class Probe:
    """The environment under test, and ways to make and play it."""

    make_env: Callable[..., Env]
    episodes: int
    seed: int

    def seeds(self) -> range:
        """Return the seed of each episode."""
        return range(self.seed, self.seed + self.episodes)

    @contextmanager
    def env(self) -> Iterator[Env]:
        """Make an environment and close it afterwards."""
        env = self.make_env()
        try:
            yield env
        finally:
            env.close()

    @contextmanager
    def base(self) -> Iterator[Any]:
        """Make an environment and give what is inside its wrappers."""
        with self.env() as env:
            yield env.unwrapped

    @contextmanager
    def base_with(self, *names: str) -> Iterator[Any]:
        """Make an environment and give what is inside its wrappers, if that has these methods.

        Raises:
            NotApplicable: If it lacks one.
        """
        with self.base() as env:
            for name in names:
                if not hasattr(env, name):
                    raise NotApplicable(f"it has no {name}()")
            yield env

    @contextmanager
    def variant(self, name: str, value: Any) -> Iterator[Env]:
        """Make the environment with another value of a keyword argument, and close it afterwards.

        Raises:
            NotApplicable: If it does not take the argument, or there is no way to give it.
        """
        with self.env() as env:
            kind, spec = type(env.unwrapped), env.spec
        if name not in inspect.signature(kind).parameters:
            raise NotApplicable(f"{kind.__name__} takes no {name}")
        if _takes(self.make_env, name):
            other = self.make_env(**{name: value})
        elif spec is not None:
            other = gym.make(spec, **{name: value})
        else:
            raise NotApplicable(f"make_env passes no {name} on: give the class itself, or a registered id")
        try:
            yield other
        finally:
            other.close()

    def play(
        self, env: Env, seed: int, actions: Sequence[Any] | None = None
    ) -> tuple[list[Moment], list[Any]]:
        """Play one episode, by the given actions or by seeded random ones; return moments and actions."""
        moments, taken = [reset(env, seed)], list[Any]()
        env.action_space.seed(seed)
        rng = Rng("check", seed)
        limit = (max_steps(env) or _STEP_CAP) if actions is None else len(actions)
        while not moments[-1].is_last and len(taken) < limit:
            if actions is None:
                taken.append(draw_action(env.action_space, moments[-1].info, rng))
            else:
                taken.append(actions[len(taken)])
            moments.append(step(env, taken[-1]))
        return moments, taken

    def play_by_expert(self, env: Env, seed: int) -> list[Moment]:
        """Play one episode by the environment's own expert.

        Raises:
            NotApplicable: If it has none.
        """
        if not hasattr(env.unwrapped, "expert_action"):
            raise NotApplicable("it has no expert_action()")
        moments = [reset(env, seed)]
        while not moments[-1].is_last and len(moments) <= _EXPERT_CAP:
            try:
                action = env.unwrapped.expert_action()
            except NotImplementedError as err:
                raise NotApplicable("it has no expert") from err
            legal = env.action_space.contains(action)
            require(legal, "an action of the action space from the expert", action, f"seed {seed}")
            moments.append(step(env, action))
        return moments


def _takes(make_env: Callable[..., Env], name: str) -> bool:
    parameters = inspect.signature(make_env).parameters
    return name in parameters or any(p.kind is p.VAR_KEYWORD for p in parameters.values())


def reset(env: Env, seed: int | None = None) -> Moment:
    """Start an episode."""
    obs, info = env.reset(seed=seed)
    return Moment(obs, 0.0, False, False, info)


def step(env: Env, action: Any) -> Moment:
    """Take one step."""
    obs, reward, terminated, truncated, info = env.step(action)
    return Moment(obs, reward, terminated, truncated, info)


def draw_action(space: gym.Space[Any], info: dict[str, Any], rng: Rng) -> Any:
    """Return one of the admissible actions where the info lists them, now and then any of the space."""
    legal = info.get("admissible_actions") or []
    if legal and space.contains(legal[0]) and rng.below(8):
        return rng.choice(legal)
    return space.sample()


def takes_text(env: Env) -> bool:
    """Return whether any string is an action."""
    return env.action_space.contains("")


def max_steps(env: Env) -> int | None:
    """Return the step limit of the episode, if it is told and can be reached here."""
    limit = getattr(env.unwrapped, "max_steps", None) or (env.spec and env.spec.max_episode_steps)
    return int(limit) if limit and limit <= _STEP_CAP else None


def require(holds: bool, expected: str, got: object, where: str = "") -> None:
    """Say that a rule is broken unless `holds`.

    Raises:
        Mismatch: With what was expected, what came, and where.
    """
    if not holds:
        shown = got if isinstance(got, str) else repr(got)
        raise Mismatch(
            f"expected {expected[:_SHOWN]}, got {shown[:_SHOWN]}" + (f" ({where})" if where else "")
        )


def require_equal(expected: Any, got: Any, what: str, where: str) -> None:
    """Require two values to be equal, arrays in every element."""
    require(data_equivalence(expected, got, exact=True), f"{what}: {expected!r}", repr(got), where)


def require_same(expected: Moment, got: Moment, where: str) -> None:
    """Require two moments to be equal."""
    require_equal(expected.obs, got.obs, "the same observation", where)
    x, y = ((float(m.reward), m.terminated, m.truncated) for m in (expected, got))
    require(x == y, f"the same reward, terminated and truncated: {x}", y, where)
    require_same_info(expected.info, got.info, where)


def require_same_info(expected: dict[str, Any], got: dict[str, Any], where: str) -> None:
    """Require two infos to have the same keys and values."""
    require(expected.keys() == got.keys(), f"info keys {sorted(expected)}", sorted(got), where)
    for key, value in expected.items():
        require_equal(value, got[key], f"info[{key!r}] as before", where)


def require_same_play(expected: Sequence[Moment], got: Sequence[Moment], where: str) -> None:
    """Require two episodes to be equal, moment by moment."""
    for t, (x, y) in enumerate(zip(expected, got, strict=False)):
        require_same(x, y, f"{where}, step {t}")
    require(len(expected) == len(got), f"{len(expected) - 1} steps", len(got) - 1, where)
