"""Rules about tasks: their ids, splits and content."""

from collections.abc import Collection

from arl_gym.checker.probe import Mismatch, NotApplicable, Probe, require, require_equal, require_same_info
from arl_gym.core import SPLITS
from arl_gym.errors import ConfigError

_FEW = 200
"""How many ids of a long sequence are looked at."""
_TASKS_PER_SPLIT = 5
"""How many tasks of a split are opened."""
_NO_TASK = "no such task"


def a_task_id_gives_its_task(probe: Probe) -> None:
    """`reset(options={"task_id": ...})` gives that task and its first observation, whatever the seed."""
    with probe.base_with("task_ids") as one, probe.base() as two:
        for seed in probe.seeds():
            obs, info = one.reset(seed=seed)
            task_id = info["task_id"]
            again, its_info = two.reset(seed=seed + 1, options={"task_id": task_id})
            where = f"reset(options={{'task_id': {task_id!r}}})"
            require(its_info["task_id"] == task_id, f"task {task_id!r}", its_info["task_id"], where)
            require_equal(obs, again, "the same first observation", where)
            require_same_info(info, its_info, where)


def an_unknown_task_is_named(probe: Probe) -> None:
    """`reset(options={"task_id": ...})` with an unknown id raises an error that names it."""
    with probe.base_with("task_ids") as env:
        try:
            _, info = env.reset(options={"task_id": _NO_TASK})
        except Exception as err:
            require(_NO_TASK in str(err), f"an error that names {_NO_TASK!r}", f"{type(err).__name__}: {err}")
        else:
            raise Mismatch(
                f"expected an error for the task {_NO_TASK!r}, got the task {info.get('task_id')!r}"
            )
        env.reset(seed=probe.seed)  # works again


def task_ids_are_finite_lazy_and_stable(probe: Probe) -> None:
    """`task_ids()` is finite, lazy, stable and knows its ids.

    `arl_gym.core.TaskIds` is such a sequence.
    """
    with probe.base_with("task_ids") as env, probe.base() as other:
        ids = env.task_ids()
        n = len(ids)
        require(n > 0, "at least one task", n)
        lazy = n <= 10_000 or not isinstance(ids, (list, tuple))
        require(lazy, "a lazy sequence", f"a {type(ids).__name__} of {n}")
        some = [ids[k] for k in range(min(n, _FEW))]
        require(all(type(i) is str for i in some), "ids of type str", some[:3])
        require(len(set(some)) == len(some), "ids that occur once", some[:10])
        require(some[0] in ids and ids[n - 1] in ids, "its own ids in the sequence", (some[0], ids[n - 1]))
        require(_NO_TASK not in ids, f"{_NO_TASK!r} not in the sequence", "it is")
        theirs = other.task_ids()
        require(some == [theirs[k] for k in range(len(some))], f"the same ids again: {some[:3]}", theirs[0])
        task_id = env.reset(seed=probe.seed)[1]["task_id"]
        require(task_id in ids, "the task of a seeded reset among task_ids()", task_id)


def splits_share_no_task(probe: Probe) -> None:
    """No task id is in two splits."""
    with probe.base_with("task_ids") as env:
        splits = {}
        for split in SPLITS:
            try:
                splits[split] = env.task_ids(split)
            except ConfigError:
                continue  # not every environment has every split
        _require_several(splits)
        for a, ids in splits.items():
            for b in splits.keys() - {a}:
                shared = [ids[k] for k in range(min(len(ids), _FEW)) if ids[k] in splits[b]]
                require(not shared, f"no task of {a} in {b}", shared[:3])


def splits_share_no_content(probe: Probe) -> None:
    """No content is in two splits, by `content_hash`.

    Decide by the content itself in which split it goes, by its digest for example.
    """
    found: dict[str, tuple[str, str]] = {}
    opened: list[str] = []
    with probe.base_with("task_ids"):
        pass
    for split in SPLITS:
        try:
            with probe.variant("split", split) as env:
                ids = env.get_wrapper_attr("task_ids")()
                for k in range(min(len(ids), _TASKS_PER_SPLIT)):
                    content = env.reset(options={"task_id": ids[k]})[1].get("content_hash")
                    if content is None:
                        raise NotApplicable("its infos have no content_hash")
                    where, other = found.setdefault(content, (split, ids[k]))
                    require(
                        where == split, f"other content in {split}", f"{ids[k]!r} like {other!r} of {where}"
                    )
        except ConfigError:
            continue  # not every environment has every split
        opened.append(split)
    _require_several(opened)


def _require_several(splits: Collection[str]) -> None:
    if len(splits) < 2:
        raise NotApplicable("it has no two splits")


RULES = (
    a_task_id_gives_its_task,
    an_unknown_task_is_named,
    task_ids_are_finite_lazy_and_stable,
    splits_share_no_task,
    splits_share_no_content,
)
