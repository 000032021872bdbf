"""The configuration of a run: frozen dataclasses, TOML presets, dotted overrides.

Order: dataclass default < method preset < `--config file.toml` < command line. The resolved configuration is
written to the run folder as `config.toml`; that file runs the run again.
"""

import dataclasses
import tomllib
import types
import typing
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import reduce
from pathlib import Path
from typing import Any, Literal, TypeVar

from arl_gym.errors import ConfigError, DependencyMissing, UnknownNameError

C = TypeVar("C")


@dataclass(frozen=True, kw_only=True)
class EnvConfig:
    """Which environment is played, and how it is shown to the agent."""

    id: str = "ARL/Sokoban-v0"
    """Registered id."""
    kwargs: dict[str, Any] = field(default_factory=dict)
    """Keyword arguments of the environment, e.g. `dim_room`; `split` is set by the trainer."""
    prompt: str = "default"
    """Name of the prompt layout, from the env's `prompts.py`."""
    window: int | Literal["default", "dialogue"] = "default"
    """Past turns shown in the prompt; "dialogue" is append-only, "default" the env's own choice."""
    format: Literal["default", "strict", "lenient", "action_only", "none"] = "default"
    """How the response must look."""
    penalty: float = 0.1
    """Subtracted from a turn whose format (or action) is invalid."""
    penalise: Literal["format", "action"] = "format"
    """What the penalty punishes: a broken format (paper) or an inadmissible action (released code)."""
    anchor: Literal["observation", "state"] = "observation"
    """What GiGPO groups turns by."""
    workers: int | str = 0
    """Worker processes that hold the environments; 0 keeps them in the trainer's process. "ray:N": N actors
    of a Ray cluster, "ray" one for each of its CPUs; every rank has its own."""
    step_timeout_s: float = 60.0
    """A worker that takes longer for one step is restarted; its episodes end as env_error."""
    weight: float = 1.0
    """Share of the groups in a run over several environments, relative to the other weights."""


@dataclass(frozen=True, kw_only=True)
class ModelConfig:
    """The policy model."""

    path: str = "tiny"
    """Hugging Face folder or id; "tiny" makes the small Qwen3 of `arl-gym tiny-model`, "tiny-vl" the small
    Qwen3-VL, which sees pictures."""
    words: str = ""
    """Words, with blanks between, that are one token each in the tokenizer of "tiny", also after a blank:
    short prompts make a small model quick. Other models bring their own tokenizer."""
    dtype: Literal["float32", "bfloat16"] = "float32"
    """Parameter type; float32 on CPU (bfloat16 is several times slower there)."""
    max_context: int = 2048
    """Most tokens of prompt and completion together; a prompt that leaves no room ends the episode."""
    enable_thinking: bool = True
    """Passed to chat templates that have the switch (Qwen3)."""
    chat_template_kwargs: dict[str, Any] = field(default_factory=dict)
    """Further arguments of the chat template."""
    gradient_checkpointing: bool = False
    """Recompute activations in the backward pass: less memory, about a third more time."""
    attn_implementation: str = ""
    """Attention of transformers, e.g. "sdpa" or "flash_attention_2"; empty is its own choice."""
    image_min_pixels: int = 0
    """Pictures with fewer pixels are enlarged to this many; 0 is the model folder's own setting."""
    image_max_pixels: int = 0
    """Pictures with more pixels are made smaller; 0 is the model folder's own setting."""
    lora_rank: int = 0
    """Rank of the LoRA adapter that is trained instead of the weights; 0 trains the weights."""
    lora_alpha: float = 32.0
    """LoRA's scale is `lora_alpha / lora_rank`."""
    lora_targets: str = "all-linear"
    """Modules that get an adapter: "all-linear", or names with commas between. The tower that reads pictures
    has none, unless a name says "visual."."""


@dataclass(frozen=True, kw_only=True)
class RolloutConfig:
    """How episodes are generated."""

    groups: int = 16
    """Groups (tasks) per training step."""
    group_size: int = 8
    """Episodes per group, all of one task."""
    max_tokens: int = 512
    """Most tokens of one response."""
    temperature: float = 1.0
    """Sampling temperature; the trainer's log-probs use the same."""
    batch_size: int = 64
    """Most rows generated together by the transformers policy."""
    backend: Literal["hf", "vllm", "server"] = "hf"
    """Who generates: the trained model itself through transformers, a vLLM engine in the process of every
    rank, or vLLM servers elsewhere."""


