"""What the tests of several ranks run on each of them: `python -m tests.train.rank_jobs FOLDER JOB …`.

A rank writes the results of its jobs into the folder, as `RANK.npz`. The jobs can be called on one rank too.
"""

import dataclasses
import os
import pickle
import socket
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import torch

from arl_gym import make_chat_vec
from arl_gym.agents.policies import ScriptedPolicy
from arl_gym.agents.types import Episode
from arl_gym.errors import ConfigError
from arl_gym.train.advantages import turn_advantages
from arl_gym.train.batch import Batch, pack
from arl_gym.train.config import AdvantageConfig, LossConfig, ModelConfig, OptimConfig
from arl_gym.train.distributed import (
    any_rank,
    barrier,
    broadcast,
    gather,
    is_main,
    on_main,
    rank,
    share,
    shared_rollout,
    start,
    sum_arrays,
    world_size,
)
from arl_gym.train.engine import Engine
from arl_gym.train.model import tiny_model, tiny_tokenizer
from tests.train.trajectories import trajectory, turn

# Without a threshold of 0 ZeRO-3 would keep all parameters of so small a model whole.
CUT_ALL = {"stage3_param_persistence_threshold": 0}
OPTIM = OptimConfig(lr=1e-3, weight_decay=0.0, micro_tokens=1 << 20, grad_clip=0.0)
LORA = ModelConfig(lora_rank=4, lora_alpha=8.0)
LOSS = LossConfig(clip_low=0.03, clip_high=0.04, kl_coef=0.1)

Arrays = dict[str, np.ndarray]


def optim(stage, **changes):
    zero = CUT_ALL if stage == 3 else {}
    return dataclasses.replace(OPTIM, zero_stage=stage, zero=zero, **changes)


def trajectories(n_groups=3, size=4):
    """Random token rows with returns that differ inside each group."""
    rng = np.random.default_rng(0)

    def random_turn(k, reward):
        prompt = rng.integers(0, 256, int(rng.integers(3, 12))).tolist()
        answer = rng.integers(0, 256, int(rng.integers(1, 6))).tolist()
        return turn(prompt, answer, reward=reward, penalty=0.1 * (k == 1), anchor="same" if k == 0 else "")

    return [
        trajectory(*(random_turn(k, float(c * (k + 1))) for k in range(1 + c % 3)), group=g, copy=c)
        for g in range(n_groups)
        for c in range(size)
    ]


def make_engine(cfg=OPTIM, *, reference=True, model_cfg=ModelConfig(), dtype=torch.float32):  # noqa: B008
    model = tiny_model(tiny_tokenizer(), seed=1, hidden=48, layers=2).to(dtype)
    return Engine(model, cfg, temperature=1.0, reference=reference, model_cfg=model_cfg)


def scored(engine, played=None, *, entropy=True) -> Batch:
    played = trajectories() if played is None else played
    batch = engine.score(pack(played, pad_id=0), entropy=entropy)
    return batch.with_advantages(turn_advantages(played, AdvantageConfig()))


def first_gradient(engine) -> np.ndarray:
    """The gradient of the only step so far: exp_avg = (1 - beta1) * gradient, and beta1 = 0.9."""
    engine._state.begin()
    return np.concatenate(
        [engine._state.read(name)["exp_avg"].flatten().numpy() * 10 for name in engine._state.parameters]
    )


def master_weights(engine) -> np.ndarray:
    engine._state.begin()
    return np.concatenate(
        [engine._state.read(name)["weight"].detach().flatten().numpy() for name in engine._state.parameters]
    )


def update_of(cfg, **kwargs) -> Arrays:
    engine = make_engine(cfg, **kwargs)
    batch = scored(engine)
    stats, logprobs = engine.update(batch, LOSS, total_steps=1)
    return {
        "gradient": first_gradient(engine),
        "old": batch.old_logprobs,
        "ref": batch.ref_logprobs,
        "seen": logprobs,
        "grad_norm": np.array(stats["optim/grad_norm"]),
        "loss": np.array(stats["loss/policy"]),
    }


def prefixed(prefix: str, arrays: Arrays) -> Arrays:
    return {f"{prefix}/{key}": value for key, value in arrays.items()}


def gradients(folder: Path) -> Arrays:
    out: Arrays = {}
    for stage in (0, 1, 2, 3):
        out |= prefixed(f"{stage}", update_of(optim(stage, micro_tokens=25)))
    out |= prefixed("whole", update_of(optim(2)))
    out |= prefixed("lora-0", update_of(optim(0), model_cfg=LORA))
    return out | prefixed("lora-3", update_of(optim(3, micro_tokens=25), model_cfg=LORA))


def checkpoint(folder: Path) -> Arrays:
    """Saves after one update at stage 2, and goes on; then loads at stage 3 and goes on from there."""
    first, second = make_engine(optim(2)), make_engine(optim(3))
    first.update(scored(first), LOSS, total_steps=2)
    first.save(folder / "checkpoint")
    second.load(folder / "checkpoint")
    batch = scored(first)  # its reference is the model before the first update, unlike that of the second
    out = {"before": master_weights(first)}
    for name, engine in (("after-2", first), ("after-3", second)):
        engine.update(batch, LOSS, total_steps=2)
        out[name] = master_weights(engine)
    return out


