"""Open a study in a database. It records its question, so that different searches never mix."""

from __future__ import annotations

import hashlib
import json
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from capnets.errors import InputError
from capnets.files import writing
from capnets.files.locks import lock_file

if TYPE_CHECKING:
    import optuna

__all__ = ["About", "check_same", "complete", "digest", "open_study", "watching_storage"]

#: Seconds without a heartbeat after which a trial is given to another process.
HEARTBEAT = 30
#: Attribute of a study that records its question.
ABOUT = "about"
#: Parts of the question that are recorded as digests.
DIGESTS = ("data", "folds")
#: Longest value that a message repeats.
SHOWN = 60

About = dict[str, Any]


def digest(value: Any) -> str:
    """Return a short digest of a JSON value, the same on every machine."""
    text = json.dumps(value, sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def open_study(url: str, name: str, about: About) -> optuna.Study:
    """Create the study, or open it if its question is the same.

    Parameters
    ----------
    url
        URL of its storage.
    name
        Name in this storage.
    about
        The question, as a JSON object.
    """
    study = _load(url, name)
    with watching_storage(url):
        recorded = study.user_attrs.get(ABOUT)
        if recorded is None and not study.get_trials(deepcopy=False):
            study.set_user_attr(ABOUT, about)
            return study
    if recorded is None:
        raise InputError(
            f"the study {name!r} in the storage is not a search of capnets; "
            "give this search another name"
        )
    check_same(recorded, about, f"the study {name!r}", "give this search another name")
    return study


def check_same(recorded: About, about: About, where: str, advice: str) -> None:
    """Refuse to continue a search with another question; name the differences."""
    keys = [k for k in {**recorded, **about} if recorded.get(k) != about.get(k)]
    if not keys:
        return
    differences = "; ".join(_difference(k, recorded.get(k), about.get(k)) for k in keys)
    raise InputError(
        f"{where} holds another search, whose trials say nothing about this one: {differences}. "
        f"Ask for the same again, or {advice}"
    )


def _difference(name: str, before: Any, now: Any) -> str:
    texts = [json.dumps(value, ensure_ascii=False) for value in (before, now)]
    if name in DIGESTS or max(map(len, texts)) > SHOWN:
        return f"other {name}"
    return f"{name} was {texts[0]}, is {texts[1]}"


def complete(study: optuna.Study) -> int:
    """Return the number of complete trials."""
    import optuna

    return len(study.get_trials(deepcopy=False, states=[optuna.trial.TrialState.COMPLETE]))


@contextmanager
def watching_storage(url: str) -> Iterator[None]:
    """Turn errors of the database into one sentence."""
    import optuna
    import sqlalchemy

    try:
        yield
    except (sqlalchemy.exc.SQLAlchemyError, optuna.exceptions.StorageInternalError) as error:
        raise _unusable(url, error.__cause__ or error) from error


def _load(url: str, name: str) -> optuna.Study:
    try:
        import optuna
    except ModuleNotFoundError as error:
        raise InputError("tuning needs Optuna: pip install 'capnets[tune]'") from error
    # A failed trial is reported by its reason; Optuna would print a traceback.
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    try:
        with warnings.catch_warnings(), watching_storage(url):
            warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
            _create_database(url)
            store = optuna.storages.RDBStorage(
                url,
                heartbeat_interval=HEARTBEAT,
                # Without it the trial of a killed process would count as running for ever.
                heartbeat_stale_trial_callback=optuna.storages.RetryHeartbeatStaleTrialCallback(),
            )
            return optuna.create_study(storage=store, study_name=name, load_if_exists=True)
    except InputError:
        raise
    # No driver for such a database; a port that is no number; tables of a newer Optuna.
    except (ImportError, ValueError, RuntimeError) as error:
        raise _unusable(url, error.__cause__ or error) from error


def _create_database(url: str) -> None:
    """Create a SQLite file in one step: a full disk leaves none instead of half of its tables."""
    import optuna
    from sqlalchemy.engine import make_url

    place = make_url(url)
    if place.get_backend_name() != "sqlite" or place.database in (None, "", ":memory:"):
        return
    path = Path(str(place.database))
    if path.exists() or not path.parent.is_dir():
        return
    with lock_file(path.with_name(f".{path.name}.lock")):
        for journal in path.parent.glob(f".{path.name}.*-journal"):  # of a killed process
            journal.unlink(missing_ok=True)
        if path.exists():
            return
        with writing(path) as temporary:
            optuna.storages.RDBStorage(f"sqlite:///{temporary}").engine.dispose()


def _unusable(url: str, reason: BaseException) -> InputError:
    text = str(reason).strip().partition("\n")[0]
    return InputError(
        f"the storage {_without_password(url)} cannot be used: {text}. See that its URL is one "
        "that Optuna takes (sqlite:///study.db, postgresql://user@host/name, …) and that the "
        "database answers and may be written to; complete trials in it are kept"
    )


def _without_password(url: str) -> str:
    from sqlalchemy.engine import make_url
    from sqlalchemy.exc import ArgumentError

    try:
        return make_url(url).render_as_string(hide_password=True)
    except (ArgumentError, ValueError):  # not a URL, so a password cannot be located
        return "that was given"
