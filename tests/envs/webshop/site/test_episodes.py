"""The viewer of recorded episodes: what it shows of them, and what it finds out by playing them again."""

import io
import re
from dataclasses import replace
from html.parser import HTMLParser
from typing import Any

import pytest
from PIL import Image

from arl_gym import make_chat_env
from arl_gym.agents.records import read_trajectories
from arl_gym.core import Message, Part
from arl_gym.envs.webshop.tasks import GeneratedTasks
from tests.conftest import require

try:
    from arl_gym.envs.webshop.site.app import create_app
except ModuleNotFoundError:
    require(False, "needs Flask (extra browser)")

EVIL = '</pre><script>alert("1")</script><img src="http://example.org/x">\ud800'


@pytest.fixture(scope="module")
def tasks():
    return GeneratedTasks("mini", 200)


@pytest.fixture(scope="module")
def recorded(tmp_path_factory):
    """Return an episode of the expert and one in which nothing happens."""
    folder = tmp_path_factory.mktemp("recorded")
    env = make_chat_env(
        "ARL/WebShop-v0", catalogue="mini", num_products=200, max_steps=6, expert=True, record=folder
    )
    for task_id, does_something in (("train-000003", True), ("train-000004", False)):
        _, info = env.reset(options={"task_id": task_id})
        over = False
        while not over:
            action = info["expert_action"] if does_something else "click[nothing]"
            _, _, terminated, truncated, info = env.step(f"<think>why</think><action>{action}</action>")
            over = terminated or truncated
    env.close()
    return read_trajectories(folder / "episodes.jsonl")


@pytest.fixture
def bought(recorded):
    return recorded[0]


def site(tasks, *episodes, **kwargs: Any):
    return create_app(tasks, episodes=[("e.jsonl", episode) for episode in episodes], **kwargs).test_client()


def get(client, path: str) -> str:
    answer = client.get(path)
    assert answer.status_code == 200, answer.text
    return str(answer.text)


def notices(page: str) -> list[str]:
    found = re.search(r'<div class="notice" role="note">(.*?)</div>', page, re.DOTALL)
    return re.findall("<p>(.*?)</p>", found[1]) if found else []


class Nodes(HTMLParser):
    """The elements that are part of the text of a shop's page."""

    def __init__(self, page: str):
        super().__init__()
        self.texts: dict[int, str] = {}
        self.body: dict[str, str | None] = {}
        self.tags: list[str] = []
        self._open: list[int | None] = []
        self.feed(page)

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        if tag == "body":
            self.body = dict(attrs)
        if tag not in ("meta", "link", "img", "input"):
            number = dict(attrs).get("data-n")
            self._open.append(None if number is None else int(number))
            if number is not None:
                self.texts[int(number)] = ""

    def handle_endtag(self, tag):
        self._open.pop()

    def handle_data(self, data):
        for number in self._open:
            if number is not None:
                self.texts[number] += data

    def text(self) -> str:
        shown = [self.texts[number].strip() for number in sorted(self.texts)]
        return " [SEP] ".join(text for text in shown if text)


def test_the_list_tells_how_each_episode_went(tasks, recorded):
    page = get(site(tasks, *recorded), "/episodes")
    first, second = re.findall("<tr>(.*?)</tr>", page, re.DOTALL)[1:]
    assert tasks.goal("train-000003").instruction in first
    assert tasks.goal("train-000004").instruction in second
    cells = [re.sub("<.*?>", "", cell) for cell in re.findall("<td.*?>(.*?)</td>", second, re.DOTALL)]
    assert cells[1:] == ["failure", "0.00", "6", "truncated", "e.jsonl #1"]
    assert [">success<" in row for row in (first, second)] == [True, False]


@pytest.mark.parametrize(("outcome", "seen"), [("success", [0]), ("failure", [1]), ("all", [0, 1])])
def test_the_list_shows_one_outcome_if_asked(tasks, recorded, outcome, seen):
    page = get(site(tasks, *recorded), f"/episodes?outcome={outcome}")
    assert re.findall(r'href="/episodes/(\d+)"', page) == [*map(str, seen)]


def test_the_list_has_fifty_episodes_a_page(tasks, bought):
    client = site(tasks, *[bought] * 120)
    links = [re.findall(r'href="/episodes/(\d+)"', get(client, f"/episodes?first={n}")) for n in (0, 50, 100)]
    assert [(found[0], found[-1]) for found in links] == [("0", "49"), ("50", "99"), ("100", "119")]
    assert 'href="?outcome=all&amp;first=50"' in get(client, "/episodes")


