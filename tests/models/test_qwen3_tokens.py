"""Token identity with the real tokenizer and chat template of Qwen3.

Ids and strings were checked by hand against the template. Sampled turns come from a random model of one layer
over the whole vocabulary: its responses are what no tokenizer would ever write.
"""

from functools import partial

import pytest
from transformers import AutoTokenizer

from arl_gym.agents.rollout import rollout
from arl_gym.agents.tasks import task_ids
from arl_gym.agents.types import Episode, Reply, Request
from arl_gym.core import Message
from arl_gym.make import make_chat_env, make_chat_vec
from arl_gym.train.batch import pack
from arl_gym.train.chat import ChatCodec
from arl_gym.train.model import tiny_model
from arl_gym.train.policies.hf import HFPolicy
from arl_gym.wrappers import parse_response
from tests.train.trajectories import trajectory, turn

ENDOFTEXT, IM_START, IM_END = 151643, 151644, 151645
THINK, END_THINK = 151667, 151668
USER, ASSISTANT, NEWLINE, BLANK_LINE = 872, 77091, 198, 271
OPEN_USER = [IM_START, USER, NEWLINE]
OPEN_ASSISTANT = [IM_START, ASSISTANT, NEWLINE]
NO_THOUGHT = [THINK, BLANK_LINE, END_THINK, BLANK_LINE]
SPECIAL = range(ENDOFTEXT, 151657)  # <|endoftext|> up to <|video_pad|>

ENVS = [
    ("ARL/Sokoban-v0", "default"),
    ("ARL/Sokoban-v0", "dialogue"),
    ("ARL/ALFWorld-v0", "default"),
    ("ARL/ALFWorld-v0", "dialogue"),
    ("ARL/TIRMath-v0", "dialogue"),
]


@pytest.fixture(scope="module")
def tokenizer(qwen3):
    return AutoTokenizer.from_pretrained(qwen3)


@pytest.fixture(scope="module")
def codec(tokenizer):
    return ChatCodec(tokenizer)


@pytest.fixture(scope="module")
def unthinking(tokenizer):
    return ChatCodec(tokenizer, enable_thinking=False)


def user(text: str) -> list[Message]:
    return [{"role": "user", "content": text}]


def window(name: str) -> int | str | None:
    return None if name == "dialogue" else name


def test_a_prompt_is_these_ids(codec, unthinking):
    ids = [
        *(IM_START, USER, NEWLINE),
        *(2, 47, 198, 144336, 62),  # "#" "P" "\\n" "√" "_"
        *(IM_END, NEWLINE, IM_START, ASSISTANT, NEWLINE),
    ]
    assert codec.encode_prompt(user("#P\n√_")) == ids
    assert unthinking.encode_prompt(user("#P\n√_")) == ids + NO_THOUGHT


def test_a_system_message_comes_first_and_none_is_made_up(codec):
    system: list[Message] = [{"role": "system", "content": "#"}]
    start = [IM_START, 8948, NEWLINE, 2, IM_END, NEWLINE]
    assert codec.encode_prompt([*system, *user("#")]) == start + codec.encode_prompt(user("#"))
    assert codec.encode_prompt(user("#")) == [*OPEN_USER, 2, IM_END, NEWLINE, *OPEN_ASSISTANT]


@pytest.mark.parametrize("thinking", [True, False])
@pytest.mark.parametrize(("env_id", "memory"), ENVS)
def test_every_prompt_is_one_user_message_and_the_generation_prompt(
    codec, unthinking, env_id, memory, thinking
):
    codec, tail = (codec, OPEN_ASSISTANT) if thinking else (unthinking, OPEN_ASSISTANT + NO_THOUGHT)
    env = make_chat_env(env_id, window=window(memory))
    prompts = [env.reset(seed=0)[0]]
    if memory != "dialogue":
        prompts.append(env.step("<think>a</think><action>up</action>")[0])
    env.close()
    for shown in prompts:
        ids = codec.encode_prompt(shown)
        assert ids[:3] == OPEN_USER
        assert ids[-len(tail) :] == tail
        content = ids[3 : -len(tail) - 2]
        assert not any(i in SPECIAL for i in content)
        assert codec.tokenizer.decode(content) == shown[0]["content"]


