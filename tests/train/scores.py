"""Turns with scores of their tokens, as the trainer records them, with numbers chosen by hand."""

import math

import numpy as np

from arl_gym.train.recordings import TurnScores


def turn(advantage, ratios, *, old=0.5, entropy=0.2, ref=None, trajectory=0):
    """Tokens of probability `old` before the update and `old * ratio` after it.

    `ref` is the reference's probability of every token; None: there is no reference.
    """
    n = len(ratios)
    return TurnScores(
        trajectory=trajectory,
        advantage=advantage,
        old=np.full(n, math.log(old)),
        new=np.log(old * np.array(ratios)),
        ref=None if ref is None else np.full(n, math.log(ref)),
        entropy=np.full(n, entropy),
    )
