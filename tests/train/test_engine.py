import dataclasses
import json

import numpy as np
import pytest
import torch
from transformers import AutoModelForCausalLM

from arl_gym.errors import ArlGymError, ConfigError, DataError
from arl_gym.train.batch import pack, pad_rows
from arl_gym.train.config import ModelConfig, OptimConfig
from arl_gym.train.engine import Engine, GuardedAdamW, deal, deepspeed_config, learning_rate
from arl_gym.train.model import tiny_model, tiny_tokenizer
from tests.train.engine_jobs import (
    LORA,
    LOSS,
    OPTIM,
    first_gradient,
    gradients,
    make_engine,
    master_weights,
    optim,
    scored,
    trajectories,
    update_of,
)
from tests.train.ranks import run_ranks

pytestmark = pytest.mark.timeout(300)  # two processes import torch and DeepSpeed


def distance(a, b):
    """Relative to the second."""
    return float(np.linalg.norm(a - b) / np.linalg.norm(b))


@pytest.fixture(scope="module")
def one(tmp_path_factory):
    """What one rank computes."""
    return gradients(tmp_path_factory.mktemp("one"))


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("two")


@pytest.fixture(scope="module")
def two(folder):
    """What two ranks compute, and write into `folder`."""
    return run_ranks("tests.train.engine_jobs", ["gradients", "checkpoint", "skips", "exports"], folder)


@pytest.mark.parametrize("stage", [0, 1, 2, 3])
@pytest.mark.slow
def test_neither_stage_nor_ranks_nor_micro_batches_change_the_gradient(one, two, stage):
    whole = one["whole/gradient"]
    for results in (one, *({k.removeprefix("gradients/"): v for k, v in r.items()} for r in two)):
        assert distance(results[f"{stage}/gradient"], whole) < 1e-5
        assert results[f"{stage}/grad_norm"] == pytest.approx(np.linalg.norm(whole), rel=1e-4)
        assert results[f"{stage}/loss"] == pytest.approx(float(one["whole/loss"]), abs=1e-5)


@pytest.mark.slow
def test_all_ranks_return_every_score(one, two):
    mask = pack(trajectories(), pad_id=0).action_mask
    for name in ("old", "ref", "seen"):
        for key in ("2", "3", "lora-0", "lora-3"):
            expected = one["whole/old"]  # an adapter begins as no change
            for results in two:
                got = results[f"gradients/{key}/{name}"]
                assert np.allclose(got, expected, atol=1e-5)
                assert not got[~mask].any()
                assert (got[mask] < 0.0).all()


def test_log_probs_of_an_update_are_those_before_its_own_optimiser_step():
    engine = make_engine(dataclasses.replace(OPTIM, minibatches=3))
    batch = scored(engine)
    stats, seen, _ = engine.update(batch, LOSS, total_steps=1)
    assert stats["optim/updates"] == 3
    assert engine.n_updates == 3
    first = batch.row_group == 0
    assert np.array_equal(seen[first], batch.old_logprobs[first])
    change = np.abs(seen - batch.old_logprobs)[~first]
    assert change.max() > 1e-3  # later minibatches see the weights that the first ones changed


def test_rows_per_minibatch_say_how_many_steps_there_are():
    # 3 groups of 1 + 2 + 3 + 1 turns: 21 rows. 21 / 9 is 2.3, so 2 steps; 21 / 100 still makes 1.
    for rows, steps in ((9, 2), (100, 1)):
        engine = make_engine(dataclasses.replace(OPTIM, minibatch_rows=rows), reference=False)
        batch = pad_rows(pack(trajectories(), pad_id=0), 7)  # rows without tokens do not count
        batch = engine.score(batch).with_advantages([np.ones(1 + c % 3) for _ in range(3) for c in range(4)])
        stats, *_ = engine.update(batch, dataclasses.replace(LOSS, kl_coef=0.0), total_steps=1)
        assert stats["optim/updates"] == steps


