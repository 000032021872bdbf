"""What importing loads: playing needs no torch, and `import arl_gym` needs next to nothing."""

import json
import subprocess
import sys

from tests.conftest import ROOT

HEAVY = {
    *("torch", "transformers", "deepspeed", "vllm", "numba", "matplotlib", "tyro", "PIL"),
    *("textworld", "alfworld", "spacy", "flask", "selenium", "sympy"),
}
TORCH_FREE_TRAINING = {
    *("config", "methods", "advantages", "filtering", "metrics", "plots", "memory", "notes"),
    *("alarms", "conditions", "recordings", "repetition", "tokens", "viewer"),
}
OF_LIBRARIES = {
    "arl_gym.ray_worker",
    *(f"arl_gym.adapters.{library}" for library in ("gem", "openenv", "rllib", "sb3", "skyrl")),
    *(f"arl_gym.adapters.{library}" for library in ("torchrl", "trl", "verifiers", "verl")),
}
"""Modules that import a library of others, and say so where it is missing."""
TRAINING_COMMANDS = "arl_gym.cli.training"


def fresh_python(code: str, *args: str) -> str:
    """Run `code` in a new interpreter and return what it prints."""
    result = subprocess.run(
        [sys.executable, "-c", code, *args], cwd=ROOT, capture_output=True, text=True, timeout=60
    )
    assert result.returncode == 0, result.stderr
    return result.stdout


def modules_without_torch() -> list[str]:
    """Return the dotted names of every module that must import where torch is absent."""
    files = sorted((ROOT / "arl_gym").rglob("*.py"))
    names = [".".join(f.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__") for f in files]
    return [
        name
        for name in names
        if name.removeprefix("arl_gym.train.") in TORCH_FREE_TRAINING
        or not (name.startswith(("arl_gym.train.", TRAINING_COMMANDS)) or name.endswith(".__main__"))
    ]


def test_import_arl_gym_loads_no_heavy_module():
    loaded = fresh_python(
        "import arl_gym, sys; print(*{name.partition('.')[0] for name in sys.modules})"
    ).split()
    assert "gymnasium" in loaded
    assert not HEAVY & set(loaded)


def test_import_arl_gym_loads_no_environment():
    loaded = fresh_python("import arl_gym, sys; print(*sys.modules)").split()
    assert [name for name in loaded if name.startswith("arl_gym.envs.")] == []


def test_every_module_outside_the_trainer_imports_without_torch():
    code = """
import importlib, json, sys
for name in ("torch", "transformers", "deepspeed", "vllm"):
    sys.modules[name] = None  # importing it raises ImportError
failures = {}
for name in sys.argv[1:]:
    try:
        importlib.import_module(name)
    except ImportError as error:
        failures[name] = f"{type(error).__name__}: {error}"
print(json.dumps(failures))
"""
    names = modules_without_torch()
    assert {"arl_gym.core", "arl_gym.agents.types", "arl_gym.train.config"} <= set(names)
    failures = json.loads(fresh_python(code, *names))
    assert {name: why for name, why in failures.items() if name not in OF_LIBRARIES} == {}
    assert [why for why in failures.values() if not why.startswith("DependencyMissing: ")] == []
