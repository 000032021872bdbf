"""Many boards at once: moves, rewards and infos, against drawn boards and the single environment."""

import tracemalloc

import numpy as np
import pytest
from gymnasium.wrappers.vector import RecordEpisodeStatistics
from hypothesis import given, settings
from hypothesis import strategies as st

from arl_gym.envs.sokoban import batch_levels, batch_numpy
from arl_gym.envs.sokoban.batch_numpy import DEAD_SQUARE, FREEZE, UNKNOWN
from arl_gym.envs.sokoban.keys import board_key
from arl_gym.envs.sokoban.solver import solve
from arl_gym.errors import ActionError, ConfigError, EpisodeOverError, UnknownNameError
from arl_gym.rng import Rng
from tests.envs.sokoban.batches import (
    BACKENDS,
    BEGUN,
    DOWN,
    FOUR_WAYS,
    LEFT,
    LEVELS,
    RIGHT,
    SHORT,
    TALL,
    UP,
    assert_same,
    draw,
    make,
    make_single,
    random_actions,
)
from tests.test_imports import fresh_python


@pytest.mark.parametrize("backend", BACKENDS)
def test_four_boards_make_the_four_moves_of_a_drawn_board(backend):
    env = make(4, levels=FOUR_WAYS, backend=backend)
    env.reset()
    boards, rewards, terminations, truncations, infos = env.step([UP, DOWN, LEFT, RIGHT])
    assert [draw(board).split("\n")[1:4] for board in boards] == [
        ["#__X__#", "#__S__#", "#OX___#"],
        ["#_____#", "#__√__#", "#OXP__#"],
        ["#_____#", "#__√__#", "#√P___#"],
        ["#_____#", "#__√__#", "#OX_P_#"],
    ]
    assert rewards.tolist() == [-1.1, -0.1, 10.9, -0.1]
    assert terminations.tolist() == infos["success"].tolist() == [False, False, True, False]
    assert not truncations.any()
    assert infos["action_effective"].tolist() == [True, False, True, True]
    assert infos["boxes_on_target"].tolist() == [0, 1, 2, 1]
    assert infos["score"].tolist() == [0, 0.5, 1, 0.5]
    assert infos["deadlock"].tolist() == [DEAD_SQUARE, UNKNOWN, UNKNOWN, UNKNOWN]
    assert infos["optimal_moves"].tolist() == [1, 1, 1, 1]


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_box_that_begins_on_its_target_earns_nothing(backend):
    env = make(levels=BEGUN, backend=backend)
    _, infos = env.reset()
    assert infos["boxes_on_target"] == 1
    assert env.step([RIGHT])[1] == -0.1
    assert env.step([RIGHT])[1] == -1.1  # pushed off
    assert env.step([LEFT])[1] == -0.1


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_box_is_not_pushed_into_a_box_or_a_wall(backend):
    env = make(
        2,
        levels=["#######\n#     #\n#@$$  #\n#  .  #\n# .   #\n#######", "#####\n# @ #\n#.$ #\n#####"],
        backend=backend,
    )
    before, _ = env.reset(options={"task_id": ["level:0", "level:1"]})
    after, rewards, _, _, infos = env.step([RIGHT, DOWN])
    assert (before == after).all()
    assert rewards.tolist() == [-0.1, -0.1]
    assert not infos["action_effective"].any()


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize(
    ("level", "actions", "deadlock"),
    [
        # Two boxes along the upper wall, each in the way of the other.
        ("#######\n#. $ .#\n# $   #\n#     #\n#  @  #\n#######", [LEFT, UP, UP], FREEZE),
        # The same on targets, with a third box to go.
        ("########\n#*.    #\n# $    #\n#      #\n#@ $  .#\n########", [RIGHT, UP, UP], UNKNOWN),
        # A corner.
        ("#####\n#   #\n# $@#\n#  .#\n#####", [LEFT], DEAD_SQUARE),
        # Beside a frozen box on its target, against the wall.
        ("######\n#*   #\n# $  #\n#@  .#\n######", [UP, RIGHT], UNKNOWN),
    ],
)
def test_deadlocks_of_drawn_boards(backend, level, actions, deadlock):
    env = make(levels=level, backend=backend)
    _, infos = env.reset()
    for action in actions:
        assert infos["deadlock"] == UNKNOWN
        *_, infos = env.step([action])
        assert infos["action_effective"]
    assert infos["deadlock"] == deadlock


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 10_000), st.sampled_from(["numpy", "auto"]))
def test_a_deadlock_has_no_solution_and_stays(seed, backend):
    kwargs = {"num_boxes": 3, "num_tasks": 20, "optimal": (3, 20)}
    env = make(8, backend=backend, autoreset_mode="Disabled", max_steps=40, **kwargs)
    rooms = make_single(**kwargs)
    boards, infos = env.reset(seed=seed)
    levels = [rooms.level(env.task_ids()[task]) for task in infos["task_index"]]
    lost = np.zeros(8, dtype=bool)
    for actions in random_actions(40, 8, seed):
        boards, _, terminations, _, infos = env.step(actions)
        found = infos["deadlock"] != UNKNOWN
        assert found[lost].all()
        for i in np.flatnonzero(found & ~lost):
            boxes, player = cells(levels[i], boards[i], 3, 4), cells(levels[i], boards[i], 5, 6)
            assert solve(levels[i], boxes, min(player)).status == "unsolvable"
        lost = found
        if terminations.any():
            break


