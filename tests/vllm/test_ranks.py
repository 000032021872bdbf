import numpy as np
import pytest

from tests.train.ranks import run_ranks
from tests.vllm.jobs import CASES
from tests.vllm.test_policy import both, played

pytestmark = pytest.mark.timeout(300)  # two processes import torch, DeepSpeed and vLLM


@pytest.fixture(scope="module")
def two(tmp_path_factory):
    """What two ranks find, each with an engine of its own."""
    return results_of("transfers", tmp_path_factory)


@pytest.fixture(scope="module")
def team(tmp_path_factory):
    """What two ranks find that share an engine."""
    return results_of("shared", tmp_path_factory)


def results_of(job, tmp_path_factory):
    found = run_ranks("tests.vllm.jobs", [job], tmp_path_factory.mktemp(job))
    return [{key.removeprefix(f"{job}/"): value for key, value in r.items()} for r in found]


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


@pytest.mark.parametrize("case", CASES)
def test_an_engine_of_two_ranks_follows_every_update(team, case):
    for results in team:
        assert results[f"{case}/before/difference"] < 1e-5
        assert results[f"{case}/after/difference"] < 1e-5
        before, after = (results[f"{case}/{moment}/logprobs"] for moment in ("before", "after"))
        assert abs(before[0, 0] - after[0, 0]) > 1e-3


@pytest.mark.parametrize("case", CASES)
def test_an_engine_of_two_ranks_plays_like_that_of_one(team, case, llm, loaded, codec):
    policy, _ = both(llm, loaded, codec, temperature=0.0)
    alone = [turn for episode in played(policy, window=2) for turn in episode.turns]
    assert len(alone) == 6 * 3
    for results in team:
        assert results[f"{case}/before/ids"].tolist() == [turn.completion_ids for turn in alone]
        logprobs = results[f"{case}/before/logprobs"]
        assert logprobs == pytest.approx(np.array([turn.logprobs for turn in alone]), abs=1e-5)


@pytest.mark.parametrize("case", CASES)
def test_what_a_shared_engine_reads_is_counted_once(team, case):
    for results in team:
        for moment in ("before", "after"):
            assert results[f"{case}/{moment}/prompt_tokens"] == results[f"{case}/{moment}/turn_tokens"]
