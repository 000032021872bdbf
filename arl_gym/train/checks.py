"""Whether a configuration can be run: all its conflicts at once, before any model loads.

    check_config(cfg)  # what can never work: one error that lists everything
    check_data(cfg)    # what this machine lacks

Every message names the dotted key, its value and the way out. What works, but perhaps not as meant, is in
`notes`.
"""

import dataclasses
import importlib
import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path

from arl_gym.envs import ENVS
from arl_gym.errors import ConfigError, DataError, UnknownNameError
from arl_gym.make import env_parameters, find_spec
from arl_gym.train.config import EnvConfig, RunConfig, dial
from arl_gym.train.envs import check_step_advantage, groups_per_try
from arl_gym.train.loss import check_loss
from arl_gym.vector import parse_workers

_AT_LEAST: dict[str, float] = {
    "steps": 1,
    "max_train_s": 0,
    "trajectories_every": 0,
    "model.image_min_pixels": 0,
    "model.image_max_pixels": 0,
    "model.lora_rank": 0,
    "rollout.groups": 1,
    "rollout.max_tokens": 1,
    "rollout.batch_size": 1,
    "vllm.tensor_parallel": 1,
    "vllm.check_tokens": 0,
    "vllm.max_difference": 0,
    "filter.tolerance": 0,
    "filter.max_tries": 1,
    "filter.cold_start_steps": 0,
    "advantage.step_weight": 0,
    "advantage.overlong_penalty": 0,
    "advantage.overlong_buffer": 0,
    "loss.clip_low": 0,
    "loss.clip_high": 0,
    "loss.mask_delta": 0,
    "loss.kl_coef": 0,
    "optim.lr": 0,
    "optim.warmup_steps": 0,
    "optim.weight_decay": 0,
    "optim.grad_clip": 0,
    "optim.minibatches": 1,
    "optim.minibatch_rows": 0,
    "optim.micro_tokens": 1,
    "clone.episodes": 1,
    "clone.val_episodes": 1,
    "clone.batch_rows": 1,
    "clone.eval_every": 1,
    "eval.every": 0,
    "eval.episodes": 1,
    "eval.samples": 1,
    "eval.temperature": 0,
    "checkpoint.every": 0,
    "checkpoint.keep": 1,
}
"""Smallest value that makes sense; None (a dial that is off) always does."""

_ABOVE_ZERO = ("rollout.temperature", "loss.sapo_tau_pos", "loss.sapo_tau_neg", "loss.tis_cap")

_ONE_WAY = {"window", "format", "penalty", "penalise", "anchor", "prompt", "workers", "step_timeout_s"}
"""Settings of [env] that `env.kwargs` must not hide."""

_PICTURES = ("image", "both")
"""Values of `obs_mode` that give the agent pictures."""

_ARRAYS = ("grid", "planes")
"""Values of `obs_mode` that no language model reads."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class _Data:
    """Where an environment's original data is looked for, and how one gets it."""

    argument: str
    variable: str
    how: str
    inside: tuple[str, ...] = ()
    """One of these is in the folder; empty: it is a file."""
    usual: str = ""


_DATA = {
    "ARL/ALFWorld-v0": _Data(
        argument="data_dir",
        variable="ALFWORLD_DATA",
        inside=("json_2.1.1", "train"),
        usual="~/.cache/alfworld",
        how="`pip install alfworld; alfworld-download` fetches the games",
    ),
    "ARL/WebShop-v0": _Data(
        argument="data_dir",
        variable="ARL_WEBSHOP_DATA",
        inside=("items_shuffle.json", "items_shuffle_1000.json"),
        how="`arl-gym data import webshop FOLDER` reads the original's files (docs/webshop.md)",
    ),
    "ARL/TIRMath-v0": _Data(
        argument="data",
        variable="ARL_TIRMATH_DATA",
        how="Bring a JSON or Parquet file of problems (docs/tirmath.md)",
    ),
}


def check_config(cfg: RunConfig) -> None:
    """Check that the method, the environments, the engine and the model go together.

    Looks at the configuration only, not at the machine: no model, data or environment is opened. The one
    exception is the `config.json` of a local model, which says whether it reads pictures.

    Raises:
        ConfigError: If they do not; the message lists every conflict.
    """
    found = conflicts(cfg)
    if len(found) == 1:
        raise ConfigError(found[0])
    if found:
        listed = [f"({i}) {line}" for i, line in enumerate(found, 1)]
        raise ConfigError("\n".join([f"the configuration has {len(found)} conflicts:", *listed]))


