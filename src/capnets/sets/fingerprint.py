"""Digest of sets: instances, grouping, labels and weights."""

from __future__ import annotations

import hashlib

import numpy as np

from capnets.sets import Sets
from capnets.sets.mapped import blocks

__all__ = ["fingerprint"]


def fingerprint(sets: Sets) -> str:
    """Return the SHA-256 digest of instances, sets, labels and weights."""
    digest = hashlib.sha256(repr(sets.instances.shape).encode())
    for _, part in blocks(sets.instances):
        digest.update(np.ascontiguousarray(part).view(np.uint8).data)
    for values in (sets.index, sets.offsets, sets.y, sets.weights):
        digest.update(b"none" if values is None else np.ascontiguousarray(values).data)
    return digest.hexdigest()
