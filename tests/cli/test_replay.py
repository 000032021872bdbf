import re
from html.parser import HTMLParser

import pytest
from PIL import Image

from arl_gym.agents.records import write_trajectories
from arl_gym.agents.types import Trajectory, Turn
from arl_gym.cli import main
from arl_gym.core import Part

EVIL = '</pre><script>alert("1")</script><img src="http://example.org/x">\ud800'


def episode(task: str, text: str) -> Trajectory:
    image: Part = {"type": "image", "image": Image.new("RGB", (1, 1))}
    turn = Turn(
        messages=[{"role": "user", "content": [{"type": "text", "text": text}, image]}],
        response=text,
        action=text,
        env_reward=-0.5,
        format_penalty=0.25,
        anchor="",
        format_valid=False,
        action_valid=False,
        finish="length",
    )
    return Trajectory(
        env_id=text,
        task_id=task,
        dataset=text,
        split=text,
        content_hash=text,
        group=0,
        copy=0,
        turns=(turn, turn),
        stop="env_error",
        success=False,
        score=0.0,
        error=text,
    )


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "e.jsonl.gz"
    write_trajectories(path, [episode("first", "hello"), episode(EVIL, EVIL)])
    return str(path)


def test_the_terminal_shows_an_episode_turn_by_turn(file, capsys):
    assert main(["replay", file]) == 0
    shown = capsys.readouterr().out
    assert "episode 0 of 2: hello first" in shown
    assert shown.count("[user]\nhello\n[image]") == 2
    facts = "action 'hello', reward -0.5, penalty 0.25, format broken, action not valid, finish: length"
    assert shown.count(facts) == 2
    assert shown.endswith("no success, 2 turns, return -1, stop: env_error\nerror: hello\n")


def test_an_index_picks_the_episode(file, capsys):
    assert main(["replay", file, "--index", "1"]) == 0
    assert "episode 1 of 2" in capsys.readouterr().out
    assert main(["replay", file, "--index", "2"]) == 1
    assert "has 2 episodes" in capsys.readouterr().err


class Tags(HTMLParser):
    def __init__(self, text: str):
        super().__init__()
        self.seen: list[tuple[str, dict[str, str | None]]] = []
        self.open: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.seen.append((tag, dict(attrs)))
        if tag not in ("meta", "img"):
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


def test_the_page_is_well_formed_and_holds_all_episodes(file, tmp_path):
    assert main(["replay", file, "--html", str(tmp_path / "o.html")]) == 0
    tags = Tags((tmp_path / "o.html").read_text())
    assert tags.open == []
    assert [attrs["id"] for tag, attrs in tags.seen if tag == "details"] == ["episode-0", "episode-1"]
    assert ("html", {"lang": "en"}) in tags.seen
    assert all(attrs["alt"] for tag, attrs in tags.seen if tag == "img")


def test_nothing_recorded_becomes_markup_and_nothing_is_fetched(file, tmp_path):
    assert main(["replay", file, "--html", str(tmp_path / "o.html")]) == 0
    text = (tmp_path / "o.html").read_text()
    tags = Tags(text)
    assert not {tag for tag, _ in tags.seen} & {"script", "link", "iframe", "object"}
    sources = [attrs["src"] for tag, attrs in tags.seen if tag == "img"]
    assert len(sources) == 4
    assert all(src and src.startswith("data:image/png;base64,") for src in sources)
    assert "default-src 'none'" in text
    assert not re.search(r"url\(|@import", text)


def test_one_episode_as_a_page_is_open(file, tmp_path):
    assert main(["replay", file, "--index", "0", "--html", str(tmp_path / "o.html")]) == 0
    tags = Tags((tmp_path / "o.html").read_text())
    assert [attrs for tag, attrs in tags.seen if tag == "details"] == [{"id": "episode-0", "open": None}]


def test_a_missing_file_fails(capsys, tmp_path):
    assert main(["replay", str(tmp_path / "no.jsonl")]) == 1
    assert "no.jsonl" in capsys.readouterr().err