@dataclass(frozen=True, kw_only=True)
class VLLMConfig:
    """The engines of `rollout.backend` "vllm" and the servers of "server"."""

    memory: float = 0.4
    """Share of a GPU's memory that an engine takes while it generates (`gpu_memory_utilization`)."""
    tensor_parallel: int = 1
    """Consecutive ranks that share an engine of "vllm", a part each; divides the number of ranks. The first
    of them plays the episodes of all."""
    sleep: bool = True
    """Give the engine's memory back while the trainer trains; does nothing without a GPU."""
    eager: bool = False
    """Run without CUDA graphs: slower, starts at once."""
    kwargs: dict[str, Any] = field(default_factory=dict)
    """Further arguments of `vllm.LLM`, e.g. `max_num_seqs`."""
    check_tokens: int = 16
    """Tokens that are generated after every transfer of weights and scored by the trainer; 0 checks none."""
    max_difference: float = 0.0
    """Mean difference of their log-probabilities above which the run stops; 0 is 1e-4 in float32 and 0.05 in
    bfloat16."""
    urls: str = ""
    """Addresses of the servers, with blanks between, e.g. "http://gpu1:8000 http://gpu2:8000"."""
    weights_folder: str = ""
    """Folder that the trainer and the servers see under one name: weights go through it."""


@dataclass(frozen=True, kw_only=True)
class FilterConfig:
    """Dynamic filtering: keep groups that carry signal."""

    enable: bool = True
    """Off: every group is trained on (uniform groups then have zero episode advantage)."""
    metric: Literal["return", "success"] = "return"
    """What must differ within a group: env return before penalties, or success (the paper's formula)."""
    tolerance: float = 1e-6
    """Largest spread of the metric that still counts as uniform."""
    oversample: float = 1.0
    """Groups played in a try, as a multiple of `rollout.groups`; more than 1 needs fewer, larger tries."""
    mask_invalid: bool = False
    """Episodes with an invalid turn (in TIR-Math a void one) carry no loss, but count for their group."""
    max_tries: int = 3
    """Rollouts per training step at most; the last one is backfilled with its own uniform groups."""
    cold_start_steps: int = 0
    """The filter is active from step `cold_start_steps + 1` on."""


@dataclass(frozen=True, kw_only=True)
class AdvantageConfig:
    """From rewards to one advantage per turn."""

    group_stats: Literal["trajectory", "turn"] = "trajectory"
    """Mean and std over trajectories (paper) or over turn rows (released code: long episodes weigh more)."""
    normalise: Literal["mean_std", "mean"] = "mean_std"
    """Whether both parts are divided by the standard deviation."""
    normalise_penalty: bool = False
    """Subtract a turn's penalties before normalising (released code) instead of after it, where they keep
    their size."""
    step_weight: float = 1.0
    """Weight of GiGPO's step advantage; 0 gives the plain group-relative advantage."""
    gamma: float = 0.95
    """Discount per turn of the step part, in (0, 1]."""
    step_anywhere: bool = False
    """Allow the step part in environments whose turns never face the same observation (TIR-Math)."""
    anchor_similarity: float = 1.0
    """Observations at least this alike (difflib's ratio) share an anchor; 1 asks for equal ones. Of use for
    anchors that are text; what is a digest is alike only if equal."""
    empg: bool = False
    """Scale advantages by the turn's entropy and add a bonus for clear next turns (EMPG)."""
    empg_k: float = 1.0
    """EMPG's sharpness of the scaling."""
    empg_k_future: float = 1.0
    """EMPG's sharpness of the bonus."""
    empg_zeta: float = 0.05
    """EMPG's weight of the bonus."""
    overlong_penalty: float = 0.0
    """Largest penalty of a response that runs into the last `overlong_buffer` tokens of its limit (DAPO)."""
    overlong_buffer: int = 0
    """Tokens before `rollout.max_tokens` over which that penalty grows; 0 is a fifth of the limit."""


