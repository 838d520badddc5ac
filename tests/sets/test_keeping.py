"""Save, memory-map and load sets."""

import json

import numpy as np
import pytest

from capnets.errors import InputError
from capnets.sets import Sets
from tables_of_sets import same


class TestKeeping:
    def test_everything_comes_back(self, three, tmp_path):
        three.save(tmp_path / "new" / "folder")
        loaded = Sets.load(tmp_path / "new" / "folder")
        for name in ("instances", "index", "offsets", "y", "classes", "ids", "weights"):
            kept = getattr(loaded, name)
            np.testing.assert_array_equal(kept, getattr(three, name))
            assert isinstance(kept, np.memmap), f"{name} should stay on disk"
        assert loaded.feature_names == ("width", "height")

    def test_saving_again_replaces(self, three, tmp_path):
        three.save(tmp_path)
        old = Sets.load(tmp_path)
        three[:1].save(tmp_path)
        assert len(Sets.load(tmp_path)) == 1
        assert len(list(tmp_path.glob("offsets*"))) == 1
        same(old, [three[k] for k in range(3)])  # whoever had it open goes on reading

    def test_saving_over_itself(self, three, tmp_path):
        three.save(tmp_path)
        Sets.load(tmp_path)[1:].save(tmp_path)
        same(Sets.load(tmp_path), [three[1], three[2]])

    def test_failure_keeps_the_earlier_save(self, three, tmp_path, monkeypatch):
        three.save(tmp_path)
        before = sorted(p.name for p in tmp_path.iterdir())
        real, written = np.save, []

        def full_disk(file, values, **options):
            written.append(values)
            if len(written) == 3:
                raise OSError(28, "No space left on device")
            real(file, values, **options)

        monkeypatch.setattr(np, "save", full_disk)
        with pytest.raises(InputError, match=r"cannot write .*offsets.*No space left"):
            three[:1].save(tmp_path)
        same(Sets.load(tmp_path), [three[k] for k in range(3)])
        assert sorted(p.name for p in tmp_path.iterdir()) == before

    def test_foreign_files_stay(self, three, tmp_path):
        (tmp_path / "mine.npy").write_bytes(b"mine")
        three.save(tmp_path)
        three.save(tmp_path)
        assert (tmp_path / "mine.npy").read_bytes() == b"mine"

    def test_nothing_there(self, tmp_path):
        with pytest.raises(InputError, match=r"no complete saved sets|is damaged"):
            Sets.load(tmp_path)

    @pytest.mark.parametrize("damage", ["truncate", "remove", "pickle", "json", "list", "format"])
    def test_damage(self, three, tmp_path, damage):
        three.save(tmp_path)
        about = tmp_path / "sets.json"
        (pool,) = tmp_path.glob("instances*")
        if damage == "truncate":
            pool.write_bytes(pool.read_bytes()[:-8])
        elif damage == "remove":
            pool.unlink()
        elif damage == "pickle":
            np.save(pool, np.array([{}], dtype=object), allow_pickle=True)
        elif damage == "json":
            about.write_text(about.read_text()[:-5])
        elif damage == "list":
            about.write_text("[]")
        else:
            about.write_text("{}")
        with pytest.raises(InputError, match=r"no complete saved sets|is damaged"):
            Sets.load(tmp_path)

    def test_missing_array(self, three, tmp_path):
        three.save(tmp_path)
        about = json.loads((tmp_path / "sets.json").read_text())
        del about["arrays"]["offsets"]
        (tmp_path / "sets.json").write_text(json.dumps(about))
        with pytest.raises(InputError, match=r"is damaged"):
            Sets.load(tmp_path)

    def test_newer_format(self, three, tmp_path):
        three.save(tmp_path)
        about = json.loads((tmp_path / "sets.json").read_text()) | {"format": 99}
        (tmp_path / "sets.json").write_text(json.dumps(about))
        with pytest.raises(InputError, match=r"newer version of capnets .*format 99.*upgrade"):
            Sets.load(tmp_path)

    def test_cannot_point_elsewhere(self, three, tmp_path):
        three.save(tmp_path / "sets")
        np.save(tmp_path / "secret.npy", np.zeros((9, 2)))
        about = json.loads((tmp_path / "sets" / "sets.json").read_text())
        about["arrays"]["instances"] = "../secret.npy"
        (tmp_path / "sets" / "sets.json").write_text(json.dumps(about))
        with pytest.raises(InputError, match="holds no complete saved sets"):
            Sets.load(tmp_path / "sets")


def test_leftovers_of_killed_saves_are_removed(tmp_path):
    sets = Sets.from_arrays([np.ones((2, 3))], y=[1.0])
    sets.save(tmp_path)
    (tmp_path / "instances-00112233.npy").write_bytes(b"half")
    (tmp_path / "mine-00112233.npy").write_bytes(b"a user's own")
    sets.save(tmp_path)
    names = {path.name for path in tmp_path.iterdir()}
    assert "instances-00112233.npy" not in names
    assert "mine-00112233.npy" in names
    assert len(names) == 6, names
    np.testing.assert_array_equal(Sets.load(tmp_path)[0], sets[0])


def test_one_flipped_bit_is_noticed(three, tmp_path):
    three.save(tmp_path)
    for path in sorted(tmp_path.glob("*.npy")):
        whole = path.read_bytes()
        for place in {len(whole) - 1, len(whole) // 2, 3}:
            path.write_bytes(whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :])
            with pytest.raises(InputError, match=r"damaged|no complete saved sets"):
                Sets.load(tmp_path)
        path.write_bytes(whole)
    Sets.load(tmp_path)


def test_another_description_is_noticed(three, tmp_path):
    three.save(tmp_path)
    about = json.loads((tmp_path / "sets.json").read_text())
    arrays = about["arrays"]
    arrays["index"], arrays["offsets"] = arrays["offsets"], arrays["index"]
    (tmp_path / "sets.json").write_text(json.dumps(about))
    with pytest.raises(InputError, match=r"sets\.json is damaged"):
        Sets.load(tmp_path)
