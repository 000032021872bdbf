"""What a configuration does that may not be meant.

    for line in config_notes(cfg, cuda=True):
        print(line)

Nothing here stops a run; what does is in `checks`.
"""

from collections.abc import Iterator, Mapping

from arl_gym.envs import ENVS
from arl_gym.train.config import EnvConfig, RunConfig, dial


def config_notes(cfg: RunConfig, *, cuda: bool) -> list[str]:
    """Return what runs, but perhaps not as meant, a line each.

    Args:
        cfg: A configuration without conflicts.
        cuda: Whether the machine that is to run it has a GPU.
    """
    rules = (_unused_dials, _single_update, _ratios, _lengths, _shares, _attention)
    notes = [line for rule in rules for line in rule(cfg)]
    return notes if cuda else [*notes, *_without_gpu(cfg)]


def _unused_dials(cfg: RunConfig) -> Iterator[str]:
    """Find dials that are set, but that another dial switches off."""
    loss, a, default = cfg.loss, cfg.advantage, RunConfig()
    off: Mapping[str, tuple[bool, tuple[str, ...]]] = {
        f"loss.policy is {loss.policy!r}": (
            loss.policy != "sapo",
            ("loss.sapo_tau_pos", "loss.sapo_tau_neg"),
        ),
        f"CISPO is off (loss.policy={loss.policy!r})": (loss.policy != "cispo", ("loss.cispo_sides",)),
        "loss.mask_delta masks nothing": (loss.mask_delta is None, ("loss.mask_denominator",)),
        f"loss.aggregation is {loss.aggregation!r}": (
            loss.aggregation != "seq-mean-token-sum-norm",
            ("loss.aggregation_tokens",),
        ),
        f"the ratio's own span, loss.ratio_level={loss.ratio_level!r}, decides": (
            loss.ratio_level != "token",
            ("loss.sequence",),
        ),
        "loss.kl_coef=0 loads no reference model": (
            loss.kl_coef == 0,
            ("loss.kl_type", "optim.offload_reference"),
        ),
        "advantage.step_weight=0 switches the step part off": (
            a.step_weight == 0,
            ("advantage.anchor_similarity",),
        ),
        "advantage.empg=false": (
            not a.empg,
            ("advantage.empg_k", "advantage.empg_k_future", "advantage.empg_zeta"),
        ),
        "advantage.overlong_penalty=0": (a.overlong_penalty == 0, ("advantage.overlong_buffer",)),
        "filter.enable=false": (not cfg.filter.enable, ("filter.oversample", "filter.metric")),
        f"optim.minibatch_rows={cfg.optim.minibatch_rows} decides": (
            cfg.optim.minibatch_rows > 0,
            ("optim.minibatches",),
        ),
        "model.lora_rank=0": (cfg.model.lora_rank == 0, ("model.lora_targets",)),
        f"only the model 'tiny' takes words, and model.path is {cfg.model.path!r}": (
            cfg.model.path != "tiny",
            ("model.words",),
        ),
    }
    for why, (is_off, keys) in off.items():
        for key in keys:
            if is_off and (value := dial(cfg, key)) != dial(default, key):
                yield f"{key}={value!r} has no effect: {why}"
    if cfg.filter.enable and cfg.filter.cold_start_steps >= cfg.steps:
        yield f"filter.cold_start_steps={cfg.filter.cold_start_steps} of steps={cfg.steps}: it never filters"
    for env in cfg.all_envs:
        tags = ENVS[env.id].format if env.format == "default" and env.id in ENVS else env.format
        if tags == "none" and env.penalise == "format" and env.penalty != EnvConfig.penalty:
            yield f"env.penalty={env.penalty} has no effect: {env.id} asks for no format"


def _single_update(cfg: RunConfig) -> Iterator[str]:
    if cfg.optim.minibatches > 1 or cfg.optim.minibatch_rows > 0:
        return
    yield (
        "optim.minibatches=1: the one update of a batch is on-policy, all its ratios are 1, and "
        "loss.clip_low and clip_high never act"
    )
    if cfg.loss.mask_delta is not None:
        yield f"loss.mask_delta={cfg.loss.mask_delta} acts after the first update of a batch: never, with one"


def _ratios(cfg: RunConfig) -> Iterator[str]:
    if cfg.loss.policy != "clip" and cfg.loss.ratio_level != "token":
        yield (
            f"loss.policy={cfg.loss.policy!r} with ratios per {cfg.loss.ratio_level} is no published method: "
            "its papers have loss.ratio_level='token'"
        )
    if cfg.loss.ratio_level == "trajectory" and any(not is_dialogue(env) for env in cfg.all_envs):
        yield (
            "loss.ratio_level='trajectory' with windowed prompts: all turns of an episode go through the "
            "model together, which may take several times optim.micro_tokens"
        )


def _lengths(cfg: RunConfig) -> Iterator[str]:
    context = cfg.model.max_context
    if cfg.optim.micro_tokens < context:
        yield (
            f"optim.micro_tokens={cfg.optim.micro_tokens} is less than a row may have "
            f"(model.max_context={context}): long rows go through alone"
        )
    for env in cfg.all_envs:
        turns = env.kwargs.get("max_steps")
        if is_dialogue(env) and isinstance(turns, int) and turns * cfg.rollout.max_tokens > context:
            yield (
                f"a dialogue of {env.id} may have {turns} turns of "
                f"rollout.max_tokens={cfg.rollout.max_tokens}: those beyond model.max_context={context} end "
                "early, as context_full"
            )


def _shares(cfg: RunConfig) -> Iterator[str]:
    total = sum(env.weight for env in cfg.all_envs)
    for i, env in enumerate(cfg.all_envs):
        if (share := cfg.rollout.groups * env.weight / total) < 1:
            yield (
                f"envs.{i}.weight={env.weight} of {total:g} is {share:.2f} of the {cfg.rollout.groups} "
                "groups of a step: less than one"
            )


def _attention(cfg: RunConfig) -> Iterator[str]:
    attention = cfg.model.attn_implementation
    if cfg.optim.share_prompts and attention not in ("", "sdpa"):
        yield (
            f"optim.share_prompts=True has no effect: with model.attn_implementation={attention!r} a prompt "
            "is read once for every row, only 'sdpa' can share it"
        )


def _without_gpu(cfg: RunConfig) -> Iterator[str]:
    if cfg.model.dtype == "bfloat16":
        yield "model.dtype='bfloat16' is several times slower than 'float32' on a CPU"
    if cfg.model.attn_implementation.startswith("flash_attention"):
        yield f"model.attn_implementation={cfg.model.attn_implementation!r} needs a GPU"
    offloaded = [f"optim.zero.{key}" for key in cfg.optim.zero if key.startswith("offload")]
    if cfg.optim.offload_reference:
        offloaded.append("optim.offload_reference")
    for key in offloaded:
        yield f"{key} has no effect without a GPU"


def is_dialogue(env: EnvConfig) -> bool:
    """Return whether an episode is one growing dialogue, and so one row, instead of a row for every turn."""
    if env.window == "default":
        return env.id in ENVS and ENVS[env.id].window is None
    return env.window == "dialogue"
