"""The viewer's script in a real browser: `make test-browser` runs it."""

import pytest
from selenium.webdriver import Chrome, ChromeOptions, ChromeService
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.wait import WebDriverWait

from arl_gym.envs.webshop.browser import find_programs
from arl_gym.errors import BrowserError
from arl_gym.train.conditions import Condition
from arl_gym.train.recordings import turn_fields
from arl_gym.train.viewer import write_viewer
from tests.conftest import require
from tests.train.fake_run import recorded_episode

EVIL = "</script><img src=x onerror='document.title=1'>"


def episodes():
    out = []
    for group in range(2):
        for copy in range(3):
            won = copy < 2
            episode = recorded_episode(
                group=group, copy=copy, success=won, penalties=(0.5 * (copy == 1), 0.0)
            )
            for k, turn in enumerate(episode["turns"]):
                turn["advantage"] = group + copy - 2.5 * k
                turn["action"] = ("left", "right", EVIL)[copy]
                turn["tokens"] = ["<action>", "right", "</action>"]
                turn["completion_ids"] = [5, 6, 7]
                turn["old_logprobs"] = [-1.0, -0.5, -0.25]
                turn["new_logprobs"] = [-1.0, -0.4, -0.35]
            out.append(episode)
    del out[-1]["turns"][1]["advantage"]
    return out


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    folder = tmp_path_factory.mktemp("page")
    try:
        programs = find_programs()
    except BrowserError as err:
        require(False, str(err))
    page = write_viewer(episodes(), folder, folder / "page.html", title="Step 3")
    options = ChromeOptions()
    options.binary_location = programs.chromium
    for argument in ("--headless=new", "--no-sandbox", "--disable-gpu", "--window-size=1200,900"):
        options.add_argument(argument)
    driver = Chrome(options=options, service=ChromeService(programs.chromedriver))
    driver.get(page.as_uri())
    wait_for(driver, "return document.querySelectorAll('.action').length == 6")
    yield driver
    driver.quit()


def wait_for(driver, script):
    WebDriverWait(driver, 10, poll_frequency=0.05).until(lambda d: d.execute_script(script))


def found(browser, text):
    box = browser.find_element(By.ID, "filter")
    box.send_keys(Keys.CONTROL, "a")
    box.send_keys(text or Keys.DELETE)
    return browser.find_element(By.ID, "found").text


def test_members_stand_side_by_side_and_recorded_markup_is_text(browser):
    found(browser, "")
    assert browser.title == "Step 3"
    heads = browser.find_elements(By.CSS_SELECTOR, ".member")
    assert len({head.rect["y"] for head in heads}) == 1
    assert EVIL in [a.text for a in browser.find_elements(By.CSS_SELECTOR, ".action")]


@pytest.mark.parametrize(
    "text",
    [
        "success",
        "not success and turn == 1",
        "advantage < 0",
        "advantage >= 0.5 and format_valid == 0",
        "advantage != None and return > 5",
        "format_valid == False",
        "'left' in action",
        "'left' not in action and group == 1",
        "action == 'right'",
        "'Step 2' in prompt",
        "stop == 'terminated' and ratio >= 1",
    ],
)
def test_the_filter_finds_what_the_command_line_finds(browser, text):
    turns = [turn_fields(episode) for episode in episodes()]
    names = {name for fields in turns for turn in fields for name in turn}
    counts = [sum(Condition(text, names).matches(turn) for turn in fields) for fields in turns]
    assert sum(counts) > 0
    turn = "turn" if sum(counts) == 1 else "turns"
    episode = "episode" if sum(map(bool, counts)) == 1 else "episodes"
    assert found(browser, text) == f"{sum(counts)} {turn} of {sum(map(bool, counts))} {episode}"


@pytest.mark.parametrize(("text", "says"), [("benefit < 1", 'no field "benefit"'), ("1 +", "expected field")])
def test_a_filter_that_is_none_says_what_is_expected(browser, text, says):
    assert says in found(browser, text)
    assert browser.find_element(By.ID, "filter").get_attribute("aria-invalid") == "true"


def test_the_keyboard_reaches_the_numbers_of_every_token(browser):
    found(browser, "")
    wait_for(browser, "return document.querySelectorAll('.tokens').length == 6")
    tokens = browser.find_element(By.CSS_SELECTOR, ".tokens")
    tokens.send_keys(Keys.ARROW_RIGHT, Keys.ARROW_RIGHT)
    tip = browser.find_element(By.ID, "tip").text.splitlines()
    # exp(-0.4 + 0.5) = 1.1052
    assert tip[:3] == ['"right" (id 6)', "ratio 1.1052", "log-probability −0.5 → −0.4"]
    tokens.send_keys(Keys.ESCAPE)
    assert not browser.find_element(By.ID, "tip").is_displayed()


def test_a_colouring_marks_what_rose_and_what_fell(browser):
    found(browser, "")
    wait_for(browser, "return document.querySelectorAll('.tokens').length == 6")
    browser.find_element(By.CSS_SELECTOR, "[value=ratio]").click()
    spans = browser.find_elements(By.CSS_SELECTOR, ".tokens")[0].find_elements(By.TAG_NAME, "span")
    styles = [span.get_attribute("style") for span in spans]
    assert [("more" in s, "less" in s) for s in styles] == [(False, False), (True, False), (False, True)]


def test_another_group_is_shown_by_the_arrow_keys(browser):
    found(browser, "")
    first, second = browser.find_elements(By.CSS_SELECTOR, "#groups button")
    first.send_keys(Keys.ARROW_DOWN)
    wait_for(browser, "return document.querySelector('h2').textContent.startsWith('Group 1')")
    assert second.get_attribute("aria-current") == "true"
    second.send_keys(Keys.ARROW_UP)
    wait_for(browser, "return document.querySelector('h2').textContent.startsWith('Group 0')")