def cells(level, board, *wanted):
    """Return the cells of a level, as `rules` counts them, that have one of the codes."""
    return frozenset(int(r * (level.width + 1) + c) for r, c in np.argwhere(np.isin(board, wanted)))


@settings(max_examples=40, deadline=None)
@given(
    st.lists(st.lists(st.integers(0, 3), min_size=4, max_size=4), max_size=40),
    st.sampled_from(["numpy", "auto"]),
)
def test_a_batch_plays_as_single_environments_do(steps, backend):
    ids = [f"level:{i}" for i in range(len(LEVELS))]
    env = make(4, levels=LEVELS, backend=backend, autoreset_mode="Disabled")
    singles = [make_single(levels=LEVELS) for _ in ids]
    boards, _ = env.reset(options={"task_id": ids})
    expected = [
        single.reset(options={"task_id": task_id}) for single, task_id in zip(singles, ids, strict=True)
    ]
    n_boxes = [np.isin(board, (3, 4)).sum() for board in boards]
    for board, (alone, _) in zip(boards, expected, strict=True):
        np.testing.assert_array_equal(board, alone)
    for actions in steps:
        boards, rewards, terminations, truncations, infos = env.step(actions)
        for i, single in enumerate(singles):
            alone, reward, terminated, truncated, info = single.step(actions[i])
            np.testing.assert_array_equal(boards[i], alone)
            assert (rewards[i], terminations[i], truncations[i]) == (reward, terminated, truncated)
            for key in ("success", "score", "action_effective", "boxes_on_target", "optimal_moves"):
                assert infos[key][i] == info[key], key
            assert f"{infos['state_key'][i]:016x}" == info["state_key"]
            assert infos["task_index"][i] == i
            assert infos["state_key"][i] == board_key(boards[i])
            assert np.isin(boards[i], (3, 4)).sum() == n_boxes[i]
            assert ((boards[i] == 0) == (expected[i][0] == 0)).all()
        if (terminations | truncations).any():
            break


@pytest.mark.parametrize("obs_mode", ["grid", "planes", "image"])
@pytest.mark.parametrize("autoreset_mode", ["NextStep", "SameStep", "Disabled"])
def test_both_backends_give_the_same(obs_mode, autoreset_mode):
    numpy, numba = (
        make(
            16,
            num_boxes=3,
            obs_mode=obs_mode,
            tile_size=16,
            autoreset_mode=autoreset_mode,
            backend=backend,
        )
        for backend in ("numpy", "auto")
    )
    assert numpy.backend == "numpy"
    assert_same(numpy.reset(seed=3), numba.reset(seed=3))
    for actions in random_actions(300, 16):
        results = numpy.step(actions)
        assert_same(results, numba.step(actions))
        ended = results[2] | results[3]
        if autoreset_mode == "Disabled" and ended.any():
            options = {"reset_mask": ended}
            assert_same(numpy.reset(options=options), numba.reset(options=options))


