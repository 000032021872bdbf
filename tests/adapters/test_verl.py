import asyncio
import importlib
import json
import sys
from types import SimpleNamespace
from typing import Any

import pytest

import arl_gym.adapters
from arl_gym.adapters.episode import TextEpisode
from arl_gym.adapters.tasks import task_dataset
from arl_gym.errors import ConfigError, DependencyMissing
from tests.adapters import letters, peer_verl
from tests.adapters.letters import rendered, text_of_ids
from tests.adapters.peer_verl import Server

SOKOBAN = "ARL/Sokoban-v0"
UP = "<think></think><action>up</action>"


@pytest.fixture
def adapter(monkeypatch):
    for name, module in peer_verl.modules().items():
        monkeypatch.setitem(sys.modules, name, module)
    monkeypatch.setitem(sys.modules, "arl_gym.train.chat", letters.module())
    monkeypatch.delitem(sys.modules, "arl_gym.adapters.verl", raising=False)
    yield importlib.import_module("arl_gym.adapters.verl")
    del sys.modules["arl_gym.adapters.verl"], vars(arl_gym.adapters)["verl"]


def row_of(env_id: str = SOKOBAN, **kwargs: Any) -> dict[str, Any]:
    (row,) = task_dataset(env_id, n=1, library="verl", **kwargs)
    return row


def run(
    adapter: Any,
    row: dict[str, Any],
    server: Server,
    *,
    prompt_length: int = 1 << 20,
    response_length: int = 1 << 20,
    use_v1: bool = True,
    template: dict[str, Any] | None = None,
    processor: Any = None,
) -> Any:
    lengths = SimpleNamespace(prompt_length=prompt_length, response_length=response_length)
    config = SimpleNamespace(
        actor_rollout_ref=SimpleNamespace(rollout=lengths), trainer=SimpleNamespace(use_v1=use_v1)
    )

    async def once() -> Any:
        loop = adapter.ArlGymAgentLoop(
            trainer_config=SimpleNamespace(config=config),
            server_manager=server,
            tokenizer="the tokenizer",
            processor=processor,
            dataset_cls=None,
            data_config=SimpleNamespace(config={"apply_chat_template_kwargs": template or {}}),
        )
        assert loop._codec.settings == ("the tokenizer", (template or {}).get("enable_thinking", True), {})
        return await loop.run({"temperature": 0.7}, **row, raw_prompt=row["prompt"], uid="a")

    return asyncio.run(once())


def test_without_verl_the_error_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "verl", None)
    with pytest.raises(DependencyMissing, match=r"verl needs: pip install 'arl-gym\[verl\]'"):
        importlib.import_module("arl_gym.adapters.verl")


def test_a_dialogue_is_one_output_with_what_was_sampled_marked(adapter):
    row = row_of(max_episode_steps=2)
    said = [UP, "left"]
    with TextEpisode(SOKOBAN, {"max_episode_steps": 2}, task_id=row["extra_info"]["task_id"]) as episode:
        first = rendered(episode.messages)
        answer = rendered(episode.act(said[0]).messages)
        episode.act(said[1])
        record = episode.record()
    server = Server(said)
    output = run(adapter, row, server)
    assert text_of_ids(output.prompt_ids) == first
    assert text_of_ids(output.response_ids) == f"{UP}${answer}left$"
    n_said, n_answer = len(UP) + 1, len(answer)
    assert output.response_mask == [1] * n_said + [0] * n_answer + [1] * 5
    assert output.response_logprobs == [-0.5] * n_said + [0.0] * n_answer + [-0.5] * 5
    assert output.reward_score == pytest.approx(-0.3)
    assert output.num_turns == 4
    assert output.multi_modal_data == {}
    assert output.metrics == {"generate_sequences": 2.0, "tool_calls": 2.0}
    assert output.extra_fields == {
        "min_global_steps": 1,
        "max_global_steps": 2,
        "turn_scores": record["rewards"],
        "tool_rewards": [],
        "reward_extra_info": {"success": 0.0, "score": record["score"], "env_return": -0.2, "n_turns": 2.0},
        "episode": record,
        "turn": 0,
    }
    contexts = [text_of_ids(asked["prompt_ids"]) for asked in server.asked]
    assert contexts == [first, f"{first}{UP}${answer}"]
    assert len({asked["request_id"] for asked in server.asked}) == 1
    assert {asked["temperature"] for asked in server.asked} == {0.7}


def test_without_log_probs_there_are_none(adapter):
    assert run(adapter, row_of(max_episode_steps=2), Server("ab", logprobs=False)).response_logprobs is None


