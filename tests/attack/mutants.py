"""Damage files in the ways that disks, transfers and editors do."""

import json
from collections.abc import Iterator

import numpy as np

JUNK = [None, True, -1, 2**31, 10**30, 1.5, float("nan"), "", "x", [], [1], {}, {"a": 1}]


def mutants(content: bytes, count: int, *, seed: int) -> Iterator[bytes]:
    """Yield damaged copies of a file; the same seed gives the same copies."""
    generator = np.random.default_rng(seed)
    kinds = [_flip, _flip, _bytes, _cut, _repeat, _zeros, _insert]
    try:
        document = json.loads(content)
    except ValueError:
        document = None
    else:
        kinds += [_bytes, _flip]
    for _ in range(count):
        if document is not None and generator.random() < 0.4:
            yield json.dumps(_replaced(document, generator)).encode()
        else:
            yield bytes(kinds[generator.integers(len(kinds))](bytearray(content), generator))


def _flip(content, generator):
    for _ in range(generator.integers(1, 4)):
        content[generator.integers(len(content))] ^= 1 << int(generator.integers(8))
    return content


def _bytes(content, generator):
    for _ in range(generator.integers(1, 9)):
        content[generator.integers(len(content))] = int(generator.integers(256))
    return content


def _cut(content, generator):
    return content[: generator.integers(len(content))]


def _span(content, generator):
    start = int(generator.integers(len(content)))
    return start, start + int(generator.integers(1, 64))


def _repeat(content, generator):
    start, stop = _span(content, generator)
    return content[:stop] + content[start:]


def _zeros(content, generator):
    start, stop = _span(content, generator)
    return content[:start] + bytes(len(content[start:stop])) + content[stop:]


def _insert(content, generator):
    start, stop = _span(content, generator)
    return content[:start] + generator.bytes(stop - start) + content[start:]


def _replaced(document, generator):
    """Return a copy of a JSON document with junk in, or without, one of its entries."""
    document = json.loads(json.dumps(document))
    place = document
    while True:
        keys = list(place) if isinstance(place, dict) else list(range(len(place)))
        if not keys:
            return document
        key = keys[generator.integers(len(keys))]
        deeper = isinstance(place[key], dict | list) and place[key] and generator.random() < 0.8
        if not deeper:
            break
        place = place[key]
    if generator.random() < 0.3:
        del place[key]
    else:
        place[key] = JUNK[generator.integers(len(JUNK))]
    return document