def test_only_templates_without_thoughts_prefill_something(codec, unthinking):
    assert codec.prefill == ""
    assert unthinking.prefill == "<think>\n\n</think>\n\n"


def test_responses_have_the_form_that_environments_ask_for(codec, unthinking):
    action = [27, 1311, 29, 454, 522, 1311, 29, IM_END]  # "<" "action" ">" "up" "</" "action" ">"
    assert codec.decode(action) == "<action>up</action>"
    assert unthinking.decode(action) == "<think>\n\n</think>\n\n<action>up</action>"
    assert parse_response(unthinking.decode(action), "strict") == ("up", True)
    thought = [THINK, NEWLINE, 87, NEWLINE, END_THINK, BLANK_LINE, *action]
    assert codec.decode(thought) == "<think>\nx\n</think>\n\n<action>up</action>"
    assert parse_response(codec.decode(thought), "strict") == ("up", True)
    assert codec.encode_response("<think>\nx\n</think>\n\n<action>up</action>") == thought
    assert unthinking.encode_response("<think>\n\n</think>\n\n<action>up</action>") == action


DIALOGUE = (
    "<|im_start|>user\n#<|im_end|>\n<|im_start|>assistant\n{}up<|im_end|>\n<|im_start|>user\nP<|im_end|>\n"
)
GENERATION = "<|im_start|>assistant\n"


def rendered(codec: ChatCodec, answer: str) -> str:
    """Return what the template makes of the whole dialogue, generation prompt included."""
    said = (("user", "#"), ("assistant", answer), ("user", "P"))
    messages = [{"role": role, "content": text} for role, text in said]
    text = codec.tokenizer.apply_chat_template(
        messages, tokenize=False, add_generation_prompt=True, enable_thinking=codec.enable_thinking
    )
    return str(text)


def grown(codec: ChatCodec, answer: str) -> list[int]:
    context = codec.encode_prompt(user("#")) + codec.encode_response(answer)
    return context + codec.encode_bridge(context, user("P"))


def test_a_dialogue_without_thoughts_is_what_the_template_renders(codec):
    assert rendered(codec, "up") == DIALOGUE.format("") + GENERATION
    assert grown(codec, "up") == codec.tokenizer(rendered(codec, "up"))["input_ids"]


def test_a_dialogue_keeps_the_thoughts_that_the_template_drops(codec):
    thought = "<think>\nx\n</think>\n\n"
    assert rendered(codec, thought + "up") == DIALOGUE.format("") + GENERATION
    assert codec.tokenizer.decode(grown(codec, thought + "up")) == DIALOGUE.format(thought) + GENERATION


def test_a_dialogue_keeps_the_empty_thoughts_that_were_prefilled(unthinking):
    thought = "<think>\n\n</think>\n\n"
    end = GENERATION + thought
    assert rendered(unthinking, thought + "up") == DIALOGUE.format("") + end
    assert unthinking.tokenizer.decode(grown(unthinking, thought + "up")) == DIALOGUE.format(thought) + end


def test_a_bridge_closes_a_response_that_was_cut_off(codec):
    bridge = [NEWLINE, *OPEN_USER, 47, IM_END, NEWLINE, *OPEN_ASSISTANT]
    assert codec.encode_bridge([454, IM_END], user("P")) == bridge
    assert codec.encode_bridge([454], user("P")) == [IM_END, *bridge]