def test_a_memory_window_is_one_output_a_turn(adapter):
    row = row_of(max_episode_steps=3, window=1)
    outputs = run(adapter, row, Server([UP, "b", UP]))
    assert [text_of_ids(output.response_ids) for output in outputs] == [f"{UP}$", "b$", f"{UP}$"]
    assert [output.response_mask for output in outputs] == [[1] * (len(UP) + 1), [1, 1], [1] * (len(UP) + 1)]
    assert [output.extra_fields["turn"] for output in outputs] == [0, 1, 2]
    assert [output.extra_fields["min_global_steps"] for output in outputs] == [1, 2, 3]
    assert {output.reward_score for output in outputs} == {sum(outputs[0].extra_fields["turn_scores"])}
    (episode,) = {json.dumps(output.extra_fields["episode"]) for output in outputs}
    assert json.loads(episode)["format_valid"] == [True, False, True]


def test_a_memory_window_is_refused_by_the_old_trainer(adapter):
    with pytest.raises(ConfigError, match="use_v1=True"):
        run(adapter, row_of(window=1), Server(["a"]), use_v1=False)


def test_a_response_never_passes_its_length(adapter):
    row = row_of()
    whole = run(adapter, row, Server([UP, "x" * 60, *"-" * 20]))
    n_answered = whole.response_mask.index(1, len(UP) + 1)
    for length, n_turns in [(5, 1), (n_answered, 1), (n_answered + 1, 2), (n_answered + 60, 2)]:
        server = Server([UP, "x" * 60])
        output = run(adapter, row, server, response_length=length)
        assert (
            len(output.response_ids) == len(output.response_mask) == len(output.response_logprobs) <= length
        )
        assert output.response_ids == whole.response_ids[: len(output.response_ids)]
        assert output.response_mask[-1] == 1
        assert output.extra_fields["episode"]["stop"] == "context_full"
        assert [asked["max_tokens"] for asked in server.asked] == [length, length - n_answered][:n_turns]


def test_a_prompt_that_verl_would_cut_is_refused(adapter):
    n_tokens = len(rendered(row_of()["prompt"]))
    run(adapter, row_of(max_episode_steps=1), Server(["a"]), prompt_length=n_tokens + 1)
    with pytest.raises(ConfigError, match=f"prompt_length={n_tokens}"):
        run(adapter, row_of(), Server([]), prompt_length=n_tokens)


def test_a_window_that_grows_too_long_ends_the_episode(adapter):
    row = row_of(window=3)
    length = len(rendered(row["prompt"])) + 1
    output = run(adapter, row, Server([UP]), prompt_length=length)
    assert output.extra_fields["episode"]["stop"] == "context_full"
    assert output.extra_fields["turn_scores"] == [pytest.approx(-0.1)]


def test_what_the_environment_does_not_read_is_not_in_the_response(adapter):
    program = "```python\nprint(6 * 7)\n```"
    server = Server([f"{program}\nIt prints 41, so \\boxed{{41}}.", "\\boxed{41}"])
    output = run(adapter, row_of("ARL/TIRMath-v0"), server)
    shown = text_of_ids(output.response_ids)
    assert shown.startswith(f"{program}$(user) ")
    assert shown.endswith("(assistant) \\boxed{41}$")
    assert "It prints 41" not in shown
    assert len(output.response_logprobs) == len(output.response_ids)
    assert all(len(asked["stop"]) > 0 for asked in server.asked)


def test_images_go_to_the_server_and_into_the_output(adapter):
    row = row_of(obs_mode="image", max_episode_steps=2)
    server = Server([UP, UP])
    output = run(adapter, row, server, processor="a processor")
    first, second = (asked["images"] for asked in server.asked)
    assert len(first) == 1
    assert second[0] is first[0]
    assert output.multi_modal_data == {"images": second}
    assert len(second) == 2
    assert {image.mode for image in second} == {"RGB"}


def test_images_are_left_to_verl_to_refuse(adapter):
    with pytest.raises(ValueError, match="Use a VL base model"):
        run(adapter, row_of(obs_mode="image"), Server([]))


def test_a_template_that_can_think_is_told_whether_to(adapter):
    run(adapter, row_of(max_episode_steps=1), Server(["a"]), template={"enable_thinking": False})


def test_rows_name_the_loop_and_say_the_task(adapter):
    row = row_of(max_episode_steps=3)
    assert peer_verl.REGISTERED[row["agent_name"]] is adapter.ArlGymAgentLoop
    assert row["data_source"] == SOKOBAN
    assert set(row["extra_info"]) == {"env_id", "task_id", "seed", "split", "env_kwargs", "index"}
    assert json.loads(row["extra_info"]["env_kwargs"]) == {"max_episode_steps": 3, "split": "train"}
    with TextEpisode(SOKOBAN, task_id=row["extra_info"]["task_id"]) as episode:
        assert row["prompt"] == episode.messages
