"""Sentiment: a document is a set of sentences and its rating is the label.

The review data of the paper is not available; these data sets are different, so results are not
comparable with the published ones. Exact added values are unknown, and test documents are never
seen in training.
"""

from __future__ import annotations

import gzip
import io
import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from capnets.errors import InputError, unknown
from capnets.progress import TitledProgress
from capnets.records import Record
from capnets.sets import Sets, offsets_of
from capnets.tasks.files import read
from capnets.tasks.sentences import embed_sentences, split_sentences

__all__ = [
    "REVIEWS",
    "ReviewSets",
    "ReviewSpec",
    "is_sentiment",
    "make_reviews",
    "parse_reviews",
    "pooled_ridge",
]

Documents = list[list[str]]
SHARES = (0.8, 0.1, 0.1)


def _womens_clothing(progress: TitledProgress | None) -> tuple[Documents, NDArray[np.float32]]:
    content = gzip.decompress(read("reviews/womens_clothing.jsonl.gz", progress=progress))
    reviews = [json.loads(line) for line in content.splitlines()]
    documents = [split_sentences(review["text"], abbreviations=False) for review in reviews]
    ratings = np.array([review["rating"] for review in reviews], dtype=np.float32)
    some = [number for number, sentences in enumerate(documents) if sentences]
    return [documents[number] for number in some], ratings[some]


def _ted_comments(progress: TitledProgress | None) -> tuple[Documents, NDArray[np.float32]]:
    content = io.BytesIO(read("reviews/ted_comments.npz", progress=progress))
    with np.load(content, allow_pickle=False) as file:
        documents = [json.loads(str(text)) for text in file["text"]]
        ratings = file["Y"][:, 0].astype(np.float32)
    return documents, ratings


REVIEWS: dict[str, Callable[[TitledProgress | None], tuple[Documents, NDArray[np.float32]]]] = {
    "womens-clothing": _womens_clothing,  # ratings 1 to 5
    "ted-comments": _ted_comments,  # sentiment 0 to 1
}


@dataclass(frozen=True)
class ReviewSpec(Record):
    """A review task. The same spec always gives the same sets.

    Parameters
    ----------
    source
        One of `REVIEWS`.
    embedding
        The sentence embedding; only `minilm`.
    seed
        Seed of the split into training, validation and test documents.
    """

    source: str
    embedding: str = "minilm"
    seed: int = 0
    function: str = "sentiment"

    def __post_init__(self) -> None:
        if self.seed < 0:
            raise InputError(f"seed must not be negative: {self.seed}")
        for kind, name, choices in (
            ("source of documents", self.source, REVIEWS),
            ("embedding of sentences", self.embedding, ("minilm",)),
            ("task on documents", self.function, ("sentiment",)),
        ):
            if name not in choices:
                raise unknown(kind, name, choices)

    @property
    def name(self) -> str:
        """The task and its source."""
        return f"{self.function}:{self.source}"


@dataclass(frozen=True, eq=False)
class ReviewSets:
    """Documents as sets of sentences; the `ids` of the sets are document numbers."""

    spec: ReviewSpec
    train: Sets
    valid: Sets
    test: Sets
    documents: Documents

    protocols: ClassVar[tuple[str, ...]] = ("held-out",)

    def test_sets(self, protocol: str) -> Sets:
        """Return the test documents; none of them was seen in training."""
        if protocol not in self.protocols:
            raise unknown("protocol of documents", protocol, self.protocols)
        return self.test

    def expected(self, sets: Sets) -> None:
        """Return None: the added values of sentences are unknown."""

    def sentences(self, sets: Sets) -> Documents:
        """Return the sentences of each document."""
        assert sets.ids is not None
        return [self.documents[int(number)] for number in sets.ids]


def is_sentiment(text: str) -> bool:
    """Return whether a text such as `sentiment:ted-comments` names this task.

    >>> is_sentiment("Sent"), is_sentiment("US:mnist")
    (True, False)
    """
    return text.split(":")[0].strip().lower() in ("sentiment", "sent")


def parse_reviews(text: str, *, embedding: str | None = None, seed: int = 0) -> ReviewSpec:
    """Parse a short description of a review task.

    Parameters
    ----------
    text
        `sentiment`, `sentiment:SOURCE` or `sentiment:SOURCE:EMBEDDING`.
    embedding
        Overrides the one in `text`.
    seed
        Seed of the split into training, validation and test documents.

    Examples
    --------
    >>> parse_reviews("sentiment:ted-comments").name
    'sentiment:ted-comments'
    """
    _, *rest = text.split(":")
    if not is_sentiment(text) or len(rest) > 2:
        raise InputError(
            f"a task on documents is sentiment, sentiment:SOURCE or sentiment:SOURCE:EMBEDDING, "
            f"not {text}; sources are {', '.join(REVIEWS)}"
        )
    source, written = (part.strip().lower() for part in (*rest, "", "")[:2])
    return ReviewSpec(source or next(iter(REVIEWS)), embedding or written or "minilm", seed=seed)


def make_reviews(spec: ReviewSpec, *, progress: TitledProgress | None = None) -> ReviewSets:
    """Embed the sentences and split the documents into training, validation and test sets."""
    documents, ratings = REVIEWS[spec.source](progress)
    vectors = embed_sentences(
        spec.source, [sentence for d in documents for sentence in d], progress=progress
    )
    sets = Sets(
        vectors,
        np.arange(len(vectors)),
        offsets_of([len(document) for document in documents]),
        ratings,
        ids=np.arange(len(documents)),
    )
    order = np.random.default_rng(spec.seed).permutation(len(sets))
    cuts = np.cumsum([round(share * len(sets)) for share in SHARES[:-1]])
    train, valid, test = (sets.subset(part) for part in np.split(order, cuts))
    return ReviewSets(spec, train, valid, test, documents)


def pooled_ridge(task: ReviewSets) -> Any:
    """Fit ridge regression on the mean vector of a document, as a baseline.

    Returns
    -------
    predict
        A function from sets to predictions.
    """
    from sklearn.linear_model import RidgeCV

    # The regularisation is chosen by leave-one-out on the training documents.
    model = RidgeCV(alphas=np.logspace(-3, 3, 13)).fit(_means(task.train), task.train.y)
    return lambda sets: model.predict(_means(sets))


def _means(sets: Sets) -> NDArray[np.float64]:
    sums = np.add.reduceat(sets.instances[sets.index].astype(np.float64), sets.offsets[:-1], axis=0)
    means: NDArray[np.float64] = sums / sets.sizes[:, None]
    return means
