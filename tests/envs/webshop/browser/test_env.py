"""The environment with a browser: what is seen, and what happens when the browser or the site fails."""

import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

import arl_gym
from arl_gym.checker import check_text_env
from arl_gym.envs.webshop import browser as browser_module
from arl_gym.envs.webshop.env import WebShopEnv
from arl_gym.envs.webshop.site.app import create_app
from arl_gym.envs.webshop.site.server import SiteServer
from arl_gym.envs.webshop.tasks import GeneratedTasks
from arl_gym.errors import BrowserError, ConfigError
from arl_gym.vector import TextVectorEnv
from tests.envs.webshop.browser.conftest import browser_of, living, pid_of

TASK = {"task_id": "train-000000"}


def gone(group: int, within_s: float = 10.0) -> bool:
    until = time.monotonic() + within_s
    while living(group) and time.monotonic() < until:
        time.sleep(0.05)
    return not living(group)


# ---- what is seen


def test_an_observation_is_the_text_with_a_picture_of_the_window(new_env):
    env = new_env(obs_mode="both", screenshot_size=(640, 480))
    seen, _ = env.reset(options=TASK)
    assert env.observation_space.contains(seen)
    assert seen["image"].shape == (480, 640, 3)
    assert len(np.unique(seen["image"].reshape(-1, 3), axis=0)) > 20
    text = new_env(frontend="text").reset(options=TASK)[0]
    assert seen["text"] == text
    again, _ = env.reset(options=TASK)
    assert np.array_equal(again["image"], seen["image"])


def test_a_picture_shows_what_was_selected(new_env):
    env = new_env(obs_mode="image")
    env.reset(options=TASK)
    while env._info()["page"] != "item":
        before, *_ = env.step(env.expert_action())
    after, *_, info = env.step(env.expert_action())
    assert info["selected_options"]
    assert not np.array_equal(before, after)


def test_marks_number_what_can_be_clicked(new_env):
    plain, marked = new_env(obs_mode="image"), new_env(obs_mode="image", set_of_marks=True)
    for env in (plain, marked):
        env.reset(options=TASK)
    without, *_ = plain.step("search[red mug]")
    with_marks, *_, info = marked.step("search[red mug]")
    assert not np.array_equal(without, with_marks)
    clicks = [a for a in info["admissible_actions"] if a.startswith("click")]
    assert clicks[:2] == ["click[back to search]", "click[next >]"]
    *_, info = marked.step("click[#2]")
    assert info["action_valid"]
    assert "click[< prev]" in info["admissible_actions"]
    asin = marked._info()["admissible_actions"][3]
    *_, info = marked.step("click[#4]")
    assert (info["page"], f"click[{browser_session(marked).product.asin.lower()}]") == ("item", asin)
    assert not marked.step("click[#99]")[4]["action_valid"]
    assert not plain.step("click[#2]")[4]["action_valid"]


def browser_session(env: WebShopEnv) -> Any:
    return env._session


def test_scrolling_shows_the_rest_of_a_long_page(new_env):
    env = new_env(obs_mode="image", screenshot_size=(400, 300))
    env.reset(options=TASK)
    top, *_, info = env.step("search[red mug]")
    assert info["admissible_actions"][-1] == "scroll[down]"
    below, *_, info = env.step("scroll[down]")
    assert info["action_valid"]
    assert info["admissible_actions"][-2:] == ["scroll[down]", "scroll[up]"]
    assert not np.array_equal(top, below)
    back, *_, info = env.step("Scroll[Up]")
    assert info["admissible_actions"][-1] == "scroll[down]"
    assert np.array_equal(top, back)
    assert not env.step("scroll[up]")[4]["action_valid"]


def test_the_page_and_its_address_are_the_browsers(new_env):
    env = new_env(obs_mode="html")
    page, _ = env.reset(options=TASK)
    assert page.startswith("<html")
    assert env._info()["task"] in page
    env = new_env(obs_mode="url")
    env.reset(options=TASK)
    url, *_ = env.step("search[red mug]")
    assert re.fullmatch(r"http://127\.0\.0\.1:\d+/s/[\w-]{22}/results\?q=red\+mug&page=1", url)


