"""The text grammars of ALFWorld: which one a game brings, and the task it words.

Two are known: "0.4", with `move X to Y`, and "0.3", that of the earlier releases, with `put X in/on Y`. They
are recognised by their content, so that a game with other words is refused instead of played wrongly.
"""

import json
import re
from functools import lru_cache

from arl_gym.errors import DataError
from arl_gym.rng import digest

_RULE = r'("{name}"\s*:\s*\[\s*\{{\s*"rhs"\s*:\s*)("(?:[^"\\]|\\.)*")'
_TASK = re.compile(_RULE.format(name="task"))
_HELP = re.compile(_RULE.format(name=r"help\.feedback"))
_LEAD = "Your task is to: "
_MARKS = re.compile(r"[#\[\]{}|]")

_GRAMMARS = {"3838dfd0854549b0": "0.4", "79f157a758f74e94": "0.3"}
_DOMAINS = {"28888a6658eb7b5b": "0.4", "7b51e9bb5ea6a352": "0.3"}
"""Digest of the text without comments, with single blanks, and the version."""


class UnknownRules(DataError):
    """A game whose domain or grammar is not among the known ones: the real TextWorld may play it."""


def read_grammar(text: str) -> tuple[str, str, str]:
    """Return version, task and help text of a grammar; the help is "" where there is no such command.

    Raises:
        UnknownRules: If it is not one of the known grammars.
        DataError: If it words no task.
    """
    task, help_text = _TASK.search(text), _HELP.search(text)
    if task is None:
        raise DataError('the grammar has no rule "task" with one "rhs"')
    bare = _HELP.sub(r"\1", _TASK.sub(r"\1", text))
    version = _known_grammar(digest(" ".join(bare.split())))
    wording = json.loads(task[2])
    if not wording.startswith(_LEAD) or _MARKS.search(wording):
        raise UnknownRules(f"the task must be plain text that starts with {_LEAD!r}, got {wording[:100]!r}")
    return version, wording.removeprefix(_LEAD), json.loads(help_text[2]) if help_text else ""


def _known_grammar(key: str) -> str:
    if key not in _GRAMMARS:
        raise UnknownRules(f"the grammar (digest {key}) is none of the known: ALFWorld 0.4, 0.3")
    return _GRAMMARS[key]


@lru_cache(maxsize=16)
def check_domain(text: str) -> None:
    """Make sure that a domain is one whose rules are known.

    Raises:
        UnknownRules: If it is not.
    """
    bare = re.sub(r";[^\n]*", "", text.lower()).replace("(", " ( ").replace(")", " ) ")
    key = digest(" ".join(bare.split()))
    if key not in _DOMAINS:
        raise UnknownRules(f"the domain (digest {key}) is none of the known: ALFWorld 0.4, 0.3")
