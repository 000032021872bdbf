"""`task_dataset`: rows from which other libraries begin the same episodes."""

import json

import pytest

from arl_gym.adapters.episode import TextEpisode
from arl_gym.adapters.tasks import LAYOUTS, task_dataset
from arl_gym.core import to_openai
from arl_gym.envs import ENVS
from arl_gym.errors import ConfigError, UnknownNameError
from tests.adapters import dice  # noqa: F401 - registers its id


@pytest.mark.parametrize("env_id", ENVS)
@pytest.mark.parametrize("tools", [False, True])
def test_a_row_begins_the_episode_that_its_prompt_shows(env_id, tools):
    rows = task_dataset(env_id, "val", n=2, tools=tools)
    assert [row["task_id"] for row in rows] == ["val-000000", "val-000001"]
    for row in rows:
        assert (row["env_id"], row["split"], row["env_kwargs"]) == (env_id, "val", {"split": "val"})
        for _member in range(2):
            chosen = {key: row[key] for key in ("task_id", "seed", "tools")}
            with TextEpisode(row["env_id"], row["env_kwargs"], **chosen) as episode:
                assert to_openai(episode.messages) == row["prompt"]
                assert episode.info["split"] == "val"
        json.dumps(row)


def test_options_of_the_environment_travel_in_the_rows():
    (row,) = task_dataset("ARL/Sokoban-v0", n=1, obs_mode="image", window=2)
    assert row["env_kwargs"] == {"obs_mode": "image", "window": 2, "split": "train"}
    content = row["prompt"][0]["content"]
    assert [part["type"] for part in content] == ["text", "image_url", "text"]
    assert content[1]["image_url"]["url"].startswith("data:image/png;base64,")


def test_a_split_with_fewer_tasks_gives_them_all():
    rows = task_dataset("Test/Dice-v0", n=3)  # it has as many as there are seeds
    assert len({json.dumps(row["prompt"]) for row in rows}) == 3
    assert len(task_dataset("ARL/ALFWorld-v0", "test_ood", n=100_000, prompt="compact")) < 100_000


def test_verl_gets_its_columns():
    (row,) = task_dataset("ARL/Sokoban-v0", "test", n=1, library="verl")
    assert row["agent_name"] == "arl_gym"
    assert row["data_source"] == "ARL/Sokoban-v0"
    assert row["extra_info"]["task_id"] == "test-000000"
    assert json.loads(row["extra_info"]["env_kwargs"]) == {"split": "test"}


def test_skyrl_gets_its_columns():
    (row,) = task_dataset("ARL/Sokoban-v0", "test", n=1, library="skyrl")
    assert row["env_class"] == "arl_gym"
    assert row["task_id"] == "test-000000"


@pytest.mark.parametrize("library", LAYOUTS)
def test_every_layout_has_a_prompt(library):
    (row,) = task_dataset("ARL/Sokoban-v0", n=1, library=library)
    assert row["prompt"][0]["role"] in ("user", "system")


def test_what_makes_no_sense_is_refused():
    with pytest.raises(UnknownNameError, match="unknown library 'tlr' in task_dataset: did you mean 'trl'"):
        task_dataset("ARL/Sokoban-v0", n=1, library="tlr")
    with pytest.raises(ConfigError, match="n must be a whole number of at least 1, got 0"):
        task_dataset("ARL/Sokoban-v0", n=0)
    with pytest.raises(ConfigError, match="adapter of skyrl plays responses of text, got tools=True"):
        task_dataset("ARL/Sokoban-v0", n=1, library="skyrl", tools=True)
    with pytest.raises(UnknownNameError, match="unknown split"):
        task_dataset("ARL/Sokoban-v0", "tset", n=1)
    with pytest.raises(UnknownNameError, match="keyword argument 'windw'"):
        task_dataset("ARL/Sokoban-v0", n=1, windw=1)
