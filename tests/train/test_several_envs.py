"""A run over several environments, from its rollouts to its resumption."""

from collections import Counter, defaultdict

import pytest

from arl_gym.agents.records import read_trajectories
from arl_gym.errors import ConfigError, Interrupted
from arl_gym.train.methods import resolve
from arl_gym.train.metrics import read_metrics, without_timings
from arl_gym.train.trainer import train
from tests.train.test_every_method import ENVS
from tests.train.test_resume import stop_at

GROUPS, SIZE, STEPS = 8, 2, 3
NAMES = ("Sokoban-v0.0", "Sokoban-v0.1", "ALFWorld-v0")
SOKOBAN = {"id": "ARL/Sokoban-v0", "prompt": "compact", "window": 0}
ENVS_OF_RUN = [
    {**SOKOBAN, "weight": 2, "kwargs": {"text_format": "inner", "max_steps": 4}},
    {**SOKOBAN, "weight": 1, "kwargs": {"text_format": "inner", "dim_room": [7, 7], "max_steps": 3}},
    {"id": "ARL/ALFWorld-v0", "weight": 1, **ENVS["ARL/ALFWorld-v0"]},
]


def values(run_dir, **changes):
    base = {
        "run_dir": str(run_dir),
        "steps": STEPS,
        "trajectories_every": 1,
        "envs": ENVS_OF_RUN,
        "model": {"max_context": 512},
        "rollout": {"groups": GROUPS, "group_size": SIZE, "max_tokens": 4},
        # Random agents all fail alike: every group must be kept for there to be something to look at.
        "filter": {"enable": False},
        "optim": {"lr": 1e-3},
        "eval": {"every": 2, "episodes": 3},
        "checkpoint": {"every": 1},
    }
    return {**base, **changes}


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("several") / "run"
    train(resolve(values(folder)))
    return folder


@pytest.fixture(scope="module")
def rows(run):
    return read_metrics(run / "metrics.jsonl")


@pytest.fixture(scope="module")
def played(run):
    return [read_trajectories(p) for p in sorted((run / "trajectories").glob("step-*.jsonl.gz"))]


def env_of(trajectory):
    """The two Sokobans differ in the size of their rooms: the inner text of 6x6 has 4 lines, of 7x7 has 5."""
    if trajectory.env_id == "ARL/ALFWorld-v0":
        return "ALFWorld-v0"
    return "Sokoban-v0.1" if trajectory.turns[0].anchor.count("\n") == 4 else "Sokoban-v0.0"


def test_a_group_is_copies_of_one_task_of_one_environment(played):
    assert len(played) == STEPS
    for episodes in played:
        groups = defaultdict(list)
        for t in episodes:
            groups[t.group].append((env_of(t), t.env_id, t.task_id, t.turns[0].anchor))
        # Numbers are unique within the step, so anchors of two environments are never compared.
        assert sorted(groups) == list(range(GROUPS))
        assert all(len(members) == SIZE and len(set(members)) == 1 for members in groups.values())


def test_environments_share_the_groups_by_weight(played):
    counts = [Counter(env_of(t) for t in episodes) for episodes in played]
    for count in counts:
        # Weights 2:1:1 of 8 groups of 2 episodes; a step may be off by one group.
        for name, expected in zip(NAMES, (8, 4, 4), strict=True):
            assert abs(count[name] - expected) <= SIZE


def test_metrics_of_each_environment_are_those_of_its_episodes(rows, played):
    for row, episodes in zip(rows, played, strict=True):
        assert sum(row[f"rollout/episodes_{name}"] for name in NAMES) == GROUPS * SIZE
        for name in NAMES:
            mine = [t for t in episodes if env_of(t) == name]
            assert row[f"rollout/episodes_{name}"] == len(mine)
            assert row[f"rollout/success_rate_{name}"] == sum(t.success for t in mine) / len(mine)
            returns = sum(t.env_return for t in mine) / len(mine)
            assert row[f"rollout/return_mean_{name}"] == pytest.approx(returns)
            turns = sum(len(t.turns) for t in mine) / len(mine)
            assert row[f"rollout/turns_mean_{name}"] == pytest.approx(turns)


def test_evaluation_looks_at_every_environment_and_counts_them_alike(rows):
    assert not any(key.startswith("eval/") for key in rows[0])
    for row in rows[1:]:  # step 2, and the last
        of_envs = [row[f"eval/return_mean_{name}"] for name in NAMES]
        assert row["eval/return_mean"] == pytest.approx(sum(of_envs) / 3)
        # Sokoban costs 0.1 a step: 4 and 3 of them.
        assert of_envs[:2] == pytest.approx([-0.4, -0.3])
        assert row["eval/episodes_pick_and_place_simple"] == 3


def test_kinds_of_task_are_counted_over_the_environments_that_share_them(tmp_path):
    cfg = values(tmp_path / "run", steps=1, envs=[ENVS_OF_RUN[2]] * 2, eval={"every": 1, "episodes": 2})
    train(resolve(cfg))
    (row,) = read_metrics(tmp_path / "run" / "metrics.jsonl")
    assert row["eval/episodes_pick_and_place_simple"] == 4


def test_it_goes_on_where_it_was_stopped(run, tmp_path, monkeypatch):
    # A step asks the policy 4 + 3 + 8 times, once a turn of each environment: this is the second Sokoban's
    # second turn in the second step.
    stop_at(15 + 4 + 2, monkeypatch)
    cfg = resolve(values(tmp_path / "run"))
    with pytest.raises(Interrupted):
        train(cfg)
    train(cfg, resume="auto")
    a, b = (read_metrics(r / "metrics.jsonl") for r in (run, tmp_path / "run"))
    assert [without_timings(row) for row in a] == [without_timings(row) for row in b]
    tasks = [
        [(t.env_id, t.task_id) for t in read_trajectories(r / "trajectories" / "step-000003.jsonl.gz")]
        for r in (run, tmp_path / "run")
    ]
    assert tasks[0] == tasks[1]


def test_an_evaluation_that_cannot_be_played_is_refused_before_training(tmp_path):
    # 5x5 rooms are few: none are left for validation.
    small = {**SOKOBAN, "kwargs": {"text_format": "inner", "dim_room": [5, 5]}}
    with pytest.raises(ConfigError, match="split 'val'"):
        train(resolve(values(tmp_path / "run", envs=[ENVS_OF_RUN[0], small])))
    assert not (tmp_path / "run").exists()
