"""The few names of torchrl that the adapter uses, as plain records."""

from types import ModuleType
from typing import Any

CONVERSIONS: dict[type, Any] = {}


class Spec:
    dtype: Any
    device: Any
    example_data: Any

    def __init__(self, shape, **kwargs):
        self.shape = shape
        self.__dict__.update(kwargs)

    def encode(self, value):
        return value


class NonTensor(Spec):
    pass


class Unbounded(Spec):
    pass


class Composite(dict[str, Spec]):
    pass


class GymWrapper:
    def __init__(self, env):
        self.env = env
        space = env.observation_space
        self.observation_spec = CONVERSIONS[type(space)](
            space, dtype=None, device="cpu", categorical_action_encoding=False
        )

    def set_info_dict_reader(self, reader):
        self.reader = reader
        return self


class BaseInfoDictReader:
    pass


def register_gym_spec_conversion(space):
    def register(convert):
        CONVERSIONS[space] = convert
        return convert

    return register


def modules() -> dict[str, ModuleType]:
    """Return what the adapter's imports find, with no conversion registered."""
    CONVERSIONS.clear()
    names: dict[str, dict[str, Any]] = {
        "torchrl": {},
        "torchrl.data": {"Composite": Composite, "NonTensor": NonTensor, "Unbounded": Unbounded},
        "torchrl.envs": {"GymWrapper": GymWrapper},
        "torchrl.envs.gym_like": {"BaseInfoDictReader": BaseInfoDictReader},
        "torchrl.envs.libs": {},
        "torchrl.envs.libs.gym": {"register_gym_spec_conversion": register_gym_spec_conversion},
    }
    found = {name: ModuleType(name) for name in names}
    for name, members in names.items():
        vars(found[name]).update(members)
    return found