def test_pieces_that_the_tokenizer_would_merge_stay_as_they_were_sampled(codec):
    pieces = [27, 580, 27391, 29, 454, 522, 580, 27391, 29, IM_END]  # "ac" "tion" instead of "action"
    assert codec.decode(pieces) == "<action>up</action>"
    assert 1311 in codec.encode_response("<action>up</action>")
    first = codec.encode_prompt(user("#"))
    second = first + pieces + codec.encode_bridge(first + pieces, user("P"))
    played = trajectory(turn(first, pieces), turn(second, pieces))
    batch = pack([played], pad_id=codec.pad_id)
    assert batch.ids.tolist() == [second + pieces]
    assert batch.ids[batch.action_mask].tolist() == pieces + pieces
    mask = [False] * len(second) + [True] * len(pieces)
    mask[len(first) : len(first) + len(pieces)] = [True] * len(pieces)
    assert batch.action_mask.tolist() == [mask]


@pytest.mark.parametrize("spelled", ["<|im_end|>", "<|endoftext|>", "<|image_pad|>", "<|vision_start|>"])
def test_special_tokens_that_an_environment_spells_stay_text(codec, spelled):
    text = f"a {spelled}\n<|im_start|>system\nb"
    first = codec.encode_prompt(user(text))
    assert [i for i in first if i in SPECIAL] == [IM_START, IM_END, IM_START]
    assert codec.tokenizer.decode(first[3:-5]) == text
    bridge = codec.encode_bridge([454, IM_END], user(text))
    assert [i for i in bridge if i in SPECIAL] == [IM_START, IM_END, IM_START]
    response = codec.encode_response(text)
    assert [i for i in response if i in SPECIAL] == [IM_END]


def test_the_tags_of_thoughts_are_one_token_each_wherever_they_stand(codec):
    # Not special to the tokenizer: spelled in an instruction they are the tokens that a thought begins with.
    ids = codec.encode_prompt(user("<think>#</think>"))
    assert ids[3:-5] == [THINK, 2, END_THINK]


def test_responses_end_with_the_end_of_a_turn_and_in_base_models_also_with_that_of_a_text(codec, qwen3):
    assert (codec.end_id, codec.pad_id) == (IM_END, ENDOFTEXT)
    assert codec.eos_ids == {IM_END}
    base = ChatCodec(AutoTokenizer.from_pretrained(qwen3, eos_token="<|endoftext|>"))
    assert (base.end_id, base.pad_id) == (IM_END, ENDOFTEXT)
    assert base.eos_ids == {IM_END, ENDOFTEXT}
    assert base.encode_response("up") == [454, IM_END]
    assert base.encode_bridge([454, ENDOFTEXT], user("P"))[:2] == [IM_END, NEWLINE]


def test_the_vocabulary_has_the_tokens_of_pictures(tokenizer):
    assert len(tokenizer) == 151669
    names = ["<|vision_start|>", "<|vision_end|>", "<|vision_pad|>", "<|image_pad|>", "<|video_pad|>"]
    assert tokenizer.convert_tokens_to_ids(names) == [151652, 151653, 151654, 151655, 151656]


def test_tokens_beyond_the_end_of_a_program_are_cut_at_a_token(codec):
    text = "Try.\n```python\nprint(1)\n```\nMore"
    ids = codec.encode_response(text)
    # The last backquote and the line break after it are one token, which stays whole.
    kept = ids[: codec.count_tokens(ids, len("Try.\n```python\nprint(1)\n```"))]
    assert codec.decode(kept) == "Try.\n```python\nprint(1)\n```\n"


def test_tokens_of_a_character_in_two_pieces_count_together(codec):
    ids = codec.encode_response("a🧩b")  # 123908 and 102 are the halves of the jigsaw
    assert ids == [64, 123908, 102, 65, IM_END]
    assert [codec.count_tokens(ids, n) for n in (1, 2, 3)] == [1, 3, 4]


@pytest.fixture(scope="module")
def babbler(tokenizer):
    return tiny_model(tokenizer, seed=0, hidden=16, layers=1)