def test_files_are_counted_apart(tasks, bought):
    client = create_app(tasks, episodes=[("a", bought), ("b", bought), ("a", bought)]).test_client()
    assert re.findall('<td class="file">(.*?)</td>', get(client, "/episodes")) == ["a #0", "b #0", "a #1"]


def test_the_home_page_leads_to_the_episodes_if_there_are_any(tasks, bought):
    assert '<a href="/episodes">1 recorded episodes</a>' in get(site(tasks, bought), "/")
    assert "episodes" not in get(site(tasks), "/")
    assert site(tasks).get("/episodes").status_code == 404


def test_each_turn_shows_the_page_that_the_agent_saw(tasks, bought):
    client = site(tasks, bought)
    assert len(bought.turns) >= 4
    for k, turn in enumerate(bought.turns, 1):
        assert Nodes(get(client, f"/episodes/0/{k}/page")).text() == turn.anchor


def test_each_turn_shows_what_the_agent_said_beside_a_frame_that_can_do_nothing(tasks, bought):
    client = site(tasks, bought)
    page = get(client, "/episodes/0/2")
    assert f"&lt;action&gt;{bought.turns[1].action}&lt;/action&gt;</pre>" in page
    assert f"<dd><code>{bought.turns[1].action}</code></dd>" in page
    assert '<iframe src="/episodes/0/2/page" sandbox' in page
    assert "inert" in Nodes(get(client, "/episodes/0/2/page")).body
    assert "inert" not in Nodes(get(client, "/episodes/0/2")).body
    assert "script" not in Nodes(page).tags


def test_the_turns_are_linked_both_ways(tasks, bought):
    n = len(bought.turns)
    client = site(tasks, bought)
    links = r'href="/episodes/0/(\d+)" accesskey="(.)"'
    assert re.findall(links, get(client, "/episodes/0")) == [("2", "n"), (str(n + 1), "l")]
    assert re.findall(links, get(client, "/episodes/0/2")) == [
        ("1", "f"), ("1", "p"), ("3", "n"), (str(n + 1), "l")
    ]  # fmt: skip
    assert re.findall(links, get(client, f"/episodes/0/{n + 1}")) == [("1", "f"), (str(n), "p")]


def test_the_recording_ends_with_the_recorded_score(tasks, recorded):
    client = site(tasks, *recorded)
    n = len(recorded[0].turns)
    assert notices(get(client, f"/episodes/0/{n + 1}")) == []
    assert "Your score (min 0.0, max 1.0) [SEP] 1.0" in Nodes(get(client, f"/episodes/0/{n + 1}/page")).text()
    assert notices(get(client, "/episodes/1/7")) == []
    assert Nodes(get(client, "/episodes/1/7/page")).text() == recorded[1].turns[0].anchor


def test_a_turn_without_effect_is_marked(tasks, recorded):
    page = get(site(tasks, recorded[1]), "/episodes/0/3")
    assert page.count('<li class="invalid">') == 6
    assert '<span class="badge bad">not valid</span>' in page


def test_another_catalogue_is_noticed(bought):
    page = get(site(GeneratedTasks("mini", 300), bought), "/episodes/0/2")
    assert notices(page) == [
        "The task train-000003 is another one here: the episode is of another catalogue."
    ]
    assert "<iframe" in page


def test_an_unknown_task_is_noticed_and_has_no_pages(tasks, bought):
    client = site(tasks, replace(bought, task_id="train-999999"))
    page = get(client, "/episodes/0/2")
    assert notices(page) == ["This shop has no task train-999999: the episode is of another catalogue."]
    assert "<iframe" not in page
    assert "&lt;action&gt;" in page
    assert client.get("/episodes/0/2/page").status_code == 404
    assert "<i>of another catalogue</i>" in get(client, "/episodes")


@pytest.mark.parametrize("changed", [{"score": 0.5}, {"success": False}])
def test_another_result_is_noticed(tasks, bought, changed):
    (notice,) = notices(get(site(tasks, replace(bought, **changed)), "/episodes/0"))
    assert notice.startswith("Played again here the episode scores 1, recorded were ")


def test_other_options_are_noticed_at_the_first_turn_that_fails(tasks, bought):
    page = get(site(tasks, bought, options={"number_results": True}), "/episodes/0")
    assert notices(page) == [
        "Played again here the episode scores 0, recorded were 1: the site runs another catalogue or other "
        "options.",
        "From turn 2 on the pages here are not those of the recording: the site runs another catalogue or "
        "other options.",
    ]


