"""Runs as MLflow models: a pyfunc flavour without pickles.

The model folder holds the run and names this module, which loads it again:

>>> mlflow.pyfunc.load_model("model").predict(frame)  # doctest: +SKIP
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from capnets.batch.frames import load, predict
from capnets.errors import check_extra
from capnets.runs import Run

if TYPE_CHECKING:
    from capnets.estimators.base import SetEstimator

__all__ = ["save_model"]


def save_model(run: str | Path, folder: str | Path) -> None:
    """Write a run as an MLflow model, to be logged, registered and served by MLflow.

    Parameters
    ----------
    run
        A run that was trained on a table with a set column.
    folder
        Folder of the model; it must not exist.
    """
    check_extra("mlflow", "loggers", purpose="writing MLflow models")
    import mlflow.pyfunc

    from capnets import __version__

    load(run)  # raise before a folder exists if the run cannot predict tables
    mlflow.pyfunc.save_model(
        path=str(folder),
        loader_module=__name__,
        data_path=str(Run(run).folder),
        pip_requirements=[f"capnets=={__version__}"],
    )


class _Model:
    """Predict frames of whole sets, as MLflow calls it."""

    def __init__(self, estimator: SetEstimator) -> None:
        self.estimator = estimator

    def predict(self, model_input: Any, params: Any = None) -> Any:
        """Return predictions and added values for every row."""
        return predict(model_input, self.estimator)


def _load_pyfunc(path: str) -> _Model:
    """Load the run; MLflow calls this by name."""
    return _Model(load(path))