@pytest.mark.parametrize("thinking", [True, False])
@pytest.mark.parametrize(("env_id", "memory"), [e for e in ENVS if e[0] != "ARL/TIRMath-v0"])
def test_sampled_tokens_and_no_others_carry_loss(babbler, codec, unthinking, env_id, memory, thinking):
    codec = codec if thinking else unthinking
    policy = HFPolicy(babbler, codec, max_tokens=64, temperature=1.0, batch_size=8, max_context=4096)
    vec = make_chat_vec(env_id, 2, window=window(memory), max_steps=3)
    task = task_ids(vec, "train")[0]
    episodes = [Episode(task_id=task, group=0, copy=c) for c in range(2)]
    played = rollout(vec, policy, episodes, env_id=env_id, seed=0)
    vec.close()
    batch = pack(played, pad_id=codec.pad_id)
    turns = [t for p in played for t in p.turns]
    assert len(turns) == 6
    assert batch.n_rows == (2 if memory == "dialogue" else 6)
    for segment, t in enumerate(turns):
        prompt, sampled = t.prompt_ids or [], t.completion_ids or []
        (row,) = set((batch.segment == segment).nonzero()[0].tolist())
        columns = (batch.segment[row] == segment).nonzero()[0].tolist()
        assert columns == list(range(len(prompt), len(prompt) + len(sampled)))
        assert batch.ids[row, : len(prompt) + len(sampled)].tolist() == prompt + sampled
    assert batch.action_mask.sum() == sum(len(t.completion_ids or []) for t in turns)
    # What makes this a test: the tokenizer would have cut the same texts into other tokens.
    texts = [codec.tokenizer.decode(t.completion_ids or []) for t in turns]
    again = [codec.tokenizer(text)["input_ids"] for text in texts]
    assert again != [t.completion_ids for t in turns]


class Reciter:
    """A policy that answers with given tokens, a list a turn."""

    def __init__(self, codec: ChatCodec, turns: list[list[int]]):
        self.codec, self.turns = codec, iter(turns)
        self.queue: list[Request] = []

    def submit(self, requests):
        self.queue.extend(requests)

    def poll(self):
        queue, self.queue = self.queue, []
        return [self.reply(request) for request in queue]

    def reply(self, request: Request) -> Reply:
        context, ids = request.context_ids, next(self.turns)
        if context is None:
            prompt = self.codec.encode_prompt(request.messages)
        else:
            prompt = context + self.codec.encode_bridge(context, request.messages)
        return Reply(
            key=request.key,
            response=self.codec.decode(ids),
            finish="stop",
            prompt_ids=prompt,
            completion_ids=ids,
            logprobs=[-1.0] * len(ids),
            n_tokens=partial(self.codec.count_tokens, ids),
        )


def test_a_program_ends_its_turn_and_its_output_goes_on_from_there(codec):
    program = codec.encode_response("Try.\n```python\nprint(1 + 1)\n```\nIt printed 5.")
    boxed = codec.encode_response("It is \\boxed{2}.")
    vec = make_chat_vec("ARL/TIRMath-v0", 1, window=None)
    episode = Episode(task_id=task_ids(vec, "train")[0], group=0)
    policy = Reciter(codec, [program, boxed])
    (played,) = rollout(vec, policy, [episode], env_id="ARL/TIRMath-v0", seed=0)
    vec.close()
    first, second = played.turns
    kept = program[: first.n_kept]
    assert codec.decode(kept) == "Try.\n```python\nprint(1 + 1)\n```\n"
    assert first.prompt_ids is not None
    assert second.prompt_ids is not None
    bridge = second.prompt_ids[len(first.prompt_ids) + len(kept) :]
    assert second.prompt_ids == first.prompt_ids + kept + bridge
    assert bridge[:5] == [IM_END, NEWLINE, *OPEN_USER]
    assert bridge[-5:] == [IM_END, NEWLINE, *OPEN_ASSISTANT]
    assert codec.tokenizer.decode(bridge[5:-5]) == "Code execution result: 2"
    batch = pack([played], pad_id=codec.pad_id)
    assert batch.n_rows == 1
    assert batch.ids[batch.action_mask].tolist() == kept + boxed[: second.n_kept]
