r"""Problems from the files people bring: MATH, GSM8K, AIME, and the training sets made of them.

A file is one split. Its fields may have any of the usual names; rows that ask the same question are one
problem. Nothing is solved or simplified here: the answer stays the text of the file, but for what the formats
wrap around it.

>>> problems = OriginalProblems("math500.jsonl")  # doctest: +SKIP
>>> problems.problem(0).answer  # doctest: +SKIP
'\\left( 3, \\frac{\\pi}{2} \\right)'
"""

import json
import re
import warnings
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from arl_gym.envs.tirmath.problems.problem import Problem
from arl_gym.envs.tirmath.problems.rows import Row, read_rows
from arl_gym.errors import DataError
from arl_gym.rng import digest

QUESTION_FIELDS = ("problem", "question", "extra_info.question", "prompt", "input")
"""Where the question is looked for; the first that a row has counts. A prompt may be a list of messages."""

ANSWER_FIELDS = (
    "answer",
    "gt_answer",
    "target",
    "ground_truth_answer",
    "reward_model.ground_truth",
    "extra_info.answer",
    "solution",
)
"""Where the answer is looked for; `solution` must have it in a box, in the others it may be bare."""

SUBJECT_FIELDS = ("subject", "type")

_COLUMNS = tuple(
    dict.fromkeys(name.split(".")[0] for name in (*QUESTION_FIELDS, *ANSWER_FIELDS, *SUBJECT_FIELDS, "level"))
)


class OriginalProblems:
    """The problems of one file, in its order.

    Rows with an empty answer are left out, and so are rows whose question an earlier row asks; a warning says
    how many. The training set of SimpleRL has both.

    Args:
        path: A file that ends with `.jsonl`, `.json` or `.parquet`.

    Raises:
        DataError: If the file is not what it should be, or a row lacks a question or a usable answer.
        DependencyMissing: If it is a Parquet file, and pyarrow is not installed.
    """

    def __init__(self, path: str | Path):
        self.path = Path(path).expanduser()
        first = dict[str, Problem]()
        left_out, examples = Counter[str](), dict[str, str]()
        for problem in _problems(self.path):
            if not problem.answer:
                why = "have an empty answer"
            elif first.setdefault(" ".join(problem.question.split()), problem) is not problem:
                why = "repeat a question"
            else:
                continue
            left_out[why] += 1
            examples.setdefault(why, problem.question[:100])
        if not first:
            raise DataError(f"expected problems with answers in {self.path}, got none")
        n_rows = len(first) + left_out.total()
        for why, n in left_out.items():
            message = (
                f"{self.path}: left out {n} of {n_rows} rows, which {why}, for example {examples[why]!r}"
            )
            warnings.warn(message, stacklevel=2)
        self.n_unanswered = left_out["have an empty answer"]
        """Rows left out because their answer is empty."""
        self.n_duplicates = left_out["repeat a question"]
        """Rows left out because an earlier row asks the same question."""
        self._problems = tuple(first.values())
        content = [[problem.question, problem.answer] for problem in self._problems]
        self.content_hash = digest(json.dumps(content))
        """Of all questions and answers."""

    def __len__(self) -> int:
        return len(self._problems)

    def problem(self, index: int) -> Problem:
        """Return a problem.

        Raises:
            IndexError: If the file has no such problem.
        """
        if not 0 <= index < len(self):
            raise IndexError(f"problem {index} of {self.path}, which has {len(self)}")
        return self._problems[index]


def _problems(path: Path) -> Iterator[Problem]:
    for place, row in read_rows(path, _COLUMNS):
        where = f"{path}, {place}"
        question = _question(row, where)
        # A comma in the answer to a question that wants several "separated by commas" groups no thousands.
        yield Problem(
            question=question,
            answer=_answer(row, where, is_list="comma" in question.lower()),
            family=next((row[name] for name in SUBJECT_FIELDS if isinstance(row.get(name), str)), ""),
            level=_level(row.get("level")),
        )


def _first(row: Row, names: tuple[str, ...], what: str, where: str) -> tuple[str, Any]:
    """Return the first of the fields that is not empty, with its name; ("", "") if all of them are."""
    for name in names:
        value: Any = row
        for key in name.split("."):
            value = value.get(key) if isinstance(value, dict) else None
        if value not in (None, "", []) and not (isinstance(value, str) and value.isspace()):
            return name, value
    if not any(name.split(".")[0] in row for name in names):
        known = ", ".join(names)
        raise DataError(f"{where}: expected {what} in one of the fields {known}, got {', '.join(row)}")
    return "", ""


