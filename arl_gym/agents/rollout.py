"""Plays episodes: many at once through the slots of a vector env, one policy for all of them.

Owns what was sampled: ids and log-probs pass from the policy's replies into the turns untouched. Knows no
tokenizer, no model and no environment by name.

    vec = make_chat_vec("ARL/Sokoban-v0", 8)
    trajectories = rollout(vec, policy, episodes, env_id="ARL/Sokoban-v0", seed=0)
"""

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from time import perf_counter
from typing import Any

from arl_gym.agents.tasks import episode_seed
from arl_gym.agents.types import Episode, Policy, Reply, Request, Stop, Trajectory, Turn
from arl_gym.core import Message, pictures_of
from arl_gym.errors import PolicyError
from arl_gym.rng import derive
from arl_gym.vector import Result, TextVectorEnv

Progress = Callable[[int, int], None]
"""Called with (done, total) whenever an episode ends."""


@dataclass(slots=True)
class RolloutStats:
    """Where the time went; adds up over the rollouts it is passed to."""

    n_turns: int = 0
    total_s: float = 0.0
    policy_s: float = 0.0

    @property
    def env_us_per_turn(self) -> float:
        """Microseconds per turn outside the policy: environment, wrappers, prompt and bookkeeping."""
        return 1e6 * (self.total_s - self.policy_s) / max(self.n_turns, 1)


def rollout(
    vec: TextVectorEnv,
    policy: Policy,
    episodes: Sequence[Episode],
    *,
    env_id: str,
    seed: int,
    step: int = 0,
    progress: Progress | None = None,
    on_episode: Callable[[int, Trajectory], None] | None = None,
    stats: RolloutStats | None = None,
    check: Callable[[], None] | None = None,
) -> list[Trajectory]:
    """Play every episode and return the trajectories in the order of `episodes`.

    There may be more episodes than slots: a slot that is done takes the next one. Every request that is ready
    is submitted at once and nobody waits for the slowest env. What comes out depends on the episodes and the
    two seeds only, not on slots, workers or the order of replies (given a policy that samples from
    `Request.stream`).

    Args:
        vec: Slots of chat envs without autoreset, none with a result to receive.
        policy: Answers the requests, in any order.
        episodes: What to play.
        env_id: Written into the trajectories.
        seed: Seed of the run. With `step`, task, copy and turn it makes the sampling streams.
        step: Training step.
        progress: Called whenever an episode ends.
        on_episode: Called with an episode's index in `episodes` and its trajectory, as soon as it ends.
        stats: Gets turns and seconds added.
        check: Called between turns; what it raises ends the rollout (the slots then still have results to
            come: close `vec`).

    Raises:
        PolicyError: If the policy answers a request that it was not asked, or none of those it was.
    """
    queue = deque(enumerate(episodes))
    acting: dict[int, _Player] = {}  # by slot: the environment has the word
    asked: dict[int, _Player] = {}  # by key: the policy has the word
    done: dict[int, Trajectory] = {}
    stats = RolloutStats() if stats is None else stats

    def start(slot: int) -> None:
        if queue:
            key, episode = queue.popleft()
            acting[slot] = _Player(key=key, episode=episode, slot=slot)
            env_seed = episode_seed(episode.task_id)
            vec.send_reset(slot, seed=env_seed, options={"task_id": episode.task_id})

    def finish(player: _Player, stop: Stop) -> None:
        done[player.key] = player.trajectory(env_id, stop)
        stats.n_turns += len(player.turns)
        if on_episode is not None:
            on_episode(player.key, done[player.key])
        if progress is not None:
            progress(len(done), len(episodes))
        start(player.slot)

    began = perf_counter()
    for slot in range(vec.num_envs):
        start(slot)
    while acting or asked:
        if check is not None:
            check()
        requests = []
        # Take all that is ready, and block on the environments only while the policy has nothing to do.
        while acting and (results := vec.recv(0.0 if asked else None)):
            for result in results:
                player = acting.pop(result.index)
                player.observe(result)
                if stop := _stop(result):
                    finish(player, stop)
                else:
                    asked[player.key] = player
                    requests.append(player.request(seed, step))
        for reply in _replies(policy, requests, asked, stats):
            player = asked.pop(reply.key)
            if stop := player.answer(reply):
                finish(player, stop)
            else:
                acting[player.slot] = player
                vec.send(player.slot, reply.response)
    stats.total_s += perf_counter() - began
    return [done[key] for key in range(len(episodes))]


