import pytest


@pytest.fixture
def losses(monkeypatch):
    """Trials that train nothing: their losses are taken from this list, one after another."""
    left = []
    monkeypatch.setattr("capnets.tune.trials.Job.loss", lambda *given: left.pop(0))
    return left
