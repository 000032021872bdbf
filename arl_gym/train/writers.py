"""The rows of `metrics.jsonl`, also for TensorBoard and Weights & Biases.

Needs the extra `log` for what is switched on, and torch for nothing.

    for writer in open_writers(cfg, run_dir):
        writer.write(step, row)
        writer.close()
"""

import time
from collections.abc import Mapping
from pathlib import Path
from typing import Protocol

from arl_gym.errors import DependencyMissing
from arl_gym.train.config import RunConfig, to_mapping

Numbers = Mapping[str, float | None]


class MetricsSink(Protocol):
    """What takes the metrics of steps."""

    def write(self, step: int, row: Numbers) -> None:
        """Take the metrics of one step; None stands for a number that was not finite, and is left out."""
        ...

    def close(self) -> None:
        """Write what is still in memory; twice is fine."""
        ...


def open_writers(cfg: RunConfig, folder: Path, resume_step: int | None = None) -> list[MetricsSink]:
    """Open what `cfg.log` switches on.

    Args:
        cfg: The run.
        folder: Its folder.
        resume_step: The step a resumed run goes on from; what was written of later steps is replaced.

    Raises:
        DependencyMissing: If a package is not installed.
    """
    writers: list[MetricsSink] = []
    if cfg.log.tensorboard:
        writers.append(TensorBoardWriter(folder / "tensorboard", resume_step=resume_step))
    if cfg.log.wandb_project:
        writers.append(WandbWriter(cfg, folder, resume_step=resume_step))
    return writers


class TensorBoardWriter:
    """Writes scalars into an event file of its own.

    Args:
        folder: For `tensorboard --logdir`; made if need be.
        resume_step: TensorBoard then hides what earlier files have of later steps.

    Raises:
        DependencyMissing: If tensorboard is not installed.
    """

    def __init__(self, folder: Path, *, resume_step: int | None = None):
        try:
            from tensorboard.compat.proto.event_pb2 import Event, SessionLog
            from tensorboard.compat.proto.summary_pb2 import Summary
            from tensorboard.summary.writer.event_file_writer import EventFileWriter
        except ImportError as err:
            raise DependencyMissing("log.tensorboard", "log") from err
        self._event, self._summary = Event, Summary
        self._file = EventFileWriter(str(folder))
        if resume_step is not None:
            start = SessionLog(status=SessionLog.START)
            self._file.add_event(Event(wall_time=time.time(), step=resume_step + 1, session_log=start))

    def write(self, step: int, row: Numbers) -> None:
        """Write one event with every finite number of the row but the step."""
        values = [
            self._summary.Value(tag=key, simple_value=value)
            for key, value in row.items()
            if value is not None and key != "step"
        ]
        event = self._event(wall_time=time.time(), step=step, summary=self._summary(value=values))
        self._file.add_event(event)

    def close(self) -> None:
        """Write what is still in memory and close the file; twice is fine."""
        self._file.close()


class WandbWriter:
    """Logs to a run at Weights & Biases, whose files lie in `wandb/` of the run folder.

    `WANDB_MODE=offline` keeps it there. Its id is kept in `wandb.id`, so that a resumed run goes on in it. Of
    steps that were logged before the interruption Weights & Biases keeps the first values.

    Args:
        cfg: Sets the project; its settings are logged too.
        folder: Folder of the run; its name is the run's.
        resume_step: Not None: go on with the run of `wandb.id`.

    Raises:
        DependencyMissing: If wandb is not installed.
    """

    def __init__(self, cfg: RunConfig, folder: Path, *, resume_step: int | None = None):
        try:
            import wandb
        except ImportError as err:
            raise DependencyMissing("log.wandb_project", "log") from err
        known = folder / "wandb.id"
        earlier = known.read_text(encoding="utf-8") if resume_step is not None and known.exists() else None
        self._run = wandb.init(
            project=cfg.log.wandb_project,
            name=folder.name,
            dir=folder,
            config=to_mapping(cfg),
            id=earlier,
            resume="allow" if earlier else None,
            settings=wandb.Settings(silent=True, console="off"),
        )
        known.write_text(self._run.id, encoding="utf-8")

    def write(self, step: int, row: Numbers) -> None:
        """Log every finite number of the row but the step."""
        self._run.log({k: v for k, v in row.items() if v is not None and k != "step"}, step=step)

    def close(self) -> None:
        """Finish the run; twice is fine."""
        self._run.finish()
