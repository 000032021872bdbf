import dataclasses
from typing import Any, cast

import pytest
import torch

from arl_gym.agents.types import Request
from arl_gym.core import Message, pictures_of
from arl_gym.errors import ConfigError, DataError
from arl_gym.train.chat import ChatCodec
from arl_gym.train.model import load_model, save_model
from arl_gym.train.policies.hf import HFPolicy, cache_argument, load_policy, truncated
from tests.train.pictures import noise, qwen3, qwen25, user


@pytest.fixture(scope="module")
def model_and_codec():
    loaded = load_model("tiny", dtype="float32", seed=3)
    return loaded.model.eval(), ChatCodec(loaded.tokenizer)


def policy(model_and_codec, **changes):
    dials = {"max_tokens": 8, "temperature": 1.0, "batch_size": 64, "max_context": 64}
    return HFPolicy(*model_and_codec, **(dials | changes))


def requests(n, *, stream=0):
    boards = ["#", "#P_", "####\n#PXO#"]
    return [
        Request(
            key=i,
            messages=[{"role": "user", "content": boards[i % 3]}],
            info={},
            context_ids=None,
            stream=stream + i,
        )
        for i in range(n)
    ]


def answers(p, batch):
    p.submit(batch)
    return p.poll()


def test_logprobs_are_those_of_a_plain_forward_pass(model_and_codec):
    model, _ = model_and_codec
    for reply in answers(policy(model_and_codec, temperature=0.7), requests(9)):
        ids = torch.tensor([reply.prompt_ids + reply.completion_ids])
        with torch.no_grad():
            logp = torch.log_softmax(model(ids).logits[0] / 0.7, -1)
        n = len(reply.prompt_ids)
        expected = [float(logp[n - 1 + i, t]) for i, t in enumerate(reply.completion_ids)]
        assert reply.logprobs == pytest.approx(expected, abs=1e-5)


def test_a_response_does_not_depend_on_who_shares_its_batch(model_and_codec):
    together = answers(policy(model_and_codec), requests(12))
    alone = [answers(policy(model_and_codec, batch_size=1), [r])[0] for r in requests(12)]
    assert [r.completion_ids for r in together] == [r.completion_ids for r in alone]
    assert len({tuple(r.completion_ids) for r in together}) > 1


def test_other_streams_give_other_responses(model_and_codec):
    first, second = (answers(policy(model_and_codec), requests(6, stream=s)) for s in (0, 100))
    assert [r.completion_ids for r in first] != [r.completion_ids for r in second]


def test_sampling_follows_the_distribution(model_and_codec):
    model, codec = model_and_codec
    n = 2000
    same = [
        Request(key=i, messages=[{"role": "user", "content": "#"}], info={}, context_ids=None, stream=i)
        for i in range(n)
    ]
    replies = answers(policy(model_and_codec, max_tokens=1, batch_size=500), same)
    with torch.no_grad():
        logits = model(torch.tensor([codec.encode_prompt(same[0].messages)])).logits[0, -1]
    expected = torch.softmax(logits, -1)
    seen = torch.bincount(torch.tensor([r.completion_ids[0] for r in replies]), minlength=len(expected)) / n
    # Each share of 2000 draws has a standard error of at most 0.0112; six of them leave no room for chance.
    assert float((seen - expected).abs().max()) < 6 * 0.0112


def test_greedy_takes_the_likeliest_token_and_ignores_the_stream(model_and_codec):
    one, other = (answers(policy(model_and_codec, temperature=0.0), requests(3, stream=s)) for s in (0, 9))
    assert [r.completion_ids for r in one] == [r.completion_ids for r in other]
    ids = torch.tensor([one[0].prompt_ids])
    with torch.no_grad():
        assert one[0].completion_ids[0] == int(model_and_codec[0](ids).logits[0, -1].argmax())


def test_the_token_limit_and_the_context_end_a_response(model_and_codec):
    _, codec = model_and_codec
    length = len(codec.encode_prompt(requests(1)[0].messages))
    reply = answers(policy(model_and_codec, max_context=length + 2, temperature=0.0), requests(1))[0]
    assert (reply.finish, len(reply.completion_ids)) == ("length", 2)
    full = answers(policy(model_and_codec, max_context=length), requests(1))[0]
    assert (full.finish, full.completion_ids) == ("context_full", [])


