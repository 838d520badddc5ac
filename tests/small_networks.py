"""A network that trains within a moment, and a digest of its weights."""

from capnets.models import build
from capnets.models.base import SetModel
from capnets.training.fit import fit
from capnets.training.recipe import Recipe

QUICK = Recipe(epochs=3, batch_size=50)
LONG = Recipe(epochs=25, batch_size=20, learning_rate=0.02)


def network(**settings) -> SetModel:
    return build("c-gru", **{"in_features": 4, "hidden": 8, "layers": 1, "seed": 0, **settings})


def bits(model: SetModel) -> bytes:
    return b"".join(v.numpy().tobytes() for v in model.state_dict().values())


def trained(make, *, seed=0, recipe=QUICK, **settings) -> SetModel:
    model = network(**settings)
    fit(model, make(), make(50, seed=1), recipe=recipe, seed=seed)
    return model
