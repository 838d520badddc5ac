"""Represent a batch of sets inside a graph."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from capnets.export.graph import Edge, Graph

__all__ = ["Rows", "softmax"]


@dataclass(frozen=True)
class Rows:
    """The instances of a batch of sets, one row each.

    Most layers treat every instance separately, and one matrix product over all rows is fastest.
    Rows are reshaped to sets x size x features where sets matter.

    Parameters
    ----------
    edge
        Rows x features, one set after the other.
    sets, size
        Number of sets, and number of rows per set (vectors of one integer). If both are None, every
        row is a set of one instance, and there is no axis of instances.
    mask
        Sets x size, True at instances; None when all rows are instances.
    """

    edge: Edge
    sets: Edge = ""
    size: Edge = ""
    mask: Edge | None = None

    @classmethod
    def of(cls, g: Graph, x: Edge, mask: Edge | None = None) -> Rows:
        """Flatten sets x size x features into rows; features may have any shape."""
        shape = g.add("Concat", g.integers(-1), g.add("Shape", x, start=2), axis=0)
        sets, size = g.add("Shape", x, start=0, end=1), g.add("Shape", x, start=1, end=2)
        return cls(g.add("Reshape", x, shape), sets, size, mask)

    def become(self, edge: Edge) -> Rows:
        """Return the same sets with other features."""
        return replace(self, edge=edge)

    def padded(self, g: Graph) -> Edge:
        """Return the features as sets x size x features."""
        shape = g.add("Concat", self.sets, self.size, g.add("Shape", self.edge, start=1), axis=0)
        return g.add("Reshape", self.edge, shape)

    def by_instance(self, g: Graph) -> Edge:
        """Return the features as size x sets x features, as cells read them."""
        if not self.size:
            return g.add("Unsqueeze", self.edge, g.integers(0))
        return g.add("Transpose", self.padded(g), perm=[1, 0, 2])

    def by_set(self, g: Graph, rows: Edge) -> Edge:
        """Reshape rows grouped by position in the set to sets x size x features."""
        if not self.size:
            return rows
        shape = g.add("Concat", self.size, self.sets, g.add("Shape", rows, start=1), axis=0)
        return g.add("Transpose", g.add("Reshape", rows, shape), perm=[1, 0, 2])

    def blank(self, g: Graph) -> Rows:
        """Set the padding to zero."""
        if self.mask is None:
            return self
        real = g.add("Reshape", self.mask, g.integers(-1, 1))
        return self.become(g.add("Where", real, self.edge, g.constant(0.0)))

    def count(self, g: Graph) -> Edge:
        """Return the number of rows per set, as one integer."""
        return g.add("Squeeze", self.size, g.integers(0))

    def sizes(self, g: Graph) -> Edge:
        """Return the number of instances per set, sets x 1."""
        if self.mask is None:
            return g.add("Expand", self.size, g.add("Concat", self.sets, g.integers(1), axis=0))
        return g.add("ReduceSum", g.cast(self.mask, np.int64), g.integers(1), keepdims=1)


def softmax(g: Graph, scores: Edge, mask: Edge | None) -> Edge:
    """Apply a softmax over the last axis, with weight 0 where the mask is False."""
    if mask is not None:
        scores = g.add("Where", mask, scores, g.constant(-np.inf))
    return g.add("Softmax", scores, axis=-1)