def test_an_end_token_alone_is_an_empty_response(model_and_codec):
    model, codec = model_and_codec
    eos = next(iter(codec.eos_ids))
    forced = HFPolicy(
        cast(Any, _Forced(model, eos)), codec, max_tokens=4, temperature=1.0, batch_size=8, max_context=64
    )
    reply = answers(forced, requests(1))[0]
    assert (reply.finish, reply.completion_ids, reply.response) == ("empty", [eos], "")


def test_a_stop_string_ends_a_response(model_and_codec):
    model, codec = model_and_codec
    wall = codec.encode_response("#")[0]
    forced = HFPolicy(
        cast(Any, _Forced(model, wall)), codec, max_tokens=8, temperature=1.0, batch_size=8, max_context=64
    )
    plain, *_ = requests(1)
    stopped = dataclasses.replace(plain, key=1, info={"stop": ["P", "###"]})
    free, short = answers(forced, [plain, stopped])
    assert (free.finish, free.response) == ("length", "########")
    assert (short.finish, short.response, len(short.logprobs)) == ("stop", "###", 3)


class _Forced:
    """A model that always says one token."""

    def __init__(self, model, token):
        self.config, self.device, self.training = model.config, model.device, False
        self._token, self._vocab = token, model.config.vocab_size

    def train(self, mode): ...

    def forward(self, *, input_ids, past_key_values=None, **_):
        logits = torch.full((len(input_ids), 1, self._vocab), -100.0)
        logits[:, :, self._token] = 0.0
        return type("Output", (), {"logits": logits})()

    __call__ = forward


def test_dialogue_prompts_extend_the_context_exactly(model_and_codec):
    first = answers(policy(model_and_codec), requests(1))[0]
    context = first.prompt_ids + first.completion_ids
    request = Request(
        key=0, messages=[{"role": "user", "content": "#"}], info={}, context_ids=context, stream=1
    )
    second = answers(policy(model_and_codec), [request])[0]
    assert second.prompt_ids[: len(context)] == context


def test_nothing_queued_gives_no_reply(model_and_codec):
    assert policy(model_and_codec).poll() == []


@pytest.mark.parametrize(
    ("top_p", "top_k", "left"),
    [
        (1.0, 0, [0.1, 0.4, 0.2, 0.3]),
        (1.0, -1, [0.1, 0.4, 0.2, 0.3]),
        (1.0, 2, [0.0, 0.4, 0.0, 0.3]),
        (1.0, 9, [0.1, 0.4, 0.2, 0.3]),
        (0.65, 0, [0.0, 0.4, 0.0, 0.3]),  # 0.4 is too little, 0.4 + 0.3 is enough
        (0.75, 0, [0.0, 0.4, 0.2, 0.3]),
        (0.01, 0, [0.0, 0.4, 0.0, 0.0]),  # the likeliest always stays
        # Of the three likeliest, which hold 0.9: 0.6 of 0.9 is 0.54, and 0.4 + 0.3 is enough.
        (0.6, 3, [0.0, 0.4, 0.0, 0.3]),
        # Of the two likeliest, which hold 0.7: half is 0.35, and 0.4 alone is enough.
        (0.5, 2, [0.0, 0.4, 0.0, 0.0]),
    ],
)
def test_the_tail_of_a_distribution_is_cut(top_p, top_k, left):
    probs = torch.tensor([[0.1, 0.4, 0.2, 0.3]], dtype=torch.float64)
    assert truncated(probs, top_p=top_p, top_k=top_k).tolist() == [left]


def test_rows_are_cut_each_by_itself():
    probs = torch.tensor([[0.6, 0.4], [0.2, 0.8]], dtype=torch.float64)
    assert truncated(probs, top_p=0.7, top_k=0).tolist() == [[0.6, 0.4], [0.0, 0.8]]


