import json
import struct
import subprocess
import sys

import pytest

from arl_gym.errors import DependencyMissing
from arl_gym.train.methods import resolve
from arl_gym.train.writers import open_writers
from tests.conftest import ROOT

ROW = {"step": 1, "loss/kl": 0.5, "optim/grad_norm": None, "rollout/tries": 2}
TENSORBOARD = resolve({"log": {"tensorboard": True}})
WANDB = resolve({"log": {"wandb_project": "sokoban"}, "seed": 7})


def write(cfg, folder, rows, resume_step=None):
    (writer,) = open_writers(cfg, folder, resume_step)
    for row in rows:
        writer.write(row["step"], row)
    writer.close()
    writer.close()


def scalars(folder):
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    events = EventAccumulator(str(folder / "tensorboard"))
    events.Reload()
    return {tag: [(e.step, e.value) for e in events.Scalars(tag)] for tag in events.Tags()["scalars"]}


def test_nothing_is_opened_that_is_not_asked_for(tmp_path):
    assert open_writers(resolve({}), tmp_path) == []
    assert list(tmp_path.iterdir()) == []


def test_tensorboard_gets_every_finite_number_of_a_row(tmp_path):
    write(TENSORBOARD, tmp_path, [ROW, ROW | {"step": 2, "loss/kl": 0.25}])
    assert scalars(tmp_path) == {"loss/kl": [(1, 0.5), (2, 0.25)], "rollout/tries": [(1, 2.0), (2, 2.0)]}


def test_tensorboard_forgets_what_a_resumed_run_does_again(tmp_path):
    write(TENSORBOARD, tmp_path, [{"step": s, "loss/kl": 1.0} for s in (1, 2, 3)])
    write(TENSORBOARD, tmp_path, [{"step": s, "loss/kl": 5.0} for s in (2, 3)], resume_step=1)
    assert scalars(tmp_path) == {"loss/kl": [(1, 1.0), (2, 5.0), (3, 5.0)]}


@pytest.fixture
def offline(monkeypatch):
    import wandb

    monkeypatch.setenv("WANDB_MODE", "offline")
    yield
    wandb.teardown()  # ends its service


def records(data):
    """The records in a file of LevelDB's log format, none of which crosses a block of 32 KiB."""
    at = 7  # after the file's own header
    while at < len(data):
        length, kind = struct.unpack_from("<HB", data, at + 4)  # after a checksum
        assert kind == 1, "a whole record"
        yield data[at + 7 : at + 7 + length]
        at += 7 + length


def logged(folder):
    """The rows in all offline files of a run folder, and their run ids."""
    from wandb.proto import wandb_internal_pb2 as proto

    rows, ids = [], []
    for path in sorted(folder.glob("wandb/offline-*/*.wandb"), key=lambda p: p.stat().st_mtime_ns):
        for data in records(path.read_bytes()):
            record = proto.Record.FromString(data)  # type: ignore[attr-defined]
            if record.HasField("run"):
                ids.append(record.run.run_id)
            if record.HasField("history"):
                items = record.history.item
                row = {i.key or "/".join(i.nested_key): json.loads(i.value_json) for i in items}
                rows.append(
                    {k.lstrip("_"): v for k, v in row.items() if not k.startswith("_") or k == "_step"}
                )
    return rows, ids


def test_wandb_gets_every_finite_number_of_a_row_and_a_resumed_run_goes_on(tmp_path, offline, capfd):
    write(WANDB, tmp_path, [ROW])
    # wandb names a folder by the second: a run that goes on within it would write over the first one.
    for first in (tmp_path / "wandb").glob("offline-run-*"):
        first.rename(first.with_name("offline-run-20260101_000000-first"))
    # In a process of its own, as a run that goes on is: one service does not take up a run it has just ended.
    code = (
        "import pathlib, sys; from tests.train.test_writers import ROW, WANDB, write; "
        "write(WANDB, pathlib.Path(sys.argv[1]), [ROW | {'step': 2}], resume_step=1)"
    )
    subprocess.run([sys.executable, "-c", code, str(tmp_path)], cwd=ROOT, check=True)
    rows, ids = logged(tmp_path)
    assert rows == [{"step": s, "loss/kl": 0.5, "rollout/tries": 2} for s in (1, 2)]
    assert len(ids) == 2
    assert set(ids) == {(tmp_path / "wandb.id").read_text()}
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize(("cfg", "module"), [(TENSORBOARD, "tensorboard"), (WANDB, "wandb")])
def test_a_missing_package_gives_the_install_line(cfg, module, tmp_path, monkeypatch):
    for name in [n for n in sys.modules if n.partition(".")[0] == module]:
        monkeypatch.setitem(sys.modules, name, None)
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(DependencyMissing, match=r"pip install 'arl-gym\[log\]'"):
        open_writers(cfg, tmp_path)


def test_importing_the_writers_loads_neither_package():
    code = "import sys, arl_gym.train.writers; print({'wandb', 'tensorboard', 'torch'} & set(sys.modules))"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout == "set()\n"
