"""Features that copy the label are refused; those that determine it are warned of; others pass."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from capnets.errors import InputError, LeakageWarning
from capnets.estimators import SetClassifier, SetRegressor
from capnets.ingest import Columns, leakage, read_table
from capnets.ingest.leakage import check_leakage
from capnets.sets import Sets
from ragged import QUICK

LABELS = np.random.default_rng(0).normal(size=30).astype(np.float32) * 3 + 20


def sets_of(per_set, y, *, size=3, name="copy", **options):
    """Sets with two random features and one that has the given value in all instances of a set."""
    generator = np.random.default_rng(1)
    rows = np.repeat(np.arange(len(y)), size)
    frame = pd.DataFrame({"set": rows, "a": generator.normal(size=len(rows)), "y": y[rows]})
    frame["b"], frame[name] = generator.integers(0, 3, len(rows)), np.asarray(per_set)[rows]
    return read_table(
        frame, Columns(set="set", target="y", **options), classify=y.dtype.kind == "i"
    )


def check(table, **options):
    check_leakage(table.sets, table.schema.feature_columns, **options)


@pytest.mark.parametrize(("scale", "offset"), [(1, 0), (-1, 0), (1.8, 32), (1e-6, 0), (1, 1e4)])
def test_affine_copies_are_refused_by_name(scale, offset):
    with pytest.raises(InputError, match="'copy' is a copy of the label"):
        check(sets_of(scale * LABELS.astype(float) + offset, LABELS))


def test_copies_of_one_of_several_targets_are_refused():
    table = sets_of(LABELS, LABELS)
    y = np.stack([np.arange(30) % 7, LABELS], axis=1)
    with pytest.raises(InputError, match="'copy' is a copy"):
        check_leakage(replace(table.sets, y=y), table.schema.feature_columns)


def test_other_forms_of_the_label_are_warned_of():
    with pytest.warns(LeakageWarning, match="'copy' determines the label"):
        check(sets_of(np.exp(LABELS / 9), LABELS))
    kinds = np.arange(30) % 3
    with pytest.warns(LeakageWarning, match="'copy' determines the label"):
        check(sets_of(np.array([7, 1, 4])[kinds], kinds))
    with pytest.warns(LeakageWarning, match="'copy' determines the label"):
        check(sets_of(np.array(["x", "z", "y"])[kinds], kinds, categories="copy"))
    with pytest.warns(LeakageWarning, match="'copy' determines the label"):
        check(sets_of(kinds % 2, kinds % 2))


def test_labels_as_text_categories_are_noticed():
    """Sorted as text, 9.5 comes after 10.5: the categories are compared as numbers."""
    y = np.arange(30, dtype=np.float32) / 2 + 5
    with pytest.raises(InputError, match="'copy' is a copy of the label"):
        check(sets_of(np.array([f"{v:g}" for v in y]), y, categories="copy"))
    with pytest.warns(LeakageWarning, match="'copy' determines the label"):
        check(sets_of(np.array([f"{v:g}" for v in y**2]), y, categories="copy"))
    names = np.random.default_rng(0).permutation([f"inf{k}" for k in range(30)])
    check(sets_of(names, y, categories="copy"))  # honest: a name of the set
    classes = np.array(["a", "b", "c", "d", "e"])[np.arange(30) % 5]
    with pytest.raises(InputError, match="'copy' is a copy of the label"):
        check(sets_of(classes, classes, categories="copy"))


@pytest.mark.parametrize(
    "per_set",
    [
        LABELS + np.random.default_rng(2).normal(size=30),  # predicts, but is not the label
        np.random.default_rng(3).permutation(30),  # unique to a set, as the label is
        np.zeros(30),
        np.arange(30) % 2,
    ],
)
def test_honest_features_pass(per_set):
    check(sets_of(per_set, LABELS))


def test_few_sets_or_sets_of_one_instance_are_not_refused():
    check(sets_of(LABELS[:6], LABELS[:6]))
    with pytest.warns(LeakageWarning):
        check(sets_of(LABELS, LABELS, size=1))


def test_a_feature_that_varies_within_a_set_passes():
    table = sets_of(LABELS, LABELS)
    table.sets.instances[4, -1] += 1
    check(table)


def test_large_sets_are_compared_in_blocks(monkeypatch):
    monkeypatch.setattr(leakage, "NUMBERS", 300)
    table = sets_of(LABELS, LABELS, size=100)
    with pytest.raises(InputError, match="'copy' is a copy of the label"):
        check(table)
    table.sets.instances[-1, -1] += 1
    check(table)


def test_the_label_of_a_frame_given_as_y_as_well():
    generator = np.random.default_rng(0)
    basket = np.repeat(np.arange(40), 3)
    frame = pd.DataFrame({"basket": basket, "x": generator.normal(size=120)})
    frame["label"] = generator.integers(0, 2, 40)[basket]
    with pytest.raises(InputError, match=r"'label' is a copy of the label.*target='label'"):
        SetClassifier(columns="basket", **QUICK).fit(frame, frame["label"])
    frame["label"] = generator.normal(size=40)[basket]
    with pytest.raises(InputError, match="'label' is a copy of the label"):
        SetRegressor(columns="basket", **QUICK).fit(frame, frame["label"].to_numpy())
    right = SetRegressor(columns=Columns(set="basket", target="label"), **QUICK).fit(frame)
    assert right.feature_names_in_.tolist() == ["x"]


@pytest.mark.parametrize("kind", ["feature", "covariate"])
def test_numbered_columns_are_called_what_they_are(kind):
    y = np.arange(40.0)
    x = [np.full((2, 1), v if kind == "feature" else 0.0) for v in y]
    known = y[:, None] if kind == "covariate" else None
    with pytest.raises(InputError, match=rf"^{kind} 0 is a copy of the label") as said:
        check_leakage(Sets.from_arrays(x, y=y, covariates=known))
    assert "Columns" not in str(said.value)
