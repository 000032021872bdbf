"""The environments in TRL: as its environments with tools, and as a rollout function.

Rows of `task_dataset(..., library="trl")` say what to play: in columns for the one, and for the other in the
prompt's message, which is all that a rollout function sees. The prompt is empty, the episode brings its text.

    trainer = GRPOTrainer(environment_factory=environment_factory("ARL/Sokoban-v0"), ...)
    trainer = GRPOTrainer(rollout_func=rollout_func, reward_funcs=episode_reward, ...)
"""

import functools
import inspect
import json
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any, get_type_hints

from arl_gym.adapters.episode import EPISODE_OVER, TextEpisode, text_of
from arl_gym.core import Message, Part, pictures_of
from arl_gym.errors import ConfigError, DependencyMissing, EpisodeOverError
from arl_gym.make import find_spec, tools_of
from arl_gym.tools import Tool

try:
    import trl  # noqa: F401  # for one clear line without it: its trainer brings all that is needed
except ImportError as err:
    raise DependencyMissing("TRL", "trl") from err

if TYPE_CHECKING:
    from arl_gym.train.chat import ChatCodec


def environment_factory(env_id: str, **kwargs: Any) -> Callable[[], Any]:
    """Return what makes environments for TRL's `environment_factory`; it can be pickled.

    Such an environment has `reset(**row)`, `get_reward()` and the tools of the id, nothing else that is
    public but `episode`: the `TextEpisode`, whose `record()` is for reward functions, which get the
    environments as `environments`. The tools are not coroutines, since TRL runs those of one message at the
    same time, and a game takes one move after another.

    Args:
        env_id: A registered id.
        kwargs: Keyword arguments of `make_chat_env`; those of a row (`env_kwargs`) overrule them.

    Raises:
        ConfigError, UnknownNameError: If the id cannot be found.
    """
    _facade(env_id)
    return functools.partial(_environment, env_id, kwargs)


def rollout_func(prompts: Sequence[Any], trainer: Any) -> dict[str, Any]:
    """Play the episodes of the prompts, for TRL's `rollout_func`; the model writes actions as text.

    Each episode is one sequence: the ids that were sampled, never tokenised again, and between them the
    environment's text with mask 0. An episode ends as "context_full" when `max_completion_length` or the
    model's context is used up.

    Args:
        prompts: Of rows of `task_dataset(..., library="trl")`.
        trainer: The `GRPOTrainer`; it samples in the way it was set up to.

    Returns:
        `prompt_ids`, `completion_ids`, `logprobs` (None if the trainer has none), `env_mask`, and for reward
        functions `episode`, the record of each (see `TextEpisode.record`).

    Raises:
        ConfigError: If a prompt says no task, its episode has a memory window, or it fills the context.
    """
    codec, context = _codec(trainer), _max_model_tokens(trainer)
    dialogues: list[_Dialogue] = []
    with ExitStack() as opened:
        for task in map(_task, prompts):
            begun = TextEpisode(task["env_id"], task["env_kwargs"], task_id=task["task_id"])
            episode = opened.enter_context(begun)
            dialogues.append(_Dialogue(episode, codec, context, trainer.max_completion_length))
        while _anyone_plays(live := [d for d in dialogues if d.plays], trainer):
            # Where processes sample together, each has to ask as often as the others, for as many.
            asked = live if trainer.accelerator.num_processes == 1 else dialogues
            contexts = [d.prompt_ids + (d.completion_ids if d.plays else []) for d in asked]
            sampled, logprobs = trainer._generate_single_turn(contexts, None, {}, 1)
            for i, dialogue in enumerate(asked):
                if dialogue.plays:
                    dialogue.answer(sampled[i], None if logprobs is None else logprobs[i])
    known = all(d.logprobs is not None for d in dialogues)
    return {
        "prompt_ids": [d.prompt_ids for d in dialogues],
        "completion_ids": [d.completion_ids for d in dialogues],
        "logprobs": [d.logprobs for d in dialogues] if known else None,
        "env_mask": [d.mask for d in dialogues],
        "episode": [d.record() for d in dialogues],
    }


def episode_reward(*, episode: Sequence[Mapping[str, Any]], **_: Any) -> list[float]:
    """Return the sum of rewards of each episode of `rollout_func`, penalties included: a reward function."""
    return [float(sum(record["rewards"])) for record in episode]


def _environment(env_id: str, kwargs: Mapping[str, Any]) -> "_Environment":
    return _facade(env_id)(env_id, kwargs)


# One class an id: TRL asks for the reward of environments of exactly the class it has seen first.
@functools.cache
def _facade(env_id: str) -> type["_Environment"]:
    tools = {tool.__name__: _method(tool) for tool in tools_of(env_id)}
    return type(find_spec(env_id).name, (_Environment,), tools)


def _method(tool: Tool) -> Callable[..., Any]:
    """Return the tool as a method that plays it, with name, signature and docstring of the tool."""

    def method(self: "_Environment", /, **arguments: Any) -> str | list[Part]:
        return self._call(tool.__name__, arguments)

    hints = get_type_hints(tool)
    parameters = inspect.signature(tool).parameters.values()
    me = inspect.Parameter("self", inspect.Parameter.POSITIONAL_OR_KEYWORD)
    told = [parameter.replace(annotation=hints[parameter.name]) for parameter in parameters]
    method.__name__ = method.__qualname__ = tool.__name__
    method.__doc__ = tool.__doc__
    method.__annotations__ = {parameter.name: hints[parameter.name] for parameter in parameters}
    method.__signature__ = inspect.Signature([me, *told])  # type: ignore[attr-defined]  # PEP 362 lets us
    return method


