"""Many text environments at once: send actions, receive whatever is ready; Gymnasium's `step` on top.

No shared memory: Gymnasium's `AsyncVectorEnv` corrupts strings there.

    >>> vec = TextVectorEnv([make_env] * 8, workers=2)  # doctest: +SKIP
    >>> vec.send_reset(0, options={"task_id": "train/3"})  # doctest: +SKIP
    >>> vec.recv()[0].observation  # doctest: +SKIP
"""

import time
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
from gymnasium import Space
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space, concatenate, create_empty_array, iterate

from arl_gym.errors import AlreadyPendingError, ArlGymError, ConfigError, EpisodeOverError, WorkerError
from arl_gym.worker import CLOSE_S, EnvFn, Host, Processes, Reply, Shard, Traits, Verb, Worker, one_line


def parse_workers(workers: int | str) -> tuple[Literal["process", "ray"], int]:
    """Return what the workers of a vector environment are and how many; 0 actors: one for each CPU.

    >>> parse_workers(2), parse_workers("ray:16"), parse_workers("ray")
    (('process', 2), ('ray', 16), ('ray', 0))

    Raises:
        ConfigError: If it is neither a number nor "ray" or "ray:N".
    """
    if isinstance(workers, str):
        kind, colon, number = workers.partition(":")
        if kind == "ray" and not colon:
            return "ray", 0
        if kind == "ray" and number.isdecimal() and int(number) > 0:
            return "ray", int(number)
    elif workers >= 0:
        return "process", workers
    raise ConfigError(
        "workers must be 0 (in-process), a number of processes, 'ray' (an actor for each CPU of the cluster) "
        f"or 'ray:N' (N actors), got {workers!r}"
    )


@dataclass(frozen=True, slots=True)
class Result:
    """What one environment answered to a `send` or `send_reset`."""

    index: int
    observation: Any
    reward: float
    terminated: bool
    truncated: bool
    info: dict[str, Any]
    """The environment's own info; with `env_error` (one line) where something broke and ended the episode."""