@dataclass(frozen=True, kw_only=True)
class LossConfig:
    """From advantages to a scalar."""

    policy: Literal["clip", "sapo", "cispo"] = "clip"
    """Surrogate: clipped (with ratios over turns or trajectories: GSPO), SAPO's soft gate, or CISPO's
    stop-gradient weight."""
    ratio_level: Literal["token", "turn", "trajectory"] = "turn"
    """Span over which the importance ratio is a geometric mean."""
    sequence: Literal["turn", "trajectory"] = "turn"
    """What counts as a sequence (for the mask, the "seq" aggregations and SAPO's sign) where ratios are per
    token; otherwise it is the span of the ratio. Dialogues in one row (TIR-Math): "trajectory" is the row."""
    clip_low: float = 3e-3
    """Lower clip distance from 1, same scale as `ratio_level`; 1 is no bound. SAPO clips nothing: there the
    bounds only say which ratios the statistics call outside."""
    clip_high: float = 4e-3
    """Upper clip distance from 1."""
    dual_clip_c: float | None = None
    """Cap of the loss at `-A * c` where A < 0; None is off (the paper has none). Only for clipped token
    ratios."""
    sapo_tau_pos: float = 1.0
    """SAPO's temperature of sequences with a positive advantage."""
    sapo_tau_neg: float = 1.05
    """SAPO's temperature of the others."""
    cispo_sides: Literal["signed", "both"] = "signed"
    """CISPO bounds the weight below where A < 0 and above where A > 0 (paper), or on both sides."""
    mask_delta: float | None = None
    """Sequences with a negative advantage whose mean of old minus new log-probability exceeds this carry no
    policy loss; None masks none."""
    mask_denominator: Literal["all", "kept"] = "all"
    """Whether masked sequences still count in the policy term's denominators (paper) or not (released code;
    takes a second forward pass without gradient)."""
    tis_cap: float | None = None
    """Truncated importance sampling: the policy loss is weighted by the ratio of the trainer's to the
    sampler's probability, at most this; None is off."""
    aggregation: Literal[
        "token-mean", "seq-mean-token-mean", "seq-mean-token-sum", "seq-mean-token-sum-norm"
    ] = "token-mean"
    """How token losses become one number; all denominators are global."""
    aggregation_tokens: int = 0
    """The constant length that "seq-mean-token-sum-norm" divides by."""
    kl_coef: float = 0.01
    """Weight of the divergence to the reference model; 0 loads no reference model."""
    kl_type: Literal["k1", "abs", "k2", "k3", "k3+"] = "k3"
    """Estimator of the divergence; "k3+" has the value of k3 and the gradient of k2."""
    kl_gradient: bool = True
    """False: the divergence is logged but not optimised."""
    entropy_coef: float = 0.0
    """Weight of the entropy bonus; 0 builds no graph for it."""


@dataclass(frozen=True, kw_only=True)
class OptimConfig:
    """The optimiser and the engine."""

    lr: float = 1e-6
    """Learning rate of AdamW."""
    lr_final: float = 1.0
    """Factor that the learning rate reaches linearly at the last step; 1 keeps it constant."""
    warmup_steps: int = 0
    """Optimiser steps of linear warm-up."""
    weight_decay: float = 0.01
    """AdamW's decoupled decay."""
    grad_clip: float = 1.0
    """Largest gradient norm."""
    minibatches: int = 1
    """Optimiser steps per rollout batch; whole groups are never split over them."""
    minibatch_rows: int = 0
    """Rows per optimiser step, about: the number of steps then follows from the rows of the batch, and
    `minibatches` is not used; 0 is off."""
    micro_tokens: int = 16384
    """Padded tokens per forward pass at most. Those of pictures count like any other; what the vision tower
    needs for the patches behind them comes on top."""
    share_prompts: bool = True
    """Read a prompt that several rows of a forward pass share once (models with rotary positions and "sdpa"
    attention over all tokens); the same numbers up to rounding."""
    zero_stage: Literal[0, 1, 2, 3] = 2
    """DeepSpeed's ZeRO stage."""
    zero: dict[str, Any] = field(default_factory=dict)
    """Further settings of DeepSpeed's `zero_optimization`, e.g. `offload_optimizer = {device = "cpu"}`."""
    offload_reference: bool = False
    """Keep the reference model on the CPU while it is not scoring."""