def conflicts(cfg: RunConfig) -> list[str]:
    """Return what `check_config` complains of, a line each."""
    rules = (
        _ranges,
        _environments,
        _pictures,
        _rollout,
        _sampling,
        _filter,
        _advantage,
        _loss,
        _optim,
        _evaluation,
    )
    return [line for rule in rules for line in rule(cfg)]


def check_data(cfg: RunConfig) -> None:
    """Check that the original data of a run is where it is looked for; opens none of it.

    Raises:
        DataError: If it is not; the message says how to get it.
    """
    if missing := missing_data(cfg):
        raise DataError("; ".join(missing))


def missing_data(cfg: RunConfig) -> list[str]:
    """Return what `check_data` complains of, a line for each environment."""
    return [line for env in cfg.all_envs if (line := _missing(env))]


def _missing(env: EnvConfig) -> str:
    data = _DATA.get(env.id)
    if data is None or env.kwargs.get("dataset") != "original":
        return ""
    place = env.kwargs.get(data.argument) or os.environ.get(data.variable) or data.usual
    path = Path(place).expanduser()
    if place and (any((path / name).exists() for name in data.inside) if data.inside else path.is_file()):
        return ""
    expected = f"expected {' or '.join(data.inside)} in" if data.inside else "expected a file,"
    looked = f"{expected} {place}" if place else "nothing says where it is"
    return (
        f"the original data of {env.id} is missing: {looked}. {data.how}; then --env {data.argument}=PATH, "
        f"or PATH in the variable {data.variable}"
    )


def _ranges(cfg: RunConfig) -> Iterator[str]:
    for key, least in _AT_LEAST.items():
        value = dial(cfg, key)
        if value is not None and value < least:
            yield f"{key}={value}: expected at least {least:g}"
    for key in _ABOVE_ZERO:
        value = dial(cfg, key)
        if value is not None and value <= 0:
            yield f"{key}={value}: expected more than 0"


def _environments(cfg: RunConfig) -> Iterator[str]:
    if cfg.envs and cfg.env != EnvConfig():
        yield "env is set, but the run plays envs: move it into envs as one more [[envs]]"
    for i, env in enumerate(cfg.all_envs):
        place = f"envs.{i}" if cfg.envs else "env"
        yield from _environment(env, place)
        if cfg.paper:
            yield from _paper(env, place)
        yield from _raised(check_step_advantage, dataclasses.replace(cfg, env=env, envs=()))


def _environment(env: EnvConfig, place: str) -> Iterator[str]:
    if env.weight <= 0:
        yield f"{place}.weight={env.weight}: expected more than 0"
    if env.step_timeout_s <= 0:
        yield f"{place}.step_timeout_s={env.step_timeout_s}: expected more than 0"
    if env.penalty < 0:
        yield f"{place}.penalty={env.penalty}: expected at least 0"
    try:
        parse_workers(env.workers)
    except ConfigError as err:
        yield f"{place}: {err}"
    if isinstance(env.window, int) and env.window < 0:
        yield f"{place}.window={env.window}: expected at least 0, or 'dialogue'"
    try:
        known = env_parameters(find_spec(env.id))
    except ConfigError as err:
        yield f"{place}.id: {err}"
        return
    yield from _kwargs(env, known, place)
    prompts = importlib.import_module(ENVS[env.id].prompts).PROMPTS if env.id in ENVS else {"default": None}
    if env.prompt not in prompts:
        yield str(UnknownNameError("prompt", env.prompt, prompts, f"{place}.prompt"))


def _kwargs(env: EnvConfig, known: set[str] | None, place: str) -> Iterator[str]:
    for key, value in env.kwargs.items():
        if key in _ONE_WAY:
            yield f"{place}.kwargs.{key}={value!r}: set {place}.{key} instead"
        elif key == "split":
            yield f"{place}.kwargs.split={value!r}: leave it out, training and evaluation have their own"
        elif known is not None and key not in known | {"max_episode_steps", "max_chars"}:
            yield str(UnknownNameError("keyword argument", key, known, f"{place}.kwargs of {env.id}"))
    if (mode := env.kwargs.get("obs_mode")) in _ARRAYS:
        yield f"{place}.kwargs.obs_mode={mode!r}: a language model reads no arrays; set obs_mode='text'"
    if env.kwargs.get("action_mode") == "discrete":
        yield f"{place}.kwargs.action_mode='discrete': an agent that speaks needs action_mode='text'"