def test_a_single_step_needs_no_scores_of_its_own():
    scored_first, at_once = make_engine(), make_engine()
    a, b = scored(scored_first), scored(at_once, old=False)
    assert b.old_logprobs is None
    assert b.ref_logprobs is not None
    stats, logprobs, nothing = scored_first.update(a, LOSS, total_steps=1)
    same, seen, entropies = at_once.update(b, LOSS, total_steps=1)
    assert nothing is None
    assert same == pytest.approx({**stats, "loss/entropy": same["loss/entropy"]}, rel=1e-4, abs=1e-7)
    assert np.allclose(seen, logprobs, atol=1e-6)
    assert np.allclose(entropies, a.entropies, atol=1e-5)
    assert np.allclose(master_weights(at_once), master_weights(scored_first), atol=1e-6)


def test_kept_denominators_do_not_depend_on_micro_batches():
    loss = dataclasses.replace(LOSS, mask_delta=0.005, mask_denominator="kept", kl_coef=0.0)
    gradients = []
    for micro_tokens in (1, 1 << 20):
        engine = make_engine(dataclasses.replace(OPTIM, micro_tokens=micro_tokens), reference=False)
        batch = scored(engine)
        # As if the policy had moved: the turns of the first rows look stale, and are dropped if negative.
        moved = batch.old_logprobs + 0.01 * (np.arange(batch.n_rows) < 12)[:, None]
        stats, *_ = engine.update(batch.with_old(moved.astype(np.float32)), loss, total_steps=1)
        assert 0 < stats["loss/masked_frac"] < 1
        gradients.append(first_gradient(engine))
    assert distance(*gradients) < 1e-5


def test_micro_batches_are_dealt_out_largest_first():
    # 9 -> A; 8 -> B; 5 -> B (8 < 9); 4 -> A (9 < 13); both have 13, and A comes first.
    assert deal([4, 9, 1, 8, 5], 2) == [[1, 0, 2], [3, 4]]
    # 9 -> A; the 1s -> B until it has two, which is all that it may have.
    assert deal([1, 9, 1, 1], 2) == [[1, 3], [0, 2]]
    assert deal([3], 2) == [[0], []]


@pytest.mark.slow
def test_a_gradient_that_is_not_finite_on_one_rank_is_skipped_by_all(two):
    for results in two:
        for stage in (0, 2, 3):
            skipped_then, moved_then, skipped_now, moved_now = results[f"skips/{stage}"]
            assert (skipped_then, moved_then) == (1, 0)
            assert (skipped_now, moved_now) == (1, 1)


def test_gradient_checkpointing_leaves_the_gradient_as_it_is(one):
    model_cfg = ModelConfig(gradient_checkpointing=True)
    model = make_engine(optim(2), model_cfg=model_cfg).rollout_model()
    assert any(getattr(module, "gradient_checkpointing", False) for module in model.modules())
    changed = update_of(optim(2), model_cfg=model_cfg)
    assert distance(changed["gradient"], one["whole/gradient"]) < 1e-5


def test_zero_weight_rows_do_not_change_the_gradient(one):
    engine = make_engine()
    batch = pad_rows(scored(engine), 5)
    engine.update(batch, LOSS, total_steps=1)
    assert distance(first_gradient(engine), one["whole/gradient"]) < 1e-5


@pytest.mark.parametrize("stage", [0, 3])
@pytest.mark.slow
def test_a_checkpoint_of_two_ranks_goes_on_alone_at_another_stage(two, folder, stage):
    original = make_engine(OPTIM)
    engine = make_engine(optim(stage))
    engine.load(folder / "checkpoint")
    assert (engine.n_updates, engine.n_batches, engine.n_skipped) == (1, 1, 0)
    before, after = two[0]["checkpoint/before"], two[0]["checkpoint/after-2"]
    assert np.array_equal(master_weights(engine), before)
    assert distance(master_weights(original), before) > 1e-4  # it was loaded, not only made alike
    # The reference of the run is its first model, which is also that of an engine made alike.
    engine.update(scored(engine), LOSS, total_steps=2)
    assert np.abs(master_weights(engine) - after).max() < 1e-6


