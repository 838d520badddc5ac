"""Digest of sets: instances, grouping, labels and weights."""

from __future__ import annotations

import hashlib

import numpy as np

from capnets.sets import Sets

__all__ = ["fingerprint"]

#: Instances that are hashed at once; a memory-mapped table is never read as a whole.
ROWS = 65536


def fingerprint(sets: Sets) -> str:
    """Return the SHA-256 digest of instances, sets, labels and weights."""
    digest = hashlib.sha256(repr(sets.instances.shape).encode())
    for start in range(0, len(sets.instances), ROWS):
        digest.update(np.ascontiguousarray(sets.instances[start : start + ROWS]).data)
    for values in (sets.index, sets.offsets, sets.y, sets.weights):
        digest.update(b"none" if values is None else np.ascontiguousarray(values).data)
    return digest.hexdigest()