def test_both_backends_draw_the_tasks_of_rng():
    n = (1 << 63) + 1  # half of all words are drawn again
    rngs = [Rng("task", seed) for seed in range(50)]
    streams = np.array([rng.state for rng in rngs], dtype=np.uint64)
    others = streams.copy()
    for _ in range(20):
        drawn = batch_numpy._below(streams, np.arange(50), n)
        assert drawn.astype(np.uint64).tolist() == [rng.below(n) for rng in rngs]
        assert streams.tolist() == [rng.state for rng in rngs]
    kernels = pytest.importorskip("arl_gym.envs.sokoban.batch_kernels")
    for seed in range(50):
        rng = Rng("task", seed)
        for _ in range(20):
            assert np.uint64(kernels._below(others, seed, np.uint64(n))) == rng.below(n)
    assert (streams == others).all()


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_full_table_forgets_its_oldest_levels_and_nothing_else_changes(backend, monkeypatch):
    roomy = make(3, backend=backend)
    monkeypatch.setattr(batch_levels, "MAX_ROWS", 4)
    tight = make(3, backend=backend)
    assert_same(roomy.reset(seed=0), tight.reset(seed=0))
    for actions in random_actions(600, 3):
        assert_same(roomy.step(actions), tight.step(actions))
    starts, codes, dead, row_of = tight._levels.arrays
    assert (len(starts), len(codes), len(dead)) == (4, 4, 4)
    assert (row_of >= 0).sum() == 4


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_level_that_cannot_be_loaded_leaves_its_board_without_an_episode(backend):
    lost = "#######\n#@$$..#\n#######"
    env = make(2, levels=[SHORT, lost], backend=backend)
    env.reset(options={"task_id": "level:0"})
    with pytest.raises(ValueError, match="level 0"):
        env.reset(options={"task_id": "level:1", "reset_mask": np.array([False, True])})
    with pytest.raises(EpisodeOverError, match=r"envs \[1\]"):
        env.step([RIGHT, RIGHT])
    with pytest.raises(ConfigError, match=r"leaves out \[1\]"):
        env.reset(options={"reset_mask": np.array([True, False])})
    env.reset(options={"task_id": "level:0"})
    assert env.step([RIGHT, RIGHT])[2].all()


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize(
    ("actions", "error", "message"),
    [
        ([0, 1, 4], ActionError, "got 4 for env 2"),
        ([0, -1, 0], ActionError, "got -1 for env 1"),
        (np.array([0, 0, 2**64 - 1], dtype=np.uint64), ActionError, "got 18446744073709551615 for env 2"),
        ([0.0, 1.0, 2.0], ActionError, "got float64"),
        ([True, False, True], ActionError, "got bool"),
        (["up", "up", "up"], ActionError, "got <U2"),
        ([0, 1, None], ActionError, "got object"),
        ([0, 1], ConfigError, r"shape \(3,\), got shape \(2,\)"),
        (1, ConfigError, r"got shape \(\)"),
        ([[0], [1], [2]], ConfigError, r"got shape \(3, 1\)"),
    ],
)
def test_refused_actions_move_no_board(backend, actions, error, message):
    env, other = make(3, levels=FOUR_WAYS, backend=backend), make(3, levels=FOUR_WAYS, backend=backend)
    env.reset()
    other.reset()
    with pytest.raises(error, match=message):
        env.step(actions)
    assert_same(env.step([UP, DOWN, RIGHT])[:4], other.step([UP, DOWN, RIGHT])[:4])


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int32, np.uint64])
def test_actions_may_be_integers_of_any_type(dtype):
    env = make(2, levels=SHORT)
    env.reset()
    actions = np.array([RIGHT, LEFT], dtype=dtype)
    actions.flags.writeable = False
    assert env.step(actions)[1].tolist() == [10.9, -0.1]


def test_a_step_before_the_first_reset_is_refused():
    with pytest.raises(EpisodeOverError, match=r"envs \[0, 1\] have no running episode"):
        make(2, levels=SHORT).step([0, 0])


