"""Digest of sets: instances, grouping, labels, weights and covariates."""

from __future__ import annotations

import hashlib

import numpy as np

from capnets.sets import Sets
from capnets.sets.mapped import blocks

__all__ = ["fingerprint"]


def fingerprint(sets: Sets) -> str:
    """Return the SHA-256 digest of instances, sets, labels, weights and covariates."""
    digest = hashlib.sha256(repr(sets.instances.shape).encode())
    for _, part in blocks(sets.instances):
        digest.update(np.ascontiguousarray(part).view(np.uint8).data)
    for values in (sets.index, sets.offsets, sets.y, sets.weights):
        digest.update(b"none" if values is None else np.ascontiguousarray(values).data)
    if sets.covariates is not None:  # sets without them keep the digest of earlier versions
        digest.update(b"covariates" + repr(sets.covariates.shape).encode())
        digest.update(np.ascontiguousarray(sets.covariates).data)
    return digest.hexdigest()
