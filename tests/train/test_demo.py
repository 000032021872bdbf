import json

import pytest

from arl_gym.train.demo import run_demo
from arl_gym.train.methods import resolve
from arl_gym.train.metrics import read_metrics


@pytest.fixture(scope="module")
def demo(tmp_path_factory):
    folder = tmp_path_factory.mktemp("demo") / "run"
    cfg = resolve(
        {
            "run_dir": str(folder),
            "steps": 1,
            "env": {"prompt": "compact", "window": 0, "kwargs": {"text_format": "inner", "max_steps": 4}},
            "rollout": {"groups": 2, "group_size": 2, "max_tokens": 4},
            "filter": {"max_tries": 1},
            "loss": {"kl_coef": 0.0},
            "clone": {"episodes": 8, "val_episodes": 4, "steps": 2, "eval_every": 1, "thoughts": False},
        }
    )
    said: list[str] = []
    arms = run_demo(cfg, episodes=8, compare=["GRPO"], say=said.append)
    return folder, arms, said


def test_every_agent_meets_the_same_tasks(demo):
    _, arms, _ = demo
    assert [a.name for a in arms] == ["random", "BC", "SAMPO", "BC continued", "GRPO"]
    assert len({a.main.content_hash for a in arms}) == 1
    assert {a.main.split for a in arms} == {"test"}


def test_the_others_get_the_time_of_the_method(demo):
    _, arms, _ = demo
    seconds = {a.name: a.seconds for a in arms}
    assert seconds["BC continued"] >= seconds["SAMPO"]
    assert seconds["GRPO"] >= seconds["SAMPO"]


def test_all_arms_start_from_the_same_clone(demo):
    folder, _, _ = demo
    for name in ("sampo", "bc_continued", "grpo"):
        text = (folder / name / "config.toml").read_text()
        assert str(folder / "bc" / "model") in text
    assert 'method = "GRPO"' in (folder / "grpo" / "config.toml").read_text()
    assert read_metrics(folder / "grpo" / "metrics.jsonl")


def test_result_and_report_are_written(demo):
    folder, arms, said = demo
    result = json.loads((folder / "result.json").read_text())
    assert [r["name"] for r in result["rows"]] == [a.name for a in arms]
    assert [d["a"] for d in result["differences"]] == ["SAMPO", "BC continued", "GRPO"]
    assert len(result["rows"][1]["successes"]) == 8
    page = (folder / "report.html").read_text()
    assert "SAMPO" in page
    assert "generated" in page
    assert "Left out" not in page
    assert page.count("<svg") >= 9
    assert said[0].startswith("random play")
