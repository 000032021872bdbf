"""Short ways to write down the trajectories that the trainer's tests are about."""

from collections.abc import Sequence

from PIL import Image

from arl_gym.agents.types import Stop, Trajectory, Turn
from arl_gym.core import Message


def turn(
    prompt: Sequence[int] = (1,),
    completion: Sequence[int] = (2,),
    *,
    reward: float = 0.0,
    penalty: float = 0.0,
    anchor: str = "",
    n_kept: int | None = None,
    logprobs: Sequence[float] | None = None,
    pictures: Sequence[Image.Image] = (),
    append: bool = False,
) -> Turn:
    message: Message = {"role": "user", "content": [{"type": "image", "image": p} for p in pictures]}
    return Turn(
        messages=[message] if pictures else [],
        response="",
        action="",
        env_reward=reward,
        format_penalty=penalty,
        anchor=anchor,
        format_valid=penalty == 0.0,
        action_valid=True,
        finish="stop",
        append=append,
        prompt_ids=list(prompt),
        completion_ids=list(completion),
        logprobs=[-0.5] * len(completion) if logprobs is None else list(logprobs),
        n_kept=len(completion) if n_kept is None else n_kept,
    )


def trajectory(
    *turns: Turn, group: int = 0, copy: int = 0, stop: Stop = "terminated", success: bool = False
) -> Trajectory:
    return Trajectory(
        env_id="Test-v0",
        task_id="t7",
        dataset="generated",
        split="train",
        content_hash="",
        group=group,
        copy=copy,
        turns=turns,
        stop=stop,
        success=success,
        score=float(success),
    )