class TextVectorEnv(VectorEnv[Any, Any, Any]):
    """Environments side by side: in this process, over worker processes, or over the actors of a Ray cluster.

    `send`, `send_reset` and `recv` treat each environment on its own; `reset` and `step` are Gymnasium's
    batched interface over them. Observations of custom spaces (text, chat) come as a tuple, arrays as one
    array.

    When a worker dies or takes too long, it is restarted and its running episodes end: truncated, with the
    last observation, reward 0 and `info["env_error"]`. An exception inside `step` ends that one episode in
    the same way, in this process too. Other environments go on.

    Args:
        env_fns: One callable per environment. With workers they travel by cloudpickle, and each worker builds
            its own, again after a restart.
        workers: Worker processes (POSIX); environments are dealt to them in turn. 0: all in this process.
            "ray:N": N actors of a Ray cluster instead, "ray" one for each of its CPUs; never more than
            environments. Without `ray.init()` before, the cluster of RAY_ADDRESS is joined or one started.
        step_timeout_s: Longest time for one command before its worker is killed. Not enforced in-process.
        start_timeout_s: Longest time until a worker has built its environments.
        autoreset_mode: What `step` does after the end of an episode. DISABLED is right for grouped rollouts:
            no episode is played in vain, and every slot is reset to a chosen task.

    Raises:
        ConfigError: If there are no environments, they differ in their spaces, or a number is out of range.
        DependencyMissing: If Ray is asked for and not installed.
        WorkerError: If a worker cannot be started.
    """

    def __init__(
        self,
        env_fns: Sequence[EnvFn],
        *,
        workers: int | str = 0,
        step_timeout_s: float = 60.0,
        start_timeout_s: float = 120.0,
        autoreset_mode: AutoresetMode = AutoresetMode.DISABLED,
    ):
        # First, because Gymnasium closes an instance that it deletes, however little of it there is.
        self._shard: Shard | None = None
        self._workers: list[Worker] = []
        if not env_fns:
            raise ConfigError("TextVectorEnv needs at least one env_fn, got none")
        kind, k = parse_workers(workers)
        if min(step_timeout_s, start_timeout_s) <= 0:
            raise ConfigError(f"timeouts must be above 0 s, got {step_timeout_s=}, {start_timeout_s=}")
        self.num_envs = n = len(env_fns)
        self.autoreset_mode = AutoresetMode(autoreset_mode)

        self._obs: list[Any] = [None] * n
        self._info: list[dict[str, Any]] = [{} for _ in range(n)]
        self._terminations = np.zeros(n, dtype=np.bool_)
        self._truncations = np.zeros(n, dtype=np.bool_)
        self._running = [False] * n
        self._lost = [""] * n  # why a running episode is gone, told at its next send
        self._pending = [False] * n  # sent, and not yet returned by `recv`
        self._ready: list[Result] = []
        self._mistakes: deque[tuple[int, Exception]] = deque()
        self._answer: Reply | None = None

        self._commands: deque[tuple[Verb, int, Any]] = deque()
        if kind == "process" and k == 0:
            self._shard = Shard(dict(enumerate(env_fns)))
            traits = self._shard.traits()
        else:
            self._host, k = _host(kind, k)
            traits = self._start_workers(env_fns, min(k, n), start_timeout_s, step_timeout_s)
        self._set_spaces(traits)

    def _start_workers(
        self, env_fns: Sequence[EnvFn], k: int, start_timeout_s: float, step_timeout_s: float
    ) -> Traits:
        """Start all workers side by side, then wait for each; none is left when one fails."""
        limits = {"start_timeout_s": start_timeout_s, "step_timeout_s": step_timeout_s}
        traits: Traits = {}
        try:
            for w in range(k):
                mine = {i: env_fns[i] for i in range(w, self.num_envs, k)}
                self._workers.append(Worker(w, mine, self._host, **limits))
            for worker in self._workers:
                traits |= worker.wait_until_ready()
        except BaseException:
            self.close()
            raise
        return traits

    def _set_spaces(self, traits: Traits) -> None:
        obs_space, action_space, metadata, self.render_mode = traits[0]
        for i in range(1, self.num_envs):
            if traits[i][:2] != (obs_space, action_space):
                self.close()
                raise ConfigError(
                    f"all envs need the spaces of env 0, {obs_space} and {action_space}: "
                    f"env {i} has {traits[i][0]} and {traits[i][1]}"
                )
        self.metadata = {**metadata, "autoreset_mode": self.autoreset_mode}
        self.single_observation_space: Space[Any] = obs_space
        self.single_action_space: Space[Any] = action_space
        self.observation_space = batch_space(obs_space, self.num_envs)
        self.action_space = batch_space(action_space, self.num_envs)

    # ---- one environment at a time

    def send(self, i: int, action: Any) -> None:
        """Give environment `i` its next action; the result comes out of `recv`.

        Raises:
            EpisodeOverError: If it has no running episode.
            AlreadyPendingError: If its last result has not been received.
        """
        self._check_free(i)
        self._check_running(i)
        self._post("step", i, action)

    def send_reset(
        self, i: int, *, seed: int | None = None, options: Mapping[str, Any] | None = None
    ) -> None:
        """Start a new episode in environment `i`, also in the middle of one; the result comes out of `recv`.

        Raises:
            AlreadyPendingError: If its last result has not been received.
        """
        self._check_free(i)
        self._running[i], self._lost[i] = False, ""
        self._post("reset", i, (seed, None if options is None else dict(options)))

    def recv(self, timeout_s: float | None = None) -> list[Result]:
        """Return at least one result as soon as any is ready; [] if nothing was sent or the time is up.

        In-process environments take their steps here, all that were sent, whatever `timeout_s` says.

        Raises:
            ArlGymError: What a reset raised for the caller's mistake (an unknown task id), or `ActionError`
                from a step; results of other environments come with the next `recv`.
            WorkerError: If a worker could not be restarted.
        """
        if self._shard is not None:
            while self._commands:
                verb, i, payload = self._commands.popleft()
                try:
                    reply = self._shard.run(verb, i, payload)
                except BaseException as err:  # Ctrl-C in the middle of a step
                    self._accept(i, verb, ("error", one_line(err)))
                    raise
                self._accept(i, verb, reply)
        else:
            self._wait(timeout_s)
        if self._mistakes:
            i, mistake = self._mistakes.popleft()
            self._pending[i] = False
            raise mistake
        results, self._ready = self._ready, []
        for result in results:
            self._pending[result.index] = False
        return results

    def call(self, i: int, name: str, *args: Any, **kwargs: Any) -> Any:
        """Call a method of environment `i`, or read an attribute, through its wrappers; wait for the answer.

        The vector environment does not see what the call changes (an episode begun by `set_state`, say).

        Raises:
            AlreadyPendingError: If the environment's last result has not been received.
            WorkerError: If the worker dies over it.
            Exception: Whatever the call raised.
        """
        self._check_free(i)
        self._answer = None
        if self._shard is not None:
            self._answer = self._shard.run("call", i, (name, args, kwargs))
        else:
            try:
                self._post("call", i, (name, args, kwargs))
                while self._answer is None:
                    self._sweep(block=True)
            finally:
                self._pending[i] = False
        kind, payload = self._answer
        if kind == "value":
            return payload
        raise payload if kind == "raise" else WorkerError(f"{name} of env {i}: {payload}")

    def _check_free(self, i: int) -> None:
        if self.closed:
            raise ArlGymError("the vector environment is closed")
        if self._pending[i]:
            raise AlreadyPendingError(f"env {i} has not answered yet: recv() its result before the next send")

    def _check_running(self, i: int) -> None:
        if not self._running[i] and not self._lost[i]:
            raise EpisodeOverError(f"env {i} has no running episode: reset it before the next step")

    # ---- transport

    def _post(self, verb: Verb, i: int, payload: Any) -> None:
        self._pending[i] = True
        if self._shard is not None:
            self._commands.append((verb, i, payload))
            return
        worker = self._workers[i % len(self._workers)]
        try:
            while verb != "step" or not self._lost[i]:
                try:
                    worker.post(verb, i, payload)
                    return
                except OSError:
                    self._read(worker)  # to the end of the stream, where it is restarted
        except WorkerError:
            self._pending[i] = False
            raise
        self._end_broken(i, self._lost[i])

    def _wait(self, timeout_s: float | None) -> None:
        """Collect replies until there is something to return."""
        limit = float("inf") if timeout_s is None else time.monotonic() + timeout_s
        self._sweep(block=False)
        while not (self._ready or self._mistakes) and any(w.pending for w in self._workers):
            if time.monotonic() >= limit:
                return
            self._sweep(block=True, limit=limit)

    def _sweep(self, *, block: bool, limit: float = float("inf")) -> None:
        """Read what the workers have answered, and restart those that are dead or late."""
        busy = {w.channel: w for w in self._workers if w.pending}
        until = min([limit, *(w.deadline for w in busy.values())]) if block else 0.0
        for channel in self._host.wait(list(busy), max(0.0, until - time.monotonic())):
            self._read(busy.pop(channel))
        for worker in busy.values():
            if worker.deadline <= time.monotonic() and not worker.channel.ready():
                self._restart(worker, worker.overdue())

    def _read(self, worker: Worker) -> None:
        while worker.channel.ready():
            try:
                kind, payload = worker.receive()
            except (EOFError, OSError):
                self._restart(worker, worker.obituary())
                return
            if worker.traits is None:
                self._restart(worker, f"env_fn raised {one_line(payload)}")
            elif kind != "ready":
                self._accept(*worker.pending.popleft(), (kind, payload))

    def _restart(self, worker: Worker, why: str) -> None:
        """Replace the worker and end the running episodes of its environments.

        Raises:
            WorkerError: If it had not even become ready.
        """
        broken, was_ready = list(worker.pending), worker.traits is not None
        worker.end()
        for i, verb in broken:
            self._accept(i, verb, ("error", why))
        for i in worker.indices:
            if self._running[i]:
                self._running[i], self._lost[i] = False, why
        worker.start()
        if not was_ready:
            raise WorkerError(f"worker {worker.number} could not be restarted: {why}")

    def _accept(self, i: int, verb: Verb, reply: Reply) -> None:
        kind, payload = reply
        if verb == "call":
            self._answer = reply
        elif kind == "result":
            obs, reward, terminated, truncated, info = payload
            self._obs[i], self._info[i] = obs, info
            self._terminations[i], self._truncations[i] = terminated, truncated
            self._running[i] = not (terminated or truncated)
            self._ready.append(Result(i, obs, reward, terminated, truncated, info))
        elif kind == "error":
            if verb == "reset":
                self._info[i] = {}  # it speaks of another task
            self._end_broken(i, payload)
        else:
            self._mistakes.append((i, payload))

    def _end_broken(self, i: int, why: str) -> None:
        self._info[i] = info = {**self._info[i], "env_error": why}
        self._terminations[i], self._truncations[i] = False, True
        self._running[i], self._lost[i] = False, ""
        self._ready.append(Result(i, self._obs[i], 0.0, False, True, info))

    # ---- Gymnasium's interface

    def reset(
        self, *, seed: int | Sequence[int | None] | None = None, options: Mapping[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Start episodes in all environments, or in those of a mask.

        Args:
            seed: An int s seeds environment i with s + i; a list gives one seed each.
            options: `{"reset_mask": bool array}` resets only those; `{"task_id": [...]}` gives one task each,
                a single id goes to all; anything else is passed on as it is.

        Raises:
            ConfigError: If a list or mask does not have one entry per environment.
            WorkerError: If an environment could not be reset.
        """
        seeds = self._seeds(seed)
        mask, options_of = self._split_options(options or {})
        self._check_idle()
        for i in np.flatnonzero(mask).tolist():
            self.send_reset(i, seed=seeds[i], options=options_of[i])
        infos: dict[str, Any] = {}
        for i, result in self._gather_resets().items():
            infos = self._add_info(infos, result.info, i)
        return self._batch(), infos

    def step(
        self, actions: Any
    ) -> tuple[Any, npt.NDArray[np.float64], npt.NDArray[np.bool_], npt.NDArray[np.bool_], dict[str, Any]]:
        """Step all environments.

        Args:
            actions: One action per environment. With autoreset disabled None skips an environment, finished
                or not: its slot repeats the last observation and flags, with reward 0.

        Returns:
            Observations, rewards (float64), terminations, truncations (bool) and infos, one entry per
            environment. Infos are arrays by key with a mask `_key`; `active` is False where one was skipped.

        Raises:
            ConfigError: If there is not one action per environment, or None comes with autoreset enabled.
            EpisodeOverError: If an action is given to a finished environment with autoreset disabled.
        """
        each = self._each_action(actions)
        self._check_idle()
        next_step = self.autoreset_mode is AutoresetMode.NEXT_STEP
        begins = ((self._terminations | self._truncations) & next_step).tolist()
        for i, action in enumerate(each):  # before anything is sent: a refused step must not be half taken
            if self._obs[i] is None or not (begins[i] or action is None):
                self._check_running(i)
        for i, action in enumerate(each):
            if begins[i]:
                self.send_reset(i)
            elif action is not None:
                self.send(i, action)
        results = self._gather()
        rewards = np.zeros(self.num_envs)
        for i, result in results.items():
            rewards[i] = result.reward
        terminations, truncations = self._terminations.copy(), self._truncations.copy()
        infos: dict[str, Any] = {}
        if self.autoreset_mode is AutoresetMode.SAME_STEP:
            results, infos = self._reset_finished(results)
        for i in range(self.num_envs):
            own = {**results[i].info, "active": True} if i in results else {"active": False}
            infos = self._add_info(infos, own, i)
        return self._batch(), rewards, terminations, truncations, infos

    def _reset_finished(self, results: Mapping[int, Result]) -> tuple[dict[int, Result], dict[str, Any]]:
        """Reset what has ended; return the results to show, and the final observations and infos."""
        infos: dict[str, Any] = {}
        for i, last in results.items():
            if last.terminated or last.truncated:
                infos = self._add_info(infos, {"final_obs": last.observation, "final_info": last.info}, i)
                self.send_reset(i)
        return {**results, **self._gather_resets()}, infos

    def _seeds(self, seed: int | Sequence[int | None] | None) -> Sequence[int | None]:
        if seed is None:
            return [None] * self.num_envs
        if isinstance(seed, (int, np.integer)):
            super().reset(seed=int(seed))
            return [int(seed) + i for i in range(self.num_envs)]
        return self._one_each("seed", seed)

    def _split_options(
        self, options: Mapping[str, Any]
    ) -> tuple[npt.NDArray[np.bool_], list[dict[str, Any] | None]]:
        """Return the reset mask and the options of each environment."""
        shared = {k: v for k, v in options.items() if k not in ("reset_mask", "task_id")}
        mask = np.asarray(options.get("reset_mask", np.ones(self.num_envs, dtype=np.bool_)))
        if mask.dtype != np.bool_ or mask.shape != (self.num_envs,) or not mask.any():
            raise ConfigError(
                f"reset_mask must be a bool array of shape ({self.num_envs},) with a True, "
                f"got {options['reset_mask']!r}"
            )
        if never := [i for i in range(self.num_envs) if not mask[i] and self._obs[i] is None]:
            raise ConfigError(f"the first reset must take in every env, but reset_mask leaves out {never}")
        ids = options.get("task_id")
        several = isinstance(ids, (list, tuple, np.ndarray))
        ids = self._one_each("task_id", ids) if several else [ids] * self.num_envs
        each = [shared if task_id is None else {**shared, "task_id": task_id} for task_id in ids]
        return mask, [own or None for own in each]

    def _each_action(self, actions: Any) -> list[Any]:
        if isinstance(actions, Mapping):
            actions = tuple(iterate(self.action_space, actions))  # of a batched Dict space
        each = self._one_each("actions", actions)
        if self.autoreset_mode is not AutoresetMode.DISABLED and any(a is None for a in each):
            raise ConfigError(f"None skips an env only with autoreset disabled, not in {self.autoreset_mode}")
        return each

    def _one_each(self, what: str, values: Any) -> list[Any]:
        if isinstance(values, str) or len(values) != self.num_envs:
            raise ConfigError(f"{what} needs one entry per env, {self.num_envs}, got {values!r}")
        return list(values)

    def _check_idle(self) -> None:
        if waiting := [i for i, pending in enumerate(self._pending) if pending]:
            raise AlreadyPendingError(f"recv() the results of envs {waiting} before a batched step or reset")

    def _gather(self) -> dict[int, Result]:
        """Receive all that was sent, by index; raise the first mistake after that: nothing stays pending."""
        results: list[Result] = []
        mistake: ArlGymError | None = None
        while True:
            try:
                got = self.recv()
            except ArlGymError as err:
                mistake = mistake or err
                continue
            if not got:
                break
            results += got
        if mistake is not None:
            raise mistake
        return {r.index: r for r in sorted(results, key=lambda r: r.index)}

    def _gather_resets(self) -> dict[int, Result]:
        results = self._gather()
        for i, result in results.items():
            if "env_error" in result.info:
                raise WorkerError(f"env {i} could not be reset: {result.info['env_error']}")
        return results

    def _batch(self) -> Any:
        out: Any = create_empty_array(self.single_observation_space, self.num_envs)
        return concatenate(self.single_observation_space, self._obs, out)

    def render(self) -> tuple[Any, ...] | None:
        """Return one frame per environment, or None without a render mode."""
        if self.render_mode is None:
            return None
        return tuple(self.call(i, "render") for i in range(self.num_envs))

    def close_extras(self, **kwargs: Any) -> None:
        """Close the environments and end the workers; `close` calls it once.

        Raises:
            WorkerError: If environments of this process failed to close; all are closed nevertheless.
        """
        self.closed = True
        for worker in self._workers:
            worker.channel.close()
        until = time.monotonic() + CLOSE_S
        for worker in self._workers:
            worker.end(max(0.0, until - time.monotonic()))
        if self._shard is not None and (failures := self._shard.close()):
            raise WorkerError("; ".join(failures))


def _host(kind: Literal["process", "ray"], k: int) -> tuple[Host, int]:
    """Return what the workers run on, and how many there shall be."""
    if kind == "process":
        return Processes(), k
    from arl_gym.ray_worker import RayActors, cpu_slots

    actors = RayActors()
    return actors, k or len(cpu_slots()) or 1