def test_a_policy_draws_only_from_what_is_left_and_tells_the_whole_distributions_log_probs(model_and_codec):
    model, codec = model_and_codec
    same = [
        Request(key=i, messages=[{"role": "user", "content": "#"}], info={}, context_ids=None, stream=i)
        for i in range(100)
    ]
    replies = answers(policy(model_and_codec, max_tokens=1, top_k=2), same)
    with torch.no_grad():
        logits = model(torch.tensor([codec.encode_prompt(same[0].messages)])).logits[0, -1]
    likeliest = logits.topk(2).indices.tolist()
    assert {r.completion_ids[0] for r in replies} == set(likeliest)
    logp = torch.log_softmax(logits, -1)
    for reply in replies:
        assert reply.logprobs == pytest.approx([float(logp[reply.completion_ids[0]])], abs=1e-5)
    alone = answers(policy(model_and_codec, max_tokens=1, top_p=1e-9), same)
    assert {r.completion_ids[0] for r in alone} == {likeliest[0]}


@pytest.mark.parametrize("dial", [{"top_p": 0.0}, {"top_p": 1.1}, {"top_k": -2}])
def test_sampling_dials_out_of_range_are_refused(model_and_codec, dial):
    with pytest.raises(ConfigError, match="top_p in"):
        policy(model_and_codec, **dial)


def test_the_settings_say_what_answers_depend_on(model_and_codec):
    assert policy(model_and_codec, top_k=5).settings == {
        "temperature": 1.0,
        "top_p": 1.0,
        "top_k": 5,
        "max_tokens": 8,
        "max_context": 64,
        "enable_thinking": True,
    }


def test_the_cache_goes_by_the_name_that_the_model_knows(model_and_codec):
    """An argument of another name is ignored, and every token would be read without those before it."""
    model, codec = model_and_codec
    ids = torch.tensor([codec.encode_prompt(user("#P_"))])
    name = cache_argument(model)
    with torch.no_grad():
        whole = model(ids).logits[0, -1]
        first = model(ids[:, :-1], use_cache=True)
        last = model(ids[:, -1:], **{name: first[name]}).logits[0, -1]
        alone = model(ids[:, -1:]).logits[0, -1]
    assert torch.allclose(last, whole, atol=1e-5)
    assert not torch.allclose(alone, whole, atol=1e-2)


def test_a_model_without_a_cache_is_refused():
    class Blank:
        def forward(self, input_ids): ...

    with pytest.raises(ConfigError, match="Blank takes no cache"):
        cache_argument(cast(Any, Blank()))


@pytest.fixture(scope="module", params=[qwen3, qwen25], ids=["qwen3_vl", "qwen2_5_vl"])
def seeing(request):
    loaded = request.param()
    loaded.model.eval()
    return loaded.model, ChatCodec(loaded.tokenizer, loaded.vision)


def looking(key: int, messages: list[Message], *, stream: int = 0) -> Request:
    pictures = pictures_of(messages)
    return Request(key=key, messages=messages, info={}, context_ids=None, stream=stream, pictures=pictures)


def scenes() -> list[list[Message]]:
    """Prompts of several lengths and pictures; the first two have equal ids and other pixels."""
    return [
        user("#", noise(56, 56, 1)),
        user("#", noise(56, 56, 2)),
        user(noise(84, 56, 3), "P", noise(56, 28, 4), "O"),
        user("no picture"),
    ]


def uncached(model_and_codec, messages, ids, *, temperature=1.0):
    """Return the log-probs (T, V) that transformers' own reading of the pictures gives."""
    model, codec = model_and_codec
    row = torch.tensor([ids])
    extra = {"mm_token_type_ids": (row == codec.vision.image_id).int()}
    if pictures_of(messages):
        extra |= codec.vision.pixels(pictures_of(messages))
    with torch.no_grad():
        logits = model(input_ids=row, attention_mask=torch.ones_like(row), **extra).logits[0]
    allowed = [i for i in range(logits.shape[-1]) if i not in codec.banned]
    out = torch.full_like(logits, -torch.inf)
    out[:, allowed] = torch.log_softmax(logits[:, allowed] / temperature, -1)
    return out


def test_log_probs_with_pictures_are_those_of_an_uncached_forward_pass(seeing):
    # Hot: the untrained model repeats the last token otherwise.
    p = policy(seeing, max_context=200, temperature=3.0)
    replies = answers(p, [looking(k, m, stream=k) for k, m in enumerate(scenes())])
    assert len({tuple(r.completion_ids) for r in replies}) == 4
    for reply, messages in zip(replies, scenes(), strict=True):
        logp = uncached(seeing, messages, reply.prompt_ids + reply.completion_ids, temperature=3.0)
        n = len(reply.prompt_ids)
        expected = [float(logp[n - 1 + i, t]) for i, t in enumerate(reply.completion_ids)]
        assert reply.logprobs == pytest.approx(expected, abs=1e-5)


