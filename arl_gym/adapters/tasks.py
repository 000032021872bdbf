"""Rows of tasks for the data sets of other libraries: whoever copies a row G times has a group.

    rows = task_dataset("ARL/Sokoban-v0", "train", n=1000, library="verl")
    datasets.Dataset.from_list(rows).to_parquet("train.parquet")

Needs none of the libraries.
"""

import json
from collections.abc import Callable, Mapping
from itertools import islice
from typing import Any

from arl_gym.adapters.episode import TOOL_KWARGS, TextEpisode, text_of
from arl_gym.agents.tasks import episode_seed, split_kwargs, task_ids
from arl_gym.core import check_count, to_openai
from arl_gym.errors import ConfigError, UnknownNameError
from arl_gym.make import make_chat_vec

Row = dict[str, Any]

NAME = "arl_gym"
"""What this package's environment, agent loop or data source is called in other libraries."""


def task_dataset(
    id: str, split: str = "train", *, n: int, library: str = "plain", tools: bool = False, **kwargs: Any
) -> list[Row]:
    """Return one row for each of the first n tasks of a split, or for all of them if there are fewer.

    A plain row has `prompt` (the first messages, in OpenAI's form), `env_id`, `task_id`, `seed`, `split`,
    `env_kwargs` and `tools`, everything that `TextEpisode(env_id, env_kwargs, task_id=, seed=, tools=)` needs
    to begin the very episode that the prompt shows. The other layouts say the same in the columns that a
    library reads.

    Args:
        id: A registered id.
        split: The tasks' split.
        n: At least 1.
        library: "plain", "trl", "verl" or "skyrl".
        tools: Whether the model will call tools.
        kwargs: Keyword arguments of `make_chat_env`; JSON values, since they travel in the rows.

    Raises:
        UnknownNameError: If a name is unknown.
        ConfigError: If `n` is below 1, or the library takes no images or tools, and as `make_chat_env`.
    """
    check_count("n", n)
    if library not in LAYOUTS:
        raise UnknownNameError("library", library, LAYOUTS, "task_dataset")
    if tools and library in _TEXT_ONLY:
        raise ConfigError(f"the adapter of {library} plays responses of text, got tools=True")
    env_kwargs = {**kwargs, **split_kwargs(id, split)}
    vec = make_chat_vec(id, 1, **{"window": None, **(TOOL_KWARGS if tools else {}), **env_kwargs})
    try:
        chosen = list(islice(task_ids(vec, split), n))
    finally:
        vec.close()
    return [LAYOUTS[library](_row(id, split, task_id, env_kwargs, tools)) for task_id in chosen]


def _row(id: str, split: str, task_id: str, env_kwargs: Mapping[str, Any], tools: bool) -> Row:
    with TextEpisode(id, env_kwargs, task_id=task_id, tools=tools) as episode:
        prompt = to_openai(episode.messages)
    return {
        "prompt": prompt,
        "env_id": id,
        "task_id": task_id,
        "seed": episode_seed(task_id),
        "split": split,
        "env_kwargs": dict(env_kwargs),
        "tools": tools,
    }


def _skyrl(row: Row) -> Row:
    """Columns of SkyRL: it makes the environment that `env_class` names, with the row as `extras`.

    The keyword arguments are JSON text: SkyRL joins data sets, and columns of other fields do not join.
    """
    return {
        **row,
        "prompt": [{"role": message["role"], "content": text_of([message])} for message in row["prompt"]],
        "env_kwargs": json.dumps(row["env_kwargs"]),
        "data_source": row["env_id"],
        "env_class": NAME,
    }


def _trl(row: Row) -> Row:
    """Columns of TRL: an environment with tools is chosen by `environment` and reset with the whole row.

    A rollout function sees the prompt only, so that its message says the task. The episode brings the text.
    """
    task = {key: row[key] for key in ("env_id", "task_id", "env_kwargs")}
    return {
        **row,
        "prompt": [{"role": "user", "content": "", "task": json.dumps(task)}],
        "env_kwargs": json.dumps(row["env_kwargs"]),
        "environment": row["env_id"],
    }


def _verl(row: Row) -> Row:
    """Columns of verl: it makes the agent loop that `agent_name` names, with the row as keyword arguments."""
    task = {key: row[key] for key in ("env_id", "task_id", "seed", "split")}
    return {
        "prompt": row["prompt"],
        "data_source": row["env_id"],
        "agent_name": NAME,
        "reward_model": {"style": "rule", "ground_truth": row["task_id"]},
        # By the index verl tells prompts apart, in its traces.
        "extra_info": {**task, "env_kwargs": json.dumps(row["env_kwargs"]), "index": row["seed"]},
    }


LAYOUTS: dict[str, Callable[[Row], Row]] = {
    "plain": lambda row: row,
    "skyrl": _skyrl,
    "trl": _trl,
    "verl": _verl,
}
"""From a plain row to a library's."""

_TEXT_ONLY = ("skyrl", "verl")