@dataclass(frozen=True, kw_only=True)
class CloneConfig:
    """Behaviour cloning, from the env's expert or from recorded episodes."""

    before: bool = False
    """`arl-gym train` begins with collecting and cloning, and trains on from there."""
    data: str = ""
    """Recorded episodes to clone (`arl-gym collect`); empty lets the expert play."""
    allow_test: bool = False
    """Clone recorded episodes of test tasks too: what is cloned from them cannot be tested on them."""
    episodes: int = 1000
    """Expert episodes on training tasks; a fixed set."""
    val_episodes: int = 200
    """Expert episodes on validation tasks, for the validation loss."""
    thoughts: bool = True
    """Clone the expert's short thought too; off leaves the thought empty."""
    steps: int = 200
    """Optimiser steps at most."""
    batch_rows: int = 128
    """Turns per optimiser step."""
    lr: float = 1e-3
    """Learning rate of AdamW, constant."""
    eval_every: int = 20
    """Optimiser steps between two looks at the validation loss."""
    patience: int = 3
    """Looks without a better validation loss before cloning stops."""
    stop_loss: float = 0.0
    """Cloning stops at the first look with a validation loss (nats per token) at or below this: a start that
    leaves room for reinforcement learning, alike for every seed. 0 never stops it."""


@dataclass(frozen=True, kw_only=True)
class EvalConfig:
    """Evaluation during a run."""

    every: int = 0
    """Training steps between evaluations on the validation split; 0 is never."""
    episodes: int = 128
    """Tasks of one evaluation: the first ones of the split, always the same."""
    samples: int = 1
    """Episodes of each task."""
    temperature: float = 0.0
    """0 is greedy."""


@dataclass(frozen=True, kw_only=True)
class CheckpointConfig:
    """What is kept to go on from."""

    every: int = 50
    """Training steps between checkpoints; 0 keeps only that of a run that was told to stop."""
    keep: int = 2
    """Newest checkpoints that are kept, beside the best by success in evaluation."""


@dataclass(frozen=True, kw_only=True)
class MonitorConfig:
    """Alarms for a run that collapses, and when to give up. A limit of 0 is off."""

    min_format_valid: float = 0.5
    """Share of turns with a valid format below which an alarm is raised."""
    max_kl: float = 1.0
    """Divergence to the sampling policy, and to the reference, in nats per token."""
    max_grad_norm: float = 100.0
    """Gradient norm before clipping."""
    max_repeated: float = 0.3
    """Share of responses that repeat themselves."""
    min_entropy: float = 0.01
    """Entropy in nats per token."""
    max_env_errors: float = 0.2
    """Share of a step's episodes that the environment's failure ended; the run stops above it."""


@dataclass(frozen=True, kw_only=True)
class LogConfig:
    """Where the metrics go beside `metrics.jsonl`."""

    tensorboard: bool = False
    """Write `tensorboard/` in the run folder."""
    wandb_project: str = ""
    """Project at Weights & Biases; empty is off."""


@dataclass(frozen=True, kw_only=True)
class RunConfig:
    """A whole run. Every default is SAMPO's."""

    method: str = "SAMPO"
    """Row of the method table; sets the dials of `filter`, `advantage` and `loss` that nothing else sets."""
    variant: Literal["paper", "released"] = "paper"
    """Where the paper and its released code differ: whose settings the method has."""
    paper: bool = False
    """A run whose results are to stand beside the paper's: generated data is refused where the benchmark has
    its own (everywhere but in Sokoban, whose rooms are always drawn)."""
    seed: int = 0
    """Seeds tasks, sampling, initial weights and data order."""
    steps: int = 200
    """Training steps (rollout batches)."""
    max_train_s: float = 0.0
    """Training stops after the step that passes this many seconds; 0 is no limit. A limit makes the number of
    steps depend on the machine."""
    run_dir: str = "runs/default"
    """Folder of everything the run writes; must be new or empty."""
    trajectories_every: int = 10
    """Training steps between two files of recorded trajectories; the last step has one too, 0 is never."""
    env: EnvConfig = field(default_factory=EnvConfig)
    envs: tuple[EnvConfig, ...] = ()
    """Several environments, played side by side; empty: only `env`."""
    model: ModelConfig = field(default_factory=ModelConfig)
    rollout: RolloutConfig = field(default_factory=RolloutConfig)
    vllm: VLLMConfig = field(default_factory=VLLMConfig)
    filter: FilterConfig = field(default_factory=FilterConfig)
    advantage: AdvantageConfig = field(default_factory=AdvantageConfig)
    loss: LossConfig = field(default_factory=LossConfig)
    optim: OptimConfig = field(default_factory=OptimConfig)
    clone: CloneConfig = field(default_factory=CloneConfig)
    eval: EvalConfig = field(default_factory=EvalConfig)
    checkpoint: CheckpointConfig = field(default_factory=CheckpointConfig)
    monitor: MonitorConfig = field(default_factory=MonitorConfig)
    log: LogConfig = field(default_factory=LogConfig)

    @property
    def all_envs(self) -> tuple[EnvConfig, ...]:
        """The environments that are played."""
        return self.envs or (self.env,)


