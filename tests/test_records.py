import json
from dataclasses import dataclass

import pytest

from capnets.errors import InputError
from capnets.records import Record


@dataclass(frozen=True)
class Choice(Record):
    name: str
    sizes: tuple[int, ...] = (1, 2)
    rate: float | None = None


@pytest.mark.parametrize("choice", [Choice("a"), Choice("b", sizes=(), rate=0.1)])
def test_through_json(choice):
    again = Choice.from_dict(json.loads(json.dumps(choice.to_dict())))
    assert again == choice
    assert type(again.sizes) is tuple
    assert hash(again) == hash(choice)


def test_what_is_missing_has_its_default():
    assert Choice.from_dict({"name": "a"}) == Choice("a")


def test_unknown_key():
    with pytest.raises(InputError, match="unknown Choice setting 'size': did you mean 'sizes'"):
        Choice.from_dict({"name": "a", "size": [3]})
