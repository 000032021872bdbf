"""`arl-gym replay`: recorded episodes in the terminal, or as one web page that needs nothing else."""

import base64
import html
import io
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from arl_gym.agents.records import read_trajectories
from arl_gym.agents.types import Trajectory, Turn
from arl_gym.cli.options import parser
from arl_gym.core import Message
from arl_gym.errors import ConfigError


def run(args: list[str]) -> int:
    """Show one episode, or write a page of all of them."""
    p = parser("replay", "Show recorded episodes turn by turn.")
    p.add_argument("file", type=Path, metavar="FILE", help="a .jsonl or .jsonl.gz of episodes")
    p.add_argument("--index", type=int, help="which episode, from 0; the terminal shows the first by default")
    p.add_argument(
        "--html", type=Path, metavar="OUT", help="write a page instead; without --index, of all episodes"
    )
    options = p.parse_args(args)
    episodes = list(enumerate(read_trajectories(options.file)))
    index = 0 if options.index is None else options.index
    if not 0 <= index < len(episodes):
        raise ConfigError(f"{options.file} has {len(episodes)} episodes, counted from 0: there is no {index}")
    chosen = episodes if options.html and options.index is None else [episodes[index]]
    if options.html:
        text = page(options.file.name, chosen)
        options.html.write_text(text, encoding="utf-8", errors="backslashreplace")
        print(f"{len(chosen)} episodes: {options.html}")
        return 0
    for line in _lines(*chosen[0], total=len(episodes)):
        print(line)
    return 0


def summary(episode: Trajectory) -> str:
    """Return how an episode went, in one line."""
    outcome = "success" if episode.success else "no success"
    return f"{outcome}, {len(episode.turns)} turns, return {episode.env_return:g}, stop: {episode.stop}"


def _lines(index: int, episode: Trajectory, *, total: int) -> Iterator[str]:
    yield f"episode {index} of {total}: {episode.env_id} {episode.task_id} ({episode.split})"
    for k, turn in enumerate(episode.turns, start=1):
        yield f"\n── turn {k} " + "─" * 60
        for message in turn.messages:
            yield f"[{message['role']}]\n{_text(message)}"
        yield f"\n[response]\n{turn.response}"
        yield _verdict(turn)
    yield f"\n{summary(episode)}"
    if episode.error:
        yield f"error: {episode.error}"


def _text(message: Message) -> str:
    content = message["content"]
    if isinstance(content, str):
        return content
    return "\n".join(part["text"] if part["type"] == "text" else "[image]" for part in content)


def _verdict(turn: Turn) -> str:
    return verdict(
        turn.action,
        reward=turn.env_reward,
        penalty=turn.format_penalty,
        format_valid=turn.format_valid,
        action_valid=turn.action_valid,
        finish=turn.finish,
    )


def verdict(
    action: str,
    *,
    reward: float,
    penalty: float,
    format_valid: bool,
    action_valid: bool,
    finish: str,
    numbers: Iterable[str] = (),
) -> str:
    """Return what a turn brought, in one line; `numbers` go in between."""
    facts = [f"action {action!r}", f"reward {reward:g}"]
    if penalty:
        facts.append(f"penalty {penalty:g}")
    facts += numbers
    if not format_valid:
        facts.append("format broken")
    if not action_valid:
        facts.append("action not valid")
    if finish != "stop":
        facts.append(f"finish: {finish}")
    return ", ".join(facts)


_STYLE = """
:root { color-scheme: light dark; --line: #8886; --soft: #8881; --good: #176b2c; --bad: #a3161b; }
@media (prefers-color-scheme: dark) { :root { --good: #7fd992; --bad: #ff9c9c; } }
body { font: 1rem/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.4rem; } h2, h3 { font-size: 1rem; margin: 1rem 0 .25rem; }
details { border: 1px solid var(--line); border-radius: .5rem; margin: .5rem 0; padding: .5rem 1rem; }
summary { cursor: pointer; } summary:focus-visible { outline: 3px solid; outline-offset: 3px; }
pre { white-space: pre-wrap; overflow-wrap: anywhere; background: var(--soft); border-radius: .25rem;
  margin: .25rem 0; padding: .5rem; font-size: .9rem; }
pre.response { border-left: .25rem solid; }
img { max-width: 100%; image-rendering: pixelated; }
.good { color: var(--good); } .bad { color: var(--bad); }
"""


def page(name: str, episodes: Sequence[tuple[int, Trajectory]]) -> str:
    """Return a self-contained page: no script, no request, every recorded text escaped."""
    title = html.escape(f"Episodes of {name}")
    won = sum(episode.success for _, episode in episodes)
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        # Even a text that slipped through could load and run nothing.
        '<meta http-equiv="Content-Security-Policy" '
        "content=\"default-src 'none'; style-src 'unsafe-inline'; img-src data:\">\n"
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{title}</title>\n<style>{_STYLE}</style>\n</head>\n<body>\n<main>\n<h1>{title}</h1>\n"
        f"<p>{won} of {len(episodes)} solved.</p>\n"
        + "\n".join(_episode(index, episode, is_open=len(episodes) == 1) for index, episode in episodes)
        + "\n</main>\n</body>\n</html>\n"
    )


def _episode(index: int, episode: Trajectory, *, is_open: bool) -> str:
    data = f"{episode.env_id}, {episode.dataset} data, split {episode.split}, content {episode.content_hash}"
    error = f'<p class="bad">Error: {html.escape(episode.error)}</p>' if episode.error else ""
    turns = "\n".join(_turn(k, turn) for k, turn in enumerate(episode.turns, start=1))
    return (
        f'<details id="episode-{index}"{" open" if is_open else ""}>\n<summary>{index}: '
        f"<strong>{html.escape(episode.task_id)}</strong>, "
        f'<span class="{"good" if episode.success else "bad"}">'
        f"{html.escape(summary(episode))}</span></summary>\n<p>{html.escape(data)}</p>{error}\n{turns}\n</details>"
    )


def _turn(number: int, turn: Turn) -> str:
    shown = "\n".join(f"<h3>{html.escape(m['role'])}</h3>\n{_content(m)}" for m in turn.messages)
    good = turn.format_valid and turn.action_valid
    return (
        f"<section>\n<h2>Turn {number}</h2>\n{shown}\n<h3>response</h3>\n"
        f'<pre class="response">{html.escape(turn.response)}</pre>\n'
        f'<p class="{"good" if good else "bad"}">{html.escape(_verdict(turn))}</p>\n</section>'
    )


def _content(message: Message) -> str:
    content = message["content"]
    if isinstance(content, str):
        return f"<pre>{html.escape(content)}</pre>"
    pieces = []
    for part in content:
        if part["type"] == "text":
            pieces.append(f"<pre>{html.escape(part['text'])}</pre>")
        else:
            buffer = io.BytesIO()
            part["image"].save(buffer, format="PNG")
            png = base64.b64encode(buffer.getvalue()).decode()
            pieces.append(f'<img alt="what the agent saw" src="data:image/png;base64,{png}">')
    return "\n".join(pieces)