@pytest.mark.parametrize("obs_mode", ["grid", "planes", "image"])
def test_copies_stay_and_views_follow_the_game(obs_mode):
    copying, viewing = (
        make(levels=TALL, obs_mode=obs_mode, tile_size=16, copy=copy) for copy in (True, False)
    )
    kept, _ = copying.reset()
    shared, _ = viewing.reset()
    first = kept.copy()
    moved, *_ = copying.step([RIGHT])
    viewing.step([RIGHT])
    np.testing.assert_array_equal(kept, first)
    np.testing.assert_array_equal(shared, moved)
    assert kept.flags.writeable
    assert not shared.flags.writeable
    moved[:] = 0  # a copy: the game goes on from its own state
    np.testing.assert_array_equal(copying.step([LEFT])[0], first)


def test_infos_of_a_step_are_not_changed_by_the_next_one():
    env = make(2, levels=FOUR_WAYS, copy=False)
    env.reset()
    results = env.step([UP, RIGHT])[1:]
    before = {key: value.copy() for key, value in results[-1].items()}
    rewards = results[0].copy()
    env.step([DOWN, DOWN])
    assert_same(results[-1], before)
    assert_same(results[0], rewards)


def test_infos_have_the_documented_types():
    env = make(2, levels=SHORT)
    _, at_reset = env.reset()
    *_, infos = env.step([0, 0])
    types = {
        "task_index": np.int64,
        "success": np.bool_,
        "score": np.float64,
        "action_effective": np.bool_,
        "boxes_on_target": np.int64,
        "optimal_moves": np.int64,
        "deadlock": np.int8,
        "state_key": np.uint64,
    }
    for each in (at_reset, infos):
        assert {key: value.dtype.type for key, value in each.items()} == types
        assert all(value.shape == (2,) for value in each.values())


@pytest.mark.parametrize("obs_mode", ["grid", "planes", "image"])
def test_observations_and_samples_lie_in_the_spaces(obs_mode):
    env = make(3, obs_mode=obs_mode, tile_size=28)
    single = make_single(num_tasks=1, num_boxes=2, obs_mode=obs_mode, tile_size=28)
    assert env.single_observation_space == single.observation_space
    assert env.single_action_space == single.action_space
    obs, _ = env.reset(seed=0)
    assert env.observation_space.contains(obs)
    env.action_space.seed(0)
    assert env.observation_space.contains(env.step(env.action_space.sample())[0])


@pytest.mark.parametrize(
    ("kwargs", "message"),
    [
        ({"obs_mode": "text", "action_mode": "discrete"}, "TextVectorEnv"),
        ({"obs_mode": "both", "action_mode": "discrete"}, "TextVectorEnv"),
        ({"obs_mode": "image", "action_mode": "text"}, "TextVectorEnv"),
        ({"render_mode": "human"}, "'ansi' or 'rgb_array'"),
        ({"num_envs": 0}, "num_envs >= 1, got 0"),
        ({"max_episode_steps": 0}, "at least 1, got 0"),
        ({"autoreset_mode": "Never"}, "unknown autoreset_mode 'Never'"),
        ({"backend": "jax"}, "unknown backend 'jax'"),
    ],
)
def test_wrong_settings_are_refused(kwargs, message):
    with pytest.raises(ConfigError, match=message):
        make(**{"n": kwargs.pop("num_envs", 1), "levels": SHORT, **kwargs})


def test_max_episode_steps_is_a_further_limit():
    env = make(2, levels=[SHORT, TALL], max_steps=5, max_episode_steps=3, autoreset_mode="Disabled")
    env.reset()
    truncations = [env.step([UP, UP])[3].tolist() for _ in range(3)]
    assert truncations == [[False, False], [False, False], [True, True]]


def test_small_boards_get_walls_below_and_at_the_right():
    env = make(2, levels=[SHORT, TALL], render_mode="ansi")
    boards, _ = env.reset(options={"task_id": ["level:0", "level:1"]})
    assert draw(boards[0]) == "#####\n#PXO#\n#####\n#####\n#####\n#####"
    assert env.render() == ("#####\n#PXO#\n#####", "####\n#P_#\n#X_#\n#__#\n#O_#\n####")


