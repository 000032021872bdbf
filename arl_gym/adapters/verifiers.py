"""The environments as a taskset of verifiers (its v1): rows of a split, and an episode in each rollout.

verifiers finds plugins by the name of a top-level package, this one's as `arl-gym-verifiers`:

    vf-eval arl-gym-verifiers --env.taskset.env-id ARL/Sokoban-v0 --env.taskset.split test -n 64

Nothing here knows a model. Models are called by verifiers, so that its traces carry the tokens.
"""

import functools
from collections.abc import Iterable
from typing import Any

from arl_gym.adapters.episode import AsyncTextEpisode
from arl_gym.adapters.tasks import NAME, task_dataset
from arl_gym.agents.endpoint import join_thought
from arl_gym.core import to_openai
from arl_gym.errors import ConfigError, DependencyMissing

try:
    import httpx
    import verifiers.v1 as vf
    from openai import AsyncOpenAI, DefaultAsyncHttpxClient, OpenAIError
    from verifiers.v1.dialects.chat import message_to_wire
except ImportError as err:
    raise DependencyMissing("verifiers", "verifiers") from err


# Reading the certificates takes longer than all else of a turn.
_tls = functools.cache(httpx.create_ssl_context)


class ChatTasksetConfig(vf.TasksetConfig):
    """Which tasks: the fields of `--env.taskset`."""

    env_id: str = ""
    """A registered id. It must be given, but verifiers' command line wants defaults."""
    split: str = "train"
    n: int = 256
    """The first n tasks of the split, or all of them if there are fewer."""
    env_kwargs: dict[str, Any] = {}  # noqa: RUF012 - pydantic copies it
    """Keyword arguments of `make_chat_env`."""


class ChatTaskData(vf.TaskData):
    """One row; its `id` is the task id, and its `prompt` what the episode shows first."""

    env_id: str
    seed: int
    split: str
    env_kwargs: dict[str, Any]


class ChatTask(vf.Task[ChatTaskData]):
    """One task of an environment."""

    @property
    def key(self) -> str:
        """The same in every run, whatever the taskset is cut to."""
        return f"{self.data.env_id}/{self.data.id}"


class ChatTaskset(vf.Taskset[ChatTask, ChatTasksetConfig]):
    """The first tasks of a split."""

    def load(self) -> Iterable[ChatTask]:
        """Return the tasks, in the order of the split."""
        config = self.config
        rows = task_dataset(config.env_id, config.split, n=config.n, **config.env_kwargs)
        return [ChatTask(_data(row), config.task) for row in rows]


def _data(row: dict[str, Any]) -> ChatTaskData:
    own = {name: row[name] for name in ("prompt", "env_id", "seed", "split", "env_kwargs")}
    return ChatTaskData(id=row["task_id"], name=f"{row['env_id']}#{row['task_id']}", **own)


class ChatHarness(vf.Harness[vf.HarnessConfig]):
    """One model call a turn, made in this process: nothing to install, no program to start, no tools.

    It can also play with a memory window, where every turn is a conversation of its own: a branch of the
    trace, and so a training sample.
    """

    APPENDS_SYSTEM_PROMPT = True
    SUPPORTS_RESUME = True
    EXECUTES_CODE = False
    NEEDS_CONTAINER = False

    async def launch(
        self,
        ctx: Any,
        trace: Any,
        runtime: Any,
        endpoint: str,
        secret: str,
        mcp_urls: dict[str, str],
        data: Any,
    ) -> Any:
        """Have the model answer the conversation in `data`, through verifiers' own endpoint."""
        system, prompt = self.resolve_prompt(data)
        messages = [{"role": "system", "content": system}] if system else []
        messages += [message_to_wire(message) for message in prompt]
        http = DefaultAsyncHttpxClient(verify=_tls(), timeout=None)
        async with AsyncOpenAI(base_url=endpoint, api_key=secret, http_client=http) as client:
            try:
                await client.chat.completions.create(model=ctx.model, messages=messages)
            except OpenAIError as err:
                return vf.ProgramResult(exit_code=1, stdout="", stderr=f"{type(err).__name__}: {err}")
        return vf.ProgramResult(exit_code=0, stdout="", stderr="")

    async def resume(
        self,
        ctx: Any,
        trace: Any,
        runtime: Any,
        endpoint: str,
        secret: str,
        mcp_urls: dict[str, str],
        data: Any,
        messages: Any,
        tool_interception_url: str | None = None,
    ) -> Any:
        """Have the model answer the conversation so far with `messages`, or with a window these alone."""
        where = (ctx, trace, runtime, endpoint, secret, mcp_urls)
        if trace.info.get(NAME, {"append": True})["append"]:
            return await super().resume(*where, data, messages, tool_interception_url)
        return await self.launch(*where, data.model_copy(update={"prompt": messages}))


class ChatEnvConfig(vf.EnvConfig):
    """Who plays: the fields of `--env`."""

    player: vf.AgentConfig = vf.AgentConfig(runtime=vf.SubprocessConfig())
    """By default a `ChatHarness`, which runs nothing anywhere."""


class ChatEnv(vf.Env[ChatEnvConfig]):
    """Plays a task: the environment is the model's user."""

    async def run(self, task: Any, agents: Any) -> None:
        """Play one episode.

        The trace gets the reward `return`, penalties subtracted, the metrics `success`, `score` and
        `env_return`, and in `info["arl_gym"]` the episode's `TextEpisode.record`. If the model could not be
        reached, there is the record alone.

        Raises:
            ConfigError: If there is a memory window, and another harness than `ChatHarness` to play with.
        """
        data = task.data
        episode = AsyncTextEpisode(data.env_id, data.env_kwargs, task_id=data.id, seed=data.seed)
        async with episode, agents.player.interaction(task) as interaction:
            trace = interaction.trace
            segment = await interaction.turn()
            while not segment.terminated:
                step = await episode.act(_response(segment))
                trace.info[NAME] = {"append": step.info["append"]}
                if episode.done:
                    break
                if not step.info["append"] and not isinstance(agents.player.harness, ChatHarness):
                    raise ConfigError(
                        "a memory window needs the harness of arl_gym: leave player.harness out"
                    )
                segment = await interaction.turn(to_openai(step.messages))
        record = trace.info[NAME] = episode.record()
        if trace.ok:
            trace.record_reward("return", sum(record["rewards"]))
            trace.record_metrics({name: record[name] for name in ("success", "score", "env_return")})


def _response(segment: Any) -> str:
    """Return what the model said last, with what a server that thinks apart has kept from it."""
    said = next(message for message in reversed(segment.messages) if message.role == "assistant")
    return join_thought(said.reasoning_content or "", said.content or "")[0]
