import warnings
from collections.abc import Iterator

import pytest

from arl_gym.envs.tirmath.sandbox import Sandbox, SandboxUnavailable
from tests.conftest import require


def sandbox_of(tier: str, **limits) -> Sandbox:
    pytest.importorskip("sympy")
    try:
        return Sandbox(tier, **limits)
    except SandboxUnavailable as error:
        require(False, str(error))
        raise


@pytest.fixture(scope="session")
def auto() -> Iterator[Sandbox]:
    with sandbox_of("auto", timeout_s=20.0) as made:
        yield made


@pytest.fixture(scope="session", params=["namespace", "landlock"])
def sandbox(request) -> Iterator[Sandbox]:
    with sandbox_of(request.param, timeout_s=20.0) as made:
        yield made


@pytest.fixture(scope="session")
def unsafe() -> Iterator[Sandbox]:
    pytest.importorskip("sympy")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        made = Sandbox("unsafe", timeout_s=20.0)
    with made:
        yield made
