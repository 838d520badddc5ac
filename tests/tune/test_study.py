"""A study belongs to one search, wherever it is called from."""

import optuna
import pytest

from capnets.errors import InputError
from capnets.estimators import SetClassifier, SetRegressor
from capnets.tune import Space, tune
from tune.searching import QUICK, SPACE, columns_of, content, frame_of, trials_in


class TestWhatAStudyIsAbout:
    def search(self, folder, target="y", *, space=SPACE, frame=None, seed=0, **how):
        kind = SetClassifier if target == "label" else SetRegressor
        settings = {**QUICK, "random_state": seed}
        estimator = kind(columns=columns_of(target, group=how.pop("group", None)), **settings)
        frame = frame_of(40) if frame is None else frame
        return tune(folder, frame, estimator, trials=1, space=space, **how)

    @pytest.mark.parametrize(
        ("change", "difference"),
        [
            ({"target": "label"}, 'loss was "squared", is "logistic"; target was'),
            ({"target": "w"}, r'target was \["y"\], is \["w"\]; other data'),
            ({"frame": frame_of(41)}, "other data"),
            ({"group": "g"}, "other folds"),
            ({"seed": 1}, "seed was 0, is 1"),
            (
                {"space": Space(models=("deepset",), hidden=(4,), layers=(1,), epochs=(2, 4))},
                r'models was \["c-rnn", "deepset"\], is \["deepset"\]',
            ),
        ],
    )
    def test_a_folder_keeps_to_one_search(self, tmp_path, losses, change, difference):
        losses += [1.0]
        self.search(tmp_path)
        (tmp_path / "run").rename(tmp_path / "elsewhere")
        before = content(tmp_path)
        with pytest.raises(InputError, match=difference) as error:
            self.search(tmp_path, **change)
        assert "choose another folder" in str(error.value)
        assert content(tmp_path) == before

    def test_searches_share_a_storage_and_no_trials(self, tmp_path, losses):
        losses += [1.0, 2.0]
        storage = f"sqlite:///{tmp_path / 'all.db'}"
        self.search(tmp_path / "a", storage=storage)
        self.search(tmp_path / "b", "label", storage=storage)
        assert [t["loss"] for t in trials_in(tmp_path / "a")] == [1.0]
        assert [t["loss"] for t in trials_in(tmp_path / "b")] == [2.0]

    def test_the_same_search_from_elsewhere_joins(self, tmp_path, losses):
        losses += [1.0]
        storage = f"sqlite:///{tmp_path / 'all.db'}"
        self.search(tmp_path / "a", storage=storage)
        # The same choices, told in another order.
        space = Space(models=SPACE.models[::-1], hidden=(4,), layers=(1,), epochs=(4, 2))
        self.search(tmp_path / "b", storage=storage, space=space)
        assert trials_in(tmp_path / "a") == trials_in(tmp_path / "b")

    def test_a_named_study_keeps_to_one_search(self, tmp_path, losses):
        losses += [1.0]
        where = {"storage": f"sqlite:///{tmp_path / 'all.db'}", "study": "mine"}
        self.search(tmp_path / "a", **where)
        assert optuna.get_all_study_names(where["storage"]) == ["mine"]
        with pytest.raises(InputError, match=r"the study 'mine' holds another search.*other data"):
            self.search(tmp_path / "b", "label", **where)
        assert not (tmp_path / "b").exists()
        with pytest.raises(InputError, match="is of the study 'mine', not 'yours'"):
            self.search(tmp_path / "a", storage=where["storage"], study="yours")

    def test_a_study_of_somebody_else(self, tmp_path):
        storage = f"sqlite:///{tmp_path / 'all.db'}"
        foreign = optuna.create_study(storage=storage, study_name="theirs")
        foreign.optimize(lambda trial: trial.suggest_float("x", 0, 1), n_trials=1)
        with pytest.raises(InputError, match="'theirs' in the storage is not a search of capnets"):
            self.search(tmp_path / "t", storage=storage, study="theirs")
