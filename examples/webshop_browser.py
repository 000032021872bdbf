"""Let the expert shop in a real browser, and keep a screenshot of every page.

    python examples/webshop_browser.py --folder runs/browser --seed 3

Needs the extra `browser`, Chromium and its driver (Debian: apt-get install chromium chromium-driver).
"""

import argparse
from pathlib import Path

import gymnasium as gym
from PIL import Image

import arl_gym

gym.register_envs(arl_gym)


def main() -> None:
    """Play one episode and print what is done."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--folder", type=Path, default=Path("runs/webshop-browser"))
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--no-marks", action="store_true", help="without numbers on what can be clicked")
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)

    env = gym.make("ARL/WebShop-v0", frontend="browser", obs_mode="both", set_of_marks=not options.no_marks)
    try:
        observation, info = env.reset(seed=options.seed)
        print(f"task: {info['task']}")
        step, over = 0, False
        while True:
            Image.fromarray(observation["image"]).save(options.folder / f"{step:02d}-{info['page']}.png")
            if over:
                break
            action = env.get_wrapper_attr("expert_action")()
            observation, reward, terminated, truncated, info = env.step(action)
            step, over = step + 1, terminated or truncated
            print(f"{action:60} -> {info['page']}, reward {reward:g}")
        print(f"score {info['score']:g}; screenshots in {options.folder}")
    finally:
        env.close()


if __name__ == "__main__":
    main()
