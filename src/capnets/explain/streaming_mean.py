"""Means over orders without keeping what was averaged."""

from __future__ import annotations

import numpy as np

from capnets.sets import Array

__all__ = ["Mean"]


class Mean:
    """The mean of arrays that come in blocks, its standard error and their spread, in one pass.

    The arrays of a block may depend on each other (an order and its reverse do); blocks may not. So
    the standard error is that of the weighted mean of block means.
    """

    def __init__(self) -> None:
        self.count = 0
        self.blocks = 0
        # Sums of differences from the first array: small numbers keep their digits.
        self._origin: Array = np.zeros(0)
        self._sum: Array = np.zeros(0)
        self._squares: Array = np.zeros(0)
        self._block_squares: Array = np.zeros(0)
        self._block_sums: Array = np.zeros(0)
        self._weights = 0

    def add(self, block: list[Array]) -> None:
        """Take a block of arrays in."""
        if not self.count:
            self._origin = block[0].copy()
            zero = np.zeros_like(self._origin)
            self._sum, self._squares = zero.copy(), zero.copy()
            self._block_squares, self._block_sums = zero.copy(), zero.copy()
        differences = [array - self._origin for array in block]
        total = np.sum(differences, axis=0)
        self._sum += total
        for difference in differences:
            self._squares += difference**2
        self._block_squares += total**2
        self._block_sums += len(block) * total
        self._weights += len(block) ** 2
        self.count += len(block)
        self.blocks += 1

    @property
    def mean(self) -> Array:
        """The mean of all arrays."""
        return self._origin + self._sum / self.count

    @property
    def spread(self) -> Array:
        """The standard deviation of the arrays."""
        variance = self._squares / self.count - (self._sum / self.count) ** 2
        return np.sqrt(np.maximum(variance, 0) * self.count / max(1, self.count - 1))

    @property
    def error(self) -> Array | None:
        """The standard error of the mean; None when there is one block only."""
        if self.blocks < 2:
            return None
        mean = self._sum / self.count
        squares = self._block_squares - 2 * mean * self._block_sums + mean**2 * self._weights
        error: Array = np.sqrt(np.maximum(squares, 0) * self.blocks / (self.blocks - 1))
        return error / self.count
