"""Store a trained network, its configuration and its results as a run folder.

    config.json          network, recipe, seed, data, versions; written first
    weights.safetensors  the best weights; written when training ended
    history.jsonl        one line per epoch
    manifest.json        SHA-256 digests of the other files
    metrics.json         written last: a run that has it is finished
    checkpoint.safetensors  only while training has not ended

Everything is written atomically, checked against its digest when it is read, and never executed.
"""

from capnets.runs.config import RunConfig, versions
from capnets.runs.run import Run, load

__all__ = ["Run", "RunConfig", "load", "versions"]