def test_images_are_rendered_in_every_mode_of_observations():
    env = make(2, levels=[SHORT, TALL], render_mode="rgb_array", tile_size=16)
    with pytest.raises(EpisodeOverError, match="render needs episodes"):
        env.render()
    env.reset(seed=0)
    pictures = make(2, levels=[SHORT, TALL], obs_mode="image", tile_size=16)
    expected, _ = pictures.reset(seed=0)
    np.testing.assert_array_equal(np.stack(env.render()), expected)
    assert pictures.render() is None


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("tile_size", [16, 28, 32])
def test_pictures_follow_the_single_environments(backend, tile_size):
    env = make(levels=BEGUN, obs_mode="image", tile_size=tile_size, backend=backend)
    single = make_single(levels=BEGUN, obs_mode="image", tile_size=tile_size)
    np.testing.assert_array_equal(env.reset()[0][0], single.reset()[0])
    for action in (RIGHT, RIGHT, DOWN, LEFT, LEFT, UP):
        np.testing.assert_array_equal(env.step([action])[0][0], single.step(action)[0])


def test_episode_statistics_of_gymnasium_count_our_episodes():
    env = RecordEpisodeStatistics(make(2, levels=[SHORT, TALL], autoreset_mode="NextStep"))
    env.reset(options={"task_id": ["level:0", "level:1"]})
    env.step([LEFT, DOWN])
    *_, infos = env.step([RIGHT, DOWN])
    assert infos["_episode"].tolist() == [True, True]
    assert infos["episode"]["l"].tolist() == [2, 2]
    assert infos["episode"]["r"].tolist() == pytest.approx([10.8, 10.8])


def test_the_numpy_backend_loads_neither_numba_nor_pillow():
    loaded = fresh_python(
        "import sys; from arl_gym.envs.sokoban.batch import SokobanVectorEnv as Batch;"
        f"Batch(2, levels={SHORT!r}, obs_mode='grid', action_mode='discrete', backend='numpy').reset();"
        "print(*sys.modules)"
    ).split()
    assert "arl_gym.envs.sokoban.batch_numpy" in loaded
    assert not {"numba", "PIL"} & set(loaded)


@pytest.mark.parametrize("backend", BACKENDS)
def test_100_000_random_episodes_leave_no_memory_behind(backend):
    n = 1000
    env = make(n, num_tasks=200, max_steps=15, num_boxes=1, optimal=(3, 10), backend=backend)
    actions = random_actions(97, n)
    env.reset(seed=0)
    lengths, n_episodes, at_half = np.zeros(n, dtype=int), 0, 0
    tracemalloc.start()
    try:
        step = 0
        while n_episodes < 100_000:
            boards, rewards, terminations, truncations, infos = env.step(actions[step % 97])
            ended = terminations | truncations
            lengths += 1
            assert set(rewards.tolist()) <= {-0.1, 0.0, 10.9}
            assert (truncations == ((lengths == 15) & ~terminations)).all()
            assert (infos["success"] == terminations).all()
            # The step after an end begins anew and does not count.
            lengths[ended] = -1
            n_episodes += int(ended.sum())
            step += 1
            if not at_half and n_episodes >= 50_000:
                at_half = tracemalloc.get_traced_memory()[0]
        assert tracemalloc.get_traced_memory()[0] < at_half + 100_000
    finally:
        tracemalloc.stop()
    assert boards.max() <= 6


def test_closing_twice_is_fine():
    env = make(levels=SHORT)
    env.close()
    env.close()


def test_unknown_options_and_tasks_are_named():
    env = make(2, levels=[SHORT, TALL])
    with pytest.raises(UnknownNameError, match="unknown reset option 'level'"):
        env.reset(options={"level": 1})
    with pytest.raises(UnknownNameError, match=r"unknown task_id 'level:9'.*level:0"):
        env.reset(options={"task_id": ["level:0", "level:9"]})
    with pytest.raises(UnknownNameError, match="unknown task_id 3"):
        env.reset(options={"task_id": 3})