def test_episodes_of_other_environments_are_listed_and_not_played(tasks, bought):
    client = site(tasks, replace(bought, env_id="ARL/Sokoban-v0"))
    assert "<i>not WebShop: ARL/Sokoban-v0</i>" in get(client, "/episodes")
    page = get(client, "/episodes/0/1")
    assert notices(page) == ["Not WebShop: this is an episode of ARL/Sokoban-v0, which has no pages here."]
    assert "<iframe" not in page
    assert client.get("/episodes/0/1/page").status_code == 404


def test_marks_and_scrolling_are_played_as_in_the_browser(tasks, bought):
    searched, opened, *rest = bought.turns
    names = re.findall(r"(?:(?<=\[SEP\] )|^)(Back to Search|< Prev|Next >|\d{4})(?= \[SEP\])", opened.anchor)
    number = names.index(opened.action[len("click[") : -1]) + 1
    scrolled = replace(opened, action="scroll[down]")
    marked = replace(opened, action=f"click[#{number}]")
    page = get(site(tasks, replace(bought, turns=(searched, scrolled, marked, *rest))), "/episodes/0")
    assert notices(page) == []


def test_a_number_that_did_nothing_does_nothing_again(tasks, bought):
    searched, opened, *rest = bought.turns
    tried = replace(opened, action="click[#1]", action_valid=False)
    assert (
        notices(get(site(tasks, replace(bought, turns=(searched, tried, opened, *rest))), "/episodes/0"))
        == []
    )


def pictures(*colours: str) -> list[Message]:
    parts: list[Part] = [{"type": "text", "text": "look"}]
    parts += [{"type": "image", "image": Image.new("RGB", (2, 1), colour)} for colour in colours]
    return [{"role": "user", "content": parts}]


def test_a_screenshot_takes_the_place_of_the_page(tasks, bought):
    first, *rest = bought.turns
    client = site(tasks, replace(bought, turns=(replace(first, messages=pictures("red", "blue")), *rest)))
    page = get(client, "/episodes/0/1")
    assert "<iframe" not in page
    assert 'href="/episodes/0/1/page"' in page
    seen = re.search(r'<img src="(/episodes/0/1/images/\d\.png)" alt="the screenshot', page)
    assert seen is not None
    answer = client.get(seen[1])
    assert answer.mimetype == "image/png"
    assert Image.open(io.BytesIO(answer.data)).getpixel((0, 0)) == (0, 0, 255)  # the last one
    assert client.get("/episodes/0/1/images/2.png").status_code == 404
    assert client.get(f"/episodes/0/{len(rest) + 2}/images/0.png").status_code == 404
    assert "<iframe" in get(client, "/episodes/0/2")


def test_recorded_text_stays_text(tasks, bought):
    said = [
        replace(
            turn, response=EVIL, action=EVIL, action_valid=False, messages=[{"role": "user", "content": EVIL}]
        )
        for turn in bought.turns
    ]
    searched = replace(bought.turns[0], action=f"search[{EVIL}]")
    evil = replace(bought, turns=(searched, *said), stop=EVIL, error=EVIL, success=False, score=0.0)
    client = site(tasks, evil, replace(evil, env_id=EVIL, task_id=EVIL))
    pages = [f"/{k}{turn}" for k in (0, 1) for turn in ("", "/2", f"/{len(said) + 2}")]
    for path in ("", *pages, "/0/2/page"):
        page = get(client, f"/episodes{path}")
        assert "script" not in Nodes(page).tags
        assert 'src="http' not in page
    assert all("&lt;/pre&gt;&lt;script&gt;" in get(client, f"/episodes{path}") for path in pages)
    assert "\\ud800</pre>" in get(client, "/episodes/0/2")
    assert client.get("/episodes/0").headers["Content-Security-Policy"].startswith("default-src 'none'; ")


@pytest.mark.parametrize(
    "path",
    [
        *("/1", "/-1", "/x", "/" + "9" * 5000, "/0/0", "/0/99", "/0/99/page", "/0/0/images/0.png"),
        *("/0/1/images/0.png", "?first=1", "?first=-1", "?outcome=some"),
    ],
)
def test_what_is_not_there_is_not_found(tasks, bought, path):
    assert site(tasks, bought).get(f"/episodes{path}").status_code == 404
