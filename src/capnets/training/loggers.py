"""Callbacks that log trainings to TensorBoard, MLflow or Weights & Biases (extra `loggers`).

Each logs the settings as parameters, and the numbers of every epoch: losses, rate, seconds.
Epochs of an ensemble are numbered through: member 1 follows after the last epoch of member 0.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from capnets.errors import InputError, check_extra, unknown
from capnets.training.callbacks import Callback

__all__ = ["LOGGERS", "MLflow", "TensorBoard", "WandB", "logger_of"]


class _Numbers(Callback):
    """Keep count of the epochs and hand numbers to `_log`."""

    def __init__(self) -> None:
        self.step = 0

    def on_epoch_end(self, line: Mapping[str, Any]) -> None:
        """Log the numbers of an epoch."""
        names = ("train", "valid", "rate", "seconds")
        found = {n: float(line[n]) for n in names if line.get(n) is not None}
        self._log(found, self.step)
        self.step += 1

    def _log(self, numbers: dict[str, float], step: int) -> None:
        raise NotImplementedError


class TensorBoard(_Numbers):
    """Write event files for TensorBoard, through the logger of lightning-fabric.

    Parameters
    ----------
    folder
        Folder of the event files: `tensorboard --logdir FOLDER` shows them.
    """

    def __init__(self, folder: str | Path) -> None:
        super().__init__()
        check_extra("tensorboard", "loggers", purpose="logging to TensorBoard")
        from lightning_fabric.loggers.tensorboard import TensorBoardLogger

        path = Path(folder)
        self.logger = TensorBoardLogger(path.parent, name=path.name, version="")

    def on_fit_start(self, settings: Mapping[str, Any]) -> None:
        """Log the settings as text."""
        lines = "\n".join(f"    {name}: {value}" for name, value in flat(settings).items())
        self.logger.experiment.add_text("settings", lines)

    def _log(self, numbers: dict[str, float], step: int) -> None:
        self.logger.log_metrics(numbers, step)

    def on_fit_end(self, history: Sequence[Mapping[str, Any]]) -> None:
        """Write what is not written yet."""
        self.logger.finalize("success")


class MLflow(_Numbers):
    """Log a training as a run of MLflow.

    Parameters
    ----------
    address
        Tracking server or folder (`http://…`, `sqlite:///runs.db`); by default that of the
        environment.
    experiment
        Name of the experiment; created if there is none.
    """

    def __init__(self, address: str | None = None, *, experiment: str = "capnets") -> None:
        super().__init__()
        check_extra("mlflow", "loggers", purpose="logging to MLflow")
        from mlflow import MlflowClient

        self.client = MlflowClient(address)
        known = self.client.get_experiment_by_name(experiment)
        number = known.experiment_id if known else self.client.create_experiment(experiment)
        self.run_id: str = self.client.create_run(number).info.run_id

    def on_fit_start(self, settings: Mapping[str, Any]) -> None:
        """Log the settings as parameters; those of a further member are the same."""
        if not self.step:
            for name, value in flat(settings).items():
                self.client.log_param(self.run_id, name, str(value)[:500])

    def _log(self, numbers: dict[str, float], step: int) -> None:
        now = int(1000 * time.time())
        for name, value in numbers.items():
            self.client.log_metric(self.run_id, name, value, timestamp=now, step=step)

    def on_fit_end(self, history: Sequence[Mapping[str, Any]]) -> None:
        """Mark the run as finished."""
        self.client.set_terminated(self.run_id)


class WandB(_Numbers):
    """Log a training to Weights & Biases.

    Parameters
    ----------
    project
        Name of the project.
    mode
        `offline` (default) writes to the folder `wandb`, to be sent by `wandb sync`; `online` sends
        to the server.
    folder
        Folder that `wandb` is made in.
    """

    def __init__(
        self, project: str = "capnets", *, mode: str = "offline", folder: str | Path = "."
    ) -> None:
        super().__init__()
        check_extra("wandb", "loggers", purpose="logging to Weights & Biases")
        if mode not in ("offline", "online"):
            raise unknown("mode", mode, ["offline", "online"])
        self.how: dict[str, Any] = {"project": project, "mode": mode, "dir": str(folder)}
        self.run: Any = None

    def on_fit_start(self, settings: Mapping[str, Any]) -> None:
        """Begin a run with the settings as its configuration."""
        import wandb

        if self.run is None:
            quiet = wandb.Settings(console="off", silent=True)
            self.run = wandb.init(config=flat(settings), settings=quiet, **self.how)

    def _log(self, numbers: dict[str, float], step: int) -> None:
        self.run.log(numbers, step=step)

    def on_fit_end(self, history: Sequence[Mapping[str, Any]]) -> None:
        """Finish the run."""
        self.run.finish()
        self.run = None


#: Loggers by name, as `--log NAME` or `--log NAME=PLACE` names them.
LOGGERS: dict[str, Callable[[str], Callback]] = {
    "tensorboard": lambda place: TensorBoard(place or "runs/tensorboard"),
    "mlflow": lambda place: MLflow(place or None),
    "wandb": lambda place: WandB(place or "capnets"),
}


def logger_of(text: str) -> Callback:
    """Return the logger that `tensorboard=FOLDER`, `mlflow=ADDRESS` or `wandb=PROJECT` names."""
    name, _, place = text.partition("=")
    if name not in LOGGERS:
        raise unknown("logger", name, LOGGERS)
    try:
        return LOGGERS[name](place)
    except InputError:
        raise
    except Exception as error:  # each library has errors of its own
        reason = str(error).strip().partition("\n")[0]
        raise InputError(f"--log {text}: {name} cannot be used ({reason})") from error


def flat(settings: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Return nested settings with dotted names.

    >>> flat({"seed": 0, "recipe": {"epochs": 3}})
    {'seed': 0, 'recipe.epochs': 3}
    """
    found: dict[str, Any] = {}
    for name, value in settings.items():
        if isinstance(value, Mapping):
            found |= flat(value, f"{prefix}{name}.")
        else:
            found[f"{prefix}{name}"] = value
    return found
