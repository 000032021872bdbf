"""The adapter to torchrl against a stand-in for it; `apart/test_torchrl.py` has the library itself."""

import importlib
import sys

import pytest
import torch

from arl_gym.core import INFO_TYPES, Chat, Unicode
from arl_gym.errors import DependencyMissing
from tests.adapters import peer_torchrl

ADAPTER = "arl_gym.adapters.torchrl"


@pytest.fixture
def adapter(monkeypatch):
    for name, module in peer_torchrl.modules().items():
        monkeypatch.setitem(sys.modules, name, module)
    monkeypatch.delitem(sys.modules, ADAPTER, raising=False)
    yield importlib.import_module(ADAPTER)
    sys.modules.pop(ADAPTER, None)


def test_without_the_library_the_import_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "torchrl", None)
    monkeypatch.delitem(sys.modules, ADAPTER, raising=False)
    with pytest.raises(DependencyMissing, match=r"pip install 'arl-gym\[torchrl\]'"):
        importlib.import_module(ADAPTER)


def test_importing_it_registers_text_and_chat_as_data_that_are_no_tensors(adapter):
    for space in (Unicode(), Chat()):
        spec = peer_torchrl.CONVERSIONS[type(space)](space, device="cpu", remap_state_to_observation=True)
        assert isinstance(spec, peer_torchrl.NonTensor)
        assert (spec.shape, spec.device) == ((), "cpu")
        assert space.contains(spec.example_data)


def test_the_reader_copies_every_info_key_under_its_type(adapter):
    env = adapter.make_torchrl("ARL/Sokoban-v0")
    _, info = env.env.reset(seed=0)
    read: dict[str, object] = {}

    class Data:
        set = staticmethod(read.__setitem__)

    env.reader({**info, "another": 1}, Data())
    assert read == {key: info[key] for key in INFO_TYPES}
    numbers = {
        key: spec.dtype
        for key, spec in env.reader.info_spec.items()
        if isinstance(spec, peer_torchrl.Unbounded)
    }
    assert numbers == {"success": torch.bool, "score": torch.float32, "action_valid": torch.bool}


def test_other_keys_are_read_when_they_are_named(adapter):
    env = adapter.make_torchrl("ARL/Sokoban-v0", infos={"moves_left": int, "deadlock": str})
    spec = env.reader.info_spec
    assert spec["moves_left"].dtype == torch.int64
    assert isinstance(spec["deadlock"], peer_torchrl.NonTensor)
