"""Callbacks: when hooks are called, and with what."""

import pytest

from capnets.errors import InputError
from capnets.training.callbacks import Callback, EpochEnd
from capnets.training.fit import fit
from small_networks import QUICK, network


class Recorder(Callback):
    def __init__(self):
        self.calls = []

    def on_fit_start(self, settings):
        self.calls.append(("start", settings))

    def on_epoch_end(self, line):
        self.calls.append(("epoch", dict(line)))

    def on_fit_end(self, history):
        self.calls.append(("end", list(history)))


def test_hooks_are_called_in_order(make):
    recorder, lines = Recorder(), []
    history = fit(network(), make(), recipe=QUICK, callbacks=[recorder, EpochEnd(lines.append)])
    assert [name for name, _ in recorder.calls] == ["start", *["epoch"] * 3, "end"]
    assert [line for name, line in recorder.calls if name == "epoch"] == history == lines
    assert recorder.calls[-1][1] == history
    settings = recorder.calls[0][1]
    assert (settings["recipe"], settings["loss"]) == (QUICK.to_dict(), "squared")


def test_hooks_of_an_ensemble_name_the_member(make):
    recorder = Recorder()
    history = fit(network(members=2), make(), recipe=QUICK, callbacks=[recorder])
    lines = [line for name, line in recorder.calls if name == "epoch"]
    assert lines == history
    assert [line["member"] for line in lines] == [0, 0, 0, 1, 1, 1]
    assert [call["member"] for name, call in recorder.calls if name == "start"] == [0, 1]


def test_an_error_in_a_hook_stops_training_after_the_checkpoint(make, tmp_path):
    def stop(line):
        raise KeyboardInterrupt

    path = tmp_path / "checkpoint.safetensors"
    with pytest.raises(KeyboardInterrupt):
        fit(network(), make(), recipe=QUICK, checkpoint=path, callbacks=[EpochEnd(stop)])
    seen = []
    fit(network(), make(), recipe=QUICK, checkpoint=path, callbacks=[EpochEnd(seen.append)])
    assert [line["epoch"] for line in seen] == [2, 3]


@pytest.mark.parametrize("callbacks", [print, [print], EpochEnd(print), [EpochEnd]])
def test_refused(make, callbacks):
    with pytest.raises(InputError, match="callbacks must be a list of Callback objects"):
        fit(network(), make(), callbacks=callbacks)
