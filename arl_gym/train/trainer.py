"""The training loop: rollout, filter, score, advantages, update, metrics; and going on where it stopped.

Every rank runs this code on the same trajectories; only episodes, scoring and gradients are shared out.

>>> train(resolve({"steps": 2, "run_dir": "runs/try"}))  # doctest: +SKIP
"""

import dataclasses
import json
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from arl_gym.agents.evaluate import EvalResult, evaluate
from arl_gym.agents.records import write_trajectories
from arl_gym.agents.rollout import RolloutStats
from arl_gym.agents.types import Policy, Trajectory
from arl_gym.errors import ArlGymError, ConfigError, Interrupted, PolicyError
from arl_gym.train import distributed
from arl_gym.train.advantages import turn_advantages
from arl_gym.train.alarms import Alarms
from arl_gym.train.batch import Batch, FloatArray, pack, turn_means
from arl_gym.train.chat import ChatCodec
from arl_gym.train.checkpoint import Checkpoints, State
from arl_gym.train.checks import check_config, check_data
from arl_gym.train.config import EnvConfig, RunConfig, load_toml
from arl_gym.train.engine import Engine
from arl_gym.train.envs import (
    TrainingEnv,
    chat_kwargs,
    check_evaluation,
    env_names,
    open_training_envs,
    training_episodes,
)
from arl_gym.train.files import write_atomically
from arl_gym.train.filtering import CollectStats, collect_groups, silence_invalid
from arl_gym.train.gpu import peak_memory
from arl_gym.train.methods import resolve
from arl_gym.train.metrics import MetricsWriter, Progress, read_metrics, summarise
from arl_gym.train.model import initial_model
from arl_gym.train.run_dir import RunDir, open_run_dir
from arl_gym.train.samplers import open_sampler
from arl_gym.train.stages import cloned_start, from_clone
from arl_gym.train.stopping import StopSignal
from arl_gym.train.streams import random_state, set_random_state
from arl_gym.train.tokens import token_records
from arl_gym.train.writers import MetricsSink, open_writers

Say = Callable[[str], None]
"""Takes a line for the person who watches."""


def _silent(text: str) -> None:
    pass


@dataclass(slots=True)
class Stopwatch:
    """Seconds spent, by name; and what else was measured on the way."""

    seconds: dict[str, float] = field(default_factory=dict)

    @contextmanager
    def __call__(self, name: str) -> Iterator[None]:
        """Add the time of the block to `name`."""
        start = time.perf_counter()
        try:
            yield
        finally:
            self.seconds[name] = self.seconds.get(name, 0.0) + time.perf_counter() - start


@dataclass(slots=True, kw_only=True)
class Progression:
    """Where a run stands; everything else follows from it and from the weights."""

    step: int = 0
    """Training steps whose update is in the weights."""
    seconds: float = 0.0
    """Wall time of the run so far, evaluation included."""
    best: float | None = None
    """Best success rate in evaluation."""
    row: dict[str, float] | None = None
    """Metrics of `step`, if it was stopped before its evaluation."""


@dataclass(frozen=True, slots=True)
class Learnt:
    """What an update was made of, and what it did."""

    metrics: dict[str, float]
    batch: Batch | None = None
    logprobs: FloatArray | None = None
    """(N, T): of every token in the forward pass of its own optimiser step."""


