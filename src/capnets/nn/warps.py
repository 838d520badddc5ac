"""Random affine warps of pictures, for data augmentation."""

from __future__ import annotations

from math import pi

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn import functional as F

__all__ = ["warp"]

Pictures = Float[Tensor, "pictures channels height width"]


def warp(x: Pictures, generator: torch.Generator | None = None, *, fill: str = "zeros") -> Pictures:
    """Rotate, stretch, shear and shift every picture by a small random amount.

    Parameters
    ----------
    x
        The pictures.
    generator
        Draws the warps; None is torch's global generator.
    fill
        Padding at the edges: `zeros`, or `border` for the nearest pixel.

    Examples
    --------
    >>> x = torch.zeros(1, 1, 28, 28)
    >>> x[0, 0, 14, 14] = 1
    >>> row, column = divmod(int(warp(x, torch.Generator().manual_seed(0)).argmax()), 28)
    >>> abs(row - 14) <= 3 and abs(column - 14) <= 3
    True
    """

    def spread(width: float) -> Tensor:
        values = torch.rand(len(x), generator=generator, device=x.device, dtype=x.dtype)
        return width * (2 * values - 1)

    turn, slant = spread(pi / 15), spread(0.15)
    wide, high = 1 + spread(0.1), 1 + spread(0.1)
    right, down = spread(0.1), spread(0.1)
    rows = [
        torch.stack([wide * turn.cos(), slant - high * turn.sin(), right], 1),
        torch.stack([wide * turn.sin(), high * turn.cos(), down], 1),
    ]
    grid = F.affine_grid(torch.stack(rows, 1), list(x.shape), align_corners=False)
    return F.grid_sample(x, grid, padding_mode=fill, align_corners=False)
