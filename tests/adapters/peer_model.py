"""A class of annotated fields, in place of pydantic in the peers of these tests."""

import inspect
from typing import Any, Self


class Model:
    """Takes the annotated fields and no others; those without a default are required."""

    def __init__(self, **fields: Any):
        known: dict[str, Any] = {}
        for cls in reversed(type(self).__mro__):
            names = inspect.get_annotations(cls)
            known.update({name: cls.__dict__.get(name, ...) for name in names})
        values = {**known, **fields}
        missing = [name for name, value in values.items() if value is ...]
        if fields.keys() - known.keys() or missing:
            raise TypeError(f"{type(self).__name__}: got {sorted(fields)}, missing {missing}")
        self.__dict__.update(values)

    def model_dump(self) -> dict[str, Any]:
        return dict(vars(self))

    def model_copy(self, *, update: dict[str, Any]) -> Self:
        return type(self)(**{**vars(self), **update})