def _paper(env: EnvConfig, place: str) -> Iterator[str]:
    """Refuse generated data where the benchmark has its own."""
    chosen = env.kwargs.get("dataset", "generated")
    if env.id in _DATA and chosen != "original":
        yield (
            f"{place}.kwargs.dataset={chosen!r}: paper=true stands beside published figures, which generated "
            "data cannot; set dataset='original', or paper=false"
        )


def _pictures(cfg: RunConfig) -> Iterator[str]:
    least, most = cfg.model.image_min_pixels, cfg.model.image_max_pixels
    if least > most > 0:
        yield f"model.image_min_pixels={least}: expected at most model.image_max_pixels={most}"
    for i, env in enumerate(cfg.all_envs):
        mode = env.kwargs.get("obs_mode")
        if mode in _PICTURES and _reads_text_only(cfg.model.path):
            place = f"envs.{i}" if cfg.envs else "env"
            yield (
                f"{place}.kwargs.obs_mode={mode!r}: the model {cfg.model.path!r} reads text only; set "
                "obs_mode='text', or model.path to a vision-language model, such as 'tiny-vl'"
            )


def _reads_text_only(path: str) -> bool:
    """Return whether a model is known to read no pictures: not if only a hub, or nobody, could tell."""
    config = Path(path).expanduser() / "config.json"
    if path == "tiny" or not config.is_file():
        return path == "tiny"
    try:
        return "vision_config" not in json.loads(config.read_text(encoding="utf-8"))
    except ValueError:
        return False  # loading it says what is wrong


def _rollout(cfg: RunConfig) -> Iterator[str]:
    r = cfg.rollout
    if r.group_size < 2:
        yield f"rollout.group_size={r.group_size}: expected at least 2: advantages compare a group's members"
    if r.max_tokens >= cfg.model.max_context:
        yield (
            f"rollout.max_tokens={r.max_tokens} leaves no room for a prompt in "
            f"model.max_context={cfg.model.max_context}: lower the one or raise the other"
        )


_OURS = {
    "dtype": "model.dtype",
    "max_model_len": "model.max_context",
    "gpu_memory_utilization": "vllm.memory",
    "enforce_eager": "vllm.eager",
    "enable_sleep_mode": "vllm.sleep",
    "tensor_parallel_size": "vllm.tensor_parallel",
    "seed": "seed",
}
"""Arguments of vLLM that have a setting of their own."""

_FIXED = {"model", "tokenizer", "load_format", "logprobs_mode", "distributed_executor_backend"}
"""Arguments of vLLM that are as they must be."""


def _sampling(cfg: RunConfig) -> Iterator[str]:
    v = cfg.vllm
    if not 0 < v.memory <= 1:
        yield f"vllm.memory={v.memory}: expected a share, more than 0 and at most 1"
    if v.tensor_parallel > 1 and cfg.rollout.backend != "vllm":
        yield (
            f"vllm.tensor_parallel={v.tensor_parallel} goes with rollout.backend='vllm', got "
            f"{cfg.rollout.backend!r}: leave it at 1 (servers have `vllm serve --tensor-parallel-size`)"
        )
    for name, value in v.kwargs.items():
        if name in _OURS:
            yield f"vllm.kwargs.{name}={value!r}: set {_OURS[name]} instead"
        elif name in _FIXED:
            yield f"vllm.kwargs.{name}={value!r}: leave it out, the trainer needs it as it is"
    modes = [env.kwargs.get("obs_mode") for env in cfg.all_envs]
    if cfg.rollout.backend == "server" and any(mode in _PICTURES for mode in modes):
        yield "rollout.backend='server' sends text only: set obs_mode='text', or backend='vllm' or 'hf'"
    if cfg.rollout.backend == "server" and not (v.urls.split() and v.weights_folder):
        yield (
            f"rollout.backend='server' needs vllm.urls and vllm.weights_folder, got {v.urls!r} and "
            f"{v.weights_folder!r}"
        )


def _filter(cfg: RunConfig) -> Iterator[str]:
    yield from _raised(lambda cfg: groups_per_try(cfg, step=cfg.steps), cfg)