def test_it_renders_the_window_and_the_text(new_env):
    env = new_env(render_mode="rgb_array", screenshot_size=(300, 200))
    env.reset(options=TASK)
    assert env.render().shape == (200, 300, 3)
    assert "[button] Search [button_]" in new_env_text(new_env)


def new_env_text(new_env) -> str:
    env = new_env(render_mode="ansi")
    env.reset(options=TASK)
    return str(env.render())


@pytest.mark.timeout(300)
def test_it_keeps_the_contract(new_env):
    def make() -> WebShopEnv:
        kwargs: dict[str, Any] = {"catalogue": "mini", "num_products": 200, "frontend": "browser"}
        return WebShopEnv(**kwargs)

    check_text_env(make, episodes=1)
    env = make()
    check_env(env, skip_render_check=True)
    env.close()


def test_a_prompt_shows_the_window():
    env = arl_gym.make_chat_env(
        "ARL/WebShop-v0", catalogue="mini", num_products=200, frontend="browser", obs_mode="both"
    )
    try:
        messages, _ = env.reset(options=TASK)
        kinds = [part["type"] for part in messages[0]["content"]]
        assert kinds == ["text", "image", "text"]
        assert messages[0]["content"][1]["image"].size == (1280, 800)
        messages, *_ = env.step("<think>look</think><action>search[mug]</action>")
        assert [part["type"] for part in messages[0]["content"]].count("image") == 2
    finally:
        env.close()


# ---- side by side


def test_two_browsers_do_not_disturb_each_other(new_env):
    one, two = new_env(), new_env()
    alone = new_env(frontend="text")
    ids = one.task_ids()[:2]
    for env, task_id in zip((one, two), ids, strict=True):
        env.reset(options={"task_id": task_id})
    plays: list[list[Any]] = [[], []]
    running = [True, True]
    while any(running):
        for k, env in enumerate((one, two)):
            if running[k]:
                plays[k].append(env.step(env.expert_action())[:4])
                running[k] = not plays[k][-1][2]
    for task_id, play in zip(ids, plays, strict=True):
        alone.reset(options={"task_id": task_id})
        assert [alone.step(alone.expert_action())[:4] for _ in play] == play


def test_a_running_site_serves_many_environments(new_env):
    with SiteServer(create_app(GeneratedTasks("mini", 200), options=browser_options())) as site:
        one, two = new_env(site_url=site.url), new_env(site_url=site.url + "/")
        for env in (one, two):
            env.reset(options=TASK)
        first, *_ = one.step(one.expert_action())
        assert two.step(two.expert_action())[0] == first
        with pytest.raises(ConfigError, match="another shop: its content_hash is"):
            new_env(site_url=site.url, num_products=100)
        with pytest.raises(ConfigError, match=r"another shop: its results_per_page is 10, the env.* 5"):
            new_env(site_url=site.url, results_per_page=5)
    with pytest.raises(BrowserError, match="does not answer /about"):
        new_env(site_url=site.url)


def browser_options() -> dict[str, Any]:
    return {
        "results_per_page": 10,
        "show_attributes": False,
        "hide_empty_next": False,
        "mark_clicked": False,
        "number_results": False,
        "compat": False,
    }


def test_its_own_site_listens_on_this_machine_only(new_env):
    env = new_env(obs_mode="url")
    url, _ = env.reset(options=TASK)
    port = int(url.split(":")[2].partition("/")[0])
    listening = [
        line.split()[1].split(":")
        for table in ("tcp", "tcp6")
        for line in Path(f"/proc/net/{table}").read_text().splitlines()[1:]
        if line.split()[3] == "0A"
    ]
    assert [address for address, p in listening if int(p, 16) == port] == ["0100007F"]


# ---- failures


def test_what_is_missing_is_said_with_the_way_to_install_it(new_env, monkeypatch):
    monkeypatch.setenv("ARL_CHROMIUM", "/nowhere/chromium")
    with pytest.raises(BrowserError, match="/nowhere/chromium was found: apt-get install chromium"):
        new_env()


