import pytest

from capnets.models import ModelSpec
from capnets.runs import Run, RunConfig
from capnets.training.recipe import Recipe
from services import Service

NETWORKS = {"c-gru": 1, "gru": 1, "c-deepset": 2}


def make_run(folder, name, outputs):
    spec = ModelSpec(name, in_features=3, hidden=8, outputs=outputs)
    data = {"sizes": [2, 4]} if name == "c-deepset" else {}
    run = Run.create(folder / name, RunConfig(spec, Recipe(), 0, data))
    run.write_history([])
    run.write_weights(spec.build(seed=1))
    run.finish({})
    return run


@pytest.fixture(scope="session")
def runs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs")
    return {name: make_run(folder, name, outputs) for name, outputs in NETWORKS.items()}


@pytest.fixture(scope="session")
def service(runs):
    folders = [run.folder for run in runs.values()]
    with Service(*folders, "--streams", 3, "--seconds", 300) as found:
        yield found
        assert found.stop() == 0
