import json

import numpy as np
import pytest

from capnets.errors import InputError
from capnets.explain import Explanation, Orders, explain, shapley_values


@pytest.fixture
def explanation(capacity, one_hot) -> Explanation:
    sets = one_hot([[7, 3, 7], [2], [5, 5]])
    found = explain(capacity("unique-sum"), sets, orders=Orders.random(6, seed=4))
    return found.with_expected([3.5, 3, 3.5, 2, 2.5, 2.5])


def same(a: Explanation, b: Explanation) -> bool:
    return a.to_dict() == b.to_dict()


def test_json_round_trip(explanation, tmp_path, capacity, one_hot):
    assert same(explanation, Explanation.from_dict(json.loads(json.dumps(explanation.to_dict()))))
    explanation.save(tmp_path / "e.json")
    assert same(explanation, Explanation.load(tmp_path / "e.json"))
    exact = shapley_values(capacity("unique-sum"), one_hot([[1, 2]]))
    exact.save(tmp_path / "e.json")
    assert same(exact, Explanation.load(tmp_path / "e.json"))


def test_to_frame_has_a_row_per_instance_and_columns_for_what_is_known(explanation):
    frame = explanation.to_frame()
    assert frame["set"].tolist() == [0, 0, 0, 1, 2, 2]
    assert frame["instance"].tolist() == [0, 1, 2, 0, 0, 1]
    assert frame["value"].tolist() == explanation.values.tolist()
    assert frame["label"].tolist() == [10, 10, 10, 2, 5, 5]
    assert list(frame) == [
        "set", "instance", "value", "error", "spread", "expected", "prediction", "label",
    ]  # fmt: skip


def test_unknown_columns_are_left_out(capacity, one_hot):
    frame = explain(capacity("unique-sum"), one_hot([[1, 2]])).to_frame()
    assert list(frame) == ["set", "instance", "value", "prediction", "label"]


def test_subset_keeps_names_and_numbers(explanation):
    part = explanation.subset([2, 0])
    assert part.ids == ("2", "0")
    assert part.values.tolist() == [*explanation.values[4:], *explanation.values[:3]]
    assert part.predictions.tolist() == explanation.predictions[[2, 0]].tolist()
    assert part.gaps == pytest.approx(0, abs=1e-9)
    assert part.expected.tolist() == [2.5, 2.5, 3.5, 3, 3.5]


def test_subset_of_a_listed_order(capacity, one_hot):
    sets = one_hot([[7, 3], [2, 1]])
    found = explain(capacity("unique-sum"), sets, orders=Orders.of([0, 1, 1, 0]))
    assert found.subset([1]).orders.listed == (1, 0)


def test_gaps_show_what_is_missing():
    lacking = Explanation(
        method="made up",
        values=[1, 2, 3],
        offsets=[0, 2, 3],
        predictions=[4, 3],
        baselines=[0.5, 0],
    )
    assert lacking.gaps.tolist() == [0.5, 0]


def test_meaning_in_words(explanation, capacity, one_hot):
    assert explanation.meaning.startswith(
        "Mean added values, 6 random orders (3 and their reverses)"
    )
    assert "a standard error of" in explanation.meaning
    plain = explain(capacity("unique-sum"), one_hot([[1, 2]]))
    assert plain.meaning == "Added values, the given order."


def test_refuses(explanation, tmp_path):
    with pytest.raises(InputError, match="set 3 does not exist: sets 0 to 2"):
        explanation.subset([3])
    with pytest.raises(InputError, match="expected has shape"):
        explanation.with_expected([1, 2])
    with pytest.raises(InputError, match="a newer version"):
        Explanation.from_dict({"format": 99})
    with pytest.raises(InputError, match="unknown Explanation field 'valuess'"):
        Explanation.from_dict(explanation.to_dict() | {"valuess": []})
    with pytest.raises(InputError, match="holds no explanation"):
        Explanation.load(tmp_path / "none.json")
    (tmp_path / "half.json").write_text('{"format": 1, "val')
    with pytest.raises(InputError, match="holds no explanation"):
        Explanation.load(tmp_path / "half.json")


def test_arrays_are_numbers_of_double_precision(explanation):
    assert explanation.values.dtype == np.float64
    assert explanation.labels.dtype == np.float64