def _advantage(cfg: RunConfig) -> Iterator[str]:
    a = cfg.advantage
    if not 0 < a.gamma <= 1:
        yield f"advantage.gamma={a.gamma}: expected more than 0, at most 1"
    if not 0 < a.anchor_similarity <= 1:
        yield f"advantage.anchor_similarity={a.anchor_similarity}: expected more than 0, at most 1"
    states = [e.id for e in cfg.all_envs if e.anchor == "state"]
    if a.anchor_similarity < 1 and a.step_weight > 0 and states:
        yield (
            f"advantage.anchor_similarity={a.anchor_similarity} compares texts, and anchors of {states[0]} "
            "are digests (env.anchor='state'): set anchor='observation', or anchor_similarity=1"
        )
    if a.overlong_buffer >= cfg.rollout.max_tokens:
        yield (
            f"advantage.overlong_buffer={a.overlong_buffer} covers the whole response "
            f"(rollout.max_tokens={cfg.rollout.max_tokens}): make it smaller, 0 is a fifth of the limit"
        )


def _loss(cfg: RunConfig) -> Iterator[str]:
    found = list(_loss_dials(cfg))
    yield from found
    if not found and not any(_ranges(cfg)):  # it stops at the first, and those are listed already
        yield from _raised(lambda cfg: check_loss(cfg.loss), cfg)


def _loss_dials(cfg: RunConfig) -> Iterator[str]:
    loss = cfg.loss
    if loss.dual_clip_c is not None and (loss.policy != "clip" or loss.ratio_level != "token"):
        yield (
            f"loss.dual_clip_c={loss.dual_clip_c} caps clipped token ratios: leave it out, or set "
            f"policy='clip' and ratio_level='token' (got {loss.policy!r} and {loss.ratio_level!r})"
        )
    if loss.dual_clip_c is not None and loss.dual_clip_c <= 1:
        yield f"loss.dual_clip_c={loss.dual_clip_c}: expected more than 1"
    if loss.aggregation == "seq-mean-token-sum-norm" and loss.aggregation_tokens < 1:
        yield (
            f"loss.aggregation={loss.aggregation!r} divides by loss.aggregation_tokens: expected at least 1, "
            f"such as rollout.max_tokens={cfg.rollout.max_tokens}, got {loss.aggregation_tokens}"
        )
    if loss.kl_coef == 0 and not loss.kl_gradient:
        yield (
            "loss.kl_gradient=false logs the divergence, but loss.kl_coef=0 loads no reference model: set "
            "kl_coef above 0, or kl_gradient=true"
        )


def _optim(cfg: RunConfig) -> Iterator[str]:
    o = cfg.optim
    if o.minibatch_rows == 0 and o.minibatches > cfg.rollout.groups:
        yield (
            f"optim.minibatches={o.minibatches}, but rollout.groups={cfg.rollout.groups} and groups are "
            "never split: have at most as many minibatches as groups"
        )
    if "stage" in o.zero:
        yield f"optim.zero.stage={o.zero['stage']!r}: set optim.zero_stage instead"
    if "offload_param" in o.zero and o.zero_stage != 3:
        yield f"optim.zero.offload_param needs optim.zero_stage=3, got {o.zero_stage}"
    if cfg.model.lora_rank > 0 and cfg.model.lora_alpha <= 0:
        yield f"model.lora_alpha={cfg.model.lora_alpha}: expected more than 0"


def _evaluation(cfg: RunConfig) -> Iterator[str]:
    if cfg.eval.samples > 1 and cfg.eval.temperature == 0:
        yield (
            f"eval.samples={cfg.eval.samples} are all alike with eval.temperature=0: set samples=1, or a "
            f"temperature above 0"
        )
    for env in cfg.all_envs:
        if env.id != "ARL/TIRMath-v0" or env.kwargs.get("dataset") != "original":
            continue
        if cfg.eval.every:
            yield (
                f"eval.every={cfg.eval.every}: a file of original problems is one split, so that validation "
                f"would play the training tasks; set eval.every=0, and measure with `arl-gym eval {env.id} "
                "--env data=FILE`"
            )
        if cfg.clone.before and not cfg.clone.data:
            yield (
                "clone.before=true: original problems come without programs, so that there is no expert to "
                "clone; name recorded episodes in clone.data, or set clone.before=false"
            )


def _raised(check: Callable[[RunConfig], object], cfg: RunConfig) -> Iterator[str]:
    """Yield what a check of another module complains of."""
    try:
        check(cfg)
    except ConfigError as err:
        yield str(err)
