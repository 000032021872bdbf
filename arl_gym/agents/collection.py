"""Which recorded episodes are worth learning from (rejection sampling), and what is wrong with a response.

kept, dropped = filter_episodes(trajectories, CollectFilter(min_score=0.9))
"""

import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from arl_gym.agents.types import Trajectory
from arl_gym.errors import ConfigError, UnknownNameError
from arl_gym.wrappers.format_penalty import parse_response

PROBLEMS = ("empty", "format", "tags", "cjk", "repeated", "empty_think")
"""What `lint_response` can find."""

_TAG = re.compile(r"</?(?:think|action)>", re.IGNORECASE | re.ASCII)
_CJK = re.compile("[\u4e00-\u9fff]")
_ONE_CHARACTER = re.compile(r"([^\s=\-_#*.])\1{19}")  # rulers and boards repeat the others with good reason
_EMPTY_THINK = re.compile(r"<think>\s*+</think>", re.IGNORECASE | re.ASCII)
_PHRASE_WORDS = 4
_ENOUGH_PHRASES = 20
_FEWEST_DIFFERENT = 0.5


@dataclass(frozen=True, slots=True, kw_only=True)
class CollectFilter:
    """Which episodes are kept."""

    success_only: bool = True
    """Drop episodes that did not succeed."""
    min_score: float = 0.0
    """Drop episodes with a lower score; the paper keeps those above 0.9."""
    format_valid: bool = True
    """Drop episodes with a turn whose format is broken."""
    max_tokens: int = 0
    """Drop episodes with a response of more tokens; 0 is no limit. Needs a policy that tells token ids."""
    duplicates: bool = False
    """Keep episodes of a task whose responses are all those of an earlier one."""
    problems: tuple[str, ...] = ()
    """Drop episodes with a response in which `lint_response` finds one of these."""
    format: str = "strict"
    """The responses' format, for the lint."""

    def __post_init__(self) -> None:
        for name in self.problems:
            if name not in PROBLEMS:
                raise UnknownNameError("problem", name, PROBLEMS, "CollectFilter.problems")


def filter_episodes(
    trajectories: Sequence[Trajectory], rules: CollectFilter
) -> tuple[list[Trajectory], dict[str, int]]:
    """Return the episodes that are kept, and how many were dropped by reason.

    An episode is counted once, under the first rule it breaks, in the order of `CollectFilter`; before all of
    them come "env_error" and "no_turns", of episodes that nobody could learn from.

    Raises:
        ConfigError: If tokens are to be counted and a turn has none.
    """
    seen: set[tuple[str, str, tuple[str, ...]]] = set()

    def is_duplicate(t: Trajectory) -> bool:
        key = (t.env_id, t.task_id, tuple(turn.response for turn in t.turns))
        known = key in seen
        seen.add(key)
        return known and not rules.duplicates

    broken: dict[str, Callable[[Trajectory], bool]] = {
        "env_error": lambda t: t.stop == "env_error",
        "no_turns": lambda t: not t.turns,
        "success": lambda t: rules.success_only and not t.success,
        "score": lambda t: t.score < rules.min_score,
        "format": lambda t: rules.format_valid and not all(turn.format_valid for turn in t.turns),
        "tokens": lambda t: rules.max_tokens > 0 and _longest(t) > rules.max_tokens,
        "duplicate": is_duplicate,
        "lint": lambda t: not set(rules.problems).isdisjoint(lint_episode(t, rules.format)),
    }
    kept: list[Trajectory] = []
    dropped = dict.fromkeys(broken, 0)
    for t in trajectories:
        reason = next((name for name, breaks in broken.items() if breaks(t)), None)
        if reason is None:
            kept.append(t)
        else:
            dropped[reason] += 1
    return kept, dropped


def _longest(t: Trajectory) -> int:
    """Return the number of tokens of the episode's longest response."""
    longest = 0
    for k, turn in enumerate(t.turns):
        if turn.completion_ids is None:
            raise ConfigError(
                f"max_tokens counts token ids, and turn {k} of {t.env_id} task {t.task_id} has none: its "
                "policy told only the text"
            )
        longest = max(longest, len(turn.completion_ids))
    return longest


def lint_episode(trajectory: Trajectory, format: str) -> Counter[str]:
    """Return how many responses of an episode have each problem."""
    return Counter(problem for turn in trajectory.turns for problem in lint_response(turn.response, format))


def lint_response(text: str, format: str) -> list[str]:
    """Return the names of what is wrong with a response; takes linear time on any input.

    - empty: there is nothing but white space.
    - format: the format's own rules are broken (`wrappers.parse_response`).
    - tags: in a format with tags, one of them lacks its partner, or they overlap.
    - cjk: it holds a CJK ideograph.
    - repeated: it turns in circles: 20 times the same character, or fewer than half of its runs of four words
      differ (of at least 20 runs).
    - empty_think: in a format that asks for a thought, the thought is empty.

    Raises:
        UnknownNameError: If the format is unknown.
    """
    found = {
        "empty": not text.strip(),
        "format": not parse_response(text, format).valid,
        "tags": format != "none" and not _tags_pair(text),
        "cjk": _CJK.search(text) is not None,
        "repeated": _ONE_CHARACTER.search(text) is not None or _turns_in_circles(text),
        "empty_think": format in ("strict", "lenient") and _EMPTY_THINK.search(text) is not None,
    }
    return [name for name in PROBLEMS if found[name]]


def _tags_pair(text: str) -> bool:
    """Return whether every tag is opened and closed, none inside another."""
    tags = [tag.lower() for tag in _TAG.findall(text)]
    pairs = zip(tags[::2], tags[1::2], strict=False)
    return len(tags) % 2 == 0 and all(b == a.replace("<", "</") and "/" not in a for a, b in pairs)


def _turns_in_circles(text: str) -> bool:
    words = text.split()
    phrases = [tuple(words[i : i + _PHRASE_WORDS]) for i in range(len(words) - _PHRASE_WORDS + 1)]
    return len(phrases) >= _ENOUGH_PHRASES and len(set(phrases)) < _FEWEST_DIFFERENT * len(phrases)