@pytest.mark.slow
def test_a_checkpoint_of_two_ranks_goes_on_at_stage_3(two):
    after = two[0]["checkpoint/after-2"]
    assert np.abs(two[0]["checkpoint/after-3"] - after).max() < 1e-6
    assert np.array_equal(two[0]["checkpoint/after-3"], two[1]["checkpoint/after-3"])


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("model_cfg", [ModelConfig(), LORA], ids=["all weights", "lora"])
def test_a_checkpoint_keeps_every_digit_of_the_master_weights(tmp_path, dtype, model_cfg):
    loss = dataclasses.replace(LOSS, kl_coef=0.0)
    a = make_engine(optim(2), reference=False, dtype=dtype, model_cfg=model_cfg)
    a.update(scored(a), loss, total_steps=2)
    a.save(tmp_path / "c")
    b = make_engine(optim(1), reference=False, dtype=dtype, model_cfg=model_cfg)
    b.load(tmp_path / "c")
    assert np.array_equal(master_weights(a), master_weights(b))
    for engine in (a, b):
        engine.update(scored(engine), loss, total_steps=2)
    assert np.array_equal(master_weights(a), master_weights(b))
    assert (b.n_updates, b.n_batches) == (2, 2)


def test_shards_are_bounded_and_damage_is_named(tmp_path, monkeypatch):
    monkeypatch.setattr("arl_gym.train.state._SHARD_BYTES", 100_000)
    engine = make_engine(reference=False)
    engine.save(tmp_path / "c")
    shards = sorted((tmp_path / "c").glob("*.safetensors"))
    # Three fp32 tensors of the embedding's size are more than the bound, and get files of their own.
    assert len(shards) > 3
    other = make_engine(reference=False, model_cfg=LORA)
    with pytest.raises(DataError, match=r"optimizer\.json is of another model"):
        other.load(tmp_path / "c")
    wider = Engine(
        tiny_model(tiny_tokenizer(), seed=1, hidden=64, layers=2), OPTIM, temperature=1.0, reference=False
    )
    with pytest.raises(DataError, match=r"has shape \[\d+, 48\], in the model \[\d+, 64\]"):
        wider.load(tmp_path / "c")
    shards[-1].write_bytes(b"short")
    with pytest.raises(DataError, match=shards[-1].name):
        engine.load(tmp_path / "c")
    shards[-1].unlink()
    with pytest.raises(DataError, match=shards[-1].name):
        engine.load(tmp_path / "c")
    (tmp_path / "c" / "optimizer.json").write_text(json.dumps({"tensors": {}}))
    with pytest.raises(DataError, match=r"optimizer\.json"):
        engine.load(tmp_path / "c")