def skips(folder: Path) -> Arrays:
    """The first rank's gradient is finite, the second's is not; then both are."""
    out: Arrays = {}
    part = pack(trajectories(), pad_id=0)
    for stage in (0, 2, 3):
        engine = make_engine(optim(stage), reference=False)
        before = master_weights(engine)
        for factor in (float("nan") if rank() == 1 else 1.0, 1.0):
            engine.step([(engine.log_probs(part).mean() * factor, {})], 1, lr=1e-3)
            moved = np.abs(master_weights(engine) - before).max()
            out[f"{stage}"] = np.append(out.get(f"{stage}", np.zeros(0)), (engine.n_skipped, moved > 0))
    return out


def exports(folder: Path) -> Arrays:
    """Trains a step at stage 3, without and with LoRA, writes the model, and says how it talks."""
    out: Arrays = {}
    for name, model_cfg in (("plain", ModelConfig()), ("lora", LORA)):
        engine = make_engine(optim(3), model_cfg=model_cfg)
        engine.update(scored(engine), LOSS, total_steps=1)
        engine.export(folder / name, tiny_tokenizer())
        with torch.no_grad():
            out[name] = engine.rollout_model()(torch.arange(20)[None]).logits.numpy()
    return out


def exchange(folder: Path) -> Arrays:
    """Everything that `distributed` says of two ranks; the names are read by its tests."""
    mine = rank()
    assert (mine, world_size(), is_main()) == (int(os.environ["RANK"]), 2, mine == 0)
    start()
    start()  # twice is fine
    assert gather(("rank", mine)) == [("rank", 0), ("rank", 1)]
    assert broadcast(f"from {mine}") == "from 0"
    assert [any_rank(mine == 1), any_rank(False)] == [True, False]
    array = np.arange(3, dtype=np.float32) + mine
    assert sum_arrays(array).tolist() == [1.0, 3.0, 5.0]
    assert array.tolist() == [mine, 1 + mine, 2 + mine]  # its own array is left as it was
    assert share("aabbca") == ([0, 1, 4, 5] if mine == 0 else [2, 3])
    barrier()
    counts: list[tuple[int, int]] = []
    return {
        "played": pickled(play(progress=lambda done, total: counts.append((done, total)))),
        "counts": np.array(counts),
        "error": pickled(failing(ConfigError("x: expected 1, got 2"))),
        "strange": pickled(failing(Unpicklable("far"))),
        "main": pickled(failing_main()),
    }


class Unpicklable(Exception):
    def __reduce__(self):
        raise TypeError("stays here")


def pickled(obj) -> np.ndarray:
    return np.frombuffer(pickle.dumps(obj), dtype=np.uint8)


def respond(request) -> str:
    return f"<think></think><action>{('up', 'down', 'left', 'right')[request.stream % 4]}</action>"


def play(policy=None, progress=None):
    """Three groups of two Sokoban episodes; without a policy the moves follow the sampling streams."""
    vec = make_chat_vec("ARL/Sokoban-v0", 2)
    try:
        episodes = [Episode(task_id=f"train-{g:06d}", group=g, copy=c) for g in (7, 3, 5) for c in (0, 1)]
        policy = ScriptedPolicy(respond) if policy is None else policy
        return shared_rollout(vec, policy, episodes, env_id="ARL/Sokoban-v0", seed=0, progress=progress)
    finally:
        vec.close()


class Failing(ScriptedPolicy):
    """Cannot answer on the second rank."""

    def __init__(self, error):
        super().__init__(respond)
        self.error = error

    def submit(self, requests):
        if rank() == 1:
            raise self.error
        super().submit(requests)


def failing(error) -> tuple[str, str]:
    try:
        play(Failing(error))
    except Exception as err:
        return type(err).__name__, str(err)
    return "", ""


def failing_main() -> str:
    def act() -> None:
        raise ConfigError(f"rank {rank()} acted")

    try:
        on_main(act)
    except ConfigError as err:
        return str(err)
    return ""


JOBS: dict[str, Callable[[Path], Arrays]] = {
    job.__name__: job for job in (gradients, checkpoint, skips, exports, exchange)
}


def run_ranks(jobs: Sequence[str], folder: Path, timeout_s: float = 280.0) -> list[Arrays]:
    """Run jobs on two ranks and return the results of each."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    environ = os.environ | {"WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)}
    command = [sys.executable, "-m", "tests.train.rank_jobs", str(folder), *jobs]
    ranks = [subprocess.Popen(command, env=environ | {"RANK": r, "LOCAL_RANK": r}) for r in "01"]
    try:
        codes = [p.wait(timeout=timeout_s) for p in ranks]
    finally:
        for p in ranks:
            p.kill()
            p.wait()
    assert codes == [0, 0]
    return [dict(np.load(folder / f"{r}.npz")) for r in range(2)]


def main(target: Path, jobs: Sequence[str]) -> None:
    results: Arrays = {}
    for job in jobs:
        results |= prefixed(job, JOBS[job](target))
    np.savez(target / f"{rank()}.npz", **results)  # type: ignore[arg-type]


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2:])