def test_prompts_with_other_pictures_in_the_batch_change_nothing(seeing):
    asked = [looking(k, m, stream=k) for k, m in enumerate(scenes() * 2)]
    together = answers(policy(seeing, max_context=200), asked)
    alone = [answers(policy(seeing, max_context=200, batch_size=1), [r])[0] for r in asked]
    assert [r.completion_ids for r in together] == [r.completion_ids for r in alone]
    for one, other in zip(together, alone, strict=True):
        assert one.logprobs == pytest.approx(other.logprobs, abs=1e-5)
    assert together[0].prompt_ids == together[1].prompt_ids
    assert together[0].logprobs[0] != pytest.approx(together[1].logprobs[0], abs=1e-5)


def test_the_greedy_continuation_is_that_of_generate(seeing):
    model, codec = seeing
    messages = scenes()[2]
    reply = answers(policy(seeing, max_context=200, temperature=0.0), [looking(0, messages)])[0]
    ids = torch.tensor([reply.prompt_ids])
    out = model.generate(
        input_ids=ids,
        attention_mask=torch.ones_like(ids),
        mm_token_type_ids=(ids == codec.vision.image_id).int(),
        **codec.vision.pixels(pictures_of(messages)),
        max_new_tokens=8,
        do_sample=False,
        suppress_tokens=list(codec.banned),
    )
    assert reply.completion_ids == out[0, ids.shape[1] :].tolist()


def test_a_dialogue_goes_on_with_the_pictures_of_all_its_turns(seeing):
    first = scenes()[0]
    start = answers(policy(seeing, max_context=200), [looking(0, first)])[0]
    context = start.prompt_ids + start.completion_ids
    more = user("next", noise(28, 56, 9))
    request = Request(
        key=0,
        messages=more,
        info={},
        context_ids=context,
        stream=1,
        pictures=pictures_of(first) + pictures_of(more),
    )
    reply = answers(policy(seeing, max_context=200), [request])[0]
    assert reply.prompt_ids[: len(context)] == context
    logp = uncached(seeing, first + more, reply.prompt_ids + reply.completion_ids)
    n = len(reply.prompt_ids)
    expected = [float(logp[n - 1 + i, t]) for i, t in enumerate(reply.completion_ids)]
    assert reply.logprobs == pytest.approx(expected, abs=1e-5)


def test_a_prompt_without_one_of_its_pictures_is_one_clear_error(seeing):
    messages = scenes()[0]
    request = Request(key=4, messages=messages, info={}, context_ids=None, stream=0)
    with pytest.raises(DataError, match="the prompt of episode 4: 0 pictures take 0 tokens"):
        answers(policy(seeing, max_context=200), [request])


def test_placeholders_are_never_sampled(seeing):
    """At temperature 5 all tokens are about as likely: 1,000 draws of 275 would hold the two 7 times."""
    _, codec = seeing
    messages = scenes()[0]
    p = policy(seeing, max_context=200, max_tokens=1, temperature=5.0, batch_size=1000)
    replies = answers(p, [looking(k, messages, stream=k) for k in range(1000)])
    drawn = {r.completion_ids[0] for r in replies}
    assert len(drawn) > 200
    assert not drawn & set(codec.banned)
    logp = uncached(seeing, messages, replies[0].prompt_ids, temperature=5.0)[-1]
    for reply in replies[:20]:
        assert reply.logprobs == pytest.approx([float(logp[reply.completion_ids[0]])], abs=1e-5)


def test_a_policy_of_a_vision_folder_reads_pictures(tmp_path):
    loaded = qwen3()
    save_model(tmp_path / "m", loaded.model, loaded.tokenizer, vision=loaded.vision)
    p = load_policy(tmp_path / "m", temperature=0.0, max_tokens=4, max_context=200, dtype="float32")
    loaded.model.eval()
    codec = ChatCodec(loaded.tokenizer, loaded.vision)
    same = HFPolicy(loaded.model, codec, temperature=0.0, max_tokens=4, max_context=200, batch_size=4)
    asked = [looking(0, scenes()[2])]
    assert answers(p, asked)[0].completion_ids == answers(same, asked)[0].completion_ids
