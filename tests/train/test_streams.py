import json
import random

import numpy as np
import pytest
import torch

from arl_gym.errors import DataError
from arl_gym.train.streams import random_state, set_random_state


def draws():
    numpy = np.random.rand(3)  # noqa: NPY002 - the stream that libraries draw from
    return [torch.rand(3).tolist(), numpy.tolist(), random.random(), random.gauss(0, 1)]


def test_every_stream_goes_on_where_it_was_also_through_json():
    draws()
    state = json.loads(json.dumps(random_state()))
    first = draws()
    assert draws() != first
    set_random_state(state)
    assert draws() == first


def test_a_state_of_another_form_is_one_clear_error():
    with pytest.raises(DataError, match="random streams"):
        set_random_state({**random_state(), "python": [3, [1], None]})
