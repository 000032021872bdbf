"""One problem and what belongs to it."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """A question with its gold answer.

    A generated problem also has a reference program and the thought that leads to it; a problem of a file has
    neither.
    """

    question: str
    """Words with LaTeX between dollar signs."""
    answer: str
    r"""Bare LaTeX, as it would stand in `\boxed{}`."""
    program: str = ""
    """Self-contained Python (sympy allowed) that prints the answer as Python prints it, within a second."""
    thought: str = ""
    """What an agent could think before it writes the program: the method, not the answer."""
    family: str = ""
    """Name of the generated family, or the subject a data set gives."""
    level: int = 0
    """Difficulty from 1 to 5; 0 where a data set gives none."""
