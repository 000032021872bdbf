"""Grades answers of TIR-Math."""

from arl_gym.envs.tirmath.grading.box import extract_boxed, has_box
from arl_gym.envs.tirmath.grading.grader import Grader, shared_grader
from arl_gym.envs.tirmath.grading.judge import Verdict

GRADER_VERSION = "1+math-verify-0.9.0"

__all__ = ["GRADER_VERSION", "Grader", "Verdict", "extract_boxed", "has_box", "shared_grader"]
