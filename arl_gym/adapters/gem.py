"""GEM: the environments as `gem.Env`, for `gem.make`, `gem.make_vec` and GEM's wrappers.

    register()
    env = gem.make("arl:Sokoban-v0", seed=7)
    vec = gem.make_vec(["arl:WebShop-v0"] * 8, async_mode=True)

GEM's observations are strings: no images here.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from arl_gym.errors import DependencyMissing, EpisodeOverError

try:
    import gem
    from gem.envs.registration import ENV_REGISTRY
except ImportError as err:
    raise DependencyMissing("GEM", "gem") from err

from arl_gym.adapters.episode import TextEpisode, text_of
from arl_gym.agents.policies import FALLBACK_ACTIONS, respond_in
from arl_gym.envs import ENVS
from arl_gym.make import find_spec
from arl_gym.rng import Rng, derive


def register() -> None:
    """Register this package's ids with GEM, "arl:Sokoban-v0" and so on; a second call changes nothing."""
    for id in ENVS:
        name = id.replace("ARL/", "arl:")
        if name not in ENV_REGISTRY:
            gem.register(name, GemEnv, id=id)


class GemEnv(gem.Env):
    """An environment of text in GEM's hands: strings in and out, one episode after the other.

    Equal arguments give equal tasks in equal order, whatever other environments and GEM's global generators
    do. The info of a last step has the episode's `record`. The next reset's info has that step's observation
    and info again, as `final_obs` and `final_info`: GEM's vector environments reset at once and drop them.

    A copy in the middle of an episode, a pickled one too, plays the responses again.

    Args:
        id: A registered id, with or without its module ("mine:Mine/Game-v0").
        task_id: The one task of all episodes; seeds then change nothing.
        seed: Picks the first task, and those after it.
        env_kwargs: Keyword arguments of `make_chat_env`.

    Raises:
        UnknownNameError: If the id or the format is unknown.
    """

    def __init__(self, id: str, *, task_id: str | None = None, seed: int = 0, **env_kwargs: Any):
        super().__init__()
        self.seed = seed
        self._id, self._task_id, self._env_kwargs = id, task_id, env_kwargs
        self._respond = respond_in(env_kwargs.get("format", "default"), find_spec(id).id)
        self._rng = Rng("gem", seed)
        self._n_episodes = 0  # begun since the last seed
        self._responses: list[str] = []
        self._final: dict[str, Any] = {}
        self._episode: TextEpisode | None = None

    def reset(self, seed: int | None = None) -> tuple[str, dict[str, Any]]:
        """Begin the episode that `seed` picks, or the one after the last.

        Raises:
            ConfigError: If there are images in the observations, and as `TextEpisode`.
        """
        final = self._final
        # Not super().reset(seed), which seeds the generators of the whole process.
        if seed is not None:
            self.seed, self._n_episodes = seed, 0
        self._n_episodes += 1
        obs, info = self._begin()
        return obs, {**info, **final}

    def _begin(self) -> tuple[str, dict[str, Any]]:
        self.close()
        self._responses, self._final = [], {}
        seed = self.seed if self._n_episodes == 1 else derive("gem", self.seed, self._n_episodes) >> 33
        self._episode = TextEpisode(
            self._id, self._env_kwargs, task_id=self._task_id, seed=None if self._task_id else seed
        )
        return text_of(self._episode.messages), dict(self._episode.info)

    def step(self, action: str) -> tuple[str, float, bool, bool, dict[str, Any]]:
        """Play one turn with the model's whole response.

        Raises:
            EpisodeOverError: If the episode is over, or none has begun.
        """
        if self._episode is None:
            raise EpisodeOverError(f"no episode of {self._id} has begun: call reset() first")
        messages, reward, terminated, truncated, info = self._episode.act(action)
        self._responses.append(action)
        obs, info = text_of(messages), dict(info)
        if self._episode.done:
            info["record"] = self._episode.record()
            self._final = {"final_obs": obs, "final_info": dict(info)}
        return obs, reward, terminated, truncated, info

    def sample_random_action(self) -> str:
        """Return a response with one of the admissible actions, or with some text where they are unknown."""
        info = self._episode.info if self._episode else {}
        actions = info.get("admissible_actions") or FALLBACK_ACTIONS
        return self._respond("Any move will do.", self._rng.choice(actions))

    def spawn(self, same_state: bool = False, **kwargs: Any) -> "GemEnv":
        """Return another environment with these arguments, except for those in `kwargs`.

        Without another seed it plays the same tasks. With `same_state` it stands where this one stands.
        """
        mine = {"id": self._id, "task_id": self._task_id, "seed": self.seed, **self._env_kwargs}
        child = type(self)(**{**mine, **kwargs})
        if same_state:
            child.set_state(self.get_state())
        return child

    def get_state(self) -> dict[str, Any]:
        """Return where the environment stands, as JSON: seed, number of episodes begun, responses."""
        return {"seed": self.seed, "n_episodes": self._n_episodes, "responses": list(self._responses)}

    def set_state(self, state: Mapping[str, Any]) -> None:
        """Go where an environment of the same arguments stood, by playing its episode again."""
        self.seed, self._n_episodes = state["seed"], state["n_episodes"]
        self._replay(state["responses"])

    def _replay(self, responses: Sequence[str]) -> None:
        self.close()
        if self._n_episodes > 0:
            self._begin()
        for response in responses:
            self.step(response)

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_episode": None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._replay(self._responses)

    def close(self) -> None:
        """Free what the episode holds; twice is fine."""
        if self._episode is not None:
            self._episode.close()
            self._episode = None