class _Environment:
    """One episode after another, as TRL plays them. Every public function is a tool, inherited ones too."""

    def __init__(self, env_id: str, kwargs: Mapping[str, Any]):
        self._env_id, self._kwargs = env_id, kwargs
        self._episode: TextEpisode | None = None

    @property
    def episode(self) -> TextEpisode:
        """The episode since the last reset."""
        if self._episode is None:
            raise EpisodeOverError(f"an environment of {self._env_id} in TRL has no episode before its reset")
        return self._episode

    def reset(
        self,
        *,
        task_id: str | None = None,
        seed: int | None = None,
        env_kwargs: str = "{}",
        **_: Any,
    ) -> str | list[Part]:
        if self._episode is not None:
            self._episode.close()
        kwargs = {**self._kwargs, **json.loads(env_kwargs)}
        self._episode = TextEpisode(self._env_id, kwargs, task_id=task_id, seed=seed, tools=True)
        return _content(self._episode.messages)

    def get_reward(self) -> float:
        return float(sum(self.episode.record()["rewards"]))

    def _call(self, name: str, arguments: Mapping[str, Any]) -> str | list[Part]:
        episode = self.episode
        if episode.done:
            return EPISODE_OVER
        messages = episode.call(name, arguments).messages
        if not episode.done:
            return _content(messages)
        # TRL goes on for as long as the model calls tools, and never closes anything.
        episode.close()
        return _content([*messages, {"role": "user", "content": EPISODE_OVER}])


def _content(messages: Sequence[Message]) -> str | list[Part]:
    """Return messages as the content of one: text, or a list of parts if there is an image."""
    if not pictures_of(messages):
        return text_of(messages)
    parts: list[Part] = []
    for message in messages:
        content = message["content"]
        parts += [{"type": "text", "text": content}] if isinstance(content, str) else content
    return parts


def _task(prompt: Any) -> dict[str, Any]:
    try:
        task: dict[str, Any] = json.loads(prompt[0]["task"])
    except (KeyError, TypeError) as err:
        raise ConfigError(
            f"expected a prompt of task_dataset(..., library='trl') with a 'task' in it, got {prompt}"
        ) from err
    return task


def _anyone_plays(live: Sequence["_Dialogue"], trainer: Any) -> bool:
    if trainer.accelerator.num_processes == 1:
        return len(live) > 0
    import torch

    counts = trainer.accelerator.gather(torch.tensor(len(live), device=trainer.accelerator.device))
    return bool(counts.sum() > 0)


def _codec(trainer: Any) -> "ChatCodec":
    # Here, since it needs torch, and environments with tools do not.
    from arl_gym.train.chat import ChatCodec

    kwargs = dict(trainer.chat_template_kwargs)
    tokenizer = getattr(trainer.processing_class, "tokenizer", trainer.processing_class)
    thinks = kwargs.pop("enable_thinking", True)
    return ChatCodec(tokenizer, enable_thinking=thinks, chat_template_kwargs=kwargs)


def _max_model_tokens(trainer: Any) -> int:
    if trainer.use_vllm and trainer.vllm_mode == "colocate":
        return int(trainer.vllm_generation.llm.llm_engine.model_config.max_model_len)
    return int(trainer.model.config.get_text_config().max_position_embeddings)


class _Dialogue:
    """One episode and its tokens so far."""

    def __init__(self, episode: TextEpisode, codec: "ChatCodec", context: int, max_tokens: int):
        self._episode, self._codec = episode, codec
        self.prompt_ids = codec.encode_prompt(episode.messages)
        if len(self.prompt_ids) >= context:
            raise ConfigError(
                f"expected prompts of less than the {context} tokens that the model reads, got one of "
                f"{len(self.prompt_ids)} for task {episode.record()['task_id']} of {episode.env_id}"
            )
        self._room = min(max_tokens, context - len(self.prompt_ids))
        self.completion_ids: list[int] = []
        self.mask: list[int] = []
        self.logprobs: list[float] | None = []
        self._full = False

    @property
    def plays(self) -> bool:
        return not (self._episode.done or self._full)

    def answer(self, ids: Sequence[int], logprobs: Sequence[float] | None) -> None:
        """Play a response, cut to the room there is, and take in what the environment says to it."""
        ids = ids[: self._room - len(self.completion_ids)]
        response = self._codec.decode(ids)
        step = self._episode.act(response)
        n_read = step.info.get("consumed", len(response))
        if n_read < len(response):
            ids = ids[: self._codec.count_tokens(ids, n_read)]
        self._extend(ids, 1, logprobs)
        if self._episode.done:
            return
        if not step.info["append"]:
            raise ConfigError(f"TRL takes one sequence an episode: {self._episode.env_id} needs window=None")
        bridge = self._codec.encode_bridge(self.prompt_ids + self.completion_ids, step.messages)
        self._full = len(self.completion_ids) + len(bridge) >= self._room
        if not self._full:
            self._extend(bridge, 0, [0.0] * len(bridge))

    def record(self) -> dict[str, Any]:
        """Return the record of the episode; if it did not end, the context did."""
        record = self._episode.record()
        return record if self._episode.done else {**record, "stop": "context_full"}

    def _extend(self, ids: Sequence[int], sampled: int, logprobs: Sequence[float] | None) -> None:
        self.completion_ids += ids
        self.mask += [sampled] * len(ids)
        if logprobs is None or self.logprobs is None:
            self.logprobs = None
        else:
            self.logprobs += logprobs[: len(ids)]
