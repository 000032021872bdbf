"""The few names of OpenEnv that its adapter uses, without a network: written after openenv 0.10."""

import json
from collections.abc import Callable
from types import ModuleType
from typing import Any

from tests.adapters.peer_model import Model


class Action(Model):
    metadata: dict[str, Any] = {}  # noqa: RUF012 - a field, as in pydantic


class Observation(Model):
    done: bool = False
    reward: float | None = None
    metadata: dict[str, Any] = {}  # noqa: RUF012 - a field, as in pydantic


class State(Model):
    episode_id: str | None = None
    step_count: int = 0


class Environment:
    def __init__(self, transform: Any = None, rubric: Any = None):
        self.transform, self.rubric = transform, rubric


class StepResult:
    def __init__(self, observation: Any, reward: float | None = None, done: bool = False):
        self.observation, self.reward, self.done = observation, reward, done


SERVERS: dict[str, dict[str, Any]] = {}
"""What `uvicorn.run` was given, by URL."""


def create_app(
    env: Callable[[], Any], action_cls: Any, observation_cls: Any, *, max_concurrent_envs: int | None = None
) -> dict[str, Any]:
    return {"env": env, "action": action_cls, "observation": observation_cls, "n": max_concurrent_envs}


def run(app: Any, *, host: str, port: int) -> None:
    SERVERS[f"http://{host}:{port}"] = app


class EnvClient:
    """A session with one of the `SERVERS`; everything between passes through JSON."""

    def __init__(self, base_url: str):
        self._app = SERVERS[base_url]
        self._env = self._app["env"]()

    def reset(self, **kwargs: Any) -> Any:
        return _receive(self, self._env.reset(**json.loads(json.dumps(kwargs))))

    def step(self, action: Any) -> Any:
        sent = json.loads(json.dumps(self._step_payload(action)))
        return _receive(self, self._env.step(self._app["action"](**sent)))

    def state(self) -> Any:
        return self._parse_state(json.loads(json.dumps(self._env.state.model_dump())))

    def close(self) -> None:
        self._env.close()

    def _step_payload(self, action: Any) -> dict[str, Any]:
        raise NotImplementedError

    def _parse_result(self, payload: dict[str, Any]) -> Any:
        raise NotImplementedError

    def _parse_state(self, payload: dict[str, Any]) -> Any:
        raise NotImplementedError


def _receive(client: EnvClient, observation: Any) -> Any:
    fields = observation.model_dump()
    sent = {"reward": fields.pop("reward"), "done": fields.pop("done"), "observation": fields}
    # OpenEnv sends UTF-8: half a surrogate pair fails here as there.
    return client._parse_result(json.loads(json.dumps(sent, ensure_ascii=False).encode()))


def peer_modules() -> dict[str, ModuleType]:
    """Return the modules to put into `sys.modules`, by name."""
    contents: dict[str, list[Any]] = {
        "openenv": [],
        "openenv.core": [Action, EnvClient, Environment, Observation, State, create_app],
        "openenv.core.client_types": [StepResult],
        "uvicorn": [run],
    }
    modules = {}
    for name, things in contents.items():
        modules[name] = ModuleType(name)
        for thing in things:
            setattr(modules[name], thing.__name__, thing)
    return modules
