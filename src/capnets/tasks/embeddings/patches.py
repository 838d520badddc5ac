"""Embed images by small patches, without labels and nearly as well as a trained network.

Coates, Ng & Lee, "An Analysis of Single-Layer Networks in Unsupervised Feature Learning" (2011):
contrast-normalised, whitened patches, k-means centres, the triangle activation

    f_k = max(0, mean_j d_j - d_k),    d_k = |patch - centre k|,

averaged over the regions of a grid. These are reduced to 64 combinations. PCA would keep those of
largest variance, but much of the variance is drawing style. Instead we keep those that vary most
*relative to how much they change when an image is shifted, rotated and stretched slightly*: with T
the covariance of the features and S that of their changes, the first solutions v of
T v = λ (S + ρI) v.
"""

from __future__ import annotations

from math import isqrt
from typing import ClassVar, Self, final

import torch
import torch.nn.functional as F
from torch import Tensor

from capnets.nn.warps import warp
from capnets.progress import TitledProgress
from capnets.tasks.embeddings.base import FEATURES, Embedding, Features, Pixels, scaled
from capnets.tasks.images import Images

__all__ = ["Patches", "steady_directions"]

PATCH = 6  # pixels per side
CENTRES = 200
SAMPLED_PATCHES = 100_000
CONTRAST = 0.01  # added to the variance of a patch: faint patches stay faint
WHITENING = 0.1
GRID = 3  # regions per side
WARPED_IMAGES = 15_000
RIDGE = 0.01
SEED = 0

CHUNK = 16  # images at a time; the intermediate arrays then fit into the processor cache


@final
class Patches(Embedding):
    """Triangle features of whitened patches, reduced to directions stable under small warps.

    No classes are used.
    """

    parameters: ClassVar = {
        "version": 1,
        "features": FEATURES,
        "patch": PATCH,
        "centres": CENTRES,
        "sampled_patches": SAMPLED_PATCHES,
        "contrast": CONTRAST,
        "whitening": WHITENING,
        "grid": GRID,
        "warped_images": WARPED_IMAGES,
        "ridge": RIDGE,
        "seed": SEED,
    }

    def fit(self, images: Images, *, progress: TitledProgress | None = None) -> Self:
        """Learn whitening and centres from random patches, directions from warped images."""
        generator = torch.Generator().manual_seed(SEED)
        chosen = torch.randperm(images.train, generator=generator)[:WARPED_IMAGES]
        x = torch.from_numpy(scaled(images.pixels[chosen.numpy()], images.white))
        self._fit_centres(_sampled(x, generator))
        warped = warp(x[:, None], generator)[:, 0]
        mean = total = change = torch.zeros(())
        for start in range(0, len(x), CHUNK):
            plain = self._regions(x[start : start + CHUNK])
            moved = self._regions(warped[start : start + CHUNK]) - plain
            mean = mean + plain.sum(0) / len(x)
            total = total + plain.T @ plain / len(x)
            change = change + moved.T @ moved / len(x)
            if progress:
                progress(f"patches of {images.name}", min(start + CHUNK, len(x)), len(x))
        total = total - mean.outer(mean)
        directions = steady_directions(total.double(), change.double(), count=FEATURES, ridge=RIDGE)
        self.directions_ = directions.float()
        return self

    def transform(self, pixels: Pixels, *, white: int) -> Features:
        """Return the region features of some images, projected on the directions."""
        x = torch.from_numpy(scaled(pixels, white))
        parts = [
            self._regions(x[start : start + CHUNK]) @ self.directions_
            for start in range(0, len(x), CHUNK)
        ]
        return torch.cat(parts).numpy()

    def _fit_centres(self, patches: Tensor) -> None:
        from sklearn.cluster import MiniBatchKMeans

        self.mean_ = patches.mean(0)
        values, vectors = torch.linalg.eigh(torch.cov(patches.T).double())
        scale = (values + WHITENING).rsqrt()
        self.whitening_ = (vectors * scale @ vectors.T).float()
        means = MiniBatchKMeans(CENTRES, batch_size=4096, n_init=1, max_iter=30, random_state=SEED)
        means.fit(((patches - self.mean_) @ self.whitening_).numpy())
        self.centres_ = torch.from_numpy(means.cluster_centers_).float()

    def _regions(self, x: Tensor) -> Tensor:
        """Return the square roots of triangle activations averaged by region: images x features."""
        patches = _windows(x)
        images, places, _ = patches.shape
        whitened = (_normalised(patches.flatten(0, 1)) - self.mean_) @ self.whitening_
        distances = torch.addmm(self.centres_.square().sum(1), whitened, self.centres_.T, alpha=-2)
        distances += whitened.square().sum(1, keepdim=True)
        distances.clamp_(min=0).sqrt_()
        activations = torch.relu_(distances.mean(1, keepdim=True) - distances)
        regions = torch.matmul(_pooling(isqrt(places)), activations.view(images, places, CENTRES))
        return regions.flatten(1).sqrt()


def steady_directions(total: Tensor, change: Tensor, *, count: int, ridge: float) -> Tensor:
    """Return the directions (columns) with the largest ratio of total variance to change.

    They are scaled so that the variance of the changes, plus the ridge, is 1 along each.

    Parameters
    ----------
    total, change
        Covariances of the features and of their changes under warps.
    count
        Number of directions.
    ridge
        Added to `change`, in units of the mean variance. Excludes directions that change little
        because they hardly vary.
    """
    level = ridge * total.diagonal().mean()
    factor = torch.linalg.cholesky(change + level * torch.eye(len(change), dtype=change.dtype))
    # With u = L'v this is an ordinary eigenvalue problem: (L⁻¹ T L⁻ᵀ) u = λ u.
    half = torch.linalg.solve_triangular(factor, total, upper=False)
    inner = torch.linalg.solve_triangular(factor, half.T, upper=False)
    _, vectors = torch.linalg.eigh((inner + inner.T) / 2)
    first = vectors[:, -count:].flip(1)
    directions: Tensor = torch.linalg.solve_triangular(factor.T, first, upper=True)
    return directions


def _windows(x: Tensor) -> Tensor:
    """Return all patches of some images: images x patches x pixels."""
    return x.unfold(1, PATCH, 1).unfold(2, PATCH, 1).flatten(1, 2).flatten(2)


def _normalised(patches: Tensor) -> Tensor:
    patches = patches - patches.mean(1, keepdim=True)
    return patches / (patches.square().mean(1, keepdim=True) + CONTRAST).sqrt()


def _sampled(x: Tensor, generator: torch.Generator) -> Tensor:
    """Sample random patches that are not blank, and normalise them."""
    each = -(-3 * SAMPLED_PATCHES // len(x))  # more than needed: most may be blank
    picked = []
    for start in range(0, len(x), 1000):
        patches = _windows(x[start : start + 1000])
        images, places, _ = patches.shape
        place = torch.randint(places, (images, each), generator=generator)
        picked.append(patches[torch.arange(images)[:, None], place].flatten(0, 1))
    patches = torch.cat(picked)
    patches = patches[patches.var(1) > 1e-6]
    chosen = torch.randperm(len(patches), generator=generator)[:SAMPLED_PATCHES]
    return _normalised(patches[chosen])


def _pooling(side: int) -> Tensor:
    """Return the matrix that averages patch activations over the regions of the grid."""
    places = torch.eye(side * side).view(-1, 1, side, side)
    return F.adaptive_avg_pool2d(places, GRID).flatten(1).T.contiguous()
