"""The few names of verifiers that its adapter uses, without a network: written after verifiers 0.4.

A rollout is here as there: an interaction runs the harness, the harness calls the model through a client, and
the call leaves its messages in the trace.
"""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import partial
from types import ModuleType, SimpleNamespace
from typing import Any, Generic, Self, TypeVar

from tests.adapters.peer_model import Model

T = TypeVar("T")
T2 = TypeVar("T2")


class TasksetConfig(Model):
    id: str = ""
    task: Any = None


class TaskData(Model):
    id: str | None = None
    name: str | None = None
    prompt: Any = None
    system_prompt: str | None = None


class HarnessConfig(Model):
    id: str = ""


class SubprocessConfig(Model):
    type: str = "subprocess"


class AgentConfig(Model):
    runtime: Any = None


class EnvConfig(Model):
    pass


class ProgramResult(Model):
    exit_code: int
    stdout: str
    stderr: str


class Task(Generic[T]):
    def __init__(self, data: Any, config: Any = None):
        self.data, self.config = data, config


class Taskset(Generic[T, T2]):
    def __init__(self, config: Any):
        self.config = config


class Env(Generic[T]):
    def __init__(self, config: Any):
        self.config = config


class Harness(Generic[T]):
    APPENDS_SYSTEM_PROMPT = False

    def __init__(self, config: Any):
        self.config = config

    def resolve_prompt(self, task: Any) -> tuple[str | None, Any]:
        return (task.system_prompt, task.prompt) if self.APPENDS_SYSTEM_PROMPT else (None, task.prompt)

    async def launch(
        self, ctx: Any, trace: Any, runtime: Any, endpoint: Any, secret: Any, mcp_urls: Any, data: Any
    ) -> Any:
        raise NotImplementedError

    async def resume(
        self,
        ctx: Any,
        trace: Any,
        runtime: Any,
        endpoint: Any,
        secret: Any,
        mcp_urls: Any,
        data: Any,
        messages: Any,
        tool_interception_url: Any = None,
    ) -> Any:
        conversation = [*(m for m in trace.messages if m.role != "system"), *messages]
        again = data.model_copy(update={"prompt": conversation})
        return await self.launch(ctx, trace, runtime, endpoint, secret, mcp_urls, again)


def message_to_wire(message: Any) -> dict[str, Any]:
    return {"role": message.role, "content": message.content}


class Trace:
    """What a rollout leaves; `endpoint` is itself, so that the client finds it."""

    def __init__(self, model: Callable[[list[dict[str, Any]]], str | None]):
        self.model = model
        self.requests: list[list[dict[str, Any]]] = []
        self.messages: list[Any] = []
        self.info: dict[str, Any] = {}
        self.rewards: dict[str, float] = {}
        self.metrics: dict[str, float] = {}
        self.ok = True

    def record_reward(self, name: str, value: float, weight: float = 1.0) -> None:
        self.rewards[name] = value * weight

    def record_metrics(self, values: dict[str, float]) -> None:
        self.metrics.update(values)


class Interaction:
    def __init__(self, harness: Any, task: Any, trace: Trace):
        self.trace, self._harness, self._task = trace, harness, task

    async def turn(self, message: Any = None) -> Any:
        where: Any = (SimpleNamespace(model="peer"), self.trace, None, self.trace, "secret", {})
        before = len(self.trace.requests)
        if message is None:
            result = await self._harness.launch(*where, self._task.data)
        else:
            result = await self._harness.resume(*where, self._task.data, typed(message))
        self.trace.ok = result.exit_code == 0
        over = not self.trace.ok or len(self.trace.requests) == before
        return SimpleNamespace(terminated=over, messages=[] if over else self.trace.messages[-1:])


class Agents:
    """The agents of one episode, each of them this harness and this model."""

    def __init__(self, harness: Any, model: Callable[[list[dict[str, Any]]], str | None]):
        self.trace = Trace(model)
        self.player = SimpleNamespace(harness=harness, interaction=self._interaction)

    @asynccontextmanager
    async def _interaction(self, task: Any) -> AsyncIterator[Interaction]:
        yield Interaction(self.player.harness, task, self.trace)


class OpenAIError(Exception):
    pass


class DefaultAsyncHttpxClient:
    def __init__(self, **kwargs: Any):
        self.settings = kwargs


class AsyncOpenAI:
    """Asks the trace's model; None for an answer is a server that refuses."""

    def __init__(self, *, base_url: Any, api_key: str, http_client: Any):
        self.chat = SimpleNamespace(completions=SimpleNamespace(create=partial(_complete, base_url)))

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exc: object) -> None:
        pass


async def _complete(trace: Trace, *, model: str, messages: list[dict[str, Any]]) -> None:
    said = trace.model(messages)
    if said is None:
        raise OpenAIError("refused")
    trace.requests.append(messages)
    trace.messages = typed([*messages, {"role": "assistant", "content": said}])


def create_ssl_context() -> None:
    pass


def typed(messages: Any) -> list[Any]:
    """Return messages as the objects that verifiers makes of them."""
    return [SimpleNamespace(**{"reasoning_content": None, **message}) for message in messages]


def peer_modules() -> dict[str, ModuleType]:
    """Return the modules to put into `sys.modules`, by name."""
    contents: dict[str, list[Any]] = {
        "verifiers": [],
        "verifiers.v1": [
            AgentConfig,
            Env,
            EnvConfig,
            Harness,
            HarnessConfig,
            ProgramResult,
            SubprocessConfig,
            Task,
            TaskData,
            Taskset,
            TasksetConfig,
        ],
        "verifiers.v1.agent": [Interaction],
        "verifiers.v1.dialects": [],
        "verifiers.v1.dialects.chat": [message_to_wire],
        "verifiers.v1.trace": [Trace],
        "httpx": [create_ssl_context],
        "openai": [AsyncOpenAI, DefaultAsyncHttpxClient, OpenAIError],
    }
    modules = {}
    for name, things in contents.items():
        modules[name] = ModuleType(name)
        for thing in things:
            setattr(modules[name], thing.__name__, thing)
    vars(modules["verifiers"]).update(v1=modules["verifiers.v1"])
    return modules
