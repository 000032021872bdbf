"""WebShop in a browser: how long start, reset, clicks and screenshots take, and the memory of an environment.

    python benchmarks/webshop_browser.py --episodes 20

The expert shops the same tasks in the text environment, in a browser that is asked for the text, and in one
that is asked for text and screenshot. Prints the table that stands in RESULTS.md.
"""

import argparse
import statistics
import time
from pathlib import Path
from typing import Any

import gymnasium as gym

import arl_gym

gym.register_envs(arl_gym)

ROWS: dict[str, dict[str, Any]] = {
    "text environment": {},
    "browser, text": {"frontend": "browser"},
    "browser, text and screenshot": {"frontend": "browser", "obs_mode": "both"},
    "browser, with marks": {"frontend": "browser", "obs_mode": "both", "set_of_marks": True},
}


def memory_mb(group: int) -> float:
    """Return the memory of a process group, shared pages counted in parts."""
    total = 0
    for folder in Path("/proc").iterdir():
        try:
            if folder.name.isdigit() and int(_fields(folder)[2]) == group:
                rollup = (folder / "smaps_rollup").read_text()
                total += int(rollup.split("Pss:")[1].split()[0])
        except (OSError, IndexError):  # it has ended meanwhile
            continue
    return total / 1024


def _fields(folder: Path) -> list[str]:
    return (folder / "stat").read_text().rpartition(")")[2].split()


def measure(episodes: int, kwargs: dict[str, Any]) -> dict[str, float]:
    """Let the expert shop; return medians in milliseconds, and the browser's memory."""
    env = gym.make("ARL/WebShop-v0", disable_env_checker=True, split="test", **kwargs)
    resets, steps = [], list[float]()
    for task_id in env.unwrapped.task_ids()[:episodes]:  # type: ignore[attr-defined]
        began = time.perf_counter()
        env.reset(options={"task_id": task_id})
        resets.append(time.perf_counter() - began)
        over = False
        while not over:
            action = env.get_wrapper_attr("expert_action")()
            began = time.perf_counter()
            _, _, terminated, truncated, _ = env.step(action)
            steps.append(time.perf_counter() - began)
            over = terminated or truncated
    session: Any = env.unwrapped._session  # type: ignore[attr-defined]
    memory = memory_mb(session.browser.pid) if kwargs else 0.0
    env.close()
    return {
        "first": 1e3 * resets[0],
        "reset": 1e3 * statistics.median(resets[1:]),
        "step": 1e3 * statistics.median(steps),
        "slow": 1e3 * statistics.quantiles(steps, n=20)[-1],
        "memory": memory,
    }


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--episodes", type=int, default=20)
    episodes = parser.parse_args().episodes
    print("| | first reset, with the start, ms | reset, ms | step, median ms | step, 95 % ms | browser, MB |")
    print("|---|---|---|---|---|---|")
    for name, kwargs in ROWS.items():
        got = measure(episodes, kwargs)
        print(
            f"| {name} | {got['first']:,.0f} | {got['reset']:.2f} | {got['step']:.2f} | {got['slow']:.2f} "
            f"| {got['memory']:.0f} |",
            flush=True,
        )


if __name__ == "__main__":
    main()
