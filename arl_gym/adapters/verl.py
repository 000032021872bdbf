"""The environments in verl: the agent loop that rows of `task_dataset(..., library="verl")` name.

verl finds it in the file at `actor_rollout_ref.rollout.agent.agent_loop_config_path`:

    - name: arl_gym
      _target_: arl_gym.adapters.verl.ArlGymAgentLoop
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from uuid import uuid4

from arl_gym.adapters.episode import AsyncTextEpisode, Step
from arl_gym.adapters.tasks import NAME
from arl_gym.core import Message, pictures_of
from arl_gym.errors import ConfigError, DependencyMissing

try:
    from verl.experimental.agent_loop.agent_loop import AgentLoopBase, AgentLoopOutput, register
    from verl.utils.profiler import simple_timer
except ImportError as err:
    raise DependencyMissing("verl", "verl") from err


@dataclass
class _Sample:
    """What becomes one row of a batch: a dialogue, or one turn of an episode with a memory window."""

    turn: int
    """The number of the first turn in it."""
    messages: list[Message]
    ids: list[int]
    mask: list[int] = field(default_factory=list)
    """One entry a token of the response, the end of `ids`: 1 where the model said it."""
    logprobs: list[float] | None = None
    images: list[Any] = field(default_factory=list)
    fields: dict[str, Any] = field(default_factory=dict)
    """What the server says of the weights that it sampled with."""


@register(NAME)
class ArlGymAgentLoop(AgentLoopBase):
    """Plays one episode: verl's server samples, and its continuous tokens join what the two sides say."""

    def __init__(self, *args: Any, **kwargs: Any):
        super().__init__(*args, **kwargs)
        # Here, since it needs torch: the tests of this module do without.
        from arl_gym.train.chat import ChatCodec

        template = dict(self.apply_chat_template_kwargs)
        thinks = template.pop("enable_thinking", True)
        self._codec = ChatCodec(self.tokenizer, enable_thinking=thinks, chat_template_kwargs=template)
        self._request_id = uuid4().hex  # one for all turns: the same server has the tokens so far
        self._metrics: dict[str, Any] = {}

    async def run(self, sampling_params: dict[str, Any], **row: Any) -> Any:
        """Return one `AgentLoopOutput`, or one for each turn if the episode has a memory window.

        The response mask is 1 on what was sampled. The score is the sum of rewards, penalties included. In
        `extra_fields`: `episode`, the record of the whole episode (see `TextEpisode.record`), `turn`, the
        number of the output's first turn in it, and `reward_extra_info`, the numbers that verl averages. The
        stop is "context_full" if the response length, or that of a prompt, was used up.

        Args:
            sampling_params: Of the server.
            row: Of `task_dataset(..., library="verl")`; only `extra_info` counts.

        Raises:
            ConfigError: If the first prompt does not fit, or there is a memory window and verl's old trainer,
                which takes one output an episode.
        """
        task = row["extra_info"]
        kwargs = json.loads(task["env_kwargs"])
        async with AsyncTextEpisode(task["env_id"], kwargs, task_id=task["task_id"]) as episode:
            samples = await self._play(episode, sampling_params)
            record = episode.record()
            if not episode.done:
                record["stop"] = "context_full"
        outputs = [self._output(sample, record) for sample in samples]
        return outputs if len(outputs) > 1 else outputs[0]

    async def _play(self, episode: AsyncTextEpisode, sampling_params: Mapping[str, Any]) -> list[_Sample]:
        """Play to the end, or until there is no room."""
        first = await self._begin(0, episode.messages)
        if first is None:
            raise ConfigError(
                f"the prompt of task {episode.record()['task_id']} needs more tokens than the "
                f"rollout.prompt_length={self.rollout_config.prompt_length} of verl"
            )
        samples = [first]
        while True:
            step = await self._turn(episode, samples[-1], sampling_params)
            if episode.done:
                return samples
            if step.info["append"]:
                if not await self._go_on(samples[-1], step.messages):
                    return samples
            elif not self.config.trainer.use_v1:
                raise ConfigError("a memory window needs verl's trainer.use_v1=True: choose window=None")
            elif (following := await self._begin(len(samples), step.messages)) is None:
                return samples
            else:
                samples.append(following)

    async def _begin(self, turn: int, messages: Sequence[Message]) -> _Sample | None:
        """Return a sample with a whole prompt; None if it does not fit."""
        images = pictures_of(messages)
        self._assert_mm_supported(bool(images))
        ids = await self.ct_build_initial_tokens(list(messages), images=images or None)
        # verl has cut a longer one to just this length, at the left.
        if len(ids) >= self.rollout_config.prompt_length:
            return None
        return _Sample(turn=turn, messages=list(messages), ids=ids, images=images)

    async def _turn(
        self, episode: AsyncTextEpisode, sample: _Sample, sampling_params: Mapping[str, Any]
    ) -> Step:
        """Let the server answer and play it; the sample gets the tokens that the environment has read."""
        stops = {"stop": episode.sync.info["stop"]} if "stop" in episode.sync.info else {}
        room = self.rollout_config.response_length - len(sample.mask)
        with simple_timer("generate_sequences", self._metrics):
            sampled = await self.server_manager.generate(
                request_id=self._request_id,
                prompt_ids=sample.ids,
                sampling_params={**sampling_params, **stops, "max_tokens": room},
                image_data=sample.images or None,
            )
        ids, logprobs = sampled.token_ids[:room], sampled.log_probs
        response = self._codec.decode(ids)
        with simple_timer("tool_calls", self._metrics):
            step = await episode.act(response)
        n_read = step.info.get("consumed", len(response))
        if n_read < len(response):
            ids = ids[: self._codec.count_tokens(ids, n_read)]
        merged, sample.mask, sample.logprobs = await self.ct_merge_assistant_token(
            sample.ids,
            ids,
            sample.mask,
            (sample.logprobs or []) if logprobs else None,
            assistant_logprobs=logprobs[: len(ids)] if logprobs else None,
        )
        sample.ids = merged.token_ids
        sample.messages.append({"role": "assistant", "content": response})
        latest = sampled.extra_fields
        sample.fields = {**latest, **sample.fields, "max_global_steps": latest.get("max_global_steps")}
        return step

    async def _go_on(self, sample: _Sample, messages: Sequence[Message]) -> bool:
        """Add messages of the environment to a dialogue; False if they leave no room to answer."""
        images = pictures_of(messages)
        self._assert_mm_supported(bool(images))
        merged, mask, logprobs = await self.ct_merge_context_msg(
            sample.messages, [*sample.messages, *messages], sample.ids, sample.mask, sample.logprobs
        )
        if len(mask) >= self.rollout_config.response_length:
            return False
        sample.ids, sample.mask, sample.logprobs = merged.token_ids, mask, logprobs
        sample.messages += messages
        sample.images += images
        return True

    def _output(self, sample: _Sample, record: dict[str, Any]) -> Any:
        rewards = record["rewards"]
        numbers = {key: float(record[key]) for key in ("success", "score", "env_return")}
        n_prompt = len(sample.ids) - len(sample.mask)
        return AgentLoopOutput(
            prompt_ids=sample.ids[:n_prompt],
            response_ids=sample.ids[n_prompt:],
            response_mask=sample.mask,
            response_logprobs=sample.logprobs,
            multi_modal_data={"images": sample.images} if sample.images else {},
            reward_score=float(sum(rewards)),
            num_turns=2 * len(rewards),
            metrics=self._metrics,
            extra_fields={
                **sample.fields,
                "turn_scores": rewards,
                "tool_rewards": [],
                "reward_extra_info": {**numbers, "n_turns": float(len(rewards))},
                "episode": record,
                "turn": sample.turn,
            },
        )
