import json

import pytest

from arl_gym.errors import ConfigError, DataError
from arl_gym.train.checkpoint import Checkpoints


def save(store, step, *, text="weights", best=False):
    (store.draft(step) / "weights.bin").write_text(text)
    return store.commit(step, {"seconds": 1.5}, best=best)


@pytest.fixture
def store(tmp_path):
    return Checkpoints(tmp_path / "checkpoints", keep=2)


def test_the_newest_checkpoint_is_read_with_its_state(store):
    save(store, 1)
    save(store, 2)
    found = store.read()
    assert (found.step, found.state) == (2, {"seconds": 1.5})
    assert (found.folder / "weights.bin").read_text() == "weights"


def test_a_run_without_checkpoints_has_none_to_read(store):
    assert store.read("auto") is None


def test_the_newest_and_the_best_are_kept(store):
    save(store, 1)
    save(store, 2, best=True)
    for step in (3, 4, 5):
        save(store, step)
    assert store.steps() == [2, 4, 5]
    assert store.read("best").step == 2


def test_a_new_best_releases_the_old_one(store):
    save(store, 1, best=True)
    save(store, 2, best=True)
    save(store, 3)
    save(store, 4)
    assert store.steps() == [2, 3, 4]


def test_a_draft_that_was_never_finished_is_no_checkpoint(store):
    save(store, 1)
    (store.draft(2) / "weights.bin").write_text("half")
    assert store.read().step == 1
    save(store, 2)
    assert store.read().step == 2


def test_going_back_gives_later_checkpoints_up(store):
    save(store, 1)
    save(store, 2, best=True)
    for step in (3, 4):
        save(store, step)
    store.forget_after(3)
    assert (store.steps(), store.best()) == ([2, 3], 2)
    store.forget_after(1)
    assert (store.steps(), store.best()) == ([], None)


@pytest.mark.parametrize(
    "damage", [lambda p: p.write_text("weight"), lambda p: p.write_text("weighty"), lambda p: p.unlink()]
)
def test_a_damaged_checkpoint_is_refused_and_the_older_one_named(store, damage):
    save(store, 1)
    damage(save(store, 2) / "weights.bin")
    with pytest.raises(DataError, match=r"step-000002 is damaged: .*go on from an older one with --resume 1"):
        store.read()
    assert store.read("1").step == 1
    assert store.read("step-000001").step == 1


def test_a_state_file_that_is_cut_off_is_damage(store):
    place = save(store, 7)
    text = (place / "state.json").read_text()
    (place / "state.json").write_text(text[: len(text) // 2])
    with pytest.raises(DataError, match=r"step-000007 is damaged: .*there is no other"):
        store.read()


def test_a_checkpoint_of_another_format_is_refused(store):
    path = save(store, 1) / "state.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "format": 99}))
    with pytest.raises(DataError, match="expected format 1, got 99"):
        store.read()


@pytest.mark.parametrize("which", ["3", "best", "newest"])
def test_a_checkpoint_that_is_not_there_is_an_error_that_lists_the_others(store, which):
    save(store, 1)
    with pytest.raises(ConfigError, match=rf"no checkpoint '{which}', only those of steps \[1\]"):
        store.read(which)


def test_saving_a_step_again_replaces_it(store):
    save(store, 1)
    save(store, 1, text="newer")
    assert (store.read().folder / "weights.bin").read_text() == "newer"
