import numba
import pytest

from arl_gym.envs.sokoban import compiled
from arl_gym.errors import DependencyMissing, UnknownNameError


def test_where_nothing_can_be_cached_a_kernel_is_compiled_all_the_same(monkeypatch):
    njit = numba.njit

    def no_locator(*args, cache=False):
        if cache:
            raise RuntimeError("cannot cache function: no locator available")
        return njit(*args)

    monkeypatch.setattr(numba, "njit", no_locator)
    twice = compiled.jit(lambda n: n + n)
    assert twice(21) == 42


def test_a_backend_is_what_was_asked_for_or_what_is_installed(monkeypatch):
    assert [compiled.use_numba(backend) for backend in ("auto", "numba", "numpy")] == [True, True, False]
    monkeypatch.setattr(compiled, "numba_installed", lambda: False)
    assert [compiled.use_numba(backend) for backend in ("auto", "numpy")] == [False, False]
    with pytest.raises(DependencyMissing, match=r"pip install 'arl-gym\[fast\]'"):
        compiled.use_numba("numba")
    with pytest.raises(UnknownNameError, match="did you mean 'numba'"):
        compiled.use_numba("numa")
