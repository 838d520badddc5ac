"""Compute means, spreads and standard errors over orders in one pass."""

from __future__ import annotations

import numpy as np

from capnets.sets import Array

__all__ = ["StreamingMean"]


class StreamingMean:
    """Mean, standard deviation and standard error of arrays that arrive in blocks.

    The arrays of a block may be dependent (an order and its reverse are); blocks must be
    independent. The standard error is therefore that of the weighted mean of block means.
    """

    def __init__(self) -> None:
        self.count = 0
        self.blocks = 0
        # Sums of differences from the first array, to limit cancellation.
        self._origin: Array = np.zeros(0)
        self._sum: Array = np.zeros(0)
        self._squares: Array = np.zeros(0)
        self._block_squares: Array = np.zeros(0)
        self._block_sums: Array = np.zeros(0)
        self._weights = 0

    def add(self, block: list[Array]) -> None:
        """Add a block of arrays."""
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
        """Return the mean of all arrays."""
        return self._origin + self._sum / self.count

    @property
    def spread(self) -> Array:
        """Return the standard deviation of the arrays."""
        variance = self._squares / self.count - (self._sum / self.count) ** 2
        return np.sqrt(np.maximum(variance, 0) * self.count / max(1, self.count - 1))

    @property
    def error(self) -> Array | None:
        """Return the standard error of the mean, or None for a single block."""
        if self.blocks < 2:
            return None
        mean = self._sum / self.count
        squares = self._block_squares - 2 * mean * self._block_sums + mean**2 * self._weights
        error: Array = np.sqrt(np.maximum(squares, 0) * self.blocks / (self.blocks - 1))
        return error / self.count