class Trainer:
    """One run: its model, engine, environments and place in its folder. Use as a context manager.

    Args:
        cfg: The run.
        folder: Its folder, opened by `open_run_dir`.
        stop: Tells when to stop.
        resume: Checkpoint to go on from: "auto" is the newest if there is one, "never" begins anew.
        say: Gets a line when something happens that a person should know.
    """

    def __init__(self, cfg: RunConfig, folder: Path, stop: StopSignal, *, resume: str, say: Say):
        self.cfg, self.folder, self.stop, self.say = cfg, folder, stop, say
        self.loaded = initial_model(cfg)
        self.model, self.tokenizer = self.loaded.model, self.loaded.tokenizer
        self.codec = ChatCodec(
            self.tokenizer,
            self.loaded.vision,
            enable_thinking=cfg.model.enable_thinking,
            chat_template_kwargs=cfg.model.chat_template_kwargs,
        )
        self.engine = Engine(
            self.model,
            cfg.optim,
            temperature=cfg.rollout.temperature,
            reference=cfg.loss.kl_coef > 0,
            model_cfg=cfg.model,
            vision=self.loaded.vision,
        )
        self.envs = open_training_envs(cfg, ranks=distributed.n_teams(cfg.vllm.tensor_parallel))
        try:
            self.checkpoints = Checkpoints(folder / "checkpoints", keep=cfg.checkpoint.keep)
            check_evaluation(cfg)
            self.identity = _identity(self.envs, self.codec)
            self.at = self._resumed(resume)
            self.sampler = open_sampler(cfg, self.engine, self.loaded, self.codec)
        except BaseException:
            self._close_envs()
            raise
        self._began = time.monotonic() - self.at.seconds
        self._is_last = self._is_over()
        self.alarms = Alarms(cfg.monitor)

    def __enter__(self) -> "Trainer":
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the environments and the sampler."""
        self._close_envs()
        self.sampler.close()

    def _close_envs(self) -> None:
        for env in self.envs:
            env.vec.close()

    def run(self, progress: Progress | None = None) -> Path:
        """Train to the last step and return the folder of the trained model.

        Raises:
            Interrupted: If the run was told to stop; a checkpoint was then saved.
            ArlGymError: If the environments fail too often, or the sampler does; a checkpoint was then saved.
        """
        with ExitStack() as stack:
            log = self._open_log(stack)
            try:
                if self.at.row is not None:
                    self._finish(self.at.row, log, progress)
                while not self._is_last:
                    self._check_stop()
                    self._finish(self._step(), log, progress)
            except (Interrupted, EnvironmentFailure, PolicyError):
                if self.at.row is not None or not self._is_saved():
                    self._save()
                raise
        self.engine.export(self.folder / "model", self.tokenizer)
        ended = {"steps": self.at.step, "seconds": self.at.seconds}
        distributed.on_main(
            lambda: write_atomically(self.folder / "finished.json", json.dumps(ended).encode())
        )
        return self.folder / "model"

    def _is_saved(self) -> bool:
        return distributed.on_main(lambda: self.at.step in self.checkpoints.steps())

    def _is_over(self) -> bool:
        limit = self.cfg.max_train_s
        # One clock decides: ranks must not disagree about the last step.
        late = distributed.any_rank(0 < limit <= time.monotonic() - self._began)
        return self.at.step >= self.cfg.steps or (late and self.at.step > 0)

    def _check_stop(self) -> None:
        if distributed.any_rank(self.stop.name is not None):
            raise Interrupted(f"told to stop by {self.stop.name or 'a signal to another rank'}")

    def _step(self) -> dict[str, float]:
        """Take one training step and return its metrics; the evaluation is still to come."""
        step, watch, model_s = self.at.step + 1, Stopwatch(), self.engine.model_s
        with watch("time/step_s"):
            trajectories, row = self.collect(step, watch)
            learnt = self.learn(trajectories, watch)
            row |= learnt.metrics
        seconds = watch.seconds
        seconds["time/model_s"] = self.engine.model_s - model_s
        busy = seconds["time/model_s"] + seconds["time/generate_s"] + seconds["time/envs_s"]
        seconds["time/overhead_s"] = seconds["time/step_s"] - busy
        self.at.step = step
        self._is_last = self._is_over()
        self._record(step, trajectories, learnt)
        return row | watch.seconds

    def _finish(self, row: dict[str, float], log: Sequence[MetricsSink], progress: Progress | None) -> None:
        """Evaluate the step if it is due, write its metrics, and keep a checkpoint if that is due."""
        self.at.row = row
        done = self._evaluate(self.at.step)
        self.at.row, self.at.seconds = None, time.monotonic() - self._began
        for sink in log:
            sink.write(self.at.step, row | done)
        if progress is not None:
            progress(self.at.step, self.cfg.steps, row | done)
        for alarm in self.alarms.update(self.at.step, row | done):
            self.say(f"alarm at step {self.at.step}: {alarm.text}")
        success, every = done.get("eval/success_rate"), self.cfg.checkpoint.every
        is_best = success is not None and (self.at.best is None or success > self.at.best)
        if is_best:
            self.at.best = success
        if every and (self.at.step % every == 0 or is_best or self._is_last):
            self._save(best=is_best)

    def collect(self, step: int, watch: Stopwatch) -> tuple[list[Trajectory], dict[str, float]]:
        """Play groups until enough of them carry signal.

        Raises:
            EnvironmentFailure: If too many episodes ended by a failure of their environment.
        """
        cfg, stats = self.cfg, RolloutStats()
        played: list[list[Trajectory]] = [[] for _ in self.envs]
        task_ids = [env.task_ids for env in self.envs]

        def play(attempt: int) -> list[Trajectory]:
            shares = training_episodes(cfg, task_ids, step=step, attempt=attempt)
            got: list[Trajectory] = []
            for env, episodes, of_env in zip(self.envs, shares, played, strict=True):
                new = distributed.shared_rollout(
                    env.vec,
                    policy,
                    episodes,
                    env_id=env.config.id,
                    seed=cfg.seed,
                    step=step,
                    stats=stats,
                    check=self.stop.check,
                )
                of_env += new
                got += new
            _check_env_errors(got, cfg.monitor.max_env_errors)
            return got

        with (
            watch("time/rollout_s"),
            peak_memory("rollout", watch.seconds),
            self.sampler.playing(temperature=cfg.rollout.temperature) as policy,
        ):
            kept = collect_groups(play, cfg.filter, n_groups=cfg.rollout.groups, step=step)
        watch.seconds["time/generate_s"] = stats.policy_s
        watch.seconds["time/envs_s"] = stats.total_s - stats.policy_s
        watch.seconds["time/env_us_per_turn"] = stats.env_us_per_turn
        trajectories = [t for group in kept.groups for t in group]
        # The filter prefers some tasks to others: what was kept does not say how good the policy is.
        everything = summarise([t for of_env in played for t in of_env])
        raw = {key: everything[key] for key in ("rollout/success_rate", "rollout/return_mean")}
        row = summarise(trajectories) | {k.replace("/", "/played_"): v for k, v in raw.items()}
        row |= self.sampler.metrics()
        return trajectories, row | self._by_env(played) | _filter_metrics(kept.stats)

    def _by_env(self, played: Sequence[Sequence[Trajectory]]) -> dict[str, float]:
        """Return what a run over several environments wants to know of each."""
        row: dict[str, float] = {}
        if len(self.envs) == 1:
            return row
        for env, of_env in zip(self.envs, played, strict=True):
            row[f"rollout/episodes_{env.name}"] = len(of_env)
            seen = summarise(of_env)
            for key in ("success_rate", "return_mean", "turns_mean", "format_valid_frac"):
                if f"rollout/{key}" in seen:
                    row[f"rollout/{key}_{env.name}"] = seen[f"rollout/{key}"]
        return row

    def learn(self, trajectories: Sequence[Trajectory], watch: Stopwatch) -> Learnt:
        """Update the model on trajectories; a batch without a trainable token is skipped and counted."""
        taught = silence_invalid(trajectories) if self.cfg.filter.mask_invalid else trajectories
        batch = pack(taught, pad_id=self.codec.pad_id) if trajectories else None
        if batch is None or not batch.action_mask.any():
            return Learnt({"optim/skipped_batches": 1.0})
        dials = self.cfg.advantage
        with watch("time/score_s"), peak_memory("score", watch.seconds):
            batch = self.engine.score(batch, old=dials.empg or self.engine.n_minibatches(batch) > 1)
        advantages = turn_advantages(
            taught,
            dials,
            entropies=_turn_entropies(batch, taught) if dials.empg else None,
            max_tokens=self.cfg.rollout.max_tokens,
        )
        batch = batch.with_advantages(advantages)
        with watch("time/update_s"), peak_memory("update", watch.seconds):
            stats, new, entropies = self.engine.update(batch, self.cfg.loss, total_steps=self.cfg.steps)
        if batch.old_logprobs is None:
            batch = batch.with_old(new, entropies)
        skipped = {"optim/skipped_batches": 0.0, "optim/skipped_steps": float(self.engine.n_skipped)}
        return Learnt(stats | token_metrics(batch) | skipped, batch, new)

    def _evaluate(self, step: int) -> dict[str, float]:
        """Look at the validation split every `eval.every` steps and at the end."""
        every = self.cfg.eval.every
        if not every or (step % every and not self._is_last):
            return {}
        with self.sampler.playing(temperature=self.cfg.eval.temperature) as policy:
            results = [
                evaluate_policy(
                    self.cfg,
                    policy,
                    split="val",
                    episodes=self.cfg.eval.episodes,
                    samples=self.cfg.eval.samples,
                    env=env.config,
                    check=self.stop.check,
                )
                for env in self.envs
            ]
        return _evaluation_metrics(dict(zip(env_names(self.cfg), results, strict=True)))

    def _record(self, step: int, trajectories: Sequence[Trajectory], learnt: Learnt) -> None:
        every = self.cfg.trajectories_every
        if every and (step % every == 0 or self._is_last):
            path = self.folder / "trajectories" / f"step-{step:06d}.jsonl.gz"

            def write() -> None:
                extras = None
                if learnt.batch is not None:
                    extras = token_records(
                        trajectories,
                        learnt.batch,
                        learnt.logprobs,
                        decode=lambda i: str(self.tokenizer.decode([i])),
                    )
                write_trajectories(path, trajectories, extras)

            distributed.on_main(write)

    def _open_log(self, stack: ExitStack) -> list[MetricsSink]:
        """Open what takes the metrics of each step; `stack` closes it. Ranks but the first write nothing."""
        if not distributed.is_main():
            return []
        # A step that is not finished yet has no line.
        done = self.at.step - (self.at.row is not None)
        metrics = stack.enter_context(MetricsWriter(self.folder / "metrics.jsonl", resume_step=done))
        for past in read_metrics(self.folder / "metrics.jsonl"):
            self.alarms.update(int(past["step"] or 0), past)
        log: list[MetricsSink] = [metrics]
        for sink in open_writers(self.cfg, self.folder, done or None):
            stack.callback(sink.close)
            log.append(sink)
        return log

    def _save(self, *, best: bool = False) -> None:
        """Keep a checkpoint of the present state."""
        self.at.seconds = time.monotonic() - self._began
        draft = distributed.on_main(lambda: self.checkpoints.draft(self.at.step))
        self.engine.save(draft)
        state = {
            "progression": dataclasses.asdict(self.at),
            "identity": self.identity,
            "random": distributed.gather(random_state()),
        }
        distributed.on_main(lambda: self.checkpoints.commit(self.at.step, state, best=best))

    def _resumed(self, resume: str) -> Progression:
        """Load a checkpoint and return where it stands."""
        found = None if resume == "never" else distributed.on_main(lambda: self.checkpoints.read(resume))
        if found is None:
            if (self.folder / "finished.json").is_file():
                raise ConfigError(
                    f"the run in {self.folder} is finished and kept no checkpoint to go on from: choose "
                    "another run_dir"
                )
            if (self.folder / "metrics.jsonl").is_file():
                self.say(f"{self.folder} has no checkpoint: beginning anew")
            return Progression()
        _check_identity(found.state["identity"], self.identity, found.folder)
        self.engine.load(found.folder)
        streams = found.state["random"]
        if len(streams) == distributed.world_size():
            set_random_state(streams[distributed.rank()])
        self.say(f"going on after step {found.step} of {self.folder}")
        distributed.on_main(lambda: self._forget_after(found.step))
        return Progression(**found.state["progression"])

    def _forget_after(self, step: int) -> None:
        """Remove what the steps after a checkpoint left behind: they are taken again."""
        for path in (self.folder / "trajectories").glob("step-*.jsonl.gz"):
            if int(path.name[5:11]) > step:
                path.unlink()
        self.checkpoints.forget_after(step)
        (self.folder / "finished.json").unlink(missing_ok=True)


class EnvironmentFailure(ArlGymError, RuntimeError):
    """Too many episodes of a step ended by a failure of their environment."""


def train(
    cfg: RunConfig,
    *,
    resume: str = "never",
    progress: Progress | None = None,
    say: Say = _silent,
) -> Path:
    """Train the model of `cfg` and return the folder of the trained one.

    Args:
        cfg: The run.
        resume: "never" wants a new folder; "auto" goes on in one that has a checkpoint and begins where there
            is none; "best" or a step goes on from that checkpoint.
        progress: Called after every step.
        say: Gets a line when something happens that a person should know.

    Raises:
        ConfigError: If the configuration cannot be run, or not in this folder.
        DataError: If the checkpoint is damaged.
        Interrupted: If the run was told to stop; it can be resumed.
        ArlGymError: If the environments fail too often.
    """
    distributed.start()
    check_config(cfg)
    check_data(cfg)
    with StopSignal() as stop:
        opened: list[RunDir] = []
        distributed.on_main(lambda: opened.append(open_run_dir(cfg, resume=resume != "never")))
        folder = Path(cfg.run_dir)
        if not distributed.is_main():
            progress, say = None, _silent
        try:
            if cfg.clone.before:
                cfg = cloned_start(cfg, folder, progress=progress, say=say, check=stop.check)
            with Trainer(cfg, folder, stop, resume=resume, say=say) as trainer:
                return trainer.run(progress)
        except ConfigError:
            for run in opened:
                run.discard()
            raise
        finally:
            for run in opened:
                run.close()


def export(run_dir: Path, which: str, out: Path) -> int:
    """Write the model of a checkpoint as a Hugging Face folder and return its step.

    Args:
        run_dir: The run's folder.
        which: As in `Checkpoints.read`.
        out: Must not exist.

    Raises:
        ConfigError: If there is no such checkpoint, or `out` exists.
        DataError: If the checkpoint is damaged.
    """
    cfg = from_clone(resolve(load_toml(run_dir / "config.toml"), str(run_dir / "config.toml")), run_dir)
    if out.exists():
        raise ConfigError(f"{out} exists already: choose another folder")
    found = Checkpoints(run_dir / "checkpoints", keep=cfg.checkpoint.keep).read(which)
    if found is None:
        raise ConfigError(f"{run_dir} has no checkpoint")
    loaded = initial_model(cfg)
    engine = Engine(
        loaded.model,
        cfg.optim,
        temperature=1.0,
        reference=False,
        model_cfg=cfg.model,
        vision=loaded.vision,
    )
    engine.load(found.folder)
    engine.export(out, loaded.tokenizer)
    return found.step


def evaluate_policy(
    cfg: RunConfig,
    policy: Policy | str,
    *,
    split: str,
    episodes: int,
    samples: int = 1,
    env: EnvConfig | None = None,
    check: Callable[[], None] | None = None,
) -> EvalResult:
    """Play the first tasks of a split as the configuration shows the environment."""
    env = env or cfg.all_envs[0]

    def play(*args: Any, **kwargs: Any) -> list[Trajectory]:
        return distributed.shared_rollout(*args, check=check, **kwargs)

    return evaluate(
        policy,
        env.id,
        split=split,
        episodes=episodes,
        samples=samples,
        seed=cfg.seed,
        num_envs=min(episodes * samples, 64),
        workers=env.workers,
        step_timeout_s=env.step_timeout_s,
        play=play,
        **chat_kwargs(env),
    )


def _identity(envs: Sequence[TrainingEnv], codec: ChatCodec) -> State:
    return {"envs": [env.identity() for env in envs], "tokenizer": codec.fingerprint()}


def _check_identity(saved: State, present: State, folder: Path) -> None:
    """Check that a run goes on with the tasks and the tokenizer that it began with.

    Raises:
        ConfigError: If it does not.
    """
    if saved["tokenizer"] != present["tokenizer"]:
        raise ConfigError(f"{folder} was made with another tokenizer: its tokens would mean something else")
    for was, now in zip(saved["envs"], json.loads(json.dumps(present["envs"])), strict=True):
        changed = [f"{key} was {was[key]!r}, is {now.get(key)!r}" for key in was if was[key] != now.get(key)]
        if changed:
            raise ConfigError(f"{folder} was made on other tasks of {was['env_id']}: {'; '.join(changed)}")


def _check_env_errors(trajectories: Sequence[Trajectory], limit: float) -> None:
    failed = [t for t in trajectories if t.stop == "env_error"]
    if limit > 0 and len(failed) > limit * len(trajectories):
        raise EnvironmentFailure(
            f"{len(failed)} of {len(trajectories)} episodes ended by a failure of their environment, more "
            f"than monitor.max_env_errors={limit:g} allows. The first, task {failed[0].task_id!r} of "
            f"{failed[0].env_id}: {failed[0].error}"
        )


def _turn_entropies(batch: Batch, trajectories: Sequence[Trajectory]) -> list[FloatArray]:
    """Return the mean entropy of every turn, one array per trajectory."""
    assert batch.entropies is not None
    flat = np.concatenate(turn_means(batch, batch.entropies))
    return np.split(flat, np.cumsum([len(t.turns) for t in trajectories])[:-1])


def _filter_metrics(stats: CollectStats) -> dict[str, float]:
    return {f"rollout/{name}": float(value) for name, value in dataclasses.asdict(stats).items()}


def _evaluation_metrics(results: dict[str, EvalResult]) -> dict[str, float]:
    """Return the metrics of an evaluation; several environments count alike."""
    row: dict[str, float] = {}
    for name, result in results.items():
        of_env = {
            "success_rate": result.success_rate,
            "return_mean": result.return_mean,
            "score_mean": result.score_mean,
        }
        for key, value in of_env.items():
            row[f"eval/{key}"] = row.get(f"eval/{key}", 0.0) + value / len(results)
        if len(results) > 1:
            row |= {f"eval/{key}_{name}": value for key, value in of_env.items()}
    for kind, (k, n) in _success_by_type(results.values()).items():
        row[f"eval/episodes_{kind}"] = n
        if n:
            row[f"eval/success_rate_{kind}"] = k / n
    return row


def _success_by_type(results: Iterable[EvalResult]) -> dict[str, tuple[int, int]]:
    """Return successes and episodes by kind of task, over environments that may share kinds."""
    total: dict[str, tuple[int, int]] = {}
    for result in results:
        for kind, (k, n) in result.success_by_type.items():
            before = total.get(kind, (0, 0))
            total[kind] = before[0] + k, before[1] + n
    return total


def token_metrics(batch: Batch) -> dict[str, float]:
    """Compare the log-probs of sampling with those of the trainer, token by token; and give its entropy."""
    assert batch.old_logprobs is not None
    assert batch.entropies is not None
    gap = np.abs(batch.old_logprobs - batch.rollout_logprobs)[batch.action_mask]
    return {
        "rollout/logprob_diff_mean": float(gap.mean()),
        "rollout/logprob_diff_max": float(gap.max()),
        "rollout/entropy_mean": float(batch.entropies[batch.action_mask].mean()),
        "optim/tokens": float(batch.action_mask.sum()),
    }
