"""Errors for people: what was wrong, where, and what to do about it."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches

__all__ = ["DataWarning", "InputError", "LeakageWarning", "unknown"]


class InputError(ValueError):
    """Something given to capnets is wrong; the message is meant to be read by whoever gave it."""


class DataWarning(UserWarning):
    """Data can be read, but probably not as intended."""


class LeakageWarning(DataWarning):
    """A feature gives away the label."""


def unknown(kind: str, name: object, choices: Iterable[str], *, listed: str = "") -> InputError:
    """An error for a name that is not among the choices; it names the near ones first.

    Where there are too many choices to name, `listed` is the command that lists them.

    >>> print(unknown("model", "deepsets", ["gru", "c-gru", "deepset"]))
    unknown model 'deepsets': did you mean 'deepset'? Choices: gru, c-gru, deepset
    """
    known = list(choices)
    near = get_close_matches(str(name), known, n=3)
    hint = f"did you mean {' or '.join(map(repr, near))}? " if near else ""
    rest = f"`{listed}` lists all" if listed else f"Choices: {', '.join(known)}"
    return InputError(f"unknown {kind} {name!r}: {hint}{rest}")