def test_a_checkpoint_that_cannot_be_written_is_one_clear_error(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(ArlGymError, match="cannot write the checkpoint"):
        make_engine(reference=False).save(tmp_path / "file" / "c")


@pytest.mark.slow
def test_lora_trains_only_its_adapters(one, two):
    engine = make_engine(model_cfg=LORA)
    before = {name: p.detach().clone() for name, p in engine.rollout_model().named_parameters()}
    engine.update(scored(engine), LOSS, total_steps=1)
    after = dict(engine.rollout_model().named_parameters())
    changed = {name for name in before if not torch.equal(before[name], after[name])}
    assert changed == {name for name in before if "lora_B" in name}  # B begins at 0, so A has no gradient yet
    assert distance(two[0]["gradients/lora-3/gradient"], one["lora-0/gradient"]) < 1e-5


def test_the_reference_of_lora_is_the_model_without_it():
    engine = make_engine(model_cfg=LORA)
    first = scored(engine)
    engine.update(first, LOSS, total_steps=2)
    second = scored(engine)
    assert np.array_equal(second.ref_logprobs, first.old_logprobs)
    assert np.abs(second.old_logprobs - first.old_logprobs).max() > 1e-3


def test_the_reference_is_left_alone_where_it_is_not_wanted():
    engine = make_engine(reference=True)
    batch = pack(trajectories(), pad_id=0)
    assert engine.score(batch).ref_logprobs is not None
    assert engine.score(batch, reference=False).ref_logprobs is None


@pytest.mark.parametrize("name", ["plain", "lora"])
@pytest.mark.slow
def test_an_exported_model_talks_like_the_trained_one(two, folder, name):
    model = AutoModelForCausalLM.from_pretrained(folder / name, dtype=torch.float32)
    with torch.no_grad():
        logits = model(torch.arange(20)[None]).logits.numpy()
    untrained = make_engine(reference=False).rollout_model()
    with torch.no_grad():
        start = untrained(torch.arange(20)[None]).logits.numpy()
    for results in two:
        assert np.allclose(logits, results[f"exports/{name}"], atol=1e-5)
        assert np.abs(logits - start).max() > 1e-3
    assert (folder / name / "adapter" / "adapter_config.json").exists() == (name == "lora")
    if name == "lora":
        assert (folder / name / "adapter" / "adapter_model.safetensors").stat().st_size > 1000


def test_modules_that_cannot_be_adapted_are_refused():
    for targets in ("nothing_like_it", "q_proj,lm_head"):
        with pytest.raises(ConfigError, match=r"model\.lora_targets"):
            make_engine(model_cfg=dataclasses.replace(LORA, lora_targets=targets))


def test_fitting_steps_towards_the_rows():
    engine = make_engine(reference=False)
    batch = pack(trajectories(), pad_id=0)
    rows = np.arange(10)
    before = engine.nll(batch.select(rows))
    scores = engine.score(batch)  # at temperature 1 too
    mask = batch.action_mask[rows]
    assert before == pytest.approx(-float(scores.old_logprobs[rows][mask].mean()), rel=1e-5)
    stats = engine.fit(batch, rows, lr=1e-3)
    assert stats["loss"] == pytest.approx(before, rel=1e-5)
    assert engine.nll(batch.select(rows)) < before


def test_the_stage_is_set_in_one_place():
    with pytest.raises(ConfigError, match=r"optim\.zero_stage"):
        deepspeed_config(OptimConfig(zero={"stage": 1}), torch.float32)
    with pytest.raises(ConfigError, match="no_such_key"):
        make_engine(dataclasses.replace(OPTIM, zero={"no_such_key": 1}), reference=False)
    merged = deepspeed_config(OptimConfig(zero_stage=1, zero={"overlap_comm": True}), torch.float32)
    assert merged["zero_optimization"] == {"stage": 1, "overlap_comm": True}


def test_an_optimiser_kept_on_the_cpu_takes_the_same_step(one):
    offloaded = dataclasses.replace(OPTIM, zero={"offload_optimizer": {"device": "cpu"}})
    engine = make_engine(offloaded)
    engine.update(scored(engine), LOSS, total_steps=1)
    assert distance(first_gradient(engine), one["whole/gradient"]) < 1e-5


def test_scores_are_the_models_own_log_probs():
    e = make_engine()
    batch = scored(e)
    model = e.rollout_model()
    for n in (0, len(batch.ids) - 1):
        ids = torch.from_numpy(batch.ids[n : n + 1, : batch.lengths[n]])
        with torch.no_grad():
            logp = torch.log_softmax(model(ids).logits[0], -1)
        for t in np.flatnonzero(batch.action_mask[n]):
            assert batch.old_logprobs[n, t] == pytest.approx(float(logp[t - 1, ids[0, t]]), abs=1e-5)
            entropy = float(-(logp[t - 1].exp() * logp[t - 1]).sum())
            assert batch.entropies[n, t] == pytest.approx(entropy, abs=1e-4)
    assert np.array_equal(batch.old_logprobs, batch.ref_logprobs)
    assert not batch.old_logprobs[~batch.action_mask].any()


def test_learning_rate_warms_up_and_falls_to_its_final_factor():
    cfg = OptimConfig(lr=1.0, warmup_steps=4, lr_final=0.5)
    # Warm-up by steps: 1/4, 4/4; times the line from 1 to 0.5 over the run: 1 - 0.5 * progress.
    assert [learning_rate(cfg, s, p) for s, p in ((0, 0.0), (1, 0.5), (3, 0.0))] == [0.25, 0.375, 1.0]
    assert [learning_rate(cfg, 99, p) for p in (0.5, 1.0, 1.5)] == [0.75, 0.5, 0.5]
    assert learning_rate(OptimConfig(lr=2.0), 0, 0.5) == 2.0


def test_gradient_clipping_is_always_said():
    assert deepspeed_config(OptimConfig(grad_clip=0.0), torch.float32)["gradient_clipping"] == 0.0


def test_guarded_adamw_equals_adamw_on_finite_gradients():
    a, b = torch.nn.Parameter(torch.ones(3)), torch.nn.Parameter(torch.ones(3))
    for p, make in ((a, GuardedAdamW), (b, torch.optim.AdamW)):
        p.grad = torch.tensor([1.0, -2.0, 0.0])
        make([p], lr=0.1).step()
    assert torch.equal(a, b)