def test_a_browser_that_cannot_start_says_why(new_env, monkeypatch, tmp_path):
    broken = tmp_path / "chromium"
    broken.write_text("#!/bin/sh\nexit 3\n")
    broken.chmod(0o755)
    monkeypatch.setenv("ARL_CHROMIUM", str(broken))
    env = new_env()
    with pytest.raises(BrowserError, match="failed to start and was ended: SessionNotCreated"):
        env.reset(options=TASK)


@pytest.mark.parametrize("program", ["chromium", "chromedriver", "sh"])
def test_a_killed_process_ends_the_episode_and_nothing_stays(new_env, program):
    env = new_env()
    env.reset(options=TASK)
    group = browser_of(env).pid
    os.kill(pid_of(group, program), signal.SIGKILL)
    if program == "sh":  # it holds nothing but the life line
        env.close()
    else:
        with pytest.raises(BrowserError, match="the browser failed to search and was ended"):
            env.step("search[mug]")
        with pytest.raises(BrowserError, match="it has ended"):
            env.step("search[mug]")
        env.reset(options=TASK)
        assert env.step("search[mug]")[4]["action_valid"]
        assert browser_of(env).pid != group
    assert gone(group)


def test_a_browser_that_died_between_episodes_is_replaced(new_env):
    env = new_env()
    env.reset(options=TASK)
    os.kill(pid_of(browser_of(env).pid, "chromium"), signal.SIGKILL)
    env.reset(options=TASK)
    assert env.step("search[mug]")[4]["action_valid"]


def test_a_browser_that_hangs_ends_the_episode(new_env, monkeypatch):
    monkeypatch.setattr(browser_module, "_COMMAND_TIMEOUT_S", 2)
    env = new_env()
    env.reset(options=TASK)
    group = browser_of(env).pid
    os.kill(pid_of(group, "chromium"), signal.SIGSTOP)
    with pytest.raises(BrowserError, match="failed to search"):
        env.step("search[mug]")
    assert gone(group)


def test_a_vector_env_goes_on_when_one_browser_dies(new_env):
    made: list[WebShopEnv] = []

    def make() -> WebShopEnv:
        made.append(new_env())
        return made[-1]

    envs = TextVectorEnv([make, make])
    envs.reset(seed=[0, 0])
    os.kill(pid_of(browser_of(made[0]).pid, "chromium"), signal.SIGKILL)
    _, _, terminated, truncated, infos = envs.step(["search[mug]", "search[mug]"])
    assert "browser failed" in infos["env_error"][0]
    assert (terminated | truncated).tolist() == [True, False]
    envs.reset(options={"reset_mask": np.array([True, False])})
    _, _, terminated, truncated, _ = envs.step(["search[mug]", "search[tea]"])
    assert not (terminated | truncated).any()


def test_closing_ends_everything(new_env):
    env = new_env()
    env.reset(options=TASK)
    group = browser_of(env).pid
    folder = next(c for c in living(group).values() if "--user-data-dir" in c)
    folder = re.search(r"--user-data-dir=(\S+)/profile", folder)[1]  # type: ignore[index]
    assert Path(folder).is_dir()
    env.close()
    env.close()
    assert gone(group)
    assert not Path(folder).exists()
    with pytest.raises(BrowserError, match="closed"):
        env.reset(options=TASK)


@pytest.mark.parametrize("how", ["os.kill(os.getpid(), 9)", "sys.exit(0)"])
def test_nothing_outlives_the_process_that_owns_it(how):
    program = (
        "import os, sys; from arl_gym.envs.webshop.env import WebShopEnv\n"
        "env = WebShopEnv(catalogue='mini', num_products=200, frontend='browser')\n"
        f"env.reset(seed=0); print(env._session.browser.pid, flush=True); {how}\n"
    )
    with tempfile.TemporaryDirectory(prefix="arl", dir="/tmp") as folder:
        environment = {**os.environ, "TMPDIR": folder}
        done = subprocess.run(
            [sys.executable, "-c", program], env=environment, capture_output=True, text=True, timeout=100
        )
        assert done.stdout, done.stderr
        assert gone(int(done.stdout))
        assert list(Path(folder).glob("arl-browser-*")) == []
