"""Peer methods on the same folds, each configured as a practitioner would.

Nothing here is chosen on test folds. Forest and boosting see the mean, maximum, minimum and
standard deviation of the features and the size of a set; boosting chooses its settings by
cross-validation inside the training fold. The torchmil networks have the sizes of their papers,
standardized features, dropout, weight decay, and are averaged over three seeds, as ours are.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

__all__ = ["PEERS", "logit", "pooled"]

Scores = np.ndarray
MEMBERS, EPOCHS, BATCH = 3, 60, 16


def logit(p: Any) -> np.ndarray:
    """Return the logarithm of the odds; probabilities of 0 and 1 are moved by 1e-4."""
    p = np.clip(np.asarray(p, dtype=float), 1e-4, 1 - 1e-4)
    return np.log(p / (1 - p))


def pooled(sets: Any) -> np.ndarray:
    """Return statistics of the features of every set, and its size."""
    rows = []
    for k in range(len(sets)):
        x = sets[k]
        rows.append(np.concatenate([x.mean(0), x.max(0), x.min(0), x.std(0), [len(x)]]))
    return np.stack(rows)


def _trees(make: Callable[[bool], Any], sets: Any, train: Any, test: Any, classes: bool) -> Scores:
    x, y = pooled(sets), np.asarray(sets.y)
    x = x[:, x[train].std(0) > 0]
    columns = y.reshape(len(y), -1).T
    found = []
    for column in columns:
        if classes and len(np.unique(column[train])) == 1:
            found.append(np.full(len(test), logit(column[train][0])))
            continue
        model = make(classes)
        model.fit(x[train], column[train].astype(int) if classes else column[train])
        found.append(
            logit(model.predict_proba(x[test])[:, 1]) if classes else model.predict(x[test])
        )
    return found[0] if y.ndim == 1 else np.stack(found, axis=1)


def forest(sets: Any, train: Any, test: Any, *, classes: bool, seed: int) -> Scores:
    """Train a random forest on pooled statistics."""
    from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor

    def make(classes: bool) -> Any:
        if classes:
            return RandomForestClassifier(500, min_samples_leaf=2, random_state=seed)
        return RandomForestRegressor(500, max_features=1 / 3, random_state=seed)

    return _trees(make, sets, train, test, classes)


def boosting(sets: Any, train: Any, test: Any, *, classes: bool, seed: int) -> Scores:
    """Train gradient boosting on pooled statistics; settings by inner cross-validation."""
    from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
    from sklearn.model_selection import GridSearchCV

    grid = {"min_samples_leaf": [3, 10], "max_iter": [50, 150]}

    def make(classes: bool) -> Any:
        kind = HistGradientBoostingClassifier if classes else HistGradientBoostingRegressor
        model = kind(learning_rate=0.05, early_stopping=False, random_state=seed)
        return GridSearchCV(model, grid, cv=3, scoring="neg_log_loss" if classes else "r2")

    return _trees(make, sets, train, test, classes)


def _torchmil(kind: str, sets: Any, train: Any, test: Any, classes: bool, seed: int) -> Scores:
    import torch

    x = np.asarray(sets.instances, dtype=np.float32)
    rows = np.concatenate([sets.rows(k) for k in train])
    scale = x[rows].std(0)
    x = (x - x[rows].mean(0)) / np.where(scale > 1e-6, scale, 1)
    y = np.asarray(sets.y, dtype=np.float32)
    columns = y.reshape(len(y), -1).T
    found = []
    for column in columns:
        mean, deviation = (0.0, 1.0) if classes else (column[train].mean(), column[train].std())
        target = torch.from_numpy((column - mean) / deviation)
        members = [
            _fit(kind, torch.from_numpy(x), sets, target, train, test, classes, seed + 100 * m)
            for m in range(MEMBERS)
        ]
        found.append(mean + deviation * np.mean(members, axis=0))
    return found[0] if y.ndim == 1 else np.stack(found, axis=1)


def _fit(
    kind: str, x: Any, sets: Any, y: Any, train: Any, test: Any, classes: bool, seed: int
) -> np.ndarray:
    import torch
    from torch import nn
    from torchmil.models import ABMIL, TransformerABMIL

    torch.manual_seed(seed)
    width = 64
    features = nn.Sequential(nn.Linear(x.shape[1], width), nn.ReLU(), nn.Dropout(0.25))
    loss = nn.BCEWithLogitsLoss() if classes else nn.MSELoss()
    if kind == "abmil":
        model: Any = ABMIL((x.shape[1],), att_dim=64, gated=True, feat_ext=features)
    else:
        model = TransformerABMIL(
            (x.shape[1],), pool_att_dim=64, pool_gated=True, feat_ext=features,
            transf_att_dim=64, transf_n_heads=4, transf_dropout=0.1,
        )  # fmt: skip
    steps = EPOCHS * -(-len(train) // BATCH)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, weight_decay=1e-2)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 2e-3, total_steps=steps)
    draw = np.random.default_rng(seed)
    for _ in range(EPOCHS):
        order = draw.permutation(train)
        for start in range(0, len(order), BATCH):
            chosen = order[start : start + BATCH]
            model.train()
            optimizer.zero_grad()
            loss(model(*_padded(x, sets, chosen)), y[chosen]).backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            schedule.step()
    model.eval()
    with torch.no_grad():
        parts = np.array_split(test, max(1, len(test) // BATCH))
        return np.concatenate([model(*_padded(x, sets, part)).numpy() for part in parts])


def _padded(x: Any, sets: Any, chosen: Any) -> tuple[Any, Any]:
    import torch

    own = [x[torch.as_tensor(sets.rows(int(k)))] for k in chosen]
    batch = torch.nn.utils.rnn.pad_sequence(own, batch_first=True)
    sizes = torch.tensor([len(one) for one in own])
    return batch, torch.arange(batch.shape[1]) < sizes[:, None]


def abmil(sets: Any, train: Any, test: Any, *, classes: bool, seed: int) -> Scores:
    """Train gated attention MIL (Ilse et al. 2018)."""
    return _torchmil("abmil", sets, train, test, classes, seed)


def transformer(sets: Any, train: Any, test: Any, *, classes: bool, seed: int) -> Scores:
    """Train a transformer encoder with attention pooling."""
    return _torchmil("transformer", sets, train, test, classes, seed)


PEERS: dict[str, Callable[..., Scores]] = {
    "forest": forest,
    "boosting": boosting,
    "abmil": abmil,
    "transformer-mil": transformer,
}
