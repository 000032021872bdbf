"""A run folder as the trainer leaves it, with made-up numbers."""

import gzip
import json
import math
from pathlib import Path

CONFIG = """\
method = "SAMPO"
seed = 3
steps = 120
run_dir = "runs/fake"

[env]
id = "ARL/Sokoban-v0"

[env.kwargs]
dim_room = [6, 6]

[loss]
ratio_level = "turn"
clip_low = 0.003
clip_high = 0.004
"""


def result(*, sampo=(0.55, 0.49, 0.61), difference=(0.18, 0.11, 0.25)):
    def rate(value, low, high):
        return {"success_rate": value, "low": low, "high": high}

    def row(name, greedy, sampled, return_mean, turns, seconds):
        return {
            "name": name,
            "greedy": rate(*greedy),
            "sampled": sampled and rate(*sampled),
            "n": 256,
            "return_mean": return_mean,
            "turns_mean": turns,
            "valid_format": 1.0,
            "seconds": seconds,
        }

    mean, low, high = difference
    return {
        "env_id": "ARL/Sokoban-v0",
        "dataset": "generated",
        "split": "test",
        "content_hash": "0f1e2d3c4b5a6978",
        "method": "SAMPO",
        "seed": 3,
        "rows": [
            row("random", (0.02, 0.01, 0.05), None, -1.3, 14.8, 2.1),
            row("expert", (1.0, 0.985, 1.0), None, 10.2, 6.1, 3.4),
            row("cloned", (0.37, 0.31, 0.43), (0.33, 0.28, 0.39), 2.9, 11.2, 9.7),
            row("SAMPO", sampo, (0.52, 0.46, 0.58), 5.0, 9.6, 9.1),
        ],
        "differences": [
            {"a": "cloned", "b": "random", "mean": 0.35, "low": 0.29, "high": 0.41},
            {"a": "SAMPO", "b": "cloned", "mean": mean, "low": low, "high": high},
        ],
    }


def metric_rows(steps, lift=0.2):
    def wave(step, k):
        return math.sin(step * 12.9898 + k * 78.233)

    rows = []
    for step in range(1, steps + 1):
        done = step / steps
        row = {
            "step": step,
            "rollout/played_success_rate": 0.33 + lift * done + 0.05 * wave(step, 1),
            "rollout/played_return_mean": 2.4 + 2.5 * done + 0.5 * wave(step, 2),
            "rollout/format_valid_frac": 0.97 + 0.02 * done + 0.01 * wave(step, 3),
            "rollout/tries": 1 + (step % 7 == 0),
            "rollout/groups_signal": 12,
            "loss/policy": -0.01 * wave(step, 4),
            "loss/kl": 0.004 * done + 0.0003 * wave(step, 5),
            "loss/approx_kl": 0.0002 + 0.0001 * wave(step, 6),
            "loss/clip_frac": 0.03 + 0.01 * wave(step, 7),
            "rollout/entropy_mean": 0.8 - 0.3 * done + 0.02 * wave(step, 8),
            "loss/ratio_mean": 1.0,
            "optim/grad_norm": None if step == 50 else 0.6 + 0.2 * wave(step, 9),
            "optim/lr": 1e-4,
            "time/rollout_s": 1.2,
            "time/score_s": 0.3,
            "time/update_s": 0.9,
            "time/step_s": 2.5,
        }
        if step % 20 == 0:
            row["eval/success_rate"] = 0.37 + lift * done
        rows.append(row)
    return rows


def episode(success, *, response="<think>The box is left of its target.</think><action>right</action>"):
    def turn(k):
        board = "######\n#.$ O#\n#    #\n######"
        asked = f"Step {k}. The board:\n{board}\nAnswer with <think>…</think><action>…</action>."
        return {
            "messages": [
                {"role": "system", "content": "You play Sokoban."},
                {"role": "user", "content": asked},
            ],
            "response": response,
            "action": "right",
            "env_reward": 10.9 if success and k == 2 else -0.1,
            "format_valid": success,
            "action_valid": True,
        }

    return {
        "env_id": "ARL/Sokoban-v0",
        "task_id": "test/000017" if success else "test/000018",
        **{"dataset": "generated", "split": "test", "content_hash": "0f1e"},
        "success": success,
        "score": float(success),
        "stop": "terminated" if success else "truncated",
        "turns": [turn(1), turn(2)],
    }


def scored(record, **scores):
    """Return an episode's record whose turns carry the scores of two tokens."""
    two = {
        "advantage": 1.0,
        "old_logprobs": [-1.0, -2.0],
        "new_logprobs": [-0.9, -2.2],
        "ref_logprobs": [-1.0, -2.0],
        "entropies": [0.5, 0.3],
    }
    return record | {"turns": [t | two | scores for t in record["turns"]]}


def write_episodes(path: Path, records) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with gzip.open(path, "wt", encoding="utf-8") as file:
        file.writelines(json.dumps(record) + "\n" for record in records)


def write_rows(path: Path, rows) -> None:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))


def make_run(folder: Path, *, steps=12, lift=0.2, whole=False) -> Path:
    """Write a run folder; unless it is `whole`, its metrics make one chart only, which is faster.

    A whole one has cloning, and two recorded steps with scores of tokens.
    """
    folder.mkdir(parents=True)
    (folder / "config.toml").write_text(CONFIG)
    (folder / "result.json").write_text(json.dumps(result()))
    rows = metric_rows(steps, lift)
    kept = ("step", "rollout/played_success_rate", "time/rollout_s")
    write_rows(folder / "metrics.jsonl", rows if whole else [{key: row[key] for key in kept} for row in rows])
    write_episodes(folder / "trajectories" / "step-000120.jsonl.gz", [episode(False), episode(True)])
    if whole:
        write_rows(folder / "clone.jsonl", clone_rows(60))
        for step in (steps // 2, 120):
            path = folder / "trajectories" / f"step-{step:06d}.jsonl.gz"
            write_episodes(path, [scored(episode(False), advantage=-1.0), scored(episode(True))])
    return folder


def clone_rows(steps):
    clone = [{"step": s, "clone/train_loss": 2 / s**0.5} for s in range(1, steps + 1)]
    for row in clone[9::10]:
        row["clone/val_loss"] = row["clone/train_loss"] + 0.03
    return clone


def recorded_episode(*, group=0, copy=0, rewards=(-0.1, 10.9), penalties=(0.0, 0.0), success=True):
    """An episode as `write_trajectories` records it; a penalty says that the format was broken."""

    def turn(k, reward, penalty):
        parts = [{"type": "text", "text": f"Step {k}."}, {"type": "image", "hash": "abc"}]
        return {
            "messages": [{"role": "system", "content": "You play."}, {"role": "user", "content": parts}],
            "response": "<action>right</action>",
            "action": "right",
            "env_reward": reward,
            "format_penalty": penalty,
            "anchor": "",
            "format_valid": not penalty,
            "action_valid": True,
            "finish": "stop",
            "append": False,
            "n_kept": 3,
            "reward": reward - penalty,
        }

    return {
        **{"env_id": "ARL/Sokoban-v0", "task_id": "train/000007", "dataset": "generated", "split": "train"},
        **{"content_hash": "0f1e", "success": success, "score": float(success), "stop": "terminated"},
        **{"task_type": "", "group": group, "copy": copy, "error": ""},
        "turns": [turn(k, r, p) for k, (r, p) in enumerate(zip(rewards, penalties, strict=True), start=1)],
    }
