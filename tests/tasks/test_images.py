import gzip
import hashlib
from dataclasses import replace

import numpy as np
import pytest

from capnets.errors import InputError
from capnets.tasks.files import FILES
from capnets.tasks.images import SOURCES, load_images, read_idx


def test_digits_are_scikit_learns():
    from sklearn.datasets import load_digits

    images = load_images("digits")
    assert (images.pixels == load_digits().images).all()
    assert (images.classes == load_digits().target).all()
    assert images.pixels.max() == images.white
    train, test = images.rows("train"), images.rows("test")
    assert np.concatenate([train, test]).tolist() == list(range(len(images.pixels)))
    assert np.bincount(images.classes[test]).min() >= 30


@pytest.mark.data
@pytest.mark.parametrize("source", ["mnist", "fashion-mnist"])
def test_images_of_28_by_28(source):
    images = load_images(source)
    assert images.pixels.shape == (70_000, 28, 28)
    assert images.train == 60_000
    assert np.bincount(images.classes).min() > 6_000
    assert len(images.class_names) == 10


@pytest.mark.data
def test_first_labels_are_the_well_known_ones():
    assert load_images("mnist").classes[:10].tolist() == [5, 0, 4, 1, 9, 2, 1, 3, 1, 4]
    assert load_images("fashion-mnist").class_names[load_images("fashion-mnist").classes[0]] == (
        "Ankle boot"
    )


def idx_file(tmp_path, monkeypatch, content):
    name = "toys/toy-idx.gz"
    path = tmp_path / name
    path.parent.mkdir()
    path.write_bytes(gzip.compress(content))
    monkeypatch.setenv("CAPNETS_DATA", str(tmp_path))
    example = FILES["mnist/t10k-labels-idx1-ubyte.gz"]
    checksum = hashlib.sha256(content).hexdigest()
    monkeypatch.setitem(FILES, name, replace(example, name=name, sha256=checksum))
    return name


def test_idx_reads_any_number_of_axes(tmp_path, monkeypatch):
    content = b"\0\0\x08\x02" + b"\0\0\0\x02" + b"\0\0\0\x03" + bytes(range(6))
    name = idx_file(tmp_path, monkeypatch, content)
    assert read_idx(name).tolist() == [[0, 1, 2], [3, 4, 5]]


def test_idx_of_another_type_is_refused(tmp_path, monkeypatch):
    name = idx_file(tmp_path, monkeypatch, b"\0\0\x0d\x01" + b"\0\0\0\x01" + bytes(4))
    with pytest.raises(InputError, match="not an IDX file of bytes"):
        read_idx(name)


def test_unknown_names():
    with pytest.raises(InputError, match="did you mean 'mnist'"):
        load_images("mnst")
    with pytest.raises(InputError, match="train, test"):
        load_images("digits").rows("valid")
    assert set(SOURCES) == {"digits", "mnist", "fashion-mnist"}
