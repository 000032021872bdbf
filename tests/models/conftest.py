"""The real models that `make test-models` fetches."""

from pathlib import Path

import pytest

from tests.conftest import ROOT, require


@pytest.fixture(scope="session")
def smollm2() -> Path:
    """Return the folder of SmolLM2-135M-Instruct."""
    return _fetched("smollm2")


@pytest.fixture(scope="session")
def qwen3() -> Path:
    """Return the folder of Qwen3's tokenizer and chat template."""
    return _fetched("qwen3-tokenizer")


def _fetched(name: str) -> Path:
    path = ROOT / ".models" / name
    require(path.is_dir(), f"no .models/{name}: make test-models fetches it")
    return path
