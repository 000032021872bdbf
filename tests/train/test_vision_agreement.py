import pytest
import torch

from arl_gym.train.model import load_model
from arl_gym.train.policies.agreement import agreement
from arl_gym.train.policies.hf import HFPolicy
from tests.train.vision_jobs import vision_engine


@pytest.mark.parametrize(("picture", "shows"), [(False, False), (True, True)])
def test_a_tower_that_stays_behind_shows_in_the_answer_to_a_picture(picture, shows):
    engine, codec = vision_engine(reference=False)
    behind = load_model("tiny-vl", dtype="float32", seed=1).model
    policy = HFPolicy(behind, codec, max_tokens=8, temperature=1.0, batch_size=1, max_context=1024)
    assert agreement(policy, engine, codec, 8, picture=picture).max < 1e-5
    with torch.no_grad():
        for name, parameter in behind.named_parameters():
            if "visual" in name:
                parameter.add_(0.01)
    found = agreement(policy, engine, codec, 8, picture=picture)
    assert (found.mean > 1e-4) == shows