def _replies(
    policy: Policy, requests: Sequence[Request], asked: Mapping[int, object], stats: RolloutStats
) -> list[Reply]:
    began = perf_counter()
    if requests:
        policy.submit(requests)
    replies = policy.poll() if asked else []
    stats.policy_s += perf_counter() - began
    keys = [reply.key for reply in replies]
    if asked and not (keys and len(set(keys)) == len(keys) and asked.keys() >= set(keys)):
        raise PolicyError(
            f"{type(policy).__name__}.poll: expected replies to some of the requests {sorted(asked)}, "
            f"got {keys}"
        )
    return replies


def _stop(result: Result) -> Stop | None:
    if "env_error" in result.info:
        return "env_error"
    if result.terminated:
        return "terminated"
    if result.info.get("context_full", False):
        return "context_full"
    return "truncated" if result.truncated else None


@dataclass(slots=True, kw_only=True)
class _Player:
    """One running episode: the slot it runs in, what it sees, and its turns so far."""

    key: int
    episode: Episode
    slot: int
    messages: list[Message] = field(default_factory=list)
    info: dict[str, Any] = field(default_factory=dict)
    turns: list[Turn] = field(default_factory=list)
    reply: Reply | None = None
    """The answer that the environment is working on."""

    def observe(self, result: Result) -> None:
        """Take in what a reset or a step gave; a step completes a turn."""
        failed = "env_error" in result.info
        if self.reply is not None:
            # The info of a failed step is that of the step before.
            self.turns.append(self._turn(self.reply, {} if failed else result.info))
            self.reply = None
        self.messages, self.info = result.observation, result.info

    def answer(self, reply: Reply) -> Stop | None:
        """Take in the policy's answer; say why the episode ends if there is nothing to send."""
        if reply.finish == "context_full":
            return "context_full"
        # An empty response is played like any other, as an invalid action. Were it to end the episode, a
        # policy that expects to fail would learn to say nothing, which costs less than the steps it saves.
        self.reply = reply
        return None

    def request(self, seed: int, step: int) -> Request:
        stream = derive("turn", seed, step, self.episode.task_id, self.episode.copy, len(self.turns))
        context = self._context_ids() if self.info.get("append", False) else None
        earlier = [p for t in self.turns for p in pictures_of(t.messages)] if context is not None else []
        return Request(
            key=self.key,
            messages=self.messages,
            info=self.info,
            context_ids=context,
            stream=stream,
            pictures=earlier + pictures_of(self.messages),
        )

    def _context_ids(self) -> list[int] | None:
        if not self.turns:
            return None
        last = self.turns[-1]
        if last.prompt_ids is None or last.completion_ids is None:
            return None
        return last.prompt_ids + last.completion_ids[: last.n_kept]

    def _turn(self, reply: Reply, after: Mapping[str, Any]) -> Turn:
        """Join what was shown and answered with what it brought: `after`, {} if it never came to that."""
        return Turn(
            messages=self.messages,
            response=reply.response,
            action=after.get("action", ""),
            env_reward=after.get("env_reward", 0.0),
            format_penalty=after.get("format_penalty", 0.0),
            anchor=self.info.get("anchor", ""),
            format_valid=after.get("format_valid", False),
            action_valid=after.get("action_valid", False),
            finish=reply.finish,
            append=bool(self.info.get("append", False)),
            prompt_ids=reply.prompt_ids,
            completion_ids=reply.completion_ids,
            logprobs=reply.logprobs,
            n_kept=_n_kept(reply, after),
            n_chars=after.get("consumed"),
        )

    def trajectory(self, env_id: str, stop: Stop) -> Trajectory:
        failed = stop == "env_error"
        return Trajectory(
            env_id=env_id,
            task_id=self.episode.task_id,
            dataset=self.info.get("dataset", ""),
            split=self.info.get("split", ""),
            content_hash=self.info.get("content_hash", ""),
            group=self.episode.group,
            copy=self.episode.copy,
            turns=tuple(self.turns),
            stop=stop,
            success=not failed and self.info.get("success", False),
            score=0.0 if failed else self.info.get("score", 0.0),
            task_type=self.info.get("task_type", ""),
            error=str(self.info["env_error"]) if failed else "",
        )


def _n_kept(reply: Reply, after: Mapping[str, Any]) -> int:
    """Return how many of a reply's tokens the env read, as its `consumed` characters say."""
    consumed = after.get("consumed", len(reply.response))
    if reply.n_tokens is None or consumed >= len(reply.response):
        return len(reply.completion_ids or ())
    return reply.n_tokens(consumed)
