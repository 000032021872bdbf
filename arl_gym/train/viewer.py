"""The recorded episodes of a training step as one web page: groups side by side, token by token.

No torch, no network: the page holds its script, its numbers (compressed) and its pictures. Text that was
recorded reaches the page only as text. A browser of 2023 or newer shows it.

    write_viewer(load_episodes(path), path.parent / "images", Path("step.html"), title="Step 10")
"""

import base64
import gzip
import hashlib
import json
import math
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Any

import numpy as np

from arl_gym.train.files import write_atomically
from arl_gym.train.pages import part, style
from arl_gym.train.recordings import TOKEN_LISTS, episode_fields, turn_fields

IMAGE_BYTES = 20_000_000
_LEVEL = 4  # of compression; 9 takes ten times as long for a few percent
_PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'; \
img-src data:; script-src 'sha256-{hash}'">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title>
<style>
{style}</style>
</head>
<body>
<header>
<h1>{title}</h1>
<ul class="facts">{facts}</ul>
<form id="tools">
<label class="search">Find turns <input id="filter" type="search" spellcheck="false" autocomplete="off" \
placeholder="advantage &lt; 0 and not format_valid" aria-describedby="found"></label>
<fieldset><legend>Colour tokens by</legend>
<label><input type="radio" name="colour" value="none" checked> nothing</label>
<label><input type="radio" name="colour" value="ratio"> ratio</label>
<label><input type="radio" name="colour" value="advantage"> advantage</label>
<label><input type="radio" name="colour" value="entropy"> entropy</label>
</fieldset>
</form>
<p id="found" role="status"></p>
<p id="legend" role="status"></p>
</header>
<div class="columns">
<nav aria-label="Groups"><ul id="groups"></ul></nav>
<main id="group" tabindex="-1">\
<p class="note">Unpacking…</p><noscript>This page needs its script to be allowed.</noscript></main>
</div>
<div id="tip" role="status" hidden></div>
{blobs}
<script>{script}</script>
</body>
</html>
"""


def write_viewer(
    episodes: Iterable[Mapping[str, Any]],
    images: Path,
    out: Path,
    *,
    title: str,
    image_bytes: int = IMAGE_BYTES,
) -> Path:
    """Write the page of recorded episodes and return its path.

    Args:
        episodes: As `load_episodes` reads them.
        images: Folder of their pictures, `HASH.png`.
        out: The page.
        title: Its heading.
        image_bytes: Pictures are embedded, in the order they were shown, up to this many bytes; a note stands
            for every other one, as for one that is missing.

    Raises:
        DataError: If an episode is not of the schema.
        ArlGymError: If the page cannot be written.
    """
    write_atomically(out, _page(list(episodes), images, title, image_bytes).encode())
    return out


def _page(episodes: Sequence[Mapping[str, Any]], images: Path, title: str, image_bytes: int) -> str:
    script = part("viewer.js")
    groups: dict[int, list[Mapping[str, Any]]] = {}
    for episode in episodes:
        groups.setdefault(episode_fields(episode)["group"], []).append(episode)
    members = [[_member(episode) for episode in group] for group in groups.values()]
    tokens = [
        [[_tokens(turn) for turn in episode["turns"]] for episode in group] for group in groups.values()
    ]
    data = {
        "groups": members,
        "fields": sorted({name for group in members for member in group for name in _names(member)}),
        "scales": _scales([turn for episode in episodes for turn in episode["turns"]]),
        **_pictures(_hashes(episodes), images, image_bytes),
    }
    # The numbers of tokens are most of a page, and are unpacked when their group is shown.
    blobs = [_blob("data", data), *(_blob(f"tokens-{g}", group) for g, group in enumerate(tokens))]
    return _PAGE.format(
        title=escape(title.encode(errors="replace").decode()),
        facts="".join(f"<li>{escape(fact)}</li>" for fact in _facts(episodes)),
        style=style("viewer"),
        script=script,
        hash=base64.b64encode(hashlib.sha256(script.encode()).digest()).decode(),
        blobs="\n".join(blobs),
    )


def _blob(name: str, data: object) -> str:
    packed = gzip.compress(json.dumps(data, separators=(",", ":")).encode(), _LEVEL, mtime=0)
    text = base64.b64encode(packed).decode()
    return f'<script id="{name}" type="application/octet-stream">{text}</script>'


def _facts(episodes: Sequence[Mapping[str, Any]]) -> list[str]:
    fields = [episode_fields(episode) for episode in episodes]
    if not fields:
        return ["no episodes"]
    n, solved = len(fields), sum(bool(f["success"]) for f in fields)
    return [
        f"{len({f['group'] for f in fields})} groups",
        f"{n} episodes",
        f"{solved} solved ({100 * solved / n:.0f} %)",
        f"mean return {math.fsum(f['return'] for f in fields) / n:.2f}",
    ]


def _names(member: Mapping[str, Any]) -> set[str]:
    return {"prompt"}.union(member["fields"], *(turn["fields"] for turn in member["turns"]))


def _member(episode: Mapping[str, Any]) -> dict[str, Any]:
    shared = episode_fields(episode)
    turns = []
    for fields, record in zip(turn_fields(episode), episode["turns"], strict=True):
        # The script reads the prompt from the messages, which are longer than all the rest.
        own = {k: v for k, v in fields.items() if k not in {*shared, "prompt"} and not isinstance(v, list)}
        turns.append({"fields": own, "messages": record.get("messages", [])})
    return {"fields": shared, "error": episode.get("error", ""), "turns": turns}


def _tokens(turn: Mapping[str, Any]) -> dict[str, Any]:
    """Return what is known of the kept tokens: what was sampled beyond them had no effect."""
    lists = {key: _short(turn[key]) for key in TOKEN_LISTS if key in turn}
    if "tokens" in turn:
        lists["tokens"] = turn["tokens"]
    return lists | {"ids": (turn.get("completion_ids") or [])[: turn.get("n_kept", 0)]}


def _short(values: Sequence[float | None]) -> list[float | None]:
    return [None if value is None else round(value, 4) for value in values]


def _scales(turns: Sequence[Mapping[str, Any]]) -> dict[str, float]:
    """Return for each colouring the size that is drawn in full colour: nearly the largest that occurs."""
    logs = [
        abs(new - old)
        for turn in turns
        for old, new in zip(turn.get("old_logprobs", ()), turn.get("new_logprobs", ()), strict=False)
        if old is not None and new is not None
    ]
    entropies = [e for turn in turns for e in turn.get("entropies", ()) if e is not None]
    advantages = [abs(a) for turn in turns if (a := turn.get("advantage")) is not None]
    return {"ratio": _most(logs), "entropy": _most(entropies), "advantage": _most(advantages)}


def _most(values: Sequence[float]) -> float:
    return float(np.quantile(values, 0.99)) if values else 0.0


def _hashes(episodes: Iterable[Mapping[str, Any]]) -> list[str]:
    """Return the hashes of all pictures shown, each once, in order."""
    pieces = (
        piece
        for episode in episodes
        for turn in episode["turns"]
        for message in turn.get("messages", ())
        if isinstance(message["content"], list)
        for piece in message["content"]
    )
    return list(dict.fromkeys(piece["hash"] for piece in pieces if piece["type"] == "image"))


def _pictures(hashes: Iterable[str], images: Path, image_bytes: int) -> dict[str, dict[str, str]]:
    found: dict[str, str] = {}
    notes: dict[str, str] = {}
    left = image_bytes
    for name in hashes:
        try:
            png = (images / f"{name}.png").read_bytes()
        except OSError:
            notes[name] = "is missing"
            continue
        if len(png) > left:
            notes[name] = "left out: the page would be too large"
            continue
        left -= len(png)
        found[name] = base64.b64encode(png).decode()
    return {"images": found, "notes": notes}
