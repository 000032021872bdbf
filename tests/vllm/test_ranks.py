import numpy as np
import pytest

from tests.train.ranks import run_ranks
from tests.vllm.jobs import CASES

pytestmark = pytest.mark.timeout(300)  # two processes import torch, DeepSpeed and vLLM


@pytest.fixture(scope="module")
def two(tmp_path_factory):
    """What two ranks find, each with an engine of its own."""
    found = run_ranks("tests.vllm.jobs", ["transfers"], tmp_path_factory.mktemp("two"))
    return [{key.removeprefix("transfers/"): value for key, value in r.items()} for r in found]


@pytest.mark.parametrize("case", CASES)
def test_engines_get_whole_weights_from_ranks_that_share_them(two, case):
    for results in two:
        assert results[f"{case}/before/difference"] < 1e-5
        assert results[f"{case}/after/difference"] < 1e-5


@pytest.mark.parametrize("case", CASES)
def test_every_stage_gives_the_same_start_and_ranks_sample_for_themselves(two, case):
    ids = [results[f"{case}/before/ids"] for results in two]
    assert not np.array_equal(*ids)
    for mine, results in zip(ids, two, strict=True):
        assert np.array_equal(mine, results["stage 0/before/ids"])


@pytest.mark.parametrize("case", CASES)
def test_an_update_reaches_the_engines(two, case):
    for results in two:
        before, after = (results[f"{case}/{moment}/logprobs"] for moment in ("before", "after"))
        assert abs(before[0] - after[0]) > 1e-3


def test_tokens_are_counted_over_all_ranks(two):
    for results in two:
        assert results["stage 0/before/prompt_tokens"] == 2 * results["stage 0/before/own_tokens"]
