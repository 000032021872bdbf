"""What all tests share: no threads to fight over, no model hub, no user cache, and the reference data.

Nothing here imports torch: most tests must run without it.
"""

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import pytest_randomly

# Before any test module can import torch or numpy: both read these once, at import.
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ["HF_HUB_OFFLINE"] = "1"
os.environ["TOKENIZERS_PARALLELISM"] = "false"

ROOT = Path(__file__).resolve().parent.parent


def pytest_configure() -> None:
    """Replace the seeders that packages registered with pytest-randomly by one for torch.

    deepspeed's imports deepspeed and torch at the start of every run: five seconds, and torch in every test.
    """
    pytest_randomly.entrypoint_reseeds = [_seed_torch]


def _seed_torch(seed: int) -> None:
    if "torch" in sys.modules:
        sys.modules["torch"].manual_seed(seed)


def require(condition: bool, reason: str) -> None:
    """Skip the test unless `condition` holds; with CI=true fail instead, because CI must test everything."""
    if condition:
        return
    if os.environ.get("CI") == "true":
        pytest.fail(f"CI must not skip this: {reason}", pytrace=False)
    pytest.skip(reason)


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """Return the folder of reference data that lies beside a developer's checkout."""
    path = ROOT.parent / "shared" / "data"
    require(path.is_dir(), "no reference data beside the checkout (../shared/data)")
    return path


@pytest.fixture(scope="session", autouse=True)
def _own_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("ARL_GYM_CACHE", str(tmp_path_factory.mktemp("cache")))
        yield
