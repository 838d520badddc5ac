import json

import pytest

from capnets.errors import InputError
from capnets.tasks import VARYING, TaskSpec, parse_task


def test_round_trip_through_json():
    spec = parse_task("US+S:digits", sizes="varying", sets=7, protocol="held-out", seed=3)
    assert TaskSpec.from_dict(json.loads(json.dumps(spec.to_dict()))) == spec
    assert hash(spec) == hash(TaskSpec.from_dict(spec.to_dict()))


@pytest.mark.parametrize(
    ("text", "function", "source"),
    [
        ("US", "unique-sum", "mnist"),
        ("unique-sum:digits", "unique-sum", "digits"),
        ("us+s", "unique-sum-synergy", "mnist"),
        ("TriC", "triangular-count", "fashion-mnist"),
        ("UC:MNIST", "unique-count", "mnist"),
        ("Mult:digits", "product", "digits"),
    ],
)
def test_short_texts(text, function, source):
    spec = parse_task(text)
    assert (spec.function, spec.source) == (function, source)
    assert parse_task(spec.name) == spec


def test_embeddings():
    assert parse_task("US:digits").embedding == "none"
    assert parse_task("US:mnist:pca").embedding == "pca"
    assert parse_task("US:mnist:pca", embedding="none").embedding == "none"


def test_sizes():
    assert parse_task("US", sizes=3).sizes == (3,)
    assert parse_task("US", sizes=[3, 5]).sizes == (3, 5)
    assert parse_task("US", sizes="3,5").sizes == (3, 5)
    assert parse_task("US", sizes="varying").sizes == VARYING == (6, 8, 10, 12, 14)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (lambda: parse_task("unique"), "unknown set function 'unique': did you mean"),
        (lambda: parse_task("US:minst"), "did you mean 'mnist'"),
        (lambda: parse_task("US:mnist:pac"), "did you mean 'pca'"),
        (lambda: parse_task("US:mnist:pca:more"), "FUNCTION:SOURCE:EMBEDDING"),
        (lambda: parse_task("US", protocol="heldout"), "did you mean 'held-out'"),
        (lambda: parse_task("US", sizes=0), "sizes must be at least 1"),
        (lambda: parse_task("US", sizes=[]), "sizes must be at least 1"),
        (lambda: parse_task("US", sizes="many"), "sizes must be a number"),
        (lambda: parse_task("US", sets=0), "sets must be at least 1"),
        (lambda: parse_task("US", seed=-1), "must not be negative"),
        (lambda: TaskSpec("unique-sum", "mnist", "word"), "unknown embedding"),
        (lambda: TaskSpec.from_dict({"function": "unique-sum"}), "needs the fields source"),
        (
            lambda: TaskSpec.from_dict(parse_task("US").to_dict() | {"size": 3}),
            "unknown TaskSpec setting 'size': did you mean",
        ),
    ],
)
def test_what_is_wrong_is_said(wrong, message):
    with pytest.raises(InputError, match=message):
        wrong()
