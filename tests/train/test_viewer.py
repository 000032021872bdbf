import base64
import gzip
import hashlib
import json
import re
from html.parser import HTMLParser

import pytest
from PIL import Image

from arl_gym.errors import ArlGymError, DataError
from arl_gym.train.viewer import write_viewer
from tests.train.fake_run import recorded_episode

EVIL = "</script><script>alert(1)</script><img src=http://example.org/x>\ud800"


class Page(HTMLParser):
    """The tags, and a check that every one is closed in order."""

    def __init__(self, html):
        super().__init__()
        self.tags: list[str] = []
        self.open: list[str] = []
        self.feed(html)
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        if tag not in ("meta", "input", "img"):
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


@pytest.fixture
def write(tmp_path):
    def written(episodes, **options):
        images = tmp_path / "images"
        return write_viewer(
            episodes, images, tmp_path / "page.html", **{"title": "Step 3", **options}
        ).read_text()

    return written


def blobs(html):
    found = re.findall(r'<script id="([\w-]+)" type="application/octet-stream">([^<]*)</script>', html)
    return {name: json.loads(gzip.decompress(base64.b64decode(text))) for name, text in found}


def test_the_page_is_well_formed_and_names_what_it_holds(write):
    episodes = [
        recorded_episode(group=4, rewards=(1.0, 2.0)),
        recorded_episode(group=4, copy=1, rewards=(0.0, 0.0), success=False),
        recorded_episode(group=2, rewards=(0.0, 3.0)),
    ]
    html = write(episodes)
    page = Page(html)
    for fact in ("2 groups", "3 episodes", "2 solved (67 %)", "mean return 2.00"):
        assert f"<li>{fact}</li>" in html
    assert "<h1>Step 3</h1>" in html
    labels = page.tags.count("label")
    assert labels == page.tags.count("input") == 5


def test_members_come_by_group_in_the_order_they_were_played(write):
    episodes = [recorded_episode(group=g, copy=c) for g, c in ((4, 0), (2, 0), (4, 1))]
    data = blobs(write(episodes))
    assert [[m["fields"]["copy"] for m in group] for group in data["data"]["groups"]] == [[0, 1], [0]]
    assert set(data) == {"data", "tokens-0", "tokens-1"}


def test_a_turn_has_its_fields_and_messages_and_its_tokens_apart(write):
    episode = recorded_episode(rewards=(1.0,), penalties=(0.5,))
    episode["turns"][0] |= {
        "advantage": -2.0,
        "completion_ids": [7, 8, 9, 10],  # three were kept
        "tokens": ["a", "b", "c"],
        "old_logprobs": [-1.0, -2.0, None],
        "new_logprobs": [-0.9, -2.25, -1.0],
        "entropies": [0.123456, 0.2, 0.3],
    }
    data = blobs(write([episode]))
    (turn,) = data["data"]["groups"][0][0]["turns"]
    assert turn["messages"] == episode["turns"][0]["messages"]
    assert turn["fields"]["penalty"] == 0.5
    assert turn["fields"]["advantage"] == -2.0
    assert not any(isinstance(value, list) for value in turn["fields"].values())
    assert {"return", "prompt", "ratio", "entropy", "advantage"} < set(data["data"]["fields"])
    (((tokens,),),) = (data["tokens-0"],)
    assert tokens == {
        "ids": [7, 8, 9],
        "tokens": ["a", "b", "c"],
        "old_logprobs": [-1.0, -2.0, None],
        "new_logprobs": [-0.9, -2.25, -1.0],
        "entropies": [0.1235, 0.2, 0.3],
    }


def test_colours_saturate_near_the_largest_size(write):
    episodes = [recorded_episode(rewards=(0.0,), penalties=(0.0,)) for _ in range(2)]
    for episode, advantage in zip(episodes, (-3.0, 1.0), strict=True):
        episode["turns"][0] |= {
            "advantage": advantage,
            "old_logprobs": [-1.0] * 100,
            "new_logprobs": [-1.0] * 50 + [-1.5] * 50,
            "entropies": [0.25] * 100,
        }
    scales = blobs(write(episodes))["data"]["scales"]
    # Of the advantages 1 and 3 the 99th percentile is 1 + 0.99 * 2.
    assert scales == {"ratio": 0.5, "entropy": 0.25, "advantage": pytest.approx(2.98)}


def test_recordings_without_anything_of_the_trainer_are_shown_too(write):
    data = blobs(write([recorded_episode()]))
    assert data["data"]["scales"] == {"ratio": 0, "entropy": 0, "advantage": 0}
    assert data["tokens-0"] == [[{"ids": []}, {"ids": []}]]
    assert blobs(write([]))["data"]["groups"] == []


def test_no_recorded_text_reaches_the_markup(write):
    episode = recorded_episode()
    episode |= {"task_id": EVIL, "error": EVIL, "stop": EVIL}
    episode["turns"][0] |= {"response": EVIL, "action": EVIL, "messages": [{"role": EVIL, "content": EVIL}]}
    html = write([episode], title=f"<b>{EVIL}")
    assert "alert(1)</script>" not in html
    assert "<b>" not in html
    page = Page(html)
    # The data, the tokens of one group, and the program.
    assert page.tags.count("script") == 3
    assert page.tags.count("img") == 0
    assert blobs(html)["data"]["groups"][0][0]["turns"][0]["fields"]["response"] == EVIL


def test_only_its_own_script_may_run_and_nothing_is_fetched(write):
    html = write([recorded_episode()])
    (policy,) = re.findall(r'Content-Security-Policy" content="([^"]*)"', html)
    script = html.rpartition("<script>")[2].partition("</script>")[0]
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    assert policy == (
        f"default-src 'none'; style-src 'unsafe-inline'; img-src data:; script-src 'sha256-{digest}'"
    )
    assert not re.search(r"https?://|url\(|@import|innerHTML|insertAdjacent|eval\(", html)


def test_pictures_are_embedded_up_to_the_limit_and_notes_stand_for_the_others(write, tmp_path):
    (tmp_path / "images").mkdir()
    episode = recorded_episode(rewards=(0.0, 0.0, 0.0), penalties=(0.0, 0.0, 0.0))
    for turn, name in zip(episode["turns"], ("one", "two", "gone"), strict=True):
        turn["messages"][1]["content"][1]["hash"] = name
    for name in ("one", "two"):
        Image.new("RGB", (4, 4), "red").save(tmp_path / "images" / f"{name}.png")
    png = (tmp_path / "images" / "one.png").read_bytes()
    data = blobs(write([episode, episode], image_bytes=2 * len(png) - 1))["data"]
    assert {name: base64.b64decode(text) for name, text in data["images"].items()} == {"one": png}
    assert data["notes"] == {"two": "left out: the page would be too large", "gone": "is missing"}
    assert set(blobs(write([episode], image_bytes=2 * len(png)))["data"]["images"]) == {"one", "two"}


def test_an_episode_of_another_form_or_a_folder_in_the_way_is_an_error(write, tmp_path):
    with pytest.raises(DataError, match="train/000007"):
        write([{**recorded_episode(), "turns": [{}]}])
    (tmp_path / "page.html").mkdir()
    with pytest.raises(ArlGymError, match=r"cannot write .*page\.html"):
        write([])


def test_equal_episodes_give_equal_pages(write):
    assert write([recorded_episode()]) == write([recorded_episode()])
