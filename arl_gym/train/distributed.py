"""Several ranks that run the same program: who is who, and how they exchange Python objects.

torch.distributed only; DeepSpeed finds the group made here. Every function is called by all ranks alike, and
with a single rank each of them costs nothing.

    start()
    trajectories = shared_rollout(vec, policy, episodes, env_id="ARL/Sokoban-v0", seed=0)
"""

import atexit
import os
import pickle
import re
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any, Literal, NamedTuple, TypeVar, cast

import numpy as np
import numpy.typing as npt
import torch
import torch.distributed as dist

from arl_gym.agents.rollout import rollout
from arl_gym.agents.types import Episode, Policy, Reply, Request, Trajectory
from arl_gym.errors import ArlGymError, ConfigError, PolicyError
from arl_gym.vector import TextVectorEnv

T = TypeVar("T")
Number = TypeVar("Number", bound=np.generic)

# One rank may play for hours while the others wait for it.
_PATIENCE = timedelta(days=30)

_objects: dist.ProcessGroup | None = None
"""The gloo group that objects travel over; None until `start`, and while there is one rank."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where a process stands among the ranks."""

    rank: int
    world_size: int
    local_rank: int
    """Number among the ranks of this machine: which GPU is its own."""


def place(environ: Mapping[str, str] = os.environ) -> Place:
    """Read from the environment which rank this process is.

    The variables of torchrun and of DeepSpeed's launcher come first, then those that `srun` sets (not those
    of `sbatch` alone: a script that it starts is one process, however many tasks were asked for). Without
    any of them the process is alone.

    Raises:
        ConfigError: If a launcher's variables are incomplete or no numbers.
    """
    if "RANK" in environ:
        names = ("RANK", "WORLD_SIZE", "LOCAL_RANK")
    elif int(environ.get("SLURM_STEP_NUM_TASKS", "1")) > 1:
        names = ("SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "SLURM_LOCALID")
    else:
        return Place(rank=0, world_size=1, local_rank=0)
    try:
        rank, world_size, local_rank = (int(environ[name]) for name in names)
    except (KeyError, ValueError) as err:
        raise ConfigError(f"a launcher must set {', '.join(names)} to whole numbers: {err!r}") from err
    if not 0 <= rank < world_size:
        raise ConfigError(f"expected 0 <= {names[0]} < {names[1]}, got {rank} and {world_size}")
    return Place(rank=rank, world_size=world_size, local_rank=local_rank)


def first_host(nodelist: str) -> str:
    """Return the first host of SLURM's compact list: `n07` of `n[07-09,12],m1`."""
    match = re.match(r"([^,\[]+)(?:\[(\w+)[^\]]*\]([^,]*))?", nodelist)
    if match is None:
        raise ConfigError(f"expected a list of hosts from SLURM, got {nodelist!r}")
    return "".join(part or "" for part in match.groups())


def start(timeout_s: float = 1800.0) -> None:
    """Join the other ranks, once; more calls do nothing.

    Tensors go over NCCL on GPUs and over gloo on the CPU, objects always over a gloo group of their own that
    waits as long as it takes. A process that is alone opens no port.

    Args:
        timeout_s: How long an exchange of tensors waits for the slowest rank.

    Raises:
        ConfigError: If the launcher's variables are incomplete.
    """
    global _objects
    if dist.is_initialized():
        return
    atexit.register(_leave)
    here = place()
    cuda = torch.cuda.is_available()
    device = here.local_rank % torch.cuda.device_count() if cuda else here.local_rank
    # DeepSpeed takes this for the number of its device, also where SLURM shows each task a single one.
    os.environ["LOCAL_RANK"] = str(device)
    if cuda:
        torch.cuda.set_device(device)
    # No device_id: with it, a second NCCL group can hang.
    backend = "nccl" if cuda else "gloo"
    if here.world_size == 1:
        store = dist.HashStore()  # type: ignore[attr-defined]  # public, but missing from its __all__
        dist.init_process_group(backend, store=store, rank=0, world_size=1)
        return
    if "RANK" not in os.environ:
        os.environ |= _rendezvous(os.environ)
    dist.init_process_group(
        backend, rank=here.rank, world_size=here.world_size, timeout=timedelta(seconds=timeout_s)
    )
    _objects = dist.new_group(backend="gloo", timeout=_PATIENCE)


def _leave() -> None:
    """Close the groups before the interpreter ends: their threads, cut off, would abort the process."""
    if dist.is_initialized():
        dist.destroy_process_group()


def _rendezvous(environ: Mapping[str, str]) -> dict[str, str]:
    """Return where the tasks of a SLURM step meet: its first host, a port made from the number of the job."""
    nodes = environ.get("SLURM_STEP_NODELIST") or environ.get("SLURM_NODELIST", "")
    address = environ.get("MASTER_ADDR") or first_host(nodes)
    port = environ.get("MASTER_PORT") or str(20000 + int(environ.get("SLURM_JOB_ID", "0")) % 20000)
    return {"MASTER_ADDR": address, "MASTER_PORT": port}


def rank() -> int:
    """Return this process's number; before `start`, the one that it will have."""
    return dist.get_rank() if dist.is_initialized() else place().rank


def world_size() -> int:
    """Return the number of ranks; before `start`, the one that there will be."""
    return dist.get_world_size() if dist.is_initialized() else place().world_size


def is_main() -> bool:
    """Return whether this is the rank that writes files and talks."""
    return rank() == 0


def gather(obj: T) -> list[T]:
    """Return the object of every rank, in the order of ranks; it is pickled on the way."""
    if world_size() == 1:
        return [obj]
    out: list[Any] = [None] * world_size()
    dist.all_gather_object(out, obj, group=_objects)
    return out


def broadcast(obj: T) -> T:
    """Return the first rank's object; what the others pass is not looked at."""
    if world_size() == 1:
        return obj
    box: list[Any] = [obj]
    dist.broadcast_object_list(box, src=0, group=_objects)
    return box[0]  # type: ignore[no-any-return]


def any_rank(flag: bool) -> bool:
    """Return whether the flag is set on some rank."""
    return any(gather(flag))


def barrier() -> None:
    """Wait until all ranks are here."""
    gather(None)


def sum_arrays(array: npt.NDArray[Number]) -> npt.NDArray[Number]:
    """Return the sum of the ranks' arrays, which have one shape and type."""
    if world_size() == 1:
        return array
    total = torch.from_numpy(np.array(array, order="C"))  # a copy: the sum is made in place
    dist.all_reduce(total, group=_objects)
    return total.numpy()


def agree(error: Exception | None) -> None:
    """Raise the same exception on all ranks if one of them failed: that of the first that did."""
    for failure in gather(_portable(error)):
        if failure is not None:
            raise failure


def check_together(check: Callable[[], None]) -> None:
    """Call a check on every rank and raise on all of them what it raised on some.

    For a check whose answer may differ between ranks, such as whether a signal has come yet: one that went on
    alone would wait for the others for ever.
    """
    error = None
    try:
        check()
    except Exception as err:  # raised below, on all ranks
        error = err
    agree(error)


def _portable(error: Exception | None) -> Exception | None:
    """Return the exception, or its text if it cannot travel."""
    if error is None or world_size() == 1:
        return error
    try:
        pickle.loads(pickle.dumps(error))
    except Exception:  # whatever the class of a stranger's exception does
        return ArlGymError(f"rank {rank()}: {type(error).__name__}: {error}")
    return error


def on_main(act: Callable[[], T]) -> T:
    """Do something on the first rank and return what it gave, on all ranks; what it raises, all raise."""
    error, result = None, None
    if is_main():
        try:
            result = act()
        except Exception as err:  # raised below, on all ranks
            error = err
    agree(error)
    return broadcast(cast(T, result))


def n_teams(size: int) -> int:
    """Return into how many teams the ranks fall: `size` consecutive ones each.

    Raises:
        ConfigError: If they do not fall into teams of that size.
    """
    teams, rest = divmod(world_size(), size)
    if rest:
        raise ConfigError(
            f"vllm.tensor_parallel={size}: expected a divisor of the number of ranks, which is {world_size()}"
        )
    return teams


@dataclass(frozen=True, slots=True)
class Team:
    """Consecutive ranks that share an engine: the first plays, the others follow."""

    size: int
    group: dist.ProcessGroup
    """Their gloo group."""

    @property
    def is_led_here(self) -> bool:
        """Whether this rank is the first of the team."""
        return rank() % self.size == 0


def form_teams(size: int) -> Team:
    """Return this rank's team. All ranks call this alike.

    Raises:
        ConfigError: If the ranks do not fall into teams of that size.
    """
    n_teams(size)
    group, _ = dist.new_subgroups(group_size=size, backend="gloo", timeout=_PATIENCE)
    return Team(size, group)


_Order = list[Request] | Literal["poll", "end"]
"""What the first rank of a team tells the others: submit these requests, poll, or that it has played."""


class _Word(NamedTuple):
    """What a rank says when its team meets, before each call of the policy and at the end."""

    order: _Order | None
    """Of the first rank."""
    error: Exception | None
    """What the calls so far have raised on one of the others."""
    said: list[tuple[int, list[int] | None]]
    """Keys and ids of what its part of the engine answered last."""


class TeamPolicy:
    """A policy over an engine that lies on the ranks of a team, in parts that only work together.

    What is asked on the first rank is asked on the others too, in the same order. Works inside `together`.

    Args:
        policy: Of this rank's part; equal ones give equal answers to equal calls.
        team: The ranks that share the engine.
    """

    def __init__(self, policy: Policy, team: Team):
        self.team = team
        self._policy = policy
        self._said: list[tuple[int, list[int] | None]] = []

    def submit(self, requests: Sequence[Request]) -> None:
        """See `Policy`; on the first rank of the team only."""
        # Environments put into `info` what they like, and an engine reads no more than this of it.
        self._tell([replace(request, info={"stop": request.stop}) for request in requests])
        self._policy.submit(requests)

    def poll(self) -> list[Reply]:
        """See `Policy`; on the first rank of the team only.

        Raises:
            PolicyError: If the ranks of the team answered differently the last time.
        """
        self._tell("poll")
        return self._polled()

    def together(self, play: Callable[[], list[T]]) -> list[T]:
        """Play on the first rank of the team, and on the others repeat what that asks of the policy.

        Args:
            play: Submits and polls.

        Returns:
            What `play` returned on the first rank; nothing on the others.

        Raises:
            Exception: What was raised on this rank, and on the first one also what others had raised.
        """
        if not self.team.is_led_here:
            self._follow()
            return []
        try:
            played = play()
        except Exception:
            self._meet("end")
            raise
        self._tell("end")
        return played

    def _tell(self, order: _Order) -> None:
        """Give the others an order, or raise why the team can not go on."""
        _, failure = self._meet(order)
        if failure is not None:
            raise failure

    def _follow(self) -> None:
        error = None
        while True:
            order, failure = self._meet(None, error)
            if order == "end":
                break
            if failure is not None:  # the first rank raises it, and then tells the end
                continue
            try:
                if order == "poll":
                    self._polled()
                else:
                    self._policy.submit(cast(list[Request], order))
            except Exception as err:  # raised below
                error = err
        if error is not None:
            raise error

    def _polled(self) -> list[Reply]:
        replies = self._policy.poll()
        self._said = [(reply.key, reply.completion_ids) for reply in replies]
        return replies

    def _meet(
        self, order: _Order | None, error: Exception | None = None
    ) -> tuple[_Order | None, Exception | None]:
        """Return the first rank's order, and why no rank must obey it if there is a reason."""
        words: list[Any] = [None] * self.team.size
        mine = _Word(order, _portable(error), self._said)
        dist.all_gather_object(words, mine, group=self.team.group)
        failure = next((word.error for word in words if word.error is not None), None)
        said = [word.said for word in words]
        if failure is None and any(other != said[0] for other in said):
            failure = PolicyError(
                f"ranks that share an engine answered differently (keys, ids): {str(said)[:400]}"
            )
        return words[0].order, failure


def share(groups: Sequence[Hashable], team_size: int = 1) -> list[int]:
    """Return which items are this rank's or its team's: whole groups, dealt round robin as they appear.

    Args:
        groups: The group of every item.
        team_size: Ranks that play as one.
    """
    number = {group: i for i, group in enumerate(dict.fromkeys(groups))}
    mine, size = rank() // team_size, n_teams(team_size)
    return [i for i, group in enumerate(groups) if number[group] % size == mine]


def gather_played(policy: Policy, play: Callable[[], list[T]]) -> list[T]:
    """Play on every rank, or on the first of each team, and return on all ranks what all have played.

    Args:
        policy: What `play` asks; all ranks have the same weights.
        play: Gives this rank's or its team's part; followers of a team do not call it.

    Returns:
        The parts one after the other, in the order of ranks.

    Raises:
        Exception: Whatever some rank raised, on all ranks.
    """
    played: list[T] = []
    error = None
    try:
        played = policy.together(play) if isinstance(policy, TeamPolicy) else play()
    except Exception as err:  # raised below, on all ranks: the others wait for this one
        error = err
    agree(error)
    return [item for part in gather(played) for item in part]


def shared_rollout(
    vec: TextVectorEnv, policy: Policy, episodes: Sequence[Episode], **kwargs: Any
) -> list[Trajectory]:
    """Play the episodes of whole groups on each rank or team, and return all trajectories on all ranks.

    Args:
        vec: This rank's environments.
        policy: This rank's policy; all ranks have the same weights.
        episodes: What to play, equal on all ranks.
        **kwargs: See `arl_gym.agents.rollout.rollout`; its `stats` and `progress` are about this rank's
            share.

    Returns:
        The trajectories in the order of `episodes`, whichever rank played them.

    Raises:
        Exception: Whatever the rollout of some rank raised, on all ranks.
    """
    size = policy.team.size if isinstance(policy, TeamPolicy) else 1
    mine = share([episode.group for episode in episodes], size)

    def play() -> list[tuple[int, Trajectory]]:
        return list(zip(mine, rollout(vec, policy, [episodes[i] for i in mine], **kwargs), strict=True))

    everyone = dict(gather_played(policy, play))
    return [everyone[i] for i in range(len(episodes))]