def _level(value: object) -> int:
    """Return the number of a level such as 5 or "Level 5"; 0 where there is none."""
    digits = re.search(r"\d+", str(value))
    return int(digits[0]) if digits else 0


# ---- questions


def _question(row: Row, where: str) -> str:
    name, value = _first(row, QUESTION_FIELDS, "a question", where)
    text = _message(value) if isinstance(value, list) else value
    if not isinstance(text, str) or not text.strip():
        raise DataError(f"{where}: expected a question, got {value!r:.100}")
    return _bare(text) if name in ("prompt", "input") else text.strip()


def _message(messages: list[Any]) -> object:
    """Return the content of the first message of a user, or of the first of all."""
    known = [message for message in messages if isinstance(message, dict)]
    users = [message for message in known if message.get("role") == "user"]
    return next((message.get("content") for message in users or known), None)


_TEMPLATES = (
    re.compile(r".*<\|im_start\|>user\n(.*?)<\|im_end\|>.*", re.DOTALL),  # Qwen's chat markup
    re.compile(r"Question:\s*(.*?)\s*Answer:.*", re.DOTALL),
    re.compile(r"Solve the following math problem[^\n]*\n\s*\n(.*)", re.DOTALL),
    re.compile(r"(.*)\n\s*Remember to put your answer[^\n]*", re.DOTALL),
    re.compile(r"(.*)\n\s*Please reason step by step[^\n]*", re.DOTALL),
)
"""What the sets wrap around a question: our own prompt says how to answer, and theirs contradict it."""


def _bare(text: str) -> str:
    for template in _TEMPLATES:
        match = template.fullmatch(text.strip())
        text = match[1] if match else text
    return text.strip()


# ---- answers


def _answer(row: Row, where: str, *, is_list: bool) -> str:
    """Return the answer, "" if it is empty."""
    name, value = _first(row, ANSWER_FIELDS, "an answer", where)
    if not name:
        return ""
    where = f"{where}, field {name}"
    if isinstance(value, list) and len(value) == 1:
        value = value[0]
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise DataError(f"{where}: expected one answer, got {value!r:.100}")
    text = _unwrapped(str(value), must_be_boxed=name == "solution", where=where)
    text = text if is_list else _plain_number(text)
    if not text or text in ("nan", "inf", "-inf"):
        raise DataError(f"{where}: expected an answer, got {value!r:.100}")
    if not _is_balanced(text):
        raise DataError(f"{where}: expected as many closing as opening braces, got {text!r:.100}")
    return text


def _unwrapped(text: str, must_be_boxed: bool, where: str) -> str:
    """Return what stands in the last box, or after the last `####`, or between dollar signs, or all of it."""
    boxes = list(re.finditer(r"\\f?box(?:ed)?\s*\{", text))
    if boxes:
        return _group(text[boxes[-1].end() :], where)
    if must_be_boxed:
        raise DataError(f"{where}: expected a \\boxed{{}} in the solution, got none in {text[-100:]!r}")
    text = text.rpartition("####")[2].strip()
    inner = re.fullmatch(r"\$([^$]*[^$\\])\$", text)
    return inner[1].strip() if inner else text


def _group(text: str, where: str) -> str:
    """Return the text up to the brace that closes the one before it."""
    depth = 1
    for match in _BRACES.finditer(text):
        depth += 1 if match[0] == "{" else -1 if match[0] == "}" else 0
        if depth == 0:
            return text[: match.start()].strip()
    raise DataError(f"{where}: expected a closed \\boxed{{}}, got {text!r:.100}")


_BRACES = re.compile(r"\\.|[{}]", re.DOTALL)
"""Braces, and what a backslash makes no brace."""


def _is_balanced(text: str) -> bool:
    depth = 0
    for match in _BRACES.finditer(text):
        depth += 1 if match[0] == "{" else -1 if match[0] == "}" else 0
        if depth < 0:
            return False
    return depth == 0


def _plain_number(text: str) -> str:
    """Return a number without thousands commas and zero decimals, any other text as it is."""
    if re.fullmatch(r"[-+]?\d{1,3}(,\d{3})+(\.\d+)?", text):
        text = text.replace(",", "")
    return re.sub(r"\.0+", "", text) if re.fullmatch(r"[-+]?\d+\.0+", text) else text
