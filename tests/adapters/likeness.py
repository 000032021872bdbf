"""Whether a stand-in of a library has only what the library has."""

import inspect
from collections.abc import Iterator, Mapping
from importlib import import_module
from types import ModuleType
from typing import Any


def assert_like_the_library(peers: Mapping[str, ModuleType]) -> None:
    """Assert that all names of the modules, and all parameters, exist in the real ones of those names."""
    for module, names in peers.items():
        real = import_module(module)
        for name, peer in vars(names).items():
            if name.startswith("__") or inspect.ismodule(peer):
                continue
            thing = getattr(real, name)
            assert inspect.isclass(thing) == inspect.isclass(peer), name
            for key, ours, theirs in _functions(name, peer, thing):
                known = inspect.signature(theirs).parameters
                assert set(inspect.signature(ours).parameters) <= set(known), key


def _functions(name: str, peer: Any, thing: Any) -> Iterator[tuple[str, Any, Any]]:
    if not inspect.isclass(peer):
        yield name, peer, thing
        return
    for key, value in vars(peer).items():
        if inspect.isfunction(value) and not key.startswith("__"):
            yield f"{name}.{key}", value, getattr(thing, key)