def from_mapping(cls: type[C], values: Mapping[str, Any], where: str, base: C | None = None) -> C:
    """Build (or change) a config dataclass from nested mappings, checking every key and type.

    Raises:
        UnknownNameError: If a key is unknown (names the nearest).
        ConfigError: If a value has the wrong type.
    """
    hints = typing.get_type_hints(cls)
    current = base if base is not None else cls()
    changes: dict[str, Any] = {}
    for key, value in values.items():
        if key not in hints:
            raise UnknownNameError("config key", key, hints, where)
        hint, place = hints[key], f"{where}.{key}" if where else key
        if dataclasses.is_dataclass(hint):
            changes[key] = _section(hint, value, place, getattr(current, key))
        elif typing.get_origin(hint) is tuple:
            if not isinstance(value, list):
                raise ConfigError(f"{place} is a list of sections: expected [[{place}]], got {value!r}")
            item = typing.get_args(hint)[0]
            changes[key] = tuple(_section(item, v, f"{place}.{i}", None) for i, v in enumerate(value))
        else:
            changes[key] = _checked(hint, value, place)
    return dataclasses.replace(current, **changes)  # type: ignore[type-var]


def _section(hint: Any, value: Any, place: str, base: Any) -> Any:
    if not isinstance(value, Mapping):
        raise ConfigError(f"{place} is a section: expected a table, got {value!r}")
    return from_mapping(typing.cast(type[Any], hint), value, place, base)


def _checked(hint: Any, value: Any, place: str) -> Any:
    if value == "none" and _fits(hint, None):
        return None  # TOML has no null
    if not _fits(hint, value):
        expected = hint.__name__ if isinstance(hint, type) else str(hint).replace("typing.", "")
        raise ConfigError(f"{place}: expected {expected}, got {type(value).__name__} {value!r}")
    return float(value) if hint is float else value


def _fits(hint: Any, value: Any) -> bool:
    origin = typing.get_origin(hint)
    if origin is Literal:
        return any(type(value) is type(a) and value == a for a in typing.get_args(hint))
    if origin in (typing.Union, types.UnionType):
        return any(_fits(arg, value) for arg in typing.get_args(hint))
    if origin is dict:
        return isinstance(value, dict)
    if hint is float:
        return isinstance(value, (int, float)) and not isinstance(value, bool)
    if hint is int:
        return isinstance(value, int) and not isinstance(value, bool)
    if hint is types.NoneType:
        return value is None
    return isinstance(value, hint)


def dial(cfg: RunConfig, key: str) -> Any:
    """Return the value at a dotted key, e.g. "loss.clip_low"."""
    return reduce(getattr, key.split("."), cfg)


def load_toml(path: Path) -> dict[str, Any]:
    """Read a TOML file.

    Raises:
        ConfigError: If it cannot be read or parsed.
    """
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as err:
        raise ConfigError(f"cannot read the configuration {path}: {err}") from err


def to_toml(cfg: RunConfig) -> str:
    """Return the configuration as TOML that gives it again.

    Raises:
        ConfigError: If an open table, such as `env.kwargs`, holds what TOML cannot write.
    """
    try:
        import tomli_w
    except ImportError as err:
        raise DependencyMissing("writing a configuration", "train") from err
    try:
        return tomli_w.dumps(to_mapping(cfg))
    except TypeError as err:
        raise ConfigError(f"a configuration file cannot hold this: {err}") from err


def to_mapping(cfg: Any) -> dict[str, Any]:
    """Return the config as nested dicts, None as the text "none": TOML has no null.

    It is not left out, because the method may set another value.
    """
    out: dict[str, Any] = {}
    for f in dataclasses.fields(cfg):
        value = getattr(cfg, f.name)
        if dataclasses.is_dataclass(value):
            out[f.name] = to_mapping(value)
        elif isinstance(value, tuple):
            if value:
                out[f.name] = [to_mapping(v) for v in value]
        else:
            out[f.name] = "none" if value is None else value
    return out
